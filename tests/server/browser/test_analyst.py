"""The analyst's pages in a real browser: the whole story, by keyboard, without scripts, with texts like code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from server.browser.site import NASTY, Site, site, visits_table
from server.browser.visitor import Visitors, clean
from sordino.privacy.budget import Budget
from sordino.query.dataset import Dataset
from sordino.server.accounts.people import Role
from sordino.server.accounts.policy import Policy

MONTHS = "SELECT DATE_TRUNC('month', day) AS month, COUNT(*) AS n FROM visits GROUP BY month"


def small() -> Dataset:
    whole = visits_table()
    return Dataset(
        tables=whole.tables,
        budget=Budget(1, Fraction(1, 10**6)),
        reserved_delta=whole.reserved_delta,
    )


@pytest.fixture(scope="module")
def clinic() -> Iterator[Site]:
    """A server of its own, whose budget is soon spent."""
    with site(visits=small()) as served:
        yield served


@pytest.fixture(scope="module")
def everybody_there(chromium: Browser, clinic: Site) -> Visitors:
    return Visitors(chromium, clinic)


@pytest.fixture
def there(everybody_there: Visitors) -> Iterator[Visitors]:
    yield everybody_there
    everybody_there.close()


def ready(page: Page) -> None:
    """The curve and the sketch are there."""
    page.wait_for_selector("#curve svg, #told .notice")
    page.wait_for_selector("#sketch svg, #told .notice")


def write(page: Page, sql: str) -> None:
    page.locator(".cm-content").click()
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.insert_text(sql)
    page.keyboard.press("Escape")


def ask(page: Page) -> None:
    expect(page.locator("#ask")).to_be_enabled()
    page.click("#ask")
    page.wait_for_url("**/answers/**")
    page.wait_for_selector("table.answer")


def test_the_analysts_story(there: Visitors) -> None:
    page = there.page("ana", viewport={"width": 1600, "height": 900})
    page.goto("/")
    expect(page.locator("article")).to_contain_text(
        "Protected: each patient, with all rows of visits"
    )
    expect(page.locator("article")).to_contain_text("100% left")
    clean(page)
    page.get_by_role("link", name="Ask a question").click()
    ready(page)
    assert page.locator(".cm-content").inner_text().startswith("SELECT ward, COUNT(*) AS n")
    clean(page)

    # a refusal is underlined where it is, and mended by one click
    write(page, "SELECT AVG(agee) AS a FROM visits")
    page.wait_for_selector("#told .notice")
    assert page.locator(".cm-lintRange-error").inner_text() == "agee"
    expect(page.locator("#told")).to_contain_text("no such column is declared")
    expect(page.locator("#ask")).to_be_disabled()
    clean(page)
    page.get_by_role("button", name="Write age").click()
    expect(page.locator(".cm-content")).to_have_text("SELECT AVG(age) AS a FROM visits")
    expect(page.locator("#ask")).to_be_enabled()

    # the price is seen before it is paid, and following the slider costs no request
    write(page, "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward")
    expect(page.locator("#sketch .mark")).to_have_count(6)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    before = page.locator("#said").inner_text()
    page.locator("#slider").fill("900")
    assert page.locator("#said").inner_text() != before
    assert asked == []
    page.fill("#within", "50")
    page.press("#within", "Enter")  # which is no order to pay
    expect(page.locator("#said")).to_contain_text("± 50 for n")
    page.fill("#percent", "20")
    page.press("#percent", "Tab")
    expect(page.locator("#said")).to_contain_text("20% of your budget")
    spent = page.input_value("#epsilon")
    ask(page)
    assert page.locator("table.answer tbody tr").count() == 6
    assert page.locator("figure .whisker").count() == 6
    expect(page.locator(".said")).to_contain_text("6 groups.")
    clean(page)

    # the same again is free
    page.get_by_role("link", name="Change the question").click()
    ready(page)
    expect(page.locator("#same")).to_be_visible()
    ask(page)
    expect(page.locator("main")).to_contain_text("nothing: it was answered before")
    numbers = page.locator("table.answer tbody").inner_text()

    # better: two answers as one
    page.fill("#again input[name=epsilon]", spent)
    expect(page.locator("#again-said")).to_contain_text("instead of")
    page.get_by_role("button", name="Ask again").click()
    expect(page.locator(".notice.good")).to_contain_text("precision-weighted mean of 2 answers")
    assert page.locator("table.answer tbody").inner_text() != numbers
    clean(page)
    page.fill("input[name=title]", "Wards")
    page.get_by_role("button", name="Pin").click()
    page.wait_for_url("**/board")
    expect(page.locator("article h2")).to_have_text("Wards")
    page.wait_for_selector("figure .whisker")
    clean(page)

    # at the limit
    page.goto("/workbench/visits")
    ready(page)
    page.fill("#epsilon", "0.9")
    page.press("#epsilon", "Tab")
    expect(page.locator("#said")).to_contain_text("It does not fit into what is left.")
    expect(page.locator("#ask")).to_be_disabled()
    page.evaluate("document.getElementById('ask').disabled = false")
    page.click("#ask")
    page.wait_for_url("**/answers/**")
    expect(page.locator(".notice.bad")).to_contain_text(
        "this query costs 90 % of the budget, 60 % of it is left"
    )
    clean(page)
    page.goto("/history")
    expect(page.locator("ol.items")).to_contain_text("cost nothing")
    assert page.locator("ol.items > li").count() == 4
    expect(page.locator("ol.items > li").first).to_contain_text("refused")
    page.goto("/")
    expect(page.locator("article")).to_contain_text("60.0% left")


def test_a_question_by_keyboard_alone(visitors: Visitors) -> None:
    page = visitors.page("ana")
    page.goto("/workbench/visits")
    ready(page)
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.classList.contains('cm-content')"):
            break
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type("SELECT COUNT(*) AS n FROM vis")
    page.wait_for_selector(".cm-tooltip-autocomplete")
    expect(page.locator(".cm-tooltip-autocomplete [aria-selected]")).to_contain_text("visits")
    page.wait_for_timeout(100)  # a list that has just come up takes no key
    page.keyboard.press("Enter")
    expect(page.locator(".cm-content")).to_have_text("SELECT COUNT(*) AS n FROM visits")
    page.wait_for_selector("#sketch .band")
    expect(page.locator("#ask")).to_be_enabled()
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == "slider":
            page.keyboard.press("ArrowRight")
        if page.evaluate("document.activeElement.id") == "ask":
            break
    page.keyboard.press("Enter")
    page.wait_for_url("**/answers/**")
    expect(page.locator(".said")).to_contain_text("n is about")


def test_without_scripts_everything_reads_and_a_question_can_be_asked(visitors: Visitors) -> None:
    page = visitors.page("ana", java_script_enabled=False)
    page.goto("/workbench/visits")
    page.fill("#sql", "SELECT sex, COUNT(*) AS n FROM visits GROUP BY sex")
    page.fill("#epsilon", "0.1")
    page.get_by_role("button", name="Show the price").click()
    assert "epsilon" in page.locator("pre").first.inner_text()
    page.fill("#epsilon", "")
    page.fill("#error", "60")
    page.get_by_role("button", name="Ask", exact=True).click()
    page.wait_for_url("**/answers/**")
    assert page.locator("table.answer tbody tr").count() == 2
    for path in ("/", "/history", "/board"):
        page.goto(path)
        assert page.locator("h1").count() == 1


def test_the_builder_writes_sql_that_is_answered(visitors: Visitors) -> None:
    page = visitors.page("ana")
    page.goto("/workbench/visits")
    ready(page)
    page.get_by_role("button", name="Builder").click()
    page.select_option("#b-measure", "AVG")
    page.select_option("#b-column", "cost")
    page.get_by_role("button", name="Group by …").click()
    page.get_by_label("group by").select_option("day")
    page.get_by_role("button", name="Only where …").click()
    page.get_by_label("filter by").select_option("ward")
    page.get_by_label("value").select_option("surgery")
    wanted = "SELECT DATE_TRUNC('month', day) AS month, AVG(cost) AS avg_costFROM visitsWHERE ward = 'surgery'GROUP BY month"
    expect(page.locator(".cm-content")).to_have_text(wanted)
    page.wait_for_selector("#sketch .line")
    clean(page)
    ask(page)
    assert page.locator("figure .line").count() == 1
    page.go_back()
    page.wait_for_url("**/workbench/visits")


@pytest.mark.parametrize(
    ("sql", "mark", "count"),
    [
        (
            "SELECT BUCKET(age, 10) AS decade, COUNT(*) AS n FROM visits GROUP BY decade",
            "rect.mark",
            12,
        ),
        ("SELECT ward, sex, COUNT(*) AS n FROM visits GROUP BY ward, sex", "rect.heat", 12),
        (MONTHS, "circle.dot", 12),
    ],
)
def test_charts(visitors: Visitors, sql: str, mark: str, count: int) -> None:
    page = visitors.page("ana")
    page.goto(f"/workbench/visits?sql={sql}&epsilon=0.2")
    ready(page)
    ask(page)
    assert page.locator(f"figure {mark}").count() == count
    clean(page)
    csv = page.request.get(page.url + "/csv")
    assert len(csv.text().splitlines()) == 1 + count
    assert "attachment" in csv.headers["content-disposition"]
    assert page.request.get(page.url + "/arrow").body()[:4] == b"\xff\xff\xff\xff"


def test_texts_that_want_to_be_code_stay_texts(visitors: Visitors, pages: Site) -> None:
    pages.add(f"{NASTY} ana", Role.analyst, password=True)
    page = visitors.page(f"{NASTY} ana")
    page.goto("/")
    clean(page)
    page.goto("/workbench/nasty")
    ready(page)
    assert page.locator("#sketch .mark").count() == 3
    clean(page)
    page.locator(".cm-content").click()
    page.keyboard.press("End")
    page.keyboard.type(" <im")
    page.wait_for_selector(".cm-tooltip-autocomplete")
    page.keyboard.press("Escape")
    page.keyboard.insert_text(f"{NASTY}'</textarea><script>window.hacked=9</script>")
    page.wait_for_selector("#told .notice")
    clean(page)
    page.goto(f"/workbench/nasty?sql={NASTY}&epsilon={NASTY}")
    page.wait_for_selector("#told .notice")
    clean(page)
    page.goto("/workbench/nasty")
    ready(page)
    ask(page)
    clean(page)
    page.fill("input[name=title]", f"{NASTY} title")
    page.get_by_role("button", name="Pin").click()
    page.wait_for_selector("figure svg")
    assert f"{NASTY} title" in page.locator("main").inner_text()
    clean(page)
    page.goto("/history")
    clean(page)


def test_an_error_that_depends_on_data_is_told_so(visitors: Visitors) -> None:
    page = visitors.page("ana")
    page.goto(
        "/workbench/visits?sql=SELECT ward, MEDIAN(age) AS m FROM visits GROUP BY ward&epsilon=0.2"
    )
    page.wait_for_selector("#sketch .whisker")
    expect(page.locator("#said")).to_contain_text("depends on the data")
    expect(page.locator("#within")).to_be_disabled()
    clean(page)


def test_boards_are_shared_by_the_owners_rule_only(visitors: Visitors, pages: Site) -> None:
    pages.add("bea", Role.analyst, password=True)
    page, other = visitors.page("ana"), visitors.page("bea")
    page.goto("/workbench/visits?sql=SELECT COUNT(*) AS n FROM visits WHERE age < 18&epsilon=0.1")
    ready(page)
    ask(page)
    answer = page.url
    page.fill("input[name=title]", "Children")
    page.get_by_role("button", name="Pin").click()
    other.goto("/board")
    expect(other.locator("main")).not_to_contain_text("Children")
    assert other.goto(answer).status == 404  # type: ignore[union-attr]
    pages.store.set_policy("visits", Policy(sharing=frozenset(("ana", "bea"))))
    other.goto("/board")
    expect(other.locator("main")).to_contain_text("Children")
    assert other.get_by_role("button", name="Take it off").count() == 0
    pages.store.set_policy("visits", Policy())
    page.goto("/board")
    page.get_by_role("button", name="Take it off").click()
    page.wait_for_url("**/board")
    expect(page.locator("main")).not_to_contain_text("Children")


def test_the_back_button_shows_nothing_after_logging_out(visitors: Visitors) -> None:
    page = visitors.page()
    visitors.log_in(page, "ana")
    page.goto("/history")
    page.get_by_role("button", name="Log out").click()
    page.wait_for_url("**/login")
    page.go_back()
    page.wait_for_url(re.compile("/login"))
    expect(page.locator("h1")).to_have_text("Log in")
    assert "History" not in page.content()


def test_numbers_are_in_the_readers_locale(visitors: Visitors) -> None:
    page = visitors.page("ana", locale="de-DE")
    page.goto("/workbench/visits?sql=SELECT COUNT(*) AS n FROM visits&epsilon=0.5")
    ready(page)
    ask(page)
    assert re.match(r"[56]\.\d{3}\b", page.locator("table.answer tbody data").inner_text())


def test_another_site_cannot_ask(visitors: Visitors, pages: Site) -> None:
    """A page of another site that posts the form with everything but the key, as a browser would send it."""
    page = visitors.page("ana")
    page.goto("/workbench/visits")
    key = page.get_attribute('meta[name="form-key"]', "content") or ""
    cookie = {one["name"]: one["value"] for one in page.context.cookies()}
    form = {"sql": "SELECT COUNT(*) AS n FROM visits", "epsilon": "0.1", "do": "ask"}
    path = f"{pages.address}/workbench/visits"
    own = {"Origin": pages.address, "Sec-Fetch-Site": "same-origin"}
    body = {"question": form["sql"], "offer": {"epsilon": 0.1}}
    with httpx.Client(cookies=cookie) as http:
        assert http.post(path, data=form, headers=own).status_code == 403
        assert http.post(path, data={**form, "form_key": "0" * 64}, headers=own).status_code == 403
        for origin in ("https://evil.test", "null"):
            assert (
                http.post(
                    path, data={**form, "form_key": key}, headers={"Origin": origin}
                ).status_code
                == 403
            )
        foreign = {**own, "Sec-Fetch-Site": "cross-site"}
        assert http.post(path, data={**form, "form_key": key}, headers=foreign).status_code == 403
        questions = f"{pages.address}/v1/datasets/visits/questions"
        assert http.post(questions, json=body, headers=own).status_code == 401
        assert (
            http.post(questions, json=body, headers={**own, "X-Sordino-Form": "0" * 64}).status_code
            == 401
        )
        assert (
            http.post(questions, json=body, headers={**foreign, "X-Sordino-Form": key}).status_code
            == 403
        )
        assert http.post(questions, data={**form, "form_key": key}, headers=own).status_code == 401
        assert (
            http.post(questions, json=body, headers={**own, "X-Sordino-Form": key}).status_code
            == 202
        )
        assert http.post(path, data={**form, "form_key": key}, headers=own).status_code == 303

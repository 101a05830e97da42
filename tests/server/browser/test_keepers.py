"""The stories of those who keep a dataset: owner, agent, auditor, officer; in a real browser."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from playwright.sync_api import expect

from server.browser.asking import asked, posted, sent
from server.browser.site import NASTY, Site
from server.browser.visitor import Visitors, clean, harmless
from sordino.query.dataset import Dataset
from sordino.server.accounts.people import Role
from sordino.server.accounts.rights import RIGHTS

COUNT = "SELECT COUNT(*) AS n FROM visits"


def test_an_owner_declares_a_table_of_a_file_that_stays_at_home(
    visitors: Visitors, tmp_path: Path
) -> None:
    columns = {
        "patient_id": [17, 4711],
        "age": [31, 99],
        "ward": ["secret ward", "B"],
        "cost": [1.5, 2.5],
        "tags": [["x"], []],
    }
    pq.write_table(pa.table(columns), tmp_path / "visits.parquet")
    page = visitors.page("olga")
    bodies: list[str] = []
    page.on("request", lambda request: bodies.append(request.post_data or ""))
    page.goto("/owner")
    page.get_by_role("link", name="Declare a table").click()
    clean(page)
    page.get_by_label("File (Parquet or CSV)").set_input_files(tmp_path / "visits.parquet")
    expect(page.get_by_role("status")).to_contain_text(
        "4 columns. 1 of a type that cannot be asked about"
    )
    page.get_by_role("button", name="Go on").click()
    page.get_by_label("max_rows", exact=True).fill("4")
    page.get_by_label("Smallest age").fill("0")
    page.get_by_label("Largest age").fill("-1")
    page.get_by_label("Type of ward").select_option("category")
    page.get_by_label("Values of ward").fill("A, B")
    page.get_by_role("button", name="Show what it means").click()
    expect(page.get_by_role("alert")).to_contain_text("min must be below max")
    page.get_by_label("Largest age").fill("110")
    page.get_by_role("button", name="Show what it means").click()
    errors = page.locator("table.effect td.num").all_inner_texts()
    assert [text.startswith("± ") for text in errors] == [
        True
    ] * 4  # rows, rows with half max_rows, mean age, rows by ward
    assert float(errors[1][2:]) == pytest.approx(float(errors[0][2:]) / 2, rel=0.02)
    clean(page)
    with page.expect_download() as download:
        page.get_by_role("button", name="Save visits.toml").click()
    download.value.save_as(tmp_path / "visits.toml")
    declared = Dataset.load(tmp_path / "visits.toml").tables["visits"]
    assert (declared.person, declared.bounds.given["max_rows"], list(declared.columns)) == (
        "patient_id",
        4,
        ["age", "ward", "cost"],
    )
    assert not any(cell in body for body in bodies for cell in ("secret", "4711", "PAR1"))


def test_an_owner_allots_approves_suspends_and_opens_again(visitors: Visitors, pages: Site) -> None:
    pages.add("carla", Role.analyst)
    page = visitors.page("olga")
    page.goto("/owner/clinic")
    page.locator("select[name=analyst]").select_option("carla")
    page.get_by_label("Epsilon", exact=True).fill("4")
    page.get_by_label("Epsilon", exact=True).press("Enter")
    expect(page.get_by_role("status")).to_have_text("The part of the budget is given.")
    page.get_by_label("Wait for me above epsilon").fill("0.5")
    page.get_by_role("button", name="Set rules").click()
    assert asked(pages, "carla", "clinic", COUNT, "0.4")["status"] == "answered"
    waits = asked(pages, "carla", "clinic", COUNT, "0.6", reason=f"{NASTY} for the report")
    assert waits["status"] == "waiting"
    page.goto("/owner/clinic")
    expect(page.locator("#waiting dd").last).to_have_text(f"{NASTY} for the report")
    clean(page)
    page.get_by_label("A note to carla").fill("fine")
    approve = page.get_by_role("button", name="Approve")
    approve.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("status")).to_have_text("The question is approved and is being asked.")
    done = sent(pages, "carla", "GET", f"{waits['location']}?wait=20")[1]
    assert (done["status"], done["note"]) == ("answered", "fine")
    page.get_by_role("button", name="Suspend").click()
    status, problem = sent(pages, "carla", "POST", "/v1/datasets/clinic/questions", {
        "question": f"{COUNT} WHERE age > 3", "offer": {"epsilon": 0.1},
    })  # fmt: skip
    assert (status, problem["rule"]) == (422, "its owner has suspended it: nobody asks for now")
    page.get_by_role("button", name="Open again").click()
    assert asked(pages, "carla", "clinic", f"{COUNT} WHERE age > 3", "0.1")["status"] == "answered"
    page.get_by_label("Name", exact=True).fill(f"{NASTY} dora")
    page.get_by_label("Role").select_option("auditor")
    page.get_by_role("button", name="Open", exact=True).click()
    page.get_by_role("button", name=f"Close the account of {NASTY} dora").click()
    expect(page.get_by_role("status")).to_have_text("The account and all its tokens are closed.")
    page.get_by_role("button", name="Take back from carla").click()
    expect(page.get_by_role("status")).to_contain_text("What was spent stays spent.")
    page.get_by_label("Wait for me above epsilon").fill("minus one")
    page.get_by_role("button", name="Set rules").click()
    assert "approval_above" in page.inner_text("main")


def test_an_agent_is_let_in_asks_and_is_stopped_by_its_limits(
    visitors: Visitors, pages: Site
) -> None:
    page = visitors.page("olga")
    page.goto("/agents")
    page.get_by_label("Name", exact=True).fill("reporter")
    page.get_by_label("Dataset").select_option("clinic")
    page.get_by_label("Its part of the budget").fill("0.3")
    page.get_by_label("At most for a question").fill("0.1")
    page.get_by_label("Everybody else gets the rest").check()
    page.get_by_role("button", name="Connect").click()
    config = json.loads(page.locator("pre.secret").first.inner_text())
    pages.tokens["reporter"] = config["mcpServers"]["clinic"]["env"]["SORDINO_TOKEN"]
    assert config["mcpServers"]["clinic"]["args"] == ["mcp", f"{pages.address}/clinic"]
    clean(page)
    for age in (30, 60):
        assert (
            asked(pages, "reporter", "clinic", f"{COUNT} WHERE age > {age}", "0.1")["status"]
            == "answered"
        )
    beyond = {"question": f"{COUNT} WHERE age > 90", "offer": {"epsilon": 0.2}}
    assert sent(pages, "reporter", "POST", "/v1/datasets/clinic/questions", beyond)[0] == 422
    assert sent(pages, "reporter", "POST", "/v1/datasets/visits/questions", beyond)[0] == 404
    page = visitors.page("otto")
    page.goto("/agents")
    card = page.get_by_role("article").filter(has_text="reporter")
    card.get_by_text("What it has asked (2)").click()
    expect(card.get_by_role("row")).to_have_count(3)
    assert page.get_by_role("button", name="Connect").count() == 0
    clean(page)


def test_an_auditor_keeps_a_checkpoint_and_checks_it_and_a_receipt(
    visitors: Visitors, pages: Site, tmp_path: Path
) -> None:
    pages.add("anders", Role.analyst)
    sent(pages, "olga", "PUT", "/v1/datasets/clinic/allotments/anders", {"epsilon": 1})
    done = asked(pages, "anders", "clinic", f"{COUNT} WHERE age > 17", "0.1")
    page = visitors.page("otto")
    page.goto("/audit")
    page.get_by_role("link", name="clinic").click()
    with page.expect_download() as download:
        page.get_by_role("link", name="Keep this checkpoint").click()
    download.value.save_as(tmp_path / "kept")
    kept = (tmp_path / "kept").read_text()
    asked(pages, "anders", "clinic", f"{COUNT} WHERE age > 18", "0.1")
    receipt = json.dumps(sent(pages, "anders", "GET", f"{done['answer']}/receipt")[1])
    for text, holds in (
        (kept, True), (receipt, True), (kept.replace("\n", "\n1", 1), False), ("a note", None),
        (receipt.replace("age > 17", "age > 71"), False),
    ):  # fmt: skip
        page.goto("/audit/clinic")
        page.get_by_label("An older checkpoint, or a receipt").fill(text)
        page.get_by_role("button", name="Check it against the log").click()
        if holds is None:
            assert "this is not" in page.inner_text("main")
        else:
            notice = page.get_by_role("status" if holds else "alert")
            expect(notice).to_contain_text("continues" if holds else "It does not hold.")
    page = visitors.page("otto")
    page.goto("/audit/clinic")
    clean(page)
    assert "anders" in page.inner_text("main")
    assert page.get_by_role("link", name="Owner", exact=True).count() == 0


def test_an_officer_prints_the_report(visitors: Visitors) -> None:
    page = visitors.page("otto")
    page.goto("/audit/clinic")
    page.get_by_role("link", name="Report to print").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("clinic")
    # its style is let in
    assert page.evaluate("getComputedStyle(document.querySelector('main')).maxWidth") != "none"
    clean(page, dark=False)
    assert page.pdf()[:5] == b"%PDF-"


def test_a_token_is_shown_once_works_and_ends(visitors: Visitors, pages: Site) -> None:
    page = visitors.page("ana")
    page.goto("/tokens")
    clean(page)
    page.get_by_label("Label").fill(f"{NASTY} notebook")
    page.get_by_label("ask questions and read answers").uncheck()
    page.get_by_role("button", name="Make it").click()
    pages.tokens["short"] = page.locator("pre.secret").inner_text()
    assert sent(pages, "short", "GET", "/v1/me")[1]["token"]["scopes"] == ["read"]
    clean(page)
    page.goto("/tokens")
    assert page.locator("pre.secret").count() == 0
    page.get_by_role("button", name=f"End the token {NASTY} notebook").click()
    expect(page.get_by_role("status")).to_have_text("The token is ended.")
    assert sent(pages, "short", "GET", "/v1/me")[0] == 401


def test_names_that_look_like_markup_stay_text(visitors: Visitors, pages: Site) -> None:
    pages.add(f"{NASTY} agent", Role.agent)
    sent(pages, "olga", "PUT", f"/v1/datasets/nasty/allotments/{'%3Cimg%20src=x%20onerror=window.hacked=1%3E%20agent'}", {
        "epsilon": 1, "per_question": 1,
    })  # fmt: skip
    sql = f'SELECT "{NASTY} column" AS "{NASTY}", COUNT(*) AS n FROM "{NASTY} table" GROUP BY "{NASTY} column"'
    assert asked(pages, f"{NASTY} agent", "nasty", sql, "0.5")["status"] == "answered"
    page = visitors.page("olga")
    for address in ("/owner/nasty", "/audit/nasty", "/agents", "/v1/datasets/nasty/report"):
        page.goto(address)
        assert NASTY in page.inner_text("main"), address
        harmless(page)
    page.goto("/declare")
    page.get_by_label("Name of the table").fill(NASTY)
    page.get_by_label("Name of the file").fill("x.csv")
    page.get_by_label("Columns, one a line").fill(
        f"{NASTY} int\n</script><script>window.hacked=9</script> text"
    )
    page.get_by_role("button", name="Go on").click()
    page.get_by_role("button", name="Show what it means").click()
    assert NASTY in page.inner_text("#toml")
    harmless(page)


FORMS = sorted(
    (name, right.path.replace("{dataset}", "clinic"))
    for name, right in RIGHTS.items()
    if right.method == "POST"
    and right.roles is not None
    and not right.path.startswith(("/v1/", "/mcp"))
)


def test_forms_of_other_sites_and_forms_without_a_key_change_nothing(
    visitors: Visitors, pages: Site
) -> None:
    page = visitors.page("olga")
    page.goto("/owner/clinic")
    key = page.locator("input[name=form_key]").first.get_attribute("value") or ""
    assert len(FORMS) > 10
    for _, path in FORMS:
        address = path.replace("{question}", "0" * 32)
        own = {"Origin": pages.address, "Sec-Fetch-Site": "same-origin"}
        assert (
            posted(pages, page, address, {"form_key": key}, Origin="https://evil.example") == 403
        ), path
        assert (
            posted(pages, page, address, {"form_key": key}, **{"Sec-Fetch-Site": "cross-site"})
            == 403
        ), path
        assert posted(pages, page, address, {}, **own) in (403, 404), path
        assert posted(pages, page, address, {"form_key": "0" * 64}, **own) in (403, 404), path
    assert sent(pages, "olga", "GET", "/v1/datasets/clinic")[1]["state"] == "open"

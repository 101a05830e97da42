"""The pages' door and the desk behind the analyst's pages, without a browser: what they may, and what they never do."""

from __future__ import annotations

import json
import math
import pickle
import re
import sqlite3
import threading
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from server.house import COUNT, House, add, house, visits
from sordino.accounting.filters import TwoMeterFilter
from sordino.answer.answer import Answer, EstimateColumn, KeyColumn
from sordino.errors import InvalidInput
from sordino.plan.cost import Cost
from sordino.plan.plan import bind_question, make_plan
from sordino.privacy.budget import Budget
from sordino.query.aggregates.estimates import Estimates
from sordino.query.bounds import Bounds
from sordino.query.front.sql import parse
from sordino.server.accounts.people import EVERYWHERE, Role, Scope
from sordino.server.accounts.policy import Policy
from sordino.server.accounts.secrets_of_people import LINK
from sordino.server.accounts.store import Pin, Store
from sordino.server.web import desk, planning
from sordino.server.web.drawing import drawn
from sordino.server.web.hosts import exactly
from sordino.server.web.planning import curve, preview, sketch
from sordino.server.web.process import OidcSettings, WebSettings
from sordino.server.web.sessions import form_key
from sordino.server.web.site import theory
from sordino.server.web.site.answer_view import view
from sordino.server.web.site.login import _own_address

WARDS = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
BROWSER = {"Accept": "text/html"}


@pytest.fixture(scope="module")
def home() -> Iterator[House]:
    with house() as found:
        yield found


def logged_in(home: House, name: str = "analyst") -> tuple[dict[str, str], dict[str, str]]:
    """Headers of a session, and what its forms carry."""
    text, _ = home.store.add_token(name, "pages", frozenset(Scope), EVERYWHERE, 1000, page=True)
    return {"Cookie": f"__Host-sordino={text}", **BROWSER}, {
        "form_key": form_key(text, home.store.form_secret)
    }


def send(home: House, path: str, who: tuple[dict[str, str], dict[str, str]], **fields: str) -> Any:
    return home.http.post(path, data={**fields, **who[1]}, headers=who[0], follow_redirects=False)


def test_a_browser_without_a_session_is_sent_to_the_login_page_and_comes_back(home: House) -> None:
    found = home.http.get("/workbench/visits?sql=a%20b", headers=BROWSER, follow_redirects=False)
    assert (found.status_code, found.headers["location"]) == (
        303,
        "/login?to=%2Fworkbench%2Fvisits%3Fsql%3Da%2520b",
    )
    page = home.http.get(found.headers["location"], headers=BROWSER).text
    assert 'name="to" value="/workbench/visits?sql=a%20b"' in page
    assert home.http.get("/v1/datasets", headers=BROWSER).status_code == 401


@pytest.mark.parametrize(
    "to",
    [
        "//evil.test",
        "/\\evil.test",
        "https://evil.test",
        "evil",
        "",
        "/a\r\nSet-Cookie: x",
        "/é",
        "/" + "a" * 2000,
    ],
)
def test_nobody_is_sent_elsewhere_after_logging_in(to: str) -> None:
    assert _own_address(to) == "/"


def test_an_own_address_is_kept() -> None:
    assert (
        _own_address("/workbench/visits?sql=SELECT%201//2") == "/workbench/visits?sql=SELECT%201//2"
    )


def test_a_login_link_works_once(home: House) -> None:
    text, _ = home.store.add_token("analyst", LINK, frozenset(), EVERYWHERE, 100)
    done = home.http.get(
        "/login/link", params={"code": text, "to": "//evil.test"}, follow_redirects=False
    )
    assert (done.status_code, done.headers["location"]) == (303, "/")
    assert (
        home.http.get("/login/link", params={"code": text}, follow_redirects=False).status_code
        == 410
    )
    home.http.cookies.clear()


@pytest.mark.parametrize("kind", ["bearer", "page", "other label", "nothing"])
def test_other_tokens_are_no_login_links(home: House, kind: str) -> None:
    text = {
        "bearer": home.tokens["analyst"],
        "page": home.store.add_token("analyst", LINK, frozenset(Scope), EVERYWHERE, 100, page=True)[
            0
        ],
        "other label": home.store.add_token("analyst", "x", frozenset(), EVERYWHERE, 100)[0],
        "nothing": "",
    }[kind]
    found = home.http.get("/login/link", params={"code": text}, follow_redirects=False)
    assert found.status_code == 410
    assert "set-cookie" not in found.headers


def test_the_code_of_a_link_opens_nothing_else(home: House) -> None:
    text, _ = home.store.add_token("analyst", LINK, frozenset(), EVERYWHERE, 100)
    for path in ("/v1/me", "/v1/datasets", "/workbench/visits", "/history"):
        assert home.http.get(path, headers={"Authorization": f"Bearer {text}"}).status_code == 401
        assert home.http.get(path, headers={"Cookie": f"__Host-sordino={text}"}).status_code == 401


def test_the_first_page_shows_what_a_token_may_see(home: House) -> None:
    asked = f"{COUNT} WHERE age > 77"
    assert home.ask("analyst", asked).json()["status"] == "answered"

    def sees(path: str, *scopes: Scope) -> tuple[int, bool, bool]:
        text, _ = home.store.add_token("analyst", LINK, frozenset(scopes), EVERYWHERE, 100)
        found = home.http.get(
            path, headers={"Authorization": f"Bearer {text}"}, follow_redirects=False
        )
        return found.status_code, "patient" in found.text, "&gt; 77" in found.text

    assert sees("/") == (303, False, False)
    assert sees("/", Scope.audit) == (200, False, False)
    assert sees("/", Scope.read) == (200, True, False)
    assert sees("/", Scope.read, Scope.ask) == (200, True, True)
    assert sees("/workbench/visits", Scope.read) == (200, True, False)
    assert sees("/workbench/visits", Scope.read, Scope.ask) == (200, True, True)


def test_static_files_are_kept_by_browsers_and_nothing_else_is(home: House) -> None:
    from sordino.server.web.site.static_files import static_address

    found = home.http.get(static_address("sordino.css"))
    assert found.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert found.headers["content-type"].startswith("text/css")
    assert found.headers["content-encoding"] == "gzip"
    for path in (
        "/static/0000000000000000/sordino.css",
        static_address("sordino.css") + "x",
        "/static/x/..%2fsite.py",
    ):
        missing = home.http.get(path)
        assert (missing.status_code, missing.headers["cache-control"]) == (404, "no-store"), path


def test_pages_run_own_scripts_only_and_their_nonce_is_new_each_time(home: House) -> None:
    seen = [home.http.get("/login").headers["content-security-policy"] for _ in range(2)]
    assert seen[0] != seen[1]
    for policy in seen:
        assert policy.startswith("default-src 'none'; script-src 'self';")
        assert "require-trusted-types-for 'script'; trusted-types 'none'" in policy
        assert "unsafe-eval" not in policy
    assert (
        home.http.get("/healthz")
        .headers["content-security-policy"]
        .startswith("default-src 'none'; form-action 'none'")
    )


def test_a_form_that_is_sent_twice_is_asked_once(home: House) -> None:
    who, before = logged_in(home), len(home.link.asked)
    form = {"sql": WARDS, "epsilon": "0.125", "do": "ask", "key": "one-form"}
    places = {send(home, "/workbench/visits", who, **form).headers["location"] for _ in range(3)}
    assert len(places) == 1
    assert len(home.link.asked) == before + 1
    page = home.http.get(places.pop(), headers=who[0]).text
    assert "3 groups" in page


def test_the_same_question_is_not_paid_twice_while_it_is_on_its_way() -> None:
    with house(answer_time=0.5) as home:
        path, body = "/v1/datasets/visits/questions", {"question": COUNT, "offer": {"epsilon": 0.5}}
        first = home.post("analyst", path, body).json()
        again = home.post("analyst", path, {**body, "question": COUNT.lower()}).json()
        other = home.post("other", path, body).json()
        dearer = home.post("analyst", path, {**body, "offer": {"epsilon": 0.6}}).json()
        fresh = home.post("analyst", path, {**body, "fresh": True}).json()
        assert again["id"] == first["id"]
        assert len({one["id"] for one in (first, other, dearer, fresh)}) == 4
        assert home.get("analyst", first["location"], wait=20).json()["status"] == "answered"
        assert len(home.link.asked) == 4


def test_a_form_without_the_sessions_key_is_refused(home: House) -> None:
    who, before = logged_in(home), len(home.link.asked)
    other = logged_in(home, "other")
    for key in ({}, {"form_key": ""}, other[1], {"form_key": "é"}):
        found = send(home, "/workbench/visits", (who[0], key), sql=COUNT, epsilon="0.1", do="ask")
        assert found.status_code == 403, key
    foreign = {**who[0], "Origin": "https://evil.test"}
    assert (
        send(
            home, "/workbench/visits", (foreign, who[1]), sql=COUNT, epsilon="0.1", do="ask"
        ).status_code
        == 403
    )
    assert len(home.link.asked) == before


def test_the_key_of_a_form_is_made_with_a_secret_that_each_server_keeps(tmp_path: Path) -> None:
    stores = [Store(tmp_path / name) for name in ("a.sqlite3", "b.sqlite3", "a.sqlite3")]
    first, second, again = (form_key("a session", store.form_secret) for store in stores)
    assert first == again != second
    for store in stores:
        store.close()


def test_a_server_of_ones_own_answers_to_its_own_name_only() -> None:
    with house(hosts=exactly("127.0.0.1", 8765)) as home:
        for host, status in (
            ("127.0.0.1:8765", 200),
            ("127.0.0.1:8766", 421),
            ("localhost:8765", 421),
            ("evil.test", 421),
        ):
            for path in ("/healthz", "/login"):
                assert home.http.get(path, headers={"Host": host}).status_code == status, (
                    host,
                    path,
                )
    own = WebSettings(Path(), port=8765, listening=3)
    assert own.hosts(b"127.0.0.1:8765")
    assert not own.hosts(b"localhost:8765")


NAMED = {
    "127.0.0.1:8765": 200, "localhost:8765": 200, "LOCALHOST": 200, "[::1]:8765": 200, "10.0.0.5": 200,
    "data.example.org": 200, "Data.Example.org.:443": 200, "login.example.org": 200,
    "evil.test": 421, "data.example.org.evil.test": 421, "127.0.0.1.evil.test": 421, "example.org": 421, "": 421,
    "evil.test:127.0.0.1": 421, "[evil.test]": 421,
}  # fmt: skip


@pytest.mark.parametrize("host", NAMED)
def test_a_server_answers_to_the_names_that_its_owner_lists(named: House, host: str) -> None:
    for path in ("/healthz", "/login", "/v1/datasets"):
        found = named.http.get(path, headers=named.as_("analyst", Host=host))
        assert found.status_code == NAMED[host], (host, path)
        assert found.status_code == 200 or "hosts = [" in found.json()["hint"]


@pytest.fixture(scope="module")
def named() -> Iterator[House]:
    oidc = OidcSettings("https://idp.example.org", "c", None, "https://login.example.org/sordino")
    with house(hosts=WebSettings(Path(), names=("data.example.org",), oidc=oidc).hosts) as home:
        yield home


def test_strangers_who_move_sliders_wait_in_a_short_queue(
    home: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert home.http.get("/theory/lesson", params={"lesson": "curves"}).status_code == 200
    monkeypatch.setattr(theory, "_MOST_WAITING", 0)
    found = home.http.get("/theory/lesson", params={"lesson": "curves"})
    assert (found.status_code, found.headers["retry-after"]) == (429, "1")


def test_what_is_wrong_with_a_form_is_told_and_what_was_typed_stays(home: House) -> None:
    who = logged_in(home)
    for form, told in (
        ({"sql": "SELECT agee FROM visits", "epsilon": "0.1"}, "neither an aggregate nor a key"),
        ({"sql": WARDS, "epsilon": "much"}, "much"),
        ({"sql": WARDS}, "a question has a price"),
        ({"sql": WARDS, "epsilon": "-1"}, "-1"),
    ):
        found = send(home, "/workbench/visits", who, do="ask", **form)
        assert found.status_code == 422
        assert told in found.text
        assert form["sql"] in found.text


def test_questions_of_others_are_not_there(home: House) -> None:
    who, other = logged_in(home), logged_in(home, "other")
    place = send(home, "/workbench/visits", who, sql=COUNT, epsilon="0.1", do="ask").headers[
        "location"
    ]
    assert home.http.get(place, headers=who[0]).status_code == 200
    for path in (place, f"{place}/csv", f"{place}/arrow"):
        assert home.http.get(path, headers=other[0]).status_code == 404
    assert send(home, place, other, epsilon="0.1").status_code == 404
    assert send(home, f"{place}/pin", other, title="mine").status_code == 404
    stranger = logged_in(home, "stranger")
    assert home.http.get("/workbench/visits", headers=stranger[0]).status_code == 404
    assert home.http.get(place, headers=stranger[0]).status_code == 404


def test_again_better_is_a_second_charge_and_one_combined_answer() -> None:
    with house() as home:
        who = logged_in(home)
        first = send(home, "/workbench/visits", who, sql=COUNT, epsilon="1", do="ask").headers[
            "location"
        ]
        again = send(home, first, who, epsilon="1").headers["location"]
        home.http.get(again, headers=who[0])
        assert again != first
        assert [ask.offer["epsilon"] for ask in home.link.asked] == ["1", "1"]
        answered = home.store.answered("visits", "analyst", COUNT)
        bodies = home.store.bodies([q.id for q in answered])
        assert bodies is not None
        one, two = (Answer.from_json(body.decode()).value() for body in bodies)
        lines = home.http.get(f"{again}/csv", headers=who[0]).text.splitlines()
        found = float(lines[1].split(",")[0])
        assert abs(found - (one + two) / 2) <= 0.5  # type: ignore[operator]
        assert "combined by their precision" in home.http.get(again, headers=who[0]).text
        send(home, f"{again}/pin", who, do="pin", title="all visits")
        board = re.sub(r"<[^>]+>", "", home.http.get("/board", headers=who[0]).text)
        assert "epsilon 1 and 1." in board  # all that was paid
        median = "SELECT MEDIAN(age) AS m FROM visits"
        other = send(home, "/workbench/visits", who, sql=median, epsilon="0.5", do="ask").headers[
            "location"
        ]
        assert "the dearer answer is shown" in home.http.get(other, headers=who[0]).text
        home.link.asked.pop()
        # the same answer given again is one release, and does not count twice
        same = send(home, "/workbench/visits", who, sql=COUNT, epsilon="1", do="ask").headers[
            "location"
        ]
        assert len(home.link.asked) == 2
        assert home.http.get(f"{same}/csv", headers=who[0]).text.splitlines() == lines
        # nor does it matter how it is written
        spelled = send(
            home,
            "/workbench/visits",
            who,
            sql="select count( * ) n\nfrom visits",
            epsilon="2",
            do="ask",
        )
        assert (
            "mean of 3 answers" in home.http.get(spelled.headers["location"], headers=who[0]).text
        )
        # answers about other data are not mixed with them
        home.link.edition = "2"
        later = send(home, "/workbench/visits", who, sql=COUNT, epsilon="1", do="ask").headers[
            "location"
        ]
        assert "precision-weighted" not in home.http.get(later, headers=who[0]).text
        assert "precision-weighted" not in home.http.get(again, headers=who[0]).text


@pytest.mark.parametrize(
    "other",
    [{"max_rows": 1}, {"nonnegative": True}, {"mechanism": "gaussian"}, {"confidence": 0.99}],
    ids=str,
)
def test_numbers_of_other_bounds_or_another_noise_are_not_mixed(other: dict[str, Any]) -> None:
    with house() as home:
        who = logged_in(home)
        ids = [
            home.ask("analyst", COUNT, offer=offer).json()["id"]
            for offer in ({"epsilon": 1, **other}, {"epsilon": 0.5})
        ]
        for one in ids:
            own = Answer.from_json((home.store.question(one).body or b"").decode())  # type: ignore[union-attr]
            line = home.http.get(f"/answers/visits/{one}/csv", headers=who[0]).text.splitlines()[1]
            assert float(line.split(",")[0]) == own.value()


@pytest.mark.parametrize(
    "tail", ["HAVING n > 20", "ORDER BY n DESC LIMIT 2", "ORDER BY n OFFSET 1"]
)
def test_rows_that_noise_chose_are_not_averaged(tail: str) -> None:
    """Rows that are shown again and again are those whose noise was large: a mean of them would be too large."""
    with house() as home:
        who, asked = logged_in(home), f"{WARDS} {tail}"
        first = send(home, "/workbench/visits", who, sql=asked, epsilon="1", do="ask").headers[
            "location"
        ]
        again = send(home, first, who, epsilon="1.5").headers["location"]
        home.http.get(again, headers=who[0])
        own = Answer.from_json((home.store.question(again.rpartition("/")[2]).body or b"").decode())  # type: ignore[union-attr]
        lines = home.http.get(f"{again}/csv", headers=who[0]).text.splitlines()[1:]
        assert [float(line.split(",")[1]) for line in lines] == own["n"]


def test_answers_that_are_too_large_to_combine_show_the_dearest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(desk, "_MOST_COMBINED", 10)
    with house() as home:
        who = logged_in(home)
        first = send(home, "/workbench/visits", who, sql=COUNT, epsilon="1", do="ask").headers[
            "location"
        ]
        again = send(home, first, who, epsilon="0.5").headers["location"]
        alone = home.http.get(f"{first}/csv", headers=who[0]).text
        page = home.http.get(again, headers=who[0]).text
        assert "the dearest of your 2 answers" in page
        assert "precision-weighted" not in page
        assert home.http.get(f"{again}/csv", headers=who[0]).text == alone


def test_large_answers_are_shown_outside_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    where: list[str] = []

    def seen(*given: Any) -> Any:
        pickle.dumps(given)  # as it goes to another process
        where.append(threading.current_thread().name[:4])
        return drawn(*given)

    monkeypatch.setattr(desk, "_SMALL", 0)
    monkeypatch.setattr(desk, "drawn", seen)
    with house() as home:
        who = logged_in(home)
        place = send(home, "/workbench/visits", who, sql=WARDS, epsilon="1", do="ask").headers[
            "location"
        ]
        send(home, f"{place}/pin", who, do="pin", title="wards")
        for path in (place, f"{place}/csv", f"{place}/arrow", "/board"):
            assert home.http.get(path, headers=who[0]).status_code == 200
        home.app.desk._drawing["analyst"] = 4
        assert home.http.get(place, headers=who[0]).status_code == 429
    assert where == ["page"] * 4


def test_an_answer_stays_when_its_declaration_changes() -> None:
    with house() as home:
        who = logged_in(home)
        place = send(home, "/workbench/visits", who, sql=WARDS, epsilon="1", do="ask").headers[
            "location"
        ]
        before = home.http.get(f"{place}/csv", headers=who[0]).text
        table = home.link._dataset.tables["visits"]
        rest = {name: column for name, column in table.columns.items() if name != "ward"}
        home.link._dataset = home.link._dataset.with_tables(
            {"visits": replace(table, columns=rest)}
        )
        assert (
            "no such column"
            in send(home, "/workbench/visits/study", who, sql=WARDS, what="curve").text
        )
        assert home.http.get(place, headers=who[0]).status_code == 200
        assert home.http.get(f"{place}/csv", headers=who[0]).text == before


def test_boards_show_what_the_owner_lets_people_share(home: House) -> None:
    who, other = logged_in(home), logged_in(home, "other")
    place = send(home, "/workbench/visits", who, sql=COUNT, epsilon="0.2", do="ask").headers[
        "location"
    ]
    home.http.get(place, headers=who[0])
    assert send(home, f"{place}/pin", who, title=" All   visits ", do="pin").status_code == 303
    assert "All visits" in home.http.get("/board", headers=who[0]).text
    assert "All visits" not in home.http.get("/board", headers=other[0]).text
    home.store.set_policy("visits", Policy(sharing=frozenset("*")))
    assert "All visits" in home.http.get("/board", headers=other[0]).text
    home.store.set_policy("visits", Policy())
    send(home, f"{place}/pin", who, do="unpin")
    assert "All visits" not in home.http.get("/board", headers=who[0]).text


def test_who_shares_answers_is_told_to_them_and_to_those_who_answer_for_the_dataset(
    home: House,
) -> None:
    for sharing, all_see in ((("analyst", "secret-name"), False), (("*", "secret-name"), True)):
        home.store.set_policy("visits", Policy(sharing=frozenset(sharing)))
        for name in ("owner", "auditor", "analyst", "other", "agent"):
            told = name in ("owner", "auditor", *sharing)
            rules = home.get(name, "/v1/datasets/visits/policy").json()["sharing"]
            assert rules == (sorted(sharing) if told else ["*"] if all_see else []), name
            if name not in ("owner", "auditor"):
                assert ("secret-name" in home.get(name, "/workbench/visits").text) == told, name
    home.store.set_policy("visits", Policy())


def test_an_answer_that_is_not_there_is_not_pinned(home: House) -> None:
    home.store.set_policy("visits", Policy(approval_above=Fraction(1, 10)))
    who = logged_in(home)
    place = send(
        home, "/workbench/visits", who, sql=COUNT, epsilon="0.3", do="ask", reason="why"
    ).headers["location"]
    home.store.set_policy("visits", Policy())
    page = home.http.get(place, headers=who[0])
    assert "It waits for the owner" in page.text
    assert send(home, f"{place}/pin", who, do="pin").status_code == 409
    assert home.http.get(f"{place}/csv", headers=who[0]).status_code == 404
    assert home.store.pins("visits") == []


def test_looking_up_charges_nothing(home: House) -> None:
    who, before = logged_in(home), home.link.session.ledger.spent
    for fields in ({"what": "curve"}, {"what": "sketch"}, {"what": "preview", "epsilon": "0.1"}):
        found = send(home, "/workbench/visits/study", who, sql=WARDS, **fields)
        assert "found" in found.json(), found.text
    refused = send(
        home, "/workbench/visits/study", who, sql="SELECT COUNT(*) AS n FROM visitss", what="curve"
    ).json()
    assert refused["problem"]["place"] == [26, 33]
    assert refused["problem"]["instead"] == "visits"
    assert (
        send(home, "/workbench/visits/study", who, sql=WARDS, what="all").json()["problem"][
            "status"
        ]
        == 422
    )
    assert home.link.session.ledger.spent == before


def test_older_files_of_accounts_get_a_board(tmp_path: Path) -> None:
    store = Store(tmp_path / "web.sqlite3")
    store.close()
    with sqlite3.connect(tmp_path / "web.sqlite3") as old:
        old.executescript(
            "DROP TABLE pins; DROP TABLE secrets; DROP INDEX tokens_by; ALTER TABLE tokens DROP COLUMN parent"
        )
        old.execute("PRAGMA user_version = 1")
    old.close()
    store = Store(tmp_path / "web.sqlite3")
    store.pin(Pin("0" * 32, "visits", "ana", "One", 1.0))
    store.pin(Pin("0" * 32, "visits", "ana", "Two", 2.0))
    assert store.pins("visits") == [Pin("0" * 32, "visits", "ana", "Two", 1.0)]
    assert not store.unpin("0" * 32, "eve")
    assert store.unpin("0" * 32, "ana")
    store.close()


def _public(dataset: Any) -> bytes:
    tables = {
        name: replace(table, source=replace(table.source, frame=None))
        for name, table in dataset.tables.items()
    }
    return pickle.dumps(dataset.with_tables(tables))


@pytest.mark.parametrize(
    "sql",
    [COUNT, WARDS, "SELECT ward, AVG(age) AS a, MEDIAN(age) AS m FROM visits GROUP BY ward", "SELECT city, COUNT(*) AS n "
     "FROM visits GROUP BY city", "SELECT SUM(age) / COUNT(*) AS r FROM visits WHERE age > 30"],
)  # fmt: skip
def test_a_curve_has_the_prices_of_plans(sql: str) -> None:
    dataset, query = visits(), parse(sql)
    meter = TwoMeterFilter(dataset.budget, dataset.reserved_delta)  # type: ignore[arg-type]
    costs = [Cost.offered(epsilon=epsilon) for epsilon in (0.01, 0.1, 1, 9)]
    points = bind_question(query, dataset, costs[0].bounds, costs[0].bias).points(costs, meter)
    for cost, point in zip(costs, points, strict=True):
        plan = make_plan(query, dataset, cost, meter)
        assert (point.price.charge, point.price.family, point.budget) == (
            plan.charge,
            plan.price.family,
            plan.budget,
        )
        assert point.errors == plan.errors()
    told = curve(_public(dataset), "duckdb", meter, sql, {}, ["0.01", "0.1", "1", "9"])
    assert [one["takes"] for one in told] == [float(point.budget.taken or 0) for point in points]  # type: ignore[index, call-overload]


@pytest.mark.parametrize("other", [{"max_rows": 2}, {"bias": False}])
def test_a_bound_question_has_the_bounds_and_measures_of_one_offer(other: Any) -> None:
    dataset = visits()
    meter = TwoMeterFilter(dataset.budget)  # type: ignore[arg-type]
    cost, another = Cost.offered(epsilon=1), Cost.offered(epsilon=1, **other)
    bound = bind_question(parse(COUNT), dataset, cost.bounds, cost.bias)
    one, same = bound.plan(cost, meter), make_plan(parse(COUNT), dataset, cost, meter)
    assert (one.charge, one.sql(), one.explain(details=True)) == (
        same.charge,
        same.sql(),
        same.explain(details=True),
    )
    with pytest.raises(ValueError, match="other bounds or measures"):
        bound.plan(another, meter)


def test_a_sketch_is_about_nobody() -> None:
    """The same for two tables of one declaration, however different they are; up to its own little noise."""
    found: Any = sketch(_public(visits()), WARDS)
    other: Any = sketch(_public(visits(rows=4)), WARDS)
    for one in (found, other):
        assert one["answer"]["columns"][0]["values"] == ["A", "B", "C"]
    values = [one["answer"]["columns"][1]["value"] for one in (found, other)]
    assert all(abs(a - b) < 20 for a, b in zip(*values, strict=True))
    assert "patient" not in json.dumps(found["answer"]["columns"])


@pytest.mark.parametrize(
    ("sql", "at", "instead"),
    [
        ("SELECT AVG(agee) AS a FROM visits", "agee", "age"),
        ("SELECT COUNT(*) AS n\nFROM visits WHERE wrad = 'A'", "wrad", "ward"),
        ("SELECT COUNT(*) AS n FROM visits WHERE ward = 'a'", "'a'", "'A'"),
        ("SELECT 'agee' AS x, AVG(agee) AS a FROM visits GROUP BY 1", "agee", "age"),
        ("SELECT MAX(age) AS m FROM visits", "MAX(age)", ""),
        ("SELECT COUNT(* FROM visits", "FROM", ""),
        ("SELECT COUNT(*) AS n\nFROM visits\nWHERE", "WHERE", ""),
    ],
)
def test_refusals_say_where_they_are(sql: str, at: str, instead: str) -> None:
    dataset = visits()
    meter = TwoMeterFilter(dataset.budget)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput) as caught:
        preview(_public(dataset), "duckdb", meter, sql, {"epsilon": "0.1"})
    error = pickle.loads(pickle.dumps(caught.value))  # as a process of planning sends it
    assert error.place is not None
    assert sql[slice(*error.place)] == at
    assert error.instead == instead


def test_who_has_no_budget_is_told_so_and_an_admin_sees_no_dataset() -> None:
    with house() as home:
        home.link.session.ledger.allot("other", Budget(1))
        who = logged_in(home)
        assert "You have no budget here" in home.http.get("/", headers=who[0]).text
        assert home.http.get("/workbench/visits", headers=who[0]).status_code == 200
        assert (
            "sub-budgets"
            in send(home, "/workbench/visits/study", who, sql=COUNT, what="curve").json()[
                "problem"
            ]["rule"]
        )
        admin = home.http.get("/", headers=logged_in(home, "admin")[0]).text
        assert "No dataset is open to you" in admin
        assert "ward" not in admin


def test_a_long_answer_is_shown_in_part_and_given_whole() -> None:
    numbers = np.arange(5000.0)
    keys = KeyColumn("k", tuple(range(5000)))
    answer = Answer((keys, EstimateColumn("n", Estimates(numbers, numbers - 1, numbers + 1))))
    shown = view(answer)
    assert (len(shown.rows), shown.total, len(shown.chart["columns"][1]["value"])) == (
        1000,
        5000,
        1000,
    )
    assert shown.meaning.startswith("5,000 groups.")


@pytest.mark.parametrize(
    ("values", "low", "high", "told"),
    [
        ([7.0], [5.0], [9.0], "n is about 7.0: the noise leaves it between 5.0 and 9.0"),
        ([7.0], [7.0], [7.0], "n is 7, without any noise"),
        ([math.nan], [math.nan], [math.nan], "There is no number to give"),
        ([10.0, 1.0], [9.0, 0.0], [11.0, 2.0], "A has the largest n"),
        ([10.0, 9.5], [9.0, 8.5], [11.0, 10.5], "cannot be told"),
        ([math.nan, 9.5], [math.nan, 8.5], [math.nan, 10.5], "2 groups"),
        ([], [], [], "No group has enough people"),
    ],
)
def test_what_an_answer_means(
    values: list[float], low: list[float], high: list[float], told: str
) -> None:
    column = EstimateColumn("n", Estimates(*(np.array(each) for each in (values, low, high))))
    keys = (KeyColumn("ward", ("A", "B")[: len(values)]),) if len(values) != 1 else ()
    assert told in view(Answer((*keys, column)), "patient").meaning


def test_an_account_of_all_roles_has_all_pages(home: House) -> None:
    add(home.store, "everything", *Role)
    who = logged_in(home, "everything")
    for path in ("/", "/workbench", "/workbench/visits", "/history", "/board"):
        assert home.http.get(path, headers=who[0]).status_code == 200, path


def test_planners_keep_what_is_small_and_forget_the_oldest() -> None:
    lately, numbers = planning._Lately(1000), range(6)
    questions = [planning._Question(b"", f"SELECT {i}", Bounds(), None) for i in numbers]
    for question in questions:
        lately.keep(question, 250)
    again = [planning._Question(b"", f"SELECT {i}", Bounds(), None) for i in numbers]
    assert [lately.same(one) is before for one, before in zip(again, questions, strict=True)] == [
        False
    ] * 2 + [True] * 4
    lately.keep(again[5], 251)  # it has become too large
    assert lately.same(again[5]) is again[5]
    lately.keep(again[0], 250)
    assert (lately._size, len(lately._found)) == (1000, 4)


def test_prices_are_the_same_whether_a_question_was_planned_before_or_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """At other prices, bounds and declarations: nothing of one enters another."""
    dataset, other = visits(), visits(epsilon=3)
    told, offers = (
        [],
        ({"epsilon": "0.1"}, {"epsilon": "1"}, {"epsilon": "1", "max_rows": 2}, {"error": "9"}),
    )
    for data in (_public(dataset), _public(other)):
        meter = TwoMeterFilter(dataset.budget, dataset.reserved_delta)  # type: ignore[arg-type]
        for offer in offers:
            for most in (10**6, None, 0):
                if most is not None:
                    monkeypatch.setattr(planning, "_lately", planning._Lately(most))
                told.append(preview(data, "duckdb", meter, WARDS, offer, "text sql"))  # type: ignore[arg-type]
    assert all(told[i] == told[i + 1] == told[i + 2] for i in range(0, len(told), 3))
    assert len({str(one.view["charge"]) + str(one.view["errors"]) for one in told}) == 4

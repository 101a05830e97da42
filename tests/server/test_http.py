"""The HTTP API: what people do with it, and what it refuses."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from server.house import COUNT, House, house
from sordino.answer.answer import Answer
from sordino.server.web.guard import BLOCK, HEADERS

D = "/v1/datasets/visits"


@pytest.fixture
def home() -> Iterator[House]:
    with house() as found:
        yield found


def test_a_question_is_accepted_and_answered(home: House) -> None:
    asked = home.post("analyst", f"{D}/questions", {"question": COUNT, "offer": {"epsilon": "0.5"}})
    assert asked.status_code == 202
    assert asked.headers["location"] == asked.json()["location"]
    done = home.get("analyst", asked.headers["location"], wait=20).json()
    assert (done["status"], done["free"], done["problem"]) == ("answered", False, None)
    answer = Answer.from_json(home.get("analyst", done["answer"]).text.rstrip(" "))
    assert answer.names == ("n",)
    assert done["receipt"]["charge"]["pure"] == "1/2"
    (payment,) = home.link.session.ledger.payments
    assert payment.receipt.analyst == "analyst"
    assert payment.answer == home.get("analyst", f"{D}/receipts").json()["receipts"][0]["answer"]


def test_previews_are_free_and_say_what_a_session_says(home: House) -> None:
    told = home.post(
        "analyst", f"{D}/preview", {"question": COUNT, "offer": {"epsilon": 0.5}}
    ).json()
    plan = home.link.session.preview(COUNT, epsilon=0.5)
    assert told["errors"] == plan.errors()
    assert told["text"] == plan.explain()
    assert Fraction(told["epsilon"]) == plan.epsilon
    assert told["fits"] == 20
    assert home.link.session.receipts == ()


def test_owners_see_prices_beside_the_whole_budget(home: House) -> None:
    home.put("owner", f"{D}/allotments/analyst", {"epsilon": 1})
    body = {"question": COUNT, "offer": {"epsilon": 0.5, "mechanism": "laplace"}}
    fits = {
        who: home.post(who, f"{D}/preview", body).json()["fits"]
        for who in ("owner", "auditor", "analyst")
    }
    assert fits["owner"] == fits["auditor"] > fits["analyst"] == 2
    # there are sub-budgets, and none for them
    assert home.post("other", f"{D}/preview", body).status_code == 422


def test_a_curve_falls_with_the_price(home: House) -> None:
    points = home.post("analyst", f"{D}/curve", {"question": COUNT}).json()["points"]
    errors = [point["errors"]["n"] for point in points]
    assert len(points) == 20
    assert errors == sorted(errors, reverse=True)
    own = home.post("analyst", f"{D}/curve", {"question": COUNT, "epsilons": [0.1, "1/3"]}).json()[
        "points"
    ]
    assert [point["epsilon"] for point in own] == ["1/10", "1/3"]


def test_the_same_key_is_charged_once_and_another_question_under_it_is_refused(home: House) -> None:
    first, again = home.ask("analyst", key="march"), home.ask("analyst", key="march")
    assert first.json()["id"] == again.json()["id"]
    other = home.ask("analyst", "SELECT AVG(age) AS a FROM visits", key="march")
    assert other.status_code == 409
    assert (other.json()["code"], other.json()["exit"]) == ("request-refused", 4)
    same_words = home.ask("analyst", "select count(*) as n from visits", key="march")
    assert same_words.json()["id"] == first.json()["id"]
    assert (
        home.ask("other", "SELECT AVG(age) AS a FROM visits", key="march").json()["status"]
        == "answered"
    )
    assert len(home.link.session.receipts) == 2


def test_a_hundred_parallel_repeats_of_one_key_are_one_charge(home: House) -> None:
    home.link.delay = 0.2
    found: list[str] = []

    def one() -> None:
        body = {"question": COUNT, "offer": {"epsilon": 0.5}}
        found.append(
            home.post("analyst", f"{D}/questions", body, **{"Idempotency-Key": "k"}).json()["id"]
        )

    threads = [threading.Thread(target=one) for _ in range(100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 100
    assert len(set(found)) == 1
    assert home.get("analyst", f"{D}/questions/{found[0]}", wait=20).json()["status"] == "answered"
    assert len(home.link.session.receipts) == 1
    assert len(home.link.asked) == 1


def test_a_stored_answer_is_given_again_for_nothing(home: House) -> None:
    first = home.ask("analyst").json()
    again = home.ask("analyst", "SELECT  COUNT(*)  AS n FROM visits").json()
    assert again["free"]
    assert (
        home.get("analyst", again["answer"]).content == home.get("analyst", first["answer"]).content
    )
    assert len(home.link.session.receipts) == 1
    assert not home.ask("analyst", fresh=True).json()["free"]
    assert len(home.link.session.receipts) == 2


def test_answers_are_shared_only_by_those_whom_the_owner_lets(home: House) -> None:
    home.ask("analyst")
    assert not home.ask("other").json()["free"]
    assert home.put("owner", f"{D}/policy", {"sharing": ["analyst", "other"]}).status_code == 200
    home.ask("analyst", "SELECT AVG(age) AS a FROM visits")
    shared = home.ask("other", "SELECT AVG(age) AS a FROM visits").json()
    assert shared["free"]
    assert (shared["receipt"]["analyst"], shared["receipt"]["request_id"]) == (None, "")
    assert len(home.link.session.receipts) == 3


def test_an_answer_is_not_given_again_after_the_data_or_the_declaration_changed(
    home: House,
) -> None:
    home.ask("analyst")
    assert home.ask("analyst").json()["free"]
    home.link.edition = "2"
    assert not home.ask("analyst").json()["free"]
    assert home.ask("analyst").json()["free"]
    changed = {
        n: replace(t, bounds=replace(t.bounds, rows=3))
        for n, t in home.link._dataset.tables.items()
    }
    home.link._dataset = home.link._dataset.with_tables(changed)
    assert not home.ask("analyst").json()["free"]


def test_caps_for_a_question_and_a_day(home: House) -> None:
    given = {"epsilon": 5, "delta": "1e-7", "per_question": "0.5", "per_day": "0.8"}
    assert home.put("owner", f"{D}/allotments/analyst", given).status_code == 200
    dear = home.ask("analyst", offer={"epsilon": 0.6})
    assert (dear.status_code, dear.json()["code"]) == (422, "invalid-input")
    assert home.ask("analyst").json()["status"] == "answered"
    over = home.ask("analyst", "SELECT AVG(age) AS a FROM visits")
    assert over.status_code == 422
    assert "a day" in over.json()["rule"]
    told = home.post(
        "analyst",
        f"{D}/preview",
        {"question": "SELECT AVG(age) AS a FROM visits", "offer": {"epsilon": 0.5}},
    )
    assert "a day" in told.json()["beyond_cap"]
    # what was answered before costs nothing, also today
    assert home.ask("analyst", fresh=False).json()["free"]
    home.store.clock = lambda: time.time() + 86_401
    assert home.ask("analyst", "SELECT AVG(age) AS a FROM visits").json()["status"] == "answered"


def test_above_a_price_a_question_waits_for_its_owner(home: House) -> None:
    home.put("owner", f"{D}/policy", {"approval_above": 0.4})
    without = home.ask("analyst")
    assert (without.status_code, without.json()["code"]) == (422, "approval-needed")
    asked = home.post(
        "analyst",
        f"{D}/questions",
        {"question": COUNT, "offer": {"epsilon": 0.5}, "reason": "the board"},
    )
    place = asked.headers["location"]
    assert asked.json()["status"] == "waiting"
    assert home.link.asked == []
    (waiting,) = home.get("owner", f"{D}/approvals").json()["approvals"]
    assert (waiting["reason"], waiting["price"], waiting["analyst"]) == (
        "the board",
        "1/2",
        "analyst",
    )
    done = home.post("owner", f"{D}/approvals/{waiting['id']}", {"approve": True, "note": "fine"})
    assert done.json()["status"] == "accepted"
    assert home.get("analyst", place, wait=20).json()["status"] == "answered"
    assert (
        home.post("owner", f"{D}/approvals/{waiting['id']}", {"approve": False}).status_code == 409
    )
    body = {
        "question": "SELECT AVG(age) AS a FROM visits",
        "offer": {"epsilon": 0.5},
        "reason": "why not",
    }
    second = home.post("analyst", f"{D}/questions", body).json()
    assert (
        home.post(
            "owner", f"{D}/approvals/{second['id']}", {"approve": False, "note": "no"}
        ).status_code
        == 200
    )
    denied = home.get("analyst", second["location"]).json()
    assert (denied["status"], denied["note"]) == ("denied", "no")
    assert len(home.link.session.receipts) == 1


def test_nobody_approves_a_question_of_their_own(home: House) -> None:
    from server.house import add
    from sordino.server.accounts.people import Role

    home.tokens["both"] = add(home.store, "both", Role.owner, Role.analyst)
    home.put("owner", f"{D}/policy", {"approval_above": 0.1})
    body = {"question": COUNT, "offer": {"epsilon": 0.5}, "reason": "because"}
    own = home.post("both", f"{D}/questions", body).json()
    assert home.post("both", f"{D}/approvals/{own['id']}", {"approve": True}).status_code == 403
    assert home.post("owner", f"{D}/approvals/{own['id']}", {"approve": True}).status_code == 200


def test_the_budget_ends_it(home: House) -> None:
    home.put("owner", f"{D}/allotments/analyst", {"epsilon": 1})
    texts = [f"SELECT COUNT(*) AS n FROM visits WHERE age > {i}" for i in range(3)]
    first, second, third = (
        home.ask("analyst", text, offer={"epsilon": 0.5, "mechanism": "laplace"}).json()
        for text in texts
    )
    assert [first["status"], second["status"], third["status"]] == [
        "answered",
        "answered",
        "refused",
    ]
    assert third["problem"]["code"] == "budget-exceeded"
    assert home.get("analyst", f"{D}/budget").json()["left"]["pure"] == "0"
    assert home.get("analyst", third["location"].replace("questions", "answers")).status_code == 404


def test_a_key_whose_question_was_refused_for_nothing_asks_again(home: House) -> None:
    home.put("owner", f"{D}/allotments/analyst", {"epsilon": 0.1})
    refused = home.ask("analyst", key="k").json()
    assert (refused["status"], refused["problem"]["code"]) == ("refused", "budget-exceeded")
    home.put("owner", f"{D}/allotments/analyst", {"epsilon": 5})
    answered = home.ask("analyst", key="k").json()
    assert (answered["status"], answered["id"], answered["problem"]) == (
        "answered",
        refused["id"],
        None,
    )
    assert home.ask("analyst", key="k").json()["receipt"] == answered["receipt"]
    assert home.ask("analyst", "SELECT AVG(age) AS a FROM visits", key="k").status_code == 409
    assert len(home.link.session.receipts) == 1


def test_agents_need_an_own_budget_and_a_cap(home: House) -> None:
    refused = home.ask("agent")
    assert refused.status_code == 422
    assert "sub-budget" in refused.json()["rule"]
    home.put("owner", f"{D}/allotments/agent", {"epsilon": 1})
    assert home.ask("agent").status_code == 422
    home.put("owner", f"{D}/allotments/agent", {"epsilon": 1, "per_question": 0.5})
    assert home.ask("agent").json()["status"] == "answered"


def test_another_ones_questions_and_datasets_are_not_there(home: House) -> None:
    place = home.ask("analyst").json()["location"]
    for path in (place, place.replace("questions", "answers")):
        there, nowhere = home.get("other", path), home.get("other", path[:-3] + "000")
        assert there.status_code == nowhere.status_code == 404
    assert home.get("stranger", "/v1/datasets").json()["datasets"] == []
    for name in ("visits", "nothing"):
        assert home.get("stranger", f"/v1/datasets/{name}").status_code == 404
        assert home.put("stranger", f"/v1/datasets/{name}/policy", {}).status_code == 404


def test_answers_are_held_to_their_tick() -> None:
    """Stored before its tick, an answer shows nowhere; on a machine that is too slow to tell, with a later tick."""
    assert any(held_to_its_tick(answer_time) for answer_time in (0.5, 2.0, 8.0))


def held_to_its_tick(answer_time: float) -> bool:
    with house(answer_time=answer_time) as home:
        start = time.monotonic()
        asked = home.post(
            "analyst", f"{D}/questions", {"question": COUNT, "offer": {"epsilon": 0.5}}
        )
        place = asked.headers["location"]
        while (
            home.link.session.ledger.payments == ()
            or home.link.session.ledger.payments[0].status != "answered"
        ):
            time.sleep(0.01)
        seen = [home.get("analyst", place).json()["status"]]
        seen.append(home.get("analyst", f"{D}/receipts").json()["receipts"][0]["status"])
        seen.append(home.get("auditor", f"{D}/log").json()["receipts"][0]["status"])
        if time.monotonic() - start > 0.9 * answer_time:
            return False
        assert seen == ["accepted"] * 3
        assert home.get("analyst", place, wait=20).json()["status"] == "answered"
        assert time.monotonic() - start >= answer_time
        assert 0 <= min(home.app.desk.late)
        return True


def test_all_bodies_are_padded_and_have_the_headers(home: House) -> None:
    found = [
        home.get("analyst", D),
        home.get("analyst", "/v1/datasets"),
        home.get("analyst", "/nothing"),
        home.http.get("/v1/datasets"),
        home.http.get("/healthz"),
        home.http.get("/login"),
        home.get("admin", "/metrics"),
        home.get("analyst", home.ask("analyst").json()["answer"]),
    ]
    for response in found:
        assert len(response.content) % BLOCK == 0
        assert len(response.content) > 0
        for name, value in (*HEADERS, (b"cache-control", b"no-store")):
            assert response.headers.get_list(name.decode()) == [value.decode()]
        assert len(response.headers.get_list("content-security-policy")) == 1


def test_large_bodies_are_refused(home: House) -> None:
    body = {"question": "x" * 65_536, "offer": {}}
    assert home.post("analyst", f"{D}/preview", body).status_code == 413

    def parts() -> Iterator[bytes]:
        for _ in range(70):
            yield b" " * 1000

    streamed = home.http.post(f"{D}/preview", content=parts(), headers=home.as_("analyst"))
    assert (streamed.status_code, streamed.json()["code"]) == (413, "body-too-large")


@pytest.fixture(scope="module")
def quiet() -> Iterator[House]:
    """One for all requests that are refused before anything is asked."""
    with house() as found:
        yield found


@pytest.mark.parametrize(
    "body",
    [
        b"", b"{", b"[]", b"null", b'{"question": 1}', b'{"question": "x", "more": 1}', b"\xff\xfe", b"9" * 5000,
        b'{"question": "\\ud800", "offer": {"epsilon": 1}}', b'{"question": "SELECT 1", "offer": {"\\ud800": 1}}',
        b'{"question": "SELECT COUNT(*) AS n FROM visits", "offer": {"epsilon": NaN}}',
        b'{"question": "SELECT COUNT(*) AS n FROM visits", "offer": {"epsilon": 1e999}}',
        b'{"question": "SELECT COUNT(*) AS n FROM visits", "offer": {"epsilon": "1e999999999"}}',
        b'{"question": "SELECT COUNT(*) AS n FROM visits", "offer": {"epsilon": true}}',
        b'{"question": "SELECT COUNT(*) AS n FROM visits", "offer": {"rows": -1, "epsilon": 1}}',
        b'{"question": "SELECT COUNT(*) AS n FROM visits", "offer": {"error": {"m": 1}}}',
        b'{"question": "SELECT COUNT(*) AS n FROM visits", "offer": {"request_id": "x", "epsilon": 1}}',
        b'{"question": "SELECT COUNT(*) AS n FROM visits", "offer": {"max_rows": "9", "epsilon": 1}}',
        b'{"question": "SELECT \\u0000", "offer": {"epsilon": 1}}',
    ],
)  # fmt: skip
def test_malformed_requests_are_problems(quiet: House, body: bytes) -> None:
    for path in ("preview", "questions", "curve"):
        headers = quiet.as_("analyst", **{"Content-Type": "application/json"})
        found = quiet.http.post(f"{D}/{path}", content=body, headers=headers)
        assert found.status_code in (400, 422), (path, found.text[:300])
        assert found.headers["content-type"] == "application/problem+json"
        facts = found.json()
        assert facts["status"] == found.status_code
        assert {"type", "title", "detail", "code", "exit"} <= facts.keys()
    assert quiet.link.asked == []


def test_what_was_accepted_is_taken_up_after_a_restart() -> None:
    from sordino.server.web.app import create_app

    with house() as home:
        home.link.delay = 0.3
        place = home.post(
            "analyst", f"{D}/questions", {"question": COUNT, "offer": {"epsilon": 0.5}}
        ).headers["location"]
        home.http.__exit__(None, None, None)  # the process ends while the engine works
        assert home.store.waiting(status="accepted")
        home.http = type(home.http)(
            create_app([home.link], home.store), base_url="https://sordino.test"
        )
        with home.http:
            assert home.get("analyst", place, wait=20).json()["status"] == "answered"
        assert len(home.link.session.receipts) == 1
        home.http.__enter__()


def test_the_security_log_names_people_and_routes_and_no_question(
    home: House, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    home.ask("analyst", "SELECT COUNT(*) AS n FROM visits WHERE city = 'secretville'")
    home.ask("analyst", "SELECT COUNT(*) AS n FROM visits WHERE nowhere = 'secretville'")
    home.http.get(D, headers={"Authorization": "Bearer sordino_wrong"})
    lines = [json.loads(r.message) for r in caplog.records if r.name == "sordino.security"]
    assert {(line["route"], line["status"], line["who"]) for line in lines} >= {
        ("ask", 202, "analyst"), ("question", 200, "analyst"), ("ask", 422, "analyst"), ("none", 401, None),
    }  # fmt: skip
    assert "secretville" not in caplog.text
    assert home.tokens["analyst"] not in caplog.text
    assert "sordino_wrong" not in caplog.text


def test_metrics_are_for_admins_and_tell_no_question(home: House) -> None:
    home.ask("analyst", "SELECT COUNT(*) AS n FROM visits WHERE city = 'secretville'")
    text = home.get("admin", "/metrics").text
    assert 'sordino_questions_total{dataset="visits",outcome="answered"} 1' in text
    assert "secretville" not in text
    assert home.get("analyst", "/metrics").status_code == 403


def test_an_edition_tells_when_files_were_written_and_not_what_is_in_them(tmp_path: Path) -> None:
    import os

    from sordino.query.dataset import Dataset
    from sordino.server.engine_worker import edition

    file = tmp_path / "visits.csv"
    file.write_text("age\n30\n")
    dataset = Dataset(
        file,
        unit="row",
        columns={"age": {"type": "int", "min": 0, "max": 110}},
        budget={"epsilon": 1},
    )
    first, written = edition(dataset), file.stat()
    file.write_text("age\n30\n40\n50\n")
    os.utime(file, ns=(written.st_atime_ns, written.st_mtime_ns))
    assert edition(dataset) == first
    os.utime(file, ns=(written.st_atime_ns, written.st_mtime_ns + 1_000_000))
    assert edition(dataset) != first


def test_a_suspended_dataset_answers_nobody_until_its_owner_resumes(home: House) -> None:
    home.put("owner", "/v1/datasets/visits/policy", {"approval_above": 2})
    waits = home.post("analyst", "/v1/datasets/visits/questions", {
        "question": COUNT, "offer": {"epsilon": 3}, "reason": "the yearly report",
    }).json()  # fmt: skip
    assert waits["status"] == "waiting"
    before = len(home.link.asked)
    assert home.post("owner", "/v1/datasets/visits/suspend").status_code == 204
    assert home.get("analyst", "/v1/datasets/visits").json()["state"] == "suspended"
    refused = home.ask("analyst", "SELECT COUNT(*) AS n FROM visits WHERE age > 41")
    assert refused.status_code == 422
    assert refused.json()["rule"] == "its owner has suspended it: nobody asks for now"
    decided = home.post("owner", f"/v1/datasets/visits/approvals/{waits['id']}", {"approve": True})
    assert decided.status_code == 422
    # new rules do not resume it
    home.put("owner", "/v1/datasets/visits/policy", {"approval_above": 2})
    assert home.ask("analyst", "SELECT COUNT(*) AS n FROM visits WHERE age > 41").status_code == 422
    assert len(home.link.asked) == before
    assert home.post("owner", "/v1/datasets/visits/resume").status_code == 204
    assert (
        home.ask("analyst", "SELECT COUNT(*) AS n FROM visits WHERE age > 41").json()["status"]
        == "answered"
    )


SETS = "SELECT ward, decade, COUNT(*) AS n FROM (SELECT *, FLOOR(age / 10) AS decade FROM visits) AS v GROUP BY {}"


@pytest.mark.parametrize(
    "sets", ["CUBE (ward, decade)", "ROLLUP (ward, decade)", "GROUPING SETS ((ward), (decade))"]
)
def test_many_tables_at_once_are_a_question_with_sets_of_keys(home: House, sets: str) -> None:
    sql, offer = SETS.format(sets), {"epsilon": 0.05}
    price = home.post(
        "other", f"{D}/preview", {"question": sql, "offer": offer, "show": ["text", "sql"]}
    ).json()
    with home.link.session.as_analyst("other") as session:
        plan = session.preview(sql, epsilon=0.05)
        assert (price["epsilon"], price["promise"], price["text"]) == (
            str(plan.epsilon),
            plan.promise,
            plan.explain(),
        )
        assert (price["errors"], price["notes"]) == (plan.errors(), list(plan.notes))
    assert (price["mechanism"], price["private_keys"]) == ("gaussian", False)
    points = home.post("other", f"{D}/curve", {"question": sql, "epsilons": ["0.05", "1"]}).json()[
        "points"
    ]
    assert points[0]["errors"] == price["errors"]
    assert points[1]["errors"]["n"] < price["errors"]["n"] / 10
    found = home.ask("other", sql, offer=offer).json()
    assert found["status"] == "answered"
    answer = Answer.from_json(home.get("other", found["answer"]).text)
    assert answer.names == ("ward", "decade", "n")
    keys = list(zip(answer["ward"], answer["decade"], strict=True))
    assert ("A", None) in keys
    assert ((None, None) in keys) == ("GROUPING" not in sets)
    assert home.post("other", f"{D}/sketch", {"question": sql}).status_code == 200

"""The pages of those who keep datasets and accounts, without a browser: they have no power that the API has not."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any
from urllib.parse import quote

import pytest

from server.house import COUNT, House, add, house
from sordino.ledger.public_log import fork_findings
from sordino.server.accounts.people import EVERYWHERE, Role, Scope
from sordino.server.accounts.rights import RIGHTS

NAMES = {
    "owner_allot": "analyst epsilon delta per_question per_day", "owner_take_back": "analyst", "owner_suspend": "to",
    "owner_rules": "approval_above per_question per_day sharing", "owner_decide": "question decision note",
    "owner_person": "name role password", "owner_close_person": "name", "audit_check": "text",
    "agents_connect": "name dataset epsilon per_question rest", "tokens_make": "label person dataset days scope",
    "tokens_revoke": "token",
    "declare_form": "table source columns unit max_rows epsilon delta price rows name-0 min-0 kind-0",
}  # fmt: skip
"""The fields of forms."""
FINE = {"analyst": "other", "epsilon": "1", "name": "eve", "role": "analyst", "dataset": "visits", "per_question": "0.1",
        "days": "1", "scope": "read", "table": "t", "source": "t.csv", "unit": "row", "name-0": "a", "keep-0": "on",
        "kind-0": "int", "price": "0.1", "rows": "10"}  # fmt: skip
PAGES = [name for name, right in RIGHTS.items() if right.path.startswith(("/owner/{", "/audit/{"))]


@pytest.fixture(scope="module")
def home() -> Iterator[House]:
    with house() as opened:
        yield opened


def form(home: House, who: str, path: str, /, **fields: str) -> Any:
    return home.http.post(path, data=fields, headers=home.as_(who), follow_redirects=False)


@pytest.mark.parametrize("name", PAGES)
def test_an_owner_of_another_dataset_sees_and_changes_nothing(home: House, name: str) -> None:
    right = RIGHTS[name]
    fields = {"analyst": "other", "epsilon": "1", "role": "analyst", "name": "eve", "text": "x",
              "decision": "approve", "question": "0" * 32}  # fmt: skip
    path = right.path.replace("{dataset}", "visits")
    found = (
        home.get("stranger", path)
        if right.method == "GET"
        else form(home, "stranger", path, **fields)
    )
    assert found.status_code == 404, found.text
    assert home.store.person("eve") is None
    assert "other" not in home.link.facts().meters
    assert not home.store.policy("visits").suspended


def test_a_part_is_given_to_who_may_ask_and_to_nobody_else(home: House) -> None:
    for name in ("auditor", "admin", "nobody", "stranger", ""):
        found = form(home, "owner", "/owner/visits/allot", analyst=name, epsilon="1")
        assert found.status_code == 422, name
    assert (
        form(home, "owner", "/owner/visits/allot", analyst="other", epsilon="").status_code == 422
    )
    assert (
        form(
            home, "owner", "/owner/visits/allot", analyst="*", epsilon="1", per_day="1"
        ).status_code
        == 422
    )
    given = form(
        home, "owner", "/owner/visits/allot", analyst="other", epsilon="1/2", per_question="0.1"
    )
    assert (given.status_code, given.headers["location"]) == (303, "/owner/visits?done=allotted")
    assert home.link.facts().meters["other"].budget.epsilon * 2 == 1
    assert form(home, "owner", "/owner/visits/take-back", analyst="other").status_code == 303


@pytest.mark.parametrize("role", ["owner", "admin", "", "analyst,owner"])
def test_an_owner_opens_no_account_with_their_own_power(home: House, role: str) -> None:
    found = form(home, "owner", "/owner/visits/person", name="mallory", role=role)
    assert found.status_code == 422
    assert home.store.person("mallory") is None


def test_nobody_approves_a_question_of_their_own_on_a_page(home: House) -> None:
    found = form(home, "owner", "/owner/visits/decide", question="0" * 32, decision="approve")
    assert found.status_code == 404


def test_an_agent_is_connected_with_limits_or_not_at_all(home: House) -> None:
    for lacks in ("epsilon", "per_question"):
        fields = {
            "name": "r2",
            "dataset": "visits",
            "epsilon": "1",
            "per_question": "0.1",
            "rest": "on",
            lacks: " ",
        }
        assert form(home, "owner", "/agents", **fields).status_code == 422
        assert home.store.person("r2") is None
    fields = {"dataset": "visits", "epsilon": "1", "per_question": "0.1", "rest": "on"}
    # an analyst becomes no agent
    assert form(home, "owner", "/agents", name="other", **fields).status_code == 422
    assert "sordino_" in form(home, "owner", "/agents", name="r2", **fields).text
    made = [token for token in home.store.tokens("r2") if token.label == "agent"]
    assert [(set(token.scopes), set(token.datasets)) for token in made] == [
        ({Scope.read, Scope.ask}, {"visits"})
    ]
    form(home, "owner", "/owner/visits/take-back", analyst="*")


def test_the_first_agent_does_not_stop_all_who_have_no_part() -> None:
    with house() as home:
        fields = {"name": "r2", "dataset": "visits", "epsilon": "1", "per_question": "0.1"}
        assert "Everybody else gets the rest" in home.get("owner", "/agents").text
        assert form(home, "owner", "/agents", **fields).status_code == 422
        assert (
            form(home, "owner", "/agents", **{**fields, "epsilon": "10", "rest": "on"}).status_code
            == 422
        )
        assert home.store.person("r2") is None
        assert form(home, "owner", "/agents", **fields, rest="on").status_code == 200
        meters = home.link.facts().meters
        assert (str(meters["r2"].budget.epsilon), str(meters["*"].budget.epsilon)) == ("1", "9")
        assert home.ask("analyst").json()["status"] == "answered"
        assert "Everybody else gets the rest" not in home.get("owner", "/agents").text
        assert form(home, "owner", "/agents", **{**fields, "name": "r3"}).status_code == 200


def test_a_token_on_the_page_allows_no_more_than_the_api_would(home: House) -> None:
    fields = {"scope": "manage", "days": "1"}
    assert form(home, "analyst", "/tokens", person="other", **fields).status_code == 404
    text, _ = home.store.add_token("analyst", "small", frozenset((Scope.read,)), EVERYWHERE, 1000)
    home.tokens["reading"] = text
    assert form(home, "reading", "/tokens", **fields).status_code == 403
    for days in ("0", "401", "-1", "1e3", "²"):
        assert form(home, "analyst", "/tokens", scope="read", days=days).status_code == 422
    assert form(home, "analyst", "/tokens", days="1").status_code == 422
    assert (
        form(home, "analyst", "/tokens/revoke", token=home.store.tokens("owner")[0].id).status_code
        == 404
    )


def test_a_log_that_does_not_continue_a_kept_checkpoint_is_told(home: House) -> None:
    home.put("owner", "/v1/datasets/visits/allotments/analyst", {"epsilon": 2})
    asked = home.ask("analyst", f"{COUNT} WHERE age > 5")
    kept = home.get("auditor", "/audit/visits/checkpoint").text
    assert "does not hold" not in form(home, "auditor", "/audit/visits/check", text=kept).text
    receipt = home.get("analyst", f"{asked.json()['answer']}/receipt").text
    assert "The receipt holds" in form(home, "auditor", "/audit/visits/check", text=receipt).text
    forged = json.loads(receipt)
    forged["entries"][0]["text"] = forged["entries"][0]["text"].replace("age > 5", "age > 6")
    assert (
        "It does not hold"
        in form(home, "auditor", "/audit/visits/check", text=json.dumps(forged)).text
    )
    with house() as elsewhere:  # another history, of the same length, signed by another key
        elsewhere.ask("analyst", f"{COUNT} WHERE age > 5")
        strange = elsewhere.get("auditor", "/audit/visits/checkpoint").text
    assert "is not of this log" in form(home, "auditor", "/audit/visits/check", text=strange).text
    assert form(home, "auditor", "/audit/visits/check", text="nonsense").status_code == 422


def test_a_log_that_forgot_or_changed_entries_is_told(home: House) -> None:
    """The owner's own key signs both: what the auditor kept is of a history that the log no longer continues."""
    log = home.link.session.ledger.public_log()
    now, path = log.signed(1)
    older = replace(now, size=1, root=log._tree.root(1))
    signed = replace(older, signature=log.key.id + log._signing.sign(older.body.encode()))
    assert fork_findings(now, path, signed, log.key) == []
    other = replace(older, root=bytes(32))
    forked = replace(other, signature=log.key.id + log._signing.sign(other.body.encode()))
    assert fork_findings(now, path, forked, log.key) == [
        "the log was forked: it does not continue the older checkpoint"
    ]
    longer = replace(now, size=now.size + 5)
    cut = replace(longer, signature=log.key.id + log._signing.sign(longer.body.encode()))
    assert "cut short" in fork_findings(now, path, cut, log.key)[0]
    assert "signature" in fork_findings(replace(now, size=now.size + 1), path, signed, log.key)[0]


def test_who_has_no_part_of_the_budget_still_sees_pages(home: House) -> None:
    """Also an owner who asks: their own part is another matter than the whole."""
    home.put("owner", "/v1/datasets/visits/allotments/analyst", {"epsilon": 2})
    home.tokens["both"] = add(home.store, "both", Role.owner, Role.analyst)
    assert home.get("both", "/v1/datasets/visits/budget").status_code == 422
    for path in ("/", "/owner", "/owner/visits", "/audit", "/audit/visits", "/agents", "/tokens"):
        assert home.get("both", path).status_code == 200, path
    assert "You have no budget here" in home.get("other", "/").text


@pytest.mark.parametrize(
    ("path", "here"), [("/", "/"), ("/owner/visits", "/owner"), ("/audit/visits", "/audit")]
)
def test_the_menu_shows_where_one_is(home: House, path: str, here: str) -> None:
    assert re.findall(r'<a href="([^"]+)" aria-current="page">', home.get("owner", path).text) == [
        here
    ]


ODD = [
    "",
    "nan",
    "-1",
    "1e999",
    "1/0",
    "²",
    "9" * 5000,
    "\x00",
    "\ud7ff\uffff",
    "x" * 3000,
    "*",
    "{}",
    "0,5",
]
FORMS = [
    (name, right.path) for name, right in RIGHTS.items() if right.method == "POST" and name in NAMES
]


def test_odd_fields_are_refused_in_words() -> None:
    """Or taken as they are, where any text is fine; nothing fails inside."""
    with house() as alone:
        for odd, (name, path) in product(ODD, FORMS):
            for field in NAMES[name].split():
                fields = {**FINE, field: odd}
                found = form(alone, "owner", path.replace("{dataset}", "visits"), **fields)
                assert found.status_code < 500, (name, field, odd[:20], found.text)
        for odd, query in product(
            ODD, ("/audit/visits?before=", "/theory?curves-epsilon=", "/theory/lesson?lesson=")
        ):
            assert alone.get("owner", query + quote(odd)[:2000]).status_code < 500, (
                query,
                odd[:20],
            )

"""The owner's pages: budgets, rules, questions that wait, people. They use the same desks as the API does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import Response

from sordino.errors import InvalidInput
from sordino.privacy.exact import readable
from sordino.privacy.exact import show as shown
from sordino.server.accounts.people import Person, Role
from sordino.server.accounts.policy import Caps, Policy
from sordino.server.link import ANYBODY
from sordino.server.web.accounts_desk import OWNERS_MAKE, AccountsDesk, keeps
from sordino.server.web.desk import price_limit
from sordino.server.web.site.visit import Values, Visit, go_to

__all__ = [
    "accounts", "add_person", "allot", "close_person", "dataset", "decide", "set_rules", "show", "suspend", "take_back",
]  # fmt: skip

_DONE = {
    "allotted": "The part of the budget is given.",
    "taken": "The part of the budget is taken back. What was spent stays spent.",
    "rules": "The rules are in force.",
    "approved": "The question is approved and is being asked.",
    "denied": "The question is denied. Nothing was charged.",
    "suspended": "The dataset is suspended. No new question is answered.",
    "resumed": "The dataset is open again.",
    "added": "The account is open.",
    "closed": "The account and all its tokens are closed.",
}


def accounts(visit: Visit) -> AccountsDesk:
    """Accounts and tokens, as the API knows them."""
    return AccountsDesk(visit.store, visit.sessions)


async def show(visit: Visit) -> Values:
    """The datasets that are one's own."""
    found: list[Mapping[str, Any]] = []
    for each in visit.desk.datasets(visit.who):
        if isinstance(each, Mapping):
            name, ready = str(each["name"]), each.get("state") != "starting"
            whole = visit.desk.account(visit.who, name)["whole"] if ready else None
            found.append({**each, "whole": whole, "waiting": len(visit.store.waiting(name))})
    return {"datasets": found}


async def dataset(visit: Visit) -> Values:
    """One dataset: its budget and everybody's part, what waits, the rules, the people, the declaration."""
    name, who = visit.part("dataset"), visit.who
    described, budget = visit.desk.describe(who, name), visit.desk.account(who, name)
    people = [each for each in visit.store.people() if each.active and each.sees(name)]
    askers = [each for each in people if each.roles & {Role.analyst, Role.agent}]
    parts = budget.get("by_analyst")
    rows: list[Mapping[str, Any]] = []
    for analyst, meter in parts.items() if isinstance(parts, Mapping) else ():
        if isinstance(meter, Mapping):
            rows.append(
                {"name": analyst, **meter, "caps": visit.store.caps(name, analyst) or Caps()}
            )
    return {
        "dataset": described, "whole": budget["whole"], "parts": rows, "askers": askers, "anybody": ANYBODY,
        "waiting": visit.store.waiting(name), "policy": visit.store.policy(name), "me": who.name,
        "people": [(each, keeps(who, each)) for each in people], "roles": [Role.analyst, Role.agent, Role.auditor],
        "readable": readable, "done": _DONE.get(visit.query("done"), ""),
    }  # fmt: skip


async def allot(visit: Visit) -> Response:
    """Give somebody a part of the budget, and caps."""
    name, analyst = visit.part("dataset"), _asker(visit)
    epsilon, delta = _expected(visit, "epsilon"), visit.field("delta").strip() or "0"
    caps = Caps(
        *(
            price_limit(field, visit.field(field).strip() or None)
            for field in ("per_question", "per_day")
        )
    )
    if analyst == ANYBODY and caps != Caps():
        raise InvalidInput(
            "caps for everybody else",
            "these are rules of the dataset",
            "Set them below, under Rules.",
        )
    await visit.desk.allot(
        visit.who, name, analyst, epsilon, delta, caps if caps != Caps() else None
    )
    return _back(visit, "allotted")


async def take_back(visit: Visit) -> Response:
    """Take a part of the budget back."""
    await visit.desk.allot(
        visit.who, visit.part("dataset"), _expected(visit, "analyst"), None, None, None
    )
    return _back(visit, "taken")


async def set_rules(visit: Visit) -> Response:
    """Put rules in force."""
    name = visit.part("dataset")
    visit.desk.link(visit.who, name)
    limits = [
        price_limit(each, visit.field(each).strip() or None)
        for each in ("approval_above", "per_question", "per_day")
    ]
    sharing = frozenset(part.strip() for part in visit.field("sharing").split(",") if part.strip())
    await visit.desk.set_rules(visit.who, name, Policy(limits[0], sharing, Caps(*limits[1:])))
    return _back(visit, "rules")


async def decide(visit: Visit) -> Response:
    """Approve or deny a question that waits."""
    approve = visit.field("decision") == "approve"
    note = visit.field("note")[:2000]
    visit.desk.decide(
        visit.who, visit.part("dataset"), visit.field("question"), approve=approve, note=note
    )
    return _back(visit, "approved" if approve else "denied")


async def suspend(visit: Visit) -> Response:
    """Suspend a dataset, or let people ask again."""
    resumes = visit.field("to") == "open"
    change = visit.desk.resume if resumes else visit.desk.suspend
    await change(visit.who, visit.part("dataset"))
    return _back(visit, "resumed" if resumes else "suspended")


async def add_person(visit: Visit) -> Response:
    """Open the account of somebody who has to do with this dataset."""
    name = visit.part("dataset")
    visit.desk.link(visit.who, name)
    role = next((each for each in OWNERS_MAKE if each == visit.field("role")), None)
    if role is None:
        raise InvalidInput(
            f"role={shown(visit.field('role')[:20])}", "there is no such role", "Choose one."
        )
    person = Person(_expected(visit, "name"), frozenset((role,)), frozenset((name,)))
    await accounts(visit).add_person(visit.who, person, visit.field("password") or None)
    return _back(visit, "added")


async def close_person(visit: Visit) -> Response:
    """Close an account, at once and for good."""
    visit.desk.link(visit.who, visit.part("dataset"))
    await accounts(visit).close_person(visit.who, _expected(visit, "name"))
    return _back(visit, "closed")


def _asker(visit: Visit) -> str:
    """Whoever is to get a part of the budget: an open account that may ask, or everybody else."""
    name = _expected(visit, "analyst")
    person = visit.store.person(name)
    asks = person is not None and person.active and bool(person.roles & {Role.analyst, Role.agent})
    if name != ANYBODY and not (asks and person is not None and person.sees(visit.part("dataset"))):
        rule = "there is no open account of that name that may ask about this dataset"
        raise InvalidInput(f"analyst={shown(name[:80])}", rule, "Open it first, under People.")
    return name


def _expected(visit: Visit, field: str) -> str:
    found = visit.field(field).strip()
    if not found:
        raise InvalidInput(
            f"{field}: nothing", "this has to be filled in", "Go back, and fill it in."
        )
    return found


def _back(visit: Visit, done: str) -> Response:
    return go_to("owner", visit.part("dataset"), done=done)

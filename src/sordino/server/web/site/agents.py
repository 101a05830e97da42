"""Agents: programs that ask by themselves. How one is connected, what each may still spend, and what each has asked."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from sordino.errors import InvalidInput
from sordino.privacy.budget import Budget
from sordino.privacy.exact import readable
from sordino.privacy.exact import show as shown
from sordino.server.accounts.people import Person, Role, Scope
from sordino.server.accounts.policy import Caps
from sordino.server.link import ANYBODY
from sordino.server.web.accounts_desk import keeps
from sordino.server.web.desk import price_limit
from sordino.server.web.site.owner import accounts
from sordino.server.web.site.visit import Values, Visit

__all__ = ["connect", "show"]

_SHOWN = 20
_DAYS = 90


async def show(visit: Visit) -> Values:
    """All agents of the datasets that one answers for."""
    return _agents(visit)


async def connect(visit: Visit) -> Values:
    """Connect an agent: an account, a part of the budget with a cap, and a token, which is shown once."""
    who, name, place = visit.who, visit.field("name").strip(), visit.field("dataset")
    visit.desk.link(who, place)
    cap = price_limit("per_question", visit.field("per_question").strip() or None)
    part = price_limit("epsilon", visit.field("epsilon").strip() or None)
    if cap is None or part is None:
        rule = "an agent asks within a part of the budget, and within a limit for each question"
        raise InvalidInput("an agent without limits", rule, "Fill in both.")
    rest = _rest(visit, place, part)
    before = visit.store.person(name)
    if before is None:
        await accounts(visit).add_person(
            who, Person(name, frozenset((Role.agent,)), frozenset((place,)))
        )
    elif not (
        before.active and before.roles == {Role.agent} and before.sees(place) and keeps(who, before)
    ):
        rule = "there is, or was, an account of that name which is no agent of this dataset"
        raise InvalidInput(f"name={shown(name[:80])}", rule, "Choose another name.")
    if rest is not None:
        await visit.desk.allot(who, place, ANYBODY, str(rest.epsilon), str(rest.delta), None)
    await visit.desk.allot(who, place, name, str(part), "0", Caps(cap, None))
    text, token = await accounts(visit).add_token(
        who, name, "agent", (Scope.read, Scope.ask), frozenset((place,)), _DAYS
    )  # fmt: skip
    return {**_agents(visit), "secret": text, "made": token, "of": place}


def _rest(visit: Visit, place: str, part: Fraction) -> Budget | None:
    """What everybody else is given along with the first part of a budget: without one they could not ask any more."""
    meters = visit.desk.link(visit.who, place).facts().meters
    if len(meters) > 1:
        return None
    whole = meters[None].budget
    if not visit.field("rest"):
        rule = "it would be the first part of this budget, and everybody without a part could not ask any more"
        raise InvalidInput("an agent with a part", rule, "Tick that everybody else gets the rest.")
    if part >= whole.epsilon:
        rule = f"nothing of epsilon {readable(whole.epsilon)} would be left for everybody else"
        raise InvalidInput(f"epsilon={shown(part)}", rule, "Give it less.")
    return Budget(whole.epsilon - part, whole.delta)


def _agents(visit: Visit) -> dict[str, Any]:
    who = visit.who
    agents = [each for each in visit.store.people() if Role.agent in each.roles and each.active]
    found: list[Mapping[str, Any]] = []
    names: list[str] = []
    shared: list[str] = []
    for each in visit.desk.datasets(who):
        if not isinstance(each, Mapping) or each.get("state") == "starting":
            continue
        name = str(each["name"])
        names.append(name)
        parts = visit.desk.account(who, name).get("by_analyst")
        if not parts:
            shared.append(name)
        for agent in agents:
            if agent.sees(name):
                part = parts.get(agent.name) if isinstance(parts, Mapping) else None
                caps, asked = (
                    visit.store.caps(name, agent.name) or Caps(),
                    visit.store.questions(name, agent.name, _SHOWN),
                )
                found.append(
                    {
                        "agent": agent.name,
                        "dataset": name,
                        "part": part,
                        "caps": caps,
                        "asked": asked,
                    }
                )
    may = Role.owner in who.person.roles and Scope.manage in who.token.scopes
    return {
        "agents": found,
        "datasets": names,
        "shared": shared,
        "may_connect": may,
        "secret": "",
        "made": None,
        "of": "",
    }

"""The datasets that are open to somebody: who is protected, what is left, and what the last questions took."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import Response

from sordino.accounting.budget_share import left_share
from sordino.server.accounts.people import Principal, Role
from sordino.server.accounts.rights import RIGHTS
from sordino.server.web.site.budget_view import budget_view
from sordino.server.web.site.visit import Values, Visit, go_to

__all__ = ["asks", "protected", "show"]


async def show(visit: Visit) -> Values | Response:
    """All of them."""
    who = visit.visitor
    if who is None:
        return go_to("login")
    shown: list[Mapping[str, Any]] = []
    for each in visit.desk.datasets(who) if RIGHTS["datasets"].allows(who) else ():
        if not isinstance(each, Mapping):
            continue
        name, ready = str(each["name"]), each.get("state") != "starting"
        facts: dict[str, Any] = {**each, "bar": None, "left": None, "about": []}
        if ready:
            facts["tables"] = visit.desk.describe(who, name)["tables"]
            facts["about"] = protected(facts["tables"])
            if asks(who):
                facts["bar"] = budget_view(visit.desk, who, name)
            if who.person.roles & {Role.owner, Role.auditor}:
                facts["left"] = left_share(visit.desk.link(who, name).facts().meters[None])
        shown.append(facts)
    return {"datasets": shown, "asks": asks(who)}


def asks(who: Principal) -> bool:
    """Whether somebody asks questions."""
    return bool(who.person.roles & {Role.analyst, Role.agent})


def protected(tables: Any) -> list[str]:
    """Who is protected, one sentence for each way in which people are."""
    found: dict[str, list[str]] = {}
    for table in tables:
        if table["public"]:
            continue
        whole = table["unit"] if table["person"] is None else table["person"]
        who = "each row" if table["unit"] == "row" else f"each {whole}, with all rows"
        found.setdefault(who, []).append(table["name"])
    return [f"{who} of {', '.join(names)}" for who, names in found.items()]

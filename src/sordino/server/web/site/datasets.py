"""The datasets that are open to somebody: who is protected, what is left, and what the last questions took."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import Response

from sordino.server.accounts.people import Role
from sordino.server.web.site.visit import Values, Visit, go_to

__all__ = ["show"]


async def show(visit: Visit) -> Values | Response:
    """All of them."""
    who = visit.visitor
    if who is None:
        return go_to("login")
    shown: list[Mapping[str, Any]] = []
    for each in visit.desk.datasets(who):
        if isinstance(each, Mapping):
            ready = each.get("state") != "starting"
            budget = visit.desk.budget(who, str(each["name"])) if ready else {}
            meter = budget.get("whole", budget)
            left = meter.get("left_share") if isinstance(meter, Mapping) else None
            shown.append({**each, "budget": budget, "left": left})
    return {"datasets": shown, "asks": bool(who.person.roles & {Role.analyst, Role.agent})}

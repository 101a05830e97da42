"""Everything that somebody asked: its answer, its receipt, what it cost. The same again is free."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sordino.server.web.site.visit import Values, Visit

__all__ = ["show"]

_MOST = 200


async def show(visit: Visit) -> Values:
    """The newest first, of all datasets."""
    found: list[Any] = []
    for each in visit.desk.datasets(visit.who):
        if isinstance(each, Mapping):
            found += visit.store.questions(str(each["name"]), visit.who.name, _MOST)
    found.sort(key=lambda question: -question.created)
    return {"questions": found[:_MOST], "more": len(found) > _MOST}

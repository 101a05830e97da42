"""The board: answers that people pinned, for all with whom the owner lets them share answers. Released answers only."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from sordino.server.web.site.answer_view import view
from sordino.server.web.site.answers import person_of
from sordino.server.web.site.visit import Values, Visit

__all__ = ["show"]

_MOST = 50
"""Answers of one dataset on the page: drawing it must not keep the web process from others."""


async def show(visit: Visit) -> Values:
    """All pins that one may see, the newest first, each as on its own page."""
    who, found = visit.who, list[dict[str, Any]]()
    for each in visit.desk.datasets(who):
        if not isinstance(each, Mapping) or each.get("state") == "starting":
            continue
        dataset = str(each["name"])
        policy, person = visit.store.policy(dataset), person_of(visit, dataset)
        before = len(found)
        for pin in visit.store.pins(dataset):
            if len(found) - before == _MOST:
                break
            question = (
                visit.store.question(pin.question) if policy.shares(pin.person, who.name) else None
            )
            if question is None or question.body is None or question.kind != "sql":
                continue
            answer, alike = await visit.desk.shown_answer(
                who, question, partial(view, person=person)
            )
            own = pin.person == who.name
            found.append(
                {"pin": pin, "question": question, "answer": answer, "alike": alike, "own": own}
            )
    found.sort(key=lambda one: -one["pin"].created)
    return {"pins": found}

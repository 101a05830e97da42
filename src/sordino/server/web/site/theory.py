"""The theory page: the notes' pictures, live. It needs no login and no table; without scripts its forms redraw it."""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from fastapi import Response

from sordino.errors import InvalidInput
from sordino.privacy.exact import show as shown
from sordino.server.web.refusals import Refused
from sordino.server.web.site.visit import Values, Visit
from sordino.server.web.theory.frame import HEIGHT, WIDTH
from sordino.server.web.theory.lessons import LESSONS, Drawing, Lesson, digits, lesson_drawn

__all__ = ["numbers", "show"]

_TITLES = {
    "curves": "Two curves", "region": "The region delta", "loss": "The loss", "coins": "Coins", "many": "Many answers",
}  # fmt: skip
_drawer = ThreadPoolExecutor(1, "theory")
"""Strangers who drag sliders keep one thread busy, and none that others need."""
_MOST_WAITING = 16
_waiting: set[asyncio.Future[Drawing]] = set()


async def show(visit: Visit) -> Values:
    """All lessons, each at the places that the address names: `?curves-epsilon=9`."""
    drawn: dict[str, Any] = {}
    for name, lesson in LESSONS.items():
        given = {each.name: visit.query(f"{name}-{each.name}") for each in lesson.sliders}
        places = lesson.places({key: text for key, text in given.items() if text})
        drawn[name] = {"lesson": lesson, "places": places, "drawing": await _drawn(lesson, places)}
    return {"lessons": drawn, "digits": digits, "titles": _TITLES, "width": WIDTH, "height": HEIGHT}


async def numbers(visit: Visit) -> Response:
    """One lesson at some places of its sliders, for the script that redraws it."""
    lesson = LESSONS.get(visit.query("lesson"))
    if lesson is None:
        known = f"There are {', '.join(LESSONS)}."
        raise InvalidInput(
            f"lesson={shown(visit.query('lesson')[:20])}", "there is no such lesson", known
        )
    given = {each.name: visit.query(each.name) for each in lesson.sliders}
    found = await _drawn(lesson, lesson.places({key: text for key, text in given.items() if text}))
    facts = {"paths": dict(found.paths), "numbers": dict(found.numbers), "texts": dict(found.texts)}
    return Response(json.dumps(facts, allow_nan=False), media_type="application/json")


async def _drawn(lesson: Lesson, places: dict[str, int]) -> Drawing:
    if len(_waiting) >= _MOST_WAITING:
        rule = "too many people move sliders just now"
        raise Refused(
            429, "too-many-requests", rule, "Wait a second.", headers={"Retry-After": "1"}
        )
    drawing = asyncio.get_running_loop().run_in_executor(_drawer, lesson_drawn, lesson, places)
    _waiting.add(drawing)
    drawing.add_done_callback(_waiting.discard)
    return await drawing

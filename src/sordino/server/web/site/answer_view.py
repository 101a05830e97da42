"""An answer for templates and charts: cells as texts, numbers as numbers, and in one sentence what it means."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from typing import Any

import numpy as np

from sordino.answer.answer import Answer, EstimateColumn, KeyColumn
from sordino.answer.text import key_text, number, percent, spread
from sordino.privacy.wording import counted

__all__ = ["AnswerView", "view"]

_LONGEST = 60
_MOST = 1000
"""Rows that a page shows; files have all of them."""


@dataclass(frozen=True)
class AnswerView:
    """What pages show of an answer.

    `chart` is read by chart.js; `rows` are the first, as texts, spreads and numbers.
    """

    names: tuple[str, ...]
    numeric: tuple[bool, ...]
    rows: list[list[tuple[str, str, float | None]]]
    total: int
    confidence: str
    meaning: str
    notes: tuple[str, ...]
    privacy: str
    chart: dict[str, Any]


def view(answer: Answer, person: str | None = None) -> AnswerView:
    """All of it; `person` is what a protected person is called."""
    few = answer.take(np.arange(min(len(answer), _MOST)))
    rows = [list(cells) for cells in zip(*map(_cells, few.columns), strict=True)]
    numeric = tuple(isinstance(column, EstimateColumn) for column in answer.columns)
    return AnswerView(
        answer.names,
        numeric,
        rows,
        len(answer),
        percent(answer),
        _meaning(answer, person),
        answer.notes,
        answer.privacy,
        _chart(few),
    )


def _cells(column: KeyColumn | EstimateColumn) -> list[tuple[str, str, float | None]]:
    if isinstance(column, KeyColumn):
        return [(key_text(cell, _LONGEST), "", None) for cell in column.cells]
    found = []
    for value, low, high in zip(
        column.estimates.value, column.estimates.low, column.estimates.high, strict=True
    ):
        shown = number(float(value), float(max(value - low, high - value)), integer=column.integer)
        around = spread(float(value), float(low), float(high), integer=column.integer)
        found.append((shown, around, float(value) if math.isfinite(value) else None))
    return found


def _chart(answer: Answer) -> dict[str, Any]:
    columns: list[dict[str, Any]] = []
    for column in answer.columns:
        if isinstance(column, EstimateColumn):
            ends = {"value": column.cells, "low": column.lows, "high": column.highs}
            numbers = {name: [_finite(cell) for cell in cells] for name, cells in ends.items()}
            columns.append(
                {"name": column.name, "type": "estimate", "integer": column.integer, **numbers}
            )
        else:
            kind = "key" if column in answer.keys else "value"
            columns.append({"name": column.name, "type": kind, **_keys(column.cells)})
    return {"columns": columns, "confidence": float(answer.confidence)}


def _keys(cells: Sequence[Any]) -> dict[str, Any]:
    first = next((cell for cell in cells if cell is not None), None)
    if isinstance(first, date):
        return {
            "form": "time",
            "values": [None if cell is None else cell.isoformat() for cell in cells],
        }
    if isinstance(first, int | float | Fraction) and not isinstance(first, bool):
        return {
            "form": "number",
            "values": [None if cell is None else float(cell) for cell in cells],
        }
    return {"form": "text", "values": [key_text(cell, _LONGEST) for cell in cells]}


def _finite(cell: Any) -> float | None:
    return None if cell is None or not math.isfinite(cell) else float(cell)


def _meaning(answer: Answer, person: str | None) -> str:
    """What it says, in one sentence or two, for somebody who has not read about noise."""
    sure = percent(answer).replace(" ", "\u00a0")
    hidden = f"Whether one {person or 'person'} is in the data can hardly be told from it."
    if not len(answer):
        return f"No group has enough people to be shown. {hidden}"
    if not answer.estimates:
        return hidden
    column = answer.estimates[0]
    name = key_text(column.name, _LONGEST)
    value, low, high = column.estimates.value, column.estimates.low, column.estimates.high
    half = column.estimates.half_width

    def shown(x: Any, i: int) -> str:
        return number(float(x), float(half[i]), integer=column.integer)

    if len(answer) == 1:
        if not math.isfinite(value[0]):
            return f"There is no number to give for {name}. {hidden}"
        if half[0] == 0:
            return f"{name} is {shown(value[0], 0)}, without any noise."
        return (
            f"{name} is about {shown(value[0], 0)}: the noise leaves it between {shown(low[0], 0)} and {shown(high[0], 0)} "
            f"with a confidence of {sure}. {hidden}"
        )
    groups = counted(len(answer), "group")
    told = f"{groups}. The exact {name} lies within the interval, with a confidence of {sure} for each."
    order = sorted(
        (i for i in range(len(answer)) if math.isfinite(value[i])), key=lambda i: -value[i]
    )
    if len(order) > 1 and answer.keys:
        top, rest = order[0], order[1:]
        words = ", ".join(key_text(column.cells[top], _LONGEST) for column in answer.keys)
        if all(low[top] > high[i] for i in rest):
            told += f" {words} has the largest {name}: its interval lies above all others."
        else:
            told += f" Which {name} is the largest cannot be told: the first intervals overlap."
    return f"{told} {hidden}"

"""One column with limits, as a line of a declaration."""

from __future__ import annotations

import math
from datetime import date, datetime
from fractions import Fraction

from sordino.privacy.exact import readable
from sordino.query.dataset import Column
from sordino.query.entries import key_text
from sordino.query.types import Number, default_step

__all__ = ["column_line", "outward"]


def outward(column: Column, lower: Fraction, upper: Fraction) -> tuple[Fraction, Fraction]:
    """The limits, moved outward to multiples of the column's step; where it has none, of that which they then have."""
    step = column.type.step if isinstance(column.type, Number) else None
    wider = lower, upper
    while step or wider[0] < wider[1]:
        size = step or default_step(*wider)
        lower, upper = wider
        wider = math.floor(lower / size) * size, math.ceil(upper / size) * size
        if wider == (lower, upper):
            break
    return wider


def column_line(name: str, column: Column, lower: Fraction | date, upper: Fraction | date) -> str:
    """The line `name = { type = ..., min = ..., max = ... }` with all else that is declared of the column."""
    entries = {"type": f'"{column.kind}"', "min": _text(lower), "max": _text(upper)}
    if isinstance(column.type, Number) and column.kind == "float" and column.type.step is not None:
        entries["step"] = readable(column.type.step)
    if not getattr(column.type, "nullable", True):
        entries["nullable"] = "false"
    if column.zone is not None:
        entries["zone"] = f'"{column.zone}"'
    return f"{key_text(name)} = {{ {', '.join(f'{key} = {value}' for key, value in entries.items())} }}"


def _text(limit: Fraction | date) -> str:
    match limit:
        case datetime():
            return limit.isoformat(timespec="seconds")
        case date():
            return limit.isoformat()
        case _:
            return readable(limit)

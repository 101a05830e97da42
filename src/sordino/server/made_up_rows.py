"""Rows that are made up from the declaration alone: for dry runs, where code is tried for nothing, and for calibration.

They are a function of the declaration and of a number of rows. No source is opened but those of public tables, which
are as public here as they are there. Nobody is in them, so that nothing about them needs to be protected.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from sordino.privacy.budget import Budget
from sordino.query.dataset import Column, Dataset, Source, Table
from sordino.query.types import Day, Moment, Number, Text, Truth

__all__ = ["made_up"]

_ROWS_OF_A_PERSON = 5
_STEP = 2_654_435_761
"""An odd number near 2^32 / golden ratio: its multiples are spread evenly."""
_WORDS = (
    "acer",
    "betula",
    "carpinus",
    "fagus",
    "fraxinus",
    "juglans",
    "larix",
    "quercus",
    "salix",
    "tilia",
)


def made_up(dataset: Dataset, rows: int) -> Dataset:
    """The same declaration over made-up rows, with a ledger in memory that has the declared budget,
    for itself alone.
    """
    import pyarrow as pa

    tables: dict[str, Table] = {}
    for name, table in dataset.tables.items():
        if table.public:
            tables[name] = table
            continue
        cells = {
            column: _identity(spread, table, column, rows)
            if _is_identity(table, column)
            else _cells(of, spread, rows)
            for spread, (column, of) in enumerate(_columns(table).items())
        }
        tables[name] = replace(
            table, source=Source("frame", frame=pa.table(cells or {"row": [True] * rows}))
        )
    return Dataset(
        tables=tables, budget=dataset.budget or Budget(1), reserved_delta=dataset.reserved_delta
    )


def _columns(table: Table) -> dict[str, Column | None]:
    """All columns that a source needs: the declared ones, the person, and keys."""
    found: dict[str, Column | None] = dict(table.columns)
    known = {name.lower() for name in found}
    for name in (table.person, *table.identities):
        if name is not None and name.lower() not in known:
            found[name] = None
            known.add(name.lower())
    return found


def _is_identity(table: Table, column: str) -> bool:
    names = {name.lower() for name in (table.person, *table.identities) if name is not None}
    return column.lower() in names


def _identity(spread: int, table: Table, column: str, rows: int) -> Sequence[Any]:
    """Who a row belongs to, and keys: a key of this table is different in every row, others name such a key."""
    del spread
    own_key = column.lower() in {name.lower() for name in table.identities} and not (
        table.via is not None and column.lower() in {name.lower() for name in table.via.own}
    )
    numbers = (
        list(range(rows))
        if own_key
        else [i * _STEP % max(rows // _ROWS_OF_A_PERSON, 1) for i in range(rows)]
    )
    declared = next(
        (of for name, of in table.columns.items() if name.lower() == column.lower()), None
    )
    return (
        [f"p{i}" for i in numbers]
        if declared is not None and isinstance(declared.type, Text)
        else numbers
    )


def _cells(of: Column | None, spread: int, rows: int) -> Any:
    import pyarrow as pa

    places = [(i * _STEP + spread * 40_503) % 2**32 for i in range(rows)]
    match None if of is None else of.type:
        case Text(values=tuple() as values) if values:
            return [values[place % len(values)] for place in places]
        case Text() as text:
            return [_WORDS[place % len(_WORDS)][: text.longest] for place in places]
        case Truth():
            return [place % 2 == 0 for place in places]
        case Number(values=tuple() as numbers) if numbers:
            return [numbers[place % len(numbers)] for place in places]
        case Number() as number:
            low, high = _ends(number)
            if of is not None and of.kind == "int":
                return [
                    math.ceil(low) + place % max(math.floor(high) - math.ceil(low) + 1, 1)
                    for place in places
                ]
            return [low + (high - low) * place / 2**32 for place in places]
        case Day() as day:
            days = max((day.upper - day.lower).days, 0) + 1
            return [day.lower + timedelta(days=place % days) for place in places]
        case Moment() as moment:
            seconds = max(int((moment.upper - moment.lower).total_seconds()), 0) + 1
            found: list[datetime] = [
                moment.lower + timedelta(seconds=place % seconds) for place in places
            ]
            return pa.array(found, pa.timestamp("us"))
        case _:
            return [place % 100 for place in places]


def _ends(number: Number) -> tuple[float, float]:
    """Bounds of a number; made-up ones where none are declared."""
    low = (
        float(number.lower)
        if number.lower is not None
        else min(0.0, float(number.upper or 0) - 100)
    )
    return low, float(number.upper) if number.upper is not None else low + 100

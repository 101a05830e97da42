"""Columns that hold the same value in every row: one of them is measured, and tables of the others are made of its.

Nothing here reads data; facts.md, Theorem 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sordino.errors import InvalidInput
from sordino.privacy.exact import show
from sordino.workloads.allocation import ColumnSet
from sordino.workloads.domain import WorkloadColumn
from sordino.workloads.places import places_of

__all__ = ["SameAs", "equal_columns", "measured", "product_weights", "spread_out"]

Floats = npt.NDArray[np.float64]
_PAIR = 'Pass equal=[("region", "again")].'


@dataclass(frozen=True)
class SameAs:
    """A column that is equal to one before it: which one, and where each of its values is there (-1: nowhere)."""

    column: int
    places: tuple[int, ...]


def equal_columns(columns: Sequence[WorkloadColumn], equal: Any) -> tuple[SameAs | None, ...]:
    """For each column the first one that it is equal to; None where it is measured itself."""
    if isinstance(equal, str) or not isinstance(equal, Sequence):
        raise InvalidInput(f"equal={show(equal)}", "it is a list", _PAIR)
    names = [column.name for column in columns]
    first = list(range(len(columns)))
    for given in equal:
        pair = places_of(names, given, "equal")
        if len(pair) != 2 or pair[0] == pair[1]:
            raise InvalidInput(f"equal={show(equal)}", "two different columns are equal", _PAIR)
        joined = {first[i] for i in pair}
        first = [min(joined) if one in joined else one for one in first]
    found: list[SameAs | None] = []
    for i, column in enumerate(columns):
        if first[i] == i:
            found.append(None)
            continue
        known = [show(value) for value in columns[first[i]].values]
        words = map(show, column.values)
        found.append(
            SameAs(first[i], tuple(known.index(word) if word in known else -1 for word in words))
        )
    if any(columns[i].kind != "cells" for i in {*first} if first.count(i) > 1) or any(
        column.kind != "cells" for column, own in zip(columns, found, strict=True) if own
    ):
        rule = "equal columns are asked for their cells, not for ranges"
        raise InvalidInput(f"equal={show(equal)}", rule, "Leave out ranges and prefixes.")
    return tuple(found)


def measured(table: ColumnSet, same: Sequence[SameAs | None]) -> ColumnSet:
    """The columns of a table that are measured: each group of equal ones once."""
    return tuple(sorted({_first(i, same) for i in table}))


def spread_out(
    cells: npt.NDArray[Any], table: ColumnSet, shape: Sequence[int], same: Sequence[SameAs | None]
) -> npt.NDArray[Any]:
    """A table of some columns from that of its measured ones: zero where equal columns would differ."""
    index: dict[int, npt.NDArray[np.int64]] = {}
    held = np.ones(tuple(shape), bool)
    for axis, (i, size) in enumerate(zip(table, shape, strict=True)):
        twin = same[i]
        own = np.arange(size) if twin is None else np.array(twin.places, np.int64)
        own = own.reshape([-1 if k == axis else 1 for k in range(len(table))])
        held &= (own >= 0) & (own == index.setdefault(_first(i, same), own))
    chosen = cells[tuple(np.maximum(index[i], 0) for i in measured(table, same))]
    return np.where(held, chosen, np.zeros((), cells.dtype))


def product_weights(
    table: ColumnSet, weights: Sequence[Floats], sizes: Sequence[int], same: Sequence[SameAs | None]
) -> list[Floats]:
    """The weights of a product sum over a table, as weights over its measured columns."""
    found = {i: np.ones(sizes[i]) for i in measured(table, same)}
    for i, own in zip(table, weights, strict=True):
        twin = same[i]
        if twin is None:
            found[i] *= own
            continue
        placed = np.zeros(sizes[twin.column])
        places = np.array(twin.places, np.int64)
        placed[places[places >= 0]] = own[places >= 0]
        found[twin.column] *= placed
    return list(found.values())


def _first(i: int, same: Sequence[SameAs | None]) -> int:
    twin = same[i]
    return i if twin is None else twin.column

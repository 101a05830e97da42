"""From noisy contrasts to tables that agree: every sum over a column of one table is the other table, as whole numbers.

All of this is post-processing. The best estimate of a table is a sum of what each set of columns below it adds; it is
put on a lattice so that margins stay exact (Theorem 5 of residuals.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from sordino.workloads.allocation import ColumnSet, below
from sordino.workloads.contrasts import Contrasts

__all__ = ["agreeing", "estimates", "residual", "sums_of"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[Any]


def residual(columns: Sequence[Contrasts], contrasts: Floats) -> Floats:
    """What a set of columns adds to its table, from its contrasts: an array whose sum along every axis is zero."""
    found = contrasts
    for axis, column in enumerate(columns):
        found = column.back(
            found / column.squares.reshape((-1,) + (1,) * (found.ndim - axis - 1)), axis
        )
    return found


def estimates(
    columns: Sequence[Contrasts], residuals: Mapping[ColumnSet, Floats], table: ColumnSet
) -> Floats:
    """The best linear unbiased estimate of a table (Theorem 3)."""
    found = np.zeros(tuple(columns[i].size for i in table))
    for part in below([table]):
        if part in residuals:
            outside = math.prod(columns[i].size for i in table if i not in part)
            wide = tuple(columns[i].size if i in part else 1 for i in table)
            found += residuals[part].reshape(wide) / outside
    return found


def agreeing(
    columns: Sequence[Contrasts],
    residuals: Mapping[ColumnSet, Floats],
    tables: Sequence[ColumnSet],
    bits: int,
    zero: Callable[[ColumnSet], npt.NDArray[np.bool_] | None] = lambda _: None,
    pivots: Sequence[int] = (),
) -> dict[ColumnSet, Ints]:
    """All tables below the given ones in whole multiples of 2^-bits, such that margins are equal as whole numbers.

    Cells are rounded, but for those at the pivot of some column (its last value by default): these are what the margins
    leave. `zero` tells the cells of a table that are zero; none of the values by which it does may be a pivot.
    """
    found: dict[ColumnSet, Ints] = {}
    orders = [np.roll(np.arange(column.size), -1 - pivot)
              for column, pivot in zip(columns, pivots or [column.size - 1 for column in columns], strict=True)]  # fmt: skip
    for table in below(tables):
        order = np.ix_(*(orders[i] for i in table))
        best, mask = estimates(columns, residuals, table)[order], zero(table)
        if mask is not None:
            best = np.where(mask[order], 0.0, best)
        inner = best[(slice(-1),) * len(table)] if table else best
        scaled = np.rint(np.ldexp(inner, bits))
        whole: Ints = (
            scaled.astype(np.int64) if np.abs(scaled).max(initial=0.0) < 2.0**60 else _wide(scaled)
        )
        for axis in range(len(table)):
            margin = found[table[:axis] + table[axis + 1 :]]
            own = margin[(slice(None),) * axis + (slice(-1),) * (len(table) - axis - 1)]
            last = own - whole.sum(axis=axis)
            whole = np.concatenate([whole, np.expand_dims(last, axis)], axis=axis)
        found[table] = whole
    return {
        table: cells[np.ix_(*(np.argsort(orders[i]) for i in table))]
        for table, cells in found.items()
    }


def sums_of(table: ColumnSet, cells: Ints) -> dict[ColumnSet, Ints]:
    """A table with all those below it, as its sums."""
    return {
        part: np.asarray(cells.sum(axis=tuple(k for k, i in enumerate(table) if i not in part)))
        for part in below([table])
    }


def _wide(numbers: Floats) -> Ints:
    return np.array([int(x) for x in numbers.ravel()], object).reshape(numbers.shape)

"""Tables with given margins, found or excluded by linear programs (HiGHS): where no order of the margins decides it.

Nothing here reads data; facts.md, Theorems 1 and 4.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from sordino.workloads.allocation import ColumnSet

__all__ = ["MOST_SOLVED", "exists", "whole_solution"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
MOST_SOLVED = 2**14
"""Cells of a table beyond which no program is solved."""
_SECONDS = 30.0
_INFEASIBLE = 2


def exists(table: ColumnSet, free: Bools, margins: Mapping[ColumnSet, Ints]) -> bool:
    """Whether a nonnegative table has these margins, and zeros where it is not free; False is certain up to 1e-7.

    Numbers need not be whole. Counts are in units of the total, so that tolerances are those of shares.
    """
    total = max((int(counts.sum()) for counts in margins.values()), default=0)
    if not total or not free.any():
        return total == 0
    from scipy.optimize import linprog

    matrix, wanted = _sums(table, free, margins)
    found = linprog(
        np.zeros(matrix.shape[1]), A_eq=matrix, b_eq=wanted / total, method="highs",
        options={"time_limit": _SECONDS},
    )  # fmt: skip
    return int(found.status) != _INFEASIBLE


def whole_solution(
    table: ColumnSet, target: Floats, free: Bools, margins: Mapping[ColumnSet, Ints]
) -> Ints | None:
    """The nearest whole numbers from zero on with these margins; None if none were found.

    Nearest is meant in absolute differences.
    """
    if free.size > MOST_SOLVED or not free.any():
        return None
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_array, eye_array, hstack, vstack

    matrix, wanted = _sums(table, free, margins)
    near = target[free]
    cells = len(near)
    # cell - above + below = target: what is above and below it is paid for
    one = eye_array(cells)
    apart = hstack([one, -one, one])
    alone = hstack([matrix, csr_array((len(wanted), 2 * cells))])
    found = milp(
        np.repeat([0.0, 1.0, 1.0], cells),
        integrality=np.repeat([1, 0, 0], cells),
        bounds=Bounds(0, np.inf),
        constraints=LinearConstraint(vstack([alone, apart]), *[np.concatenate([wanted, near])] * 2),
        options={"time_limit": _SECONDS},
    )
    if found.x is None:
        return None
    whole = np.zeros(free.shape, np.int64)
    whole[free] = np.rint(found.x[:cells]).astype(np.int64)
    return whole if (whole >= 0).all() and _has(whole, table, margins) else None


def _sums(table: ColumnSet, free: Bools, margins: Mapping[ColumnSet, Ints]) -> tuple[Any, Floats]:
    """Which free cells add up to each number of each margin; and these numbers."""
    from scipy.sparse import csr_array, vstack

    cells = np.argwhere(free)
    rows, wanted = [], []
    for part, counts in margins.items():
        own = cells[:, [table.index(i) for i in part]]
        groups = (
            np.ravel_multi_index(tuple(own.T), counts.shape) if part else np.zeros(len(cells), int)
        )
        ones = (np.ones(len(cells)), (groups, np.arange(len(cells))))
        rows.append(csr_array(ones, shape=(counts.size, len(cells))))
        wanted.append(np.atleast_1d(counts).reshape(-1).astype(np.float64))
    return vstack(rows), np.concatenate(wanted)


def _has(whole: Ints, table: ColumnSet, margins: Mapping[ColumnSet, Ints]) -> bool:
    return all(
        np.array_equal(
            whole.sum(axis=tuple(k for k, i in enumerate(table) if i not in part)), counts
        )
        for part, counts in margins.items()
    )

"""Nonnegative whole numbers that add up, near noisy tables that agree: post-processing, and biased (facts.md).

One table that holds all others is moved and rounded. Several tables are the sums of one table over all their columns
where that is small. Otherwise what tables share is rounded first, then each table given what it shares; where shared
parts close a circle that may have no solution, and it is refused.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from sordino.errors import InvalidInput
from sordino.workloads.allocation import ColumnSet, below
from sordino.workloads.counts import largest_sets, summed
from sordino.workloads.solved import whole_solution

__all__ = ["in_order", "nearest_whole", "whole_tables"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
_JOINT, _WORK = 2**16, 2**21
"""Up to this many cells, and cells times sets of columns, a table over all columns is made."""
_ROUNDS, _FITS, _MOVES = 50, 100, 2000
_NEVER = -1e300
_ASK = "Ask for one table that holds all others, or for synthetic rows: session.synthesize()."


def whole_tables(
    tables: Mapping[ColumnSet, npt.NDArray[Any]], bits: int, known: Iterable[ColumnSet]
) -> dict[ColumnSet, Ints]:
    """Nonnegative whole numbers near tables in multiples of 2^-bits, none within another, that agree; they agree, too.

    Sets of columns in `known` are whole numbers from zero on already, and stay. Cells that are exactly zero stay zero.
    """
    noisy = {
        table: np.ldexp(np.asarray(cells, np.float64), -bits) for table, cells in tables.items()
    }
    free = {table: np.asarray(cells != 0, bool) for table, cells in tables.items()}
    fixed: dict[ColumnSet, Ints] = {}
    for part in largest_sets([part for part in known if any(set(part) <= set(t) for t in tables)]):
        fixed[part] = np.rint(summed(noisy, part)).astype(np.int64)
    if () not in fixed:
        total = next(iter(fixed.values())).sum() if fixed else round(float(summed(noisy, ())))
        fixed[()] = np.array(max(0, int(total)), np.int64)
    return _agreeing(noisy, free, fixed)


def _agreeing(
    noisy: dict[ColumnSet, Floats], free: dict[ColumnSet, Bools], fixed: Mapping[ColumnSet, Ints]
) -> dict[ColumnSet, Ints]:
    columns = tuple(sorted({i for table in noisy for i in table}))
    if len(noisy) == 1:
        ((table, target),) = noisy.items()
        return {table: nearest_whole(table, target, free[table], fixed)}
    sizes = {
        i: n for table, cells in noisy.items() for i, n in zip(table, cells.shape, strict=True)
    }
    cells = math.prod(sizes.values())
    if cells <= _JOINT and cells * sum(2 ** len(table) for table in noisy) <= _WORK:
        shape = tuple(sizes[i] for i in columns)
        return _by_one_table(noisy, free, fixed, columns, shape)
    shared = _shared(list(noisy))
    parts = largest_sets([part for own in shared.values() for part in own])
    smaller = {part: np.asarray(summed(noisy, part)) for part in parts}
    allowed = {part: _allowed(free, part) for part in parts}
    within: dict[ColumnSet, Ints] = {}
    for (part, counts), one in itertools.product(fixed.items(), parts):
        both = tuple(i for i in part if i in one)
        within[both] = _margin(counts, part, both)
    common = _agreeing(smaller, allowed, within)
    found = {}
    for table, target in noisy.items():
        given = {part: np.asarray(summed(common, part)) for part in shared[table]}
        given |= {part: counts for part, counts in fixed.items() if set(part) <= set(table)}
        found[table] = nearest_whole(table, target, free[table], given)
    return found


def _shared(tables: Sequence[ColumnSet]) -> dict[ColumnSet, list[ColumnSet]]:
    """What each table shares with others, the largest sets alone; refused where they close a circle."""
    holding: dict[int, list[ColumnSet]] = {}
    for table in tables:
        for i in table:
            holding.setdefault(i, []).append(table)
    found = {}
    for table in tables:
        near = {other for i in table for other in holding[i]} - {table}
        both = {tuple(i for i in table if i in other) for other in near} or {()}
        found[table] = _without_circle(largest_sets(list(both)))
    return found


def _allowed(free: Mapping[ColumnSet, Bools], part: ColumnSet) -> Bools:
    """The cells of a smaller set of columns that hold more than zeros, in every table that has them."""
    found = [
        mask.any(axis=tuple(k for k, i in enumerate(table) if i not in part))
        for table, mask in free.items()
        if set(part) <= set(table)
    ]
    return np.asarray(np.logical_and.reduce(found))


def nearest_whole(
    table: ColumnSet, target: Floats, free: Bools, given: Mapping[ColumnSet, Ints]
) -> Ints:
    """Nonnegative whole numbers near a table, with given margins exactly, and zero where it is not free.

    `given` are margins of whole numbers that agree with each other. Refused where none are found (facts.md).
    """
    order = _without_circle(largest_sets(list(given)))
    margins = {part: given[part] for part in order}
    near = _projected(table, target, free, margins)
    for part, counts in margins.items():
        have = _margin(near, table, part)
        near = near * _spread(np.minimum(1.0, counts / np.maximum(have, 2.0**-40)), table, part)
    whole = np.array(np.floor(near + 2.0**-30), np.int64, order="C")
    left = {part: counts - _margin(whole, table, part) for part, counts in margins.items()}
    missing = int(next(iter(left.values())).sum())
    if not missing:
        return whole
    ranked = np.argsort(-np.where(free, near - whole, _NEVER), axis=None, kind="stable")
    ranked = ranked[: int(free.sum())]
    if free.all():
        ranked = ranked[: 50 * missing + 10_000]
    flat = whole.reshape(-1)
    if len(ranked) >= missing and list(margins) == [()]:
        flat[ranked[:missing]] += 1
        return whole
    cells = np.unravel_index(ranked, whole.shape)
    keys = [
        np.ravel_multi_index(tuple(cells[table.index(i)] for i in part), counts.shape)
        if part
        else np.zeros(len(ranked), np.int64)
        for part, counts in margins.items()
    ]
    counters = [np.atleast_1d(counts).reshape(-1).tolist() for counts in left.values()]
    for cell, *own in zip(ranked.tolist(), *(key.tolist() for key in keys), strict=True):
        if all(counter[key] > 0 for counter, key in zip(counters, own, strict=True)):
            flat[cell] += 1
            missing -= 1
            for counter, key in zip(counters, own, strict=True):
                counter[key] -= 1
            if not missing:
                return whole
    rest = {
        part: np.array(counter, np.int64).reshape(counts.shape)
        for (part, counts), counter in zip(margins.items(), counters, strict=True)
    }
    joined = _joined(rest, table)
    if all(free[row] for row in joined):
        for row in joined:
            whole[row] += 1
        return whole
    solved = whole_solution(table, target, free, margins)
    if solved is None:
        rule = "no whole numbers were found that add up, with zeros where there must be none"
        raise InvalidInput("rounded()", rule, _ASK)
    return solved


def in_order(parts: Sequence[ColumnSet]) -> list[ColumnSet] | None:
    """Sets of columns in an order in which each shares with all before it only what it shares with one of them.

    The next one is always one that shares the most columns with those before (Tarjan and Yannakakis, 1984); None
    where they close a circle.
    """
    left, order = list(parts), list[ColumnSet]()
    while left:
        seen = {i for one in order for i in one}
        part = max(left, key=lambda one: len(seen & set(one)))
        if order and not any(seen & set(part) <= set(one) for one in order):
            return None
        order.append(part)
        left.remove(part)
    return order


def _without_circle(parts: Sequence[ColumnSet]) -> list[ColumnSet]:
    """The same; refused where they close a circle."""
    order = in_order(parts)
    if order is None:
        rule = (
            "whole numbers that add up may not exist where what tables share closes a circle "
            "(all tables of three columns, for one), and to find out is hard"
        )
        raise InvalidInput("rounded()", rule, _ASK)
    return order


def _projected(
    table: ColumnSet, target: Floats, free: Bools, margins: Mapping[ColumnSet, Ints]
) -> Floats:
    """The nearest nonnegative table with these margins: Dykstra's alternating projections."""
    found, moved = target, {part: np.zeros(()) for part in margins}
    for _ in range(_ROUNDS if len(margins) > 1 else 1):
        for part, counts in margins.items():
            ahead = found + moved[part]
            found = _on_simplexes(np.where(free, ahead, _NEVER), table, part, counts)
            moved[part] = ahead - found
        off = (
            np.abs(_margin(found, table, part) - counts).max() for part, counts in margins.items()
        )
        if max(off) < 2.0**-5:
            break
    return found


def _on_simplexes(cells: Floats, table: ColumnSet, part: ColumnSet, counts: Ints) -> Floats:
    """Each slice of a table moved to the nearest nonnegative one with the total that is given."""
    axes = [table.index(i) for i in part]
    ahead = np.moveaxis(cells, axes, range(len(axes)))
    rows = ahead.reshape(counts.size, -1)
    totals = np.asarray(counts, np.float64).reshape(-1, 1)
    falling = -np.sort(-rows, axis=1)
    over = (np.cumsum(falling, axis=1) - totals) / np.arange(1, rows.shape[1] + 1)
    kept = np.maximum((falling > over).sum(axis=1) - 1, 0)
    moved = np.maximum(rows - over[np.arange(len(rows)), kept][:, None], 0.0)
    moved = np.where((totals > 0) & (rows > _NEVER / 2), moved, 0.0)
    return np.asarray(np.moveaxis(moved.reshape(ahead.shape), range(len(axes)), axes))


def _margin(cells: npt.NDArray[Any], table: ColumnSet, part: ColumnSet) -> npt.NDArray[Any]:
    return np.asarray(cells.sum(axis=tuple(k for k, i in enumerate(table) if i not in part)))


def _spread(margin: npt.NDArray[Any], table: ColumnSet, part: ColumnSet) -> npt.NDArray[Any]:
    """A margin with axes of length one for the columns that it does not have."""
    shape = iter(margin.shape)
    return margin.reshape([next(shape) if i in part else 1 for i in table])


def _joined(margins: Mapping[ColumnSet, Ints], table: ColumnSet) -> list[tuple[int, ...]]:
    """Cells of a table, one for each unit that is missing, of which these are the margins; they close no circle.

    Units are put together in the order of what they share: of both sides there are as many.
    """
    rows: list[dict[int, int]] | None = None
    for part, counts in margins.items():
        places = np.repeat(np.argwhere(counts > 0), counts[counts > 0], axis=0)
        own = [dict(zip(part, row, strict=True)) for row in places.tolist()]
        if rows is None:
            rows = own
            continue
        shared = sorted({i for row in rows[:1] for i in row} & set(part))
        for side in (rows, own):
            side.sort(key=lambda row: [row[i] for i in shared])
        rows = [one | other for one, other in zip(rows, own, strict=True)]
    return [tuple(row.get(i, 0) for i in table) for row in rows or []]


def _by_one_table(
    noisy: dict[ColumnSet, Floats], free: dict[ColumnSet, Bools], fixed: Mapping[ColumnSet, Ints],
    columns: ColumnSet, shape: tuple[int, ...],
) -> dict[ColumnSet, Ints]:  # fmt: skip
    """Tables as sums of one table over all columns, which is fitted to them and rounded."""
    allowed = np.ones(shape, bool)
    for table, mask in free.items():
        allowed &= _spread(mask, columns, table)
    parts = below(noisy)
    near, off = np.zeros(shape), noisy
    for _ in range(_FITS):
        near = np.where(allowed, np.maximum(near + _smallest(off, parts, columns, shape), 0.0), 0.0)
        off = {table: cells - _margin(near, columns, table) for table, cells in noisy.items()}
        if max(float(np.abs(cells).max()) for cells in off.values()) < 0.25:
            break
    whole = nearest_whole(columns, near, allowed, fixed)
    whole = _nearer(whole, allowed, noisy, largest_sets(list(fixed)), columns)
    return {table: _margin(whole, columns, table) for table in noisy}


def _smallest(
    tables: dict[ColumnSet, Floats], parts: Sequence[ColumnSet], columns: ColumnSet, shape: tuple[int, ...]
) -> Floats:  # fmt: skip
    """The shortest table whose sums are given tables that agree: what each set of columns adds, spread evenly."""
    found = np.zeros(shape)
    for part in parts:
        own = np.asarray(summed(tables, part))
        for axis in range(own.ndim):
            own = own - own.mean(axis=axis, keepdims=True)
        outside = math.prod(n for i, n in zip(columns, shape, strict=True) if i not in part)
        found += _spread(own, columns, part) / outside
    return found


def _nearer(
    whole: Ints, allowed: Bools, noisy: Mapping[ColumnSet, Floats], fixed: Sequence[ColumnSet], columns: ColumnSet
) -> Ints:  # fmt: skip
    """Move single units within what is fixed while the sums of squares of all tables' distances fall."""
    union = tuple(i for i in columns if any(i in part for part in fixed))
    sizes = tuple(n for i, n in zip(columns, whole.shape, strict=True) if i in union)
    groups = np.broadcast_to(
        _spread(np.arange(math.prod(sizes)).reshape(sizes), columns, union), whole.shape
    ).reshape(-1)
    order = np.argsort(groups, kind="stable")
    starts = np.searchsorted(groups[order], np.arange(math.prod(sizes)))
    flat = whole.reshape(-1)
    off = {table: cells - _margin(whole, columns, table) for table, cells in noisy.items()}
    for _ in range(_MOVES):
        wanted = sum(
            (_spread(cells, columns, table) for table, cells in off.items()), np.zeros(whole.shape)
        )
        wanted = wanted.reshape(-1)[order]
        there = flat[order] > 0
        ups = np.where(allowed.reshape(-1)[order], wanted, -np.inf)
        downs = np.where(there, wanted, np.inf)
        gain = np.maximum.reduceat(ups, starts) - np.minimum.reduceat(downs, starts)
        group = int(np.argmax(gain))
        own = order[groups[order] == group]
        up, down = (
            own[np.argmax(ups[groups[order] == group])],
            own[np.argmin(downs[groups[order] == group])],
        )
        if not np.isfinite(gain[group]) or up == down:
            break
        one, other = np.unravel_index(up, whole.shape), np.unravel_index(down, whole.shape)
        change = 0.0
        for table, cells in off.items():
            a, b = (tuple(int(at[columns.index(i)]) for i in table) for at in (one, other))
            if a != b:
                change += (cells[a] - 1) ** 2 - cells[a] ** 2 + (cells[b] + 1) ** 2 - cells[b] ** 2
        if change > -(2.0**-20):
            break
        flat[up] += 1
        flat[down] -= 1
        for table, cells in off.items():
            cells[tuple(int(one[columns.index(i)]) for i in table)] -= 1
            cells[tuple(int(other[columns.index(i)]) for i in table)] += 1
    return whole

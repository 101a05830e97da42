"""Exact counts or sums of many tables in one pass over the rows, each person's rows bounded in all tables together.

Each row becomes one cell of every table: a number that says which table and which cell. The engine counts them.
A person with more rows than count has all of them scaled down by one weight; Lemma 1 of residuals.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sqlglot import exp

from sordino.engines.engine import Exact
from sordino.plan.bind import Asked
from sordino.plan.fragments import column, count_rows, identifier, named, select, whole
from sordino.plan.scaling import full
from sordino.plan.sensitivity import WEIGHT
from sordino.plan.statement import Statement
from sordino.workloads.allocation import ColumnSet
from sordino.workloads.domain import WorkloadColumn

__all__ = ["Counting", "counting", "largest_sets", "summed"]

Ints = npt.NDArray[Any]
_SMALL = 2**62


@dataclass(frozen=True, eq=False)
class Counting:
    """What is counted: the statement, the tables with their shapes, and in how many parts one row is counted."""

    statement: Statement
    tables: tuple[ColumnSet, ...]
    shapes: tuple[tuple[int, ...], ...]

    def counts(self, exact: Exact) -> dict[ColumnSet, Ints]:
        """The exact tables; in units of 1/WEIGHT of a row where persons have several. They are never shown."""
        size = sum(math.prod(shape) for shape in self.shapes)
        own = exact.sums[:, 0] if len(exact.sums) else np.zeros(0, object)
        small = sum(map(abs, own.tolist())) < _SMALL  # so that no sum of cells leaves 64 bits
        found = np.zeros(size, np.int64 if small else object)
        if len(own):
            found[np.array(exact.keys[0], np.int64)] = own.astype(found.dtype)
        tables, start = {}, 0
        for table, shape in zip(self.tables, self.shapes, strict=True):
            tables[table] = found[start : start + math.prod(shape)].reshape(shape)
            start += math.prod(shape)
        return tables


def largest_sets(tables: Sequence[ColumnSet]) -> tuple[ColumnSet, ...]:
    """The tables that lie within no other one."""
    sets = sorted({frozenset(table) for table in tables}, key=lambda s: (-len(s), sorted(s)))
    top = max((len(one) for one in sets), default=0)
    kept = [
        one
        for one in sets
        if len(one) == top or not any(one < other for other in sets if len(other) > len(one))
    ]
    return tuple(sorted(tuple(sorted(one)) for one in kept))


def counting(
    rows: Asked,
    columns: Sequence[WorkloadColumn],
    tables: Sequence[ColumnSet],
    most: int,
    steps: exp.Expr | None = None,
) -> Counting:
    """The statement that counts all tables, or sums whole numbers of steps in them (NULL adds nothing).

    `most` rows of one person count, where a person can have several.
    """
    shapes = tuple(tuple(len(columns[i].values) for i in table) for table in tables)
    lines = rows.lines([one.place for one in columns], {} if steps is None else {"s": steps})
    cells, start = list[exp.Expr](), 0
    for table, shape in zip(tables, shapes, strict=True):
        cells.append(_cell(start, table, shape))
        start += math.prod(shape)
    present = [
        part
        for key, own in zip(lines.keys, columns, strict=True)
        for part in _within(key, len(own.values))
    ]
    one = named(exp.Explode(this=exp.Array(expressions=cells)), "c")
    if not lines.person:
        items = [one] if steps is None else [one, column("s")]
        own = select(items, lines.select, "lines", where=present)
        total = count_rows() if steps is None else _nothing_else(exp.Sum(this=column("s")))
        found = select([column("c"), named(total, "w")], own, "cells", group=["c"])
        return Counting(Statement(found, 1, 1, lines.lists), tuple(tables), shapes)
    kept = select([exp.Star()], lines.select, "lines", where=present)
    many = exp.GT(this=count_rows(), expression=whole(most))
    weight = exp.IntDiv(this=whole(WEIGHT * most), expression=count_rows())
    light = select([column("u"), named(weight, "w")], "kept", group=["u"], having=[many])
    own = select(
        [one, named(full(column("w")), "w"), *([] if steps is None else [column("s")])], "kept"
    )
    own = own.join(
        exp.Table(this=identifier("light")), using=[identifier("u")], join_type="LEFT", copy=False
    )
    # no table has 2^47 rows, so that the sum fits into 64 bits
    weighed: exp.Expr = exp.cast(exp.Sum(this=column("w")), "BIGINT")
    if steps is not None:
        weighed = _nothing_else(exp.Sum(this=exp.Mul(this=column("w"), expression=column("s"))))
    found = select([column("c"), named(weighed, "w")], own, "cells", group=["c"])
    found = found.with_(identifier("kept"), as_=kept, materialized=True, copy=False)
    found = found.with_(identifier("light"), as_=light, append=True, copy=False)
    return Counting(Statement(found, 1, 1, lines.lists), tuple(tables), shapes)


def _nothing_else(total: exp.Expr) -> exp.Expr:
    """A sum that is 0 where no row has a value."""
    return exp.Coalesce(this=total, expressions=[whole(0)])


def _within(key: str, size: int) -> list[exp.Expr]:
    """A row is in one cell of every table, whatever its place was computed from; without one it is in none."""
    low = exp.GTE(this=column(key), expression=whole(0))
    return [low, exp.LT(this=column(key), expression=whole(size))]


def _cell(start: int, table: ColumnSet, shape: Sequence[int]) -> exp.Expr:
    """The number of a row's cell: the places of its values, in mixed radix, behind all tables before."""
    found: exp.Expr | None = None
    for i, size in zip(table, shape, strict=True):
        own = column(f"k{i}")
        found = own if found is None else exp.Add(this=_times(found, size), expression=own)
    base = exp.cast(whole(start), "BIGINT")
    return base if found is None else exp.Add(this=base, expression=exp.Paren(this=found))


def _times(value: exp.Expr, size: int) -> exp.Expr:
    return exp.Mul(this=exp.Paren(this=value), expression=whole(size))


def summed(tables: dict[ColumnSet, Ints], part: ColumnSet) -> Ints:
    """The counts of a smaller set of columns, from the smallest table that holds it."""
    if part in tables:
        return tables[part]
    within = [table for table in tables if set(part) <= set(table)]
    best = min(within, key=lambda table: tables[table].size)
    axes = tuple(k for k, i in enumerate(best) if i not in part)
    return np.asarray(tables[best].sum(axis=axes))

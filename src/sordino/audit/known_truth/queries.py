"""Whole queries of ours, from SQL to answer.

For a batch, the rows are copied into many groups of their own, and one release answers for all: noise, selection and draws
of different groups are independent, and a row is in one group only.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import closing
from fractions import Fraction
from functools import cache
from typing import Any, Literal

import numpy as np

from sordino.accounting.filters import TwoMeterFilter
from sordino.answer.answer import Answer
from sordino.audit.known_truth.noise import Floats
from sordino.audit.known_truth.specimen import Specimen
from sordino.engines.duckdb import DuckDB
from sordino.engines.engine import Exact
from sordino.plan.cost import Cost
from sordino.plan.plan import Plan, make_plan
from sordino.privacy.budget import Budget
from sordino.query.dataset import Dataset
from sordino.query.front.sql import parse
from sordino.release import release

__all__ = ["SPECIMENS"]

Rows = tuple[tuple[str, int], ...]
Reading = Callable[[dict[str, list[Any]], int], Floats]

_WARDS = ("A", "B", "C")
_COPIES = 500
_DELTA = 0.05
"""Of the budget: half of it is for keys that are not public, a tenth of that half for each answer that has some."""


@cache
def _asked(sql: str, rows: Rows, copies: int, mechanism: Literal["laplace", "gaussian"] | None) -> tuple[Plan, list[Exact]]:
    """The plan, and the exact sums over all copies of the rows."""
    import pyarrow as pa

    names = ("copy", "ward", "cost", "city")
    cells = [(copy, ward, cost, f"{copy:03} {ward}") for copy in range(copies) for ward, cost in rows]
    table = pa.table(dict(zip(names, map(list, zip(*cells, strict=True)), strict=True)))
    columns: dict[str, dict[str, Any]] = {
        "copy": {"type": "int", "min": 0, "max": copies - 1},
        "ward": {"type": "category", "values": list(_WARDS)},
        "cost": {"type": "int", "min": 0, "max": 10},
        "city": {"type": "text"},
    }
    data = Dataset(table, unit="row", columns=columns, budget=Budget(1, _DELTA))
    meter = TwoMeterFilter(Budget(1, _DELTA), data.reserved_delta or Fraction(0))
    plan = make_plan(parse(sql), data, Cost.offered(epsilon=1, mechanism=mechanism, delta=_DELTA / 20), meter)
    with closing(DuckDB(data.tables.values(), threads=1)) as engine:
        return plan, [engine.run(statement) for statement in plan.statements]


def _query(
    sql: str, read: Reading, *, copies: int = _COPIES, mechanism: Literal["laplace", "gaussian"] | None = None
) -> Callable[..., Floats]:
    """A query as a mechanism of rows, its answers read as one row of numbers for each copy."""

    def run(data: Any, *, size: int) -> Floats:
        plan, exacts = _asked(sql, tuple(map(tuple, data)), copies, mechanism)
        made = [read(_columns(release(exacts, plan, None)), copies) for _ in range(math.ceil(size / copies))]
        return np.concatenate(made)[:size]

    return run


def _columns(answer: Answer) -> dict[str, list[Any]]:
    return {name: list(cells) for name, cells in answer.to_arrow().to_pydict().items()}


def _each(name: str) -> Reading:
    """The numbers of each copy, in the order of the keys."""
    return lambda columns, copies: np.array(columns[name], float).reshape(copies, -1)


def _found(columns: dict[str, list[Any]], copies: int) -> Floats:
    """The number of each ward that is named, and a mark where it is not."""
    numbers = np.full((copies, len(_WARDS)), -1000.0)
    for city, n in zip(columns["city"], columns["n"], strict=True):
        copy, ward = city.split()
        numbers[int(copy), _WARDS.index(ward)] = n
    return numbers


_ROWS = [("A", 3), ("A", 9), ("B", 4)]
_MORE = [*_ROWS, ("B", 10)]

SPECIMENS = (
    Specimen(
        name="query-count-by-ward",
        title="COUNT(*) by a public key",
        broken=False,
        why="One row moves one count by 1.",
        mechanism=_query("SELECT copy, ward, COUNT(*) AS n FROM data GROUP BY copy, ward", _each("n"), mechanism="laplace"),
        pair=(_ROWS, _MORE),
        neighbors="add_remove",
        epsilon=1,
        truth=1,
        samples=200_000,
    ),
    Specimen(
        name="query-mean",
        title="AVG with normal noise",
        broken=False,
        why="One row moves the pair of sums by the width of the bounds in all.",
        mechanism=_query("SELECT copy, AVG(cost) AS c FROM data GROUP BY copy", _each("c"), mechanism="gaussian"),
        pair=(_ROWS, _MORE),
        neighbors="add_remove",
        epsilon=1,
        delta=_DELTA / 2,
        truth=1,
        samples=200_000,
    ),
    Specimen(
        name="query-private-keys",
        title="COUNT(*) by a key that is not public",
        broken=False,
        why="Keys are selected with half of epsilon, counts get the other half.",
        mechanism=_query("SELECT city, COUNT(*) AS n FROM data GROUP BY city", _found),
        pair=(_ROWS, [*_ROWS, ("C", 10)]),
        neighbors="add_remove",
        epsilon=1,
        delta=_DELTA / 20,
        truth=1,
        samples=200_000,
    ),
    Specimen(
        name="query-median",
        title="MEDIAN, drawn by the exponential mechanism",
        broken=False,
        why="One row moves every score by at most half, all to the same side or not.",
        mechanism=_query("SELECT copy, MEDIAN(cost) AS c FROM data GROUP BY copy", _each("c"), copies=4),
        pair=(_ROWS, _MORE),
        neighbors="add_remove",
        epsilon=1,
        truth=1,
        samples=12_000,
    ),
)

"""Whole queries of ours in the zoo.

For a batch of answers to a query, its rows are copied into many groups of their own, and one release answers for all:
noise, selection and draws of different groups are independent, and a row is in one group only.
"""

from __future__ import annotations

import math
from contextlib import closing
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

from sordino.accounting.filters import TwoMeterFilter
from sordino.audit.known_truth.noise import Floats
from sordino.engines.duckdb import DuckDB
from sordino.engines.engine import Exact
from sordino.plan.cost import Cost
from sordino.plan.plan import Plan, make_plan
from sordino.privacy.budget import Budget
from sordino.query.dataset import Dataset
from sordino.query.front.sql import parse
from sordino.release import release

__all__ = ["query", "visits"]

_WARDS = ("A", "B", "C")
_DELTA = 0.05
"""Of the budget: half of it is for keys that are not public, a tenth of that half for each answer that has some."""
_COST = {"type": "int", "min": 0, "max": 10}


def visits(costs: list[int]) -> Dataset:
    """Some costs in two wards, as a dataset."""
    import pyarrow as pa

    table = pa.table({"ward": ["A", "B", "A", "B"][: len(costs)], "cost": costs})
    columns: dict[str, Any] = {"ward": {"type": "category", "values": ["A", "B"]}, "cost": _COST}
    return Dataset(table, unit="row", columns=columns, budget=Budget(1, 1e-3))


def query(
    data: Any, size: int, sql: str, column: str, *, mechanism: Any = None, copies: int = 500, keys: bool = False
) -> Floats:  # fmt: skip
    """A query as a mechanism of rows; one row of numbers for each copy, a ward that is not found being -1000."""
    plan, exacts = _asked(sql, tuple(map(tuple, data)), copies, mechanism)
    made = []
    for _ in range(math.ceil(size / copies)):
        answer = release(exacts, plan, None).to_arrow().to_pydict()
        numbers = np.array(answer[column], float)
        if keys:
            numbers = _by_copy(answer["city"], numbers, copies)
        made.append(numbers.reshape(copies, -1))
    return np.concatenate(made)[:size]


def _by_copy(cities: list[str], numbers: Floats, copies: int) -> Floats:
    found = np.full((copies, len(_WARDS)), -1000.0)
    for city, number in zip(cities, numbers, strict=True):
        copy, ward = city.split()
        found[int(copy), _WARDS.index(ward)] = number
    return found


@cache
def _asked(
    sql: str, rows: tuple[tuple[str, int], ...], copies: int, mechanism: Any
) -> tuple[Plan, list[Exact]]:
    """The plan, and the exact sums over all copies of the rows."""
    import pyarrow as pa

    names = ("copy", "ward", "cost", "city")
    cells = [
        (copy, ward, cost, f"{copy:03} {ward}") for copy in range(copies) for ward, cost in rows
    ]
    table = pa.table(dict(zip(names, map(list, zip(*cells, strict=True)), strict=True)))
    columns: dict[str, Any] = {
        "copy": {"type": "int", "min": 0, "max": copies - 1},
        "ward": {"type": "category", "values": list(_WARDS)},
        "cost": _COST,
        "city": {"type": "text"},
    }
    data = Dataset(table, unit="row", columns=columns, budget=Budget(1, _DELTA))
    meter = TwoMeterFilter(Budget(1, _DELTA), data.reserved_delta or Fraction(0))
    cost = Cost.offered(epsilon=1, mechanism=mechanism, delta=_DELTA / 20)
    plan = make_plan(parse(sql), data, cost, meter)
    with closing(DuckDB(data.tables.values(), threads=1)) as engine:
        return plan, [engine.run(statement) for statement in plan.statements]

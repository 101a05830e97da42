"""Small tables whose exact numbers are counted by hand: whose a row is, which rows a window and a condition see.

Random worlds find these faults too, but not with every seed: here each has a question of its own.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from engine_reference import Bench
from plan.shop import planned
from sordino.query.dataset import Dataset

X: dict[str, Any] = {"x": {"type": "int", "min": 0, "max": 9}}
MANY = {"max_rows": 50}
TABLES: dict[str, Any] = {
    "people": {
        "source": pa.table({"id": [1, 2, 3], "x": [1, 6, 4]}),
        "unit": "id", "persons": "person", "columns": X, **MANY,
    },
    "orders": {
        "source": pa.table({"id": [1, 1, 2], "a": [7, 7, 8], "b": [1, 2, 1], "x": [1, 5, 2]}),
        "unit": "id", "persons": "person", "columns": {**X, "b": {"type": "int", "min": 0, "max": 9}}, **MANY,
    },
    "lines": {
        "source": pa.table({"a": [7, 7, 8, 8], "b": [1, 2, 1, 1], "x": [1, 9, 5, 3]}),
        "via": {"a": "orders.a", "b": "orders.b"}, "columns": X, **MANY,
    },
    "cells": {
        "source": pa.table({"id": [1, 1, 1, 1], "x": [5, None, None, None]}),
        "unit": "id", "persons": "person", "columns": X, "max_rows": 2,
    },
}  # fmt: skip

COUNTS = {
    "a line belongs to one order, by both parts of its key": ("FROM lines AS l", 4),
    "a line without a large order stays its person's": (
        "FROM lines AS l LEFT JOIN (SELECT a, b, x AS y FROM orders WHERE x > 3) AS o "
        "ON l.a = o.a AND l.b = o.b",
        4,
    ),
    "each order of a person is the first of its number b": (
        "FROM (SELECT ROW_NUMBER() OVER (PARTITION BY id, b ORDER BY x) AS n FROM orders) AS o WHERE n = 1",
        3,
    ),
    "who has small orders only is no row without an order": (
        "FROM people AS p LEFT JOIN orders AS o ON p.id = o.id WHERE o.x > 3 OR o.x IS NULL",
        2,
    ),
    "rows of an alternative that says nothing of people": (
        "FROM people AS p JOIN orders AS o ON p.id = o.id "
        "WHERE p.x < 2 AND o.x = 5 OR p.x > 8 AND o.x = 8 OR o.x = 2",
        2,
    ),
}


def exact(question: str) -> list[float]:
    """The exact sums of a question without groups, before noise."""
    dataset, bench = Dataset(tables=TABLES, budget={"epsilon": 100, "delta": 0.01}), Bench()
    bench.load(dataset.tables, {name: table.source.frame for name, table in dataset.tables.items()})
    plan = planned(question, dataset)
    (release,) = plan.sums
    return [number / release.unit for number in bench.run(plan).vectors[release.name][()]]


@pytest.mark.parametrize("case", COUNTS)
def test_the_number_of_rows(case: str) -> None:
    source, expected = COUNTS[case]
    assert exact(f"SELECT COUNT(*) AS n {source}") == [expected]


def test_rows_without_a_value_are_bounded_where_they_are_counted() -> None:
    """Each row is 9 in all: 9 - x and x, or 9 of nothing; a person with four rows has at most two."""
    assert exact("SELECT AVG(x) AS m, COUNT(*) AS n FROM cells") == [2, 2.5, 13.5]

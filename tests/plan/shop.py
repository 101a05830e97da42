"""A small shop for questions about several tables: persons by columns and through keys,
other persons, rows, regions.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pyarrow as pa

from sordino.accounting.filters import TwoMeterFilter
from sordino.plan.cost import Cost
from sordino.plan.plan import Plan, make_plan
from sordino.query.dataset import Dataset
from sordino.query.front.sql import parse

X: dict[str, dict[str, Any]] = {
    "x": {"type": "int", "min": 0, "max": 9},
    "c": {"type": "category", "values": ["A", "B"]},
}
BOUNDS = {"max_rows": 3, "max_groups": 2}


def table(**columns: list[Any]) -> pa.Table:
    count = len(next(iter(columns.values())))
    return pa.table({**columns, "x": list(range(count)), "c": ["AB"[i % 2] for i in range(count)]})


def shop() -> dict[str, dict[str, Any]]:
    """Customers with orders, lines of orders and parts of lines; staff,
    other persons' tables, single events, regions.
    """
    return {
        "customers": {"source": table(id=[1, 2, 3]), "unit": "id", "persons": "customer", "columns": X, **BOUNDS},
        "orders": {
            "source": table(customer_id=[1, 1, 2, 3], id=[10, 11, 20, 30]),
            "unit": "customer_id", "persons": "customer", "columns": X, **BOUNDS,
        },
        "lines": {
            "source": table(order_id=[10, 10, 20, 30], id=[20, 30, 10, 10], no=[1, 2, 1, 2]),
            "via": {"order_id": "orders.id"}, "columns": X, **BOUNDS,
        },
        "parts": {
            "source": table(line=[20, 30, 10], no=[1, 2, 1]),
            "via": {"line": "lines.id", "no": "lines.no"}, "columns": X, **BOUNDS,
        },
        "visits": {
            "source": table(customer_id=[1, 2, 2]), "unit": "customer_id", "persons": "customer", "neighbors": "replace",
            "columns": X, **BOUNDS,
        },
        "staff": {"source": table(customer_id=[1, 2]), "unit": "customer_id", "columns": X, **BOUNDS},
        "events": {"source": table(customer_id=[1, 2]), "unit": "row", "columns": X},
        "regions": {"source": pa.table({"c": ["A", "B"], "r": [1, 2]}), "public": True, "key": ["c"],
                    "columns": {"c": X["c"], "r": X["x"]}},
        "free": {"source": table(id=[1, 2]), "unit": "id", "persons": "customer", "columns": X},
    }  # fmt: skip


def declared() -> Dataset:
    return Dataset(tables=shop(), budget={"epsilon": 100, "delta": 0.01})


def planned(text: str, dataset: Dataset | None = None) -> Plan:
    data = dataset or declared()
    assert data.budget is not None
    return make_plan(
        parse(text),
        data,
        Cost.offered(epsilon=1),
        TwoMeterFilter(data.budget, data.reserved_delta or Fraction(0)),
    )

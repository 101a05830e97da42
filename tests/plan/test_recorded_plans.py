"""The plans of many kinds of questions, as they were recorded: their SQL byte for byte, their words, their prices.

A question that works must not become slower or dearer unnoticed. Where a change is meant, run this file as a script.
"""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import sordino as so
from sordino.accounting.filters import TwoMeterFilter
from sordino.plan.cost import Cost
from sordino.plan.plan import make_plan
from sordino.query.front.sql import parse

RECORDED = Path(__file__).with_name("recorded_plans.json")

COLUMNS: dict[str, dict[str, Any]] = {
    "ward": {"type": "category", "values": ["A", "B", "C"]},
    "city": {"type": "text"},
    "age": {"type": "int", "min": 0, "max": 110},
    "cost": {"type": "float", "min": 0, "max": 5000, "step": 0.01},
    "balance": {"type": "int", "min": -50, "max": 20},
    "huge": {"type": "int", "min": -(10**12), "max": 10**12},
    "day": {"type": "date", "min": "2024-01-01", "max": "2024-12-31"},
    "smoker": {"type": "bool"},
    "steps": {"type": "int", "min": 0, "max": 10, "nullable": False},
    "code": {"type": "category", "values": [f"code {i}" for i in range(3000)]},
}
ROWS = pa.table({"pid": pa.array([1], pa.int64())})
REGIONS = {"source": pa.table({"ward": ["A"], "region": ["n"]}), "public": True, "key": ["ward"],
           "columns": {"ward": {"type": "category", "values": ["A", "B", "C"]},
                       "region": {"type": "category", "values": ["n", "s"]},
                       "beds": {"type": "int", "min": 0, "max": 100}}}  # fmt: skip
PERSONS: dict[str, Any] = {"unit": "pid", "max_rows_per_group": 10, "max_groups": 2}
TABLES: dict[str, dict[str, Any]] = {
    "persons": PERSONS,
    "replaced": {**PERSONS, "neighbors": "replace"},
    "rows": {"unit": "row"},
    "rows replaced": {"unit": "row", "neighbors": "replace"},
    "nobody": {"public": True},
}
SELECTS = (
    "COUNT(*) FROM visits",
    "COUNT(age) FROM visits",
    "COUNT(*), COUNT(age), COUNT(city) FROM visits",
    "SUM(age) FROM visits",
    "SUM(balance), SUM(huge), SUM(steps * 0 + 7) FROM visits",
    "COUNT(*), SUM(cost) FROM visits WHERE age >= 65",
    "SUM(cost), COUNT(cost) FROM visits",
    "AVG(cost), AVG(steps * 0), AVG(smoker) FROM visits",
    "COUNT(*), COUNT(steps), AVG(steps), SUM(steps) FROM visits",
    "AVG(steps), AVG(age), VARIANCE(steps) FROM visits",
    "STDDEV(age), AVG(age), SUM(age), COUNT(age), COUNT(*) FROM visits",
    "VAR_POP(cost), STDDEV_POP(balance) FROM visits WHERE smoker OR ward = 'A'",
    "MEDIAN(age), QUANTILE(age, 0.9), MEDIAN(cost) FROM visits",
    "ward, COUNT(*), AVG(cost), MEDIAN(age) FROM visits GROUP BY ward",
    "ward, SUM(balance) FROM visits GROUP BY ward HAVING SUM(balance) > 0 ORDER BY ward",
    "COUNT(*) FILTER (WHERE age > 65), SUM(cost) FILTER (WHERE ward = 'B') FROM visits",
    "region, COUNT(*), AVG(beds) FROM visits JOIN regions USING (ward) GROUP BY region",
    "COUNT(*), SUM(beds) FROM visits LEFT JOIN regions USING (ward)",
    "BUCKET(age, 10) AS decade, DATE_TRUNC('month', day) AS month, COUNT(*) AS n FROM visits GROUP BY 1, 2",
    "code, COUNT(*), SUM(age * steps - 3) FROM visits GROUP BY code",
    "CASE WHEN age < 18 THEN 'young' ELSE 'old' END AS who, AVG(LEAST(cost, 100)) FROM visits GROUP BY 1",
)
PRIVATE_KEYS = (
    "city, COUNT(*), AVG(age), QUANTILE(cost, 0.25), QUANTILE(cost, 0.75) FROM visits GROUP BY city",
    "city, ward, COUNT(*) FROM visits GROUP BY city, ward",
    "city, MEDIAN(age) FROM visits GROUP BY city",
)
NAMED = (
    "COUNT(DISTINCT pid) FROM visits",
    "ward, COUNT(DISTINCT pid), COUNT(*), SUM(age), COUNT(day) FROM visits GROUP BY ward",
)
OFFERS: tuple[dict[str, Any], ...] = (
    {"epsilon": 1},
    {"epsilon": 0.1, "mechanism": "gaussian"},
    {"error": 5000, "rows": 1000},
)


def asked() -> dict[str, tuple[str, str, dict[str, Any]]]:
    """Each question under a name: the table, the SQL, the offer; the offers take turns."""
    found = {}
    for i, table in enumerate(TABLES):
        selects = SELECTS + PRIVATE_KEYS + (NAMED if "pid" in TABLES[table].values() else ())
        for j, select in enumerate(selects):
            private = "city" in select and "GROUP BY city" in select
            offer = OFFERS[0] if private or "MEDIAN" in select else OFFERS[(i + j) % len(OFFERS)]
            found[f"{table}: SELECT {select}"] = table, f"SELECT {select}", offer
    return found


def planned(table: str, sql: str, offer: dict[str, Any]) -> dict[str, str]:
    visits = {"source": ROWS, "columns": COLUMNS, **TABLES[table]}
    budget = {"epsilon": 10, "delta": Fraction(1, 10**6)}
    dataset = so.Dataset(tables={"visits": visits, "regions": REGIONS}, budget=budget)
    assert dataset.budget is not None
    meter = TwoMeterFilter(dataset.budget, dataset.reserved_delta or Fraction(0))
    plan = make_plan(parse(sql), dataset, Cost.offered(**offer), meter)
    return {
        "sql": "\n".join(statement.text() for statement in plan.statements),
        "words": plan.explain(),
        "charge": str(plan.charge),
    }


def record() -> None:
    """Write the plans of today, each text as its lines."""
    found = {}
    for name, question in asked().items():
        try:
            found[name] = {part: text.splitlines() for part, text in planned(*question).items()}
        except so.errors.InvalidInput as error:
            found[name] = {"refused": [str(error)]}
    RECORDED.write_text(json.dumps(found, indent=0) + "\n")


@pytest.mark.parametrize("name", asked())
def test_plans_are_as_recorded(name: str) -> None:
    expected = {
        part: "\n".join(lines) for part, lines in json.loads(RECORDED.read_text())[name].items()
    }
    if "refused" in expected:
        with pytest.raises(so.errors.InvalidInput) as caught:
            planned(*asked()[name])
        assert str(caught.value) == expected["refused"]
        return
    assert planned(*asked()[name]) == expected


if __name__ == "__main__":
    record()

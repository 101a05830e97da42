"""Writing a statement changes nothing in it, so that it is written without a copy, and again for people."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import sordino as so
from sordino.accounting.filters import TwoMeterFilter
from sordino.plan.cost import Cost
from sordino.plan.dialects import writer
from sordino.plan.plan import make_plan
from sordino.plan.statement import Statement
from sordino.query.front.sql import parse

ROWS = pa.table(
    {"who": [1, 2], "age": [3, 4], "cost": [0.5, 1.5], "ward": ["A", "B"], "city": ["x", "y"]}
)
COLUMNS: dict[str, Any] = {
    "age": {"type": "int", "min": 0, "max": 110},
    "cost": {"type": "float", "min": 0, "max": 100, "step": 0.5},
    "ward": {"type": "category", "values": ["A", "B"]},
    "city": {"type": "text"},
}
QUESTIONS = (
    "SELECT COUNT(*) AS n, AVG(cost) AS c FROM t WHERE age >= 65 AND city LIKE 'a%'",
    "SELECT ward, SUM(cost) AS s, MEDIAN(age) AS m, COUNT(DISTINCT age) AS d FROM t GROUP BY ward",
    "SELECT city, COUNT(*) AS n FROM t GROUP BY city",
    "SELECT SUM(CASE WHEN UPPER(city) IN ('X', 'Y') THEN 1 / (1 + age) ELSE 0 END) AS s FROM t",
    "SELECT AVG(m) AS a FROM (SELECT who, MAX(age) AS m FROM t GROUP BY who) AS p",
    "SELECT COUNT(*) AS n FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY who ORDER BY age) AS k FROM t) AS o WHERE k <= 2",
    "SELECT COUNT(*) AS n FROM (SELECT who, age FROM t UNION ALL SELECT who, age FROM t) AS u WHERE age / 2 > 3",
)


def statements(sql: str) -> tuple[Statement, ...]:
    dataset = so.Dataset(
        ROWS,
        name="t",
        unit="who",
        max_rows=3,
        columns=COLUMNS,
        budget={"epsilon": 9, "delta": 1e-6},
    )
    meter = TwoMeterFilter(dataset.budget, dataset.reserved_delta)  # type: ignore[arg-type]
    return make_plan(parse(sql), dataset, Cost.offered(epsilon=1), meter).statements


@pytest.mark.parametrize("sql", QUESTIONS)
@pytest.mark.parametrize("dialect", ["duckdb"])
def test_writing_changes_nothing(sql: str, dialect: str) -> None:
    for statement in statements(sql):
        before = statement.select.copy()
        text, lines = statement.text(dialect), statement.pretty(dialect)
        assert repr(statement.select) == repr(before)
        assert "".join(lines.split()) == "".join(text.split())
        assert len(lines.splitlines()) > 3
        statement._texts.clear()
        assert statement.text(dialect) == writer(dialect)(before) == text

"""Sordino: pure, `bias=False`; max_rows is declared, and questions by group add the other two bounds."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import pyarrow as pa
from benchmarks.suites.persons.measure import Question, measure
from benchmarks.suites.persons.settings import (
    EPSILON,
    GROUPS,
    LOWER,
    SQL,
    STEP,
    UPPER,
    Answers,
    Rows,
    Shape,
    by_group,
)

import sordino as so

COLUMNS: dict[str, dict[str, Any]] = {
    "home": {"type": "category", "values": list(GROUPS)},
    "amount": {"type": "float", "min": LOWER, "max": UPPER, "step": STEP},
}
RELEASES, SECONDS = 400, 6.0


def questions(shape: Shape, rows: Rows) -> Iterator[Question]:
    table = pa.table(dict(zip(("person", "home", "amount"), zip(*rows, strict=True), strict=True)))
    data = so.Dataset(
        table, name="t", unit="person", max_rows=shape.max_rows, columns=COLUMNS, budget=so.Budget(10**6)
    )  # fmt: skip
    with so.Session(data) as session:
        for case, sql in SQL.items():
            yield Question(case, partial(ask, session, shape, sql))


def ask(session: so.Session, shape: Shape, sql: str) -> Answers:
    if "GROUP BY" not in sql:
        value = session.sql(sql, epsilon=EPSILON, bias=False).value()
        assert isinstance(value, int | float)
        return float(value)
    per_group, groups = shape.max_rows_per_group, shape.max_groups
    answer = session.sql(
        sql, epsilon=EPSILON, bias=False, max_rows_per_group=per_group, max_groups=groups
    )
    return by_group(zip(answer["home"], answer["answer"], strict=True))


if __name__ == "__main__":
    measure(questions, RELEASES, SECONDS)

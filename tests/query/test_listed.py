"""A value that a column never has is refused before the charge, wherever it is compared."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import sordino as so
from sordino.errors import InvalidInput

COLUMNS: dict[str, dict[str, Any]] = {
    "ward": {"type": "category", "values": ["A", "B", "Intensive"]},
    "grade": {"type": "category", "values": [1, 2, 3]},
    "city": {"type": "text"},
    "age": {"type": "int", "min": 0, "max": 110},
}


@pytest.fixture
def session() -> so.Session:
    rows = pa.table(
        {"ward": ["A", "B"], "grade": [1, 2], "city": ["Bern", "Thun"], "age": [30, 40]}
    )
    return so.Session(
        so.Dataset(rows, name="visits", unit="row", columns=COLUMNS, budget=so.Budget(10, 1e-6))
    )


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) AS n FROM visits WHERE ward = 'D'",
        "SELECT COUNT(*) AS n FROM visits WHERE 'D' = ward",
        "SELECT COUNT(*) AS n FROM visits WHERE ward <> 'D'",
        "SELECT COUNT(*) AS n FROM visits WHERE ward IN ('A', 'D')",
        "SELECT COUNT(*) AS n FROM visits WHERE ward NOT IN ('A', 'D')",
        "SELECT COUNT(*) AS n FROM visits WHERE NOT (age > 5 AND ward = 'a')",
        "SELECT COUNT(*) AS n FROM visits WHERE UPPER(ward) = 'intensive'",
        "SELECT COUNT(*) AS n FROM visits WHERE grade = 4",
        "SELECT COUNT(*) AS n FROM visits WHERE grade IN (1, 2.5)",
        "SELECT ward = 'D' AS d, COUNT(*) AS n FROM visits GROUP BY ward = 'D'",
        "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward HAVING ward = 'D'",
        "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward HAVING n > 3 AND ward IN ('A', 'D')",
        "SELECT SUM(CASE WHEN ward = 'D' THEN 1 ELSE 0 END) AS n FROM visits",
        "SELECT SUM(CASE ward WHEN 'D' THEN 1 ELSE 0 END) AS n FROM visits",
        "SELECT AVG(ward = 'D') AS n FROM visits",
    ],
)
def test_unlisted_values_are_refused_and_nothing_is_spent(sql: str, session: so.Session) -> None:
    with pytest.raises(InvalidInput, match="never has this value"):
        session.sql(sql, epsilon=1)
    with pytest.raises(InvalidInput, match="never has this value"):
        session.preview(sql, epsilon=1)
    assert not session.receipts


def test_python_is_refused_too(session: so.Session) -> None:
    visits = session.table("visits")
    for condition in (so.col("ward") == "D", so.col("ward").isin(["A", "D"]), so.col("grade") != 9):
        with pytest.raises(InvalidInput, match="never has this value"):
            visits.where(condition).agg(n=so.count()).run(epsilon=1)
    with pytest.raises(InvalidInput, match="never has this value"):
        visits.group_by("ward").agg(n=so.count()).having("ward = 'D'").run(epsilon=1)


def test_the_message_names_column_value_and_what_was_meant(session: so.Session) -> None:
    with pytest.raises(InvalidInput) as caught:
        session.sql("SELECT COUNT(*) AS n FROM visits WHERE ward = 'intensiv'", epsilon=1)
    assert str(caught.value) == (
        "got ward compared with 'intensiv': ward never has this value, so that the comparison says nothing. "
        "Did you mean 'Intensive'? Its values are 'A', 'B', 'Intensive'."
    )


@pytest.mark.parametrize(
    "where",
    [
        "ward = 'A'", "ward IN ('A', 'B')", "city = 'Nowhere'", "age = 200", "grade = 1", "grade < 7", "ward < 'D'",
        "ward LIKE 'D%'", "COALESCE(ward, 'none') = 'none'", "LOWER(ward) = 'intensive'", "grade = 2.0",
        "ward IS NULL",         "CASE WHEN age > 5 THEN 'old' ELSE 'young' END = 'old'",
    ],
)  # fmt: skip
def test_what_can_be_true_is_answered(where: str, session: so.Session) -> None:
    session.preview(f"SELECT COUNT(*) AS n FROM visits WHERE {where}", epsilon=1)
    session.preview(
        "SELECT ward, grade, COUNT(*) AS n FROM visits GROUP BY ward, grade HAVING ward = 'A' OR grade = 3",
        epsilon=1,
    )

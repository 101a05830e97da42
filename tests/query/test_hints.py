"""Hints lead somewhere: what they tell to write is answered."""

from __future__ import annotations

from datetime import datetime

import pyarrow as pa
import pytest

import sordino as so
from sordino.errors import InvalidInput

WARDS = {
    "source": pa.table({"name": ["A"], "region": ["n"]}),
    "public": True,
    "key": ["name"],
    "columns": {
        "name": {"type": "category", "values": ["A", "B"]},
        "region": {"type": "category", "values": ["n", "s"]},
    },
}
VISITS = {
    "source": pa.table({"pid": [1], "ward": ["A"], "carrier": ["x"], "x": [1], "y": [2.0], "at": [datetime(2024, 1, 1)]}),
    "unit": "pid",
    "max_rows_per_group": 2,
    "max_groups": 2,
    "columns": {
        "ward": {"type": "category", "values": ["A", "B"]},
        "carrier": {"type": "text"},
        "x": {"type": "int", "min": 0, "max": 10},
        "y": {"type": "float", "min": 0, "max": 10},
        "at": {"type": "datetime", "min": "2024-01-01T00:00:00", "max": "2024-12-31T23:59:59"},
    },
}


@pytest.fixture(scope="module")
def session() -> so.Session:
    return so.Session(so.Dataset(tables={"visits": VISITS, "wards": WARDS}, budget=so.Budget(5, 1e-6)))


@pytest.mark.parametrize(
    ("refused", "told", "works"),
    [
        ("SUM(y) OVER (PARTITION BY ward) AS n FROM visits",
         "ORDER BY n DESC LIMIT 10",
         "ward, SUM(y) AS n FROM visits GROUP BY ward ORDER BY n DESC LIMIT 10"),
        ("COUNT(*) AS n FROM visits QUALIFY ROW_NUMBER() OVER (ORDER BY x) = 1", "it is public", None),
            ("AVG(CAST(y AS DECIMAL(9, 2))) AS n FROM visits", "ROUND(x, 2)", "AVG(ROUND(y, 2)) AS n FROM visits"),
            ("at::text AS d, COUNT(*) AS n FROM visits GROUP BY 1",
             "x::DATE",
             "at::DATE AS d, COUNT(*) AS n FROM visits GROUP BY 1"),
            ("AVG(LOG(x)) AS n FROM visits", "LN(x)", "AVG(LN(CLAMP(x, 1, 9))) AS n FROM visits"),
        ("COUNT(*) AS n FROM visits WHERE ward IN (SELECT name FROM wards)",
         "JOIN wards ON visits.ward = wards.name",
         "COUNT(*) AS n FROM visits JOIN wards ON visits.ward = wards.name WHERE wards.region = 'n'"),
        ("MODE(carrier) AS n FROM visits",
         "ORDER BY n DESC LIMIT 1",
         "carrier, COUNT(*) AS n FROM visits GROUP BY carrier ORDER BY n DESC LIMIT 1"),
        ("SKEWNESS(x) AS n FROM visits", "`sordino docs sql`", None),
    ],
)  # fmt: skip
def test_what_a_hint_says_works(refused: str, told: str, works: str | None, session: so.Session) -> None:
    with pytest.raises(InvalidInput) as caught:
        session.preview(f"SELECT {refused}", epsilon=1)
    assert told in caught.value.hint
    assert "docs/" not in str(caught.value)
    if works is not None:
        session.preview(f"SELECT {works}", epsilon=1)


def test_plans_and_answers_say_that_rows_without_a_person_are_left_out(session: so.Session) -> None:
    sql = "SELECT COUNT(*) AS n FROM visits"
    assert "rows without a pid name nobody and are left out" in str(session.preview(sql, epsilon=1))
    told = "Rows without a pid name nobody and are left out"
    assert any(note.startswith((told, "About")) for note in session.sql(sql, epsilon=1).notes)
    assert f"{told}." in session.sql(sql, epsilon=1, bias=False).notes
    rows = so.Dataset(pa.table({"a": [1]}), unit="row", columns={}, budget=so.Budget(1))
    with so.Session(rows) as other:
        assert not other.sql("SELECT COUNT(*) AS n FROM data", epsilon=1).notes
        assert "left out" not in str(other.preview("SELECT COUNT(*) AS n FROM data", epsilon=1))
    assert "left out" not in str(session.preview("SELECT COUNT(*) AS n FROM wards", epsilon=1))

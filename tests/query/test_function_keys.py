"""The newer functions asked through a session: public keys,
joined texts behind the gate's collation, and their sums.
"""

from __future__ import annotations

import math
from collections import Counter
from datetime import date, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

import sordino as so
from sordino.errors import InvalidInput

DAYS = [date(2024, 1, 1) + timedelta(days=3 * i) for i in range(40)]
TIMES = [datetime(2024, 1, 1) + timedelta(minutes=17 * i) for i in range(40)]
WARDS, CITIES, COSTS = (
    ["A", "B", None, "B"] * 10,
    ["Ulm", "Bonn", "ulm", None, "Köln"] * 8,
    [0.0, 1.0, 100.0, 2500.0] * 10,
)


@pytest.fixture(scope="module")
def session() -> Any:
    table = pa.table({"day": DAYS, "at": TIMES, "ward": WARDS, "city": CITIES, "cost": COSTS})
    columns: dict[str, dict[str, Any]] = {
        "day": {"type": "date", "min": "2024-01-01", "max": "2024-05-31"},
        "at": {"type": "datetime", "min": "2024-01-01T00:00:00", "max": "2024-01-01T23:59:59"},
        "ward": {"type": "category", "values": ["A", "B"]},
        "city": {"type": "text", "max_length": 10},
        "cost": {"type": "float", "min": 0, "max": 5000},
    }
    data = so.Dataset(
        table, name="visits", unit="row", columns=columns, budget={"epsilon": 10**6, "delta": 0.5}
    )
    with so.Session(data) as opened:
        yield opened


def counted(session: so.Session, key: str) -> dict[Any, int]:
    rows = (
        session.sql(f"SELECT {key} AS k, COUNT(*) AS n FROM visits GROUP BY k", epsilon=1000)
        .to_arrow()
        .to_pylist()
    )
    return {row["k"]: round(row["n"]) for row in rows}


def listed(values: list[Any], possible: list[Any]) -> dict[Any, int]:
    return {key: Counter(values)[key] for key in possible}


def test_names_of_days_and_months_are_public_keys(session: so.Session) -> None:
    names = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
    assert counted(session, "DAYNAME(day)") == listed([names[d.weekday()] for d in DAYS], names)
    months = ["January", "February", "March", "April", "May"]
    assert counted(session, "MONTHNAME(day)") == listed([months[d.month - 1] for d in DAYS], months)


def test_spans_of_time_are_public_keys(session: so.Session) -> None:
    clamped = [min(t, datetime(2024, 1, 1, 23, 59, 59)) for t in TIMES]
    starts = [datetime(2024, 1, 1, h, m) for h in range(24) for m in (0, 15, 30, 45)]
    found = [t.replace(minute=t.minute // 15 * 15, second=0) for t in clamped]
    assert counted(session, "TIME_BUCKET(INTERVAL 15 MINUTE, at)") == listed(found, starts)
    assert counted(session, "at::DATE") == {date(2024, 1, 1): 40}
    assert counted(session, "DATE_DIFF('month', day, DATE '2024-03-31')") == listed(
        [3 - d.month for d in DAYS], [-2, -1, 0, 1, 2]
    )


def test_joined_texts_are_public_where_both_lists_are(session: so.Session) -> None:
    two = [w + "-" + w for w in WARDS if w is not None]
    assert counted(session, "ward || '-' || ward") == listed(two, ["A-A", "A-B", "B-A", "B-B"])
    assert counted(session, "CONCAT('x', ward)") == {"x": 10, "xA": 10, "xB": 20}


def test_joined_texts_of_the_data_are_private_keys(session: so.Session) -> None:
    sql = "SELECT LOWER(city) || '/' || ward AS k, COUNT(*) AS n FROM visits GROUP BY k"
    rows = session.sql(sql, epsilon=1000, delta=0.1).to_arrow().to_pylist()
    pairs = zip(CITIES, WARDS, strict=True)
    assert {row["k"]: round(row["n"]) for row in rows} == Counter(
        f"{c.lower()}/{w}" for c, w in pairs if c and w
    )
    sql = "SELECT COUNT(*) AS n FROM visits WHERE city ILIKE 'U%' AND city || ward <> 'x'"
    assert round(session.sql(sql, epsilon=1000).to_arrow().to_pylist()[0]["n"]) == sum(
        c.lower() == "ulm" and w is not None for c, w in zip(CITIES, WARDS, strict=True) if c
    )


def test_sums_of_elementary_functions(session: so.Session) -> None:
    sums = "SUM(LN(CLAMP(cost, 1, 5000))) AS a, SUM(SQRT(cost)) AS b, SUM(EXP(cost / 1000)) AS c, SUM(cost ** 0.5) AS d"
    (row,) = session.sql(f"SELECT {sums} FROM visits", epsilon=10**5).to_arrow().to_pylist()
    assert row["a"] == pytest.approx(sum(math.log(max(c, 1)) for c in COSTS), abs=0.01)
    assert row["b"] == pytest.approx(sum(map(math.sqrt, COSTS)), abs=0.1)
    assert row["c"] == pytest.approx(sum(math.exp(c / 1000) for c in COSTS), abs=0.1)
    assert row["d"] == pytest.approx(row["b"], abs=0.1)
    with pytest.raises(InvalidInput, match="smallest and the largest"):
        session.preview("SELECT SUM(LN(cost)) AS a FROM visits", epsilon=1)

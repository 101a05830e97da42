"""A few questions with every aggregate, as the README asks them: do these versions of what we need work?

Run as a script by test_versions.py, in an environment that has Sordino and its requirements only; prints one line.
"""

from __future__ import annotations

import datetime as dt
import sys
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq

import sordino as so

ROWS = 3000
COLUMNS: dict[str, dict[str, Any]] = {
    "age": {"type": "int", "min": 0, "max": 110},
    "cost": {"type": "float", "min": 0, "max": 5000, "step": 0.01},
    "ward": {"type": "category", "values": ["A", "B", "C"]},
    "city": {"type": "text"},
    "smoker": {"type": "bool"},
    "day": {"type": "date", "min": dt.date(2020, 1, 1), "max": dt.date(2026, 12, 31)},
}
QUESTIONS = (
    "SELECT ward, COUNT(*) AS n, COUNT(DISTINCT pid) AS persons, AVG(cost) AS cost FROM data GROUP BY ward ORDER BY n DESC",
    "SELECT SUM(cost) AS total, AVG(age) AS mean, VARIANCE(age) AS spread, STDDEV(cost) AS deviation FROM data",
    "SELECT MEDIAN(age) AS half, QUANTILE(cost, 0.9) AS high FROM data WHERE age >= 18 AND ward IN ('A', 'B')",
    "SELECT city, COUNT(*) AS n FROM data GROUP BY city HAVING n > 10 LIMIT 3",
    "SELECT DATE_TRUNC('year', day) AS year, COUNT(*) AS n FROM data GROUP BY 1",
    "SELECT SUM(CASE WHEN smoker THEN LEAST(age, 90) ELSE ABS(age - 40) END) AS x, AVG(ROUND(cost / 7)) AS y FROM data",
    "SELECT COUNT(*) AS n FROM data WHERE LOWER(city) LIKE 'ber%' OR COALESCE(age, 0) BETWEEN 20 AND 30",
    f"SELECT SUM(LEAST({' + '.join(f'ABS(age - {i}) / {i + 1}' for i in range(40))}, 1000)) AS long FROM data",
)
"""The last one is long enough that its parts are computed once, in a lambda."""


def table() -> pa.Table:
    """Made-up rows."""
    days = [dt.date(2020, 1, 1) + dt.timedelta(days=i % 2000) for i in range(ROWS)]
    return pa.table(
        {
            "pid": [i // 2 for i in range(ROWS)],
            "age": [i * 7 % 100 for i in range(ROWS)],
            "cost": [i * 13 % 4999 + 0.5 for i in range(ROWS)],
            "ward": ["ABC"[i % 3] for i in range(ROWS)],
            "city": [("Berlin", "Rom", "Paris")[i % 3] for i in range(ROWS)],
            "smoker": [i % 4 == 0 for i in range(ROWS)],
            "day": days,
        }
    )


def main() -> None:
    """Ask everything, of rows in memory and in files, with a ledger in memory and in a file."""
    with tempfile.TemporaryDirectory() as folder:
        rows = table()
        pq.write_table(rows, Path(folder) / "data.parquet")
        pc.write_csv(rows, Path(folder) / "data.csv")
        for source in (rows, Path(folder) / "data.parquet", Path(folder) / "data.csv"):
            data = so.Dataset(
                source,
                name="data",
                unit="pid",
                max_rows_per_group=2,
                max_groups=2,
                columns=COLUMNS,
                budget=so.Budget(1000, 1e-6),
            )
            with so.Session(data, ledger=None if source is rows else f"{source}.ledger") as session:
                for question in QUESTIONS:
                    answer = session.sql(question, epsilon=5)
                    assert (
                        so.Answer.from_json(answer.to_json(), answer.receipt).rows()
                        == answer.rows()
                    ), question
                    assert str(answer)
                (row,) = session.sql("SELECT COUNT(*) AS n FROM data", epsilon=50).rows()
                assert abs(int(str(row["n"])) - ROWS) < 100
                assert session.table("data").group_by("ward").agg(n=so.count()).run(epsilon=1).names
                assert session.ledger.verify(session.ledger.anchor())
    loss = 10 * so.Laplace.calibrated(sensitivity=1, epsilon=0.1).loss(sensitivity=1)
    assert 0 < loss.epsilon(delta=1e-6) <= 1
    assert so.Gaussian.calibrated(sensitivity=1, epsilon=1, delta=1e-6).release(42) is not None
    import sordino.cli.app

    assert sordino.cli.app
    print(f"all answered on Python {sys.version_info.major}.{sys.version_info.minor}")


if __name__ == "__main__":
    main()

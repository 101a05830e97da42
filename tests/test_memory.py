"""A hundred million rows are grouped within two gigabytes: the engine spills,
and its private folder is gone afterwards.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

ROWS, PERSONS = 100_000_000, 18_000_000
ASK = """
import resource, sys
import sordino as so

cities = [f"city_{i:03d}" for i in range(100)]
columns = {"city": {"type": "category", "values": cities}}
bounds = {"unit": "user_id", "max_rows_per_group": 10, "max_groups": 3, "budget": so.Budget(10, 1e-6)}
data = so.Dataset(sys.argv[1], name="t", columns=columns, **bounds)
with so.Session(data, memory="1300MB", threads=2) as session:
    answer = session.sql("SELECT city, COUNT(*) AS n FROM t GROUP BY city", epsilon=1)
print(len(answer), sum(answer["n"]), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""


@pytest.mark.slow
@pytest.mark.alone
def test_a_hundred_million_rows_within_two_gigabytes(tmp_path: Path) -> None:
    path = tmp_path / "large.parquet"
    with duckdb.connect() as connection:
        connection.execute("SET memory_limit = '2GB'")
        connection.execute("SET preserve_insertion_order = false")
        skewed = "CAST(floor(100 * pow((hash(i + 1) % 1000003) / 1000003.0, 2)) AS INT)"
        city = f"'city_' || lpad(CAST({skewed} AS VARCHAR), 3, '0')"
        cells = f"CAST(hash(i) % {PERSONS} AS BIGINT) AS user_id, {city} AS city, (hash(i + 2) % 100001) / 100.0 AS amount"
        rows = f"SELECT {cells} FROM range({ROWS}) AS r(i)"
        connection.execute(f"COPY ({rows}) TO '{path}' (FORMAT parquet)")
    done = subprocess.run(
        [sys.executable, "-c", ASK, str(path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    groups, total, peak = (int(float(word)) for word in done.stdout.split())
    print(f"peak {peak / 1e9:.2f} GB")
    assert groups == 100
    assert abs(total - ROWS) < 0.02 * ROWS
    assert peak < 2_000_000_000

"""The questions of the suite, the declaration they are asked under, and SQL of the same shape written by hand.

Each computes what the plan computes: a person's rows are summed first and cut to 30 rows, then added up; grouped, who
has more than 30 rows in all is scaled down.
"""

import os
from typing import Any

ROWS = int(os.environ.get("SORDINO_BENCH_ROWS", "10_000_000"))
"""How many rows; fewer for a quick look."""
FEW = 50
WARDS = list("ABCDEFGH")
COLUMNS: dict[str, dict[str, Any]] = {
    "cost": {"type": "float", "min": 0, "max": 5000, "step": 0.01},
    "ward": {"type": "category", "values": WARDS},
}
QUESTIONS = {
    "count": "SELECT COUNT(*) AS n FROM visits",
    "sum": "SELECT SUM(cost) AS s FROM visits",
    "group by": "SELECT ward, COUNT(*) AS n, SUM(cost) AS s FROM visits GROUP BY ward",
}
_STEPS = "CASE WHEN cost <= 0 THEN 0 WHEN cost < 5000 THEN CAST(FLOOR(cost / 0.01 + 0.5) AS BIGINT) ELSE 500000 END"
_OWNED = "SELECT patient, {items} FROM visits WHERE patient IS NOT NULL GROUP BY patient"
BY_HAND = {
    "count": f"SELECT SUM(LEAST(n, 30)) FROM ({_OWNED.format(items='COUNT(*) AS n')}) AS s",
    "sum": f"SELECT SUM(LEAST(v, 15000000)) FROM ({_OWNED.format(items=f'SUM({_STEPS}) AS v')}) AS s",
    "group by": f"""
        WITH shares AS {{materialized}} (
            SELECT patient, ward, COUNT(*) AS n, SUM({_STEPS}) AS v FROM visits
            WHERE patient IS NOT NULL AND ward IN ({", ".join(f"'{ward}'" for ward in WARDS)}) GROUP BY patient, ward
        ), heavy AS (
            SELECT patient, FLOOR(30 * 65536 / SUM(n)) AS f, FLOOR(30 * 65536.0 * 500000 / GREATEST(SUM(v), 1)) AS g
            FROM shares GROUP BY patient HAVING SUM(n) > 30 OR SUM(v) > 15000000
        )
        SELECT ward, SUM(n * COALESCE(f, 65536)), SUM(v * LEAST(COALESCE(g, 65536), 65536))
        FROM shares LEFT JOIN heavy USING (patient) GROUP BY ward
    """,
}
MAKE = f"""
CREATE TABLE visits AS SELECT CAST(FLOOR(random() * {ROWS // 10}) AS BIGINT) AS patient, random() * 6000 AS cost,
    substr('ABCDEFGHI', 1 + CAST(FLOOR(random() * 9) AS INT), 1) AS ward FROM generate_series(1, {ROWS});
CREATE TABLE few AS SELECT * FROM visits LIMIT {FEW};
"""
"""The rows in PostgreSQL."""


def ours_beside(
    hand: dict[str, float], ours: dict[str, float], measured: dict[str, float]
) -> dict[str, float]:
    """A row of ours: a question's times, beside those of SQL by hand and of a question that also measures its bias."""
    others = {"by_hand": hand, "measured": measured}
    return ours | {
        f"{name}{end}": row[key] for name, row in others.items() for end, key in _ENDS.items()
    }


_ENDS = {"": "value", "_processor": "processor"}

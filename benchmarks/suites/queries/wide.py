"""Wide questions: many medians, many categories, many uses of them. `python -m benchmarks.suites.queries.wide`.

Prints seconds of processor time to plan and to answer, and the size of the SQL.
"""

from time import process_time
from typing import Any

import numpy as np
import pyarrow as pa

import sordino as so

ROWS = 200_000
CATEGORIES = 100_000


def session() -> so.Session:
    generator = np.random.default_rng(20_240)
    names = [f"category number {i}" for i in range(CATEGORIES)]
    table = pa.table(
        {
            "person": generator.integers(0, ROWS // 2, ROWS),
            "age": generator.integers(0, 110, ROWS),
            "category": pa.array(names).take(pa.array(generator.integers(0, CATEGORIES, ROWS))),
        }
    )
    columns: dict[str, dict[str, Any]] = {
        "age": {"type": "int", "min": 0, "max": 110},
        "category": {"type": "category", "values": names},
    }
    return so.Session(
        so.Dataset(
            table,
            name="v",
            unit="person",
            columns=columns,
            max_rows_per_group=3,
            max_groups=2,
            budget=so.Budget(10**5),
        )
    )


def questions() -> dict[str, str]:
    uses = " OR ".join(f"category = 'category number {i}'" for i in range(300))
    return {
        "40 medians": f"SELECT {', '.join(f'MEDIAN(age + {i})' for i in range(40))} FROM v",
        "160 medians": f"SELECT {', '.join(f'MEDIAN(age + {i})' for i in range(160))} FROM v",
        "100,000 categories": "SELECT category, COUNT(*) FROM v GROUP BY category",
        "300 uses of them": f"SELECT COUNT(*) FROM v WHERE {uses}",
    }


def main() -> None:
    with session() as asked:
        for name, sql in questions().items():
            start = process_time()
            plan = asked.preview(sql, epsilon=1)
            planned = process_time()
            asked.sql(sql, epsilon=1)
            seconds = f"plan {planned - start:.2f} s, answer {process_time() - planned:.2f} s"
            print(f"{name}: {seconds}, {len(plan.sql()):,} characters of SQL", flush=True)


if __name__ == "__main__":
    main()

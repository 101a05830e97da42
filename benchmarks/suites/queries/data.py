"""The tables of this suite, the same on every machine: persons with 1 to 10 rows, a hundred cities by Zipf's law.

Each row's city is drawn anew, so a person is in 4.8 cities on average and bounding to three of them takes something
away.
"""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from benchmarks.suites.queries.settings import (
    CASES,
    CITIES,
    DATA,
    ERROR_ROWS,
    MAX_ROWS,
    SMALL,
    SPEED_ROWS,
    UPPER,
    column_path,
    table_path,
    truth_path,
)

SEED = 20_240


def make(*sizes: int) -> None:
    """Write the tables that are not there yet."""
    DATA.mkdir(exist_ok=True)
    for rows in sizes:
        if not (table_path(rows).exists() and truth_path(rows).exists()):
            _make(rows)


def _make(rows: int) -> None:
    generator = np.random.default_rng([SEED, rows])
    per_person = generator.integers(1, MAX_ROWS + 1, size=rows)
    person = np.repeat(np.arange(rows, dtype=np.int64), per_person)[:rows]
    generator.shuffle(person)
    weight = 1 / np.arange(1, len(CITIES) + 1)
    city = generator.choice(len(CITIES), size=rows, p=weight / weight.sum()).astype(np.int32)
    age = generator.integers(18, 91, size=rows)
    amount = np.minimum(generator.gamma(2.0, 50.0, size=rows), UPPER)
    names = pa.DictionaryArray.from_arrays(pa.array(city), pa.array(CITIES)).cast(pa.string())
    table = pa.table({"user_id": person, "city": names, "age": age, "amount": amount})
    counts = np.bincount(city, minlength=len(CITIES)).tolist()
    exact = (rows, float(amount.sum()), float(amount.mean()), float(np.median(amount)), counts)
    amount.astype(np.float64).tofile(column_path(rows, "amount"))
    city.tofile(column_path(rows, "city"))
    pq.write_table(table, table_path(rows), row_group_size=500_000)
    truth_path(rows).write_text(json.dumps(dict(zip(CASES, exact, strict=True))))


if __name__ == "__main__":
    make(SMALL, ERROR_ROWS, *SPEED_ROWS)

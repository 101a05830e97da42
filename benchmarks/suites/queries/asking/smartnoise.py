"""SmartNoise-SQL: a pandas reader, which copies the table into SQLite when it is opened.

A person counts with ten rows in all. Its own account says that a query spends more than the epsilon it was given, so
each case is asked twice: as it is, and with as much less as makes its account say 1. It refuses MEDIAN.
"""

import warnings
from collections.abc import Iterator
from functools import partial
from time import perf_counter
from typing import Any

import pyarrow.parquet as pq
from benchmarks.suites.queries.measure import load_time
from benchmarks.suites.queries.settings import (
    DELTA,
    EPSILON,
    LOWER,
    MAX_ROWS,
    ROWS_IN_ALL,
    SQL,
    UPPER,
    Answers,
    Question,
    by_city,
    table_path,
)
from snsql import Privacy, from_df

warnings.filterwarnings("ignore")


def questions(rows: int) -> Iterator[Question]:
    frame = pq.read_table(table_path(rows)).to_pandas()
    frame["city"] = frame["city"].astype(object)
    start = perf_counter()
    reader = _reader(frame, EPSILON)
    load_time(perf_counter() - start, rows, "copy a pandas frame into SQLite")
    for case, sql in SQL.items():
        text, bounds = (
            sql.replace("FROM t", "FROM d.t"),
            ROWS_IN_ALL if case.startswith("group") else "",
        )
        try:
            charged = float(reader.get_privacy_cost(text)[0])
        except Exception:  # it cannot read the query, which asking it will say
            yield Question(case, partial(ask, reader, text), "", DELTA, bounds)
            continue
        unfair = f"spends ε = {charged:g} by its own account" if charged > EPSILON else ""
        yield Question(case, partial(ask, reader, text), "as asked", DELTA, bounds, unfair)
        if charged > EPSILON:
            less = Privacy(epsilon=EPSILON / charged, delta=DELTA)
            yield Question(
                case,
                partial(ask, reader, text, less),
                f"asked with ε = {EPSILON / charged:g}",
                DELTA,
                bounds,
            )


def _reader(frame: Any, epsilon: float) -> Any:
    table = {
        "max_ids": MAX_ROWS, "row_privacy": False, "sample_max_ids": True, "clamp_counts": False, "clamp_columns": True,
        "censor_dims": False,  # the cities are public
        "rows": len(frame),
        "user_id": {"type": "int", "private_id": True},
        "city": {"type": "string"},
        "age": {"type": "int", "lower": 0, "upper": 110},
        "amount": {"type": "float", "lower": float(LOWER), "upper": float(UPPER)},
    }  # fmt: skip
    return from_df(
        frame, privacy=Privacy(epsilon=epsilon, delta=DELTA), metadata={"": {"d": {"t": table}}}
    )


def ask(reader: Any, sql: str, privacy: Any = None) -> Answers:
    if privacy is not None:
        reader.privacy, usual = privacy, reader.privacy
    _, *rows = reader.execute(sql)
    if privacy is not None:
        reader.privacy = usual
    return by_city(rows) if len(rows[0]) == 2 else float(rows[0][0])

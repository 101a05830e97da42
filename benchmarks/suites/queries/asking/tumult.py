"""Tumult Analytics: Spark in this process, a session with an endless budget, pure releases."""

import os
import sys
from collections.abc import Iterator
from functools import partial
from time import perf_counter
from typing import Any

from benchmarks.suites.queries.measure import load_time
from benchmarks.suites.queries.settings import (
    CITIES,
    EPSILON,
    LOWER,
    MAX_GROUPS,
    MAX_ROWS,
    ROWS_IN_ALL,
    SAME_BOUNDS,
    UPPER,
    Answers,
    Question,
    by_city,
    table_path,
)

os.environ["PYSPARK_PYTHON"] = sys.executable  # its workers must find the same packages
from pyspark.sql import SparkSession
from tmlt.analytics import (
    AddRowsWithID,
    KeySet,
    MaxGroupsPerID,
    MaxRowsPerGroupPerID,
    MaxRowsPerID,
    PureDPBudget,
    QueryBuilder,
    Session,
)

OPENS = "-XX:+IgnoreUnrecognizedVMOptions " + " ".join(
    f"--add-opens=java.base/{package}=ALL-UNNAMED"
    for package in ("java.nio", "sun.nio.ch", "java.lang", "java.util")
)


def spark() -> Any:
    builder = SparkSession.builder.master("local[2]").config("spark.driver.memory", "8g")
    builder = builder.config("spark.ui.enabled", "false").config(
        "spark.sql.shuffle.partitions", "4"
    )
    session = builder.config("spark.driver.extraJavaOptions", OPENS).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def questions(rows: int) -> Iterator[Question]:
    start = perf_counter()
    frame = spark().read.parquet(str(table_path(rows)))
    session = Session.from_dataframe(
        privacy_budget=PureDPBudget(float("inf")),
        source_id="t",
        dataframe=frame,
        protected_change=AddRowsWithID("user_id"),
    )
    load_time(perf_counter() - start, rows, "start Spark and open a session")
    in_all = QueryBuilder("t").enforce(MaxRowsPerID(MAX_ROWS))
    within = (
        QueryBuilder("t")
        .enforce(MaxGroupsPerID("city", MAX_GROUPS))
        .enforce(MaxRowsPerGroupPerID("city", MAX_ROWS))
    )
    cities = KeySet.from_dict({"city": list(CITIES)})
    for case, query, bounds in (
        ("count", in_all.count(), ""),
        ("sum", in_all.sum("amount", LOWER, UPPER), ""),
        ("group-by count", within.groupby(cities).count(), SAME_BOUNDS),
        ("group-by count", in_all.groupby(cities).count(), ROWS_IN_ALL),
        ("mean", in_all.average("amount", LOWER, UPPER), ""),
        ("median", in_all.median("amount", LOWER, UPPER), ""),
    ):
        yield Question(case, partial(ask, session, query), bounds=bounds)


def ask(session: Any, query: Any) -> Answers:
    rows = session.evaluate(query, PureDPBudget(EPSILON)).collect()
    return by_city(map(tuple, rows)) if len(rows[0]) == 2 else float(rows[0][0])

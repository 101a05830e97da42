"""Qrlew: rewrites SQL so that DuckDB draws the noise; measured is rewriting and running.

It reads the bounds from a database, so a small SQLite table with the same columns stands in. It cuts off counts above
the size it is told, which is the true one. It clips the norms of persons' sums, and has no MEDIAN.
"""

import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import sqlalchemy
from benchmarks.suites.queries.settings import (
    CITIES,
    CUT_OFF,
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
from pyqrlew import Dataset

STAND_IN = 100


def questions(rows: int) -> Iterator[Question]:
    connection = duckdb.connect(config={"threads": 2})
    connection.execute(f"CREATE VIEW t AS SELECT * FROM read_parquet('{table_path(rows)}')")
    for case, sql in SQL.items():
        grouped = case.startswith("group")
        dataset = declared(rows, public_cities=grouped)
        bounds = ROWS_IN_ALL if grouped else ""
        unfair = CUT_OFF if case == "count" else ""
        yield Question(
            case, partial(ask, dataset, connection, sql), "Gaussian", DELTA, bounds, unfair
        )


def declared(rows: int, public_cities: bool) -> Any:
    """The table's bounds, and its true size in place of the stand-in's."""
    with tempfile.TemporaryDirectory() as folder:
        engine = sqlalchemy.create_engine(f"sqlite:///{Path(folder) / 'stand-in.db'}")
        with engine.begin() as connection:
            connection.execute(
                sqlalchemy.text(
                    "CREATE TABLE t (user_id BIGINT, city TEXT, age BIGINT, amount FLOAT)"
                )
            )
            values = ", ".join(
                f"({i}, '{CITIES[i]}', {18 + i % 73}, {10.0 * i})" for i in range(STAND_IN)
            )
            connection.execute(sqlalchemy.text(f"INSERT INTO t VALUES {values}"))
        usual = Dataset.__dict__["from_str"].__func__

        def sized(schema: Any, data: str, size: str) -> Any:
            return usual(schema, data, size.replace(f'"size": "{STAND_IN}"', f'"size": "{rows}"'))

        Dataset.from_str = staticmethod(sized)
        try:
            dataset = Dataset.from_database("d", engine, None, False, None)
        finally:
            Dataset.from_str = staticmethod(usual)
            engine.dispose()
    path = dataset.relations()[0][0]
    schema, name = path[-2] if len(path) > 2 else None, path[-1]
    dataset = dataset.with_range(schema, name, "amount", float(LOWER), float(UPPER)).with_range(
        schema, name, "age", 18, 90
    )
    return (
        dataset.with_possible_values(schema, name, "city", list(CITIES))
        if public_cities
        else dataset
    )


def ask(dataset: Any, connection: Any, sql: str) -> Answers:
    try:
        private = dataset.relation(sql).rewrite_with_differential_privacy(
            dataset,
            [("t", [], "user_id")],
            {"epsilon": EPSILON, "delta": DELTA},
            float(MAX_ROWS),
            1.0,
        )
        text = private.relation().to_query()
    except BaseException as error:  # a panic of its Rust core is no Exception
        raise RuntimeError(f"{type(error).__name__}: {error}") from None
    rows = connection.execute(text).fetchall()
    return by_city(rows) if len(rows[0]) == 2 else float(rows[0][0])

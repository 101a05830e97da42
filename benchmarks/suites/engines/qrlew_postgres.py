"""Qrlew on PostgreSQL: the same questions, rewritten so that the database draws the noise; rewriting and running."""

import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import sqlalchemy
from benchmarks.processor import measure_in_turn
from benchmarks.suites.engines.shapes import MAKE, QUESTIONS, ROWS, WARDS
from benchmarks.timing import row
from pyqrlew import Dataset

sys.path.insert(0, "tests/ledger")

EPSILON, DELTA, MAX_ROWS = 1.0, 1e-6, 30.0


def main() -> None:
    from postgres_server import PostgresServer  # type: ignore[import-not-found]

    server = PostgresServer()
    try:
        with server.connect() as connection:
            connection.execute("SELECT setseed(0.5)")
            connection.execute(MAKE)
            connection.execute("VACUUM ANALYZE visits")
            for name, query in QUESTIONS.items():
                with row("PostgreSQL", name, rows=ROWS) as fields:
                    call = partial(ask, declared(), connection, query)
                    fields.update(*measure_in_turn(call, runs=3, roots=(server.process,)))
    finally:
        server.close()


def declared() -> Any:
    """The table's bounds, from a small stand-in: Qrlew reads them from a database."""
    with tempfile.TemporaryDirectory() as folder:
        engine = sqlalchemy.create_engine(f"sqlite:///{Path(folder) / 'stand-in.db'}")
        with engine.begin() as connection:
            connection.execute(
                sqlalchemy.text("CREATE TABLE visits (patient BIGINT, cost FLOAT, ward TEXT)")
            )
            values = ", ".join(f"({i}, {10.0 * i}, '{WARDS[i % len(WARDS)]}')" for i in range(100))
            connection.execute(sqlalchemy.text(f"INSERT INTO visits VALUES {values}"))
        dataset = Dataset.from_database("d", engine, None, False, None)
        engine.dispose()
    path = dataset.relations()[0][0]
    schema, name = path[-2] if len(path) > 2 else None, path[-1]
    return dataset.with_range(schema, name, "cost", 0.0, 5000.0).with_possible_values(
        schema, name, "ward", WARDS
    )


def ask(dataset: Any, connection: Any, query: str) -> list[Any]:
    try:
        private = dataset.relation(query.replace(" AS n", " AS n_").replace(" AS s", " AS s_"))
        private = private.rewrite_with_differential_privacy(
            dataset,
            [("visits", [], "patient")],
            {"epsilon": EPSILON, "delta": DELTA},
            MAX_ROWS,
            1.0,
        )
        text = private.relation().to_query()
    except BaseException as error:  # a panic of its Rust core is no Exception
        raise RuntimeError(f"{type(error).__name__}: {error}") from None
    found: list[Any] = connection.execute(text).fetchall()
    return found


if __name__ == "__main__":
    main()

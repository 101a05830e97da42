"""Durable charge and answer cycles per second, beside two bare SQLite transactions with the same settings."""

import itertools
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks.suites.ledger.places import ANSWER, QUESTION, cycle, dataset, folder
from benchmarks.timing import clock_in_turn, row

from sordino.ledger.ledger import Ledger

sys.path.insert(0, "tests/ledger")


def bare(path: Path) -> Callable[[], None]:
    """Two transactions that only write: a row, then a row and an answer."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA synchronous = EXTRA")
    connection.execute("CREATE TABLE entries (sequence INTEGER PRIMARY KEY, text TEXT, hash TEXT)")
    connection.execute("CREATE TABLE answers (sequence INTEGER PRIMARY KEY, bytes BLOB)")

    def write() -> None:
        for answer in (None, ANSWER):
            connection.execute("BEGIN IMMEDIATE")
            done = connection.execute(
                "INSERT INTO entries (text, hash) VALUES (?, ?)", (QUESTION * 5, "0" * 64)
            )
            if answer is not None:
                connection.execute("INSERT INTO answers VALUES (?, ?)", (done.lastrowid, answer))
            connection.execute("COMMIT")

    return write


def main() -> None:
    from postgres_server import PostgresServer  # type: ignore[import-not-found]

    numbers = itertools.count()
    with folder() as where:
        ledgers = {
            "memory, not durable": Ledger.open(dataset(None)),
            "SQLite": Ledger.open(dataset(str(where / "a.ledger"))),
        }
        calls = [bare(where / "bare.db")]
        names = ["two bare SQLite transactions"]
        server = PostgresServer()
        try:
            ledgers["PostgreSQL"] = Ledger.open(dataset(server.address("bench"), "other.parquet"))
            for name, ledger in ledgers.items():
                names.append(name)
                calls.append(lambda ledger=ledger: cycle(ledger, next(numbers)))  # type: ignore[misc]
            timings = clock_in_turn(*calls, runs=30, budget_seconds=60)
            for name, timing in zip(names, timings, strict=True):
                with row("cycles", name) as fields:
                    fields.update(timing.rate(1))
            for ledger in ledgers.values():
                ledger.close()
        finally:
            server.close()


if __name__ == "__main__":
    main()

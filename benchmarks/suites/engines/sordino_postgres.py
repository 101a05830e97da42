"""Questions to PostgreSQL beside SQL of the same shape written by hand, and what a question costs on a tiny table."""

import sys
import warnings
from functools import partial

from benchmarks.processor import measure_in_turn
from benchmarks.suites.engines.shapes import BY_HAND, COLUMNS, MAKE, QUESTIONS, ROWS, ours_beside
from benchmarks.timing import MILLISECONDS, clock_in_turn, row

import sordino as so

sys.path.insert(0, "tests/ledger")


def main() -> None:
    from postgres_server import PostgresServer  # type: ignore[import-not-found]

    warnings.simplefilter("ignore")  # the role of the server's owner may write
    server = PostgresServer()
    try:
        with server.connect() as hand:
            hand.execute("SELECT setseed(0.5)")
            hand.execute(MAKE)
            hand.execute("VACUUM ANALYZE visits")
            for name, query in QUESTIONS.items():
                written = BY_HAND[name].format(materialized="MATERIALIZED")
                with (
                    so.Session(dataset(server.address(), "visits")) as session,
                    row("PostgreSQL", name, rows=ROWS) as fields,
                ):
                    asked = [
                        partial(session.sql, query, epsilon=1, bias=bias) for bias in (False, True)
                    ]
                    calls = [partial(hand.execute, written), *asked]
                    fields.update(
                        ours_beside(*measure_in_turn(*calls, runs=3, roots=(server.process,)))
                    )
                with (
                    so.Session(dataset(server.address(), "few")) as session,
                    row("PostgreSQL", f"{name}, fixed cost") as fields,
                ):
                    (timing,) = clock_in_turn(partial(session.sql, query, epsilon=1e-3), runs=30)
                    fields.update(timing.time(MILLISECONDS))
    finally:
        server.close()


def dataset(address: str, table: str) -> so.Dataset:
    budget = {"epsilon": 10**6, "delta": 0.01}
    return so.Dataset(
        address,
        table=table,
        name="visits",
        unit="patient",
        max_rows=30,
        columns=COLUMNS,
        budget=budget,
    )


if __name__ == "__main__":
    main()

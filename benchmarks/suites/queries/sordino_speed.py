"""Sordino beside SQL written by hand for the same bounds, turn by turn in one process, and where its time goes."""

from collections.abc import Mapping
from functools import partial
from time import perf_counter

import duckdb
from benchmarks.suites.queries import data
from benchmarks.suites.queries.asking.sordino import session
from benchmarks.suites.queries.settings import (
    DELTA,
    EPSILON,
    ERROR_ROWS,
    LOWER,
    MAX_ROWS,
    SMALL,
    SPEED_ROWS,
    SQL,
    UPPER,
    table_path,
)
from benchmarks.timing import clock, clock_in_turn, emit, row

from sordino.release import release
from sordino.session import Session

RUNS, BUDGET_SECONDS = 9, 120.0
TWO_LEVELS, ONE_LEVEL = "bounded by hand", "distinct persons"
BY_HAND: Mapping[str, tuple[str, str]] = {
    "count": (
        TWO_LEVELS,
        f"SELECT sum(least(c, {MAX_ROWS})) FROM (SELECT user_id, count(*) AS c FROM t GROUP BY user_id)",
    ),
    "sum": (
        TWO_LEVELS,
        f"SELECT sum(least(greatest(s, {MAX_ROWS * LOWER}), {MAX_ROWS * UPPER}))"
        " FROM (SELECT user_id, sum(amount) AS s FROM t GROUP BY user_id)",
    ),
    "mean": (
        TWO_LEVELS,
        f"SELECT sum(s * least(c, {MAX_ROWS}) / c) / sum(least(c, {MAX_ROWS}))"
        " FROM (SELECT user_id, sum(amount) AS s, count(*) AS c FROM t GROUP BY user_id)",
    ),
    "median": ("unbounded", "SELECT median(amount) FROM t"),
    "group-by count": (ONE_LEVEL, "SELECT city, count(DISTINCT user_id) FROM t GROUP BY city"),
}


def by_hand(rows: int) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(config={"threads": 2})
    connection.execute(f"CREATE VIEW t AS SELECT * FROM read_parquet('{table_path(rows)}')")
    return connection


def beside(opened: Session, connection: duckdb.DuckDBPyConnection, rows: int, case: str) -> None:
    """A row of each for one case: a query, and the same by hand."""
    how, sql = BY_HAND[case]
    with row("speed", case, rows=rows, delta=DELTA) as fields:
        ours, hand = clock_in_turn(
            partial(opened.sql, SQL[case], epsilon=EPSILON),
            lambda: connection.execute(sql).fetchall(),
            runs=RUNS, budget_seconds=BUDGET_SECONDS,
        )  # fmt: skip
        fields.update(ours.time(1))
        emit("speed", case, tool="DuckDB", how=how, rows=rows, **hand.time(1))


def steps(opened: Session, rows: int, case: str) -> None:
    """Rows for the steps of one query, each measured alone."""
    plan = opened.preview(SQL[case], epsilon=EPSILON)
    run = partial(map, opened._engine.run, plan.statements)
    exacts = list(run())
    with row("step", case, rows=rows) as fields:
        planning, engine, releasing = clock_in_turn(
            partial(opened.preview, SQL[case], epsilon=EPSILON),
            lambda: list(run()),
            partial(release, exacts, plan, None),
            runs=RUNS, budget_seconds=BUDGET_SECONDS / 2,
        )  # fmt: skip
        fields.update(value=planning.seconds + engine.seconds + releasing.seconds)
        fields.update(plan=planning.seconds, engine=engine.seconds, release=releasing.seconds)


def open_and_first() -> None:
    """What the first question waits for; later ones find everything in place."""
    start = perf_counter()
    opened = session(SMALL, DELTA)
    emit("first", "open a session", rows=SMALL, value=perf_counter() - start)
    for case, sql in SQL.items():
        start = perf_counter()
        opened.sql(sql, epsilon=EPSILON)
        emit("first", f"first {case}", rows=SMALL, value=perf_counter() - start)
    for case, sql in SQL.items():
        with row("fixed", case, rows=SMALL) as fields:
            fields.update(clock(partial(opened.sql, sql, epsilon=EPSILON)).time(1))
        steps(opened, SMALL, case)


data.make(SMALL, ERROR_ROWS, *SPEED_ROWS)
open_and_first()
for size in SPEED_ROWS:
    with session(size, DELTA) as opened:
        connection = by_hand(size)
        for case in SQL:
            beside(opened, connection, size, case)
        for case in SQL:
            steps(opened, size, case)
        connection.close()

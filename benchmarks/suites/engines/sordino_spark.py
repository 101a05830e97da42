"""Questions to a local Spark beside SQL of the same shape written by hand,
and what a question costs on a tiny table.
"""

from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.processor import measure_in_turn
from benchmarks.suites.engines.lake import FEW_VISITS, VISITS, make
from benchmarks.suites.engines.shapes import BY_HAND, COLUMNS, QUESTIONS, ROWS, ours_beside
from benchmarks.timing import MILLISECONDS, clock_in_turn, row

import sordino as so
from sordino.engines.spark import sessions


def main() -> None:
    make()
    hand = sessions.open_session(None)
    hand.read.parquet(str(VISITS)).createOrReplaceTempView("visits")
    for name, query in QUESTIONS.items():
        written = BY_HAND[name].format(materialized="")
        with so.Session(dataset(VISITS)) as session, row("Spark", name, rows=ROWS) as fields:
            asked = [partial(session.sql, query, epsilon=1, bias=bias) for bias in (False, True)]
            fields.update(
                ours_beside(*measure_in_turn(partial(by_hand, hand, written), *asked, runs=3))
            )
        with (
            so.Session(dataset(FEW_VISITS)) as session,
            row("Spark", f"{name}, fixed cost") as fields,
        ):
            (timing,) = clock_in_turn(partial(session.sql, query, epsilon=1e-3), runs=10)
            fields.update(timing.time(MILLISECONDS))


def by_hand(session: Any, sql: str) -> Any:
    return session.sql(sql).toArrow()


def dataset(files: Path) -> so.Dataset:
    budget = {"epsilon": 10**6, "delta": 0.01}
    return so.Dataset(
        "spark",
        files=str(files),
        name="visits",
        unit="patient",
        max_rows=30,
        columns=COLUMNS,
        budget=budget,
    )


if __name__ == "__main__":
    main()

"""Questions to a local Spark beside SQL of the same shape written by hand, and what a question costs on a tiny table."""

import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from benchmarks.suites.engines.shapes import BY_HAND, COLUMNS, FEW, QUESTIONS, ROWS
from benchmarks.timing import MILLISECONDS, clock_in_turn, row

import sordino as so
from sordino.engines.spark import sessions

PARTS = 8


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        make(place)
        hand, _ = sessions.open_session(None)
        hand.read.parquet(str(place / "visits")).createOrReplaceTempView("visits")
        for name, query in QUESTIONS.items():
            written = BY_HAND[name].format(materialized="")
            with so.Session(dataset(place / "visits")) as session, row("Spark", name, rows=ROWS) as fields:
                asked = [partial(session.sql, query, epsilon=1, bias=bias) for bias in (False, True)]
                plain, ours, measured = clock_in_turn(partial(by_hand, hand, written), *asked, runs=5, budget_seconds=240)
                fields.update(ours.time(MILLISECONDS), by_hand=plain.seconds * 1e3, measured=measured.seconds * 1e3)
            with so.Session(dataset(place / "few")) as session, row("Spark", f"{name}, fixed cost") as fields:
                (timing,) = clock_in_turn(partial(session.sql, query, epsilon=1e-3), runs=10)
                fields.update(timing.time(MILLISECONDS))


def by_hand(session: Any, sql: str) -> Any:
    return session.sql(sql).toArrow()


def make(place: Path) -> None:
    """The rows as Parquet files, and some of them as one."""
    rng = np.random.default_rng(0)
    for name, rows, parts in (("visits", ROWS, PARTS), ("few", FEW, 1)):
        (place / name).mkdir()
        for part in range(parts):
            count = rows // parts
            wards = pa.array(list("ABCDEFGHI")).take(pa.array(rng.integers(0, 9, count)))
            frame = pa.table(
                {"patient": rng.integers(0, ROWS // 10, count), "cost": rng.random(count) * 6000, "ward": wards}
            )
            pyarrow.parquet.write_table(frame, place / name / f"{part}.parquet")


def dataset(files: Path) -> so.Dataset:
    budget = {"epsilon": 10**6, "delta": 0.01}
    return so.Dataset("spark", files=str(files), name="visits", unit="patient", max_rows=30, columns=COLUMNS, budget=budget)


if __name__ == "__main__":
    main()

"""What the time of one answer tells about one person. `python -m benchmarks.suites.queries.timing_channel [ASKED]`.

Two Parquet files of a million rows differ in one person's row: in one of them it is the only one that matches. Each is
asked the same question in turn, with the engine as it is and with the optimizers on that it turns off. Prints how often
one time tells the two files apart (the area under the ROC curve: 0.5 is a guess, 1 is always), and what it costs.

Times are of the statement alone, in one thread, by the clock and by the processor: an observer sees the first, and on
an idle machine it would be near the second. The control has equal files: what it shows is chance, or the place on the
disk.
"""

from __future__ import annotations

import argparse
import math
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter, thread_time
from typing import Any
from unittest import mock

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

import sordino as so
from sordino.engines.duckdb import DuckDB, database

ROWS = 1_000_000
PERSON = 765_432
"""Whose row makes the difference."""
CITIES = ("north", "south", "east", "west", "rare")


@dataclass(frozen=True)
class Case:
    """A question, and the cells of one person that make the two files differ."""

    name: str
    question: str
    without: dict[str, Any]
    matching: dict[str, Any]


CASES = (
    Case(
        "control: equal files",
        "SELECT SUM(x) FROM v WHERE city = 'rare'",
        {"city": "north"},
        {"city": "north"},
    ),
    Case(  # no other row has this city: statistics of a row group show whether one is there
        "one row of a city",
        "SELECT SUM(x) FROM v WHERE city = 'rare'",
        {"city": "north"},
        {"city": "rare"},
    ),
    Case(  # both files have the city; the row is there in both, and a second condition tells them apart
        "one row after a filter",
        "SELECT SUM(x) FROM v WHERE city = 'rare' AND x * 2 > 150",
        {"city": "rare", "x": 60},
        {"city": "rare", "x": 90},
    ),
    Case(  # the only row that would be read further, for a column that nothing else needs
        "one row, more columns",
        "SELECT SUM(x), AVG(y), VAR(z) FROM v WHERE city = 'rare'",
        {"city": "north"},
        {"city": "rare"},
    ),
)


def table(cells: dict[str, Any]) -> pa.Table:
    """A million rows, of which one person's has these cells."""
    generator = np.random.default_rng(20_241)
    columns: dict[str, npt.NDArray[Any]] = {
        "person": np.arange(ROWS),
        "city": np.array(CITIES[:-1], object)[generator.integers(0, len(CITIES) - 1, ROWS)],
        "x": generator.integers(0, 100, ROWS),
        "y": generator.integers(0, 100, ROWS),
        "z": generator.integers(0, 100, ROWS),
    }
    for name, value in cells.items():
        columns[name][PERSON] = value
    return pa.table(columns)


def session(path: Path) -> so.Session:
    number = {"type": "int", "min": 0, "max": 100}
    columns: dict[str, dict[str, Any]] = {
        "city": {"type": "category", "values": list(CITIES)},
        "x": number,
        "y": number,
        "z": number,
    }
    return so.Session(
        so.Dataset(
            path,
            name="v",
            unit="person",
            columns=columns,
            max_rows_per_group=1,
            max_groups=1,
            budget=so.Budget(10**6),
        ),
        threads=1,
    )


@contextmanager
def optimizers(*, on: bool) -> Iterator[None]:
    """With DuckDB's own choice, or as sessions have it."""
    if not on:
        yield
        return
    settings = tuple(
        setting for setting in database._SETTINGS if not setting.startswith("disabled_optimizers")
    )
    assert len(settings) == len(database._SETTINGS) - 1
    with mock.patch.object(database, "_SETTINGS", settings):
        yield


class Stopwatch:
    """Notes how long each statement takes, by the clock and by the processor."""

    def __init__(self) -> None:
        self.taken: list[tuple[float, float]] = []
        self._run = DuckDB.run

    def __call__(self, engine: DuckDB, statement: Any) -> Any:
        clock, processor = perf_counter(), thread_time()
        found = self._run(engine, statement)
        self.taken.append((perf_counter() - clock, thread_time() - processor))
        return found


def measured(case: Case, folder: Path, asked: int, *, on: bool) -> npt.NDArray[np.float64]:
    """Seconds of statements: by file (without, matching), by question, by the clock and by the processor."""
    watch = Stopwatch()
    with ExitStack() as stack:
        stack.enter_context(optimizers(on=on))
        sessions = [
            stack.enter_context(session(folder / name))
            for name in ("without.parquet", "matching.parquet")
        ]
        stack.enter_context(
            mock.patch.object(DuckDB, "run", lambda engine, statement: watch(engine, statement))
        )
        for turn in range(asked + 5):
            for each in sessions if turn % 2 else sessions[::-1]:
                each.sql(case.question, epsilon=1)
    times = np.array(watch.taken).reshape(asked + 5, 2, 2)
    times[0::2] = times[0::2, ::-1]  # the order of the two files was turned every other time
    return np.moveaxis(times[5:], 0, 1)  # the first few fill caches


def area(without: npt.NDArray[np.float64], matching: npt.NDArray[np.float64]) -> float:
    """The chance that a time with the row is longer than one without, or shorter, whichever is more telling."""
    longer = float(
        (matching[:, None] > without[None, :]).mean()
        + 0.5 * (matching[:, None] == without[None, :]).mean()
    )
    return max(longer, 1 - longer)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "asked", nargs="?", type=int, default=200, help="how often each file is asked"
    )
    asked = parser.parse_args().asked
    # of an area where there is nothing to tell
    chance = math.sqrt((2 * asked + 1) / (12 * asked**2))
    print(
        f"{asked} answers for each file, {ROWS:,} rows; by the clock / by the processor; standard error {chance:.3f}"
    )
    for case in CASES:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            pq.write_table(table(case.without), folder / "without.parquet")
            pq.write_table(table(case.matching), folder / "matching.parquet")
            for on in (True, False):
                times = measured(case, folder, asked, on=on)
                told = " / ".join(f"{area(*times[..., i]):.2f}" for i in range(2))
                typical = " / ".join(f"{1e3 * median(times[..., i].ravel()):.1f}" for i in range(2))
                state = "optimizers on " if on else "as it is      "
                without, matching = np.median(times[..., 1], axis=1)
                more = f"with the row {1e6 * (matching - without):+.0f} us by the processor"
                print(
                    f"{case.name:24} {state}  told apart {told}   median ms {typical}   {more}",
                    flush=True,
                )


if __name__ == "__main__":
    main()

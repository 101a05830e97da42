"""Medians by themselves: nine levels at once, and how long 201 grouped medians take.

`python -m benchmarks.suites.queries.medians deciles [TRIALS]` prints errors and half-widths of nine levels at once,
`... seconds [ROWS]` asks Sordino and DuckDB's own `quantile_disc` with distinct persons in turn. How wide intervals are
beside the real errors is measured by the quantiles suite.
"""

import sys
import tempfile
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import product
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import sordino as so
from sordino.query.aggregates.quantiles import noisy_quantiles

GROUPS, ROWS_OF_PERSON, TURNS = 201, 15, 3
SHAPES: dict[str, Callable[[np.random.Generator, int], Any]] = {
    "gamma": lambda rng, rows: rng.gamma(2, 50, rows),
    "lognormal": lambda rng, rows: rng.lognormal(3, 1, rows),
    "even": lambda rng, rows: rng.uniform(0, 1000, rows),
}


def deciles(trials: int) -> Iterator[str]:
    """Nine levels at once on the same grid: the mean over levels of their errors and half-widths,
    in the data's unit.
    """
    levels = tuple(Fraction(i, 10) for i in range(1, 10))
    for rows, (name, shape) in product((1000, 100_000), SHAPES.items()):
        data = np.clip(shape(np.random.default_rng([rows, len(name)]), rows), 0, 1000)
        cells, counts = np.unique(np.rint(data * 100).astype(np.int64), return_counts=True)
        truth = np.array(
            [cells[np.searchsorted(np.cumsum(counts) * 10, i * rows)] for i in range(1, 10)]
        )
        asked: dict[str, Any] = {"positions": 100_001, "levels": levels, "rate": Fraction(1)}
        drawn = [noisy_quantiles(cells, counts, **asked) for _ in range(trials)]
        values, low, high = (
            np.array([[getattr(q, end) for q in one] for one in drawn])
            for end in ("value", "low", "high")
        )
        errors, halves = np.abs(values - truth) / 100, (high - low) / 200
        held = np.mean(((low <= truth) & (truth <= high)).all(axis=1))
        ratio = median(
            (halves.mean(axis=0) / np.maximum(np.quantile(errors, 0.95, axis=0), 0.01)).tolist()
        )
        yield (
            f"{rows:,} rows, {name}: rmse {np.sqrt((errors**2).mean(axis=0)).mean():.4g}, half-width {halves.mean():.4g} "
            f"({ratio:.2f} times the 95 % error), all nine held {held:.3f}"
        )


def seconds(rows: int) -> Iterator[str]:
    """Each in turn, the best of some; both read one Parquet file with two threads."""
    rng = np.random.default_rng(20_240)
    table = {
        "person": rng.integers(0, rows // ROWS_OF_PERSON, rows),
        "zone": np.minimum(rng.zipf(1.3, rows), GROUPS).astype(np.int64),
        "amount": np.round(np.minimum(rng.gamma(2, 10, rows), 500), 2),
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trips.parquet"
        pq.write_table(pa.table(table), path, row_group_size=500_000)
        del table
        columns: dict[str, dict[str, Any]] = {
            "zone": {"type": "int", "min": 1, "max": GROUPS},
            "amount": {"type": "float", "min": 0, "max": 500, "step": 0.01},
        }
        data = so.Dataset(
            path,
            name="trips",
            unit="person",
            max_rows=10,
            max_groups=5,
            columns=columns,
            budget=so.Budget(10**6),
        )
        sql = f"SELECT zone, quantile_disc(amount, 0.5), COUNT(DISTINCT person) FROM '{path}' GROUP BY zone"
        with so.Session(data, threads=2, memory="6GB") as session, duckdb.connect() as own:
            own.execute(
                "SET threads = 2; SET memory_limit = '6GB'; SET preserve_insertion_order = false"
            )
            asked: dict[str, Callable[[], object]] = {
                "DuckDB, quantile_disc and distinct persons": lambda: own.execute(sql).fetchall(),
                "Sordino, medians": lambda: session.sql(
                    "SELECT zone, MEDIAN(amount) FROM trips GROUP BY zone", epsilon=1
                ),
                "Sordino, means": lambda: session.sql(
                    "SELECT zone, AVG(amount) FROM trips GROUP BY zone", epsilon=1
                ),
            }
            times: dict[str, list[float]] = {name: [] for name in asked}
            for _ in range(TURNS):
                for name, ask in asked.items():
                    start = perf_counter()
                    ask()
                    times[name].append(perf_counter() - start)
            first = min(times["DuckDB, quantile_disc and distinct persons"])
            for name, taken in times.items():
                yield f"{rows:,} rows, {name}: {min(taken):.2f} s ({min(taken) / first:.2f}x)"


if __name__ == "__main__":
    what, *more = sys.argv[1:] or ["deciles"]
    asked = {"deciles": (deciles, 200), "seconds": (seconds, 1_500_000)}
    of, usual = asked[what]
    for line in of(int(more[0]) if more else usual):
        print(line, flush=True)

"""OpenDP: queries on a lazy Polars frame, persons by identifier.

Its noise on a count or a sum is Laplace, so releases are pure; a mean is a noisy sum over a noisy count, half of
epsilon each. Of a person's cities it keeps the first three by name: a sample of them, its default, fails in Polars
("multiple fields with name 'city'").
"""

import warnings
from collections.abc import Iterator
from functools import partial
from typing import Any

import opendp.prelude as dp
import polars as pl
from benchmarks.suites.queries.settings import (
    CITIES,
    DELTA,
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

# counts are cut off at 0, which none of these comes near
warnings.filterwarnings("ignore", category=FutureWarning)
dp.enable_features("contrib", "honest-but-curious")
CANDIDATES = [i / 100 for i in range(100 * LOWER, 100 * UPPER + 1)]
"""Of the median: Sordino's grid."""


def questions(rows: int) -> Iterator[Question]:
    for case in ("count", "sum", "mean", "median"):
        yield Question(case, partial(ask, rows, case))
    for bounds in (SAME_BOUNDS, ROWS_IN_ALL):
        yield Question("group-by count", partial(ask_by_city, rows, bounds), bounds=bounds)


def query(rows: int, *margins: Any, delta: float = 0.0) -> Any:
    """A new compositor with one query; the public bound on the table's length is twice the true one."""
    context = dp.Context.compositor(
        data=pl.scan_parquet(table_path(rows)),
        privacy_unit=dp.unit_of(contributions=1, identifier=pl.col("user_id")),
        privacy_loss=dp.loss_of(epsilon=EPSILON, delta=delta)
        if delta
        else dp.loss_of(epsilon=EPSILON),
        split_evenly_over=1,
        margins=[dp.polars.Margin(max_length=2 * rows), *margins],
    )
    return context.query()


def ask(rows: int, case: str) -> float:
    amount: Any = pl.col("amount").fill_nan(0.0).fill_null(0.0)  # `.dp` is added by OpenDP
    total = amount.dp.sum((float(LOWER), float(UPPER)))
    released = {"count": [dp.len()], "sum": [total], "mean": [total, dp.len()]}
    outputs = [amount.dp.median(CANDIDATES)] if case == "median" else released[case]
    answer = query(rows).truncate_per_group(MAX_ROWS).select(*outputs).release().collect().row(0)
    return float(answer[0] / answer[1]) if case == "mean" else float(answer[0])


def ask_by_city(rows: int, bounds: str) -> Answers:
    # The delta pays for finding keys; joining public keys makes it unused, but the query wants to know one.
    margin = dp.polars.Margin(by=["city"], max_length=2 * rows, max_groups=2 * len(CITIES))
    asked = query(rows, margin, delta=DELTA)
    if bounds == SAME_BOUNDS:
        asked = asked.truncate_num_groups(MAX_GROUPS, by=["city"], keep="first").truncate_per_group(
            MAX_ROWS, by=["city"]
        )
    else:
        asked = asked.truncate_per_group(MAX_ROWS)
    counts = asked.group_by("city").agg(dp.len()).with_keys(pl.LazyFrame({"city": list(CITIES)}))
    return by_city(counts.release().collect().rows())

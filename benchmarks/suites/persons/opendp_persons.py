"""OpenDP: queries on a Polars frame, persons by identifier, Laplace noise; a mean is a noisy sum over a noisy count.

By group a person counts with so many rows in all, its better way here: with rows in each group the bounds multiply.
"""

import warnings
from collections.abc import Iterator
from functools import partial
from typing import Any

import opendp.prelude as dp
import polars as pl
from benchmarks.suites.persons.measure import Question, measure
from benchmarks.suites.persons.settings import (
    CASES,
    DELTA,
    EPSILON,
    GROUPS,
    LOWER,
    UPPER,
    Answers,
    Rows,
    Shape,
    by_group,
)

# counts are cut off at 0, which none of these comes near
warnings.filterwarnings("ignore", category=FutureWarning)
dp.enable_features("contrib", "honest-but-curious")
CANDIDATES = [i / 100 for i in range(100 * LOWER, 100 * UPPER + 1)]
"""Of the median: Sordino's grid."""
AMOUNT: Any = pl.col("amount").fill_nan(0.0).fill_null(0.0)  # `.dp` is added by OpenDP
TOTAL = AMOUNT.dp.sum((float(LOWER), float(UPPER)))
OUTPUTS = {
    "count": [dp.len()],
    "sum": [TOTAL],
    "mean": [TOTAL, dp.len()],
    "median": [AMOUNT.dp.median(CANDIDATES)],
}


def questions(shape: Shape, rows: Rows) -> Iterator[Question]:
    frame = pl.LazyFrame(rows, schema=["person", "home", "amount"], orient="row")
    for case in CASES:
        measurement = made(frame, shape, case, len(rows))  # slow, and the same for each release
        yield Question(case, partial(ask, measurement, frame, case))


def made(frame: Any, shape: Shape, case: str, size: int) -> Any:
    """What releases one answer; the public bound on the table's length is twice the true one."""
    grouped = case.endswith("by group")
    margins = [dp.polars.Margin(max_length=2 * size)]
    if grouped:
        margins.append(
            dp.polars.Margin(by=["home"], max_length=2 * size, max_groups=2 * len(GROUPS))
        )
    context = dp.Context.compositor(
        data=frame,
        privacy_unit=dp.unit_of(contributions=1, identifier=pl.col("person")),
        # By group a delta pays for finding keys; public keys make it unused, but the query wants to know one.
        privacy_loss=dp.loss_of(epsilon=EPSILON, delta=DELTA)
        if grouped
        else dp.loss_of(epsilon=EPSILON),
        split_evenly_over=1,
        margins=margins,
    )
    bounded = context.query().truncate_per_group(shape.max_rows)
    if not grouped:
        return bounded.select(*OUTPUTS[case]).resolve()
    (output,) = OUTPUTS[case.split()[0]]
    return (
        bounded.group_by("home")
        .agg(output)
        .with_keys(pl.LazyFrame({"home": list(GROUPS)}))
        .resolve()
    )


def ask(measurement: Any, frame: Any, case: str) -> Answers:
    rows = measurement(frame).collect().rows()
    if case.endswith("by group"):
        return by_group(rows)
    return float(rows[0][0] / rows[0][1]) if case == "mean" else float(rows[0][0])


if __name__ == "__main__":
    measure(questions)

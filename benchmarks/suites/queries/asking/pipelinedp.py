"""PipelineDP: the local backend over Python tuples; public partitions, so its Laplace noise is pure."""

from collections.abc import Iterator
from functools import partial
from operator import itemgetter
from typing import Any

import pipeline_dp as pdp
import pyarrow.parquet as pq
from benchmarks.suites.queries.settings import (
    CITIES,
    DELTA,
    EPSILON,
    LOWER,
    MAX_GROUPS,
    MAX_ROWS,
    SAME_BOUNDS,
    UPPER,
    Answers,
    Question,
    by_city,
    table_path,
)

Rows = list[tuple[int, str, float]]
METRICS = {
    "count": pdp.Metrics.COUNT,
    "sum": pdp.Metrics.SUM,
    "mean": pdp.Metrics.MEAN,
    "median": pdp.Metrics.PERCENTILE(50),
    "group-by count": pdp.Metrics.COUNT,
}


def questions(rows: int) -> Iterator[Question]:
    columns = pq.read_table(table_path(rows), columns=["user_id", "city", "amount"])
    lines: Rows = list(zip(*(columns.column(i).to_pylist() for i in range(3)), strict=True))
    for noise, how, delta in (
        (pdp.NoiseKind.LAPLACE, "Laplace", 0.0),
        (pdp.NoiseKind.GAUSSIAN, "Gaussian", DELTA),
    ):
        for case in METRICS:
            bounds = SAME_BOUNDS if case.startswith("group") else ""
            yield Question(case, partial(ask, lines, case, noise), how, delta, bounds=bounds)


def ask(lines: Rows, case: str, noise: Any) -> Answers:
    grouped = case.startswith("group")
    accountant = pdp.NaiveBudgetAccountant(total_epsilon=EPSILON, total_delta=DELTA)
    params = pdp.AggregateParams(
        noise_kind=noise,
        metrics=[METRICS[case]],
        max_partitions_contributed=MAX_GROUPS if grouped else 1,
        max_contributions_per_partition=MAX_ROWS,
        min_value=float(LOWER),
        max_value=float(UPPER),
    )
    extractors = pdp.DataExtractors(
        privacy_id_extractor=itemgetter(0),
        partition_extractor=itemgetter(1) if grouped else (lambda _: "all"),
        value_extractor=itemgetter(2),
    )
    engine = pdp.DPEngine(accountant, pdp.LocalBackend())
    partitions = list(CITIES) if grouped else ["all"]
    released = engine.aggregate(lines, params, extractors, public_partitions=partitions)
    accountant.compute_budgets()
    found = [(key, float(metrics[0])) for key, metrics in released]
    return by_city(found) if grouped else found[0][1]

"""PipelineDP: the local backend over Python tuples, public partitions, Laplace noise, so releases are pure.

By group a person counts with so many rows in all: with rows in each group the bounds multiply.
"""

from collections.abc import Iterator
from functools import partial
from operator import itemgetter
from typing import Any

import pipeline_dp as pdp
from benchmarks.suites.persons.measure import Question, measure
from benchmarks.suites.persons.settings import (
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

SECONDS = 12.0
METRICS = {
    "count": pdp.Metrics.COUNT,
    "sum": pdp.Metrics.SUM,
    "mean": pdp.Metrics.MEAN,
    "median": pdp.Metrics.PERCENTILE(50),
}


def questions(shape: Shape, rows: Rows) -> Iterator[Question]:
    whole = {"max_partitions_contributed": 1, "max_contributions_per_partition": shape.max_rows}
    for case, metric in METRICS.items():
        yield Question(case, partial(ask, rows, metric, whole, grouped=False))
    for case in ("count", "sum"):
        in_all = {"max_contributions": shape.max_rows}
        yield Question(f"{case} by group", partial(ask, rows, METRICS[case], in_all, grouped=True))


def ask(rows: Rows, metric: Any, bounds: dict[str, int], grouped: bool) -> Answers:
    accountant = pdp.NaiveBudgetAccountant(total_epsilon=EPSILON, total_delta=DELTA)
    params = pdp.AggregateParams(
        noise_kind=pdp.NoiseKind.LAPLACE,
        metrics=[metric],
        min_value=float(LOWER),
        max_value=float(UPPER),
        **bounds,
    )
    extractors = pdp.DataExtractors(
        privacy_id_extractor=itemgetter(0),
        partition_extractor=itemgetter(1) if grouped else (lambda _: "all"),
        value_extractor=itemgetter(2),
    )
    engine = pdp.DPEngine(accountant, pdp.LocalBackend())
    released = engine.aggregate(
        rows, params, extractors, public_partitions=list(GROUPS) if grouped else ["all"]
    )
    accountant.compute_budgets()
    found = [(key, float(metrics[0])) for key, metrics in released]
    return by_group(found) if grouped else found[0][1]


if __name__ == "__main__":
    measure(questions, seconds=SECONDS)

"""PipelineDP on a local Spark: the same questions over an RDD of rows, with public partitions."""

from functools import partial
from operator import itemgetter
from typing import Any

import pipeline_dp as pdp
from benchmarks.processor import measure_in_turn
from benchmarks.suites.engines.lake import FEW_VISITS, VISITS, make, peers_spark
from benchmarks.suites.engines.shapes import ROWS, WARDS
from benchmarks.timing import row

COUNT, SUM = pdp.Metrics.COUNT, pdp.Metrics.SUM


def main() -> None:
    make()
    spark = peers_spark()
    frame, few = (
        spark.read.parquet(str(place)).select("patient", "ward", "cost")
        for place in (VISITS, FEW_VISITS)
    )
    ask(spark.sparkContext, few, [COUNT, SUM], WARDS)
    for name, metrics, keys in (
        ("count", [COUNT], ["all"]),
        ("sum", [SUM], ["all"]),
        ("group by", [COUNT, SUM], WARDS),
    ):
        with row("Spark", name, rows=ROWS) as fields:
            call = partial(ask, spark.sparkContext, frame, metrics, keys)
            fields.update(*measure_in_turn(call, runs=1))


def everything(_: Any) -> str:
    return "all"


def ask(context: Any, frame: Any, metrics: list[Any], keys: list[str]) -> list[Any]:
    accountant = pdp.NaiveBudgetAccountant(total_epsilon=1.0, total_delta=1e-6)
    params = pdp.AggregateParams(
        noise_kind=pdp.NoiseKind.LAPLACE,
        metrics=metrics,
        max_partitions_contributed=len(keys),
        max_contributions_per_partition=30,
        min_value=0.0,
        max_value=5000.0,
    )
    extractors = pdp.DataExtractors(
        privacy_id_extractor=itemgetter(0),
        partition_extractor=itemgetter(1) if len(keys) > 1 else everything,
        value_extractor=itemgetter(2),
    )
    engine = pdp.DPEngine(accountant, pdp.SparkRDDBackend(context))
    released = engine.aggregate(frame.rdd, params, extractors, public_partitions=keys)
    accountant.compute_budgets()
    found: list[Any] = released.collect()
    return found


if __name__ == "__main__":
    main()

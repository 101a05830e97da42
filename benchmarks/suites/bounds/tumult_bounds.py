"""Tumult Analytics: `get_bounds` with half of epsilon, then a sum or an average with the other half."""

import os
import sys
from collections.abc import Callable

from benchmarks.suites.bounds.measure import measure
from benchmarks.suites.bounds.settings import EPSILON, SIZES, TUMULT_RELEASES

os.environ["PYSPARK_PYTHON"] = sys.executable  # its workers must find the same packages
from benchmarks.suites.queries.asking.tumult import spark
from tmlt.analytics import AddOneRow, PureDPBudget, QueryBuilder, Session

HALF = PureDPBudget(EPSILON / 2)


def opened(case: str, data: list[float]) -> Callable[[], float]:
    frame = spark().createDataFrame([(x,) for x in data], ["x"]).cache()
    session = Session.from_dataframe(
        privacy_budget=PureDPBudget(float("inf")),
        source_id="t",
        dataframe=frame,
        protected_change=AddOneRow(),
    )

    def ask() -> float:
        low, high = sorted(session.evaluate(QueryBuilder("t").get_bounds("x"), HALF).collect()[0])
        asked = QueryBuilder("t")
        query = asked.sum("x", low, high) if case == "sum" else asked.average("x", low, high)
        return float(session.evaluate(query, HALF).collect()[0][0])

    return ask


if __name__ == "__main__":
    measure(opened, TUMULT_RELEASES, SIZES[1:])

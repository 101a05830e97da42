"""Tumult Analytics on a local Spark: the same questions, persons bounded to the same number of rows."""

from functools import partial
from typing import Any

from benchmarks.processor import measure_in_turn
from benchmarks.suites.engines.lake import VISITS, make, peers_spark
from benchmarks.suites.engines.shapes import ROWS, WARDS
from benchmarks.timing import row
from tmlt.analytics import AddRowsWithID, KeySet, MaxRowsPerID, PureDPBudget, QueryBuilder, Session


def main() -> None:
    make()
    frame = peers_spark().read.parquet(str(VISITS))
    session = Session.from_dataframe(
        privacy_budget=PureDPBudget(float("inf")),
        source_id="t",
        dataframe=frame,
        protected_change=AddRowsWithID("patient"),
    )
    rows = QueryBuilder("t").enforce(MaxRowsPerID(30))
    wards = rows.groupby(KeySet.from_dict({"ward": WARDS}))
    asked = {
        "count": [rows.count()],
        "sum": [rows.sum("cost", 0, 5000)],
        "group by": [wards.count(), wards.sum("cost", 0, 5000)],
    }
    peers_spark().sql("SELECT COUNT(*) FROM range(1000)").collect()
    for name, queries in asked.items():
        with row("Spark", name, rows=ROWS) as fields:
            fields.update(*measure_in_turn(partial(ask, session, queries), runs=1))


def ask(session: Any, queries: list[Any]) -> list[Any]:
    return [
        session.evaluate(query, PureDPBudget(1.0 / len(queries))).collect() for query in queries
    ]


if __name__ == "__main__":
    main()

"""Tumult Analytics: Spark in this process, pure releases; seconds for an answer, so there are few of them.

By group a person counts with so many rows in all: with rows in each group the bounds multiply.
"""

import os
import sys
from collections.abc import Iterator
from functools import partial
from typing import Any

from benchmarks.suites.persons.measure import Question, measure
from benchmarks.suites.persons.settings import (
    EPSILON,
    GROUPS,
    LOWER,
    UPPER,
    Answers,
    Rows,
    Shape,
    by_group,
)

os.environ["PYSPARK_PYTHON"] = sys.executable  # its workers must find the same packages
from benchmarks.suites.queries.asking.tumult import spark
from tmlt.analytics import (
    AddRowsWithID,
    KeySet,
    MaxRowsPerID,
    PureDPBudget,
    QueryBuilder,
    Session,
)

SECONDS = 12.0


def questions(shape: Shape, rows: Rows) -> Iterator[Question]:
    frame = spark().createDataFrame(rows, ["person", "home", "amount"]).cache()
    session = Session.from_dataframe(
        privacy_budget=PureDPBudget(float("inf")),
        source_id="t",
        dataframe=frame,
        protected_change=AddRowsWithID("person"),
    )
    in_all = QueryBuilder("t").enforce(MaxRowsPerID(shape.max_rows))
    keys = KeySet.from_dict({"home": list(GROUPS)})
    amount = ("amount", LOWER, UPPER)
    for case, query in (
        ("count", in_all.count()),
        ("sum", in_all.sum(*amount)),
        ("mean", in_all.average(*amount)),
        ("median", in_all.median(*amount)),
        ("count by group", in_all.groupby(keys).count()),
        ("sum by group", in_all.groupby(keys).sum(*amount)),
    ):
        yield Question(case, partial(ask, session, query))


def ask(session: Any, query: Any) -> Answers:
    rows = session.evaluate(query, PureDPBudget(EPSILON)).collect()
    return by_group(map(tuple, rows)) if len(rows[0]) == 2 else float(rows[0][0])


if __name__ == "__main__":
    measure(questions, seconds=SECONDS)

"""SmartNoise-SQL: a pandas reader; a person counts with so many rows in all, which it samples. It refuses MEDIAN.

Its own account says that some queries spend more than the epsilon they were given; those are asked with as much less as
makes its account say 1.
"""

import warnings
from collections.abc import Iterator
from functools import partial
from typing import Any

import pandas as pd
from benchmarks.suites.persons.measure import Question, measure
from benchmarks.suites.persons.settings import (
    DELTA,
    EPSILON,
    LOWER,
    SQL,
    UPPER,
    Answers,
    Rows,
    Shape,
    by_group,
)
from snsql import Privacy, from_df

warnings.filterwarnings("ignore")
SECONDS = 8.0


def questions(shape: Shape, rows: Rows) -> Iterator[Question]:
    frame = pd.DataFrame(rows, columns=["person", "home", "amount"])
    frame["home"] = frame["home"].astype(object)
    for case, sql in SQL.items():
        if case == "median":
            continue
        text = sql.replace("FROM t", "FROM d.t")
        charged = float(reader(frame, shape, EPSILON).get_privacy_cost(text)[0])
        less = min(EPSILON, EPSILON / charged)
        yield Question(case, partial(ask, reader(frame, shape, less), text))


def reader(frame: Any, shape: Shape, epsilon: float) -> Any:
    table = {
        "max_ids": shape.max_rows, "row_privacy": False, "sample_max_ids": True,
        "clamp_counts": False, "clamp_columns": True,
        "censor_dims": False,  # the groups are public
        "rows": len(frame),
        "person": {"type": "int", "private_id": True},
        "home": {"type": "string"},
        "amount": {"type": "float", "lower": float(LOWER), "upper": float(UPPER)},
    }  # fmt: skip
    return from_df(
        frame, privacy=Privacy(epsilon=epsilon, delta=DELTA), metadata={"": {"d": {"t": table}}}
    )


def ask(asked: Any, sql: str) -> Answers:
    _, *rows = asked.execute(sql)
    return by_group(rows) if len(rows[0]) == 2 else float(rows[0][0])


if __name__ == "__main__":
    measure(questions, seconds=SECONDS)

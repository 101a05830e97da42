"""diffprivlib: statistics of arrays in which each row is a person; a tenth of epsilon protects a person with ten rows.

The bound of ten rows is taken on trust. It cuts off counts above the number of rows.
"""

import warnings
from collections.abc import Iterator

import numpy as np
from benchmarks.suites.queries.settings import (
    CITIES,
    CUT_OFF,
    EPSILON,
    LOWER,
    MAX_ROWS,
    ROWS_IN_ALL,
    UPPER,
    Question,
    column_path,
)
from diffprivlib import tools

warnings.filterwarnings("ignore")
PART = EPSILON / MAX_ROWS


def questions(rows: int) -> Iterator[Question]:
    amounts = np.fromfile(column_path(rows, "amount"), dtype=np.float64)
    cities = np.fromfile(column_path(rows, "city"), dtype=np.int32)
    within = {"epsilon": PART, "bounds": (LOWER, UPPER)}
    ends = (-0.5, len(CITIES) - 0.5)

    def by_city() -> list[float]:
        counts, _ = tools.histogram(cities, epsilon=PART, bins=len(CITIES), range=ends)
        return [float(count) for count in counts]

    how = "by group privacy"
    yield Question(
        "count",
        lambda: float(tools.count_nonzero(amounts >= LOWER, epsilon=PART)),
        how,
        unfair=CUT_OFF,
    )
    yield Question("sum", lambda: float(tools.sum(amounts, **within)), how)
    yield Question("mean", lambda: float(tools.mean(amounts, **within)), how)
    yield Question("median", lambda: float(tools.median(amounts, **within)), how)
    yield Question("group-by count", by_city, how, bounds=ROWS_IN_ALL)

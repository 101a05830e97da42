"""PyDP: algorithms on Python lists, without tables and persons; the bounds are taken on trust."""

from array import array
from collections.abc import Iterator
from functools import partial
from typing import Any

from benchmarks.suites.queries.settings import (
    EPSILON,
    LOWER,
    MAX_ROWS,
    UPPER,
    Question,
    column_path,
)
from pydp.algorithms.laplacian import BoundedMean, BoundedSum, Count, Median


def questions(rows: int) -> Iterator[Question]:
    amounts = array("d")
    amounts.frombytes(column_path(rows, "amount").read_bytes())
    cells = amounts.tolist()
    within = {"lower_bound": LOWER, "upper_bound": UPPER}
    for case, algorithm, bounds in (
        ("count", Count, {}),
        ("sum", BoundedSum, within),
        ("mean", BoundedMean, within),
        ("median", Median, within),
    ):
        yield Question(case, partial(ask, algorithm, bounds, cells))


def ask(algorithm: Any, bounds: dict[str, int], cells: list[float]) -> float:
    release = algorithm(
        epsilon=EPSILON, l0_sensitivity=1, linf_sensitivity=MAX_ROWS, dtype="float", **bounds
    )
    return float(release.quick_result(cells))

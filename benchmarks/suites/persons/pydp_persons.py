"""PyDP (Google's library) trusts that persons are bounded, so this script samples their rows before each release."""

import random
from collections.abc import Iterator
from functools import partial
from itertools import groupby
from operator import itemgetter
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
from pydp.algorithms.laplacian import BoundedMean, BoundedSum, Count, Median

WITHIN = {"lower_bound": LOWER, "upper_bound": UPPER}
ALGORITHMS: dict[str, tuple[Any, dict[str, int]]] = {
    "count": (Count, {}),
    "sum": (BoundedSum, WITHIN),
    "mean": (BoundedMean, WITHIN),
    "median": (Median, WITHIN),
}


def questions(shape: Shape, rows: Rows) -> Iterator[Question]:
    persons = [list(own) for _, own in groupby(sorted(rows), itemgetter(0))]
    for case in ALGORITHMS:
        yield Question(case, partial(ask, persons, shape, case))
    for case in ("count", "sum"):
        yield Question(f"{case} by group", partial(ask_by_group, persons, shape, case))


def ask(persons: list[Rows], shape: Shape, case: str) -> float:
    kept = [value for own in persons for *_, value in _sample(own, shape.max_rows)]
    return _release(case, kept, 1, shape.max_rows)


def ask_by_group(persons: list[Rows], shape: Shape, case: str) -> Answers:
    kept: dict[str, list[float]] = {group: [] for group in GROUPS}
    for own in persons:
        homes = {
            home: list(at) for home, at in groupby(sorted(own, key=itemgetter(1)), itemgetter(1))
        }
        for home in _sample(list(homes), shape.max_groups):
            kept[home] += [value for *_, value in _sample(homes[home], shape.max_rows_per_group)]
    each = (shape.max_groups, shape.max_rows_per_group)
    return by_group((home, _release(case, values, *each)) for home, values in kept.items())


def _sample(things: list[Any], most: int) -> list[Any]:
    return things if len(things) <= most else random.sample(things, most)


def _release(case: str, values: list[float], groups: int, rows: int) -> float:
    algorithm, bounds = ALGORITHMS[case]
    release = algorithm(
        epsilon=EPSILON, l0_sensitivity=groups, linf_sensitivity=rows, dtype="float", **bounds
    )
    return float(release.quick_result(values))


if __name__ == "__main__":
    measure(questions)

"""Asks one tool every case about every shape, and prints a row with the error of each."""

from collections.abc import Callable, Iterable
from math import sqrt
from statistics import fmean, variance
from time import perf_counter
from typing import NamedTuple, TypeAlias

from benchmarks.suites.persons.settings import CASES, SHAPES, Answers, Rows, Shape, truth
from benchmarks.timing import row

RELEASES, SECONDS, FEWEST = 100, 5.0, 4


class Question(NamedTuple):
    """One case put to one tool."""

    case: str
    ask: Callable[[], Answers]


Asking: TypeAlias = Callable[[Shape, Rows], Iterable[Question]]


def measure(asking: Asking, releases: int = RELEASES, seconds: float = SECONDS) -> None:
    """So many releases of each question, or as many as fit into these seconds."""
    for shape in SHAPES:
        rows = shape.rows()
        truths = {case: truth(case, rows) for case in CASES}
        for question in asking(shape, rows):
            with row("error", question.case, shape=shape.name) as fields:
                fields.update(_errors(question.ask, truths[question.case], releases, seconds))


def _errors(
    ask: Callable[[], Answers], exact: Answers, releases: int, seconds: float
) -> dict[str, float]:
    """Root mean squares over releases, and over groups if there are: of the error, its constant part and the rest."""
    start = perf_counter()
    errors: list[list[float]] = []
    while len(errors) < releases and (len(errors) < FEWEST or perf_counter() - start < seconds):
        errors.append([a - b for a, b in zip(_listed(ask()), _listed(exact), strict=True)])
    by_number = list(zip(*errors, strict=True))
    return {
        "rmse": sqrt(fmean(error**2 for release in errors for error in release)),
        "bias": sqrt(fmean(fmean(one) ** 2 for one in by_number)),
        "noise": sqrt(fmean(variance(one) for one in by_number)),
        "releases": len(errors),
        "numbers": len(by_number),
        "seconds": round((perf_counter() - start) / len(errors), 4),
    }


def _listed(answers: Answers) -> list[float]:
    return answers if isinstance(answers, list) else [answers]

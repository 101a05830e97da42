"""How long a tool's questions take and how far its answers are off; standard library only.

A script has ten minutes. What is not done by then becomes a row that says so.
"""

import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from math import sqrt
from statistics import fmean, median
from time import perf_counter
from types import FrameType

from benchmarks.suites.queries.settings import (
    DELTA,
    ERROR_ROWS,
    RELEASES,
    SCRIPT_SECONDS,
    Answers,
    Asking,
    Question,
    truth_path,
)
from benchmarks.timing import emit, row

RUNS, PATIENCE_SECONDS = 7, 20.0


class OutOfTime(Exception):
    """The time of this script is up."""


def measure_speed(asking: Asking, *sizes: int) -> None:
    """Rows with the median time of each case at (1, 1e-6); a first run warms up, and counts if it is slow."""
    deadline = perf_counter() + SCRIPT_SECONDS
    for rows in sizes:
        asked: set[str] = set()
        for question in asking(rows):
            if question.case in asked or question.delta > DELTA:
                continue  # the first way to ask is the tool's usual one
            asked.add(question.case)
            with (
                row("speed", question.case, rows=rows, **question.fields) as fields,
                _until(deadline),
            ):
                fields.update(_times(question))


def measure_error(asking: Asking, rows: int = ERROR_ROWS, releases: int = RELEASES) -> None:
    """Rows with the root mean square error of each question over at most so many releases, and its standard error."""
    deadline = perf_counter() + SCRIPT_SECONDS
    truths = json.loads(truth_path(rows).read_text())
    questions = list(asking(rows))
    for place, question in enumerate(questions):
        share = (deadline - perf_counter()) / (len(questions) - place)
        with row("error", question.case, rows=rows, **question.fields) as fields:
            fields.update(
                _errors(question, truths[question.case], releases, perf_counter() + share, deadline)
            )


def load_time(seconds: float, rows: int, how: str) -> None:
    """A row for what a tool needs before it can answer at all."""
    emit("load", how, rows=rows, value=seconds)


def _times(question: Question) -> dict[str, object]:
    first = _seconds(question)
    sample = [first] if first > PATIENCE_SECONDS else []
    start = perf_counter()
    while not sample or (
        len(sample) < RUNS
        and first <= PATIENCE_SECONDS
        and perf_counter() - start < PATIENCE_SECONDS
    ):
        sample.append(_seconds(question))
    return {
        "value": median(sample),
        "low": min(sample),
        "high": max(sample),
        "first": first,
        "runs": len(sample),
    }


def _seconds(question: Question) -> float:
    start = perf_counter()
    question.ask()
    return perf_counter() - start


def _errors(
    question: Question, truth: Answers, releases: int, enough: float, deadline: float
) -> dict[str, object]:
    """No new release is begun after `enough`, and none goes on after the deadline of the script."""
    start = perf_counter()
    squares: list[float] = []
    bias: list[float] = []
    with _until(deadline, soft=squares):
        while len(squares) < releases and (not squares or perf_counter() < enough):
            errors = [a - b for a, b in zip(_listed(question.ask()), _listed(truth), strict=True)]
            bias.append(fmean(errors))
            squares.append(fmean(error * error for error in errors))
    count, value = len(squares), sqrt(fmean(squares))
    spread = sqrt(fmean((square - value**2) ** 2 for square in squares) / max(count - 1, 1))
    seconds = (perf_counter() - start) / count
    uncertain = spread / (2 * value) if count > 1 and value else None
    return {
        "value": value,
        "uncertain": uncertain,
        "bias": fmean(bias),
        "releases": count,
        "seconds": seconds,
    }


def _listed(answers: Answers) -> list[float]:
    return answers if isinstance(answers, list) else [answers]


@contextmanager
def _until(deadline: float, soft: list[float] | None = None) -> Iterator[None]:
    """Interrupt the block at the deadline; that is no failure if `soft` already holds something."""

    late = OutOfTime(f"not done within the {SCRIPT_SECONDS:g} s of this script")

    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise late

    left = deadline - perf_counter()
    if left <= 0:
        raise late
    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, left)
    try:
        yield
    except Exception:
        if perf_counter() < deadline:
            raise
        if not soft:
            raise late from None  # whatever a library made of the interruption
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)

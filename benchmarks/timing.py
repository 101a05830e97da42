"""Clocks and JSON lines for measurement scripts; standard library only, because every peer's interpreter imports it."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median, quantiles
from time import perf_counter
from timeit import Timer
from typing import NamedTuple

MICROSECONDS = 1e6
MILLISECONDS = 1e3


class Timing(NamedTuple):
    """Seconds per call: the median and the quartiles of the runs."""

    seconds: float
    low: float
    high: float
    runs: int

    def rate(self, count: int) -> dict[str, float]:
        """Things per second, for a call that makes `count` of them."""
        return {
            "value": count / self.seconds,
            "low": count / self.high,
            "high": count / self.low,
            "runs": self.runs,
        }

    def time(self, per_second: float) -> dict[str, float]:
        """Time per call in a unit of which a second holds `per_second`."""
        value, low, high = (seconds * per_second for seconds in (self.seconds, self.low, self.high))
        return {"value": value, "low": low, "high": high, "runs": self.runs}


def emit(part: str, case: str, **fields: object) -> None:
    """Print one row of the suite's results."""
    print(json.dumps({"part": part, "case": case, **fields}), flush=True)


@contextmanager
def row(part: str, case: str, **fields: object) -> Iterator[dict[str, object]]:
    """Emit what the block fills in; an exception becomes a row that says so, and the other measurements go on."""
    filled: dict[str, object] = dict(fields)
    try:
        yield filled
    except Exception as error:
        lines = str(error).strip().splitlines() or ["no message"]
        filled["error"] = f"{type(error).__name__}: {lines[0]}"
    emit(part, case, **filled)


def clock(call: Callable[[], object]) -> Timing:
    """Time one call."""
    return clock_in_turn(call)[0]


def clock_in_turn(
    *calls: Callable[[], object], runs: int = 15, budget_seconds: float = 20.0
) -> list[Timing]:
    """Time the calls in turn, so that a slow moment of the machine hits all of them; at least three runs each."""
    timers = [Timer(call) for call in calls]
    loops = [_loops(timer) for timer in timers]
    samples: list[list[float]] = [[] for _ in calls]
    start = perf_counter()
    for done in range(runs):
        if done >= 3 and perf_counter() - start > budget_seconds:
            break
        for timer, count, sample in zip(timers, loops, samples, strict=True):
            sample.append(timer.timeit(count) / count)
    return [_summary(sample) for sample in samples]


def clock_start(code: str, runs: int = 9) -> Timing:
    """Time `code` in fresh interpreters, each less a bare start measured just before it."""
    _start(code)  # the first import writes the byte code
    return _summary([-_start("pass") + _start(code) for _ in range(runs)])


def _loops(timer: Timer) -> int:
    """How many calls fill ten milliseconds; finding out also warms up."""
    count = 1
    while timer.timeit(count) < 0.01:
        count *= 2
    return count


def _summary(sample: list[float]) -> Timing:
    low, _, high = quantiles(sample, n=4, method="inclusive")
    return Timing(median(sample), low, high, len(sample))


def _start(code: str) -> float:
    start = perf_counter()
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, capture_output=True)
    return perf_counter() - start

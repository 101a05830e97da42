"""The plans that every tool must account for, and one clock for all; standard library only."""

from collections.abc import Callable
from fractions import Fraction
from statistics import median
from time import perf_counter, process_time
from typing import NamedTuple, TypeVar

from benchmarks.turns import take_turn

T = TypeVar("T")
DELTAS = (1e-6, 1e-10)
RUNS, PATIENCE_SECONDS = 5, 10.0
IN_TURN = ("sordino_epsilon", "accounting_google", "accounting_prv", "opendp_zcdp")
"""The scripts whose runs alternate."""


class Part(NamedTuple):
    """Noise of one scale on a sensitivity of 1, so many times, each on a fresh Poisson sample of this rate."""

    noise: str
    scale: int
    uses: int = 1
    rate: Fraction = Fraction(1)


class Plan(NamedTuple):
    """A case of this suite: what is composed, and how narrow the reference is."""

    name: str
    parts: tuple[Part, ...]
    accuracy: float = 1e-5  # of the reference


COUNTS = (10, 100, 1000, 10_000)
MIXED = tuple(Part("Laplace", 20 + i) for i in range(50)) + tuple(Part("Gaussian", 15 + i) for i in range(50))
PLANS = (
    *(Plan(f"{k:,} Laplace", (Part("Laplace", 10, k),)) for k in COUNTS),
    *(Plan(f"{k:,} Gaussian", (Part("Gaussian", 10, k),)) for k in COUNTS),
    Plan("1,000 sampled Gaussian", (Part("Gaussian", 1, 1000, Fraction(1, 100)),), 1e-4),
    Plan("100 different", MIXED, 1e-4),
)


def answer_and_time(call: Callable[[], T], delta: float, plan: Plan) -> tuple[T, dict[str, object]]:
    """The answer and the median of at most five runs after one to warm up; a first run without end in sight counts.

    Every run waits for its turn, so that those of the tools alternate.
    """
    case = (DELTAS.index(delta), PLANS.index(plan))
    take_turn(case)
    answer, *first = _run(call)
    sample = [first] if first[0] > PATIENCE_SECONDS else []
    while not sample or (len(sample) < RUNS and sum(wall for wall, _ in sample) < PATIENCE_SECONDS):
        take_turn(case)
        _, *times = _run(call)
        sample.append(times)
    walls, processors = zip(*sample, strict=True)
    fields = {"value": median(walls), "processor": median(processors), "low": min(walls), "high": max(walls)}
    return answer, {**fields, "runs": len(sample)}


def _run(call: Callable[[], T]) -> tuple[T, float, float]:
    """The answer, seconds on the wall and seconds of the processor; the latter stand above what else the machine does."""
    wall, processor = perf_counter(), process_time()
    answer = call()
    return answer, perf_counter() - wall, process_time() - processor

"""The plans that every tool must account for, and one clock for all; standard library only."""

from collections.abc import Callable
from fractions import Fraction
from statistics import median
from time import perf_counter, process_time
from typing import NamedTuple, TypeVar

from benchmarks.turns import take_turn

T = TypeVar("T")
DELTAS = (1e-6, 1e-10)
RUNS, PATIENCE_SECONDS = 5, 5.0
IN_TURN = ("sordino_epsilon", "accounting_google", "accounting_prv", "opendp_zcdp")
"""The scripts whose runs alternate."""


class Part(NamedTuple):
    """Noise of one scale on a sensitivity of 1, so many times, each on a fresh Poisson sample of this rate."""

    noise: str
    scale: int | Fraction
    uses: int = 1
    rate: Fraction = Fraction(1)


class Plan(NamedTuple):
    """A case of this suite: what is composed, and how narrow the reference is."""

    name: str
    parts: tuple[Part, ...]
    accuracy: float = 1e-5  # of the reference


COUNTS = (10, 100, 1000, 10_000)
MIXED = tuple(Part("Laplace", 20 + i) for i in range(50)) + tuple(
    Part("Gaussian", 15 + i) for i in range(50)
)
PLANS = (
    *(Plan(f"{k:,} Laplace", (Part("Laplace", 10, k),)) for k in COUNTS),
    *(Plan(f"{k:,} Gaussian", (Part("Gaussian", 10, k),)) for k in COUNTS),
    Plan("1,000 sampled Gaussian", (Part("Gaussian", 1, 1000, Fraction(1, 100)),), 1e-4),
    Plan("100 different", MIXED, 1e-4),
)
RUNS_OF_TRAINING = (
    ("1", "1e-4", 10**6), ("0.7", "1e-4", 10**5), ("10", "0.01", 10**5), ("1", "0.002", 10**4), ("0.8", "0.005", 3000),
    ("2", "1e-3", 10**5), ("1", "0.01", 1000), ("4", "0.02", 10**4), ("0.6", "1e-3", 2000), ("20", "0.1", 10**4),
    ("1", "1e-5", 10**6), ("1.5", "0.05", 500),
)  # fmt: skip
"""Scale, rate and steps: small rates and many steps, as training has them."""
TRAINING_DELTAS = (1e-5, 1e-9, 1e-20, 1e-40, 1e-80)
TRAINING = tuple(
    (
        Plan(
            f"scale {scale}, rate {rate}, {steps:,} steps",
            (Part("Gaussian", Fraction(scale), steps, Fraction(rate)),),
        ),
        delta,
    )
    for scale, rate, steps in RUNS_OF_TRAINING
    for delta in TRAINING_DELTAS
)


def place(plan: Plan, delta: float) -> tuple[int, int]:
    """Where a case stands among all."""
    if (plan, delta) in TRAINING:
        return len(DELTAS), TRAINING.index((plan, delta))
    return DELTAS.index(delta), PLANS.index(plan)


def answer_and_time(call: Callable[[], T], delta: float, plan: Plan) -> tuple[T, dict[str, object]]:
    """The answer and the median of at most five runs after one to warm up; a first run without end in sight counts.

    Every run waits for its turn, so that those of the tools alternate.
    """
    case = place(plan, delta)
    take_turn(case)
    answer, *first = _run(call)
    sample = [first] if first[0] > PATIENCE_SECONDS else []
    while not sample or (len(sample) < RUNS and sum(wall for wall, _ in sample) < PATIENCE_SECONDS):
        take_turn(case)
        _, *times = _run(call)
        sample.append(times)
    walls, processors = zip(*sample, strict=True)
    fields = {
        "value": median(walls),
        "processor": median(processors),
        "low": min(walls),
        "high": max(walls),
    }
    return answer, {**fields, "runs": len(sample)}


def _run(call: Callable[[], T]) -> tuple[T, float, float]:
    """The answer, seconds on the wall and seconds of the processor;
    the latter stand above what else the machine does.
    """
    wall, processor = perf_counter(), process_time()
    answer = call()
    return answer, perf_counter() - wall, process_time() - processor

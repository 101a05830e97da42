"""What every tool of the local suite is asked: the same answers, the same cells, the same figures."""

import math
from collections.abc import Callable, Iterator, Sequence
from statistics import median
from time import process_time
from typing import Any, NamedTuple

import numpy as np

CATEGORIES = (16, 256, 4096)
EPSILONS = (0.5, 1.0, 3.0)
CELLS = tuple((k, epsilon) for k in CATEGORIES for epsilon in EPSILONS)
MILLION = 1_000_000
FEWER = {16: 50_000, 256: 10_000, 4096: 4_000}
"""How many persons the peers are given: they answer one at a time, and a million would take them hours."""
SECONDS = {16: 12, 256: 12, 4096: 8}
"""How long a peer may repeat: with few categories one run says little about the error."""
DIRECT = 10.0
"""Up to so many seconds a million persons are timed as such; beyond, fewer are, and the time is scaled up."""


class Answer(NamedTuple):
    """What one run found: the shares as estimated, the same made into a distribution,
    and the processor time it took.
    """

    raw: Any
    consistent: Any
    seconds: float


def answers(k: int, persons: int) -> Any:
    """Answers with a long tail, the same for every tool."""
    return np.minimum(np.random.default_rng(k).zipf(1.5, persons) - 1, k - 1)


def pure_variance(own: float, other: float, k: int, persons: int) -> float:
    """The mean squared error of a share, averaged over the categories; it is the same whatever the truth."""
    total = own * (1 - own) + (k - 1) * other * (1 - other)
    return total / (own - other) ** 2 / persons / k


def measured(
    run: Callable[[Any], Answer], k: int, persons: int, seconds: float
) -> dict[str, float]:
    """Mean squared errors with their standard errors, over as many runs as the time allows, five at least."""
    true = answers(k, persons)
    shares = np.bincount(true, minlength=k) / persons
    raw: list[float] = []
    consistent: list[float] = []
    times: list[float] = []
    start = process_time()
    while len(raw) < 5 or (process_time() - start < seconds and len(raw) < 400):
        one = run(true)
        raw.append(float(((one.raw - shares) ** 2).mean()))
        consistent.append(float(((one.consistent - shares) ** 2).mean()))
        times.append(one.seconds)
    fields = {
        "persons": persons,
        "runs": len(raw),
        "seconds": median(times),
        "value": median(times) / persons * MILLION,
    }
    if persons < MILLION and fields["value"] < DIRECT:
        fields["value"] = median(run(answers(k, MILLION)).seconds for _ in range(3))
    for name, found in (("raw", raw), ("consistent", consistent)):
        fields |= {
            name: float(np.mean(found)),
            f"{name}_error": float(np.std(found, ddof=1) / math.sqrt(len(found))),
        }
    return fields


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    """What a call returns, and its processor time: the machine may be busy."""
    start = process_time()
    result = call()
    return result, process_time() - start


def named_cells() -> Iterator[tuple[str, int, float]]:
    for k, epsilon in CELLS:
        yield f"{k} categories, ε = {epsilon:g}", k, epsilon


def best_of(oracles: Sequence[Any], variances: Sequence[float], times: Sequence[float]) -> Any:
    """The least variance, and among those within a thousandth of it the fastest."""
    fit = [i for i, variance in enumerate(variances) if variance <= 1.001 * min(variances)]
    return oracles[min(fit, key=lambda i: times[i])]

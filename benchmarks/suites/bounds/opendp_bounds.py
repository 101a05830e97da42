"""OpenDP has no automatic bounds; its recipe is two private quantiles on public candidates, then a clamped sum.

The candidates are powers of two times 1 and 1.5 of either sign; half of epsilon finds quantiles as near to the ends as
this epsilon reaches without candidates far beyond the data being drawn (tried out). A mean is the sum over a noisy
count, which share the rest.
"""

from collections.abc import Callable
from typing import Any

import opendp.prelude as dp
from benchmarks.suites.bounds.measure import measure
from benchmarks.suites.bounds.settings import EPSILON

dp.enable_features("contrib", "honest-but-curious", "floating-point")
SIZES = sorted(m * 2.0**e for e in range(-10, 31) for m in (1.0, 1.5))
CANDIDATES = [-size for size in reversed(SIZES)] + [0.0, *SIZES]
LEVELS = {1000: 0.1, 10_000: 0.03}
SPACE = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()


def quantile(level: float, epsilon: float) -> Any:
    def made(scale: float) -> Any:
        score = SPACE >> dp.t.then_quantile_score_candidates(CANDIDATES, alpha=level)
        return (
            score
            >> dp.m.then_noisy_max(dp.max_divergence(), scale=scale, negate=True)
            >> (lambda at: CANDIDATES[at])
        )

    return dp.binary_search_chain(made, d_in=1, d_out=epsilon, bounds=(1e-6, 1e6))


def laplace(transformed: Any, epsilon: float) -> Any:
    return dp.binary_search_chain(
        lambda s: transformed >> dp.m.then_laplace(scale=s), 1, epsilon, bounds=(1e-9, 1e15)
    )


def opened(case: str, data: list[float]) -> Callable[[], float]:
    beyond = LEVELS[len(data)]
    low, high = quantile(beyond, EPSILON / 4), quantile(1 - beyond, EPSILON / 4)
    share = EPSILON / 2 if case == "sum" else EPSILON / 4
    count = laplace(SPACE >> dp.t.then_count(), EPSILON / 4)

    def ask() -> float:
        ends = sorted((low(data), high(data)))
        if ends[0] == ends[1]:
            ends[1] = CANDIDATES[min(CANDIDATES.index(ends[1]) + 1, len(CANDIDATES) - 1)]
        total = laplace(SPACE >> dp.t.then_clamp(tuple(ends)) >> dp.t.then_sum(), share)(data)
        return float(total) if case == "sum" else float(total) / max(count(data), 1)

    return ask


if __name__ == "__main__":
    measure(opened)

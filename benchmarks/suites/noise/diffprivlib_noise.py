"""diffprivlib: its mechanisms answer one number at a time, so a vector is a loop."""

from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks.suites.noise.settings import (
    DELTA_GAUSSIAN,
    EPSILON_GAUSSIAN,
    EPSILON_LAPLACE,
    GUARANTEES,
)
from benchmarks.timing import MICROSECONDS, MILLISECONDS, clock, clock_start, row
from diffprivlib import mechanisms

FIRST = """
from diffprivlib.mechanisms import GaussianAnalytic, Laplace
Laplace(epsilon=0.5, sensitivity=1).randomise(42)
GaussianAnalytic(epsilon=1, delta=1e-6, sensitivity=1).randomise(42)
"""


def analytic(scale: int) -> Any:
    """A Gaussian of this scale: the mechanism takes only a guarantee, so the sensitivity is turned until it fits."""
    unit = mechanisms.GaussianAnalytic(epsilon=1, delta=1e-6, sensitivity=1)._scale
    return mechanisms.GaussianAnalytic(epsilon=1, delta=1e-6, sensitivity=scale / unit)


def discrete(scale: int) -> Any:
    """A discrete Gaussian within 6 % of this scale; its sensitivity must be whole."""
    if scale == 1:
        return mechanisms.GaussianDiscrete(epsilon=5, delta=1e-6, sensitivity=1)
    unit = mechanisms.GaussianDiscrete(epsilon=1, delta=1e-6, sensitivity=1)._scale
    return mechanisms.GaussianDiscrete(epsilon=1, delta=1e-6, sensitivity=round(scale / unit))


def loop(randomise: Callable[[int], object], n: int) -> list[object]:
    return [randomise(0) for _ in range(n)]


MECHANISMS: tuple[tuple[str, str, str, Callable[[int], Any], int], ...] = (
    (
        "Laplace",
        "integer",
        "Geometric",
        lambda scale: mechanisms.Geometric(epsilon=1, sensitivity=scale),
        20_000,
    ),
    (
        "Laplace",
        "float",
        "Laplace",
        lambda scale: mechanisms.Laplace(epsilon=1, sensitivity=scale),
        20_000,
    ),
    ("Gaussian", "integer", "GaussianDiscrete", discrete, 200),
    ("Gaussian", "float", "GaussianAnalytic", analytic, 20_000),
)

for case, values, how, make, n in MECHANISMS:
    for scale in (1, 1000):
        with row("vector", case, values=values, how=how, scale=scale, n=n) as fields:
            fields.update(clock(partial(loop, make(scale).randomise, n)).rate(n))
    with row("scalar", case, values=values, how=how) as fields:
        fields.update(clock(partial(make(1000).randomise, 42)).time(MICROSECONDS))

with row("calibrate", "Laplace", how="Laplace") as fields:
    construct = partial(mechanisms.Laplace, epsilon=EPSILON_LAPLACE, sensitivity=1)
    fields.update(clock(construct).time(MICROSECONDS))
with row("calibrate", "Gaussian", how="GaussianAnalytic") as fields:
    construct = partial(
        mechanisms.GaussianAnalytic, epsilon=EPSILON_GAUSSIAN, delta=DELTA_GAUSSIAN, sensitivity=1
    )
    fields.update(clock(construct).time(MICROSECONDS))
for name in ("Gaussian", "GaussianAnalytic", "GaussianDiscrete"):
    for epsilon, delta in GUARANTEES:
        with row("sigma", "Gaussian", how=name, epsilon=epsilon, delta=delta) as fields:
            noise = getattr(mechanisms, name)(epsilon=epsilon, delta=delta, sensitivity=1)
            fields["value"] = float(noise._scale)
with row("import", "import") as fields:
    fields.update(clock_start("import diffprivlib").time(MILLISECONDS))
with row("import", "first release") as fields:
    fields.update(clock_start(FIRST).time(MILLISECONDS))

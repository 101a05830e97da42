"""PyDP: its mechanisms answer one number at a time, so a vector is a loop."""

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
from pydp.algorithms.numerical_mechanisms import GaussianMechanism, LaplaceMechanism

N = 50_000
FIRST = """
from pydp.algorithms.numerical_mechanisms import GaussianMechanism, LaplaceMechanism
LaplaceMechanism(0.5, 1.0).add_noise(42)
GaussianMechanism(1.0, 1e-6, 1.0).add_noise(42)
"""


def laplace(scale: float) -> Any:
    return LaplaceMechanism(1.0, scale)


def gaussian(scale: float) -> Any:
    return GaussianMechanism.create_from_standard_deviation(scale)


def gaussian_scale(epsilon: float, delta: float) -> float:
    return float(GaussianMechanism(epsilon, delta, 1.0).std)


def loop(add_noise: Callable[[float], object], zero: float) -> list[object]:
    return [add_noise(zero) for _ in range(N)]


for case, make in (("Laplace", laplace), ("Gaussian", gaussian)):
    for values, kind in (("integer", int), ("float", float)):
        for scale in (1, 1000):
            with row("vector", case, values=values, scale=scale, n=N) as fields:
                fields.update(clock(partial(loop, make(float(scale)).add_noise, kind(0))).rate(N))
        with row("scalar", case, values=values) as fields:
            fields.update(clock(partial(make(1000.0).add_noise, kind(42))).time(MICROSECONDS))

with row("calibrate", "Laplace") as fields:
    fields.update(clock(partial(LaplaceMechanism, EPSILON_LAPLACE, 1.0)).time(MICROSECONDS))
with row("calibrate", "Gaussian") as fields:
    fields.update(
        clock(partial(gaussian_scale, EPSILON_GAUSSIAN, DELTA_GAUSSIAN)).time(MICROSECONDS)
    )
for epsilon, delta in GUARANTEES:
    with row("sigma", "Gaussian", epsilon=epsilon, delta=delta) as fields:
        fields["value"] = gaussian_scale(epsilon, delta)
with row("import", "import") as fields:
    fields.update(clock_start("import pydp").time(MILLISECONDS))
with row("import", "first release") as fields:
    fields.update(clock_start(FIRST).time(MILLISECONDS))

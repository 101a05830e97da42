"""OpenDP: vector and scalar noise, calibration, the scale its conversion asks for, import."""

from functools import partial
from typing import Any

import opendp.prelude as dp
from benchmarks.suites.noise.settings import (
    DELTA_GAUSSIAN,
    EPSILON_GAUSSIAN,
    EPSILON_LAPLACE,
    GUARANTEES,
)
from benchmarks.timing import MICROSECONDS, MILLISECONDS, clock, clock_start, row

dp.enable_features("contrib")
N = 100_000
FIRST = """
import opendp.prelude as dp
dp.enable_features("contrib")
for make in (dp.m.make_laplace, dp.m.make_gaussian):
    make(dp.atom_domain(T=int), dp.absolute_distance(T=int), scale=2.0)(42)
"""


def atom(kind: type) -> Any:
    return dp.atom_domain(T=int) if kind is int else dp.atom_domain(T=float, nan=False)


def laplace(scale: float, kind: type = int) -> Any:
    return dp.m.make_laplace(atom(kind), dp.absolute_distance(T=kind), scale=scale)


def laplace_vector(scale: float, kind: type) -> Any:
    return dp.m.make_laplace(dp.vector_domain(atom(kind)), dp.l1_distance(T=kind), scale=scale)


def gaussian(scale: float, kind: type = int) -> Any:
    return dp.m.make_gaussian(atom(kind), dp.absolute_distance(T=kind), scale=scale)


def gaussian_vector(scale: float, kind: type) -> Any:
    return dp.m.make_gaussian(dp.vector_domain(atom(kind)), dp.l2_distance(T=kind), scale=scale)


def gaussian_scale(epsilon: float, delta: float) -> float:
    """The smallest scale whose zCDP, converted, stays within (epsilon, delta)."""

    def approximate(scale: float) -> Any:
        return dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(gaussian(scale)), delta=delta)

    return float(dp.binary_search_param(approximate, d_in=1, d_out=(epsilon, delta), T=float))


for case, make, make_vector in (
    ("Laplace", laplace, laplace_vector),
    ("Gaussian", gaussian, gaussian_vector),
):
    for values, kind in (("integer", int), ("float", float)):
        for scale in (1, 1000):
            with row("vector", case, values=values, scale=scale, n=N) as fields:
                fields.update(
                    clock(partial(make_vector(float(scale), kind), [kind(0)] * N)).rate(N)
                )
        with row("scalar", case, values=values) as fields:
            fields.update(clock(partial(make(1000.0, kind), kind(42))).time(MICROSECONDS))

with row("calibrate", "Laplace", how="make_laplace, scale by hand") as fields:
    fields.update(clock(partial(laplace, 1 / EPSILON_LAPLACE)).time(MICROSECONDS))
with row("calibrate", "Gaussian", how="binary_search_param") as fields:
    fields.update(
        clock(partial(gaussian_scale, EPSILON_GAUSSIAN, DELTA_GAUSSIAN)).time(MICROSECONDS)
    )
for epsilon, delta in GUARANTEES:
    with row("sigma", "Gaussian", how="by zCDP", epsilon=epsilon, delta=delta) as fields:
        fields["value"] = gaussian_scale(epsilon, delta)
with row("import", "import") as fields:
    fields.update(clock_start("import opendp.prelude").time(MILLISECONDS))
with row("import", "first release") as fields:
    fields.update(clock_start(FIRST).time(MILLISECONDS))

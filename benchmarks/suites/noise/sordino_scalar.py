"""One release, one calibration, and the scale that a guarantee costs."""

from functools import partial

from benchmarks.suites.noise.settings import (
    DELTA_GAUSSIAN,
    EPSILON_GAUSSIAN,
    EPSILON_LAPLACE,
    GUARANTEES,
)
from benchmarks.timing import MICROSECONDS, clock, row

import sordino as so

for case in ("Laplace", "Gaussian"):
    mechanism = getattr(so, case)
    with row("scalar", case, values="integer") as fields:
        fields.update(clock(partial(mechanism(scale=1000).release, 42)).time(MICROSECONDS))
    with row("scalar", case, values="float") as fields:
        fields.update(
            clock(partial(mechanism(scale=1000, step=2**-10).release, 42.0)).time(MICROSECONDS)
        )

with row("calibrate", "Laplace") as fields:
    calibrate = partial(so.Laplace.calibrated, sensitivity=1, epsilon=EPSILON_LAPLACE)
    fields.update(clock(calibrate).time(MICROSECONDS))
gaussian = partial(so.Gaussian.calibrated, sensitivity=1)
with row("calibrate", "Gaussian") as fields:
    fields.update(
        clock(partial(gaussian, epsilon=EPSILON_GAUSSIAN, delta=DELTA_GAUSSIAN)).time(MICROSECONDS)
    )

for epsilon, delta in GUARANTEES:
    with row("sigma", "Gaussian", epsilon=epsilon, delta=delta) as fields:
        fields["value"] = float(gaussian(epsilon=epsilon, delta=delta).scale)

"""Exact releases of vectors, beside NumPy's floating-point draws in the same process, turn by turn."""

from functools import partial
from typing import Any

import numpy as np
from benchmarks.suites.noise.settings import SCALES
from benchmarks.timing import clock, clock_in_turn, emit, row

import sordino as so

N, N_FLOAT = 10**6, 10**5
integers, floats = np.zeros(N, dtype=np.int64), np.zeros(N_FLOAT)
generator = np.random.default_rng(1)
PAIRS: tuple[tuple[str, Any, Any], ...] = (
    ("Laplace", so.Laplace, generator.laplace),
    ("Gaussian", so.Gaussian, generator.normal),
)

for case, mechanism, draw in PAIRS:
    for scale in SCALES:
        with row("vector", case, values="integer", scale=scale, n=N) as fields:
            release = partial(mechanism(scale=scale).release, integers)
            released, drawn = clock_in_turn(release, partial(draw, 0, scale, N), runs=21)
            fields.update(released.rate(N))
            emit("vector", case, tool="NumPy", values="float", scale=scale, n=N, **drawn.rate(N))
        with row("vector", case, values="float", scale=scale, n=N_FLOAT) as fields:
            release = partial(mechanism(scale=scale, step=2**-10).release, floats)
            fields.update(clock(release).rate(N_FLOAT))

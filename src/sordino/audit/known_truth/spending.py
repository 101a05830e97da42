"""Several releases: budgets spent twice, and noise used twice."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sordino.audit.known_truth import noise
from sordino.audit.known_truth.noise import Floats
from sordino.audit.known_truth.specimen import Specimen

__all__ = ["SPECIMENS", "parallel"]


def parallel(data: Any, times: int, scale: float, size: int) -> Floats:
    """The same number with independent noise several times."""
    return float(data) + noise.laplace(scale, (size, times))


def _sum_and_count(data: Any, scale: float, size: int) -> Floats:
    """What a mean is made of: the sum of values in [0, 1] and their number."""
    exact = np.array([float(np.clip(data, 0, 1).sum()), len(data)])
    return exact + noise.laplace(scale, (size, 2))


def _same_noise(data: Any, *, size: int) -> Floats:
    """Two counts from one seed."""
    return np.asarray(data, float) + noise.laplace(1, (size, 1))


def _fixed_seed(data: Any, *, size: int) -> Floats:
    """A generator that starts anew at each call."""
    state = 12345
    state = (1103515245 * state + 12345) % 2**31
    return np.full(size, float(data) - math.log(state / 2**31))


SPECIMENS = (
    Specimen(
        name="laplace-in-parallel",
        title="Five releases of epsilon/5",
        broken=False,
        why="Epsilons add up to the claim.",
        mechanism=lambda data, *, size: parallel(data, 5, 5, size),
        pair=(0, 1),
        epsilon=1,
        truth=1,
    ),
    Specimen(
        name="sum-and-count",
        title="Sum and number of rows, half of epsilon each",
        broken=False,
        why="A row moves both, and both are paid for.",
        mechanism=lambda data, *, size: _sum_and_count(data, 2, size),
        pair=([0.5, 1.0], [0.5, 1.0, 1.0]),
        neighbors="add_remove",
        epsilon=1,
        truth=1,
    ),
    Specimen(
        name="double-spending",
        title="Two releases, billed as one",
        broken=True,
        why="Epsilons add.",
        mechanism=lambda data, *, size: parallel(data, 2, 2, size),
        pair=(0, 1),
        epsilon=0.5,
        truth=1,
    ),
    Specimen(
        name="average-of-releases",
        title="The average of four releases, billed as one",
        broken=True,
        why="The tails of the average fall four times as fast.",
        mechanism=lambda data, *, size: parallel(data, 4, 2, size).mean(axis=1),
        pair=(0, 1),
        epsilon=0.5,
        truth=2,
        samples=1_000_000,
    ),
    Specimen(
        name="mean-billed-once",
        title="Sum and number of rows with all of epsilon each",
        broken=True,
        why="A mean is two releases (the shape of SmartNoise issue 202).",
        mechanism=lambda data, *, size: _sum_and_count(data, 2, size),
        pair=([0.5, 1.0], [0.5, 1.0, 1.0]),
        neighbors="add_remove",
        epsilon=0.5,
        truth=1,
    ),
    Specimen(
        name="same-noise-twice",
        title="Two counts with the same noise",
        broken=True,
        why="Their difference is exact (the shape of Qrlew issue 245).",
        mechanism=_same_noise,
        pair=((3, 5), (4, 5)),
        neighbors="histogram",
        epsilon=1,
        truth=math.inf,
    ),
    Specimen(
        name="fixed-seed",
        title="Noise from a generator with a fixed seed",
        broken=True,
        why="The noise is the same each time, so it hides nothing.",
        mechanism=_fixed_seed,
        pair=(0, 1),
        epsilon=1,
        truth=math.inf,
    ),
)

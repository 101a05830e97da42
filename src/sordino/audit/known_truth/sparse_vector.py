"""Which answers are above a threshold: the sparse vector technique, right and in its well-known wrong forms.

Source: Lyu, Su, Li, "Understanding the sparse vector technique" (VLDB 2017), algorithms 1 to 6. An output has an entry for
each answer: 1 above, 0 below, -1 not reached; or the noisy value, BELOW, UNREACHED. Truths of flags are integrals.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from sordino.audit.known_truth import noise
from sordino.audit.known_truth.noise import Floats
from sordino.audit.known_truth.specimen import Specimen

__all__ = ["BELOW", "SPECIMENS", "UNREACHED", "above", "numerical", "refreshed", "shown"]

BELOW, UNREACHED = -1000.0, -2000.0

Flags = npt.NDArray[np.int8]


def above(data: Any, size: int, *, threshold: float, limit_scale: float, scale: float, most: int | None) -> Flags:
    """One noisy threshold for all; after `most` answers above it nothing more is said. A scale of 0 is no noise."""
    exact = np.asarray(data, float)
    noisy = exact + noise.laplace(scale, (size, exact.size)) if scale else exact
    limit = threshold + noise.laplace(limit_scale, (size, 1)) if limit_scale else threshold
    found = np.broadcast_to(noisy >= limit, (size, exact.size)).astype(np.int8)
    return np.where(_reached(found, most), found, np.int8(-1))


def refreshed(data: Any, size: int, *, threshold: float, limit_scale: float, scale: float, most: int) -> Flags:
    """A new noisy threshold after each answer above."""
    exact = np.asarray(data, float)
    noisy = exact + noise.laplace(scale, (size, exact.size))
    limits = threshold + noise.laplace(limit_scale, (size, most))
    found, said, rows = np.full((size, exact.size), -1, np.int8), np.zeros(size, int), np.arange(size)
    for i in range(exact.size):
        reached = said < most
        higher = noisy[:, i] >= limits[rows, np.minimum(said, most - 1)]
        found[reached, i] = higher[reached]
        said += reached & higher
    return found


def shown(data: Any, size: int, *, threshold: float, limit_scale: float, scale: float, most: int) -> Floats:
    """As `above`, but with the noisy value that was compared."""
    exact = np.asarray(data, float)
    noisy = exact + noise.laplace(scale, (size, exact.size))
    found = noisy >= threshold + noise.laplace(limit_scale, (size, 1))
    return np.where(_reached(found, most), np.where(found, noisy, BELOW), UNREACHED)


def numerical(data: Any, size: int, *, threshold: float, epsilon: float, most: int) -> Floats:
    """Values of the answers above, with noise of their own: a third of epsilon for each of threshold, answers, values."""
    exact = np.asarray(data, float)
    unit = 3 / epsilon
    noisy = exact + noise.laplace(2 * most * unit, (size, exact.size))
    found = noisy >= threshold + noise.laplace(unit, (size, 1))
    values = exact + noise.laplace(most * unit, (size, exact.size))
    return np.where(_reached(found, most), np.where(found, values, BELOW), UNREACHED)


def _reached(found: npt.NDArray[Any], most: int | None) -> npt.NDArray[np.bool_]:
    """Where fewer than `most` answers before were above."""
    if most is None:
        return np.ones(found.shape, bool)
    return np.asarray(np.cumsum(found, axis=1) - found < most)


SPECIMENS = (
    Specimen(
        name="sparse-vector",
        title="Above threshold, one answer (algorithm 1)",
        broken=False,
        why="Half of epsilon for the threshold, half for the answer that is above.",
        mechanism=lambda data, *, size: above(data, size, threshold=0.5, limit_scale=2, scale=4, most=1),
        neighbors="answers",
        length=10,
        epsilon=1,
        truth=1,
    ),
    Specimen(
        name="sparse-vector-refreshed",
        title="Above threshold with a new threshold after each of two answers (algorithm 2)",
        broken=False,
        why="Noise grows with the number of answers above.",
        mechanism=lambda data, *, size: refreshed(data, size, threshold=1, limit_scale=4, scale=8, most=2),
        neighbors="answers",
        length=6,
        epsilon=1,
        truth=1,
        samples=200_000,
    ),
    Specimen(
        name="sparse-vector-numerical",
        title="Values of the answers above, with noise of their own",
        broken=False,
        why="The value shown is not the one compared, and is paid for.",
        mechanism=lambda data, *, size: numerical(data, size, threshold=1, epsilon=1, most=2),
        neighbors="answers",
        length=6,
        epsilon=1,
        truth=1,
        samples=200_000,
    ),
    Specimen(
        name="sparse-vector-shows-value",
        title="The compared value is shown (algorithm 3)",
        broken=True,
        why="A low value shown says that the threshold was low, and so all answers before: ten times epsilon/2.",
        mechanism=lambda data, *, size: shown(data, size, threshold=1, limit_scale=2, scale=2, most=1),
        neighbors="answers",
        length=10,
        epsilon=1,
        truth=5,
        samples=1_000_000,
    ),
    Specimen(
        name="sparse-vector-little-noise",
        title="Noise 4/(3 epsilon) on the answers whatever their number (algorithm 4)",
        broken=True,
        why="It is (1 + 6c)/4 times the claim for c answers above, 13/4 here in the limit.",
        mechanism=lambda data, *, size: above(data, size, threshold=1, limit_scale=4, scale=4 / 3, most=2),
        neighbors="answers",
        length=10,
        epsilon=1,
        truth=3.204,
    ),
    Specimen(
        name="sparse-vector-exact-answers",
        title="Noise on the threshold only (algorithm 5)",
        broken=True,
        why="An answer above and another below cannot change places without a trace.",
        mechanism=lambda data, *, size: above(data, size, threshold=1, limit_scale=2, scale=0, most=None),
        neighbors="answers",
        length=10,
        epsilon=1,
        truth=math.inf,
        samples=200_000,
    ),
    Specimen(
        name="sparse-vector-never-stops",
        title="Any number of answers above (algorithm 6)",
        broken=True,
        why="Every answer above costs, and there is no limit to them.",
        mechanism=lambda data, *, size: above(data, size, threshold=1, limit_scale=2, scale=2, most=None),
        neighbors="answers",
        length=10,
        epsilon=1,
        truth=4.486,
    ),
    Specimen(
        name="sparse-vector-known-threshold",
        title="No noise on the threshold",
        broken=True,
        why="Without a hidden threshold every answer below costs too.",
        mechanism=lambda data, *, size: above(data, size, threshold=0.5, limit_scale=0, scale=4, most=1),
        neighbors="answers",
        length=10,
        epsilon=0.5,
        truth=2.5,
    ),
    Specimen(
        name="sparse-vector-count-forgotten",
        title="Noise for one answer above where four are said",
        broken=True,
        why="The noise must grow with the number of answers above.",
        mechanism=lambda data, *, size: above(data, size, threshold=1, limit_scale=2, scale=4, most=4),
        pair=((1, 1, 1, 1, 0, 0, 0, 0), (0, 0, 0, 0, 1, 1, 1, 1)),
        neighbors="answers",
        epsilon=1,
        truth=1.662,
        samples=1_000_000,
    ),
    Specimen(
        name="sparse-vector-twice",
        title="Algorithms 3 and 4 on the same answers",
        broken=True,
        why="Two broken mechanisms in parallel, billed as one; the first alone needs six times epsilon/2.",
        mechanism=lambda data, *, size: np.concatenate(
            (
                shown(data, size, threshold=1, limit_scale=4, scale=4, most=2),
                above(data, size, threshold=1, limit_scale=8, scale=8 / 3, most=2),
            ),
            axis=1,
        ),
        neighbors="answers",
        length=6,
        epsilon=0.5,
        truth=1.5,
        samples=1_000_000,
    ),
)

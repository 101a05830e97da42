"""Which answer is the largest: noisy maxima and the exponential mechanism."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from sordino.audit.known_truth import noise
from sordino.audit.known_truth.noise import Floats, Shape
from sordino.audit.known_truth.specimen import Specimen
from sordino.mechanisms import bits
from sordino.mechanisms.exponential import draw

__all__ = ["SPECIMENS", "largest", "largest_value"]

Noise = Callable[[float, Shape], Floats]


def largest(data: Any, draws: Noise, scale: float, size: int) -> npt.NDArray[np.intp]:
    """The place of the largest noisy answer."""
    exact = np.asarray(data, float)
    return np.asarray(np.argmax(exact + draws(scale, (size, exact.size)), axis=1))


def largest_value(data: Any, draws: Noise, scale: float, size: int) -> Floats:
    """The largest noisy answer itself."""
    exact = np.asarray(data, float)
    return np.asarray((exact + draws(scale, (size, exact.size))).max(axis=1))


def _chosen(data: Any, rate: float, size: int) -> npt.NDArray[np.intp]:
    """A place, with probability proportional to exp(rate * score)."""
    ends = np.cumsum(np.exp(rate * np.asarray(data, float)))
    places = np.searchsorted(ends, noise.uniform(size) * ends[-1])
    return np.asarray(np.minimum(places, ends.size - 1))


def _ours(data: Any) -> int:
    """The exact draw of quantiles: the distance to the best score at half the rate."""
    scores = np.asarray(data, int)
    return draw([1] * scores.size, (scores.max() - scores).tolist(), Fraction(1, 2), bits.source())


def _chosen_truth() -> float:
    """Of the first place on the pair below."""
    low = 1 / (1 + 4 * math.exp(3))
    high = 1 / (1 + 4 * math.exp(1))
    return math.log(high / low)


_UNEVEN = ((0.0, 3.0, 3.0, 3.0, 3.0), (1.0, 2.0, 2.0, 2.0, 2.0))

SPECIMENS = (
    Specimen(
        name="noisy-max-laplace",
        title="The place of the largest answer under Laplace(2/epsilon)",
        broken=False,
        why="Half of epsilon pays for the winner's move, half for the others'.",
        mechanism=lambda data, *, size: largest(data, noise.laplace, 2, size),
        neighbors="answers",
        epsilon=1,
        truth=1,
    ),
    Specimen(
        name="noisy-max-exponential",
        title="The place of the largest answer under Exponential(2/epsilon)",
        broken=False,
        why="It is permute-and-flip, which is epsilon-private.",
        mechanism=lambda data, *, size: largest(data, noise.exponential, 2, size),
        neighbors="answers",
        epsilon=1,
        truth=1,
    ),
    Specimen(
        name="exponential-mechanism",
        title="One of five candidates, drawn by our exact sampler",
        broken=False,
        why="Rate epsilon/2 for scores that move by 1 either way.",
        mechanism=_ours,
        pair=((0, 3, 3, 3, 3), (1, 2, 2, 2, 2)),
        neighbors="answers",
        epsilon=1,
        truth=1,
        samples=100_000,
    ),
    Specimen(
        name="exponential-mechanism-without-half",
        title="The exponential mechanism with rate epsilon in place of epsilon/2",
        broken=True,
        why="One score rises while the others fall: the ratio is up to e^(2 epsilon).",
        mechanism=lambda data, *, size: _chosen(data, 1, size),
        pair=_UNEVEN,
        neighbors="answers",
        epsilon=1,
        truth=_chosen_truth(),
    ),
    Specimen(
        name="noisy-max-without-half",
        title="The place of the largest answer under Laplace(1/epsilon)",
        broken=True,
        why="Enough for answers that only grow together, not for answers that move both ways.",
        mechanism=lambda data, *, size: largest(data, noise.laplace, 1, size),
        pair=_UNEVEN,
        neighbors="answers",
        epsilon=1,
        truth=1.998,
    ),
    Specimen(
        name="noisy-max-shows-value",
        title="The largest of five noisy answers, its value shown",
        broken=True,
        why="A low maximum says that all answers are low: their epsilons add up to 5/2.",
        mechanism=lambda data, *, size: largest_value(data, noise.laplace, 4, size),
        neighbors="answers",
        epsilon=0.5,
        truth=1.25,
    ),
    Specimen(
        name="noisy-max-shows-exponential-value",
        title="The largest of five answers under exponential noise, its value shown",
        broken=True,
        why="The maximum is never below the largest true answer.",
        mechanism=lambda data, *, size: largest_value(data, noise.exponential, 2, size),
        neighbors="answers",
        epsilon=1,
        truth=math.inf,
    ),
)

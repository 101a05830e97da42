"""Noise added to a number: ours on its lattice, and what goes wrong with scales, laws and redraws."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from sordino.audit.known_truth import noise
from sordino.audit.known_truth.noise import Floats
from sordino.audit.known_truth.specimen import Specimen
from sordino.mechanisms.additive import Additive
from sordino.mechanisms.gaussian import Gaussian
from sordino.mechanisms.laplace import Laplace

__all__ = ["SPECIMENS"]

Batched = Callable[..., Any]

_BITS = 10


def released(mechanism: Additive) -> Batched:
    """One of our mechanisms, many times."""

    def run(data: Any, *, size: int) -> Any:
        exact = np.asarray(data)
        return mechanism.release(np.broadcast_to(exact, (size, *exact.shape)))

    return run


def shifted(draw: Callable[[int], Floats]) -> Batched:
    """A number with noise of some law."""
    return lambda data, *, size: float(data) + draw(size)


def _classic(epsilon: float, delta: float) -> float:
    """The deviation of the first proofs, which hold for epsilon at most 1."""
    return math.sqrt(2 * math.log(1.25 / delta)) / epsilon


def _needed(deviation: float, delta: float) -> float:
    """The epsilon of normal noise, from its exact loss."""
    return Gaussian(deviation).loss(sensitivity=1).epsilon(delta=delta)


def _redrawn(data: Any, *, size: int) -> Floats:
    """Redraw whatever is negative."""
    found = float(data) + noise.geometric(math.exp(-0.5), size)
    while (wrong := np.flatnonzero(found < 0)).size:
        found[wrong] = float(data) + noise.geometric(math.exp(-0.5), wrong.size)
    return found


def _few_bits(size: int) -> Floats:
    """Inversion of a uniform with ten bits: only 512 magnitudes."""
    coarse = np.ceil(noise.uniform(size) * 2**_BITS)
    magnitude = -np.log((coarse // 2 + 1) * 2.0 ** (1 - _BITS))
    return noise.on_grid(np.where(coarse % 2 == 0, magnitude, -magnitude))


_CLASSIC = _classic(8, 0.2)
_EXACT = float(Gaussian.calibrated(sensitivity=1, epsilon=4, delta=0.01).scale)

_RIGHT = (
    Specimen(
        name="laplace",
        title="Laplace noise on the whole numbers, epsilon 1",
        broken=False,
        why="Rounding Laplace noise is post-processing, and scale 1 hides a step of 1 within a factor e.",
        mechanism=released(Laplace.calibrated(sensitivity=1, epsilon=1)),
        pair=(0, 1),
        epsilon=1,
        truth=1,
    ),
    Specimen(
        name="laplace-small-epsilon",
        title="Laplace noise, epsilon 0.1",
        broken=False,
        why="As before, with scale 10.",
        mechanism=released(Laplace.calibrated(sensitivity=1, epsilon=0.1)),
        pair=(10, 11),
        epsilon=0.1,
        truth=0.1,
        samples=1_000_000,
    ),
    Specimen(
        name="laplace-fine-step",
        title="Laplace noise on a lattice of 1/64, epsilon 1/2",
        broken=False,
        why="The lattice is public and the same for every value.",
        mechanism=released(Laplace.calibrated(sensitivity=1, epsilon=0.5, step=Fraction(1, 64))),
        pair=(3.0, 4.0),
        epsilon=0.5,
        truth=0.5,
    ),
    Specimen(
        name="laplace-vector",
        title="Laplace noise on five counts, one of which moves",
        broken=False,
        why="The L1 distance is 1 in any dimension.",
        mechanism=released(Laplace.calibrated(sensitivity=1, epsilon=1)),
        neighbors="histogram",
        epsilon=1,
        truth=1,
        samples=200_000,
    ),
    Specimen(
        name="gaussian",
        title="Normal noise calibrated to (1, 0.01)",
        broken=False,
        why="The deviation is the least that Balle and Wang's exact formula allows.",
        mechanism=released(Gaussian.calibrated(sensitivity=1, epsilon=1, delta=0.01, step=Fraction(1, 64))),
        pair=(0.0, 1.0),
        epsilon=1,
        delta=0.01,
        truth=1,
    ),
    Specimen(
        name="gaussian-vector",
        title="Normal noise on four answers, all of which move",
        broken=False,
        why="The L2 distance of four answers that move by 1 is 2, and so is the sensitivity used.",
        mechanism=released(Gaussian.calibrated(sensitivity=2, epsilon=1, delta=0.01)),
        neighbors="answers",
        length=4,
        epsilon=1,
        delta=0.01,
        truth=1,
        samples=200_000,
    ),
    Specimen(
        name="geometric",
        title="Two-sided geometric noise",
        broken=False,
        why="Neighbouring whole numbers have probabilities within the factor 1/alpha = e^epsilon.",
        mechanism=shifted(lambda size: noise.geometric(math.exp(-0.5), size)),
        pair=(2, 3),
        epsilon=0.5,
        truth=0.5,
    ),
)

_BROKEN = (
    Specimen(
        name="laplace-deviation-as-scale",
        title="1/epsilon used as the deviation of Laplace noise",
        broken=True,
        why="The deviation of Laplace(b) is sqrt(2) b, so the scale is too small by sqrt(2).",
        mechanism=shifted(lambda size: noise.laplace(math.sqrt(0.5), size)),
        pair=(0, 1),
        epsilon=1,
        truth=math.sqrt(2),
    ),
    Specimen(
        name="laplace-scale-floored",
        title="A scale of 1/0.7 kept in a whole number",
        broken=True,
        why="1.43 becomes 1, which is the scale of epsilon 1.",
        mechanism=shifted(lambda size: noise.laplace(int(1 / 0.7), size)),
        pair=(0, 1),
        epsilon=0.7,
        truth=1,
    ),
    Specimen(
        name="laplace-decimal-logarithm",
        title="Laplace noise by inversion with the decimal logarithm",
        broken=True,
        why="log10 shrinks the noise by log 10 = 2.3.",
        mechanism=shifted(lambda size: noise.laplace(2 / math.log(10), size)),
        pair=(0, 1),
        epsilon=0.5,
        truth=0.5 * math.log(10),
    ),
    Specimen(
        name="laplace-one-sided",
        title="Exponential noise in place of Laplace noise",
        broken=True,
        why="Noise that is never negative never shows a value below the true one.",
        mechanism=shifted(lambda size: noise.exponential(1, size)),
        pair=(0, 1),
        epsilon=1,
        truth=math.inf,
    ),
    Specimen(
        name="laplace-cut-off",
        title="Laplace noise limited to six, for neatness",
        broken=True,
        why="The largest output of one value cannot be reached from the other.",
        mechanism=shifted(lambda size: np.clip(noise.laplace(2, size), -6, 6)),
        pair=(0, 1),
        epsilon=0.5,
        truth=math.inf,
    ),
    Specimen(
        name="laplace-few-bits",
        title="Laplace noise from ten random bits",
        broken=True,
        why="There are a thousand possible outputs for each value, and two values share almost none.",
        mechanism=shifted(_few_bits),
        pair=(0, 1),
        epsilon=1,
        truth=math.inf,
    ),
    Specimen(
        name="redrawn-until-plausible",
        title="Geometric noise redrawn until the count is not negative",
        broken=True,
        why="The share of redraws depends on the count: P(0|0)/P(0|1) is e^epsilon + 1 - e^-epsilon.",
        mechanism=_redrawn,
        pair=(0, 1),
        epsilon=0.5,
        truth=math.log(math.exp(0.5) + 1 - math.exp(-0.5)),
    ),
    Specimen(
        name="geometric-wrong-alpha",
        title="e^-epsilon passed as a success probability",
        broken=True,
        why="The sampler wants the probability to stop, so alpha is 1 - e^-epsilon.",
        mechanism=shifted(lambda size: noise.geometric(1 - math.exp(-0.5), size)),
        pair=(0, 1),
        epsilon=0.5,
        truth=-math.log(1 - math.exp(-0.5)),
    ),
    Specimen(
        name="gaussian-delta-forgotten",
        title="Normal noise of deviation 1/epsilon sold as pure privacy",
        broken=True,
        why="The ratio of normal densities has no bound: without a delta no epsilon is enough.",
        mechanism=shifted(lambda size: noise.gaussian(1, size)),
        pair=(0, 1),
        epsilon=1,
        truth=math.inf,
    ),
    Specimen(
        name="gaussian-classic-beyond-its-range",
        title="The classic deviation sqrt(2 log(1.25/delta))/epsilon at epsilon 8",
        broken=True,
        why="Its proof ends at epsilon 1; at (8, 0.2) the true delta is 0.48.",
        mechanism=shifted(lambda size: noise.gaussian(_CLASSIC, size)),
        pair=(0, 1),
        epsilon=8,
        delta=0.2,
        truth=_needed(_CLASSIC, 0.2),
        samples=2_000_000,
    ),
    Specimen(
        name="gaussian-variance-as-deviation",
        title="The variance passed where the deviation belongs",
        broken=True,
        why="The deviation for (4, 0.01) is below 1, and its square is smaller still.",
        mechanism=shifted(lambda size: noise.gaussian(_EXACT**2, size)),
        pair=(0, 1),
        epsilon=4,
        delta=0.01,
        truth=_needed(_EXACT**2, 0.01),
        samples=1_000_000,
    ),
)

SPECIMENS = _RIGHT + _BROKEN

"""Noise in floating point: textbook formulas that are private on paper, and whose last bits tell the value.

Value plus noise is rounded to the floats near the result: around 1 these are multiples of 2^-53, around 0 most are not.
Source: Mironov (CCS 2012); Jin et al., arXiv 2112.05307; Haney et al., arXiv 2207.13793.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sordino.audit.known_truth import noise
from sordino.audit.known_truth.noise import Floats
from sordino.audit.known_truth.specimen import Specimen
from sordino.mechanisms.gaussian import Gaussian

__all__ = ["SPECIMENS", "inverted_laplace", "snapped_laplace"]

_DEVIATION = float(Gaussian.calibrated(sensitivity=1, epsilon=1, delta=0.01).scale)


def _coarse(shape: int | tuple[int, ...]) -> Floats:
    """Uniform multiples of 2^-53 in (0, 1], as most libraries make them."""
    return np.asarray(np.ceil(noise.uniform(shape) * 2.0**53) * 2.0**-53)


def inverted_laplace(data: Any, scale: float, size: int) -> Floats:
    """The inverse of the distribution function, in floats."""
    centred = _coarse(size) - 0.5
    magnitude = -scale * np.log(np.maximum(1 - 2 * np.abs(centred), 2.0**-53))
    return np.asarray(float(data) + np.copysign(magnitude, centred))


def snapped_laplace(data: Any, epsilon: float, bound: float, size: int) -> Floats:
    """Mironov's snapping: clamp, add, round to a power of two above the scale, clamp."""
    scale = (1 + bound * 2.0**-49) / epsilon
    step = 2.0 ** math.ceil(math.log2(scale))
    sign = np.where(noise.uniform(size) < 0.5, -1.0, 1.0)
    noisy = np.clip(float(data), -bound, bound) + sign * scale * np.log(noise.uniform(size))
    return np.asarray(np.clip(np.rint(noisy / step) * step, -bound, bound))


def _sum_of_two(size: int) -> Floats:
    """Laplace noise as a sum of products, meant to hide the last bits."""
    u, v = _coarse((2, size)), _coarse((2, size))
    return np.asarray((np.log(u) * np.cos(np.pi * v)).sum(axis=0))


def _box_muller(size: int) -> Floats:
    return np.asarray(np.sqrt(-2 * np.log(_coarse(size))) * np.cos(2 * np.pi * _coarse(size)))


def _polar(size: int) -> Floats:
    """A point of the disc, stretched to a normal one."""
    made: list[Floats] = []
    while sum(map(len, made)) < size:
        x, y = 2 * _coarse((2, size)) - 1
        square = x * x + y * y
        inside = (square > 0) & (square < 1)
        made.append(x[inside] * np.sqrt(-2 * np.log(square[inside]) / square[inside]))
    return np.concatenate(made)[:size]


def _rounded_like_value(data: Any, *, size: int) -> Floats:
    """Rounded to as many digits as the true mean has."""
    exact = float(data)
    digits = len(f"{exact:.3f}".rstrip("0").partition(".")[2])
    return np.round(exact + noise.laplace(1, size), digits)


SPECIMENS = (
    Specimen(
        name="snapped-laplace",
        title="Float Laplace noise, snapped to a coarse grid",
        broken=False,
        why="Snapping hides the last bits, at the price that the scale is a little larger.",
        mechanism=lambda data, *, size: snapped_laplace(data, 1, 64, size),
        pair=(0, 1),
        epsilon=1,
        truth=1,
    ),
    Specimen(
        name="float-laplace-inversion",
        title="Float Laplace noise by inversion",
        broken=True,
        why="Many floats can only come from one of two values.",
        mechanism=lambda data, *, size: inverted_laplace(data, 1, size),
        pair=(0, 1),
        epsilon=1,
        truth=math.inf,
    ),
    Specimen(
        name="float-laplace-sum",
        title="Float Laplace noise as a sum of products",
        broken=True,
        why="More uniforms make the last bits of the noise hard to guess; those of the sum still tell the value.",
        mechanism=lambda data, *, size: float(data) + _sum_of_two(size),
        pair=(0, 1),
        epsilon=1,
        truth=math.inf,
    ),
    Specimen(
        name="float-gaussian-box-muller",
        title="Float normal noise by Box and Muller's formula",
        broken=True,
        why="A quarter of the results for 0 cannot come from 1, far more than delta.",
        mechanism=lambda data, *, size: float(data) + _DEVIATION * _box_muller(size),
        pair=(0, 1),
        epsilon=1,
        delta=0.01,
        truth=math.inf,
    ),
    Specimen(
        name="float-gaussian-polar",
        title="Float normal noise by the polar method",
        broken=True,
        why="As with Box and Muller's formula, the sum is rounded to the floats near it.",
        mechanism=lambda data, *, size: float(data) + _DEVIATION * _polar(size),
        pair=(0, 1),
        epsilon=1,
        delta=0.01,
        truth=math.inf,
    ),
    Specimen(
        name="precision-of-value",
        title="Noise rounded to as many digits as the value has",
        broken=True,
        why="The digits of the output are those of the value.",
        mechanism=_rounded_like_value,
        pair=(2.5, 2.75),
        epsilon=1,
        truth=math.inf,
    ),
)

"""Fast noise for the zoo's mechanisms: float samplers whose results lie on one fixed grid.

They are good enough to audit against and not for release: the laws are right up to float error (a total variation of
some 1e-12). On a fixed grid the low bits of an output say nothing of the value to which the noise was added.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from sordino.mechanisms import bits

__all__ = [
    "GRID",
    "Floats",
    "Shape",
    "exponential",
    "gaussian",
    "geometric",
    "laplace",
    "on_grid",
    "uniform",
]

Floats = npt.NDArray[np.float64]
Shape = int | tuple[int, ...]
Words = npt.NDArray[np.int64]

GRID = 2.0**-20
"""Noise is a multiple of this, so sums with values of this grid are exact up to 2^33."""

_MASK = np.int64(2**63 - 1)
_ROUNDS = 1.5 * 2.0**52 * GRID
"""Adding and taking away this number rounds to the grid."""


def uniform(shape: Shape) -> Floats:
    """Uniform in (0, 1]: odd multiples of 2^-64, rounded to floats."""
    return _drawn(shape, _unit)


def laplace(scale: float, shape: Shape) -> Floats:
    """Laplace noise on the grid."""

    def transform(words: Words) -> Floats:
        magnitude = np.log(_unit(words))
        magnitude *= scale
        return on_grid(np.copysign(magnitude, words, out=magnitude))

    return _drawn(shape, transform)


def exponential(scale: float, shape: Shape) -> Floats:
    """Exponential noise on the grid, at least 0."""
    return _drawn(shape, lambda words: on_grid(-scale * np.log(_unit(words))))


def gaussian(scale: float, shape: Shape) -> Floats:
    """Normal noise of this standard deviation, on the grid."""

    def transform(words: Words) -> Floats:
        magnitude = scale * ndtri(_unit(words) / 2)
        return on_grid(np.copysign(magnitude, words, out=magnitude))

    return _drawn(shape, transform)


def geometric(alpha: float, shape: Shape) -> Floats:
    """Whole numbers k with probability proportional to alpha^|k|, as the difference of two geometric numbers."""
    rate = 1 / np.log(alpha)
    first, second = (
        _drawn(shape, lambda words: np.floor(np.log(_unit(words)) * rate)) for _ in range(2)
    )
    return first - second


def on_grid(values: Floats) -> Floats:
    """The nearest multiples of the grid, in place, for magnitudes below 2^30."""
    values += _ROUNDS
    values -= _ROUNDS
    return values


def _unit(words: Words) -> Floats:
    """Uniforms in (0, 1] from all bits but the sign, which stays free for other use."""
    return ((words & _MASK).astype(np.float64) + 0.5) * 2.0**-63


def _drawn(shape: Shape, transform: Callable[[Words], Floats]) -> Floats:
    """As many draws as the shape holds, made a chunk at a time."""
    drawn = np.empty(shape)
    flat, source = drawn.ravel(), bits.source()
    for start in range(0, flat.size, bits.CHUNK):
        block = flat[start : start + bits.CHUNK]
        block[:] = transform(source.words(block.size))
    return drawn

"""How far weighted sums of noise reach: the half-width of c1*Z1 + ... + cd*Zd for rounded Laplace or Normal noise.

Theorem. P[|c1*R1 + ... + cd*Rd| <= half_width] >= confidence for independent R = round(scale*Z). Proof in
combination.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from sordino.errors import InvalidInput
from sordino.mechanisms.rounded import coarseness
from sordino.privacy.exact import Number, float_lower, float_upper, open_unit

__all__ = ["EXACT", "Family", "Floats", "Noise", "half_width", "reach"]

Family: TypeAlias = Literal["laplace", "gaussian"]
Floats: TypeAlias = npt.NDArray[np.float64]

MOST = 10
"""Partial fractions of more Laplace laws lose too many digits."""

_GAP = {3: 2**-10, 4: 2**-10, 5: 2**-8, 6: 2**-7, 7: 2**-6, 8: 2**-5.75, 9: 2**-5.5, 10: 2**-5.25}
"""By the number of parts: scales closer than this, in logarithms,
are moved apart before partial fractions are taken.
"""
_STEPS = 40
_DOUBT = {
    1: 1e-13,
    2: 1e-12,
    3: 1e-7,
    4: 1e-5,
    5: 1e-5,
    6: 1e-5,
    7: 1e-5,
    8: 1e-5,
    9: 1e-5,
    10: 1e-5,
}
"""By the number of parts, more than the relative error of a tail probability in floats (combination.md)."""


@dataclass(frozen=True)
class Noise:
    """What was added to each whole number: rounded noise of one family and scale, in steps; None means nothing."""

    family: Family | None
    scale: float | Fraction = 0

    @property
    def rounding(self) -> float:
        """How far rounding moves a number at most, in steps: half of one, or of 2^j for large scales (rounded.md)."""
        return 2.0 ** (coarseness(self.scale) - 1)

    def half_width(self, coefficients: npt.ArrayLike, confidence: Number) -> Floats:
        """How far the weighted sums of this noise reach, one for each vector of coefficients along the last axis."""
        if self.family is None:
            return np.zeros(np.shape(coefficients)[:-1])
        return half_width(self.family, self.scale, coefficients, confidence, rounding=self.rounding)

    def norm(self, coefficients: npt.ArrayLike, confidence: Number) -> Floats:
        """A norm of the coefficients that is nowhere below the half-width: what rounding can add is counted in full."""
        if self.family is None:
            return np.zeros(np.shape(coefficients)[:-1])
        c = np.asarray(coefficients, np.float64)
        rounding = np.abs(c).sum(axis=-1) * self.rounding
        return np.asarray(
            _spread(self.scale) * reach(self.family, c, confidence) + rounding, np.float64
        )


EXACT = Noise(None)
"""No noise at all: answers about public tables."""


def half_width(
    family: Family,
    scale: float | Fraction,
    coefficients: npt.ArrayLike,
    confidence: Number,
    *,
    rounding: float = 0.5,
) -> Floats:
    """A q with P[|sum of coefficient * noise| <= q] >= confidence, for each vector along the last axis.

    `rounding` is how far rounding moves each noise at most: 1/2, 0 for noise that is not rounded, more for noise on a
    coarser lattice. For 1/2, and where only one coefficient is not zero, q is the smallest; otherwise it exceeds the
    smallest by at most rounding * sum|c| and a hair.

    Example:
        >>> half_width("laplace", 2, [[1.0], [-3.0]], 0.95)
        array([ 6., 18.])
    """
    c = np.abs(np.asarray(coefficients, np.float64))
    if c.ndim == 0 or c.shape[-1] == 0 or not np.isfinite(c).all():
        hint = "Pass an array whose last axis holds the weights of one sum."
        raise InvalidInput("coefficients", "each sum needs at least one finite coefficient", hint)
    spread = _spread(scale)
    unit = reach(family, c, confidence)
    single = (c > 0).sum(axis=-1) <= 1
    if rounding == 0.5:
        largest = c.max(axis=-1)
        with np.errstate(invalid="ignore"):
            steps = np.floor(np.where(largest > 0, unit / largest, 0.0) * spread + 0.5)
        alone = largest * steps
    else:
        alone = unit * spread + rounding * c.sum(axis=-1)
    together = unit * spread + rounding * c.sum(axis=-1)
    return np.asarray(np.where(single, alone, together), np.float64)


@lru_cache(maxsize=256, typed=True)  # a float has two readings, the fraction that it equals has one
def _alpha(confidence: Number) -> float:
    return float_lower(1 - open_unit("confidence", confidence).upper)


@lru_cache(maxsize=1024, typed=True)
def _spread(scale: float | Fraction) -> float:
    if not 0 < scale < math.inf:
        raise InvalidInput(
            f"scale={scale}",
            "the scale must be positive and finite",
            "Noise without a scale is `EXACT`.",
        )
    return float_upper(Fraction(scale))


def reach(family: Family, coefficients: npt.ArrayLike, confidence: Number) -> Floats:
    """The same for noise of scale one that is not rounded. It is a norm of the coefficients (combination.md)."""
    alpha = _alpha(confidence)
    c = np.abs(np.asarray(coefficients, np.float64))
    if family == "gaussian":
        from scipy.special import ndtri

        largest = c.max(axis=-1)
        with np.errstate(invalid="ignore"):
            length = largest * np.sqrt(
                np.square(c / np.where(largest > 0, largest, 1.0)[..., None]).sum(axis=-1)
            )
        return np.asarray(length * (-ndtri(alpha / 2) * (1 + _DOUBT[1])), np.float64)
    return _laplace(c, alpha)


def _laplace(c: Floats, alpha: float) -> Floats:
    parts = c.shape[-1]
    flat = np.sort(c.reshape(-1, parts), axis=-1)[:, ::-1]
    used = (flat > 0).sum(axis=-1)
    if used.size and used.max() > MOST:
        hint = "Combine fewer noisy numbers."
        raise InvalidInput(
            f"{used.max()} coefficients", f"at most {MOST} Laplace noises can be combined", hint
        )
    out = np.zeros(len(flat))
    for d in range(1, int(used.max(initial=0)) + 1):
        rows = np.flatnonzero(used == d)
        if rows.size:
            scales = flat[rows, :d]
            largest = scales[:, 0]
            out[rows] = largest * _tail_inverse(scales / largest[:, None], alpha)
    return out.reshape(c.shape[:-1])


def _tail_inverse(scales: Floats, alpha: float) -> Floats:
    """The x with P[|S| > x] = alpha for sums S of Laplaces with these scales, largest first, which is 1.

    log P is concave and falls, so that Newton's steps come from the right after the first one: each is safe to stop at.
    """
    doubt = _DOUBT[scales.shape[1]]
    target = -math.log(alpha) + doubt
    x = np.full(len(scales), target)
    if scales.shape[1] == 1:
        return x
    law: Any
    if scales.shape[1] == 2:
        law = _Two(scales[:, 1])
    else:
        law = _Several(_apart(scales))
        x = x / law.rates[:, 0]
    for step in range(_STEPS):
        log_tail, hazard = law.at(x)
        change = (log_tail + target) / hazard
        # Beyond the first step the exact change is never positive: what is positive is rounding error.
        if step:
            change = np.minimum(change, 0.0)
        x = x + change
        if step and np.abs(change).max() < max(1e-13, doubt / 100) * target:
            break
    return x


class _Two:
    """P[|Z1 + r*Z2| > x] = e^-x (1 + r x f(y)/(1+r)), y = x(1-r)/r, f(y) = (1 - e^-y)/y; nothing cancels at r = 1."""

    def __init__(self, ratio: Floats) -> None:
        self.r = ratio
        with np.errstate(over="ignore"):
            self.rate = (1 - ratio) / ratio

    def at(self, x: Floats) -> tuple[Floats, Floats]:
        with np.errstate(over="ignore"):
            y = x * self.rate
        f = np.where(y > 1e-300, -np.expm1(-y) / np.where(y > 1e-300, y, 1.0), 1.0)
        more = self.r * x * f / (1 + self.r)
        return -x + np.log1p(more), (1 + x * f) / ((1 + self.r) * (1 + more))


class _Several:
    """P[|S| > x] = sum of w_j e^(-x/c_j), w_j = prod of c_j^2/(c_j^2 - c_i^2) over i != j, over the first term."""

    def __init__(self, scales: Floats) -> None:
        square, self.weights = np.square(scales), np.ones_like(scales)
        for j in range(scales.shape[1]):
            # nothing cancels after the first
            apart = (scales[:, j, None] - scales) * (scales[:, j, None] + scales)
            apart[:, j] = 1.0
            factors = square[:, j, None] / apart
            factors[:, j] = 1.0
            self.weights[:, j] = factors.prod(axis=1)
        with np.errstate(over="ignore"):
            self.rates = 1 / scales

    def at(self, x: Floats) -> tuple[Floats, Floats]:
        with np.errstate(over="ignore"):
            late = self.weights * np.exp(-(self.rates - self.rates[:, :1]) * x[:, None])
        tail = late.sum(axis=1)
        finite = np.where(late == 0, 0.0, self.rates)
        density = (late * finite).sum(axis=1)
        return -x * self.rates[:, 0] + np.log(tail), density / tail


def _apart(scales: Floats) -> Floats:
    """The scales, sorted from the largest, spread around their geometric means until each exceeds the next by the gap.

    Among all logarithms that fall by the gap or more, these are the nearest (isotonic regression, by its min-max
    formula).
    """
    count = scales.shape[1]
    slant = np.arange(count) * _GAP[count]
    sums = np.concatenate(
        [np.zeros((len(scales), 1)), np.cumsum(np.log(scales) + slant, axis=1)], axis=1
    )
    first, last = np.arange(count)[:, None], np.arange(count)[None, :]
    mean = (sums[:, last + 1] - sums[:, first]) / np.maximum(last - first + 1, 1)
    level = [mean[:, : j + 1, j:].min(axis=1).max(axis=1) for j in range(count)]
    # no rounding makes it smaller
    return np.asarray(np.exp(np.stack(level, axis=1) - slant) * (1 + 1e-12), np.float64)

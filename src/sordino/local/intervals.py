"""Intervals for a share, from how many reports speak for it: tests turned round, with the tails of the count's own law.

Near the ends of [0, 1] the tails share the error unequally, since an estimate below 0 is no evidence against a share of 0:
so that no interval is empty, and a share of exactly 0 is covered as often as any other. Argument in protocols.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from sordino.privacy.exact import Number, float_upper, open_unit

__all__ = ["SupportLaw", "level", "normal_quantile"]

Floats: TypeAlias = npt.NDArray[np.float64]
Indices: TypeAlias = npt.NDArray[np.int64]
Excess: TypeAlias = Callable[[Indices, Floats], Floats]

_ROUNDS = 32
_SECANTS = 3
_CLOSE = 1e-4
"""So many standard deviations beyond its place an end may be: outward, by less than anybody sees."""
_RARE = 36.0
"""Up to this variance of the count, heavier tails are tried as well."""


@dataclass(frozen=True)
class SupportLaw:
    """The number of `answers` reports that speak for something of which the share is unknown.

    Each of those it is true of speaks for it with probability `own`, each other person with probability `other`. In a
    population the truth is drawn as well, so that everyone speaks for it with one probability between.
    """

    answers: int
    own: Fraction
    other: Fraction
    population: bool

    def share(self, counts: npt.NDArray[Any]) -> Floats:
        """The unbiased estimate, which may fall outside [0, 1]."""
        slope = 1 / (self.own - self.other)
        return float(slope) * (np.asarray(counts) / self.answers) - float(slope * self.other)

    def variance(self, share: Floats) -> Floats:
        """The variance of the count."""
        if self.population:
            ones, zeros = self._chances(share)
            return self.answers * ones * zeros
        own, other = self._spreads
        return self.answers * (share * own + (1 - share) * other)

    def _chances(self, share: Floats) -> tuple[Floats, Floats]:
        """How likely someone drawn at random speaks for it, and against it: neither is rounded to nothing."""
        (own, other), (not_own, not_other) = self._both
        return share * own + (1 - share) * other, share * not_own + (1 - share) * not_other

    @cached_property
    def _both(self) -> tuple[tuple[float, float], tuple[float, float]]:
        return (float(self.own), float(self.other)), (float(1 - self.own), float(1 - self.other))

    @cached_property
    def _spreads(self) -> tuple[float, float]:
        """The variance of one report of someone of whom it is true, and of someone else."""
        return float(self.own * (1 - self.own)), float(self.other * (1 - self.other))

    def deviation(self, share: Floats) -> Floats:
        """The standard deviation of the estimate."""
        return np.sqrt(self.variance(share)) / (self.answers * self._slope)

    @cached_property
    def _slope(self) -> float:
        return float(self.own - self.other)

    def tails(self, counts: Floats, share: Floats) -> tuple[Floats, Floats]:
        """P[count >= counts] and P[count < counts]: exact for one probability, else by the shifted binomial law with the
        same three cumulants.

        Where few speak against their truth the binomial's tails are too light; the shifted difference of two Poisson
        variables, again with the same three cumulants, has heavier ones, and the larger of both is taken for each tail.
        """
        from scipy.special import betainc

        n, share = self.answers, np.broadcast_to(share, counts.shape)
        mean, variance = n * self._chances(share)[0], self.variance(share)
        own, other = self._spreads
        # each kind of person weighs by its part of the variance: this is the third cumulant's
        weight = share if self.population else share * own / (share * own + (1 - share) * other)
        chance, against = self._chances(weight)
        trials = variance / (chance * against)
        first = counts - (mean - trials * chance)
        above = betainc(np.maximum(first, 1e-9), np.maximum(trials - first + 1, 1e-9), chance)
        above = np.where(first <= 0, 1.0, np.where(first >= trials + 1, 0.0, above))
        below = 1 - above
        if not self.population:
            rare = 6 * (weight * own + (1 - weight) * other) < 0.5
            rare &= (variance < _RARE) & (0 < share) & (share < 1)
            if rare.any():
                skew = against - chance
                heavy = _difference_at_least(*(x[rare] for x in (counts - mean + skew * variance, skew, variance)))
                above[rare], below[rare] = np.maximum(above[rare], heavy), np.maximum(below[rare], 1 - heavy)
        none, all_ = counts <= 0, counts > n
        return np.where(none, 1.0, np.where(all_, 0.0, above)), np.where(none, 0.0, np.where(all_, 1.0, below))

    def ends(self, counts: npt.NDArray[Any], confidence: float) -> tuple[Floats, Floats]:
        """The lower and upper ends for many counts."""
        from scipy.special import ndtri

        values, back = np.unique(np.asarray(counts, np.float64), return_inverse=True)
        pairs = np.stack([values, values + 1])
        z = normal_quantile(confidence)
        estimate = np.clip(self.share(values), 0.0, 1.0)
        fine = max(36.0, (100 * math.exp(-z * z / 2) / math.sqrt(2 * math.pi)) ** 2)

        def excess(at: Indices, share: Floats, *, from_below: bool) -> Floats:
            """By how many normal deviations the count is too high (from below: the share is too small) or too low for
            this share: below 0 where it is not rejected.
            """
            deviation = np.maximum(self.deviation(share), 1e-300)
            near_0, near_1 = (1 - np.minimum(1, d / deviation / z) for d in (share, 1 - share))
            above = (1 - confidence) * (1 + near_0 - near_1) / 2
            allowed = above if from_below else 1 - confidence - above
            # what is seen counts for half (mid-p) where it is less than a hundredth likely, else whole, which is safer
            atom = np.where(self.variance(share) >= fine, 0.5, 1.0)
            here, next_ = self.tails(pairs[:, at], share)[0 if from_below else 1]
            tail = next_ + atom * (here - next_) if from_below else here + atom * (next_ - here)
            far: Floats = ndtri(np.maximum(allowed, 1e-300)) - ndtri(np.clip(tail, 1e-300, 1 - 1e-16))
            return np.where(tail <= allowed, np.maximum(far, 0.0), np.minimum(far, -1e-300))

        width = self.deviation(estimate)
        lower = _end(np.zeros_like(estimate), estimate, width, z, partial(excess, from_below=True))
        upper = _end(np.ones_like(estimate), estimate, width, z, partial(excess, from_below=False))
        # ends rise with the count, whichever way they were found
        return np.minimum.accumulate(lower[::-1])[::-1][back], np.maximum.accumulate(upper)[back]


def _end(outside: Floats, inside: Floats, width: Floats, z: float, excess: Excess) -> Floats:
    """The last rejected share on the way in from an end of [0, 1]; the end itself where it is not rejected.

    The excess is nearly linear in the share, so that a few secants find where it is 0; a share that is rejected and one
    close by that is not show it. Where they do not, near the ends and for few answers, halving does.
    """
    everything, sign = np.arange(len(outside)), np.where(outside < inside, 1.0, -1.0)
    near, far = np.minimum(outside, inside), np.maximum(outside, inside)
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        last = np.clip(inside - sign * z * width, near, far)
        off = excess(everything, last)
        share = np.clip(last + sign * off * width, near, far)
        for _ in range(_SECANTS):
            now = excess(everything, share)
            step = now * (share - last) / (now - off)
            last, off, share = share, now, np.clip(share - step, near, far)
        outer, inner = (np.clip(share + side * sign * _CLOSE * width, near, far) for side in (-1, 1))
    found = np.isfinite(share)
    outer, inner = np.where(found, outer, outside), np.where(found, inner, inside)
    found &= (excess(everything, outer) >= 0) & (excess(everything, inner) < 0)
    rest = np.flatnonzero(~found)
    outer[rest] = _halved(rest, outside[rest], inside[rest], excess)
    return outer


def _halved(at: Indices, outside: Floats, inside: Floats, excess: Excess) -> Floats:
    """The same by halving."""
    found = outside.copy()
    held = np.flatnonzero(excess(at, outside) >= 0)
    at, outside, inside = at[held], outside[held], inside[held]
    for _ in range(_ROUNDS if len(held) else 0):
        middle = (outside + inside) / 2
        out = excess(at, middle) >= 0
        outside, inside = np.where(out, middle, outside), np.where(out, inside, middle)
    found[held] = outside
    return found


def _difference_at_least(values: Floats, skew: Floats, variance: Floats) -> Floats:
    """P[A - B >= values] for Poisson variables A and B whose means differ by skew * variance and add up to variance.

    Source: Johnson 1959, as tails of the noncentral chi-squared law, which also serve between whole numbers.
    """
    from scipy.special import chndtr

    up, down = variance * (1 + skew), variance * (1 - skew)  # twice the means
    high = chndtr(up, 2 * np.maximum(values, 1e-9), down)
    low = 1 - chndtr(down, 2 * np.maximum(1 - values, 1e-9), up)
    return np.asarray(np.where(values >= 0.5, high, low))


def level(confidence: Number) -> float:
    """A confidence as a float, not below either of its readings."""
    return float_upper(open_unit("confidence", confidence).upper)


def normal_quantile(confidence: float) -> float:
    """The z such that a standard normal variable lies within z of 0 with this probability."""
    from scipy.special import ndtri

    return float(ndtri((1 + confidence) / 2))

"""Intervals for a share, from how many reports speak for it: tests turned round, with the tails of the count's own law.

Near the ends of [0, 1] the tails share the error unequally, since an estimate below 0 is no evidence against a share of 0:
so that no interval is empty, and a share of exactly 0 is covered as often as any other. Argument in protocols.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from sordino.privacy.exact import Number, float_upper, open_unit

__all__ = ["SupportLaw", "level", "normal_quantile"]

Floats: TypeAlias = npt.NDArray[np.float64]

_ROUNDS = 32
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
        return self.answers * (share * self._spread(self.own) + (1 - share) * self._spread(self.other))

    def _chances(self, share: Floats) -> tuple[Floats, Floats]:
        """How likely someone drawn at random speaks for it, and against it: neither is rounded to nothing."""
        ones = share * float(self.own) + (1 - share) * float(self.other)
        return ones, share * float(1 - self.own) + (1 - share) * float(1 - self.other)

    @staticmethod
    def _spread(chance: Fraction) -> float:
        return float(chance * (1 - chance))

    def deviation(self, share: Floats) -> Floats:
        """The standard deviation of the estimate."""
        return np.sqrt(self.variance(share)) / (self.answers * float(self.own - self.other))

    def tails(self, counts: Floats, share: Floats) -> tuple[Floats, Floats]:
        """P[count >= counts] and P[count < counts]: exact for one probability, else by the shifted binomial law with the
        same three cumulants.

        Where few speak against their truth the binomial's tails are too light; the shifted difference of two Poisson
        variables, again with the same three cumulants, has heavier ones, and the larger of both is taken for each tail.
        """
        from scipy.special import betainc

        n, share = self.answers, np.broadcast_to(share, counts.shape)
        mean, variance = n * self._chances(share)[0], self.variance(share)
        own, other = self._spread(self.own), self._spread(self.other)
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
        values, back = np.unique(np.asarray(counts, np.float64), return_inverse=True)
        pairs = np.stack([values, values + 1])
        z = normal_quantile(confidence)
        estimate = np.clip(self.share(values), 0.0, 1.0)
        fine = max(36.0, (100 * math.exp(-z * z / 2) / math.sqrt(2 * math.pi)) ** 2)

        def rejects(share: Floats, *, from_below: bool) -> npt.NDArray[np.bool_]:
            """Whether the count is too high (from below: the share is too small) or too low for this share."""
            deviation = np.maximum(self.deviation(share), 1e-300)
            near_0, near_1 = (1 - np.minimum(1, d / deviation / z) for d in (share, 1 - share))
            above = (1 - confidence) * (1 + near_0 - near_1) / 2
            # what is seen counts for half (mid-p) where it is less than a hundredth likely, else whole, which is safer
            atom = np.where(self.variance(share) >= fine, 0.5, 1.0)
            side = 0 if from_below else 1
            here, next_ = self.tails(pairs, share)[side]
            if from_below:
                return np.asarray(next_ + atom * (here - next_) <= above)
            return np.asarray(here + atom * (next_ - here) <= 1 - confidence - above)

        lower = _search(np.zeros_like(estimate), estimate, lambda s: rejects(s, from_below=True))
        upper = _search(np.ones_like(estimate), estimate, lambda s: rejects(s, from_below=False))
        return lower[back], upper[back]


def _search(outside: Floats, inside: Floats, rejected: Any) -> Floats:
    """The last rejected share on the way in from an end of [0, 1]; the end itself where it is not rejected."""
    free = ~rejected(outside)
    end = outside
    for _ in range(_ROUNDS):
        middle = (outside + inside) / 2
        out = rejected(middle)
        outside, inside = np.where(out, middle, outside), np.where(out, inside, middle)
    return np.where(free, end, outside)


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

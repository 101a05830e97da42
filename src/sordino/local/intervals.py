"""Intervals for a share, from how many reports speak for it: tests turned round, with the tails of the count's own law.

Near the ends of [0, 1] the tails share the error unequally, since an estimate below 0 is no evidence against a share
of 0: so that no interval is empty, and a share of exactly 0 is covered as often as any other. Argument in
protocols.md.
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
_FEW = 36.0
"""Up to this variance of the count, or more for rare errors, its law is added up exactly."""
_DEVIATIONS = 12
_AT_ONCE = 2048


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

    def tails(self, counts: Floats, share: Floats, few: float) -> tuple[Floats, Floats]:
        """P[count >= counts] and P[count < counts]: exact for one probability, and where the variance is below `few`;
        else by the shifted binomial law with the same three cumulants.
        """
        n, share = self.answers, np.broadcast_to(share, counts.shape)
        above = self._shifted(counts, share)
        if not self.population:
            exact = (self.variance(share) < few) & (0 < share) & (share < 1)
            if exact.any():
                above[exact] = self._convolved(counts[exact], share[exact])
        above = np.where(counts <= 0, 1.0, np.where(counts > n, 0.0, above))
        return above, 1 - above

    def _shifted(self, counts: Floats, share: Floats) -> Floats:
        from scipy.special import betainc

        mean, variance = self.answers * self._chances(share)[0], self.variance(share)
        own, other = self._spreads
        # each kind of person weighs by its part of the variance: this is the third cumulant's
        weight = share if self.population else share * own / (share * own + (1 - share) * other)
        chance, against = self._chances(weight)
        trials = variance / (chance * against)
        first = counts - (mean - trials * chance)
        above = betainc(np.maximum(first, 1e-9), np.maximum(trials - first + 1, 1e-9), chance)
        return np.where(first <= 0, 1.0, np.where(first >= trials + 1, 0.0, above))

    def _convolved(self, counts: Floats, share: Floats) -> Floats:
        """P[count >= counts] by adding up over how many of those it is true of speak for it; between whole numbers of
        persons in proportion.
        """
        found = np.empty_like(counts)
        for start in range(0, len(counts), _AT_ONCE):
            part = slice(start, start + _AT_ONCE)
            having = self.answers * share[part]
            whole = np.minimum(np.floor(having), self.answers - 1)
            low, high = (self._both_kinds(counts[part], whole + more) for more in (0, 1))
            found[part] = low + (having - whole) * (high - low)
        return found

    def _both_kinds(self, counts: Floats, having: Floats) -> Floats:
        """The same if it is true of this many, a whole number."""
        from scipy.special import betainc, gammaln

        (own, other), (not_own, _) = self._both
        far = (
            math.ceil(_DEVIATIONS * math.sqrt(float(having.max()) * self._spreads[0])) + _DEVIATIONS
        )
        speak = np.round(having * own)[:, None] + np.arange(-far, far + 1.0)
        m, others = having[:, None], self.answers - having[:, None]
        inside = (speak >= 0) & (speak <= m)
        j = np.clip(speak, 0, m)
        log = (
            -gammaln(j + 1)
            - gammaln(m - j + 1)
            + j * math.log1p(-not_own)
            + (m - j) * math.log(not_own)
        )
        chance = np.where(
            inside, np.exp(log - np.where(inside, log, -math.inf).max(1, keepdims=True)), 0.0
        )
        need = counts[:, None] - j
        rest = betainc(np.maximum(need, 1e-9), np.maximum(others - need + 1, 1e-9), other)
        rest = np.where(need <= 0, 1.0, np.where(need > others, 0.0, rest))
        return np.asarray((chance * rest).sum(1) / chance.sum(1))

    def ends(self, counts: npt.NDArray[Any], confidence: float) -> tuple[Floats, Floats]:
        """The lower and upper ends for many counts."""
        from scipy.special import ndtri

        values, back = np.unique(np.asarray(counts, np.float64), return_inverse=True)
        pairs = np.stack([values, values + 1])
        z = normal_quantile(confidence)
        estimate = np.clip(self.share(values), 0.0, 1.0)
        fine = max(36.0, (100 * math.exp(-z * z / 2) / math.sqrt(2 * math.pi)) ** 2)
        # what is seen counts for half (mid-p) where it is less than a hundredth likely, else whole, which is safer
        atoms = np.where(self.variance(estimate) >= fine, 0.5, 1.0)
        few = max(_FEW, z**4 / 4)

        def excess(at: Indices, share: Floats, *, from_below: bool) -> Floats:
            """By how many normal deviations the count is too high (from below: the share is too small) or too low for
            this share: below 0 where it is not rejected.
            """
            deviation = np.maximum(self.deviation(share), 1e-300)
            near_0, near_1 = (1 - np.minimum(1, d / deviation / z) for d in (share, 1 - share))
            above = (1 - confidence) * (1 + near_0 - near_1) / 2
            allowed = above if from_below else 1 - confidence - above
            here, next_ = self.tails(pairs[:, at], share, few)[0 if from_below else 1]
            tail = (
                next_ + atoms[at] * (here - next_)
                if from_below
                else here + atoms[at] * (next_ - here)
            )
            far: Floats = ndtri(np.maximum(allowed, 1e-300)) - ndtri(
                np.clip(tail, 1e-300, 1 - 1e-16)
            )
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
        outer, inner = (
            np.clip(share + side * sign * _CLOSE * width, near, far) for side in (-1, 1)
        )
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


def level(confidence: Number) -> float:
    """A confidence as a float, not below either of its readings."""
    return float_upper(open_unit("confidence", confidence).upper)


def normal_quantile(confidence: float) -> float:
    """The z such that a standard normal variable lies within z of 0 with this probability."""
    from scipy.special import ndtri

    return float(ndtri((1 + confidence) / 2))

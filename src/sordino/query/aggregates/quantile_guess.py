"""A guess of all quantiles from a few that are known: a monotone curve through them, with tails that go on growing.

It is made of drawn points and of nothing else, so that it costs nothing; that intervals cover does not depend on it
(quantiles.md, Lemma 3), only how wide they are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["QuantileGuess"]

Floats = npt.NDArray[np.float64]

_STEEPEST = 2.0
"""How fast the slope of a tail may grow: with which power of the part of the weight that lies beyond."""

_FINE = 2.0**40
"""Levels are multiples of its inverse, so that one less a level is exact."""


@dataclass(frozen=True)
class QuantileGuess:
    """The curve through points (levels, places), both sorted; the levels are different."""

    levels: Floats
    places: Floats

    @classmethod
    def of(cls, levels: Floats, places: Floats) -> QuantileGuess:
        """Levels are rounded, and of those that are no longer different one is taken."""
        different, first = np.unique(np.rint(levels * _FINE) / _FINE, return_index=True)
        return cls(different, places[first])

    def at(self, wanted: Floats) -> Floats:
        """Where levels lie; infinite from the level 1 on and from 0 down, and outside of fewer than three points."""
        if len(self.levels) < 3:
            found = np.interp(wanted, self.levels, self.places)
            bottom, top = self.levels[0], self.levels[-1]
        else:
            mirrored = QuantileGuess(1 - self.levels[::-1], -self.places[::-1])
            low, high = self.levels[1], self.levels[-2]
            found = self._cubic(np.clip(wanted, low, high))
            found = np.where(wanted > high, self._tail(1 - np.maximum(wanted, high)), found)
            found = np.where(wanted < low, -mirrored._tail(np.minimum(wanted, low)), found)
            bottom, top = np.nextafter(0.0, 1), np.nextafter(1.0, 0)
        return np.where(wanted < bottom, -np.inf, np.where(wanted > top, np.inf, found))

    def _cubic(self, wanted: Floats) -> Floats:
        """Between the second level and the last but one: cubic pieces."""
        widths, slopes = np.diff(self.levels), self._slopes()
        at = np.clip(np.searchsorted(self.levels, wanted, side="right") - 1, 0, len(widths) - 1)
        width, part = widths[at], (wanted - self.levels[at]) / widths[at]
        rest = 1 - part
        ends = (1 + 2 * part) * rest**2 * self.places[at]
        ends += (1 + 2 * rest) * part**2 * self.places[at + 1]
        bend = width * part * rest * (rest * slopes[at] - part * slopes[at + 1])
        return np.asarray(ends + bend)

    def _slopes(self) -> Floats:
        """Weighted harmonic means of the steps beside, which keep the curve monotone (Fritsch, Butland 1984)."""
        widths = np.diff(self.levels)
        steps = np.diff(self.places) / widths
        left, right = 2 * widths[1:] + widths[:-1], widths[1:] + 2 * widths[:-1]
        with np.errstate(divide="ignore"):
            inner = (left + right) / (left / steps[:-1] + right / steps[1:])
        return np.concatenate([steps[:1], inner, steps[-1:]])

    def _tail(self, beyond: Floats) -> Floats:
        """Behind the last level but one, by the part of the weight beyond; through the last level's point."""
        last, before, third = 1 - self.levels[-1], 1 - self.levels[-2], 1 - self.levels[-3]
        power = self._power(last, before, third)
        step = self.places[-1] - self.places[-2]
        share = _grown(np.maximum(beyond, 0) / before, power) / _grown(last / before, power)
        return np.asarray(self.places[-2] + step * share)

    def _power(self, last: float, before: float, third: float) -> float:
        """With which power of the weight beyond the slope grows, from the two outermost steps."""
        outer = (self.places[-1] - self.places[-2]) / (before - last)
        inner = (self.places[-2] - self.places[-3]) / (third - before)
        if last <= 0 or outer <= inner:
            return 0.0
        apart = np.log(_middle(before, third) / _middle(last, before))
        if inner <= 0 or apart <= 0:
            return _STEEPEST
        return float(min(np.log(outer / inner) / apart, _STEEPEST))


def _middle(low: float, high: float) -> float:
    """The logarithmic mean, at which the slope of an exponential tail is that of its chord."""
    return float((high - low) / np.log(high / low))


def _grown(part: Floats | float, power: float) -> Floats:
    """The integral of y^-power from `part` to 1."""
    parts = np.asarray(part, np.float64)
    with np.errstate(divide="ignore"):
        if abs(power - 1) < 1e-6:
            return np.asarray(-np.log(parts))
        return np.asarray((1 - parts ** (1 - power)) / (1 - power))

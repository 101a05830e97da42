"""A guess of all quantiles from a few that are known: straight on from each, with tails that go on growing.

It is made of drawn points and of nothing else, so that it costs nothing; that intervals cover does not depend on it
(quantiles.md, Lemma 3), only how wide they are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["QuantileGuess"]

Floats = npt.NDArray[np.float64]

_FINE = 2.0**40
"""Levels are taken as multiples of its inverse, so that one less a level is exact."""

_STEEPEST = 2.0
"""How fast the slope of a tail may grow: with which power of the part of the weight that lies beyond."""

_TAIL = 1.0
"""That power where nothing tells it: an exponential tail."""

_JUMP = 5.0
"""From how many times steeper on one side of a point than on the other the steeper step is taken to have a jump."""


@dataclass(frozen=True)
class QuantileGuess:
    """From points (levels, places), both sorted."""

    levels: Floats
    places: Floats

    def around(self, widths: Floats) -> tuple[Floats, Floats]:
        """Where the quantiles of each level less and plus a width lie, one column for each level; some are infinite.

        From fewer than three levels, or from levels that are all but the same, nothing can be guessed.
        """
        levels = np.rint(self.levels * _FINE) / _FINE
        if len(levels) < 3 or not (np.diff(levels) > 0).all():
            return np.full_like(widths, -np.inf), np.full_like(widths, np.inf)
        known = QuantileGuess(levels, self.places)
        mirrored = QuantileGuess(1 - levels[::-1], -self.places[::-1])
        lower = -mirrored._above(widths[:, ::-1], known)[:, ::-1]
        return lower, known._above(widths, mirrored)

    def _above(self, widths: Floats, mirrored: QuantileGuess) -> Floats:
        """On the straight line up to the next known point, on the line from point to point behind it; on a tail's curve
        between its two outermost points and beyond. What is not known of a tail is taken to be what reaches farther.
        """
        wanted = self.levels + widths
        following = np.append(self.levels[1:], 1)
        points = np.interp(wanted, self.levels, self.places)
        straight = self.places + self._slopes() * widths
        found = np.where(wanted < following, straight, np.maximum(straight, points))
        low, high = self.levels[1], self.levels[-2]
        inward = mirrored._tail(np.minimum(wanted, low), mirrored._power(_TAIL))
        found = np.where(wanted < low, -inward, found)
        beyond = 1 - np.maximum(wanted, high)
        outward = np.maximum(*(self._tail(beyond, self._power(unknown)) for unknown in (0, _TAIL)))
        found = np.where(wanted > high, outward, found)
        return np.where(wanted >= 1, np.inf, found)

    def _slopes(self) -> Floats:
        """Means of the steps beside that are nearer to the smaller one (Fritsch, Butland 1984); at the ends one step.

        Where values jump on one side of a point, those on the other side decide: almost alone, if it is a large jump.
        """
        widths = np.diff(self.levels)
        steps = np.diff(self.places) / widths
        left, right = 2 * widths[1:] + widths[:-1], widths[1:] + 2 * widths[:-1]
        with np.errstate(divide="ignore"):
            mean = (left + right) / (left / steps[:-1] + right / steps[1:])
        flat, steep = np.minimum(steps[:-1], steps[1:]), np.maximum(steps[:-1], steps[1:])
        even = np.divide(_JUMP * flat, steep, out=np.ones_like(flat), where=steep > 0)
        inner = flat + (mean - flat) * np.minimum(even, 1)
        return np.concatenate([steps[:1], inner, steps[-1:]])

    def _tail(self, beyond: Floats, power: float) -> Floats:
        """Behind the last level but one, by the part of the weight beyond; through the last level's point."""
        last, before = 1 - self.levels[-1], 1 - self.levels[-2]
        step = self.places[-1] - self.places[-2]
        if not step:
            return np.full_like(beyond, self.places[-2])
        share = _grown(np.maximum(beyond, 0) / before, power) / _grown(last / before, power)
        return np.asarray(self.places[-2] + step * share)

    def _power(self, unknown: float) -> float:
        """With which power of the weight beyond the slope grows, from the two outermost steps.

        Where values jump at the inner one it tells nothing about the tail.
        """
        last, before, third = 1 - self.levels[-1], 1 - self.levels[-2], 1 - self.levels[-3]
        outer = (self.places[-1] - self.places[-2]) / (before - last)
        inner = (self.places[-2] - self.places[-3]) / (third - before)
        if last > 0 and inner > _JUMP * outer:
            return unknown
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

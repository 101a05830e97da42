"""Quantiles of the weights on a public grid: exponential mechanisms on ranks, one charge for several levels of one column.

A weight counts for its cell's whole width: it is spread evenly over `FINENESS` parts of the cell, so that ties can be
divided. Theorems (privacy, exactness, coverage of the interval) and proofs are in quantiles.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from sordino.errors import InvalidInput
from sordino.mechanisms.bits import Bits
from sordino.mechanisms.discrete import uniform
from sordino.mechanisms.exponential import draw, happens
from sordino.mechanisms.observer import drawn
from sordino.privacy.ball import ball, certified, exact_upper
from sordino.privacy.exact import Number, open_unit, show

__all__ = ["FINENESS", "MOST_POSITIONS", "QuantileDraw", "QuantileEstimate", "interval_rank", "noisy_quantiles",
           "rank_bound", "rank_error", "rates"]  # fmt: skip

FINENESS = 1024
"""Into how many parts a cell is divided. A public constant; ranks within a tie are known to 1/1024 of its weight."""

MOST_POSITIONS = 2**50

INTERVAL_SHARE = Fraction(1, 10)
"""The part of epsilon that buys the intervals."""

_RUNGS = 40
_GROWTH = 1.2


@dataclass(frozen=True)
class QuantileEstimate:
    """A cell of the grid, and two cells between which all true quantiles lie with the confidence that was asked for."""

    value: int
    low: int
    high: int


@dataclass(frozen=True)
class QuantileDraw:
    """Everything but the weights that `noisy_quantiles` was told, as an audit names it."""

    positions: int
    levels: tuple[Fraction, ...]
    rate: Fraction
    flank_rate: Fraction | None
    confidence: Number

    @property
    def whole_rate(self) -> Fraction:
        """The loss per unit of moved weight."""
        return self.rate + (self.flank_rate or 0)


def rates(epsilon: Fraction, l1: int, *, interval: bool = True) -> tuple[Fraction, Fraction | None]:
    """The loss per unit of moved weight, of the point draws and of the interval draws, which make epsilon in total.

    `l1` is how much weight one person moves at most, in all groups together.
    """
    if epsilon <= 0 or l1 < 1:
        value = f"epsilon={show(epsilon)}, l1={show(l1)}"
        raise InvalidInput(value, "both must be greater than zero", "l1 is the weight that one person can move.")
    if not interval:
        return epsilon / l1, None
    return epsilon * (1 - INTERVAL_SHARE) / l1, epsilon * INTERVAL_SHARE / l1


def noisy_quantiles(
    cells: npt.NDArray[np.int64],
    weights: npt.NDArray[np.int64],
    *,
    positions: int,
    levels: tuple[Fraction, ...],
    rate: Fraction,
    bits: Bits | None = None,
    flank_rate: Fraction | None = None,
    confidence: Number = 0.95,
) -> tuple[QuantileEstimate, ...]:
    """One estimate for each level, from the weights (0 or more) of some cells in 0 .. positions-1, sorted and different.

    The estimates never fall as the level grows. Without a `flank_rate` the intervals are the whole grid. `bits` is for
    tests, which bring their own.

    Privacy: with neighbours that differ by at most w units of weight, in all calls with these rates together, all that
    comes back is (rate + flank_rate) * w differentially private.
    """
    if rate <= 0 or (flank_rate is not None and flank_rate <= 0):
        given = f"rate={show(rate)}, flank_rate={show(flank_rate)}"
        raise InvalidInput(given, "a rate must be greater than zero", "Use rates(epsilon, l1).")
    spread = _Spread.of(cells, weights, positions, levels)
    told = QuantileDraw(positions, levels, rate, flank_rate, confidence)
    return drawn(told, "noisy_quantiles", (cells, weights), lambda source: _estimates(spread, told, bits or source))


def _estimates(spread: _Spread, told: QuantileDraw, bits: Bits) -> tuple[QuantileEstimate, ...]:
    asked = sorted(set(told.levels))
    depth = len(asked).bit_length()
    cuts = _Descent(spread, tuple(asked), told.rate / depth, bits).cuts()
    found: dict[Fraction, QuantileEstimate] = {}
    for level, cut in zip(asked, cuts, strict=True):
        value = min(cut // FINENESS, told.positions - 1)
        low, high = 0, told.positions - 1
        if told.flank_rate is not None and told.positions > 1:
            rate = told.flank_rate / len(asked)
            low, high = _Intervals.around(value, spread, level, rate, told.confidence).draw(bits)
        found[level] = QuantileEstimate(value, low, high)
    return tuple(found[level] for level in told.levels)


@dataclass(frozen=True)
class _Spread:
    """The weights spread over the parts of their cells. A cut lies before a part: 0 is before all, `last` behind all.

    Weight is counted in units of 1/FINENESS of a unit, so that all numbers are whole. The first entry of each array stands
    for the nothing before the grid.
    """

    positions: int
    starts: npt.NDArray[np.int64]
    weights: npt.NDArray[Any]
    ends: npt.NDArray[Any]

    @classmethod
    def of(
        cls, cells: npt.NDArray[np.int64], weights: npt.NDArray[np.int64], positions: int, levels: tuple[Fraction, ...]
    ) -> _Spread:
        if not 1 <= positions <= MOST_POSITIONS:
            rule = f"a grid must have 1 to {MOST_POSITIONS} positions"
            raise InvalidInput(f"positions={show(positions)}", rule, "Choose a coarser step.")
        if not levels or not all(0 <= level <= 1 for level in levels):
            rule = "there must be at least one level, and each between 0 and 1"
            raise InvalidInput(f"levels={show(levels)}", rule, "The median is the level 1/2.")
        cells, weights = np.asarray(cells, np.int64), np.asarray(weights, np.int64)
        if cells.shape != weights.shape or cells.ndim != 1 or not _on_grid(cells, weights, positions):
            rule = "cells must be sorted, different and on the grid, each with one weight that is not negative"
            raise InvalidInput(f"{cells.size} cells, {weights.size} weights", rule, "Count the weights per cell first.")
        cells, weights = cells[weights > 0], weights[weights > 0]
        # the largest product that is ever computed: a rank times the common denominator of the levels. The denominator by
        # itself counts, too: whether numbers fit into 64 bits must not depend on whether a group is empty
        heaviest = max(1, math.ceil(weights.sum(dtype=np.float64)))
        largest = heaviest * FINENESS * math.lcm(*(p.denominator for p in levels))
        padded: npt.NDArray[Any] = np.concatenate([np.zeros(1, np.int64), weights])
        if largest > 2**60:
            padded = padded.astype(object)
        starts = np.concatenate([np.full(1, -FINENESS, np.int64), cells * FINENESS])
        return cls(positions, starts, padded, np.cumsum(padded) * FINENESS)

    @property
    def last(self) -> int:
        """The cut behind everything."""
        return self.positions * FINENESS

    def below(self, cuts: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        """The weight before each cut."""
        cell = np.searchsorted(self.starts, cuts, side="right") - 1
        missing = np.maximum(self.starts[cell] + FINENESS - cuts, 0)
        return np.asarray(self.ends[cell] - missing * self.weights[cell])

    def below_one(self, cut: int) -> int:
        """The weight before one cut."""
        cell = int(np.searchsorted(self.starts, cut, side="right")) - 1
        missing = max(int(self.starts[cell]) + FINENESS - cut, 0)
        return int(self.ends[cell]) - missing * int(self.weights[cell])

    def reach(self, weights: list[int]) -> npt.NDArray[np.int64]:
        """The first cut that has so much weight before it; one behind the last where there is none."""
        total = int(self.ends[-1])
        wanted = np.array([min(max(weight, 0), total + 1) for weight in weights], self.ends.dtype)
        cell = np.searchsorted(self.ends, wanted, side="left")
        inside = np.minimum(cell, len(self.ends) - 1)
        parts = (self.ends[inside] - wanted) // np.maximum(self.weights[inside], 1)
        cuts = np.maximum(self.starts[inside] + FINENESS - parts.astype(np.int64), 0)
        return np.where(cell == len(self.ends), self.last + 1, cuts)


def _on_grid(cells: npt.NDArray[np.int64], weights: npt.NDArray[np.int64], positions: int) -> bool:
    if not cells.size:
        return True
    return bool(cells[0] >= 0 and cells[-1] < positions and (cells[1:] > cells[:-1]).all() and weights.min() >= 0)


def _range(level: Fraction) -> int:
    """How much more one unit of rank can move one candidate's distance than another's: Lemma 1."""
    a, b = level.numerator, level.denominator
    return b if a in (0, b) else 2 * max(a, b - a)


@dataclass(frozen=True)
class _Descent:
    """Recursive splitting: the middle level first, then those below it on what lies before its cut, those above behind it.

    Source: Kaplan, Schnapp, Stemmer, "Differentially private approximate quantiles" (ICML 2022).
    """

    spread: _Spread
    levels: tuple[Fraction, ...]
    rate: Fraction
    """The loss per unit of weight and step of the descent."""
    bits: Bits

    def cuts(self) -> list[int]:
        """One cut for each level, in order."""
        return self._between(0, len(self.levels), 0, self.spread.last, Fraction(0), Fraction(1))

    def _between(self, start: int, stop: int, low: int, high: int, under: Fraction, over: Fraction) -> list[int]:
        if start == stop:
            return []
        middle = (start + stop) // 2
        level = self.levels[middle]
        cut = _draw_cut(self.spread, low, high, (level - under) / (over - under), self.rate, self.bits)
        left = self._between(start, middle, low, cut, under, level)
        return [*left, cut, *self._between(middle + 1, stop, cut, high, level, over)]


def _draw_cut(spread: _Spread, low: int, high: int, level: Fraction, rate: Fraction, bits: Bits) -> int:
    """A cut t in low .. high, drawn in proportion to exp(-rate/(FINENESS _range) |distance(t)|).

    distance = b (weight in low .. t) - a (weight in low .. high) for the level a/b. It never falls as t grows, so all cuts
    are sorted into few stretches on which it hardly changes. A stretch is drawn by its least distance, a cut within it
    uniformly, and kept with the probability that makes up for the difference.
    """
    a, b = level.numerator, level.denominator
    before = spread.below_one(low)
    target = a * (spread.below_one(high) - before)
    slope = rate / (FINENESS * _range(level))

    def distance(cut: int) -> int:
        return abs(b * (spread.below_one(cut) - before) - target)

    def reach(ranks: list[int]) -> npt.NDArray[np.int64]:
        return np.clip(spread.reach([before - (-rank // b) for rank in ranks]), low, high + 1)

    crossing = int(reach([target])[0])
    best = min(distance(crossing), distance(max(crossing - 1, low)))
    rung = max(1, int(2 / slope))
    rungs = [best + j * rung for j in range(_RUNGS + 1)]
    edges = np.unique([low, crossing, high + 1, *reach([target + sign * d for d in rungs for sign in (-1, 1)])])
    firsts, sizes = edges[:-1], np.diff(edges)
    ends = np.abs(b * (spread.below(np.stack([firsts, edges[1:] - 1])) - before) - target)
    least = np.minimum(ends[0], ends[1])
    while True:
        stretch = draw(sizes, least, slope, bits)
        cut = int(firsts[stretch]) + int(uniform(int(sizes[stretch]), 1, bits)[0])
        if happens(slope * (distance(cut) - int(least[stretch])), bits):
            return cut


@lru_cache(maxsize=4096)
def _offsets(reach: int) -> tuple[int, ...]:
    """The half-widths that an interval can have: 0, 1, 2, ... growing by a fifth, up to the one that reaches both ends."""
    found, width = {0, reach}, 1.0
    while width < reach:
        found.add(math.ceil(width))
        width *= _GROWTH
    return tuple(sorted(found))


@lru_cache(maxsize=256)
def _slack(candidates: int, slope: Fraction, confidence: Number) -> int:
    """The distance at which all wrong candidates together have no more than the probability that may fail."""
    alpha = 1 - open_unit("confidence", confidence).upper
    return math.ceil(exact_upper(certified(lambda: ball(max(1, candidates - 1) / alpha).log())) / slope)


@dataclass(frozen=True)
class _Intervals:
    """Some intervals around a cell, from the cell alone to the whole grid, and how far each is from the one that is wanted.

    An interval's margin is how far, in ranks, its nearer end is beyond the quantile; infinite at an end of the grid.
    It grows with the interval, so exactly one is the first whose margin reaches the slack: that one has distance 0. The
    others' distance is what the margin lacks, or by how much the one before is already too good.
    """

    lows: npt.NDArray[np.int64]
    highs: npt.NDArray[np.int64]
    distances: list[int]
    slope: Fraction

    @classmethod
    def around(cls, value: int, spread: _Spread, level: Fraction, rate: Fraction, confidence: Number) -> _Intervals:
        a, b = level.numerator, level.denominator
        top = spread.positions - 1
        widths = np.array(_offsets(max(value, top - value)), np.int64)
        lows, highs = np.maximum(value - widths, 0), np.minimum(value + widths, top)
        slope = rate / (2 * max(a, b - a))
        slack = _slack(len(widths), slope, confidence)
        total = a * (int(spread.ends[-1]) // FINENESS)
        # these are cuts between whole cells, so the division by FINENESS leaves nothing over
        under = (total - b * (spread.below(lows * FINENESS) // FINENESS)).tolist()
        over = (b * (spread.below((highs + 1) * FINENESS) // FINENESS) - total).tolist()
        distances, excess = [], 0
        for i in range(len(widths) - 1):
            margin = min(([under[i]] if lows[i] else []) + ([over[i]] if highs[i] < top else []))
            distances.append(max(slack - margin, excess))
            excess = max(0, margin - slack)
        return cls(lows, highs, [*distances, excess], slope)

    def draw(self, bits: Bits) -> tuple[int, int]:
        """The ends of one of them."""
        place = draw([1] * len(self.distances), self.distances, self.slope, bits)
        return int(self.lows[place]), int(self.highs[place])


def rank_error(rate: Fraction, confidence: Number = 0.95, *, levels: int = 1, level: Fraction = Fraction(1, 2)) -> float:
    """How many units of weight the rank of a point estimate is off, at most, where values lie densely and evenly.

    For previews: it is what to expect of one draw, not a guarantee for all data.
    """
    alpha = 1 - open_unit("confidence", confidence).upper
    spread = Fraction(_range(level), level.denominator) * levels.bit_length()
    return float(spread / rate) * -math.log(alpha)


def rank_bound(rate: Fraction, positions: int, confidence: Number = 0.95, *, level: Fraction = Fraction(1, 2)) -> float:
    """As `rank_error`, of one level asked alone, but for all data whatsoever: Theorem 5."""
    alpha = 1 - open_unit("confidence", confidence).upper
    spread = Fraction(_range(level), level.denominator)
    return float(spread / rate) * math.log((positions * FINENESS + 1) / alpha)


def interval_rank(
    flank_rate: Fraction, positions: int, confidence: Number = 0.95, *, levels: int = 1, level: Fraction = Fraction(1, 2)
) -> float:
    """The half-width of an interval to expect, in units of weight between the quantile and each end."""
    a, b = level.numerator, level.denominator
    slope = flank_rate / levels / (2 * max(a, b - a))
    return _slack(len(_offsets(positions - 1)), slope, confidence) / b

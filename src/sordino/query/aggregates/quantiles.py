"""Quantiles of the weights on a public grid: exponential mechanisms on ranks, one charge for several levels of one
column.

A weight counts for its cell's whole width: it is spread evenly over `FINENESS` parts of the cell, so that ties can be
divided. An estimate and its interval are one draw. Theorems (privacy, exactness, coverage) and proofs are in
quantiles.md.
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
from sordino.mechanisms.discrete import uniform_one
from sordino.mechanisms.exponential import Wheel, draw, happens
from sordino.mechanisms.observer import drawn
from sordino.privacy.ball import ball, certified, exact_upper
from sordino.privacy.exact import Number, open_unit, show
from sordino.query.aggregates.quantile_guess import QuantileGuess

__all__ = ["FINENESS", "MOST_POSITIONS", "QuantileDraw", "QuantileEstimate", "interval_rank", "noisy_quantiles",
           "rank_bound", "rank_error"]  # fmt: skip

FINENESS = 1024
"""Into how many parts a cell is divided. A public constant; ranks within a tie are known to 1/1024 of its weight."""

MOST_POSITIONS = 2**50

MOST_TOGETHER = 3
"""Up to this many levels each is drawn together with its interval; of more, the estimates share the steps of a
descent, and the intervals one draw.
"""

_POINTS = Fraction(3, 5)
"""Of more levels: the part of the rate that draws the estimates."""

_WIDENINGS = tuple(1.4**i / 2**20 for i in range(42))
"""Of more levels: by how much the one that is hardest to draw may be off, as a part of all weight, and the others in
proportion to their ranges. The last rung besides is the whole grid.
"""

_CENTRE = Fraction(1, 40)
"""Of more levels: the part of the intervals' rate that finds the rung where even ground would need to be."""

_PLAIN = Fraction(7, 10)
"""Of the probability that may fail, what goes to candidates in which no level is an exception."""

_WIDER = ((6, 3), (12, 5), (len(_WIDENINGS) + 1, 7))
"""By how many rungs an exception is wider than all others, and how many rungs narrower these must be to be worth it.
The last is the whole grid.
"""

_MOST_LEVELS = 24
"""Of how many levels, at most, one may be an exception; of more there are too many choices."""

_STRETCHES = (*range(12), *range(12, 160, 4))
"""Where distances are cut into stretches, in halves of an e-fold of probability beyond the best: as fine as pays."""

_WITHIN_A_CELL = (64, 16, 4)
_GROWTH = Fraction(7, 5)


@dataclass(frozen=True)
class QuantileEstimate:
    """A cell of the grid, and two cells between which the true quantile lies with the confidence that was asked for."""

    value: int
    low: int
    high: int


@dataclass(frozen=True)
class QuantileDraw:
    """Everything but the weights that `noisy_quantiles` was told, as an audit names it."""

    positions: int
    levels: tuple[Fraction, ...]
    rate: Fraction
    confidence: Number | None

    @property
    def whole_rate(self) -> Fraction:
        """The loss per unit of moved weight."""
        return self.rate


def noisy_quantiles(
    cells: npt.NDArray[np.int64],
    weights: npt.NDArray[np.int64],
    *,
    positions: int,
    levels: tuple[Fraction, ...],
    rate: Fraction,
    bits: Bits | None = None,
    confidence: Number | None = 0.95,
) -> tuple[QuantileEstimate, ...]:
    """One estimate for each level, from the weights (0 or more) of some cells in 0 .. positions-1, sorted and
    different.

    The estimates never fall as the level grows. Without a `confidence` the intervals are the whole grid, and estimates
    are a little better. `bits` is for tests, which bring their own.

    Privacy: with neighbours that differ by at most w units of weight, in all calls with this rate together, all that
    comes back is rate * w differentially private.
    """
    if rate <= 0:
        raise InvalidInput(
            f"rate={show(rate)}", "a rate must be greater than zero", "Use epsilon / l1."
        )
    if confidence is not None:
        open_unit("confidence", confidence)
    spread = _Spread.of(cells, weights, positions, levels)
    told = QuantileDraw(positions, levels, rate, confidence)
    return drawn(
        told,
        "noisy_quantiles",
        (cells, weights),
        lambda source: _estimates(spread, told, bits or source),
    )


def _estimates(spread: _Spread, told: QuantileDraw, bits: Bits) -> tuple[QuantileEstimate, ...]:
    asked = sorted(set(told.levels))
    drawn_cuts = _with_ends(spread, asked, told.rate, told.confidence, bits)
    found = {}
    for level, (_, start, end), nth in zip(
        asked, drawn_cuts, sorted(cut for cut, *_ in drawn_cuts), strict=True
    ):
        value = min(nth // FINENESS, told.positions - 1)
        low, high = max(start, 0) // FINENESS, (min(end, spread.last) - 1) // FINENESS
        found[level] = QuantileEstimate(value, min(low, value), max(high, value))
    return tuple(found[level] for level in told.levels)


def _with_ends(
    spread: _Spread, levels: list[Fraction], rate: Fraction, confidence: Number | None, bits: Bits
) -> list[tuple[int, int, int]]:
    """A cut for each level, and the ends of its interval."""
    points, intervals = _shares(len(levels), confidence)
    if confidence is not None and len(levels) <= MOST_TOGETHER:
        both = [
            _Ladder.of(spread, level, rate * intervals, confidence).draw_both(bits)
            for level in levels
        ]
        return [(cut, cut - offset, cut + offset) for cut, offset in both]
    cuts = _Descent(spread, tuple(levels), rate * points, bits).cuts()
    if confidence is None:
        return [(cut, 0, spread.last) for cut in cuts]
    ends = _Widening.of(spread, tuple(levels), rate * intervals, confidence).draw(cuts, bits)
    return [(cut, *own) for cut, own in zip(cuts, ends, strict=True)]


def _shares(levels: int, confidence: Number | None) -> tuple[Fraction, Fraction]:
    """The parts of the rate for one step towards the estimates, and for one draw of intervals: Theorem 3."""
    depth = levels.bit_length()
    if confidence is None:
        return Fraction(1, depth), Fraction(0)
    return (
        (Fraction(1, levels), Fraction(1, levels))
        if levels <= MOST_TOGETHER
        else (_POINTS / depth, 1 - _POINTS)
    )


@dataclass(frozen=True)
class _Spread:
    """The weights spread over the parts of their cells. A cut lies before a part: 0 is before all, `last` behind all.

    Weight is counted in units of 1/FINENESS of a unit, so that all numbers are whole. The first entry of each array
    stands for the nothing before the grid.
    """

    positions: int
    starts: npt.NDArray[np.int64]
    weights: npt.NDArray[Any]
    ends: npt.NDArray[Any]

    @classmethod
    def of(
        cls,
        cells: npt.NDArray[np.int64],
        weights: npt.NDArray[np.int64],
        positions: int,
        levels: tuple[Fraction, ...],
    ) -> _Spread:
        if not 1 <= positions <= MOST_POSITIONS:
            rule = f"a grid must have 1 to {MOST_POSITIONS} positions"
            raise InvalidInput(f"positions={show(positions)}", rule, "Choose a coarser step.")
        if not levels or not all(0 <= level <= 1 for level in levels):
            rule = "there must be at least one level, and each between 0 and 1"
            raise InvalidInput(f"levels={show(levels)}", rule, "The median is the level 1/2.")
        cells, weights = np.asarray(cells, np.int64), np.asarray(weights, np.int64)
        if (
            cells.shape != weights.shape
            or cells.ndim != 1
            or not _on_grid(cells, weights, positions)
        ):
            rule = "cells must be sorted, different and on the grid, each with one weight that is not negative"
            what = f"{cells.size} cells, {weights.size} weights"
            raise InvalidInput(what, rule, "Count the weights per cell first.")
        cells, weights = cells[weights > 0], weights[weights > 0]
        # the largest product that is ever computed: a rank times the common denominator of the levels. The denominator
        # by itself counts, too: whether numbers fit into 64 bits must not depend on whether a group is empty
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
        cell = int(self.starts.searchsorted(cut, side="right")) - 1
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
    return bool(
        cells[0] >= 0
        and cells[-1] < positions
        and (cells[1:] > cells[:-1]).all()
        and weights.min() >= 0
    )


def _range(level: Fraction) -> int:
    """How much more one unit of rank can move one candidate's distance than another's: Lemma 1."""
    a, b = level.numerator, level.denominator
    return b if a in (0, b) else 2 * max(a, b - a)


@dataclass(frozen=True)
class _Descent:
    """Recursive splitting: the middle level first, then those below it on what lies before its cut, those above behind
    it.

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

    def _between(
        self, start: int, stop: int, low: int, high: int, under: Fraction, over: Fraction
    ) -> list[int]:
        if start == stop:
            return []
        middle = (start + stop) // 2
        level = self.levels[middle]
        own = (level - under) / (over - under)
        cut, _ = _Cuts(self.spread, low, high, own, self.rate / (FINENESS * _range(own))).draw(
            self.bits
        )
        left = self._between(start, middle, low, cut, under, level)
        return [*left, cut, *self._between(middle + 1, stop, cut, high, level, over)]


class _Cuts:
    """The cuts low .. high, to be drawn in proportion to exp(-slope |distance|) any number of times.

    distance = b (weight in low .. t) - a (weight in low .. high) for the level a/b. It never falls as t grows, so all
    cuts are sorted into few stretches on which it hardly changes. A stretch is drawn by its least distance, a cut
    within it uniformly, and kept with the probability that makes up for the difference.
    """

    def __init__(
        self, spread: _Spread, low: int, high: int, level: Fraction, slope: Fraction
    ) -> None:
        self._spread, self._slope = spread, slope
        self._a, self._b = a, b = level.numerator, level.denominator
        self._before = before = spread.below_one(low)
        self._target = target = a * (spread.below_one(high) - before)

        def reach(ranks: list[int]) -> npt.NDArray[np.int64]:
            return np.clip(spread.reach([before - (-rank // b) for rank in ranks]), low, high + 1)

        crossing = int(reach([target])[0])
        best = min(abs(self.distance(crossing)), abs(self.distance(max(crossing - 1, low))))
        half = max(1, int(1 / (2 * slope)))
        rungs = [best + half * steps for steps in _STRETCHES]
        edges = np.unique(
            [
                low,
                crossing,
                high + 1,
                *reach([target + sign * d for d in rungs for sign in (-1, 1)]),
            ]
        )
        sizes = np.diff(edges)
        ends = np.abs(b * (spread.below(np.stack([edges[:-1], edges[1:] - 1])) - before) - target)
        least = np.minimum(ends[0], ends[1])
        self._firsts, self._sizes, self._least = edges[:-1].tolist(), sizes.tolist(), least.tolist()
        self._wheel = Wheel(sizes, least, slope)

    def distance(self, cut: int) -> int:
        """How far the rank of a cut is above the level's, in units of 1/(b FINENESS); negative below it."""
        return self._b * (self._spread.below_one(cut) - self._before) - self._target

    def draw(self, bits: Bits) -> tuple[int, int]:
        """A cut, and how far its rank is off."""
        while True:
            stretch = self._wheel.draw(bits)
            cut = self._firsts[stretch] + uniform_one(self._sizes[stretch], bits)
            distance = abs(self.distance(cut))
            more = distance - self._least[stretch]
            if not more or happens(self._slope * more, bits):
                return cut, distance


@lru_cache(maxsize=4096)
def _offsets(positions: int) -> tuple[int, ...]:
    """The half-widths that an interval can have, in parts of cells:
    a few within a cell, then growing to the whole grid.
    """
    found = [FINENESS // part for part in _WITHIN_A_CELL if FINENESS >= part]
    cells = 1
    while found[-1:] < [positions * FINENESS]:
        found.append(min(cells, positions) * FINENESS)
        cells = math.ceil(cells * _GROWTH)
    return tuple(found)


@lru_cache(maxsize=256)
def _slack(wrong: int, slope: Fraction, confidence: Number) -> int:
    """The distance at which so many wrong rungs have together no more than the probability that may fail."""
    return math.ceil((_nats(Fraction(wrong)) + _risk(confidence)) / slope)


@lru_cache(maxsize=256)
def _nats(value: Fraction) -> Fraction:
    """The natural logarithm, rounded up."""
    return exact_upper(certified(lambda: ball(value).log()))


def _risk(confidence: Number) -> Fraction:
    """The logarithm, rounded up, of how many times smaller than 1 the probability is that may fail."""
    return _nats(1 / (1 - open_unit("confidence", confidence).upper))


@dataclass(frozen=True)
class _Ladder:
    """Intervals [t - offset, t + offset] around cuts t, and how far each is from the one that is wanted there.

    An interval's margin is how far, in ranks, its nearer end is beyond the quantile; infinite at an end of the grid.
    It grows with the offset, so exactly one rung is the first whose margin reaches the slack: that one has distance 0.
    The others' distance is what the margin lacks, or by how much the rung before is already too good.
    """

    spread: _Spread
    level: Fraction
    slope: Fraction
    slack: int
    offsets: tuple[int, ...]

    @classmethod
    def of(cls, spread: _Spread, level: Fraction, rate: Fraction, confidence: Number) -> _Ladder:
        slope = rate / (FINENESS * 2 * max(level.numerator, level.denominator - level.numerator))
        offsets = _offsets(spread.positions)
        slack = _slack(max(1, len(offsets) - 1), slope, confidence)
        return cls(spread, level, slope, slack, offsets)

    def margin(self, cut: int, rung: int) -> int | None:
        """By how much both ends are beyond the quantile, in units of 1/(b FINENESS); None where both are the grid's."""
        a, b = self.level.numerator, self.level.denominator
        target, found = a * int(self.spread.ends[-1]), None
        low, high = cut - self.offsets[rung], cut + self.offsets[rung]
        if low > 0:
            found = target - b * self.spread.below_one(low)
        if high < self.spread.last:
            over = b * self.spread.below_one(high) - target
            found = over if found is None else min(found, over)
        return found

    def distance(self, cut: int, rung: int) -> int | None:
        """How far a rung is from the one that is wanted; None where the rung before is the whole grid already."""
        before = self.margin(cut, rung - 1) if rung else 0
        if before is None:
            return None
        own = self.margin(cut, rung)
        lack = 0 if own is None else self.slack - own
        return max(0, lack, before - self.slack)

    def draw_both(self, bits: Bits) -> tuple[int, int]:
        """A cut and an offset, in proportion to exp(-slope max(|distance of the cut|, distance of the rung))."""
        cuts = _Cuts(self.spread, 0, self.spread.last, self.level, self.slope)
        while True:
            cut, off = cuts.draw(bits)
            rung = uniform_one(len(self.offsets), bits)
            distance = self.distance(cut, rung)
            if distance is not None and (
                distance <= off or happens(self.slope * (distance - off), bits)
            ):
                return cut, self.offsets[rung]


@dataclass(frozen=True)
class _Widening:
    """Intervals of several levels around their cuts, of which one draw takes one candidate for all.

    A candidate has a rung w: intervals from the cuts where p - w and p + w are guessed to be, w for each level in
    proportion to its range. One level may be an exception, some rungs wider. A candidate's margin is the least of all
    ends, each counted in its level's range. Before that, another draw finds the rung that even ground would need: how
    much margin a candidate must have depends on how far its rung is from this one.
    """

    spread: _Spread
    levels: tuple[Fraction, ...]
    ranges: tuple[int, ...]
    """How much more a unit of rank can move one margin of a level than another: in units of 1/(common denominator)."""
    unit: int
    """A common multiple of the ranges: margins are counted in 1/(unit FINENESS) of a range."""
    rate: Fraction
    """The loss per unit of weight of both draws together."""
    confidence: Number

    @classmethod
    def of(
        cls, spread: _Spread, levels: tuple[Fraction, ...], rate: Fraction, confidence: Number
    ) -> _Widening:
        common = _common(levels)
        ranges = tuple(int(2 * max(level, 1 - level) * common) for level in levels)
        return cls(spread, levels, ranges, math.lcm(*ranges), rate, confidence)

    @property
    def slope(self) -> Fraction:
        """Of the draw of a candidate."""
        return self.rate * (1 - _CENTRE) / (self.unit * FINENESS)

    def centre(self, bits: Bits) -> int:
        """About the first rung that is wide enough where weight lies evenly: it depends on how much there is."""
        hardest = Fraction(max(self.ranges), _common(self.levels))
        weights = _even_weights(len(self.levels), self.rate / hardest, self.confidence)
        total = int(self.spread.ends[-1])
        slope = self.rate * _CENTRE / (2 * FINENESS)
        distances = [abs(total - weight) for weight in weights]
        return draw(np.ones(len(weights), np.int64), distances, slope, bits)

    def slacks(
        self, rung: npt.NDArray[np.int64], choice: npt.NDArray[np.int64], centre: int
    ) -> list[int]:
        """The margins that make candidates good enough."""
        margins = _margins(len(self.levels), self.slope, self.confidence)
        apart = (rung - centre + len(_WIDENINGS)).tolist()
        return [margins[nth > 0][far] for nth, far in zip(choice.tolist(), apart, strict=True)]

    def rungs(self, cuts: list[int]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """The ends of all intervals without exceptions, one row for each rung; the last has the whole grid."""
        last, at = self.spread.last, np.array(cuts, np.float64)
        guess = QuantileGuess(np.array([float(level) for level in self.levels]), at)
        hardest = max(self.ranges)
        parts = np.array([float(Fraction(own, hardest)) for own in self.ranges])
        lower, upper = guess.around(np.array(_WIDENINGS)[:, None] * parts)
        low = np.floor(np.clip(lower, 0, at)).astype(np.int64)
        high = np.ceil(np.clip(upper, at, last)).astype(np.int64)
        whole = np.full((1, len(cuts)), last, np.int64)
        return np.concatenate([low, 0 * whole]), np.concatenate([high, whole])

    def candidates(
        self, cuts: list[int], centre: int
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.bool_], list[int]]:
        """Lower and upper ends, one row for each candidate, which ends are its own, and its slack.

        They come in the order of their rungs, an exception counting as some rungs; the last has nothing to miss.
        """
        lows, highs = self.rungs(cuts)
        rung, choice = _order(len(lows), len(cuts))
        wider, _ = _exceptions(len(cuts))
        rows = np.minimum(rung[:, None] + wider[choice], len(lows) - 1)
        own_low, own_high = (np.take_along_axis(ends, rows, axis=0) for ends in (lows, highs))
        own = np.stack([own_low > 0, own_high < self.spread.last])
        stop = int((~own.any(axis=(0, 2))).argmax()) + 1
        low = np.maximum.accumulate(own_low[:stop], axis=1)
        high = np.minimum.accumulate(own_high[:stop, ::-1], axis=1)[:, ::-1]
        return low, high, own[:, :stop], self.slacks(rung[:stop], choice[:stop], centre)

    def distances(
        self,
        low: npt.NDArray[np.int64],
        high: npt.NDArray[np.int64],
        own: npt.NDArray[np.bool_],
        slacks: list[int],
    ) -> npt.NDArray[Any]:
        """How far each candidate is from the one that is wanted: the first whose margin reaches its slack."""
        common, total = _common(self.levels), int(self.spread.ends[-1])
        targets = np.array(
            [int(level * common) * total for level in self.levels], self.spread.ends.dtype
        )
        counted = [self.unit // range_ for range_ in self.ranges]
        endless = common * total * self.unit + max(slacks) + 1
        kind = np.int64 if 2 * endless < 2**62 and targets.dtype != object else object
        factors = np.array(counted, kind)
        lower = (targets - common * self._below(low)).astype(kind) * factors
        upper = (common * self._below(high) - targets).astype(kind) * factors
        margins = np.where(own, np.stack([lower, upper]), endless).min(axis=(0, 2), initial=endless)
        good = margins - np.array(slacks, kind)
        good[-1] = 0
        before = np.concatenate([np.full(1, 0, kind), np.maximum.accumulate(good)[:-1]])
        return np.asarray(np.maximum(np.maximum(-good, before), 0))

    def _below(self, cuts: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        return self.spread.below(cuts.ravel()).reshape(cuts.shape)

    def draw(self, cuts: list[int], bits: Bits) -> list[tuple[int, int]]:
        """The ends of all intervals, for cuts that are known: a candidate in proportion to exp(-slope distance)."""
        low, high, own, slacks = self.candidates(cuts, self.centre(bits))
        distances = self.distances(low, high, own, slacks)
        nth = draw(np.ones(len(distances), np.int64), distances, self.slope, bits)
        return list(zip(low[nth].tolist(), high[nth].tolist(), strict=True))


@lru_cache(maxsize=64)
def _exceptions(levels: int) -> tuple[npt.NDArray[np.int64], tuple[Fraction, Fraction]]:
    """By how many rungs each level is wider, one row for each choice, the first without an exception; and how many
    nats rarer than all candidates together those of the first and of each other choice are taken to be.
    """
    if levels > _MOST_LEVELS:
        return np.zeros((1, levels), np.int64), (Fraction(0), Fraction(0))
    wider = [np.eye(levels, dtype=np.int64) * rungs for rungs, _ in _WIDER]
    found = np.concatenate([np.zeros((1, levels), np.int64), *wider])
    return found, (_nats(1 / _PLAIN), _nats((len(found) - 1) / (1 - _PLAIN)))


@lru_cache(maxsize=1)
def _far() -> tuple[Fraction, ...]:
    """How many nats rarer than all rungs together those are taken to be that are so far from the one in the centre,
    from the lowest on: three quarters fall by e^(5/4) a rung, and a quarter with a power.
    """
    apart = [abs(rung - 0.5) for rung in range(-len(_WIDENINGS), len(_WIDENINGS) + 1)]
    near = [Fraction(math.exp(-1.25 * far)) for far in apart]
    rest = [Fraction((1 + far) ** -1.5) for far in apart]
    parts = [3 * a / sum(near) + b / sum(rest) for a, b in zip(near, rest, strict=True)]
    return tuple(_nats(4 / part) for part in parts)


@lru_cache(maxsize=64)
def _margins(
    levels: int, slope: Fraction, confidence: Number
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The margin that makes a candidate good enough, by how far its rung is from the centre: without an exception, and
    with one. All wrong candidates together have no more than the probability that may fail.
    """
    risk = _risk(confidence)
    plain, other = (
        tuple(math.ceil((nats + kind + risk) / slope) for nats in _far())
        for kind in _exceptions(levels)[1]
    )
    return plain, other


@lru_cache(maxsize=64)
def _even_weights(levels: int, rate: Fraction, confidence: Number) -> tuple[int, ...]:
    """With how much weight in all, in units of 1/FINENESS, each rung would just do on even ground."""
    needed = _needed(levels, rate, confidence) * FINENESS
    return tuple(int(needed / Fraction(width)) for width in _WIDENINGS)


@lru_cache(maxsize=64)
def _order(rungs: int, levels: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The rung and the choice of an exception of each candidate, narrow ones first."""
    choices = len(_exceptions(levels)[0])
    worth = np.array([0, *(worth for _, worth in _WIDER for _ in range(levels))])
    rung, choice = np.divmod(np.arange(rungs * choices), choices)
    order = np.argsort(rung + worth[choice], kind="stable")
    return rung[order], choice[order]


def _needed(levels: int, rate: Fraction, confidence: Number) -> Fraction:
    """By how much intervals of more levels reach to both sides where weight lies evenly, in units of weight and for a
    range of 1: the slack, and how far the cut is off whose rank is worst.
    """
    slack = (_risk(confidence) + _nats(1 / _PLAIN) + Fraction(7, 5)) / (1 - _CENTRE)
    return (slack + Fraction(0.96 * levels.bit_length() ** 1.5)) / rate


def _common(levels: tuple[Fraction, ...]) -> int:
    return math.lcm(*(level.denominator for level in levels))


def rank_error(
    rate: Fraction, confidence: Number = 0.95, *, levels: int = 1, level: Fraction = Fraction(1, 2)
) -> float:
    """How many units of weight the rank of a point estimate is off, at most, where values lie densely and evenly.

    For previews: it is what to expect of one draw, not a guarantee for all data.
    """
    alpha = 1 - open_unit("confidence", confidence).upper
    spread = 2 * max(level, 1 - level) / _shares(levels, confidence)[0]
    return float(spread / rate) * -math.log(alpha) * 1.17


def rank_bound(
    rate: Fraction, positions: int, confidence: Number = 0.95, *, level: Fraction = Fraction(1, 2)
) -> float:
    """As `rank_error`, of one level asked alone, but for all data whatsoever: Theorem 5."""
    alpha = 1 - open_unit("confidence", confidence).upper
    spread = 2 * max(level, 1 - level)
    return float(spread / rate) * math.log(
        (positions * FINENESS + 1) * len(_offsets(positions)) / alpha
    )


def interval_rank(
    rate: Fraction,
    positions: int,
    confidence: Number = 0.95,
    *,
    levels: int = 1,
    level: Fraction = Fraction(1, 2),
) -> float:
    """The half-width of an interval to expect, in units of weight between the estimate and each end.

    Of more than three levels the one that is off most decides for all.
    """
    spread = 2 * max(level, 1 - level)
    own = rate * _shares(levels, confidence)[1]
    if levels <= MOST_TOGETHER:
        wrong = max(1, len(_offsets(positions)) - 1)
        return _slack(wrong, own / spread, confidence) * 1.3
    return float(spread * _needed(levels, own, confidence)) * 1.2

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
from itertools import combinations
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

_RARE = 5
"""How much rarer one more exception is taken to be: what remains for none is all but a fifth and a fifth of that."""

_MOST_LEVELS = (24, 12)
"""Of how many levels, at most, one may be an exception, and two; of more there are too many choices."""

_AS_WIDE_AS = 4
"""An exception is worth so many rungs: the intervals of all others must be 4 times narrower with it."""

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
            raise InvalidInput(
                f"{cells.size} cells, {weights.size} weights",
                rule,
                "Count the weights per cell first.",
            )
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
def _slack(rungs: int, slope: Fraction, confidence: Number) -> int:
    """The distance at which all wrong rungs together have no more than the probability that may fail."""
    alpha = 1 - open_unit("confidence", confidence).upper
    return math.ceil(exact_upper(certified(lambda: ball(max(1, rungs - 1) / alpha).log())) / slope)


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
        return cls(spread, level, slope, _slack(len(offsets), slope, confidence), offsets)

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
    proportion to its range. Few levels may be exceptions: these have the ends of their neighbours, between whose
    quantiles theirs lie. A candidate's margin is the least of all other ends, each counted in its level's range.
    """

    spread: _Spread
    levels: tuple[Fraction, ...]
    ranges: tuple[int, ...]
    """How much more a unit of rank can move one margin of a level than another: in units of 1/(common denominator)."""
    unit: int
    """A common multiple of the ranges: margins are counted in 1/(unit FINENESS) of a range."""
    slope: Fraction
    exceptions: npt.NDArray[np.bool_]
    """One row for each choice of exceptions, one column for each level."""
    slacks: tuple[int, ...]
    """For each choice of exceptions, the margin that makes a candidate good enough."""

    @classmethod
    def of(
        cls, spread: _Spread, levels: tuple[Fraction, ...], rate: Fraction, confidence: Number
    ) -> _Widening:
        common = _common(levels)
        ranges = tuple(int(2 * max(level, 1 - level) * common) for level in levels)
        unit = math.lcm(*ranges)
        slope = rate / (unit * FINENESS)
        choices, weights = _exceptions(len(levels))
        rungs = len(_WIDENINGS) + 1
        slacks = tuple(_slack(rungs * weight + 1, slope, confidence) for weight in weights)
        return cls(spread, levels, ranges, unit, slope, choices, slacks)

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
        self, cuts: list[int]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.bool_], list[int]]:
        """Lower and upper ends, one row for each candidate, which ends are its own, and its slack.

        They come in the order of their rungs, an exception counting as some rungs; the last has nothing to miss.
        """
        low, high = self.rungs(cuts)
        rung, choice = _order(len(low), len(cuts))
        excepted, last = self.exceptions[choice], self.spread.last
        low = np.maximum.accumulate(np.where(excepted, 0, low[rung]), axis=1)
        high = np.minimum.accumulate(np.where(excepted, last, high[rung])[:, ::-1], axis=1)[:, ::-1]
        own = np.stack([~excepted & (low > 0), ~excepted & (high < last)])
        stop = int((~own.any(axis=(0, 2))).argmax()) + 1
        slacks = [self.slacks[nth] for nth in choice[:stop].tolist()]
        return low[:stop], high[:stop], own[:, :stop], slacks

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
        low, high, own, slacks = self.candidates(cuts)
        distances = self.distances(low, high, own, slacks)
        nth = draw(np.ones(len(distances), np.int64), distances, self.slope, bits)
        return list(zip(low[nth].tolist(), high[nth].tolist(), strict=True))


@lru_cache(maxsize=64)
def _exceptions(levels: int) -> tuple[npt.NDArray[np.bool_], tuple[Fraction, ...]]:
    """All choices of few exceptions, and for each a weight: the inverses of all weights sum to 1."""
    most = sum(levels <= limit for limit in _MOST_LEVELS)
    chosen = [places for count in range(most + 1) for places in combinations(range(levels), count)]
    found = np.zeros((len(chosen), levels), bool)
    for row, places in zip(found, chosen, strict=True):
        row[list(places)] = True
    weights = [Fraction(math.comb(levels, len(places)) * _RARE ** len(places)) for places in chosen]
    weights[0] = 1 / (1 - sum((1 / weight for weight in weights[1:]), Fraction(0)))
    return found, tuple(weights)


@lru_cache(maxsize=64)
def _order(rungs: int, levels: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The rung and the choice of exceptions of each candidate, narrow ones first."""
    choices, _ = _exceptions(levels)
    rung, choice = np.divmod(np.arange(rungs * len(choices)), len(choices))
    order = np.argsort(rung + _AS_WIDE_AS * choices.sum(axis=1)[choice], kind="stable")
    return rung[order], choice[order]


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

    Of more than three levels the one that is off most, about half of what each may be, decides for all.
    """
    spread = 2 * max(level, 1 - level) / _shares(levels, confidence)[1]
    if levels <= MOST_TOGETHER:
        return _slack(len(_offsets(positions)), rate / spread, confidence) * 1.3
    off = rank_error(rate, confidence, levels=levels, level=level)
    return (_slack(len(_WIDENINGS) + 2, rate / spread, confidence) + 0.55 * off) * 1.2

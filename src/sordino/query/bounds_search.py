"""Searches for bounds: of the numbers of a column, and of how much of it one person has.

What is searched are weights by place, of which one person has at most `moved` in neighbours: `found` draws an interval
and counts, with noise, what lies inside and outside. Epsilon is divided among the draws and the counting by public
shares. The guarantee and its proof are in bounds_search.md.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from sordino.mechanisms.integers import narrow
from sordino.mechanisms.interval_draw import FINENESS, IntervalDraw, draw_interval
from sordino.mechanisms.laplace import Laplace
from sordino.query.three_digits import LARGEST, SMALLEST, code_of

__all__ = ["MOST_COUNT", "CountSearch", "Found", "NumberSearch", "Price", "Search"]

MOST_COUNT = 10**6
"""The largest bound of a number of rows or groups."""

_COARSE = Fraction(1, 4)
"""The part of the draws' epsilon that finds the powers of ten; the rest finds two digits."""
_COARSE_PULL, _SMALL_PULL, _FINE_PULL, _COUNT_PULL = Fraction(7, 2), Fraction(1, 2), 8, 6
_FINE_POINTS = 50
_DECIMALS = (10, 12, 15, 20, 25, 30, 40, 50, 60, 80)
_LN_UNIT = 2**20
_FARTHER = 0.8
"""How much the farther end counts for sums, in place of the width, which keeps the nearer end from wandering off."""
_NATURAL = 3
"""By how much, in logarithms of probability, zero is preferred as an end."""

Whole = npt.NDArray[np.int64]
Penalties = npt.NDArray[np.object_]


@dataclass(frozen=True)
class Price:
    """What a search may spend: `epsilon` in all, of which the share `counting` counts; `query_epsilon` is that of the
    later question for which the bounds are to be good.
    """

    epsilon: Fraction
    counting: Fraction
    query_epsilon: Fraction

    @property
    def draws(self) -> Fraction:
        """The epsilon of the draws."""
        return self.epsilon * (1 - self.counting)

    @property
    def counts(self) -> Fraction:
        """The epsilon of the noisy counts."""
        return self.epsilon * self.counting


@dataclass(frozen=True)
class Found:
    """Bounds, and how much lies below, within and above them: noisy numbers of persons, each within `margin` 95 % of
    the time.
    """

    lower: Fraction
    upper: Fraction
    below: float
    inside: float
    above: float
    margin: float

    @property
    def all(self) -> float:
        """How much there is."""
        return self.below + self.inside + self.above


@dataclass(frozen=True)
class Search(ABC):
    """One search, for bounds of what is called `what`."""

    what: str

    @abstractmethod
    def interval(
        self, places: Whole, weights: Whole, price: Price, moved: int
    ) -> tuple[Fraction, Fraction]:
        """The bounds that are drawn: price.draws-private where neighbours differ by at most `moved` units of weight."""

    @abstractmethod
    def place(self, bound: Fraction) -> int:
        """The place at which a bound lies."""

    def found(self, places: Whole, weights: Whole, price: Price, moved: int, unit: int) -> Found:
        """What is found among weights at sorted, different places; a whole person is `unit`.

        Privacy: price.epsilon-differentially private where neighbours differ by at most `moved` units of weight.
        """
        lower, upper = self.interval(places, weights, price, moved)
        first, last = (
            np.searchsorted(places, self.place(lower), "left"),
            np.searchsorted(places, self.place(upper), "right"),
        )
        parts = [
            int(part.sum(dtype=np.int64))
            for part in (weights[:first], weights[first:last], weights[last:])
        ]
        noise = Laplace(moved / price.counts)
        below, inside, above = (
            int(count) / unit for count in noise.release(narrow(parts)).tolist()
        )
        return Found(lower, upper, below, inside, above, self.margin(price, moved, unit))

    def margin(self, price: Price, moved: int, unit: int) -> float:
        """How far each of the three numbers of persons may be off, 95 % of the time."""
        return float(Laplace(moved / price.counts).interval(Fraction(19, 20))) / unit


@dataclass(frozen=True)
class NumberSearch(Search):
    """Bounds of numbers, whose places are their codes in three digits: first powers of ten, then two digits of them.

    `lower` and `upper` are what is known of them publicly, `step` of what they are multiples. `summed` says that only
    sums are asked for, whose noise grows with the farther end and not with the width.
    """

    whole: bool = False
    lower: Fraction | None = None
    upper: Fraction | None = None
    step: Fraction | None = None
    summed: bool = False

    def place(self, bound: Fraction) -> int:
        """The code."""
        return code_of(bound)

    def interval(
        self, places: Whole, weights: Whole, price: Price, moved: int
    ) -> tuple[Fraction, Fraction]:
        """Two draws that follow each other."""
        coarse, fine = price.draws * _COARSE, price.draws * (1 - _COARSE)
        pull = max(Fraction(_FINE_PULL), 3 * fine / price.query_epsilon)
        wide = self._drawn(
            self.coarse,
            places,
            weights,
            coarse / moved,
            Fraction(_COARSE_PULL),
            Fraction(_SMALL_PULL),
        )
        return self._drawn(self.fine(*wide), places, weights, fine / moved, pull, pull)

    def _drawn(
        self,
        points: tuple[Fraction, ...],
        places: Whole,
        weights: Whole,
        rate: Fraction,
        pull: Fraction,
        small: Fraction,
    ) -> tuple[Fraction, Fraction]:
        """One draw among all pairs of points; `pull` is the penalty on the logarithm of a width, `small` below 1."""
        lows, highs = np.triu_indices(len(points), 1)
        codes, numbers = (
            np.array([code_of(point) for point in points], np.int64),
            np.array(points, float),
        )
        widths = numbers[highs] - numbers[lows]
        if self.summed:
            widths = (
                widths ** (1 - _FARTHER)
                * np.maximum(np.abs(numbers[lows]), np.abs(numbers[highs])) ** _FARTHER
            )
        penalties = _penalties(widths, rate, pull, small)
        natural = (codes[lows] == 0) | (codes[highs] == 0)
        penalties[natural] -= math.floor(_NATURAL * FINENESS / rate)
        at = draw_interval(
            IntervalDraw(codes[lows], codes[highs], penalties, rate), places, weights
        )
        return points[lows[at]], points[highs[at]]

    @property
    def coarse(self) -> tuple[Fraction, ...]:
        """Zero, and 1, 2 and 5 times powers of ten, of either sign."""
        return _several(self._known(_powers(1 if self.whole else SMALLEST)))

    def fine(self, lower: Fraction, upper: Fraction) -> tuple[Fraction, ...]:
        """Multiples of one round step, from half a width below an interval to half a width above it."""
        width = upper - lower
        step = _round_above(2 * width / _FINE_POINTS)
        step = max(step, self.step or (Fraction(1) if self.whole else step))
        first, last = math.floor((lower - width / 2) / step), math.ceil((upper + width / 2) / step)
        return _several(self._known([step * i for i in range(first, last + 1)]))

    def _known(self, points: list[Fraction]) -> set[Fraction]:
        """The points within what is known, the ends of which are points, too."""
        lower, upper = (
            (-LARGEST if self.lower is None else self.lower),
            (LARGEST if self.upper is None else self.upper),
        )
        return {min(max(point, lower), upper) for point in points}


@dataclass(frozen=True)
class CountSearch(Search):
    """The bound of a number that each person has, from 1 on: the places are these numbers themselves."""

    def place(self, bound: Fraction) -> int:
        """The number."""
        return int(bound)

    def interval(
        self, places: Whole, weights: Whole, price: Price, moved: int
    ) -> tuple[Fraction, Fraction]:
        """One draw among round numbers."""
        points, rate = self.points, price.draws / moved
        pull = max(Fraction(_COUNT_PULL), 3 * price.draws / price.query_epsilon)
        highs = np.array(points, np.int64)
        penalties = _penalties(highs.astype(float), rate, pull, pull)
        at = draw_interval(
            IntervalDraw(np.zeros(len(points), np.int64), highs, penalties, rate), places, weights
        )
        return Fraction(0), Fraction(points[at])

    @property
    def points(self) -> tuple[int, ...]:
        """Round numbers up to a million, about a fourth apart."""
        tens = [10**e for e in range(len(str(MOST_COUNT)) - 1)]
        return tuple(sorted({10 * ten * m // 100 for ten in tens for m in _DECIMALS if 10 * ten * m % 100 == 0}
                            | {MOST_COUNT, *range(1, 10)}))  # fmt: skip


@lru_cache(maxsize=8)
def _powers(least: Fraction) -> list[Fraction]:
    sizes, size = [], Fraction(least)
    while size < LARGEST:
        sizes += [size, 2 * size, 5 * size]
        size *= 10
    return [-LARGEST, *(-size for size in sizes), Fraction(0), *sizes, LARGEST]


def _several(points: set[Fraction]) -> tuple[Fraction, ...]:
    """The points in order, at least two."""
    ordered = tuple(sorted(points))
    return ordered if len(ordered) > 1 else (ordered[0], ordered[0] + 1)


def _round_above(number: Fraction) -> Fraction:
    """The smallest of 1, 2 and 5 times powers of ten that is not below a positive number."""
    power = Fraction(10) ** math.floor(math.log10(number))
    return next(power * m for m in (Fraction(1, 2), 1, 2, 5, 10, 20) if power * m >= number)


def _penalties(
    widths: npt.NDArray[np.float64], rate: Fraction, pull: Fraction, small: Fraction
) -> Penalties:
    """The public penalty of each width: `pull` (below 1 `small`) times its logarithm, by the rate."""
    logs = np.round(np.log(widths) * _LN_UNIT).astype(np.int64).astype(object)
    one, other = (FINENESS * slope / rate / _LN_UNIT for slope in (pull, small))
    wide, narrow_ = (
        logs * one.numerator // one.denominator,
        logs * other.numerator // other.denominator,
    )
    return np.where(logs > 0, wide, narrow_).astype(object)

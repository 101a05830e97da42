"""One bit for a number: the mean of numbers in a known range, from one randomized bit each.

Theorem. A report is log(odds)-differentially private: it is 1 with a probability that grows linearly from 1/(odds + 1)
at `low` to odds/(odds + 1) at `high`. Proof in protocols.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from sordino.errors import InvalidInput
from sordino.local import protocol
from sordino.local.answers import as_array, is_missing, missing_answer
from sordino.local.estimates import Mean
from sordino.local.frequency import persons_checked
from sordino.local.intervals import SupportLaw, level
from sordino.local.protocol import Column, Counts, below, chance, checked_odds, odds_below
from sordino.local.reports import Reports, expected
from sordino.mechanisms.bits import CHUNK, Bits
from sordino.mechanisms.discrete import bernoulli, uniform
from sordino.mechanisms.observer import drawn
from sordino.privacy import json_form
from sordino.privacy.exact import (
    Number,
    closed_unit,
    decimal_reading,
    float_lower,
    float_upper,
    readable,
    show,
)
from sordino.privacy.loss import FiniteLoss
from sordino.privacy.wording import a_or_an

__all__ = ["OneBitMean"]

_FINEST = 2**40
_FARTHEST = Fraction(10**300)


@dataclass(frozen=True, init=False, repr=False)
class OneBitMean:
    """Report one bit, 1 the likelier the larger the number.

    Numbers are read on a grid of `steps` steps from `low` to `high`, to the nearest point: exact where they lie on it.
    Unless told, steps are as fine as 2^40 allow, and hold the whole steps from `low` where there are less than 2^62.

    Example:
        >>> OneBitMean(odds=3, low=0, high=100).variance(persons=100, share=0.5)  # of the mean, at worst
        Fraction(100, 1)
    """

    odds: Fraction
    low: Fraction
    high: Fraction
    steps: int

    kind = "local.one_bit_mean"

    def __init__(self, odds: Number, low: Number, high: Number, steps: int | None = None) -> None:
        a, b = decimal_reading("low", low), decimal_reading("high", high)
        if not a < b:
            rule = "low must be below high"
            raise InvalidInput(
                f"low={show(low)}, high={show(high)}",
                rule,
                "Pass the range that every number lies in.",
            )
        if max(-a, b) > _FARTHEST or b - a < 1 / _FARTHEST:
            rule = "low and high must lie within 10^300 of 0, and at least 10^-300 apart"
            raise InvalidInput(
                f"low={show(low)}, high={show(high)}", rule, "Report numbers in another unit."
            )
        if steps is None:
            whole = (b - a).numerator
            steps = (
                whole << max(0, (_FINEST // whole).bit_length() - 1) if whole < 2**62 else _FINEST
            )
        if isinstance(steps, bool) or not isinstance(steps, int) or not 1 <= steps < 2**62:
            rule = "steps must be a whole number from 1 to 2^62 - 1"
            raise InvalidInput(f"steps={show(steps)}", rule, "Leave it out for the finest.")
        for name, value in (
            ("odds", checked_odds(odds)),
            ("low", a),
            ("high", b),
            ("steps", steps),
        ):
            object.__setattr__(self, name, value)

    @classmethod
    def calibrated(
        cls, *, epsilon: Number, low: Number, high: Number, steps: int | None = None
    ) -> Self:
        """The protocol with the least variance that is epsilon-differentially private."""
        return cls(odds_below(epsilon), low, high, steps)

    @property
    def own(self) -> Fraction:
        """The probability of a 1 at `high`."""
        return self.odds / (self.odds + 1)

    @property
    def other(self) -> Fraction:
        """The probability of a 1 at `low`."""
        return 1 / (self.odds + 1)

    bits = 1
    limit = 2
    width = 0
    cells = 2

    @cached_property
    def _step(self) -> Fraction:
        return (self.high - self.low) / self.steps

    def loss(self) -> FiniteLoss:
        """The privacy loss of one report, at worst: between `low` and `high`."""
        return FiniteLoss((self.own, self.other), (self.other, self.own))

    def randomize(self, values: Any) -> Reports:
        """One bit for each person's number."""
        places = self._places(values)
        return Reports(self, drawn(self, "randomize", places, partial(self._column, places)))

    def _column(self, places: npt.NDArray[np.int64], source: Bits) -> Column:
        column = np.empty(len(places), np.int64)
        for start in range(0, len(places), CHUNK):
            block = places[start : start + CHUNK]
            blind = bernoulli(2 * self.other, len(block), source)
            coins = uniform(2, len(block), source)
            column[start : start + CHUNK] = np.where(
                blind, coins, uniform(self.steps, len(block), source) < block
            )
        return column

    def randomize_one(self, value: Number) -> int:
        """The bit of one person: a fair coin with probability 2/(odds + 1), else 1 in proportion to the number."""
        place = self._place(value)
        return drawn(self, "randomize_one", place, partial(self._bit, place))

    def _bit(self, place: int, source: Bits) -> int:
        return (
            below(2, source)
            if chance(2 * self.other, source)
            else int(below(self.steps, source) < place)
        )

    def _place(self, value: Any) -> int:
        if is_missing(value):
            raise missing_answer()
        exact = decimal_reading("value", value)
        if not self.low <= exact <= self.high:
            raise self._outside(value)
        return int((exact - self.low) / self._step + Fraction(1, 2))

    def _places(self, values: Any) -> npt.NDArray[np.int64]:
        listed = isinstance(values, list | tuple)
        array = np.array([self._place(v) for v in values], np.int64) if listed else as_array(values)
        if array.ndim != 1 or array.size == 0 or array.dtype.kind not in "iuf":
            rule = "numbers come as one list or one-dimensional array, at least one"
            raise InvalidInput(
                a_or_an(type(values).__name__), rule, "Pass one number for each person."
            )
        if listed:
            return array
        low, high = float_lower(self.low), float_upper(self.high)
        inside = (array >= low) & (array <= high)
        if not inside.all():
            raise self._outside(array[~inside][0])
        places = np.rint((array.astype(np.float64) - float(self.low)) / float(self._step)).astype(
            np.int64
        )
        return np.clip(places, 0, self.steps)

    def _outside(self, value: Any) -> InvalidInput:
        rule = f"a number must lie from {readable(self.low)} to {readable(self.high)}"
        return InvalidInput(
            show(value), rule, "Clip numbers to the range first, or declare a wider one."
        )

    def check(self, column: Column) -> None:
        """Refuse a column with anything but bits."""
        if column.size and not (column.min() >= 0 and column.max() <= 1):
            rule = "a report of one bit is 0 or 1"
            raise InvalidInput(
                f"report {show(column[(column < 0) | (column > 1)][0])}",
                rule,
                "These reports were damaged.",
            )

    def supports(self, column: Column) -> Counts:
        """How many reports are 1."""
        return np.array([int(column.sum())])

    def supports_of_cells(self, cells: Counts) -> Counts:
        """The same from the numbers of zeros and ones."""
        return cells[1:]

    def variance(self, persons: int, share: Number = 0) -> Fraction:
        """The variance of the estimated mean if all numbers lie at this share of the way from `low` to `high`.

        No numbers with the same mean have a larger one.
        """
        closed_unit("share", share)
        ones = self.other + decimal_reading("share", share) * (self.own - self.other)
        scale = (self.high - self.low) / (self.own - self.other)
        return scale**2 * ones * (1 - ones) / persons_checked(persons)

    def estimate(self, reports: Reports, confidence: Number = 0.95) -> Mean:
        """The mean behind the reports."""
        mean: Mean = expected(self, reports).tally().estimate(confidence)
        return mean

    def estimate_from_counts(
        self, answers: int, counts: Counts, confidence: Number = 0.95, *, population: bool = True
    ) -> Mean:
        """The mean from the number of ones; its interval holds for the population, so also for those who answered."""
        del population
        law = SupportLaw(answers, self.own, self.other, population=True)
        share, (lower, upper) = law.share(counts), law.ends(counts, level(confidence))
        low, span = float(self.low), float(self.high - self.low)
        error = law.deviation(np.clip(share, 0, 1))
        # half a step on each side: numbers were read to the nearest point of the grid
        half = float(self._step) / 2
        return Mean(
            answers,
            float(confidence),
            mean=low + span * float(share[0]),
            standard_error=span * float(error[0]),
            lower=max(low, low + span * float(lower[0]) - half),
            upper=min(float(self.high), low + span * float(upper[0]) + half),
        )

    def to_json(self) -> str:
        """The exact stored form."""
        return json_form.dump(
            self.kind,
            1,
            {"odds": self.odds, "low": self.low, "high": self.high, "steps": self.steps},
        )

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> Self:
        """The protocol of stored fields."""
        odds, low, high = (json_form.rational(fields, name) for name in ("odds", "low", "high"))
        return cls(odds, low, high, json_form.whole(fields, "steps"))

    def __repr__(self) -> str:
        span = f"low={readable(self.low)}, high={readable(self.high)}, steps={self.steps}"
        return f"OneBitMean(odds={readable(self.odds)}, {span})"


protocol.kinds["local.one_bit_mean", 1] = OneBitMean.from_fields

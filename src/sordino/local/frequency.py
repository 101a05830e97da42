"""What all protocols for categories share: a report speaks for some categories, more often for the true one.

Theorem. If a report speaks for the true category with probability `own` and for any other with probability `other`,
then (share of reports that speak for j - other)/(own - other) is an unbiased estimate of the share of j. Proof in
protocols.md.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np

from sordino.errors import InvalidInput
from sordino.local.answers import Categories, Indices, counted, place, places
from sordino.local.estimates import Frequencies, checked_population, frequencies
from sordino.local.intervals import level, normal_quantile
from sordino.local.protocol import Column, Counts, checked_odds, odds_below
from sordino.local.report_text import one_line
from sordino.local.reports import Reports, expected
from sordino.mechanisms.bits import CHUNK, Bits
from sordino.mechanisms.observer import drawn
from sordino.privacy import json_form
from sordino.privacy.exact import Number, closed_unit, decimal_reading, open_unit, readable, show
from sordino.privacy.loss import FiniteLoss

__all__ = ["MOST_CELLS", "Frequency", "persons_checked"]

MOST_CELLS = 2**26
"""Up to this many different reports are counted one by one: a table of half a gigabyte."""


@dataclass(frozen=True, init=False, repr=False)
class Frequency(ABC):
    """A protocol for categories; `odds` is e^epsilon, `categories` their number or their names."""

    odds: Fraction
    categories: int
    names: tuple[str, ...] | None

    kind: ClassVar[str]
    most: ClassVar[int] = 2**24
    parameters: ClassVar[tuple[str, ...]] = ()

    def __init__(self, odds: Number, categories: Categories) -> None:
        count, names = counted(categories, self.most)
        for name, value in (("odds", checked_odds(odds)), ("categories", count), ("names", names)):
            object.__setattr__(self, name, value)

    @classmethod
    def calibrated(cls, *, epsilon: Number, categories: Categories) -> Self:
        """The protocol with the least variance that is epsilon-differentially private."""
        return cls(odds_below(epsilon), categories)

    @property
    @abstractmethod
    def own(self) -> Fraction:
        """The probability that a report speaks for the true category."""

    @property
    @abstractmethod
    def other(self) -> Fraction:
        """The probability that a report speaks for a given category that is not the true one."""

    @property
    @abstractmethod
    def bits(self) -> int:
        """How many bits one report needs."""

    @property
    @abstractmethod
    def limit(self) -> int:
        """Reports are whole numbers below this; 0 if they are rows of packed bits."""

    @property
    def width(self) -> int:
        """How many bytes a row of packed bits has; 0 if reports are whole numbers."""
        return 0

    @property
    def cells(self) -> int:
        """How many different reports there are, if counting each is the way to count; else 0."""
        return self.limit if self.limit <= MOST_CELLS else 0

    def work(self, persons: int) -> int:
        """About how many elementary steps the collector takes."""
        return persons + self.categories

    @abstractmethod
    def _draw(self, true: Indices, source: Bits) -> Column:
        """The reports of at most CHUNK persons."""

    @abstractmethod
    def _draw_one(self, true: int, source: Bits) -> int | bytes:
        """The report of one person."""

    @abstractmethod
    def supports(self, column: Column) -> Counts:
        """How many reports speak for each category."""

    @abstractmethod
    def supports_of_cells(self, cells: Counts) -> Counts:
        """The same from the number of times that each possible report was given."""

    def _everything(self) -> Indices:
        """All categories, if they are not too many to be asked about one by one."""
        if self.categories > Frequency.most:
            rule = f"at most {Frequency.most} categories can be estimated at once"
            raise InvalidInput(
                f"{self.categories} categories",
                rule,
                "Ask supports_for about the categories of interest.",
            )
        return np.arange(self.categories)

    def loss(self) -> FiniteLoss:
        """The privacy loss of one report: it speaks for one truth only, for the other only, or for both or neither."""
        odd = (self.own - self.other) / (self.odds - 1)
        rest = 1 - (self.odds + 1) * odd
        sides = (self.odds * odd, odd), (odd, self.odds * odd)
        return FiniteLoss(*((*side, rest) if rest else side for side in sides))

    def randomize(self, values: Any) -> Reports:
        """One report for each person's true answer."""
        true = places(values, self.categories, self.names)
        return Reports(self, drawn(self, "randomize", true, partial(self._column, true)))

    def _column(self, true: Indices, source: Bits) -> Column:
        step = self._persons_at_once
        column: Column = (
            np.empty((len(true), self.width), np.uint8)
            if self.width
            else np.empty(len(true), np.int64)
        )
        for start in range(0, len(true), step):
            column[start : start + step] = self._draw(true[start : start + step], source)
        return column

    @property
    def _persons_at_once(self) -> int:
        return CHUNK

    def randomize_one(self, value: Any) -> int | bytes:
        """The report of one person: whole numbers and comparisons only, as an app would do it."""
        true = place(value, self.categories, self.names)
        return drawn(self, "randomize_one", true, partial(self._draw_one, true))

    def check(self, column: Column) -> None:
        """Refuse a column with anything that is not a report of this protocol."""
        if column.size and not (column.min() >= 0 and column.max() < self.limit):
            wrong = column[(column < 0) | (column >= self.limit)][0]
            rule = f"a report of {self.kind} is a whole number from 0 to {self.limit - 1}"
            raise InvalidInput(
                f"report {show(wrong)}",
                rule,
                "These reports were damaged, or made by another protocol.",
            )

    def variance(self, persons: int, share: Number = 0) -> Fraction:
        """The variance of an estimated share, given the true answers, of which this share is in the category."""
        closed_unit("share", share)
        s = decimal_reading("share", share)
        spread = s * self.own * (1 - self.own) + (1 - s) * self.other * (1 - self.other)
        return spread / (self.own - self.other) ** 2 / persons_checked(persons)

    def total_variance(self, persons: int) -> Fraction:
        """The summed variance of all estimated shares, which is the same whatever the truth."""
        return self.variance(persons, 1) + (self.categories - 1) * self.variance(persons, 0)

    def persons_needed(
        self, error: Number, confidence: Number = 0.95, *, population: bool = False
    ) -> int:
        """How many must answer for every share to be within `error` of the truth, each at this confidence.

        By the normal law of estimates; of those who answered, or of the population, which takes more.
        """
        checked_population(population)
        width = open_unit("error", error, "Pass a share such as 0.01 for +/- 1 %.").lower
        worst = max(self.variance(1, 0), self.variance(1, 1))
        if population:
            likely = min(max(Fraction(1, 2), self.other), self.own)
            worst = likely * (1 - likely) / (self.own - self.other) ** 2
        return math.ceil(worst * (Fraction(normal_quantile(level(confidence))) / width) ** 2)

    def estimate(
        self, reports: Reports, confidence: Number = 0.95, *, population: bool = False
    ) -> Frequencies:
        """The true shares behind the reports; of those who answered, or of the population they were drawn from."""
        found: Frequencies = (
            expected(self, reports).tally().estimate(confidence, population=population)
        )
        return found

    def estimate_from_counts(
        self, answers: int, counts: Counts, confidence: Number = 0.95, *, population: bool = False
    ) -> Frequencies:
        """The true shares from how many of the reports speak for each category."""
        return frequencies(
            answers, counts, self.own, self.other, confidence, self.names, population=population
        )

    def to_json(self) -> str:
        """The exact stored form."""
        fields: dict[str, json_form.Field] = {"odds": self.odds, "categories": self.categories}
        fields |= {name: getattr(self, name) for name in self.parameters}
        if self.names is not None:
            fields["names"] = self.names
        return json_form.dump(self.kind, 1, fields)

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> Self:
        """The protocol of stored fields."""
        own = {name: json_form.whole(fields, name) for name in cls.parameters}
        return cls(json_form.rational(fields, "odds"), json_form.categories(fields), **own)

    def __repr__(self) -> str:
        kinds = list(self.names) if self.names and self.categories <= 8 else self.categories
        extra = "".join(f", {name}={getattr(self, name)}" for name in self.parameters)
        return f"{type(self).__name__}(odds={readable(self.odds)}, categories={kinds}{extra})"


def persons_checked(persons: Any) -> int:
    """A number of persons, which must be at least one."""
    if isinstance(persons, bool) or not isinstance(persons, int | np.integer) or persons < 1:
        whole = isinstance(persons, float) and persons >= 1 and persons.is_integer()
        hint = f"Write {show(int(persons))}." if whole else "Pass how many answer."
        raise InvalidInput(
            f"persons={one_line(persons)}", "persons must be a whole number of at least 1", hint
        )
    return int(persons)

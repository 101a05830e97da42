"""The types of columns and expressions: what is publicly known of every value that may occur there.

Bounds are promises that reading a column enforces (values outside are clamped), so whatever is derived from them holds
for all data. A value that is missing, or no number, is NULL everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from fractions import Fraction
from typing import TypeAlias

__all__ = [
    "FIRST_DAY", "LARGEST", "LAST_DAY", "Day", "Moment", "Nothing", "Number", "Text", "Truth", "Type", "default_step",
    "power_of_ten_below",
]  # fmt: skip

FIRST_DAY, LAST_DAY = date(1, 1, 1), date(9999, 12, 31)
FIRST_MOMENT, LAST_MOMENT = (
    datetime.combine(FIRST_DAY, datetime.min.time()),
    datetime.combine(LAST_DAY, datetime.max.time()),
)
LARGEST = 2**62
"""Whole numbers below this magnitude are computed in 64-bit integers; one addition of two of them cannot overflow."""


@dataclass(frozen=True)
class Number:
    """A number within public bounds (None: none known), a multiple of `step` (None: of nothing known).

    `values` are the only ones that occur, if the owner listed them. A float is a multiple of its step only after
    rounding.
    """

    lower: Fraction | None = None
    upper: Fraction | None = None
    step: Fraction | None = None
    values: tuple[int, ...] | None = None
    nullable: bool = True

    @property
    def bounded(self) -> bool:
        """Whether both bounds are known."""
        return self.lower is not None and self.upper is not None

    @property
    def integral(self) -> bool:
        """Whether it is computed in 64-bit integers, not in floats: whole, and small enough never to overflow."""
        if (
            self.step is None
            or self.lower is None
            or self.upper is None
            or self.step.denominator != 1
        ):
            return False
        return max(abs(self.lower), abs(self.upper)) < LARGEST


@dataclass(frozen=True)
class Truth:
    """True or false."""

    nullable: bool = True


@dataclass(frozen=True)
class Text:
    """Text; `values` are the only ones that occur if the owner listed them,
    `longest` the largest number of characters.
    """

    values: tuple[str, ...] | None = None
    longest: int | None = None
    nullable: bool = True


@dataclass(frozen=True)
class Day:
    """A date within public bounds."""

    lower: date = FIRST_DAY
    upper: date = LAST_DAY
    nullable: bool = True


@dataclass(frozen=True)
class Moment:
    """A date with a time of day, without time zone, within public bounds."""

    lower: datetime = FIRST_MOMENT
    upper: datetime = LAST_MOMENT
    nullable: bool = True


@dataclass(frozen=True)
class Nothing:
    """The type of NULL itself, which fits in with every other."""


Type: TypeAlias = Number | Truth | Text | Day | Moment | Nothing


def default_step(lower: Fraction, upper: Fraction) -> Fraction:
    """Where numbers without a step are put when they are added up: on multiples of the largest power of ten of which a
    million fit between their bounds. Nothing else may rest on it, as they do not lie there.
    """
    return power_of_ten_below((upper - lower) / 10**6)


def power_of_ten_below(value: Fraction) -> Fraction:
    """The largest power of ten that is not above a positive number."""
    exponent = len(str(value.numerator)) - len(str(value.denominator)) + 1
    while Fraction(10) ** exponent > value:
        exponent -= 1
    return Fraction(10) ** exponent

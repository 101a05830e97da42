"""The finite domain of a key: all values that may occur, known without data, in order, counted without being listed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import Literal, TypeAlias, overload

from sordino.query.tree import Value
from sordino.query.typed import Typed
from sordino.query.types import FIRST_MOMENT, Day, Number, Text, Truth

__all__ = ["Multiples", "Starts", "Unit", "domain", "domain_size"]

Unit: TypeAlias = Literal["year", "quarter", "month", "week", "day", "hour", "minute"]
_MONTHS = {"year": 12, "quarter": 3, "month": 1}
_LENGTHS = {
    "week": timedelta(7),
    "day": timedelta(1),
    "hour": timedelta(hours=1),
    "minute": timedelta(minutes=1),
}
_MONDAY = datetime(2000, 1, 3)


@dataclass(frozen=True)
class Multiples(Sequence[Value]):
    """The multiples of `step` from `first` times to `last` times."""

    first: int
    last: int
    step: Fraction

    def __len__(self) -> int:
        return max(0, self.last - self.first + 1)

    @overload
    def __getitem__(self, index: int) -> Value: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Value]: ...
    def __getitem__(self, index: int | slice) -> Value | Sequence[Value]:
        if isinstance(index, slice):
            return tuple(self[i] for i in range(*index.indices(len(self))))
        if self.step.denominator == 1:  # most keys: fractions would take ten times as long
            return range(self.first, self.last + 1)[index] * self.step.numerator
        value = range(self.first, self.last + 1)[index] * self.step
        return int(value) if value.denominator == 1 else value

    def __iter__(self) -> Iterator[Value]:
        """One after the other, in whole numbers as far as possible: half the time of asking for each."""
        above, below = self.step.numerator, self.step.denominator
        for number in range(self.first, self.last + 1):
            whole, rest = divmod(number * above, below)
            yield Fraction(number * above, below) if rest else whole


@dataclass(frozen=True)
class Starts(Sequence[date]):
    """The first days (or moments) of all spans between two dates; dates if `lower` is a date, else moments.

    A span is `units` units long. Spans of months are counted from 2000-01-01, all others from Monday, 2000-01-03.
    """

    unit: Unit
    lower: date
    upper: date
    units: int = 1

    def number(self, day: date) -> int:
        """The number of the span that holds the day."""
        if self.unit in _MONTHS:
            return (12 * (day.year - 2000) + day.month - 1) // (_MONTHS[self.unit] * self.units)
        moment = day if isinstance(day, datetime) else datetime(day.year, day.month, day.day)
        return (moment - _MONDAY) // (_LENGTHS[self.unit] * self.units)

    def _start(self, number: int) -> date:
        if self.unit in _MONTHS:
            year, month = divmod(number * _MONTHS[self.unit] * self.units, 12)
            moment = datetime(2000 + year, month + 1, 1) if 2000 + year > 0 else FIRST_MOMENT
        else:
            # the first span may begin before the calendar does
            moment = _MONDAY + max(
                number * self.units * _LENGTHS[self.unit], FIRST_MOMENT - _MONDAY
            )
        return moment if isinstance(self.lower, datetime) else moment.date()

    def __len__(self) -> int:
        return max(0, self.number(self.upper) - self.number(self.lower) + 1)

    @overload
    def __getitem__(self, index: int) -> date: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[date]: ...
    def __getitem__(self, index: int | slice) -> date | Sequence[date]:
        if isinstance(index, slice):
            return tuple(self[i] for i in range(*index.indices(len(self))))
        return self._start(self.number(self.lower) + range(len(self))[index])


def domain(typed: Typed) -> Sequence[Value] | None:
    """All values, NULL aside, that an expression can take; None if no list is known. Lazy: ask `domain_size` first."""
    if typed.domain is not None:
        return typed.domain
    match typed.type:
        case Truth():
            return (False, True)
        case Text(values=values):
            return values
        case Number(values=tuple() as values):
            return values
        case Number(lower=Fraction() as lower, upper=Fraction() as upper, step=Fraction() as step):
            return Multiples(math.ceil(lower / step), math.floor(upper / step), step)
        case Day(lower=first, upper=last):
            return Starts("day", first, last)
        case _:
            return None


def domain_size(typed: Typed) -> int | None:
    """How many values the expression can take, None if no finite list is known; cheap for any number."""
    known = domain(typed)
    return None if known is None else known.__len__()

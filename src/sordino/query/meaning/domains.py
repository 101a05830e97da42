"""The finite domain of a key: all values that may occur, known without data, in order, counted without being listed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import Literal, TypeAlias, overload

from sordino.query.tree import Value
from sordino.query.typed import Typed
from sordino.query.types import Day, Number, Text, Truth

__all__ = ["Multiples", "Starts", "Unit", "domain", "domain_size"]

Unit: TypeAlias = Literal["year", "quarter", "month", "week", "day", "hour"]
_MONTHS = {"year": 12, "quarter": 3, "month": 1}


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
        value = range(self.first, self.last + 1)[index] * self.step
        return int(value) if value.denominator == 1 else value


@dataclass(frozen=True)
class Starts(Sequence[date]):
    """The first days (or moments) of all units of time between two dates; dates if `lower` is a date, else moments."""

    unit: Unit
    lower: date
    upper: date

    def _number(self, day: date) -> int:
        """Units since the beginning of the calendar; 0001-01-01 is a Monday."""
        if self.unit in _MONTHS:
            return (12 * day.year + day.month - 1) // _MONTHS[self.unit]
        days = day.toordinal() - 1
        if self.unit == "hour":
            return 24 * days + (day.hour if isinstance(day, datetime) else 0)
        return days // 7 if self.unit == "week" else days

    def _start(self, number: int) -> date:
        if self.unit in _MONTHS:
            year, month = divmod(number * _MONTHS[self.unit], 12)
            return self._as_declared(date(year, month + 1, 1))
        if self.unit == "hour":
            return datetime(1, 1, 1) + timedelta(hours=number)
        return self._as_declared(date.fromordinal(1 + number * (7 if self.unit == "week" else 1)))

    def _as_declared(self, day: date) -> date:
        return datetime(day.year, day.month, day.day) if isinstance(self.lower, datetime) else day

    def __len__(self) -> int:
        return max(0, self._number(self.upper) - self._number(self.lower) + 1)

    @overload
    def __getitem__(self, index: int) -> date: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[date]: ...
    def __getitem__(self, index: int | slice) -> date | Sequence[date]:
        if isinstance(index, slice):
            return tuple(self[i] for i in range(*index.indices(len(self))))
        return self._start(self._number(self.lower) + range(len(self))[index])


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

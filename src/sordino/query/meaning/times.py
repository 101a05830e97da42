"""Parts of dates, and dates cut down to the unit that holds them. Weeks begin on Monday, as in ISO 8601."""

from __future__ import annotations

from datetime import date, datetime
from fractions import Fraction

from sqlglot import exp

from sordino.query.meaning import nodes
from sordino.query.meaning.domains import Starts, Unit
from sordino.query.meaning.function import Function, is_null_constant, literal_text, refuse
from sordino.query.typed import Typed
from sordino.query.types import Day, Moment, Number

__all__ = ["TIME_FUNCTIONS"]

_RANGES = {"quarter": (1, 4), "month": (1, 12), "week": (1, 53), "day": (1, 31), "dow": (0, 6), "isodow": (1, 7),
           "doy": (1, 366), "hour": (0, 23), "minute": (0, 59)}  # fmt: skip
_UNITS: tuple[Unit, ...] = ("year", "quarter", "month", "week", "day", "hour")


def _time_of(function: str, arguments: tuple[Typed, Typed], clock: bool) -> Day | Moment:
    type_ = arguments[1].type
    if not isinstance(type_, Day | Moment):
        raise refuse(function, arguments, f"{function} needs a date", "Pass a column of type date or datetime.")
    if clock and isinstance(type_, Day):
        raise refuse(function, arguments, "a date has no time of day", "Pass a column of type datetime.")
    return type_


def _part_range(part: str, lower: date, upper: date) -> tuple[int, int]:
    """The values a part can take between two dates; cut where everything above the part is the same at both ends."""
    if part == "year":
        return lower.year, upper.year
    same = {"quarter": 1, "month": 1, "doy": 1, "day": 2, "hour": 3, "minute": 4}.get(part)
    if same is None or lower.timetuple()[:same] != upper.timetuple()[:same]:
        return _RANGES[part]
    first, last = (_part(part, end) for end in (lower, upper))
    return first, last


def _part(part: str, day: date) -> int:
    fields = day.timetuple()
    return {"quarter": (fields.tm_mon + 2) // 3, "month": fields.tm_mon, "doy": fields.tm_yday, "day": fields.tm_mday,
            "hour": fields.tm_hour, "minute": fields.tm_min}[part]  # fmt: skip


def _date_part(part: Typed, day: Typed) -> Typed:
    names = ("year", *_RANGES)
    hint = f"Parts are {', '.join(names)}."
    name = literal_text("date_part", (part, day), 0, "part", hint).lower()
    if name not in names:
        raise refuse("date_part", (part, day), f"{name!r} is no part of a date", hint)
    if is_null_constant(day):
        return day
    type_ = _time_of("date_part", (part, day), clock=name in ("hour", "minute"))
    first, last = _part_range(name, type_.lower, type_.upper)
    number = Number(Fraction(first), Fraction(last), Fraction(1), None, type_.nullable)
    return Typed(number, exp.Extract(this=exp.var(name), expression=day.sql))


def _date_trunc(unit: Typed, day: Typed) -> Typed:
    hint = f"Units are {', '.join(_UNITS)}."
    name = literal_text("date_trunc", (unit, day), 0, "unit", hint).lower()
    found = next((u for u in _UNITS if u == name), None)
    if found is None:
        raise refuse("date_trunc", (unit, day), f"{name!r} is no unit of time", hint)
    if is_null_constant(day):
        return day
    type_ = _time_of("date_trunc", (unit, day), clock=found == "hour")
    starts = Starts(found, type_.lower, type_.upper)
    first, last = starts[0], starts[-1]
    sql = exp.TimestampTrunc(this=day.sql, unit=exp.var(found.upper()))
    if isinstance(first, datetime) and isinstance(last, datetime):
        return Typed(Moment(first, last, type_.nullable), nodes.cast(sql, "timestamp"), domain=starts)
    # the engine cuts a date to a moment
    return Typed(Day(first, last, type_.nullable), nodes.cast(sql, "date"), domain=starts)


TIME_FUNCTIONS = (
    Function("date_part", 2, 2, "a part of a date as a number: 'year', 'month', 'dow' (Sunday is 0), 'isodow' (Monday is 1)",
             _date_part),
    Function("date_trunc", 2, 2, "the beginning of the 'year', 'month', 'week', ... that holds the date", _date_trunc),
)  # fmt: skip

"""Parts of dates, and dates cut down to the unit that holds them. Weeks begin on Monday, as in ISO 8601."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date, datetime
from fractions import Fraction

from sqlglot import exp

from sordino.query.meaning import nodes
from sordino.query.meaning.domains import Starts, Unit
from sordino.query.meaning.function import Function, alike, is_null_constant, literal_text, refuse
from sordino.query.meaning.neutral import ItemOf
from sordino.query.typed import Typed
from sordino.query.types import FIRST_DAY, FIRST_MOMENT, Day, Moment, Number, Text

__all__ = ["TIME_FUNCTIONS"]

_RANGES = {"quarter": (1, 4), "month": (1, 12), "week": (1, 53), "day": (1, 31), "dow": (0, 6), "isodow": (1, 7),
           "doy": (1, 366), "hour": (0, 23), "minute": (0, 59)}  # fmt: skip
_UNITS: tuple[Unit, ...] = ("year", "quarter", "month", "week", "day", "hour", "minute")
_CLOCK = ("hour", "minute")
_DAY_NAMES = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTH_NAMES = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
                "November", "December")  # fmt: skip
_MOST_UNITS = 9999


def _time_of(
    function: str, arguments: Sequence[Typed], clock: bool, place: int = 1
) -> Day | Moment:
    type_ = arguments[place].type
    if not isinstance(type_, Day | Moment):
        rule = f"{function} needs a date"
        raise refuse(function, arguments, rule, "Pass a column of type date or datetime.")
    if clock and isinstance(type_, Day):
        raise refuse(
            function, arguments, "a date has no time of day", "Pass a column of type datetime."
        )
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
        raise refuse("date_part", (part, day), f"{name!r} is not a part of a date", hint)
    if is_null_constant(day):
        return day
    type_ = _time_of("date_part", (part, day), clock=name in _CLOCK)
    first, last = _part_range(name, type_.lower, type_.upper)
    number = Number(Fraction(first), Fraction(last), Fraction(1), None, type_.nullable)
    return Typed(number, exp.Extract(this=exp.var(name), expression=day.sql))


def _unit_of(function: str, arguments: Sequence[Typed], units: tuple[Unit, ...], name: str) -> Unit:
    found = next((u for u in units if u == name), None)
    if found is None:
        rule = f"{name!r} is not a unit of time here"
        raise refuse(function, arguments, rule, f"Units are {', '.join(units)}.")
    return found


def _started(type_: Day | Moment, starts: Starts, sql: exp.Expression) -> Typed:
    """The start of the span that holds a date."""
    first, last = starts[0], starts[-1]
    if isinstance(first, datetime) and isinstance(last, datetime):
        return Typed(
            Moment(first, last, type_.nullable), nodes.cast(sql, "timestamp"), domain=starts
        )
    # the engine cuts a date to a moment
    return Typed(Day(first, last, type_.nullable), nodes.cast(sql, "date"), domain=starts)


def _date_trunc(unit: Typed, day: Typed) -> Typed:
    name = literal_text(
        "date_trunc", (unit, day), 0, "unit", f"Units are {', '.join(_UNITS)}."
    ).lower()
    found = _unit_of("date_trunc", (unit, day), _UNITS, name)
    if is_null_constant(day):
        return day
    type_ = _time_of("date_trunc", (unit, day), clock=found in _CLOCK)
    sql = exp.TimestampTrunc(this=day.sql, unit=exp.var(found.upper()))
    return _started(type_, Starts(found, type_.lower, type_.upper), sql)


def _time_bucket(width: Typed, day: Typed) -> Typed:
    hint = "Write a width such as '15 minutes', '6 hours' or '2 weeks'."
    words = literal_text("time_bucket", (width, day), 0, "width", hint).split()
    if len(words) != 2 or not words[0].isdecimal() or not 1 <= int(words[0]) <= _MOST_UNITS:
        raise refuse(
            "time_bucket", (width, day), f"a width is 1 to {_MOST_UNITS} units of time", hint
        )
    count, found = (
        int(words[0]),
        _unit_of("time_bucket", (width, day), _UNITS, words[1].removesuffix("s")),
    )
    if is_null_constant(day):
        return day
    type_ = _time_of("time_bucket", (width, day), clock=found in _CLOCK)
    months = {"year": 12, "quarter": 3}.get(found, 1)
    unit = "month" if found in ("year", "quarter") else found
    length = exp.Interval(this=exp.Literal.string(str(count * months)), unit=exp.var(unit.upper()))
    sql = exp.DateBin(this=length, expression=day.sql)
    starts = Starts(found, type_.lower, type_.upper, count)
    result = _started(type_, starts, sql)
    if starts[0] not in (FIRST_DAY, FIRST_MOMENT):
        return result
    first = nodes.constant(starts[0]).sql  # a span that begins before the calendar does is cut
    cut = nodes.let(
        result.sql,
        lambda v: nodes.case([(exp.LT(this=v.copy(), expression=first), first.copy())], v.copy()),
    )
    return replace(result, sql=cut)


def _date_diff(unit: Typed, start: Typed, end: Typed) -> Typed:
    units = tuple(u for u in _UNITS if u != "week")  # engines disagree on weeks
    name = literal_text(
        "date_diff", (unit, start, end), 0, "unit", f"Units are {', '.join(units)}."
    ).lower()
    found = _unit_of("date_diff", (unit, start, end), units, name)
    a, b = alike("date_diff", (start, end))
    if is_null_constant(a) or is_null_constant(b):
        return nodes.constant(None)
    first, last = (_time_of("date_diff", (unit, a, b), found in _CLOCK, place) for place in (1, 2))
    number = Starts(found, first.lower, first.upper).number
    least, most = number(last.lower) - number(first.upper), number(last.upper) - number(first.lower)
    sql = exp.DateDiff(
        this=b.sql, expression=a.sql, unit=exp.var(found.upper()), date_part_boundary=True
    )
    return Typed(
        Number(Fraction(least), Fraction(most), Fraction(1), None, first.nullable or last.nullable),
        sql,
    )


def _named(function: str, part: str, names: tuple[str, ...]) -> Callable[[Typed], Typed]:
    def apply(day: Typed) -> Typed:
        if is_null_constant(day):
            return day
        type_ = _time_of(function, (day,), clock=False, place=0)
        first, last = _part_range(part, type_.lower, type_.upper)
        possible = names[first - 1 : last]
        number: exp.Expression = exp.Extract(this=exp.var(part), expression=day.sql)
        place = nodes.binary(exp.Sub, number, nodes.whole(first - 1)) if first > 1 else number
        # by its place, as listed texts are read
        sql = ItemOf(this=nodes.text_list(possible), expression=place)
        return Typed(Text(possible, max(map(len, possible)), type_.nullable), sql)

    return apply


TIME_FUNCTIONS = (
    Function("date_part", 2, 2, "a part of a date as a number: 'year', 'month', 'dow' (Sunday is 0), 'isodow' (Monday is 1)",
             _date_part),
    Function("date_trunc", 2, 2, "the beginning of the 'year', 'month', 'week', ... that holds the date", _date_trunc),
    Function("date_diff", 3, 3, "how many times a 'year', 'month', 'day', ... begins after the first date, up to the second",
             _date_diff),
    Function("time_bucket", 2, 2, "the beginning of the '15 minutes', '2 weeks', ... that hold the date", _time_bucket),
    Function("dayname", 1, 1, "the day of the week in English", _named("dayname", "isodow", _DAY_NAMES)),
    Function("monthname", 1, 1, "the month in English", _named("monthname", "month", _MONTH_NAMES)),
)  # fmt: skip

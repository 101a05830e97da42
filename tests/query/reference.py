"""A naive evaluator of the query tree on one row, written from the documented meaning, sharing no code with the
package.

Whole numbers are Python ints, all others floats; NULL is None. `clean` reads a raw cell as its declared column says. It
knows no types: a text stays a text where the date beside it is NULL, and whole numbers stay exact beyond 64 bits.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import Any, TypeAlias

from sordino.query import dataset, tree
from sordino.query.types import LARGEST, Day, Moment, Number, Text

Cell: TypeAlias = Any
"""A bool, int, float, str, date, datetime or None."""


def clean(column: dataset.Column, cell: Any) -> Cell:
    """A raw cell as the declared column reads it."""
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return None
    match column.type:
        case Number() as number:
            if number.values is not None:
                return int(cell) if cell in number.values else None
            if number.lower is not None and number.upper is not None and number.step is not None:
                small = -LARGEST < number.lower and number.upper < LARGEST
                if small and number.step.denominator == 1:
                    if column.kind == "float":
                        cell = half_away(
                            clamp(float(cell), float(number.lower), float(number.upper))
                        )
                    return int(clamp(cell, number.lower, number.upper))
            x = float(cell)
            if number.upper is not None and x > float(number.upper):
                return float(number.upper)
            if number.lower is not None and x < float(number.lower):
                return float(number.lower)
            return x
        case Text() as text:
            if text.values is not None:
                return cell if cell in text.values else None
            return cell if text.longest is None else str(cell)[: text.longest]
        case Day() | Moment():
            return clamp(cell, column.type.lower, column.type.upper)
        case _:
            return bool(cell)


def clamp(x: Any, lower: Any, upper: Any) -> Any:
    return lower if x < lower else upper if x > upper else x


def evaluate(expression: tree.Expression, row: Mapping[str, Cell]) -> Cell:
    """The value of an expression on a row of cleaned cells,
    by column name (`table.name` for a column of a public table).
    """
    match expression:
        case tree.Column(name, table):
            return row[name if table is None else f"{table}.{name}"]
        case tree.Literal(value):
            return number(value) if isinstance(value, Fraction) else value
        case tree.Case(branches, otherwise):
            for when, then in branches:
                if evaluate(when, row) is True:
                    return evaluate(then, row)
            return evaluate(otherwise, row)
        case tree.Call(function, arguments):
            return call(function, [evaluate(a, row) for a in arguments])


def number(value: Fraction) -> int | float:
    if value.denominator == 1:
        return int(value)
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def real(x: Any) -> float:
    try:
        return float(x)
    except OverflowError:
        return math.inf if x > 0 else -math.inf


def alike(values: list[Any]) -> list[Any]:
    """Values of one kind: floats if one is a float; text beside a date as a date, dates beside a moment as moments."""
    if any(isinstance(v, float) for v in values):
        return [v if v is None else real(v) for v in values]
    if any(isinstance(v, date) for v in values):
        values = [
            datetime.fromisoformat(v) if isinstance(v, str) and len(v) > 10 else v for v in values
        ]
        values = [date.fromisoformat(v) if isinstance(v, str) else v for v in values]
    if any(isinstance(v, datetime) for v in values):
        return [datetime(v.year, v.month, v.day) if type(v) is date else v for v in values]
    return values


def no_nan(x: Any) -> Any:
    return None if isinstance(x, float) and math.isnan(x) else x


def half_away(x: float) -> float:
    """Round to whole, halves away from zero; by the decimal expansion, which is exact for a float."""
    if math.isinf(x):
        return x
    return float(Decimal(x).quantize(Decimal(1), rounding="ROUND_HALF_UP")) if abs(x) < 2**53 else x


def floor(x: Any) -> Any:
    return x if isinstance(x, float) and math.isinf(x) else type(x)(math.floor(x))


def compare(function: str, x: Any, y: Any) -> Cell:
    a, b = alike([x, y])
    return {"=": a == b, "<>": a != b, "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[function]


def call(function: str, a: list[Any]) -> Cell:
    match function:
        case "and":
            return False if any(x is False for x in a) else None if None in a else True
        case "or":
            return True if any(x is True for x in a) else None if None in a else False
        case "is_null":
            return a[0] is None
        case "coalesce":
            return next((x for x in alike(a) if x is not None), None)
        case "least" | "greatest":
            known = [x for x in alike(a) if x is not None]
            return (min if function == "least" else max)(known) if known else None
        case "in":
            if a[0] is None:
                return None
            found = any(x is not None and compare("=", a[0], x) for x in a[1:])
            return True if found else None if None in a else False
    if any(x is None for x in a):
        return None
    return strict(function, a)


def strict(function: str, a: list[Any]) -> Cell:
    """Functions that are NULL as soon as an argument is."""
    x: Any = a[0]
    y: Any = a[1] if len(a) > 1 else None
    match function:
        case "+" | "-" | "*":
            p, q = alike([x, y])
            return no_nan(p + q if function == "+" else p - q if function == "-" else p * q)
        case "/":
            return None if real(y) == 0 else no_nan(real(x) / real(y))
        case "%":
            return int(x % y)
        case "neg":
            return -x
        case "abs":
            return abs(x)
        case "=" | "<>" | "<" | "<=" | ">" | ">=":
            return compare(function, x, y)
        case "not":
            return not x
        case "floor":
            return floor(x)
        case "ceil":
            return -floor(-x)
        case "round":
            digits = y or 0
            if isinstance(x, int):
                return x if digits >= 0 else int(half_away(x / 10**-digits)) * 10**-digits
            if digits > 0:
                return (
                    x
                    if math.isinf(x * 10.0**digits)
                    else half_away(x * 10.0**digits) / 10.0**digits
                )
            return half_away(x / 10.0**-digits) * 10.0**-digits
        case "bucket":
            if isinstance(x, int) and isinstance(y, int):
                return x // y * y
            return floor(real(x) / real(y)) * real(y)
        case "lower":
            return str(x).lower()
        case "upper":
            return str(x).upper()
        case "length":
            return len(x)
        case "like":
            return like(x, y)
        case "ilike":
            return like(x.lower(), y.lower())
        case "||":
            return x + y
        case "ln" | "log10" | "sqrt" | "exp" | "power":
            return elementary(function, [real(v) for v in a])
        case "clamp":
            value, low, high = alike(a)
            return low if value < low else high if value > high else value
        case "dayname":
            return date(2000, 1, 3 + x.weekday()).strftime("%A")
        case "monthname":
            return date(2000, x.month, 1).strftime("%B")
        case "cast":
            return cast(x, y)
        case "date_diff":
            first, last = alike(a[1:])
            return units(x, last) - units(x, first)
        case "time_bucket":
            return time_bucket(x, y)
        case "substr":
            return str(x)[y - 1 :] if len(a) == 2 else str(x)[y - 1 : y - 1 + a[2]]
        case "date_part":
            return date_part(x, y)
        case "date_trunc":
            return date_trunc(x, y)
    raise AssertionError(function)


@cache
def like(text: str, pattern: str) -> bool:
    parts = {"%": ".*", "_": "."}
    return (
        re.fullmatch("".join(parts.get(c, re.escape(c)) for c in pattern), text, re.DOTALL)
        is not None
    )


def date_part(part: str, day: Any) -> int:
    fields = {"year": day.year, "quarter": (day.month + 2) // 3, "month": day.month, "week": day.isocalendar().week,
              "day": day.day, "dow": day.isoweekday() % 7, "isodow": day.isoweekday(), "doy": day.timetuple().tm_yday,
              "hour": getattr(day, "hour", None), "minute": getattr(day, "minute", None)}  # fmt: skip
    return int(fields[part])


def date_trunc(unit: str, day: Any) -> date:
    first = date(day.year, day.month, day.day)
    match unit:
        case "year":
            first = first.replace(month=1, day=1)
        case "quarter":
            first = first.replace(month=(day.month - 1) // 3 * 3 + 1, day=1)
        case "month":
            first = first.replace(day=1)
        case "week":
            first = date.fromordinal(first.toordinal() - first.weekday())
    if not isinstance(day, datetime):
        return first
    hour = day.hour if unit in ("hour", "minute") else 0
    return datetime(first.year, first.month, first.day, hour, day.minute if unit == "minute" else 0)


def elementary(function: str, a: list[float]) -> float | None:
    """A function of real numbers, None where it has no finite value."""
    known: dict[str, Any] = {
        "ln": math.log,
        "log10": math.log10,
        "sqrt": math.sqrt,
        "exp": math.exp,
        "power": math.pow,
    }
    try:
        value = float(known[function](*a))
    except (ValueError, OverflowError):
        return None
    return value if math.isfinite(value) else None


def cast(kind: str, x: Any) -> Cell:
    if kind == "date":
        return date(x.year, x.month, x.day)
    if kind == "timestamp":
        return x if isinstance(x, datetime) else datetime(x.year, x.month, x.day)
    if kind == "double" or isinstance(x, int):
        return int(x) if isinstance(x, bool) else x
    return int(half_away(x))


def units(unit: str, day: Any) -> int:
    """How many units have begun since the year 1, by the calendar."""
    if unit in ("year", "quarter", "month"):
        return int(day.year * 12 + day.month - 1) // {"year": 12, "quarter": 3, "month": 1}[unit]
    hours = 24 * int(day.toordinal()) + getattr(day, "hour", 0)
    return {"day": hours // 24, "hour": hours, "minute": 60 * hours + getattr(day, "minute", 0)}[
        unit
    ]


def time_bucket(width: str, day: Any) -> date:
    """Counted from 2000-01-01 in months, from Monday, 2000-01-03 in other units; never before the calendar begins."""
    size, unit = int(width.split()[0]), width.split()[1].removesuffix("s")
    if unit in ("year", "quarter", "month"):
        size *= {"year": 12, "quarter": 3, "month": 1}[unit]
        months = (units("month", day) - 24000) // size * size + 24000
        start = datetime(months // 12, months % 12 + 1, 1) if months >= 12 else datetime(1, 1, 1)
    else:
        size *= {"week": 7 * 1440, "day": 1440, "hour": 60, "minute": 1}[unit]
        origin = 1440 * date(2000, 1, 3).toordinal()
        minutes = max((units("minute", day) - origin) // size * size + origin, 1440)
        start = datetime.fromordinal(minutes // 1440) + timedelta(minutes=minutes % 1440)
    return start if isinstance(day, datetime) else start.date()

"""CAST, where it cannot fail: a moment to its day, a number to the nearest whole one, a condition to 0 or 1."""

from __future__ import annotations

from fractions import Fraction

from sordino.query.meaning import nodes
from sordino.query.meaning.function import (
    Function,
    as_moment,
    is_null_constant,
    literal_text,
    refuse,
)
from sordino.query.meaning.numbers import nearest_whole
from sordino.query.typed import Typed
from sordino.query.types import LARGEST, Day, Moment, Number, Truth

__all__ = ["CAST_FUNCTIONS"]

_WHOLE = {"integer": 2**31, "bigint": LARGEST}
_KINDS = ("date", "timestamp", *_WHOLE, "double")


def _cast(kind: Typed, x: Typed) -> Typed:
    name = literal_text("cast", (kind, x), 0, "type", f"Types are {', '.join(_KINDS)}.")
    if is_null_constant(x):
        return x
    match x.type:
        case Day() | Moment() if name in ("date", "timestamp"):
            return _day(x) if name == "date" else as_moment(x)
        case Number() if name == "double":
            return x
        case Number() if name in _WHOLE:
            return _whole(name, x)
        case Truth(nullable=nullable) if name in _WHOLE or name == "double":
            return Typed(
                Number(Fraction(0), Fraction(1), Fraction(1), None, nullable),
                nodes.indicator(x.sql),
            )
        case _:
            hint = (
                "A column is read as what it is declared: int, float, date or datetime. "
                "EXTRACT(year FROM day) is a number."
            )
            raise refuse(
                "cast", (x,), f"it is not turned into {name.upper()}, which could fail", hint
            )


def _day(x: Typed) -> Typed:
    if not isinstance(x.type, Moment):
        return x
    return Typed(
        Day(x.type.lower.date(), x.type.upper.date(), x.type.nullable), nodes.cast(x.sql, "date")
    )


def _whole(name: str, x: Typed) -> Typed:
    found = nearest_whole(x)
    type_ = nodes.as_number(found)
    if (
        type_.lower is None
        or type_.upper is None
        or not -_WHOLE[name] <= type_.lower <= type_.upper < _WHOLE[name]
    ):
        rule = f"its bounds must be known, and whole numbers of type {name.upper()}"
        hint = "Bound it first: CAST(CLAMP(x, 0, 1000) AS BIGINT). ROUND(x) takes every number."
        raise refuse("cast", (x,), rule, hint)
    return found


CAST_FUNCTIONS = (
    Function("cast", 2, 2, "a moment as its 'date', a number as the nearest 'integer', a condition as 0 or 1", _cast),
)  # fmt: skip

"""Building the query tree: every call and aggregate that both front ends make is checked and put into one form here.

Checked is what can be seen without types: how many arguments, and which of them must be constants. Whatever SQL can
say in two ways (BETWEEN, NULLIF, a chain of ANDs) has one form in the tree.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import date, datetime
from fractions import Fraction
from functools import reduce
from itertools import islice
from typing import Any

from sordino.errors import InvalidInput
from sordino.privacy.exact import decimal_reading, show
from sordino.privacy.wording import a_or_an
from sordino.query.aggregates.registry import kind_of, kinds
from sordino.query.front.shapes import LARGEST
from sordino.query.tree import Aggregate, Call, Case, Expression, Literal, Value

__all__ = ["ARITY", "CASTS", "DATE_PARTS", "DATE_UNITS", "DIFFERENCE_UNITS", "aggregate", "all_of", "between", "call",
           "check_name", "concatenated", "constant", "count_where", "frame", "if_else", "is_arithmetic", "matched",
           "negated", "nullif", "number", "when_true"]  # fmt: skip

_HUGE = 10**308
_MANY = 1_000_000
_NULL = Literal(None)

ARITY: dict[str, tuple[int, int]] = {
    **dict.fromkeys(("+", "-", "*", "/", "%", "=", "<>", "<", "<=", ">", ">=", "bucket", "like"), (2, 2)),
    **dict.fromkeys(("ilike", "||", "power"), (2, 2)),
    **dict.fromkeys(("neg", "not", "is_null", "abs", "floor", "ceil", "lower", "upper", "length"), (1, 1)),
    **dict.fromkeys(("ln", "log10", "exp", "sqrt", "dayname", "monthname"), (1, 1)),
    **dict.fromkeys(("and", "or", "in"), (2, _MANY)),
    **dict.fromkeys(("coalesce", "least", "greatest"), (1, _MANY)),
    **dict.fromkeys(("date_part", "date_trunc", "time_bucket", "cast"), (2, 2)),
    **dict.fromkeys(("clamp", "date_diff"), (3, 3)), "round": (1, 2), "substr": (2, 3),
}  # fmt: skip
"""The functions of the tree, operators included, with the least and the largest number of arguments."""

DATE_PARTS = ("year", "quarter", "month", "week", "day", "dow", "isodow", "doy", "hour", "minute")
DATE_UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute")
DIFFERENCE_UNITS = tuple(unit for unit in DATE_UNITS if unit != "week")
CASTS = ("date", "timestamp", "integer", "bigint", "double")
_WIDTH = re.compile(r"([1-9][0-9]{0,3}) *([a-z]+?)s?")


def number(value: Any) -> Literal:
    """A number as a constant of the tree: exact, an int where it is whole."""
    read = decimal_reading("the constant", value)
    if abs(read) >= _HUGE or read.denominator >= 10**400:
        what = "a number of absurd size"
        raise InvalidInput(what, "a constant must lie below 1e308", "Write an ordinary number.")
    return Literal(read.numerator if read.denominator == 1 else read)


def constant(value: object) -> Literal:
    """Any plain value as a constant of the tree."""
    if hasattr(value, "item") and getattr(value, "ndim", 1) == 0:
        value = value.item()  # a NumPy scalar
    if value is None or isinstance(value, bool):
        return Literal(value)
    if isinstance(value, str):
        value = str(value)
        if "\x00" in value or any("\ud800" <= letter <= "\udfff" for letter in value):
            what = "text with a NUL or half a character"
            raise InvalidInput(what, "a constant must be ordinary text", "Remove that character.")
        return Literal(value)
    if isinstance(value, date):
        # a missing time of pandas differs from itself
        if getattr(value, "tzinfo", None) is not None or value != value:
            rule = "a constant time must be a plain one, without time zone"
            raise InvalidInput(show(value), rule, "Remove the time zone.")
        day = date(value.year, value.month, value.day)
        return Literal(
            datetime.combine(day, value.time()).replace(fold=0)
            if isinstance(value, datetime)
            else day
        )
    return number(value)


def call(function: str, *arguments: Expression) -> Call:
    """A call in its one form; refuses a wrong number of arguments, and a variable where a constant belongs.

    Example:
        >>> a, b, c = Literal(1), Literal(2), Literal(3)
        >>> call("and", call("and", a, b), c) == call("and", a, b, c)
        True
    """
    least, most = ARITY[function]
    if not least <= len(arguments) <= most:
        wanted = (
            f"{least}"
            if least == most
            else f"at least {least}"
            if most == _MANY
            else f"{least} to {most}"
        )
        hint = "`sordino docs sql` shows how it is written."
        raise InvalidInput(f"{function} of {len(arguments)} arguments", f"it takes {wanted}", hint)
    match function:
        case "and" | "or":
            # check_size refuses what was cut
            arguments = tuple(islice(_flat(function, arguments), LARGEST + 1))
        case "in":
            for item in arguments[1:]:
                if not isinstance(item, Literal) or item.value is None:
                    rule = "its list must hold constants, none of them NULL"
                    hint = "Write x IN ('a', 'b'); ask for missing values with x IS NULL."
                    raise InvalidInput("IN with something else than constants", rule, hint)
        case "like" | "ilike":
            _like_pattern(function.upper(), arguments[1])
        case "round" if len(arguments) == 2:
            _whole("the digits of ROUND", arguments[1], -300, 300)
        case "bucket":
            width = arguments[1]
            if not isinstance(width, Literal) or not _is_number(width.value) or width.value <= 0:  # type: ignore[operator]
                rule = "it must be a constant greater than zero"
                raise InvalidInput("the width of BUCKET", rule, "Write BUCKET(age, 10).")
        case "substr":
            _whole("the start of SUBSTR", arguments[1], 1, 2**31)
            if len(arguments) == 3:
                _whole("the length of SUBSTR", arguments[2], 0, 2**31)
        case "date_part":
            _one_of("the part of a date", arguments[0], DATE_PARTS)
        case "date_trunc":
            _one_of("the unit of DATE_TRUNC", arguments[0], DATE_UNITS)
        case "date_diff":
            _one_of("the unit of DATE_DIFF", arguments[0], DIFFERENCE_UNITS)
        case "time_bucket":
            arguments = (_width(arguments[0]), arguments[1])
        case "cast":
            _one_of("the type of CAST", arguments[0], CASTS)
        case "clamp":
            if not all(isinstance(end, Literal) and end.value is not None for end in arguments[1:]):
                raise InvalidInput(
                    "the ends of CLAMP", "both must be constants", "Write CLAMP(cost, 0, 5000)."
                )
        case _:
            pass
    return Call(function, arguments)


def _flat(function: str, arguments: Iterable[Expression]) -> Iterable[Expression]:
    for argument in arguments:
        if isinstance(argument, Call) and argument.function == function:
            yield from argument.arguments  # itself in one form, hence flat
        else:
            yield argument


def _is_number(value: Value) -> bool:
    return isinstance(value, int | Fraction) and not isinstance(value, bool)


def _whole(what: str, argument: Expression, least: int, most: int) -> None:
    value = argument.value if isinstance(argument, Literal) else None
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise InvalidInput(
            what, f"it must be a whole constant from {least} to {most}", "Write the number itself."
        )


def _one_of(what: str, argument: Expression, words: tuple[str, ...]) -> None:
    if not isinstance(argument, Literal) or argument.value not in words:
        raise InvalidInput(
            what, "it must be one of " + ", ".join(words), f"Write '{words[0]}', for example."
        )


def _width(argument: Expression) -> Literal:
    """The width of TIME_BUCKET in its one form, such as '1 hour' or '15 minutes'."""
    text = argument.value if isinstance(argument, Literal) else None
    found = _WIDTH.fullmatch(text.strip().lower()) if isinstance(text, str) else None
    if found is None or found[2] not in DATE_UNITS:
        rule = "it must be a constant such as '15 minutes': 1 to 9999 of " + ", ".join(DATE_UNITS)
        raise InvalidInput("the width of TIME_BUCKET", rule, "Write TIME_BUCKET('15 minutes', at).")
    return Literal(f"{found[1]} {found[2]}{'' if found[1] == '1' else 's'}")


def _like_pattern(function: str, pattern: Expression) -> None:
    if not isinstance(pattern, Literal) or not isinstance(pattern.value, str):
        rule, hint = "its pattern must be a constant text", f"Write name {function} 'A%'."
        raise InvalidInput(f"{function} with something else than a constant", rule, hint)
    if "\\" in pattern.value:
        what = f"{a_or_an(function)} pattern with a backslash"
        rule = "% and _ are the only special characters; there is no escape"
        raise InvalidInput(what, rule, "Compare with SUBSTR or = instead.")


def all_of(*conditions: Expression) -> Expression:
    """Their conjunction; a single condition is itself."""
    return call("and", *conditions) if len(conditions) > 1 else conditions[0]


def between(x: Expression, low: Expression, high: Expression) -> Call:
    """X BETWEEN low AND high."""
    return call("and", call(">=", x, low), call("<=", x, high))


def negated(x: Expression) -> Expression:
    """Minus x; of a constant number, the negative constant."""
    if isinstance(x, Literal) and _is_number(x.value):
        return Literal(-x.value)  # type: ignore[operator]
    return call("neg", x)


def nullif(x: Expression, y: Expression) -> Case:
    """NULL where x = y, else x."""
    return Case(((call("=", x, y), Literal(None)),), x)


def concatenated(parts: Sequence[Expression]) -> Expression:
    """CONCAT: all parts joined, a missing one being empty."""
    if not parts:
        raise InvalidInput(
            "CONCAT of nothing", "it takes at least one text", "Write CONCAT(city, ', ', ward)."
        )
    filled = [
        part
        if isinstance(part, Literal) and part.value is not None
        else call("coalesce", part, Literal(""))
        for part in parts
    ]
    return reduce(lambda left, right: call("||", left, right), filled)


def if_else(condition: Expression, yes: Expression, no: Expression = _NULL) -> Case:
    """One of two values."""
    return Case(((condition, yes),), no)


def matched(
    x: Expression, branches: Iterable[tuple[Expression, Expression]], otherwise: Expression = _NULL
) -> Case:
    """CASE x WHEN ... THEN ... END."""
    return Case(tuple((call("=", x, value), result) for value, result in branches), otherwise)


def aggregate(function: str, *arguments: Expression, parameter: Any = None) -> Aggregate:
    """An aggregate in its one form."""
    return kinds()[function].form(arguments, parameter)


def when_true(condition: Expression, value: Aggregate) -> Aggregate:
    """The aggregate FILTER (WHERE condition)."""
    return kind_of(value).filtered(condition, value)


def count_where(condition: Expression) -> Aggregate:
    """COUNT(*) FILTER (WHERE condition)."""
    return when_true(condition, Aggregate("count"))


def is_arithmetic(value: Expression) -> bool:
    """Whether a value is arithmetic of aggregates and numbers."""
    match value:
        case Aggregate():
            return True
        case Literal(constant):
            return _is_number(constant)
        case Call("+" | "-" | "*" | "/" | "neg", parts):
            return all(map(is_arithmetic, parts))
    return False


def frame(rows: object) -> tuple[int | None, int | None] | None:
    """The rows of a window around a row; None for those up to it, which need not be said."""
    if rows is None or rows == (None, 0):
        return None
    ends = list(rows) if isinstance(rows, tuple) else []
    if len(ends) != 2 or not all(
        end is None or (isinstance(end, int) and not isinstance(end, bool)) for end in ends
    ):
        rule = "the rows of a window are two whole numbers: the first and the last one, counted from the row itself"
        raise InvalidInput(
            f"rows={show(rows)}", rule, "Write rows=(-2, 0) for two rows before and this one."
        )
    return ends[0], ends[1]


def check_name(name: object) -> str:
    """A name of a table, a column or an output; refuses one that cannot be shown."""
    if not isinstance(name, str) or not name or len(name) > 200 or not name.isprintable():
        rule = "a name has 1 to 200 printable characters"
        raise InvalidInput(show(name), rule, "Choose another name, such as n.")
    return name

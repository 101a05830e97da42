"""What all functions share: their form, the words of their refusals, and bringing arguments to one type."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from fractions import Fraction
from typing import assert_never

from sqlglot import exp

from sordino.errors import Code, InvalidInput
from sordino.privacy.exact import readable, show
from sordino.query.meaning import intervals, nodes
from sordino.query.typed import Typed
from sordino.query.types import Day, Moment, Nothing, Number, Text, Truth, Type

__all__ = [
    "Function", "alike", "hull", "is_null_constant", "literal_int", "literal_text", "number_of", "refuse", "words",
]  # fmt: skip

ENGINE_TYPES: dict[type[Type], str] = {
    Truth: "boolean",
    Text: "varchar",
    Day: "date",
    Moment: "timestamp",
}


@dataclass(frozen=True)
class Function:
    """One allow-listed function: how many arguments it takes (`most` None:
    any number), and its rule from Typed to Typed.
    """

    name: str
    least: int
    most: int | None
    meaning: str
    rule: Callable[..., Typed]

    def apply(self, *arguments: Typed) -> Typed:
        """The function of typed arguments; a refusal if their number or types do not fit."""
        if len(arguments) < self.least or (self.most is not None and len(arguments) > self.most):
            wanted = str(self.least) if self.least == self.most else f"{self.least} or more" if self.most is None \
                else f"{self.least} to {self.most}"  # fmt: skip
            what = f"{self.name} with {len(arguments)} arguments"
            raise InvalidInput(what, f"{self.name} takes {wanted}", f"{self.meaning}.")
        return self.rule(*arguments)


def words(typed: Typed) -> str:
    """An argument in words, for a refusal; constants are the analyst's own and may be shown."""
    if typed.constant is not None:
        value = typed.constant[0]
        if isinstance(value, Fraction):
            return readable(value)
        return (
            "NULL"
            if value is None
            else value.isoformat()
            if isinstance(value, date)
            else show(value)
        )
    return kind_words(typed.type)


def kind_words(type_: Type) -> str:
    """A type in words."""
    match type_:
        case Number():
            return "a number"
        case Truth():
            return "a condition"
        case Text():
            return "a text"
        case Day():
            return "a date"
        case Moment():
            return "a date with time"
        case Nothing():
            return "NULL"
        case _:
            assert_never(type_)


def refuse(
    function: str, arguments: Sequence[Typed], rule: str, hint: str, code: Code | None = None
) -> InvalidInput:
    """A refusal that names the function and its arguments in words."""
    if len(arguments) > 4:
        listed = ", ".join(words(a) for a in arguments[:3]) + f" and {len(arguments) - 3} more"
    else:
        listed = " and ".join(words(a) for a in arguments)
    return InvalidInput(f"{function} of {listed}", rule, hint, code)


def is_null_constant(typed: Typed) -> bool:
    """Whether it is NULL itself, which fits every function."""
    return isinstance(typed.type, Nothing)


def number_of(function: str, arguments: Sequence[Typed]) -> list[Number]:
    """The types of arguments that must all be numbers."""
    numbers: list[Number] = []
    for argument in arguments:
        match argument.type:
            case Number() as number:
                numbers.append(number)
            case Truth():
                hint = "Write CASE WHEN condition THEN 1 ELSE 0 END; AVG(condition) is a proportion, SUM(condition) a count."
                raise refuse(function, arguments, "a condition is not a number", hint)
            case Day() | Moment():
                hint = "Compare dates, take a part (EXTRACT(year FROM day)), or count days: DATE_DIFF('day', first, last)."
                raise refuse(function, arguments, "a date is not a number", hint)
            case _:
                hint = "Pass columns of type int or float, or numbers."
                raise refuse(function, arguments, f"{function} needs numbers", hint)
    return numbers


def literal_int(
    function: str, arguments: Sequence[Typed], position: int, name: str, lower: int, upper: int
) -> int:
    """An argument that must be written out as a whole number within bounds."""
    known = arguments[position].constant
    value = known[0] if known is not None else None
    if isinstance(value, bool) or not isinstance(value, int) or not lower <= value <= upper:
        raise refuse(function, arguments, f"its {name} must be a whole number from {lower} to {upper}, written out",
                     f"Write a number such as {max(lower, 1)}.")  # fmt: skip
    return value


def literal_text(
    function: str, arguments: Sequence[Typed], position: int, name: str, hint: str
) -> str:
    """An argument that must be written out as text."""
    known = arguments[position].constant
    value = known[0] if known is not None else None
    if not isinstance(value, str):
        raise refuse(function, arguments, f"its {name} must be a text, written out", hint)
    return value


_ISO = re.compile(r"\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?)?", re.ASCII)


def _as_date(function: str, arguments: Sequence[Typed], text: str) -> date:
    """A literal text as the date, or date with time, that it spells."""
    try:
        if not _ISO.fullmatch(text):
            raise ValueError
        return date.fromisoformat(text) if len(text) == 10 else datetime.fromisoformat(text)
    except ValueError:
        hint = "Write it as '2024-01-31' or '2024-01-31 10:00:00'."
        rule = "there is no such date" if _ISO.fullmatch(text) else "a date is compared with a date"
        raise refuse(function, arguments, rule, hint) from None


def alike(function: str, arguments: Sequence[Typed]) -> list[Typed]:
    """The arguments brought to one kind; NULLs stay.

    Literal texts beside dates become dates, dates beside moments become moments.
    """
    result = list(arguments)
    if any(isinstance(a.type, Day | Moment) for a in arguments):
        for i, a in enumerate(result):
            if a.constant is not None and isinstance(a.constant[0], str):
                result[i] = nodes.constant(_as_date(function, arguments, a.constant[0]))
        if any(isinstance(a.type, Moment) for a in result):
            result = [as_moment(a) for a in result]
    kinds = {type(a.type) for a in result} - {Nothing}
    if len(kinds) > 1:
        found = " and ".join(
            sorted(kind_words(a.type) for a in {type(a.type): a for a in result}.values())
        )
        rule = f"{function} needs arguments of one kind, not {found}"
        raise refuse(function, arguments, rule, _same_kind(arguments))
    return result


def _same_kind(arguments: Sequence[Typed]) -> str:
    """What to write instead of arguments of different kinds: a constant in quotes, or without."""
    kinds = {type(a.type) for a in arguments if a.constant is None}
    for constant in (a.constant[0] for a in arguments if a.constant is not None):
        if kinds == {Text} and isinstance(constant, int) and not isinstance(constant, bool):
            return f"Write the text in single quotes: '{constant}'."
        if (
            kinds == {Number}
            and isinstance(constant, str)
            and re.fullmatch(r"(?a:-?\d+(\.\d+)?)", constant.strip())
        ):
            return f"Write the number without quotes: {constant.strip()}."
    if kinds & {Day, Moment}:
        return "Write dates in single quotes: '2024-01-31'."
    return "Compare numbers with numbers, text with text, dates with dates."


def as_moment(typed: Typed) -> Typed:
    """A date as the moment at which it begins; everything else unchanged."""
    if not isinstance(typed.type, Day):
        return typed
    if typed.constant is not None and isinstance(typed.constant[0], date):
        day = typed.constant[0]
        return nodes.constant(datetime(day.year, day.month, day.day))
    lower, upper = (datetime(d.year, d.month, d.day) for d in (typed.type.lower, typed.type.upper))
    return Typed(Moment(lower, upper, typed.type.nullable), nodes.cast(typed.sql, "timestamp"))


def hull(arguments: Sequence[Typed]) -> Type:
    """The type of a value that is one of the arguments, which are alike and not NULL constants."""
    types = [a.type for a in arguments]
    nullable = any(t.nullable for t in types if not isinstance(t, Nothing))
    numbers = [t for t in types if isinstance(t, Number)]
    texts = [t for t in types if isinstance(t, Text)]
    days = [t for t in types if isinstance(t, Day)]
    moments = [t for t in types if isinstance(t, Moment)]
    if numbers:
        return intervals.hull(numbers)
    if texts:
        listed = [t.values for t in texts if t.values is not None]
        values = (
            tuple(dict.fromkeys(v for few in listed for v in few))
            if len(listed) == len(texts)
            else None
        )
        longest = [t.longest for t in texts if t.longest is not None]
        return Text(values, max(longest) if len(longest) == len(texts) else None, nullable)
    if days:
        return Day(min(d.lower for d in days), max(d.upper for d in days), nullable)
    if moments:
        return Moment(min(m.lower for m in moments), max(m.upper for m in moments), nullable)
    return Truth(nullable) if types else Nothing()


def selection(
    type_: Type, arguments: Sequence[Typed], build: Callable[[list[exp.Expression]], exp.Expression]
) -> Typed:
    """SQL that picks one of alike arguments: numbers all in BIGINT or all in DOUBLE, NULLs typed.

    Where the picked number is whole by its type but some argument is a DOUBLE (an unbounded one), it is rounded.
    """
    if isinstance(type_, Nothing):
        return nodes.constant(None)
    if not isinstance(type_, Number):
        engine_type = ENGINE_TYPES[type(type_)]
        return Typed(
            type_,
            build([nodes.null(engine_type) if is_null_constant(a) else a.sql for a in arguments]),
        )
    integral = all(
        isinstance(a.type, Nothing) or (isinstance(a.type, Number) and a.type.integral)
        for a in arguments
    )
    if integral and type_.integral:
        return Typed(
            type_,
            build([nodes.null("bigint") if is_null_constant(a) else a.sql for a in arguments]),
        )
    sql = build(
        [nodes.null("double") if is_null_constant(a) else nodes.as_double(a) for a in arguments]
    )
    if not type_.integral:
        return Typed(type_, sql)
    lower, upper = intervals.ends(type_)
    whole = nodes.as_whole(exp.Round(this=sql), math.ceil(lower), math.floor(upper))
    return Typed(replace(type_, nullable=True), whole)

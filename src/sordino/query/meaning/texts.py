"""Simple functions of text. Characters are Unicode code points; comparison is by code point."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from sqlglot import exp

from sordino.query.meaning import nodes
from sordino.query.meaning.function import (
    Function,
    is_null_constant,
    literal_int,
    literal_text,
    refuse,
)
from sordino.query.typed import Typed
from sordino.query.types import Number, Text, Truth

__all__ = ["TEXT_FUNCTIONS"]

_LONGEST = 2**31 - 1
_LONGEST_JOINED, _MOST_JOINED = 10_000, 1000
"""Characters of joined texts, and how many of them are listed."""


def _text_of(function: str, arguments: Sequence[Typed]) -> Text:
    type_ = arguments[0].type
    if not isinstance(type_, Text):
        rule = f"{function} needs a text first"
        raise refuse(function, arguments, rule, "Pass a column of type text or category.")
    return type_


def _distinct(values: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(values))


def _changed(
    function: str, node: type[exp.Expression], change: Callable[[str], str]
) -> Callable[[Typed], Typed]:
    def apply(x: Typed) -> Typed:
        if is_null_constant(x):
            return x
        text = _text_of(function, (x,))
        # beyond ASCII, engines and Python disagree on letter case, so only ASCII values stay a known list
        known = text.values is not None and all(v.isascii() for v in text.values)
        values = (
            _distinct([change(v) for v in text.values])
            if known and text.values is not None
            else None
        )
        return Typed(Text(values, text.longest, text.nullable), node(this=x.sql))

    return apply


def _length(x: Typed) -> Typed:
    if is_null_constant(x):
        return x
    text = _text_of("length", (x,))
    if text.values is not None:
        lengths = tuple(sorted({len(v) for v in text.values})) or (0,)
        number = Number(
            Fraction(lengths[0]), Fraction(lengths[-1]), Fraction(1), lengths, text.nullable
        )
        return Typed(number, exp.Length(this=x.sql))
    if text.longest is not None:
        return Typed(
            Number(Fraction(0), Fraction(text.longest), Fraction(1), None, text.nullable),
            exp.Length(this=x.sql),
        )
    return Typed(
        Number(Fraction(0), None, Fraction(1), None, text.nullable),
        nodes.cast(exp.Length(this=x.sql), "double"),
    )


def _matching(name: str, node: type[exp.Expression]) -> Callable[[Typed, Typed], Typed]:
    def apply(x: Typed, pattern: Typed) -> Typed:
        hint = "Write a pattern such as 'A%'; % stands for any text, _ for one character."
        text = literal_text(name, (x, pattern), 1, "pattern", hint)
        if "\\" in text:
            raise refuse(
                name, (x, pattern), "a pattern holds no backslash, since nothing is escaped", hint
            )
        if is_null_constant(x):
            return Typed(Truth(), nodes.null("boolean"), (None,))
        nullable = _text_of(name, (x, pattern)).nullable
        return Typed(Truth(nullable), exp.Paren(this=node(this=x.sql, expression=pattern.sql)))

    return apply


def _joined(x: Typed, y: Typed) -> Typed:
    if is_null_constant(x) or is_null_constant(y):
        return nodes.constant(None)
    if not isinstance(x.type, Text) or not isinstance(y.type, Text):
        hint = "Write OR between conditions; numbers and dates do not become texts."
        raise refuse("||", (x, y), "|| joins texts", hint)
    if (
        x.type.longest is None
        or y.type.longest is None
        or x.type.longest + y.type.longest > _LONGEST_JOINED
    ):
        # a text that is doubled again and again would take all memory
        rule = f"joined texts have at most {_LONGEST_JOINED:,} characters, known beforehand"
        hint = "Cut them first: SUBSTR(city, 1, 100); or declare max_length of the column."
        raise refuse("||", (x, y), rule, hint)
    values = None
    if (
        x.type.values is not None
        and y.type.values is not None
        and len(x.type.values) * len(y.type.values) <= _MOST_JOINED
    ):
        values = _distinct([a + b for a in x.type.values for b in y.type.values])
    type_ = Text(values, x.type.longest + y.type.longest, x.type.nullable or y.type.nullable)
    return Typed(type_, nodes.binary(exp.DPipe, x.sql, y.sql))


def _substring(x: Typed, *where: Typed) -> Typed:
    arguments = (x, *where)
    start = literal_int("substr", arguments, 1, "start", 1, _LONGEST)
    length = literal_int("substr", arguments, 2, "length", 0, _LONGEST) if len(where) > 1 else None
    if is_null_constant(x):
        return x
    text = _text_of("substr", arguments)
    end = None if length is None else start - 1 + length
    values = None if text.values is None else _distinct([v[start - 1 : end] for v in text.values])
    longest = None if text.longest is None else max(0, text.longest - start + 1)
    if length is not None:
        longest = length if longest is None else min(longest, length)
    sql = exp.Substring(
        this=x.sql, start=nodes.whole(start), length=None if length is None else nodes.whole(length)
    )
    return Typed(Text(values, longest, text.nullable), sql)


TEXT_FUNCTIONS = (
    Function("lower", 1, 1, "the text in small letters", _changed("lower", exp.Lower, str.lower)),
    Function("upper", 1, 1, "the text in capital letters", _changed("upper", exp.Upper, str.upper)),
    Function("length", 1, 1, "the number of characters", _length),
    Function(
        "||", 2, 2, "the first text followed by the second; NULL where one of them is", _joined
    ),
    Function(
        "like",
        2,
        2,
        "whether the text matches a pattern: % is any text, _ one character",
        _matching("like", exp.Like),
    ),
    Function(
        "ilike", 2, 2, "the same, whatever the case of the letters", _matching("ilike", exp.ILike)
    ),
    Function(
        "substr",
        2,
        3,
        "the part that begins at a character (the first is 1), up to this many characters",
        _substring,
    ),
)

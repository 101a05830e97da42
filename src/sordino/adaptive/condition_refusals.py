"""Refusals of conditions: the front end's speak of whole queries, these of one row and of the sample's columns."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any

from sordino.errors import Code, InvalidInput, UnsupportedSQL
from sordino.privacy.exact import show

__all__ = ["of_a_condition", "of_its_types", "unknown_column", "unread_column"]

_ALONE = "Write the condition alone, such as age >= 65."
_BY_ROW = (
    "Compare columns with constants, such as age >= 65; find the constants by questions before."
)
_RULES: Mapping[Code | None, tuple[str, str]] = {
    Code.AGGREGATE: ("a condition is about one row, and has no aggregate", _BY_ROW),
    Code.WINDOW: ("a condition is about one row, and has no window", _BY_ROW),
    Code.SUBQUERY: ("a condition has no SELECT", _ALONE),
    Code.STATEMENT: ("a condition is not a statement", _ALONE),
    Code.TABLE_NAME: (
        "a condition is about one table, whose columns have plain names",
        "Write the column without a table.",
    ),
    Code.SYNTAX: (
        "the condition is not understood from here on",
        "Look for a missing value, bracket or quote.",
    ),
}
_FUNCTION = "Write a condition on columns, such as age >= 65, or ask with a function."
_MOST_NAMED = 12


def of_a_condition(text: str, error: InvalidInput) -> InvalidInput:
    """The front end's refusal in words that fit a condition."""
    first = text.split(maxsplit=1)[0].upper() if text.split() else ""
    if first in ("SELECT", "WITH", "WHERE"):
        return UnsupportedSQL(
            f"a text that begins with {first}",
            "a question in SQL is a condition, not a query",
            _ALONE,
        )
    if error.code in _RULES:
        return UnsupportedSQL(error.value, *_RULES[error.code])
    return type(error)(
        error.value, error.rule, _FUNCTION if error.code is Code.QUERY_PART else error.hint
    )


def of_its_types(error: InvalidInput) -> InvalidInput:
    """A refusal of types without advice to declare them: those of a sample are what they are."""
    return type(error)(
        error.value, error.rule, _FUNCTION if error.code is Code.DECLARATION else error.hint
    )


def unknown_column(text: str, name: str, known: Sequence[str]) -> InvalidInput:
    """The refusal of a name that no column has."""
    same = [other for other in known if other.casefold() == name.casefold()]
    close = difflib.get_close_matches(name, known, 1)
    if same:
        hint = f"Case matters: did you mean {same[0]}?"
    elif close and f'"{name}"' not in text:
        hint = f"Did you mean {close[0]}?"
    else:
        more = f" and {len(known) - _MOST_NAMED} more" * (len(known) > _MOST_NAMED)
        quotes = "'" + name.replace("'", "''") + "'"
        named = ", ".join(known[:_MOST_NAMED]) or "none"
        hint = f"A text stands in single quotes: {quotes}. Columns are: {named}{more}."
    return InvalidInput(f"the column {show(name)}", "the sample has no such column", hint)


def unread_column(name: str, kind: Any) -> InvalidInput:
    """The refusal of a column that is there, but of a type that no condition understands."""
    zone = getattr(kind, "tz", None)
    value = f"the column {show(name)}" + (f" of type {kind}" if kind is not None else "")
    rule = "a condition may name columns of numbers, truths, texts, dates, or times without a zone"
    hint = (
        "Convert it to times in UTC without a zone, or ask with a function."
        if zone
        else "Ask with a function."
    )
    return InvalidInput(value, rule, hint)

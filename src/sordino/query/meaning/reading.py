"""Reading a column: from whatever a cell holds to a value that its declared type allows, or NULL.

This is where the owner's bounds become true: numbers and dates are clamped, unlisted categories and NaN are NULL, long
text is cut. A column declared without NULLs is still read as one that may have them. No cell can make the engine fail.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import assert_never

from sqlglot import exp

from sordino.query import dataset
from sordino.query.meaning import intervals, nodes
from sordino.query.meaning.neutral import ItemOf
from sordino.query.typed import Typed
from sordino.query.types import Day, Moment, Nothing, Number, Text, Truth

__all__ = ["is_long", "raw", "read"]

_LONG, _LONG_TEXT = 64, 2000


def read(column: dataset.Column, sql: exp.Expression) -> Typed:
    """The cleaned column: its SQL never fails and never leaves the declared type; `sql` names the raw cells."""
    if column.clean and not isinstance(column.type, Nothing):
        cell = nodes.cast(sql, "varchar") if isinstance(column.type, Text) else sql.copy()
        return Typed(replace(column.type, nullable=True), cell)
    match column.type:
        case Number() as number:
            type_ = replace(number, nullable=True)
            if number.values is not None:
                return Typed(type_, _listed_whole(number.values, sql))
            return Typed(
                type_,
                _whole(number, column.kind, sql)
                if number.integral
                else _real(number, column.kind, sql),
            )
        case Truth():
            return Typed(Truth(), sql.copy())
        case Text() as text:
            return Typed(replace(text, nullable=True), _text(text, sql))
        case Day() as day:
            ends = nodes.constant(day.lower).sql, nodes.constant(day.upper).sql
            return Typed(replace(day, nullable=True), nodes.clamped(sql, *ends))
        case Moment() as moment:
            ends = nodes.constant(moment.lower).sql, nodes.constant(moment.upper).sql
            # to microseconds first: comparing nanoseconds with a far bound would fail
            return Typed(
                replace(moment, nullable=True),
                nodes.clamped(nodes.try_cast(sql, "timestamp"), *ends),
            )
        case Nothing() as nothing:
            return Typed(nothing, exp.null(), (None,))
        case _:
            assert_never(column.type)


def is_long(values: Sequence[object]) -> bool:
    """Whether a list is too long to be written into SQL at each use; the engine then looks values up in a relation.

    Written out, n values cost n comparisons a row, and their length once or twice a mention.
    """
    return len(values) > _LONG or sum(len(v) for v in values if isinstance(v, str)) > _LONG_TEXT


def raw(declared: Text | Number, sql: exp.Expression) -> exp.Expression:
    """A cell as it is looked up in the list of its declared values: text, or a whole number of 64 bits; never fails."""
    return (
        nodes.cast(sql.copy(), "varchar")
        if isinstance(declared, Text)
        else nodes.try_cast(sql.copy(), "bigint")
    )


def _listed_whole(values: tuple[int, ...], sql: exp.Expression) -> exp.Expression:
    listed = exp.In(this=sql.copy(), expressions=[nodes.whole(v) for v in values])
    return nodes.case([(listed, nodes.try_cast(sql.copy(), "bigint"))])


def _whole(number: Number, kind: dataset.Kind, sql: exp.Expression) -> exp.Expression:
    """A whole number in 64 bits: compared before it is cast, since a cell may be larger than 64 bits."""
    least, most = intervals.ends(number)
    lower, upper = math.ceil(least), math.floor(most)
    if kind == "float":
        return nodes.as_whole(exp.Round(this=_real(number, kind, sql)), lower, upper)
    below = exp.LT(this=sql.copy(), expression=nodes.whole(lower))
    above = exp.GT(this=sql.copy(), expression=nodes.whole(upper))
    inside = nodes.try_cast(sql.copy(), "bigint")
    return nodes.case([(below, nodes.whole(lower)), (above, nodes.whole(upper))], inside)


def _real(number: Number, kind: dataset.Kind, sql: exp.Expression) -> exp.Expression:
    """A double: NaN, which the engine orders above everything, is NULL; then the bounds."""
    x = nodes.try_cast(sql, "double")
    nan = exp.IsNan(this=x.copy())
    branches: list[tuple[exp.Expression, exp.Expression]] = []
    missing = [] if kind == "int" else [(nan, nodes.null("double"))]
    if number.upper is not None:
        top = nodes.real(number.upper)
        beyond = nodes.case(missing, top.copy()) if missing else top.copy()
        branches.append((exp.GT(this=x.copy(), expression=top), beyond))
    else:
        branches.extend(missing)
    if number.lower is not None:
        bottom = nodes.real(Fraction(number.lower))
        branches.append((exp.LT(this=x.copy(), expression=bottom), bottom.copy()))
    return nodes.case(branches, x) if branches else x


def _text(text: Text, sql: exp.Expression) -> exp.Expression:
    if text.values is not None:
        # an unlisted category is NULL; the cast turns the engine's own enumerations into text
        # looked up by its place, which keeps the engine's dictionaries: CASE ... IN takes thirty times as long
        place = nodes.place_in(text.values, nodes.cast(sql.copy(), "varchar"))
        return ItemOf(this=nodes.text_list(text.values), expression=place)
    cell = nodes.cast(sql.copy(), "varchar")
    if text.longest is None:
        return cell
    return exp.Substring(
        this=cell, start=exp.Literal.number(1), length=exp.Literal.number(text.longest)
    )

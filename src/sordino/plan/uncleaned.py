"""Conditions asked of cells before these are cleaned: true for exactly the same rows, and cheap where few rows stay.

Cleaning moves a value between two public bounds and makes NaN and unlisted texts NULL. A comparison with a constant
between these bounds comes out the same before and after (relations.md, Theorem 4). It is found from the condition and
the declaration only, so that it is the same for all data, and it can fail on no cell.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from fractions import Fraction
from typing import Any, TypeAlias

from sqlglot import exp

from sordino.query.dataset import Column
from sordino.query.meaning import intervals, nodes
from sordino.query.meaning.neutral import ItemOf, PlaceIn, TextList
from sordino.query.types import Day, Moment, Number, Truth

__all__ = ["asked_of_cells"]

_OPPOSITE: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.LT: exp.GTE, exp.GTE: exp.LT, exp.GT: exp.LTE, exp.LTE: exp.GT, exp.EQ: exp.NEQ, exp.NEQ: exp.EQ,
}  # fmt: skip
_MIRRORED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.LT: exp.GT, exp.GT: exp.LT, exp.LTE: exp.GTE, exp.GTE: exp.LTE, exp.EQ: exp.EQ, exp.NEQ: exp.NEQ,
}  # fmt: skip
Bounds: TypeAlias = tuple[Any, Any]


def asked_of_cells(
    condition: exp.Expr, columns: Mapping[str, Column], *, holds: bool = True
) -> exp.Expr | None:
    """A condition on cells as they are which is true for the same rows as this one on clean cells; None if there is
    none here.

    `columns` are those that will be cleaned, by alias. With `holds` false it is true where the condition is false.
    Where the condition is not true, it may be NULL instead of false, or the other way round.
    """
    match condition:
        case exp.Paren():
            return asked_of_cells(condition.this, columns, holds=holds)
        case exp.Not():
            return asked_of_cells(condition.this, columns, holds=not holds)
        case exp.And() | exp.Or():
            halves = [
                asked_of_cells(half, columns, holds=holds)
                for half in (condition.left, condition.right)
            ]
            if halves[0] is None or halves[1] is None:
                return None
            together = isinstance(condition, exp.And) == holds
            return _joined(exp.And if together else exp.Or, halves[0], halves[1])
        case exp.In(this=ItemOf() as item) if condition.expressions:
            return _listed(item, condition.expressions, holds)
        case exp.EQ(this=ItemOf() as item) | exp.NEQ(this=ItemOf() as item):
            return _listed(item, [condition.expression], holds == isinstance(condition, exp.EQ))
        case exp.In(this=exp.Column() as cell) if condition.expressions:
            return _one_of(cell, condition.expressions, columns, holds)
        case exp.Column() if isinstance(getattr(columns.get(condition.name), "type", None), Truth):
            return condition.copy() if holds else exp.Not(this=condition.copy())
        case _ if type(condition) in _OPPOSITE:
            return _compared(condition, columns, holds)
        case _:
            return None


def _listed(item: ItemOf, constants: Sequence[exp.Expr], holds: bool) -> exp.Expr | None:
    """Whether a listed text is one of some, or one of the others in the list: then the cell itself is."""
    place = item.expression
    if not isinstance(place, PlaceIn) or place.this != item.this:
        return None
    asked = [one.this for one in constants if isinstance(one, exp.Literal) and one.is_string]
    if len(asked) < len(constants):
        return None
    kept = [value for value in _texts(item.this) if (value in asked) == holds]
    if not kept:
        return exp.false()
    first, *others = map(exp.Literal.string, kept)
    cell = place.expression.copy()
    if not others:
        return exp.Paren(this=exp.EQ(this=cell, expression=first))
    return exp.Paren(this=exp.In(this=cell, expressions=[first, *others]))


def _texts(listed: exp.Expr) -> list[str]:
    if isinstance(listed, TextList):
        return str(listed.this.this).split(listed.expression.this)
    return [one.this for one in listed.expressions]


def _one_of(
    cell: exp.Column, constants: Sequence[exp.Expr], columns: Mapping[str, Column], holds: bool
) -> exp.Expr | None:
    """Whether a cell is one of some values that are strictly between the bounds."""
    parts = [_compared(exp.EQ(this=cell, expression=one), columns, holds) for one in constants]
    if any(part is None for part in parts) or _reads_doubles(columns[cell.name]):
        return None
    listed = exp.In(this=_cell(columns[cell.name], cell), expressions=[c.copy() for c in constants])
    return exp.Paren(this=listed) if holds else exp.Paren(this=exp.Not(this=exp.Paren(this=listed)))


def _compared(condition: exp.Expr, columns: Mapping[str, Column], holds: bool) -> exp.Expr | None:
    """A comparison of a cell with a constant between the bounds to which the cell is moved."""
    operator, left, right = type(condition), condition.this, condition.expression
    if isinstance(left, exp.Column) and isinstance(right, exp.Column):
        return _of_two(operator if holds else _OPPOSITE[operator], left, right, columns)
    if not isinstance(left, exp.Column):
        operator, left, right = _MIRRORED[operator], right, left
    if not holds:
        operator = _OPPOSITE[operator]
    declared = columns.get(left.name) if isinstance(left, exp.Column) else None
    if declared is None or (read := _readings(declared)) is None:
        return None
    constant, (lower, upper) = read[0](right), read[1]
    if constant is None:
        return None
    # what lies below the lower bound is moved to it, so that the comparison must say the same of both; so above
    below = lower is None or (
        lower < constant or (operator in (exp.LTE, exp.GT) and lower == constant)
    )
    above = upper is None or (
        constant < upper or (operator in (exp.LT, exp.GTE) and upper == constant)
    )
    if not (below and above):
        return None
    asked = _joined(operator, _cell(declared, left), right.copy())
    if _reads_doubles(declared) and operator in (exp.GT, exp.GTE, exp.NEQ):
        # NaN is above everything, and NULL once it is clean
        number = exp.Not(this=exp.IsNan(this=_cell(declared, left)))
        return _joined(exp.And, asked, number)
    return asked


def _joined(operator: type[exp.Expr], left: exp.Expr, right: exp.Expr) -> exp.Expr:
    """Two sides in brackets."""
    return exp.Paren(this=operator(this=left, expression=right))


def _of_two(
    operator: type[exp.Expr], left: exp.Column, right: exp.Column, columns: Mapping[str, Column]
) -> exp.Expr | None:
    """A comparison of two cells that are moved into the same bounds: what lies beyond one of them is equal then."""
    if operator in (exp.GT, exp.GTE):
        operator, left, right = _MIRRORED[operator], right, left
    ours, theirs = columns.get(left.name), columns.get(right.name)
    if operator not in (exp.LT, exp.LTE) or ours is None or theirs is None:
        return None
    bounds, others = _bounds(ours), _bounds(theirs)
    if bounds is None or bounds != others or type(ours.type) is not type(theirs.type):
        return None
    lower, upper = bounds
    a, b = _cell(ours, left), _cell(theirs, right)
    if operator is exp.LT:
        parts = [exp.LT(this=a, expression=b), exp.LT(this=a.copy(), expression=upper),
                 exp.GT(this=b.copy(), expression=lower)]  # fmt: skip
        return exp.Paren(this=exp.and_(*parts, copy=False))
    known = [exp.Not(this=exp.Is(this=one.copy(), expression=exp.null())) for one in (a, b)]
    parts = [exp.LTE(this=a, expression=b), exp.LTE(this=a.copy(), expression=lower),
             exp.GTE(this=b.copy(), expression=upper)]  # fmt: skip
    either = exp.Paren(this=exp.or_(*parts, copy=False))
    return exp.Paren(this=exp.and_(*known, either, copy=False))


def _bounds(declared: Column) -> tuple[exp.Expr, exp.Expr] | None:
    """The bounds to which cells are moved, in SQL; None where more is done, or where NaN would be compared."""
    match declared.type:
        case Day(lower=first, upper=last) | Moment(lower=first, upper=last):
            return nodes.constant(first).sql, nodes.constant(last).sql
        case Number(values=None) as number if number.integral and declared.kind == "int":
            least, most = intervals.ends(number)
            return nodes.whole(math.ceil(least)), nodes.whole(math.floor(most))
        case _:
            return None


def _readings(
    declared: Column,
) -> tuple[Callable[[exp.Expr], Any | None], Bounds] | None:
    """How constants beside a column are read, and the bounds to which its cells are moved; None where more is done."""
    match declared.type:
        case Day(lower=first, upper=last):
            return _day, (first, last)
        case Moment(lower=start, upper=end):
            return _moment, (start, end)
        case Number(values=None) as number if number.integral and declared.kind == "int":
            least, most = intervals.ends(number)
            return _whole, (math.ceil(least), math.floor(most))
        case Number(values=None, lower=low, upper=high) if _reads_doubles(declared):
            return _real, (
                None if low is None else nodes.nearest_double(Fraction(low)),
                None if high is None else nodes.nearest_double(Fraction(high)),
            )
        case _:
            return None


def _reads_doubles(declared: Column) -> bool:
    kind = declared.type
    return declared.kind == "float" and isinstance(kind, Number) and not kind.integral


def _cell(declared: Column, cell: exp.Column) -> exp.Expr:
    """The cell in the type in which it is compared."""
    if isinstance(declared.type, Moment):
        return nodes.try_cast(cell.copy(), "timestamp")
    return nodes.try_cast(cell.copy(), "double") if _reads_doubles(declared) else cell.copy()


def _cast_text(node: exp.Expr, kind: exp.DType) -> str | None:
    """The literal in CAST('...' AS a type)."""
    if isinstance(node, exp.Cast) and node.to.this is kind and isinstance(node.this, exp.Literal):
        return str(node.this.this)
    return None


def _day(node: exp.Expr) -> date | None:
    written = _cast_text(node, exp.DType.DATE)
    return None if written is None else date.fromisoformat(written)


def _moment(node: exp.Expr) -> datetime | None:
    written = _cast_text(node, exp.DType.TIMESTAMP)
    return None if written is None else datetime.fromisoformat(written)


def _whole(node: exp.Expr) -> int | None:
    """A BIGINT constant, as `nodes.constant` writes it."""
    if not isinstance(node, exp.Cast) or node.to.this is not exp.DType.BIGINT:
        return None
    number, sign = node.this, 1
    if isinstance(number, exp.Neg):
        number, sign = number.this, -1
    plain = isinstance(number, exp.Literal) and not number.is_string and number.this.isdecimal()
    return sign * int(number.this) if plain else None


def _real(node: exp.Expr) -> float | None:
    """A finite DOUBLE constant, as `nodes.real` writes it."""
    return float(node.this) if isinstance(node, exp.Literal) and not node.is_string else None

"""SQL built by hand for the engine: constants of one definite type, and numbers between BIGINT and DOUBLE.

Everything is total, and no large argument is mentioned twice (see `let`), so that SQL grows only with its tree, both
as text and inside the engine (whose NULLIF is a CASE with two copies).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from datetime import date, datetime
from fractions import Fraction

from sqlglot import exp

from sordino.errors import InvalidInput
from sordino.privacy.exact import show
from sordino.query.meaning.neutral import Doubles, Fits, Indicator, ItemOf, Let, PlaceIn, TextList
from sordino.query.tree import Value
from sordino.query.typed import Typed
from sordino.query.types import Day, Moment, Nothing, Number, Text, Truth, Type

__all__ = ["as_double", "as_number", "as_whole", "binary", "case", "cast", "clamped", "clamped_whole", "constant", "doubles",
           "extreme", "finite", "greatest", "indicator", "least", "let", "nearest_double", "not_nan", "not_zero", "null",
           "place_in", "real", "text_list", "try_cast", "whole"]  # fmt: skip

_KINDS = {"bigint": exp.DType.BIGINT, "double": exp.DType.DOUBLE, "boolean": exp.DType.BOOLEAN, "varchar": exp.DType.VARCHAR,
          "date": exp.DType.DATE, "timestamp": exp.DType.TIMESTAMP}  # fmt: skip


_OPERATORS: dict[str, type[exp.Expression]] = {
    "+": exp.Add,
    "-": exp.Sub,
    "*": exp.Mul,
    "/": exp.Div,
}


def cast(sql: exp.Expression, kind: str) -> exp.Expression:
    """CAST to an engine type; for casts that cannot fail."""
    return exp.Cast(this=sql, to=exp.DataType(this=_KINDS[kind]))


def try_cast(sql: exp.Expression, kind: str) -> exp.Expression:
    """TRY_CAST to an engine type: NULL where the value does not fit."""
    return exp.TryCast(this=sql, to=exp.DataType(this=_KINDS[kind]))


def binary(
    operator: type[exp.Expression], left: exp.Expression, right: exp.Expression
) -> exp.Expression:
    """An operator in brackets, so that it binds as the tree says."""
    return exp.Paren(this=operator(this=left, expression=right))


def doubles(
    operator: str, left: exp.Expression, right: exp.Expression, *, safe: bool = False
) -> exp.Expression:
    """Two DOUBLEs joined by + - * or /; `safe` where no result is too large for a double,
    or so small that it becomes 0.
    """
    if safe:
        return binary(_OPERATORS[operator], left, right)
    return exp.Paren(this=Doubles(this=left, expression=right, operator=operator))


def extreme(function: str, sql: exp.Expr, kind: Type | None) -> exp.Expression:
    """The "min" or "max" of a group, NULLs aside; of conditions, which not every engine orders, whether all or any
    are true.
    """
    if isinstance(kind, Truth):
        return (exp.LogicalAnd if function == "min" else exp.LogicalOr)(this=sql)
    return (exp.Min if function == "min" else exp.Max)(this=sql)


def indicator(sql: exp.Expression) -> exp.Expression:
    """A condition as 1 or 0."""
    return Indicator(this=sql)


def case(
    branches: Sequence[tuple[exp.Expression, exp.Expression]],
    otherwise: exp.Expression | None = None,
) -> exp.Expression:
    """A searched CASE; without `otherwise` it ends in NULL."""
    return exp.Case(
        ifs=[exp.If(this=when, true=then) for when, then in branches], default=otherwise
    )


def least(*sql: exp.Expression) -> exp.Expression:
    """The smallest argument; NULLs are skipped, NaN is greater than everything."""
    return (
        exp.Least(this=sql[0], expressions=list(sql[1:]), ignore_nulls=True)
        if len(sql) > 1
        else sql[0]
    )


def greatest(*sql: exp.Expression) -> exp.Expression:
    """The largest argument; NULLs are skipped, NaN is greater than everything."""
    return (
        exp.Greatest(this=sql[0], expressions=list(sql[1:]), ignore_nulls=True)
        if len(sql) > 1
        else sql[0]
    )


def null(kind: str) -> exp.Expression:
    """NULL of an engine type."""
    return cast(exp.null(), kind)


def whole(value: int) -> exp.Expression:
    """A whole constant beside a BIGINT; alone it must be cast, since the engine computes with small ones in 32 bits."""
    return exp.Literal.number(str(value))


def nearest_double(value: Fraction) -> float:
    """The nearest double; infinite beyond them."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def real(value: Fraction | float) -> exp.Expression:
    """A DOUBLE constant: the nearest double to an exact number, infinite beyond them."""
    nearest = nearest_double(value) if isinstance(value, Fraction) else value
    if math.isinf(nearest) or math.isnan(nearest):
        name = "NaN" if math.isnan(nearest) else "Infinity" if nearest > 0 else "-Infinity"
        return cast(exp.Literal.string(name), "double")
    text = repr(nearest + 0.0)
    # not Literal.number, which writes a negative -0.5e0 as -0.5, a decimal
    return exp.Literal(this=text if "e" in text else text + "e0", is_string=False)


def double_at_least(value: Fraction) -> float:
    """The smallest double that is not below `value`."""
    nearest = nearest_double(value)
    if math.isinf(nearest):
        return nearest if nearest > 0 else -math.nextafter(math.inf, 0.0)
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


_SMALL = 200


def let(sql: exp.Expression, build: Callable[[exp.Expression], exp.Expression]) -> exp.Expression:
    """`build(sql)`, where `build` may copy its argument several times.

    A large argument is computed once and has a name; in DuckDB that takes 20 ns a row.
    """
    if all(count < _SMALL for count, _ in enumerate(sql.walk())):
        return build(sql)
    return Let(this=sql, expression=build(exp.to_identifier("v")))


def not_nan(sql: exp.Expression) -> exp.Expression:
    """A DOUBLE with NaN as NULL."""
    return let(sql, lambda v: case([(exp.IsNan(this=v.copy()), null("double"))], v.copy()))


def not_zero(sql: exp.Expression) -> exp.Expression:
    """A DOUBLE with zero as NULL."""
    return let(
        sql,
        lambda v: case([(exp.EQ(this=v.copy(), expression=real(0.0)), null("double"))], v.copy()),
    )


def finite(sql: exp.Expression) -> exp.Expression:
    """A DOUBLE with NaN, which is above everything, and infinities as NULL."""
    return let(
        sql,
        lambda v: case(
            [(exp.LTE(this=exp.Abs(this=v.copy()), expression=real(sys.float_info.max)), v.copy())]
        ),
    )


def clamped(x: exp.Expression, lower: exp.Expression, upper: exp.Expression) -> exp.Expression:
    """A value moved into [lower, upper]; comparisons with NULL are not true, so NULL falls through to the end.

    The engine orders infinite dates rightly.
    """
    below, above = exp.LT(this=x.copy(), expression=lower), exp.GT(this=x.copy(), expression=upper)
    return case([(below, lower.copy()), (above, upper.copy())], x.copy())


def as_number(typed: Typed) -> Number:
    """The type of an expression that must be a number."""
    if not isinstance(typed.type, Number):
        raise InvalidInput(
            "an expression that is not a number", "a number is needed here", "Pass a number."
        )
    return typed.type


def as_double(number: Typed) -> exp.Expression:
    """The SQL of a Number as DOUBLE."""
    if not as_number(number).integral:
        return number.sql
    if number.constant is not None and isinstance(number.constant[0], int):
        return real(Fraction(number.constant[0]))
    return cast(number.sql, "double")


def as_whole(sql: exp.Expression, lower: int, upper: int) -> exp.Expression:
    """A whole-valued DOUBLE as BIGINT, clamped: NULL, or within [lower, upper], whatever it is; NULL for NULL and NaN.

    The doubles compared with are themselves within the bounds, also where bounds are too large to be doubles.
    """
    bottom, top = real(double_at_least(Fraction(lower))), real(-double_at_least(Fraction(-upper)))

    def clamped(v: exp.Expression) -> exp.Expression:
        inside = case(
            [
                (
                    exp.GTE(this=v.copy(), expression=bottom),
                    Fits(this=v.copy(), to=exp.DataType(this=_KINDS["bigint"])),
                )
            ],
            whole(lower),
        )
        # NaN is above everything and NULL is not comparable, so both pass the first test by
        return case([(exp.LTE(this=v.copy(), expression=top), inside),
                     (exp.IsNan(this=v.copy()), null("bigint")),
                     (exp.GT(this=v.copy(), expression=top.copy()), whole(upper))])  # fmt: skip

    return let(sql, clamped)


def clamped_whole(sql: exp.Expression, lower: int, upper: int) -> exp.Expression:
    """A BIGINT clamped into [lower, upper]; NULL stays NULL."""
    return let(sql, lambda v: clamped(v, whole(lower), whole(upper)))


def _text_is_clean(value: str) -> bool:
    return "\x00" not in value and not any(0xD800 <= ord(c) <= 0xDFFF for c in value)


def constant(value: Value) -> Typed:
    """A literal of the query tree with its type and SQL."""
    known = (value,)
    match value:
        case None:
            return Typed(Nothing(), exp.null(), known)
        case bool():
            return Typed(Truth(nullable=False), exp.true() if value else exp.false(), known)
        case int() | Fraction():
            exact = Fraction(value)
            number = Number(exact, exact, abs(exact) or Fraction(1), nullable=False)
            if exact.denominator == 1:
                known = (int(exact),)
                number = Number(exact, exact, number.step, (int(exact),), nullable=False)
            return Typed(
                number, cast(whole(int(exact)), "bigint") if number.integral else real(exact), known
            )
        case str():
            if not _text_is_clean(value):
                raise InvalidInput(f"the text {show(value)}", "a text holds no NUL and no half of a surrogate pair",
                                   "Write the text without it.")  # fmt: skip
            return Typed(
                Text((value,), len(value), nullable=False), exp.Literal.string(value), known
            )
        case datetime():
            if value.tzinfo is not None:
                what = f"the time {value.isoformat()}"
                raise InvalidInput(what, "times have no time zone here", "Leave the zone out.")
            sql = cast(exp.Literal.string(value.isoformat(" ")), "timestamp")
            return Typed(Moment(value, value, nullable=False), sql, known)
        case date():
            return Typed(
                Day(value, value, nullable=False),
                cast(exp.Literal.string(value.isoformat()), "date"),
                known,
            )


def text_list(values: Sequence[str]) -> exp.Expression:
    """A list of texts: one literal split by a sign that occurs in none of them, since long lists take time to parse."""
    sign = next((sign for sign in "|;,/\n\t" if not any(sign in value for value in values)), None)
    if sign is None or not values:
        return exp.Array(expressions=[exp.Literal.string(value) for value in values])
    return TextList(this=exp.Literal.string(sign.join(values)), expression=exp.Literal.string(sign))


def place_in(values: Sequence[str], cell: exp.Expression) -> exp.Expression:
    """The place of a text in a list, from 1 on; NULL if it is not there."""
    if isinstance(cell, ItemOf) and cell.this == text_list(values):
        place: exp.Expression = cell.expression
        return place.copy()  # the place of what stands at a place
    return PlaceIn(this=text_list(values), expression=cell)

"""Arithmetic and rounding. Whole bounded numbers are computed in 64-bit integers, exactly; all others in doubles.

A double result that is no number (inf - inf) is NULL, so that NaN is never seen; not tested where bounds rule it out.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from sqlglot import exp

from sordino.errors import Code
from sordino.query.meaning import intervals, nodes
from sordino.query.meaning.function import (
    Function,
    alike,
    hull,
    is_null_constant,
    literal_int,
    number_of,
    refuse,
    selection,
)
from sordino.query.typed import Typed
from sordino.query.types import LARGEST, Day, Moment, Nothing, Number, Text

__all__ = ["NUMBER_FUNCTIONS", "nearest_whole"]

_SAFE = 2**900
"""Doubles up to this magnitude do not become infinite in a sum or when rounded, so none of them makes NaN."""

_DIGITS = 15


def _finite(*types: Number) -> bool:
    """Whether bounds show that no value is near the end of the doubles."""
    return all(
        t.lower is not None and t.upper is not None and max(abs(t.lower), abs(t.upper)) <= _SAFE
        for t in types
    )


def _double(type_: Number, operands: tuple[Number, ...], sql: exp.Expression) -> Typed:
    """A result computed in doubles; NaN is made NULL unless it cannot occur: it only comes from infinite operands."""
    type_ = intervals.floating(type_)
    if _finite(*operands):
        return Typed(type_, sql)
    return Typed(replace(type_, nullable=True), nodes.not_nan(sql))


def _size(number: Number) -> Fraction | None:
    """The largest magnitude; None if it is not known."""
    return (
        None
        if number.lower is None or number.upper is None
        else max(abs(number.lower), abs(number.upper))
    )


def _at_least_one(x: Typed) -> bool:
    """Whether no value but 0 is below 1 in magnitude, so that a product with it is never too small for a double."""
    known = None if x.constant is None else x.constant[0]
    if isinstance(known, int | Fraction):
        return abs(Fraction(known)) >= 1
    return nodes.as_number(x).integral


def _exact_range(name: str, x: Typed, y: Typed) -> bool:
    """Whether bounds show that + - * or / of two doubles is neither too large for
    one nor so small that it becomes 0.
    """
    most, other = (_size(nodes.as_number(one)) for one in (x, y))
    if most is None or other is None:
        return False
    if name in ("+", "-"):
        return most + other <= _SAFE
    if name == "*":
        return most * other <= _SAFE and (_at_least_one(x) or _at_least_one(y))
    known = None if y.constant is None else y.constant[0]
    if not isinstance(known, int | Fraction) or not known:
        return False
    divisor = abs(Fraction(known))
    return most / divisor <= _SAFE and (
        divisor <= 1 or (nodes.as_number(x).integral and divisor <= _SAFE)
    )


def _operator(
    name: str, node: type[exp.Expression], rule: Callable[[Number, Number], Number]
) -> Callable[[Typed, Typed], Typed]:
    def apply(x: Typed, y: Typed) -> Typed:
        if is_null_constant(x) or is_null_constant(y):
            return nodes.constant(None)
        a, b = number_of(name, (x, y))
        type_ = rule(a, b)
        if a.integral and b.integral and type_.integral:
            return Typed(type_, nodes.binary(node, x.sql, y.sql))
        sql = nodes.doubles(
            name, nodes.as_double(x), nodes.as_double(y), safe=_exact_range(name, x, y)
        )
        return _double(type_, (a, b), sql)

    return apply


def _divide(x: Typed, y: Typed) -> Typed:
    if is_null_constant(x) or is_null_constant(y):
        return nodes.constant(None)
    a, b = number_of("/", (x, y))
    type_ = intervals.divide(a, b)
    divisor = nodes.as_double(y)
    if y.constant is None or nodes.nearest_double(b.lower or Fraction(0)) == 0:
        divisor, type_ = nodes.not_zero(divisor), replace(type_, nullable=True)
    return _double(
        type_, (a, b), nodes.doubles("/", nodes.as_double(x), divisor, safe=_exact_range("/", x, y))
    )


def _modulo(x: Typed, y: Typed) -> Typed:
    if is_null_constant(x) or is_null_constant(y):
        return nodes.constant(None)
    a, _ = number_of("%", (x, y))
    divisor = literal_int("%", (x, y), 1, "divisor", 1, LARGEST - 1)
    if not a.integral:
        raise refuse("%", (x, y), "a remainder is taken of a whole number with bounds below 2^62",
                     "Declare the column as int with min and max, or round it first.", Code.DECLARATION)  # fmt: skip
    # engines differ on the sign of a remainder: adding the divisor once makes it positive everywhere
    signed = nodes.binary(exp.Mod, x.sql, nodes.whole(divisor))
    shifted = nodes.binary(exp.Add, signed, nodes.whole(divisor))
    return Typed(intervals.modulo(a, divisor), nodes.binary(exp.Mod, shifted, nodes.whole(divisor)))


def _negate(x: Typed) -> Typed:
    if is_null_constant(x):
        return x
    (a,) = number_of("-", (x,))
    if x.constant is not None:
        value = x.constant[0]
        if isinstance(value, int | Fraction):
            return nodes.constant(-value)
    return Typed(intervals.negate(a), exp.Paren(this=exp.Neg(this=x.sql)))


def _absolute(x: Typed) -> Typed:
    if is_null_constant(x):
        return x
    (a,) = number_of("abs", (x,))
    return Typed(intervals.absolute(a), exp.Abs(this=x.sql))


def _half_away(value: Fraction) -> int:
    """The nearest whole number, halves away from zero, as SQL rounds."""
    return math.floor(value + Fraction(1, 2)) if value >= 0 else math.ceil(value - Fraction(1, 2))


def _to_multiple(
    x: Typed, node: type[exp.Expression], to_whole: Callable[[Fraction], int], width: Fraction
) -> Typed:
    """node(x / width) * width, in 64-bit integers where the result is whole and bounded."""
    type_ = intervals.rounded(nodes.as_number(x), to_whole, width)
    sql = nodes.as_double(x)
    known = nodes.constant(width)
    divided = (
        sql
        if width == 1
        else nodes.doubles("/", sql, nodes.real(width), safe=_exact_range("/", x, known))
    )
    quotient = node(this=divided)
    if type_.integral:
        lower, upper = intervals.ends(type_)
        count = nodes.as_whole(quotient, int(lower / width), int(upper / width))
        sql = count if width == 1 else nodes.binary(exp.Mul, count, nodes.whole(int(width)))
        return Typed(replace(type_, nullable=True), sql)
    size = _size(nodes.as_number(x))
    safe = size is not None and size <= _SAFE
    sql = quotient if width == 1 else nodes.doubles("*", quotient, nodes.real(width), safe=safe)
    return Typed(type_, sql)


def _floor(x: Typed) -> Typed:
    if is_null_constant(x) or number_of("floor", (x,))[0].integral:
        return x
    return _to_multiple(x, exp.Floor, math.floor, Fraction(1))


def _ceil(x: Typed) -> Typed:
    if is_null_constant(x) or number_of("ceil", (x,))[0].integral:
        return x
    return _to_multiple(x, exp.Ceil, math.ceil, Fraction(1))


def _round(x: Typed, *digits: Typed) -> Typed:
    places = (
        literal_int("round", (x, *digits), 1, "number of digits", -18, _DIGITS) if digits else 0
    )
    if is_null_constant(x):
        return x
    (a,) = number_of("round", (x,))
    if a.integral and places >= 0:
        return x
    if places <= 0:
        return _to_multiple(x, exp.Round, _half_away, Fraction(10**-places))
    power = Fraction(10**places)
    type_ = intervals.rounded(a, _half_away, 1 / power)
    if not _finite(a):
        # the engine's own rounding leaves a number alone that would overflow when multiplied
        return Typed(type_, exp.Round(this=x.sql, decimals=exp.Literal.number(places)))
    # times and divided by a power of ten, not times a tenth: powers of ten are exact in doubles
    scaled = exp.Round(this=nodes.binary(exp.Mul, x.sql, nodes.real(power)))
    return Typed(type_, nodes.binary(exp.Div, scaled, nodes.real(power)))


def nearest_whole(x: Typed) -> Typed:
    """ROUND(x)."""
    return _round(x)


def _bucket(x: Typed, width: Typed) -> Typed:
    known = width.constant[0] if width.constant is not None else None
    if (
        isinstance(known, bool)
        or not isinstance(known, int | Fraction)
        or not Fraction(1, 10**100) <= known <= 10**100
    ):
        rule = "its width must be a positive number, written out"
        raise refuse("bucket", (x, width), rule, "Write a width such as 10 or 0.5.")
    if is_null_constant(x):
        return x
    (a,) = number_of("bucket", (x,))
    size = Fraction(known)
    type_ = intervals.rounded(a, math.floor, size)
    if a.integral and type_.integral:
        start, n = int(intervals.ends(type_)[0]), int(size)
        if intervals.ends(a)[1] - start < LARGEST:
            # counted from the first bucket on, since the engine's whole division rounds towards zero
            shifted = nodes.binary(exp.Sub, x.sql, nodes.whole(start))
            scaled = nodes.binary(
                exp.Mul, nodes.binary(exp.IntDiv, shifted, nodes.whole(n)), nodes.whole(n)
            )
            return Typed(type_, nodes.binary(exp.Add, scaled, nodes.whole(start)))
    return _to_multiple(x, exp.Floor, math.floor, size)


def _extreme(name: str) -> Callable[..., Typed]:
    node = nodes.least if name == "least" else nodes.greatest
    rule = intervals.least if name == "least" else intervals.greatest

    def apply(*arguments: Typed) -> Typed:
        known = [a for a in alike(name, arguments) if not is_null_constant(a)]
        if not known:
            return nodes.constant(None)
        if len(known) == 1:
            return known[0]
        type_ = hull(known)
        if isinstance(type_, Text | Day | Moment):
            one = replace(
                type_,
                nullable=all(not isinstance(a.type, Nothing) and a.type.nullable for a in known),
            )
            return selection(one, known, lambda sql: node(*sql))
        return selection(rule(number_of(name, known)), known, lambda sql: node(*sql))

    return apply


def _elementary(
    name: str, node: Callable[[exp.Expression], exp.Expression], rule: Callable[[Number], Number],
    domain: type[exp.Expression] | None = None,
) -> Callable[[Typed], Typed]:  # fmt: skip
    """A function of one number in doubles, NULL where it has no finite value;
    `domain` compares x with zero beforehand.
    """

    def apply(x: Typed) -> Typed:
        if is_null_constant(x):
            return x
        (a,) = number_of(name, (x,))

        def within(v: exp.Expression) -> exp.Expression:
            return (
                node(v)
                if domain is None
                else nodes.case([(domain(this=v.copy(), expression=nodes.real(0.0)), node(v))])
            )

        type_, sql = rule(a), nodes.let(nodes.as_double(x), within)
        safe = _finite(a) and type_.upper is not None and type_.upper <= _SAFE
        return Typed(intervals.floating(type_), sql if safe else nodes.finite(sql))

    return apply


def _power(x: Typed, y: Typed) -> Typed:
    if is_null_constant(x) or is_null_constant(y):
        return nodes.constant(None)
    type_ = intervals.power(*number_of("power", (x, y)))
    # zero to a negative power is infinite, a negative number to a broken one no number, and both become NULL
    return Typed(
        intervals.floating(type_),
        nodes.finite(exp.Pow(this=nodes.as_double(x), expression=nodes.as_double(y))),
    )


def _clamp(x: Typed, low: Typed, high: Typed) -> Typed:
    hint = "Write constants such as CLAMP(cost, 0, 5000) or CLAMP(day, '2024-01-01', '2024-12-31')."
    if any(end.constant in (None, (None,)) for end in (low, high)):
        raise refuse("clamp", (x, low, high), "its two ends must be written out", hint)
    if is_null_constant(x):
        return x
    same = alike("clamp", (x, low, high))
    match [a.type for a in same]:
        case [Number() as number, Number() as bottom, Number() as top]:
            ordered = intervals.ends(bottom) <= intervals.ends(top)
            type_: Number | Day | Moment = intervals.clamp(number, bottom, top)
        case [Day() as day, Day() as first, Day() as last]:
            ordered = first.lower <= last.lower
            lower, upper = (min(max(d, first.lower), last.lower) for d in (day.lower, day.upper))
            type_ = Day(lower, upper, day.nullable)
        case [Moment() as at, Moment() as begin, Moment() as end]:
            ordered = begin.lower <= end.lower
            earliest, latest = (min(max(t, begin.lower), end.lower) for t in (at.lower, at.upper))
            type_ = Moment(earliest, latest, at.nullable)
        case _:
            raise refuse("clamp", (x, low, high), "numbers and dates have two ends", hint)
    if not ordered:
        raise refuse("clamp", (x, low, high), "its low end must not be above its high end", hint)
    return selection(
        type_, same, lambda sql: nodes.let(sql[0], lambda v: nodes.clamped(v, sql[1], sql[2]))
    )


NUMBER_FUNCTIONS = (
    Function("+", 2, 2, "x + y", _operator("+", exp.Add, intervals.add)),
    Function("-", 2, 2, "x - y", _operator("-", exp.Sub, intervals.subtract)),
    Function("*", 2, 2, "x * y", _operator("*", exp.Mul, intervals.multiply)),
    Function("/", 2, 2, "the quotient, never cut to a whole number; NULL where y is 0", _divide),
    Function("%", 2, 2, "the remainder of a whole number by a positive whole number, never negative", _modulo),
    Function("neg", 1, 1, "-x", _negate),
    Function("abs", 1, 1, "the number without its sign", _absolute),
    Function("round", 1, 2, "to the nearest whole number, or to this many digits; halves away from zero", _round),
    Function("floor", 1, 1, "the largest whole number not above x", _floor),
    Function("ceil", 1, 1, "the smallest whole number not below x", _ceil),
    Function("bucket", 2, 2, "the start of the bucket of the given width that holds x: floor(x / width) * width", _bucket),
    Function("ln", 1, 1, "the natural logarithm; NULL where x is not above 0",
             _elementary("ln", lambda v: exp.Ln(this=v), intervals.logarithm, exp.GT)),
    Function("log10", 1, 1, "the logarithm to base 10; NULL where x is not above 0",
             _elementary("log10", lambda v: exp.Anonymous(this="LOG10", expressions=[v]),
                         lambda x: intervals.logarithm(x, 10), exp.GT)),
    Function("exp", 1, 1, "e to the x; NULL where that is too large for a double",
             _elementary("exp", lambda v: exp.Exp(this=v), intervals.exponential)),
    Function("sqrt", 1, 1, "the square root; NULL where x is below 0",
             _elementary("sqrt", lambda v: exp.Sqrt(this=v), intervals.square_root, exp.GTE)),
    Function("power", 2, 2, "x to the y; NULL where that is no finite real number", _power),
    Function("clamp", 3, 3, "x, or the nearer of two written-out ends where x lies outside; NULL stays NULL", _clamp),
    Function("least", 1, None, "the smallest of the arguments, NULLs skipped", _extreme("least")),
    Function("greatest", 1, None, "the largest of the arguments, NULLs skipped", _extreme("greatest")),
)  # fmt: skip

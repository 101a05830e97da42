"""A plan's trees as PostgreSQL's SQL, in forms that mean the same as everywhere and cannot fail on any cell.

PostgreSQL raises where others go on: doubles that become too large or vanish, casts that do not fit. Each such place
has a form here that cannot; what has none is refused before the charge. Tables behind the gate and long lists are
written as names that the engine puts in front, so that nothing is created in the database. Proofs of the forms:
postgres.md.
"""

from __future__ import annotations

import math
import struct
import sys
from collections.abc import Callable
from functools import partial
from hashlib import sha256
from typing import Any, ClassVar

from sqlglot import ErrorLevel, UnsupportedError, exp
from sqlglot.generators.postgres import PostgresGenerator

from sordino.engines.postgres.computed_once import computed_once
from sordino.engines.widths import Widths
from sordino.errors import InvalidInput
from sordino.plan.fragments import GATE
from sordino.query.meaning.neutral import (
    Doubles,
    Fits,
    Indicator,
    ItemOf,
    Let,
    PlaceIn,
    TextList,
    WideDiv,
)

__all__ = ["gate_name", "quoted", "text", "write"]

_LONGEST_NAME = 63
"""Bytes of a name: PostgreSQL cuts what is longer without a word, so that two names could become one."""


def quoted(name: str) -> str:
    """A quoted name; one that PostgreSQL would cut gets a shorter one that is as good as its own."""
    if len(name.encode()) > _LONGEST_NAME:
        name = f"{sha256(name.encode()).hexdigest()[:48]}"
    return '"' + name.replace('"', '""') + '"'


def text(value: str) -> str:
    """A text literal, read alike whatever the server's settings are."""
    if "\0" in value:
        raise UnsupportedError("a text with NUL")
    return "'" + value.replace("'", "''") + "'"


def gate_name(table: str) -> str:
    """The name under which a declared table stands before a statement."""
    return quoted(f"{GATE} {table}")


def _double(value: float) -> str:
    return f"CAST('{value!r}' AS DOUBLE PRECISION)"


def _with(writer: Any, value: exp.Expr, build: Callable[[str], str]) -> str:
    """`build` of the value's text, computed once and named unless it is short; OFFSET 0 keeps it from being copied."""
    written = str(writer.sql(value))
    inner = value.unnest()
    if (
        isinstance(inner, exp.Column | exp.Identifier | exp.Literal)
        or value.find(exp.Window) is not None
    ):
        return build(
            f"({written})" if not isinstance(value, exp.Column | exp.Identifier) else written
        )
    return _named(written, build)


def _named(written: str, build: Callable[[str], str]) -> str:
    name = f"w{sha256(written.encode()).hexdigest()[:10]}"
    return f"(SELECT {build(name)} FROM (SELECT {written} AS {name} OFFSET 0) AS t)"  # noqa: S608


def _known(node: exp.Expr) -> float | None:
    """The double that a node is a literal of."""
    node = node.unnest()
    if isinstance(node, exp.Literal) and not node.is_string:
        return float(node.this)
    return None


def _doubles(writer: Any, node: Doubles) -> str:
    operator, left, right = node.args["operator"], node.this, node.expression
    if node.find(exp.Window) is not None and not (
        _known(right) or (operator == "*" and _known(left))
    ):
        raise UnsupportedError("arithmetic of windows without bounds")
    if operator in "+-":
        return _named(
            str(writer.sql(left)),
            lambda a: _named(str(writer.sql(right)), lambda b: _sum(a, b, operator)),
        )
    for value, other in ((right, left), (left, right)):
        known = _known(value)
        if known and math.isfinite(known) and (value is right or operator == "*"):
            return _with(writer, other, partial(_by_constant, factor=known, operator=operator))
    form = _product if operator == "*" else _quotient
    return _named(
        str(writer.sql(left)), lambda a: _named(str(writer.sql(right)), lambda b: form(a, b))
    )


_INFINITY = "CAST('Infinity' AS DOUBLE PRECISION)"
_FINITE = _double(sys.float_info.max)


def _power(exponent: int) -> str:
    return _double(2.0**exponent)


def _sum(a: str, b: str, operator: str) -> str:
    """a + b or a - b: halves are exact where both are large, and their sum tells whether the whole is too large."""
    large = f"ABS({a}) > {_power(960)} AND ABS({b}) > {_power(960)} AND ABS({a}) <= {_FINITE} AND ABS({b}) <= {_FINITE}"
    too = f"ABS({a} * {_double(0.5)} {operator} {b} * {_double(0.5)}) > {_double(sys.float_info.max / 2)}"
    plain = f"{a} {operator} {b}"
    return f"CASE WHEN {large} THEN CASE WHEN {too} THEN SIGN({a}) * {_INFINITY} ELSE {plain} END ELSE {plain} END"


def _by_constant(a: str, factor: float, operator: str) -> str:
    """a * c or a / c, with the exact limits of `a` beyond which that is infinite or 0."""
    size = abs(factor)

    def result(x: float) -> float:
        return x * size if operator == "*" else x / size

    most = _largest(lambda x: math.isfinite(result(x)))
    least = _largest(lambda x: result(x) == 0.0)
    arms = [f"WHEN {a} = {_double(math.nan)} THEN {a}"] if most < sys.float_info.max else []
    if most < sys.float_info.max:
        sign = "" if factor > 0 else "-"
        arms.append(f"WHEN {a} > {_double(most)} THEN {sign}{_INFINITY}")
        arms.append(f"WHEN {a} < {_double(-most)} THEN {'-' if factor > 0 else ''}{_INFINITY}")
    if least > 0:
        arms.append(f"WHEN ABS({a}) <= {_double(least)} THEN {_double(0.0)}")
    plain = f"{a} {operator} {_double(factor)}"
    return f"(CASE {' '.join(arms)} ELSE {plain} END)" if arms else f"({plain})"


def _largest(holds: Callable[[float], bool]) -> float:
    """The largest double for which something holds that holds from 0 up to a point; by halving its 64 bits."""
    low, high = 0, struct.unpack("<q", struct.pack("<d", sys.float_info.max))[0]
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (
            (middle, high)
            if holds(struct.unpack("<d", struct.pack("<q", middle))[0])
            else (low, middle - 1)
        )
    return float(struct.unpack("<d", struct.pack("<q", low))[0])


def _product(a: str, b: str) -> str:
    """a * b: infinite where the product with lowered exponents is 1 or more, 0 where that with raised ones is not
    above 1.

    Conditions stand in CASEs within CASEs: what a later one computes could fail where an earlier one does not hold.
    """
    plain, x, y = f"{a} * {b}", f"(ABS({a}) * {_power(537)})", f"(ABS({b}) * {_power(538)})"
    large = f"ABS({a}) > 1 AND ABS({b}) > 1 AND ABS({a}) <= {_FINITE} AND ABS({b}) <= {_FINITE}"
    too = f"(ABS({a}) * {_power(-512)}) * (ABS({b}) * {_power(-512)}) >= 1"
    small = f"{a} <> 0 AND {b} <> 0 AND ABS({a}) < 1 AND ABS({b}) < 1"
    small += f" AND (ABS({a}) < {_power(-500)} OR ABS({b}) < {_power(-500)})"
    # in the very middle between 0 and the least double the rounded product is 1: there the exact one decides
    middle = f"CASE WHEN {_exact_sign(x, y)} <= 0 THEN {_double(0.0)} ELSE SIGN({a}) * SIGN({b}) * {_double(5e-324)} END"
    tiny = f"CASE WHEN {x} * {y} < 1 THEN {_double(0.0)} WHEN {x} * {y} = 1 THEN {middle} ELSE {plain} END"
    infinite = f"CASE WHEN {too} THEN SIGN({a}) * SIGN({b}) * {_INFINITY} ELSE {plain} END"
    return f"CASE WHEN {large} THEN {infinite} WHEN {small} THEN {tiny} ELSE {plain} END"


def _exact_sign(x: str, y: str) -> str:
    """x * y - 1, exactly, where x * y is rounded to 1:
    each factor is split into two halves whose products are exact.
    """
    split = _double(2.0**27 + 1)
    halves = (
        f"SELECT x, y, {split} * x - ({split} * x - x) AS g, {split} * y - ({split} * y - y) AS h"
    )
    given = f"(SELECT {x} AS x, {y} AS y OFFSET 0) AS k"
    parts = f"SELECT g, h, x - g AS i, y - h AS j FROM ({halves} FROM {given} OFFSET 0) AS l"  # noqa: S608
    return f"(SELECT ((g * h - 1) + g * j + i * h) + i * j FROM ({parts} OFFSET 0) AS m)"  # noqa: S608


def _quotient(a: str, b: str) -> str:
    """a / b for b that is not 0; as `_product`. Two doubles whose quotient is rounded to 1 are equal."""
    plain, signed = f"{a} / {b}", f"SIGN({a}) * SIGN({b}) * {_INFINITY}"
    large = f"ABS({b}) < 1 AND ABS({a}) > {_power(-60)} AND ABS({a}) <= {_FINITE}"
    far = f"ABS({b}) < {_power(-500)} AND ABS({a}) > {_power(600)}"
    too = f"(ABS({a}) * {_power(-512)}) / (ABS({b}) * {_power(512)}) >= 1"
    small = f"{a} <> 0 AND ABS({b}) > 1 AND ABS({b}) <= {_FINITE} AND ABS({a}) < {_power(-40)}"
    small += f" AND (ABS({a}) < {_power(-500)} OR ABS({b}) > {_power(500)})"
    tiny = f"(ABS({a}) * {_power(537)}) / (ABS({b}) * {_power(-538)}) <= 1"
    infinite = f"CASE WHEN {far} THEN {signed} WHEN {too} THEN {signed} ELSE {plain} END"
    vanishing = f"CASE WHEN {tiny} THEN {_double(0.0)} ELSE {plain} END"
    return f"CASE WHEN {large} THEN {infinite} WHEN {small} THEN {vanishing} ELSE {plain} END"


def _let(writer: Any, node: Let) -> str:
    """A subquery that is evaluated once; what a window computes is no subquery's business, and is copied instead."""
    if node.this.find(exp.Window) is not None:

        def put(found: exp.Expr) -> exp.Expr:
            is_name = (
                isinstance(found, exp.Identifier)
                and found.this == "v"
                and not found.args.get("quoted")
            )
            return exp.Paren(this=node.this.copy()) if is_name else found

        return f"({writer.sql(node.expression.copy().transform(put))})"
    return f"(SELECT {writer.sql(node.expression)} FROM (SELECT {writer.sql(node.this)} AS v OFFSET 0) AS t)"  # noqa: S608


def _text_list(_: Any, node: TextList) -> str:
    # PostgreSQL splits the empty text into no texts, not into one that is empty
    if not node.this.this:
        return "CAST(ARRAY[''] AS TEXT[])"
    return f"STRING_TO_ARRAY({text(node.this.this)}, {text(node.expression.this)})"


def _list(writer: Any, node: exp.Expr) -> str:
    if isinstance(node, exp.Array):
        return f"CAST(ARRAY[{', '.join(text(item.this) for item in node.expressions)}] AS TEXT[])"
    return str(writer.sql(node))


def _place_in(writer: Any, node: PlaceIn) -> str:
    cell = f'(CAST({writer.sql(node.expression)} AS TEXT) COLLATE "C")'
    return f"CAST(ARRAY_POSITION({_list(writer, node.this)}, {cell}) AS BIGINT)"


def _item_of(writer: Any, node: ItemOf) -> str:
    place = f"CAST({writer.sql(node.expression)} AS INT)"
    return f'(({_list(writer, node.this)})[{place}] COLLATE "C")'


def _try_cast(writer: Any, node: exp.TryCast) -> str:
    """Of cells only, which have the types that the gate gave them: all fit but whole numbers wider than 64 bits."""
    cell, kind = node.this, node.to.this
    if not isinstance(cell, exp.Column):
        raise UnsupportedError("a cast that may fail")
    written = writer.sql(cell)
    if kind == exp.DType.BIGINT:
        inside = f"{written} >= -9223372036854775808 AND {written} <= 9223372036854775807"
        return f"CASE WHEN {inside} THEN CAST({written} AS BIGINT) END"
    if kind in (exp.DType.DOUBLE, exp.DType.TIMESTAMP):
        return f"CAST({written} AS {writer.sql(node.to)})"
    raise UnsupportedError("a cast that may fail")


def _cast(writer: Any, node: exp.Cast) -> str:
    """A cast that fits. Texts are compared byte by byte from then on; whole numbers of any width are numeric."""
    kind = node.to.this
    if kind in (exp.DType.TEXT, exp.DType.VARCHAR):
        return f'(CAST({writer.sql(node.this)} AS TEXT) COLLATE "C")'
    if kind == exp.DType.INT128:
        return f"CAST({writer.sql(node.this)} AS NUMERIC)"
    literal = node.this
    if isinstance(literal, exp.Literal) and literal.is_string:
        return f"CAST({text(literal.this)} AS {writer.sql(node.to)})"
    return str(writer.cast_sql(node))


def _literal(writer: Any, node: exp.Literal) -> str:
    """A text is compared byte by byte: two literals would else meet under the collation of the database."""
    del writer
    if node.is_string:
        return f'({text(node.this)} COLLATE "C")'
    return (
        _double(float(node.this))
        if "e" in node.this.lower() or "." in node.this
        else str(node.this)
    )


def _alias(writer: Any, node: exp.Alias) -> str:
    """A bare whole number would be of 32 bits, and so would what is computed from it."""
    inner = node.this.unnest()
    if isinstance(inner, exp.Neg):
        inner = inner.this
    if (
        isinstance(inner, exp.Literal)
        and not inner.is_string
        and "e" not in inner.this
        and len(inner.this) < 18
    ):
        return f"CAST({writer.sql(node.this)} AS BIGINT) AS {writer.sql(node, 'alias')}"
    return str(writer.alias_sql(node))


def _table(writer: Any, node: exp.Table) -> str:
    if node.db == GATE:
        alias = node.args.get("alias")
        named = f" AS {writer.sql(alias.this)}" if alias is not None else ""
        return f"{gate_name(node.name)}{named}"
    return str(writer.table_sql(node))


def _round(writer: Any, node: exp.Round) -> str:
    """Halves away from zero; PostgreSQL's own rounding of doubles takes them to the even number."""

    def whole(x: str) -> str:
        return f"TRUNC({x}) + CASE WHEN ABS({x} - TRUNC({x})) >= 0.5 THEN SIGN({x}) ELSE 0 END"

    places = node.args.get("decimals")
    if places is None:
        return _with(writer, node.this, lambda x: f"({whole(x)})")
    power = 10.0 ** int(places.this)
    most = _largest(lambda x: math.isfinite(x * power))

    def rounded(x: str) -> str:
        scaled = _named(f"{x} * {_double(power)}", lambda y: f"({whole(y)})")
        return (
            f"CASE WHEN ABS({x}) <= {_double(most)} THEN {scaled} / {_double(power)} ELSE {x} END"
        )

    return _with(writer, node.this, lambda x: f"({rounded(x)})")


_EXP_MOST, _EXP_LEAST = math.log(sys.float_info.max), -708.0
"""Below, EXP leaves the normal doubles, where some C libraries report an error that PostgreSQL raises."""
_LEAST_POWER = 693.0
"""The logarithm of 2^1000, nearly: PostgreSQL fails where a power is too large or vanishes, and where that is hangs on
the server's own library. So powers beyond 2^1000 are infinite and those below 2^-1000 are 0.
"""


def _exp(writer: Any, node: exp.Exp) -> str:
    def form(x: str) -> str:
        large = f"WHEN {x} > {_double(_EXP_MOST)} AND {x} < {_INFINITY} THEN {_INFINITY}"
        small = f"WHEN {x} < {_double(_EXP_LEAST)} THEN {_double(0.0)}"
        return f"(CASE {large} {small} ELSE EXP({x}) END)"

    return _with(writer, node.this, form)


def _pow(writer: Any, node: exp.Pow) -> str:
    """x to the y by cases: PostgreSQL fails for 0 to a negative power,
    roots of negative numbers, and beyond doubles.
    """

    def form(x: str, y: str) -> str:
        one, zero = _double(1.0), _double(0.0)
        beyond = f"CASE WHEN ({y} > 0) = (ABS({x}) > 1) THEN {_INFINITY} ELSE {zero} END"
        size = f"{y} * LN(ABS({x}))"
        arms = [
            f"{x} IS NULL OR {y} IS NULL OR {x} = {_double(math.nan)} OR {y} = {_double(math.nan)} THEN NULL",
            f"{y} = 0 OR {x} = 1 THEN {one}",
            f"{x} = 0 THEN CASE WHEN {y} > 0 THEN {zero} ELSE {_INFINITY} END",
            f"ABS({x}) = {_INFINITY} AND {y} <> FLOOR({y}) THEN CASE WHEN {y} > 0 THEN {_INFINITY} ELSE {zero} END",
            f"ABS({x}) = {_INFINITY} OR ABS({y}) = {_INFINITY} THEN POWER({x}, {y})",
            f"{x} < 0 AND {y} <> FLOOR({y}) THEN NULL",
            f"ABS({y}) > 1e20 THEN CASE WHEN ABS({x}) = 1 THEN {one} ELSE {beyond} END",
            f"ABS({y}) < 1e-20 THEN {one}",
            f"ABS({size}) <= {_double(_LEAST_POWER)} THEN POWER({x}, {y})",
        ]
        signed = (
            f"CASE WHEN {x} < 0 AND {y} - 2 * FLOOR({y} * 0.5) = 1 THEN -1 ELSE 1 END * {beyond}"
        )
        return f"(CASE {' '.join(f'WHEN {arm}' for arm in arms)} ELSE {signed} END)"

    return _named(
        str(writer.sql(node.this)),
        lambda x: _named(str(writer.sql(node.expression)), lambda y: form(x, y)),
    )


_LETTERS = 'COLLATE "pg_c_utf8"'
"""Letters by Unicode's own simple mapping, one for one, in whatever database; PostgreSQL 17 and later have it."""


def _letters(name: str) -> Callable[[Any, Any], str]:
    return lambda writer, node: f'({name}(({writer.sql(node.this)}) {_LETTERS}) COLLATE "C")'


def _ilike(writer: Any, node: exp.ILike) -> str:
    return f"({writer.sql(node.this)}) {_LETTERS} ILIKE {text(node.expression.this)}"


def _like(writer: Any, node: exp.Like) -> str:
    return f"{writer.sql(node.this)} LIKE {writer.sql(node.expression)}"


def _moment(writer: Any, node: exp.Expr) -> str:
    return f"CAST({writer.sql(node)} AS TIMESTAMP)"


def _extract(writer: Any, node: exp.Extract) -> str:
    return f"CAST(EXTRACT({node.name.upper()} FROM {writer.sql(node.expression)}) AS BIGINT)"


def _trunc(writer: Any, node: exp.TimestampTrunc) -> str:
    return f"DATE_TRUNC({text(node.text('unit').lower())}, {_moment(writer, node.this)})"


_MINUTES = {"MINUTE": 1, "HOUR": 60, "DAY": 1440, "WEEK": 10080}
_EARLY = 2**31
"""More minutes than have passed since the calendar began,
so that nothing is negative and whole division rounds down.
"""


def _bin(writer: Any, node: exp.DateBin) -> str:
    """The start of the span that holds a moment: months from 2000-01-01, all others from Monday, 2000-01-03."""
    count, unit = int(node.this.this.this), node.this.text("unit").upper()

    def months(v: str) -> str:
        number = f"CAST(EXTRACT(YEAR FROM {v}) * 12 + EXTRACT(MONTH FROM {v}) AS BIGINT) - {2000 * 12 + 1}"
        early = -(-24_000_000 // count)
        start = f"((({number}) + {early * count}) / {count} - {early}) * {count}"
        # a span that begins before the calendar does is cut in the tree; far before it there are no moments
        whole = _named(
            start,
            lambda m: (
                f"MAKE_INTERVAL(0, CAST(CASE WHEN {m} < -24000 THEN -24000 ELSE {m} END AS INT))"
            ),
        )
        return f"TIMESTAMP '2000-01-01' + {whole}"

    def minutes(v: str) -> str:
        width = count * _MINUTES[unit]
        early = -(-_EARLY * 10 // width)
        cut = f"EXTRACT(EPOCH FROM DATE_TRUNC('minute', {v}) - TIMESTAMP '2000-01-03')"
        start = f"((CAST({cut} AS BIGINT) / 60 + {early * width}) / {width} - {early}) * {width}"
        whole = _named(
            start,
            lambda m: (
                f"MAKE_INTERVAL(0, 0, 0, CAST({m} / 1440 AS INT), 0, CAST({m} % 1440 AS INT))"
            ),
        )
        return f"TIMESTAMP '2000-01-03' + {whole}"

    return _named(
        _moment(writer, node.expression),
        lambda v: f"({(months if unit == 'MONTH' else minutes)(v)})",
    )


def _date_diff(writer: Any, node: exp.DateDiff) -> str:
    """How many units begin after the first date, up to the second."""
    unit = node.text("unit").upper()

    def number(v: str) -> str:
        year = f"EXTRACT(YEAR FROM {v})"
        match unit:
            case "YEAR":
                return f"CAST({year} AS BIGINT)"
            case "QUARTER" | "MONTH":
                return f"CAST({year} * {4 if unit == 'QUARTER' else 12} + EXTRACT({unit} FROM {v}) AS BIGINT)"
            case "DAY":
                return f"CAST(CAST({v} AS DATE) - DATE '2000-01-01' AS BIGINT)"
            case "HOUR" | "MINUTE":
                cut = f"DATE_TRUNC({text(unit.lower())}, {v}) - TIMESTAMP '2000-01-01'"
                return (
                    f"CAST(EXTRACT(EPOCH FROM {cut}) AS BIGINT) / {3600 if unit == 'HOUR' else 60}"
                )
            case _:
                raise UnsupportedError(f"differences in {unit.lower()}s")

    later, earlier = (
        _named(_moment(writer, part), number) for part in (node.this, node.expression)
    )
    return f"({later} - {earlier})"


def _quantile(writer: Any, node: exp.Anonymous) -> str:
    """The value at a place among a group's, counted as DuckDB does: n - floor(n - q n), at least the first."""
    value, level = node.expressions
    x, q = writer.sql(value), _double(float(level.this))
    n = f"COUNT({x})"
    place = f"GREATEST(1, {n} - CAST(FLOOR({n} - {q} * {n}) AS BIGINT))"
    return f"(ARRAY_AGG({x} ORDER BY {x}) FILTER (WHERE NOT {x} IS NULL))[CAST({place} AS INT)]"


def _anonymous(writer: Any, node: exp.Anonymous) -> str:
    if node.name.upper() == "QUANTILE_DISC":
        return _quantile(writer, node)
    if node.name.upper() in ("LOG10", "ROW_NUMBER", "DENSE_RANK"):
        return str(writer.anonymous_sql(node))
    raise UnsupportedError(f"the function {node.name}")


def _sum_of(writer: Any, node: exp.Sum) -> str:
    """Sums of BIGINT are numeric here, and slow; small terms are summed as INT, whose sums are BIGINT."""
    term, value = node.this, writer.sql(node.this)
    small = writer.widths.short(term) and not writer.widths.double(term)
    return f"SUM(CAST({value} AS INT))" if small else f"SUM({value})"


def _called(name: str) -> Callable[[Any, Any], str]:
    """A function whose arguments are the node's own, in order, and whose result is as it is."""
    return lambda writer, node: (
        f"{name}({', '.join(str(writer.sql(part)) for part in (node.this, *node.expressions))})"
    )


class _Writer(PostgresGenerator):
    widths: Widths
    TRANSFORMS: ClassVar[dict[Any, Any]] = {
        **PostgresGenerator.TRANSFORMS,
        Doubles: _doubles,
        Fits: lambda writer, node: f"CAST({writer.sql(node.this)} AS BIGINT)",
        Indicator: lambda writer, node: f"CAST(CAST({writer.sql(node.this)} AS INT) AS BIGINT)",
        ItemOf: _item_of,
        Let: _let,
        PlaceIn: _place_in,
        TextList: _text_list,
        WideDiv: lambda writer, node: (
            f"DIV({writer.sql(node.this)}, {writer.sql(node.expression)})"
        ),
        exp.Alias: _alias,
        exp.Anonymous: _anonymous,
        exp.Cast: _cast,
        exp.DateBin: _bin,
        exp.DateDiff: _date_diff,
        exp.Div: lambda writer, node: f"{writer.sql(node.this)} / {writer.sql(node.expression)}",
        exp.Exp: _exp,
        exp.Extract: _extract,
        exp.Greatest: _called("GREATEST"),
        exp.ILike: _ilike,
        exp.Identifier: lambda _, node: (
            quoted(node.this) if node.args.get("quoted") else str(node.this)
        ),
        exp.IntDiv: lambda writer, node: f"{writer.sql(node.this)} / {writer.sql(node.expression)}",
        exp.IsNan: lambda writer, node: f"{writer.sql(node.this)} = {_double(math.nan)}",
        exp.Least: _called("LEAST"),
        exp.Length: lambda writer, node: f"CAST(CHAR_LENGTH({writer.sql(node.this)}) AS BIGINT)",
        exp.Like: _like,
        exp.Literal: _literal,
        exp.LogicalAnd: lambda writer, node: f"BOOL_AND({writer.sql(node.this)})",
        exp.LogicalOr: lambda writer, node: f"BOOL_OR({writer.sql(node.this)})",
        exp.Lower: _letters("LOWER"),
        exp.MD5: lambda writer, node: f'(MD5({writer.sql(node.this)}) COLLATE "C")',
        exp.Pow: _pow,
        exp.Round: _round,
        exp.Sum: _sum_of,
        exp.Table: _table,
        exp.TimestampTrunc: _trunc,
        exp.TryCast: _try_cast,
        # as DuckDB does
        exp.Upper: lambda writer, node: f"REPLACE({_letters('UPPER')(writer, node)}, 'ß', 'ẞ')",
    }


def write(tree: exp.Expr, *, pretty: bool = False) -> str:
    """The SQL text of a tree, in one line or for people."""
    made = _Writer(dialect="postgres", pretty=pretty, unsupported_level=ErrorLevel.RAISE)
    try:
        tree = computed_once(tree.copy())
        made.widths = Widths(tree)
        return str(made.generate(tree, copy=False))
    except UnsupportedError as error:
        rule = f"PostgreSQL has no words for it that cannot fail ({error})"
        raise InvalidInput("this question", rule, "Ask it with other functions.") from None
    except RecursionError:
        rule = "written for PostgreSQL it is nested too deeply"
        raise InvalidInput(
            "this question", rule, "Write it with fewer calls inside calls."
        ) from None

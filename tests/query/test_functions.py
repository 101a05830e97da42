"""Every allow-listed function on nasty cells: it never fails, keeps its type,
sees one row, and equals the reference.
"""

from __future__ import annotations

import contextlib
import math
import random
import sys
import time
from collections.abc import Callable
from datetime import date, datetime
from fractions import Fraction
from itertools import pairwise, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from query.nasty import COLUMNS, ROWS, Table, belongs, bind, raw_rows, same, table
from query.reference import Cell, elementary, evaluate
from sordino.engines.duckdb.dialect import write
from sordino.errors import InvalidInput
from sordino.query.meaning import intervals
from sordino.query.meaning.domains import domain
from sordino.query.meaning.functions import FUNCTIONS
from sordino.query.meaning.nodes import constant
from sordino.query.tree import Call, Case, Column, Expression, Literal, Value
from sordino.query.types import Day, Moment, Number, Text, Truth

NAMES = ["+", "-", "*", "/", "%", "neg", "abs", "round", "floor", "ceil", "bucket", "least", "greatest", "=", "<>", "<",
         "<=", ">", ">=", "and", "or", "not", "in", "is_null", "coalesce", "lower", "upper", "length", "like", "substr",
         "date_part", "date_trunc", "ln", "log10", "exp", "sqrt", "power", "clamp", "||", "ilike", "cast", "dayname",
         "monthname", "time_bucket", "date_diff"]  # fmt: skip


def of(kind: type, *literals: object) -> list[Expression]:
    columns: list[Expression] = [Column(n) for n, c in COLUMNS.items() if isinstance(c.type, kind)]
    return columns + [Literal(v) for v in literals]  # type: ignore[arg-type]


TINY = Fraction(1, 10**400)
NUMBERS = of(Number, 0, -3, 10**19, Fraction(1, 10), 10**400, TINY, None)
TEXTS = of(Text, "A", "O'Hara", "", None)
DAYS, MOMENTS = of(Day, date(2020, 2, 29), None), of(Moment, datetime(2020, 2, 29, 5), None)
TRUTHS = of(Truth, True, False, None)
ALL = [*NUMBERS, *TEXTS, *DAYS, *MOMENTS, *TRUTHS]


def cases(name: str) -> list[Expression]:
    """Calls of the function on all kinds of columns and literals, those included that its type rule refuses."""
    pairs = random.Random(name).sample(list(product(NUMBERS, NUMBERS)), 70)
    pairs += [p for kind in (TEXTS, DAYS, MOMENTS, TRUTHS) for p in product(kind, kind)]
    if name not in ("coalesce", "least", "greatest"):
        pairs += list(
            product(DAYS, [Literal("2020-02-29"), Literal("2020-02-29 10:30"), Column("at")])
        )
    listed: list[tuple[Expression, ...]]
    match name:
        case "neg" | "abs" | "floor" | "ceil" | "ln" | "log10" | "exp" | "sqrt":
            listed = [(x,) for x in NUMBERS]
        case "lower" | "upper" | "length":
            listed = [(x,) for x in TEXTS]
        case "is_null":
            listed = [(x,) for x in ALL]
        case "not":
            listed = [(x,) for x in TRUTHS]
        case "and" | "or":
            listed = [*product(TRUTHS, TRUTHS), (Literal(None), Column("flag"), Literal(True))]
        case "round":
            listed = [(x,) for x in NUMBERS] + [
                (x, Literal(d)) for x in NUMBERS for d in (-18, -2, -1, 0, 1, 2, 15)
            ]
        case "bucket":
            listed = [
                (x, Literal(w))
                for x in NUMBERS
                for w in (1, 3, 10, 2**40, Fraction(1, 2), Fraction(1, 10), Fraction(5, 3))
            ]
        case "%":
            listed = [(x, Literal(w)) for x in NUMBERS for w in (1, 2, 7, 2**62 - 1)]
        case "like" | "ilike":
            listed = [
                (x, Literal(p))
                for x in TEXTS
                for p in ("A%", "%", "_", "__", "%o_g%", "100%", "", "%'%", "Z_rich")
            ]
        case "substr":
            listed = [(x, Literal(s)) for x in TEXTS for s in (1, 2, 50)]
            listed += [
                (x, Literal(s), Literal(k))
                for x in TEXTS
                for s in (1, 2, 99_999)
                for k in (0, 1, 3, 2**31 - 1)
            ]
        case "in":
            listed = [(x, Literal(0), Literal(Fraction(1, 10)), Literal(7)) for x in NUMBERS]
            listed += [(x, Literal(0), Literal(None)) for x in NUMBERS] + [
                (x, Literal("A"), Literal("O'Hara")) for x in TEXTS
            ]
            listed += [(x, Literal("2020-02-29"), Literal(date(2021, 1, 3))) for x in DAYS]
        case "date_part":
            parts = (
                "year",
                "quarter",
                "month",
                "week",
                "day",
                "dow",
                "isodow",
                "doy",
                "hour",
                "minute",
            )
            listed = [(Literal(p), x) for p in parts for x in (*DAYS, *MOMENTS)]
        case "date_trunc":
            units = ("year", "quarter", "month", "week", "day", "hour", "minute")
            listed = [(Literal(u), x) for u in units for x in (*DAYS, *MOMENTS)]
        case "power":
            exponents = [
                Literal(n) for n in (0, 1, 2, 3, 64, -1, -2, Fraction(1, 2), Fraction(-1, 3), 1000)
            ]
            listed = [
                *product(NUMBERS, exponents),
                *product([Literal(n) for n in (0, -1, 2, Fraction(1, 10))], NUMBERS),
                *pairs[:70],
            ]
        case "clamp":
            ends: list[tuple[Value, Value]] = [
                (0, 0),
                (-5, 7),
                (Fraction(1, 2), 10),
                (-(10**19), 10**30),
                (-3, Fraction(-1, 10)),
                (10**6, 10**7),
            ]
            listed = [(x, *map(Literal, pair)) for x in NUMBERS for pair in ends]
            spans: list[tuple[Value, Value]] = [
                ("2020-02-01", "2020-02-29"),
                ("2020-02-01 12:30", "2021-01-03"),
                (date(1, 1, 1), date(9999, 12, 31)),
            ]
            listed += [(x, *map(Literal, pair)) for x in (*DAYS, *MOMENTS) for pair in spans]
        case "||":
            short: list[Expression] = [
                Column("ward"),
                Column("name"),
                Literal("A"),
                Literal(""),
                Literal(None),
                Call("substr", (Column("city"), Literal(1), Literal(3))),
            ]
            listed = list(product(short, short))
        case "dayname" | "monthname":
            listed = [(x,) for x in (*DAYS, *MOMENTS)]
        case "cast":
            listed = [(Literal(k), x) for k in ("date", "timestamp") for x in (*DAYS, *MOMENTS)]
            listed += [
                (Literal(k), x)
                for k in ("integer", "bigint", "double")
                for x in (*NUMBERS, *TRUTHS)
            ]
        case "time_bucket":
            widths = [
                "1 minute",
                "15 minutes",
                "9999 minutes",
                "1 hour",
                "7 hours",
                "9999 hours",
                "1 day",
                "10 days",
            ]
            widths += [
                "1 week",
                "9999 weeks",
                "1 month",
                "5 months",
                "9999 months",
                "1 quarter",
                "7 years",
                "9999 years",
            ]
            listed = [(Literal(w), x) for w in widths for x in (*DAYS, *MOMENTS)]
        case "date_diff":
            listed = [
                (Literal(u), x, y)
                for u in ("year", "quarter", "month", "day", "hour", "minute")
                for x in (*DAYS, *MOMENTS)
                for y in (*DAYS, *MOMENTS)
            ]
        case "coalesce" | "least" | "greatest":
            triples = random.Random(name).sample(list(product(NUMBERS, NUMBERS, NUMBERS)), 30)
            listed = [*pairs, *((x,) for x in ALL), *triples]
        case _:
            listed = [*pairs, *product([Column("day"), Column("age")], [Column("city")])]
    return [Call(name, arguments) for arguments in listed]


def accepted(name: str) -> list[Expression]:
    found = []
    for expression in cases(name):
        try:
            bind(expression)
        except InvalidInput:
            continue
        found.append(expression)
    return found


def test_the_allow_list_is_what_is_documented() -> None:
    assert sorted(FUNCTIONS) == sorted(NAMES)
    for name, function in FUNCTIONS.items():
        assert function.name == name
        assert function.meaning
        assert not function.meaning.endswith(".")


def exact(name: str, expression: Expression, row: dict[str, Cell]) -> bool:
    """Where the reference decides: letter case beyond ASCII is the engine's own, and so are numbers beyond doubles."""
    assert isinstance(expression, Call)
    if (
        magnitude(expression, row) > (2**53 if name == "bucket" else sys.float_info.max)
        or Literal(TINY) in expression.arguments
    ):
        return False
    return (
        name not in ("lower", "upper", "ilike")
        or str(evaluate(expression.arguments[0], row)).isascii()
    )


@pytest.mark.parametrize("name", NAMES)
def test_total_typed_and_equal_to_the_reference(name: str) -> None:
    expressions = accepted(name)
    assert len(expressions) >= len(cases(name)) // 4
    known = [bind(e) for e in expressions]
    results = table().run([k.sql for k in known])
    for expression, found, column in zip(expressions, known, results, strict=True):
        doubles = computed_in_doubles(name, expression)
        for got, row in zip(column, table().rows, strict=True):
            assert belongs(got, found), (expression, got, found.type)
            if not exact(name, expression, row):
                continue
            wanted = evaluate(expression, row)
            largest = magnitude(expression, row)
            if doubles and largest > 2**53:
                # a whole number that no double holds met doubles: three roundings; a comparison may even turn
                assert isinstance(got, bool) or same(got, wanted, 4 * 2.0**-53), (
                    expression,
                    got,
                    wanted,
                    row,
                )
            else:
                assert same(got, wanted, 2.0**-52 if isinstance(got, float) else 0), (
                    expression,
                    got,
                    wanted,
                    row,
                )


def computed_in_doubles(name: str, expression: Expression) -> bool:
    assert isinstance(expression, Call)
    types = [bind(a).type for a in expression.arguments]
    found = bind(expression).type
    whole = all(isinstance(t, Number) and t.integral for t in types)
    return (
        not whole
        or name in ("round", "bucket", "/")
        or (isinstance(found, Number) and not found.integral)
    )


def magnitude(expression: Expression, row: dict[str, Cell]) -> int:
    """The largest whole number among the arguments: 2^53 is where doubles leave some out, and somewhere they end."""
    assert isinstance(expression, Call)
    values = [evaluate(a, row) for a in expression.arguments]
    return max((abs(v) for v in values if isinstance(v, int)), default=0)


@pytest.mark.parametrize("name", NAMES)
def test_row_wise(name: str) -> None:
    """What a row yields does not depend on the other rows, nor on their order."""
    rng = random.Random(name)
    expressions = rng.sample(accepted(name), min(10, len(accepted(name))))
    sql = [bind(e).sql for e in expressions]
    raw = raw_rows(ROWS, seed=1)
    whole = table().run(sql)
    for picked in (
        [rng.randrange(ROWS)],
        rng.sample(range(ROWS), 3),
        rng.sample(range(ROWS), 60),
        [],
    ):
        few = Table([raw[i] for i in picked]).run(sql) if picked else []
        if not picked:
            assert Table([]).run(sql) == []
        for column, part in zip(whole, few, strict=False):
            assert [column[i] for i in picked] == list(part)


NESTED: dict[str, tuple[Expression, ...]] = {
    "round": (Literal(1),), "bucket": (Literal(3),), "%": (Literal(7),), "like": (Literal("A%"),),
    "substr": (Literal(1), Literal(5)), "in": (Literal(0), Literal(1)), "coalesce": (Literal(1),),
    "least": (Literal(100),), "greatest": (Literal(-100),), "clamp": (Literal(-1), Literal(Fraction(21, 2))),
    "power": (Literal(Fraction(3, 2)),), "||": (Literal("x"),),
}  # fmt: skip


def nested(name: str, depth: int) -> Expression:
    """The function of itself of itself ..., with `/ 3` between numbers so that each level leaves the whole numbers."""
    text, logic = name in ("lower", "upper", "substr", "||"), name in ("and", "or", "not")
    x: Expression = Column("ward" if text else "flag" if logic else "cost")
    for _ in range(depth):
        match name:
            case "+" | "-" | "*" | "/":
                x = Call(name, (x, Column("signed")))
            case "=" | "<>" | "<" | "<=" | ">" | ">=":
                x = Case(((Call(name, (x, Literal(3))), Literal(1)),), Literal(Fraction(1, 2)))
            case "in" | "is_null":
                x = Case(((Call(name, (x, *NESTED.get(name, ()))), Column("age")),), Column("cost"))
            case "and" | "or":
                x = Call(name, (x, Column("flag")))
            case "date_trunc" | "time_bucket" | "cast":
                unit = {"date_trunc": "week", "time_bucket": "3 days", "cast": "date"}[name]
                x = Call(name, (Literal(unit), Column("day") if x == Column("cost") else x))
            case "like" | "ilike" | "length" | "date_part" | "dayname" | "monthname" | "date_diff":
                return x
            case _ if text or logic:
                x = Call(name, (x, *NESTED.get(name, ())))
            case "%":
                x = Call(name, (Call("floor", (x,)), Literal(7)))
            case _:
                x = Call(name, (Call("/", (x, Literal(3))), *NESTED.get(name, ())))
    return x


@pytest.mark.parametrize("name", NAMES)
def test_sql_grows_with_the_tree_only(name: str) -> None:
    """Text and running time stay small however functions are nested, until they are refused for being too deep."""
    lengths: dict[int, int] = {}
    with contextlib.suppress(InvalidInput):
        for depth in (1, 8, 15, 22, 29, 36, 43, 50):
            lengths[depth] = len(write(bind(nested(name, depth)).sql))
    assert max(lengths) >= 8
    assert all(b - a <= 7 * 900 for a, b in pairwise(lengths.values()))
    started = time.process_time()
    table().run([bind(nested(name, max(lengths))).sql])
    assert time.process_time() - started < 5


REFUSED = [
    (Call("+", (Column("flag"), Literal(1))), "condition"),
    (Call("+", (Column("city"), Literal(1))), "numbers"),
    (Call("-", (Column("day"), Literal(1))), "date"),
    (Call("=", (Column("city"), Literal(1))), "one kind"),
    (Call("<", (Column("day"), Literal("yesterday"))), "date"),
    (Call("<", (Column("day"), Literal("2020-02-30"))), "date"),
    (Call("<", (Column("day"), Column("city"))), "one kind"),
    (Call("and", (Column("age"), Column("flag"))), "condition"),
    (Call("not", (Column("age"),)), "condition"),
    (Call("%", (Column("cost"), Literal(7))), "whole"),
    (Call("%", (Column("age"), Literal(0))), "divisor"),
    (Call("%", (Column("age"), Column("small"))), "divisor"),
    (Call("bucket", (Column("age"), Literal(0))), "width"),
    (Call("bucket", (Column("age"), Column("age"))), "width"),
    (Call("bucket", (Column("age"), Literal(True))), "width"),
    (Call("round", (Column("cost"), Literal(16))), "digits"),
    (Call("round", (Column("cost"), Column("age"))), "digits"),
    (Call("like", (Column("city"), Literal("a\\%"))), "backslash"),
    (Call("like", (Column("city"), Column("name"))), "pattern"),
    (Call("like", (Column("age"), Literal("1%"))), "text"),
    (Call("substr", (Column("city"), Literal(0))), "start"),
    (Call("substr", (Column("city"), Literal(1), Literal(-1))), "length"),
    (Call("lower", (Column("age"),)), "text"),
    (Call("date_part", (Literal("century"), Column("day"))), "century"),
    (Call("date_part", (Literal("hour"), Column("day"))), "time of day"),
    (Call("date_part", (Column("city"), Column("day"))), "part"),
    (Call("date_trunc", (Literal("hour"), Column("day"))), "time of day"),
    (Call("date_trunc", (Literal("month"), Column("age"))), "date"),
    (Call("in", (Column("age"), Column("small"))), "written-out"),
    (Call("in", (Column("age"), Literal("A"))), "one kind"),
    (Call("coalesce", (Column("age"), Column("ward"))), "one kind"),
    (Call("least", (Column("flag"), Column("flag"))), "condition"),
    (Call("abs", (Column("age"), Column("age"))), "takes 1"),
    (Call("and", (Column("flag"),)), "takes 2 or more"),
    (Call("nextval", (Literal("s"),)), "not supported"),
    (Call("ln", (Column("city"),)), "numbers"),
    (Call("sqrt", (Column("flag"),)), "condition"),
    (Call("exp", (Column("day"),)), "date"),
    (Call("power", (Column("age"), Column("ward"))), "numbers"),
    (Call("clamp", (Column("age"), Column("small"), Literal(5))), "written out"),
    (Call("clamp", (Column("age"), Literal(None), Literal(5))), "written out"),
    (Call("clamp", (Column("age"), Literal(6), Literal(5))), "low end"),
    (Call("clamp", (Column("day"), Literal("2021-01-01"), Literal("2020-01-01"))), "low end"),
    (Call("clamp", (Column("age"), Literal("a"), Literal("b"))), "one kind"),
    (Call("clamp", (Column("ward"), Literal("a"), Literal("b"))), "two ends"),
    (Call("clamp", (Column("flag"), Literal(False), Literal(True))), "two ends"),
    (Call("||", (Column("ward"), Column("age"))), "joins texts"),
    (Call("||", (Column("flag"), Column("flag"))), "OR"),
    (Call("||", (Column("ward"), Column("city"))), "SUBSTR"),
    (
        Call("||", (Call("substr", (Column("city"), Literal(1), Literal(9999))), Column("name"))),
        "10,000",
    ),
    (Call("ilike", (Column("city"), Literal("a\\%"))), "backslash"),
    (Call("ilike", (Column("age"), Literal("a%"))), "text"),
    (Call("cast", (Literal("date"), Column("city"))), "DATE"),
    (Call("cast", (Literal("integer"), Column("any_float"))), "CLAMP"),
    (Call("cast", (Literal("integer"), Column("big"))), "INTEGER"),
    (Call("cast", (Literal("bigint"), Column("wide"))), "BIGINT"),
    (Call("cast", (Literal("double"), Column("day"))), "DOUBLE"),
    (Call("cast", (Literal("varchar"), Column("age"))), "VARCHAR"),
    (Call("dayname", (Column("city"),)), "date"),
    (Call("time_bucket", (Literal("1 hour"), Column("day"))), "time of day"),
    (Call("time_bucket", (Literal("0 days"), Column("day"))), "width"),
    (Call("time_bucket", (Literal("5 fortnights"), Column("day"))), "fortnight"),
    (Call("time_bucket", (Column("city"), Column("day"))), "width"),
    (Call("date_diff", (Literal("week"), Column("day"), Column("at"))), "week"),
    (Call("date_diff", (Literal("hour"), Column("day"), Column("day"))), "time of day"),
    (Call("date_diff", (Literal("day"), Column("day"), Column("age"))), "one kind"),
    (Case(((Column("age"), Literal(1)),)), "condition"),
    (Case(((Column("flag"), Literal(1)),), Literal("x")), "one kind"),
    (Literal("x\x00y"), "NUL"),
    (Literal("\ud800"), "surrogate"),
]


@pytest.mark.parametrize(("expression", "word"), REFUSED)
def test_refusals_say_value_rule_and_hint(expression: Expression, word: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        bind(expression)
    error = refusal.value
    assert word in str(error)
    assert error.value
    assert not error.rule.endswith(".")
    assert error.hint.endswith(".")


def test_known_types() -> None:
    def number(expression: Expression) -> tuple[object, ...]:
        type_ = bind(expression).type
        assert isinstance(type_, Number)
        return type_.lower, type_.upper, type_.step

    age, cost = Column("age"), Column("cost")
    half = Fraction(1, 2)
    assert number(Call("+", (age, Literal(1)))) == (1, 111, 1)
    assert number(Call("-", (age, age))) == (-110, 110, 1)
    assert number(Call("*", (age, cost))) == (0, 550_000, Fraction(1, 100))
    assert number(Call("*", (cost, Literal(Fraction(11, 10))))) == (0, 5500, Fraction(11, 1000))
    assert number(Call("*", (cost, Literal(100)))) == (0, 500_000, half)
    assert number(Call("/", (cost, Literal(4)))) == (0, 1250, Fraction(1, 400))
    assert number(Call("/", (cost, age))) == (None, None, None)
    assert number(Call("/", (cost, Call("+", (age, Literal(1)))))) == (0, 5000, None)
    assert number(Call("bucket", (age, Literal(10)))) == (0, 110, 10)
    assert number(Call("bucket", (Column("signed"), Literal(1)))) == (-3, 1000, 1)
    assert number(Call("round", (cost, Literal(-2)))) == (0, 5000, 100)
    assert number(Call("least", (Column("any_int"), Literal(5)))) == (None, 5, 1)
    assert number(Call("least", (cost, age))) == (0, 5000, Fraction(1, 100))
    assert number(Call("least", (cost, Literal(10)))) == (0, 10, Fraction(1, 100))
    assert number(Call("abs", (Column("small"),))) == (0, 7, 1)
    assert number(Call("%", (age, Literal(7)))) == (0, 6, 1)
    assert number(Call("date_part", (Literal("year"), Column("day")))) == (2019, 2021, 1)
    assert number(Call("date_part", (Literal("month"), Column("at")))) == (1, 3, 1)
    assert number(Call("length", (Column("name"),))) == (0, 12, 1)
    assert bind(Call("coalesce", (Column("ward"), Literal("other")))).type == Text(
        ("A", "B", "long ward", "", "other"), 9, False
    )
    assert bind(Call("lower", (Column("ward"),))).type == Text(("a", "b", "long ward", ""), 9)


@st.composite
def numbers(draw: st.DrawFn) -> tuple[Number, Fraction]:
    """A type and a value that belongs to it."""
    step = draw(st.sampled_from([None, Fraction(1), Fraction(5), Fraction(1, 4), Fraction(3, 10)]))
    value = draw(st.fractions(-1000, 1000)) if step is None else draw(st.integers(-300, 300)) * step
    lower = draw(st.none() | st.fractions(0, 500))
    upper = draw(st.none() | st.fractions(0, 500))
    nullable = draw(st.booleans())
    ends = (None if lower is None else value - lower, None if upper is None else value + upper)
    return Number(*ends, step, None, nullable), value


def holds(type_: Number, value: Fraction) -> bool:
    above = type_.lower is None or type_.lower <= value
    below = type_.upper is None or value <= type_.upper
    return above and below and (type_.step is None or (value / type_.step).denominator == 1)


@settings(max_examples=120, deadline=None)
@given(numbers(), numbers(), st.integers(-9, 9), st.integers(1, 9))
def test_intervals_contain(
    x: tuple[Number, Fraction], y: tuple[Number, Fraction], whole: int, divisor: int
) -> None:
    (a, u), (b, v) = x, y
    assert holds(intervals.add(a, b), u + v)
    assert holds(intervals.subtract(a, b), u - v)
    assert holds(intervals.multiply(a, b), u * v)
    assert holds(intervals.negate(a), -u)
    assert holds(intervals.absolute(a), abs(u))
    if v != 0:
        assert holds(intervals.divide(a, b), u / v)
    assert holds(intervals.hull([a, b]), u)
    assert holds(intervals.hull([a, b]), v)
    assert holds(intervals.least([a, b]), min(u, v))
    assert holds(intervals.greatest([a, b]), max(u, v))
    if a.nullable:
        assert holds(intervals.least([a, b]), v)
        assert holds(intervals.greatest([a, b]), v)
    width = Fraction(divisor, 4)
    assert holds(intervals.rounded(a, math.floor, width), math.floor(u / width) * width)
    assert holds(intervals.rounded(a, math.ceil, width), math.ceil(u / width) * width)
    known = constant(whole).type
    assert isinstance(known, Number)
    assert holds(intervals.multiply(a, known), u * whole)
    assert holds(intervals.add(a, known), u + whole)
    if (u / 1).denominator == 1:
        assert holds(intervals.modulo(a, divisor), u % divisor)
    assert holds(intervals.floating(a), u)
    assert not intervals.floating(a).integral


ELEMENTARY: dict[str, Callable[[Number], Number]] = {
    "ln": intervals.logarithm,
    "log10": lambda x: intervals.logarithm(x, 10),
    "exp": intervals.exponential,
    "sqrt": intervals.square_root,
}


def within(found: Number, values: list[float]) -> bool:
    """Whether the bounds hold all values, but for rounding in floats."""
    ends = [end for end in (found.lower, found.upper) if end is not None]
    slack = Fraction(1, 10**9) * max([Fraction(1), *map(abs, ends)])
    above = found.lower is None or found.lower - slack <= Fraction(min(values))
    return above and (found.upper is None or Fraction(max(values)) <= found.upper + slack)


def tight(found: Number, values: list[float]) -> bool:
    """Whether they do, and are at most a twentieth wider than these values are apart."""
    if found.lower is None or found.upper is None:
        return False
    distance = Fraction(max(values)) - Fraction(min(values))
    return within(found, values) and found.upper - found.lower <= distance * Fraction(
        21, 20
    ) + Fraction(1, 10**9)


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(sorted(ELEMENTARY)), st.fractions(Fraction(1, 1000), 300), st.fractions(1, 100)
)
def test_bounds_of_elementary_functions_are_sound_and_tight(
    name: str, lower: Fraction, width: Fraction
) -> None:
    values = [elementary(name, [float(end)]) for end in (lower, lower + width)]
    assert tight(
        ELEMENTARY[name](Number(lower, lower + width)), [v for v in values if v is not None]
    )


@settings(max_examples=60, deadline=None)
@given(st.fractions(0, 50), st.fractions(0, 50), st.fractions(-5, 5), st.fractions(0, 5))
def test_bounds_of_powers_are_sound_and_tight(
    x: Fraction, wide: Fraction, y: Fraction, high: Fraction
) -> None:
    found = intervals.power(Number(x, x + wide), Number(y, y + high))
    bases, exponents = (x, x + wide / 3, x + wide), (y, y + high / 3, y + high)
    values = [elementary("power", [float(b), float(e)]) for b in bases for e in exponents]
    known = [v for v in values if v is not None]
    assert within(found, known or [0.0])
    if x > Fraction(1, 1000):
        assert tight(found, known)


@settings(max_examples=60, deadline=None)
@given(numbers(), st.integers(0, 9), st.fractions(-600, 600), st.fractions(0, 300))
def test_whole_powers_and_clamped_numbers_stay_in_bounds(
    x: tuple[Number, Fraction], n: int, low: Fraction, width: Fraction
) -> None:
    a, u = x
    exponent, bottom, top = (constant(v).type for v in (n, low, low + width))
    assert isinstance(exponent, Number)
    assert isinstance(bottom, Number)
    assert isinstance(top, Number)
    assert holds(intervals.power(a, exponent), u**n)
    if a.bounded and n:
        whole = intervals.power(a, exponent)
        ends = [e**n for e in (a.lower, a.upper) if e is not None]
        assert whole.upper == max(ends)
        assert whole.lower == (0 if n % 2 == 0 and a.lower < 0 < a.upper else min(ends))  # type: ignore[operator]
    clamped = intervals.clamp(a, bottom, top)
    assert holds(clamped, min(max(u, low), low + width))
    assert clamped.lower is not None
    assert clamped.upper is not None
    assert low <= clamped.lower <= clamped.upper <= low + width


def test_known_types_of_the_newer_functions() -> None:
    def of_type(name: str, *arguments: Expression) -> object:
        return bind(Call(name, arguments)).type

    names = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
    assert of_type("dayname", Column("any_at")) == Text(names, 9)
    assert of_type("monthname", Column("at")) == Text(("January", "February", "March"), 8)
    assert of_type("||", Literal("x"), Column("ward")) == Text(("xA", "xB", "xlong ward", "x"), 10)
    assert of_type("||", Column("ward"), Column("name")) == Text(None, 21)
    assert of_type("clamp", Column("any_int"), Literal(0), Literal(9)) == Number(
        Fraction(0), Fraction(9), Fraction(1)
    )
    assert of_type("clamp", Column("code"), Literal(0), Literal(9)) == Number(
        Fraction(0), Fraction(9), Fraction(1), (9, 0, 7)
    )
    assert of_type("clamp", Column("day"), Literal("2020-01-01"), Literal("2030-01-01")) == Day(
        date(2020, 1, 1), date(2021, 7, 9)
    )
    assert of_type("cast", Literal("date"), Column("at")) == Day(date(2020, 1, 5), date(2020, 3, 1))
    assert of_type("cast", Literal("integer"), Column("signed")) == Number(
        Fraction(-3), Fraction(1000), Fraction(1)
    )
    assert of_type("date_diff", Literal("month"), Column("day"), Column("at")) == Number(
        Fraction(-18), Fraction(13), Fraction(1)
    )
    quarters = bind(Call("time_bucket", (Literal("15 minutes"), Column("at"))))
    assert quarters.domain is not None
    assert (len(quarters.domain), quarters.domain[1]) == (5347, datetime(2020, 1, 5, 7, 45))
    assert list(domain(bind(Call("time_bucket", (Literal("7 months"), Column("day"))))) or ()) == [
        date(2018, 9, 1), date(2019, 4, 1), date(2019, 11, 1), date(2020, 6, 1), date(2021, 1, 1),
    ]  # fmt: skip

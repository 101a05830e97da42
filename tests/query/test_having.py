from __future__ import annotations

import itertools
import math
from datetime import date, datetime
from fractions import Fraction
from typing import Any

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sordino.errors import InvalidInput
from sordino.query.having import (
    SUPPORTED,
    Cell,
    check_having,
    check_order,
    evaluate,
    limited,
    ordered,
    where_true,
)
from sordino.query.tree import Call, Case, Column, Expression, Literal, Order

X, Y = Column("x"), Column("y")
ROW: dict[str, Cell] = {"x": 2.5, "y": None, "s": "abc", "d": date(2024, 5, 1), "b": True}


def call(function: str, *arguments: object) -> Call:
    tree = (Column, Literal, Call, Case)
    return Call(function, tuple(a if isinstance(a, tree) else Literal(a) for a in arguments))  # type: ignore[arg-type]


NULL = Literal(None)
TRUTHS = (Literal(True), Literal(False), NULL)


def sql(expression: Expression) -> str:
    """The same in SQL, for DuckDB to judge."""
    match expression:
        case Literal(value=None):
            return "NULL"
        case Literal(value=v):
            return (
                f"CAST({float(v) if isinstance(v, Fraction) else v} AS DOUBLE)"
                if not isinstance(v, bool | str)
                else repr(v)
            )
        case Call(function="neg", arguments=(a,)):
            return f"(-{sql(a)})"
        case Call(function="not", arguments=(a,)):
            return f"(NOT {sql(a)})"
        case Call(function="is_null", arguments=(a,)):
            return f"({sql(a)} IS NULL)"
        case Call(function="in", arguments=(a, *rest)):
            return f"({sql(a)} IN ({', '.join(map(sql, rest))}))"
        case Call(function="and" | "or" as word, arguments=arguments):
            return "(" + f" {word.upper()} ".join(map(sql, arguments)) + ")"
        case Call(function="abs" | "floor" | "round" | "coalesce" as name, arguments=arguments):
            return f"{name}({', '.join(map(sql, arguments))})"
        case Call(function=sign, arguments=(a, b)):
            return f"({sql(a)} {sign} {sql(b)})"
    raise AssertionError(expression)


numbers = st.sampled_from(
    [NULL, *(Literal(v) for v in (0, 1, -2, 7, Fraction(1, 2), Fraction(-5, 4), Fraction(25, 2)))]
)


def arithmetic(children: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    two = st.tuples(children, children)
    return st.one_of(
        st.builds(Call, st.sampled_from(["+", "-", "*"]), two),
        st.builds(Call, st.sampled_from(["neg", "abs", "floor"]), st.tuples(children)),
        st.builds(Call, st.just("coalesce"), two),
    )


values: st.SearchStrategy[Any] = st.recursive(numbers, arithmetic, max_leaves=4)
comparisons: st.SearchStrategy[Any] = st.one_of(
    st.builds(Call, st.sampled_from(["=", "<>", "<", "<=", ">", ">="]), st.tuples(values, values)),
    st.builds(Call, st.just("in"), st.tuples(values, numbers, numbers)),
    st.builds(Call, st.just("is_null"), st.tuples(values)),
)
conditions: st.SearchStrategy[Any] = st.recursive(
    comparisons,
    lambda c: st.one_of(
        st.builds(Call, st.sampled_from(["and", "or"]), st.tuples(c, c)),
        st.builds(Call, st.just("not"), st.tuples(c)),
    ),
    max_leaves=4,
)


@given(conditions)
def test_it_decides_as_sql_does(condition: Expression) -> None:
    check_having(condition, ())
    ((expected,),) = duckdb.execute(f"SELECT {sql(condition)}").fetchall()
    assert evaluate(condition, {}) is expected


@pytest.mark.parametrize("digits", [0, 1, 2, -1])
def test_round_goes_away_from_zero(digits: int) -> None:
    for x in (
        Fraction(5, 2),
        Fraction(-5, 2),
        Fraction(125, 100),
        Fraction(-1255, 100),
        Fraction(15),
        Fraction(1, 3),
    ):
        scaled = abs(x) * Fraction(10) ** digits
        expected = (
            math.floor(scaled + Fraction(1, 2)) / Fraction(10) ** digits * (1 if x > 0 else -1)
        )
        assert evaluate(call("round", x, digits), {}) == expected
    assert evaluate(call("round", X), {"x": 2.5}) == 3.0
    assert evaluate(call("round", X, 2), {"x": 1.005}) == 1.01
    assert evaluate(call("round", X), {"x": math.inf}) == math.inf


def test_three_valued_logic_is_complete() -> None:
    for a, b in itertools.product(TRUTHS, repeat=2):
        known = {a.value, b.value}
        both = False if False in known else None if None in known else True
        either = True if True in known else None if None in known else False
        assert evaluate(call("and", a, b), {}) is both
        assert evaluate(call("or", a, b), {}) is either
        assert evaluate(call("not", a), {}) is (None if a.value is None else not a.value)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (call(">", X, 2), True),
        (call("=", X, Fraction(5, 2)), True),
        (call("<", Y, 1), None),
        (call("is_null", Y), True),
        (call("coalesce", Y, X), 2.5),
        (call("/", X, 0), None),
        (call("/", 1, 3), Fraction(1, 3)),
        (call("=", Column("s"), "abc"), True),
        (call("<", Column("s"), "abd"), True),
        (call("=", Column("s"), 1), None),
        (call("+", Column("s"), 1), None),
        (call("in", Column("s"), "x", "abc", None), True),
        (call("in", Column("s"), "x", None), None),
        (call(">=", Column("d"), date(2024, 5, 1)), True),
        (call("<", Column("d"), datetime(2024, 5, 1, 0, 1)), True),
        (call("=", Column("b"), True), True),
        (call("=", Column("b"), 1), None),
        (call("*", call("*", X, 10**308), 10**308), math.inf),
        (call("-", call("*", X, 10**400), X), None),
        (call("and", X, True), None),
    ],
)
def test_values(expression: Expression, expected: object) -> None:
    check_having(expression, ROW)
    assert evaluate(expression, ROW) == expected


@pytest.mark.parametrize(
    "expression",
    [
        Column("z"),
        Column("x", "t"),
        call("like", Column("s"), "a%"),
        call("lower", Column("s")),
        call("%", X, 2),
        Case(((call(">", X, 1), X),)),
        call("and", call(">", Column("nx"), 1), True),
        call("round", X, Fraction(1, 2)),
        call("round", X, 1000),
        call("round", X, Y),
        call("round", X, True),
        call("=", X),
        call("not", X, X),
        call("in", X),
        Call("coalesce", ()),
    ],
)
def test_refused_before_data(expression: Expression) -> None:
    with pytest.raises(InvalidInput):
        check_having(expression, ("x", "y", "s"))


def test_hints() -> None:
    with pytest.raises(InvalidInput, match="Did you mean 'count'"):
        check_having(Column("cuont"), ("ward", "count"))
    with pytest.raises(InvalidInput, match="Did you mean 'count'"):
        check_order((Order("coutn"),), ("ward", "count"))
    check_order((Order("ward"), Order("count", True)), ("ward", "count"))
    assert "coalesce" in SUPPORTED


def test_rows_that_are_true_are_kept() -> None:
    columns: dict[str, list[Cell]] = {"n": [5.0, math.nan, None, 1.0], "s": ["a", "b", None, "a"]}
    assert where_true(call(">", Column("n"), 2), columns).tolist() == [0]
    assert where_true(call("=", Column("s"), "a"), columns).tolist() == [0, 3]
    assert where_true(call("not", call(">", Column("n"), 2)), columns).tolist() == [3]
    assert where_true(call(">", X, 2), {"x": []}).tolist() == []


@given(
    st.lists(
        st.tuples(st.sampled_from([None, 1.0, 2.0, math.nan]), st.sampled_from(["a", "b", None])),
        max_size=12,
    )
)
def test_sorting_is_stable_with_nulls_last(cells: list[tuple[float | None, str | None]]) -> None:
    columns: dict[str, list[Cell]] = {"n": [c[0] for c in cells], "s": [c[1] for c in cells]}
    places = ordered(columns, (Order("n", True), Order("s")), len(cells)).tolist()

    def rank(i: int) -> tuple[Any, ...]:
        n, s = cells[i]
        missing = n is None or math.isnan(n)
        return (missing, 0 if n is None or missing else -n, s is None, s or "", i)

    assert places == sorted(range(len(cells)), key=rank)


def test_limits() -> None:
    places = ordered({}, (), 5)
    assert limited(places, None).tolist() == [0, 1, 2, 3, 4]
    assert limited(places, 2, 1).tolist() == [1, 2]
    assert limited(places, 0).tolist() == []
    assert limited(places, 10, 4).tolist() == [4]
    assert limited(places, None, 9).tolist() == []

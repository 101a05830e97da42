"""Numbers in three digits: codes keep the order, numbers come back,
and SQL agrees with Python on whatever a cell holds.
"""

from __future__ import annotations

import math
import random
from fractions import Fraction

import duckdb
import pytest
from sqlglot import exp

from sordino.plan.dialects import writer
from sordino.query.meaning import nodes
from sordino.query.three_digits import LARGEST, SMALLEST, code_of, code_sql, number_of
from sordino.query.typed import Typed
from sordino.query.types import Number


def test_every_code_stands_for_a_number_of_its_own() -> None:
    codes = range(-code_of(LARGEST), code_of(LARGEST) + 1)
    numbers = [number_of(code) for code in codes]
    assert numbers == sorted(set(numbers))
    assert [code_of(number) for number in numbers] == list(codes)


@pytest.mark.parametrize(
    ("number", "rounded"),
    [
        (0, 0),
        (1, 1),
        (999, 999),
        (1000, 1000),
        (1001, 1010),
        (-1001, -1010),
        ("0.1234", "0.124"),
        ("-99.91", -100),
    ],
)
def test_numbers_are_rounded_away_from_zero(number: str | int, rounded: str | int) -> None:
    assert number_of(code_of(Fraction(number))) == Fraction(rounded)


def test_what_is_beyond_is_the_last() -> None:
    assert number_of(code_of(LARGEST * 10)) == LARGEST
    assert number_of(code_of(-SMALLEST / 10**9)) == -SMALLEST


def sql_code(values: list[float | None]) -> list[int | None]:
    text = writer("duckdb")(code_sql(Typed(Number(), exp.column("x"))))
    rows = duckdb.execute(
        f"SELECT {text} FROM (SELECT unnest($1::DOUBLE[]) AS x)", [values]
    ).fetchall()
    return [row[0] for row in rows]


def test_sql_and_python_agree() -> None:
    rng = random.Random(3)
    values = [rng.choice((-1, 1)) * 10 ** rng.uniform(-12, 20) for _ in range(2000)]
    values += [
        float(f"{rng.choice('-+')}{rng.randint(1, 999)}e{e}")
        for e in range(-8, 13)
        for _ in range(20)
    ]
    for value, code in zip(values, sql_code(list(values)), strict=True):
        assert code is not None
        assert code == code_of(Fraction(repr(value))), value


def test_sql_is_total() -> None:
    found = sql_code([None, math.nan, math.inf, -math.inf, 0.0, -0.0, 5e-324, 1.8e308])
    top = code_of(LARGEST)
    assert found == [None, None, top, -top, 0, 0, 1, top]


def test_a_large_expression_is_mentioned_once() -> None:
    parts = [nodes.binary(exp.Add, exp.column("x"), nodes.real(float(i))) for i in range(300)]
    big = nodes.greatest(*parts)
    assert len(writer("duckdb")(code_sql(Typed(Number(), big)))) < 2 * len(writer("duckdb")(big))

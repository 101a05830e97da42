"""Random expressions, reading of columns, domains of keys, and whole steps: the laws that privacy rests on."""

from __future__ import annotations

import math
import random
from datetime import date, datetime
from fractions import Fraction
from typing import Any

import duckdb
import pytest
from sqlglot import exp

from query.nasty import (
    COLUMNS,
    MODERATE,
    Expressions,
    Table,
    belongs,
    bind,
    column,
    number,
    raw_rows,
    same,
    table,
)
from query.reference import clean, evaluate
from sordino.engines.duckdb import forms
from sordino.engines.duckdb.dialect import write
from sordino.errors import InvalidInput
from sordino.query import dataset
from sordino.query.meaning import nodes
from sordino.query.meaning.domains import Multiples, Starts, domain, domain_size
from sordino.query.meaning.expressions import (
    condition,
    indicator,
    key_index,
    quantised,
    typed,
)
from sordino.query.meaning.reading import read
from sordino.query.tree import Call, Case, Column, Expression, Literal
from sordino.query.typed import Typed
from sordino.query.types import Day, Moment, Number, Text, Truth

KINDS = ("number", "truth", "text", "day", "moment")


def random_expressions(
    seed: int, count: int, columns: tuple[str, ...] = tuple(COLUMNS)
) -> list[Expression]:
    source = Expressions(seed, columns)
    return [source.one(KINDS[i % len(KINDS)], source.rng.randint(1, 4)) for i in range(count)]


@pytest.mark.parametrize("seed", range(4))
def test_random_expressions_are_total_and_keep_their_type(seed: int) -> None:
    expressions = random_expressions(seed, 40)
    known = [bind(e) for e in expressions]
    for expression, found, results in zip(
        expressions, known, table().run([k.sql for k in known]), strict=True
    ):
        for got in results:
            assert belongs(got, found), (expression, got, found.type)


@pytest.mark.parametrize("seed", range(100, 104))
def test_random_expressions_equal_the_reference(seed: int) -> None:
    expressions = [e for e in random_expressions(seed, 40, MODERATE) if ascii_only(e)]
    known = [bind(e) for e in expressions]
    for expression, found, results in zip(
        expressions, known, table().run([k.sql for k in known]), strict=True
    ):
        for got, row in zip(results, table().rows, strict=True):
            wanted = evaluate(expression, row)
            assert same(got, wanted, 1e-12 if isinstance(found.type, Number) else 0), (
                expression,
                got,
                wanted,
                row,
            )


def ascii_only(expression: Expression) -> bool:
    """Literals of these expressions and the categories are ASCII; nothing else is read by MODERATE columns."""
    return repr(expression).isascii()


def test_random_expressions_are_row_wise() -> None:
    expressions = random_expressions(7, 60)
    sql = [bind(e).sql for e in expressions]
    raw = raw_rows(len(table().rows), seed=1)
    picked = random.Random(7).sample(range(len(raw)), 20)
    few = Table([raw[i] for i in picked]).run(sql)
    for whole, part in zip(table().run(sql), few, strict=True):
        assert [whole[i] for i in picked] == list(part)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1100))
def test_many_random_expressions(seed: int) -> None:
    test_random_expressions_are_total_and_keep_their_type(seed)
    test_random_expressions_equal_the_reference(seed)


@pytest.mark.parametrize("name", COLUMNS)
def test_reading_cleans_every_cell(name: str) -> None:
    found = column(Column(name))
    (results,) = table().run([found.sql])
    for got, row in zip(results, table().rows, strict=True):
        assert belongs(got, found)
        assert same(got, row[name])


READS: list[tuple[dataset.Column, str, list[str]]] = [
    *(
        (dataset.Column("int", number(-5, 300, 1)), t, ["0", "3", "100"])
        for t in ("TINYINT", "UTINYINT", "SMALLINT", "USMALLINT")
    ),
    (dataset.Column("int", number(-5, 300, 1)), "UINTEGER", ["4294967295"]),
    (dataset.Column("int", number(-5, 300, 1)), "UBIGINT", ["18446744073709551615", "7"]),
    (
        dataset.Column("int", number(-5, 300, 1)),
        "HUGEINT",
        ["170141183460469231731687303715884105727", "-9", "-1" + "0" * 38],
    ),
    (
        dataset.Column("int", number(-(2**62) + 1, 2**62 - 1, 1)),
        "HUGEINT",
        ["170141183460469231731687303715884105727", "9"],
    ),
    (
        dataset.Column("int", number(step=1)),
        "HUGEINT",
        ["170141183460469231731687303715884105727", "-9"],
    ),
    (dataset.Column("category", number(-3, 40, 1, (-3, 40))), "UTINYINT", ["40", "3"]),
    (
        dataset.Column("category", number(-3, 40, 1, (-3, 40))),
        "HUGEINT",
        ["-3", "170141183460469231731687303715884105727"],
    ),
    (
        dataset.Column("float", number(0, 5, "0.01")),
        "DECIMAL(38,10)",
        ["9999999999999999999999999999.5", "1.25", "-3"],
    ),
    (dataset.Column("float", number(0, 5, "0.01")), "FLOAT", ["'nan'", "'inf'", "'-inf'", "0.1"]),
    (
        dataset.Column("float", number(0, 5, "0.01")),
        "HUGEINT",
        ["170141183460469231731687303715884105727", "2"],
    ),
    (dataset.Column("float", number()), "UBIGINT", ["18446744073709551615"]),
    (
        dataset.Column("float", number(-100, 1000, 10)),
        "DOUBLE",
        ["'nan'", "12.5", "-0.5", "1e300", "'-inf'"],
    ),
    (
        dataset.Column("float", number(-(2**62) + 1, 2**62 - 1, 1)),
        "DOUBLE",
        ["1e19", "-1e19", "4611686018427387903"],
    ),
    (
        dataset.Column("category", Text(("x", "O'Hara"), 6)),
        "ENUM('x', 'y', 'O''Hara')",
        ["'x'", "'y'", "'O''Hara'"],
    ),
    (dataset.Column("text", Text(None, 3)), "ENUM('abcdef')", ["'abcdef'"]),
    (
        dataset.Column("date", Day(date(2020, 1, 1), date(2020, 12, 31))),
        "DATE",
        ["'infinity'", "'-infinity'", "'4000-01-01 (BC)'"],
    ),
    *(
        (
            dataset.Column("datetime", Moment()),
            t,
            ["'2020-05-06 07:08:09.5'", "'infinity'", "'-infinity'"],
        )
        for t in (
            "TIMESTAMP",
            "TIMESTAMP_S",
            "TIMESTAMP_MS",
            "TIMESTAMP_NS",
            "TIMESTAMP WITH TIME ZONE",
        )
    ),
]


@pytest.mark.parametrize(("declared", "engine_type", "cells"), READS)
def test_reading_every_engine_type(
    declared: dataset.Column, engine_type: str, cells: list[str]
) -> None:
    form = forms.cell(declared, engine_type, "x")
    assert form is not None
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE t (x {engine_type})")
    for cell in [*cells, "NULL"]:
        connection.execute(f"INSERT INTO t VALUES ({cell})")
    found = read(declared, exp.column("x"))
    cleaned = f"SELECT {write(found.sql)} FROM (SELECT {form} AS x FROM t)"
    results = [r[0] for r in connection.execute(cleaned).fetchall()]
    assert results[-1] is None
    for got, (raw,) in zip(
        results, connection.execute(f"SELECT {form} FROM t").fetchall(), strict=True
    ):
        # steps coarser than one are met after rounding only
        loose = Typed(Number(found.type.lower, found.type.upper, Fraction(1)), found.sql) if isinstance(found.type, Number) \
            and found.type.step is not None and found.type.step > 1 else found  # fmt: skip
        assert belongs(got, loose), (got, found.type)
        if declared.kind not in ("date", "datetime"):
            assert same(got, clean(declared, raw)), (got, raw)


def test_reading_trusts_no_declared_absence_of_nulls() -> None:
    declared = dataset.Column("int", Number(Fraction(0), Fraction(9), Fraction(1), nullable=False))
    type_ = read(declared, exp.column("x")).type
    assert isinstance(type_, Number)
    assert type_.nullable


@pytest.mark.parametrize(
    ("kind", "type_", "good", "bad"),
    [
        (
            "int",
            Number(),
            "BIGINT UTINYINT HUGEINT",
            "DOUBLE VARCHAR BOOLEAN UHUGEINT DATE INTEGER[]",
        ),
        ("float", Number(), "FLOAT DOUBLE DECIMAL(18,3) INTEGER", "VARCHAR BOOLEAN TIMESTAMP"),
        ("bool", Truth(), "BOOLEAN", "INTEGER VARCHAR"),
        ("text", Text(), "VARCHAR ENUM('a')", "BLOB INTEGER VARCHAR[] JSON"),
        ("category", Text(("a",), 1), "VARCHAR ENUM('a')", "BLOB INTEGER"),
        ("category", Number(values=(1,)), "INTEGER BIGINT", "VARCHAR DOUBLE"),
        ("date", Day(), "DATE", "TIMESTAMP VARCHAR"),
        ("datetime", Moment(), "TIMESTAMP TIMESTAMP_NS TIMESTAMP_S TIMESTAMP_MS", "DATE TIME"),
    ],
)
def test_matching_types(kind: Any, type_: Any, good: str, bad: str) -> None:
    declared = dataset.Column(kind, type_)
    assert all(forms.cell(declared, t, "x") for t in good.split())
    assert not any(
        forms.cell(declared, t, "x")
        for t in [*bad.split(), "TIME WITH TIME ZONE", "STRUCT(a INTEGER)"]
    )


def nearest(value: Any, step: Fraction, integral: bool) -> Any:
    if integral:
        return math.floor(Fraction(value) / step + Fraction(1, 2))
    x = value / float(step) + 0.5
    return x if math.isinf(x) else math.floor(x)


STEPS = [(Fraction(1), -50, 50), (Fraction(1), 0, 10**6), (Fraction(3), -50, 100), (Fraction(4), -7, 1001),
         (Fraction(1, 100), 0, 50), (Fraction(3, 10), -9, 9), (Fraction(1, 7), -1, 1), (Fraction(10**6), -(10**9), 10**15),
         (Fraction(5), 7, 7)]  # fmt: skip


@pytest.mark.parametrize("name", [n for n, c in COLUMNS.items() if isinstance(c.type, Number)])
@pytest.mark.parametrize(("step", "lower", "upper"), STEPS)
def test_quantised_stays_within_its_bounds(
    name: str, step: Fraction, lower: int, upper: int
) -> None:
    found = column(Column(name))
    assert isinstance(found.type, Number)
    results = table().run([quantised(found, step, Fraction(lower), Fraction(upper))])[0]
    first, last = (
        math.floor(end / step + Fraction(1, 2)) for end in (Fraction(lower), Fraction(upper))
    )
    for got, row in zip(results, table().rows, strict=True):
        value = row[name]
        if value is None:
            assert got is None
        else:
            inside = min(max(value, lower), upper) if found.type.integral else value
            assert got == min(max(nearest(inside, step, found.type.integral), first), last)


LIES = [
    *((name, Number(Fraction(0), Fraction(1), Fraction(1))) for name in ("big", "any_int")),
    *((name, Number(Fraction(0), Fraction(1), Fraction(1, 2))) for name in ("any_float", "wide")),
    *((name, Number()) for name in ("any_float", "wide")),
]


@pytest.mark.parametrize(("name", "lie"), LIES)
def test_quantised_holds_even_if_the_type_is_wrong(name: str, lie: Number) -> None:
    """The last clamp does not trust interval arithmetic: raw cells,
    NaN and infinities included, with invented types.
    """
    raw = Typed(lie, exp.column(name, quoted=True))
    bounds = [
        (Fraction(1), -3, 3),
        (Fraction(1, 10), 0, 7),
        (Fraction(7), -(2**61), 2**61),
        (Fraction(1), -(2**62) + 2, 2**62 - 2),
    ]
    for step, lower, upper in bounds:
        results = table().run([quantised(raw, step, Fraction(lower), Fraction(upper))])[0]
        first, last = (
            math.floor(end / step + Fraction(1, 2)) for end in (Fraction(lower), Fraction(upper))
        )
        assert all(
            got is None or (isinstance(got, int) and first <= got <= last) for got in results
        )
        assert any(got is not None for got in results)


def test_quantised_refuses_steps_that_do_not_fit() -> None:
    cost = column(Column("cost"))
    for step, lower, upper in [
        (Fraction(0), 0, 1),
        (Fraction(-1), 0, 1),
        (Fraction(1), 1, 0),
        (Fraction(1, 2**70), 0, 1),
    ]:
        with pytest.raises(InvalidInput):
            quantised(cost, step, Fraction(lower), Fraction(upper))


KEYS: list[tuple[Expression, list[Any]]] = [
    (Column("ward"), ["A", "B", "long ward", ""]),
    (Column("flag"), [False, True]),
    (Column("code"), [40, -3, 7]),
    (Column("small"), list(range(-7, 6))),
    (Call("coalesce", (Column("ward"), Literal("other"))), ["A", "B", "long ward", "", "other"]),
    (Call("substr", (Column("ward"), Literal(1), Literal(1))), ["A", "B", "l", ""]),
    (Call("lower", (Column("ward"),)), ["a", "b", "long ward", ""]),
    (Call("bucket", (Column("age"), Literal(25))), [0, 25, 50, 75, 100]),
    (
        Call("bucket", (Column("signed"), Literal(Fraction(501, 2)))),
        [Fraction(-501, 2), 0, Fraction(501, 2), 501, Fraction(1503, 2)],
    ),
    (Call("round", (Column("cost"), Literal(-3))), [0, 1000, 2000, 3000, 4000, 5000]),
    (Call("floor", (Call("/", (Column("age"), Literal(50))),)), [0, 1, 2]),
    (Call(">=", (Column("age"), Literal(65))), [False, True]),
    (
        Case(((Call("<", (Column("age"), Literal(18))), Literal("child")),), Literal("adult")),
        ["child", "adult"],
    ),
    (Case(((Call("<", (Column("age"), Literal(18))), Literal(1000)),), Literal(1)), [1000, 1]),
    (Call("date_part", (Literal("quarter"), Column("day"))), [1, 2, 3, 4]),
    (Call("date_part", (Literal("year"), Column("day"))), [2019, 2020, 2021]),
    (
        Call("date_trunc", (Literal("year"), Column("day"))),
        [date(2019, 1, 1), date(2020, 1, 1), date(2021, 1, 1)],
    ),
    (
        Call("date_trunc", (Literal("month"), Column("at"))),
        [datetime(2020, 1, 1), datetime(2020, 2, 1), datetime(2020, 3, 1)],
    ),
    (Call("length", (Column("ward"),)), [0, 1, 9]),
]


@pytest.mark.parametrize(("key", "values"), KEYS)
def test_domains_of_keys(key: Expression, values: list[Any]) -> None:
    found = bind(key)
    listed = domain(found)
    assert listed is not None
    assert list(listed) == values
    assert domain_size(found) == len(values)
    step = found.type.step if isinstance(found.type, Number) and found.type.bounded else None
    index = {v if step is None else int(Fraction(v) / step): v for v in listed}  # type: ignore[arg-type]
    assert len(index) == len(values)
    results, plain = table().run([key_index(found), found.sql])
    for got, value in zip(results, plain, strict=True):
        assert (got is None) == (value is None)
        if got is not None:
            key_of_row: Any = index[got]
            assert same(
                value, float(key_of_row) if isinstance(key_of_row, Fraction) else key_of_row
            )


@pytest.mark.parametrize("unit", ["day", "week", "month", "quarter", "hour"])
def test_domains_of_dates(unit: str) -> None:
    for name in ("at",) if unit == "hour" else ("day", "at"):
        found = bind(Call("date_trunc", (Literal(unit), Column(name))))
        listed = domain(found)
        assert listed is not None
        assert len(set(listed)) == len(listed) == domain_size(found)
        assert list(listed) == sorted(listed)  # type: ignore[type-var]
        (results,) = table().run([found.sql])
        assert set(results) - {None} <= set(listed)


def test_large_domains_are_counted_not_listed() -> None:
    assert domain_size(bind(Column("any_day"))) == date(9999, 12, 31).toordinal()
    assert (
        domain_size(bind(Call("date_trunc", (Literal("hour"), Column("any_at")))))
        == 24 * date(9999, 12, 31).toordinal()
    )
    assert domain_size(bind(Column("big"))) == 2**63 - 1
    assert domain_size(bind(Column("cost"))) == 500_001
    for unknown in ("city", "any_int", "any_float", "any_at"):
        assert domain_size(bind(Column(unknown))) is None
    assert Multiples(-2, 2, Fraction(1, 2))[1:] == (Fraction(-1, 2), 0, Fraction(1, 2), 1)
    for all_of in (Multiples(-7, 9, Fraction(5, 2)), Multiples(-3, 4, Fraction(2))):
        one_by_one = [all_of[i] for i in range(len(all_of))]
        assert [*map(repr, all_of)] == [*map(repr, one_by_one)]
    assert Starts("week", date(2020, 1, 1), date(2020, 1, 14))[-1] == date(2020, 1, 13)


def test_conditions() -> None:
    assert isinstance(condition(Column("flag"), column).type, Truth)
    assert isinstance(condition(Literal(None), column).type, Truth)
    with pytest.raises(InvalidInput, match="a number as a condition"):
        condition(Column("age"), column)
    share = indicator(condition(Call(">=", (Column("age"), Literal(65))), column))
    assert (share.type, write(share.sql)[:5]) == (
        Number(Fraction(0), Fraction(1), Fraction(1)),
        "CAST(",
    )
    assert set(table().run([share.sql])[0]) <= {0, 1, None}


def test_each_mention_of_a_column_has_nodes_of_its_own() -> None:
    found = typed(Call("+", (Column("age"), Column("age"))), column)
    seen = [id(node) for node in found.sql.walk()]
    assert len(seen) == len(set(seen))


def test_very_deep_expressions_are_refused() -> None:
    deep: Expression = Column("cost")
    for _ in range(120):
        deep = Call("abs", (Call("/", (deep, Literal(3))),))
    with pytest.raises(InvalidInput, match="nested"):
        typed(deep, column)


def test_literals_reach_the_engine_exactly() -> None:
    rng = random.Random(3)
    values = [rng.uniform(-1000, 1000) * 10.0 ** rng.randint(-30, 30) for _ in range(500)] + [
        5e-324,
        -1.7976931348623157e308,
    ]
    literals = [Fraction(v) for v in values] + [
        Fraction(rng.randint(-(10**20), 10**20), 10**10) for _ in range(200)
    ]
    results = table().run([nodes.real(v) for v in literals])
    for got, wanted in zip(results, literals, strict=True):
        assert isinstance(got[0], float)
        assert got[0] == float(wanted)
    whole = [rng.randint(-(2**62) + 1, 2**62 - 1) for _ in range(100)]
    assert [r[0] for r in table().run([nodes.constant(v).sql for v in whole])] == whole
    assert table().run([bind(Call("*", (Literal(2**30), Literal(-(2**30))))).sql])[0][0] == -(2**60)

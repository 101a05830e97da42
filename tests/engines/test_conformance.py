"""Every engine gives the same whole numbers as DuckDB, on random plans over random rows, before any noise."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from itertools import chain, count
from typing import Any

import pyarrow as pa
import pytest
from sqlglot import exp

from engine_reference import Bench
from engines.conformance import (
    ENGINES,
    Adapter,
    cell_differences,
    differences,
    of_library,
    opened,
    plans_of_relations,
    plans_of_tables,
)
from query import nasty
from sordino.query import tree
from sordino.query.dataset import Column
from sordino.query.meaning.expressions import typed
from sordino.query.meaning.reading import read
from sordino.query.typed import Typed
from sordino.query.types import Number

KINDS: dict[str, Any] = {"tables": plans_of_tables, "relations": plans_of_relations}


@cache
def bench() -> Bench:
    return Bench()


@pytest.fixture(scope="module", params=ENGINES)
def adapter(request: pytest.FixtureRequest) -> Iterator[Adapter]:
    found = opened(request.param)
    yield found
    found.close()


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_integers(kind: str, adapter: Adapter) -> None:
    """100 plans of each kind, fewer of an engine that is slow, and of those that it does not take long to analyse."""
    seen: Counter[str] = Counter()
    found: list[str] = []
    for seed in count():
        found += differences(
            adapter, bench(), KINDS[kind], seed, 10, seen, getattr(adapter, "longest_quick", None)
        )
        if seen["plans"] >= getattr(adapter, "quick_plans", 100):
            break
    print(dict(seen))
    assert found == []


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
@pytest.mark.parametrize("kind", KINDS)
def test_the_same_integers_campaign(kind: str, part: int, adapter: Adapter) -> None:
    """10,000 plans in all."""
    assert _wrong(kind, adapter, range(1000 + part * 50, 1050 + part * 50), 10) == []


FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 3.0, 0.1, 1e-9, 1e9, 5e-324, -5e-324, 1e-323, 2.0**-1022, 2.0**-1073, 2.0**-537,
          2.0**-538, -(2.0**-538), 1.0000000000000002 * 2.0**-538, 0.9999999999999999 * 2.0**-537, 2.0**-500, 2.0**-40,
          2.0**512, 2.0**511, 2.0**970, 2.0**971, 2.0**1022, 2.0**1023, -(2.0**1023), 1.7976931348623157e308,
          -1.7976931348623157e308, 1e154, 1e200, 1e-200, 1e-160, math.inf, -math.inf, math.nan, 1.3407807929942596e154,
          1.3407807929942597e154, math.pi, 1e16, 7.0, 709.7, 710.0, -745.2, -700.0, -708.0, 2.0**53]  # fmt: skip


def test_arithmetic_of_doubles_never_fails_and_is_ieee(adapter: Adapter) -> None:
    """Sums, products and quotients of all pairs of extreme doubles, with each other and with constants."""
    pairs = [(a, b) for a in FLOATS for b in FLOATS]
    frame = pa.table(
        {"id": range(len(pairs)), "a": [a for a, _ in pairs], "b": [b for _, b in pairs]}
    )
    columns = {name: Column("float", Number()) for name in "ab"}
    a, b = tree.Column("a"), tree.Column("b")
    asked = [tree.Call(sign, (a, b)) for sign in "+-*/"]
    for value in (
        Fraction(1, 3),
        Fraction(7),
        Fraction(1, 10**30),
        10**300,
        Fraction(1, 10**300),
        Fraction(-1, 2),
    ):
        asked += [tree.Call(sign, (a, tree.Literal(value))) for sign in "+-*/"]
    names = ["abs", "floor", "ceil", "round", "ln", "log10", "sqrt", "exp", "neg"]
    asked += [tree.Call(name, (a,)) for name in names]
    asked += [tree.Call("round", (a, tree.Literal(places))) for places in (-3, 1, 4, 15)]
    asked += [tree.Call("bucket", (a, tree.Literal(width))) for width in (Fraction(1, 10), 25)]
    asked += [
        tree.Call(">", (a, b)),
        tree.Call("=", (a, b)),
        tree.Call("least", (a, b)),
        tree.Call("greatest", (a, b)),
    ]
    assert list(cell_differences(adapter, bench(), columns, frame, _bound(columns, asked))) == []


def test_powers_never_fail(adapter: Adapter) -> None:
    """Where PostgreSQL and DuckDB may differ, beyond 2^1000 and below 2^-1000, only that nothing fails."""
    pairs = [(a, b) for a in FLOATS for b in FLOATS]
    frame = pa.table(
        {"id": range(len(pairs)), "a": [a for a, _ in pairs], "b": [b for _, b in pairs]}
    )
    columns = {name: Column("float", Number()) for name in "ab"}
    power = tree.Call("power", (tree.Column("a"), tree.Column("b")))
    found = list(cell_differences(adapter, bench(), columns, frame, _bound(columns, [power])))
    assert [text for text in found if not _beyond(*pairs[int(text.rsplit(" ", 1)[1])])] == []


def _beyond(a: float, b: float) -> bool:
    return bool(a) and math.isfinite(a) and math.isfinite(b) and abs(b * math.log(abs(a))) > 690


@pytest.mark.parametrize(
    "adapter", ["postgres", pytest.param("spark", marks=pytest.mark.slow)], indirect=True
)
@pytest.mark.parametrize("seed", range(3))
def test_random_expressions_on_nasty_cells(seed: int, adapter: Adapter) -> None:
    """Spark takes minutes to analyse so many nested expressions."""
    _expect_same_cells(adapter, range(seed * 10, seed * 10 + 3), 40)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_random_expressions_on_nasty_cells_campaign(seed: int, adapter: Adapter) -> None:
    _expect_same_cells(adapter, range(1000 + seed * 10, 1010 + seed * 10), 60)


def _expect_same_cells(adapter: Adapter, seeds: range, count: int) -> None:
    kinds = ("number", "truth", "text", "day", "moment")
    asked = []
    for seed in seeds:
        source = nasty.Expressions(seed)
        asked += [source.one(kinds[i % 5], source.rng.randint(1, 4)) for i in range(count)]
    left_out = of_library(adapter)
    asked = [
        one
        for one in asked
        if not _at_the_ends(one) and not any(f"'{name}'" in repr(one) for name in left_out)
    ]
    expressions = {f"{i}: {one}": nasty.bind(one).sql for i, one in enumerate(asked)}
    frame = nasty_frame(nasty.raw_rows(80, seeds.start))
    qualified = {text: _qualified(sql) for text, sql in expressions.items()}
    assert list(cell_differences(adapter, bench(), nasty.COLUMNS, frame, qualified)) == []


def _at_the_ends(expression: tree.Expression) -> bool:
    """Whether it holds a function whose results below the normal doubles, or beyond 2^1000, are not pinned."""
    return "'power'" in repr(expression) or "'exp'" in repr(expression)


def nasty_frame(rows: list[dict[str, Any]]) -> pa.Table:
    fields: dict[str, Any] = {"id": pa.array(range(len(rows)), pa.int64())}
    for name, declared in nasty.COLUMNS.items():
        whole = isinstance(declared.type, Number)
        kind = nasty._ARROW[
            ("int" if whole else "text") if declared.kind == "category" else declared.kind
        ]
        fields[name] = pa.array([row[name] for row in rows], kind)
    return pa.table(fields)


def _bound(columns: dict[str, Column], asked: list[tree.Call]) -> dict[str, exp.Expression]:
    def cell(named: tree.Expression) -> Typed:
        assert isinstance(named, tree.Column)
        return read(columns[named.name], exp.column(named.name, quoted=True))

    return {f"{i}: {one}": _qualified(typed(one, cell).sql) for i, one in enumerate(asked)}


def _qualified(sql: exp.Expression) -> exp.Expression:
    for found in sql.find_all(exp.Column):
        found.set("table", exp.to_identifier("rows", quoted=True))
    return sql


def _wrong(kind: str, adapter: Adapter, seeds: range, queries: int) -> list[str]:
    seen: Counter[str] = Counter()
    found = list(
        chain(*(differences(adapter, bench(), KINDS[kind], seed, queries, seen) for seed in seeds))
    )
    print(dict(seen))
    assert seen["plans"] == len(seeds) * queries
    return found

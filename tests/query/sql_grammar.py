"""Random questions of the supported syntax, in the tree's one form; and the converse of the parser, from tree to SQL.

`queries(vocabulary)` draws questions whose expressions fit the kinds of the columns, so that they can be planned and run on
any table declared with these columns; `to_sql` writes one down.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any, assert_never

from hypothesis import strategies as st
from sqlglot.dialects.duckdb import DuckDB

from sordino.query.calls import DATE_PARTS, DATE_UNITS, call, negated
from sordino.query.shapes import shape
from sordino.query.tree import Aggregate, Call, Case, Column, Expression, Join, Literal, Order, Output, Query

__all__ = ["VISITS", "Lookup", "Vocabulary", "conditions", "expressions", "queries", "to_sql"]


@dataclass(frozen=True)
class Lookup:
    """A public table: how it is joined, and its columns."""

    table: str
    on: tuple[tuple[str, str], ...]
    numbers: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Vocabulary:
    """The columns that may be asked about, by kind; `words` are texts that constants are drawn from."""

    table: str
    numbers: tuple[str, ...] = ()
    truths: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    days: tuple[str, ...] = ()
    moments: tuple[str, ...] = ()
    person: str | None = None
    lookups: tuple[Lookup, ...] = ()
    words: tuple[str, ...] = (
        "A",
        "B",
        "it's",
        "",
        "50%",
        "a_b",
        "-- no",
        "/* ; */",
        "Ünï",
        'say "x"',
        "back\\slash",
        "two\nlines",
    )


VISITS = Vocabulary(
    table="visits",
    numbers=("age", "cost", "price per unit"),
    truths=("smoker", "order"),
    texts=("ward", "city", 'we"ird', "select"),
    days=("day", "date"),
    moments=("at",),
    person="patient_id",
    lookups=(
        Lookup("wards", (("ward", "name"),), ("beds",), ("region",)),
        Lookup("price list", (("city", "where"), ("ward", "ward")), (), ("kind",)),
    ),
)

_LEAST, _MOST = date(1, 1, 1), date(9999, 12, 31)


def _numbers() -> st.SearchStrategy[Literal]:
    decimals = st.builds(
        lambda digits, places: Fraction(digits, 10**places), st.integers(-(10**6), 10**6), st.integers(0, 4)
    )
    whole = st.integers(-20, 200) | st.sampled_from([10**18, -(10**18), 2**63, 10**38])
    return (whole | decimals).map(lambda value: Literal(int(value) if value == int(value) else value))


def _columns(
    names: tuple[str, ...], tables: tuple[tuple[str, tuple[str, ...]], ...] = ()
) -> list[st.SearchStrategy[Expression]]:
    columns = [Column(name) for name in names] + [Column(name, table) for table, theirs in tables for name in theirs]
    return [st.sampled_from(columns)] if columns else []


class _Expressions:
    """Strategies for expressions of each kind, by depth."""

    def __init__(self, words: Vocabulary, lookups: tuple[Lookup, ...]) -> None:
        self.texts = tuple((lookup.table, lookup.texts) for lookup in lookups)
        self.figures = tuple((lookup.table, lookup.numbers) for lookup in lookups)
        self.words = words
        self._known: dict[tuple[str, int], st.SearchStrategy[Any]] = {}

    def _deferred(self, kind: str, depth: int) -> st.SearchStrategy[Any]:
        if (kind, depth) not in self._known:
            self._known[kind, depth] = st.deferred(lambda: getattr(self, "_" + kind)(depth))
        return self._known[kind, depth]

    def number(self, depth: int) -> st.SearchStrategy[Any]:
        return self._deferred("number", depth)

    def truth(self, depth: int) -> st.SearchStrategy[Any]:
        return self._deferred("truth", depth)

    def text(self, depth: int) -> st.SearchStrategy[Any]:
        return self._deferred("text", depth)

    def time(self, depth: int) -> st.SearchStrategy[Any]:
        return self._deferred("time", depth)

    def day(self, depth: int) -> st.SearchStrategy[Any]:
        return self._deferred("day", depth)

    def moment(self, depth: int) -> st.SearchStrategy[Any]:
        return self._deferred("moment", depth)

    def _common(
        self, x: st.SearchStrategy[Any], constants: st.SearchStrategy[Any], depth: int
    ) -> list[st.SearchStrategy[Any]]:
        """What exists for every kind."""
        branches = st.lists(st.tuples(self.truth(depth - 1), x), min_size=1, max_size=2).map(tuple)
        return [
            st.builds(Case, branches, x | st.just(Literal(None))),
            st.builds(lambda a, b: call("coalesce", a, b), x, constants),
            st.builds(lambda a, b: Case(((call("=", a, b), Literal(None)),), a), x, constants),
        ]

    def _number(self, depth: int) -> st.SearchStrategy[Any]:
        leaves = [*_columns(self.words.numbers, self.figures), _numbers()]
        if depth <= 0:
            return st.one_of(leaves)
        x = self.number(depth - 1)
        width = st.sampled_from([Literal(1), Literal(5), Literal(10), Literal(Fraction(1, 2)), Literal(Fraction(1, 100))])
        forms = [
            *leaves,
            *self._common(x, _numbers(), depth),
            st.builds(call, st.sampled_from(["+", "-", "*", "/"]), x, x),
            st.builds(lambda a, n: call("%", call("floor", a), Literal(n)), x, st.integers(1, 100)),
            st.builds(negated, x),
            st.builds(call, st.sampled_from(["abs", "floor", "ceil", "round"]), x),
            st.builds(lambda a, n: call("round", a, Literal(n)), x, st.integers(-2, 3)),
            st.builds(lambda a, w: call("bucket", a, w), x, width),
            st.builds(
                lambda name, items: call(name, *items),
                st.sampled_from(["least", "greatest"]),
                st.lists(x, min_size=1, max_size=3),
            ),
            st.builds(lambda a: call("length", a), self.text(depth - 1)),
        ]
        if self.words.days or self.words.moments:
            part = st.sampled_from(DATE_PARTS[:8]).map(Literal)
            forms.append(st.builds(lambda p, a: call("date_part", p, a), part, self.time(depth - 1)))
        if self.words.moments:
            part = st.sampled_from(DATE_PARTS).map(Literal)
            forms.append(st.builds(lambda p, a: call("date_part", p, a), part, self.moment(depth - 1)))
        return st.one_of(forms)

    def _text(self, depth: int) -> st.SearchStrategy[Any]:
        constants = st.sampled_from(self.words.words).map(Literal)
        leaves = [*_columns(self.words.texts, self.texts), constants]
        if depth <= 0:
            return st.one_of(leaves)
        x = self.text(depth - 1)
        return st.one_of(
            *leaves,
            *self._common(x, constants, depth),
            st.builds(call, st.sampled_from(["lower", "upper"]), x),
            st.builds(lambda a, start: call("substr", a, Literal(start)), x, st.integers(1, 5)),
            st.builds(
                lambda a, start, n: call("substr", a, Literal(start), Literal(n)), x, st.integers(1, 5), st.integers(0, 5)
            ),
        )

    def _day(self, depth: int) -> st.SearchStrategy[Any]:
        constants = st.dates(_LEAST, _MOST).map(Literal)
        leaves = [*_columns(self.words.days), constants]
        if depth <= 0:
            return st.one_of(leaves)
        x, unit = self.day(depth - 1), st.sampled_from(DATE_UNITS[:5]).map(Literal)
        return st.one_of(
            *leaves, *self._common(x, constants, depth), st.builds(lambda u, a: call("date_trunc", u, a), unit, x)
        )

    def _moment(self, depth: int) -> st.SearchStrategy[Any]:
        constants = st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31)).map(
            lambda moment: Literal(moment.replace(fold=0))
        )
        leaves = [*_columns(self.words.moments), constants]
        if depth <= 0:
            return st.one_of(leaves)
        x, unit = self.moment(depth - 1), st.sampled_from(DATE_UNITS).map(Literal)
        return st.one_of(
            *leaves, *self._common(x, constants, depth), st.builds(lambda u, a: call("date_trunc", u, a), unit, x)
        )

    def _time(self, depth: int) -> st.SearchStrategy[Any]:
        return st.one_of(
            *([self.day(depth)] if self.words.days else []), *([self.moment(depth)] if self.words.moments else [])
        )

    def _truth(self, depth: int) -> st.SearchStrategy[Any]:
        leaves = [*_columns(self.words.truths), st.booleans().map(Literal)]
        if depth <= 0:
            return st.one_of(leaves)
        deeper = depth - 1
        number, text = self.number(deeper), self.text(deeper)
        relation = st.sampled_from(["=", "<>", "<", "<=", ">", ">="])
        several = st.lists(self.truth(deeper), min_size=2, max_size=3)
        pattern = st.sampled_from(["a%", "%b_", "", "it's", "%"]).map(Literal)
        values = [_numbers(), st.sampled_from(self.words.words).map(Literal)]
        return st.one_of(
            *leaves,
            st.builds(call, relation, number, number),
            st.builds(call, relation, text, text),
            st.builds(call, relation, self.day(deeper), self.day(deeper)),
            st.builds(call, relation, self.moment(deeper), self.moment(deeper)),
            st.builds(lambda name, items: call(name, *items), st.sampled_from(["and", "or"]), several),
            st.builds(lambda a: call("not", a), self.truth(deeper)),
            st.builds(lambda a, items: call("in", a, *items), number, st.lists(values[0], min_size=1, max_size=3)),
            st.builds(lambda a, items: call("in", a, *items), text, st.lists(values[1], min_size=1, max_size=3)),
            st.builds(lambda a: call("is_null", a), number | text | self.truth(deeper)),
            st.builds(lambda a, p: call("like", a, p), text, pattern),
        )


@lru_cache(maxsize=1000)  # building strategies takes much longer than drawing from them
def _kinds(words: Vocabulary, lookups: tuple[Lookup, ...]) -> _Expressions:
    return _Expressions(words, lookups)


def expressions(words: Vocabulary, kind: str, depth: int = 3) -> st.SearchStrategy[Expression]:
    """Expressions of a kind: number, text, truth, day or moment."""
    return getattr(_kinds(words, ()), kind)(depth)  # type: ignore[no-any-return]


def conditions(words: Vocabulary, depth: int = 3) -> st.SearchStrategy[Expression]:
    """Conditions on rows."""
    return expressions(words, "truth", depth)


@lru_cache(maxsize=1000)
def _aggregates(kinds: _Expressions, person: str | None, depth: int) -> st.SearchStrategy[Aggregate]:
    numbers = kinds.number(depth)
    levels = st.integers(0, 20).map(lambda k: Fraction(k, 20))
    spread = st.sampled_from(["avg", "sum", "var_samp", "var_pop", "stddev_samp", "stddev_pop"])
    counted = (numbers | kinds.text(depth)).filter(lambda x: not isinstance(x, Literal))
    forms = [
        st.just(Aggregate("count")),
        st.builds(lambda x: Aggregate("count", x), counted),
        st.builds(Aggregate, spread, numbers),
        st.builds(Aggregate, st.sampled_from(["avg", "sum"]), kinds.truth(depth)),
        st.builds(lambda x, level: Aggregate("quantile", x, level), numbers, levels),
    ]
    if person is not None:
        forms.append(st.just(Aggregate("count_distinct", Column(person))))
    return st.one_of(forms)


@lru_cache(maxsize=10_000)
def _havings(names: tuple[str, ...], depth: int) -> st.SearchStrategy[Expression]:
    """Conditions on outputs, of those functions that may be used there."""
    number: st.SearchStrategy[Expression] = st.sampled_from([Column(name) for name in names]) | _numbers()
    if depth > 1:
        number = (
            number
            | st.builds(call, st.sampled_from(["+", "-", "*", "/"]), number, number)
            | st.builds(lambda a: call("abs", a), number)
        )
    test = st.builds(call, st.sampled_from(["=", "<>", "<", "<=", ">", ">="]), number, number)
    if depth <= 0:
        return test
    deeper = _havings(names, depth - 1)
    several = st.lists(deeper, min_size=2, max_size=3)
    logic = st.builds(lambda name, items: call(name, *items), st.sampled_from(["and", "or"]), several)
    return test | logic | st.builds(lambda a: call("not", a), deeper)


@lru_cache(maxsize=1000)
def _keys(kinds: _Expressions, depth: int) -> st.SearchStrategy[list[Expression]]:
    key = kinds.text(depth) | kinds.number(depth) | kinds.truth(depth) | kinds.day(depth)
    return st.lists(key.filter(lambda x: not isinstance(x, Literal)), max_size=2, unique_by=shape)


@lru_cache(maxsize=100)
def _lookups(words: Vocabulary) -> st.SearchStrategy[list[Lookup]]:
    return st.lists(st.sampled_from(words.lookups), unique=True, max_size=2) if words.lookups else st.just([])


@st.composite
def queries(draw: st.DrawFn, words: Vocabulary = VISITS, depth: int = 2) -> Query:
    """A question; with a few keys, aggregates, conditions and joins."""
    lookups = tuple(draw(_lookups(words)))
    kinds = _kinds(words, lookups)
    keys = tuple(draw(_keys(kinds, depth)))
    values: list[Expression | Aggregate] = list(keys)
    values += draw(st.lists(_aggregates(kinds, words.person, depth), min_size=1, max_size=3))
    values = draw(st.permutations(values))
    names = [f"{draw(st.sampled_from(['n', 'Out', 'the total']))}{i}" for i in range(len(values))]
    measured = tuple(name for name, value in zip(names, values, strict=True) if isinstance(value, Aggregate))
    ordered = draw(st.lists(st.sampled_from(names), unique=True, max_size=2))
    return Query(
        table=words.table,
        outputs=tuple(Output(name, value) for name, value in zip(names, values, strict=True)),
        where=draw(kinds.truth(depth)) if draw(st.booleans()) else None,
        keys=keys,
        joins=tuple(
            Join(
                lookup.table,
                tuple((Column(ours), theirs) for ours, theirs in lookup.on),
                draw(st.sampled_from(["left", "inner"])),
            )
            for lookup in lookups
        ),
        having=draw(_havings(measured, depth)) if draw(st.booleans()) else None,
        order=tuple(Order(name, draw(st.booleans())) for name in ordered),
        limit=draw(st.none() | st.integers(0, 1000)),
        offset=draw(st.just(0) | st.integers(0, 10)),
    )


def to_sql(query: Query) -> str:
    """The question as SQL; parsing it gives the question back."""
    outputs = ", ".join(f"{_aggregate(output.value)} AS {_name(output.name)}" for output in query.outputs)
    joins = "".join(_join(query.table, join) for join in query.joins)
    sql = f"SELECT {outputs} FROM {_name(query.table)}{joins}"
    if query.where is not None:
        sql += f" WHERE {_sql(query.where)}"
    if query.keys:
        sql += " GROUP BY " + ", ".join(map(_sql, query.keys))
    if query.having is not None:
        sql += f" HAVING {_sql(query.having)}"
    if query.order:
        sql += " ORDER BY " + ", ".join(_name(order.output) + (" DESC" if order.descending else "") for order in query.order)
    if query.limit is not None:
        sql += f" LIMIT {query.limit}"
    return sql + (f" OFFSET {query.offset}" if query.offset else "")


def _join(asked: str, join: Join) -> str:
    pairs = (f"{_name(asked)}.{_name(ours.name)} = {_name(join.table)}.{_name(theirs)}" for ours, theirs in join.on)
    return f" {'LEFT ' if join.kind == 'left' else ''}JOIN {_name(join.table)} ON " + " AND ".join(pairs)


def _name(name: str) -> str:
    plain = re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", name) and name.upper() not in DuckDB.Tokenizer.KEYWORDS
    return name if plain else '"' + name.replace('"', '""') + '"'


def _aggregate(value: Expression | Aggregate) -> str:
    match value:
        case Aggregate("count", None, _):
            return "COUNT(*)"
        case Aggregate("count_distinct", Column(name, _), _):
            return f"COUNT(DISTINCT {_name(name)})"
        case Aggregate("quantile", x, level) if x is not None and level is not None:
            return f"MEDIAN({_sql(x)})" if level == Fraction(1, 2) else f"QUANTILE({_sql(x)}, {_sql(Literal(level))})"
        case Aggregate(function, x, _):
            assert x is not None
            return f"{function.upper()}({_sql(x)})"
        case _:
            return _sql(value)


def _sql(node: Expression) -> str:
    match node:
        case Column(name, table):
            return _name(name) if table is None else f"{_name(table)}.{_name(name)}"
        case Literal(value):
            return _constant(value)
        case Case(branches, otherwise):
            whens = " ".join(f"WHEN {_sql(test)} THEN {_sql(result)}" for test, result in branches)
            return f"CASE {whens} ELSE {_sql(otherwise)} END"
        case Call(function, arguments):
            return _call(function, [_sql(argument) for argument in arguments])
        case _:
            assert_never(node)


def _call(function: str, arguments: list[str]) -> str:
    match function:
        case "neg":
            return f"(- {arguments[0]})"
        case "not":
            return f"(NOT {arguments[0]})"
        case "is_null":
            return f"({arguments[0]} IS NULL)"
        case "in":
            return f"({arguments[0]} IN ({', '.join(arguments[1:])}))"
        case "like":
            return f"({arguments[0]} LIKE {arguments[1]})"
        case "and" | "or":
            return "(" + f" {function.upper()} ".join(arguments) + ")"
        case _ if not function[0].isalpha():
            return f"({arguments[0]} {function} {arguments[1]})"
        case _:
            return f"{function.upper()}({', '.join(arguments)})"


def _constant(value: object) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case int():
            return str(value)
        case Fraction():
            exact = Decimal(value.numerator) / Decimal(value.denominator)
            assert Fraction(exact) == value
            return f"{exact:f}"
        case str():
            return "'" + value.replace("'", "''") + "'"
        case datetime():
            return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
        case date():
            return f"DATE '{value.isoformat()}'"
        case _:
            raise TypeError(type(value).__name__)

"""Random questions of the supported syntax, in the tree's one form; and the converse of the parser, from tree to SQL.

`queries(vocabulary)` draws questions whose expressions fit the kinds of the columns, so that most can be run on a
table declared with these columns (give every kind at least one column); `to_sql` writes one down.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

from hypothesis import strategies as st
from sqlglot.dialects.duckdb import DuckDB

from query.trees import Lookup as Looked
from query.trees import asked, lookups
from sordino.query.front.calls import DATE_PARTS, DATE_UNITS, DIFFERENCE_UNITS, call, negated
from sordino.query.front.shapes import shape
from sordino.query.tree import (
    Aggregate,
    Call,
    Case,
    Column,
    Expression,
    Literal,
    Order,
    Output,
    Query,
)

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

_RELATIONS = ("=", "<>", "<", "<=", ">", ">=")
_MOMENTS = st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31)).map(
    lambda moment: moment.replace(fold=0)
)


@dataclass(frozen=True)
class _Drawer:
    """Draws expressions of each kind; what is drawn may be `depth` operations deep."""

    draw: st.DrawFn
    words: Vocabulary
    lookups: tuple[Lookup, ...] = ()

    def one(self, *options: Any) -> Any:
        return self.draw(st.sampled_from(options))

    def integer(self, least: int, most: int) -> int:
        return self.draw(st.integers(least, most))

    def some(self, make: Callable[[], Expression], least: int, most: int) -> list[Expression]:
        return [make() for _ in range(self.integer(least, most))]

    def expression(self, kind: str, depth: int) -> Expression:
        leaf = depth <= 0 or self.integer(0, 3) == 0
        return getattr(self, f"{kind}_{'leaf' if leaf else 'tree'}")(depth - 1)  # type: ignore[no-any-return]

    def column(self, names: tuple[str, ...], others: Iterable[Column] = ()) -> Expression | None:
        columns = [*map(Column, names), *others]
        return self.one(*columns) if columns and self.integer(0, 3) else None

    def same(self, kind: str, depth: int) -> Expression | None:
        """Now and then, what exists for every kind: CASE, COALESCE, NULLIF."""
        if self.integer(0, 4):
            return None
        x = self.expression(kind, depth)
        match self.integer(0, 2):
            case 0:
                pairs = tuple(
                    (self.expression("truth", depth), self.expression(kind, depth))
                    for _ in range(self.integer(1, 2))
                )
                return Case(pairs, self.one(x, Literal(None)))
            case 1:
                return call("coalesce", x, self.expression(kind, 0))
            case _:
                return Case(((call("=", x, self.expression(kind, 0)), Literal(None)),), x)

    def number(self) -> Literal:
        digits, places = (
            self.one(self.integer(-20, 200), self.integer(-(10**6), 10**6), 10**18, 2**63),
            self.integer(0, 4),
        )
        value = Fraction(digits, 10**places)
        return Literal(value.numerator if value.denominator == 1 else value)

    def number_leaf(self, _: int) -> Expression:
        others = (Column(name, lookup.table) for lookup in self.lookups for name in lookup.numbers)
        return self.column(self.words.numbers, others) or self.number()

    def number_tree(self, depth: int) -> Expression:
        x = self.expression("number", depth)
        match self.one(
            "operator",
            "%",
            "neg",
            "plain",
            "round",
            "bucket",
            "least",
            "length",
            "date",
            "same",
            "clamp",
            "days",
        ):
            case "operator":
                return call(
                    self.one("+", "-", "*", "/", "power"), x, self.expression("number", depth)
                )
            case "clamp":
                return call("clamp", x, Literal(-5), Literal(self.integer(-5, 1000)))
            case "days":
                kind, unit = self.one("day", "moment"), self.one(*DIFFERENCE_UNITS[:4])
                return call(
                    "date_diff",
                    Literal(unit),
                    self.expression(kind, depth),
                    self.expression(kind, depth),
                )
            case "%":
                return call("%", call("floor", x), Literal(self.integer(1, 100)))
            case "neg":
                return negated(x)
            case "plain":
                if self.integer(0, 4) == 0:
                    return call("cast", Literal(self.one("integer", "bigint", "double")), x)
                return call(
                    self.one("abs", "floor", "ceil", "round", "ln", "log10", "exp", "sqrt"), x
                )
            case "round":
                return call("round", x, Literal(self.integer(-2, 3)))
            case "bucket":
                return call(
                    "bucket", x, Literal(self.one(1, 5, 10, Fraction(1, 2), Fraction(1, 100)))
                )
            case "least":
                return call(
                    self.one("least", "greatest"),
                    x,
                    *self.some(lambda: self.expression("number", depth), 0, 2),
                )
            case "length":
                return call("length", self.expression("text", depth))
            case "date":
                kind = self.one("day", "moment")
                parts = DATE_PARTS if kind == "moment" else DATE_PARTS[:8]
                return call("date_part", Literal(self.one(*parts)), self.expression(kind, depth))
            case _:
                return self.same("number", depth) or x

    def text_leaf(self, _: int) -> Expression:
        others = (Column(name, lookup.table) for lookup in self.lookups for name in lookup.texts)
        return self.column(self.words.texts, others) or Literal(self.one(*self.words.words))

    def text_tree(self, depth: int) -> Expression:
        x = self.expression("text", depth)
        match self.integer(0, 5):
            case 0:
                return call(self.one("lower", "upper"), x)
            case 4:
                return call(
                    "||",
                    call("substr", x, Literal(1), Literal(9)),
                    Literal(self.one(*self.words.words)),
                )
            case 5:
                return call(
                    self.one("dayname", "monthname"),
                    self.expression(self.one("day", "moment"), depth),
                )
            case 1:
                return call("substr", x, Literal(self.integer(1, 5)))
            case 2:
                return call("substr", x, Literal(self.integer(1, 5)), Literal(self.integer(0, 5)))
            case _:
                return self.same("text", depth) or x

    def day_leaf(self, _: int) -> Expression:
        return self.column(self.words.days) or Literal(self.draw(st.dates()))

    def day_tree(self, depth: int) -> Expression:
        x = self.expression("day", depth)
        if self.integer(0, 4) == 0:
            return call("cast", Literal("date"), self.expression("moment", depth))
        if self.integer(0, 4) == 0:
            return call(
                "time_bucket",
                Literal(f"{self.integer(1, 99)} {self.one('day', 'week', 'months')}"),
                x,
            )
        return self.same("day", depth) or call("date_trunc", Literal(self.one(*DATE_UNITS[:5])), x)

    def moment_leaf(self, _: int) -> Expression:
        return self.column(self.words.moments) or Literal(self.draw(_MOMENTS))

    def moment_tree(self, depth: int) -> Expression:
        x = self.expression("moment", depth)
        return self.same("moment", depth) or call("date_trunc", Literal(self.one(*DATE_UNITS)), x)

    def truth_leaf(self, _: int) -> Expression:
        return self.column(self.words.truths) or Literal(self.one(True, False))

    def truth_tree(self, depth: int) -> Expression:
        match self.one("compare", "compare", "logic", "not", "in", "null", "like", "same"):
            case "compare":
                kind = self.one("number", "number", "text", "day", "moment")
                return call(
                    self.one(*_RELATIONS),
                    self.expression(kind, depth),
                    self.expression(kind, depth),
                )
            case "logic":
                return call(
                    self.one("and", "or"), *self.some(lambda: self.expression("truth", depth), 2, 3)
                )
            case "not":
                return call("not", self.expression("truth", depth))
            case "in" if self.integer(0, 1):
                return call("in", self.expression("number", depth), *self.some(self.number, 1, 3))
            case "in":
                return call(
                    "in",
                    self.expression("text", depth),
                    *(Literal(self.one(*self.words.words)) for _ in range(2)),
                )
            case "null":
                return call(
                    "is_null", self.expression(self.one("number", "text", "truth", "day"), depth)
                )
            case "like":
                return call(
                    self.one("like", "ilike"),
                    self.expression("text", depth),
                    Literal(self.one("a%", "%b_", "", "it's", "%")),
                )
            case _:
                return self.same("truth", depth) or self.expression("truth", depth)

    def key(self, depth: int) -> Expression:
        """An expression to group by: no constant."""
        kind = self.one("number", "text", "truth", *(["day"] if self.words.days else []))
        found = self.expression(kind, depth)
        if not isinstance(found, Literal):
            return found
        return call("bucket", self.number_leaf(0), Literal(10))

    def aggregate(self, depth: int) -> Aggregate:
        match self.one("rows", "values", "spread", "truths", "quantile", "persons", "pair"):
            case "pair":
                name = self.one(
                    "covar_samp", "covar_pop", "corr", "regr_slope", "regr_intercept", "regr_r2"
                )
                return Aggregate(
                    name, (self.expression("number", depth), self.expression("number", depth))
                )
            case "values":
                return Aggregate("count", (self.key(depth),))
            case "spread":
                name = self.one("avg", "sum", "var_samp", "var_pop", "stddev_samp", "stddev_pop")
                return Aggregate(name, (self.expression("number", depth),))
            case "truths":
                return Aggregate(self.one("avg", "sum"), (self.expression("truth", depth),))
            case "quantile":
                return Aggregate(
                    "quantile",
                    (self.expression("number", depth),),
                    Fraction(self.integer(0, 20), 20),
                )
            case "persons" if self.words.person is not None:
                return Aggregate("count_distinct", (Column(self.words.person),))
            case _:
                return Aggregate("count")

    def having(self, names: list[str], depth: int) -> Expression:
        """A condition on outputs, of those functions that may be used there."""
        if depth <= 0 or self.integer(0, 1):
            return call(self.one(*_RELATIONS), self.output(names, depth), self.output(names, depth))
        if self.integer(0, 2) == 0:
            return call("not", self.having(names, depth - 1))
        return call(self.one("and", "or"), *self.some(lambda: self.having(names, depth - 1), 2, 3))

    def output(self, names: list[str], depth: int) -> Expression:
        if depth <= 0 or self.integer(0, 2):
            return Column(self.one(*names)) if self.integer(0, 2) else self.number()
        x = self.output(names, depth - 1)
        if self.integer(0, 3) == 0:
            return call("abs", x)
        return call(self.one("+", "-", "*", "/"), x, self.output(names, depth - 1))


@st.composite
def expressions(draw: st.DrawFn, words: Vocabulary, kind: str, depth: int = 3) -> Expression:
    """Expressions of a kind: number, text, truth, day or moment."""
    return _Drawer(draw, words).expression(kind, depth)


def conditions(words: Vocabulary, depth: int = 3) -> st.SearchStrategy[Expression]:
    """Conditions on rows."""
    return expressions(words, "truth", depth)


@st.composite
def queries(draw: st.DrawFn, words: Vocabulary = VISITS, depth: int = 2) -> Query:
    """A question; with a few keys, aggregates, conditions and joins."""
    chosen = tuple(lookup for lookup in words.lookups if draw(st.integers(0, 2)) == 0)
    drawer = _Drawer(draw, words, chosen)
    found = {shape(key): key for key in drawer.some(lambda: drawer.key(depth), 0, 2)}
    values: list[Expression | Aggregate] = list(found.values())
    values += [drawer.aggregate(depth) for _ in range(draw(st.integers(1, 3)))]
    values = draw(st.permutations(values))
    names = [f"{drawer.one('n', 'Out', 'the total')}{i}" for i in range(len(values))]
    measured = [
        name for name, value in zip(names, values, strict=True) if isinstance(value, Aggregate)
    ]
    ordered = draw(st.lists(st.sampled_from(names), unique=True, max_size=2))
    return asked(
        words.table,
        outputs=tuple(Output(name, value) for name, value in zip(names, values, strict=True)),
        where=drawer.expression("truth", depth) if draw(st.booleans()) else None,
        keys=tuple(found.values()),
        joins=tuple(
            Looked(
                lookup.table,
                tuple((Column(ours), theirs) for ours, theirs in lookup.on),
                drawer.one("left", "inner"),
            )
            for lookup in chosen
        ),
        having=drawer.having(measured, depth) if draw(st.booleans()) else None,
        order=tuple(Order(name, draw(st.booleans())) for name in ordered),
        limit=draw(st.none() | st.integers(0, 1000)),
        offset=draw(st.integers(0, 10)),
    )


def to_sql(query: Query) -> str:
    """The question as SQL; parsing it gives the question back."""
    outputs = ", ".join(
        f"{_aggregate(output.value)} AS {_name(output.name)}" for output in query.outputs
    )
    table, joined = lookups(query)
    joins = "".join(_join(table, join) for join in joined)
    sql = f"SELECT {outputs} FROM {_name(table)}{joins}"
    if query.where is not None:
        sql += f" WHERE {_sql(query.where)}"
    if query.keys:
        sql += " GROUP BY " + ", ".join(map(_sql, query.keys))
    if query.having is not None:
        sql += f" HAVING {_sql(query.having)}"
    if query.order:
        sql += " ORDER BY " + ", ".join(
            _name(order.output) + (" DESC" if order.descending else "") for order in query.order
        )
    if query.limit is not None:
        sql += f" LIMIT {query.limit}"
    return sql + (f" OFFSET {query.offset}" if query.offset else "")


def _join(asked: str, join: Looked) -> str:
    pairs = (
        f"{_name(asked)}.{_name(ours.name)} = {_name(join.table)}.{_name(theirs)}"
        for ours, theirs in join.on
    )
    return f" {'LEFT ' if join.kind == 'left' else ''}JOIN {_name(join.table)} ON " + " AND ".join(
        pairs
    )


def _name(name: str) -> str:
    plain = (
        re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", name)
        and name.upper() not in DuckDB.Tokenizer.KEYWORDS
    )
    return name if plain else '"' + name.replace('"', '""') + '"'


def _aggregate(value: Expression | Aggregate) -> str:
    match value:
        case Aggregate("count", (), _):
            return "COUNT(*)"
        case Aggregate("count_distinct", (Column(name, _),), _):
            return f"COUNT(DISTINCT {_name(name)})"
        case Aggregate("quantile", (x,), level) if level is not None:
            return (
                f"MEDIAN({_sql(x)})"
                if level == Fraction(1, 2)
                else f"QUANTILE({_sql(x)}, {_sql(Literal(level))})"
            )
        case Aggregate(function, (x,), _):
            assert x is not None
            return f"{function.upper()}({_sql(x)})"
        case Aggregate(function, (y, x), None):
            return f"{function.upper()}({_sql(y)}, {_sql(x)})"
        case Aggregate():
            raise AssertionError(value)
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
            raise AssertionError(node)


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
        case "like" | "ilike":
            return f"({arguments[0]} {function.upper()} {arguments[1]})"
        case "cast":
            return f"CAST({arguments[1]} AS {arguments[0][1:-1]})"
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

"""Declared columns full of nasty cells, their rows in DuckDB, and random well-typed expressions over them."""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Container, Sequence
from datetime import date, datetime
from fractions import Fraction
from functools import cache
from typing import Any

import duckdb
import pyarrow as pa
from sqlglot import exp

from query.reference import Cell, clean, real
from sordino.engines.duckdb.dialect import write
from sordino.errors import InvalidInput
from sordino.query import dataset, tree
from sordino.query.meaning.domains import domain, domain_size
from sordino.query.meaning.expressions import typed
from sordino.query.meaning.reading import read
from sordino.query.tree import Call, Case, Column, Expression, Literal
from sordino.query.typed import Typed
from sordino.query.types import Day, Moment, Nothing, Number, Text, Truth

BIG = 2**62 - 1
ROWS = 60
WARDS = ("A", "B", "long ward", "")


def number(
    lower: Any = None, upper: Any = None, step: Any = None, values: tuple[int, ...] | None = None
) -> Number:
    lower, upper, step = (None if end is None else Fraction(end) for end in (lower, upper, step))
    return Number(lower, upper, step, values)


COLUMNS: dict[str, dataset.Column] = {
    "age": dataset.Column("int", number(0, 110, 1)),
    "small": dataset.Column("int", number(-7, 5, 1)),
    "big": dataset.Column("int", number(-BIG, BIG, 1)),
    "any_int": dataset.Column("int", number(step=1)),
    "code": dataset.Column("category", number(-3, 40, 1, (40, -3, 7))),
    "cost": dataset.Column("float", number(0, 5000, "0.01")),
    "signed": dataset.Column("float", number("-2.5", 1000, "0.5")),
    "rounded": dataset.Column("float", number(-10, 10, 1)),
    "wide": dataset.Column("float", number(-(10**300), 10**300)),
    "any_float": dataset.Column("float", number()),
    "flag": dataset.Column("bool", Truth()),
    "ward": dataset.Column("category", Text(WARDS, 9)),
    "city": dataset.Column("text", Text()),
    "name": dataset.Column("text", Text(None, 12)),
    "day": dataset.Column("date", Day(date(2019, 2, 3), date(2021, 7, 9))),
    "any_day": dataset.Column("date", Day()),
    "at": dataset.Column("datetime", Moment(datetime(2020, 1, 5, 7, 30), datetime(2020, 3, 1))),
    "any_at": dataset.Column("datetime", Moment()),
}
MODERATE = ("age", "small", "code", "cost", "signed", "rounded", "flag", "ward", "day", "at")
"""Columns on which floats and whole numbers cannot differ by more than an operation's own rounding."""

_WHOLE = [
    0,
    1,
    -1,
    5,
    17,
    40,
    -3,
    7,
    110,
    111,
    -8,
    2**31,
    -(2**31),
    2**53 + 1,
    BIG,
    -BIG,
    2**62,
    2**63 - 1,
    -(2**63),
]
_REAL = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 0.1, 0.3, 0.57, 5000.0, 5000.01, 1e-320, 5e-324, -5e-324, 1e300,
         -1e300, 1.7976931348623157e308, -1.7976931348623157e308, math.inf, -math.inf, math.nan, 2.0**53, 2.0**63,
         -(2.0**63), 0.49999999999999994, 9.999999999999999, 99.5]  # fmt: skip
_TEXTS = [*WARDS, "a", "b", "A ", "x" * 100_000, "Zürich", "ß", "İstanbul", "e\u0301", "🤦🏼‍♂️", "100%", "_", "a_b", "a\nb",
          "O'Hara", '"', "2020-01-01", "NaN", "\\", "x\x00y", "ẞŉ", "\u200b"]  # fmt: skip
_DAYS = [date(1, 1, 1), date(9999, 12, 31), date(2020, 2, 29), date(2021, 1, 3), date(2020, 12, 31), date(2019, 2, 3),
         date(2021, 7, 9), date(1969, 12, 31), date(1582, 10, 10), date(2000, 1, 1)]  # fmt: skip
_MOMENTS = [datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999), datetime(2020, 1, 5, 7, 30),
            datetime(2020, 2, 29, 23, 59, 59), datetime(2020, 1, 31, 12), datetime(1969, 12, 31, 23, 30),
            datetime(2020, 3, 1)]  # fmt: skip


def raw_cell(rng: random.Random, kind: str, type_: Any) -> Any:
    if rng.random() < 0.12:
        return None
    match kind:
        case "int":
            return rng.choice(_WHOLE) if rng.random() < 0.4 else rng.randint(-20, 130)
        case "float":
            return (
                rng.choice(_REAL)
                if rng.random() < 0.4
                else rng.choice([rng.uniform(-20, 1100), rng.randint(-300, 99999) / 100])
            )
        case "bool":
            return rng.random() < 0.5
        case "category":
            return rng.choice(
                [40, -3, 7, 3, 41] if isinstance(type_, Number) else [*WARDS, "C", "a", "Ä"]
            )
        case "text":
            return rng.choice(_TEXTS)
        case "date":
            return (
                rng.choice(_DAYS)
                if rng.random() < 0.5
                else date.fromordinal(737000 + rng.randint(-500, 900))
            )
        case _:
            return (
                rng.choice(_MOMENTS)
                if rng.random() < 0.5
                else datetime(2020, rng.randint(1, 12), 3, rng.randint(0, 23), 59)
            )


_ARROW = {"int": pa.int64(), "float": pa.float64(), "bool": pa.bool_(), "text": pa.string(), "date": pa.date32(),
          "datetime": pa.timestamp("us")}  # fmt: skip


def raw_rows(count: int, seed: int) -> list[dict[str, Any]]:
    rng = random.Random(seed)
    return [
        {name: raw_cell(rng, c.kind, c.type) for name, c in COLUMNS.items()} for _ in range(count)
    ]


class Table:
    """Rows in DuckDB and, cleaned, in Python."""

    def __init__(self, rows: Sequence[dict[str, Any]]) -> None:
        fields: dict[str, Any] = {}
        for name, column in COLUMNS.items():
            whole = isinstance(column.type, Number)
            kind = _ARROW[
                ("int" if whole else "text") if column.kind == "category" else column.kind
            ]
            fields[name] = pa.array([row[name] for row in rows], type=kind)
        fields["id"] = pa.array(range(len(rows)), type=pa.int64())
        self.connection = duckdb.connect()
        self.connection.register("arrow_rows", pa.table(fields))
        self.connection.execute("CREATE TABLE rows AS SELECT * FROM arrow_rows")
        self.rows = [{name: clean(c, row[name]) for name, c in COLUMNS.items()} for row in rows]

    def run(self, expressions: Sequence[exp.Expression]) -> list[tuple[Cell, ...]]:
        """One column of results for each expression, all rows in one query."""
        listed = ", ".join(f"{write(e)} AS c{i}" for i, e in enumerate(expressions))
        return list(
            zip(
                *self.connection.execute(f"SELECT {listed} FROM rows ORDER BY id").fetchall(),
                strict=True,
            )
        )


@cache
def table() -> Table:
    return Table(raw_rows(ROWS, seed=1))


@cache
def column(named: tree.Column) -> Typed:
    return read(COLUMNS[named.name], exp.column(named.name, quoted=True))


def bind(expression: Expression) -> Typed:
    # by text, since Literal(True) equals Literal(1)
    found = repr(expression)
    if found not in _BOUND:
        _BOUND[found] = typed(expression, column)
    return _BOUND[found]


_BOUND: dict[str, Typed] = {}


def same(got: Cell, wanted: Cell, tolerance: float = 0.0) -> bool:
    """Equal, or for numbers within a relative tolerance."""
    if (
        got is None
        or wanted is None
        or not isinstance(wanted, int | float)
        or isinstance(wanted, bool)
    ):
        return got == wanted and isinstance(got, bool) == isinstance(wanted, bool)
    return got == wanted or math.isclose(got, real(wanted), rel_tol=tolerance, abs_tol=0.0)


class Everything:
    def __contains__(self, value: object) -> bool:
        return True


_LISTED: dict[int, tuple[Typed, Container[object]]] = {}


def _listed(found: Typed) -> Container[object]:
    """The domain as a set, or everything where it is unknown or long."""
    if id(found) not in _LISTED:
        size, known = domain_size(found), domain(found)
        _LISTED[id(found)] = (
            found,
            Everything() if size is None or known is None or size > 5000 else set(known),
        )
    return _LISTED[id(found)][1]


def belongs(value: Cell, found: Typed) -> bool:
    """The output-domain law: a result is one that the type promised (floats: up to their rounding)."""
    kind = found.type
    if isinstance(kind, Nothing):
        return value is None
    if value is None:
        return kind.nullable
    if not isinstance(value, float) and value not in _listed(found):
        return False
    match kind:
        case Number():
            if (
                isinstance(value, bool)
                or not isinstance(value, int if kind.integral else float)
                or math.isnan(value)
            ):
                return False
            ends = [e for e in (kind.lower, kind.upper) if e is not None]
            # a double may also round over the edge of a step
            slack = (
                0
                if kind.integral
                else Fraction(1, 10**9) * max([Fraction(1), *map(abs, ends)]) + (kind.step or 0)
            )
            if isinstance(value, float) and math.isinf(value):
                # doubles end before the bounds do
                return (
                    kind.lower is None
                    or kind.upper is None
                    or max(map(abs, ends)) > sys.float_info.max
                )
            above = kind.lower is None or value >= kind.lower - slack
            return above and (kind.upper is None or value <= kind.upper + slack)
        case Truth():
            return isinstance(value, bool)
        case Text():
            return isinstance(value, str) and (kind.longest is None or len(value) <= kind.longest)
        case Day():
            return (
                isinstance(value, date)
                and not isinstance(value, datetime)
                and kind.lower <= value <= kind.upper
            )
        case Moment():
            return isinstance(value, datetime) and kind.lower <= value <= kind.upper


class Expressions:
    """Random well-typed expressions."""

    def __init__(self, seed: int, columns: Sequence[str] = tuple(COLUMNS)) -> None:
        self.rng = random.Random(seed)
        self.columns = columns

    def one(self, kind: str, depth: int) -> Expression:
        """An expression of a kind: number, truth, text, day or moment; tried again if its types are refused."""
        while True:
            expression = self._try(kind, depth)
            try:
                bind(expression)
            except InvalidInput:
                continue
            return expression

    def _leaf(self, kind: str) -> Expression:
        types = {"number": Number, "truth": Truth, "text": Text, "day": Day, "moment": Moment}
        names = [n for n in self.columns if isinstance(COLUMNS[n].type, types[kind])]
        if names and self.rng.random() < 0.7:
            return Column(self.rng.choice(names))
        literals: dict[str, list[Any]] = {
            "number": [0, 1, -2, 7, 100, Fraction(1, 2), Fraction(1, 10), Fraction(-7, 2), None],
            "truth": [True, False, None],
            "text": ["A", "B", "x", "", "O'Hara", None],
            "day": [date(2020, 2, 29), date(2021, 1, 3), None],
            "moment": [datetime(2020, 1, 31, 12), None],
        }
        return Literal(self.rng.choice(literals[kind]))

    def _try(self, kind: str, depth: int) -> Expression:
        if depth == 0 or self.rng.random() < 0.1:
            return self._leaf(kind)
        r = self.rng

        def sub(k: str) -> Expression:
            return self._try(k, depth - 1)

        if r.random() < 0.15:
            branches = tuple((sub("truth"), sub(kind)) for _ in range(r.randint(1, 2)))
            return Case(branches, sub(kind))
        if r.random() < 0.1:
            return Call("coalesce", tuple(sub(kind) for _ in range(r.randint(1, 3))))
        match kind:
            case "number":
                return self._number(sub)
            case "truth":
                return self._truth(sub)
            case "text":
                name = r.choice(["lower", "upper", "substr", "||", "dayname", "monthname"])
                if name == "||":
                    return Call(
                        name,
                        (Call("substr", (sub("text"), Literal(1), Literal(9))), Column("ward")),
                    )
                if name in ("dayname", "monthname"):
                    return Call(name, (sub(r.choice(["day", "moment"])),))
                extra = (
                    (Literal(r.randint(1, 3)), Literal(r.randint(0, 4)))[: r.randint(1, 2)]
                    if name == "substr"
                    else ()
                )
                return Call(name, (sub("text"), *extra))
            case _:
                units = ["year", "quarter", "month", "week", "day"] + (
                    ["hour", "minute"] if kind == "moment" else []
                )
                name = r.choice(["date_trunc", "time_bucket", "cast", "clamp"])
                if name == "cast":
                    other = "moment" if kind == "day" else "day"
                    return Call(
                        name, (Literal("date" if kind == "day" else "timestamp"), sub(other))
                    )
                if name == "clamp":
                    return Call(name, (sub(kind), Literal("2020-01-31"), Literal("2021-02-03")))
                unit = r.choice(units)
                return Call(
                    name,
                    (
                        Literal(
                            unit if name == "date_trunc" else f"{r.choice([2, 7, 500])} {unit}s"
                        ),
                        sub(kind),
                    ),
                )

    def _number(self, sub: Any) -> Expression:
        r = self.rng
        name = r.choice(["+", "-", "*", "/", "%", "neg", "abs", "round", "floor", "ceil", "least", "greatest", "bucket",
                         "length", "date_part", "sqrt", "ln", "log10", "exp", "power", "clamp", "cast",
                         "date_diff"])  # fmt: skip
        if name in ("+", "-", "*", "/"):
            return Call(name, (sub("number"), sub("number")))
        if name == "%":
            return Call(name, (sub("number"), Literal(r.choice([1, 2, 7, 10**6]))))
        if name == "round":
            return Call(
                name, (sub("number"), *(() if r.random() < 0.4 else (Literal(r.randint(-3, 4)),)))
            )
        if name == "bucket":
            return Call(
                name, (sub("number"), Literal(Fraction(r.choice(["1", "10", "25", "1/2", "1/10"]))))
            )
        if name in ("least", "greatest"):
            return Call(name, tuple(sub("number") for _ in range(r.randint(1, 3))))
        if name == "length":
            return Call(name, (sub("text"),))
        if name == "power":
            return Call(name, (sub("number"), Literal(Fraction(r.choice(["2", "3", "-1", "1/2"])))))
        if name == "clamp":
            return Call(
                name,
                (
                    sub("number"),
                    Literal(r.choice([-5, 0])),
                    Literal(Fraction(r.choice(["1/2", "10", "1000"]))),
                ),
            )
        if name == "cast":
            kind = r.choice(["integer", "bigint", "double"])
            return Call(name, (Literal(kind), sub(r.choice(["number", "truth"]))))
        if name == "date_diff":
            return Call(
                name,
                (
                    Literal(r.choice(["year", "month", "day"])),
                    sub("day"),
                    sub(r.choice(["day", "moment"])),
                ),
            )
        if name == "date_part":
            clock = r.random() < 0.4
            parts = ["year", "quarter", "month", "week", "day", "dow", "isodow", "doy"] + (
                ["hour", "minute"] if clock else []
            )
            return Call(name, (Literal(r.choice(parts)), sub("moment" if clock else "day")))
        return Call(name, (sub("number"),))

    def _truth(self, sub: Any) -> Expression:
        r = self.rng
        name = r.choice(
            ["compare", "compare", "and", "or", "not", "in", "is_null", "like", "ilike"]
        )
        if name == "compare":
            kind = r.choice(["number", "number", "text", "day", "moment", "truth"])
            return Call(r.choice(["=", "<>", "<", "<=", ">", ">="]), (sub(kind), sub(kind)))
        if name in ("and", "or"):
            return Call(name, tuple(sub("truth") for _ in range(r.randint(2, 3))))
        if name == "not":
            return Call(name, (sub("truth"),))
        if name == "in":
            listed = r.choice(
                [
                    ("number", (0, 5, Fraction(1, 2), None)),
                    ("number", (7, 40)),
                    ("text", ("A", "x", "")),
                ]
            )
            return Call(name, (sub(listed[0]), *(Literal(v) for v in listed[1])))
        if name == "is_null":
            return Call(name, (sub(r.choice(["number", "text", "day", "truth"])),))
        return Call(
            name, (sub("text"), Literal(r.choice(["A%", "%", "_", "", "%o_g%", "100%", "%'%"])))
        )

"""Random declarations, data and questions for whole-line tests, made to hurt: extremes, NULLs, heavy persons, empty
tables.

Every world has the same column names, so that questions are easy to build: x (int), y (float), b (bool), c (category),
k (whole category), t (text), d (date), m (datetime), `id` (the person, where there is one), and a public table `wards`
keyed by `ward`.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias

import pyarrow as pa

from query.trees import Lookup, asked
from sordino.query.bounds import Bounds
from sordino.query.dataset import Dataset
from sordino.query.tree import Aggregate, Call, Case, Column, Expression, Literal, Output, Query

Row: TypeAlias = Mapping[str, Any]
Rows: TypeAlias = Sequence[Row]

WARDS = ("A", "B", "C")
TEXTS = ("oslo", "Oslo", "rome", "", "a%b", "Zürich", "x\x00y", "🤦🏼‍♂️", "O'Hara", "w" * 300)
CODES = (1, 2, 7)
BUDGET = {"epsilon": 10**6, "delta": 0.1}

_INTS = [(0, 1), (0, 10), (-5, 5), (-9, -2), (3, 9), (0, 110), (-3, 1000), (-(2**40), 2**40), (-(2**52), 2**52),
         (2**61, 2**61 + 100)]  # fmt: skip
_FLOATS = [
    (0, 1, None),
    (-2.5, 1000, 0.5),
    (0, 5000, 0.01),
    (-1e6, 1e6, None),
    (-10, 10, 1),
    (3, 4, None),
    (-1e150, 1e150, None),
]
_DAYS = [
    (date(2020, 1, 1), date(2020, 3, 10)),
    (date(2019, 2, 3), date(2021, 7, 9)),
    (date(2020, 2, 29), date(2020, 2, 29)),
]
_FAR = (date(1, 1, 1), date(9999, 12, 31), date(1969, 12, 31))
_WHOLE = (0, 1, -1, 2**31, 2**53 + 1, 2**62, 2**63 - 1, -(2**63))
_REAL = (
    0.0,
    -0.0,
    0.5,
    -0.5,
    0.1,
    5e-324,
    1e308,
    -1e308,
    math.inf,
    -math.inf,
    math.nan,
    2.0**63,
    0.49999999999999994,
)


@dataclass(frozen=True)
class World:
    """What the owner declares; `types` are the Arrow types of the source, `lookup` the rows of the public table."""

    person: bool
    neighbors: str
    limits: Bounds
    columns: Mapping[str, Mapping[str, Any]]
    types: Mapping[str, pa.DataType]
    lookup: Rows

    def table(self, rows: Rows) -> pa.Table:
        """Rows as an Arrow table."""
        return pa.table(
            {name: pa.array([row[name] for row in rows], kind) for name, kind in self.types.items()}
        )

    def dataset(self, table: pa.Table) -> Dataset:
        """The declaration of a source."""
        private = {
            "source": table,
            "unit": "id" if self.person else "row",
            "neighbors": self.neighbors,
            "columns": self.columns,
        }
        if self.person:
            private |= self.limits.given
        types = {"ward": pa.string(), "floor": pa.int64(), "wing": pa.string()}
        lookup = pa.table(
            {
                name: pa.array([row[name] for row in self.lookup], kind)
                for name, kind in types.items()
            }
        )
        columns = {
            "ward": {"type": "category", "values": list(WARDS)},
            "floor": {"type": "int", "min": 0, "max": 12},
            "wing": {"type": "category", "values": ["north", "south"]},
        }
        public = {"source": lookup, "public": True, "key": ["ward"], "columns": columns}
        return Dataset(tables={"data": private, "wards": public}, budget=BUDGET)

    def bounds(self, name: str) -> tuple[Any, Any] | None:
        """The declared limits of a column."""
        column = self.columns[name]
        return (column["min"], column["max"]) if "min" in column else None


_ID_TYPES = {
    "int": pa.int64(),
    "text": pa.string(),
    "decimal": pa.decimal128(38, 2),
    "bytes": pa.binary(),
}
_IDS: dict[str, list[Any]] = {
    "int": [0, 1, -1, 2**63 - 1, -(2**63), 7, 8, 9],
    "text": ["", "ann", "Ann", "ann ", "bo", "NULL", "Zoë", "q" * 200],
    "decimal": [Decimal(i) / 4 for i in range(-3, 4)] + [Decimal("9" * 36 + ".99")],
    "bytes": [b"", b"\x00", b"\xff", b"a", b"A", b"a\x00", b"'", b"q" * 200],
}


def random_world(rng: random.Random) -> World:
    """A declaration."""
    x = rng.choice([*_INTS, None]) if rng.random() < 0.9 else None
    y = rng.choice([*_FLOATS, None])
    d = rng.choice([*_DAYS, None])
    columns: dict[str, dict[str, Any]] = {
        "x": {"type": "int"} | ({} if x is None else {"min": x[0], "max": x[1]}),
        "y": {"type": "float"}
        | ({} if y is None else {"min": y[0], "max": y[1]} | ({"step": y[2]} if y[2] else {})),
        "b": {"type": "bool"},
        "c": {"type": "category", "values": list(WARDS)},
        "k": {"type": "category", "values": list(CODES)},
        "t": {"type": "text"}
        | ({"max_length": rng.choice([1, 3, 80])} if rng.random() < 0.5 else {}),
        "d": {"type": "date"} | ({} if d is None else {"min": d[0], "max": d[1]}),
        "m": {"type": "datetime"}
        | ({} if d is None else {"min": _moment(d[0]), "max": _moment(d[1], 23, 30)}),
    }
    for column in columns.values():
        if rng.random() < 0.3:
            column["nullable"] = False
    types: dict[str, pa.DataType] = {
        "x": rng.choice([pa.int64(), pa.int64(), pa.uint64(), pa.int16()]),
        "y": rng.choice([pa.float64(), pa.float64(), pa.float32()]),
        "b": pa.bool_(),
        "c": rng.choice([pa.string(), pa.dictionary(pa.int8(), pa.string())]),
        "k": rng.choice([pa.int64(), pa.int8()]),
        "t": rng.choice([pa.string(), pa.large_string()]),
        "d": pa.date32(),
        "m": rng.choice([pa.timestamp("us"), pa.timestamp("s")]),
    }
    person = rng.random() < 0.8
    if person:
        types["id"] = _ID_TYPES[rng.choice(list(_ID_TYPES))]
    lookup = [
        {
            "ward": rng.choice([*WARDS, None, "D"]),
            "floor": rng.choice([0, 3, 12, 99, None]),
            "wing": rng.choice(["north", "south", "?"]),
        }
        for _ in range(rng.randint(0, 6))
    ]
    relation = rng.choice(["add_remove", "replace"])
    return World(person, relation, random_bounds(rng), columns, types, lookup)


def random_bounds(rng: random.Random) -> Bounds:
    """One of the seven combinations of three bounds; those under which little can be asked are rare."""
    rows, per_group, groups = rng.randint(1, 9), rng.randint(1, 5), rng.randint(1, 4)
    kinds = [
        "rows",
        "rows groups",
        "rows per_group",
        "per_group groups",
        "rows per_group groups",
        "per_group",
        "groups",
    ]
    kind = rng.choices(kinds, [4, 4, 4, 4, 6, 2, 1])[0].split()
    drawn = {"rows": rows, "per_group": per_group, "groups": groups}
    return Bounds(**{name: bound for name, bound in drawn.items() if name in kind})


def _moment(day: date, hour: int = 0, minute: int = 0) -> datetime:
    return datetime(day.year, day.month, day.day, hour, minute)


def _fits(kind: pa.DataType, value: int) -> bool:
    low, high = {"int16": (-(2**15), 2**15 - 1), "uint64": (0, 2**64 - 1), "int8": (-128, 127)}.get(
        str(kind), (-(2**63), 2**63 - 1)
    )
    return bool(low <= value <= high)


def random_cell(rng: random.Random, world: World, name: str, missing: float = 0.12) -> Any:
    """A raw cell of a column: within its limits, at them, or far outside."""
    if rng.random() < missing:
        return None
    limits, kind = world.bounds(name), world.types[name]
    match name:
        case "x":
            low, high = limits or (-100, 100)
            near = [
                low,
                high,
                low,
                high,
                low - 1,
                high + 1,
                rng.randint(low, high),
                rng.randint(low, high),
            ]
            fitting = [v for v in (*near, rng.choice(_WHOLE)) if _fits(kind, v)]
            return rng.choice(fitting) if fitting else 0
        case "y":
            low, high = limits or (-100.0, 100.0)
            return float(
                rng.choice(
                    [
                        low,
                        high,
                        low,
                        high,
                        rng.uniform(low, high),
                        rng.uniform(low, high),
                        rng.choice(_REAL),
                    ]
                )
            )
        case "b":
            return rng.random() < 0.5
        case "c":
            return rng.choice([*WARDS, *WARDS, "D", ""])
        case "k":
            return rng.choice([*CODES, *CODES, 3])
        case "t":
            return rng.choice(TEXTS[:4]) if rng.random() < 0.7 else rng.choice(TEXTS)
        case _:
            first, last = limits or (date(2020, 1, 1), date(2020, 12, 31))
            if rng.random() < 0.2:
                day = rng.choice(_FAR)
            else:
                day = date(first.year, first.month, first.day) + timedelta(
                    rng.randint(0, (last - first).days)
                )
            return day if name == "d" else _moment(day, rng.randint(0, 23), rng.randint(0, 59))


def extreme_row(rng: random.Random, world: World, end: int) -> dict[str, Any]:
    """A row whose numbers all lie at one end of their limits (0 lower, 1 upper); keys as they come, never missing."""
    row = {name: random_cell(rng, world, name, 0.0) for name in world.columns}
    for name in ("x", "y"):
        limits = world.bounds(name)
        if limits is not None and (name == "y" or _fits(world.types[name], limits[end])):
            row[name] = limits[end]
    row["b"] = bool(end)
    return row


def own_rows(rng: random.Random, world: World) -> list[dict[str, Any]]:
    """The rows of one person, without the id: few and random, or many, in many groups, at the ends of the limits."""
    if not world.person:
        return [
            extreme_row(rng, world, rng.randint(0, 1))
            if rng.random() < 0.5
            else _random_row(rng, world)
        ]
    style = rng.random()
    if style < 0.4:
        return [_random_row(rng, world) for _ in range(rng.randint(1, 4))]
    end, count = rng.randint(0, 1), rng.choice([1, 2, 5, 12, 30])
    if style < 0.7:  # all in one group
        row = extreme_row(rng, world, end)
        return [dict(row) for _ in range(count)]
    return [extreme_row(rng, world, end) for _ in range(count)]


def _random_row(rng: random.Random, world: World) -> dict[str, Any]:
    return {name: random_cell(rng, world, name) for name in world.columns}


def _named(rows: Rows, person: Any) -> list[dict[str, Any]]:
    return [dict(row, id=person) for row in rows]


def _ids(world: World) -> list[Any]:
    kind = world.types["id"]
    return next(_IDS[name] for name, known in _ID_TYPES.items() if known == kind)


def random_rows(rng: random.Random, world: World) -> list[dict[str, Any]]:
    """Data: some persons, some rows of nobody, shuffled; sometimes nothing at all."""
    if rng.random() < 0.04:
        return []
    rows: list[dict[str, Any]] = []
    if not world.person:
        rows = [row for _ in range(rng.randint(1, 25)) for row in own_rows(rng, world)]
    else:
        # the last id is kept for newcomers
        for person in rng.sample(_ids(world)[:-1], rng.randint(1, 6)):
            rows += _named(own_rows(rng, world), person)
        rows += _named([_random_row(rng, world) for _ in range(rng.randint(0, 3))], None)
    rng.shuffle(rows)
    return rows


def neighbor(rng: random.Random, world: World, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A neighbouring table: one person removed or added,
    or one person's rows replaced by others of the same or a new id.
    """
    new = own_rows(rng, world)
    if not world.person:
        i = rng.randrange(len(rows)) if rows else None
        if world.neighbors == "replace":
            return rows if i is None else [*rows[:i], new[0], *rows[i + 1 :]]
        return [*rows, new[0]] if i is None or rng.random() < 0.3 else [*rows[:i], *rows[i + 1 :]]
    persons = sorted({repr(row["id"]) for row in rows if row["id"] is not None})
    newcomer = _ids(world)[-1]
    if world.neighbors == "add_remove" and (not persons or rng.random() < 0.3):
        return [*rows, *_named(new, newcomer)]
    if not persons:
        return rows
    gone = rng.choice(persons)  # by repr, since NaN is not equal to itself
    rest = [row for row in rows if repr(row["id"]) != gone]
    if world.neighbors == "add_remove":
        return rest
    known = next(row["id"] for row in rows if repr(row["id"]) == gone)
    return [*_named(new, rng.choice([known, newcomer])), *rest]


@dataclass(frozen=True)
class Questions:
    """A generator of questions about one world; not all of them are admitted."""

    rng: random.Random
    world: World

    def one(self) -> Query:
        """A question: one to three aggregates, up to two keys, perhaps a condition and a lookup."""
        joined = self.rng.random() < 0.2
        keys = tuple(
            dict.fromkeys(self.key(joined) for _ in range(self.rng.choice([0, 0, 1, 1, 2])))
        )
        aggregates = list(
            dict.fromkeys(self.aggregate(joined) for _ in range(self.rng.choice([1, 1, 2, 3])))
        )
        where = self.truth(2, joined) if self.rng.random() < 0.4 else None
        joins = (
            (Lookup("wards", ((Column("c"), "ward"),), self.rng.choice(["left", "inner"])),)
            if joined
            else ()
        )
        values: list[Expression | Aggregate] = [*keys, *aggregates]
        return asked(
            "data", tuple(Output(f"o{i}", v) for i, v in enumerate(values)), where, keys, joins
        )

    def aggregate(self, joined: bool) -> Aggregate:
        """One aggregate."""
        rng = self.rng
        name = rng.choice(
            [
                "count",
                "count",
                "count_of",
                "persons",
                "sum",
                "sum",
                "sum_if",
                "avg",
                "avg",
                "avg_if",
                "var_samp",
                "var_pop",
                "stddev_samp",
                "stddev_pop",
                "quantile",
                "covar_samp",
                "corr",
                "regr_slope",
            ]
        )
        match name:
            case "count":
                return Aggregate("count")
            case "count_of":
                return Aggregate("count", (Column(rng.choice(list(self.world.columns))),))
            case "persons":
                return (
                    Aggregate("count_distinct", (Column("id"),))
                    if self.world.person
                    else Aggregate("count")
                )
            case "sum_if" | "avg_if":
                return Aggregate(name[:3], (self.truth(1, joined),))
            case "quantile":
                return Aggregate(
                    name,
                    (self.bounded(joined),),
                    rng.choice([Fraction(0), Fraction(1, 2), Fraction(9, 10), Fraction(1)]),
                )
            case "covar_samp" | "corr" | "regr_slope":
                return Aggregate(name, (self.bounded(joined), self.bounded(joined)))
            case _:
                return Aggregate(name, (self.bounded(joined),))

    def key(self, joined: bool) -> Expression:
        """A key with few values, or text whose values are private."""
        rng = self.rng
        choices: list[Expression] = [
            Column("c"),
            Column("c"),
            Column("b"),
            Column("k"),
            Column("t"),
            Call("lower", (Column("t"),)),
            self.truth(1, joined),
            Call("coalesce", (Column("c"), Literal("other"))),
            Call("length", (Column("c"),)),
            Call("is_null", (Column("y"),)),
            Call("date_part", (Literal("dow"), Column("d"))),
            Call("date_part", (Literal("month"), Column("m"))),
            Call("dayname", (Column("d"),)),
            Call("monthname", (Column("m"),)),
            Call("||", (Column("c"), Call("coalesce", (Column("c"), Literal("-"))))),
        ]
        if joined:
            choices += [
                Column("wing", "wards"),
                Call("bucket", (Column("floor", "wards"), Literal(5))),
            ]
        x, y, d = (self.world.bounds(name) for name in "xyd")
        if x is not None and x[1] - x[0] <= 1000:
            choices.append(Call("bucket", (Column("x"), Literal(max(1, (x[1] - x[0]) // 6)))))
        if y is not None and y[1] - y[0] <= 10**4:
            choices.append(Call("bucket", (Column("y"), Literal(Fraction(y[1] - y[0]) / 8))))
        if d is not None:
            choices += [
                Call("date_trunc", (Literal("month"), Column("d"))),
                Call("date_trunc", (Literal("month"), Column("m"))),
                Call("time_bucket", (Literal("5 weeks"), Column("d"))),
                Call(
                    "time_bucket",
                    (Literal("2 months"), Call("cast", (Literal("date"), Column("m")))),
                ),
            ]
        return rng.choice(choices)

    def bounded(self, joined: bool) -> Expression:
        """A number with public bounds."""
        low = self.rng.choice([0, -3, -100])
        if self.rng.random() < 0.6:
            name = self.rng.choice("xyk")
            if name == "k" or self.world.bounds(name) is not None:
                return Column(name)
        inner = self.number(2, joined)
        if self.rng.random() < 0.3:
            return Call(
                "clamp", (inner, Literal(low), Literal(low + self.rng.choice([1, 10, 5000])))
            )
        return Call(
            "least",
            (
                Call("greatest", (inner, Literal(low))),
                Literal(low + self.rng.choice([1, 10, 5000])),
            ),
        )

    def number(self, depth: int, joined: bool) -> Expression:
        """A number, perhaps without bounds."""
        rng: Any = self.rng
        if depth == 0 or rng.random() < 0.2:
            names = ["x", "x", "y", "k"]
            leaf = rng.choice([*names, "literal", *(["floor"] if joined else [])])
            if leaf == "literal":
                return Literal(rng.choice([0, 1, -2, 7, Fraction(1, 2), Fraction(-7, 4)]))
            return Column(leaf, "wards") if leaf == "floor" else Column(leaf)
        sub = [self.number(depth - 1, joined) for _ in range(2)]
        name = rng.choice(
            [
                "+",
                "-",
                "*",
                "/",
                "neg",
                "abs",
                "least",
                "greatest",
                "coalesce",
                "case",
                "floor",
                "ceil",
                "length",
                "part",
                "%",
            ]
        )
        match name:
            case "neg" | "abs" | "floor" | "ceil":
                return Call(name, (sub[0],))
            case "case":
                return Case(
                    ((self.truth(depth - 1, joined), sub[0]),),
                    sub[1] if rng.random() < 0.6 else Literal(None),
                )
            case "length":
                return Call("length", (Column("t"),))
            case "part":
                return Call(
                    "date_part",
                    (
                        Literal(rng.choice(["year", "month", "day", "doy"])),
                        Column(rng.choice("dm")),
                    ),
                )
            case "%":
                return Call("%", (Column("x"), Literal(rng.choice([2, 7]))))
            case _:
                return Call(name, tuple(sub))

    def truth(self, depth: int, joined: bool) -> Expression:
        """A condition."""
        rng: Any = self.rng
        if depth == 0:
            simple: list[Expression] = [
                Column("b"),
                Call("=", (Column("c"), Literal("A"))),
                Call("is_null", (Column("t"),)),
            ]
            return simple[int(rng.randrange(3))]
        name = rng.choice(
            ["compare", "compare", "and", "or", "not", "in", "like", "day", "is_null"]
        )
        match name:
            case "compare":
                sides = (self.number(depth - 1, joined), self.number(depth - 1, joined))
                return Call(rng.choice(["=", "<>", "<", "<=", ">", ">="]), sides)
            case "and" | "or":
                return Call(name, (self.truth(depth - 1, joined), self.truth(depth - 1, joined)))
            case "not":
                return Call(name, (self.truth(depth - 1, joined),))
            case "in":
                return Call(name, (Column("c"), Literal("A"), Literal("C")))
            case "like":
                return Call(name, (Column("t"), Literal(rng.choice(["o%", "%o_e", "_", "%"]))))
            case "day":
                return Call(rng.choice(["<", ">="]), (Column("d"), Literal(date(2020, 2, 1))))
            case _:
                return Call("is_null", (Column(rng.choice("xytd")),))


def side_by_side(world: World, tables: Sequence[Rows]) -> tuple[World, list[dict[str, Any]]]:
    """Many tables in one: column `w` says which, and nobody is in two of them.

    A question grouped by `w` as well answers for each table what the question itself answers for it alone: everything
    that bounds a person looks at this person's rows only.
    """
    columns = {**world.columns, "w": {"type": "int", "min": 0, "max": max(len(tables) - 1, 1)}}
    types = {**world.types, "w": pa.int64()}
    rows: list[dict[str, Any]] = []
    for w, table in enumerate(tables):
        for row in table:
            named = (
                {}
                if not world.person
                else {"id": None if row["id"] is None else f"{w}:{row['id']!r}"}
            )
            rows.append({**row, **named, "w": w})
    if world.person:
        types["id"] = pa.string()
    return replace(world, columns=columns, types=types), rows


def grouped_by_table(query: Query) -> Query:
    """The question for each table of `side_by_side`; its key comes last."""
    w = Column("w")
    return replace(query, outputs=(*query.outputs, Output("w", w)), keys=(*query.keys, w))

"""Random worlds of two to four tables, and random nested questions about them: persons in several tables, in tables of
their own, or through keys; duplicates, orphans, missing keys and persons; other persons, row units, public tables.

The columns of a table are those of `query_cases.py` (x, y, b, c, k, t, d, m), some of them. The data of a world are
bundles: what one person has in all tables, so that a neighbour is one bundle more, less, or another one.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias

import pyarrow as pa

import query_cases
from query_cases import BUDGET, WARDS, extreme_row, random_cell
from sordino.query.dataset import Dataset
from sordino.query.tree import (
    Aggregate,
    Call,
    Case,
    Column,
    Expression,
    Join,
    Literal,
    Member,
    Output,
    Query,
    Rows,
    Source,
    Subquery,
    Table,
    UnionAll,
    Window,
)

Row: TypeAlias = dict[str, Any]
Data: TypeAlias = dict[str, list[Row]]
"""The rows of every table."""

_KEYS: dict[str, tuple[pa.DataType, Any]] = {
    "int": (pa.int64(), lambda n: n * 7 - 20),
    "text": (pa.string(), lambda n: ("k" if n % 2 else "K") + "é" * (n % 3) + str(n)),
    "decimal": (pa.decimal128(20, 2), lambda n: Decimal(n * 3 - 10) / 4),
}
"""Canonical types of keys, and the n-th key of each."""
_PEOPLE: dict[str, tuple[pa.DataType, list[Any]]] = {
    "int": (pa.int64(), [0, 1, -1, 2**63 - 1, -(2**63), 7, 8, 9]),
    "text": (pa.string(), ["", "ann", "Ann", "ann ", "bo", "NULL", "Zoë", "q" * 200]),
    "decimal": (pa.decimal128(38, 2), [Decimal(i) / 4 for i in range(-3, 4)] + [Decimal("9" * 36 + ".99")]),
    "bytes": (pa.binary(), [b"", b"\x00", b"\xff", b"a", b"A", b"a\x00", b"'", b"q" * 200]),
}
_STRANGER: dict[str, Any] = {"int": 4242, "text": "nobody", "decimal": Decimal(77), "bytes": b"nobody"}
"""A name that no person has."""


@dataclass(frozen=True)
class Declared:
    """One table of a world: its cells, whose rows they are, and the keys by which rows name others.

    `kind` is that of its persons ("row": each row is another one; "public": nobody's). `own` are the columns of its own
    rows that children name, `parent` is the table that its rows name by the columns `child`.
    """

    name: str
    kind: str
    cells: query_cases.World
    person: str | None = None
    own: tuple[str, ...] = ()
    parent: str | None = None
    child: tuple[str, ...] = ()

    @property
    def by_person(self) -> bool:
        """Whether each person has one row, which children name by the person."""
        return self.own == (self.person,)

    @property
    def columns(self) -> Mapping[str, Mapping[str, Any]]:
        return self.cells.columns


@dataclass(frozen=True)
class World:
    """Tables, and what is the same in several of them: the type of persons of each kind, that of keys, who are neighbours."""

    tables: Mapping[str, Declared]
    neighbors: Mapping[str, str]
    people: Mapping[str, str]
    keys: str
    lookup: Sequence[Row]
    joint: int = 0

    def types(self, table: Declared) -> dict[str, pa.DataType]:
        """The types of the source's columns."""
        if table.kind == "public":
            return {"ward": pa.string(), "floor": pa.int64(), "wing": pa.string()}
        found: dict[str, pa.DataType] = {name: table.cells.types[name] for name in table.columns if name != "w"}
        found |= {"w": pa.int64()} if self.joint else {}
        if table.person is not None:
            found[table.person] = pa.string() if self.joint else _PEOPLE[self.people[table.kind]][0]
        found |= dict.fromkeys(table.own, pa.string() if self.joint else self.key_type(table))
        if table.parent is not None:
            found |= dict.fromkeys(table.child, pa.string() if self.joint else self.key_type(self.tables[table.parent]))
        return found

    def key_type(self, table: Declared) -> pa.DataType:
        """The type of the keys of a table's own rows, which may be its persons."""
        return _PEOPLE[self.people[table.kind]][0] if table.by_person else _KEYS[self.keys][0]

    def frames(self, data: Mapping[str, Sequence[Row]]) -> dict[str, pa.Table]:
        """Data as the sources of the tables."""
        return {
            name: pa.table({c: pa.array([row[c] for row in data[name]], kind) for c, kind in self.types(table).items()})
            for name, table in self.tables.items()
        }

    def dataset(self, data: Mapping[str, Sequence[Row]]) -> Dataset:
        """The declaration, with the data as sources."""
        frames = self.frames(data)
        made: dict[str, Any] = {}
        for name, table in self.tables.items():
            entry: dict[str, Any] = {"source": frames[name], "columns": table.columns}
            if table.kind == "public":
                entry |= {"public": True, "key": ["ward"]}
            elif table.kind == "row":
                entry |= {"unit": "row", "neighbors": self.neighbors[name]}
            else:
                entry |= {"max_rows": table.cells.max_rows, "max_groups": table.cells.max_groups}
                if table.parent is None:
                    entry |= {"unit": table.person, "persons": table.kind, "neighbors": self.neighbors[table.kind]}
                else:
                    named = zip(table.child, self.tables[table.parent].own, strict=True)
                    entry["via"] = {child: f"{table.parent}.{own}" for child, own in named}
            made[name] = entry
        return Dataset(tables=made, budget=BUDGET)

    @property
    def plain(self) -> bool:
        """Whether persons and keys are only compared, so that they may get other names."""
        return not any(name in table.columns for table in self.tables.values() for name in ("id", "a"))

    def of(self, kind: str) -> list[Declared]:
        """The tables of one kind of persons, parents before their children."""
        return [table for table in self.tables.values() if table.kind == kind]


_WARD_COLUMNS: dict[str, dict[str, Any]] = {
    "ward": {"type": "category", "values": list(WARDS)},
    "floor": {"type": "int", "min": 0, "max": 12},
    "wing": {"type": "category", "values": ["north", "south"]},
}


def random_world(rng: random.Random) -> World:
    """Two to four tables: one with persons, and others with the same ones, with keys, other persons, or none."""
    shape = rng.choice(["keys", "keys", "keys", "chain", "chain", "owned", "same", "same", "mixed", "rows"])
    own = ("a", "a2") if rng.random() < 0.3 else ("a",)
    child = tuple(f"r{i}" for i in range(len(own)))
    tables = [Declared("visits", "p", _cells(rng), "id", own if shape in ("keys", "chain") else ())]
    if shape == "owned":  # a key may be called like the person
        own, child = (rng.choice(["id", "a"]),), ("r0",)
        tables = [Declared("people", "p", _cells(rng), "id", ("id",)),
                  Declared("visits", "p", _cells(rng), None, own, "people", ("r",))]  # fmt: skip
    if shape in ("keys", "chain", "owned"):
        further = ("z",) if shape == "chain" else ()
        tables.append(Declared("lines", "p", _cells(rng), None, further, "visits", child))
    if shape == "chain":
        tables.append(Declared("parts", "p", _cells(rng), None, (), "lines", ("r",)))
    if shape in ("same", "mixed") or (shape == "keys" and rng.random() < 0.5):
        tables.append(Declared("people", "p", _cells(rng), rng.choice(["id", "who"])))
    if shape == "mixed":
        tables.append(rng.choice([Declared("staff", "q", _cells(rng), "id"), Declared("events", "row", _cells(rng))]))
    if shape == "rows":
        tables += [Declared("events", "row", _cells(rng)), Declared("deeds", "row", _cells(rng))]
    if len(tables) < 4 and rng.random() < 0.6:
        wards = replace(_cells(rng), columns=_WARD_COLUMNS)
        tables.append(Declared("wards", "public", wards))
    if rng.random() < 0.15 and shape != "owned":  # the person's column may be declared like any other
        tables[0] = replace(tables[0], cells=_with_column(tables[0].cells, "id", {"type": "int", "min": -5, "max": 8}))
        people = "int"
    else:
        people = rng.choice(list(_PEOPLE))
    keys = rng.choice(list(_KEYS))
    if "a" in tables[0].own and keys == "int" and rng.random() < 0.4:
        tables[0] = replace(tables[0], cells=_with_column(tables[0].cells, "a", {"type": "int", "min": -50, "max": 900}))
    relations = {kind: rng.choice(["add_remove", "replace"]) for kind in ("p", "q", "events", "deeds")}
    lookup = [
        {
            "ward": rng.choice([*WARDS, None, "D"]),
            "floor": rng.choice([0, 3, 12, 99, None]),
            "wing": rng.choice(["north", "south", "?"]),
        }
        for _ in range(rng.randint(0, 6))
    ]
    kinds = {"p": people, "q": rng.choice(list(_PEOPLE))}
    return World({table.name: table for table in tables}, relations, kinds, keys, lookup)


def _cells(rng: random.Random) -> query_cases.World:
    """Some columns, at least a number and a category."""
    world = query_cases.random_world(rng)
    names = {"x", "c", *rng.sample(["y", "b", "k", "t", "d", "m"], rng.randint(1, 4))}
    kept = {name: column for name, column in world.columns.items() if name in names}
    return replace(world, columns=kept, max_rows=rng.randint(1, 4), max_groups=rng.randint(1, 3), person=True)


def _with_column(cells: query_cases.World, name: str, column: Mapping[str, Any]) -> query_cases.World:
    return replace(cells, columns={**cells.columns, name: column}, types={**cells.types, name: pa.int64()})


# data


class Keys:
    """Keys of parents that nobody else has: the same ones in the same order, for neighbours too."""

    def __init__(self, world: World) -> None:
        self.make, self.count = _KEYS[world.keys][1], 0

    def fresh(self, rng: random.Random, width: int) -> tuple[Any, ...]:
        """A key of some columns; of several, parts may be those of other keys."""
        self.count += 1
        shared = [self.make(rng.randint(0, 2)) for _ in range(width - 1)]
        return (self.make(self.count + 3), *shared)


def _cells_of(rng: random.Random, table: Declared) -> list[Row]:
    """Some rows of one person in one table: none, a few, or equal or extreme ones."""
    style = rng.random()
    if style < 0.12:
        return []
    if style < 0.55:
        return [_row(rng, table) for _ in range(rng.randint(1, 4))]
    end, count = rng.randint(0, 1), rng.choice([1, 2, 4, 7])
    if style < 0.75:
        return [_extreme(rng, table, end)] * count
    return [_extreme(rng, table, end) for _ in range(count)]


def _row(rng: random.Random, table: Declared) -> Row:
    return {name: random_cell(rng, table.cells, name) for name in table.columns if name in _PLAIN}


def _extreme(rng: random.Random, table: Declared, end: int) -> Row:
    """A row whose numbers all lie at one end of their limits."""
    plain = {name: column for name, column in table.columns.items() if name in _PLAIN}
    made = extreme_row(rng, replace(table.cells, columns={**_SOME, **plain}), end)
    return {name: made[name] for name in plain}


_PLAIN = frozenset("xybcktdm")
_SOME: dict[str, dict[str, Any]] = {"x": {"type": "int"}, "y": {"type": "float"}}


def bundle(rng: random.Random, world: World, kind: str, person: Any, keys: Keys) -> Data:
    """What one person has in all tables of its kind; nobody (None) has some too, in children as orphans."""
    found: Data = {}
    for table in world.of(kind):
        rows: list[Row] = []
        if table.parent is None:
            rows = [{**row, table.person: person} for row in _cells_of(rng, table)]
            rows = rows[:1] if table.by_person else rows
        else:
            mothers = found[table.parent]
            mine = world.tables[table.parent].own
            for mother in mothers:
                named = {child: mother[key] for child, key in zip(table.child, mine, strict=True)}
                rows += [{**row, **named} for row in _cells_of(rng, table)[: rng.choice([0, 1, 2, 7])]]
        own = []
        for row in rows:
            key = (person,) if table.by_person else keys.fresh(rng, len(table.own)) if table.own else ()
            if table.own and not table.by_person and rng.random() < 0.15:
                key = tuple(None if rng.random() < 0.7 else part for part in key)
            own.append({**row, **dict(zip(table.own, key, strict=True))})
        found[table.name] = own
    return found


def _orphans(rng: random.Random, world: World, keys: Keys) -> Data:
    """Rows that name nothing, or nothing that there is."""
    found: Data = {}
    for table in world.tables.values():
        rows: list[Row] = []
        if table.parent is not None:
            for _ in range(rng.randint(0, 2)):
                by_person = world.tables[table.parent].by_person
                key = (_STRANGER[world.people[table.kind]],) if by_person else keys.fresh(rng, len(table.child))
                named = tuple(None if rng.random() < 0.4 else part for part in key)
                own = keys.fresh(rng, len(table.own)) if table.own else ()
                rows.append({**_row(rng, table), **dict(zip(table.child, named, strict=True)),
                             **dict(zip(table.own, own, strict=True))})  # fmt: skip
        found[table.name] = rows
    return found


@dataclass(frozen=True)
class State:
    """Data as what each person has, and what is nobody's; `rows` are those of tables in which each row is a person."""

    people: Mapping[tuple[str, Any], Data]
    nobody: Data

    def data(self, world: World) -> Data:
        """The rows of all tables."""
        found: Data = {name: list(self.nobody.get(name, [])) for name in world.tables}
        for own in self.people.values():
            for name, rows in own.items():
                found[name] += rows
        return found


def random_state(rng: random.Random, world: World, keys: Keys) -> State:
    """Data of a world: a few persons of each kind, rows of nobody, orphans; now and then nothing at all."""
    people: dict[tuple[str, Any], Data] = {}
    nobody = _orphans(rng, world, keys)
    nobody |= {"wards": list(world.lookup)} if "wards" in world.tables else {}
    if rng.random() < 0.03:
        return State({}, nobody)
    for kind in ("p", "q"):
        names = _PEOPLE[world.people[kind]][1][:-1] if world.of(kind) else []
        for person in rng.sample(names, min(len(names), rng.randint(2, 5))):
            people[kind, person] = bundle(rng, world, kind, person, keys)
        if names:
            for name, rows in bundle(rng, world, kind, None, keys).items():
                nobody[name] = nobody[name] + rows[:3]
    for table in world.of("row"):
        for n in range(rng.randint(1, 8)):
            people[table.name, n] = {table.name: [_row(rng, table)]}
    return State(people, nobody)


def neighbor(rng: random.Random, world: World, state: State, keys: Keys) -> State:
    """One person added, removed or replaced, with all of its rows; what it leaves behind may be nobody's."""
    kinds = sorted({kind for kind, _ in state.people}) or ["p"]
    kind = rng.choice([*kinds, "p", "p"])
    table = world.tables.get(kind)
    newcomer = 99 if table is not None else _PEOPLE[world.people[kind]][1][-1]
    present = [who for who in state.people if who[0] == kind]

    def made(person: Any) -> Data:
        return {kind: [_row(rng, table)]} if table is not None else bundle(rng, world, kind, person, keys)

    if world.neighbors[kind] == "add_remove" and (not present or rng.random() < 0.3):
        return replace(state, people={**state.people, (kind, newcomer): made(newcomer)})
    if not present:
        return state
    gone = present[rng.randrange(len(present))]
    rest = {who: own for who, own in state.people.items() if who != gone}
    nobody = dict(state.nobody)
    if rng.random() < 0.3:  # its children stay as orphans, which is the same
        for name, rows in state.people[gone].items():
            if world.tables[name].parent is not None:
                nobody[name] = nobody[name] + rows
    if world.neighbors[kind] == "add_remove":
        return State(rest, nobody)
    other = rng.choice([gone[1], newcomer])
    return State({**rest, (kind, other): made(other)}, nobody)


def shuffled(rng: random.Random, data: Data) -> Data:
    """The same rows in another order."""
    return {name: rng.sample(rows, len(rows)) for name, rows in data.items()}


def side_by_side(world: World, many: Sequence[Data]) -> tuple[World, Data]:
    """Many data sets in one: column `w` says which, and neither persons nor keys are in two of them."""
    column = {"w": {"type": "int", "min": 0, "max": max(len(many) - 1, 1)}}
    tables = {
        name: table
        if table.kind == "public"
        else replace(table, cells=replace(table.cells, columns={**table.columns, **column}))
        for name, table in world.tables.items()
    }
    rows: Data = {name: [] for name in tables}
    for w, data in enumerate(many):
        for name, table in tables.items():
            if table.kind == "public":
                rows[name] = list(data[name])
                continue
            names = [*table.own, *table.child, *([table.person] if table.person else [])]
            for row in data[name]:
                told = {key: None if row[key] is None else f"{w}:{row[key]!r}" for key in names}
                rows[name].append({**row, **told, "w": w})
    return replace(world, tables=tables, joint=len(many)), rows


def grouped_by_data(query: Query) -> Query:
    """The question for each of the data of `side_by_side`: `w` goes along through all subqueries, and is the last key."""
    source = _along(query.source)
    w = _protected(source)
    return replace(query, source=source, outputs=(*query.outputs, Output("w", w)), keys=(*query.keys, w))


def _protected(source: Source) -> Column:
    """`w` of the first table that has one, as public ones have none."""
    found: list[Table | Subquery] = []
    first = source
    while isinstance(first, Join):
        found.append(first.right)
        first = first.left
    if not (isinstance(first, Table) and first.table == "wards"):
        return Column("w", first=True)
    return next(Column("w", one.name) for one in reversed(found) if not (isinstance(one, Table) and one.table == "wards"))


def _along(source: Source) -> Source:
    match source:
        case Table():
            return source
        case Subquery(UnionAll(parts), name):
            return Subquery(UnionAll(tuple(map(_rows_along, parts))), name)
        case Subquery(Rows() as rows, name):
            return Subquery(_rows_along(rows), name)
        case Join(left, right):
            other = _along(right)
            assert isinstance(other, Table | Subquery)
            return replace(source, left=_along(left), right=other)


def _rows_along(rows: Rows) -> Rows:
    source = _along(rows.source)
    if rows.every:
        return replace(rows, source=source)
    w = _protected(source)
    value: Expression = w if rows.keys is None else Aggregate("min", (w,))
    return replace(rows, source=source, items=(*rows.items, Output("w", value)))


# questions


@dataclass(frozen=True)
class Col:
    """A column that a question may name: what it holds (a number, truth, category, text, day, moment, a person, a key).

    `few` says that its values are few enough to group by, `of` and `key` whose key it is.
    """

    name: str
    table: str
    sort: str
    bounded: bool = False
    whole: bool = False
    few: bool = False
    of: str = ""
    key: str = ""
    hidden: bool = False


@dataclass(frozen=True)
class Scope:
    """The columns of a source; `first` qualifies those of its first table, `kind` is that of its persons."""

    cols: tuple[Col, ...]
    first: str
    kind: str

    def some(self, *sorts: str) -> list[Col]:
        return [col for col in self.cols if col.sort in sorts]

    def visible(self, *sorts: str) -> list[Col]:
        """Columns that can be named, each in one way."""
        return [col for col in self.some(*sorts) if not any(c.name == col.name and c.table == col.table for c in
                self.cols[: self.cols.index(col)] if (c.sort in "pi") == (col.sort in "pi"))]  # fmt: skip


@dataclass
class Questions:
    """A generator of nested questions about one world; some of them are refused."""

    rng: random.Random
    world: World
    named: int = 0

    def one(self, depth: int = 3) -> Query:
        """A question about a source that is nested up to some depth."""
        rng = self.rng
        source, scope = self.source(rng.randint(1, depth))
        keys = tuple(dict.fromkeys(self.key(scope) for _ in range(rng.choice([0, 0, 1, 1, 2]))))
        aggregates = list(dict.fromkeys(self.aggregate(scope) for _ in range(rng.choice([1, 1, 2]))))
        where = self.condition(scope, 1) if rng.random() < 0.3 else None
        values: list[Expression] = [*keys, *aggregates]
        return Query(source, tuple(Output(f"o{i}", v) for i, v in enumerate(values)), where, keys)

    # sources

    def source(self, depth: int, kind: str | None = None) -> tuple[Source, Scope]:
        rng = self.rng
        style = rng.random()
        if depth <= 0 or style < 0.1:
            return self.table(rng.choice(self.choices(kind)))
        if style < 0.55:
            return self.subquery(depth, kind)
        return self.join(depth, kind)

    def choices(self, kind: str | None) -> list[str]:
        names = [name for name, table in self.world.tables.items() if table.kind not in ("public", "row")]
        if kind == "row" or (kind is None and "events" in self.world.tables and self.rng.random() < 0.4):
            return [table.name for table in self.world.of("row")]
        return [name for name in names if kind is None or self.world.tables[name].kind == kind] or names

    def table(self, name: str, alias: str | None = None) -> tuple[Table, Scope]:
        table = self.world.tables[name]
        shown = alias or name
        cols: list[Col] = []
        for column, declared in table.columns.items():
            bounded = "min" in declared
            width = declared["max"] - declared["min"] if bounded and declared["type"] == "int" else 10**9
            match declared["type"]:
                case "int":
                    cols.append(Col(column, shown, "n", bounded, bounded and abs(declared["max"]) < 2**50, width < 30))
                case "float":
                    cols.append(Col(column, shown, "n", bounded))
                case "category":
                    number = isinstance(declared["values"][0], int)
                    cols.append(Col(column, shown, "n" if number else "c", number, number, True))
                case kind:
                    sort = {"bool": "b", "text": "t", "date": "d", "datetime": "m"}[kind]
                    cols.append(Col(column, shown, sort, few=sort == "b"))
        cols += [Col(self.person(table), shown, "p")] if table.kind in ("p", "q") else []
        cols += [Col(key, shown, "i", of=name, key=key) for key in (*table.own, *table.child)]
        return Table(name, alias), Scope(tuple(cols), shown, table.kind)

    def person(self, table: Declared) -> str:
        """What its persons are called: like the parent's, unless it has a key of that name."""
        if table.parent is None:
            assert table.person is not None
            return table.person
        name = self.person(self.world.tables[table.parent])
        return table.kind if name in (*table.own, *table.child) else name

    def fresh(self, letter: str) -> str:
        self.named += 1
        return f"{letter}{self.named}"

    def subquery(self, depth: int, kind: str | None = None) -> tuple[Subquery, Scope]:
        rows, cols, found = self.rows(depth, kind)
        name = self.fresh("s")
        return Subquery(rows, name), Scope(tuple(replace(c, table=name, hidden=False) for c in cols), name, found)

    def join(self, depth: int, kind: str | None = None) -> tuple[Source, Scope]:
        rng = self.rng
        if "wards" in self.world.tables and rng.random() < 0.25:
            return self.lookup(depth, kind)
        left, ours = self.source(depth - 1, kind)
        others = [name for name, table in self.world.tables.items() if table.kind not in ("public", "row")]
        same = [name for name in others if self.world.tables[name].kind == ours.kind] or others
        name = rng.choice(same if rng.random() < 0.95 else others)
        right: Table | Subquery
        if rng.random() < 0.6 or depth < 2:
            alias = self.fresh("v") if rng.random() < 0.3 or any(c.table == name for c in ours.cols) else None
            right, theirs = self.table(name, alias)
        else:
            right, theirs = self.subquery(depth - 1, ours.kind)
        on = self.on_key(ours, theirs) if rng.random() < 0.6 else None
        wrong = [(a, b) for a in ours.visible("i") for b in theirs.visible("i")]
        if wrong and rng.random() < 0.05:
            a, b = rng.choice(wrong)
            on = [(self.ref(ours, a), Column(b.name, b.table))]
        on = on or self.on_person(ours, theirs) or [(Column("c"), Column("c", right.name))]
        if rng.random() < 0.15:
            pairs = [(a, b) for a in ours.visible("c") for b in theirs.visible("c")]
            on += [(self.ref(ours, a), Column(b.name, b.table)) for a, b in rng.sample(pairs, min(1, len(pairs)))]
        side = rng.choice(["left", "inner", "inner"])
        equal = {a.name.casefold() for a, b in on if a.name.casefold() == b.name.casefold()}
        beside = tuple(
            replace(c, hidden=c.hidden or c.name in equal) for c in theirs.cols if side == "inner" or c.sort != "p"
        )
        scope = Scope((*ours.cols, *beside), ours.first, ours.kind)
        condition = self.truth(scope, 1) if rng.random() < 0.2 else None
        return Join(left, right, tuple(on), side, condition), scope

    def on_person(self, ours: Scope, theirs: Scope) -> list[tuple[Column, Column]]:
        pairs = [(a, b) for a in ours.visible("p") for b in theirs.visible("p")]
        return [(self.ref(ours, a), Column(b.name, b.table)) for a, b in self.rng.sample(pairs, min(1, len(pairs)))]

    def on_key(self, ours: Scope, theirs: Scope) -> list[tuple[Column, Column]] | None:
        """A declared key, whichever side names the other."""
        found = []
        for table in self.world.tables.values():
            if table.parent is None:
                continue
            ends = [(table.name, table.child), (table.parent, self.world.tables[table.parent].own)]
            for (one, mine), (other, other_key) in (ends, ends[::-1]):
                left = [next((c for c in ours.visible("i") if (c.of, c.key) == (one, key)), None) for key in mine]
                right = [next((c for c in theirs.visible("i") if (c.of, c.key) == (other, key)), None) for key in other_key]
                if None not in left and None not in right:
                    pairs = zip(left, right, strict=True)
                    found.append([(self.ref(ours, a), Column(b.name, b.table)) for a, b in pairs if a and b])
        return self.rng.choice(found) if found else None

    def lookup(self, depth: int, kind: str | None) -> tuple[Source, Scope]:
        rng = self.rng
        wards, public = self.table("wards")
        rows, scope = self.source(depth - 1, kind)
        cells = scope.visible("c")
        if not cells or any(c.table == "wards" for c in scope.cols):
            return rows, scope
        col = rng.choice(cells)
        if rng.random() < 0.2 and isinstance(rows, Table | Subquery):
            pairs = ((Column("ward", first=True), Column(col.name, rows.name)),)
            return Join(wards, rows, pairs), Scope((*public.cols, *scope.cols), "wards", scope.kind)
        on = ((self.ref(scope, col), Column("ward", "wards")),)
        shown = Scope((*scope.cols, *public.cols), scope.first, scope.kind)
        return Join(rows, wards, on, rng.choice(["left", "inner"])), shown

    # rows

    def rows(self, depth: int, kind: str | None) -> tuple[Rows | UnionAll, list[Col], str]:
        rng = self.rng
        style = rng.random()
        if style < 0.12:
            return self.union(depth, kind)
        source, scope = self.source(depth - 1, kind)
        where = self.condition(scope, 1) if rng.random() < 0.4 else None
        people = scope.visible("p")
        if style < 0.42 and people:
            return self.per_person(source, scope, where)
        if style < 0.65 and people:
            return self.window(source, scope, where)
        items: dict[str, tuple[Expression, Col]] = {}
        if people and rng.random() < 0.9:
            self.item(items, self.ref(scope, people[0]), people[0])
        plain = scope.visible("n", "b", "c", "t", "d", "m")
        for col in rng.sample(plain, min(len(plain), rng.randint(1, 4))):
            self.item(items, self.ref(scope, col), col)
        distinct = bool(people) and rng.random() < 0.2
        if not distinct and rng.random() < 0.6:
            for col in scope.visible("i"):
                self.item(items, self.ref(scope, col), col)
        if rng.random() < 0.5:
            self.item(items, self.number(scope, 2), Col("e", "", "n"))
        if rng.random() < 0.4:
            self.item(items, self.bounded(scope), Col("e", "", "n", True))
        if rng.random() < 0.3:
            self.item(items, self.truth(scope, 1), Col("e", "", "b", few=True))
        outputs = tuple(Output(name, value) for name, (value, _) in items.items())
        return Rows(source, outputs, where, distinct=distinct), [col for _, col in items.values()], scope.kind

    def item(self, items: dict[str, tuple[Expression, Col]], value: Expression, col: Col) -> None:
        taken = col.name in items or self.rng.random() < 0.15 or col.name == "e"
        name = self.fresh("e") if taken else col.name
        misleading = self.rng.choice(["a", "r", "r0", "z"])
        if col.sort == "i" and misleading not in items and self.rng.random() < 0.2:
            name = misleading  # called like another key
        items[name] = value, replace(col, name=name, table="")

    def per_person(self, source: Source, scope: Scope, where: Expression | None) -> tuple[Rows, list[Col], str]:
        """Aggregates of each person, now and then of each person and a further key."""
        rng = self.rng
        person = rng.choice(scope.visible("p"))
        keys: list[Expression] = [self.ref(scope, person)]
        items: dict[str, tuple[Expression, Col]] = {}
        self.item(items, keys[0], person)
        plain = scope.visible("n", "b", "c", "t", "d")
        if plain and rng.random() < 0.35:
            col = rng.choice(plain)
            keys.append(self.ref(scope, col))
            self.item(items, keys[1], col)
        made: list[tuple[Expression, Col]] = []
        for _ in range(rng.randint(1, 3)):
            made.append(self.inside(scope))
            self.item(items, *made[-1])
        having = None
        numbers = [value for value, col in made if col.sort == "n"]
        if numbers and rng.random() < 0.3:
            having = Call(rng.choice([">", "<=", "<>"]), (rng.choice(numbers), Literal(rng.choice([0, 1, 2, 5]))))
        if numbers and rng.random() < 0.2:
            both = Call(rng.choice(["+", "/", "-"]), (rng.choice(numbers), rng.choice(numbers)))
            self.item(items, both, Col("e", "", "n"))
        outputs = tuple(Output(name, value) for name, (value, _) in items.items())
        rows = Rows(source, outputs, where, tuple(keys), having)
        return rows, [replace(col, of="") for _, col in items.values()], scope.kind

    def inside(self, scope: Scope) -> tuple[Expression, Col]:
        """An aggregate within one person."""
        rng = self.rng
        function = rng.choice(["count", "count", "count_of", "count_distinct", "sum", "sum", "avg", "min", "max", "quantile",
                               "var_pop", "stddev_samp", "any", "every"])  # fmt: skip
        plain = scope.visible("n", "b", "c", "t", "d", "m")
        match function:
            case "count":
                value: Expression = Aggregate("count")
                clamped = rng.random() < 0.3
                return (Call("clamp", (value, Literal(0), Literal(3))) if clamped else value), Col(
                    "e", "", "n", True, True, True
                )
            case "count_of" | "count_distinct":
                argument = self.ref(scope, rng.choice(plain)) if plain else Literal(1)
                return Aggregate(function[:14].removesuffix("_of"), (argument,)), Col("e", "", "n", True, True, True)
            case "sum":
                value = Aggregate("sum", (self.bounded(scope),))
                if rng.random() < 0.4:
                    return Call("clamp", (value, Literal(rng.choice([0, -7])), Literal(rng.choice([1, 50])))), Col(
                        "e", "", "n", True
                    )
                return value, Col("e", "", "n", True)
            case "min" | "max" if plain:
                col = rng.choice(plain)
                return Aggregate(function, (self.ref(scope, col),)), replace(col, sort=col.sort, hidden=False, of="")
            case "any" | "every":
                return Aggregate(function, (self.truth(scope, 1),)), Col("e", "", "b", few=True)
            case "quantile":
                level = rng.choice([Fraction(0), Fraction(1, 4), Fraction(1, 2), Fraction(9, 10), Fraction(1)])
                return Aggregate(function, (self.bounded(scope),), level), Col("e", "", "n", True)
            case _:
                name = "avg" if function in ("min", "max") else function
                return Aggregate(name, (self.bounded(scope),)), Col("e", "", "n", True)

    def window(self, source: Source, scope: Scope, where: Expression | None) -> tuple[Rows, list[Col], str]:
        """All columns and some windows over the rows of a person."""
        rng = self.rng
        items: dict[str, tuple[Expression, Col]] = {}
        for _ in range(rng.randint(1, 2)):
            partition: list[Expression] = [self.ref(scope, rng.choice(scope.visible("p")))]
            plain = scope.visible("n", "b", "c", "t", "d", "m")
            if plain and rng.random() < 0.2:
                partition.append(self.ref(scope, rng.choice(plain)))
            few = rng.sample(plain, min(len(plain), rng.choice([1, 1, 2])))
            order = tuple((self.ref(scope, col), rng.random() < 0.4) for col in few)
            function = rng.choice(["row_number", "lag", "lead", "first_value", "count", "sum"])
            arguments: tuple[Expression, ...] = ()
            col = Col("e", "", "n")
            match function:
                case "count" if plain and rng.random() < 0.5:
                    arguments = (self.ref(scope, rng.choice(plain)),)
                case "sum":
                    arguments = (self.bounded(scope),)
                case "lag" | "lead" | "first_value" if plain:
                    col = replace(rng.choice(plain), hidden=False)
                    arguments = (self.ref(scope, col),)
                    arguments += (Literal(rng.randint(0, 3)),) if function != "first_value" and rng.random() < 0.4 else ()
            value: Expression = Window(function, arguments, tuple(partition), order)
            if function in ("row_number", "count", "sum") and rng.random() < 0.5:
                value, col = (
                    Call("clamp", (value, Literal(0), Literal(9))),
                    replace(col, bounded=True, few=function != "sum"),
                )
            items[self.fresh("e")] = value, col
        outputs = tuple(Output(name, value) for name, (value, _) in items.items())
        made = [replace(col, name=name, table="") for name, (_, col) in items.items()]
        unclear = len({c.name for c in scope.cols if not c.hidden}) < len([c for c in scope.cols if not c.hidden])
        if unclear:  # two columns of one name cannot both be selected
            chosen: dict[str, Col] = {}
            for c in scope.visible("p", "n", "c", "b", "i"):
                chosen.setdefault(c.name, c)
            kept = tuple(Output(name, self.ref(scope, c)) for name, c in chosen.items())
            return (
                Rows(source, (*kept, *outputs), where),
                [*(replace(c, table="") for c in chosen.values()), *made],
                scope.kind,
            )
        return Rows(source, outputs, where, every=True), [*(c for c in scope.cols if not c.hidden), *made], scope.kind

    def union(self, depth: int, kind: str | None) -> tuple[Rows | UnionAll, list[Col], str]:
        """Two or three times the same sorts of columns."""
        rng = self.rng
        first, scope = self.source(depth - 2, kind)
        parts, cols = [], list[Col]()
        sorts = ["n", *rng.sample(["c", "b", "d", "t", "n"], 2)]
        for i in range(rng.choice([2, 2, 3])):
            source, own = (first, scope) if i == 0 else self.source(depth - 2, scope.kind)
            items: list[tuple[Expression, Col]] = [(self.ref(own, c), c) for c in own.visible("p")[:1]]
            for sort in sorts:
                found = own.visible(sort)
                col = rng.choice(found) if found else Col("e", "", sort)
                items.append((self.ref(own, col) if found else Literal(None), col))
            where = self.condition(own, 1) if rng.random() < 0.3 else None
            if i == 0:
                cols = [
                    replace(c, name=f"u{j}", table="", bounded=False, whole=False, few=False)
                    for j, (_, c) in enumerate(items)
                ]
            parts.append(Rows(source, tuple(Output(f"u{j}", value) for j, (value, _) in enumerate(items)), where))
        return UnionAll(tuple(parts)), [replace(c, of="") for c in cols], scope.kind

    # expressions

    def ref(self, scope: Scope, col: Col) -> Column:
        """The name of a column, qualified where it must be."""
        alike = [c for c in scope.cols if c.name == col.name and not c.hidden]
        if not col.hidden and len({c.table for c in alike}) == 1 and self.rng.random() < 0.7:
            return Column(col.name)
        return Column(col.name, first=True) if col.table == scope.first else Column(col.name, col.table)

    def condition(self, scope: Scope, depth: int) -> Expression:
        """A condition, perhaps on whether the person is among others."""
        rng = self.rng
        plain = self.truth(scope, depth)
        if rng.random() < 0.15 and (member := self.key_member(scope)) is not None:
            return rng.choice([member, Call("not", (member,)), Call("or", (plain, member))])
        people = scope.visible("p")
        if not people or rng.random() < 0.6:
            return plain
        source, inner = self.source(rng.choice([0, 0, 1]), scope.kind)
        theirs = inner.visible("p")
        if not theirs:
            return plain
        where = self.truth(inner, 1) if rng.random() < 0.5 else None
        member: Expression = Member(
            self.ref(scope, people[0]), Rows(source, (Output("i", self.ref(inner, theirs[0])),), where)
        )
        member = Call("not", (member,)) if rng.random() < 0.3 else member
        return rng.choice([member, Call("and", (plain, member)), Call("or", (plain, member))])

    def key_member(self, scope: Scope) -> Expression | None:
        """Whether the row that a key names, or one that names it, is among others."""
        found = []
        for table in self.world.tables.values():
            if table.parent is None or len(table.child) > 1:
                continue
            ends = [(table.name, table.child[0]), (table.parent, self.world.tables[table.parent].own[0])]
            for one, other in (ends, ends[::-1]):
                cols = [c for c in scope.visible("i") if (c.of, c.key) == one]
                found += [(c, *other) for c in cols]
        if not found:
            return None
        col, name, key = self.rng.choice(found)
        source, inner = self.table(name)
        where = self.truth(inner, 1) if self.rng.random() < 0.6 else None
        return Member(self.ref(scope, col), Rows(source, (Output("i", Column(key)),), where))

    def number(self, scope: Scope, depth: int) -> Expression:
        rng = self.rng
        if depth == 0 or rng.random() < 0.3:
            numbers = scope.visible("n")
            if numbers and rng.random() < 0.8:
                return self.ref(scope, rng.choice(numbers))
            return Literal(rng.choice([0, 1, -2, 7, Fraction(1, 2)]))
        one, other = self.number(scope, depth - 1), self.number(scope, depth - 1)
        match rng.choice(["+", "-", "*", "/", "neg", "abs", "least", "greatest", "coalesce", "case", "floor"]):
            case "case":
                return Case(((self.truth(scope, 0), one),), other)
            case "neg" | "abs" | "floor" as function:
                return Call(function, (one,))
            case function:
                return Call(function, (one, other))

    def bounded(self, scope: Scope) -> Expression:
        """A number with public bounds."""
        found = [col for col in scope.visible("n") if col.bounded]
        if found and self.rng.random() < 0.7:
            return self.ref(scope, self.rng.choice(found))
        low = self.rng.choice([0, -3, -100])
        inner = Call("greatest", (self.number(scope, 1), Literal(low)))
        return Call("least", (inner, Literal(low + self.rng.choice([1, 10, 5000]))))

    def truth(self, scope: Scope, depth: int) -> Expression:
        rng = self.rng
        plain = scope.visible("n", "b", "c", "t", "d", "m")
        truths = scope.visible("b")
        if truths and rng.random() < 0.2:
            return self.ref(scope, rng.choice(truths))
        if depth and rng.random() < 0.25:
            function = rng.choice(["and", "or", "not"])
            return Call(function, tuple(self.truth(scope, depth - 1) for _ in range(1 if function == "not" else 2)))
        if plain and rng.random() < 0.3:
            return Call("is_null", (self.ref(scope, rng.choice(plain)),))
        cells = scope.visible("c")
        if cells and rng.random() < 0.4:
            return Call(rng.choice(["=", "<>"]), (self.ref(scope, rng.choice(cells)), Literal("A")))
        return Call(rng.choice(["<", "<=", ">", ">=", "=", "<>"]), (self.number(scope, 1), self.number(scope, 1)))

    def key(self, scope: Scope) -> Expression:
        few = [col for col in scope.visible("b", "c", "n", "t") if col.few or col.sort == "t"]
        if few and self.rng.random() < 0.8:
            return self.ref(scope, self.rng.choice(few))
        return self.truth(scope, 1)

    def aggregate(self, scope: Scope) -> Aggregate:
        rng = self.rng
        name = rng.choice(
            ["count", "count", "count", "count_of", "persons", "sum", "sum", "avg", "avg_if", "var_pop", "quantile"]
        )
        plain = scope.visible("n", "b", "c", "t", "d", "m")
        match name:
            case "count_of" if plain:
                return Aggregate("count", (self.ref(scope, rng.choice(plain)),))
            case "persons" if scope.visible("p"):
                return Aggregate("count_distinct", (self.ref(scope, scope.visible("p")[0]),))
            case "avg_if":
                return Aggregate("avg", (self.truth(scope, 1),))
            case "quantile":
                return Aggregate(name, (self.bounded(scope),), rng.choice([Fraction(0), Fraction(1, 2), Fraction(1)]))
            case "sum" | "avg" | "var_pop":
                return Aggregate(name, (self.bounded(scope),))
            case _:
                return Aggregate("count")

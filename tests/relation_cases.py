"""Random worlds of two to four tables: persons in several tables, in tables of their own, or through keys; duplicates,
orphans, missing keys and persons; other persons, rows that are persons, public tables.

The columns of a table are those of `query_cases.py` (x, y, b, c, k, t, d, m), some of them. The data of a world are
bundles: what one person has in all tables, so that a neighbour is one bundle more, less, or another one.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, TypeAlias

import pyarrow as pa

import query_cases
from query_cases import BUDGET, WARDS, extreme_row, random_bounds, random_cell
from sordino.query.bounds import Bounds
from sordino.query.dataset import Dataset

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
    "decimal": (
        pa.decimal128(38, 2),
        [Decimal(i) / 4 for i in range(-3, 4)] + [Decimal("9" * 36 + ".99")],
    ),
    "bytes": (pa.binary(), [b"", b"\x00", b"\xff", b"a", b"A", b"a\x00", b"'", b"q" * 200]),
}
_STRANGER: dict[str, Any] = {
    "int": 4242,
    "text": "nobody",
    "decimal": Decimal(77),
    "bytes": b"nobody",
}
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
    """Tables, and what several of them share: the type of persons of each kind, that of keys, who are neighbours."""

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
        found: dict[str, pa.DataType] = {
            name: table.cells.types[name] for name in table.columns if name != "w"
        }
        found |= {"w": pa.int64()} if self.joint else {}
        if table.person is not None:
            found[table.person] = pa.string() if self.joint else _PEOPLE[self.people[table.kind]][0]
        found |= dict.fromkeys(table.own, pa.string() if self.joint else self.key_type(table))
        if table.parent is not None:
            found |= dict.fromkeys(
                table.child, pa.string() if self.joint else self.key_type(self.tables[table.parent])
            )
        return found

    def key_type(self, table: Declared) -> pa.DataType:
        """The type of the keys of a table's own rows, which may be its persons."""
        return _PEOPLE[self.people[table.kind]][0] if table.by_person else _KEYS[self.keys][0]

    def frames(self, data: Mapping[str, Sequence[Row]]) -> dict[str, pa.Table]:
        """Data as the sources of the tables."""
        return {
            name: pa.table(
                {
                    c: pa.array([row[c] for row in data[name]], kind)
                    for c, kind in self.types(table).items()
                }
            )
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
                entry |= table.cells.limits.given
                if table.parent is None:
                    entry |= {
                        "unit": table.person,
                        "persons": table.kind,
                        "neighbors": self.neighbors[table.kind],
                    }
                else:
                    named = zip(table.child, self.tables[table.parent].own, strict=True)
                    entry["via"] = {child: f"{table.parent}.{own}" for child, own in named}
            made[name] = entry
        return Dataset(tables=made, budget=BUDGET)

    @property
    def plain(self) -> bool:
        """Whether persons and keys are only compared, so that they may get other names."""
        return not any(
            name in table.columns for table in self.tables.values() for name in ("id", "a")
        )

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
    shape = rng.choice(
        ["keys", "keys", "keys", "chain", "chain", "owned", "same", "same", "mixed", "rows"]
    )
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
        tables.append(
            rng.choice(
                [Declared("staff", "q", _cells(rng), "id"), Declared("events", "row", _cells(rng))]
            )
        )
    if shape == "rows":
        tables += [Declared("events", "row", _cells(rng)), Declared("deeds", "row", _cells(rng))]
    if len(tables) < 4 and rng.random() < 0.6:
        wards = replace(_cells(rng), columns=_WARD_COLUMNS)
        tables.append(Declared("wards", "public", wards))
    # the person's column may be declared like any other
    if rng.random() < 0.15 and shape != "owned":
        tables[0] = replace(
            tables[0],
            cells=_with_column(tables[0].cells, "id", {"type": "int", "min": -5, "max": 8}),
        )
        people = "int"
    else:
        people = rng.choice(list(_PEOPLE))
    keys = rng.choice(list(_KEYS))
    if "a" in tables[0].own and keys == "int" and rng.random() < 0.4:
        tables[0] = replace(
            tables[0],
            cells=_with_column(tables[0].cells, "a", {"type": "int", "min": -50, "max": 900}),
        )
    relations = {
        kind: rng.choice(["add_remove", "replace"]) for kind in ("p", "q", "events", "deeds")
    }
    lookup = [
        {
            "ward": rng.choice(["A", "A", *WARDS, None, "D"]),
            "floor": rng.choice([0, 3, 12, 99, None]),
            "wing": rng.choice(["north", "south", "?"]),
        }
        for _ in range(rng.randint(0, 7))
    ]
    kinds = {"p": people, "q": rng.choice(list(_PEOPLE))}
    return World({table.name: table for table in tables}, relations, kinds, keys, lookup)


def _cells(rng: random.Random) -> query_cases.World:
    """Some columns, at least a number and a category."""
    world = query_cases.random_world(rng)
    names = {"x", "c", *rng.sample(["y", "b", "k", "t", "d", "m"], rng.randint(1, 4))}
    kept = {name: column for name, column in world.columns.items() if name in names}
    return replace(world, columns=kept, limits=_bounds(rng), person=True)


def _bounds(rng: random.Random) -> Bounds:
    """Bounds under which everything can be asked."""
    found = random_bounds(rng)
    return found if found.total is not None else replace(found, rows=rng.randint(1, 9))


def _with_column(
    cells: query_cases.World, name: str, column: Mapping[str, Any]
) -> query_cases.World:
    return replace(
        cells, columns={**cells.columns, name: column}, types={**cells.types, name: pa.int64()}
    )


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
            rows = [{**row, str(table.person): person} for row in _cells_of(rng, table)]
            rows = rows[:1] if table.by_person else rows
        else:
            mothers = found[table.parent]
            mine = world.tables[table.parent].own
            for mother in mothers:
                named = {child: mother[key] for child, key in zip(table.child, mine, strict=True)}
                rows += [
                    {**row, **named} for row in _cells_of(rng, table)[: rng.choice([0, 1, 2, 7])]
                ]
        own = []
        for row in rows:
            key = (
                (person,)
                if table.by_person
                else keys.fresh(rng, len(table.own))
                if table.own
                else ()
            )
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
                key = (
                    (_STRANGER[world.people[table.kind]],)
                    if by_person
                    else keys.fresh(rng, len(table.child))
                )
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
        return (
            {kind: [_row(rng, table)]}
            if table is not None
            else bundle(rng, world, kind, person, keys)
        )

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

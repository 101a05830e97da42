"""A naive relational engine in plain Python: the rows of a question with the person of each, by lists and loops.

Written from plan/relations.md and the documented meaning, from the query tree, the declaration and raw rows. It never
reads a plan or its SQL. Of the package it uses the types of expressions, which say what is cut to which bounds.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from fractions import Fraction
from typing import Any

from sqlglot import exp

from query.reference import clean, evaluate
from sordino.query import dataset, tree
from sordino.query.aggregates.grid import MOST_CELLS, Grid
from sordino.query.aggregates.variance import MOST_CELLS as MOST_SQUARED
from sordino.query.front.shapes import children
from sordino.query.meaning.expressions import indicator, typed
from sordino.query.meaning.function import alike, hull
from sordino.query.typed import Typed
from sordino.query.types import Moment, Nothing, Number, Truth, Type

Raw = Mapping[str, Sequence[Mapping[str, Any]]]
"""The raw rows of every table."""


@dataclass(frozen=True)
class Field:
    """A column: what it is called, and what is public of it; one without a type names persons, or rows by a key."""

    name: str
    table: str
    type: Type | None = None
    person: bool = False
    hidden: bool = False


@dataclass(frozen=True)
class Naive:
    """Rows, each with its person; `most` is the declared number of rows of one, `public` says that nobody has any."""

    fields: tuple[Field, ...]
    rows: tuple[tuple[Any, tuple[Any, ...]], ...]
    most: int | None
    public: bool = False

    def named(self, first: str) -> dict[str, int]:
        """Where the values are that a name means, qualified or not;
        an unqualified one is of the first table, if it can.
        """
        places: dict[str, int] = {}
        own = [i for i, field in enumerate(self.fields) if field.type is not None]
        for i in own:
            places.setdefault(f"{self.fields[i].table}.{self.fields[i].name}", i)
        for i in sorted(
            own, key=lambda i: (self.fields[i].table != first, self.fields[i].hidden, i)
        ):
            places.setdefault(self.fields[i].name, i)
        return places

    def named_rows(self, first: str) -> list[tuple[Any, dict[str, Any]]]:
        """The rows as `evaluate` wants them."""
        places = self.named(first)
        return [
            (person, {name: cells[i] for name, i in places.items()}) for person, cells in self.rows
        ]

    def identifying(self, column: tree.Expression, first: str) -> list[int]:
        """The places of what names persons or rows, if the expression is such a column."""
        return [i for i in _of(self, first, column) if self.fields[i].type is None]

    def is_person(self, column: tree.Expression, first: str) -> bool:
        return any(self.fields[place].person for place in self.identifying(column, first))

    def type_of(
        self, expression: tree.Expression, first: str, known: Mapping[str, Type] | None = None
    ) -> Type:
        """What is public of an expression."""
        places = self.named(first)

        def read(leaf: tree.Expression) -> Typed:
            assert isinstance(leaf, tree.Column)
            name = leaf.name if leaf.table is None else f"{leaf.table}.{leaf.name}"
            if known and name in known:
                return Typed(known[name], exp.column("x"))
            kind = self.fields[places[name]].type
            assert kind is not None
            return Typed(kind, exp.column("x"))

        return typed(expression, read).type


def relation(source: tree.Source, declared: dataset.Dataset, raw: Raw) -> tuple[Naive, str]:
    """The rows of FROM, and what qualifies the first table."""
    match source:
        case tree.Table(table):
            return _scan(declared.tables[table], source.name, declared, raw), source.name
        case tree.Subquery(rows, name):
            found = selected(rows, declared, raw)
            return replace(
                found, fields=tuple(replace(f, table=name, hidden=False) for f in found.fields)
            ), name
        case tree.Join():
            return _join(source, declared, raw)


def filtered(
    rows: Naive, first: str, where: tree.Expression | None, declared: dataset.Dataset, raw: Raw
) -> Naive:
    """The rows for which a condition is true; members ask whether the person is among others."""
    if where is None:
        return rows
    members = [part for part in _walk(where) if isinstance(part, tree.Member)]
    names = [f"member {i}" for i in range(len(members))]
    marks = [_among(rows, first, part, selected(part.rows, declared, raw)) for part in members]
    asked = _put(where, dict(zip(members, names, strict=True)))
    kept = [
        own
        for i, (own, (_, row)) in enumerate(zip(rows.rows, rows.named_rows(first), strict=True))
        if evaluate(asked, row | {name: mark[i] for name, mark in zip(names, marks, strict=True)})
        is True
    ]
    return replace(rows, rows=tuple(kept))


def _among(rows: Naive, first: str, member: tree.Member, others: Naive) -> list[bool]:
    """Whether each row's person is among those of other rows, or the row that its key names."""
    if rows.is_person(member.column, first) and any(field.person for field in others.fields):
        persons = {person for person, _ in others.rows}
        return [person in persons for person, _ in rows.rows]
    ours = next(i for i in rows.identifying(member.column, first) if not rows.fields[i].person)
    theirs = next(
        i for i, field in enumerate(others.fields) if field.type is None and not field.person
    )
    named = {cells[theirs] for _, cells in others.rows} - {None}
    return [cells[ours] in named for _, cells in rows.rows]


def selected(rows: tree.Rows | tree.UnionAll, declared: dataset.Dataset, raw: Raw) -> Naive:
    """The rows of a SELECT, or of several."""
    if isinstance(rows, tree.UnionAll):
        return _union([selected(part, declared, raw) for part in rows.parts])
    found, first = relation(rows.source, declared, raw)
    found = filtered(found, first, rows.where, declared, raw)
    if rows.keys is not None:
        found = _per_person(found, first, rows)
    elif rows.items or not rows.every or any(field.hidden for field in found.fields):
        found = _derived(found, first, rows)
    return replace(found, rows=tuple(dict.fromkeys(found.rows))) if rows.distinct else found


# tables


def _scan(table: dataset.Table, name: str, declared: dataset.Dataset, raw: Raw) -> Naive:
    fields = [
        Field(column, name, _read_type(cells.type)) for column, cells in table.columns.items()
    ]
    if table.has_persons:
        fields.append(Field(_person_name(table, declared), name, person=True))
    fields += [Field(key, name) for key in table.identities]
    rows = []
    owners = _owners(table, declared, raw)
    for person, row in zip(owners, raw[table.name], strict=True):
        if person is None:
            continue
        cells = [clean(column, row[own]) for own, column in table.columns.items()]
        cells += [person] * table.has_persons + [row[key] for key in table.identities]
        rows.append((person, tuple(cells)))
    return Naive(tuple(fields), tuple(rows), table.bounds.total, table.public)


def _read_type(kind: Type) -> Type:
    return kind if isinstance(kind, Nothing) else replace(kind, nullable=True)


def _person_name(table: dataset.Table, declared: dataset.Dataset) -> str:
    """Like the parent's, unless the table has a column or key of that name; then the kind of persons."""
    if table.via is None:
        assert table.person is not None
        return table.person
    name = _person_name(declared.tables[table.via.parent], declared)
    taken = {column.casefold() for column in (*table.columns, *table.identities)}
    return name if name.casefold() not in taken else str(table.persons)


def _owners(table: dataset.Table, declared: dataset.Dataset, raw: Raw) -> list[Any]:
    """Whose each row is: the person of its column, that of the row which it names, or nobody (None)."""
    rows = raw[table.name]
    if table.via is None:
        return [
            number if table.person is None else row[table.person] for number, row in enumerate(rows)
        ]
    parents = list(
        zip(
            _owners(declared.tables[table.via.parent], declared, raw),
            raw[table.via.parent],
            strict=True,
        )
    )
    found: list[Any] = []
    for row in rows:
        named = [
            person
            for person, parent in parents
            if all(
                row[own] is not None and row[own] == parent[theirs]
                for own, theirs in table.via.keys
            )
        ]
        assert len(named) <= 1, "a key of the parent is not unique"
        found.append(named[0] if named else None)
    return found


# joins


def _join(join: tree.Join, declared: dataset.Dataset, raw: Raw) -> tuple[Naive, str]:
    left, first = relation(join.left, declared, raw)
    right, _ = relation(join.right, declared, raw)
    pairs = [_sides(left, right, first, join.right.name, pair) for pair in join.on]
    if right.public or left.public:
        return _lookup(join, left, right, first, pairs), first
    on_person = any(
        left.is_person(a, first) and right.is_person(b, join.right.name) for a, b in pairs
    )
    matched: list[tuple[int, int]] = []
    same = {(a.name.casefold(), b.name.casefold()) for a, b in pairs}
    for one, other in pairs:
        ours, theirs = left.identifying(one, first), right.identifying(other, join.right.name)
        persons = [
            [i for i in places if rows.fields[i].person]
            for places, rows in ((ours, left), (theirs, right))
        ]
        keys = [
            [i for i in places if not rows.fields[i].person]
            for places, rows in ((ours, left), (theirs, right))
        ]
        if all(persons):
            matched.append((persons[0][0], persons[1][0]))
        elif all(keys) and not on_person:
            matched.append((keys[0][0], keys[1][0]))
        else:
            matched.append(
                (left.named(first)[_qualified(one)], right.named(join.right.name)[other.name])
            )
    kept = [i for i, field in enumerate(right.fields) if join.kind == "inner" or not field.person]
    shown = [
        replace(f, hidden=f.hidden or (f.name.casefold(), f.name.casefold()) in same)
        for f in (right.fields[i] for i in kept)
    ]
    rows: list[tuple[Any, tuple[Any, ...]]] = []
    empty = Naive((*left.fields, *shown), (), _larger(left.most, right.most))
    places = empty.named(first)
    for person, own in left.rows:
        partners = []
        for other_person, found in right.rows:
            if any(own[a] is None or found[b] is None or own[a] != found[b] for a, b in matched):
                continue
            assert person == other_person, "a pair of rows of two persons"
            cells = (*own, *(found[i] for i in kept))
            if (
                join.condition is None
                or evaluate(join.condition, {n: cells[i] for n, i in places.items()}) is True
            ):
                partners.append((person, cells))
        if not partners and join.kind == "left":
            partners = [(person, (*own, *[None] * len(kept)))]
        rows += partners
    return replace(empty, rows=tuple(rows)), first


def _qualified(column: tree.Column) -> str:
    return column.name if column.table is None else f"{column.table}.{column.name}"


def _sides(
    left: Naive, right: Naive, first: str, name: str, pair: tuple[tree.Column, tree.Column]
) -> tuple[tree.Column, tree.Column]:
    """The column of the left side first."""
    one, other = pair
    if one.table == name and other.table != name:
        one, other = other, one
    return one, replace(other, table=name)


def _larger(one: int | None, other: int | None) -> int | None:
    return max((n for n in (one, other) if n is not None), default=None)


def _lookup(
    join: tree.Join,
    left: Naive,
    right: Naive,
    first: str,
    pairs: Sequence[tuple[tree.Column, tree.Column]],
) -> Naive:
    """Each row with the public row of its key; where several public rows share one,
    the smallest cell of each column.
    """
    swapped = not right.public
    rows, public = (right, left) if swapped else (left, right)
    ours, theirs = (join.right.name, first) if swapped else (first, join.right.name)
    matched = []
    for one, other in pairs:
        own, found = (other, one) if swapped else (one, other)
        matched.append(
            (
                rows.named(ours)[own.name if swapped else _qualified(own)],
                public.named(theirs)[found.name],
            )
        )
    taken = {field.name.casefold() for field in rows.fields}
    shown = tuple(replace(field, hidden=field.name.casefold() in taken) for field in public.fields)
    made: list[tuple[Any, tuple[Any, ...]]] = []
    for person, cells in rows.rows:
        partners = [
            other
            for _, other in public.rows
            if all(cells[a] is not None and cells[a] == other[b] for a, b in matched)
        ]
        if not partners and join.kind == "inner":
            continue
        beside = tuple(
            min((other[i] for other in partners if other[i] is not None), default=None)
            for i in range(len(public.fields))
        )
        made.append((person, (*beside, *cells) if swapped else (*cells, *beside)))
    return Naive(
        (*shown, *rows.fields) if swapped else (*rows.fields, *shown), tuple(made), rows.most
    )


# rows of a SELECT


def _derived(rows: Naive, first: str, select: tree.Rows) -> Naive:
    """The items row by row, windows included."""
    kept = [i for i, field in enumerate(rows.fields) if select.every and not field.hidden]
    named = rows.named_rows(first)
    fields = [rows.fields[i] for i in kept]
    columns: list[Sequence[Any]] = [[cells[i] for _, cells in rows.rows] for i in kept]
    for item in select.items:
        own = _of(rows, first, item.value)
        if own:
            fields += [replace(rows.fields[i], name=item.name, table="", hidden=False) for i in own]
            columns += [[cells[i] for _, cells in rows.rows] for i in own]
            continue
        windows = _outermost([item.value], lambda part: _inside(part, tree.Window) is not None)
        names = {part: f"window {i}" for i, part in enumerate(windows)}
        beside: dict[str, Sequence[Any]] = {}
        kinds: dict[str, Type] = {}
        for part, name in names.items():
            kinds[name], beside[name] = _window(rows, first, part)
        asked = _put(item.value, names)
        fields.append(Field(item.name, "", rows.type_of(asked, first, kinds)))
        columns.append(
            [
                evaluate(asked, row | {n: v[i] for n, v in beside.items()})
                for i, (_, row) in enumerate(named)
            ]
        )
    made = [
        (person, tuple(column[i] for column in columns)) for i, (person, _) in enumerate(rows.rows)
    ]
    return replace(rows, fields=tuple(fields), rows=tuple(made))


def _of(rows: Naive, first: str, value: tree.Expression) -> list[int]:
    """All that a name means: the person and its value, if the person's column is declared."""
    if not isinstance(value, tree.Column):
        return []
    qualifier = value.table or (first if value.first else None)
    found = [
        i
        for i, f in enumerate(rows.fields)
        if f.name == value.name and qualifier in (None, f.table)
    ]
    visible = [i for i in found if not rows.fields[i].hidden]
    return found if qualifier is not None else visible or found[:1]


def _window(rows: Naive, first: str, part: tree.Expression) -> tuple[Type, list[Any]]:
    """A function of the rows around each row, of its person and with the same keys; ties are broken by all cells."""
    window, limits = _inside(part, tree.Window)  # type: ignore[misc]
    named = rows.named_rows(first)
    keys = [one for one in window.partition if not rows.is_person(one, first)]
    groups: dict[Any, list[int]] = defaultdict(list)
    for i, (person, row) in enumerate(named):
        groups[person, tuple(evaluate(key, row) for key in keys)].append(i)
    ties = [i for i, field in enumerate(rows.fields) if not field.person]
    values = [[evaluate(argument, row) for argument in window.arguments] for _, row in named]
    kind = rows.type_of(window.arguments[0], first) if window.arguments else None
    result: list[Any] = [None] * len(named)
    for places in groups.values():
        ordered = sorted(places, key=lambda i: [_rank(rows.rows[i][1][t], False) for t in ties])
        for one, down in reversed(window.order):
            ordered = sorted(ordered, key=lambda i: _rank(evaluate(one, named[i][1]), down))
        for place, i in enumerate(ordered):
            frame = ordered[: place + 1] if window.order else ordered
            if window.frame is not None:
                first_row, last_row = window.frame
                start = 0 if first_row is None else max(0, place + first_row)
                end = len(ordered) if last_row is None else max(0, place + last_row + 1)
                frame = ordered[start:end]
            match window.function:
                case "row_number":
                    result[i] = place + 1
                case "count":
                    result[i] = sum(1 for j in frame if not values[j] or values[j][0] is not None)
                case "sum":
                    result[i] = [values[j][0] for j in frame]
                case "first_value":
                    result[i] = values[frame[0]][0] if frame else None
                case "lag" | "lead":
                    away = values[i][1] if len(values[i]) > 1 else 1
                    other = place - away if window.function == "lag" else place + away
                    result[i] = values[ordered[other]][0] if 0 <= other < len(ordered) else None
    match window.function:
        case "row_number" | "count":
            return _cut(
                result, 1 if window.function == "row_number" else 0, None, Fraction(1), limits
            )
        case "sum":
            grid = _grid(kind, MOST_CELLS)
            low, high = 0 if grid.first >= 0 else None, 0 if grid.last <= 0 else None
            return _cut([_total(grid, own) for own in result], low, high, grid.step, limits)
        case _:
            assert kind is not None
            return _clamp_each(kind, result, limits)


@dataclass(frozen=True)
class _Backwards:
    """A value that comes first where it is larger."""

    value: Any

    def __lt__(self, other: _Backwards) -> bool:
        return bool(other.value < self.value)


def _rank(value: Any, down: bool) -> tuple[bool, Any]:
    """NULL comes last, either way."""
    return (True, 0) if value is None else (False, _Backwards(value) if down else value)


def _per_person(rows: Naive, first: str, select: tree.Rows) -> Naive:
    """One row for each person and value of the other keys."""
    assert select.keys is not None
    named = rows.named_rows(first)
    keys = [key for key in select.keys if not rows.is_person(key, first)]
    also = [
        key
        for key in select.keys
        if rows.is_person(key, first) and any(rows.fields[i].type for i in _of(rows, first, key))
    ]
    groups: dict[Any, list[dict[str, Any]]] = defaultdict(list)
    for person, row in named:
        groups[person, tuple(evaluate(key, row) for key in keys)].append(row)
    known: dict[tree.Expression, str] = {key: f"key {i}" for i, key in enumerate((*keys, *also))}
    kinds = {name: rows.type_of(key, first) for key, name in known.items()}
    made: list[dict[str, Any]] = [
        dict(zip((known[key] for key in keys), cells, strict=True)) for _, cells in groups
    ]
    for key in also:
        for own, members in zip(made, groups.values(), strict=True):
            own[known[key]] = min(
                (v for v in (evaluate(key, row) for row in members) if v is not None), default=None
            )
    wanted = [item.value for item in select.items] + (
        [] if select.having is None else [select.having]
    )
    for part in _outermost(
        wanted, lambda part: part in known or _inside(part, tree.Aggregate) is not None
    ):
        if part in known:
            continue
        name = f"aggregate {len(known)}"
        aggregate, limits = _inside(part, tree.Aggregate)  # type: ignore[misc]
        argument = aggregate.arguments[0] if aggregate.arguments else None
        kind = None if argument is None else rows.type_of(argument, first)
        cells = [
            [None if argument is None else evaluate(argument, row) for row in own]
            for own in groups.values()
        ]
        kinds[name], results = _aggregate(aggregate, kind, cells, rows.most, limits)
        known[part] = name
        for own, value in zip(made, results, strict=True):
            own[name] = value
    persons = [person for person, _ in groups]
    if select.having is not None:
        asked = _put(select.having, known)
        pairs = [
            (person, own)
            for person, own in zip(persons, made, strict=True)
            if evaluate(asked, own) is True
        ]
        persons, made = [person for person, _ in pairs], [own for _, own in pairs]
    fields: list[Field] = []
    columns: list[list[Any]] = []
    for item in select.items:
        if rows.is_person(item.value, first):
            fields.append(Field(item.name, "", person=True))
            columns.append(list(persons))
            if item.value not in known:
                continue
        asked = _put(item.value, known)
        fields.append(Field(item.name, "", rows.type_of(asked, first, kinds)))
        columns.append([evaluate(asked, own) for own in made])
    result = [(person, tuple(column[i] for column in columns)) for i, person in enumerate(persons)]
    return replace(rows, fields=tuple(fields), rows=tuple(result))


def _aggregate(
    aggregate: tree.Aggregate,
    kind: Type | None,
    groups: Sequence[Sequence[Any]],
    most: int | None,
    limits: Any,
) -> tuple[Type, list[Any]]:
    """An aggregate of each group of cells, and its type."""
    function = aggregate.function
    present = [[v for v in own if v is not None] for own in groups]
    match function:
        case "count":
            counts = [len(own) for own in (groups if not aggregate.arguments else present)]
            return _cut(counts, 0, most, Fraction(1), limits)
        case "count_distinct":
            return _cut([len(set(own)) for own in present], 0, most, Fraction(1), limits)
        case "sum":
            grid = _grid(kind, MOST_CELLS)
            low = 0 if grid.first >= 0 else None if most is None else most * grid.first
            high = 0 if grid.last <= 0 else None if most is None else most * grid.last
            return _cut([_total(grid, own) for own in groups], low, high, grid.step, limits)
        case "avg":
            grid = _grid(kind, MOST_CELLS)
            means = [None if not own else float(_total(grid, own)) / len(own) for own in present]  # type: ignore[arg-type]
            return _clamp_each(
                Number(grid.lower, grid.upper), [_times(mean, grid.step) for mean in means], limits
            )
        case "var_pop" | "var_samp" | "stddev_pop" | "stddev_samp":
            grid = _grid(kind, MOST_SQUARED)
            spreads = [_spread(function, grid, own) for own in present]
            width, less = grid.upper - grid.lower, 4 if function.endswith("pop") else 2
            upper = width**2 / less if function.startswith("var") else width
            return _clamp_each(Number(Fraction(0), upper), spreads, limits)
        case "min" | "max":
            assert kind is not None
            pick = min if function == "min" else max
            return _clamp_each(kind, [pick(own, default=None) for own in present], limits)
        case "quantile":
            assert kind is not None
            assert aggregate.parameter is not None
            picked = []
            for own in map(sorted, present):
                after = math.floor(len(own) * (1 - aggregate.parameter))
                picked.append(own[max(1, len(own) - after) - 1] if own else None)
            return _clamp_each(kind, picked, limits)
        case "any" | "every":
            met = any if function == "any" else all
            return Truth(), [met(own) if own else None for own in present]
    raise AssertionError(function)


def _spread(function: str, grid: Grid, cells: Sequence[Any]) -> float | None:
    steps = [_steps(grid, v) - grid.first for v in cells]
    n, less = len(steps), 0 if function.endswith("pop") else 1
    if n <= less:
        return None
    top = n * sum(k * k for k in steps) - sum(steps) ** 2
    variance = float(top) / (float(n) * (float(n) - less))
    if grid.step != 1:
        variance *= float(grid.step**2)
    return variance if function.startswith("var") else math.sqrt(max(variance, 0.0))


def _grid(kind: Type | None, most: int) -> Grid:
    if isinstance(kind, Truth):
        number = indicator(Typed(kind, exp.column("x"))).type
        assert isinstance(number, Number)
        return Grid.of(number, "", most)
    assert isinstance(kind, Number)
    return Grid.of(kind, "", most)


def _steps(grid: Grid, value: Any) -> int:
    """The nearest point of a grid, halves upwards: exactly for whole numbers, in doubles for others."""
    if isinstance(value, bool | int):
        return min(
            max(math.floor(Fraction(int(value)) / grid.step + Fraction(1, 2)), grid.first),
            grid.last,
        )
    moved = float(value) / float(grid.step) + 0.5
    if math.isinf(moved):
        return grid.last if moved > 0 else grid.first
    return min(max(math.floor(moved), grid.first), grid.last)


def _total(grid: Grid, cells: Iterable[Any]) -> int | None:
    steps = [_steps(grid, value) for value in cells if value is not None]
    return sum(steps) if steps else None


def _times(value: float | None, step: Fraction) -> float | None:
    return value if value is None or step == 1 else value * float(step)


def _cut(
    totals: Sequence[int | None], low: int | None, high: int | None, step: Fraction, limits: Any
) -> tuple[Type, list[Any]]:
    """Whole numbers of steps, cut to bounds: those of a CLAMP, or what max_rows rows reach.

    Without both they are floats.
    """
    if limits is not None:
        low, high = math.ceil(Fraction(limits[0]) / step), math.floor(Fraction(limits[1]) / step)
    kind = Number(None if low is None else low * step, None if high is None else high * step, step)
    if low is None or high is None:
        return kind, [None if n is None else _times(float(n), step) for n in totals]
    cut = [None if n is None else min(max(n, low), high) for n in totals]
    if kind.integral:
        return kind, [None if n is None else int(n * step) for n in cut]
    return kind, [None if n is None else _times(float(n), step) for n in cut]


def _clamp_each(kind: Type, values: list[Any], limits: Any) -> tuple[Type, list[Any]]:
    if limits is None:
        return _read_type(kind), values
    part = tree.Call("clamp", (tree.Column("v"), *map(tree.Literal, limits)))
    made = typed(part, lambda _: Typed(kind, exp.column("x"))).type
    return made, [evaluate(part, {"v": value}) for value in values]


def _union(parts: Sequence[Naive]) -> Naive:
    """The rows of all parts; whole numbers beside others become floats, days beside moments become moments."""
    first = parts[0]
    places = [
        [i for i, field in enumerate(part.fields) if field.type is not None] for part in parts
    ]
    people = [[i for i, field in enumerate(part.fields) if field.person] for part in parts]
    kinds = []
    for own in zip(*places, strict=True):
        cells = [
            Typed(part.fields[i].type, exp.column("x")) for part, i in zip(parts, own, strict=True)
        ]
        kinds.append(hull(alike("UNION ALL", cells)))
    rows = [
        (
            person,
            (
                *(cells[i] for i in persons),
                *(_as_kind(k, cells[i]) for k, i in zip(kinds, own, strict=True)),
            ),
        )
        for part, own, persons in zip(parts, places, people, strict=True)
        for person, cells in part.rows
    ]
    fields = [first.fields[i] for i in people[0]]
    fields += [
        replace(first.fields[i], type=k, table="") for i, k in zip(places[0], kinds, strict=True)
    ]
    bounds = [part.most for part in parts]
    most = None if None in bounds else sum(n for n in bounds if n is not None)
    return Naive(tuple(fields), tuple(rows), most)


def _as_kind(kind: Type, value: Any) -> Any:
    if isinstance(kind, Number) and not kind.integral and value is not None:
        return float(value)
    if isinstance(kind, Moment) and type(value) is date:
        return datetime(value.year, value.month, value.day)
    return value


# expressions


def _walk(node: tree.Expression) -> Iterable[tree.Expression]:
    yield node
    if not isinstance(node, tree.Member):
        for part in children(node):
            yield from _walk(part)


def _inside(part: tree.Expression, kind: type[Any]) -> tuple[Any, tuple[Any, Any] | None] | None:
    """A window or an aggregate, perhaps within a CLAMP, with its bounds."""
    match part:
        case tree.Call("clamp", (inner, tree.Literal(low), tree.Literal(high))) if isinstance(
            inner, kind
        ):
            return inner, (low, high)
        case _:
            return (part, None) if isinstance(part, kind) else None


def _outermost(
    expressions: Iterable[tree.Expression], wanted: Callable[[tree.Expression], bool]
) -> list[tree.Expression]:
    found: dict[tree.Expression, None] = {}
    for node in expressions:
        if wanted(node):
            found[node] = None
        elif not isinstance(node, tree.Member):
            found |= dict.fromkeys(_outermost(children(node), wanted))
    return list(found)


def _put(node: tree.Expression, names: Mapping[tree.Expression, str]) -> tree.Expression:
    """The expression with some parts replaced by columns of these names."""
    if node in names:
        return tree.Column(names[node])
    match node:
        case tree.Call(function, arguments):
            return tree.Call(function, tuple(_put(part, names) for part in arguments))
        case tree.Case(branches, otherwise):
            pairs = tuple((_put(when, names), _put(then, names)) for when, then in branches)
            return tree.Case(pairs, _put(otherwise, names))
        case _:
            return node

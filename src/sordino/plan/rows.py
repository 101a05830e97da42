"""The SQL of a relation: a SELECT of the wanted columns by alias, and of the person as `u` where there is one."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import assert_never

from sqlglot import exp

from sordino.plan.fragments import column, identifier, named, select, source
from sordino.plan.relations import (
    PERSON,
    Derive,
    Filter,
    Join,
    Lookup,
    PerPerson,
    Relation,
    Scan,
    UnionAll,
    Window,
    aliases,
    mentioned,
)
from sordino.plan.statement import Values
from sordino.plan.uncleaned import asked_of_cells
from sordino.query import dataset
from sordino.query.meaning import nodes, reading
from sordino.query.types import Number, Text

__all__ = ["cleaned_rows", "public_rows", "select_rows"]


def cleaned_rows(
    relation: Relation, wanted: Collection[str], lists: dict[str, Values], *, owned: bool = True
) -> exp.Select:
    """As `select_rows`; cells that only pass through are cleaned at the end, when fewer rows may be left."""
    late = _late(relation, {alias for alias in wanted if alias != PERSON})
    rows = select_rows(relation, wanted, lists, owned=owned, raw=late)
    with_person = owned and relation.whose.owner == "person"
    return _select(set(wanted) - late.keys() - {PERSON}, rows, with_person, late) if late else rows


def _late(relation: Relation, asked: Collection[str], *, alone: bool = True) -> dict[str, exp.Expr]:
    """How cells that nothing below reads are cleaned, by alias; `alone` says that no row can be dropped before."""
    match relation:
        case Scan() if not alone:
            return {
                alias: reading.read(declared, column(alias)).sql
                for alias, declared in _cleanable(relation).items()
                if alias in asked
            }
        case Filter(rows):
            return _late(rows, set(asked) - mentioned(_by_cleaning(relation)[1]), alone=False)
        case Derive(rows, _, values):
            used = [value for alias, value in values.items() if alias in asked]
            return _late(rows, set(asked) - values.keys() - mentioned(used), alone=alone)
        case Lookup(rows, public, match):
            return _late(rows, set(asked) - aliases(public) - mentioned([match]), alone=False)
        case Join(left, right, condition=condition, keys=keys, owner=owner):
            read = {field.alias for pair in keys for field in pair}
            read |= set() if condition is None else mentioned([condition])
            # a parent's row stands beside many: it is cleaned before
            sides = [
                side
                for side, name in ((left, "left"), (right, "right"))
                if not keys or relation.via or name != owner
            ]
            found = [_late(side, set(asked) & aliases(side) - read, alone=False) for side in sides]
            return {alias: value for one in found for alias, value in one.items()}
        case _:
            return {}


def select_rows(
    relation: Relation,
    wanted: Collection[str],
    lists: dict[str, Values],
    *,
    owned: bool = True,
    raw: Collection[str] = (),
) -> exp.Select:
    """The wanted columns of a relation, with the person unless `owned` says that it is known otherwise.

    `lists` takes in the long public lists that the SELECT reads. Columns in `raw` are not cleaned: nothing below reads
    them.
    """
    asked = {alias for alias in wanted if alias != PERSON}
    with_person = owned and relation.whose.owner == "person"
    match relation:
        case Scan():
            return _scan(relation, asked, lists, with_person, raw)
        case Filter():
            return _filtered(relation, asked, lists, with_person, owned, raw)
        case Derive(rows, _, values):
            made = {alias: value for alias, value in values.items() if alias in asked}
            inner = select_rows(
                rows, (asked - set(made)) | mentioned(made.values()), lists, owned=owned, raw=raw
            )
            return _select(asked - set(made), inner, with_person, made) if made else inner
        case Lookup():
            return _lookup(relation, asked, lists, owned, raw)
        case Join(via=True) if not owned:
            return select_rows(relation.left, asked, lists, owned=False, raw=raw)
        case Join():
            return _join(relation, asked, lists, with_person, raw)
        case PerPerson(rows, _, keys, values):
            made = {alias: value for alias, value in values.items() if alias in asked}
            inner = cleaned_rows(rows, set(keys) | mentioned(made.values()), lists)
            found = _select(asked - set(made), inner, with_person, made)
            return found.group_by(*(column(name) for name in (PERSON, *keys)), copy=False)
        case UnionAll(parts, _):
            first, *rest = (_ordered(part, asked, lists, with_person) for part in parts)
            together: exp.Query = first
            for part in rest:
                together = exp.Union(this=together, expression=part, distinct=False)
            return select([exp.Star()], together, "parts")
        case Window(rows, _, values):
            made = {alias: value for alias, value in values.items() if alias in asked}
            inner = cleaned_rows(
                rows, (asked - set(made)) | (mentioned(made.values()) - {PERSON}), lists
            )
            return _select(asked - set(made), inner, with_person, made) if made else inner
        case _:
            assert_never(relation)


def _select(
    kept: Collection[str],
    inner: exp.Select,
    with_person: bool,
    made: dict[str, exp.Expr] | None = None,
    where: Collection[exp.Expr] = (),
) -> exp.Select:
    items: list[exp.Expr] = [column(PERSON)] if with_person else []
    items += [column(alias) for alias in sorted(kept, key=_place)]
    items += [named(value.copy(), alias) for alias, value in (made or {}).items()]
    return select(items or [named(exp.true(), "c")], inner, "rows", where=list(where))


def _filtered(
    relation: Filter,
    asked: set[str],
    lists: dict[str, Values],
    with_person: bool,
    owned: bool,
    raw: Collection[str],
) -> exp.Select:
    """The rows that satisfy all conditions: first those on cells as they are, then the others, on clean ones."""
    rows, (early, others) = relation.rows, _by_cleaning(relation)
    needed = (asked | mentioned(others)) - {PERSON}
    if isinstance(rows, Scan) and early:
        cleaned = _cleanable(rows)
        late = _late(rows, needed - set(raw), alone=False)
        cells = _scan(rows, needed | mentioned(early), lists, with_person, cleaned)
        inner = _select(needed, cells, with_person, where=early)
        if late:
            inner = _select(needed - late.keys(), inner, with_person, late)
    else:
        inner = select_rows(rows, needed, lists, owned=owned, raw=raw)
    kept = [condition.copy() for condition in others]
    return _select(asked, inner, with_person, where=kept) if kept else inner


def _by_cleaning(relation: Filter) -> tuple[list[exp.Expr], list[exp.Expr]]:
    """The conditions that can be asked of cells as they are, in that form, and the others."""
    early, others = list[exp.Expr](), list[exp.Expr]()
    cells = _cleanable(relation.rows) if isinstance(relation.rows, Scan) else None
    for condition in relation.conditions:
        found = None if cells is None else asked_of_cells(condition, cells)
        if found is None:
            others.append(condition)
        else:
            early.append(found)
    return early, others


def _cleanable(scan: Scan) -> dict[str, dataset.Column]:
    """The columns of a table that are cleaned by an expression of the cell, and not where they are used."""
    own = [field for field in scan.fields if field.identity is None and field.raw is None]
    columns = {field.alias: scan.table.columns[field.name] for field in own}
    return {
        alias: declared
        for alias, declared in columns.items()
        if not declared.clean and not _is_looked_up(declared)
    }


def _place(alias: str) -> tuple[int, str]:
    """Aliases in the order of their numbers."""
    return len(alias), alias


def _ordered(
    part: Relation, asked: Collection[str], lists: dict[str, Values], with_person: bool
) -> exp.Select:
    """A part of a union, with its columns in the one order of all parts."""
    return _select(asked, cleaned_rows(part, asked, lists), with_person)


@dataclass(frozen=True)
class _Listed:
    """A column whose values are looked up in a long public list: the values, and the cell to look for."""

    values: Values
    cell: exp.Expr

    @cached_property
    def name(self) -> str:
        """A name that tells the list, so that the engine holds it once, and that no declared table has by chance."""
        return f"list {sha256(repr(self.values).encode()).hexdigest()[:32]}"


def _is_looked_up(declared: dataset.Column) -> bool:
    """Whether the cells of a column are looked up in a long public list."""
    values = getattr(declared.type, "values", None)
    listed = isinstance(declared.type, Text | Number) and values is not None
    return listed and not declared.clean and reading.is_long(values or ())


def _scan(
    scan: Scan,
    asked: Collection[str],
    lists: dict[str, Values],
    with_person: bool,
    raw: Collection[str] = (),
) -> exp.Select:
    """The cleaned cells of a table; each row finds at most one value in the long lists of its columns."""
    table = scan.table
    items: list[exp.Expr] = []
    if with_person:
        items.append(named(column(table.person_column, table.name), PERSON))
    joined: list[tuple[_Listed, str]] = []
    for field in scan.fields:
        if field.alias not in asked:
            continue
        if field.identity is not None:
            items.append(named(column(table.identity_column(field.name), table.name), field.alias))
            continue
        cell, declared = column(field.name, table.name), table.columns[field.name]
        if field.raw is not None or field.alias in raw:
            items.append(named(cell, field.alias))
        elif (
            isinstance(kind := declared.type, Text | Number)
            and kind.values is not None
            and _is_looked_up(declared)
        ):
            # longer than the table's name, so that it is another one
            beside = f"{field.alias} of {table.name}"
            joined.append((_Listed(kind.values, reading.raw(kind, cell)), beside))
            items.append(named(column("value", beside), field.alias))
        else:
            items.append(named(reading.read(declared, cell).sql, field.alias))
    rows = select(items or [named(exp.true(), "c")], source(table.name))
    for listed, beside in joined:
        lists[listed.name] = listed.values
        relation = exp.alias_(
            exp.Table(this=identifier(listed.name)), identifier(beside), table=True
        )
        same = exp.EQ(this=column("value", beside), expression=listed.cell.copy())
        rows = rows.join(relation, on=same, join_type="LEFT", copy=False)
    return rows


def _lookup(
    lookup: Lookup,
    asked: Collection[str],
    lists: dict[str, Values],
    owned: bool,
    raw: Collection[str] = (),
    *,
    by_key: bool = False,
    bounded: bool = False,
) -> exp.Select:
    """Each row beside the wanted columns of a public table; `by_key` says that the rows are looked up themselves, and
    `bounded` then, that nobody's or bounded persons' rows find them.
    """
    wanted = set(asked) | mentioned([lookup.match])
    theirs = aliases(lookup.public) & wanted
    if by_key:
        rows = _public(lookup.rows, wanted - theirs, lists, bounded)
    else:
        rows = select_rows(lookup.rows, wanted - theirs, lists, owned=owned, raw=raw)
        bounded = not lookup.rows.whose.by_row or lookup.rows.whose.public
    public = _public(lookup.public, theirs, lists, bounded)
    found = public.subquery(identifier("p"), copy=False)
    inner = select([exp.Star()], rows, "q")
    return inner.join(found, on=lookup.match.copy(), join_type=lookup.kind.upper(), copy=False)


def _public(
    public: Relation, wanted: Collection[str], lists: dict[str, Values], bounded: bool
) -> exp.Select:
    """The wanted columns of public rows: one row for each key of the table that they begin with."""
    match public:
        case Scan():
            return public_rows(public, wanted, lists, bounded=bounded)
        case Filter(rows, conditions):
            inner = _public(rows, {*wanted, *mentioned(conditions)}, lists, bounded)
            return _select(
                wanted, inner, False, where=[condition.copy() for condition in conditions]
            )
        case Lookup():
            return _lookup(public, wanted, lists, owned=False, by_key=True, bounded=bounded)
        case _:
            raise AssertionError("no public rows are made otherwise")


def public_rows(
    public: Scan, wanted: Collection[str], lists: dict[str, Values], *, bounded: bool = False
) -> exp.Select:
    """The wanted columns of a public table, its key among them: one row for each key whatever the file holds.

    Where rows are `bounded` by person afterwards, or nobody's, it is enough that keys were unique when they were read:
    what a file that is exchanged amid a question holds cannot make a person count more.
    """
    contents = public.table.contents
    if contents is not None and contents.unique and (contents.held or bounded):
        return _scan(public, wanted, lists, with_person=False)
    theirs = [field for field in public.fields if field.alias in wanted]
    keys = [field.alias for field in theirs if field.name in public.table.key]
    one = [
        named(nodes.extreme("min", column(field.alias), field.type), field.alias)
        for field in theirs
        if field.alias not in keys
    ]
    cells = _scan(public, {field.alias for field in theirs}, lists, with_person=False)
    return select([*(column(key) for key in keys), *one], cells, "r", group=keys)


def _join(
    join: Join,
    asked: Collection[str],
    lists: dict[str, Values],
    with_person: bool,
    raw: Collection[str],
) -> exp.Select:
    by_key = bool(join.keys)
    needed = set(asked) | (mentioned([join.condition]) if join.condition is not None else set())
    sides = []
    for relation, ours in ((join.left, 0), (join.right, 1)):
        own = aliases(relation) & needed | {pair[ours].alias for pair in join.keys}
        owns = not by_key or join.owner == ("left", "right")[ours]
        if join.marks and ours:
            keys = [theirs.alias for _, theirs in join.keys] or [PERSON]
            rows = select_rows(relation, keys, lists, owned=not by_key)
            if join.kind == "mark":
                rows = select([column(key) for key in keys], rows, "rows", group=keys)
        else:
            rows = select_rows(relation, own, lists, owned=owns, raw=raw)
        sides.append(rows)
    left, right = sides
    pairs = [(one.alias, other.alias) for one, other in join.keys] or [(PERSON, PERSON)]
    same = [
        exp.EQ(this=column(ours, "l"), expression=column(theirs, "r")) for ours, theirs in pairs
    ]
    on = exp.and_(
        *same,
        *([] if join.condition is None else [exp.Paren(this=join.condition.copy())]),
        copy=False,
    )
    mark = join.fields[-1].alias if join.marks else ""
    kept = sorted(set(asked) - {mark}, key=_place)
    items: list[exp.Expr] = []
    if with_person:
        items.append(
            named(column(PERSON, "r" if by_key and join.owner == "right" else "l"), PERSON)
        )
    items += [column(alias) for alias in kept]
    if mark in asked:
        there = exp.Not(this=exp.Is(this=column(pairs[0][1], "r"), expression=exp.Null()))
        items.append(
            named(there if join.kind == "mark" else exp.convert(join.kind == "semi"), mark)
        )
    rows = select(items or [named(exp.true(), "c")], left, "l")
    kind = "LEFT" if join.kind == "mark" else join.kind.upper()
    return rows.join(right.subquery(identifier("r"), copy=False), on=on, join_type=kind, copy=False)

"""Rows fall early: conditions, and lookups that drop rows, stand as deep in a relation as they can.

Engines are told not to reorder what a question says (they would go by statistics of cells), so this does, by the shape
of the relation only: the same for all data. Each step keeps the multiset of rows, with all columns that anybody reads
(relations.md, Theorem 4).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Literal, assert_never

from sqlglot import exp

from sordino.plan.relations import (
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

__all__ = ["pushed_down"]


def pushed_down(relation: Relation) -> Relation:
    """The same rows, with what drops some of them as early as it can be."""
    match relation:
        case Scan():
            return relation
        case Filter(rows, conditions):
            found = pushed_down(rows)
            for part in (part for condition in conditions for part in _parts(condition, exp.And)):
                found = _filtered(found, part)
            return found
        case Lookup(rows):
            return _looked_up(pushed_down(rows), relation)
        case Join(left, right, kind=kind, condition=on):
            sides, rest = [pushed_down(left), pushed_down(right)], list[exp.Expr]()
            for part in [] if on is None else _parts(on, exp.And):
                own = [mentioned([part]) <= aliases(side) for side in sides]
                # a row on the left that fails the condition of a left join stays, without a partner
                if mentioned([part]) and (own[1] or (own[0] and kind == "inner")):
                    sides[own[1]] = _filtered(sides[own[1]], part)
                else:
                    rest.append(part)
            return replace(relation, left=sides[0], right=sides[1], condition=_all(rest))
        case UnionAll(parts):
            return replace(relation, parts=tuple(map(pushed_down, parts)))
        case Derive(rows) | PerPerson(rows) | Window(rows):
            return replace(relation, rows=pushed_down(rows))
        case _:
            assert_never(relation)


def _filtered(rows: Relation, condition: exp.Expr) -> Relation:
    """The rows that satisfy a condition, which is asked as deep as it can be."""
    asked = mentioned([condition])
    match rows:
        case _ if not asked:
            pass
        case Filter(inner, others):
            below = _filtered(inner, condition)
            if isinstance(below, Filter) and below.rows is inner:
                return Filter(inner, (*others, condition))
            return Filter(below, others)
        case Derive(inner, _, values) if not asked & values.keys() and asked <= aliases(inner):
            return replace(rows, rows=_filtered(inner, condition))
        case Lookup(inner, public, kind=kind) as lookup:
            if asked <= aliases(inner):
                return replace(rows, rows=_filtered(inner, condition))
            if kind == "inner" and asked <= aliases(public):
                return _looked_up(inner, replace(lookup, public=_filtered(public, condition)))
            rows = _before(rows, condition, inner, *([public] if kind == "inner" else []))
        case Join(left, right, kind=kind):
            if asked <= aliases(left):
                return replace(rows, left=_filtered(left, condition))
            if kind == "inner" and asked <= aliases(right):
                return replace(rows, right=_filtered(right, condition))
            if kind == "mark" and (kept := _kept(condition, rows.fields[-1].alias)):
                return replace(rows, kind=kept)
            rows = _before(rows, condition, left, *([right] if kind == "inner" else []))
    return Filter(rows, (condition,))


def _before(rows: Relation, condition: exp.Expr, *sides: Relation) -> Relation:
    """The rows, of whose sides each is asked before for what a condition on both says of it alone."""
    for side in sides:
        for part in _implied(condition, aliases(side)):
            rows = _filtered(rows, part)
    return rows


def _kept(condition: exp.Expr, mark: str) -> Literal["semi", "anti"] | None:
    """Which join keeps the rows whose mark a condition asks for; None if it is about more."""
    match condition.unnest():
        case exp.Column() as one if one.name == mark:
            return "semi"
        case exp.Not() as other if (
            isinstance(one := other.this.unnest(), exp.Column) and one.name == mark
        ):
            return "anti"
        case _:
            return None


def _implied(condition: exp.Expr, own: Collection[str]) -> Iterator[exp.Expr]:
    """What a condition of alternatives says of some columns alone, if each of them says something."""
    alternatives = []
    for alternative in _parts(condition, exp.Or):
        said = [
            part
            for part in _parts(alternative, exp.And)
            if mentioned([part]) and mentioned([part]) <= set(own)
        ]
        if not said:
            return
        alternatives.append(_all(said))
    if len(alternatives) > 1:
        yield exp.Paren(
            this=exp.or_(*(part for part in alternatives if part is not None), copy=True)
        )


def _looked_up(rows: Relation, lookup: Lookup) -> Relation:
    """The rows beside those of a public table, which they meet as early as it pays."""
    return _sunk(rows, lookup) or replace(lookup, rows=rows)


def _sunk(rows: Relation, lookup: Lookup) -> Relation | None:
    """The lookup somewhere within the rows; None if it is as well after them.

    Public rows that are looked up beside other public rows meet these first: there are fewer of them than of the
    persons'.
    """
    public, own = lookup.public, mentioned([lookup.match]) - aliases(lookup.public)
    drops = lookup.kind == "inner" and _has_filter(public)
    match rows:
        case Filter(inner):
            below = _sunk(inner, lookup)
            return None if below is None else replace(rows, rows=below)
        case Lookup(inner, other, kind=kind):
            if own and own <= aliases(other) and (kind == "inner" or lookup.kind == "left"):
                both = replace(lookup, rows=other, fields=(*other.fields, *public.fields))
                return _looked_up(
                    inner, replace(rows, public=both, fields=(*rows.fields, *public.fields))
                )
            if not own <= aliases(inner):
                return None
            below = _sunk(inner, lookup)
            if below is None and drops and not _has_filter(other):
                below = _beside(inner, lookup)
            return (
                None
                if below is None
                else replace(rows, rows=below, fields=(*rows.fields, *public.fields))
            )
        case Join(left, right, fields, kind) if drops:
            if rows.via and not own <= aliases(left):
                return None
            # the mark of a mark join stays the last field
            fields = (*public.fields, *fields)
            if own <= aliases(left):
                return replace(
                    rows, left=_sunk(left, lookup) or _beside(left, lookup), fields=fields
                )
            if kind == "inner" and own <= aliases(right):
                return replace(
                    rows, right=_sunk(right, lookup) or _beside(right, lookup), fields=fields
                )
    return None


def _beside(rows: Relation, lookup: Lookup) -> Lookup:
    """The lookup right after some rows."""
    return replace(lookup, rows=rows, fields=(*rows.fields, *lookup.public.fields))


def _has_filter(public: Relation) -> bool:
    match public:
        case Filter():
            return True
        case Lookup(rows, other, kind=kind):
            return _has_filter(rows) or (kind == "inner" and _has_filter(other))
        case _:
            return False


def _parts(condition: exp.Expr, operator: type[exp.Connector]) -> list[exp.Expr]:
    """The parts of a condition that AND, or OR, holds together."""
    plain = condition.unnest()
    if not isinstance(plain, operator):
        return [condition]
    return [*_parts(plain.left, operator), *_parts(plain.right, operator)]


def _all(parts: Collection[exp.Expr]) -> exp.Expr | None:
    """All of them at once; None if there is none."""
    return exp.and_(*parts, copy=True) if parts else None

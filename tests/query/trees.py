"""Query trees in short: a table with lookups in others, as most questions have it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from sordino.query.tree import Column, Join, Output, Query, Source, Table


@dataclass(frozen=True)
class Lookup:
    """A table beside the first one, by columns of the first one and its own."""

    table: str
    on: tuple[tuple[Column, str], ...]
    kind: Literal["left", "inner"] = "inner"


def source(table: str, joins: tuple[Lookup, ...] = ()) -> Source:
    """A table with its lookups."""
    found: Source = Table(table)
    for join in joins:
        pairs = tuple((ours, Column(theirs, join.table)) for ours, theirs in join.on)
        found = Join(found, Table(join.table), pairs, join.kind)
    return found


def lookups(query: Query) -> tuple[str, tuple[Lookup, ...]]:
    """The first table of a query and its lookups."""
    found, at = [], query.source
    while isinstance(at, Join):
        assert isinstance(at.right, Table)
        assert at.condition is None
        found.append(Lookup(at.right.table, tuple((a, b.name) for a, b in at.on), at.kind))
        at = at.left
    assert isinstance(at, Table)
    return at.table, tuple(reversed(found))


def asked(
    table: str,
    outputs: tuple[Output, ...],
    where: Any = None,
    keys: tuple[Any, ...] = (),
    joins: tuple[Lookup, ...] = (),
    *rest: Any,
    **more: Any,
) -> Query:
    """A question about a table and its lookups."""
    return Query(source(table, joins), outputs, where, keys, *rest, **more)

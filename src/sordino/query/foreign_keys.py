"""Persons through foreign keys: a row without a person's name belongs to whom the row that it names belongs.

`via = { order_id = "orders.id" }` says which row of which table that is. What must hold of the data, that no two orders
share an id, is checked when a session opens (`engines/gate.md`, A6).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from sordino.errors import InvalidDeclaration
from sordino.query.dataset import Table, Via
from sordino.query.entries import Place, check_names, closest, name_fault
from sordino.query.same_name import folded, lowered

__all__ = ["related", "via"]

_EXAMPLE = 'Write via = { order_id = "orders.id" } or the like.'
_PART = r'(?:"((?:[^"]|"")+)"|([^".]+))'
_COLUMN = re.compile(rf"{_PART}\.{_PART}")


def via(place: Place, value: Any, columns: Iterable[str]) -> Via:
    """How the rows of a table name their parents, as written; `columns` are the declared ones of the table itself."""
    if not isinstance(value, Mapping) or not value:
        raise place.wrong(value, "via says which column names a row of which table", _EXAMPLE)
    check_names(place, value, "column")
    parents, keys = {}, []
    for own, written in value.items():
        match = _COLUMN.fullmatch(written) if isinstance(written, str) else None
        if match is None:
            rule = "it must be a column of another declared table, written with a dot"
            raise place.at(own).wrong(
                written, rule, f"{_EXAMPLE} A name with a dot in it stands in double quotes."
            )
        parent, theirs = (
            quoted.replace('""', '"') if quoted else bare
            for quoted, bare in (match.group(1, 2), match.group(3, 4))
        )
        if fault := name_fault(parent) or name_fault(theirs):
            raise place.at(own).wrong(written, fault, _EXAMPLE)
        parents[folded(parent)] = parent
        keys.append((_spelled(own, columns), theirs))
        if len(parents) > 1:
            rule = (
                f"the rows have one parent, and {next(iter(parents.values()))} is named beside it"
            )
            raise place.at(own).wrong(
                written, rule, "Name columns of one table; join the other one in questions."
            )
        if len({folded(column) for _, column in keys}) < len(keys):
            raise place.at(own).wrong(
                written, "the parent's column is named twice", "Name each column of its key once."
            )
    return Via(next(iter(parents.values())), tuple(keys))


def related(place: Place, tables: Mapping[str, Table]) -> dict[str, Table]:
    """The tables of a dataset, each with what it has of its parent, and with the columns that are keys."""
    found = {
        name: replace(table, via=_found(place.at(name).at("via"), table, tables))
        for name, table in tables.items()
    }
    identities: dict[str, dict[str, str]] = {name: {} for name in found}
    for name, table in found.items():
        if table.via is not None:
            root = _root(place.at(name).at("via"), table, found)
            found[name] = replace(table, persons=root.persons, neighbors=root.neighbors)
            for owner, columns in ((name, table.via.own), (table.via.parent, table.via.of_parent)):
                identities[owner].update((lowered(column), column) for column in columns)
    return {
        name: replace(table, identities=tuple(identities[name].values()))
        for name, table in found.items()
    }


def _found(place: Place, table: Table, tables: Mapping[str, Table]) -> Via | None:
    """The via with its parent as it is declared, which must have persons."""
    if table.via is None:
        return None
    spelled = {folded(name): name for name in tables}
    name = spelled.get(folded(table.via.parent))
    if name is None:
        what, rule = f"{place} with {table.via}", "no such table is declared"
        raise InvalidDeclaration(what, rule, closest(table.via.parent, tables))
    parent = tables[name]
    if not parent.has_persons:
        one = table.via.of_parent[0]
        rule, hint = (
            'its parent has unit = "row": no column says who is meant',
            f'Write unit = "{one}" in tables.{name}.',
        )
        if parent.public:
            rule = (
                "its parent is public and protects nobody, so that nobody is protected here either"
            )
            hint = f"Write public = true here, or a unit in tables.{name}."
        raise InvalidDeclaration(f"{place} with {table.via}", rule, hint)
    known = [*parent.columns, *([parent.person] if parent.person else [])]
    return Via(name, tuple((own, _spelled(theirs, known)) for own, theirs in table.via.keys))


def _root(place: Place, table: Table, tables: Mapping[str, Table]) -> Table:
    """The table at the end of the path from parent to parent: the one with the column of the persons."""
    passed = [table.name]
    while table.via is not None:
        table = tables[table.via.parent]
        if table.name in passed:
            path = " -> ".join([*passed, table.name])
            hint = (
                "Write unit in the table that has the column of the person, and leave out its via."
            )
            raise InvalidDeclaration(
                f"{place} with the path {path}", "it leads back, and to no person", hint
            )
        passed.append(table.name)
    return table


def _spelled(name: str, known: Iterable[str]) -> str:
    """The name as it is declared, if it is."""
    return next((other for other in known if folded(other) == folded(name)), name)

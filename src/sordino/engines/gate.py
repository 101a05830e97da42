"""The gate: what may enter an engine. Plain files that stay what they are, names that mean one column, known types.

An engine lists the columns of a source; `admitted` says which of them are read, by their places, and refuses the rest.
What the types must become is each engine's own (`duckdb/forms.py`). Why persons and keys are then the same everywhere:
gate.md.
"""

from __future__ import annotations

import difflib
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from sordino.errors import InvalidDeclaration, InvalidInput
from sordino.privacy.exact import show
from sordino.privacy.paths import is_there, not_a_file
from sordino.query.dataset import Column, Table
from sordino.query.same_name import folded, lowered

__all__ = ["Admitted", "Identity", "PinnedFile", "SourceColumn", "admitted", "expect_columns", "expect_comparable",
           "expect_distinct", "literal_path", "parent_keys", "pinned", "shared_key", "unreadable"]  # fmt: skip


@dataclass(frozen=True)
class SourceColumn:
    """One column as the source has it: its name, the engine's word for its type, and whether an expression makes it."""

    name: str
    type: str
    generated: bool = False


@dataclass(frozen=True)
class Identity:
    """The canonical form of a person or of a key: the engine's expression, and in words what its cells are.

    Cells of the same words are compared by = as they are grouped and joined; others are never compared (gate.md, A6).
    """

    sql: str
    cells: str


@dataclass(frozen=True)
class Admitted:
    """A column that is read: under which name, from which place in the source, by which expression of the engine.

    `cells` is what an identity's cells are, in words; empty for declared columns.
    """

    name: str
    place: int
    sql: str
    cells: str = ""


FileIdentity: TypeAlias = tuple[int, int, int, int]

_LOGS = (".wal", ".wal.checkpoint", ".wal.recovery")
"""What DuckDB adds to the name of a file for the logs of changes that are not in it yet, and are read with it."""


@dataclass(frozen=True)
class PinnedFile:
    """A file that a source is read from, the source itself or a log beside it, as it was when the session opened.

    The identity is None for a log that was not there.
    """

    table: str
    source: Path
    path: Path
    identity: FileIdentity | None

    def expect_unchanged(self) -> None:
        """Refuse if the file was replaced or written to since."""
        if _identity(self.path) != self.identity:
            value = f"tables.{self.table}.source = {show(str(self.source))}"
            rule = "the file is not the one that this session opened: it was changed, replaced or removed"
            if self.path != self.source:
                rule += f", by its log of changes {show(self.path.name)}"
            raise InvalidInput(
                value, rule, "Nothing was charged. Open a new session to ask the file as it is now."
            )


def _identity(path: Path) -> FileIdentity | None:
    """Device, number, size and time of a plain file; None for anything else. Nothing is opened, so no pipe hangs."""
    try:
        status = path.stat()
    except (OSError, ValueError):
        return None
    return (
        (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
        if stat.S_ISREG(status.st_mode)
        else None
    )


def pinned(tables: Iterable[Table]) -> tuple[PinnedFile, ...]:
    """The source files of tables as they are now; refuses what is not a plain file that can be read."""
    found = []
    for table in tables:
        path = table.source.path
        if path is None:
            continue
        identity = _identity(path)
        if identity is None:
            raise unreadable(table, not_a_file(path) or "it was replaced just now")
        if not os.access(path, os.R_OK):
            raise unreadable(table, "reading it is not permitted")
        literal_path(path, table.source.kind)
        found.append(PinnedFile(table.name, path, path, identity))
        if table.source.kind == "duckdb":
            found += _logs(table, path)
    return tuple(found)


def literal_path(path: Path, kind: str) -> Path:
    r"""The path by which DuckDB reads this very file; refused if there is none.

    A database is opened by its real path: `..` after a link would be another folder to DuckDB than to the system. It
    takes a backslash for a / there, and elsewhere for a part of a pattern; before a ? it looks for logs of changes.
    """
    real, letters = (path.resolve(), "\\?") if kind == "duckdb" else (path, "\\")
    if os.name == "nt":
        letters = letters.replace("\\", "")
    found = [letter for letter in letters if letter in str(real)]
    if found:
        rule = f"the engine would read another file, since its path holds {found[0]}"
        raise InvalidDeclaration(
            f"source = {show(str(real))}", rule, "Rename the file, or the folder that has it."
        )
    return real


def _logs(table: Table, path: Path) -> Iterator[PinnedFile]:
    """The logs that may be beside a DuckDB file: also beside the one that a link leads to, which DuckDB looks for."""
    for file in dict.fromkeys((path, path.resolve())):
        for suffix in _LOGS:
            log = file.with_name(file.name + suffix)
            identity = _identity(log)
            if identity is None and is_there(log):
                raise unreadable(
                    table, f"its log of changes, {show(log.name)}, is not a plain file"
                )
            yield PinnedFile(table.name, path, log, identity)


def unreadable(table: Table, reason: str) -> InvalidDeclaration:
    """The error of a source that cannot be read; `reason` must hold nothing of its cells."""
    source = table.source
    what = f"tables.{table.name}.source = {source.shown}"
    hint = "Check that it exists, is readable and is what the declaration says, and that all its text is UTF-8."
    if _is_csv(table):
        hint += " Each record needs one cell for each column named in the first line, and quotes must be closed."
    return InvalidDeclaration(what, f"it cannot be read as {source.kind}: {reason}", hint)


def admitted(
    table: Table,
    columns: Sequence[SourceColumn],
    identity: Callable[[str, str, int], Identity | None],
    cell: Callable[[Column, str, int], str | None],
    convertible: Callable[[str], str],
) -> tuple[Admitted, ...]:
    """The person, if the table names one, its keys and every declared column, each by its place in the source.

    `identity` (of a name and a type at a place) and `cell` give the engine's expression, None where the type is not on
    its list; `convertible` says in words what to do with such a type. Names are compared without regard to case; a
    source in which that is ambiguous is refused.
    """
    expect_distinct(table, [column.name for column in columns])
    where = f"tables.{table.name}"
    found = []
    for offered, name, key in _identities(table):
        place = _place(table, key, name, columns)
        form = identity(name, columns[place].type, place)
        if form is None:
            rule = f"the source holds {_word(columns[place].type)}, and a person is named by whole numbers or by text"
            raise InvalidDeclaration(
                key, rule, "Convert it in its source to one of them: CAST(x AS BIGINT) or the like."
            )
        found.append(Admitted(offered, place, form.sql, form.cells))
    for name, column in table.columns.items():
        key = f"{where}.columns.{name}"
        place = _place(table, key, name, columns)
        sql = cell(column, columns[place].type, place)
        if sql is None:
            rule = (
                f"the source holds {_word(columns[place].type)}, which is not read as {column.kind}"
            )
            zone = "Leave zone out: it says how moments that have a time zone are read. "
            hint = zone * (column.zone is not None) + convertible(columns[place].type)
            raise InvalidDeclaration(f"{key} with type = {column.kind!r}", rule, hint)
        found.append(Admitted(name, place, sql))
    return tuple(found)


def _identities(table: Table) -> Iterator[tuple[str, str, str]]:
    """The person and the keys: as what the engine offers each,
    its name in the source, and what to call it in errors.
    """
    if table.person is not None:
        yield table.person_column, table.person, f"tables.{table.name}.unit = {show(table.person)}"
    for name in table.identities:
        own = table.via is not None and lowered(name) in map(lowered, table.via.own)
        what = (
            f"tables.{table.name}.via.{name}"
            if own
            else f"tables.{table.name}: the key {show(name)} that a via names"
        )
        yield table.identity_column(name), name, what


def expect_comparable(tables: Sequence[Table], entered: Mapping[str, Sequence[Admitted]]) -> None:
    """Refuse tables whose persons, or keys, cannot be compared: = would convert one of them, and could merge two
    persons.

    `entered` is what was admitted of each table, by its name.
    """
    cells = {
        (name, column.name): column.cells for name, columns in entered.items() for column in columns
    }
    by_name = {table.name: table for table in tables}
    first: dict[str, Table] = {}
    for table in tables:
        if table.person is not None and table.persons is not None:
            other = first.setdefault(table.persons, table)
            hint = (
                f"or write persons in one of the tables if these are not the same {table.persons}"
            )
            held, wanted = (
                cells[table.name, table.person_column],
                cells[other.name, other.person_column],
            )
            _expect_same(table, table.person, held, f"{other.name}.{other.person}", wanted, hint)
        if table.via is None:
            continue
        for own, key in table.via.keys:
            other = by_name[table.via.parent]
            hint = (
                "or, where a CSV file holds it, declare it there as the other one is (int or text)"
            )
            held, wanted = (
                cells[table.name, table.identity_column(own)],
                cells[other.name, other.identity_column(key)],
            )
            _expect_same(table, own, held, f"{other.name}.{key}", wanted, hint)


def _expect_same(table: Table, name: str, held: str, other: str, wanted: str, hint: str) -> None:
    if held != wanted:
        rule = f"it holds {held}, and {other}, with which it is compared, holds {wanted}"
        raise InvalidDeclaration(
            f"tables.{table.name}: {show(name)}",
            rule,
            f"Convert one of them in its source; {hint}.",
        )


def parent_keys(tables: Iterable[Table]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The tables that others name by a via, with the columns by which they do: no two rows may share them."""
    yield from dict.fromkeys(
        (table.via.parent, table.via.of_parent) for table in tables if table.via is not None
    )


def shared_key(table: Table, key: Sequence[str]) -> InvalidDeclaration:
    """The error of a parent of which two rows share their key; it tells no value."""
    rule = "two of its rows share this key, so that rows which name it could belong to two persons"
    hint = "Keep one row for each key in the source, or name more columns of it in via."
    return InvalidDeclaration(f"tables.{table.name} by {', '.join(key)}", rule, hint)


def expect_columns(table: Table, names: Sequence[str]) -> None:
    """Refuse a source without the declared unit or a declared column, from the names of its columns alone."""
    expect_distinct(table, names)
    columns = [SourceColumn(name, "") for name in names]
    for _, name, key in _identities(table):
        _place(table, key, name, columns)
    for name in table.columns:
        _place(table, f"tables.{table.name}.columns.{name}", name, columns)


def expect_distinct(table: Table, names: Iterable[str]) -> None:
    """Refuse a source in which two columns have one name but for case, or for how an accent is composed."""
    seen: dict[str, str] = {}
    for name in names:
        key = folded(name)
        if key in seen:
            # a CSV without a header would show its first record here
            twins = "" if _is_csv(table) else f" ({show(seen[key])} and {show(name)})"
            rule = f"two of its columns have one name but for case{twins}, and SQL could take either for the other"
            hint = "Rename one of them in the source, or drop it there."
            raise InvalidDeclaration(f"tables.{table.name}.source", rule, hint)
        seen[key] = name


def _place(table: Table, key: str, name: str, columns: Sequence[SourceColumn]) -> int:
    """Where the column of a declared name is: spelled alike but for case, which at most one column is."""
    place = next(
        (i for i, column in enumerate(columns) if lowered(column.name) == lowered(name)), None
    )
    if place is None:
        hint = "Its first line must name the columns."
        if not _is_csv(table):  # a CSV without a header would show its first record here
            names = [column.name for column in columns]
            near = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
            meant = f"Did you mean {near[0]!r}? " if near else ""
            more = " and more" if len(names) > 20 else ""
            hint = f"{meant}It has: {', '.join(sorted(names)[:20]) or 'none'}{more}."
        raise InvalidDeclaration(key, "the source has no such column", hint)
    if columns[place].generated:
        rule = "the source computes this column by an expression, which could fail on a cell or look beyond the row"
        raise InvalidDeclaration(
            key, rule, "Copy the table with CREATE TABLE ... AS SELECT, and declare the copy."
        )
    return place


def _is_csv(table: Table) -> bool:
    return "csv" in (table.source.kind, table.source.format)


def _word(kind: str) -> str:
    """A type without its parameters: those of an ENUM are values of the data."""
    return kind.split("(")[0].strip() or kind

"""The gate: what may enter an engine. Plain files that stay what they are, names that mean one column, known types.

An engine lists the columns of a source; `admitted` says which of them are read, by their places, and refuses the rest.
What the types must become is each engine's own (`duckdb/forms.py`). Why persons and keys are then the same everywhere:
gate.md.
"""

from __future__ import annotations

import difflib
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from sordino.errors import InvalidDeclaration, InvalidInput
from sordino.privacy.exact import show
from sordino.query.dataset import Column, Table

__all__ = ["Admitted", "PinnedFile", "SourceColumn", "admitted", "expect_columns", "expect_distinct", "pinned", "unreadable"]


@dataclass(frozen=True)
class SourceColumn:
    """One column as the source has it: its name, the engine's word for its type, and whether an expression makes it."""

    name: str
    type: str
    generated: bool = False


@dataclass(frozen=True)
class Admitted:
    """A column that is read: under which name, from which place in the source, by which expression of the engine."""

    name: str
    place: int
    sql: str


Identity: TypeAlias = tuple[int, int, int, int]

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
    identity: Identity | None

    def expect_unchanged(self) -> None:
        """Refuse if the file was replaced or written to since."""
        if _identity(self.path) != self.identity:
            value = f"tables.{self.table}.source = {show(str(self.source))}"
            rule = "the file is not the one that this session opened: it was changed, replaced or removed"
            if self.path != self.source:
                rule += f", by its log of changes {show(self.path.name)}"
            raise InvalidInput(value, rule, "Nothing was charged. Open a new session to ask the file as it is now.")


def _identity(path: Path) -> Identity | None:
    """Device, number, size and time of a plain file; None for anything else. Nothing is opened, so no pipe hangs."""
    try:
        status = path.stat()
    except (OSError, ValueError):
        return None
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns) if stat.S_ISREG(status.st_mode) else None


def pinned(tables: Iterable[Table]) -> tuple[PinnedFile, ...]:
    """The source files of tables as they are now; refuses what is not a plain file that can be read."""
    found = []
    for table in tables:
        path = table.source.path
        if path is None:
            continue
        identity = _identity(path)
        if identity is None:
            there = "it is not a plain file" if path.exists() else "there is no such file"
            raise unreadable(table, there)
        if not os.access(path, os.R_OK):
            raise unreadable(table, "reading it is not permitted")
        found.append(PinnedFile(table.name, path, path, identity))
        if table.source.kind == "duckdb":
            found += _logs(table, path)
    return tuple(found)


def _logs(table: Table, path: Path) -> Iterator[PinnedFile]:
    """The logs that may be beside a DuckDB file: also beside the one that a link leads to, which DuckDB looks for."""
    for file in dict.fromkeys((path, path.resolve())):
        for suffix in _LOGS:
            log = file.with_name(file.name + suffix)
            identity = _identity(log)
            if identity is None and log.exists():
                raise unreadable(table, f"its log of changes, {show(log.name)}, is not a plain file")
            yield PinnedFile(table.name, path, log, identity)


def unreadable(table: Table, reason: str) -> InvalidDeclaration:
    """The error of a source that cannot be read; `reason` must hold nothing of its cells."""
    source = table.source
    what = f"tables.{table.name}.source = {show(str(source.path)) if source.path else 'an object in memory'}"
    hint = "Check that it exists, is readable and is what the declaration says, and that all its text is UTF-8."
    if source.kind == "csv":
        hint += " Each record needs one cell for each column named in the first line, and quotes must be closed."
    return InvalidDeclaration(what, f"it cannot be read as {source.kind}: {reason}", hint)


def admitted(
    table: Table,
    columns: Sequence[SourceColumn],
    person: Callable[[str, int], str | None],
    cell: Callable[[Column, str, int], str | None],
    convertible: Callable[[str], str],
) -> tuple[Admitted, ...]:
    """The person, if the table names one, and every declared column, each by its place in the source.

    `person` and `cell` give the engine's expression for a type at a place, None where the type is not on its list;
    `convertible` says in words what to do with such a type. Names are compared without regard to case; a source in
    which that is ambiguous is refused.
    """
    expect_distinct(table, [column.name for column in columns])
    where = f"tables.{table.name}"
    found = []
    if table.person is not None:
        key = f"{where}.unit = {show(table.person)}"
        place = _place(table, key, table.person, columns)
        sql = person(columns[place].type, place)
        if sql is None:
            rule = f"the source holds {_word(columns[place].type)}, and a person is named by whole numbers or by text"
            raise InvalidDeclaration(key, rule, convertible(columns[place].type))
        found.append(Admitted(table.person_column, place, sql))
    for name, column in table.columns.items():
        key = f"{where}.columns.{name}"
        place = _place(table, key, name, columns)
        sql = cell(column, columns[place].type, place)
        if sql is None:
            rule = f"the source holds {_word(columns[place].type)}, which is not read as {column.kind}"
            raise InvalidDeclaration(f"{key} with type = {column.kind!r}", rule, convertible(columns[place].type))
        found.append(Admitted(name, place, sql))
    return tuple(found)


def expect_columns(table: Table, names: Sequence[str]) -> None:
    """Refuse a source without the declared unit or a declared column, from the names of its columns alone."""
    expect_distinct(table, names)
    columns = [SourceColumn(name, "") for name in names]
    if table.person is not None:
        _place(table, f"tables.{table.name}.unit = {show(table.person)}", table.person, columns)
    for name in table.columns:
        _place(table, f"tables.{table.name}.columns.{name}", name, columns)


def expect_distinct(table: Table, names: Iterable[str]) -> None:
    """Refuse a source in which two columns have one name but for case."""
    seen: dict[str, str] = {}
    for name in names:
        folded = name.casefold()
        if folded in seen:
            # a CSV without a header would show its first record here
            twins = "" if table.source.kind == "csv" else f" ({show(seen[folded])} and {show(name)})"
            rule = f"two of its columns have one name but for case{twins}, and SQL could take either for the other"
            hint = "Rename one of them in the source, or drop it there."
            raise InvalidDeclaration(f"tables.{table.name}.source", rule, hint)
        seen[folded] = name


def _place(table: Table, key: str, name: str, columns: Sequence[SourceColumn]) -> int:
    """Where the column of a declared name is: spelled alike but for case, which at most one column is."""
    place = next((i for i, column in enumerate(columns) if column.name.lower() == name.lower()), None)
    if place is None:
        hint = "Its first line must name the columns."
        if table.source.kind != "csv":  # a CSV without a header would show its first record here
            names = [column.name for column in columns]
            near = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
            meant = f"Did you mean {near[0]!r}? " if near else ""
            more = " and more" if len(names) > 20 else ""
            hint = f"{meant}It has: {', '.join(sorted(names)[:20]) or 'none'}{more}."
        raise InvalidDeclaration(key, "the source has no such column", hint)
    if columns[place].generated:
        rule = "the source computes this column by an expression, which could fail on a cell or look beyond the row"
        raise InvalidDeclaration(key, rule, "Copy the table with CREATE TABLE ... AS SELECT, and declare the copy.")
    return place


def _word(kind: str) -> str:
    """A type without its parameters: those of an ENUM are values of the data."""
    return kind.split("(")[0].strip() or kind

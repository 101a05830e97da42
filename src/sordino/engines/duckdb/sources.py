"""The sources of declared tables as relations of DuckDB, column by column, in their canonical forms.

A relation's columns are called by their places, r0, r1, ...: no name of a source is ever seen by the engine, which
would take names that differ in case for one and rename what it finds twice.
"""

from __future__ import annotations

import csv
import gzip
import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
from sqlglot import exp

from sordino.engines.duckdb import forms
from sordino.engines.duckdb.dialect import write
from sordino.engines.duckdb.locked import text
from sordino.engines.gate import (
    Admitted,
    Identity,
    SourceColumn,
    admitted,
    expect_distinct,
    literal_path,
    unreadable,
)
from sordino.errors import InvalidDeclaration
from sordino.plan.fragments import GATE, column
from sordino.privacy.exact import show
from sordino.query.dataset import Column, Table
from sordino.query.meaning import reading
from sordino.query.stub import source_columns
from sordino.query.types import Text

__all__ = [
    "Relation",
    "arrow",
    "csv_records",
    "described",
    "enter",
    "one_file",
    "quoted",
    "share_key",
]

_LONGEST_LINE = 2**24
_LONGEST_CELL = 2**20
"""Bytes of a text or of a person's name: the failure of a question for want of memory
would tell who has a longer one.
"""
_BETWEEN = (b",", b"\n", b"\r")
"""What is between cells of a CSV file."""


@dataclass(frozen=True)
class Relation:
    """What stands in FROM, and the columns that it has, in order."""

    sql: str
    columns: tuple[SourceColumn, ...]

    @property
    def named(self) -> str:
        """The relation with its columns called by their places."""
        return f"{self.sql} AS source({', '.join(f'r{i}' for i in range(len(self.columns)))})"


def enter(
    connection: Any, table: Table, place: int, longest: int | None = None, *, held: bool = False
) -> tuple[Admitted, ...]:
    """Make the table in its canonical form, under its name in the gate's schema, and read every cell of it once.

    What cannot be decoded fails here, so that no question can fail because of one cell. `place` tells tables apart.
    With `longest` it is a copy in memory, in which text has this many characters at most; `held`, one of clean cells.
    """
    run, source = connection.execute, table.source
    match source.kind:
        case "frame":
            columns, frame = _frame(connection, table)
            relation = Relation(quoted(f"frame {place}"), columns)
            chosen = _chosen(table, relation, whole_floats=True)
            kept = sorted({column.place for column in chosen}) or [0][: len(columns)]
            connection.register(
                f"frame {place}", frame.select(kept).rename_columns([f"r{i}" for i in kept])
            )
            _view(connection, table, chosen, relation.sql)
        case "parquet":
            relation = _parquet(connection, table)
            chosen = _chosen(table, relation)
            _view(connection, table, chosen, relation.named)
        case "duckdb":
            relation = _attached(connection, table, place)
            chosen = _chosen(table, relation)
            _view(connection, table, chosen, relation.named)
        case "csv":
            path = Path(source.path or "")
            header = _header(path)
            relation = Relation(
                quoted(f"text {place}"), tuple(SourceColumn(name, "VARCHAR") for name in header)
            )
            chosen = _chosen_of_text(table, relation)
            run(f"CREATE TABLE {relation.sql} AS SELECT * FROM {_csv(path, len(header))}")  # noqa: S608
            # in a second step, or the engine would convert while it reads, and fail where a cell does not convert
            run(f"CREATE TABLE {_gated(table)} AS {_select(chosen, relation.named)}")
            run(f"DROP TABLE {relation.sql}")
        case _:
            raise unreadable(table, "it is not a file, and DuckDB reads no databases")
    _read_every_cell(connection, table)
    if held or longest is not None:
        _copy(connection, table, chosen, longest, held)
    return chosen


def described(connection: Any, table: Table) -> tuple[list[str], tuple[Admitted, ...]]:
    """The names of the columns of a source, and what would enter of them; no cell is read."""
    match table.source.kind:
        case "csv":
            names = source_columns(table.source, table.name)
            relation = Relation("text", tuple(SourceColumn(name, "VARCHAR") for name in names))
            chosen = _chosen_of_text(table, relation)
        case "parquet":
            relation = _parquet(connection, table)
            chosen = _chosen(table, relation)
        case "duckdb":
            relation = _attached(connection, table, 0)
            chosen = _chosen(table, relation)
        case _:
            raise unreadable(table, "it is no file")
    return [column.name for column in relation.columns], chosen


def _copy(
    connection: Any, table: Table, chosen: Sequence[Admitted], longest: int | None, held: bool
) -> None:
    """Put a copy of the rows in the place of the table: all cells cleaned if they are `held`, else text cut to a length
    and values that are not listed NULL, which is what cleaning makes of a cell when it is asked, but for text without a
    declared length. A person's name or a key is never cut, which could make two persons one: a long one is refused.
    """
    items = []
    for one in chosen:
        name = quoted(one.name)
        own = None if one.cells else table.columns.get(one.name)
        match own:
            case Column(type=Text(values=tuple() as values)):
                listed = ", ".join(text(value) for value in values)
                found = f"CASE WHEN {name} IN ({listed or 'NULL'}) THEN {name} END"
                # a number for each cell: what compares and groups texts looks at each value once for many rows
                items.append(
                    f"{f'CAST({found} AS ENUM ({listed}))' if listed else found} AS {name}"
                )
            case Column(type=kind):
                cell = write(reading.read(own, column(one.name)).sql) if held else name
                if isinstance(kind, Text) and longest is not None:
                    cell = f"LEFT({cell}, {min(longest, kind.longest or longest)})"
                items.append(f"{cell} AS {name}")
            case _:
                items.append(name)
    identities = [one.name for one in chosen if one.cells and longest is not None]
    most = 4 * (longest or 0)
    sizes = [f"MAX(STRLEN(CAST({quoted(name)} AS VARCHAR))) > {most}" for name in identities]
    if sizes and any(
        connection.execute(f"SELECT {', '.join(sizes)} FROM {_gated(table)}").fetchall()[0]  # noqa: S608
    ):
        raise unreadable(table, f"a person's name or a key in it is longer than {most:,} bytes")
    aside = quoted(f"copy of {table.name}")
    connection.execute(
        f"CREATE TABLE {aside} AS SELECT {', '.join(items) or '*'} FROM {_gated(table)}"  # noqa: S608
    )
    of = table.source.kind
    connection.execute(f"DROP {'TABLE' if of == 'csv' else 'VIEW'} {_gated(table)}")
    connection.execute(f"CREATE VIEW {_gated(table)} AS SELECT * FROM {aside}")  # noqa: S608


def share_key(connection: Any, table: Table, key: Sequence[str]) -> bool:
    """Whether two rows of a table share a key; a row whose key is not whole names nobody's parent."""
    columns = [quoted(table.identity_column(name)) for name in key]
    whole = " AND ".join(f"{column} IS NOT NULL" for column in columns)
    keys = f"SELECT 1 FROM {_gated(table)} WHERE {whole} GROUP BY {', '.join(columns)} HAVING COUNT(*) > 1 LIMIT 1"  # noqa: S608
    return bool(connection.execute(keys).fetchall())


def _read_every_cell(connection: Any, table: Table) -> None:
    """Decode all that questions will read. A cell that is too long is refused: to group by it could take all memory."""
    kinds = {
        str(row[0]): str(row[1])
        for row in connection.execute(f"DESCRIBE {_gated(table)}").fetchall()
    }
    cells = [f"BIT_XOR(HASH({quoted(name)}))" for name in kinds]
    sizes = {"VARCHAR": "STRLEN", "BLOB": "OCTET_LENGTH"}
    long = [
        f"MAX({sizes[kind]}({quoted(name)})) > {_LONGEST_CELL}"
        for name, kind in kinds.items()
        if kind in sizes
    ]
    (found,) = connection.execute(
        f"SELECT {', '.join(cells + long)} FROM {_gated(table)}"  # noqa: S608
    ).fetchall()
    if any(found[len(cells) :]):
        raise unreadable(table, f"a text in it is longer than {_LONGEST_CELL:,} bytes")


def _view(connection: Any, table: Table, chosen: Sequence[Admitted], relation: str) -> None:
    connection.execute(f"CREATE OR REPLACE VIEW {_gated(table)} AS {_select(chosen, relation)}")


def _select(chosen: Sequence[Admitted], relation: str) -> str:
    items = ", ".join(f"{column.sql} AS {quoted(column.name)}" for column in chosen)
    return f"SELECT {items or 'TRUE AS row'} FROM {relation}"  # noqa: S608


def _gated(table: Table) -> str:
    return f"{quoted(GATE)}.{quoted(table.name)}"


def _chosen(
    table: Table, relation: Relation, *, whole_floats: bool = False
) -> tuple[Admitted, ...]:
    def cell(column: Column, kind: str, place: int) -> str | None:
        # pandas holds whole numbers with gaps as floats: where int is declared they are turned back, NaN into NULL
        if whole_floats and kind in ("FLOAT", "DOUBLE") and column.kind == "int":
            return f"TRY_CAST(r{place} AS HUGEINT)"
        return forms.cell(column, kind, f"r{place}")

    def identity(_: str, kind: str, place: int) -> Identity | None:
        return forms.identity(kind, f"r{place}")

    return admitted(table, relation.columns, identity, cell, forms.convertible)


def _chosen_of_text(table: Table, relation: Relation) -> tuple[Admitted, ...]:
    """The cells of a CSV, each converted to what is declared; a person is the text itself, or a whole number written
    out.

    Nothing is rounded on the way: 1.5 names nobody where whole numbers are declared. So it is with keys.
    """

    def identity(name: str, _: str, place: int) -> Identity:
        own = table.columns.get(name)
        if own is not None and own.kind == "float":
            rule = "floats merge large numbers that differ, so that two persons could become one"
            use = "the unit" if name == table.person else "a key"
            what = f"tables.{table.name}.columns.{name} with type = 'float', {use}"
            raise InvalidDeclaration(what, rule, 'Write type = "int" or type = "text".')
        if own is None or own.kind != "int":
            return Identity(f"r{place}", forms.TEXT)
        written = f"TRIM(r{place})"
        number = f"CASE WHEN REGEXP_FULL_MATCH({written}, '[+-]?[0-9]{{1,38}}') THEN TRY_CAST({written} AS HUGEINT) END"
        return Identity(number, forms.WHOLE_NUMBERS)

    def cell(column: Column, _: str, place: int) -> str:
        return forms.typed_text(column, f"r{place}")

    return admitted(table, relation.columns, identity, cell, forms.convertible)


def _frame(connection: Any, table: Table) -> tuple[tuple[SourceColumn, ...], Any]:
    """The columns of an object in memory, with DuckDB's words for their types, and the object as Arrow."""
    names = [str(name) for name in getattr(table.source.frame, "columns", ())]
    # pandas may hold a name twice, and its conversion would not say which
    if not hasattr(table.source.frame, "schema"):
        expect_distinct(table, names)
    frame = _plain(arrow(table.source.frame))
    frame.validate(full=True)
    kinds = _kinds(connection, frame.schema)
    for place, kind in enumerate(getattr(table.source.frame, "dtypes", ())):
        # polars hands out addresses, which differ where the Python objects are equal
        if str(kind) == "Object":
            kinds[place] = "Object"
    return tuple(
        SourceColumn(name, kind) for name, kind in zip(frame.column_names, kinds, strict=True)
    ), frame


def _plain(frame: Any) -> Any:
    """The table without what is noted beside its fields: there the engine finds types that the columns do not say."""
    import pyarrow as pa

    return pa.Table.from_arrays(frame.columns, names=frame.column_names)


def _kinds(connection: Any, schema: Any) -> list[str]:
    """DuckDB's words for Arrow's types; Arrow's own word where DuckDB has none."""
    import pyarrow as pa

    try:
        empty = pa.table(
            [pa.array([], field.type) for field in schema],
            names=[f"r{i}" for i in range(len(schema))],
        )
        connection.register("kinds", empty)
        kinds = [str(row[1]) for row in connection.execute("DESCRIBE kinds").fetchall()]
        connection.unregister("kinds")
        return kinds
    except duckdb.OutOfMemoryException:
        raise  # it tells nothing of the types
    except (duckdb.Error, pa.ArrowException, NotImplementedError):
        if len(schema) == 1:
            return [str(schema.field(0).type)]
        return [kind for field in schema for kind in _kinds(connection, pa.schema([field]))]


def arrow(frame: Any) -> Any:
    """An in-memory table as Arrow: polars and pandas objects by their own conversion."""
    import pyarrow as pa

    if isinstance(frame, pa.Table):
        return frame
    if hasattr(frame, "to_arrow"):
        return frame.to_arrow()
    return pa.Table.from_pandas(frame, preserve_index=False)


def _parquet(connection: Any, table: Table) -> Relation:
    """One Parquet file: neither folders named like columns nor names that mean patterns are looked at."""
    import pyarrow.parquet

    path = Path(table.source.path or "")
    options = "hive_partitioning = false, union_by_name = false, filename = false, file_row_number = false"
    sql = f"read_parquet({text(one_file(path))}, {options})"
    names = [str(name) for name in pyarrow.parquet.read_schema(path).names]
    described = connection.execute(f"DESCRIBE SELECT * FROM {sql}").fetchall()  # noqa: S608
    if len(described) != len(names):
        raise unreadable(table, "its columns are not understood")
    return Relation(
        sql,
        tuple(SourceColumn(name, str(row[1])) for name, row in zip(names, described, strict=True)),
    )


def _attached(connection: Any, table: Table, place: int) -> Relation:
    """A table of a DuckDB file; views are refused, since what they compute could fail or look beyond one person."""
    alias, name = f"file {place}", table.source.table or table.name
    path = literal_path(Path(table.source.path or ""), "duckdb")
    # the kind is said, or the engine would load what else is installed for a file of another kind
    connection.execute(f"ATTACH {text(str(path))} AS {quoted(alias)} (READ_ONLY, TYPE duckdb)")
    found = f"database_name = {text(alias)} AND schema_name = 'main'"
    tables = connection.execute(f"SELECT table_name FROM duckdb_tables() WHERE {found}").fetchall()  # noqa: S608
    views = connection.execute(f"SELECT view_name FROM duckdb_views() WHERE {found}").fetchall()  # noqa: S608
    # as the engine has it: only the letters A to Z have no case, so that "Ä" and "ä" are two tables
    own = next((row[0] for row in tables if _ascii_lower(row[0]) == _ascii_lower(name)), None)
    if own is None:
        what = f"tables.{table.name}.source = {show(str(table.source.path))}"
        if any(_ascii_lower(row[0]) == _ascii_lower(name) for row in views):
            rule = f"{show(name)} is a view: what it computes could fail on one person's cell, or mix persons"
            copied = f"{name}_copy"
            hint = f"Copy it with CREATE TABLE {quoted(copied)} AS FROM {quoted(name)}, then write table = {copied!r}."
            raise InvalidDeclaration(what, rule, hint)
        known = ", ".join(sorted(row[0] for row in tables)[:20]) or "none"
        hint = f"Its tables: {known}. Name one by table = ..."
        raise InvalidDeclaration(
            what, f"the file has no table {show(name)} in its main schema", hint
        )
    of = f"{found} AND table_name = {text(own)}"
    query = f"SELECT column_name, data_type, is_generated FROM duckdb_columns() WHERE {of} ORDER BY column_index"  # noqa: S608
    columns = tuple(SourceColumn(*row) for row in connection.execute(query).fetchall())
    return Relation(f"{quoted(alias)}.main.{quoted(own)}", columns)


def _ascii_lower(name: str) -> str:
    return "".join(letter.lower() if letter.isascii() else letter for letter in name)


def one_file(path: Path) -> str:
    """A pattern that matches this file and no other, since the engine takes every path for a pattern."""
    return "".join(f"[{c}]" if c in "*?[" else c for c in str(path))


def _header(path: Path) -> list[str]:
    """The names in the first line of a CSV file; refuses one with a quote that is misplaced.

    The engine takes a quote within a plain cell for a letter, and drops what follows one that is never closed: two such
    cells, of two persons, would make all records between them one.
    """
    with (gzip.open if _zipped(path) else open)(path, "rb") as lines:
        first = lines.readline(_LONGEST_LINE)
        if not _in_place(
            itertools.chain(
                [first.removeprefix(b"\xef\xbb\xbf")], iter(lambda: lines.read(2**20), b"")
            )
        ):
            raise ValueError("a quote is not closed, or within a cell that does not begin with one")
    return next(csv.reader([first.decode("utf-8-sig")]), [])


def _in_place(parts: Iterable[bytes]) -> bool:
    """Whether quotes stand around whole cells, and are doubled within them.

    What is between quotes lies outside of cells and within them by turns; outside it is nothing (a doubled quote), or
    goes from the end of a cell to the beginning of another.
    """
    outside, beginning, first, last = True, True, b"", b""
    for part in parts:
        piece, *others = part.split(b'"')
        first, last = first or piece[:1], piece[-1:] or last
        for piece in others:
            if outside and first and not ((beginning or first in _BETWEEN) and last in _BETWEEN):
                return False
            outside, beginning, first, last = not outside, False, piece[:1], piece[-1:]
    return outside and (beginning or not first or first in _BETWEEN)


def _zipped(path: Path) -> bool:
    return path.suffix.lower() == ".gz"


def _csv(path: Path, width: int) -> str:
    """All records of a CSV file, as text.

    Nothing is guessed from the cells: comma, double quotes and UTF-8 are expected, and one cell for each column in
    every record; reading fails where it is not so. The file is read by one thread from its beginning: several would
    start within records, and a record with line breaks could then swallow or make up others.
    """
    columns = ", ".join(f"'r{i}': 'VARCHAR'" for i in range(width))
    options = "header = true, auto_detect = false, delim = ',', quote = '\"', escape = '\"', parallel = false"
    options += ", hive_partitioning = false, union_by_name = false, filename = false"
    options += f", compression = '{'gzip' if _zipped(path) else 'none'}'"
    return f"read_csv({text(one_file(path))}, columns = {{{columns}}}, {options}, max_line_size = {_LONGEST_LINE})"


def csv_records(path: Path) -> Any:
    """The records of a CSV file as an Arrow table of texts, read as the engine reads them; for audits by the owner."""
    header = _header(path)
    with duckdb.connect(":memory:").cursor() as connection:
        records = connection.sql(f"SELECT * FROM {_csv(path, len(header))}").to_arrow_table()  # noqa: S608
    return records.rename_columns(header)


def quoted(name: str) -> str:
    """A quoted name."""
    return exp.to_identifier(name, quoted=True).sql(dialect="duckdb")

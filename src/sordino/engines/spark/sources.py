"""The sources of declared tables as views of Spark, column by column, in their canonical forms; and what pins them.

A source's columns are called by their places, r0, r1, ...: no name of a source is seen by Spark. A table or folder
with versions (Delta, Iceberg) is read at the version that was current when the session opened. Of others the files are
listed, with sizes and times, and listed again before every question.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, TypeAlias
from urllib.parse import unquote

from sordino.engines.gate import Admitted, Identity, SourceColumn, admitted, unreadable
from sordino.engines.spark import forms
from sordino.engines.spark.dialect import name_of, quoted, text
from sordino.engines.spark.sessions import active, not_active
from sordino.errors import InvalidDeclaration, InvalidInput
from sordino.query.dataset import Column, Table
from sordino.query.same_name import lowered
from sordino.query.sources import name_parts

__all__ = [
    "Pinned",
    "Read",
    "enter",
    "enter_public",
    "expect_base_table",
    "hold",
    "is_base_table",
    "looked_at",
    "sent",
    "share_key",
    "table_path",
]

_LONGEST_CELL = 2**20
_PLAIN, _VERSIONED = ("parquet", "orc"), ("delta", "iceberg")
Files: TypeAlias = tuple[tuple[str, int, str], ...]
"""The files of a source: path, size, time."""


@dataclass(frozen=True)
class Pinned:
    """What a table was read from: its files, or a version of it. `schema` tells a table that was altered."""

    table: Table
    place: str
    files: Files | None
    schema: str | None
    inputs: tuple[str, ...] | None = None
    """The files that a table of the catalog is made of, all of them among `files`:
    its partitions may be moved elsewhere.
    """

    def expect_unchanged(self, session: Any) -> None:
        """Refuse if the files, or the table, are no longer those that were opened."""
        rule = "the source is not the one that this session opened: it was changed, replaced or removed"
        hint = "Nothing was charged. Open a new session to ask the source as it is now."
        same = False
        try:
            same = (
                self.files is None or _files(session, self.place) == self.files
            ) and self._same_table(session)
        except Exception:  # whatever it says may quote more than its name
            same = False
        if not same:
            raise InvalidInput(
                f"tables.{self.table.name}.source = {self.table.source.shown}", rule, hint
            )

    def _same_table(self, session: Any) -> bool:
        path = table_path(self.table)
        same_inputs = self.inputs is None or _inputs(session, path) == self.inputs
        return same_inputs and (self.schema is None or _described(session, path) == self.schema)


@dataclass(frozen=True)
class Read:
    """A source that can be read: its rows by place, the columns that it has, and what pins it."""

    rows: Any
    columns: tuple[SourceColumn, ...]
    pinned: Pinned
    of_text: bool = False


def table_path(table: Table) -> str:
    """The quoted name of a table in the catalog."""
    return ".".join(
        quoted(part) for part in name_parts(table.source.table or table.name) or [table.name]
    )


def enter(session: Any, table: Table) -> tuple[tuple[Admitted, ...], Pinned]:
    """Make the table in its canonical form, as a view of the session, and read every cell of it once.

    What cannot be decoded fails here, so that no question can fail because of one cell.
    """
    if table.source.format == "csv":
        _expect_closed_quotes(session, table)
    read, chosen = looked_at(session, table)
    view = hold(table, read.rows, chosen)
    _read_every_cell(session, table, view.schema, of_text=read.of_text)
    return chosen, read.pinned


def looked_at(session: Any, table: Table) -> tuple[Read, tuple[Admitted, ...]]:
    """A source that can be read, and what is admitted of it, by the names and types of its columns: no cell is read."""
    read = (
        _files_of(session, table) if table.source.files is not None else _table_of(session, table)
    )
    chosen = _chosen_of_text(table, read.columns) if read.of_text else _chosen(table, read.columns)
    return read, chosen


def hold(table: Table, rows: Any, chosen: Sequence[Admitted] | None = None) -> Any:
    """The view of a table in its canonical form, of rows as Spark has them;
    their columns are called by their places.
    """
    chosen = _chosen(table, _columns(rows.schema)) if chosen is None else chosen
    items = [f"{column.sql} AS {quoted(column.name)}" for column in chosen] or ["TRUE AS `row`"]
    view = rows.toDF(*(f"r{i}" for i in range(len(rows.columns)))).selectExpr(*items)
    view.createOrReplaceTempView(quoted(name_of(table.name)))
    return view


def enter_public(session: Any, table: Table) -> None:
    """Send a public file or object in memory: DuckDB reads it, as the gate wants it, and Spark holds the rows."""
    from sordino.engines.duckdb import DuckDB

    with closing(DuckDB([table])) as engine:
        frame = engine.public_rows(table)
    sent(session, frame).createOrReplaceTempView(quoted(name_of(table.name)))


def sent(session: Any, frame: Any) -> Any:
    """Rows of an Arrow table as Spark has them."""
    frame = _sendable(frame)
    with warnings.catch_warnings(), not_active(session):
        warnings.simplefilter("ignore")  # of pyspark about versions of pandas
        if not frame.num_rows:  # a server does not take a table without rows
            return session.createDataFrame(_one_row(frame.schema)).where("FALSE")
        return session.createDataFrame(frame)


def _one_row(schema: Any) -> Any:
    import pyarrow as pa

    return pa.table([pa.nulls(1, field.type) for field in schema], names=schema.names)


def _sendable(frame: Any) -> Any:
    """Whole numbers that Spark has no type for, as decimals."""
    import pyarrow as pa

    columns = []
    for cells in frame.columns:
        kind = cells.type
        if pa.types.is_dictionary(kind):
            cells = cells.cast(kind.value_type)
        if pa.types.is_unsigned_integer(kind):
            cells = cells.cast(pa.decimal128(20, 0))
        if pa.types.is_decimal(kind) and kind.precision > 38:
            cells = cells.cast(pa.decimal128(38, kind.scale))
        columns.append(cells)
    return pa.table(columns, names=frame.column_names)


def share_key(session: Any, table: Table, key: Sequence[str]) -> bool:
    """Whether two rows of a table share a key; a row whose key is not whole names nobody's parent."""
    columns = [quoted(table.identity_column(name)) for name in key]
    whole = " AND ".join(f"{column} IS NOT NULL" for column in columns)
    keys = (
        f"SELECT 1 FROM {quoted(name_of(table.name))} WHERE {whole} GROUP BY {', '.join(columns)}"  # noqa: S608
    )
    return bool(session.sql(f"{keys} HAVING COUNT(*) > 1 LIMIT 1").collect())


def _read_every_cell(session: Any, table: Table, schema: Any, *, of_text: bool) -> None:
    """Decode all that questions will read; refuse text that is no UTF-8,
    and cells so long that to group by them fails.
    """
    names = [quoted(field.name) for field in schema.fields]
    kinds = {quoted(field.name): field.dataType.simpleString() for field in schema.fields}
    sizes = [
        f"MAX(OCTET_LENGTH({name})) > {_LONGEST_CELL}"
        for name in names
        if kinds[name] in ("string", "binary")
    ]
    texts = [name for name in names if kinds[name] == "string"]
    broken = [f"BOOL_OR(NOT IS_VALID_UTF8({name}))" for name in texts]
    if of_text:  # what a CSV file holds that is no UTF-8 arrives as this sign
        broken += [f"BOOL_OR(CONTAINS({name}, {text(chr(0xFFFD))}))" for name in texts]
    cells = f"BIT_XOR(XXHASH64({', '.join(names)}))"
    found = session.sql(
        f"SELECT {', '.join([cells, *sizes, *broken])} FROM {quoted(name_of(table.name))}"  # noqa: S608
    ).collect()[0]
    if any(found[1 : 1 + len(sizes)]):
        raise unreadable(table, f"a text in it is longer than {_LONGEST_CELL:,} bytes")
    if any(found[1 + len(sizes) :]):
        raise unreadable(table, "a text in it is not UTF-8")


def _chosen(table: Table, columns: Sequence[SourceColumn]) -> tuple[Admitted, ...]:
    def identity(_: str, kind: str, place: int) -> Identity | None:
        return forms.identity(kind, f"r{place}")

    def cell(column: Column, kind: str, place: int) -> str | None:
        return forms.cell(column, kind, f"r{place}")

    return admitted(table, columns, identity, cell, forms.convertible)


def _chosen_of_text(table: Table, columns: Sequence[SourceColumn]) -> tuple[Admitted, ...]:
    """The columns of a CSV file: persons and keys are texts, or whole numbers where they are declared so."""

    def identity(name: str, _: str, place: int) -> Identity:
        own = next(
            (column for known, column in table.columns.items() if lowered(known) == lowered(name)),
            None,
        )
        if own is not None and own.kind not in ("int", "text"):
            what = f"tables.{table.name}: {name}"
            rule = f"in a CSV file persons and keys are read as whole numbers or as text, not as {own.kind}"
            raise InvalidDeclaration(what, rule, 'Write type = "int" or type = "text".')
        if own is None or own.kind == "text":
            return Identity(f"NULLIF(r{place}, '')", forms.TEXT)
        return Identity(forms.typed_text(own, f"r{place}", names=True), forms.WHOLE_NUMBERS)

    def cell(column: Column, _: str, place: int) -> str:
        return forms.typed_text(column, f"NULLIF(r{place}, '')")

    return admitted(table, columns, identity, cell, forms.convertible)


def _columns(schema: Any) -> tuple[SourceColumn, ...]:
    return tuple(SourceColumn(field.name, field.dataType.simpleString()) for field in schema.fields)


def _files_of(session: Any, table: Table) -> Read:
    """A file, or the files of a folder and those below it: what folders are called adds no columns."""
    place, kind = str(table.source.files), str(table.source.format)
    if kind in _VERSIONED:
        rows = _at_version(session, table, kind, f"{kind}.{quoted(place)}", place)
        return Read(rows, _columns(rows.schema), Pinned(table, place, None, None))
    files = _files(session, place)
    if not files:
        raise unreadable(table, "there are no files")
    if kind == "csv":
        return _csv(session, table, place, files)
    reader = (
        session.read.format(kind)
        .option("recursiveFileLookup", "true")
        .option("mergeSchema", "true")
    )
    rows = reader.load(place)
    return Read(rows, _columns(rows.schema), Pinned(table, place, files, None))


_PIECES = (
    "SPLIT(REGEXP_REPLACE(value, CONCAT('^', DECODE(UNHEX('EFBBBF'), 'UTF-8')), ''), CHR(34), -1)"
)
_BETWEEN = "(CHR(44), CHR(10), CHR(13))"
_MISPLACED = (
    "SIZE(s) % 2 = 0 OR EXISTS(SEQUENCE(0, SIZE(s) - 1, 2), i -> s[i] <> '' AND NOT "
    f"((i = 0 OR SUBSTRING(s[i], 1, 1) IN {_BETWEEN}) AND (i = SIZE(s) - 1 OR SUBSTRING(s[i], -1, 1) IN {_BETWEEN})))"
)
"""Whether a quote of a CSV file is not around a whole cell, nor doubled within one: records would be swallowed. What
is between quotes lies outside of cells and within them by turns; outside it is nothing, or goes from one cell to
another.
"""


def _csv(session: Any, table: Table, place: str, files: Files) -> Read:
    """Nothing is guessed from cells: comma, double quotes, UTF-8, one cell for each column in every record."""
    options = {"header": "true", "inferSchema": "false", "multiLine": "true", "quote": '"', "escape": '"',
               "sep": ",", "encoding": "UTF-8", "recursiveFileLookup": "true", "mode": "FAILFAST",
               "unescapedQuoteHandling": "RAISE_ERROR", "enforceSchema": "false", "nullValue": "",
               "maxCharsPerColumn": str(2**24), "ignoreLeadingWhiteSpace": "false",
               "ignoreTrailingWhiteSpace": "false"}  # fmt: skip
    first = session.read.format("csv").options(**options).load(place)
    rows = session.read.format("csv").options(**options).schema(first.schema).load(place)
    return Read(rows, _columns(rows.schema), Pinned(table, place, files, None), of_text=True)


def _expect_closed_quotes(session: Any, table: Table) -> None:
    """Refuse CSV files in which a quote would swallow records."""
    whole = (
        session.read.format("text")
        .option("recursiveFileLookup", "true")
        .option("wholetext", "true")
        .load(str(table.source.files))
    )
    if whole.selectExpr(f"{_PIECES} AS s").where(_MISPLACED).limit(1).collect():
        raise unreadable(
            table, "a quote is not closed, or within a cell that does not begin with one"
        )


def _table_of(session: Any, table: Table) -> Read:
    """A base table of the catalog; views are refused, since what they compute could fail or look beyond one person."""
    path, what = table_path(table), f"tables.{table.name}.source = {table.source.shown}"
    if not session.catalog.tableExists(path):
        raise InvalidDeclaration(
            what, "the catalog has no such table", 'Write table = "clinic.visits" or the like.'
        )
    known = {str(row[0]).strip(): str(row[1]).strip() for row in _extended(session, path)}
    provider = known.get("Provider", "").lower()
    expect_base_table(session, path, what)
    if provider in _VERSIONED:
        rows = _at_version(session, table, provider, path, None)
        return Read(
            rows, _columns(rows.schema), Pinned(table, path, None, _described(session, path))
        )
    if provider not in _PLAIN:
        known_ones = ", ".join(_PLAIN + _VERSIONED)
        rule = f"its rows are kept by {provider or 'an unknown source'}, and tables of {known_ones} are read"
        raise InvalidDeclaration(
            what, rule, "Write its rows to a table: CREATE TABLE ... USING parquet AS SELECT ..."
        )
    rows, place = session.table(path), known.get("Location", "")
    generated = {
        field.name
        for field in rows.schema.fields
        if "delta.generationExpression" in (field.metadata or {})
    }
    columns = tuple(
        SourceColumn(column.name, column.type, column.name in generated)
        for column in _columns(rows.schema)
    )
    files, inputs = _files(session, place), _inputs(session, path)
    if not set(inputs) <= {_plain_path(file) for file, _, _ in files}:
        rule = "some of its partitions have places of their own, outside of its folder: they could change unseen"
        raise InvalidDeclaration(
            what, rule, "Write its rows to a table: CREATE TABLE ... USING parquet AS SELECT ..."
        )
    return Read(rows, columns, Pinned(table, place, files, _described(session, path), inputs))


def _inputs(session: Any, path: str) -> tuple[str, ...]:
    """The files that the catalog has a table made of now, in all its partitions, whatever this session remembers.

    Listed with this session's settings, as a question lists them: an application's may leave files out.
    """
    with active(session):
        session.catalog.refreshTable(path)
        files = session.table(path).inputFiles()
    return tuple(sorted(_plain_path(unquote(file)) for file in files))


def _plain_path(path: str) -> str:
    """A path as it is compared: file:///a is file:/a."""
    return re.sub("^file:/+", "file:/", path)


def expect_base_table(session: Any, path: str, what: str) -> None:
    """Refuse a view, called `what` in the error."""
    if not is_base_table(session, path):
        rule = "it is a view, or of a kind that is not known: what it computes could fail on one person's cell"
        raise InvalidDeclaration(
            what, rule, "Write its rows to a table: CREATE TABLE ... USING parquet AS SELECT ..."
        )


def is_base_table(session: Any, path: str) -> bool:
    """Whether the catalog says that a name is a table, not a view."""
    return any(
        tuple(map(str, row[:2])) in (("Type", "MANAGED"), ("Type", "EXTERNAL"))
        for row in _extended(session, path)
    )


def _extended(session: Any, path: str) -> list[Any]:
    """What the catalog says of a table, after its columns."""
    rows = session.sql(f"DESCRIBE TABLE EXTENDED {path}").collect()
    titles = [i for i, row in enumerate(rows) if str(row[0]).startswith("# Detailed Table")]
    return list(rows[titles[0] :]) if titles else []


def _described(session: Any, path: str) -> str:
    """The columns of a table and where it is, as one text; it changes when the table is altered or made again."""
    rows = session.sql(f"DESCRIBE TABLE EXTENDED {path}").collect()
    skipped = ("Last Access", "Statistics", "Table Properties")
    return repr([tuple(row) for row in rows if str(row[0]).strip() not in skipped])


def _at_version(session: Any, table: Table, kind: str, path: str, place: str | None) -> Any:
    """The rows of a table at the version that is current now."""
    failed = ""
    try:
        return _at_current_version(session, table, kind, path, place)
    except InvalidDeclaration:
        raise
    except Exception as error:
        failed = type(error).__name__
    raise unreadable(
        table, f"Spark reads {kind} by a package that this session does not seem to have ({failed})"
    )


def _at_current_version(session: Any, table: Table, kind: str, path: str, place: str | None) -> Any:
    if kind == "delta":
        version = session.sql(f"DESCRIBE HISTORY {path} LIMIT 1").collect()[0][0]
        if place is not None:
            return session.read.format("delta").option("versionAsOf", str(int(version))).load(place)
        return session.sql(f"SELECT * FROM {path} VERSION AS OF {int(version)}")  # noqa: S608
    if place is not None:
        history = session.read.format("iceberg").load(f"{place}#history")
    else:
        history = session.table(f"{path}.`history`")
    current = history.orderBy(history["made_current_at"].desc()).limit(1).collect()
    if not current:
        raise unreadable(table, "it has no version yet")
    snapshot = int(current[0]["snapshot_id"])
    if place is not None:
        return session.read.format("iceberg").option("snapshot-id", str(snapshot)).load(place)
    return session.sql(f"SELECT * FROM {path} VERSION AS OF {snapshot}")  # noqa: S608


def _files(session: Any, place: str) -> Files:
    """The files of a source as they are now; their contents are not read."""
    listed = session.read.format("binaryFile").option("recursiveFileLookup", "true").load(place)
    rows = listed.selectExpr(
        "path", "length", "CAST(UNIX_MICROS(modificationTime) AS STRING)"
    ).collect()
    return tuple(sorted((str(row[0]), int(row[1]), str(row[2])) for row in rows))

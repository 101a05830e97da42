"""DuckDB in our own process, locked: it can read the declared files and nothing else, and cannot be unlocked.

Errors of the engine quote cells, so none of their text ever leaves this file.
"""

from __future__ import annotations

import contextlib
import csv
import gzip
import os
import shutil
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from sqlglot import exp

from sordino.engines.engine import Exact
from sordino.errors import EngineFailed, InvalidDeclaration
from sordino.plan.statement import Statement
from sordino.query.dataset import Column, Table
from sordino.query.types import Number

__all__ = ["DuckDB", "arrow", "csv_records"]

_LONGEST_LINE = 2**24
_CSV_TYPES = {"int": "HUGEINT", "float": "DOUBLE", "bool": "BOOLEAN", "date": "DATE", "datetime": "TIMESTAMP"}


class DuckDB:
    """One locked in-memory database with a view for each declared table.

    Opening it reads each table once where cells might not decode (text that is no UTF-8, moments out of range), and loads
    CSV files: a source with such cells is refused here, so that no question can fail because of one cell. `memory` bounds
    what it holds ("2GB"); beyond that it spills to a private folder that is removed at the end.
    """

    dialect = "duckdb"

    def __init__(self, tables: Iterable[Table], *, memory: str | None = None, threads: int | None = None) -> None:
        self._lock = threading.Lock()
        self._closing = threading.Lock()
        self._folder = Path(tempfile.mkdtemp(prefix="sordino-"))
        self._remove = weakref.finalize(self, _remove, self._folder, os.getpid())  # also if nobody closes it
        self._connection = duckdb.connect(":memory:")
        try:
            self._open(list(tables), memory, threads)
        except BaseException:
            self.close()
            raise

    def _open(self, tables: list[Table], memory: str | None, threads: int | None) -> None:
        run = self._connection.execute
        # In this order: progress is known only with the bar on, and the bar itself would write to terminals and pipes.
        run("SET enable_progress_bar_print = false")
        run("SET enable_progress_bar = true")
        for name, value in (("memory_limit", memory), ("threads", threads), ("temp_directory", str(self._folder))):
            if value is not None:
                run(f"SET {name} = {_text(str(value)) if isinstance(value, str) else int(value)}")
        run("SET preserve_insertion_order = false")
        run("SET python_enable_replacements = false")
        run("SET autoinstall_known_extensions = false")
        run("SET autoload_known_extensions = false")
        for table in tables:
            failed = self._attempt(table, self._view)
            if failed:  # raised outside of `except`: what it would carry along may quote cells
                raise _unreadable(table, failed)
        paths = [table.source.path for table in tables if table.source.kind == "parquet"]
        run(f"SET allowed_paths = [{', '.join(_text(str(path)) for path in paths)}]")
        run("SET enable_external_access = false")
        run("SET lock_configuration = true")

    @staticmethod
    def _attempt(table: Table, action: Callable[[Table], object]) -> str | None:
        try:
            action(table)
        except Exception as error:
            return type(error).__name__
        return None

    def _view(self, table: Table) -> None:
        source, name, run = table.source, _quoted(table.name), self._connection.execute
        match source.kind:
            case "frame":
                frame = arrow(source.frame)
                frame.validate(full=True)
                self._connection.register(f"frame of {table.name}", frame)
                cells = ", ".join(_whole_cells(table, c, str(frame.schema.field(c).type)) for c in frame.column_names)
                run(f"CREATE VIEW {name} AS SELECT {cells} FROM {_quoted(f'frame of {table.name}')}")  # noqa: S608
            case "parquet":
                run(f"CREATE VIEW {name} AS SELECT * FROM read_parquet({_text(str(source.path))})")  # noqa: S608
                self._decode(table)
            case "duckdb":
                alias = _quoted(f"file of {table.name}")
                run(f"ATTACH {_text(str(source.path))} AS {alias} (READ_ONLY)")
                run(f"CREATE VIEW {name} AS SELECT * FROM {alias}.{_quoted(source.table or table.name)}")  # noqa: S608
                self._decode(table)
            case "csv":
                header = _header(Path(source.path or ""))
                raw = _quoted(f"text of {table.name}")
                run(f"CREATE TABLE {raw} AS SELECT * FROM {_csv(Path(source.path or ''), header)}")  # noqa: S608
                # in a second step, or the engine would convert while it reads, and fail where a cell does not convert
                cells = ", ".join(_typed_cell(table, column) for column in header)
                run(f"CREATE TABLE {name} AS SELECT {cells} FROM {raw}")  # noqa: S608
                run(f"DROP TABLE {raw}")

    def _decode(self, table: Table) -> None:
        """Read all cells of declared text and moments once, which fails if one of them cannot be decoded."""
        asked = {name.casefold() for name in (*table.columns, table.person or "")}
        for name, kind in self._columns(table).items():
            if name.casefold() in asked and kind.startswith(("VARCHAR", "TIMESTAMP")):
                cell = f"LENGTH({_quoted(name)})" if kind.startswith("VARCHAR") else f"CAST({_quoted(name)} AS TIMESTAMP)"
                self._connection.execute(f"SELECT BIT_XOR(HASH({cell})) FROM {_quoted(table.name)}").fetchall()  # noqa: S608

    def _columns(self, table: Table) -> dict[str, str]:
        rows = self._connection.execute(f"DESCRIBE {_quoted(table.name)}").fetchall()
        return {str(row[0]): str(row[1]) for row in rows}

    def schema(self, table: Table) -> Mapping[str, str]:
        """The columns of a declared table and DuckDB's names of their types; no cell is read."""
        found: dict[str, str] = {}
        with self._lock:
            failed = self._attempt(table, lambda table: found.update(self._columns(table)))
        if failed:
            raise _unreadable(table, failed)
        return found

    def run(self, statement: Statement) -> Exact:
        """The exact sums of a statement."""
        rows: list[tuple[Any, ...]] | None = None
        with self._lock, contextlib.suppress(Exception):  # whatever an error says may quote a cell
            rows = self._connection.execute(statement.text(self.dialect)).fetchall()
        if rows is None:
            raise EngineFailed
        columns = list(zip(*rows, strict=True)) or [()] * (statement.keys + statement.sums)
        sums = np.empty((len(rows), statement.sums), object)
        for j, cells in enumerate(columns[statement.keys :]):
            sums[:, j] = cells
        return Exact(tuple(list(cells) for cells in columns[: statement.keys]), sums)

    @property
    def progress(self) -> float | None:
        """How much of the statement now running is done, from 0 to 1, by DuckDB's estimate; None if it is not known."""
        percent = -1.0
        with self._closing, contextlib.suppress(duckdb.Error):  # closed by now
            percent = self._connection.query_progress()
        return percent / 100 if 0 <= percent <= 100 else None

    def interrupt(self) -> None:
        """Stop the statement that another thread is running; it fails."""
        with self._closing, contextlib.suppress(duckdb.Error):
            self._connection.interrupt()

    def close(self) -> None:
        """Stop what is running, close the database and remove its folder."""
        self.interrupt()
        with self._lock, self._closing:  # nor must the connection go while another thread asks it for progress
            self._connection.close()
        self._remove()


def _remove(folder: Path, process: int) -> None:
    """Remove the folder, in the process that made it."""
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)


def _text(value: str) -> str:
    return exp.Literal.string(value).sql(dialect="duckdb")


def _quoted(name: str) -> str:
    return exp.to_identifier(name, quoted=True).sql(dialect="duckdb")


def arrow(frame: Any) -> Any:
    """An in-memory table as Arrow: polars and pandas objects by their own conversion."""
    import pyarrow as pa

    if isinstance(frame, pa.Table):
        return frame
    if hasattr(frame, "to_arrow"):
        return frame.to_arrow()
    return pa.Table.from_pandas(frame, preserve_index=False)


def _whole_cells(table: Table, name: str, kind: str) -> str:
    """pandas holds whole numbers with gaps as floats: where int is declared they are turned back, NaN into NULL."""
    declared = _declared(table, name)
    if kind in ("double", "float") and declared is not None and declared.kind == "int":
        return f"TRY_CAST({_quoted(name)} AS HUGEINT) AS {_quoted(name)}"
    return _quoted(name)


def _declared(table: Table, name: str) -> Column | None:
    return next((c for n, c in table.columns.items() if n.casefold() == name.casefold()), None)


def _header(path: Path) -> list[str]:
    """The names in the first line of a CSV file; refuses one with a quote that is never closed.

    The engine would drop what follows such a quote without a word; every other misplaced quote makes it fail.
    """
    with (gzip.open if path.suffix == ".gz" else open)(path, "rb") as lines:
        first = lines.readline(_LONGEST_LINE)
        quotes = first.count(b'"') + sum(part.count(b'"') for part in iter(lambda: lines.read(2**20), b""))
    if quotes % 2:
        raise ValueError("a quote is not closed")
    return next(csv.reader([first.decode("utf-8-sig")]), [])


def _csv(path: Path, header: list[str]) -> str:
    """All records of a CSV file, as text.

    Nothing is guessed from the cells: comma, double quotes and UTF-8 are expected, and one cell for each column in every
    record; reading fails where it is not so. The file is read by one thread from its beginning: several would start within
    records, and a record with line breaks could then swallow or make up others.
    """
    columns = ", ".join(f"{_text(name)}: 'VARCHAR'" for name in header)
    options = "header = true, auto_detect = false, delim = ',', quote = '\"', escape = '\"', parallel = false"
    return f"read_csv({_text(str(path))}, columns = {{{columns}}}, {options}, max_line_size = {_LONGEST_LINE})"


def csv_records(path: Path) -> Any:
    """The records of a CSV file as an Arrow table of texts, read as the engine reads them; for audits by the owner."""
    with duckdb.connect(":memory:") as connection:
        return connection.sql(f"SELECT * FROM {_csv(path, _header(path))}").to_arrow_table()  # noqa: S608


def _typed_cell(table: Table, name: str) -> str:
    """A cell of a CSV in its declared type; NULL where it does not convert."""
    declared = _declared(table, name)
    kind = None if declared is None else _CSV_TYPES.get(declared.kind)
    if declared is not None and declared.kind == "category" and isinstance(declared.type, Number):
        kind = "HUGEINT"
    return _quoted(name) if kind is None else f"TRY_CAST({_quoted(name)} AS {kind}) AS {_quoted(name)}"


def _unreadable(table: Table, failed: str) -> InvalidDeclaration:
    source = table.source
    what = f"tables.{table.name}.source = {str(source.path) if source.path else 'an object in memory'}"
    hint = "Check that it exists, is readable and is what the declaration says, and that all its text is UTF-8."
    if source.kind == "csv":
        hint += " Each record needs one cell for each column named in the first line, and quotes must be closed."
    return InvalidDeclaration(what, f"it cannot be read as {source.kind} ({failed})", hint)

"""DuckDB in our own process, locked: it can read the declared files and nothing else, and cannot be unlocked.

Errors of the engine quote cells, so none of their text ever leaves this file.
"""

from __future__ import annotations

import csv
import gzip
import shutil
import tempfile
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from sqlglot import exp

from sordino.engines.engine import Exact
from sordino.errors import EngineFailed, InvalidDeclaration
from sordino.plan.statement import Statement
from sordino.query.dataset import Source, Table
from sordino.query.types import Number

__all__ = ["DuckDB"]

_CSV_TYPES = {"int": "HUGEINT", "float": "DOUBLE", "bool": "BOOLEAN", "date": "DATE", "datetime": "TIMESTAMP"}


class DuckDB:
    """One locked in-memory database with a view for each declared table.

    `memory` bounds what it holds ("2GB"); beyond that it spills to a private folder that is removed at the end.
    """

    dialect = "duckdb"

    def __init__(self, tables: Iterable[Table], *, memory: str | None = None, threads: int | None = None) -> None:
        self._lock = threading.Lock()
        self._folder = Path(tempfile.mkdtemp(prefix="sordino-"))
        self._connection = duckdb.connect(":memory:")
        try:
            self._open(list(tables), memory, threads)
        except BaseException:
            self.close()
            raise

    def _open(self, tables: list[Table], memory: str | None, threads: int | None) -> None:
        run = self._connection.execute
        for name, value in (("memory_limit", memory), ("threads", threads), ("temp_directory", str(self._folder))):
            if value is not None:
                run(f"SET {name} = {_text(str(value)) if isinstance(value, str) else int(value)}")
        run("SET preserve_insertion_order = false")
        run("SET python_enable_replacements = false")
        run("SET autoinstall_known_extensions = false")
        run("SET autoload_known_extensions = false")
        for table in tables:
            self._view(table)
        paths = [table.source.path for table in tables if table.source.kind in ("parquet", "csv")]
        run(f"SET allowed_paths = [{', '.join(_text(str(path)) for path in paths)}]")
        run("SET enable_external_access = false")
        run("SET lock_configuration = true")

    def _view(self, table: Table) -> None:
        source, name = table.source, _quoted(table.name)
        try:
            match source.kind:
                case "frame":
                    frame = _arrow(source.frame)
                    self._connection.register(f"frame of {table.name}", frame)
                    cells = ", ".join(_whole_cells(table, c, str(frame.schema.field(c).type)) for c in frame.column_names)
                    view = f"SELECT {cells} FROM {_quoted(f'frame of {table.name}')}"  # noqa: S608
                    self._connection.execute(f"CREATE VIEW {name} AS {view}")
                    return
                case "parquet":
                    relation = f"read_parquet({_text(str(source.path))})"
                case "duckdb":
                    alias = _quoted(f"file of {table.name}")
                    self._connection.execute(f"ATTACH {_text(str(source.path))} AS {alias} (READ_ONLY)")
                    relation = f"{alias}.{_quoted(source.table or table.name)}"
                case "csv":
                    self._connection.execute(f"CREATE VIEW {name} AS {_csv(table)}")
                    return
            self._connection.execute(f"CREATE VIEW {name} AS SELECT * FROM {relation}")  # noqa: S608
        except (duckdb.Error, OSError) as error:
            raise _unreadable(table, source, error) from None

    def schema(self, table: Table) -> Mapping[str, str]:
        """The columns of a declared table and DuckDB's names of their types; no cell is read."""
        with self._lock:
            try:
                rows = self._connection.execute(f"DESCRIBE {_quoted(table.name)}").fetchall()
            except duckdb.Error as error:
                raise _unreadable(table, table.source, error) from None
        return {str(row[0]): str(row[1]) for row in rows}

    def run(self, statement: Statement) -> Exact:
        """The exact sums of a statement."""
        with self._lock:
            try:
                rows = self._connection.execute(statement.text(self.dialect)).fetchall()
            except Exception:  # whatever it says may quote a cell
                raise EngineFailed from None
        columns = list(zip(*rows, strict=True)) or [()] * (statement.keys + statement.sums)
        sums = np.empty((len(rows), statement.sums), object)
        for j, cells in enumerate(columns[statement.keys :]):
            sums[:, j] = cells
        return Exact(tuple(list(cells) for cells in columns[: statement.keys]), sums)

    def close(self) -> None:
        """Close the database and remove its folder."""
        self._connection.close()
        shutil.rmtree(self._folder, ignore_errors=True)


def _text(value: str) -> str:
    return exp.Literal.string(value).sql(dialect="duckdb")


def _quoted(name: str) -> str:
    return exp.to_identifier(name, quoted=True).sql(dialect="duckdb")


def _arrow(frame: Any) -> Any:
    """An in-memory table as Arrow: polars and pandas objects by their own conversion."""
    import pyarrow as pa

    if isinstance(frame, pa.Table):
        return frame
    if hasattr(frame, "to_arrow"):
        return frame.to_arrow()
    return pa.Table.from_pandas(frame, preserve_index=False)


def _whole_cells(table: Table, name: str, kind: str) -> str:
    """pandas holds whole numbers with gaps as floats: where int is declared they are turned back, NaN into NULL."""
    declared = next((c for n, c in table.columns.items() if n.casefold() == name.casefold()), None)
    if kind in ("double", "float") and declared is not None and declared.kind == "int":
        return f"TRY_CAST({_quoted(name)} AS HUGEINT) AS {_quoted(name)}"
    return _quoted(name)


def _csv(table: Table) -> str:
    """A SELECT that reads a CSV as text by its header line and converts cells to the declared types, never failing.

    Nothing is guessed from the cells: comma, double quotes and UTF-8 are expected. A cell that does not convert is NULL; a
    line with too few cells is skipped.
    """
    path = Path(table.source.path or "")
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8", newline="") as lines:
        header = next(csv.reader(lines), [])
    columns = ", ".join(f"{_text(name)}: 'VARCHAR'" for name in header)
    cells = []
    for name in header:
        declared = next((c for n, c in table.columns.items() if n.casefold() == name.casefold()), None)
        kind = "VARCHAR" if declared is None else _CSV_TYPES.get(declared.kind, "VARCHAR")
        if declared is not None and declared.kind == "category" and isinstance(declared.type, Number):
            kind = "BIGINT"
        cells.append(_quoted(name) if kind == "VARCHAR" else f"TRY_CAST({_quoted(name)} AS {kind}) AS {_quoted(name)}")
    options = "header = true, auto_detect = false, delim = ',', quote = '\"', escape = '\"'"
    kind = f"columns = {{{columns}}}, {options}, strict_mode = false, ignore_errors = true"
    return f"SELECT {', '.join(cells)} FROM read_csv({_text(str(path))}, {kind})"  # noqa: S608


def _unreadable(table: Table, source: Source, error: Exception) -> InvalidDeclaration:
    what = f"tables.{table.name}.source = {str(source.path) if source.path else 'an object in memory'}"
    rule = f"it cannot be opened as {source.kind} ({type(error).__name__})"
    return InvalidDeclaration(what, rule, "Check that the file exists, is readable and is what the declaration says.")

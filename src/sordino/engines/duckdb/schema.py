"""The tables of a DuckDB file and the types of their columns, for a declaration to fill in; no cell is read."""

from __future__ import annotations

from pathlib import Path

from sordino.engines.duckdb.forms import kind_of
from sordino.engines.duckdb.locked import text
from sordino.engines.gate import Admitted, literal_path, unreadable
from sordino.query.dataset import Kind, Table
from sordino.query.stub import Fields, type_word

__all__ = ["admitted_columns", "tables_of"]


def tables_of(file: Path) -> dict[str, Fields] | None:
    """The columns of each table of a file's main schema; None if it cannot be read."""
    import duckdb

    columns = (
        "SELECT table_name, column_name, data_type FROM information_schema.columns "
        "WHERE table_catalog = 'file' AND table_schema = 'main' ORDER BY table_name, ordinal_position"
    )
    path = literal_path(file, "duckdb")
    try:
        with duckdb.connect(":memory:") as connection:
            connection.execute(f"ATTACH {text(str(path))} AS file (READ_ONLY, TYPE duckdb)")
            rows = connection.execute(columns).fetchall()
    except duckdb.Error:
        return None
    tables: dict[str, list[tuple[str, Kind | None, str]]] = {}
    for table, column, kind in rows:
        word = "LIST" if kind.endswith("]") else type_word(kind)  # INTEGER[] is no INTEGER
        tables.setdefault(table, []).append((column, kind_of(word), word))
    return dict(tables)


def admitted_columns(table: Table) -> tuple[list[str], tuple[Admitted, ...]]:
    """The names of a source's columns, and those of the declared ones that enter; refuses types that do not fit.

    Names and types are read, no cell; an object in memory is asked for its columns only.
    """
    import duckdb

    from sordino.engines.duckdb import sources

    with duckdb.connect(":memory:") as connection:
        try:
            return sources.described(connection, table)
        except (duckdb.Error, OSError):
            raise unreadable(table, "it is damaged, or no file of that kind") from None

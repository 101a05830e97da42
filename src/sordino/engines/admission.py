"""Whether declared tables fit their sources, from names and types of columns alone.

This is what a session refuses when it opens, but for what only cells can tell: quotes in a CSV file, cells that are too
long, keys that two rows share.
"""

from __future__ import annotations

from collections.abc import Sequence

from sordino.engines.gate import Admitted, expect_comparable, pinned
from sordino.engines.openers import catalog_of, dialect_of
from sordino.query.dataset import Dataset
from sordino.query.sources import engine_of

__all__ = ["source_columns_of"]


def source_columns_of(dataset: Dataset) -> dict[str, list[str]]:
    """The names of the columns of each source; refuses a table that does not fit its own."""
    tables = list(dataset.tables.values())
    pinned(tables)
    files = [table for table in tables if engine_of(table.source) == "duckdb"]
    names: dict[str, list[str]] = {}
    entered: dict[str, Sequence[Admitted]] = {}
    if files:
        from sordino.engines.duckdb.schema import admitted_columns

        for table in files:
            names[table.name], entered[table.name] = admitted_columns(table)
    if len(files) == len(tables):
        expect_comparable(tables, entered)
        return names
    names |= catalog_of(dialect_of(tables)).source_columns_of(tables)
    return {table.name: names[table.name] for table in tables}

"""The rows behind a declared table, as they are stored, and the same declaration over other rows.

For audits on made-up data, or by the owner: nothing here is private.
"""

from __future__ import annotations

import csv
import dataclasses
import tempfile
import weakref
from pathlib import Path
from typing import Any

from sordino.engines.duckdb import arrow, csv_records
from sordino.errors import InvalidInput
from sordino.query.dataset import Source, Table

__all__ = ["stored_rows", "with_rows"]


def stored_rows(table: Table) -> Any:
    """All rows as an Arrow table; of a CSV file every cell is text."""
    source = table.source
    match source.kind:
        case "frame":
            return arrow(source.frame)
        case "parquet":
            import pyarrow.parquet

            return pyarrow.parquet.read_table(source.path)
        case "csv":
            return csv_records(Path(source.path or ""))
        case "duckdb" | "postgres" | "spark":
            rule = "the rows of a database are not read for audits"
            hint = "Copy the table into a Parquet file or an Arrow table, and declare that."
            raise InvalidInput(f"tables.{table.name}.source = {source.shown}", rule, hint)


def with_rows(table: Table, rows: Any) -> Table:
    """The same declaration over other rows; those of a CSV file go into a file of their own, removed when unused."""
    if table.source.kind != "csv":
        return dataclasses.replace(table, source=Source("frame", frame=rows))
    folder = tempfile.TemporaryDirectory(prefix="sordino-audit-")
    path = Path(folder.name) / "rows.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_ALL, lineterminator="\n")
        writer.writerow(rows.column_names)
        columns = [["" if cell is None else cell for cell in column.to_pylist()] for column in rows.columns]
        writer.writerows(zip(*columns, strict=True))
    source = Source("csv", path=path)
    weakref.finalize(source, folder.cleanup)
    return dataclasses.replace(table, source=source)

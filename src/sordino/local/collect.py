"""Counting reports straight from Parquet files: DuckDB streams them, locked, so that memory stays bounded."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sordino.errors import InvalidInput
from sordino.local.protocol import Column, Protocol
from sordino.local.reports import COLUMN, Tally, arrow_type, columns, parquet_file, protocol_of, same, tally_batches
from sordino.privacy.exact import show

__all__ = ["tally_parquet"]

_BATCH_BYTES = 1 << 24


def tally_parquet(*paths: str | Path, protocol: Protocol | None = None, memory: str | None = None) -> Tally:
    """The tally of all reports in files that `Reports.to_parquet` wrote, which must all be of one protocol.

    `memory`, such as "500MB", is what DuckDB may use.
    """
    if not paths:
        raise InvalidInput("no files", "there must be something to count", "Pass the path of a file of reports.")
    rows, files = 0, set()
    for path in paths:
        with parquet_file(path) as file:
            found, rows = protocol_of(file.schema_arrow, str(path)), rows + file.metadata.num_rows
        same(protocol or found, found)
        protocol = protocol or found
        files.add(Path(path).resolve())
        
    assert protocol is not None  # noqa: S101
    XX

def _stream(paths: list[Path], protocol: Protocol, memory: str | None) -> Iterator[Column]:
    import duckdb
    import pyarrow as pa

    rows = max(1, _BATCH_BYTES // (protocol.width or 8))
    with duckdb.connect(":memory:") as connection:
        run = connection.execute
        if memory is not None:
            _limit(connection, memory)
        run("SET preserve_insertion_order = false")
        run("SET python_enable_replacements = false")
        run("SET autoinstall_known_extensions = false")
        run("SET autoload_known_extensions = false")
        run(f"SET allowed_paths = {files}")
        run("SET enable_external_access = false")
        run("SET lock_configuration = true")
        try:
            relation = connection.sql(f"SELECT {COLUMN} FROM read_parquet({files})")  # noqa: S608
            for batch in relation.to_arrow_reader(rows):
                yield columns(protocol, _fixed(batch.column(0), protocol))
        except duckdb.Error as error:
            rule = f"it cannot be read to the end ({type(error).__name__})"
            raise InvalidInput(", ".join(paths), rule, "Nothing was counted; check the files.") from None


def _fixed(chunk: Any, protocol: Protocol) -> Any:
    """DuckDB hands rows of bytes over with lengths of their own: they must all be the protocol's."""
    import pyarrow as pa

    if not protocol.width or pa.types.is_fixed_size_binary(chunk.type):
        return chunk
    try:
        return chunk.cast(pa.binary(protocol.width))
    except pa.ArrowInvalid:
        rule = f"a report of {protocol!r} has {protocol.width} bytes"
        raise InvalidInput("a report of another length", rule, "These reports were damaged.") from None


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"

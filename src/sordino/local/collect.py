"""Counting reports straight from Parquet files: DuckDB streams them, locked, so that memory stays bounded."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sordino.errors import InvalidInput
from sordino.local.protocol import Column, Protocol
from sordino.local.reports import COLUMN, Tally, columns, protocol_of, same, tally_batches

__all__ = ["tally_parquet"]

_BATCH_BYTES = 1 << 24


def tally_parquet(*paths: str | Path, protocol: Protocol | None = None, memory: str | None = None) -> Tally:
    """The tally of all reports in files that `Reports.to_parquet` wrote, which must all be of one protocol."""
    if not paths:
        raise InvalidInput("no files", "there must be something to count", "Pass the path of a file of reports.")
    for path in paths:
        found = _stored_protocol(path)
        same(protocol or found, found)
        protocol = protocol or found
    assert protocol is not None  # noqa: S101
    return tally_batches(protocol, _stream([str(path) for path in paths], protocol, memory))


def _stored_protocol(path: str | Path) -> Protocol:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        schema = pq.read_schema(path)
    except (OSError, pa.ArrowException) as error:
        raise InvalidInput(str(path), f"it cannot be read as Parquet ({type(error).__name__})", "Check the path.") from None
    return protocol_of(schema, str(path))


def _stream(paths: list[str], protocol: Protocol, memory: str | None) -> Iterator[Column]:
    import duckdb

    files = f"[{', '.join(_text(path) for path in paths)}]"
    rows = max(1, _BATCH_BYTES // (protocol.width or 8))
    with duckdb.connect(":memory:") as connection:
        run = connection.execute
        if memory is not None:
            run(f"SET memory_limit = {_text(memory)}")
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

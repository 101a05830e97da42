"""Counting reports straight from Parquet files: DuckDB streams them, locked, so that memory stays bounded."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from sordino.engines.duckdb.locked import lock, text
from sordino.errors import InvalidInput
from sordino.local.protocol import Column, Protocol
from sordino.local.reports import (
    COLUMN,
    Tally,
    arrow_type,
    checked_path,
    columns,
    parquet_file,
    protocol_of,
    same,
    tally_batches,
)
from sordino.privacy.exact import show
from sordino.privacy.wording import a_or_an

__all__ = ["tally_parquet"]

_BATCH_BYTES = 1 << 24
_GLOB = re.compile(r"[*?\[]")


def tally_parquet(
    *paths: str | Path, protocol: Protocol | None = None, memory: str | None = None
) -> Tally:
    """The tally of all reports in files that `Reports.to_parquet` wrote, which must all be of one protocol.

    `memory` is what DuckDB may take, such as "500MB".
    """
    if not paths:
        raise InvalidInput(
            "no files", "there must be something to count", "Pass the path of a file of reports."
        )
    rows, files = 0, list[str]()
    for path in paths:
        if isinstance(path, Iterable) and not isinstance(path, str | bytes | os.PathLike):
            raise InvalidInput(
                a_or_an(type(path).__name__),
                "files are passed one by one",
                "Pass tally_parquet(*paths).",
            )
        place = os.path.realpath(checked_path(path))
        if place in files:
            raise InvalidInput(
                str(path), "its reports would be counted twice", "Pass every file once."
            )
        files.append(place)
        with parquet_file(place) as file:
            found, rows = protocol_of(file.schema_arrow, str(path)), rows + file.metadata.num_rows
        same(protocol or found, found, str(path))
        protocol = protocol or found
    assert protocol is not None  # noqa: S101
    tally = tally_batches(protocol, _stream(files, protocol, memory))
    if tally.answers != rows:
        rule = f"the files say that they hold {rows} reports"
        raise InvalidInput(
            f"{tally.answers} reports",
            rule,
            "They were damaged, or changed meanwhile; nothing was counted.",
        )
    return tally


def _stream(files: list[str], protocol: Protocol, memory: str | None) -> Iterator[Column]:
    import duckdb
    import pyarrow as pa

    # each matches the one file and no other
    patterns = [_GLOB.sub(r"[\g<0>]", file) for file in files]
    rows = max(1, _BATCH_BYTES // (protocol.width or 8))
    with duckdb.connect(":memory:") as connection:
        if memory is not None:
            _limit(connection, memory)
        try:
            connection.execute("SET preserve_insertion_order = false")
            lock(connection, [*files, *patterns])
            # a folder named report=1 must not become the column, nor the columns of one file another's
            source = f"read_parquet([{', '.join(map(text, patterns))}], hive_partitioning = false, union_by_name = false)"
            relation = connection.sql(f"SELECT {COLUMN} FROM {source}")  # noqa: S608
            for batch in relation.to_arrow_reader(rows):
                yield columns(protocol, _fixed(batch.column(0), protocol))
        except (duckdb.Error, pa.ArrowException, OSError, UnicodeError) as error:
            rule = f"it cannot be read to the end ({type(error).__name__})"
            raise InvalidInput(
                ", ".join(files), rule, "Nothing was counted; check the files."
            ) from None


def _limit(connection: Any, memory: str) -> None:
    import duckdb

    try:
        connection.execute("SET memory_limit = " + text(memory))
    except (duckdb.Error, AttributeError, TypeError, UnicodeError):
        rule = "memory is a text with a unit, of what DuckDB may take"
        raise InvalidInput(f"memory={show(memory)}", rule, 'Pass a text such as "500MB".') from None


def _fixed(chunk: Any, protocol: Protocol) -> Any:
    """DuckDB hands rows of bytes over with lengths of their own: they must all be the protocol's."""
    import pyarrow as pa

    kind = arrow_type(protocol)
    if chunk.type == kind:
        return chunk
    rule = (
        f"a report of {protocol!r} has {protocol.width} bytes"
        if protocol.width
        else f"reports are a column of {kind}"
    )
    try:
        if protocol.width:
            return chunk.cast(kind)
    except pa.ArrowInvalid:
        pass
    raise InvalidInput("a report of another kind or length", rule, "These reports were damaged.")

"""Randomized answers with the protocol that made them, and what is counted from them.

The protocol travels with the reports, also in files, so that reports of different protocols are never added up.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from sordino.errors import InvalidInput
from sordino.local.estimates import checked_population
from sordino.local.protocol import Column, Counts, Protocol, protocol_from_json
from sordino.local.report_text import differences, is_column, one_line, several
from sordino.privacy.exact import Number
from sordino.privacy.wording import a_or_an

__all__ = [
    "COLUMN",
    "METADATA",
    "Reports",
    "Tally",
    "arrow_type",
    "columns",
    "expected",
    "same",
    "tally_batches",
]

METADATA = b"sordino.local"
COLUMN = "report"

_Collection = TypeVar("_Collection", "Reports", "Tally")

_GROUP_BYTES = 1 << 23
_LOST = 'Reports that went through pandas or polars lose their metadata: use Reports.of(protocol, table["report"]).'


@dataclass(frozen=True, eq=False, repr=False)
class Reports:
    """The reports of many persons, in no order that means anything."""

    protocol: Protocol
    column: Column

    def __post_init__(self) -> None:
        column, width = self.column, self.protocol.width
        rule = f"{self.protocol!r} needs {f'rows of {width} bytes' if width else 'one whole number a person'}"
        if not isinstance(column, np.ndarray) or isinstance(column, np.ma.MaskedArray):
            raise InvalidInput(
                a_or_an(type(column).__name__),
                rule,
                "Pass what randomize() returned, or use Reports.of.",
            )
        if (
            not column.ndim
            or column.shape[1:] != ((width,) if width else ())
            or column.dtype != (np.uint8 if width else np.int64)
        ):
            raise InvalidInput(
                f"{column.dtype} reports of shape {column.shape}",
                rule,
                "Pass what randomize() returned.",
            )
        self.protocol.check(column)
        kept = column.view(np.ndarray)
        kept.setflags(write=False)
        object.__setattr__(self, "column", kept)

    @classmethod
    def of(cls, protocol: Protocol, reports: Iterable[int | bytes] | Column) -> Reports:
        """Reports that came one at a time, from `randomize_one`; also as a NumPy or Arrow array of them."""
        if (
            isinstance(reports, np.ndarray)
            and reports.dtype.kind in "iu"
            and not isinstance(reports, np.ma.MaskedArray)
        ):
            fits = reports.dtype != np.uint64 or not (reports >= 2**63).any()
            if protocol.width or fits:
                return cls(protocol, reports if protocol.width else reports.astype(np.int64))
        width, given = protocol.width, _listed(reports)
        if not all(isinstance(r, bytes) and len(r) == width if width else _whole(r) for r in given):
            rule = f"a report of {protocol!r} is {f'{width} bytes' if width else 'a whole number'}"
            raise InvalidInput(one_line(given), rule, "Pass what randomize_one() returned.")
        if width:
            return cls(protocol, np.frombuffer(b"".join(given), np.uint8).reshape(-1, width))
        return cls(protocol, np.array([int(r) for r in given], np.int64))

    def __len__(self) -> int:
        return len(self.column)

    def __add__(self, more: Reports) -> Reports:
        _alike(self, more)
        same(self.protocol, more.protocol)
        return Reports(self.protocol, np.concatenate([self.column, more.column]))

    def __radd__(self, nothing: Any) -> Reports:
        return _sum_from(nothing, self)

    def tally(self, protocol: Protocol | None = None) -> Tally:
        """The counts from which shares or means are estimated; refused if another protocol is expected."""
        if protocol is not None:
            same(protocol, self.protocol)
        return tally_batches(self.protocol, [self.column])

    def estimate(self, confidence: Number = 0.95, *, population: bool = False) -> Any:
        """The true shares, or the mean, behind the reports."""
        return self.tally().estimate(confidence, population=population)

    def to_arrow(self) -> Any:
        """A table of one column, whose metadata hold the protocol."""
        import pyarrow as pa

        kind = arrow_type(self.protocol)
        if self.protocol.width:
            data = pa.py_buffer(np.ascontiguousarray(self.column))
            array = pa.FixedSizeBinaryArray.from_buffers(kind, len(self), [None, data])
        else:
            array = pa.array(self.column).cast(kind)
        schema = pa.schema(
            [pa.field(COLUMN, kind, nullable=False)], {METADATA: self.protocol.to_json().encode()}
        )
        return pa.table([array], schema=schema)

    @classmethod
    def from_arrow(cls, table: Any) -> Reports:
        """The reports of a table that `to_arrow` made, or of a batch of its rows."""
        import pyarrow as pa

        if isinstance(table, pa.RecordBatch):
            table = pa.Table.from_batches([table])
        if not isinstance(table, pa.Table):
            rule = "reports come as an Arrow table or record batch"
            raise InvalidInput(a_or_an(type(table).__name__), rule, _LOST)
        protocol = protocol_of(table.schema, "the table")
        parts = [columns(protocol, chunk) for chunk in table.column(COLUMN).chunks]
        return cls(protocol, np.concatenate(parts) if parts else columns(protocol, None))

    def to_parquet(self, path: str | Path) -> None:
        """A file that says itself by which protocol its reports were made."""
        import pyarrow.parquet as pq

        # small groups: what a reader must hold at once
        rows = _GROUP_BYTES // (self.protocol.width or 8)
        checked_path(path)
        try:
            pq.write_table(self.to_arrow(), path, row_group_size=rows)
        except OSError as error:
            rule = f"it cannot be written ({type(error).__name__})"
            raise InvalidInput(
                str(path), rule, "Check that the folder exists and may be written to."
            ) from None

    @classmethod
    def from_parquet(cls, path: str | Path) -> Reports:
        """All reports of a file; `tally_parquet` counts without holding them."""
        with parquet_file(path) as file:
            return cls.from_arrow(file.read())

    def __repr__(self) -> str:
        return f"{several(len(self), 'report')} of {self.protocol!r}"


@dataclass(frozen=True, eq=False, repr=False)
class Tally:
    """How many reports there were, and how many of them speak for each category (for a number: how many are 1)."""

    protocol: Protocol
    answers: int
    counts: Counts

    def __add__(self, more: Tally) -> Tally:
        _alike(self, more)
        same(self.protocol, more.protocol)
        return Tally(self.protocol, self.answers + more.answers, self.counts + more.counts)

    def __radd__(self, nothing: Any) -> Tally:
        return _sum_from(nothing, self)

    def __repr__(self) -> str:
        return f"Tally of {several(self.answers, 'report')} of {self.protocol!r}"

    def estimate(self, confidence: Number = 0.95, *, population: bool = False) -> Any:
        """The true shares, or the mean, of those who answered; or of the population they were drawn from."""
        checked_population(population)
        if self.answers == 0:
            raise InvalidInput(
                "no reports", "an empty collection says nothing", "Collect at least one report."
            )
        return self.protocol.estimate_from_counts(
            self.answers, self.counts, confidence, population=population
        )


def tally_batches(protocol: Protocol, batches: Iterable[Column]) -> Tally:
    """The tally of columns that were checked, one after the other."""
    answers, counts = 0, None
    cells = np.zeros(protocol.cells, np.int64) if protocol.cells else None
    for column in batches:
        answers += len(column)
        if cells is not None:
            _add(cells, _numbers(column))
        elif len(column):
            found = protocol.supports(column)
            counts = found if counts is None else counts + found
    if cells is not None:
        counts = protocol.supports_of_cells(cells)
    if not answers or counts is None:
        raise InvalidInput(
            "no reports", "an empty collection says nothing", "Collect at least one report."
        )
    return Tally(protocol, answers, counts)


def _add(cells: Counts, numbers: Column) -> None:
    if 4 * len(numbers) < len(cells):
        np.add.at(cells, numbers, 1)
    else:
        cells += np.bincount(numbers, minlength=len(cells))


def _numbers(column: Column) -> Column:
    """Rows of one or two bytes as numbers."""
    if column.ndim == 1:
        return column
    return column[:, 0] if column.shape[1] == 1 else np.ascontiguousarray(column).view("<u2")[:, 0]


def _whole(report: Any) -> bool:
    return (
        isinstance(report, int | np.integer)
        and not isinstance(report, bool)
        and bool(0 <= report < 2**63)
    )


def _listed(reports: Any) -> list[Any]:
    if hasattr(reports, "to_pylist"):
        reports = reports.to_pylist()
    if not (isinstance(reports, Iterator) or is_column(reports)):
        rule = "reports come as one list or one-dimensional array"
        raise InvalidInput(
            a_or_an(type(reports).__name__), rule, "Pass a list of what randomize_one() returned."
        )
    return list(reports)


def _alike(one: object, two: object) -> None:
    if type(two) is not type(one):
        rule = f"only {type(one).__name__} can be added to {type(one).__name__}"
        raise InvalidInput(
            a_or_an(type(two).__name__), rule, "Add what was collected by the same protocol."
        )


def _sum_from(nothing: Any, one: _Collection) -> _Collection:
    """What `sum` begins with, 0, and one collection."""
    if type(nothing) is not int or nothing != 0:
        _alike(one, nothing)
    return one


def checked_path(path: Any) -> str:
    """The path of a file, as a text."""
    try:
        text: str = os.fspath(path)
        if text.encode() and "\0" not in text:
            return text
    except (TypeError, AttributeError, UnicodeEncodeError):
        pass
    raise InvalidInput(
        one_line(path),
        "a file is named by its path",
        'Pass a text such as "reports.parquet", or a Path.',
    )


@contextmanager
def parquet_file(path: Any) -> Iterator[Any]:
    """A Parquet file, open; what cannot be read is refused."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    checked_path(path)
    try:
        with pq.ParquetFile(path) as file:
            yield file
    except (OSError, UnicodeError, pa.ArrowException) as error:
        raise InvalidInput(
            str(path), f"it cannot be read as Parquet ({type(error).__name__})", "Check the path."
        ) from None


def expected(
    protocol: Protocol, reports: Any, source: str = "protocol.randomize(answers)"
) -> Reports:
    """Reports of this protocol; anything else is refused."""
    if not isinstance(reports, Reports):
        if isinstance(reports, Tally):
            raise InvalidInput(
                "a Tally", "reports are needed here, not their counts", "Use tally.estimate()."
            )
        rule = "reports are needed here, and true answers must be randomized first"
        hint = f"Pass {source}; a list of reports becomes Reports.of(protocol, reports)."
        raise InvalidInput(a_or_an(type(reports).__name__), rule, hint)
    same(protocol, reports.protocol)
    return reports


def same(one: Protocol, two: Protocol, where: str | None = None) -> None:
    """Refuse to mix reports of two protocols."""
    if one != two:
        rule = f"they cannot be counted together: {differences(one, two)}"
        hint = "Estimate each collection by its own protocol: epsilon, categories and their order must all be equal."
        raise InvalidInput(
            f"reports of another protocol{f' in {where}' if where else ''}", rule, hint
        )


def arrow_type(protocol: Protocol) -> Any:
    """The Arrow type of the column of reports: the narrowest that holds them."""
    import pyarrow as pa

    if protocol.width:
        return pa.binary(protocol.width)
    size = (protocol.limit - 1).bit_length()
    return (
        pa.uint8()
        if size <= 8
        else pa.uint16()
        if size <= 16
        else pa.uint32()
        if size <= 32
        else pa.int64()
    )


def protocol_of(schema: Any, where: str) -> Protocol:
    """The protocol that a schema names; its column must be as that protocol writes it."""
    text = (schema.metadata or {}).get(METADATA)
    if text is None or schema.names != [COLUMN]:
        rule = f"it holds no reports: a collection has one column, {COLUMN}, and names its protocol in its metadata"
        raise InvalidInput(where, rule, f"Write it with Reports.to_parquet. {_LOST}")
    protocol = protocol_from_json(text.decode("utf-8", "replace"))
    kind = schema.field(COLUMN).type
    if kind != arrow_type(protocol):
        rule = f"reports of {protocol!r} are a column of {arrow_type(protocol)}"
        raise InvalidInput(
            f"{where} with {kind}", rule, "The file was changed; collect the reports again."
        )
    return protocol


def columns(protocol: Protocol, chunk: Any) -> Column:
    """One Arrow array as a checked column."""
    width = protocol.width
    if chunk is None or len(chunk) == 0:
        return np.empty((0, width), np.uint8) if width else np.empty(0, np.int64)
    if chunk.null_count:
        raise InvalidInput(
            "a missing report", "every row of a collection is a report", "Drop empty rows."
        )
    if width:
        data = np.frombuffer(chunk.buffers()[1], np.uint8)
        column: Column = data[chunk.offset * width : (chunk.offset + len(chunk)) * width].reshape(
            -1, width
        )
    else:
        column = chunk.to_numpy(zero_copy_only=False).astype(np.int64)
    protocol.check(column)
    return column

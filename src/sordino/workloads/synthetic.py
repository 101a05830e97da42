"""Synthetic rows with a report of their own quality, as they are stored and read back.

They hold nothing that was not released: rows are drawn from a model of noisy tables, and the report has noisy errors.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sordino.privacy.exact import four_digits
from sordino.privacy.json_form import read, write
from sordino.privacy.wording import counted

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from sordino.ledger.receipt import Receipt

__all__ = ["QualityReport", "Synthetic", "TableError"]

Ints = npt.NDArray[Any]
GOOD, POOR = 0.05, 0.15
"""A table that is at most this far off in total variation is good for use; one that is further is poor."""
VERDICTS = "good", "fair", "unknown", "poor"


@dataclass(frozen=True)
class TableError:
    """How far one table of the rows is from the data: half the L1 distance of their shares, with its interval.

    0 is the same table and 1 one that has nothing in common with it. `measured` says whether the model saw this table.
    """

    columns: tuple[str, ...]
    error: float
    low: float
    high: float
    measured: bool

    @property
    def verdict(self) -> str:
        """What the table is good for; unknown where the interval reaches from good to poor."""
        if self.high <= GOOD:
            return "good"
        if self.low > POOR:
            return "poor"
        return "unknown" if self.low <= GOOD and self.high > POOR else "fair"


@dataclass(frozen=True)
class QualityReport:
    """The errors of all columns, all pairs and some triples,
    each measured privately; every interval holds by itself.
    """

    tables: tuple[TableError, ...]
    confidence: float

    def ways(self, count: int) -> tuple[TableError, ...]:
        """The tables of this many columns."""
        return tuple(one for one in self.tables if len(one.columns) == count)

    @property
    def good_for(self) -> tuple[TableError, ...]:
        """Tables that can be used as they are."""
        return tuple(one for one in self.tables if one.verdict == "good")

    @property
    def poor_for(self) -> tuple[TableError, ...]:
        """Tables that should not be used."""
        return tuple(one for one in self.tables if one.verdict == "poor")

    def mean(self, count: int) -> float | None:
        """The mean error of the tables of this many columns."""
        own = [one.error for one in self.ways(count)]
        return sum(own) / len(own) if own else None

    def __str__(self) -> str:
        lines = []
        for count, word in ((1, "column"), (2, "pair"), (3, "triple")):
            own = self.ways(count)
            if own:
                verdicts = (f"{sum(one.verdict == v for one in own)} {v}" for v in VERDICTS)
                half = max(max(one.high - one.error, one.error - one.low) for one in own)
                mean = four_digits(max(self.mean(count) or 0.0, 0.0))
                tables = counted(len(own), word)
                lines.append(
                    f"{tables}: mean error {mean} (each ± {four_digits(half)}); {', '.join(verdicts)}"
                )
        worst = sorted(self.tables, key=lambda one: -one.error)[:5]
        lines.append(
            "Do not rely on: "
            + ("; ".join(" x ".join(one.columns) for one in worst if one.verdict != "good") or "-")
        )
        return "\n".join(lines)


@dataclass(frozen=True, eq=False)
class Synthetic:
    """Synthetic rows: `values` by column, with the declared types; `report` says how good they are.

    Printing it shows the report and the promise; `to_arrow` and `to_pandas` give the rows.
    """

    table: str
    values: Mapping[str, Sequence[Any]]
    kinds: Mapping[str, str]
    report: QualityReport
    privacy: str
    notes: tuple[str, ...]
    stored: Mapping[str, Any]
    receipt: Receipt | None = None

    def __len__(self) -> int:
        return len(next(iter(self.values.values())))

    def to_arrow(self) -> pa.Table:
        """The rows as an Arrow table with the declared types."""
        import pyarrow as pa

        types = {"int": pa.int64(), "float": pa.float64(), "text": pa.string(), "bool": pa.bool_(), "date": pa.date32(),
                 "datetime": pa.timestamp("us")}  # fmt: skip
        return pa.table(
            {name: pa.array(cells, types[self.kinds[name]]) for name, cells in self.values.items()}
        )

    def to_pandas(self) -> pd.DataFrame:
        """The rows as a data frame."""
        return self.to_arrow().to_pandas()

    def with_receipt(self, receipt: Receipt) -> Synthetic:
        """The same with its receipt."""
        return replace(self, receipt=receipt)

    def to_html(self) -> str:
        """A page about the quality of the rows: no script, nothing loaded."""
        from sordino.workloads.quality_page import page

        return page(self)

    def to_json(self) -> str:
        """As text that `from_json` reads; the same for the same rows."""
        return write("synthetic", 1, self.stored, infinite=True)

    @classmethod
    def from_json(cls, text: str, receipt: Receipt | None = None) -> Synthetic:
        """Stored rows."""

        def rows(facts: dict[str, Any]) -> Synthetic:
            values, kinds = {}, {}
            for column in facts["columns"]:
                wide = "<i8" if column.get("bits") == 64 else "<i4"
                fine = np.frombuffer(_unpacked(column["rows"]), wide).astype(np.int64)
                values[column["name"]] = _values(column, fine)
                kinds[column["name"]] = column["type"]
            report = QualityReport(
                tuple(TableError(tuple(one[0]), *one[1:]) for one in facts["report"]), facts["confidence"]
            )  # fmt: skip
            notes = tuple(facts["notes"])
            return cls(
                facts["table"],
                values,
                kinds,
                report,
                facts["privacy"],
                notes,
                facts,
                receipt,
            )

        return read(text, "synthetic", 1, "table of synthetic rows", rows, infinite=True)

    def __str__(self) -> str:
        head = f"{counted(len(self), 'synthetic row')} of {self.table}, {counted(len(self.values), 'column')}"
        return "\n".join([head, str(self.report), "", *self.notes, self.privacy])

    def __repr__(self) -> str:
        return f"Synthetic({self.table}: {counted(len(self), 'row')}, {counted(len(self.values), 'column')})"


def packed(fine: Ints, bits: int) -> str:
    """Whole numbers of 32 or 64 bits as text."""
    whole = np.ascontiguousarray(fine, f"<i{bits // 8}")
    return base64.b64encode(zlib.compress(whole.tobytes(), 6)).decode()


def _values(column: Mapping[str, Any], fine: Ints) -> list[Any]:
    from datetime import date, datetime, timedelta
    from fractions import Fraction

    from sordino.answer.stored import value_of

    places = fine.tolist()
    if column["listed"] is not None:
        listed = [value_of(v) for v in column["listed"]]
        known = [float(v) if column["type"] == "float" else v for v in listed]
        return [None if k < 0 else known[k] for k in places]
    origin, step = value_of(column["origin"]), Fraction(column["step"])
    match origin:
        case datetime():
            return [None if k < 0 else origin + timedelta(minutes=k) for k in places]
        case date():
            return [None if k < 0 else origin + timedelta(days=k) for k in places]
    start = Fraction(origin)
    if column["type"] == "int":
        return [None if k < 0 else int(start) + int(step) * k for k in places]
    return [None if k < 0 else float(start + step * k) for k in places]


def _unpacked(packed: str) -> bytes:
    try:
        return zlib.decompress(base64.b64decode(packed))
    except zlib.error:
        raise ValueError from None

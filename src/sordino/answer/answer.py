"""An answer: the noisy numbers of each group with their intervals, and what is promised about them.

It holds nothing that was not released, so everything here is post-processing: sort it, filter it, draw it, share it.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from difflib import get_close_matches
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sordino.errors import InvalidInput, no_attribute
from sordino.privacy.exact import Number
from sordino.privacy.picture import Picture, drawn
from sordino.privacy.wording import counted
from sordino.query.aggregates.estimates import Estimates, nonnegative, whole, within
from sordino.query.having import Cell, Index, limited, ordered, where_true
from sordino.query.tree import Expression, Order, Value

if TYPE_CHECKING:
    from sordino.ledger.receipt import Receipt

__all__ = ["Answer", "EstimateColumn", "KeyColumn", "ValueColumn", "nonnegative", "whole", "within"]


_OTHER_WORDS = {
    **dict.fromkeys(
        ("df", "to_df", "as_df", "dataframe", "to_frame", "pandas"), "Write answer.to_pandas()."
    ),
    **dict.fromkeys(
        ("rows", "records", "to_list", "fetchall"), "Write list(answer): one dict for each group."
    ),
    **dict.fromkeys(("value", "values", "result", "item"), 'Values of a column are answer["n"].'),
    **dict.fromkeys(
        ("save", "write", "write_csv", "to_excel"), "Write answer.to_csv(): the text of a CSV file."
    ),
}


@dataclass(frozen=True)
class KeyColumn:
    """A key of the grouping, one value per group."""

    name: str
    values: tuple[Value, ...]

    def __len__(self) -> int:
        return len(self.values)

    def take(self, index: Index) -> KeyColumn:
        """The groups at these places, in this order."""
        return replace(self, values=tuple(self.values[i] for i in index))

    @property
    def cells(self) -> list[Cell]:
        """The keys as plain Python values: an exact fraction as the nearest float."""
        if any(isinstance(v, Fraction) for v in self.values):
            return [
                None if v is None else float(v) if isinstance(v, int | float | Fraction) else v
                for v in self.values
            ]
        return list(self.values)


class ValueColumn(KeyColumn):
    """One value for each group that was drawn, such as the most frequent one; it has no interval."""


@dataclass(frozen=True, eq=False)
class EstimateColumn:
    """A noisy number per group; moved into its public bounds, and rounded if it counts whole things."""

    name: str
    estimates: Estimates
    integer: bool = False
    bounds: tuple[float | None, float | None] = (None, None)

    def __post_init__(self) -> None:
        inside = within(self.estimates, *self.bounds)
        object.__setattr__(self, "estimates", whole(inside) if self.integer else inside)

    def __len__(self) -> int:
        return len(self.estimates)

    @classmethod
    def finished(
        cls,
        name: str,
        estimates: Estimates,
        integer: bool,
        bounds: tuple[float | None, float | None],
    ) -> EstimateColumn:
        """A column of numbers that were moved and rounded before: they stay as they are."""
        column = object.__new__(cls)
        for field_name, value in (
            ("name", name),
            ("estimates", estimates),
            ("integer", integer),
            ("bounds", bounds),
        ):
            object.__setattr__(column, field_name, value)
        return column

    def take(self, index: Index) -> EstimateColumn:
        """The groups at these places, in this order."""
        return self.finished(self.name, self.estimates.take(index), self.integer, self.bounds)

    @property
    def cells(self) -> list[Cell]:
        """The numbers; None where there is none."""
        return self._plain(self.estimates.value)

    @property
    def lows(self) -> list[Cell]:
        """The lower ends of the intervals."""
        return self._plain(self.estimates.low)

    @property
    def highs(self) -> list[Cell]:
        """The upper ends of the intervals."""
        return self._plain(self.estimates.high)

    def _plain(self, numbers: Any) -> list[Cell]:
        return [
            None if math.isnan(x) else int(x) if self.integer and math.isfinite(x) else x + 0.0
            for x in numbers.tolist()
        ]


@dataclass(frozen=True, eq=False)
class Answer:
    """The columns in the order asked for, one row per group, with the promise in plain words.

    `confidence` is that of each interval by itself; the intervals speak of the noise alone, not of how the data came
    about.
    """

    columns: tuple[KeyColumn | EstimateColumn, ...]
    privacy: str = ""
    receipt: Receipt | None = None
    confidence: Number = 0.95
    notes: tuple[str, ...] = ()
    _labels: dict[str, tuple[str, str]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        names = [c.name for c in self.columns]
        if not names or len(set(names)) < len(names) or len({len(c) for c in self.columns}) > 1:
            hint = "Give each column a name of its own and one value per group."
            raise InvalidInput(
                f"columns {names}", "an answer needs distinct columns of equal length", hint
            )
        taken = set(names)
        labels = {}
        for column in self.columns:
            if isinstance(column, EstimateColumn):
                labels[column.name] = (
                    _free(f"{column.name}_low", taken),
                    _free(f"{column.name}_high", taken),
                )
        object.__setattr__(self, "_labels", labels)

    if not TYPE_CHECKING:  # else every attribute would be one

        def __getattr__(self, name: str) -> Any:
            if name in [column.name for column in vars(self).get("columns", ())]:
                raise no_attribute(self, name, {name: f"Its values are answer[{name!r}]."})
            raise no_attribute(self, name, _OTHER_WORDS)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns as asked for, without the ends of intervals."""
        return tuple(c.name for c in self.columns)

    @property
    def keys(self) -> tuple[KeyColumn, ...]:
        """The columns that name the groups."""
        return tuple(
            c for c in self.columns if isinstance(c, KeyColumn) and not isinstance(c, ValueColumn)
        )

    @property
    def answers(self) -> tuple[KeyColumn | EstimateColumn, ...]:
        """The columns that were asked for about each group: noisy numbers, and values that were drawn."""
        return tuple(c for c in self.columns if isinstance(c, EstimateColumn | ValueColumn))

    @property
    def estimates(self) -> tuple[EstimateColumn, ...]:
        """The columns with noisy numbers."""
        return tuple(c for c in self.columns if isinstance(c, EstimateColumn))

    def __len__(self) -> int:
        return len(self.columns[0])

    def __iter__(self) -> Iterator[dict[str, Cell]]:
        return iter(self.rows())

    def __getitem__(self, name: str) -> list[Cell]:
        """One column by name, `name_low` and `name_high` included."""
        columns = self.to_dict()
        if name not in columns:
            near = get_close_matches(str(name), list(columns), 1)
            hint = (
                f"Did you mean {near[0]!r}?" if near else f"It has {', '.join(map(repr, columns))}."
            )
            raise InvalidInput(f"column {name!r}", "the answer has no such column", hint)
        return columns[name]

    def value(self, name: str | None = None) -> Cell:
        """The number of an answer with a single row; the name may be left out if it has a single number."""
        return self[self._only(name)][0]

    def interval(self, name: str | None = None) -> tuple[Cell, Cell]:
        """The ends of the interval of an answer with a single row."""
        only = self._only(name)
        if only not in self._labels:
            hint = f"Try {self.estimates[0].name!r}." if self.estimates else "Use value()."
            raise InvalidInput(f"column {only!r}", "only noisy numbers have intervals", hint)
        low, high = self._labels[only]
        return self[low][0], self[high][0]

    def _only(self, name: str | None) -> str:
        if len(self) != 1:
            hint = "Use answer[name], rows() or to_pandas()."
            raise InvalidInput(
                f"an answer with {len(self)} rows", "it does not hold exactly one number", hint
            )
        if name is None and len(self.answers) != 1:
            hint = f"Name one of {', '.join(repr(c.name) for c in self.answers)}."
            raise InvalidInput("no name", f"the answer has {len(self.answers)} numbers", hint)
        return self.answers[0].name if name is None else name

    def rows(self) -> list[dict[str, Cell]]:
        """One dictionary per group, with the ends of intervals as `name_low` and `name_high`."""
        columns = self.to_dict()
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def to_dict(self) -> dict[str, list[Cell]]:
        """All columns as lists of plain values."""
        out: dict[str, list[Cell]] = {}
        for column in self.columns:
            out[column.name] = column.cells
            if isinstance(column, EstimateColumn):
                low, high = self._labels[column.name]
                out[low], out[high] = column.lows, column.highs
        return out

    def to_json(self) -> str:
        """The answer as one JSON text that `from_json` reads back without loss; the receipt is not part of it.

        Example:
            >>> count = EstimateColumn("n", Estimates([7.0], [5.0], [9.0]), integer=True)
            >>> one = Answer((KeyColumn("ward", ("A",)), count))
            >>> Answer.from_json(one.to_json()).rows()
            [{'ward': 'A', 'n': 7, 'n_low': 5, 'n_high': 9}]
        """
        from sordino.answer.stored import dump

        return dump(self)

    @staticmethod
    def from_json(text: str, receipt: Receipt | None = None) -> Answer:
        """The answer of a text made by `to_json`, with this receipt."""
        from sordino.answer.stored import load

        return load(text, receipt)

    def to_csv(self, *, formulas: bool = False) -> str:
        """The answer as CSV with a header: NULL is empty, dates are ISO, truth values are true and false.

        A text that a spreadsheet would run as a formula, because it begins with = + - or @, gets an apostrophe in
        front; numbers do not. With `formulas=True` every text stays as it is, for programs that read it back.

        Example:
            >>> keys = KeyColumn("name", ("=1+1", "A"))
            >>> counts = EstimateColumn("n", Estimates([-7.0, 3.0], [-9.0, 1.0], [-5.0, 5.0]))
            >>> print(Answer((keys, counts)).to_csv().strip())
            name,n,n_low,n_high
            '=1+1,-7.0,-9.0,-5.0
            A,3.0,1.0,5.0
        """
        from sordino.answer.stored import csv_text

        return csv_text(self, formulas=formulas)

    def to_records_json(self) -> str:
        """The rows as a JSON array of objects, for other programs: what has no finite number is null."""
        from sordino.answer.stored import records

        return records(self)

    def to_parquet(self, path: str | Path) -> None:
        """Write the answer to a Parquet file, the ends of intervals included."""
        table = self.to_arrow()
        from pyarrow import parquet

        try:
            parquet.write_table(table, str(path))
        except OSError as error:
            hint = "Check that its folder exists, may be written to and has room."
            raise InvalidInput(f"path {str(path)!r}", "the file cannot be written", hint) from error

    def to_arrow(self) -> Any:
        """A `pyarrow.Table`."""
        arrow = _needs("pyarrow", "to_arrow()")
        arrays = {}
        for column in self.columns:
            if isinstance(column, KeyColumn):
                arrays[column.name] = _array(arrow, column.cells, _key_type(arrow, column.cells))
                continue
            parts = zip(
                (column.name, *self._labels[column.name]),
                (column.cells, column.lows, column.highs),
                strict=True,
            )
            for name, cells in parts:
                arrays[name] = _array(
                    arrow,
                    cells,
                    arrow.int64() if column.integer and _fits(cells) else arrow.float64(),
                )
        return arrow.table(arrays)

    def to_pandas(self) -> Any:
        """A `pandas.DataFrame`."""
        _needs("pandas", "to_pandas()")
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """A `polars.DataFrame`."""
        return _needs("polars", "to_polars()").from_arrow(self.to_arrow())

    def take(self, index: Index) -> Answer:
        """The rows at these places, in this order."""
        return replace(self, columns=tuple(c.take(index) for c in self.columns))

    def arranged(
        self,
        having: Expression | None = None,
        order: Sequence[Order] = (),
        limit: int | None = None,
        offset: int = 0,
        *,
        hidden: Collection[str] = (),
    ) -> Answer:
        """The rows that HAVING keeps, sorted, from OFFSET on, LIMIT of them: decided by the noisy numbers alone.

        Hidden columns serve for that only.
        """
        kept = self if having is None else self.take(where_true(having, self._cells()))
        if order or limit is not None or offset:
            kept = kept.take(limited(ordered(kept._cells(), order, len(kept)), limit, offset))
        if not hidden:
            return kept
        return replace(kept, columns=tuple(c for c in kept.columns if c.name not in hidden))

    def _cells(self) -> dict[str, list[Cell]]:
        return {c.name: c.cells for c in self.columns}

    def plot(self, path: str | Path | None = None) -> Picture:
        """The numbers with their intervals over the first key, as a picture; saved if there is a path."""
        from sordino.answer.plot import picture

        return drawn(lambda: picture(self), path)

    def to_text(self, width: int | None = None, rows: int = 40) -> str:
        """The answer as an aligned table of at most this many characters a line and this many rows."""
        from sordino.answer.text import table

        return table(self, width, rows)

    def __str__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        from sordino.answer.text import html

        return html(self)

    def __repr__(self) -> str:
        return f"Answer({counted(len(self), 'row')}: {', '.join(self.names)})"


def _free(name: str, taken: set[str]) -> str:
    free, i = name, 2
    while free in taken:
        free, i = f"{name}_{i}", i + 1
    taken.add(free)
    return free


def _key_type(arrow: Any, cells: Sequence[Cell]) -> Any:
    match next((c for c in cells if c is not None), None):
        case bool():
            return arrow.bool_()
        case int():
            return arrow.int64() if _fits(cells) else arrow.float64()
        case float():
            return arrow.float64()
        case datetime():
            return arrow.timestamp("us")
        case date():
            return arrow.date32()
        case _:
            return arrow.string()


def _array(arrow: Any, cells: Sequence[Cell], kind: Any) -> Any:
    if kind == arrow.float64():
        # Arrow refuses whole numbers that a float cannot hold exactly.
        cells = [float(c) if isinstance(c, int) else c for c in cells]
    return arrow.array(cells, kind)


def _fits(cells: Sequence[Cell]) -> bool:
    info = np.iinfo(np.int64)
    return all(c is None or (isinstance(c, int) and info.min <= c <= info.max) for c in cells)


def _needs(library: str, method: str) -> Any:
    from importlib import import_module

    try:
        return import_module(library)
    except ImportError as error:
        raise InvalidInput(
            method, f"this needs {library}", f"Install it: pip install {library}"
        ) from error

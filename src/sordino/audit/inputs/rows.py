"""Data of any kind as rows that can be compared, whatever holds them: lists, arrays, frames, tables, datasets.

Cells get a hashable form, equal for equal cells: numbers by value (1, 1.0 and numpy's 1), NaN like NaN, True not like
1. A list, a tuple and an array of the same cells are the same row. A dataset's rows are its persons, each with all its
records, also through foreign keys. For audits on made-up data, or by the owner: nothing here is private.
"""

from __future__ import annotations

import csv
import math
import sys
import tempfile
import weakref
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Set
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from sordino.engines.duckdb import arrow, csv_records
from sordino.errors import InvalidInput
from sordino.query.dataset import Dataset, Source, Table

__all__ = [
    "ROW",
    "Owner",
    "Rows",
    "column_named",
    "form",
    "forms",
    "owners",
    "read_rows",
    "stored_rows",
    "with_rows",
]

_PLAIN = frozenset({int, str, bytes, type(None)})
_PLAIN_ARROW = ("int8", "int16", "int32", "int64", "float", "double")
_NAN = ("not a number",)


def form(cell: Any) -> Hashable:
    """Something hashable that is equal for equal cells, for cells of any kind."""
    if type(cell) in _PLAIN:
        return cell  # type: ignore[no-any-return]
    if isinstance(cell, bool | np.bool_):
        return ("truth", bool(cell))
    if isinstance(cell, float):
        return _NAN if math.isnan(cell) else cell
    if isinstance(cell, np.ndarray | np.void):
        return form(cell.tolist())
    if isinstance(cell, list | tuple):
        return ("row", tuple(map(form, cell)))
    if isinstance(cell, Mapping):
        return ("mapping", frozenset((form(key), form(value)) for key, value in cell.items()))
    if isinstance(cell, Set):
        return ("set", frozenset(map(form, cell)))
    return _other_form(cell)


def _other_form(cell: Any) -> Hashable:
    """Dates, decimals, missing values of other libraries; an object without a hash by what it shows of itself."""
    try:
        if not bool(cell == cell):
            return _NAN
        hash(cell)
    except TypeError:
        missing = type(cell).__name__ == "NAType"
        return _NAN if missing else ("object", type(cell).__qualname__, repr(cell))
    return cell  # type: ignore[no-any-return]


def forms(cells: Iterable[Any]) -> tuple[Hashable, ...]:
    """The form of each cell; at once where all are plain."""
    cells = tuple(cells)
    kinds = set(map(type, cells))
    if kinds <= _PLAIN or (kinds <= _PLAIN | {float} and all(x == x for x in cells)):
        return cells
    return tuple(map(form, cells))


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
        return replace(table, source=Source("frame", frame=rows))
    folder = tempfile.TemporaryDirectory(prefix="sordino-audit-")
    path = Path(folder.name) / "rows.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_ALL, lineterminator="\n")
        writer.writerow(rows.column_names)
        cells = zip(*(column.to_pylist() for column in rows.columns), strict=True)
        writer.writerows(["" if cell is None else cell for cell in row] for row in cells)
    source = Source("csv", path=path)
    weakref.finalize(source, folder.cleanup)
    return replace(table, source=source)


Owner = tuple[str, Hashable]
"""The kind of persons and the person."""

ROW = ""
"""The kind of persons who have one row each."""


def owners(tables: Iterable[Table], frames: Mapping[str, Any]) -> dict[str, list[Owner | None]]:
    """The owner of each row of the protected tables, None if it is nobody's; `frames` are the rows in Arrow tables."""
    by_name = {table.name: table for table in tables}

    @cache
    def of(name: str) -> list[Owner | None]:
        table, frame = by_name[name], frames[name]
        if table.via is not None:
            parent = table.via.parent
            known = _keys(frames[parent], table.via.of_parent)
            whose = dict(zip(known, of(parent), strict=True))
            keys = _keys(frame, table.via.own)
            return [None if key is None else whose.get(key) for key in keys]
        if table.person is not None:
            persons = _keys(frame, (table.person,))
            return [None if key is None else (table.persons or "", key) for key in persons]
        return [(ROW, (name, i)) for i in range(len(frame))]

    return {name: of(name) for name, table in by_name.items() if not table.public}


def _keys(frame: Any, names: tuple[str, ...]) -> list[Hashable | None]:
    """The cells of these columns, row by row; None where one is missing."""
    columns = [frame.column(column_named(frame, name)).to_pylist() for name in names]
    rows = zip(*columns, strict=True)
    return [None if None in row else tuple(map(form, row)) for row in rows]


def column_named(frame: Any, name: str) -> str:
    """The column of that name but for case."""
    return next(str(own) for own in frame.column_names if own.casefold() == name.casefold())


@dataclass(frozen=True)
class Rows:
    """A comparable form of each row, in order, and what both sides must share: the names of columns, public tables."""

    forms: tuple[Hashable, ...]
    frame: Hashable = None

    def counts(self) -> Counter[Hashable]:
        """How often each row occurs."""
        return Counter(self.forms)


def read_rows(data: Any) -> Rows | None:
    """The rows of anything that holds rows, else None."""
    if isinstance(data, Dataset):
        return _persons(data)
    if isinstance(data, np.ndarray):
        return None if data.ndim == 0 else Rows(forms(data.tolist()), data.dtype.names)
    if isinstance(data, list | tuple):
        return Rows(forms(data))
    if isinstance(data, Set):
        return Rows(forms(list(data)))
    if isinstance(data, Mapping):
        return Rows(forms(list(data.items())))
    table = _table(data)
    if table is not None:
        columns = [forms(column) for column in table.values()]
        return Rows(tuple(zip(*columns, strict=True)), tuple(table))
    column = _column(data)
    return None if column is None else Rows(forms(column))


def _is(data: Any, module: str, *names: str) -> bool:
    """Whether data is of a type of a library that someone has imported; none is imported here."""
    types = (getattr(sys.modules.get(module), name, None) for name in names)
    return any(isinstance(data, kind) for kind in types if isinstance(kind, type))


def _table(data: Any) -> dict[str, Any] | None:
    """Name -> cells of an Arrow table, a pandas or a polars frame; a pandas index counts if it has a name."""
    if _is(data, "pyarrow", "Table", "RecordBatch"):
        names = enumerate(_unique(data.schema.names))
        return {name: _arrow_cells(data.column(i)) for i, name in names}
    if _is(data, "pandas", "DataFrame"):
        named = [name for name in data.index.names if name is not None]
        whole = data.reset_index(level=named) if named else data
        names = enumerate(_unique(map(str, whole.columns)))
        return {name: whole.iloc[:, i].tolist() for i, name in names}
    if _is(data, "polars", "DataFrame"):
        return {name: data.get_column(name).to_list() for name in data.columns}
    return None


def _unique(names: Iterable[str]) -> list[str]:
    """Repeated names get their number, so that no column hides another."""
    seen: Counter[str] = Counter()
    unique = []
    for name in names:
        seen[name] += 1
        unique.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return unique


def _arrow_cells(column: Any) -> list[Any]:
    plain = column.null_count == 0 and str(column.type) in _PLAIN_ARROW
    cells: list[Any] = column.to_numpy().tolist() if plain else column.to_pylist()
    return cells


def _column(data: Any) -> list[Any] | None:
    if _is(data, "pandas", "Series", "Index"):
        return list(data.tolist())
    if _is(data, "polars", "Series"):
        return list(data.to_list())
    if _is(data, "pyarrow", "Array", "ChunkedArray"):
        return _arrow_cells(data)
    return None


def _persons(dataset: Dataset) -> Rows:
    """Each person with all records in all tables; a row that names nobody protects nobody and is never read."""
    frames = {name: stored_rows(table) for name, table in dataset.tables.items()}
    whose = owners(dataset.tables.values(), frames)
    records: dict[Owner, Counter[Hashable]] = {}
    public: list[Hashable] = []
    declared: list[Hashable] = [dataset.budget, dataset.reserved_delta]
    for name, table in dataset.tables.items():
        rows = _cells(table, frames[name])
        declared.append((name, replace(table, source=Source("frame"))))
        if table.public:
            public.append((name, frozenset(Counter(rows).items())))
            continue
        for owner, row in zip(whose[name], rows, strict=True):
            if owner is not None:
                records.setdefault(owner, Counter())[name, row] += 1
    # where each row is another person, its place is no name: equal rows are equal persons
    names = (None if owner[0] == ROW else owner for owner in records)
    held = (frozenset(rows.items()) for rows in records.values())
    return Rows(tuple(zip(names, held, strict=True)), (tuple(declared), frozenset(public)))


def _cells(declared: Table, frame: Any) -> list[Hashable]:
    """The declared cells of each row, with those that name other rows."""
    table = _table(frame) or {}
    wanted = {*declared.columns, *declared.identities}
    size = len(next(iter(table.values()), ()))
    columns = [forms(cells) for name, cells in table.items() if name in wanted]
    return list(zip(*columns, strict=True)) or [()] * size

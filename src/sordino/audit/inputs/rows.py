"""Data of any kind as rows that can be compared, whatever holds them: lists, arrays, frames, tables, datasets.

Numbers are equal by value (1, 1.0 and numpy's 1), NaN equals NaN, and True is not 1. A list, a tuple and an array of
the same cells are the same row. A dataset's rows are its persons, each with all its records.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Set
from dataclasses import dataclass
from typing import Any

import numpy as np

from sordino.audit.inputs.sources import stored_rows
from sordino.query.dataset import Dataset, Table

__all__ = ["Rows", "form", "read_rows"]

_PLAIN = frozenset({int, str, bytes, type(None)})
_NAN = ("not a number",)


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
        return None if data.ndim == 0 else Rows(_forms(data.tolist()), data.dtype.names)
    if isinstance(data, list | tuple):
        return Rows(_forms(data))
    if isinstance(data, Set):
        return Rows(_forms(list(data)))
    if isinstance(data, Mapping):
        return Rows(_forms(list(data.items())))
    table = _table(data)
    if table is not None:
        columns = [_forms(column) for column in table.values()]
        return Rows(tuple(zip(*columns, strict=True)), tuple(table))
    column = _column(data)
    return None if column is None else Rows(_forms(column))


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
    """Dates, decimals, missing values of other libraries; an object that cannot be hashed by what it shows of itself."""
    try:
        if not bool(cell == cell):
            return _NAN
        hash(cell)
    except TypeError:
        missing = type(cell).__name__ == "NAType"
        return _NAN if missing else ("object", type(cell).__qualname__, repr(cell))
    return cell  # type: ignore[no-any-return]


def _forms(cells: Iterable[Any]) -> tuple[Hashable, ...]:
    """The form of each cell; at once where all are plain."""
    cells = tuple(cells)
    kinds = set(map(type, cells))
    if kinds <= _PLAIN or (kinds <= _PLAIN | {float} and all(x == x for x in cells)):
        return cells
    return tuple(map(form, cells))


def _is(data: Any, module: str, *names: str) -> bool:
    """Whether data is of a type of a library that someone has imported; none is imported here."""
    types = (getattr(sys.modules.get(module), name, None) for name in names)
    return any(isinstance(data, kind) for kind in types if isinstance(kind, type))


def _table(data: Any) -> dict[str, Any] | None:
    """Name -> cells of an Arrow table, a pandas or a polars frame; a pandas index counts if it has a name."""
    if _is(data, "pyarrow", "Table", "RecordBatch"):
        return {name: _arrow_cells(data.column(i)) for i, name in enumerate(_unique(data.schema.names))}
    if _is(data, "pandas", "DataFrame"):
        named = [name for name in data.index.names if name is not None]
        whole = data.reset_index(level=named) if named else data
        return {name: whole.iloc[:, i].tolist() for i, name in enumerate(_unique(map(str, whole.columns)))}
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
    if column.null_count == 0 and str(column.type) in ("int8", "int16", "int32", "int64", "float", "double"):
        cells: list[Any] = column.to_numpy().tolist()
        return cells
    listed: list[Any] = column.to_pylist()
    return listed


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
    records: dict[Hashable, Counter[Hashable]] = {}
    nameless: list[Hashable] = []
    public: list[Hashable] = []
    declared: list[Hashable] = [dataset.budget, dataset.reserved_delta]
    for name, table in dataset.tables.items():
        rows, names = _source_rows(table, tuple(table.columns), table.person)
        declared.append((name, table.columns, table.person, table.neighbors, table.max_rows, table.max_groups, table.key))
        if table.public:
            public.append((name, frozenset(Counter(rows).items())))
        elif table.person is None:
            nameless += [(name, row) for row in rows]
        else:
            for person, row in zip(names, rows, strict=True):
                if person is not None:
                    records.setdefault(person, Counter())[name, row] += 1
    persons = [(person, frozenset(held.items())) for person, held in records.items()]
    return Rows((*persons, *nameless), (tuple(declared), frozenset(public)))


def _source_rows(
    declared: Table, columns: tuple[str, ...], person: str | None
) -> tuple[list[Hashable], tuple[Hashable, ...]]:
    """The declared cells of each row, and whom each row is about."""
    table = _table(stored_rows(declared)) or {}
    cells = {name: _forms(table[name]) for name in table if name in columns or name == person}
    size = len(next(iter(table.values()), ()))
    rows: list[Hashable] = list(zip(*(cells[name] for name in columns if name in cells), strict=True)) or [()] * size
    return rows, cells.get(person or "", ())

"""Data of any kind as rows that can be compared, whatever holds them: lists, arrays, frames, tables, datasets.

Numbers are equal by value (1, 1.0 and numpy's 1), NaN equals NaN, and True is not 1. A list, a tuple and an array of
the same cells are the same row. A dataset's rows are its persons, each with all its records.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Set
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sordino.audit.inputs.cell_forms import forms
from sordino.audit.inputs.owners import ROW, Owner, owners
from sordino.audit.inputs.sources import stored_rows
from sordino.query.dataset import Dataset, Source, Table

__all__ = ["Rows", "read_rows"]


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
    persons = ((None if owner[0] == ROW else owner, frozenset(held.items())) for owner, held in records.items())
    return Rows(tuple(persons), (tuple(declared), frozenset(public)))


def _cells(declared: Table, frame: Any) -> list[Hashable]:
    """The declared cells of each row, with those that name other rows."""
    table = _table(frame) or {}
    wanted = {*declared.columns, *declared.identities}
    size = len(next(iter(table.values()), ()))
    return list(zip(*(forms(table[name]) for name in table if name in wanted), strict=True)) or [()] * size

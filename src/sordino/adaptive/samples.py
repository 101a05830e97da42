"""The kinds of samples: how each is kept, handed out and cut into rows, so that nobody can change what is kept."""

from __future__ import annotations

import copy
import datetime as dt
import sys
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from sordino.errors import InvalidInput
from sordino.privacy.exact import show
from sordino.privacy.wording import a_or_an

__all__ = [
    "expect_one",
    "fresh",
    "is_arrow",
    "is_pandas",
    "is_polars",
    "kept",
    "length",
    "names",
    "parts_of",
    "row",
]

_FORMS = "Pass an array, a pandas, Polars or Arrow frame, a mapping of columns, or a tuple of these such as (X, y)."
_ATOMS = (bool, int, float, complex, str, bytes, Decimal, Fraction, type(None), np.generic)
_ATOMS_OF_TIME = (dt.date, dt.time, dt.timedelta)


def expect_one(more: tuple[Any, ...]) -> None:
    """Refuse a sample that was passed as several arguments."""
    if more:
        value, rule = (
            f"{1 + len(more)} arguments without a name",
            "a sample is one argument; all others have names",
        )
        raise InvalidInput(value, rule, "Put its parts in a tuple: (X, y).")


def parts_of(data: Any) -> tuple[Any, ...]:
    """The parts of a sample: those of a tuple, else itself. A list of arrays may be meant as parts or as rows."""
    if isinstance(data, list) and any(_is_table(item) for item in data):
        rule = "parts of a sample must be in a tuple, and rows in one array or frame"
        raise InvalidInput(
            f"a list of {len(data)} arrays or frames", rule, "Put parts in a tuple: (X, y)."
        )
    return data if isinstance(data, tuple) else (data,)


def is_pandas(part: Any) -> bool:
    """A pandas frame or series."""
    return _is(part, "pandas", "DataFrame", "Series")


def is_polars(part: Any) -> bool:
    """A Polars frame or series."""
    return _is(part, "polars", "DataFrame", "Series")


def is_arrow(part: Any) -> bool:
    """An Arrow table, batch or array."""
    return _is(part, "pyarrow", "Table", "RecordBatch", "Array", "ChunkedArray")


def kept(part: Any) -> Any:
    """A copy of one part of a sample that shares nothing with the caller's."""
    if isinstance(part, Mapping):
        return {name: kept(column) for name, column in part.items()}
    _check_names(part)
    if is_pandas(part):
        return _kept_pandas(part)
    if is_polars(part):
        return _gathered(part)
    if is_arrow(part):
        return _written(part)
    return _kept_array(part)


def fresh(part: Any) -> Any:
    """One part as a function gets it: whatever is done to it, what is kept stays as it is."""
    if isinstance(part, Mapping):
        return {name: fresh(column) for name, column in part.items()}
    if is_pandas(part):
        return _fresh_pandas(part)
    if is_polars(part):
        return part.clone()
    if is_arrow(part):
        return part
    array = part if isinstance(part, np.ndarray) else kept(part)
    return _sealed(copy.deepcopy(array) if _mutable(array) else array.view())


def row(part: Any, i: int) -> Any:
    """The i-th row alone."""
    if isinstance(part, Mapping):
        return {name: row(column, i) for name, column in part.items()}
    if is_pandas(part):
        return fresh(part.iloc[i : i + 1].copy(deep=True))
    return fresh(part.slice(i, 1) if is_polars(part) or is_arrow(part) else part[i : i + 1])


def length(part: Any) -> int:
    """How many rows; 0 for columns of different lengths."""
    if isinstance(part, Mapping):
        counts = {length(column) for column in part.values()}
        return counts.pop() if len(counts) == 1 else 0
    return len(part)


def names(part: Any) -> tuple[Any, ...] | None:
    """The names of its columns, if it has such."""
    if isinstance(part, Mapping):
        return tuple(part)
    if _is(part, "pyarrow", "Table", "RecordBatch"):
        return tuple(part.schema.names)
    frame = _is(part, "pandas", "DataFrame") or _is(part, "polars", "DataFrame")
    return tuple(part.columns) if frame else None


def _is_table(item: Any) -> bool:
    return (
        (isinstance(item, np.ndarray) and item.ndim > 0)
        or is_pandas(item)
        or is_polars(item)
        or is_arrow(item)
    )


def _is(part: Any, library: str, *classes: str) -> bool:
    """Whether it is one of a library's classes, without loading the library."""
    module = sys.modules.get(library)
    return module is not None and any(isinstance(part, getattr(module, name)) for name in classes)


def _check_names(part: Any) -> None:
    found = names(part) or ()
    if len(set(found)) < len(found):
        twice = next(name for name in found if found.count(name) > 1)
        raise InvalidInput(
            f"two columns {show(twice)}",
            "the columns of a sample must have different names",
            "Rename one.",
        )


def _kept_array(part: Any) -> npt.NDArray[Any]:
    if isinstance(part, np.ma.MaskedArray):
        rule = "a sample must say what is missing by its values, not by a mask"
        raise InvalidInput("a masked array", rule, "Pass array.astype(float).filled(nan).")
    for method, hint in (
        ("collect", "Collect it: pass frame.collect()."),
        ("to_arrow_table", "Pass relation.to_arrow_table()."),
        ("read_all", "Read it: pass reader.read_all()."),
        ("iloc", _FORMS),
    ):
        if hasattr(part, method):
            _refuse(part, hint)
    try:
        array = np.array(part)
    except Exception as error:
        raise InvalidInput(
            a_or_an(type(part).__name__), "rows must have equally many values", _FORMS
        ) from error
    if array.ndim == 0:
        _refuse(part, _FORMS)
    return _sealed(copy.deepcopy(array) if _mutable(array) else array)


def _refuse(part: Any, hint: str) -> NoReturn:
    raise InvalidInput(a_or_an(type(part).__name__), "a sample must have rows, in memory", hint)


def _sealed(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    array.setflags(write=False)
    return array


def _mutable(array: npt.NDArray[Any]) -> bool:
    """Whether it holds objects that a function could change."""
    if array.dtype.kind != "O":
        return array.dtype.hasobject
    found = set(map(type, array.ravel().tolist()))
    return not all(
        issubclass(kind, _ATOMS + _ATOMS_OF_TIME) or kind.__name__ == "NAType" for kind in found
    )


def _kept_pandas(part: Any) -> Any:
    """Read-only arrays below: copies that share them are cheap, and writing past pandas fails."""
    pd = sys.modules["pandas"]
    index = part.index.copy(deep=True)
    if type(part) is pd.Series:
        return _column(part, index)
    if type(part) is not pd.DataFrame:
        return _of_subclass(part)
    kinds = set(part.dtypes)
    if len(kinds) == 1 and _plain(kind := kinds.pop()) and kind.kind != "O":
        values = _sealed(np.array(part.to_numpy(), order="F"))
        return pd.DataFrame(values, index, part.columns.copy(deep=True), copy=False)
    columns = {i: _column(part.iloc[:, i], index) for i in range(part.shape[1])}
    frame = pd.DataFrame(columns, index=index, copy=False)
    frame.columns = part.columns.copy(deep=True)
    return frame


def _column(series: Any, index: Any) -> Any:
    pd = sys.modules["pandas"]
    if isinstance(series.dtype, pd.CategoricalDtype):
        kind = pd.CategoricalDtype(series.dtype.categories.copy(deep=True), series.dtype.ordered)
        values = pd.Categorical.from_codes(np.array(series.cat.codes), dtype=kind)
        return type(series)(values, index, name=series.name, copy=False)
    if not _plain(series.dtype):
        values = series.array.copy()
    else:
        values = np.array(series.to_numpy())
        values = _sealed(copy.deepcopy(values) if _mutable(values) else values)
    return type(series)(values, index, dtype=series.dtype, name=series.name, copy=False)


def _fresh_pandas(part: Any) -> Any:
    """pandas lets writes through the arrays of its own types, so these columns are copied; others are read-only."""
    pd = sys.modules["pandas"]
    index = part.index.copy(deep=True)
    if type(part) is pd.Series:
        shared = _plain(part.dtype) and not _mutable(np.asarray(part))
        found = part.copy(deep=False) if shared else _column(part, index)
    elif type(part) is pd.DataFrame:
        found = part.copy(deep=False)
        for i, kind in enumerate(part.dtypes):
            if not _plain(kind) or (kind.kind == "O" and _mutable(part.iloc[:, i].to_numpy())):
                found.isetitem(i, _column(part.iloc[:, i], part.index))
        found.columns = part.columns.copy(deep=True)
    else:
        found = _of_subclass(part)
    found.index = index
    return found


def _of_subclass(part: Any) -> Any:
    """A deep copy, as far as pandas makes one: objects in cells it leaves as they are."""
    pd = sys.modules["pandas"]
    columns = (
        [part] if isinstance(part, pd.Series) else [part.iloc[:, i] for i in range(part.shape[1])]
    )
    if any(_plain(column.dtype) and _mutable(column.to_numpy()) for column in columns):
        rule = "a frame whose cells hold objects that can change must be a plain one, which is copied whole"
        raise InvalidInput(a_or_an(type(part).__name__), rule, "Pass pd.DataFrame(frame).")
    return part.copy(deep=True)


def _plain(kind: Any) -> bool:
    return isinstance(kind, np.dtype)


def _gathered(part: Any) -> Any:
    """A Polars copy with memory of its own: frames may be made upon an array of the caller's."""
    import polars as pl

    if isinstance(part, pl.Series):
        return _gathered(part.to_frame()).to_series()
    objects = next((name for name, kind in part.schema.items() if kind == pl.Object), None)
    if objects is not None:
        rule = "a Polars column of Python objects cannot be kept from changes"
        raise InvalidInput(
            f"the column {show(objects)}", rule, "Convert it, to a list or struct for example."
        )
    return part.select(pl.all().gather(pl.int_range(pl.len()))) if part.width else part.clone()


def _written(part: Any) -> Any:
    """An Arrow copy with memory of its own, for the same reason."""
    import pyarrow as pa

    if isinstance(part, pa.Array | pa.ChunkedArray):
        column = _written(pa.table({"": part})).column(0)
        return column.combine_chunks() if isinstance(part, pa.Array) else column
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, part.schema) as writer:
        writer.write(part)
    table = pa.ipc.open_stream(sink.getvalue()).read_all()
    return (
        table.combine_chunks().to_batches()[0]
        if isinstance(part, pa.RecordBatch) and len(part)
        else table
    )

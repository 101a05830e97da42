"""Public rows to rehearse on, made from the types of columns alone: four, some different, some equal, in no order.

Numbers are 1, 0, 1, 0 (floats 1, 0, 1/2, 0), times this many days or hours, texts b, a, b, a, categories the type's
own. A column of Python objects has the one kind of its values that are not missing, which is as public as a type.
"""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

from sordino.adaptive.samples import is_arrow, is_pandas, is_polars, kept
from sordino.errors import InvalidInput

__all__ = ["ROWS", "example_of"]

ROWS = 4

_WHOLE = (1, 0, 1, 0)
_REAL = (1.0, 0.0, 0.5, 0.0)
_TEXT = ("b", "a", "b", "a")
_DAY = dt.datetime(1970, 1, 1)
_LATER = dt.timedelta(1)
_DAYS = tuple(_DAY + i * _LATER for i in _WHOLE)
_SPANS = tuple(i * _LATER for i in _WHOLE)
_HOURS = tuple(dt.time(i) for i in _WHOLE)

_OBJECTS: tuple[tuple[tuple[type, ...], tuple[Any, ...]], ...] = (
    ((bool, np.bool_), tuple(map(bool, _WHOLE))),
    ((int, np.integer), _WHOLE),
    ((float, np.floating, int, np.integer), _REAL),
    ((Decimal,), tuple(map(Decimal, _WHOLE))),
    ((str,), _TEXT),
    ((bytes,), tuple(text.encode() for text in _TEXT)),
    ((dt.datetime, np.datetime64), _DAYS),
    ((dt.date,), tuple(day.date() for day in _DAYS)),
    ((dt.timedelta, np.timedelta64), _SPANS),
    ((dt.time,), _HOURS),
)


def example_of(part: Any) -> Any:
    """Rows of the same form and types as the part of a sample."""
    if isinstance(part, Mapping):
        return {name: example_of(column) for name, column in part.items()}
    if is_pandas(part):
        return kept(_of_pandas(part))
    if is_polars(part):
        return _of_polars(part)
    if is_arrow(part):
        return _of_arrow(part)
    return kept(_of_array(part))


def _of_array(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    shape = (ROWS, *array.shape[1:])
    if array.dtype.kind == "O":
        flat = array.reshape(len(array), -1)
        found = np.empty((ROWS, flat.shape[1]), object)
        for j in range(flat.shape[1]):
            found[:, j] = _of_objects(flat[:, j].tolist())
        return found.reshape(shape)
    column = _of_dtype(array.dtype)
    return np.broadcast_to(column.reshape(ROWS, *(1,) * (array.ndim - 1)), shape)


def _of_dtype(kind: np.dtype[Any]) -> npt.NDArray[Any]:
    if kind.names:
        found = np.zeros(ROWS, kind)
        for name in kind.names:
            inner = _of_dtype(kind[name].base)
            found[name] = inner.reshape(ROWS, *(1,) * len(kind[name].shape))
        return found
    if kind.kind in "fc":
        return np.array(_REAL).astype(kind)
    if kind.kind in "UST":
        return np.array(_TEXT).astype(kind)
    if kind.kind in "Mm":
        unit = np.datetime_data(kind)[0]
        if unit == "generic":
            return np.zeros(ROWS, kind)
        days = np.array(_WHOLE, f"{kind.kind}8[D]")
        return np.array(_WHOLE).astype(kind) if unit in "YMW" else days.astype(kind)
    return np.array(_WHOLE).astype(kind) if kind.kind in "biu" else np.zeros(ROWS, kind)


def _of_objects(values: list[Any]) -> list[Any]:
    found = {type(value) for value in values if not _missing(value)}
    if not found:
        return [None] * ROWS
    if all(issubclass(kind, dt.datetime) for kind in found):
        aware = {value.tzinfo is not None for value in values if not _missing(value)}
        if len(aware) == 1:
            zone = dt.UTC if aware.pop() else None
            return [day.replace(tzinfo=zone) for day in _DAYS]
    for kinds, shown in _OBJECTS:
        finer = tuple(kind for kind in (bool, dt.datetime) if kind not in kinds)
        if all(issubclass(kind, kinds) and not issubclass(kind, finer) for kind in found):
            return list(shown)
    named = " and ".join(sorted(kind.__name__ for kind in found))
    rule = "a column of Python objects must hold numbers, truths, texts or times of one kind"
    raise InvalidInput(
        f"a column of {named}", rule, "Convert it to one type, or pass public rows as `example`."
    )


def _missing(value: Any) -> bool:
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(value, np.datetime64 | np.timedelta64):
        return bool(np.isnat(value))
    return isinstance(value, float | np.floating | Decimal) and bool(value != value)


def _of_pandas(part: Any) -> Any:
    pd = sys.modules["pandas"]
    if isinstance(part, pd.Series):
        return type(part)(_of_series(part), name=part.name)
    columns = {i: _of_series(part.iloc[:, i]) for i in range(part.shape[1])}
    frame = type(part)(columns, index=range(ROWS))
    frame.columns = part.columns
    return frame


def _of_series(series: Any) -> Any:
    pd = sys.modules["pandas"]
    kind = series.dtype
    if isinstance(kind, np.dtype):
        return pd.Series(_of_array(series.to_numpy()), dtype=kind)
    if isinstance(kind, pd.CategoricalDtype):
        codes = (
            [i % max(len(kind.categories), 1) for i in _WHOLE]
            if len(kind.categories)
            else [-1] * ROWS
        )
        return pd.Series(pd.Categorical.from_codes(codes, dtype=kind))
    if isinstance(kind, pd.ArrowDtype):
        return pd.Series(kind.__from_arrow__(_of_type(kind.pyarrow_dtype)))
    if isinstance(kind, pd.DatetimeTZDtype):
        return pd.Series(_of_dtype(np.dtype(f"M8[{kind.unit}]"))).dt.tz_localize("UTC").astype(kind)
    if isinstance(kind, pd.PeriodDtype):
        return pd.Series(pd.PeriodIndex.from_ordinals(list(_WHOLE), freq=kind.freq))
    plain = kind.subtype if isinstance(kind, pd.SparseDtype) else getattr(kind, "numpy_dtype", None)
    shown = list(_TEXT) if isinstance(kind, pd.StringDtype) else None
    if isinstance(plain, np.dtype) and plain.kind != "O":
        shown = list(_of_dtype(plain))
    try:
        return pd.Series([None] * ROWS if shown is None else shown, dtype=kind)
    except Exception as error:
        rule = "there are no public rows of this type"
        raise InvalidInput(
            f"a column of type {kind}", rule, "Convert it, or pass public rows as `example`."
        ) from error


def _of_polars(part: Any) -> Any:
    import polars as pl

    if isinstance(part, pl.Series):
        return _of_polars_type(part.dtype).alias(part.name)
    return pl.DataFrame([_of_polars_type(kind).alias(name) for name, kind in part.schema.items()])


def _of_polars_type(kind: Any) -> Any:
    import polars as pl

    if isinstance(kind, pl.Struct):
        fields = [_of_polars_type(field.dtype).alias(field.name) for field in kind.fields]
        return pl.DataFrame(fields).to_struct() if fields else pl.Series([None] * ROWS, dtype=kind)
    if isinstance(kind, pl.List | pl.Array):
        inner = _of_polars_type(kind.inner).to_list()
        wide = kind.shape[0] if isinstance(kind, pl.Array) else 1
        return pl.Series([[value] * wide for value in inner], dtype=kind)
    if isinstance(kind, pl.Enum):
        words = kind.categories.to_list()
        return pl.Series([words[i % len(words)] if words else None for i in _WHOLE], dtype=kind)
    if isinstance(kind, pl.Decimal):
        return pl.Series([Decimal(i).scaleb(-kind.scale) for i in _WHOLE], dtype=kind)
    if isinstance(kind, pl.String | pl.Categorical | pl.Binary):
        return pl.Series(_TEXT).cast(kind)
    if isinstance(kind, pl.Datetime | pl.Duration | pl.Time):
        return pl.Series(
            _SPANS if isinstance(kind, pl.Duration) else _HOURS if kind == pl.Time else _DAYS
        ).cast(kind)
    return pl.Series(_REAL if kind.is_float() else _WHOLE).cast(kind, strict=False)


def _of_arrow(part: Any) -> Any:
    import pyarrow as pa

    if isinstance(part, pa.Array | pa.ChunkedArray):
        return _of_type(part.type)
    return type(part).from_arrays(
        [_of_type(field.type) for field in part.schema], schema=part.schema
    )


def _of_type(kind: Any) -> Any:
    """Arrow values of a type; of types that cannot be made, missing ones."""
    import pyarrow as pa
    from pyarrow import types

    if types.is_struct(kind) and kind.num_fields:
        return pa.StructArray.from_arrays(
            [_of_type(field.type) for field in kind], fields=list(kind)
        )
    try:
        if types.is_dictionary(kind):
            return _of_type(kind.value_type).dictionary_encode().cast(kind)
        if isinstance(kind, pa.BaseExtensionType):
            return pa.ExtensionArray.from_storage(kind, _of_type(kind.storage_type))
        return pa.array(_values(kind), kind)
    except (pa.ArrowException, TypeError, ValueError):
        return pa.nulls(ROWS, kind)


def _values(kind: Any) -> list[Any]:
    from pyarrow import types

    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        wide = kind.list_size if types.is_fixed_size_list(kind) else 1
        return [[value] * wide for value in _of_type(kind.value_type).to_pylist()]
    if types.is_map(kind):
        pairs = zip(
            _of_type(kind.key_type).to_pylist(), _of_type(kind.item_type).to_pylist(), strict=True
        )
        return [[pair] for pair in pairs]
    if types.is_decimal(kind):
        return [Decimal(i).scaleb(-kind.scale) for i in _WHOLE]
    if types.is_boolean(kind):
        return [bool(i) for i in _WHOLE]
    if types.is_fixed_size_binary(kind):
        return [text.encode() * kind.byte_width for text in _TEXT]
    if types.is_timestamp(kind) or types.is_date64(kind):
        return list(_DAYS)
    if types.is_duration(kind) or types.is_time(kind):
        return list(_SPANS if types.is_duration(kind) else _HOURS)
    if types.is_integer(kind) or types.is_date32(kind):
        return list(_WHOLE)
    return list(_REAL if types.is_floating(kind) else _TEXT)

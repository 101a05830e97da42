"""The categories of a question: a number of them, or their names; true answers become places among them."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from sordino.errors import InvalidInput
from sordino.privacy.exact import show

__all__ = ["Categories", "Indices", "counted", "has_gaps", "is_column", "place", "places"]

Categories: TypeAlias = int | list[str] | tuple[str, ...]
Indices: TypeAlias = npt.NDArray[np.int64]

_SHOWN = 20


def counted(given: Any, most: int) -> tuple[int, tuple[str, ...] | None]:
    """How many categories were given, and their names if they have any."""
    hint = 'Pass their number, such as 3, or their names, such as ["yes", "no"].'
    if isinstance(given, int | np.integer) and not isinstance(given, bool):
        count, names = int(given), None
    else:
        names = tuple(given) if isinstance(given, list | tuple) else ()
        if len(names) < 2 or not all(isinstance(x, str) for x in names) or len(set(names)) < len(names):
            raise InvalidInput(f"categories={show(given)}", "categories must be a whole number or different names", hint)
        count = len(names)
    if not 2 <= count <= most:
        raise InvalidInput(f"categories={show(count)}", f"this protocol takes 2 to {most} categories", hint)
    return count, names


def place(value: Any, count: int, names: tuple[str, ...] | None) -> int:
    """The place of one true answer."""
    if names is not None:
        if isinstance(value, str) and value in names:
            return names.index(value)
    elif isinstance(value, int | np.integer) and 0 <= value < count:
        return int(value)
    raise _unknown(value, count, names)


def places(values: Any, count: int, names: tuple[str, ...] | None) -> Indices:
    """The places of many true answers: a list, a NumPy or Arrow array, or a column of a frame."""
    found = _named(values, count, names) if names is not None else _numbered(values, count)
    if found.size == 0:
        raise InvalidInput("no values", "there must be something to randomize", "Pass at least one answer.")
    return found


def _numbered(values: Any, count: int) -> Indices:
    array = _flat(values)
    if array.dtype.kind not in "biu":
        return np.array([place(x, count, None) for x in array.tolist()], np.int64)
    if array.size and not (0 <= array.min() and array.max() < count):
        raise _unknown(array[(array < 0) | (array >= count)][0].item(), count, None)
    return array.astype(np.int64, copy=False)


def _flat(values: Any) -> npt.NDArray[Any]:
    if isinstance(values, list | tuple):
        array = np.empty(len(values), object)
        array[:] = values
        whole = bool(values) and all(isinstance(x, int | np.integer) for x in values)
        numbers = np.array(values) if whole else array
        return numbers if numbers.dtype.kind in "biu" else array  # signed beside unsigned ones become floats
    if has_gaps(values):
        raise InvalidInput("a missing value", "every person has an answer", "Drop persons without one.")
    array = np.asarray(values)
    if array.ndim != 1:
        rule = "true answers come as one list or one-dimensional array"
        raise InvalidInput(f"a {type(values).__name__}", rule, "Pass one answer for each person; randomize_one takes one.")
    return array


def has_gaps(values: Any) -> bool:
    """Whether an Arrow or polars column or a masked array lacks a value; others show it in the values themselves."""
    missing = getattr(values, "null_count", 0)
    missing = missing() if callable(missing) else missing
    return isinstance(values, np.ma.MaskedArray) or (isinstance(missing, int) and missing > 0)


def is_column(values: Any) -> bool:
    """Whether values come one for each person: no text or bytes, no frame, no set, which forgets how many said the same."""
    if isinstance(values, str | bytes | bytearray | Set | Mapping) or not hasattr(values, "__len__"):
        return False
    return len(getattr(values, "shape", (0,))) == 1


def _named(values: Any, count: int, names: tuple[str, ...]) -> Indices:
    import pyarrow as pa
    import pyarrow.compute as pc

    hint = "Pass a list, array or column of the categories' names."
    if not is_column(values):
        raise InvalidInput(f"a {type(values).__name__}", "answers come as a list, array or column", hint)
    if len(values) == 0:
        return np.empty(0, np.int64)
    try:
        column = values if isinstance(values, pa.Array | pa.ChunkedArray) else pa.array(values, from_pandas=True)
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if str(column.type) not in ("string", "large_string", "string_view"):
            raise TypeError
        found = pc.index_in(column.cast(pa.string()), pa.array(names))
    except (pa.ArrowException, TypeError, ValueError):
        raise InvalidInput(show(values), "answers must be texts, each one of the categories", hint) from None
    if found.null_count:
        wrong = column.filter(found.is_null())[0].as_py()
        raise _unknown(wrong, count, names)
    return np.asarray(found, np.int64)


def _unknown(value: Any, count: int, names: tuple[str, ...] | None) -> InvalidInput:
    allowed = f"0 to {count - 1}" if names is None else ", ".join([*names[:_SHOWN], *["..."][: count > _SHOWN]])
    return InvalidInput(show(value), f"an answer must be one of the categories: {allowed}", "Declare every category.")

"""What people hand over, and the categories it is counted in.

One value for each person comes as a list, an array or a column; true answers become places among the categories. They
are the client's own, so that a wrong one may be named.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from difflib import get_close_matches
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from sordino.errors import InvalidInput
from sordino.local.report_text import is_column, label, one_line
from sordino.privacy.exact import show
from sordino.privacy.wording import a_or_an

__all__ = [
    "Categories",
    "Indices",
    "as_array",
    "counted",
    "has_gaps",
    "is_missing",
    "missing_answer",
    "place",
    "places",
]

_EMPTY = ("NAType", "NaTType", "MaskedConstant")


def has_gaps(values: Any) -> bool:
    """Whether an Arrow or polars column or a masked array lacks a value; others show it in the values themselves."""
    missing = getattr(values, "null_count", 0)
    missing = missing() if callable(missing) else missing
    return isinstance(values, np.ma.MaskedArray) or (isinstance(missing, int) and missing > 0)


def as_array(values: Any) -> npt.NDArray[Any]:
    """An array or column as one of NumPy; refused if it lacks a value."""
    if has_gaps(values):
        raise missing_answer()
    array = np.asarray(values)
    if array.dtype.kind == "f" and np.isnan(array).any():
        raise missing_answer()
    if array.dtype.kind == "O" and any(is_missing(value) for value in array.ravel().tolist()):
        raise missing_answer()
    return array


def is_missing(value: Any) -> bool:
    """Whether one value stands for none: None, NaN, or what pandas, Arrow or NumPy put in its place."""
    if value is None or type(value).__name__ in _EMPTY or getattr(value, "is_valid", True) is False:
        return True
    return isinstance(value, float | np.floating) and math.isnan(value)


def missing_answer() -> InvalidInput:
    """The refusal of an answer that is none."""
    return InvalidInput(
        "a missing answer", "every person has an answer", "Drop persons without one."
    )


Categories: TypeAlias = int | Collection[str]
"""How many categories there are, or a list, array or column of their names, all different."""

Indices: TypeAlias = npt.NDArray[np.int64]

_HINT = 'Pass their number, such as 3, or their names, such as ["yes", "no"].'


def counted(given: Any, most: int) -> tuple[int, tuple[str, ...] | None]:
    """How many categories were given, and their names if they have any."""
    whole = isinstance(given, int | np.integer) and not isinstance(given, bool)
    names = None if whole else _names(given)
    count = int(given) if names is None else len(names)
    if not 2 <= count <= most:
        raise InvalidInput(
            f"categories={show(count)}", f"this protocol takes 2 to {most} categories", _HINT
        )
    return count, names


def _names(given: Any) -> tuple[str, ...]:
    if isinstance(given, set | frozenset):
        rule = "categories have an order, and a set has none"
        raise InvalidInput(
            f"categories={one_line(given)}", rule, "Pass a list, such as sorted(...) of the set."
        )
    rule = "categories must be a whole number or a list of different texts"
    if not is_column(given):
        raise InvalidInput(f"categories={one_line(given)}", rule, _HINT)
    names = [name.as_py() if hasattr(name, "as_py") else name for name in given]
    if wrong := [name for name in names if not isinstance(name, str)]:
        value = (
            f"={one_line(given)}"
            if isinstance(given, list | tuple)
            else f" with {one_line(wrong[0])}"
        )
        number = (
            isinstance(wrong[0], int | float | np.number)
            and not isinstance(wrong[0], bool)
            and not is_missing(wrong[0])
        )
        hint = 'Write numbers as texts, such as ["1", "2"], or pass how many categories there are.'
        raise InvalidInput(f"categories{value}", rule, hint if number else _HINT)
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InvalidInput(
                f"categories with {one_line(str.__str__(name))} twice",
                rule,
                "Name each category once.",
            )
        seen.add(name)
    # plain texts, also of an array or of an enumeration
    return tuple(str.__str__(name) for name in names)


_SHOWN = 20
_MOST_COMPARED = 10_000


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
        raise InvalidInput(
            "no values", "there must be something to randomize", "Pass at least one answer."
        )
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
        # signed beside unsigned ones become floats
        return numbers if numbers.dtype.kind in "biu" else array
    array = as_array(values)
    if array.ndim != 1:
        rule = "true answers come as one list or one-dimensional array"
        raise InvalidInput(
            a_or_an(type(values).__name__),
            rule,
            "Pass one answer for each person; randomize_one takes one.",
        )
    return array


def _named(values: Any, count: int, names: tuple[str, ...]) -> Indices:
    import pyarrow as pa
    import pyarrow.compute as pc

    hint = "Pass a list, array or column of the categories' names."
    if not is_column(values):
        raise InvalidInput(
            a_or_an(type(values).__name__), "answers come as a list, array or column", hint
        )
    if len(values) == 0:
        return np.empty(0, np.int64)
    try:
        column = (
            values
            if isinstance(values, pa.Array | pa.ChunkedArray)
            else pa.array(values, from_pandas=True)
        )
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if column.null_count:
            raise missing_answer()
        if str(column.type) not in ("string", "large_string", "string_view"):
            raise TypeError
        found = pc.index_in(column.cast(pa.string()), pa.array(names))
    except InvalidInput:
        raise
    except (pa.ArrowException, TypeError, ValueError):
        raise InvalidInput(
            one_line(values), "answers must be texts, each one of the categories", hint
        ) from None
    if found.null_count:
        wrong = column.filter(found.is_null())[0].as_py()
        raise _unknown(wrong, count, names)
    return np.asarray(found, np.int64)


def _unknown(value: Any, count: int, names: tuple[str, ...] | None) -> InvalidInput:
    if is_missing(value):
        return missing_answer()
    if names is None:
        if isinstance(value, float | np.floating):
            hint = "Convert them, as by .astype(int); a NaN is a missing answer."
            return InvalidInput(
                one_line(value), f"answers must be whole numbers, 0 to {count - 1}", hint
            )
        rule = f"an answer must be one of the categories: 0 to {count - 1}"
        return InvalidInput(one_line(value), rule, "Declare every category.")
    allowed = ", ".join([*map(label, names[:_SHOWN]), *["..."][: count > _SHOWN]])
    close = _closest(value, names) if isinstance(value, str) else None
    hint = (
        "Declare every category."
        if close is None
        else f"Did you mean {one_line(close)}? If not, declare every category."
    )
    return InvalidInput(
        one_line(value), f"an answer must be one of the categories: {allowed}", hint
    )


def _closest(value: str, names: tuple[str, ...]) -> str | None:
    """The name that was probably meant, whatever its case and spaces."""
    plain = {" ".join(name.casefold().split()): name for name in names[:_MOST_COMPARED]}
    close = get_close_matches(" ".join(value.casefold().split()), plain, n=1)
    return plain[close[0]] if close else None

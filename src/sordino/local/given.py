"""What people hand over: one value for each person as a list, an array or a column, and how its faults are told."""

from __future__ import annotations

import math
from collections.abc import Mapping, Set
from typing import Any

import numpy as np
import numpy.typing as npt

from sordino.errors import InvalidInput
from sordino.privacy.exact import show

__all__ = ["as_array", "has_gaps", "is_column", "is_missing", "missing_answer", "one_line"]

_LONGEST = 80
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
    return InvalidInput("a missing answer", "every person has an answer", "Drop persons without one.")


def is_column(values: Any) -> bool:
    """Whether values come one for each person: no text or bytes, no frame, no set, which drops equal ones."""
    if isinstance(values, str | bytes | bytearray | Set | Mapping) or not hasattr(values, "__len__"):
        return False
    return len(getattr(values, "shape", (0,))) == 1


def one_line(value: Any) -> str:
    """A short text of any value, without line breaks."""
    if is_column(value) and not isinstance(value, list | tuple):
        return f"a {type(value).__name__} of {len(value)} values"
    if getattr(value, "ndim", 0) or hasattr(value, "column_names"):
        return f"a {type(value).__name__}"
    text = show(value)
    text = " ".join(text.split()) if len(text.splitlines()) > 1 else text
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."

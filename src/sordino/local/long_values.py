"""Values from a very large domain: whole numbers of up to 64 bits, or short texts read as such numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from sordino.errors import InvalidInput
from sordino.local.given import as_array, has_gaps, is_column, is_missing, missing_answer, one_line
from sordino.local.prefixes import Prefixes
from sordino.privacy.exact import show

__all__ = ["as_numbers", "as_text", "checked_length", "one_number"]

_LONGEST = 64


def checked_length(length: Any, *, text: bool) -> None:
    """Refuse a length that values cannot have."""
    if isinstance(length, bool) or not isinstance(length, int) or not 1 <= length <= _LONGEST or (text and length % 8):
        rule = f"bits must be a whole number from 1 to {_LONGEST}; for texts a multiple of 8"
        raise InvalidInput(f"bits={show(length)}", rule, "Longer values: agree on a public hash, and look up what is found.")


def one_number(value: Any, length: int, *, text: bool) -> int:
    """One value as a number."""
    if text:
        return int.from_bytes(_encoded(value, length), "big")
    if isinstance(value, int | np.integer) and not isinstance(value, bool) and 0 <= value < 2**length:
        return int(value)
    raise _outside(value, length)


def as_numbers(values: Any, length: int, *, text: bool) -> Prefixes:
    """Many values as numbers, the first letter of a text in the highest bits."""
    if has_gaps(values):
        raise missing_answer()
    if not is_column(values) or len(values) == 0:
        rule = "values come as one list or one-dimensional array, at least one"
        raise InvalidInput(f"a {type(values).__name__}", rule, "Pass one value for each person.")
    if text:
        return _texts([v.as_py() if hasattr(v, "as_py") else v for v in values], length)
    array = as_array(values) if not isinstance(values, list | tuple) else None
    if array is None or array.dtype.kind not in "iu":
        given = values if array is None else array.tolist()
        return np.array([one_number(v, length, text=False) for v in given], np.uint64)
    if int(array.min()) < 0 or int(array.max()) >= 2**length:
        wrong = array.min() if int(array.min()) < 0 else array.max()
        raise _outside(wrong, length)
    return array.astype(np.uint64)


def _texts(values: list[Any], length: int) -> Prefixes:
    size = length // 8
    padded = np.frombuffer(b"".join(_encoded(v, length) for v in values), np.uint8).reshape(-1, size)
    found = np.zeros(len(padded), np.uint64)
    for i in range(size):
        found = found << np.uint64(8) | padded[:, i].astype(np.uint64)
    return found


def _encoded(value: Any, length: int) -> bytes:
    if is_missing(value):
        raise missing_answer()
    try:
        data = value.encode() if isinstance(value, str) else value
    except UnicodeEncodeError:
        data = None
    if not isinstance(data, bytes) or len(data) > length // 8 or b"\0" in data:
        rule = f"a value must be a text or bytes of at most {length // 8} bytes, without zero bytes"
        hint = "Shorten values, or allow more bits."
        if not isinstance(value, str | bytes):
            hint = "Pass texts, or search for whole numbers without text=True."
        raise InvalidInput(one_line(value), rule, hint)
    return data.ljust(length // 8, b"\0")


def as_text(numbers: Prefixes, length: int) -> tuple[str, ...]:
    """The texts that numbers stand for."""
    size = length // 8
    return tuple(n.to_bytes(size, "big").rstrip(b"\0").decode("utf-8", "backslashreplace") for n in numbers.tolist())


def _outside(value: Any, length: int) -> InvalidInput:
    if is_missing(value):
        return missing_answer()
    convert = isinstance(value, float | np.floating)
    hint = "Convert values, as by .astype(int)." if convert else "Allow more bits, or pass text=True for texts."
    return InvalidInput(one_line(value), f"a value must be a whole number from 0 to 2^{length} - 1", hint)

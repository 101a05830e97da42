"""Inputs of an audit, as JSON on the command line or in a file."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

from sordino.errors import InvalidInput

__all__ = ["read_data", "read_domain"]


def read_data(text: str, option: str) -> Any:
    """An input from JSON; an array of numbers, also of rows of numbers, becomes a NumPy array."""
    if text.startswith("@"):
        path = Path(text[1:])
        try:
            text = path.read_text("utf-8-sig")
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or "it is not text in UTF-8"
            raise InvalidInput(
                f"{option} @{path}", f"it cannot be read ({why})", "Check the path behind the @."
            ) from None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        shown = repr(text if len(text) <= 40 else f"{text[:39]}…")
        raise InvalidInput(
            f"{option} {shown}", "it is not JSON", f"""Write {option} 3, or {option} '[1, 2, 3]'."""
        ) from None
    return _as_array(value) if isinstance(value, list) else value


def _as_array(value: list[Any]) -> Any:
    import numpy as np

    def numbers(part: Any) -> bool:
        return all(map(numbers, part)) if isinstance(part, list) else type(part) in (int, float)

    if not numbers(value):
        return value
    try:
        array = np.array(value)
    except (ValueError, OverflowError):  # rows of different lengths
        return value
    return value if array.dtype == object else array


def read_domain(text: str) -> Any:
    """Two numbers are the ends of a range; other lists, and JSON arrays, hold all values."""
    if text.lstrip().startswith("["):
        with contextlib.suppress(ValueError):
            return list(json.loads(text))
    values = [_scalar(part.strip()) for part in text.split(",")]
    if len(values) == 2 and all(type(v) in (int, float) for v in values):
        return tuple(values)
    return values


def _scalar(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text

"""A hashable form of a cell of any kind, equal for equal cells: numbers by value, NaN like NaN, True not like 1."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Set
from typing import Any

import numpy as np

__all__ = ["form", "forms"]

_PLAIN = frozenset({int, str, bytes, type(None)})
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
    """Dates, decimals, missing values of other libraries; an object that cannot be hashed by what it shows of itself."""
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

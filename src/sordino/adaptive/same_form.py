"""Whether public example rows have the form of a sample: the same columns in the same order, alike in shape and kind.

Order matters: a model reads columns by their places, and would take one for the other.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np

from sordino.adaptive.examples import example_of
from sordino.adaptive.samples import names
from sordino.errors import InvalidInput
from sordino.privacy.exact import show

__all__ = ["differences"]

_KINDS: tuple[tuple[str, tuple[type, ...]], ...] = (
    ("truths", (bool, np.bool_)),
    ("spans of time", (dt.timedelta, np.timedelta64)),
    ("numbers", (int, float, complex, Decimal, np.number)),
    ("texts", (str,)),
    ("bytes", (bytes,)),
    ("times", (dt.date, np.datetime64)),
)


def differences(shown: Any, part: Any) -> str | None:
    """What example rows have that the sample has not; None if they are alike as far as types tell."""
    one, two = _forms(shown), _forms(part)
    if set(one) != set(two):
        return "other columns"
    for (_, name), (_, place) in zip(one, two, strict=True):
        if name != place:
            return f"columns in another order, {show(name)} where the sample has {show(place)}"
    for name, (shape, kind) in one.items():
        if shape != two[name][0]:
            return f"rows of shape {shape}, not {two[name][0]}"
        if kind and two[name][1] and kind != two[name][1]:
            return f"{kind}, not {two[name][1]}"
    return None


def _forms(part: Any) -> dict[tuple[str, Any], tuple[tuple[int, ...], str | None]]:
    found = names(part)
    return (
        {("", ""): _form(part)}
        if found is None
        else {("column", name): _form(part[name]) for name in found}
    )


def _form(column: Any) -> tuple[tuple[int, ...], str | None]:
    shape = column.shape[1:] if isinstance(column, np.ndarray) else ()
    try:
        rows = example_of(column)
    except InvalidInput:
        return shape, None
    cells = (
        rows.ravel()
        if isinstance(rows, np.ndarray)
        else rows.to_pylist()
        if hasattr(rows, "to_pylist")
        else rows
    )
    cell = next(iter(cells), None)
    return shape, next((kind for kind, types in _KINDS if isinstance(cell, types)), None)

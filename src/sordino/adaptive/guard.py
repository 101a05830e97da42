"""A sample that only sums of functions leave: phi, a function of each row by itself, is evaluated so that it cannot fail.

Theorem. For a phi that looks at each row by itself, replacing one row moves `total(phi)` by at most `GRID`, whatever phi
returns or raises; and nothing else that a caller sees depends on the rows. Proof in holdout.md.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from sordino.errors import InvalidInput
from sordino.privacy.exact import show

__all__ = ["GRID", "GuardedSample", "Phi", "levels"]

Phi: TypeAlias = Callable[..., Any]
"""From rows to one number in [0, 1] for each; a sample of several parts is passed as several arguments."""

Levels: TypeAlias = npt.NDArray[np.int64]

GRID = 2**20
"""Values are rounded to multiples of 1/GRID, so that sums are whole numbers, the same for any order of rows."""

_MOST_ROWS = 2**42
_PROBES = 2


@dataclass(frozen=True, repr=False)
class GuardedSample:
    """Rows that are never shown, and public `example` rows on which functions are rehearsed, where errors may be seen.

    A sample is an array, a data frame, a mapping of columns, or a tuple of these with equally many rows, such as (X, y).
    Without an example, rows of zeros (of no rows where a frame cannot make them) take its place.
    """

    parts: tuple[Any, ...] = field(repr=False)
    example: tuple[Any, ...] = field(repr=False)
    count: int

    @classmethod
    def of(cls, data: Any, example: Any = None) -> GuardedSample:
        """The guarded form of a sample; arrays are copied."""
        parts = tuple(_kept(part) for part in (data if isinstance(data, tuple) else (data,)))
        counts = {_length(part) for part in parts}
        if len(counts) != 1 or not 1 <= min(counts) <= _MOST_ROWS:
            value = f"{len(parts)} parts with {', '.join(map(str, sorted(counts))) or 'no'} rows"
            raise InvalidInput(value, "all parts of a sample must have equally many rows, at least one", "Pass (X, y).")
        if example is None:
            return cls(parts, tuple(_blank(part) for part in parts), counts.pop())
        shown = example if isinstance(example, tuple) else (example,)
        if len(shown) != len(parts):
            rule = "an example must have the same parts as the sample"
            raise InvalidInput(f"{len(shown)} parts", rule, "Pass some public rows, such as (X_train[:5], y_train[:5]).")
        return cls(parts, tuple(_kept(part) for part in shown), counts.pop())

    def rehearse(self, phi: Phi) -> None:
        """Refuse a function that raises, or gives something else than numbers, on the example; the sample is not touched."""
        rows = _length(self.example[0])
        hint = "Try it on rows of your own, or pass the guard some public rows as `example`."
        if not callable(phi):
            raise InvalidInput(show(phi), "a question must be a function of rows", "Pass lambda rows: rows[:, 0] > 0.")
        try:
            with _quietly():
                found = phi(*self.example)
        except Exception as error:
            name = f"a function that raised {type(error).__name__}"
            raise InvalidInput(
                name, f"a question must not fail on {rows} example rows", f"It said: {error}. {hint}"
            ) from error
        values = _numbers(found, rows)
        if values is None or np.isnan(values).any():
            value = f"a function that returned {_form(found)}"
            raise InvalidInput(value, f"a question must give {rows} numbers, none missing, for {rows} example rows", hint)

    def total(self, phi: Phi) -> int:
        """The sum of phi over the rows in units of 1/GRID: values are clamped to [0, 1]; what is missing or failed is 0.

        If phi fails on all rows together, each row is tried alone. Never raises because of the rows.
        """
        with _quietly():
            found = _tried(phi, self.parts, self.count)
            if found is not None:
                return int(levels(found).sum())
            single = (_tried(phi, tuple(_row(part, i) for part in self.parts), 1) for i in range(self.count))
            return sum(int(levels(value)[0]) for value in single if value is not None)

    def __repr__(self) -> str:
        return f"GuardedSample({self.count} rows)"


def levels(values: npt.NDArray[np.float64]) -> Levels:
    """Numbers clamped to [0, 1] and rounded to the grid; what is missing is 0."""
    inside = np.clip(np.nan_to_num(values, nan=0.0, posinf=1.0, neginf=0.0), 0.0, 1.0)
    return np.floor(inside * GRID + 0.5).astype(np.int64)


def _tried(phi: Phi, parts: tuple[Any, ...], rows: int) -> npt.NDArray[np.float64] | None:
    try:
        return _numbers(phi(*parts), rows)
    except (Exception, SystemExit):  # leaving because of a row would tell of it
        return None


def _numbers(found: Any, rows: int) -> npt.NDArray[np.float64] | None:
    """What phi returned as floats, one for each row; None if it is something else."""
    try:
        array = np.asarray(found)
        if array.shape != (rows,) or array.dtype.kind not in "biufO":
            return None
        return array.astype(np.float64)
    except Exception:
        return None


@contextmanager
def _quietly() -> Iterator[None]:
    """Warnings may quote values."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def _form(found: Any) -> str:
    if isinstance(found, np.ndarray):
        return f"an array of shape {found.shape} and dtype {found.dtype}"
    return f"a {type(found).__name__}"


def _kept(part: Any) -> Any:
    """One part of a sample as its functions will see it; lists become arrays, and arrays cannot be written to."""
    if isinstance(part, Mapping):
        return {name: _kept(column) for name, column in part.items()}
    if hasattr(part, "iloc"):
        return part.copy()
    if hasattr(part, "slice"):  # Arrow and Polars: never changed in place
        return part
    array = np.array(part)
    if array.ndim == 0:
        hint = "Pass an array, a data frame, a mapping of columns, or a tuple of these."
        raise InvalidInput(f"a {type(part).__name__}", "a sample must have rows", hint)
    array.setflags(write=False)
    return array


def _length(part: Any) -> int:
    if isinstance(part, Mapping):
        counts = {len(column) for column in part.values()}
        return counts.pop() if len(counts) == 1 else 0
    return len(part)


def _row(part: Any, i: int) -> Any:
    if isinstance(part, Mapping):
        return {name: _row(column, i) for name, column in part.items()}
    if hasattr(part, "iloc"):
        return part.iloc[i : i + 1]
    return part[i : i + 1] if isinstance(part, np.ndarray) else part.slice(i, 1)


def _blank(part: Any) -> Any:
    """Rows that hold nothing of the data but its form."""
    if isinstance(part, Mapping):
        return {name: _blank(column) for name, column in part.items()}
    if isinstance(part, np.ndarray):
        return np.zeros((_PROBES, *part.shape[1:]), part.dtype)
    if hasattr(part, "iloc"):
        if hasattr(part, "columns"):
            return type(part)({name: _zeros(kind) for name, kind in part.dtypes.items()})
        return type(part)(_zeros(part.dtype), name=part.name)
    return part.slice(0, 0)


def _zeros(kind: Any) -> npt.NDArray[Any]:
    return np.zeros(_PROBES, kind) if isinstance(kind, np.dtype) and kind.kind != "O" else np.array([""] * _PROBES, object)

"""A sample of which only sums of functions are shown: phi, a function of one row, is evaluated so that it cannot fail.

Theorem. For a phi that looks at each row by itself, replacing one row moves `total(phi)` by at most `GRID`, whatever
phi returns or raises; and nothing else that a caller sees depends on the rows. Proof in holdout.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from sordino.adaptive.examples import example_of
from sordino.adaptive.same_form import differences
from sordino.adaptive.samples import fresh, kept, length, names, parts_of, row
from sordino.adaptive.without_warnings import Interrupts, undisturbed
from sordino.errors import InvalidInput
from sordino.privacy.exact import show
from sordino.privacy.wording import a_or_an, counted

__all__ = ["GRID", "GuardedSample", "Phi", "levels"]

Phi: TypeAlias = Callable[..., Any]
"""From rows to one number in [0, 1] for each; a sample of several parts is passed as several arguments."""

Floats: TypeAlias = npt.NDArray[np.float64]
Levels: TypeAlias = npt.NDArray[np.int64]

GRID = 2**20
"""Values are rounded to multiples of 1/GRID, so that sums are whole numbers, the same for any order of rows."""

_MOST_ROWS = 2**42
_ALONE = 8
_CLOSE = 2.0**-10


@dataclass(frozen=True, repr=False)
class GuardedSample:
    """Rows that are never shown, and public `example` rows on which functions are rehearsed, where errors may be seen.

    A sample is an array, a frame of pandas, Polars or Arrow, a mapping of columns, or a tuple of these with equally
    many rows, such as (X, y). Without an example, rows made from the types of columns take its place (see `examples`).
    """

    parts: tuple[Any, ...] = field(repr=False)
    example: tuple[Any, ...] = field(repr=False)
    count: int

    @classmethod
    def of(cls, data: Any, example: Any = None) -> GuardedSample:
        """The guarded form of a sample, which is copied."""
        parts = tuple(kept(part) for part in parts_of(data))
        count = _common(parts)
        if example is None:
            return cls(parts, tuple(example_of(part) for part in parts), count)
        return cls(parts, (), count).with_example(example)

    def with_example(self, example: Any) -> GuardedSample:
        """The same rows with other public ones, which must be of the same form."""
        shown = tuple(kept(part) for part in parts_of(example))
        pairs = zip(shown, self.parts, strict=False)
        found = (
            ""
            if len(shown) != len(self.parts)
            else next(filter(None, (differences(*pair) for pair in pairs)), None)
        )
        if found is not None:
            value = f"public rows of {len(shown)} parts" + f", {found}" * bool(found)
            rule = (
                "they must have the parts, columns and kinds of values of the sample, in its order"
            )
            raise InvalidInput(
                value,
                rule,
                "Take both from one frame or array, such as (X_train[:5], y_train[:5]), or reorder columns.",
            )
        _common(shown)
        return replace(self, example=shown)

    @property
    def sketch(self) -> str:
        """A question as it may be written for this sample; for messages."""
        first, columns = self.example[0], names(self.example[0])
        word = "rows" if len(self.parts) == 1 else "X"
        wide = isinstance(first, np.ndarray) and first.ndim > 1
        cell = f"{word}[{show(columns[0])}]" if columns else f"{word}[:, 0]" if wide else word
        if len(self.parts) == 1:
            return f"lambda rows: {cell} > 0"
        return (
            f"lambda X, y: ({cell} > 0) == y"
            if len(self.parts) == 2
            else "a function with one argument for each part"
        )

    def rehearse(self, phi: Phi) -> None:
        """Refuse a function that fails on the example, or differs for its rows alone; no secret row is touched."""
        if not callable(phi):
            raise InvalidInput(
                show(phi), "a question must be a function of rows", f"Pass {self.sketch}."
            )
        rows = length(self.example[0])
        together = _rehearsed(phi, tuple(fresh(part) for part in self.example), rows)
        if rows == 1 or getattr(phi, "by_row", False):
            return
        for i in range(min(rows, _ALONE)):
            alone = _rehearsed(phi, tuple(row(part, i) for part in self.example), 1)
            if not np.isclose(alone[0], together[i], rtol=_CLOSE, atol=_CLOSE):
                value = f"a function that gave {together[i]:.4g} for one of {rows} example rows, {alone[0]:.4g} for it alone"
                rule = "a question must look at one row at a time"
                raise InvalidInput(
                    value,
                    rule,
                    "Compute means, ranks or bounds on public rows before, and pass numbers.",
                )

    def total(self, phi: Phi) -> int:
        """The sum of phi over the rows in units of 1/GRID: values are clamped to [0, 1]; missing or failed ones are 0.

        If phi fails on all rows together, each row is tried alone. Nothing is raised but a real interrupt (Ctrl-C).
        """
        with undisturbed() as interrupts:
            found = _tried(phi, tuple(fresh(part) for part in self.parts), self.count, interrupts)
            if found is not None:
                return int(levels(found).sum())
            rows = (tuple(row(part, i) for part in self.parts) for i in range(self.count))
            single = (_tried(phi, parts, 1, interrupts) for parts in rows)
            return sum(int(levels(value)[0]) for value in single if value is not None)

    def __repr__(self) -> str:
        return f"GuardedSample({counted(self.count, 'row')})"


def levels(values: Floats) -> Levels:
    """Numbers clamped to [0, 1] and rounded to the grid; what is missing is 0."""
    inside = np.clip(np.nan_to_num(values, nan=0.0, posinf=1.0, neginf=0.0), 0.0, 1.0)
    return np.floor(inside * GRID + 0.5).astype(np.int64)


def _common(parts: tuple[Any, ...]) -> int:
    for part in parts:
        if isinstance(part, Mapping):
            _equal("columns", [length(column) for column in part.values()])
    count = _equal("parts", [length(part) for part in parts])
    if not 1 <= count <= _MOST_ROWS:
        value = f"a sample of {counted(count, 'row')}" if count else "a sample without a row"
        raise InvalidInput(
            value,
            "a sample must have at least one row, at most 2^42",
            "See how it was read or filtered.",
        )
    return count


def _equal(what: str, counts: list[int]) -> int:
    """How many rows all of them have; 0 if there are none."""
    other = next((count for count in counts if count != counts[0]), None)
    if other is not None:
        value = f"{what} of different lengths ({counts[0]} and {other})"
        raise InvalidInput(
            value,
            f"all {what} of a sample must have equally many rows",
            "Pass one value for each row.",
        )
    return counts[0] if counts else 0


def _rehearsed(phi: Phi, parts: tuple[Any, ...], rows: int) -> Floats:
    """The numbers on public rows, or a refusal that may say all."""
    which = f"{rows} example rows" if rows > 1 else "one example row"
    hint = "Try it on rows of your own, or give public rows, as `example=` of the holdout's or oracle's constructor."
    found, failed = None, None
    with undisturbed() as interrupts:
        try:
            found = phi(*parts)
            values = _numbers(found, rows)
        except BaseException as error:
            failed = error
        interrupts.check()
    if failed is not None:
        said = _words(failed)
        if "read-only" in said:
            hint = "Rows cannot be written to: work on a copy, such as rows = rows.copy()."
        name = f"a function that raised {type(failed).__name__}"
        told = f"It said: {said}{'' if said.endswith(('.', '!', '?')) else '.'} " if said else ""
        raise InvalidInput(name, f"a question must not fail on {which}", told + hint) from failed
    if values is None or np.isnan(values).any():
        value = f"a function that returned {_form(found, rows)}"
        rule = f"a question must give {f'{rows} numbers' if rows > 1 else 'one number'}, none missing, for {which}"
        raise InvalidInput(value, rule, hint)
    return values


def _words(failed: BaseException) -> str:
    try:
        return str(failed).strip()
    except Exception:
        return ""


def _tried(phi: Phi, parts: tuple[Any, ...], rows: int, interrupts: Interrupts) -> Floats | None:
    """The numbers on secret rows; whatever is raised because of them would tell of them, exits and panics too."""
    found = None
    with suppress(BaseException):
        found = _numbers(phi(*parts), rows)
    interrupts.check()
    return found


def _numbers(found: Any, rows: int) -> Floats | None:
    """What phi returned as floats, one for each row; None if it is something else."""
    if isinstance(found, np.ma.MaskedArray):
        found = np.ma.filled(found.astype(np.float64), math.nan)
    array = np.asarray(found)
    if rows == 1 and array.ndim == 0:
        array = array.reshape(1)
    if array.shape != (rows,) or array.dtype.kind not in "biufO":
        return None
    if array.dtype.kind == "O":
        return np.array([_number(value) for value in array.tolist()])
    return array.astype(np.float64)


def _number(value: Any) -> float:
    """An object as a number; NaN if it is none."""
    if isinstance(value, str | bytes):
        return math.nan
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def _form(found: Any, rows: int) -> str:
    """What is wrong with what phi returned."""
    array = np.asarray(found)
    if array.ndim == 0:
        plain = found is None or isinstance(found, bool | int | float | str)
        return f"{show(found) if plain else a_or_an(type(found).__name__)}, one value for all rows"
    cells = array.ravel().tolist() if array.dtype.kind == "O" else []
    if array.dtype.kind in "UST" or any(isinstance(cell, str | bytes) for cell in cells):
        return "texts"
    if array.shape != (rows,):
        return (
            f"{len(array)} numbers instead of {rows}"
            if array.ndim == 1
            else f"an array of shape {array.shape}"
        )
    return "missing values" if array.dtype.kind in "fO" else f"values of type {array.dtype}"

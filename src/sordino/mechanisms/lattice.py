"""The public lattice step * Z: every value enters as an exact integer number of steps and leaves as one.

What leaves is a function of the released integers alone, so that neither type nor rounding of the answer can tell more
than they do. Rounding a value to the lattice is floor(x/step + 1/2): unlike rounding halves to even it commutes with
moving by whole steps, so that one number's distance grows at most to the next whole step.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from numbers import Integral, Real
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from sordino.errors import InvalidInput, OffLattice
from sordino.mechanisms.integers import INT64, narrow, span
from sordino.privacy.exact import exact_binary, float_lower, is_finite, readable, show
from sordino.privacy.wording import a_or_an

__all__ = ["Lattice", "Steps", "add"]

Array: TypeAlias = npt.NDArray[Any]
Steps: TypeAlias = int | list[int] | Array
"""Integers in the caller's own form: one, a list, or an array of int64 (of Python integers where one does not fit)."""


@dataclass(frozen=True)
class Lattice:
    """All whole multiples of `step`."""

    step: Fraction

    def steps(self, value: Any, *, round_to_lattice: bool = False) -> Steps:
        """How many steps each number of `value` is; refuses what is not on the lattice unless told to round."""
        if isinstance(value, Real | Decimal):
            return self._one(value, round_to_lattice, "the value")
        if isinstance(value, list | tuple):
            _refuse_empty(len(value))
            return [self._one(x, round_to_lattice, f"element {i}") for i, x in enumerate(value)]
        # a pandas column has a method of this name
        if hasattr(value, "mask") and not callable(value.mask):
            hint = "Fill the masked places with public values first."
            raise InvalidInput(
                a_or_an(type(value).__name__), "a masked array has no definite values", hint
            )
        if hasattr(value, "__array__"):
            return self._array(np.asarray(value), round_to_lattice)
        hint = "Pass a number, a list of numbers or a NumPy array."
        raise InvalidInput(show(value), f"{a_or_an(type(value).__name__)} is not a number", hint)

    def values(self, steps: Steps) -> Any:
        """The numbers that this many steps are: integers for a whole step, else the nearest floats."""
        if isinstance(steps, list):
            return [self._value(k) for k in steps]
        if isinstance(steps, int):
            return self._value(steps)
        if self.step == 1:
            return steps
        n, d = self.step.numerator, self.step.denominator
        small = (
            steps.dtype != object
            and max(span(steps), 1) * n < (INT64 if d == 1 else 2**53)
            and d < 2**53
        )
        if small:  # exact products, and one correctly rounded division
            return steps * n if d == 1 else (steps * n) / d
        return np.array(
            [self._value(k) for k in steps.ravel().tolist()], object if d == 1 else float
        ).reshape(steps.shape)

    def _value(self, k: int) -> int | float:
        n, d = self.step.numerator, self.step.denominator
        try:
            # Python rounds the quotient of integers correctly
            return k * n if d == 1 else (k * n) / d
        except OverflowError:
            return math.inf if k > 0 else -math.inf

    @cached_property
    def _plain(self) -> float:
        """Below this magnitude k * numerator is exact in floats and floats are less than half a step apart."""
        n, d = self.step.numerator, self.step.denominator
        return (
            float_lower(min(Fraction(2**51), Fraction(2**52, n)) * self.step)
            if max(n, d) < 2**52
            else 0.0
        )

    def _one(self, value: Any, rounding: bool, where: str) -> int:
        if isinstance(value, bool | np.bool_) or not isinstance(value, Real | Decimal):
            hint = "Pass ints, floats, Fractions or Decimals."
            raise InvalidInput(
                show(value), f"{where} must be a number, not {type(value).__name__}", hint
            )
        if self.step == 1 and isinstance(value, Integral):
            return int(value)
        if not is_finite(value):
            hint = "Replace missing and infinite values by public bounds before releasing."
            raise InvalidInput(show(value), f"{where} must be finite", hint)
        if isinstance(value, float) and abs(value) < self._plain:
            k = round(value * self.step.denominator / self.step.numerator)
            # 0.29 is the lattice point 29/100: no other float is nearer to it
            if self._value(k) == value:
                return k
        exact = exact_binary(value) / self.step
        if rounding or exact.denominator == 1:
            return math.floor(exact + Fraction(1, 2))
        rule = f"{where} must be a whole multiple of step={readable(self.step)}"
        hint = "Choose the step to fit the data, or pass round_to_lattice=True and allow for it in the sensitivity."
        raise OffLattice(show(value), rule, hint)

    def _array(self, value: Array, rounding: bool) -> Array:
        _refuse_empty(value.size)
        if value.dtype.kind not in "iufO":
            rule = f"an array of dtype {value.dtype} does not hold numbers to release"
            raise InvalidInput(show(value), rule, "Convert it to integers or floats.")
        steps = self._vectorised(value, rounding)
        if steps is None:
            flat = [
                self._one(x, rounding, f"element {i}") for i, x in enumerate(value.ravel().tolist())
            ]
            steps = narrow(flat).reshape(value.shape)
        return steps

    def _vectorised(self, value: Array, rounding: bool) -> Array | None:
        """The steps of an array of ordinary numbers; None where each must be looked at by itself."""
        n, d = self.step.numerator, self.step.denominator
        if value.dtype.kind in "iu":
            if span(value) * d >= INT64 or n >= INT64:
                return None
            steps = value.astype(np.int64, copy=False)
            if self.step == 1:
                return steps
            steps, rest = np.divmod(steps * d, n)
            return None if rest.any() else steps
        if (
            value.dtype.kind == "O"
            or value.itemsize > 8
            or not np.isfinite(value).all()
            or span(value) >= self._plain
        ):
            return None
        x = value.astype(np.float64)
        ratio = x * d / n
        nearest = np.floor(ratio)
        part = ratio - nearest  # exact, or so close to 1 that it stays above 1/2
        nearest += part >= 0.5
        off = nearest * n / d != x
        if not off.any():
            return nearest.astype(np.int64)
        if not rounding:
            return None
        steps = nearest.astype(np.int64)
        # two roundings move ratio by less than 2^-51 of it; near a half, look again exactly
        if n != 1 or d & (d - 1):
            for i in np.argwhere(off & (np.abs(part - 0.5) <= (np.abs(ratio) + 1) * 2.0**-50)):
                steps[tuple(i)] = self._one(x[tuple(i)].item(), rounding, "an element")
        return steps


def add(steps: Steps, noise: Array) -> Steps:
    """The noisy integers, in the form of `steps`; int64 where all results fit, and never wrapped."""
    if isinstance(steps, int):
        return steps + int(noise[0])
    if isinstance(steps, list):
        return [k + z for k, z in zip(steps, noise.tolist(), strict=True)]
    noise = noise.reshape(steps.shape)
    if steps.dtype != object and noise.dtype != object and span(steps) + span(noise) < INT64:
        noise += steps
        return noise
    return narrow((steps.astype(object) + noise.astype(object)).ravel().tolist()).reshape(
        steps.shape
    )


def _refuse_empty(size: int) -> None:
    if size == 0:
        raise InvalidInput(
            "no values", "there must be something to release", "Pass at least one number."
        )

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
from numbers import Integral, Real
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from sordino.errors import InvalidInput, OffLattice
from sordino.mechanisms.integers import INT64, narrow, span
from sordino.privacy.exact import exact_binary, is_finite, readable, show

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
        if hasattr(value, "mask"):
            hint = "Fill the masked places with public values first."
            raise InvalidInput(f"a {type(value).__name__}", "a masked array has no definite values", hint)
        if hasattr(value, "__array__"):
            return self._array(np.asarray(value), round_to_lattice)
        hint = "Pass a number, a list of numbers or a NumPy array."
        raise InvalidInput(show(value), f"a {type(value).__name__} is not a number", hint)

    def values(self, steps: Steps) -> Any:
        """The numbers that so many steps are: integers for a whole step, else the nearest floats."""
        if isinstance(steps, list):
            return [self._value(k) for k in steps]
        if isinstance(steps, int):
            return self._value(steps)
        if self.step == 1:
            return steps
        n, d = self.step.numerator, self.step.denominator
        small = steps.dtype != object and max(span(steps), 1) * n < (INT64 if d == 1 else 2**53) and d < 2**53
        if small:  # exact products, and one correctly rounded division
            return steps * n if d == 1 else (steps * n) / d
        return np.array([self._value(k) for k in steps.ravel().tolist()], object if d == 1 else float).reshape(steps.shape)

    def _value(self, k: int) -> int | float:
        if self.step.denominator == 1:
            return k * self.step.numerator
        try:
            return float(k * self.step)
        except OverflowError:
            return math.inf if k > 0 else -math.inf

    def _one(self, value: Any, rounding: bool, where: str) -> int:
        if isinstance(value, bool | np.bool_) or not isinstance(value, Real | Decimal):
            hint = "Pass ints, floats, Fractions or Decimals."
            raise InvalidInput(show(value), f"{where} must be a number, not {type(value).__name__}", hint)
        if isinstance(value, Integral) and self.step == 1:
            return int(value)
        if not is_finite(value):
            hint = "Replace missing and infinite values by public bounds before releasing."
            raise InvalidInput(show(value), f"{where} must be finite", hint)
        exact = exact_binary(value) / self.step
        if exact.denominator == 1:
            return exact.numerator
        nearest = math.floor(exact + Fraction(1, 2))
        if rounding:
            return nearest
        # A float such as 0.29 is the lattice point 29/100 if no other float is nearer to it and no other point to the float.
        if isinstance(value, float) and math.ulp(value) < self.step and self._value(nearest) == value:
            return nearest
        rule = f"{where} must be a whole multiple of step={readable(self.step)}"
        hint = "Choose the step to fit the data, or pass round_to_lattice=True and allow for it in the sensitivity."
        raise OffLattice(show(value), rule, hint)

    def _array(self, value: Array, rounding: bool) -> Array:
        _refuse_empty(value.size)
        kind = value.dtype.kind
        if kind in "iu" and self.step == 1:
            return value.astype(object) if kind == "u" and span(value) >= INT64 else value.astype(np.int64, copy=False)
        if kind == "f" and value.itemsize <= 8 and self.step == 1 and np.isfinite(value).all() and span(value) < 2**52:
            below = np.floor(value.astype(np.float64))
            if rounding:  # x - floor(x) is exact, or so close to 1 that it stays above 1/2
                below += value - below >= 0.5
            if rounding or bool((below == value).all()):
                return below.astype(np.int64)
        if kind not in "iufO":
            rule = f"an array of dtype {value.dtype} does not hold numbers to release"
            raise InvalidInput(show(value), rule, "Convert it to integers or floats.")
        flat = [self._one(x, rounding, f"element {i}") for i, x in enumerate(value.ravel().tolist())]
        return narrow(flat).reshape(value.shape)


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
    return narrow((steps.astype(object) + noise.astype(object)).ravel().tolist()).reshape(steps.shape)


def _refuse_empty(size: int) -> None:
    if size == 0:
        raise InvalidInput("no values", "there must be something to release", "Pass at least one number.")

"""Numbers as the caller meant them: read exactly, rounded only in the safe direction.

A float such as 0.1 has two readings: its binary value (a hair above 1/10) and the decimal that was typed (1/10). A promise
(sensitivity, epsilon, delta, confidence) must hold under both, so it is read as the pair of bounds; a definite object
(scale, step, a probability) is read as the decimal.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Rational, Real
from typing import Any, TypeAlias

from sordino.errors import InvalidInput

Number: TypeAlias = int | float | Fraction | Decimal

__all__ = ["Bounds", "Number", "bounds", "closed_unit", "decimal_reading", "exact_binary", "float_lower", "float_upper",
           "open_unit", "positive", "show"]  # fmt: skip


@dataclass(frozen=True)
class Bounds:
    """The smallest and the largest reading of one number; equal unless it came as a float."""

    lower: Fraction
    upper: Fraction


def show(value: object) -> str:
    """A short text of any value for an error message; NumPy's scalars as plain numbers."""
    text = repr(value.item() if hasattr(value, "item") and getattr(value, "ndim", 1) == 0 else value)
    return text if len(text) <= 80 else text[:77] + "..."


def _refuse(name: str, value: object, rule: str, hint: str) -> InvalidInput:
    return InvalidInput(f"{name}={show(value)}", rule, hint)


def _checked(name: str, value: Any) -> Any:
    """`value` if it is one finite real number, else a refusal."""
    if isinstance(value, bool) or not isinstance(value, Real | Decimal):
        hint = "Pass an int, float, Fraction or Decimal."
        raise _refuse(name, value, f"{name} must be a number, not {type(value).__name__}", hint)
    if not (isinstance(value, Rational) or math.isfinite(value)):
        raise _refuse(name, value, f"{name} must be finite", "Pass an ordinary finite number.")
    return value


def exact_binary(value: Any) -> Fraction:
    """The exact value of a checked number, bit for bit."""
    if isinstance(value, Integral):
        return Fraction(int(value))
    if isinstance(value, Rational):
        return Fraction(int(value.numerator), int(value.denominator))
    return Fraction(*value.as_integer_ratio())


def _typed_decimal(value: Any) -> Fraction:
    """The shortest decimal that names the float, which is what was typed; other numbers exactly."""
    if isinstance(value, Rational | Decimal):
        return exact_binary(value)
    return Fraction(str(value))


def decimal_reading(name: str, value: Any) -> Fraction:
    """One definite rational for a number: floats by their shortest decimal.

    Example:
        >>> decimal_reading("step", 0.01)
        Fraction(1, 100)
    """
    return _typed_decimal(_checked(name, value))


def bounds(name: str, value: Any) -> Bounds:
    """Both readings of a number, smallest and largest.

    Example:
        >>> b = bounds("epsilon", 0.1)
        >>> b.lower == Fraction(1, 10) < b.upper == Fraction(0.1)
        True
    """
    value = _checked(name, value)
    a, b = exact_binary(value), _typed_decimal(value)
    return Bounds(min(a, b), max(a, b))


def _require(name: str, value: object, holds: Callable[[Fraction], bool], read: Bounds, rule: str, hint: str) -> Bounds:
    if not (holds(read.lower) and holds(read.upper)):
        raise _refuse(name, value, f"{name} must be {rule}", hint)
    return read


def positive(name: str, value: Any, hint: str = "Pass a number greater than zero.") -> Bounds:
    """Both readings of a number that must be greater than zero."""
    return _require(name, value, lambda x: x > 0, bounds(name, value), "greater than zero", hint)


def open_unit(name: str, value: Any, hint: str = "Pass a number such as 0.95.") -> Bounds:
    """Both readings of a number that must lie strictly between zero and one."""
    return _require(name, value, lambda x: 0 < x < 1, bounds(name, value), "strictly between 0 and 1", hint)


def closed_unit(name: str, value: Any, hint: str = "Pass a probability.") -> Bounds:
    """Both readings of a number that must lie between zero and one, ends included."""
    return _require(name, value, lambda x: 0 <= x <= 1, bounds(name, value), "between 0 and 1", hint)


def float_upper(value: Fraction) -> float:
    """The smallest float that is not below `value` (inf where floats end)."""
    try:
        nearest = float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.nextafter(math.inf, 0.0)
    return nearest if nearest == math.inf or Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


def float_lower(value: Fraction) -> float:
    """The largest float that is not above `value`."""
    return -float_upper(-value)


def readable(value: Fraction) -> str:
    """A rational as people write it: 3, 0.01, 10/3; a long one as the nearest float."""
    if value.denominator == 1:
        return str(value.numerator)
    nearest = repr(float_upper(value)) if abs(value) < 10**300 else str(value)
    if len(nearest) < 20 and Fraction(nearest) == value:
        return nearest
    plain = str(value)
    return plain if len(plain) <= 12 else nearest

"""Numbers as the caller meant them: read exactly, rounded only in the safe direction.

A float such as 0.1 has two readings: its binary value (a hair above 1/10) and the decimal that was typed (1/10). A
promise (sensitivity, epsilon, delta, confidence) must hold under both, so it is read as the pair of bounds; a definite
object (scale, step, a probability) is read as the decimal.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from numbers import Integral, Rational, Real
from typing import Any, TypeAlias

from sordino.errors import InvalidInput

Number: TypeAlias = int | float | Fraction | Decimal

_MOST_DIGITS = 5000

__all__ = ["Bounds", "Number", "bounds", "brief", "closed_unit", "decimal_reading", "exact_binary", "float_lower",
           "float_upper", "four_digits", "is_finite", "least_reading", "open_unit", "positive", "readable",
           "show", "whole"]  # fmt: skip


@dataclass(frozen=True)
class Bounds:
    """The smallest and the largest reading of one number; equal unless it came as a float."""

    lower: Fraction
    upper: Fraction


def show(value: object) -> str:
    """A short text of any value for an error message; NumPy's scalars as plain numbers."""
    if isinstance(value, int) and abs(value) >= 10**80:
        return f"an integer of {value.bit_length()} bits"
    if isinstance(value, Fraction) and max(abs(value.numerator), value.denominator) >= 10**80:
        return f"a fraction of {value.numerator.bit_length()} over {value.denominator.bit_length()} bits"
    if isinstance(value, Fraction):
        return str(value)
    text = repr(
        value.item() if hasattr(value, "item") and getattr(value, "ndim", 1) == 0 else value
    )
    return text if len(text) <= 80 else text[:77] + "..."


def _refuse(name: str, value: object, rule: str, hint: str) -> InvalidInput:
    return InvalidInput(f"{name}={show(value)}", rule, hint)


def _checked(name: str, value: Any) -> Any:
    """`value` if it is one finite real number, else a refusal."""
    if isinstance(value, bool) or not isinstance(value, Real | Decimal):
        hint = "Pass an int, float, Fraction or Decimal."
        raise _refuse(name, value, f"{name} must be a number, not {type(value).__name__}", hint)
    if not is_finite(value):
        raise _refuse(name, value, f"{name} must be finite", "Pass an ordinary finite number.")
    _expect_short(name, value)
    return value


def _expect_short(name: str, value: Any) -> None:
    """Refuse a decimal such as 1e9999999, few letters that stand for a fraction which takes minutes to write down."""
    if isinstance(value, Decimal) and (
        abs(value.adjusted()) > _MOST_DIGITS or len(value.as_tuple().digits) > _MOST_DIGITS
    ):
        rule = f"a decimal number has at most {_MOST_DIGITS:,} digits, before and after the point"
        raise _refuse(name, value, rule, "Pass an ordinary number.")


def is_finite(value: Any) -> bool:
    """Whether a real number is neither infinite nor missing."""
    if isinstance(value, Rational):
        return True
    return value.is_finite() if isinstance(value, Decimal) else math.isfinite(value)


def exact_binary(value: Any) -> Fraction:
    """The exact value of a checked number, bit for bit."""
    if isinstance(value, Integral):
        return Fraction(int(value))
    if isinstance(value, Rational):
        return Fraction(int(value.numerator), int(value.denominator))
    _expect_short("a number", value)
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


def _require(
    name: str, value: object, holds: Callable[[Fraction], bool], read: Bounds, rule: str, hint: str
) -> Bounds:
    if not (holds(read.lower) and holds(read.upper)):
        raise _refuse(name, value, f"{name} must be {rule}", hint)
    return read


def positive(name: str, value: Any, hint: str = "Pass a number greater than zero.") -> Bounds:
    """Both readings of a number that must be greater than zero."""
    return _require(name, value, lambda x: x > 0, bounds(name, value), "greater than zero", hint)


def open_unit(name: str, value: Any, hint: str = "Pass a number such as 0.95.") -> Bounds:
    """Both readings of a number that must lie strictly between zero and one."""
    return _require(
        name, value, lambda x: 0 < x < 1, bounds(name, value), "strictly between 0 and 1", hint
    )


def closed_unit(name: str, value: Any, hint: str = "Pass a probability.") -> Bounds:
    """Both readings of a number that must lie between zero and one, ends included."""
    return _require(
        name, value, lambda x: 0 <= x <= 1, bounds(name, value), "between 0 and 1", hint
    )


def whole(name: str, value: Any, least: int, most: int, hint: str) -> int:
    """A whole number of any type between these ends, or a refusal."""
    real = isinstance(value, int | float | Integral) and not isinstance(value, bool)
    if not real or not least <= value <= most or value != int(value):
        rule = f"{name} must be a whole number from {least:,} to {most:,}"
        raise InvalidInput(f"{name}={show(value)}", rule, hint)
    return int(value)


def least_reading(value: float) -> Fraction:
    """The smaller of a finite float's two readings."""
    return min(Fraction(value), Fraction(repr(value)))


def float_upper(value: Fraction) -> float:
    """The smallest float that is not below `value` under either of its readings (inf where floats end)."""
    try:
        candidate = math.nextafter(float(value), -math.inf)
    except OverflowError:
        return math.inf if value > 0 else -math.nextafter(math.inf, 0.0)
    while candidate < math.inf and least_reading(candidate) < value:
        candidate = math.nextafter(candidate, math.inf)
    return candidate + 0.0  # never -0.0


def float_lower(value: Fraction) -> float:
    """The largest float that is not above `value` under either of its readings."""
    return -float_upper(-value)


def brief(value: Fraction, *, up: bool) -> str:
    """A rational in few digits, for the eye: itself if it is short, else four digits, rounded to the side that is told.

    Example:
        >>> brief(Fraction(3, 10), up=True), brief(Fraction(2, 3), up=True), brief(Fraction(2, 3), up=False)
        ('0.3', '0.6667', '0.6666')
    """
    plain = readable(value)
    if len(plain) <= 7 and "/" not in plain:
        return plain
    rounding = ROUND_CEILING if up else ROUND_FLOOR
    context = Context(prec=4, rounding=rounding, Emin=-(10**9), Emax=10**9)
    few = context.divide(Decimal(value.numerator), Decimal(value.denominator)).normalize(context)
    return f"{few:f}" if 0 <= few.adjusted() < 7 else f"{few:g}"  # 10, not 1e+1


def four_digits(x: Fraction | float) -> str:
    """Four digits, without an exponent where people would not write one."""
    if isinstance(x, Fraction) and x > 10**300:
        return f"10^{len(str(math.floor(x))) - 1}"
    value = float(f"{float(x):.4g}")
    return f"{value:,.10g}" if value == 0 or 1e-4 <= abs(value) < 1e12 else f"{value:.4g}"


def readable(value: Fraction) -> str:
    """A rational as people write it: 3, 0.01, 10/3; a long one as the nearest float, for the eye only."""
    if value.denominator == 1:
        return show(value.numerator)
    if value.numerator.bit_length() + value.denominator.bit_length() <= 40:
        plain = str(value)
        nearest = repr(float(value))
        return nearest if Fraction(nearest) == value else plain
    try:
        return repr(float(value))
    except OverflowError:
        return f"about 2^{value.numerator.bit_length() - value.denominator.bit_length()}"

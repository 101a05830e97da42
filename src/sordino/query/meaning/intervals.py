"""Interval arithmetic: what is known of a sum, a product, a rounding, from what is known of the numbers in it.

Bounds are exact; a value computed in floats may pass them by its rounding error. Steps are lattices: every value is a
multiple of the step (of floats: after rounding). A result that is computed in 64-bit integers is exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from fractions import Fraction

from flint import arb

from sordino.errors import Code, InvalidInput
from sordino.privacy.ball import ball, certified, exact_lower, exact_upper
from sordino.query.types import Number

__all__ = ["absolute", "add", "clamp", "divide", "ends", "exponential", "floating", "greatest", "hull", "least", "logarithm",
           "modulo", "multiply", "negate", "power", "rounded", "square_root", "subtract"]  # fmt: skip

_NEAR_ZERO = Fraction(1, 2**40)
_LARGEST_POWER = 1000
"""Powers of two up to this exponent are told apart; larger results have no upper bound,
smaller ones the lower bound 0.
"""


def ends(x: Number) -> tuple[Fraction, Fraction]:
    """Both bounds of a number that must have them."""
    if x.lower is None or x.upper is None:
        hint = "Declare its min and max."
        what = "a number without bounds"
        raise InvalidInput(what, "this needs both bounds of the number", hint, Code.DECLARATION)
    return x.lower, x.upper


def _is_zero(x: Number) -> bool:
    return x.lower == x.upper == 0


def _common_step(numbers: Iterable[Number]) -> Fraction | None:
    """The coarsest lattice that holds all the numbers' lattices; zero lies on every lattice."""
    step = Fraction(0)
    for number in numbers:
        if _is_zero(number):
            continue
        if number.step is None:
            return None
        a, b = step, number.step
        step = Fraction(
            math.gcd(a.numerator * b.denominator, b.numerator * a.denominator),
            a.denominator * b.denominator,
        )
    return step or Fraction(1)


def floating(x: Number) -> Number:
    """The type of a result that is computed in floats: a step of a half,
    where it would else pass for a 64-bit integer.
    """
    return replace(x, step=Fraction(1, 2), values=None) if x.integral else x


def add(x: Number, y: Number) -> Number:
    """The type of x + y."""
    lower = None if x.lower is None or y.lower is None else x.lower + y.lower
    upper = None if x.upper is None or y.upper is None else x.upper + y.upper
    return Number(lower, upper, _common_step((x, y)), None, x.nullable or y.nullable)


def negate(x: Number) -> Number:
    """The type of -x."""
    lower, upper = (None if end is None else -end for end in (x.upper, x.lower))
    return Number(
        lower, upper, x.step, None if x.values is None else tuple(-v for v in x.values), x.nullable
    )


def subtract(x: Number, y: Number) -> Number:
    """The type of x - y."""
    return add(x, negate(y))


def multiply(x: Number, y: Number) -> Number:
    """The type of x * y."""
    step = None if x.step is None or y.step is None else x.step * y.step
    nullable = x.nullable or y.nullable
    if _is_zero(x) or _is_zero(y):
        return Number(Fraction(0), Fraction(0), Fraction(1), None, nullable)
    if x.lower is None or x.upper is None or y.lower is None or y.upper is None:
        if x.lower is not None and y.lower is not None and x.lower >= 0 and y.lower >= 0:
            return Number(x.lower * y.lower, None, step, None, nullable)
        return Number(None, None, step, None, nullable)
    corners = [a * b for a in (x.lower, x.upper) for b in (y.lower, y.upper)]
    return Number(min(corners), max(corners), step, None, nullable)


def divide(x: Number, y: Number) -> Number:
    """The type of x / y, which is NULL where y is zero; bounds only where y keeps away from zero."""
    if y.lower is None or y.upper is None or y.lower <= 0 <= y.upper:
        return Number(nullable=True)
    if y.lower == y.upper:
        one = Number(1 / y.lower, 1 / y.lower, 1 / abs(y.lower), None, y.nullable)
        return multiply(x, one)
    inverse = Number(1 / y.upper, 1 / y.lower)
    product = multiply(x, inverse)
    # a float may still round to zero where its exact bounds do not reach it
    return Number(product.lower, product.upper, None, None, True)


def modulo(x: Number, divisor: int) -> Number:
    """The type of the remainder of a whole number, which is never negative."""
    if x.lower is not None and x.upper is not None and 0 <= x.lower and x.upper < divisor:
        return Number(x.lower, x.upper, Fraction(1), None, x.nullable)
    return Number(Fraction(0), Fraction(divisor - 1), Fraction(1), None, x.nullable)


def absolute(x: Number) -> Number:
    """The type of |x|."""
    if x.lower is not None and x.lower >= 0:
        return x
    if x.upper is not None and x.upper <= 0:
        return negate(x)
    upper = None if x.lower is None or x.upper is None else max(-x.lower, x.upper)
    return Number(Fraction(0), upper, x.step, None, x.nullable)


def rounded(x: Number, to_whole: Callable[[Fraction], int], width: Fraction) -> Number:
    """The type of to_whole(x / width) * width for a monotone rounding."""
    lower, upper = (
        None if end is None else to_whole(end / width) * width for end in (x.lower, x.upper)
    )
    return Number(lower, upper, width, None, x.nullable)


def hull(numbers: Sequence[Number]) -> Number:
    """The type of a value that is one of the numbers."""
    lowers, uppers = [x.lower for x in numbers], [x.upper for x in numbers]
    lower = None if None in lowers else min(end for end in lowers if end is not None)
    upper = None if None in uppers else max(end for end in uppers if end is not None)
    listed = [x.values for x in numbers if x.values is not None]
    values = (
        tuple(dict.fromkeys(v for few in listed for v in few))
        if len(listed) == len(numbers)
        else None
    )
    return Number(lower, upper, _common_step(numbers), values, any(x.nullable for x in numbers))


def least(numbers: Sequence[Number]) -> Number:
    """The type of the smallest number, NULLs skipped: below every number that is never NULL."""
    caps = [x.upper for x in numbers if not x.nullable and x.upper is not None]
    one = hull(numbers)
    if one.upper is not None:
        caps.append(one.upper)
    upper = min(caps, default=None)
    lower = one.lower
    return Number(
        lower, upper, one.step, _within(one.values, lower, upper), all(x.nullable for x in numbers)
    )


def greatest(numbers: Sequence[Number]) -> Number:
    """The type of the largest number, NULLs skipped: above every number that is never NULL."""
    return negate(least([negate(x) for x in numbers]))


def clamp(x: Number, low: Number, high: Number) -> Number:
    """The type of x moved into [low, high], two constants."""
    (bottom, _), (_, top) = ends(low), ends(high)
    lower = bottom if x.lower is None else min(max(x.lower, bottom), top)
    upper = top if x.upper is None else min(max(x.upper, bottom), top)
    reached = [low] * (x.lower is None or x.lower < bottom) + [high] * (
        x.upper is None or x.upper > top
    )
    values = None
    if x.values is not None and all(
        end.step is not None and end.step.denominator == 1 for end in reached
    ):
        values = tuple(dict.fromkeys(int(min(max(Fraction(v), bottom), top)) for v in x.values))
    return Number(lower, upper, _common_step((x, *reached)), values, x.nullable)


def _outward(compute: Callable[[], arb]) -> tuple[Fraction, Fraction]:
    """Two short numbers between which a value certainly lies; the value itself where it is short."""
    value = certified(compute, 64)
    return -_short(-exact_lower(value)), _short(exact_upper(value))


def _short(value: Fraction) -> Fraction:
    """A number of about twelve digits that is not below the value."""
    bits = value.numerator.bit_length() - value.denominator.bit_length()
    unit = Fraction(10) ** (math.floor(bits * math.log10(2)) - 11)
    return math.ceil(value / unit) * unit


def logarithm(x: Number, base: int | None = None) -> Number:
    """The type of the natural logarithm, or of the one to a base; NULL where x is not above zero."""

    def compute(value: Fraction) -> tuple[Fraction, Fraction]:
        return _outward(
            lambda: ball(value).log() if base is None else ball(value).log() / ball(base).log()
        )

    # the least whole number above zero is the step; floats come as near to zero as they like
    least = x.lower if x.lower is not None and x.lower > 0 else x.step if x.integral else None
    most = x.upper if x.upper is None or x.upper > (least or 0) else least
    return Number(
        None if least is None else compute(least)[0], None if most is None else compute(most)[1]
    )


def exponential(x: Number) -> Number:
    """The type of e to the x."""
    low, high = (
        end if end is not None and abs(end) <= _LARGEST_POWER / 2 else None
        for end in (x.lower, x.upper)
    )
    lower = Fraction(0) if low is None else _outward(lambda: ball(low).exp())[0]
    upper = None if high is None else _outward(lambda: ball(high).exp())[1]
    return Number(lower, upper)


def square_root(x: Number) -> Number:
    """The type of the square root; NULL where x is below zero."""
    low, high = (None if end is None else max(end, Fraction(0)) for end in (x.lower, x.upper))
    lower = Fraction(0) if low is None else _outward(lambda: ball(low).sqrt())[0]
    upper = None if high is None else _outward(lambda: ball(high).sqrt())[1]
    return Number(lower, upper)


def power(x: Number, y: Number) -> Number:
    """The type of x to the y, which is NULL where it is no finite real number.

    Of positive numbers a power is monotone in each of x and y, so that its extremes are at the corners.
    """
    constant = y.lower if y.lower is not None and y.lower == y.upper else None
    if constant is not None and constant.denominator == 1 and 0 <= constant <= 64:
        return _whole_power(x, int(constant))
    negative = x.lower is None or x.lower < 0
    if negative and (constant is None or constant.denominator == 1):
        return Number()
    # a float may have rounded to zero, where powers are not continuous
    lower, upper = (x.lower if x.lower is not None and x.lower > _NEAR_ZERO else None), x.upper
    if upper is None or y.lower is None or y.upper is None or (not lower and y.lower < 0):
        return Number(Fraction(0), None)
    bases = [base for base in (lower, upper) if base is not None and base > 0]
    corners = [_corner(base, exponent) for base in bases for exponent in (y.lower, y.upper)]
    highs = [high for _, high in corners if high is not None]
    if not lower:  # zero to a positive power is zero, and zero to the zero is one
        corners, highs = (
            [*corners, (Fraction(0), None)],
            [*highs, Fraction(1 if y.lower < _NEAR_ZERO else 0)],
        )
    return Number(
        min(low for low, _ in corners), max(highs) if len(highs) == len(corners) else None
    )


def _whole_power(x: Number, n: int) -> Number:
    """The type of a product of n equal numbers; without bounds if they are unknown or huge."""
    if n == 0:
        return Number(Fraction(1), Fraction(1))
    if (
        x.lower is None
        or x.upper is None
        or n * max(_bits(x.lower), _bits(x.upper)) > 4 * _LARGEST_POWER
    ):
        return Number(Fraction(0) if n % 2 == 0 or (x.lower is not None and x.lower >= 0) else None)
    results = [x.lower**n, x.upper**n] + [Fraction(0)] * (x.lower < 0 < x.upper)
    return Number(min(results), max(results), None if x.step is None else x.step**n)


def _corner(base: Fraction, exponent: Fraction) -> tuple[Fraction, Fraction | None]:
    """Bounds of a power of a positive number."""
    if abs(exponent) * _bits(base) > _LARGEST_POWER:
        return Fraction(0), None
    return _outward(lambda: ball(base) ** ball(exponent))


def _bits(value: Fraction) -> int:
    return max(value.numerator.bit_length(), value.denominator.bit_length())


def _within(
    values: tuple[int, ...] | None, lower: Fraction | None, upper: Fraction | None
) -> tuple[int, ...] | None:
    if values is None:
        return None
    return tuple(
        v for v in values if (lower is None or lower <= v) and (upper is None or v <= upper)
    )

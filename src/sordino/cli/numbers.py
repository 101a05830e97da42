"""Numbers as people type and read them: `0.1` is exactly one tenth, and what is shown is rounded safely."""

from __future__ import annotations

import math
import re
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction

from sordino.errors import InvalidInput
from sordino.privacy.typed_numbers import as_typed, exact

__all__ = [
    "as_typed",
    "digits_below",
    "exact",
    "positive",
    "rounded_down",
    "rounded_up",
    "share",
    "tiny",
    "whole",
]

_THOUSANDS = re.compile(r"\d{1,3}(,\d{3})+", re.ASCII)
_SMALLEST = Fraction(1, 10**12)


def share(text: str, option: str) -> Fraction:
    """The number that was typed, which may be in percent.

    Example:
        >>> share("5%", "--error"), share("0.05", "--error")
        (Fraction(1, 20), Fraction(1, 20))
    """
    typed = text.strip()
    return exact(typed[:-1], option) / 100 if typed.endswith("%") else exact(typed, option)


def whole(text: str, option: str, least: int, most: int, example: int) -> int:
    """The whole number that was typed, in any of the ways in which people write large ones.

    Example:
        >>> whole("1e6", "--persons", 1, 10**9, 1000), whole("20,000", "--persons", 1, 10**9, 1000)
        (1000000, 20000)
    """
    typed = text.strip()
    try:
        value = exact(typed.replace(",", "") if _THOUSANDS.fullmatch(typed) else typed, option)
    except InvalidInput:
        value = Fraction(1, 2)
    if value.denominator != 1 or not least <= value <= most:
        rule = f"it must be a whole number from {least:,} to {most:,}"
        raise InvalidInput(as_typed(option, text), rule, f"Write {option} {example}.")
    return int(value)


def positive(text: str, option: str) -> Fraction:
    """The number that was typed, if it is greater than zero and of a size that means something."""
    value = exact(text, option)
    if not _SMALLEST <= value <= 1 / _SMALLEST:
        rule = (
            "it must be greater than zero"
            if value <= 0
            else "it is too small or too large to mean anything here"
        )
        raise InvalidInput(
            f"{option} {text!r}",
            rule,
            f"Write {option} 0.5, or another number between 1e-12 and 1e+12.",
        )
    return value


def tiny(text: str, option: str) -> Fraction:
    """The delta that was typed: zero, or a probability below one that is not absurdly small."""
    value = exact(text, option)
    if value and not Fraction(1, 10**100) <= value < 1:
        raise InvalidInput(
            f"{option} {text!r}",
            "it must be 0, or at least 1e-100 and below 1",
            f"Write {option} 1e-6.",
        )
    return value


def digits_below(value: Fraction | float, digits: int = 4) -> Fraction:
    """The largest number of this many decimal digits that is not above the value.

    Example:
        >>> digits_below(Fraction(2, 3))
        Fraction(3333, 5000)
    """
    return Fraction(_decimal(value, Context(prec=digits, rounding=ROUND_FLOOR)))


def rounded_up(value: Fraction | float, digits: int = 4) -> str:
    """A text of this many digits that is never below the value, a float being read to twelve digits.

    Example:
        >>> tuple(map(rounded_up, (Fraction(2, 3), 0.1, 1e-6, 5294.6, Fraction(10**9))))
        ('0.6667', '0.1', '1e-06', '5,295', '1e+09')
    """
    return _text(value, Context(prec=digits, rounding=ROUND_CEILING))


def rounded_down(value: Fraction | float, digits: int = 4) -> str:
    """A text of this many digits that is never above the value, a float being read to twelve digits.

    Example:
        >>> rounded_down(Fraction(2, 3)), rounded_down(0.1)
        ('0.6666', '0.1')
    """
    return _text(value, Context(prec=digits, rounding=ROUND_FLOOR))


def _decimal(value: Fraction | float, context: Context) -> Decimal:
    if isinstance(value, float):  # by the decimal that names it
        return context.plus(Decimal(repr(value)))
    return context.divide(Decimal(value.numerator), Decimal(value.denominator))


def _text(value: Fraction | float, context: Context) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return "unbounded"
    # 0.7 in floats may have become 0.7000000000000001, which is nothing to read 0.7001 from
    short = _decimal(float(f"{value:.12g}") if isinstance(value, float) else value, context)
    if short and not Decimal("1e-4") <= abs(short) < 10**8:
        mantissa, _, exponent = f"{short:e}".partition("e")
        return f"{_without_zeros(mantissa)}e{int(exponent):+03d}"
    return _without_zeros(f"{short:,f}")


def _without_zeros(text: str) -> str:
    """Without the zeros that end a decimal fraction."""
    return text.rstrip("0").rstrip(".") if "." in text else text

"""The privacy parameter of every local protocol: how much likelier a report may be under one truth than another."""

from __future__ import annotations

import math
from fractions import Fraction

from sordino.errors import InvalidInput
from sordino.privacy.ball import ball, exact_lower, working
from sordino.privacy.exact import Number, decimal_reading, positive, show

__all__ = ["checked_odds", "epsilons", "odds_below"]

_LARGEST, _LEAST = 100, Fraction(1, 10**12)


def odds_below(epsilon: Number) -> Fraction:
    """A rational number just below e^epsilon, and above 1.

    Rounded down to 64 bits of e^epsilon - 1, and one unit more, so that balls of 96 bits see that its logarithm is
    smaller.
    """
    read = positive("epsilon", epsilon)
    e = read.lower
    if e > _LARGEST:
        rule = f"epsilon must be at most {_LARGEST}: beyond it nothing is hidden"
        raise InvalidInput(f"epsilon={show(epsilon)}", rule, "Pass a number such as 1.")
    if read.upper < _LEAST:
        rule = "epsilon must be at least 10^-12: below it no number of persons tells anything"
        raise InvalidInput(f"epsilon={show(epsilon)}", rule, "Pass a number such as 1.")
    size = 64 + max(0, e.denominator.bit_length() - e.numerator.bit_length())
    with working(3 * size + 256):
        numerator = exact_lower(ball(e).exp() * 2**size)
    return Fraction(math.floor(numerator) - 1, 2**size)


def checked_odds(odds: Number) -> Fraction:
    """Odds as an exact number, which must be above 1."""
    exact = decimal_reading("odds", odds)
    if exact <= 1:
        rule = "odds are e^epsilon, so they must be above 1"
        raise InvalidInput(f"odds={show(odds)}", rule, "Use .calibrated(epsilon=...), or pass odds=3 for epsilon ln 3.")
    return exact


def epsilons(one: Fraction, two: Fraction) -> tuple[str, str]:
    """The logarithms of two odds, for the eye: in as few digits as tell them apart, at most 12."""
    a, b = _logarithm(one), _logarithm(two)
    texts = [(f"{a:.{digits}g}", f"{b:.{digits}g}") for digits in (4, 6, 9, 12)]
    return next((pair for pair in texts if pair[0] != pair[1]), texts[0])


def _logarithm(odds: Fraction) -> float:
    return math.log1p(float(odds - 1)) if odds < 2 else math.log(odds.numerator) - math.log(odds.denominator)

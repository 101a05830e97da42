"""A claim of privacy as its claimant may have meant it: a float stands for any number that rounds to it.

log(3) has no exact float, so a claim of `math.log(3)` is not refuted by a digit that floats cannot hold: it counts as one
unit in the last place more. Zero, whole numbers, Fractions and Decimals are exactly what they say.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np

from sordino.errors import InvalidInput
from sordino.privacy.exact import bounds, closed_unit, float_upper, show

__all__ = ["Claim"]


@dataclass(frozen=True)
class Claim:
    """An (epsilon, delta) at its most generous reading, and as floats for the report."""

    epsilon: Fraction
    delta: Fraction
    shown_epsilon: float
    shown_delta: float

    @classmethod
    def read(cls, epsilon: Any, delta: Any) -> Self:
        """The claim, or a refusal of numbers that are none."""
        e = bounds("epsilon", epsilon)
        if e.lower < 0:
            hint = "Pass zero or more, such as 1.0."
            raise InvalidInput(f"epsilon={show(epsilon)}", "epsilon must not be negative", hint)
        d = closed_unit("delta", delta, "Pass a small probability such as 1e-6, or 0 for pure privacy.")
        return cls(_generous(epsilon, e.upper), min(Fraction(1), _generous(delta, d.upper)), _plain(epsilon), _plain(delta))


def _generous(given: Any, upper: Fraction) -> Fraction:
    if isinstance(given, float | np.floating) and given != 0:
        return max(upper, Fraction(math.nextafter(float(given), math.inf)))
    return upper


def _plain(given: Any) -> float:
    return float(given) if isinstance(given, float | np.floating) else float_upper(Fraction(given))

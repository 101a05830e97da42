"""The pair N(mu, 1) and N(0, 1), which Gaussian privacy compares with: its delta, and the mu that a guarantee allows.

The formula and that delta grows with mu are proven in mechanisms/gaussian.md. Apart from `GaussianLoss`, so that a
budget can be read without the arrays that the views of a loss need.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial

from flint import arb

from sordino.errors import InvalidInput
from sordino.privacy.ball import at_most, ball, certified, normal_tail, upper
from sordino.privacy.exact import show
from sordino.privacy.float_search import nearest_good, rough_log, smallest_float

__all__ = ["delta_ball", "largest_mu"]

_SMALLEST_MU = 1e-290
_NEWTON = 40


def delta_ball(mu: Fraction, epsilon: Fraction) -> arb:
    """The hockey-stick divergence of the pair at the working precision.

    Source: Balle and Wang (2018), Theorem 8.
    """
    middle, half = epsilon / mu, mu / 2
    return normal_tail(ball(middle - half)) - ball(epsilon).exp() * normal_tail(ball(middle + half))


def largest_mu(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The largest float mu such that every mu-Gaussian-private release is certainly (epsilon, delta)-private.

    For epsilon >= 0 and 0 < delta < 1. delta grows with mu, so the search is a bisection over floats, begun at the
    larger of two values that satisfy: the total variation is at most mu/sqrt(2 pi), and P[L > epsilon] <= delta by the
    tail bound exp(-t^2/2) on a standard normal.
    """

    def good(mu: float) -> bool:
        return at_most(partial(delta_ball, Fraction(mu), epsilon), delta)

    spread = math.sqrt(-2 * rough_log(delta))
    by_tail = 2 * float(epsilon) / (math.sqrt(spread**2 + 2 * float(epsilon)) + spread)
    low = max(by_tail, float(delta) * math.sqrt(2 * math.pi)) * (1 - 2.0**-40)
    if low < _SMALLEST_MU:
        asked = f"epsilon={show(float(epsilon))}, delta={show(float(delta))}"
        raise InvalidInput(
            asked,
            f"they ask for mu below {_SMALLEST_MU}",
            "Such a guarantee allows no useful release.",
        )
    near = nearest_good(lambda x: good(-x), -_rough_mu(epsilon, delta, low))
    if near is not None:
        return Fraction(-near)
    high = 2 * low
    while good(high):
        low, high = high, 2 * high
    return Fraction(-smallest_float(lambda x: good(-x), -high, -low))


def _rough_mu(epsilon: Fraction, delta: Fraction, start: float) -> float:
    """About the mu whose delta is the given one, by Newton's method on log delta."""
    guess, target, e = start, rough_log(delta), float(epsilon)
    for _ in range(_NEWTON):
        value = min(1.0, upper(certified(partial(delta_ball, Fraction(guess), epsilon))))
        slope = math.exp(-((e / guess - guess / 2) ** 2) / 2) / math.sqrt(2 * math.pi) / value
        move = (target - math.log(value)) / slope if slope > 0 else 0.0
        guess = max(guess + move, guess / 2)
        if abs(move) <= 2.0**-50 * guess:
            break
    return guess

"""From Renyi divergences of all orders to epsilon and delta, at the best order found.

Every order gives a valid bound, so the order is searched for in floats and only the last evaluation is certified.
Source: Canonne, Kamath, Steinke (2020), Proposition 12, which holds for every real epsilon.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction

from flint import arb

from sordino.privacy.ball import ball, certified, upper, working

__all__ = ["Divergence", "delta_from", "epsilon_from"]

Divergence = Callable[[Fraction], arb]
"""The Renyi divergence of an order above 1, or a bound on it; infinite where none is known."""

_SEARCH_BITS = 128
_STRIDE, _FARTHEST = 4.0, 80.0  # in octaves of alpha - 1
_GOLDEN, _SECTIONS = (math.sqrt(5) - 1) / 2, 26


def epsilon_from(divergence: Divergence, delta: Fraction, orders: Iterable[Fraction] = ()) -> float:
    """The smallest epsilon found for a delta above 0, rounded up; `orders` are tried besides those of the search."""

    def epsilon(alpha: Fraction) -> arb:
        order = alpha - 1
        return (
            divergence(alpha) + ball(order / alpha).log() - ball(delta * alpha).log() / ball(order)
        )

    best = _best_order(epsilon, orders)
    return upper(certified(lambda: epsilon(best)))


def delta_from(divergence: Divergence, epsilon: Fraction, orders: Iterable[Fraction] = ()) -> arb:
    """The smallest delta found for an epsilon, at the working precision; it may be above 1."""

    def log_delta(alpha: Fraction) -> arb:
        order = ball(alpha - 1)
        return (
            order * (divergence(alpha) - ball(epsilon))
            - ball(alpha).log()
            + order * ball((alpha - 1) / alpha).log()
        )

    return log_delta(_best_order(log_delta, orders)).exp()


def _best_order(bound: Divergence, orders: Iterable[Fraction]) -> Fraction:
    def height(alpha: Fraction) -> float:
        value = float(bound(alpha))
        return math.inf if math.isnan(value) else value

    with working(_SEARCH_BITS):
        octave = _lowest(lambda x: height(1 + Fraction(2.0**x)))
        return min((1 + Fraction(2.0**octave), *orders), key=height)


def _lowest(height: Callable[[float], float]) -> float:
    """Where a function that first falls and then rises is lowest: strides downhill from 0, then golden sections."""
    middle, here = 0.0, height(0.0)
    for stride in (_STRIDE, -_STRIDE):
        while abs(middle) < _FARTHEST and (there := height(middle + stride)) < here:
            middle, here = middle + stride, there
    low, high = middle - _STRIDE, middle + _STRIDE
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    heights = height(left), height(right)
    for _ in range(_SECTIONS):
        if heights[0] <= heights[1]:
            right, high, left = left, right, right - _GOLDEN * (right - low)
            heights = height(left), heights[0]
        else:
            left, low, right = right, left, left + _GOLDEN * (high - left)
            heights = heights[1], height(right)
    return left if heights[0] <= heights[1] else right

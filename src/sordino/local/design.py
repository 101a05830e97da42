"""Sets that speak for their members: how likely, and how large they are best.

A report is one of many sets of `size` out of `points`, `odds` times likelier if it holds the truth. If every pair of
points lies in equally many sets, all below follows from size, points and odds alone. Proof in protocols.md.
"""

from __future__ import annotations

from fractions import Fraction

from sordino.errors import InvalidInput
from sordino.privacy.exact import show

__all__ = ["best_size", "checked_size", "other_of", "own_of"]


def own_of(odds: Fraction, size: int, points: int) -> Fraction:
    """The probability that the reported set holds the truth."""
    return odds * size / (odds * size + points - size)


def other_of(odds: Fraction, size: int, points: int) -> Fraction:
    """The probability that the reported set holds a given point that is not the truth."""
    own = own_of(odds, size, points)
    return (own * (size - 1) + (1 - own) * size) / (points - 1)


def best_size(odds: Fraction, points: int, categories: int) -> int:
    """The size with the least summed variance: near points/(odds + 1)."""

    def total(size: int) -> Fraction:
        p, q = own_of(odds, size, points), other_of(odds, size, points)
        return (p * (1 - p) + (categories - 1) * q * (1 - q)) / (p - q) ** 2

    near = int(points / (odds + 1))
    return min({min(max(near + i, 1), points - 1) for i in range(-2, 4)}, key=lambda size: (total(size), size))


def checked_size(size: object, points: int) -> int:
    """The number of points that a reported set holds."""
    if isinstance(size, bool) or not isinstance(size, int) or not 1 <= size < points:
        rule = f"size must be a whole number from 1 to {points - 1}: the number of points in a reported set"
        raise InvalidInput(f"size={show(size)}", rule, "Use .calibrated(epsilon=...), which finds the best.")
    return size

"""One exact draw at a time, in whole numbers only: what a client needs beyond arithmetic."""

from __future__ import annotations

from fractions import Fraction

from sordino.mechanisms.bits import Bits

__all__ = ["below", "chance"]


def below(limit: int, source: Bits) -> int:
    """A uniform whole number in [0, limit): as many bits as the largest has, redrawn until they fit."""
    size = (limit - 1).bit_length()
    while True:
        drawn = 0
        for _ in range(0, size, 64):
            drawn = drawn << 64 | source.word()
        drawn >>= -size % 64
        if drawn < limit:
            return drawn


def chance(probability: Fraction, source: Bits) -> bool:
    """An event of exactly this probability."""
    return below(probability.denominator, source) < probability.numerator

"""Searching among floats: where to start, and the smallest one that has a property."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from fractions import Fraction

__all__ = ["nearest_good", "rough_log", "smallest_float"]


def rough_log(x: Fraction) -> float:
    """About log x, also where x is no float."""
    return math.log(x.numerator) - math.log(x.denominator)


def smallest_float(good: Callable[[float], bool], low: float, high: float) -> float:
    """The smallest good float in [low, high], for a property that stays once it holds and that holds at `high`."""
    if good(low):
        return low
    bad, best = _rank(low), _rank(high)
    while best - bad > 1:
        middle = (bad + best) // 2
        if good(_float_of_rank(middle)):
            best = middle
        else:
            bad = middle
    return _float_of_rank(best)


def nearest_good(good: Callable[[float], bool], near: float) -> float | None:
    """The smallest good float close to `near`, if it is there."""
    low, high = near - 2.0**-46 * abs(near), near + 2.0**-46 * abs(near)
    if not math.isfinite(near) or good(low) or not good(high):
        return None
    return smallest_float(good, low, high)


def _rank(x: float) -> int:
    """The place of a float in the order of all floats."""
    (bits,) = struct.unpack("<q", struct.pack("<d", x))
    return int(bits) if bits >= 0 else -(int(bits) & (2**63 - 1))


def _float_of_rank(rank: int) -> float:
    (x,) = struct.unpack("<d", struct.pack("<q", abs(rank)))
    return math.copysign(float(x), rank)

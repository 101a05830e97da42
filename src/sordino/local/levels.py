"""How to search: how many levels, how many bits each adds, how many prefixes survive. Chosen by predicted error."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

__all__ = ["MOST_CANDIDATES", "Levels", "best_levels", "best_values", "least_share"]

_MOST_WORK = 4e9
"""Operations on words of 64 reports; some seconds."""
MOST_CANDIDATES = 2**26
"""At one level: their counts take half a gigabyte."""
_MOST_KEPT = 4096
_MOST_LEVELS = 24
_MISSED = 0.05
_FALSE = 0.05


@dataclass(frozen=True)
class Levels:
    """The lengths of the prefixes asked for, the last being whole values, and how many survive each level."""

    lengths: tuple[int, ...]
    kept: int

    @property
    def groups(self) -> int:
        """One group of persons for each level, and one that confirms."""
        return len(self.lengths) + 1

    def candidates(self, level: int) -> int:
        """How many prefixes a level compares."""
        before = self.lengths[level - 1] if level else 0
        return int(min(self.kept, 2**before) * 2 ** (self.lengths[level] - before))

    @property
    def widest(self) -> int:
        """The most prefixes that a level compares."""
        return max(self.candidates(i) for i in range(len(self.lengths)))

    def work(self, persons: int, values: int) -> float:
        """About how many operations on words the search takes."""
        compared = sum(self.candidates(i) for i in range(len(self.lengths)))
        return persons / self.groups * compared / 64 * (2 * values.bit_length() + 1)


def best_values(odds: Fraction) -> int:
    """The power of two nearest to odds + 1, the best number of hash values, in ratio."""
    return int(2 ** min(8, max(1, round(math.log2(float(odds + 1))))))


def best_levels(odds: Fraction, values: int, length: int, persons: int, most: int) -> Levels:
    """The levels that find the smallest shares, among those that take some seconds."""
    options = []
    for count in range(1, min(length, _MOST_LEVELS) + 1):
        kept = 2 << (most - 1).bit_length()  # room for prefixes that are frequent by many rare values
        while kept <= max(_MOST_KEPT, 4 * most):
            step = max(1, -(-(length - kept.bit_length() + 1) // count))
            first = length - (count - 1) * step
            if first >= 1:
                options.append(Levels((*range(first, length, step), length), kept))
            kept *= 2
    options = [one for one in options if one.widest <= MOST_CANDIDATES]
    slow = [one.work(persons, values) > _MOST_WORK for one in options]
    if all(slow):
        return min(options, key=lambda one: one.work(persons, values))
    quick = [one for one, too_slow in zip(options, slow, strict=True) if not too_slow]
    return min(quick, key=lambda one: (least_share(one, odds, values, persons, most), one.work(persons, values)))


def least_share(levels: Levels, odds: Fraction, values: int, persons: int, most: int) -> float:
    """The share that is found with probability 95 % or so, by the normal law of estimates.

    It must be among the best at each level against noise alone, and differ from 0 in the group that confirms.
    """
    from scipy.special import ndtri

    e, g = float(odds), values
    own = e / (e + g - 1)
    deviation = math.sqrt((g - 1) / g**2 * levels.groups / persons) / (own - 1 / g)
    survive = [
        (most if i == len(levels.lengths) - 1 else levels.kept) / levels.candidates(i) for i in range(levels.groups - 1)
    ]
    noise = max(float(ndtri(1 - min(0.5, min(survive)))), float(ndtri(1 - _FALSE / most)))
    return deviation * (noise + float(ndtri(1 - _MISSED / levels.groups)))

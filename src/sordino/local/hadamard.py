"""Hadamard response: the two halves into which a random parity splits the categories; the cheapest to collect.

Theorem. A report r is log(odds)-differentially private; it speaks for those x for which (x + 1) AND r has an even
number of ones, which is true for half of all reports whatever the truth else. Proof in protocols.md.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from sordino.local import protocol
from sordino.local.answers import Indices
from sordino.local.frequency import Frequency
from sordino.local.protocol import Column, Counts, below, chance
from sordino.mechanisms.bits import Bits
from sordino.mechanisms.discrete import bernoulli, uniform

__all__ = ["Hadamard"]

_BLOCK = 1 << 20


class Hadamard(Frequency):
    """Report a column of a Hadamard matrix, more often one with +1 in the row of the truth.

    Example:
        >>> h = Hadamard(odds=3, categories=1000)
        >>> h.bits, h.own, h.other
        (10, Fraction(3, 4), Fraction(1, 2))
    """

    kind = "local.hadamard"
    most = 2**48

    @property
    def own(self) -> Fraction:
        """The probability of a column with +1 in the row of the truth."""
        return self.odds / (self.odds + 1)

    @property
    def other(self) -> Fraction:
        """The probability of a column with +1 in any other row: rows are orthogonal."""
        return Fraction(1, 2)

    @property
    def bits(self) -> int:
        """How many bits one report needs."""
        return self.categories.bit_length()

    @property
    def limit(self) -> int:
        """The order of the matrix: a power of two above the number of categories, as row 0 tells nothing."""
        return 1 << self.bits

    def work(self, persons: int) -> int:
        """A fast transform over the table of all reports if it fits, else every report against every category."""
        return persons + self.limit * self.bits if self.cells else persons * self.categories

    def _draw(self, true: Indices, source: Bits) -> Column:
        row = true + 1
        column = uniform(self.limit, len(true), source)
        plus = bernoulli(self.own, len(true), source)
        odd = np.bitwise_count(row & column) & 1 == 1
        return np.where(odd == plus, column ^ (row & -row), column)

    def _draw_one(self, true: int, source: Bits) -> int:
        row = true + 1
        column = below(self.limit, source)
        odd = (row & column).bit_count() % 2 == 1
        return column ^ (row & -row) if odd == chance(self.own, source) else column

    def supports(self, column: Column) -> Counts:
        """How many reports speak for each category, each report asked for each category."""
        return self.supports_for(column, self._everything())

    def supports_for(self, column: Column, some: Indices) -> Counts:
        """How many reports speak for each of some categories."""
        counts = np.zeros(len(some), np.int64)
        step = max(1, _BLOCK // len(some))
        for start in range(0, len(column), step):
            counts += (
                np.bitwise_count(column[start : start + step, None] & (some + 1)) & 1 == 0
            ).sum(0)
        return counts

    def supports_of_cells(self, cells: Counts) -> Counts:
        """The same by the fast Walsh-Hadamard transform, in whole numbers: (reports + transform)/2."""
        values = cells.copy()
        half = 1
        while half < len(values):
            pairs = values.reshape(-1, 2, half)
            low, high = pairs[:, 0].copy(), pairs[:, 1]
            pairs[:, 0] += high
            np.subtract(low, high, out=pairs[:, 1])
            half *= 2
        return np.asarray((values[0] + values[1 : self.categories + 1]) // 2)


protocol.kinds["local.hadamard", 1] = Hadamard.from_fields

"""Optimised unary encoding: one noisy bit for each category.

Theorem. A report is log(odds)-differentially private: the true category's bit is a fair coin, every other bit is 1 with
probability 1/(odds + 1), all independent. Proof in protocols.md.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from sordino.local import protocol
from sordino.local.categories import Indices
from sordino.local.draws import chance
from sordino.local.frequency import Frequency
from sordino.local.packed import SMALL, bit_sums, cell_sums, check_rows, put, row_width, spare_mask
from sordino.local.protocol import Column, Counts
from sordino.mechanisms.bits import CHUNK, Bits
from sordino.mechanisms.lanes import bernoulli_lanes

__all__ = ["Unary"]


class Unary(Frequency):
    """Report one bit for each category.

    Example:
        >>> Unary(odds=3, categories=100).variance(persons=1)  # 4 odds/(odds - 1)^2
        Fraction(3, 1)
    """

    kind = "local.unary"
    most = 2**20

    @property
    def own(self) -> Fraction:
        """The probability that the true category's bit is 1."""
        return Fraction(1, 2)

    @property
    def other(self) -> Fraction:
        """The probability that another category's bit is 1."""
        return 1 / (self.odds + 1)

    @property
    def bits(self) -> int:
        """One bit a category."""
        return self.categories

    @property
    def limit(self) -> int:
        """Reports are rows of bits."""
        return 0

    @property
    def width(self) -> int:
        """The bytes of one row."""
        return row_width(self.categories)

    @property
    def cells(self) -> int:
        """Rows of one or two bytes are counted by value."""
        return 256**self.width if self.categories <= SMALL else 0

    def work(self, persons: int) -> int:
        """Words of 64 bits are added up."""
        return persons * max(1, self.categories // 8)

    @property
    def _persons_at_once(self) -> int:
        return 8 * CHUNK // self.width

    def _draw(self, true: Indices, source: Bits) -> Column:
        size = len(true) * self.width
        lanes = bernoulli_lanes(self.other, -(-size // 8), source)
        rows: Column = lanes.view(np.uint8)[:size].reshape(len(true), self.width) & spare_mask(self.categories)
        coins = bernoulli_lanes(self.own, -(-len(true) // 64), source).view(np.uint8)
        put(rows, true, np.unpackbits(coins, count=len(true)))
        return rows

    def _draw_one(self, true: int, source: Bits) -> bytes:
        report = bytearray(self.width)
        for j in range(self.categories):
            if chance(self.own if j == true else self.other, source):
                report[j // 8] |= 1 << j % 8
        return bytes(report)

    def check(self, column: Column) -> None:
        """Refuse rows with bits behind the last category."""
        check_rows(column, self.categories)

    def supports(self, column: Column) -> Counts:
        """How many reports have each bit."""
        return bit_sums(column, self.categories)

    def supports_of_cells(self, cells: Counts) -> Counts:
        """The same from short rows counted by value."""
        return cell_sums(cells, self.categories)


protocol.kinds["local.unary", 1] = Unary.from_fields

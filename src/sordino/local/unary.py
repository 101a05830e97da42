"""Optimised unary encoding: one noisy bit for each category.

Theorem. A report is log(odds)-differentially private: the true category's bit is a fair coin, every other bit is 1 with
probability 1/(odds + 1), all independent. Proof in protocols.md.

Rows of bits are packed: category j is bit j mod 8 of byte j div 8.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from sordino.errors import InvalidInput
from sordino.local import protocol
from sordino.local.answers import Indices
from sordino.local.frequency import Frequency
from sordino.local.protocol import Column, Counts, chance
from sordino.mechanisms.bits import CHUNK, Bits
from sordino.mechanisms.lanes import bernoulli_lanes

__all__ = ["SMALL", "Unary", "bit_sums", "cell_sums", "put", "row_width", "spare_mask"]

SMALL = 16
"""Up to this many categories a row is one or two bytes,
of which every value is counted; longer rows are whole words.
"""

_BLOCK_BYTES = 1 << 20


def row_width(categories: int) -> int:
    """The bytes of one row."""
    return -(-categories // 8) if categories <= SMALL else 8 * -(-categories // 64)


def spare_mask(categories: int) -> Column:
    """A row of ones at the categories and zeros behind them."""
    ones = np.arange(8 * row_width(categories)) < categories
    return np.packbits(ones, bitorder="little")


def check_rows(column: Column, categories: int) -> None:
    """Refuse rows with a bit behind the last category."""
    spare = ~spare_mask(categories)
    if spare.any() and (column[:, spare != 0] & spare[spare != 0]).any():
        rule = f"a report over {categories} categories has no bit behind the last one"
        raise InvalidInput(
            "a report with more bits",
            rule,
            "These reports were damaged, or made by another protocol.",
        )


def put(rows: Column, places: Indices, ones: Column) -> None:
    """Set one bit in each row, in place."""
    at = np.arange(len(rows)), places >> 3
    shift = (places & 7).astype(np.uint8)
    rows[at] = rows[at] & ~(np.uint8(1) << shift) | ones.astype(np.uint8) << shift


def bit_sums(rows: Column, categories: int) -> Counts:
    """How many rows have each bit, by adding rows as binary numbers in parallel, half of them to the other half."""
    words = np.ascontiguousarray(rows).view(np.uint64) if rows.shape[1] % 8 == 0 else None
    if words is None:
        return np.asarray(
            np.unpackbits(rows, axis=1, bitorder="little", count=categories).sum(0, dtype=np.int64)
        )
    size = 1 << max(3, (_BLOCK_BYTES // (8 * words.shape[1])).bit_length() - 1)
    total = np.zeros(64 * words.shape[1], np.int64)
    for start in range(0, len(words), size):
        block = words[start : start + size]
        if len(block) < size:
            block = np.concatenate(
                [block, np.zeros((size - len(block), words.shape[1]), np.uint64)]
            )
        for digit, plane in enumerate(_add_rows(block)):
            total += (
                np.unpackbits(plane.view(np.uint8), bitorder="little").astype(np.int64) << digit
            )
    return total[:categories]


def _add_rows(rows: Column) -> list[Column]:
    """The binary digits of the sums over rows, whose number is a power of two, in every lane."""
    digits = [rows]
    while len(digits[0]) > 1:
        half = len(digits[0]) // 2
        added: list[Column] = []
        carry: Column = np.zeros(1, np.uint64)
        for i, digit in enumerate(digits):
            a, b = digit[:half], digit[half:]
            either: Column = a ^ b
            both: Column = a & b
            if i:
                both |= either & carry
                either ^= carry
            added.append(either)
            carry = both
        digits = [*added, carry]
    return [digit[0] for digit in digits]


def cell_sums(cells: Counts, categories: int) -> Counts:
    """How many reports have each bit, from how often each possible row of one or two bytes occurs."""
    values = np.arange(len(cells))
    return np.array([cells[values >> j & 1 == 1].sum() for j in range(categories)])


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
        rows: Column = lanes.view(np.uint8)[:size].reshape(len(true), self.width) & spare_mask(
            self.categories
        )
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

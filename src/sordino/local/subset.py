"""Subset selection: a random set of categories, the likelier if it holds the true one. No protocol has less variance.

Theorem. A report is log(odds)-differentially private: every set of `size` categories that holds the truth is odds
times as likely as every one that does not. Proof in protocols.md.

A report is one of many sets of `size` out of `points`, `odds` times likelier if it holds the truth. If every pair of
points lies in equally many sets, as here and in affine.py, all else follows from size, points and odds alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from typing import Self

import numpy as np

from sordino.errors import InvalidInput
from sordino.local import protocol
from sordino.local.answers import Categories, Indices, counted
from sordino.local.frequency import Frequency
from sordino.local.protocol import Column, Counts, below, chance, odds_below
from sordino.local.unary import SMALL, bit_sums, cell_sums, check_rows, put, row_width, spare_mask
from sordino.mechanisms.bits import CHUNK, Bits
from sordino.mechanisms.discrete import bernoulli, uniform
from sordino.mechanisms.lanes import bernoulli_lanes
from sordino.privacy.exact import Number, show

__all__ = ["Subset", "best_size", "checked_size", "other_of", "own_of"]


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
    return min(
        {min(max(near + i, 1), points - 1) for i in range(-2, 4)},
        key=lambda size: (total(size), size),
    )


def checked_size(size: object, points: int) -> int:
    """The number of points that a reported set holds."""
    if isinstance(size, bool) or not isinstance(size, int) or not 1 <= size < points:
        rule = f"size must be a whole number from 1 to {points - 1}: the number of points in a reported set"
        raise InvalidInput(
            f"size={show(size)}", rule, "Use .calibrated(epsilon=...), which finds the best."
        )
    return size


_ROWS = 1 << 21


@dataclass(frozen=True, init=False, repr=False)
class Subset(Frequency):
    """Report a set of `size` categories, as bits.

    Example:
        >>> Subset.calibrated(epsilon=1, categories=100).size
        27
    """

    size: int

    kind = "local.subset"
    most = 2**20
    parameters = ("size",)

    def __init__(self, odds: Number, categories: Categories, size: int) -> None:
        super().__init__(odds, categories)
        object.__setattr__(self, "size", checked_size(size, self.categories))

    @classmethod
    def calibrated(cls, *, epsilon: Number, categories: Categories) -> Self:
        """The size with the least variance that is epsilon-differentially private."""
        odds, (count, _) = odds_below(epsilon), counted(categories, cls.most)
        return cls(odds, categories, best_size(odds, count, count))

    @property
    def own(self) -> Fraction:
        """The probability that the set holds the true category."""
        return own_of(self.odds, self.size, self.categories)

    @property
    def other(self) -> Fraction:
        """The probability that the set holds a given other category."""
        return other_of(self.odds, self.size, self.categories)

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
        """Words of 64 bits are added up; to draw sets of many categories takes the clients longer."""
        return persons * max(1, self.categories // 8)

    @property
    def _persons_at_once(self) -> int:
        return CHUNK if self.categories <= SMALL else max(1, min(CHUNK, _ROWS // self.width))

    @cached_property
    def _sets(self) -> tuple[Indices, Indices]:
        """All sets with category 0, and all without it, as numbers whose bits are the members."""
        without = [
            sum(1 << j for j in some) for some in combinations(range(1, self.categories), self.size)
        ]
        with_0 = [
            1 + sum(1 << j for j in some)
            for some in combinations(range(1, self.categories), self.size - 1)
        ]
        return np.array(with_0, np.int64), np.array(without, np.int64)

    def _draw(self, true: Indices, source: Bits) -> Column:
        inside = bernoulli(self.own, len(true), source)
        if self.categories > SMALL:
            return self._fill(true, inside, source)
        with_0, without = self._sets
        # turning category 0 to the truth carries the sets with it, one to one
        sets = np.where(
            inside,
            with_0[uniform(len(with_0), len(true), source)],
            without[uniform(len(without), len(true), source)],
        )
        turned = (sets << true | sets >> (self.categories - true)) & (1 << self.categories) - 1
        return turned.astype("<u2").view(np.uint8).reshape(-1, 2)[:, : self.width]

    def _fill(self, true: Indices, inside: Column, source: Bits) -> Column:
        """Independent bits, then others are added or taken away at random until each row has `size`.

        No step prefers a category to another (the truth apart), so that all sets of the right size are equally likely.
        """
        words = len(true) * self.width // 8
        share = Fraction(self.size, self.categories)
        parts = [
            bernoulli_lanes(share, min(CHUNK, words - i), source) for i in range(0, words, CHUNK)
        ]
        rows: Column = np.concatenate(parts).view(np.uint8).reshape(-1, self.width) & spare_mask(
            self.categories
        )
        put(rows, true, inside)
        need = self.size - np.bitwise_count(rows.view(np.uint64)).sum(1, dtype=np.int64)
        open_ = np.flatnonzero(need)
        while open_.size:
            place = uniform(self.categories, len(open_), source)
            byte, bit = place >> 3, np.uint8(1) << (place & 7).astype(np.uint8)
            taken = (rows[open_, byte] & bit) != 0
            fits = (taken == (need[open_] < 0)) & (place != true[open_])
            rows[open_[fits], byte[fits]] ^= bit[fits]
            need[open_[fits]] += np.where(taken[fits], 1, -1)
            open_ = open_[need[open_] != 0]
        return rows

    def _draw_one(self, true: int, source: Bits) -> bytes:
        report = bytearray(self.width)
        members = {true} if chance(self.own, source) else set()
        left = [j for j in range(self.categories) if j != true]
        while len(members) < self.size:
            members.add(left.pop(below(len(left), source)))
        for j in members:
            report[j // 8] |= 1 << j % 8
        return bytes(report)

    def check(self, column: Column) -> None:
        """Refuse rows with bits behind the last category, or with another number of bits."""
        check_rows(column, self.categories)
        if column.size and (np.bitwise_count(column).sum(1, dtype=np.int64) != self.size).any():
            rule = f"every report of {self!r} holds {self.size} categories"
            raise InvalidInput(
                "a report of another size",
                rule,
                "These reports were damaged, or made by another protocol.",
            )

    def supports(self, column: Column) -> Counts:
        """How many sets hold each category."""
        return bit_sums(column, self.categories)

    def supports_of_cells(self, cells: Counts) -> Counts:
        """The same from short rows counted by value."""
        return cell_sums(cells, self.categories)


protocol.kinds["local.subset", 1] = Subset.from_fields

"""Affine subsets: subset selection whose sets are named by two numbers, so that a report is short and quickly made.

Theorem. A report (a, b) is log(odds)-differentially private and stands for the set {x: (a x + b) mod prime < size}. Any two
categories lie in equally many of these sets, which gives the variance of subset selection. Proof in protocols.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Self

import numpy as np

from sordino.errors import InvalidInput
from sordino.local import protocol
from sordino.local.categories import Categories, Indices, counted
from sordino.local.design import best_size, checked_size, other_of, own_of
from sordino.local.draws import below, chance
from sordino.local.fields import next_prime
from sordino.local.frequency import Frequency
from sordino.local.odds import odds_below
from sordino.local.protocol import Column, Counts
from sordino.mechanisms.bits import Bits
from sordino.mechanisms.discrete import bernoulli, uniform
from sordino.privacy.exact import Number, show

__all__ = ["AffineSubset"]

_BLOCK = 1 << 20


@dataclass(frozen=True, init=False, repr=False)
class AffineSubset(Frequency):
    """Report a multiplier and a shift: the whole number a * prime + b.

    Example:
        >>> a = AffineSubset.calibrated(epsilon=1, categories=4096)
        >>> a.prime, a.size, a.bits
        (4099, 1102, 25)
    """

    size: int

    kind = "local.affine_subset"
    most = 2**24
    parameters = ("size",)

    def __init__(self, odds: Number, categories: Categories, size: int) -> None:
        super().__init__(odds, categories)
        object.__setattr__(self, "size", checked_size(size, self.prime))

    @classmethod
    def calibrated(cls, *, epsilon: Number, categories: Categories) -> Self:
        """The size with the least variance that is epsilon-differentially private."""
        odds, (count, _) = odds_below(epsilon), counted(categories, cls.most)
        return cls(odds, categories, best_size(odds, next_prime(count), count))

    @cached_property
    def prime(self) -> int:
        """The points: the categories, and none to few that nobody has."""
        return next_prime(self.categories)

    @property
    def own(self) -> Fraction:
        """The probability that the set holds the true category."""
        return own_of(self.odds, self.size, self.prime)

    @property
    def other(self) -> Fraction:
        """The probability that the set holds a given other category."""
        return other_of(self.odds, self.size, self.prime)

    @property
    def bits(self) -> int:
        """How many bits one report needs."""
        return (self.prime * (self.prime - 1) - 1).bit_length()

    @property
    def limit(self) -> int:
        """a is 1 to prime - 1, b is 0 to prime - 1."""
        return self.prime**2

    def work(self, persons: int) -> int:
        """A table of all reports if it fits, else every report against every category."""
        return persons + self.limit if self.cells else persons * self.categories

    def _draw(self, true: Indices, source: Bits) -> Column:
        count, prime = len(true), self.prime
        a = uniform(prime - 1, count, source) + 1
        inside = bernoulli(self.own, count, source)
        image = np.where(inside, uniform(self.size, count, source), self.size + uniform(prime - self.size, count, source))
        reports: Column = a * prime + (image - a * true) % prime
        return reports

    def _draw_one(self, true: int) -> int:
        a = 1 + below(self.prime - 1)
        image = below(self.size) if chance(self.own) else self.size + below(self.prime - self.size)
        return a * self.prime + (image - a * true) % self.prime

    def check(self, column: Column) -> None:
        """Refuse what is no pair of multiplier and shift."""
        super().check(column)
        if column.size and column.min() < self.prime:
            rule = f"the multiplier of a report of {self!r} is at least 1"
            raise InvalidInput(f"report {show(column.min())}", rule, "These reports were damaged.")

    def supports(self, column: Column) -> Counts:
        """How many sets hold each category, each set asked for each category."""
        return self.supports_for(column, self._everything())

    def supports_for(self, column: Column, some: Indices) -> Counts:
        """How many sets hold each of some categories."""
        counts = np.zeros(len(some), np.int64)
        step = max(1, _BLOCK // len(some))
        for start in range(0, len(column), step):
            a, b = np.divmod(column[start : start + step, None], self.prime)
            counts += ((a * some + b) % self.prime < self.size).sum(0)
        return counts

    def supports_of_cells(self, cells: Counts) -> Counts:
        """The same from a table of reports: for each multiplier a running sum over the shifts, read at every category."""
        prime, size = self.prime, self.size
        table = cells.reshape(prime, prime)
        counts = np.zeros(self.categories, np.int64)
        reach = np.arange(prime)
        # (a x + b) mod prime < size: b is one of the `size` places from -a x on, around the circle
        product = np.zeros(self.categories, np.int64)
        step = np.arange(self.categories)
        for a in range(1, prime):
            product += step
            product[product >= prime] -= prime
            if not table[a].any():
                continue
            upto = np.concatenate([[0], np.cumsum(table[a]), np.cumsum(table[a][:size]) + table[a].sum()])
            window = upto[reach + size] - upto[reach]
            counts += window[(prime - product) % prime]
        return counts


protocol.kinds["local.affine_subset", 1] = AffineSubset.from_fields

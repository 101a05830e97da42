"""Affine subsets: subset selection whose sets are named by two numbers, so that a report is short and quickly made.

Theorem. A report (a, b) is log(odds)-differentially private and stands for the set {x: a x + b < size}, computed in
a field. Any two categories lie in equally many of these sets, which gives the variance of subset selection. Proof in
protocols.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Self

import numpy as np

from sordino.errors import InvalidInput
from sordino.local import protocol
from sordino.local.answers import Categories, Indices, counted
from sordino.local.frequency import Frequency
from sordino.local.hashing import POLYNOMIALS, add, least_order, product, products, subtract
from sordino.local.protocol import Column, Counts, below, chance, odds_below
from sordino.local.subset import best_size, checked_size, other_of, own_of
from sordino.mechanisms.bits import Bits
from sordino.mechanisms.discrete import bernoulli, uniform
from sordino.privacy.exact import Number, show

__all__ = ["AffineSubset"]

_BLOCK = 1 << 16


@dataclass(frozen=True, init=False, repr=False)
class AffineSubset(Frequency):
    """Report a multiplier and a shift: the whole number a * points + b.

    Example:
        >>> a = AffineSubset.calibrated(epsilon=1, categories=4096)
        >>> a.points, a.size, a.bits
        (4096, 1102, 24)
    """

    size: int

    kind = "local.affine_subset"
    most = 2**24
    parameters = ("size",)

    def __init__(self, odds: Number, categories: Categories, size: int) -> None:
        super().__init__(odds, categories)
        object.__setattr__(self, "size", checked_size(size, self.points))

    @classmethod
    def calibrated(cls, *, epsilon: Number, categories: Categories) -> Self:
        """The size with the least variance that is epsilon-differentially private."""
        odds, (count, _) = odds_below(epsilon), counted(categories, cls.most)
        return cls(odds, categories, best_size(odds, least_order(count), count))

    @cached_property
    def points(self) -> int:
        """The elements of the smallest field that has one for each category; few or none are left over."""
        return least_order(self.categories)

    @property
    def own(self) -> Fraction:
        """The probability that the set holds the true category."""
        return own_of(self.odds, self.size, self.points)

    @property
    def other(self) -> Fraction:
        """The probability that the set holds a given other category."""
        return other_of(self.odds, self.size, self.points)

    @property
    def bits(self) -> int:
        """How many bits one report needs."""
        return (self.points * (self.points - 1) - 1).bit_length()

    @property
    def limit(self) -> int:
        """a is 1 to points - 1, b is 0 to points - 1."""
        return self.points**2

    def work(self, persons: int) -> int:
        """A table of all reports if it fits, else every report against every category."""
        return persons + self.limit if self.cells else persons * self.categories

    def _draw(self, true: Indices, source: Bits) -> Column:
        count, points = len(true), self.points
        a = uniform(points - 1, count, source) + 1
        inside = bernoulli(self.own, count, source)
        image = np.where(
            inside,
            uniform(self.size, count, source),
            self.size + uniform(points - self.size, count, source),
        )
        reports: Column = a * points + subtract(image, products(a, true, points), points)
        return reports

    def _draw_one(self, true: int, source: Bits) -> int:
        a = 1 + below(self.points - 1, source)
        image = (
            below(self.size, source)
            if chance(self.own, source)
            else self.size + below(self.points - self.size, source)
        )
        return int(a * self.points + subtract(image, product(a, true, self.points), self.points))

    def check(self, column: Column) -> None:
        """Refuse what is no pair of multiplier and shift."""
        super().check(column)
        if column.size and column.min() < self.points:
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
            a, b = np.divmod(column[start : start + step, None], self.points)
            counts += (add(products(a, some, self.points), b, self.points) < self.size).sum(0)
        return counts

    def supports_of_cells(self, cells: Counts) -> Counts:
        """The same from a table of reports: for each multiplier sums over windows of shifts, read at every category."""
        points, size = self.points, self.size
        table = cells.reshape(points, points)
        counts = np.zeros(self.categories, np.int64)
        everything, used = self._everything(), np.flatnonzero(table.any(1))
        step = max(1, _BLOCK // points)
        for start in range(0, len(used), step):
            a = used[start : start + step]
            moved = products(a[:, None], everything, points)
            if points in POLYNOMIALS:
                sums, places = _sums_in_a_tree(table[a], size), moved ^ size
            else:
                sums, places = _sums_on_a_circle(table[a], size), points - moved
            for row, place in zip(sums, places, strict=True):
                counts += row[place]
        return counts


def _sums_on_a_circle(table: Counts, size: int) -> Counts:
    """At place y the sum over the `size` columns from y on, around the circle; the last place is the first again."""
    start = np.zeros((len(table), 1), np.int64)
    upto = np.concatenate([start, table, table[:, :size]], axis=1).cumsum(1)
    return np.asarray(upto[:, size:] - upto[:, :-size])


def _sums_in_a_tree(table: Counts, size: int) -> Counts:
    """At place y the sum over columns b with b XOR y XOR size < size: at their highest different bit, size has a one.

    So on the way up from y, the sum of the other half is added wherever size has a one.
    """
    if size == 0:
        return np.zeros_like(table)
    halves = table.reshape(len(table), -1, 2)
    sums = _sums_in_a_tree(halves[..., 0] + halves[..., 1], size >> 1).repeat(2, axis=1)
    if size & 1:
        sums += halves[..., ::-1].reshape(table.shape)
    return sums


protocol.kinds["local.affine_subset", 1] = AffineSubset.from_fields

"""Whole-number contrasts of one column: rows that are orthogonal to each other and to the total.

Each row is +c on one run of values and -d on the next, and adds up to zero. A flat column compares every value with all
before it (Helmert's contrasts); a hierarchy compares the two halves of every block of a binary tree, level by level.
residuals.md proves what follows from that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ["Contrasts", "Kind", "flat", "tree"]

Ints = npt.NDArray[np.int64]
Whole = npt.NDArray[Any]
Kind: TypeAlias = Literal["cells", "ranges", "prefixes"]
"""What is asked of a column: its values, all ranges of them, or all prefixes."""


@dataclass(frozen=True, eq=False)
class Contrasts:
    """The contrasts of a column of `size` values, in runs of rows of equal `level` (from 1 on).

    Row j is `plus` on [first, middle) and -`minus` on [middle, last). The rows are orthogonal to each other.
    """

    size: int
    first: Ints
    middle: Ints
    last: Ints
    plus: Ints
    minus: Ints
    level: Ints

    @cached_property
    def squares(self) -> Ints:
        """The squared length of each row."""
        return self.plus**2 * (self.middle - self.first) + self.minus**2 * (self.last - self.middle)

    @cached_property
    def levels(self) -> tuple[slice, ...]:
        """The rows of each level."""
        if not len(self.level):
            return ()
        ends = np.flatnonzero(np.diff(self.level)) + 1
        return tuple(
            slice(a, b)
            for a, b in zip([0, *ends.tolist()], [*ends.tolist(), len(self.level)], strict=True)
        )

    @cached_property
    def matrix(self) -> Ints:
        """All rows written out; for small columns, plans and tests."""
        found = np.zeros((len(self.first), self.size), np.int64)
        for j in range(len(self.first)):
            found[j, self.first[j] : self.middle[j]] = self.plus[j]
            found[j, self.middle[j] : self.last[j]] = -self.minus[j]
        return found

    @cached_property
    def kinds(self) -> tuple[tuple[Fraction, ...], ...]:
        """By kind of value, the squared length of its unit vector's projection onto each level;
        flat columns have one.
        """
        return tuple(sorted(set(map(tuple, self.projections))))

    @cached_property
    def projections(self) -> list[list[Fraction]]:
        """The same for each value."""
        if len(self.levels) == 1:
            return [[1 - Fraction(1, self.size)]] * self.size
        found = [[Fraction(0)] * len(self.levels) for _ in range(self.size)]
        for j, level in enumerate(self.level.tolist()):
            square, middle = int(self.squares[j]), int(self.middle[j])
            for value in range(int(self.first[j]), int(self.last[j])):
                number = int(self.plus[j]) if value < middle else int(self.minus[j])
                found[value][level - 1] += Fraction(number * number, square)
        return found

    @cached_property
    def weight(self) -> float:
        """At least the sum of magnitudes by which a value is put together from contrasts:
        how far rounding them reaches.
        """
        steps = np.zeros(self.size + 1)
        for ends, sizes in (
            (self.first, self.plus),
            (self.middle, self.minus - self.plus),
            (self.last, -self.minus),
        ):
            np.add.at(steps, ends, sizes / self.squares)
        return float(np.cumsum(steps).max(initial=0.0)) * (1 + 2.0**-30)

    def lengths(self, kind: Kind) -> tuple[list[float], float]:
        """Means over all asked sums of values: of the squared lengths of their projections by level, and of
        (sum/size)^2.

        What is asked are the values themselves, all ranges of them, or all prefixes.
        """
        if kind == "cells":
            return [(rows.stop - rows.start) / self.size for rows in self.levels], 1 / self.size**2
        if not self.levels:
            return [], 1.0
        ends = np.arange(self.size + 1, dtype=np.float64)
        sums = np.concatenate(
            [np.zeros((len(self.first), 1)), np.cumsum(self.matrix, axis=1)], axis=1
        )
        sums = np.concatenate([sums / np.sqrt(self.squares)[:, None], ends[None] / self.size])
        if kind == "prefixes":
            means = np.square(sums[:, 1:]).mean(axis=1)
        else:  # the squared differences of all pairs of ends
            points = self.size + 1
            means = (points * np.square(sums).sum(axis=1) - sums.sum(axis=1) ** 2) / (
                points * (points - 1) / 2
            )
        return [float(means[rows].sum()) for rows in self.levels], float(means[-1])

    @cached_property
    def growth(self) -> int:
        """The largest coefficient: no contrast of counts exceeds their total by more than this factor."""
        return int(max(self.plus.max(initial=1), self.minus.max(initial=1)))

    def of(self, counts: Whole, axis: int) -> Whole:
        """The contrasts of counts along one axis."""
        ahead = np.moveaxis(counts, axis, 0)
        before = np.concatenate(
            [np.zeros((1, *ahead.shape[1:]), ahead.dtype), np.cumsum(ahead, axis=0)]
        )
        wide = (-1,) + (1,) * (ahead.ndim - 1)
        plus, minus = (part.astype(ahead.dtype).reshape(wide) for part in (self.plus, self.minus))
        middle = before[self.middle]
        found = plus * (middle - before[self.first]) - minus * (before[self.last] - middle)
        return np.moveaxis(found, 0, axis)

    def back(self, parts: Whole, axis: int) -> Whole:
        """The transpose of `of`: an array whose sum along the axis is zero, whatever the parts are."""
        ahead = np.moveaxis(parts, axis, 0)
        wide = (-1,) + (1,) * (ahead.ndim - 1)
        plus, minus = (part.astype(ahead.dtype).reshape(wide) for part in (self.plus, self.minus))
        steps = np.zeros((self.size + 1, *ahead.shape[1:]), ahead.dtype)
        np.add.at(steps, self.first, plus * ahead)
        np.add.at(steps, self.middle, -(plus + minus) * ahead)
        np.add.at(steps, self.last, minus * ahead)
        return np.moveaxis(np.cumsum(steps, axis=0)[:-1], 0, axis)


@lru_cache(maxsize=256)
def flat(size: int) -> Contrasts:
    """Each value against the mean of all before it: one level."""
    k = np.arange(1, size, dtype=np.int64)
    zeros, ones = np.zeros_like(k), np.ones_like(k)
    return Contrasts(size, zeros, k, k + 1, ones, k, ones)


@lru_cache(maxsize=256)
def tree(size: int) -> Contrasts:
    """The two halves of each block of a binary tree against each other, the largest blocks first."""
    rows: list[tuple[int, int, int, int, int, int]] = []
    blocks, level = [(0, size)], 1
    while blocks:
        halves: list[tuple[int, int]] = []
        for first, last in blocks:
            if last - first < 2:
                continue
            middle = (first + last + 1) // 2
            left, right = middle - first, last - middle
            common = math.gcd(left, right)
            rows.append((first, middle, last, right // common, left // common, level))
            halves += [(first, middle), (middle, last)]
        blocks, level = halves, level + 1
    columns = np.array(rows, np.int64).reshape(-1, 6).T
    return Contrasts(size, *columns)

"""AVG(x) where persons are replaced, nothing is grouped, and the number of rows is not public: the number of rows, and
the sum of the values around the middle of their bounds.

A row whose value lies k of K steps above the lower bound adds (A, 2k-K), in steps or parts of them. Replacing a
person, or the row's vanishing behind a filter, moves both numbers together by at most 2K in L1 where A = K, and by at
most 2K in L2 where A^2 <= 3 K^2. The two sums of `Mean` move by as much, but each of them is half a sum of these, so
that its noise has half the variance (Laplace). With COUNT(*) there is a third number, and a row without a value adds
(B, 0, C): as far from the other rows, and from none, as these are from one another. Theorem in moments.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from sordino.mechanisms.combination import Family, Floats, Noise
from sordino.privacy.exact import Number
from sordino.query.aggregates import moments
from sordino.query.aggregates.estimates import Estimates
from sordino.query.aggregates.mean import Mean
from sordino.query.aggregates.partial import Integers, Reach

__all__ = ["CentredMean"]

_FINE = 1024
"""Parts of which the reach of a value has at least this many, where roots are rounded down to them."""


@dataclass(frozen=True)
class CentredMean(Mean):
    """The number of rows with a value, times A, and the sum of 2k-K over them; A suits the `family` of the noise."""

    family: Family = "laplace"

    @property
    def label(self) -> str:
        """What is summed, in words."""
        rows = "numbers of rows and of" if self.others else "number of"
        return f"{rows} values of {self.what}, and their sum around the middle of the bounds"

    def suited(self, family: Family) -> CentredMean:
        """The same for noise of this family."""
        return replace(self, family=family)

    @property
    def parts(self) -> int:
        """How many parts a step has: roots are whole numbers of them, so that few steps would make them coarse."""
        return 1 if self.family == "laplace" else -(-_FINE // self.points.cells)

    @property
    def most(self) -> int:
        """K: what a value at a bound adds to the second number."""
        return self.points.cells * self.parts

    @property
    def count_row(self) -> int:
        """A: what a row with a value adds to the first number."""
        return self.most if self.family == "laplace" else math.isqrt(3 * self.most**2)

    @property
    def other_row(self) -> tuple[int, int]:
        """B and C: what a row without a value adds to the first and to the third number."""
        if self.family == "laplace":
            return self.most, self.most
        return math.isqrt(4 * self.most**2 // 3), math.isqrt(8 * self.most**2 // 3)

    @property
    def reach(self) -> Reach:
        """A row is (A, -K, 0) to (A, K, 0), or (B, 0, C): all their distances, and those from none."""
        a, k, (b, c) = self.count_row, self.most, self.other_row
        own = [(a, k, 0), *([(b, 0, c)] if self.others else [])]
        apart = [*own, (0, 2 * k, 0), *([(abs(a - b), k, c)] if self.others else [])]
        return replace(_reach(own, 2 * k), replaced=_reach(apart, 2 * k))

    @property
    def unit(self) -> Fraction:
        """That of the second number: half a step of the grid, or a part of that."""
        return self.points.step / (2 * self.parts)

    def vector(self, sums: Integers) -> Integers:
        """(A n, 2s - K n) from the sums n, s of 1 and k; with `others` (A n + B o,
        2s - K n, C o) for o rows without one.
        """
        rows, steps = sums[:, 0], sums[:, 1]
        numbers = [self.count_row * rows, self.parts * (2 * steps - self.points.cells * rows)]
        if self.others:
            (b, c), others = self.other_row, sums[:, 2] - rows
            numbers = [numbers[0] + b * others, numbers[1], c * others]
        return np.stack(numbers, axis=1)

    def weights(self, function: str, unit: int) -> tuple[Fraction, ...] | None:
        """A count is of the first number and the third; a sum the middle of the bounds for each row with a value, and
        half the second number in steps.
        """
        a, (b, c), middle = (
            self.count_row,
            self.other_row,
            (self.points.lower + self.points.upper) / 2,
        )
        others = Fraction(self.others, c * unit)
        counts = (Fraction(1, a * unit), Fraction(0), -Fraction(b, a) * others)
        match function:
            case "rows":
                found = (counts[0], Fraction(0), counts[2] + others)
            case "count":
                found = counts
            case "sum":
                found = (middle * counts[0], self.unit / unit, middle * counts[2])
            case _:
                return None
        return found[: self.width]

    def estimate(
        self, function: str, noisy: Integers, unit: int, noise: Noise, confidence: float
    ) -> Estimates:
        """A count, a sum or a mean (by Fieller's confidence set of both distances from the bounds)."""
        if function != "avg":
            return super().estimate(function, noisy, unit, noise, confidence)
        counted, around, unit_of_sides = self._sides
        sides = noisy @ np.array(
            [[c - w, c + w] for c, w in zip(counted, around, strict=True)], object
        )
        return moments.mean(
            sides, self.span(unit_of_sides * unit), self._on_sides(noise), confidence
        )

    def error(
        self, function: str, unit: int, noise: Noise, confidence: float, rows: float | None
    ) -> float | None:
        """The half-width; that of a mean for an assumed number of rows."""
        if function != "avg" or rows is None:
            return super().error(function, unit, noise, confidence, rows)
        return moments.mean_error(
            self.span(self._sides[2] * unit), self._on_sides(noise), rows, confidence
        )

    @property
    def _sides(self) -> tuple[tuple[int, ...], tuple[int, ...], int]:
        """How both distances from the bounds are made of the numbers y: weights c and w with which they are (c - w) y
        and (c + w) y, in which unit.
        """
        a, k, (b, c), fine = self.count_row, self.most, self.other_row, 2 * self.parts
        return (
            ((k * c, 0, -k * b), (0, a * c, 0), fine * a * c)
            if self.others
            else ((k, 0), (0, a), fine * a)
        )

    def _on_sides(self, noise: Noise) -> Noise:
        counted, around, _ = self._sides
        return _Sides(noise.family, noise.scale, counted, around)


def _reach(rows: list[tuple[int, int, int]], spread: int) -> Reach:
    """The largest norms of some vectors."""
    l1, linf = max(map(sum, rows)), max(map(max, rows))
    return Reach(l1, max(sum(x * x for x in row) for row in rows), linf, spread=spread, signed=True)


@dataclass(frozen=True)
class _Sides(Noise):
    """The noise of ((c - w) y, (c + w) y), where the numbers y have independent noise."""

    counted: tuple[int, ...] = ()
    around: tuple[int, ...] = ()

    def norm(self, coefficients: npt.ArrayLike, confidence: Number) -> Floats:
        """That of the same combination of the numbers y."""
        below, above = np.moveaxis(np.asarray(coefficients, np.float64), -1, 0)
        parts = zip(self.counted, self.around, strict=True)
        own = np.stack([(below + above) * c + (above - below) * w for c, w in parts], axis=-1)
        return super().norm(own, confidence)

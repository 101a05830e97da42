"""AVG(x) where persons are replaced, nothing is grouped, and the number of rows is not public: the number of rows, and the
sum of the values around the middle of their bounds.

A row whose value lies k of K steps above the lower bound adds (A, 2k-K). Replacing a person, or the row's vanishing behind a
filter, moves both numbers together by at most 2K in L1 where A = K, and by at most 2K in L2 where A^2 <= 3 K^2. The two
sums of `Mean` move by as much, but each of them is half a sum of these, so that its noise has half the variance (Laplace).
Theorem in moments.md.
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


@dataclass(frozen=True)
class CentredMean(Mean):
    """The number of rows with a value, times A, and the sum of 2k-K over them; A suits the `family` of the noise."""

    family: Family = "laplace"

    @property
    def label(self) -> str:
        """What is summed, in words."""
        return f"number of values of {self.what}, and their sum around the middle of the bounds"

    def suited(self, family: Family) -> CentredMean:
        """The same for noise of this family."""
        return replace(self, family=family)

    def with_rows(self) -> Mean:
        """The three sums of a mean with COUNT(*): rows without a value would need a place of their own here, too."""
        return Mean(self.what, self.points, others=True)

    @property
    def count_row(self) -> int:
        """A: what a row adds to the first number."""
        cells = self.points.cells
        return cells if self.family == "laplace" else math.isqrt(3 * cells**2)

    @property
    def reach(self) -> Reach:
        """A row is (A, -K) to (A, K); two of them, or one and none, are apart by at most (A, K) or (0, 2K)."""
        a, k = self.count_row, self.points.cells
        apart = Reach(max(a + k, 2 * k), max(a**2 + k**2, 4 * k**2), max(a, 2 * k), spread=2 * k, signed=True)
        return Reach(a + k, a**2 + k**2, max(a, k), spread=2 * k, signed=True, replaced=apart)

    @property
    def unit(self) -> Fraction:
        """Half a step of the grid: that of the second number."""
        return self.points.step / 2

    def vector(self, sums: Integers) -> Integers:
        """(A n, 2s - K n) from the sums n, s of 1 and k."""
        rows, steps = sums[:, 0], sums[:, 1]
        return np.stack([self.count_row * rows, 2 * steps - self.points.cells * rows], axis=1)

    def weights(self, function: str, unit: int) -> tuple[Fraction, ...] | None:
        """A count is the first number; a sum the middle of the bounds for each row, and half the second in steps."""
        row, middle = Fraction(1, self.count_row * unit), (self.points.lower + self.points.upper) / 2
        if function == "count":
            return row, Fraction(0)
        return (middle * row, self.points.step / (2 * unit)) if function == "sum" else None

    def estimate(self, function: str, noisy: Integers, unit: int, noise: Noise, confidence: float) -> Estimates:
        """A count, a sum or a mean (by Fieller's confidence set of both distances from the bounds)."""
        if function != "avg":
            return super().estimate(function, noisy, unit, noise, confidence)
        a, k = self.count_row, self.points.cells
        sides = np.stack([k * noisy[:, 0] - a * noisy[:, 1], k * noisy[:, 0] + a * noisy[:, 1]], axis=1)
        return moments.mean(sides, self.span(2 * a * unit), self._on_sides(noise), confidence)

    def error(self, function: str, unit: int, noise: Noise, confidence: float, rows: float | None) -> float | None:
        """The half-width; that of a mean for an assumed number of rows."""
        if function != "avg" or rows is None:
            return super().error(function, unit, noise, confidence, rows)
        return moments.mean_error(self.span(2 * self.count_row * unit), self._on_sides(noise), rows, confidence)

    def _on_sides(self, noise: Noise) -> Noise:
        return _Sides(noise.family, noise.scale, self.points.cells, self.count_row)


@dataclass(frozen=True)
class _Sides(Noise):
    """The noise of (K y1 - A y2, K y1 + A y2), where y1 and y2 have independent noise."""

    steps: int = 1
    count_row: int = 1

    def norm(self, coefficients: npt.ArrayLike, confidence: Number) -> Floats:
        """That of the same combination of y1 and y2."""
        below, above = np.moveaxis(np.asarray(coefficients, np.float64), -1, 0)
        own = np.stack([(below + above) * self.steps, (above - below) * self.count_row], axis=-1)
        return super().norm(own, confidence)

"""AVG(x) and SUM(x) where the number of rows is public: one whole number, the sum of the steps above the lower bound.

This is so when each row is a person, persons are replaced (never added or removed), and every row counts: no WHERE, no
groups, no NULLs. Then two neighbours differ in one row's value, so that the sum moves by at most the number K of steps,
and the count needs no noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from sqlglot import exp

from sordino.mechanisms.combination import Noise
from sordino.query.aggregates import moments
from sordino.query.aggregates.estimates import Estimates
from sordino.query.aggregates.grid import Grid
from sordino.query.aggregates.partial import Bounding, Integers, Partial, Reach

__all__ = ["KnownMean"]


@dataclass(frozen=True)
class KnownMean(Partial):
    """The sum of the steps of all rows, beside their public number."""

    bounding: ClassVar[Bounding] = "clip"
    what: str
    points: Grid

    @property
    def label(self) -> str:
        """What is summed, in words."""
        return f"sum of {self.what} above its lower bound"

    @property
    def serves(self) -> frozenset[str]:
        """The mean and the sum."""
        return frozenset({"sum", "avg"})

    @property
    def inputs(self) -> int:
        """The sum and the number of rows."""
        return 2

    @property
    def grids(self) -> tuple[Grid, ...]:
        """The grid of the values."""
        return (self.points,)

    @property
    def reach(self) -> Reach:
        """A row lies between 0 and K steps above the first point."""
        cells = self.points.cells
        return Reach(cells, cells**2, cells, spread=cells)

    @property
    def always(self) -> bool:
        """Every row counts, NULL as the lower bound."""
        return True

    @property
    def unit(self) -> Fraction:
        """The step of the grid."""
        return self.points.step

    def sums(self, *arguments: exp.Expr) -> tuple[exp.Expr, ...]:
        """The sum of the steps, NULL (which the declaration excludes) taken as the first point;
        and the number of rows.
        """
        first = self.points.first
        start = (
            exp.Literal.number(first) if first >= 0 else exp.Neg(this=exp.Literal.number(-first))
        )
        return exp.Sum(this=exp.func("COALESCE", arguments[0], start)), exp.Count(this=exp.Star())

    def vector(self, sums: Integers) -> Integers:
        """The sum of the steps above the first point."""
        above: Integers = (sums[:, 0] - self.points.first * sums[:, 1])[:, np.newaxis]
        return above

    def public(self, sums: Integers) -> Integers:
        """The number of rows."""
        rows: Integers = sums[:, 1:]
        return rows

    def weights(self, function: str, unit: int) -> tuple[Fraction, ...] | None:
        """A sum is that of the steps and, for each row, the lower bound."""
        return (self.points.step / unit, self.points.lower) if function == "sum" else None

    def estimate(
        self, function: str, noisy: Integers, unit: int, noise: Noise, confidence: float
    ) -> Estimates:
        """The mean, or the sum, of the known number of rows."""
        if function == "sum":
            return super().estimate(function, noisy, unit, noise, confidence)
        return moments.mean_known_count(
            noisy[:, :1], int(noisy[0, 1]), self._span(unit), noise, confidence
        )

    def error(
        self, function: str, unit: int, noise: Noise, confidence: float, rows: float | None
    ) -> float | None:
        """The half-width; that of the mean for an assumed number of rows."""
        if function == "sum":
            return super().error(function, unit, noise, confidence, rows)
        return (
            None
            if rows is None
            else moments.mean_known_count_error(self._span(unit), int(rows), noise, confidence)
        )

    def is_whole(self, function: str) -> bool:
        """A sum of whole numbers."""
        return function == "sum" and self.points.whole

    def never_negative(self, function: str) -> bool:
        """A sum of numbers that are not negative."""
        return function == "sum" and self.points.first >= 0

    def _span(self, unit: int) -> moments.Span:
        return moments.Span(self.points.lower, self.points.upper, self.points.cells, unit)

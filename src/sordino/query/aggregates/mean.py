"""AVG(x): two whole numbers, the sums of K-k and of k, where k of K steps is how far a value lies above the lower bound.

A row adds (K-k, k): together always K, so that one row moves both sums together by K in L1 and at most K in L2, and each
gets the whole budget. A person with more than max_rows rows is scaled down to the weight of max_rows. The same two sums
give COUNT(x) and SUM(x). With `others`, a third sum counts K for each row where x is NULL: a row still adds K in all, and
COUNT(*) comes with it. Source: arXiv 2312.06658; theorems in moments.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal

import numpy as np
from sqlglot import exp

from sordino.mechanisms.combination import Noise
from sordino.query.aggregates import moments
from sordino.query.aggregates.estimates import Estimates
from sordino.query.aggregates.grid import Grid
from sordino.query.aggregates.partial import Integers, Partial, Reach

__all__ = ["Mean"]


@dataclass(frozen=True)
class Mean(Partial):
    """How far all values lie from both bounds."""

    bounding: ClassVar[Literal["clip", "scale", "once"]] = "scale"
    what: str
    points: Grid
    others: bool = False

    @property
    def label(self) -> str:
        """What is summed, in words."""
        return f"distances of {self.what} from its bounds"

    @property
    def serves(self) -> frozenset[str]:
        """Everything linear, and the mean; "rows" is COUNT(*)."""
        return frozenset({"count", "sum", "avg", *(["rows"] if self.others else [])})

    @property
    def width(self) -> int:
        """Two numbers, or three."""
        return 3 if self.others else 2

    @property
    def every_row(self) -> bool:
        """With `others`, NULL counts."""
        return self.others

    @property
    def grid(self) -> Grid:
        """The grid of the values."""
        return self.points

    @property
    def reach(self) -> Reach:
        """(K-k, k, 0) and (0, 0, K) have the L1 norm K; L2 and Linf are largest where one number is K."""
        cells = self.points.cells
        return Reach(cells, cells**2, cells, spread=cells)

    @property
    def unit(self) -> Fraction:
        """The step of the grid."""
        return self.points.step

    def sums(self, argument: exp.Expr) -> tuple[exp.Expr, ...]:
        """The number of rows with a value, and the sum of their steps; and the number of all rows."""
        both = exp.Count(this=argument), exp.Sum(this=argument.copy())
        return (*both, exp.Count(this=exp.Star())) if self.others else both

    def vector(self, sums: Integers) -> Integers:
        """(K n - s, s), where s is the sum of the steps above the first point."""
        rows = sums[:, 0]
        steps = sums[:, 1] - rows * self.points.first
        parts = [self.points.cells * rows - steps, steps]
        if self.others:
            parts.append(self.points.cells * (sums[:, 2] - rows))
        return np.stack(parts, axis=1)

    def estimate(self, function: str, noisy: Integers, unit: int, noise: Noise, confidence: float) -> Estimates:
        """The mean by Fieller's confidence set; sum and counts are linear."""
        if function == "rows":
            return moments.linear(noisy, self._row_weights(unit), noise, confidence)
        finish = {"count": moments.count, "sum": moments.total, "avg": moments.mean}[function]
        return finish(noisy[:, :2], self._span(unit), noise, confidence)

    def error(self, function: str, unit: int, noise: Noise, confidence: float, rows: float | None) -> float | None:
        """The half-width; that of a mean for an assumed number of rows."""
        span = self._span(unit)
        if function == "rows":
            return moments.linear_error(self._row_weights(unit), noise, confidence)
        if function == "count":
            return moments.count_error(span, noise, confidence, 1)
        if function == "sum":
            return moments.total_error(span, noise, confidence, 1)
        return None if rows is None else moments.mean_error(span, noise, rows, confidence, degree=1)

    def _row_weights(self, unit: int) -> tuple[Fraction, ...]:
        return (Fraction(1, unit * self.points.cells),) * self.width

    def _span(self, unit: int) -> moments.Span:
        return moments.Span(self.points.lower, self.points.upper, self.points.cells, unit)

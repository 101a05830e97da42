"""VAR and STDDEV: three whole numbers, the sums of (K-k)^2, 2k(K-k) and k^2.

A row adds a nonnegative vector whose sum is always K^2, so that one row moves all three together by K^2 in L1 and at most
K^2 in L2. A person with more than max_rows rows is scaled down to the weight of max_rows. The same sums give COUNT(x),
SUM(x) and AVG(x); with `others`, a fourth sum counts K^2 for each row where x is NULL, and COUNT(*) comes with it.
Theorems in moments.md.
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

__all__ = ["MOST_CELLS", "Variance"]

MOST_CELLS = 2**20
"""Squares of so many steps stay far within 64 bits; a grid this fine moves a variance by less than its noise ever does."""


@dataclass(frozen=True)
class Variance(Partial):
    """The quadratic Bernstein sums of the values."""

    bounding: ClassVar[Literal["clip", "scale", "once"]] = "scale"
    what: str
    points: Grid
    others: bool = False

    @property
    def label(self) -> str:
        """What is summed, in words."""
        return f"squared distances of {self.what} from its bounds"

    @property
    def serves(self) -> frozenset[str]:
        """All moments up to the second; "rows" is COUNT(*)."""
        moments = {"count", "sum", "avg", "var_samp", "var_pop", "stddev_samp", "stddev_pop"}
        return frozenset({*moments, *(["rows"] if self.others else [])})

    @property
    def width(self) -> int:
        """Three numbers, or four."""
        return 4 if self.others else 3

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
        """The L1 norm is K^2; L2 and Linf are largest at the ends of the grid."""
        square = self.points.cells**2
        return Reach(square, square**2, square, spread=square)

    @property
    def unit(self) -> Fraction:
        """The squared step of the grid."""
        return self.points.step**2

    def sums(self, argument: exp.Expr) -> tuple[exp.Expr, ...]:
        """The number of rows with a value, the sums of their steps and of the squares of these; and of all rows."""
        first = exp.Literal.number(abs(self.points.first))
        sign = exp.Sub if self.points.first >= 0 else exp.Add
        steps = exp.paren(sign(this=argument.copy(), expression=first))
        square = exp.Mul(this=steps.copy(), expression=steps.copy())
        three = exp.Count(this=argument), exp.Sum(this=steps), exp.Sum(this=square)
        return (*three, exp.Count(this=exp.Star())) if self.others else three

    def vector(self, sums: Integers) -> Integers:
        """(K^2 n - 2K s + q, 2(K s - q), q) from the sums n, s, q of 1, k, k^2."""
        rows, steps, squares = sums[:, 0], sums[:, 1], sums[:, 2]
        k = self.points.cells
        parts = [k * k * rows - 2 * k * steps + squares, 2 * (k * steps - squares), squares]
        if self.others:
            parts.append(k * k * (sums[:, 3] - rows))
        return np.stack(parts, axis=1)

    def estimate(self, function: str, noisy: Integers, unit: int, noise: Noise, confidence: float) -> Estimates:
        """The variance or deviation, or a lower moment."""
        if function == "rows":
            return moments.linear(noisy, self._row_weights(unit), noise, confidence)
        noisy = noisy[:, :3]
        span, sample = self._span(unit), function.endswith("samp")
        if function.startswith("var"):
            return moments.variance(noisy, span, noise, confidence, sample=sample)
        if function.startswith("stddev"):
            return moments.deviation(noisy, span, noise, confidence, sample=sample)
        finish = {"count": moments.count, "sum": moments.total, "avg": moments.mean}[function]
        return finish(noisy, span, noise, confidence)

    def error(self, function: str, unit: int, noise: Noise, confidence: float, rows: float | None) -> float | None:
        """The half-width; those of variance, deviation and mean for an assumed number of rows."""
        span = self._span(unit)
        if function == "rows":
            return moments.linear_error(self._row_weights(unit), noise, confidence)
        if function == "count":
            return moments.count_error(span, noise, confidence, 2)
        if function == "sum":
            return moments.total_error(span, noise, confidence, 2)
        if rows is None:
            return None
        if function == "avg":
            return moments.mean_error(span, noise, rows, confidence, degree=2)
        finish = moments.variance_error if function.startswith("var") else moments.deviation_error
        return finish(span, noise, rows, confidence, sample=function.endswith("samp"))

    def _row_weights(self, unit: int) -> tuple[Fraction, ...]:
        return (Fraction(1, unit * self.points.cells**2),) * self.width

    def _span(self, unit: int) -> moments.Span:
        return moments.Span(self.points.lower, self.points.upper, self.points.cells, unit)

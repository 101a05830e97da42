"""What means and variances share: nonnegative sums of which one row moves all together by K^d, with NULL rows beside them.

A value lies k of K steps above the first point of its grid. Theorems in moments.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal

from sqlglot import exp

from sordino.mechanisms.combination import Noise
from sordino.query.aggregates import moments
from sordino.query.aggregates.estimates import Estimates
from sordino.query.aggregates.grid import Grid
from sordino.query.aggregates.partial import Integers, Partial, Reach

__all__ = ["Bernstein"]


@dataclass(frozen=True)
class Bernstein(Partial):
    """The Bernstein sums of one degree; with `others`, one more number counts K^d for each row without a value.

    A person with more than max_rows rows is scaled down to the weight of max_rows.
    """

    bounding: ClassVar[Literal["clip", "scale", "once"]] = "scale"
    degree: ClassVar[int]
    what: str
    points: Grid
    others: bool = False

    @property
    def serves(self) -> frozenset[str]:
        """Everything linear, and the mean; "rows" is COUNT(*)."""
        return frozenset({"count", "sum", "avg", *(["rows"] if self.others else [])})

    @property
    def width(self) -> int:
        """One number more than the degree, and one for NULLs."""
        return self.degree + 1 + self.others

    @property
    def every_row(self) -> bool:
        """With `others`, NULL counts."""
        return self.others

    @property
    def grid(self) -> Grid:
        """The grid of the values."""
        return self.points

    @property
    def row(self) -> int:
        """What each row adds to all numbers together."""
        return int(self.points.cells**self.degree)

    @property
    def reach(self) -> Reach:
        """The L1 norm is the same for every row; L2 and Linf are largest where one number has all of it."""
        return Reach(self.row, self.row**2, self.row, spread=self.row)

    @property
    def unit(self) -> Fraction:
        """The step of the grid, to the degree."""
        return self.points.step**self.degree

    def steps(self, argument: exp.Expr) -> exp.Expr:
        """How many steps the value lies above the first point."""
        first = exp.Literal.number(abs(self.points.first))
        sign = exp.Sub if self.points.first >= 0 else exp.Add
        return exp.Paren(this=sign(this=argument.copy(), expression=first))

    def estimate(self, function: str, noisy: Integers, unit: int, noise: Noise, confidence: float) -> Estimates:
        """A count, a sum or a mean (by Fieller's confidence set)."""
        if function == "rows":
            return moments.linear(noisy, self._row_weights(unit), noise, confidence)
        finish = {"count": moments.count, "sum": moments.total, "avg": moments.mean}[function]
        return finish(noisy[:, : self.degree + 1], self.span(unit), noise, confidence)

    def error(self, function: str, unit: int, noise: Noise, confidence: float, rows: float | None) -> float | None:
        """The half-width; that of a mean for an assumed number of rows."""
        span = self.span(unit)
        if function == "rows":
            return moments.linear_error(self._row_weights(unit), noise, confidence)
        if function == "count":
            return moments.count_error(span, noise, confidence, self.degree)
        if function == "sum":
            return moments.total_error(span, noise, confidence, self.degree)
        return None if rows is None else moments.mean_error(span, noise, rows, confidence, degree=self.degree)

    def span(self, unit: int) -> moments.Span:
        """What is public of the values, for `moments.py`."""
        return moments.Span(self.points.lower, self.points.upper, self.points.cells, unit)

    def _row_weights(self, unit: int) -> tuple[Fraction, ...]:
        return (Fraction(1, unit * self.row),) * self.width

"""What means and variances share: nonnegative sums of which one row moves all together by K^d, with NULL rows beside
them.

A value lies k of K steps above the first point of its grid. Theorems in moments.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

from sqlglot import exp

from sordino.mechanisms.combination import Noise
from sordino.query.aggregates import moments
from sordino.query.aggregates.estimates import Estimates
from sordino.query.aggregates.grid import Grid
from sordino.query.aggregates.partial import ROWS, Bounding, Integers, Partial, Reach

__all__ = ["Bernstein"]


@dataclass(frozen=True)
class Bernstein(Partial):
    """The Bernstein sums of one degree; with `others`, one more number counts K^d for each row without a value.

    A person with more rows than count is scaled down to the weight of those.
    """

    bounding: ClassVar[Bounding] = "scale"
    degree: ClassVar[int]
    what: str
    points: Grid
    others: bool = False

    @property
    def serves(self) -> frozenset[str]:
        """Everything linear, and the mean; "rows" is COUNT(*)."""
        return frozenset({"count", "sum", "avg", *([ROWS] if self.others else [])})

    def with_rows(self) -> Bernstein:
        """One number more."""
        return replace(self, others=True)

    @property
    def inputs(self) -> int:
        """The sums of all powers up to the degree, and the number of all rows."""
        return self.degree + 1 + self.others

    @property
    def width(self) -> int:
        """One number more than the degree, and one for NULLs."""
        return self.degree + 1 + self.others

    @property
    def every_row(self) -> bool:
        """With `others`, NULL counts."""
        return self.others

    @property
    def grids(self) -> tuple[Grid, ...]:
        """The grid of the values."""
        return (self.points,)

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

    def weights(self, function: str, unit: int) -> tuple[Fraction, ...] | None:
        """Of the counts and the sum, with nothing of the number for NULLs but in COUNT(*)."""
        span, others = self.span(unit), (Fraction(0),) * self.others
        if function == ROWS:
            return (Fraction(1, span.row(self.degree)),) * self.width
        if function == "count":
            return (*span.count_weights(self.degree), *others)
        return (*span.total_weights(self.degree), *others) if function == "sum" else None

    def estimate(
        self, function: str, noisy: Integers, unit: int, noise: Noise, confidence: float
    ) -> Estimates:
        """A count, a sum or a mean (by Fieller's confidence set)."""
        if function != "avg":
            return super().estimate(function, noisy, unit, noise, confidence)
        return moments.mean(noisy[:, : self.degree + 1], self.span(unit), noise, confidence)

    def error(
        self, function: str, unit: int, noise: Noise, confidence: float, rows: float | None
    ) -> float | None:
        """The half-width; that of a mean for an assumed number of rows."""
        if function != "avg" or rows is None:
            return super().error(function, unit, noise, confidence, rows)
        return moments.mean_error(self.span(unit), noise, rows, confidence, degree=self.degree)

    def is_whole(self, function: str) -> bool:
        """Counts, and sums of whole numbers."""
        return function in ("count", ROWS) or (function == "sum" and self.points.whole)

    def never_negative(self, function: str) -> bool:
        """Counts, and sums of numbers that are not negative."""
        return function in ("count", ROWS) or (function == "sum" and self.points.first >= 0)

    def span(self, unit: int) -> moments.Span:
        """What is public of the values, for `moments.py`."""
        return moments.Span(self.points.lower, self.points.upper, self.points.cells, unit)

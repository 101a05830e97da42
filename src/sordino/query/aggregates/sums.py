"""SUM(x): one whole number of steps, the sum of the values on their grid.

Within a group a person's own sum is clipped to what max_rows rows can reach, [min(0, max_rows*first), max(0,
max_rows*last)], so that one person moves it by at most max_rows * max(|first|, |last|) steps; replaced by another person,
by at most the width of that interval.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal

from sqlglot import exp

from sordino.mechanisms.combination import Noise
from sordino.query.aggregates.estimates import Estimates
from sordino.query.aggregates.grid import Grid
from sordino.query.aggregates.moments import linear, linear_error
from sordino.query.aggregates.partial import Integers, Partial, Reach

__all__ = ["MOST_CELLS", "Sum"]

MOST_CELLS = 2**40
"""So many steps times any number of rows and weights stays within 128-bit sums."""


@dataclass(frozen=True)
class Sum(Partial):
    """The sum of the values, in steps."""

    bounding: ClassVar[Literal["clip", "scale", "once"]] = "clip"
    what: str
    points: Grid

    @property
    def label(self) -> str:
        """What is summed, in words."""
        return f"sum of {self.what}"

    @property
    def serves(self) -> frozenset[str]:
        """Sums only."""
        return frozenset({"sum"})

    @property
    def width(self) -> int:
        """One number."""
        return 1

    @property
    def grid(self) -> Grid:
        """The grid of the values."""
        return self.points

    @property
    def reach(self) -> Reach:
        """A row adds between `first` and `last`."""
        most = max(abs(self.points.first), abs(self.points.last))
        return Reach(most, most**2, most, spread=self.points.cells, signed=self.points.first < 0 < self.points.last)

    @property
    def unit(self) -> Fraction:
        """The step of the grid."""
        return self.points.step

    def sums(self, argument: exp.Expr) -> tuple[exp.Expr, ...]:
        """The sum of the steps."""
        return (exp.Sum(this=argument),)

    def estimate(self, function: str, noisy: Integers, unit: int, noise: Noise, confidence: float) -> Estimates:
        """The noisy sum."""
        return linear(noisy, (self.points.step / unit,), noise, confidence)

    def error(self, function: str, unit: int, noise: Noise, confidence: float, rows: float | None) -> float | None:
        """The half-width, which does not depend on the data."""
        return linear_error((self.points.step / unit,), noise, confidence)

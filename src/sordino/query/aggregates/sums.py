"""SUM(x): one whole number of steps, the sum of the values on their grid.

Within a group a person's own sum is clipped to what e rows can reach, [min(0, e*first), max(0, e*last)], e being how
many count there (plan/sensitivity.md). So one person moves it by at most e * max(|first|, |last|) steps; replaced by
another, by at most the width of that interval.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from sqlglot import exp

from sordino.query.aggregates.argument import Argument
from sordino.query.aggregates.grid import MOST_CELLS, Grid
from sordino.query.aggregates.known_mean import KnownMean
from sordino.query.aggregates.mean import Mean, mean_of
from sordino.query.aggregates.partial import Bounding, Partial, Reach
from sordino.query.aggregates.registry import Example, Kind

__all__ = ["KINDS", "Sum"]


@dataclass(frozen=True)
class Sum(Partial):
    """The sum of the values, in steps."""

    bounding: ClassVar[Bounding] = "clip"
    what: str
    points: Grid
    replaced: bool = False

    @property
    def label(self) -> str:
        """What is summed, in words."""
        return f"sum of {self.what}"

    @property
    def serves(self) -> frozenset[str]:
        """Sums only."""
        return frozenset({"sum"})

    def wider(self) -> Mean:
        """The two sums of a mean, which give the count as well."""
        return mean_of(self.what, self.points.widened(), replaced=self.replaced)

    def with_rows(self) -> Partial:
        """The same with one number more."""
        return self.wider().with_rows()

    @property
    def inputs(self) -> int:
        """One sum."""
        return 1

    @property
    def grids(self) -> tuple[Grid, ...]:
        """The grid of the values."""
        return (self.points,)

    @property
    def reach(self) -> Reach:
        """A row adds between `first` and `last`."""
        most = max(abs(self.points.first), abs(self.points.last))
        return Reach(
            most,
            most**2,
            most,
            spread=self.points.cells,
            signed=self.points.first < 0 < self.points.last,
        )

    @property
    def unit(self) -> Fraction:
        """The step of the grid."""
        return self.points.step

    def sums(self, *arguments: exp.Expr) -> tuple[exp.Expr, ...]:
        """The sum of the steps."""
        return (exp.Sum(this=arguments[0]),)

    def weights(self, function: str, unit: int) -> tuple[Fraction, ...]:
        """The number itself, in steps."""
        return (self.points.step / unit,)

    def is_whole(self, function: str) -> bool:
        """Where the values are."""
        return self.points.whole

    def never_negative(self, function: str) -> bool:
        """Where no value is negative."""
        return self.points.first >= 0


def _sum(arguments: tuple[Argument, ...]) -> Partial:
    (argument,) = arguments
    grid = argument.grid("sum", MOST_CELLS)
    return (
        KnownMean(argument.what, grid.widened())
        if argument.known
        else Sum(argument.what, grid, argument.replaced)
    )


KINDS = (
    Kind(
        "sum",
        ("SUM",),
        "sum",
        "The sum; of a condition, the number of rows where it is true.",
        (
            Example("sum", "SUM(cost)", 'so.sum("cost")', "of a condition: how often it is true"),
            Example(
                "of an expression",
                "SUM(price * quantity)",
                'so.sum(so.col("price") * so.col("quantity"))',
            ),
        ),
        _sum,
    ),
)

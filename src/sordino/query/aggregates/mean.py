"""AVG(x): two whole numbers, the sums of K-k and of k, where k of K steps is how far a value lies above the lower
bound.

A row adds (K-k, k): together always K, so that one row moves both sums together by K in L1 and at most K in L2, and
each gets the whole budget. The same two sums give COUNT(x) and SUM(x), and with a third one COUNT(*): a row where x is
NULL adds (0, 0, K). Source: arXiv 2312.06658; theorems in moments.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from sqlglot import exp

from sordino.query.aggregates.argument import Argument
from sordino.query.aggregates.bernstein import Bernstein
from sordino.query.aggregates.grid import MOST_CELLS, Grid
from sordino.query.aggregates.known_mean import KnownMean
from sordino.query.aggregates.partial import Integers, Partial
from sordino.query.aggregates.registry import Example, Kind

__all__ = ["KINDS", "Mean", "mean_of"]


@dataclass(frozen=True)
class Mean(Bernstein):
    """How far all values lie from both bounds."""

    degree: ClassVar[int] = 1

    @property
    def label(self) -> str:
        """What is summed, in words."""
        return f"distances of {self.what} from its bounds"

    def sums(self, *arguments: exp.Expr) -> tuple[exp.Expr, ...]:
        """The number of rows with a value, and the sum of their steps; and the number of all rows."""
        both = exp.Count(this=arguments[0]), exp.Sum(this=self.steps(arguments[0]))
        return (*both, exp.Count(this=exp.Star())) if self.others else both

    def vector(self, sums: Integers) -> Integers:
        """(K n - s, s) from the sums n, s of 1 and k."""
        rows, steps = sums[:, 0], sums[:, 1]
        parts = [self.row * rows - steps, steps]
        if self.others:
            parts.append(self.row * (sums[:, 2] - rows))
        return np.stack(parts, axis=1)


def _mean(arguments: tuple[Argument, ...]) -> Partial:
    (argument,) = arguments
    grid = argument.grid("avg", MOST_CELLS).widened()
    if argument.known:
        return KnownMean(argument.what, grid)
    return mean_of(argument.what, grid, replaced=argument.replaced)


def mean_of(what: str, grid: Grid, *, replaced: bool) -> Mean:
    """The two sums of a mean, around the middle where rows that replace one another meet."""
    from sordino.query.aggregates.centred_mean import CentredMean  # it is a Mean

    return CentredMean(what, grid) if replaced else Mean(what, grid)


KINDS = (
    Kind(
        "avg",
        ("AVG", "MEAN"),
        "mean",
        "The mean; of a condition, the proportion of rows where it is true.",
        (
            Example("mean", "AVG(cost)", 'so.mean("cost")', "MEAN, too"),
            Example("proportion", "AVG(age >= 65)", 'so.mean(so.col("age") >= 65)'),
        ),
        _mean,
    ),
)

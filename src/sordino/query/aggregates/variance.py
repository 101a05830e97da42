"""VAR and STDDEV: three whole numbers, the sums of (K-k)^2, 2k(K-k) and k^2.

A row adds a nonnegative vector whose sum is always K^2, so that one row moves all three together by K^2 in L1 and at
most K^2 in L2. The same sums give COUNT(x), SUM(x) and AVG(x), and with a fourth one COUNT(*). Theorems in moments.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from sqlglot import exp

from sordino.mechanisms.combination import Noise
from sordino.query.aggregates import moments
from sordino.query.aggregates.argument import Argument
from sordino.query.aggregates.bernstein import Bernstein
from sordino.query.aggregates.estimates import Estimates
from sordino.query.aggregates.partial import Integers, Partial
from sordino.query.aggregates.registry import Example, Kind

__all__ = ["KINDS", "MOST_CELLS", "Variance"]

MOST_CELLS = 2**20
"""Squares of this many steps stay far within 64 bits;
a grid this fine moves a variance by less than its noise ever does.
"""


@dataclass(frozen=True)
class Variance(Bernstein):
    """The quadratic Bernstein sums of the values."""

    degree: ClassVar[int] = 2

    @property
    def label(self) -> str:
        """What is summed, in words."""
        return f"squared distances of {self.what} from its bounds"

    @property
    def serves(self) -> frozenset[str]:
        """All moments up to the second."""
        return super().serves | {"var_samp", "var_pop", "stddev_samp", "stddev_pop"}

    def sums(self, *arguments: exp.Expr) -> tuple[exp.Expr, ...]:
        """The number of rows with a value, the sums of their steps and of the squares of these; and of all rows."""
        steps = self.steps(arguments[0])
        square = exp.Mul(this=steps.copy(), expression=steps.copy())
        three = exp.Count(this=arguments[0]), exp.Sum(this=steps), exp.Sum(this=square)
        return (*three, exp.Count(this=exp.Star())) if self.others else three

    def vector(self, sums: Integers) -> Integers:
        """(K^2 n - 2K s + q, 2(K s - q), q) from the sums n, s, q of 1, k, k^2."""
        rows, steps, squares = sums[:, 0], sums[:, 1], sums[:, 2]
        k = self.points.cells
        parts = [k * k * rows - 2 * k * steps + squares, 2 * (k * steps - squares), squares]
        if self.others:
            parts.append(k * k * (sums[:, 3] - rows))
        return np.stack(parts, axis=1)

    def estimate(
        self, function: str, noisy: Integers, unit: int, noise: Noise, confidence: float
    ) -> Estimates:
        """The variance or deviation, or a lower moment."""
        if not function.startswith(("var", "stddev")):
            return super().estimate(function, noisy, unit, noise, confidence)
        finish = moments.variance if function.startswith("var") else moments.deviation
        return finish(
            noisy[:, :3], self.span(unit), noise, confidence, sample=function.endswith("samp")
        )

    def error(
        self, function: str, unit: int, noise: Noise, confidence: float, rows: float | None
    ) -> float | None:
        """The half-width; those of variance and deviation for an assumed number of rows."""
        if not function.startswith(("var", "stddev")):
            return super().error(function, unit, noise, confidence, rows)
        if rows is None:
            return None
        finish = moments.variance_error if function.startswith("var") else moments.deviation_error
        return finish(self.span(unit), noise, rows, confidence, sample=function.endswith("samp"))


def _variance(arguments: tuple[Argument, ...]) -> Partial:
    (argument,) = arguments
    return Variance(argument.what, argument.grid("variance", MOST_CELLS).widened())


KINDS = (
    Kind(
        "var_samp",
        ("VAR_SAMP", "VARIANCE", "VAR"),
        "variance",
        "The variance, of the sample by default.",
        (Example("variance", "VARIANCE(cost)", 'so.variance("cost")', "VAR, VAR_SAMP, too"),),
        _variance,
    ),
    Kind(
        "var_pop",
        ("VAR_POP", "VARIANCE_POP"),
        "variance",
        "The variance of all.",
        (Example("variance of all", "VAR_POP(cost)", 'so.variance("cost", population=True)'),),
        _variance,
        option="population",
    ),
    Kind(
        "stddev_samp",
        ("STDDEV_SAMP", "STDDEV"),
        "stddev",
        "The standard deviation, of the sample by default.",
        (Example("standard deviation", "STDDEV(cost)", 'so.stddev("cost")', "STDDEV_SAMP, too"),),
        _variance,
    ),
    Kind(
        "stddev_pop",
        ("STDDEV_POP",),
        "stddev",
        "The standard deviation of all.",
        (Example("the same of all", "STDDEV_POP(cost)", 'so.stddev("cost", population=True)'),),
        _variance,
        option="population",
    ),
)

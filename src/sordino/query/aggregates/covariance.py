"""COVAR_SAMP(y, x) and COVAR_POP(y, x): four whole numbers, the sums of (K-k)(L-l), (K-k)l, k(L-l) and kl.

A row adds a nonnegative vector whose sum is always K L, so that one row moves all four together by K L in L1 and at
most K L in L2. A row counts where both x and y are not NULL. Theorems in pairs.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, Literal, Self

import numpy as np
from sqlglot import exp

from sordino.mechanisms.combination import Noise
from sordino.query.aggregates import pairs
from sordino.query.aggregates.argument import Argument
from sordino.query.aggregates.estimates import Estimates
from sordino.query.aggregates.grid import Grid
from sordino.query.aggregates.moments import Span
from sordino.query.aggregates.partial import ROWS, Integers, Partial, Reach
from sordino.query.aggregates.registry import Example, Kind

__all__ = ["KINDS", "MOST_CELLS", "Covariance", "of_pair"]

MOST_CELLS = 2**20
"""Products of this many steps stay far within 64 bits; a grid this fine moves a covariance by less than its noise."""


@dataclass(frozen=True)
class Covariance(Partial):
    """The products of the Bernstein sums of y and x; with `others`, one more number counts (K L)^d for all other rows.

    A person with more rows than count is scaled down to the weight of those.
    """

    bounding: ClassVar[Literal["clip", "scale", "once"]] = "scale"
    degree: ClassVar[int] = 1
    what: str
    y: Grid
    x: Grid
    others: bool = False

    @property
    def label(self) -> str:
        """What is summed, in words."""
        powers = "distances" if self.degree == 1 else "squared distances"
        return f"products of {powers} of {self.what} from their bounds"

    @property
    def serves(self) -> frozenset[str]:
        """Both covariances, and COUNT(*) with one number more."""
        return frozenset({"covar_samp", "covar_pop", *([ROWS] if self.others else [])})

    def with_rows(self) -> Self:
        """One number more."""
        return replace(self, others=True)

    @property
    def inputs(self) -> int:
        """The sums of all products of powers up to the degree, and the number of all rows."""
        return self.width

    @property
    def width(self) -> int:
        """As many products as sums, and one for rows without a pair."""
        return (self.degree + 1) ** 2 + self.others

    @property
    def every_row(self) -> bool:
        """With `others`, NULL counts."""
        return self.others

    @property
    def grids(self) -> tuple[Grid, ...]:
        """The grids of y and x."""
        return self.y, self.x

    @property
    def row(self) -> int:
        """What each row adds to all numbers together."""
        return int((self.x.cells * self.y.cells) ** self.degree)

    @property
    def reach(self) -> Reach:
        """The L1 norm is the same for every row; L2 and Linf are largest where one number has all of it."""
        return Reach(self.row, self.row**2, self.row, spread=self.row)

    @property
    def unit(self) -> Fraction:
        """The product of the steps, to the degree."""
        return (self.x.step * self.y.step) ** self.degree

    def sums(self, *arguments: exp.Expr) -> tuple[exp.Expr, ...]:
        """The sums of k^i l^j over the rows with both values, i for x first; and the number of all rows."""
        y, x = (
            _above(argument, grid) for argument, grid in zip(arguments, self.grids, strict=True)
        )
        powers = [[x] * i + [y] * j for i in range(self.degree + 1) for j in range(self.degree + 1)]
        sums = [
            exp.Count(this=arguments[0]),
            *(exp.Sum(this=_times(factors)) for factors in powers[1:]),
        ]
        return (*sums, exp.Count(this=exp.Star())) if self.others else tuple(sums)

    def vector(self, sums: Integers) -> Integers:
        """The Bernstein polynomials of both, multiplied out."""
        size = self.degree + 1
        products = sums[:, : size**2].reshape(len(sums), size, size)
        x, y = (_polynomials(grid.cells, self.degree) for grid in (self.x, self.y))
        found: Integers = (x @ products @ y.T).reshape(len(sums), size**2)
        if not self.others:
            return found
        return np.concatenate([found, self.row * (sums[:, -1:] - sums[:, :1])], axis=1)

    def weights(self, function: str, unit: int) -> tuple[Fraction, ...] | None:
        """Of COUNT(*)."""
        return (Fraction(1, unit * self.row),) * self.width if function == ROWS else None

    def is_whole(self, function: str) -> bool:
        """The count."""
        return function == ROWS

    def never_negative(self, function: str) -> bool:
        """The count."""
        return function == ROWS

    def estimate(
        self, function: str, noisy: Integers, unit: int, noise: Noise, confidence: float
    ) -> Estimates:
        """The covariance, or the count."""
        if function == ROWS:
            return super().estimate(function, noisy, unit, noise, confidence)
        return self.finished(
            function, noisy[:, : (self.degree + 1) ** 2], self.plane(unit), noise, confidence
        )

    def error(
        self, function: str, unit: int, noise: Noise, confidence: float, rows: float | None
    ) -> float | None:
        """The half-width for an assumed number of rows, spread evenly and independently over both bounds."""
        if function == ROWS or rows is None:
            return super().error(function, unit, noise, confidence, rows)
        plane = self.plane(unit)
        found = self.finished(
            function, pairs.typical(plane, rows, self.degree), plane, noise, confidence
        )
        width = float(found.half_width[0])
        return math.inf if math.isnan(width) else width

    def finished(
        self, function: str, noisy: Integers, plane: pairs.Plane, noise: Noise, confidence: float
    ) -> Estimates:
        """The aggregate of the products alone."""
        return pairs.covariance(noisy, plane, noise, confidence, sample=function.endswith("samp"))

    def plane(self, unit: int) -> pairs.Plane:
        """What is public of both values, for `pairs.py`."""
        x, y = (Span(grid.lower, grid.upper, grid.cells) for grid in (self.x, self.y))
        return pairs.Plane(x, y, unit)


def _above(argument: exp.Expr, grid: Grid) -> exp.Expr:
    """How many steps a value lies above the first point."""
    sign = exp.Sub if grid.first >= 0 else exp.Add
    return exp.Paren(
        this=sign(this=argument.copy(), expression=exp.Literal.number(abs(grid.first)))
    )


def _times(factors: list[exp.Expr]) -> exp.Expr:
    product = factors[0].copy()
    for factor in factors[1:]:
        product = exp.Mul(this=product, expression=factor.copy())
    return product


def _polynomials(cells: int, degree: int) -> Integers:
    """The rows are the coefficients of 1, k, k^2 in the Bernstein polynomials, times K^degree."""
    if degree == 1:
        return np.array([[cells, -1], [0, 1]], object)
    return np.array([[cells**2, -2 * cells, 1], [0, 2 * cells, -2], [0, 0, 1]], object)


def of_pair(
    kind: type[Covariance], function: str, most: int, arguments: tuple[Argument, ...]
) -> Covariance:
    """The sums of y and x, in this order, on grids of at most this many steps."""
    y, x = (argument.grid(function, most).widened() for argument in arguments)
    return kind(" and ".join(argument.what for argument in arguments), y, x)


def _covariance(arguments: tuple[Argument, ...]) -> Partial:
    return of_pair(Covariance, "covariance", MOST_CELLS, arguments)


KINDS = (
    Kind(
        "covar_samp",
        ("COVAR_SAMP",),
        "covariance",
        "The covariance of two numbers, of the sample by default.",
        (
            Example(
                "covariance",
                "COVAR_SAMP(cost, age)",
                'so.covariance("cost", "age")',
                "of rows where both are known",
            ),
        ),
        _covariance,
        arguments=("y", "x"),
    ),
    Kind(
        "covar_pop",
        ("COVAR_POP",),
        "covariance",
        "The covariance of all.",
        (
            Example(
                "covariance of all",
                "COVAR_POP(cost, age)",
                'so.covariance("cost", "age", population=True)',
            ),
        ),
        _covariance,
        arguments=("y", "x"),
        option="population",
    ),
)

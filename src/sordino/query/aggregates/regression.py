"""CORR, REGR_SLOPE, REGR_INTERCEPT and REGR_R2 of (y, x): nine whole numbers, the products of the quadratic Bernstein
sums.

A row adds a nonnegative vector whose sum is always (K L)^2, so that one row moves all nine together by (K L)^2 in L1
and at most (K L)^2 in L2. The same sums give both covariances. Theorems in pairs.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from sordino.mechanisms.combination import Noise
from sordino.query.aggregates import pairs
from sordino.query.aggregates.argument import Argument
from sordino.query.aggregates.covariance import Covariance, of_pair
from sordino.query.aggregates.estimates import Estimates
from sordino.query.aggregates.partial import Integers, Partial
from sordino.query.aggregates.registry import Example, Kind

__all__ = ["KINDS", "MOST_CELLS", "Regression"]

MOST_CELLS = 2**15
"""Products of the squares of this many steps stay within 64 bits (pairs.md: such a grid loses less than the noise)."""


@dataclass(frozen=True)
class Regression(Covariance):
    """The products of the quadratic Bernstein sums of y and x."""

    degree: ClassVar[int] = 2

    @property
    def serves(self) -> frozenset[str]:
        """All moments of both numbers up to the second."""
        return super().serves | {"corr", "regr_slope", "regr_intercept", "regr_r2"}

    def never_negative(self, function: str) -> bool:
        """The count, and the share of the variance."""
        return function == "regr_r2" or super().never_negative(function)

    def finished(
        self, function: str, noisy: Integers, plane: pairs.Plane, noise: Noise, confidence: float
    ) -> Estimates:
        """The correlation or regression, or the covariance."""
        match function:
            case "corr":
                return pairs.correlation(noisy, noise, confidence)
            case "regr_r2":
                return pairs.r_squared(noisy, noise, confidence)
            case "regr_slope":
                return pairs.slope(noisy, plane, noise, confidence)
            case "regr_intercept":
                return pairs.intercept(noisy, plane, noise, confidence)
            case _:
                return super().finished(function, noisy, plane, noise, confidence)


def _regression(arguments: tuple[Argument, ...]) -> Partial:
    return of_pair(Regression, "a regression", MOST_CELLS, arguments)


def _kind(name: str, python: str, says: str, note: str) -> Kind:
    example = Example(
        says.removesuffix(".").lower(),
        f"{name.upper()}(cost, age)",
        f'so.{python}("cost", "age")',
        note,
    )
    return Kind(name, (name.upper(),), python, says, (example,), _regression, arguments=("y", "x"))


KINDS = (
    _kind("corr", "correlation", "Correlation.", "from -1 to 1; NULL where a number does not vary"),
    _kind("regr_slope", "slope", "Slope of the line through y over x.", "REGR_SLOPE(y, x); NULL where x does not vary"),
    _kind("regr_intercept", "intercept", "Where the line through y over x meets x = 0.", "y comes first"),
    _kind("regr_r2", "r_squared", "Share of the variance of y that the line explains.", "from 0 to 1"),
)  # fmt: skip

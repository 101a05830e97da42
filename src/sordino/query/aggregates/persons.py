"""COUNT(DISTINCT person): one whole number, to which each person adds 1, however many rows the person has.

One person moves a group's number by at most 1; nothing has to be declared for that.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal

from sqlglot import exp

from sordino.mechanisms.combination import Noise
from sordino.query.aggregates.estimates import Estimates
from sordino.query.aggregates.moments import linear, linear_error
from sordino.query.aggregates.partial import Integers, Partial, Reach

__all__ = ["Persons"]


@dataclass(frozen=True)
class Persons(Partial):
    """The number of persons."""

    bounding: ClassVar[Literal["clip", "scale", "once"]] = "once"

    @property
    def label(self) -> str:
        """What is summed, in words."""
        return "number of persons"

    @property
    def serves(self) -> frozenset[str]:
        """The count of distinct persons."""
        return frozenset({"count_distinct"})

    @property
    def width(self) -> int:
        """One number."""
        return 1

    @property
    def reach(self) -> Reach:
        """A person adds 1."""
        return Reach(l1=1, l2_squared=1, linf=1, spread=0)

    @property
    def always(self) -> bool:
        """Every person counts."""
        return True

    @property
    def unit(self) -> Fraction:
        """Persons."""
        return Fraction(1)

    def sums(self, argument: exp.Expr) -> tuple[exp.Expr, ...]:
        """One for each person; where each row is another person, one for each row."""
        return (exp.Count(this=exp.Star()),)

    def estimate(self, function: str, noisy: Integers, unit: int, noise: Noise, confidence: float) -> Estimates:
        """The noisy count."""
        return linear(noisy, (Fraction(1, unit),), noise, confidence)

    def error(self, function: str, unit: int, noise: Noise, confidence: float, rows: float | None) -> float | None:
        """The half-width, which does not depend on the data."""
        return linear_error((Fraction(1, unit),), noise, confidence)

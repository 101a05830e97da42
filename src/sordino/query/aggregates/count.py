"""COUNT(*) and COUNT(x): one whole number, to which each row that counts adds 1.

Within a group a person counts for at most max_rows rows: the person's own count is clipped. One person therefore moves a
group's count by at most max_rows.
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

__all__ = ["Rows"]


@dataclass(frozen=True)
class Rows(Partial):
    """The number of rows; with an argument, of rows where it is not NULL."""

    bounding: ClassVar[Literal["clip", "scale", "once"]] = "clip"
    what: str | None = None

    @property
    def label(self) -> str:
        """What is summed, in words."""
        return "number of rows" if self.what is None else f"number of values of {self.what}"

    @property
    def serves(self) -> frozenset[str]:
        """Counts only."""
        return frozenset({"count"})

    @property
    def width(self) -> int:
        """One number."""
        return 1

    @property
    def reach(self) -> Reach:
        """A row adds 1; two rows that both count add the same."""
        return Reach(l1=1, l2_squared=1, linf=1, spread=0)

    @property
    def always(self) -> bool:
        """COUNT(*) counts every row; an argument may be NULL, even where the declaration says that it is not."""
        return self.what is None

    @property
    def unit(self) -> Fraction:
        """Rows."""
        return Fraction(1)

    def sums(self, argument: exp.Expr) -> tuple[exp.Expr, ...]:
        """The count itself."""
        return (exp.Count(this=argument),)

    def estimate(self, function: str, noisy: Integers, unit: int, noise: Noise, confidence: float) -> Estimates:
        """The noisy count."""
        return linear(noisy, (Fraction(1, unit),), noise, confidence)

    def error(self, function: str, unit: int, noise: Noise, confidence: float, rows: float | None) -> float | None:
        """The half-width, which does not depend on the data."""
        return linear_error((Fraction(1, unit),), noise, confidence)

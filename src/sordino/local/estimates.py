"""What a collector learns: shares of categories, or a mean, with intervals.

Theorem. The nearest shares that are not negative and sum to one are no farther from the true shares than the estimates
were. Proof: the simplex is convex and holds the truth, and the projection on a closed convex set brings no point
farther from any point of the set.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from sordino.errors import InvalidInput
from sordino.local.intervals import Floats, SupportLaw, level
from sordino.local.protocol import Counts
from sordino.local.report_text import one_line, several, share_lines
from sordino.privacy.exact import Number

__all__ = ["Frequencies", "Mean", "checked_population", "frequencies", "nearest_shares"]


def nearest_shares(estimates: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The shares of the simplex nearest to the estimates: all lowered alike, and those below zero set to zero.

    Source: Held, Wolfe and Crowder 1974.
    """
    falling = -np.sort(-estimates)
    excess = np.cumsum(falling) - 1
    kept = np.flatnonzero(falling * np.arange(1, len(falling) + 1) > excess)[-1]
    shares = np.maximum(estimates - excess[kept] / (kept + 1), 0.0)
    return np.asarray(shares / shares.sum())


_SHOWN = 12


@dataclass(frozen=True, eq=False, repr=False)
class Frequencies:
    """Estimated shares, one for each category, with standard errors and an interval for each.

    The shares are unbiased, so that one can fall outside [0, 1]; the intervals never do. Each interval holds at the
    stated confidence by itself: for the share among those who answered, or (`population`) among those they were drawn
    from.
    """

    answers: int
    confidence: float
    population: bool
    names: tuple[str, ...] | None
    shares: Floats
    standard_errors: Floats
    lower: Floats
    upper: Floats

    @property
    def counts(self) -> Floats:
        """The estimated number of those who answered in each category."""
        return self.shares * self.answers

    def consistent(self) -> Frequencies:
        """The same with the nearest shares that are not negative and sum to one.

        Never farther from the truth in total squared error, but no longer unbiased. Intervals and standard errors stay
        those of the unbiased estimates.
        """
        return replace(self, shares=nearest_shares(self.shares))

    def to_arrow(self) -> Any:
        """A table with one row for each category."""
        import pyarrow as pa

        names = self.names if self.names is not None else np.arange(len(self.shares))
        return pa.table(
            {
                "category": names,
                "share": self.shares,
                "lower": self.lower,
                "upper": self.upper,
                "standard_error": self.standard_errors,
                "count": self.counts,
            }
        )

    def __repr__(self) -> str:
        whom = "the population" if self.population else "those who answered"
        lines = [
            f"{several(self.answers, 'report')}; shares of {whom}, {self.confidence:.4g} intervals"
        ]
        order = np.argsort(-self.shares, kind="stable")
        names = self.names or range(len(self.shares))
        lines += share_lines(
            (names[i], self.shares[i], self.lower[i], self.upper[i])
            for i in order[:_SHOWN].tolist()
        )
        if len(order) > _SHOWN:
            lines.append(f"  and {len(order) - _SHOWN} more with smaller estimates")
        return "\n".join(lines)


@dataclass(frozen=True, repr=False)
class Mean:
    """An estimated mean with its standard error and an interval, for the population that the answers were drawn from.

    Among those who answered it holds too, a little too carefully where their values differ much.
    """

    answers: int
    confidence: float
    mean: float
    standard_error: float
    lower: float
    upper: float

    def __repr__(self) -> str:
        source = f"from {several(self.answers, 'report')} at {self.confidence:.4g}"
        return f"{self.mean:.6g}  [{self.lower:.6g}, {self.upper:.6g}]  {source}"


def frequencies(
    answers: int,
    counts: Counts,
    own: Fraction,
    other: Fraction,
    confidence: Number,
    names: tuple[str, ...] | None,
    *,
    population: bool,
) -> Frequencies:
    """Shares from supports: (count/answers - other)/(own - other), each with its interval."""
    checked_population(population)
    law = SupportLaw(answers, own, other, population)
    shares = law.share(counts)
    lower, upper = law.ends(counts, level(confidence))
    errors = law.deviation(np.clip(shares, 0, 1))
    return Frequencies(answers, float(confidence), population, names, shares, errors, lower, upper)


def checked_population(population: Any) -> None:
    """Refuse anything but True and False: the size of a population is not asked for."""
    if not isinstance(population, bool | np.bool_):
        hint = "Pass True for shares of the population that persons were drawn from; its size is not needed."
        raise InvalidInput(
            f"population={one_line(population)}", "population must be True or False", hint
        )

"""QUANTILE(x, level): all levels of one column are drawn together, from the weights of its values (quantiles.py)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sqlglot import exp

from sordino.privacy.exact import four_digits, readable
from sordino.privacy.wording import counted
from sordino.query.aggregates.argument import Argument
from sordino.query.aggregates.draws import Cells, Draws
from sordino.query.aggregates.estimates import Estimated, Estimates
from sordino.query.aggregates.grid import Grid
from sordino.query.aggregates.quantiles import (
    QuantileEstimate,
    interval_rank,
    noisy_quantiles,
    rank_error,
)
from sordino.query.aggregates.registry import Example, Kind
from sordino.query.tree import Aggregate

__all__ = ["KINDS", "MOST_POSITIONS", "QuantileColumn"]

MOST_POSITIONS = 2**20


@dataclass(frozen=True)
class QuantileColumn(Draws):
    """Quantiles of one column, all for one charge."""

    noun: ClassVar[str] = "quantiles"
    points: Grid
    levels: tuple[Fraction, ...]
    rounded: Fraction = Fraction(0)
    """How far a value may be from the point that stands for it, where these are coarser than the values, or these have
    no step.
    """
    ends: tuple[Fraction, Fraction] | None = None
    """Between which numbers the values lie then."""

    @property
    def positions(self) -> int:
        """The points of the grid."""
        return self.points.cells + 1

    def places(self, cells: Sequence[Any]) -> npt.NDArray[np.int64]:
        """Counted from the first point of the grid."""
        return np.array(cells, np.int64) - self.points.first

    @property
    def draws(self) -> int:
        """One for each level."""
        return len(self.levels)

    @property
    def label(self) -> str:
        """The column and its grid."""
        return f"of {self.what} on {counted(self.positions, 'point')}, step {readable(self.points.step)}"

    def value(self, argument: Argument) -> exp.Expr:
        """The steps of the value."""
        return argument.steps(self.points)

    def draw(
        self, cells: Cells, epsilon: Fraction, l1: int, confidence: Fraction
    ) -> tuple[QuantileEstimate, ...]:
        """Theorems of quantiles.md."""
        values, weights = cells
        return noisy_quantiles(
            values,
            weights,
            positions=self.positions,
            levels=self.levels,
            rate=epsilon / l1,
            confidence=confidence,
        )

    def exactly(self, cells: Cells) -> tuple[QuantileEstimate, ...]:
        """The smallest value with at least the level's share of the rows at or below it."""
        values, weights = cells
        below = np.cumsum(weights)
        found = []
        for level in self.levels:
            wanted = math.ceil(level * int(below[-1])) if len(below) else 0
            at = int(np.searchsorted(below, wanted))
            value = int(values[min(at, len(values) - 1)]) if len(values) else 0
            found.append(QuantileEstimate(value, value, value))
        return tuple(found)

    def estimated(self, value: Aggregate, drawn: list[tuple[Any, ...]]) -> Estimated:
        """The level's points."""
        at = self.levels.index(value.parameter or Fraction(0))
        rows = [group[at] for group in drawn]
        found = (
            [float(self._within(self._point(getattr(row, end)) + far)) for row in rows]
            for end, far in (("value", 0), ("low", -self.rounded), ("high", self.rounded))
        )
        return Estimated(Estimates(*(np.array(end, float) for end in found)), self.points.whole)

    def _point(self, place: int) -> Fraction:
        return self.points.step * (self.points.first + place)

    def _within(self, number: Fraction) -> Fraction:
        return number if self.ends is None else min(max(number, self.ends[0]), self.ends[1])

    def errors(self, epsilon: Fraction, l1: int, unit: int, confidence: Fraction) -> list[str]:
        """By how many rows each level's rank may be off."""
        rate, count, lines = epsilon / l1, len(self.levels), []
        for level in self.levels:
            rank = rank_error(rate, confidence, levels=count, level=level) / unit
            wide = interval_rank(rate, self.positions, confidence, levels=count, level=level) / unit
            lines.append(
                f"exponential mechanism; level {readable(level)}: rank within about {four_digits(rank)} rows, "
                f"interval about ± {four_digits(wide)} rows"
            )
        return lines


def _drawn(arguments: tuple[Argument, ...], levels: tuple[Fraction, ...]) -> Draws:
    (argument,) = arguments
    points = argument.grid("quantile", MOST_POSITIONS)
    if points.step == argument.step or argument.limits is None:
        return QuantileColumn(argument.what, points, levels)
    return QuantileColumn(argument.what, points, levels, points.step / 2, argument.limits)


KINDS = (
    Kind(
        "quantile",
        ("QUANTILE", "APPROX_QUANTILE", "PERCENTILE_CONT", "PERCENTILE_DISC"),
        "quantile",
        "The value below which that share of the rows lies.",
        (
            Example(
                "quantile",
                "QUANTILE(cost, 0.9)",
                'so.quantile("cost", 0.9)',
                "QUANTILE_CONT, QUANTILE_DISC, APPROX_QUANTILE, too",
            ),
            Example("median", "MEDIAN(cost)", 'so.median("cost")'),
            Example(
                "quantile, standard",
                "PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY cost)",
                'so.quantile("cost", 0.9)',
                "PERCENTILE_DISC, too",
            ),
        ),
        draws=_drawn,
        parameter="level",
        fixed={"MEDIAN": Fraction(1, 2)},
    ),
)

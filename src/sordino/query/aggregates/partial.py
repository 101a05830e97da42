"""Partial sums: the whole numbers that are summed over rows, bounded for each person, and released with noise.

An aggregate is finished from the noisy partial sums of one release. Each kind of partial sums says what is summed over
the rows (`sums`), how a person is bounded (`bounding`), how far one row reaches (`reach`), which aggregates it answers
(`serves`), and what would answer more of them together (`wider`, `with_rows`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from sqlglot import exp

from sordino.mechanisms.combination import Family, Noise
from sordino.query.aggregates.estimates import Estimated, Estimates
from sordino.query.aggregates.grid import Grid
from sordino.query.aggregates.moments import linear, linear_error

__all__ = ["ROWS", "Bounding", "Integers", "Partial", "Reach"]

ROWS = "rows"
"""COUNT(*), among what partial sums of an argument serve."""

Integers = npt.NDArray[np.object_]
"""Python integers, one row for each group."""


Bounding: TypeAlias = Literal["clip", "scale", "once", "choose"]


@dataclass(frozen=True)
class Reach:
    """Norms of the vector of one row, and of the difference of two rows' vectors where both rows certainly count.

    `signed` says that two rows' vectors may point in opposite directions. `replaced` holds norms of the difference of
    two rows' vectors, either of which may be missing, where they are less than what follows from those of one.
    """

    l1: int
    l2_squared: int
    linf: int
    spread: int
    signed: bool = False
    replaced: Reach | None = None


@dataclass(frozen=True)
class Partial(ABC):
    """One vector of whole numbers for each group.

    Bounding a person within a group: "clip" cuts each of the person's sums to what the rows that count can reach;
    "scale" multiplies all of them by these rows/rows where the person has more rows; "once" needs none; "choose" keeps
    at most as many of the person's values.
    """

    bounding: ClassVar[Bounding]

    @property
    @abstractmethod
    def label(self) -> str:
        """What is summed, in words."""

    @property
    @abstractmethod
    def serves(self) -> frozenset[str]:
        """The aggregates of the same arguments that it answers."""

    def wider(self) -> Partial | None:
        """Partial sums that answer the same and more, worth their price only where more is asked;
        None if there are none.
        """
        return None

    def suited(self, family: Family) -> Partial:
        """The partial sums for noise of one family; what the engine sums is the same."""
        return self

    def with_rows(self) -> Partial | None:
        """Partial sums that answer the same and COUNT(*), for no higher price; None if there are none."""
        return None

    @property
    @abstractmethod
    def inputs(self) -> int:
        """The number of sums that the engine computes."""

    @property
    def width(self) -> int:
        """The number of coordinates that are released."""
        return 1

    @property
    @abstractmethod
    def reach(self) -> Reach:
        """How far one row moves the vector."""

    @property
    def always(self) -> bool:
        """Whether every row counts, whatever its cells are."""
        return False

    @property
    def every_row(self) -> bool:
        """Whether rows with a NULL argument count, too, when a person's rows are counted for scaling."""
        return False

    @property
    def grids(self) -> tuple[Grid, ...]:
        """The grids on which the arguments are put, if their values are summed."""
        return ()

    @property
    def unit(self) -> Fraction:
        """What one step of a coordinate means in the answer's own units; 1 for counts."""
        return Fraction(1)

    @abstractmethod
    def sums(self, *arguments: exp.Expr) -> tuple[exp.Expr, ...]:
        """The SQL sums over rows of the arguments: whole steps,
        all NULL where a row does not count, or * for all rows.
        """

    def vector(self, sums: Integers) -> Integers:
        """The vectors to release, made of the (bounded) sums: a linear map in whole numbers."""
        return sums

    def public(self, sums: Integers) -> Integers | None:
        """Numbers that neighbours share, so that they need no noise; they reach `estimate` behind the noisy ones."""
        return None

    def weights(self, function: str, unit: int) -> tuple[Fraction, ...] | None:
        """The weights with which the coordinates (public ones behind) add up to the aggregate;
        None if it is no such sum.
        """
        return None

    def estimate(
        self, function: str, noisy: Integers, unit: int, noise: Noise, confidence: float
    ) -> Estimates:
        """The aggregate `function` from noisy vectors in units of 1/`unit`; here where it is a weighted sum."""
        weights = self.weights(function, unit)
        if weights is None:
            raise NotImplementedError(function)
        return linear(noisy, weights, noise, confidence, noisy=self.width)

    def error(
        self, function: str, unit: int, noise: Noise, confidence: float, rows: float | None
    ) -> float | None:
        """The half-width to expect before data are seen;
        None where it depends on a number of rows that was not assumed.
        """
        weights = self.weights(function, unit)
        return None if weights is None else linear_error(weights[: self.width], noise, confidence)

    def estimated(
        self, function: str, noisy: Integers, unit: int, noise: Noise, confidence: float
    ) -> Estimated:
        """The estimates with what is publicly known of the exact numbers."""
        estimates = Estimates(*(np.empty(0),) * 3)
        if len(noisy):
            estimates = self.estimate(function, noisy, unit, noise, confidence)
        return Estimated(estimates, self.is_whole(function), self.never_negative(function))

    def is_whole(self, function: str) -> bool:
        """Whether the exact aggregate is a whole number."""
        return False

    def never_negative(self, function: str) -> bool:
        """Whether the exact aggregate cannot be negative."""
        return False

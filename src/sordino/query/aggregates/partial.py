"""Partial sums: the whole numbers that are summed over rows, bounded for each person, and released with noise.

An aggregate is finished from the noisy partial sums of one channel. Each kind of partial sums says what is summed over the
rows (`sums`), how a person is bounded (`bounding`), how far one row reaches (`reach`), and which aggregates it answers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt
from sqlglot import exp

from sordino.mechanisms.combination import Noise
from sordino.query.aggregates.estimates import Estimates
from sordino.query.aggregates.grid import Grid

__all__ = ["Integers", "Partial", "Reach"]

Integers = npt.NDArray[np.object_]
"""Python integers, one row for each group."""


@dataclass(frozen=True)
class Reach:
    """Norms of the vector of one row, and of the difference of two rows' vectors where both rows certainly count.

    `signed` says that two rows' vectors may point in opposite directions.
    """

    l1: int
    l2_squared: int
    linf: int
    spread: int
    signed: bool = False


@dataclass(frozen=True)
class Partial(ABC):
    """One vector of whole numbers for each group.

    Bounding a person within a group: "clip" cuts each of the person's sums to what `max_rows` rows can reach; "scale"
    multiplies all of them by max_rows/rows where the person has more rows; "once" needs none.
    """

    bounding: ClassVar[Literal["clip", "scale", "once"]]

    @property
    @abstractmethod
    def label(self) -> str:
        """What is summed, in words."""

    @property
    @abstractmethod
    def serves(self) -> frozenset[str]:
        """The aggregates of the same argument that it answers."""

    @property
    @abstractmethod
    def width(self) -> int:
        """The number of coordinates that are released."""

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
    def grid(self) -> Grid | None:
        """The grid on which the argument is put, if its values are summed."""
        return None

    @property
    @abstractmethod
    def unit(self) -> Fraction:
        """What one step of a coordinate means in the answer's own units; 1 for counts."""

    @abstractmethod
    def sums(self, argument: exp.Expr) -> tuple[exp.Expr, ...]:
        """The SQL sums over rows of the argument: whole steps, NULL where a row does not count, or * for all rows."""

    def vector(self, sums: Integers) -> Integers:
        """The vectors to release, made of the (bounded) sums: a linear map in whole numbers."""
        return sums

    def public(self, sums: Integers) -> Integers | None:
        """Numbers that neighbours share, so that they need no noise; they reach `estimate` behind the noisy ones."""
        return None

    @abstractmethod
    def estimate(self, function: str, noisy: Integers, unit: int, noise: Noise, confidence: float) -> Estimates:
        """The aggregate `function` from noisy vectors in units of 1/`unit`."""

    @abstractmethod
    def error(self, function: str, unit: int, noise: Noise, confidence: float, rows: float | None) -> float | None:
        """The half-width to expect before data are seen; None where it depends on a number of rows that was not assumed."""

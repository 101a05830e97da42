"""Values drawn from the weights of all values in a group: what quantiles have instead of partial sums."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sqlglot import exp

from sordino.query.aggregates.argument import Argument
from sordino.query.aggregates.estimates import Chosen, Estimated
from sordino.query.tree import Aggregate

__all__ = ["Cells", "Draws"]

Cells = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]
"""The values that occur in a group, as whole numbers from 0 on, sorted; and the weight of each."""


@dataclass(frozen=True)
class Draws(ABC):
    """What is drawn for each group, all of it for one epsilon.

    `positions` is how many values there can be, publicly.
    """

    noun: ClassVar[str]
    what: str

    @property
    @abstractmethod
    def positions(self) -> int:
        """How many different values there can be."""

    @property
    def draws(self) -> int:
        """How many values are drawn for one group."""
        return 1

    @property
    @abstractmethod
    def label(self) -> str:
        """What is drawn, in words."""

    @property
    def is_number(self) -> bool:
        """Whether what is drawn is a number with an interval."""
        return True

    @abstractmethod
    def places(self, cells: Sequence[Any]) -> npt.NDArray[np.int64]:
        """The places, from 0 on, of what the engine returns for values; negative where it is none of them."""

    @abstractmethod
    def value(self, argument: Argument) -> exp.Expr:
        """SQL of the whole number that stands for a row's value; NULL where the row does not count."""

    @abstractmethod
    def draw(
        self, cells: Cells, epsilon: Fraction, l1: int, confidence: Fraction
    ) -> tuple[Any, ...]:
        """What is drawn from the weights of one group;
        epsilon-private where a person moves at most `l1` weight in all.
        """

    @abstractmethod
    def exactly(self, cells: Cells) -> tuple[Any, ...]:
        """The same without chance, for public tables."""

    @abstractmethod
    def estimated(self, value: Aggregate, drawn: list[tuple[Any, ...]]) -> Estimated | Chosen:
        """The answer column of one aggregate, of what was drawn for each group."""

    @abstractmethod
    def errors(self, epsilon: Fraction, l1: int, unit: int, confidence: Fraction) -> list[str]:
        """What to expect of the draws, in words; `unit` is the weight of a whole row."""

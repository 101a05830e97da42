"""Direct answers: k-ary randomized response, the best protocol for few categories.

Theorem. A report is log(odds)-differentially private: it is the true category with probability odds/(odds + k - 1),
and each other one with probability 1/(odds + k - 1). Proof in protocols.md.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property

import numpy as np

from sordino.local import protocol
from sordino.local.answers import Indices
from sordino.local.frequency import Frequency
from sordino.local.protocol import Column, Counts, below, chance
from sordino.mechanisms.bits import Bits
from sordino.mechanisms.randomized_response import RandomizedResponse

__all__ = ["Direct"]


class Direct(Frequency):
    """Report the true category, or sometimes another one.

    Example:
        >>> coin = Direct(odds=3, categories=["yes", "no"])
        >>> coin.own, coin.variance(persons=100)
        (Fraction(3, 4), Fraction(3, 400))
    """

    kind = "local.direct"

    @cached_property
    def response(self) -> RandomizedResponse:
        """The mechanism that makes the reports."""
        return RandomizedResponse(self.own, self.categories)

    @property
    def own(self) -> Fraction:
        """The probability of the true category."""
        return self.odds / (self.odds + self.categories - 1)

    @property
    def other(self) -> Fraction:
        """The probability of each other category."""
        return 1 / (self.odds + self.categories - 1)

    @property
    def bits(self) -> int:
        """How many bits one report needs."""
        return (self.categories - 1).bit_length()

    @property
    def limit(self) -> int:
        """A report is a category."""
        return self.categories

    def _draw(self, true: Indices, source: Bits) -> Column:  # noqa: ARG002
        reports: Column = self.response.release(true)
        return reports

    def _draw_one(self, true: int, source: Bits) -> int:
        if chance(self.own, source):
            return true
        return (true + 1 + below(self.categories - 1, source)) % self.categories

    def supports(self, column: Column) -> Counts:
        """How many reports name each category."""
        return np.bincount(column, minlength=self.categories)

    def supports_of_cells(self, cells: Counts) -> Counts:
        """Each report names one category."""
        return cells


protocol.kinds["local.direct", 1] = Direct.from_fields

"""What an exact audit knows of two output laws, and how it decides a claim about them."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Protocol

from flint import arb

from sordino.audit.reporting.report import Figure, Grid
from sordino.privacy.ball import ball, working

__all__ = ["Truth", "exceeds"]

_MOST_BITS = 4096
_EQUAL = 1024


class Truth(Protocol):
    """The two laws of a mechanism on its worst, or a given, pair of neighbours."""

    @property
    def relation(self) -> str:
        """Which two inputs, in words."""

    def delta_ball(self, epsilon: Fraction) -> arb:
        """The smallest delta that holds with this epsilon, in both directions, at the working precision."""

    def epsilon_bounds(self, delta: Fraction) -> tuple[float, float]:
        """The smallest epsilon >= 0 that holds with this delta, rounded down and up."""

    def witness(self, epsilon: Fraction, delta: Fraction) -> str:
        """The event that strains the claim most, with its two probabilities."""

    def profile(self, epsilons: list[float]) -> list[float]:
        """delta(epsilon) in floats, for a picture."""

    def table(self) -> Grid | None:
        """Telling outputs with their probabilities and log-ratios."""

    def outputs(self) -> Figure | None:
        """The two laws."""


def exceeds(compute: Callable[[], arb], limit: Fraction) -> bool | None:
    """Whether a number is above a limit; None if it cannot be known better than by a wide bracket.

    A number that agrees with the limit to a thousand bits counts as equal to it: no claim is called false without certainty.
    """
    bits = 128
    while True:
        with working(bits):
            gap = compute() - ball(limit)
            if gap > 0:
                return True
            if gap <= 0:
                return False
            close = bool(abs(gap) < arb(2) ** -_EQUAL)
        if bits >= _MOST_BITS:
            return False if close else None
        bits *= 2

"""What an exact audit knows of two output laws, and how it decides a claim about them; a loss as the truth itself."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from flint import arb

from sordino.accounting.total import Total
from sordino.audit.reporting.report import Figure, Grid, Series
from sordino.privacy.ball import ball, working
from sordino.privacy.loss import Loss

__all__ = ["LossPair", "Truth", "exceeds"]

_MOST_BITS = 4096
_EQUAL = 1024


class Truth(ABC):
    """The two laws of a mechanism on its worst, or a given, pair of neighbours."""

    @property
    @abstractmethod
    def relation(self) -> str:
        """Which two inputs, in words."""

    @abstractmethod
    def delta_ball(self, epsilon: Fraction) -> arb:
        """The smallest delta that holds with this epsilon, in both directions, at the working precision."""

    def exceeds(self, epsilon: Fraction, delta: Fraction) -> bool | None:
        """Whether more than this delta is needed; None if that is only known within a bracket that holds this delta."""
        return exceeds(lambda: self.delta_ball(epsilon), delta)

    def summed(self, epsilon: Fraction) -> tuple[arb, int] | None:  # noqa: ARG002
        """delta(epsilon) as the sum over all outputs, and how many they are; None where that is not known."""
        return None

    @abstractmethod
    def epsilon_bounds(self, delta: Fraction) -> tuple[float, float]:
        """The smallest epsilon >= 0 that holds with this delta, rounded down and up."""

    @abstractmethod
    def witness(self, epsilon: Fraction, delta: Fraction) -> str:
        """The event that strains the claim most, with its two probabilities."""

    @abstractmethod
    def profile(self, epsilons: list[float]) -> list[float]:
        """delta(epsilon) in floats, for a picture."""

    def table(self) -> Grid | None:
        """Telling outputs with their probabilities and log-ratios."""
        return None

    @abstractmethod
    def outputs(self) -> Figure | None:
        """The two laws."""


def exceeds(compute: Callable[[], arb], limit: Fraction) -> bool | None:
    """Whether a number is above a limit; None if it cannot be known better than by a wide bracket.

    A number that agrees with the limit to a thousand bits counts as equal to it: no claim is called false without
    certainty.
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


_STEPS = 30
_PICKED = 10
_ROUGH = 0.02


@dataclass(frozen=True)
class LossPair(Truth):
    """The worst pair of a loss."""

    loss: Loss
    relation = "the worst pair of the loss"

    def delta_ball(self, epsilon: Fraction) -> arb:
        if isinstance(self.loss, Total):
            return _total_ball(self.loss, epsilon)
        return self.loss.delta_ball(epsilon)

    def epsilon_bounds(self, delta: Fraction) -> tuple[float, float]:
        high = max(0.0, self.loss.epsilon(delta))
        if delta < self.loss.infinite() or high == math.inf:
            return high, high
        if isinstance(self.loss, Total):
            # a finite maximum is the sum of maxima that the parts attain, each rounded up by far less than this
            low = self.loss.epsilon_bounds(delta).lower if delta else high * (1 - 2.0**-40)
            return max(0.0, low), high
        low = high
        for step in range(_STEPS):
            if low <= 0 or exceeds(lambda e=Fraction(low): self.loss.delta_ball(e), delta):  # type: ignore[misc]
                return max(0.0, low), high
            low -= math.ulp(high) * 2**step
        return 0.0, high

    def witness(self, epsilon: Fraction, delta: Fraction) -> str:  # noqa: ARG002
        return f"the outputs whose log-ratio is above {float(epsilon):.6g}"

    def profile(self, epsilons: list[float]) -> list[float]:
        if not isinstance(self.loss, Total):
            return [self.loss.delta(e) for e in epsilons]
        picked = epsilons[:: max(1, len(epsilons) // _PICKED)]
        rough = [self.loss.delta_bounds(e, _ROUGH).upper for e in picked]
        return list(map(float, np.interp(epsilons, picked, rough)))

    def outputs(self) -> Figure | None:
        pair = self.loss.outputs()
        if pair is None:
            return None
        title, label = "Outputs on the two inputs", "output"
        places = range(len(pair.outcomes)) if pair.discrete else pair.outcomes
        x = tuple(map(float, places))
        series = (Series("P", x, pair.under_p), Series("Q", x, pair.under_q))
        if not pair.discrete:
            return Figure(title, label, "density", series)
        return Figure(title, label, "probability", series, "bars", tuple(map(str, pair.outcomes)))


@lru_cache(maxsize=64)
def _total_ball(loss: Total, epsilon: Fraction) -> arb:
    """A bracket that no working precision narrows."""
    return loss.delta_ball(epsilon)

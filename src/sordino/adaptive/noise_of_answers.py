"""What a transfer theorem needs to know of an oracle's noise: its tails, and the privacy of all answers together.

`Certain` rounds every number up; `Rough` is quick, and only serves to look for good parameters.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Literal, Protocol, TypeAlias

from flint import arb
from scipy.special import log_ndtr, ndtri

from sordino.accounting.charge import Charge
from sordino.mechanisms.gaussian import Gaussian
from sordino.mechanisms.laplace import Laplace
from sordino.privacy.ball import ball, certified, exact_upper, upper
from sordino.privacy.exact import float_upper
from sordino.privacy.loss import GaussianLoss, Loss

__all__ = ["Certain", "Noise", "NoiseName", "Rough"]

NoiseName: TypeAlias = Literal["gaussian", "laplace"]

_HOPELESS = 50.0
"""Answers with a larger mu say nothing of the population; no curve is computed for them."""
_MANY = 10**6
"""More Laplace answers are taken as Gaussian ones that are no more private: their exact sum would take minutes."""


class Noise(Protocol):
    """The noise of all answers about one sample."""

    @property
    def questions(self) -> int:
        """How many answers are given."""

    @property
    def scale(self) -> float:
        """The scale of one answer's noise."""

    @property
    def mu(self) -> float:
        """About the mu of all answers together, for searches only."""

    def delta(self, epsilon: float) -> float:
        """Such that all answers together are (epsilon, delta)-private for replacing a row."""

    def quantile(self, tail: float) -> float:
        """What the noise of one answer exceeds, in magnitude, with this probability."""

    def tail_mean(self, tail: float) -> float:
        """The mean magnitude of one answer's noise over its worst part of this probability."""


@dataclass(frozen=True)
class Certain:
    """The noise of a mechanism that answers means over this many rows; all numbers are rounded up."""

    mechanism: Gaussian | Laplace
    rows: int
    questions: int

    @cached_property
    def loss(self) -> Loss:
        """The privacy loss of all answers together, or one that dominates it."""
        each = self.mechanism.loss(Fraction(1, self.rows))
        mu_squared = Charge.of(each).mu_squared
        if self.questions <= _MANY or isinstance(self.mechanism, Gaussian) or mu_squared is None:
            return self.questions * each
        return GaussianLoss(
            exact_upper(certified(lambda: ball(self.questions * mu_squared).sqrt()))
        )

    @property
    def scale(self) -> float:
        """The scale of one answer's noise."""
        return float_upper(self.mechanism.scale)

    @property
    def mu(self) -> float:
        """About the mu of all answers together."""
        return math.sqrt(self.questions) / (self.rows * self.scale)

    def delta(self, epsilon: float) -> float:
        """The delta of all answers together at this epsilon."""
        return self.loss.delta(Fraction(epsilon)) if self.mu <= _HOPELESS else 1.0

    def quantile(self, tail: float) -> float:
        """What |noise| exceeds with this probability."""
        shape = self.mechanism.shape
        return self._upper(lambda: shape.magnitude_ball(ball(Fraction(tail))))

    def tail_mean(self, tail: float) -> float:
        """The mean of |noise| over its worst part."""
        return self._upper(lambda: _tail_mean_ball(self.mechanism, Fraction(tail)))

    def _upper(self, standard: Callable[[], arb]) -> float:
        return upper(certified(lambda: ball(self.mechanism.scale) * standard()))


def _tail_mean_ball(mechanism: Gaussian | Laplace, tail: Fraction) -> arb:
    """The mean of |Z| where it is above its quantile: 2 phi(z)/tail for normal, 1 + log(1/tail) for Laplace noise."""
    quantile = mechanism.shape.magnitude_ball(ball(tail))
    if isinstance(mechanism, Laplace):
        return 1 + quantile
    return 2 * (-quantile * quantile / 2).exp() / (2 * arb.pi()).sqrt() / ball(tail)


@dataclass(frozen=True)
class Rough:
    """The same in floats; Laplace answers are taken to compose like Gaussian ones, as many of them do, about."""

    name: NoiseName
    scale: float
    rows: int
    questions: int

    @property
    def mu(self) -> float:
        """About the mu of all answers together."""
        return math.sqrt(self.questions) / (self.rows * self.scale)

    def delta(self, epsilon: float) -> float:
        """The delta of all answers together at this epsilon."""
        mu = self.mu
        first = math.exp(log_ndtr(mu / 2 - epsilon / mu))
        return max(0.0, first - math.exp(epsilon + log_ndtr(-mu / 2 - epsilon / mu)))

    def quantile(self, tail: float) -> float:
        """What |noise| exceeds with this probability."""
        return self.scale * (-math.log(tail) if self.name == "laplace" else -float(ndtri(tail / 2)))

    def tail_mean(self, tail: float) -> float:
        """The mean of |noise| over its worst part."""
        if self.name == "laplace":
            return self.scale * (1 - math.log(tail))
        return (
            self.scale
            * math.sqrt(2 / math.pi)
            * math.exp(-(float(ndtri(tail / 2)) ** 2) / 2)
            / tail
        )

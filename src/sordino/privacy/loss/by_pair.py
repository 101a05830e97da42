"""Losses that are those of one finite pair: every view is the pair's."""

from __future__ import annotations

from abc import abstractmethod
from fractions import Fraction

from flint import arb

from sordino.privacy.loss.base import Loss, OutputPair
from sordino.privacy.loss.finite import FiniteLoss
from sordino.privacy.loss.law import Law

__all__ = ["PairLoss"]


class PairLoss(Loss):
    """A loss with a finite pair of its own; a member overrides the views that it knows a quicker way to."""

    @property
    @abstractmethod
    def pair(self) -> FiniteLoss:
        """The pair of finite distributions that has this loss."""

    def delta_ball(self, epsilon: Fraction) -> arb:
        return self.pair.delta_ball(epsilon)

    def _epsilon(self, delta: Fraction) -> float:
        return self.pair._epsilon(delta)

    def rdp_ball(self, alpha: Fraction) -> arb:
        return self.pair.rdp_ball(alpha)

    def trade_off_ball(self, alpha: Fraction) -> arb:
        return self.pair.trade_off_ball(alpha)

    def cdf_ball(self, value: Fraction) -> arb:
        return self.pair.cdf_ball(value)

    def mass_ball(self, low: Fraction, high: Fraction) -> arb:
        return self.pair.mass_ball(low, high)

    def infinite(self) -> Fraction:
        return self.pair.infinite()

    def maximum(self) -> float:
        return self.pair.maximum()

    def rho(self) -> float:
        return self.pair.rho()

    def mu(self) -> float:
        return self.pair.mu()

    def outputs(self) -> OutputPair | None:
        return self.pair.outputs()

    def laws(self) -> tuple[Law, ...]:
        return self.pair.laws()

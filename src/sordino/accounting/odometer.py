"""An odometer: at any moment, what has been spent, for use without a cap. Theorem 7 of filters.md."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

from sordino.accounting.charge import Amount, Charge, expect_charge
from sordino.accounting.filters import Account, delta_refusal
from sordino.errors import InvalidInput
from sordino.privacy.ball import ball, certified, exact_upper
from sordino.privacy.exact import show
from sordino.privacy.float_search import rough_log
from sordino.privacy.loss import GaussianLoss

__all__ = ["Odometer"]

_RATIO = Fraction(11, 10)
_LOWEST_RUNG = -256
_MOST_MU_SQUARED = 10**12


@dataclass(frozen=True, repr=False)
class Odometer(Account):
    """What has been spent so far, for use without a cap: (`epsilon`, the budget's delta) is true at every moment.

    A ladder of two-meter filters: rung j, any integer, has 1.1^j times the budget's epsilon, and 12/(7 (|j|+3)(|j|+4))
    of its delta. The report is the lowest rung that still holds, or the sum of pure epsilons if that is smaller. Near
    the budget's epsilon it is about a quarter above what a filter made for that moment would say; further away, a
    third.

    Privacy: filters.md, Theorem 7, also when the moment of reading depends on everything seen.

    Example:
        >>> from sordino import Budget, LaplaceLoss
        >>> meter = Odometer(Budget(1, 1e-6)).spend(Charge.of(LaplaceLoss(Fraction(1, 10)), count=3))
        >>> meter.epsilon
        Fraction(3, 10)
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.spent.pure is None and self._mu_squared is None:
            rule = "an odometer must have a sum of pure epsilons, or one of mu^2 (at most 10^12) and a delta to go with it"
            raise InvalidInput(show(self.spent), rule, "Use Laplace or Gaussian noise.")

    def spend(self, charge: Charge) -> Odometer:
        """The odometer after this charge; refused only if its delta exceeds what is reserved,
        or no report would be left.
        """
        expect_charge(charge)
        left = self.reserved_delta - self.spent.delta
        if charge.delta > left:
            raise delta_refusal(charge, left)
        return replace(self, spent=self.spent + charge)

    @property
    def _mu_squared(self) -> Amount:
        """The sum of mu^2, if the ladder can measure it."""
        total = self.spent.mu_squared
        return (
            total if total is not None and total <= _MOST_MU_SQUARED and self.free_delta else None
        )

    @property
    def epsilon(self) -> Fraction:
        """What has been spent so far, to be read together with the budget's delta."""
        total = self._mu_squared
        by_ladder = None if total is None else _rung(total, self.budget.epsilon, self.free_delta)
        return min(report for report in (self.spent.pure, by_ladder) if report is not None)


@lru_cache(maxsize=1024)
def _rung(mu_squared: Fraction, around: Fraction, delta: Fraction) -> Fraction:
    """The epsilon of the lowest rung that holds; any rung that holds would be a valid report."""
    if mu_squared == 0:  # then both neighbours have the same law
        return Fraction(0)
    loss = GaussianLoss(exact_upper(certified(lambda: ball(mu_squared).sqrt())))

    def epsilon(j: int) -> Fraction:
        return around * _RATIO**j

    def holds(j: int) -> bool:
        share = Fraction(12, 7 * (abs(j) + 3) * (abs(j) + 4))
        return loss.satisfies(epsilon(j), delta * share)

    # P[L > epsilon] <= delta by the tail bound exp(-t^2/2): near the right rung, from where it is found step by step
    log_mu = rough_log(mu_squared) / 2
    log_guess = log_mu + math.log(math.exp(log_mu) / 2 + math.sqrt(2 * (1 - rough_log(delta))))
    j = max(_LOWEST_RUNG, math.ceil((log_guess - rough_log(around)) / math.log(_RATIO)))
    while not holds(j):
        j += 1
    while j > _LOWEST_RUNG and holds(j - 1):
        j -= 1
    return epsilon(j)

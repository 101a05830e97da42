"""Filters and odometers: what may still be asked when every question may depend on all the answers before it.

A filter says yes or no to each charge, so that all answers together keep a budget, however the questions were chosen;
an odometer says at any moment what has been spent. Everything is added and compared in exact rationals. The theorems
that make this true are proven in filters.md.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Self

from sordino.accounting.charge import NOTHING, Amounts, Charge, expect_charge
from sordino.errors import BudgetExceeded, InvalidInput
from sordino.privacy.budget import Budget
from sordino.privacy.exact import bounds, brief, readable, show
from sordino.privacy.float_search import rough_log
from sordino.privacy.notebook import card

if TYPE_CHECKING:
    from flint import arb

__all__ = ["Account", "Remaining", "TwoMeterFilter", "ZcdpFilter", "largest_rho"]

_NAMES = ("epsilon", "mu^2", "rho")


@dataclass(frozen=True, repr=False)
class Remaining(Amounts):
    """What each meter of a filter still has; None where it has no such meter, or one that is closed for good.

    Printed, it is told as a part of the whole budget. The amounts themselves are `pure`, `mu_squared`, `rho`, `delta`.
    """

    whole: Remaining | None = field(default=None, compare=False)
    """What each meter had at the start; None where that is not known, or this is it."""

    @property
    def share(self) -> Fraction | None:
        """The part of the budget that is left, by the meter that has most; None where the whole is not known."""
        if self.whole is None:
            return None
        pairs = zip(self.meters, self.whole.meters, strict=True)
        parts = (left / cap for left, cap in pairs if left is not None and cap)
        return max((Fraction(0), *parts))

    def __repr__(self) -> str:
        if self.share is None:
            return super().__repr__()
        pure = "" if self.pure is None else f", pure={readable(self.pure)}"
        share = brief(self.share, up=False)
        return f"Remaining(share={share}{pure}, delta={readable(self.delta)})"

    def __str__(self) -> str:
        return ", and ".join(self._in_words().values())

    def _repr_html_(self) -> str:
        share = None if self.share is None else float(self.share)
        return card("Left of the budget", self._in_words(), notes=["Rounded down."], left=share)

    def _in_words(self) -> dict[str, str]:
        """What is left, in the owner's terms, rounded down."""
        if self.whole is None or self.share is None:
            return {"left": repr(self)}
        from sordino.accounting.budget_share import percent

        parts = {"left": f"{percent(self.share, up=False)} of the budget"}
        if self.whole.meters[1:] == (None, None) and self.whole.pure is not None:
            pure, of = (brief(x or Fraction(0), up=False) for x in (self.pure, self.whole.pure))
            parts["left"] += f" (epsilon {pure} of {of})"
        if self.whole.delta:
            keys = max(self.delta, Fraction(0)) / self.whole.delta
            parts["for keys"] = f"{percent(keys, up=False)} of what is kept for private keys"
        return parts


@dataclass(frozen=True)
class Account:
    """A budget, the part of its delta kept for the deltas of charges, and what was spent.

    Never changed, only replaced.
    """

    budget: Budget
    reserved_delta: Fraction = Fraction(0)
    spent: Charge = NOTHING

    def __post_init__(self) -> None:
        if not isinstance(self.budget, Budget):
            raise InvalidInput(
                f"budget={show(self.budget)}", "it must be a Budget", "Pass Budget(1, 1e-6)."
            )
        expect_charge(self.spent)
        reserved = bounds("reserved_delta", self.reserved_delta).lower
        if not 0 <= reserved <= self.budget.delta:
            rule = f"the reserved delta must lie between 0 and the whole delta, {readable(self.budget.delta)}"
            raise InvalidInput(
                f"reserved_delta={show(self.reserved_delta)}", rule, "Reserve a part of delta."
            )
        object.__setattr__(self, "reserved_delta", reserved)

    @property
    def free_delta(self) -> Fraction:
        """What the meters may use of delta: all that is not reserved."""
        return self.budget.delta - self.reserved_delta

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.budget}, reserved_delta={readable(self.reserved_delta)}, spent={self.spent})"


@dataclass(frozen=True, repr=False)
class _Filter(Account, ABC):
    """Holds while at least one of its meters does."""

    @property
    @abstractmethod
    def caps(self) -> Remaining:
        """What each meter has at the start."""

    @property
    def remaining(self) -> Remaining:
        """What is left; a meter that was overspent, or met an unknown amount, is closed."""
        pairs = zip(self.caps.meters, self.spent.meters, strict=True)
        pure, mu_squared, rho = (
            None if a is None or b is None or b > a else a - b for a, b in pairs
        )
        return Remaining(pure, mu_squared, rho, self.caps.delta - self.spent.delta, self.caps)

    def allows(self, charge: Charge) -> bool:
        """Whether one more such charge keeps the budget."""
        expect_charge(charge)
        if charge == NOTHING:  # also if the owner lowered the budget below what was spent
            return True
        left = self.remaining
        pairs = zip(charge.meters, left.meters, strict=True)
        return charge.delta <= left.delta and any(
            a is not None and b is not None and a <= b for a, b in pairs
        )

    def spend(self, charge: Charge) -> Self:
        """The filter after this charge; BudgetExceeded, and nothing spent, if it does not fit."""
        if not self.allows(charge):
            raise self._refusal(charge)
        return replace(self, spent=self.spent + charge)

    def fits(self, charge: Charge) -> int:
        """How many more such charges fit, exactly."""
        expect_charge(charge)
        left = self.remaining
        pairs = zip(charge.meters, left.meters, strict=True)
        by_meter = max(
            (_times(a, b) for a, b in pairs if a is not None and b is not None), default=0
        )
        most = min(by_meter, _times(charge.delta, left.delta))
        if most == math.inf:
            raise InvalidInput(
                show(charge),
                "this charge costs nothing, so any number of them fits",
                "Ask for another one.",
            )
        return max(0, int(most))

    def _refusal(self, charge: Charge) -> BudgetExceeded:
        left = self.remaining
        if charge.delta > left.delta:
            return delta_refusal(charge, left.delta)
        rows = zip(_NAMES, self.caps.meters, charge.meters, left.meters, strict=True)
        meters = [(name, cost, rest) for name, cap, cost, rest in rows if cap is not None]
        hint = "Lower epsilon or ask for a wider interval."
        if not any(left.meters):
            hint = "The budget is used up, and only its owner can raise it."
        if len(meters) > 1:
            from sordino.accounting.budget_share import left_share, percent, taken_share

            taken = taken_share(charge, self)
            cost = (
                "an unknown part of the budget"
                if taken is None
                else f"{percent(taken, up=True)} of the budget"
            )
            return BudgetExceeded(cost, f"{percent(left_share(self), up=False)} of it", hint)
        ((name, amount, rest),) = meters
        cost = f"unbounded {name}" if amount is None else f"{name} {brief(amount, up=True)}"
        return BudgetExceeded(cost, f"no {name}" if rest is None else brief(rest, up=False), hint)


def _times(cost: Fraction, left: Fraction) -> float:
    """How often a cost fits into what is left."""
    if cost == 0:
        return math.inf if left >= 0 else 0
    return left // cost


def delta_refusal(charge: Charge, left: Fraction) -> BudgetExceeded:
    """What a charge is told whose delta does not fit."""
    rest = f"{brief(max(left, Fraction(0)), up=False)} of the reserved delta"
    hint = "Ask with a smaller delta, or for public keys only; or raise the reserved delta."
    cost = f"delta {brief(charge.delta, up=True)}"
    return BudgetExceeded(cost, rest, hint)


@dataclass(frozen=True, repr=False)
class TwoMeterFilter(_Filter):
    """Allows a charge while the pure epsilons sum to at most epsilon OR the mu^2 to at most what (epsilon, delta)
    allows.

    The charges' own deltas must sum to at most `reserved_delta`, which is taken out of delta first. Without a delta
    left there is only the pure meter.

    Privacy: all answers together are (epsilon, delta)-DP, for fully adaptive questions (filters.md, Theorem 3).

    Example:
        >>> from sordino import LaplaceLoss
        >>> meter = TwoMeterFilter(Budget(1, 1e-6))
        >>> count = Charge.of(LaplaceLoss(Fraction(1, 10)))
        >>> meter.fits(count)
        10
        >>> meter.spend(count).remaining.pure
        Fraction(9, 10)
    """

    @property
    def caps(self) -> Remaining:
        """The whole epsilon; and the square of the largest mu that is (epsilon,
        delta)-private without the reserved part.
        """
        mu_squared = (
            _largest_mu_squared(self.budget.epsilon, self.free_delta) if self.free_delta else None
        )
        return Remaining(pure=self.budget.epsilon, mu_squared=mu_squared, delta=self.reserved_delta)


@dataclass(frozen=True, repr=False)
class ZcdpFilter(_Filter):
    """Allows a charge while the rhos sum to at most the largest rho whose zCDP implies (epsilon, delta -
    reserved_delta).

    Better than mu^2 for very many small pure releases, worse for Gaussian ones.

    Privacy: all answers together are (epsilon, delta)-DP, for fully adaptive questions (filters.md, Theorem 6).

    Example:
        >>> from sordino import GaussianLoss
        >>> meter = ZcdpFilter(Budget(1, 1e-6))
        >>> meter.fits(Charge.of(GaussianLoss(Fraction(1, 100))))
        487
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.free_delta:
            rule = "zCDP says nothing about pure privacy, so its filter needs a delta beyond the reserved one"
            raise InvalidInput(
                f"delta={readable(self.budget.delta)}", rule, "Use TwoMeterFilter, or add a delta."
            )

    @property
    def caps(self) -> Remaining:
        """The largest rho."""
        return Remaining(
            rho=largest_rho(self.budget.epsilon, self.free_delta), delta=self.reserved_delta
        )


@lru_cache(maxsize=1024)
def _largest_mu_squared(epsilon: Fraction, delta: Fraction) -> Fraction:
    # here, so that a ledger is added up without ball arithmetic
    from sordino.privacy.normal_pair import (
        largest_mu,
    )

    return largest_mu(epsilon, delta) ** 2


@lru_cache(maxsize=1024)
def largest_rho(epsilon: Fraction, delta: Fraction) -> Fraction:
    """A rho, rounded down, such that every rho-zCDP release is (epsilon, delta)-private: the largest known to be so.

    Every alpha > 1 gives a safe one; floats look for the best, balls compute what it gives.

    Source: Canonne, Kamath, Steinke (2020), Proposition 12; proof in filters.md, Theorem 6.
    """
    from sordino.privacy.ball import ball, certified, lower

    log_delta = rough_log(delta)

    def by_float(log_x: float) -> float:
        x = math.exp(log_x)
        return (float(epsilon) + (log_delta + log_x + (1 + x) * math.log1p(1 / x)) / x) / (1 + x)

    def by_ball(x: Fraction) -> arb:
        log_c = ball(x).log() + ball(1 + x) * ball(1 / x).log1p()
        return (ball(epsilon) + (ball(delta).log() + log_c) / ball(x)) / ball(1 + x)

    # Unimodal in alpha, hence in log x, x = alpha - 1. The best x is at most about that of
    # epsilon = rho + 2 sqrt(rho log(1/delta)), which is sqrt(log(1/delta)/rho).
    tail = max(-log_delta, 1e-3)
    start = math.log(
        math.sqrt(tail) * (math.sqrt(float(epsilon) + tail) + math.sqrt(tail)) / float(epsilon)
    )
    low, high = min(-30.0, start - 4), start + 4
    for _ in range(80):
        third = (high - low) / 3
        low, high = (
            (low + third, high)
            if by_float(low + third) < by_float(high - third)
            else (low, high - third)
        )
    x = Fraction(math.exp((low + high) / 2))
    return Fraction(max(0.0, lower(certified(lambda: by_ball(x)))))

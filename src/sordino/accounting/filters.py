"""Filters and odometers: what may still be asked when every question may depend on all the answers before it.

A filter says yes or no to each charge, so that all answers together keep a budget, however the questions were chosen; an
odometer says at any moment what has been spent. Everything is added and compared in exact rationals. The theorems that
make this true are proven in filters.md.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import lru_cache
from numbers import Integral
from typing import Self, TypeAlias

from flint import arb

from sordino.errors import BudgetExceeded, InvalidInput
from sordino.privacy.ball import ball, certified, exact_lower, lower, normal_tail_inverse, upper, working
from sordino.privacy.budget import Budget
from sordino.privacy.exact import Number, bounds, readable, show
from sordino.privacy.loss import FiniteLoss, GaussianLoss, LaplaceLoss, Loss, largest_mu

__all__ = ["NOTHING", "Charge", "Odometer", "Remaining", "TwoMeterFilter", "ZcdpFilter", "largest_rho"]

_NAMES = ("epsilon", "mu^2", "rho")
_RATIO = Fraction(11, 10)
_LOWEST_RUNG = -256
_MOST_MU_SQUARED = 10**12

Amount: TypeAlias = Fraction | None


@dataclass(frozen=True, repr=False)
class _Amounts:
    """One amount for each currency, None where there is none, and a delta."""

    pure: Amount = None
    mu_squared: Amount = None
    rho: Amount = None
    delta: Fraction = Fraction(0)

    @property
    def meters(self) -> tuple[Amount, Amount, Amount]:
        """The amounts of the three currencies."""
        return self.pure, self.mu_squared, self.rho

    def __repr__(self) -> str:
        known = ((field.name, getattr(self, field.name)) for field in fields(self))
        return f"{type(self).__name__}({', '.join(f'{name}={readable(x)}' for name, x in known if x is not None)})"


@dataclass(frozen=True, repr=False)
class Charge(_Amounts):
    """What one release costs in every currency, exactly; None where no bound is known.

    It claims: for every pair of neighbours the two laws of the release are mixtures (1 - delta) p + delta r and
    (1 - delta) q + delta s, where p and q are pure-DP, sqrt(mu_squared)-GDP and rho-zCDP, and r and s may be anything.

    Example:
        >>> Charge.of(GaussianLoss(Fraction(1, 2)), count=3)
        Charge(mu_squared=0.75, rho=0.375, delta=0)
    """

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value is None and field.name != "delta":
                continue
            read = bounds(field.name, value).upper
            if read < 0:
                rule = f"a charge's {field.name} must be at least zero"
                raise InvalidInput(f"{field.name}={show(value)}", rule, "Nothing is ever refunded.")
            object.__setattr__(self, field.name, read)

    @classmethod
    def of(cls, loss: Loss, count: int = 1) -> Charge:
        """The charge of `count` releases with this loss: exact where the loss is, else rounded up.

        An outcome that gives the neighbour away is taken out as `delta` if the loss is a `FiniteLoss`; in other losses it
        is refused. Privacy: filters.md, Theorem 5.
        """
        match loss:
            case LaplaceLoss():
                one = cls(loss.shift, _squared(loss.mu()), _rational(loss.rho()))
            case GaussianLoss():
                one = cls(None, loss.shift**2, loss.shift**2 / 2)
            case FiniteLoss() if loss.infinite():
                one = replace(cls.of(_without_certainty(loss)), delta=loss.infinite())
            case FiniteLoss():
                ratio = max(max(a / b, b / a) for a, b in zip(loss.p, loss.q, strict=True) if a)
                # finer than a float, so that a response calibrated to epsilon costs no more than epsilon
                pure = _exact_upper(certified(lambda: ball(ratio).log()))
                one = cls(pure, _squared(loss.mu()), _rational(loss.rho()))
            case Loss():
                one = cls(_rational(loss.maximum()), _squared(loss.mu()), _rational(loss.rho()))
            case _:
                raise InvalidInput(f"loss={show(loss)}", "only a Loss has a charge", "Pass mechanism.loss(sensitivity).")
        if one.meters == (None, None, None):
            hint = "Choose a delta and use Charge.approximate(loss.epsilon(delta), delta)."
            raise InvalidInput(show(loss), "this loss is unbounded in every currency", hint)
        return one * count

    @classmethod
    def approximate(cls, epsilon: Number, delta: Number) -> Charge:
        """The charge of a release of which only (epsilon, delta)-privacy is known. Privacy: filters.md, Theorem 4."""
        e, d = bounds("epsilon", epsilon).upper, bounds("delta", delta).upper
        if e < 0 or not 0 <= d < 1:
            value, rule = f"epsilon={show(epsilon)}, delta={show(delta)}", "epsilon must be at least 0, and delta in [0, 1)"
            raise InvalidInput(value, rule, "Pass what the release is known to satisfy.")

        def mu() -> arb:
            if e < 1:  # without cancellation near zero
                return 2 * arb(2).sqrt() * (ball(e) / 2).tanh().erfinv()
            return 2 * normal_tail_inverse(1 / (1 + ball(e).exp()))

        rho = upper(certified(lambda: ball(e) * (ball(e) / 2).tanh()))
        return cls(e, _squared(upper(certified(mu))), _rational(rho), d)

    def __add__(self, other: Charge) -> Charge:
        _expect_charge(other)

        def plus(a: Amount, b: Amount) -> Amount:
            return None if a is None or b is None else a + b

        pure, mu_squared = plus(self.pure, other.pure), plus(self.mu_squared, other.mu_squared)
        return Charge(pure, mu_squared, plus(self.rho, other.rho), self.delta + other.delta)

    def __mul__(self, count: int) -> Charge:
        if isinstance(count, bool) or not isinstance(count, Integral) or count < 1:
            raise InvalidInput(f"count={show(count)}", "a count must be a whole number, at least 1", "Pass an int.")
        pure, mu_squared, rho = (None if x is None else int(count) * x for x in self.meters)
        return Charge(pure, mu_squared, rho, int(count) * self.delta)

    __rmul__ = __mul__


def _rational(view: float) -> Amount:
    return Fraction(view) if math.isfinite(view) else None


def _squared(view: float) -> Amount:
    return Fraction(view) ** 2 if math.isfinite(view) else None


def _exact_upper(value: arb) -> Fraction:
    with working(value.bits() + 64):
        return -exact_lower(-value)


def _without_certainty(loss: FiniteLoss) -> FiniteLoss:
    """The pair given that the outcome is one that both sides reach."""
    common = [(a, b) for a, b in zip(loss.p, loss.q, strict=True) if a and b]
    if not common:
        raise InvalidInput(show(loss), "the two sides never give the same outcome", "Such a release has no privacy.")
    p, q = (tuple(x / sum(side) for x in side) for side in zip(*common, strict=True))
    return FiniteLoss(p, q)


NOTHING = Charge(Fraction(0), Fraction(0), Fraction(0))
"""The charge of no release at all, from which sums start."""


@dataclass(frozen=True, repr=False)
class Remaining(_Amounts):
    """What each meter of a filter still has; None where it has no such meter, or one that is closed for good."""


@dataclass(frozen=True)
class _Account:
    """A budget, the part of its delta kept for the deltas of charges, and what was spent. Never changed, only replaced."""

    budget: Budget
    reserved_delta: Fraction = Fraction(0)
    spent: Charge = NOTHING

    def __post_init__(self) -> None:
        if not isinstance(self.budget, Budget):
            raise InvalidInput(f"budget={show(self.budget)}", "it must be a Budget", "Pass Budget(1, 1e-6).")
        _expect_charge(self.spent)
        reserved = bounds("reserved_delta", self.reserved_delta).lower
        if not 0 <= reserved <= self.budget.delta:
            rule = f"the reserved delta must lie between 0 and the whole delta, {readable(self.budget.delta)}"
            raise InvalidInput(f"reserved_delta={show(self.reserved_delta)}", rule, "Reserve a part of delta.")
        object.__setattr__(self, "reserved_delta", reserved)

    @property
    def free_delta(self) -> Fraction:
        """What the meters may use of delta: all that is not reserved."""
        return self.budget.delta - self.reserved_delta

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.budget}, reserved_delta={readable(self.reserved_delta)}, spent={self.spent})"


@dataclass(frozen=True, repr=False)
class _Filter(_Account, ABC):
    """Holds while at least one of its meters does."""

    @property
    @abstractmethod
    def caps(self) -> Remaining:
        """What each meter has at the start."""

    @property
    def remaining(self) -> Remaining:
        """What is left; a meter that was overspent, or met an unknown amount, is closed."""
        pairs = zip(self.caps.meters, self.spent.meters, strict=True)
        pure, mu_squared, rho = (None if a is None or b is None or b > a else a - b for a, b in pairs)
        return Remaining(pure, mu_squared, rho, self.caps.delta - self.spent.delta)

    def allows(self, charge: Charge) -> bool:
        """Whether one more such charge keeps the budget."""
        _expect_charge(charge)
        left = self.remaining
        pairs = zip(charge.meters, left.meters, strict=True)
        return charge.delta <= left.delta and any(a is not None and b is not None and a <= b for a, b in pairs)

    def spend(self, charge: Charge) -> Self:
        """The filter after this charge; BudgetExceeded, and nothing spent, if it does not fit."""
        if not self.allows(charge):
            raise self._refusal(charge)
        return replace(self, spent=self.spent + charge)

    def fits(self, charge: Charge) -> int:
        """How many more such charges fit, exactly."""
        _expect_charge(charge)
        left = self.remaining
        pairs = zip(charge.meters, left.meters, strict=True)
        by_meter = max((_times(a, b) for a, b in pairs if a is not None and b is not None), default=0)
        most = min(by_meter, _times(charge.delta, left.delta))
        if most == math.inf:
            raise InvalidInput(show(charge), "this charge costs nothing, so it fits without end", "Ask for another one.")
        return max(0, int(most))

    def _refusal(self, charge: Charge) -> BudgetExceeded:
        left = self.remaining
        if charge.delta > left.delta:
            return _delta_refusal(charge, left.delta)
        meters = [
            (f"unbounded {name}" if cost is None else f"{name} {readable(cost)}",
             f"no {name}" if rest is None else f"{name} {readable(rest)}")
            for name, cap, cost, rest in zip(_NAMES, self.caps.meters, charge.meters, left.meters, strict=True)
            if cap is not None
        ]  # fmt: skip
        hint = "Lower epsilon or ask for a wider interval."
        return BudgetExceeded(" or ".join(cost for cost, _ in meters), " or ".join(rest for _, rest in meters), hint)


def _times(cost: Fraction, left: Fraction) -> float:
    """How often a cost fits into what is left."""
    if cost == 0:
        return math.inf if left >= 0 else 0
    return left // cost


def _delta_refusal(charge: Charge, left: Fraction) -> BudgetExceeded:
    rest = f"{readable(max(left, Fraction(0)))} of the reserved delta"
    return BudgetExceeded(f"delta {readable(charge.delta)}", rest, "Raise reserved_delta, or ask for public keys only.")


def _expect_charge(charge: object) -> None:
    if not isinstance(charge, Charge):
        raise InvalidInput(show(charge), "a filter takes a Charge", "Pass Charge.of(mechanism.loss(sensitivity)).")


@dataclass(frozen=True, repr=False)
class TwoMeterFilter(_Filter):
    """Allows a charge while the pure epsilons sum to at most epsilon OR the mu^2 to at most what (epsilon, delta) allows.

    The charges' own deltas must sum to at most `reserved_delta`, which is taken out of delta first. Without a delta left
    there is only the pure meter.

    Privacy: all answers together are (epsilon, delta)-DP, for fully adaptive questions (filters.md, Theorem 3).

    Example:
        >>> meter = TwoMeterFilter(Budget(1, 1e-6))
        >>> count = Charge.of(LaplaceLoss(Fraction(1, 10)))
        >>> meter.fits(count)
        10
        >>> meter.spend(count).remaining.pure
        Fraction(9, 10)
    """

    @property
    def caps(self) -> Remaining:
        """The whole epsilon; and the square of the largest mu that is (epsilon, delta)-private without the reserved part."""
        mu_squared = _largest_mu_squared(self.budget.epsilon, self.free_delta) if self.free_delta else None
        return Remaining(pure=self.budget.epsilon, mu_squared=mu_squared, delta=self.reserved_delta)


@dataclass(frozen=True, repr=False)
class ZcdpFilter(_Filter):
    """Allows a charge while the rhos sum to at most the largest rho whose zCDP implies (epsilon, delta - reserved_delta).

    Better than mu^2 for very many small pure releases, worse for Gaussian ones.

    Privacy: all answers together are (epsilon, delta)-DP, for fully adaptive questions (filters.md, Theorem 6).

    Example:
        >>> meter = ZcdpFilter(Budget(1, 1e-6))
        >>> meter.fits(Charge.of(GaussianLoss(Fraction(1, 100))))
        487
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.free_delta:
            rule = "zCDP says nothing about pure privacy, so its filter needs a delta beyond the reserved one"
            raise InvalidInput(f"delta={readable(self.budget.delta)}", rule, "Use TwoMeterFilter, or add a delta.")

    @property
    def caps(self) -> Remaining:
        """The largest rho."""
        return Remaining(rho=largest_rho(self.budget.epsilon, self.free_delta), delta=self.reserved_delta)


@lru_cache(maxsize=1024)
def _largest_mu_squared(epsilon: Fraction, delta: Fraction) -> Fraction:
    return largest_mu(epsilon, delta) ** 2


def _log(x: Fraction) -> float:
    """About log x, also where x is no float."""
    return math.log(x.numerator) - math.log(x.denominator)


@lru_cache(maxsize=1024)
def largest_rho(epsilon: Fraction, delta: Fraction) -> Fraction:
    """A rho, rounded down, such that every rho-zCDP release is (epsilon, delta)-private: the largest known to be so.

    Every alpha > 1 gives a safe one; floats look for the best, balls compute what it gives.

    Source: Canonne, Kamath, Steinke (2020), Proposition 12; proof in filters.md, Theorem 6.
    """
    log_delta = _log(delta)

    def by_float(log_x: float) -> float:
        x = math.exp(log_x)
        return (float(epsilon) + (log_delta + log_x + (1 + x) * math.log1p(1 / x)) / x) / (1 + x)

    def by_ball(x: Fraction) -> arb:
        log_c = ball(x).log() + ball(1 + x) * ball(1 / x).log1p()
        return (ball(epsilon) + (ball(delta).log() + log_c) / ball(x)) / ball(1 + x)

    # Unimodal in alpha, hence in log x, x = alpha - 1. The best x is at most about that of
    # epsilon = rho + 2 sqrt(rho log(1/delta)), which is sqrt(log(1/delta)/rho).
    tail = max(-log_delta, 1e-3)
    start = math.log(math.sqrt(tail) * (math.sqrt(float(epsilon) + tail) + math.sqrt(tail)) / float(epsilon))
    low, high = min(-30.0, start - 4), start + 4
    for _ in range(80):
        third = (high - low) / 3
        low, high = (low + third, high) if by_float(low + third) < by_float(high - third) else (low, high - third)
    x = Fraction(math.exp((low + high) / 2))
    return Fraction(max(0.0, lower(certified(lambda: by_ball(x)))))


@dataclass(frozen=True, repr=False)
class Odometer(_Account):
    """What has been spent so far, for use without a cap: (`epsilon`, the budget's delta) is true at every moment.

    A ladder of two-meter filters: rung j, any integer, has 1.1^j times the budget's epsilon, and 12/(7 (|j|+3)(|j|+4)) of
    its delta. The report is the lowest rung that still holds, or the sum of pure epsilons if that is smaller. Near the
    budget's epsilon it is about a quarter above what a filter made for that moment would say; further away, a third.

    Privacy: filters.md, Theorem 7, also when the moment of reading depends on everything seen.

    Example:
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
        """The odometer after this charge; refused only if its delta exceeds what is reserved, or no report would be left."""
        _expect_charge(charge)
        left = self.reserved_delta - self.spent.delta
        if charge.delta > left:
            raise _delta_refusal(charge, left)
        return replace(self, spent=self.spent + charge)

    @property
    def _mu_squared(self) -> Amount:
        """The sum of mu^2, if the ladder can measure it."""
        total = self.spent.mu_squared
        return total if total is not None and total <= _MOST_MU_SQUARED and self.free_delta else None

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
    loss = GaussianLoss(_exact_upper(certified(lambda: ball(mu_squared).sqrt())))

    def epsilon(j: int) -> Fraction:
        return around * _RATIO**j

    def holds(j: int) -> bool:
        share = Fraction(12, 7 * (abs(j) + 3) * (abs(j) + 4))
        return loss.satisfies(epsilon(j), delta * share)

    # P[L > epsilon] <= delta by the tail bound exp(-t^2/2): near the right rung, from where it is found step by step
    log_mu = _log(mu_squared) / 2
    log_guess = log_mu + math.log(math.exp(log_mu) / 2 + math.sqrt(2 * (1 - _log(delta))))
    j = max(_LOWEST_RUNG, math.ceil((log_guess - _log(around)) / math.log(_RATIO)))
    while not holds(j):
        j += 1
    while j > _LOWEST_RUNG and holds(j - 1):
        j -= 1
    return epsilon(j)

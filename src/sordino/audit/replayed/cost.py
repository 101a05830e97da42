"""What several calls cost together, as far as it is known, and whether that is within a claim.

Some losses are known exactly; of other calls only an upper bound is, so a claim that fails by them alone is not
refuted, only unsupported. The argument is in replay.md.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from sordino.accounting.bracket import Bracket
from sordino.accounting.charge import NOTHING, Charge
from sordino.accounting.filters import TwoMeterFilter
from sordino.accounting.total import Total, total
from sordino.privacy.budget import Budget
from sordino.privacy.exact import float_lower, float_upper
from sordino.privacy.loss import GaussianLoss, LaplaceLoss, Loss

__all__ = ["NO_COST", "Cost"]

_SLACK = Fraction(10**9 + 1, 10**9)
"""A billionth of a claim is left to the rounding of those who computed it in floats."""


@dataclass(frozen=True)
class Cost:
    """Losses that are known exactly, and parts of which only (epsilon, delta) is known; `charge` is all of it."""

    losses: tuple[tuple[Loss, int], ...] = ()
    epsilon: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)
    charge: Charge = NOTHING
    lumped: bool = False
    """Whether many small losses are held as one, which is exact at delta 0 and an upper bound elsewhere."""

    def __add__(self, other: Cost) -> Cost:
        epsilon, delta = self.epsilon + other.epsilon, self.delta + other.delta
        lumped = self.lumped or other.lumped
        return Cost(self.losses + other.losses, epsilon, delta, self.charge + other.charge, lumped)

    @cached_property
    def _total(self) -> Loss | None:
        return total(self.losses) if self.losses else None

    def epsilon_bounds(self, delta: Fraction) -> Bracket:
        """Between which epsilons all of it lies at a delta: below, what is known exactly; above, everything."""
        lower, upper = 0.0 if self.lumped and delta else self._exact(delta).lower, math.inf
        if self.delta <= delta < 1:
            rest = self._exact(delta - self.delta).upper
            if not math.isinf(rest):
                upper = float_upper(Fraction(max(0.0, rest)) + self.epsilon)
        return Bracket(lower, upper)

    def _exact(self, delta: Fraction) -> Bracket:
        loss = self._total
        if loss is None:
            return Bracket(0.0, 0.0)
        if delta == 0:
            return Bracket(self._pure_lower(), loss.maximum())
        if isinstance(loss, Total):
            found = loss.epsilon_bounds(delta)
            return Bracket(max(0.0, found.lower), max(0.0, found.upper))
        upper = max(0.0, loss.epsilon(delta))
        return Bracket(upper * (1 - 2.0**-40), upper)

    def _pure_lower(self) -> float:
        """The sum of the largest losses, rounded down."""
        if any(math.isinf(loss.maximum()) for loss, _ in self.losses):
            return math.inf
        whole, exact = Fraction(0), True
        for loss, count in self.losses:
            if isinstance(loss, LaplaceLoss):
                whole += loss.shift * count
            else:
                whole, exact = whole + Fraction(loss.maximum()) * count, False
        return float_lower(whole if exact else whole * (1 - Fraction(1, 2**40)))

    def within(self, epsilon: Fraction, delta: Fraction) -> bool | None:
        """Whether all of it is (epsilon, delta)-private; None if the exact part is and bounds of the rest say no."""
        epsilon *= _SLACK
        if self._filter_allows(epsilon, delta):
            return True
        found = self.epsilon_bounds(delta)
        if found.upper <= epsilon:
            return True
        return False if found.lower > epsilon else None

    def _filter_allows(self, epsilon: Fraction, delta: Fraction) -> bool:
        if epsilon <= 0 or not self.charge.delta <= delta < 1:
            return self.charge == NOTHING
        return TwoMeterFilter(Budget(epsilon, delta), self.charge.delta).allows(self.charge)

    def __str__(self) -> str:
        parts = Counter[str]()
        for loss, count in self.losses:
            parts[self._word(loss)] += count
        words = [word if count == 1 else f"{count} x {word}" for word, count in parts.items()]
        if self.epsilon or self.delta:
            delta = f", delta {float_upper(self.delta):.4g}" if self.delta else ""
            words.append(f"at most epsilon {float_upper(self.epsilon):.4g}{delta}")
        return " + ".join(words) or "nothing"

    @staticmethod
    def _word(loss: Loss) -> str:
        if isinstance(loss, GaussianLoss):
            return f"mu {loss.mu():.4g}"
        return f"epsilon {loss.maximum():.4g}"


NO_COST = Cost()

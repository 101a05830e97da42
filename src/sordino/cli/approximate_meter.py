"""The meters of a budget, quickly and for the eye: certified caps, which load more slowly, decide what is granted."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from sordino.accounting.filters import Remaining, TwoMeterFilter

__all__ = ["ApproximateMeter", "approximate_mu", "mu_between"]

_MARGIN = 1e-7


@dataclass(frozen=True, repr=False)
class ApproximateMeter(TwoMeterFilter):
    """A filter whose mu^2 is computed in floats, a ten-millionth below the truth."""

    @property
    def caps(self) -> Remaining:
        """What each meter has at the start."""
        mu_squared = (
            approximate_mu(self.budget.epsilon, self.free_delta) ** 2 if self.free_delta else None
        )
        return Remaining(pure=self.budget.epsilon, mu_squared=mu_squared, delta=self.reserved_delta)


def mu_between(epsilon: Fraction, delta: Fraction) -> tuple[Fraction, Fraction]:
    """A little less and a little more than the largest mu that is (epsilon, delta)-private."""
    low = approximate_mu(epsilon, delta)
    return low, low * (1 + Fraction(4 * _MARGIN))


def approximate_mu(epsilon: Fraction, delta: Fraction) -> Fraction:
    """A little less than the largest mu that is (epsilon, delta)-private; the certified one where floats fall short."""
    e, d = float(epsilon), float(delta)

    def parts(mu: float) -> tuple[float, float]:
        first = math.erfc((e / mu - mu / 2) / math.sqrt(2)) / 2
        return first, math.exp(e) * math.erfc((e / mu + mu / 2) / math.sqrt(2)) / 2

    if 1e-6 <= e <= 500 and d >= 1e-200:
        low, high = 1e-12, 1e6
        for _ in range(110):
            middle = math.sqrt(low * high)
            first, second = parts(middle)
            low, high = (middle, high) if first - second <= d else (low, middle)
        if sum(parts(low)) * 2.0**-48 < _MARGIN * d * 1e-3:  # the difference keeps enough digits
            return Fraction(low * (1 - _MARGIN))
    from sordino.privacy.normal_pair import largest_mu

    return largest_mu(epsilon, delta)

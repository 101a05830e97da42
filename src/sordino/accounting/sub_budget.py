"""A part of a budget for one analyst: what they may still spend within it, and within the whole."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from sordino.accounting.charge import Charge
from sordino.accounting.filters import Remaining, TwoMeterFilter
from sordino.errors import InvalidInput

__all__ = ["SubBudget"]


@dataclass(frozen=True, repr=False)
class SubBudget(TwoMeterFilter):
    """Allows a charge if both it and the whole filter do; `spent` is what the analyst spent, `whole` knows of
    everybody.

    Privacy: all answers to the analyst together are (epsilon, delta)-DP for the sub-budget, and all answers to
    everybody for the whole one: each filter sees all charges that it speaks of, and allows none that it would not
    allow alone (filters.md, Theorem 3). Analysts who share answers are together bounded by the whole budget only.
    """

    whole: TwoMeterFilter | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.whole, TwoMeterFilter):
            raise InvalidInput(
                "whole=None",
                "a sub-budget is a part of a whole",
                "Pass the filter of the whole budget.",
            )

    @property
    def _both(self) -> tuple[TwoMeterFilter, TwoMeterFilter]:
        whole = self.whole or self  # never None, see above
        return TwoMeterFilter(self.budget, self.reserved_delta, self.spent), whole

    @property
    def remaining(self) -> Remaining:
        """What the analyst has left, and of each meter no more than the whole has,
        unless that goes on by another meter.
        """
        own, rest = (each.remaining for each in self._both)
        if rest.meters == (None, None, None):
            return Remaining(delta=min(own.delta, rest.delta), whole=self.caps)
        pairs = zip(own.meters, rest.meters, strict=True)
        pure, mu_squared, rho = (a if a is None or b is None else min(a, b) for a, b in pairs)
        return Remaining(pure, mu_squared, rho, min(own.delta, rest.delta), self.caps)

    def allows(self, charge: Charge) -> bool:
        """Whether one more such charge keeps both."""
        own, whole = self._both
        return own.allows(charge) and whole.allows(charge)

    def spend(self, charge: Charge) -> Self:
        """Both after this charge; BudgetExceeded, and nothing spent, if it does not fit into one of them."""
        own, whole = (each.spend(charge) for each in self._both)
        return replace(self, spent=own.spent, whole=whole)

    def fits(self, charge: Charge) -> int:
        """How many more such charges both allow."""
        return min(each.fits(charge) for each in self._both)

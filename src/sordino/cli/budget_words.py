"""What is left of a budget, in words: the whole, or with details meter by meter;
and how many more usual answers fit.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from sordino.cli.numbers import rounded_down, rounded_up

if TYPE_CHECKING:
    from sordino.accounting.charge import Amounts, Charge
    from sordino.accounting.filters import TwoMeterFilter

__all__ = [
    "BUDGET",
    "KEYS",
    "USUAL",
    "BudgetBar",
    "budget_bars",
    "cost_words",
    "left_words",
    "part_words",
    "usual_answers",
]

BUDGET, KEYS = "budget", "delta for keys"
USUAL = Fraction(1, 10)
"""The epsilon of the answers that are counted."""
_USUAL_LAPLACE_MU = Fraction(0.12232592908449795)
"""`LaplaceLoss(USUAL).mu()`, written down since losses take long to load."""


@dataclass(frozen=True)
class BudgetBar:
    """One meter: what it adds up, what it has left (None: it is closed for good) and had at the start."""

    name: str
    left: Fraction | None
    whole: Fraction
    closed: str = ""

    @property
    def share(self) -> float:
        """The part that is left."""
        return float(self.left / self.whole) if self.left is not None and self.whole else 0.0

    @property
    def words(self) -> str:
        """What is left, rounded down."""
        if self.left is None:
            return self.closed
        if self.name == BUDGET:
            return f"{_percent(self.left, up=False)} left"
        return f"{rounded_down(self.left)} of {rounded_down(self.whole)} left"


def budget_bars(meter: TwoMeterFilter, *, details: bool = False) -> list[BudgetBar]:
    """The budget as one, and the delta kept for private keys; with `details` each way of adding up by itself."""
    from sordino.accounting.budget_share import left_share

    caps, left = meter.caps, meter.remaining
    found = _meters(meter) if details else [BudgetBar(BUDGET, left_share(meter), Fraction(1))]
    if caps.delta:
        found.append(BudgetBar(KEYS, max(left.delta, Fraction(0)), caps.delta))
    return found


def _meters(meter: TwoMeterFilter) -> list[BudgetBar]:
    """Epsilons added up, and mu^2 if there is a delta."""
    caps, left, spent = meter.caps, meter.remaining, meter.spent
    unknown = "closed by Gaussian noise" if spent.pure is None else "used up"
    found = [BudgetBar("epsilon", left.pure, caps.pure or Fraction(0), unknown)]
    if caps.mu_squared is not None:
        found.append(BudgetBar("mu^2", left.mu_squared, caps.mu_squared, "used up"))
    return found


def left_words(meter: TwoMeterFilter, *, details: bool = False) -> str:
    """What is left, in a few words."""
    found = [g for g in budget_bars(meter, details=details) if g.left]
    texts = {
        g.name: f"{g.name} {rounded_down(g.left or 0)} of {rounded_down(g.whole)}" for g in found
    }
    texts |= {
        g.name: f"{_percent(g.left or 0, up=False)} of the budget"
        for g in found
        if g.name == BUDGET
    }
    keys = texts.pop(KEYS, None)
    if not texts:
        return "nothing"
    return " or ".join(texts.values()) + (f", and {keys}" if keys else "")


def cost_words(charge: Charge, meter: TwoMeterFilter | None) -> str:
    """What a charge took, rounded up: its part of the budget;
    without a meter its epsilon, or mu^2 of Gaussian noise.
    """
    if charge.pure == 0 and not charge.delta:
        return "nothing"
    main = (
        f"mu^2 {rounded_up(charge.mu_squared or 0)}"
        if charge.pure is None
        else f"epsilon {rounded_up(charge.pure)}"
    )
    if meter is not None and (part := _part(charge, meter)) is not None:
        main = f"{_percent(part, up=True)} of the budget"
    return main + (f" and delta {rounded_up(charge.delta)} for keys" if charge.delta else "")


def _part(charge: Amounts, meter: TwoMeterFilter) -> Fraction | None:
    from sordino.accounting.budget_share import part_of

    return part_of(charge, meter)


def part_words(spent: Amounts, meter: TwoMeterFilter) -> str:
    """The part of the budget that something took."""
    part = _part(spent, meter)
    return "-" if part is None else _percent(part, up=True)


def _percent(part: Fraction | float, *, up: bool) -> str:
    return f"{(rounded_up if up else rounded_down)(100 * part)} %"


def usual_answers(meter: TwoMeterFilter) -> dict[str, int]:
    """How many more answers of the usual epsilon fit, by the noise that they have."""
    from sordino.accounting.charge import Charge

    found = {"laplace": meter.fits(Charge(USUAL, _USUAL_LAPLACE_MU**2))}
    if meter.free_delta:
        from sordino.cli.approximate_meter import mu_between

        low, high = (meter.fits(Charge(None, mu**2)) for mu in mu_between(USUAL, meter.free_delta))
        if low != high:  # rarely: a number of answers that only the certified mu decides
            from sordino.privacy.normal_pair import largest_mu

            low = meter.fits(Charge(None, largest_mu(USUAL, meter.free_delta) ** 2))
        found["gaussian"] = low
    return found

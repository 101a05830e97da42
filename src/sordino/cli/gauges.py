"""What is left of a budget, meter by meter, in words; and how many more answers of a usual size fit."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from sordino.cli.numbers import rounded_down, rounded_up

if TYPE_CHECKING:
    from sordino.accounting.charge import Charge
    from sordino.accounting.filters import TwoMeterFilter

__all__ = ["KEYS", "USUAL", "Gauge", "cost_words", "gauges", "left_words", "usual_answers"]

KEYS = "delta for keys"
USUAL = Fraction(1, 10)
"""The epsilon of the answers that are counted."""
_USUAL_LAPLACE_MU = Fraction(0.12232592908449795)
"""`LaplaceLoss(USUAL).mu()`, written down since losses take long to load."""


@dataclass(frozen=True)
class Gauge:
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
        return f"{rounded_down(self.left)} of {rounded_down(self.whole)} left"


def gauges(meter: TwoMeterFilter) -> list[Gauge]:
    """The meters that a budget has: epsilons added up; mu^2 if it has a delta; and the delta kept for private keys."""
    caps, left, spent = meter.caps, meter.remaining, meter.spent
    unknown = "closed by Gaussian noise" if spent.pure is None else "used up"
    found = [Gauge("epsilon", left.pure, caps.pure or Fraction(0), unknown)]
    if caps.mu_squared is not None:
        found.append(Gauge("mu^2", left.mu_squared, caps.mu_squared, "used up"))
    if caps.delta:
        found.append(Gauge(KEYS, max(left.delta, Fraction(0)), caps.delta))
    return found


def left_words(meter: TwoMeterFilter) -> str:
    """What is left, in a few words."""
    found = [g for g in gauges(meter) if g.left is not None]
    texts = {g.name: f"{g.name} {rounded_down(g.left or 0)} of {rounded_down(g.whole)}" for g in found}
    keys = texts.pop(KEYS, None)
    if not texts:
        return "nothing"
    return " or ".join(texts.values()) + (f", and {keys}" if keys else "")


def cost_words(charge: Charge) -> str:
    """What a charge took, rounded up: its epsilon, or its mu^2 where noise is Gaussian."""
    if charge.pure == 0 and not charge.delta:
        return "nothing"
    main = f"mu^2 {rounded_up(charge.mu_squared or 0)}" if charge.pure is None else f"epsilon {rounded_up(charge.pure)}"
    return main + (f" and delta {rounded_up(charge.delta)} for keys" if charge.delta else "")


def usual_answers(meter: TwoMeterFilter) -> dict[str, int]:
    """How many more answers of the usual epsilon fit, by the noise that they have."""
    from sordino.accounting.charge import Charge

    found = {"laplace": meter.fits(Charge(USUAL, _USUAL_LAPLACE_MU**2))}
    if meter.free_delta:
        from sordino.cli.shown_meter import mu_between

        low, high = (meter.fits(Charge(None, mu**2)) for mu in mu_between(USUAL, meter.free_delta))
        if low != high:  # rarely: a number of answers that only the certified mu decides
            from sordino.privacy.normal_pair import largest_mu

            low = meter.fits(Charge(None, largest_mu(USUAL, meter.free_delta) ** 2))
        found["gaussian"] = low
    return found

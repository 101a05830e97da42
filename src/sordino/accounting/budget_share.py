"""A budget in its owner's terms: which part of it a charge takes, which part is left, and how many such charges fit.

A filter adds charges up in more than one way and goes on while one of them has room; the part is meant by the way that
has most room left.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Protocol

from sordino.privacy.exact import brief

if TYPE_CHECKING:
    from sordino.accounting.charge import Amounts, Charge
    from sordino.accounting.filters import Remaining, TwoMeterFilter

__all__ = ["BudgetShare", "left_share", "part_of", "percent", "taken_share"]


_MANY = 1000


class _Meters(Protocol):
    """A filter, as far as it is looked at here."""

    @property
    def caps(self) -> Remaining: ...
    @property
    def remaining(self) -> Remaining: ...


def percent(part: Fraction, *, up: bool) -> str:
    """A part of a whole in percent, rounded to the side that is told.

    Example:
        >>> percent(Fraction(1, 3), up=True), percent(Fraction(1, 3), up=False)
        ('33.34 %', '33.33 %')
    """
    whole = 100 * part
    return (
        f"{math.ceil(whole) if up else math.floor(whole):,} %"
        if whole >= _MANY
        else f"{brief(whole, up=up)} %"
    )


def left_share(meter: _Meters) -> Fraction:
    """The part of the budget that is left; 0 where nothing more will be answered."""
    return meter.remaining.share or Fraction(0)


def taken_share(charge: Charge, meter: _Meters) -> Fraction | None:
    """The part of the whole budget that a further charge takes,
    also if it is more than what is left; None if unbounded.
    """
    rows = zip(charge.meters, meter.remaining.meters, meter.caps.meters, strict=True)
    known = [
        ((left - cost) / cap, cost / cap)
        for cost, left, cap in rows
        if cost is not None and left is not None and cap
    ]
    return max(known)[1] if known else None


def part_of(spent: Amounts, meter: _Meters) -> Fraction | None:
    """The part of the whole budget that something spent before has taken, by the way that has most left now.

    So the parts of all charges add up to what is not left.
    """
    rows = zip(meter.remaining.meters, meter.caps.meters, spent.meters, strict=True)
    known = [
        (left / cap, cost / cap)
        for left, cap, cost in rows
        if left is not None and cap and cost is not None
    ]
    return max(known)[1] if known else None


@dataclass(frozen=True)
class BudgetShare:
    """A charge before it is made: the part of the budget that it takes (None: there is no bound), and that of the
    delta kept for private keys; what is left of the budget before it, and how many such charges fit (None: it is
    free).
    """

    taken: Fraction | None
    keys: Fraction
    left: Fraction
    fits: int | None

    @classmethod
    def of(cls, charge: Charge, meter: TwoMeterFilter) -> BudgetShare:
        """That of a charge beside what a filter has left."""
        keys = charge.delta / meter.caps.delta if charge.delta and meter.caps.delta else Fraction(0)
        free = not charge.delta and all(cost == 0 for cost in charge.meters)
        return cls(
            taken_share(charge, meter),
            keys,
            left_share(meter),
            None if free else meter.fits(charge),
        )

    def __str__(self) -> str:
        if self.fits is None:
            return "nothing"
        part = "more than there is" if self.taken is None else percent(self.taken, up=True)
        keys = (
            f", and {percent(self.keys, up=True)} of what is kept for private keys"
            if self.keys
            else ""
        )
        return f"{part} of the budget, of which {percent(self.left, up=False)} is left{keys}"

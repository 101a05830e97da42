"""A sub-budget allows what both it and the whole allow."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from sordino.accounting.charge import NOTHING, Charge
from sordino.accounting.filters import TwoMeterFilter
from sordino.accounting.sub_budget import SubBudget
from sordino.errors import BudgetExceeded, InvalidInput
from sordino.privacy.budget import Budget

MILLIONTH = Fraction(1, 10**6)


def part(
    whole: TwoMeterFilter, epsilon: str, delta: Fraction = Fraction(0), spent: Charge = NOTHING
) -> SubBudget:
    return SubBudget(Budget(Fraction(epsilon), delta), Fraction(0), spent, whole)


def cost(pure: str | None, mu: str | None = None) -> Charge:
    return Charge(None if pure is None else Fraction(pure), None if mu is None else Fraction(mu))


def test_both_must_allow() -> None:
    meter = part(TwoMeterFilter(Budget(1)), "1/2")
    assert meter.allows(cost("1/2"))
    assert not meter.allows(cost("3/5"))
    nearly = part(TwoMeterFilter(Budget(1), spent=cost("9/10")), "1/2")
    assert nearly.allows(cost("1/10"))
    assert not nearly.allows(cost("1/5"))
    with pytest.raises(BudgetExceeded):
        nearly.spend(cost("1/5"))


def test_the_two_may_go_on_by_different_meters() -> None:
    """The whole is beyond its epsilon and goes on by mu^2; the part, which has no delta, by epsilon."""
    spent = Charge(Fraction(2), Fraction(1, 1000))
    meter = part(TwoMeterFilter(Budget(1, MILLIONTH), spent=spent), "1/2")
    assert meter.allows(cost("1/10", "1/1000"))
    assert not meter.allows(cost("1/10", "10"))
    assert not meter.allows(cost(None, "1/1000"))
    assert meter.remaining.pure == Fraction(1, 2)


def test_spending_is_seen_by_both() -> None:
    meter = part(TwoMeterFilter(Budget(1), spent=cost("1/4")), "1/2").spend(cost("1/4"))
    assert meter.spent == cost("1/4")
    assert meter.whole is not None
    assert meter.whole.spent == cost("1/2")
    assert meter.remaining.pure == Fraction(1, 4)


def test_nothing_is_left_of_a_part_of_nothing() -> None:
    meter = part(TwoMeterFilter(Budget(1), spent=cost("2")), "1/2")
    assert meter.remaining.meters == (None, None, None)
    assert meter.fits(cost("1/100")) == 0


def test_as_many_fit_as_can_be_spent() -> None:
    rng = random.Random(5)
    for _ in range(200):
        delta = rng.choice([Fraction(0), MILLIONTH])
        before = Charge(Fraction(rng.randrange(12), 10), Fraction(rng.randrange(5), 100))
        meter = part(
            TwoMeterFilter(Budget(1, MILLIONTH), spent=before), "1/2", delta, cost("1/10", "1/100")
        )
        one = Charge(Fraction(rng.randrange(1, 30), 100), Fraction(rng.randrange(1, 40), 1000))
        count, left = 0, meter
        while left.allows(one):
            left, count = left.spend(one), count + 1
        assert meter.fits(one) == count
        assert left.remaining.delta <= meter.remaining.delta


def test_a_part_needs_a_whole() -> None:
    with pytest.raises(InvalidInput, match="a part of a whole"):
        SubBudget(Budget(1))

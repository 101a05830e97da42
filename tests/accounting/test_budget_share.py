"""A budget in its owner's terms: parts are rounded to the safe side, add up, and agree with what the filter grants."""

from __future__ import annotations

from fractions import Fraction

import pytest

from sordino import Budget, GaussianLoss, LaplaceLoss
from sordino.accounting.budget_share import BudgetShare, left_share, part_of, percent, taken_share
from sordino.accounting.charge import NOTHING, Charge
from sordino.accounting.filters import TwoMeterFilter

BUDGET = Budget(1, Fraction(1, 10**6))
TENTH = Charge.of(LaplaceLoss(Fraction(1, 10)))
SMALL = Charge.of(GaussianLoss(Fraction(1, 50)))


def test_percents_are_rounded_to_the_side_that_is_told() -> None:
    assert percent(Fraction(2, 3), up=False) == "66.66 %"
    assert percent(Fraction(2, 3), up=True) == "66.67 %"
    assert percent(Fraction(1, 4), up=True) == "25 %"
    assert percent(Fraction(3514137, 10000), up=True) == "35,142 %"


def test_nothing_is_taken_of_a_fresh_budget() -> None:
    meter = TwoMeterFilter(BUDGET)
    assert left_share(meter) == 1
    assert taken_share(NOTHING, meter) == 0
    assert BudgetShare.of(NOTHING, meter).fits is None
    assert str(BudgetShare.of(NOTHING, meter)) == "nothing"


@pytest.mark.parametrize(
    "charges", [[TENTH] * 9, [SMALL] * 40, [TENTH] * 3 + [SMALL] * 20, [SMALL, *[TENTH] * 3]]
)
def test_the_parts_of_all_charges_add_up_to_what_is_not_left(charges: list[Charge]) -> None:
    meter = TwoMeterFilter(BUDGET)
    for charge in charges:
        share = BudgetShare.of(charge, meter)
        assert share.taken is not None
        assert (share.taken <= share.left) == meter.allows(charge) == (share.fits != 0)
        meter = meter.spend(charge)
    parts = [part_of(charge, meter) for charge in charges]
    assert sum(part for part in parts if part is not None) == 1 - left_share(meter)


def test_what_does_not_fit_takes_more_than_is_left() -> None:
    meter = TwoMeterFilter(BUDGET).spend(Charge.of(LaplaceLoss(Fraction(9, 10))))
    share = BudgetShare.of(Charge.of(LaplaceLoss(Fraction(1, 2))), meter)
    assert share.fits == 0
    assert share.taken is not None
    assert share.taken > share.left
    unknown = BudgetShare.of(Charge(delta=Fraction(1, 10**7)), meter)
    assert (unknown.taken, unknown.fits) == (None, 0)


def test_the_delta_of_keys_is_told_as_a_part_of_what_is_kept_for_them() -> None:
    meter = TwoMeterFilter(BUDGET, Fraction(1, 2 * 10**6))
    share = BudgetShare.of(
        Charge(Fraction(1, 10), Fraction(1, 100), delta=Fraction(1, 10**7)), meter
    )
    assert share.keys == Fraction(1, 5)
    assert (
        str(share)
        == "10 % of the budget, of which 100 % is left, and 20 % of what is kept for private keys"
    )

from __future__ import annotations

import dataclasses
import math
import pickle
import re
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import cache
from math import comb
from pathlib import Path
from random import Random
from typing import Any, Protocol, Self, TypeAlias

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sordino.accounting import filters
from sordino.accounting.charge import NOTHING, Charge
from sordino.accounting.filters import Remaining, TwoMeterFilter, ZcdpFilter, largest_rho
from sordino.accounting.odometer import Odometer
from sordino.errors import BudgetExceeded, InvalidInput, SordinoError
from sordino.mechanisms.randomized_response import RandomizedResponse
from sordino.privacy.ball import ball, certified, exact_lower
from sordino.privacy.budget import Budget
from sordino.privacy.loss import FiniteLoss, GaussianLoss, LaplaceLoss, Loss, largest_mu

ONE, MILLIONTH = Fraction(1), Fraction(1, 10**6)
BUDGET = Budget(ONE, MILLIONTH)

Filter: TypeAlias = TwoMeterFilter | ZcdpFilter
each_filter = pytest.mark.parametrize("kind", [TwoMeterFilter, ZcdpFilter])


def parts_of(most: Fraction, least: int = 0) -> st.SearchStrategy[Fraction]:
    """Rationals from least/10^12 to `most`, with many denominators."""
    return st.builds(
        lambda i, j: most * Fraction(i, 10**12) / j, st.integers(least, 10**12), st.integers(1, 20)
    )


unknown = st.none() | parts_of(ONE)
charges = st.builds(Charge, parts_of(ONE), unknown, unknown, parts_of(MILLIONTH)) | st.builds(
    Charge, unknown, parts_of(Fraction(1, 10)), parts_of(Fraction(1, 10))
)
costly = st.builds(Charge, *[parts_of(Fraction(1, 4), 10**6)] * 3)


# Charges


def test_exact_losses_have_exact_charges() -> None:
    laplace = Charge.of(LaplaceLoss(Fraction(1, 3)), count=3)
    assert laplace.pure == 1
    assert laplace.delta == 0
    assert Charge.of(GaussianLoss(Fraction(1, 3)), 9) == Charge(None, ONE, Fraction(1, 2))


@pytest.mark.parametrize(
    "loss",
    [
        LaplaceLoss(Fraction(1, 7)),
        LaplaceLoss(Fraction(9)),
        FiniteLoss((Fraction(2, 3), Fraction(1, 3)), (Fraction(1, 3), Fraction(2, 3))),
        FiniteLoss(
            (Fraction(999, 1000), Fraction(1, 1000)), (Fraction(1, 1000), Fraction(999, 1000))
        ),
    ],
)
def test_views_are_rounded_up(loss: LaplaceLoss | FiniteLoss) -> None:
    charge = Charge.of(loss)
    assert charge.mu_squared is not None
    assert charge.pure is not None
    assert charge.mu_squared == Fraction(loss.mu()) ** 2
    assert charge.rho == Fraction(loss.rho())
    assert float(charge.pure) == pytest.approx(loss.maximum(), rel=1e-15)
    if isinstance(loss, FiniteLoss):
        assert exp_lower(charge.pure) >= 2


def test_both_directions_of_a_pair_count() -> None:
    assert Charge.of(SKEWED) == Charge.of(SKEWED_BACK)
    assert (
        exp_lower(
            Charge.of(
                FiniteLoss((Fraction(1, 10), Fraction(9, 10)), (Fraction(1, 4), Fraction(3, 4)))
            ).pure
        )
        >= 2.5
    )


def test_a_sum_of_losses_costs_what_its_parts_cost() -> None:
    laplace, gauss = LaplaceLoss(Fraction(1, 3)), GaussianLoss(Fraction(1, 7))
    assert Charge.of(3 * laplace + gauss, count=2) == Charge.of(laplace, 6) + Charge.of(gauss, 2)
    assert Charge.of(3 * laplace) == Charge.of(laplace, 3)
    leaky = FiniteLoss((Fraction(1, 10), Fraction(9, 10)), (Fraction(0), ONE))
    assert Charge.of(3 * leaky + laplace).delta == Fraction(3, 10)


def test_ten_randomized_answers_at_a_tenth_make_one() -> None:
    charge = Charge.of(RandomizedResponse.calibrated(epsilon=0.1).loss(), count=10)
    assert TwoMeterFilter(Budget(ONE)).allows(charge)


@pytest.mark.parametrize("count", [0, -1, 1.0, True, "2", None])
def test_a_count_is_a_positive_whole_number(count: Any) -> None:
    with pytest.raises(InvalidInput, match="count"):
        Charge.of(LaplaceLoss(ONE), count)
    with pytest.raises(InvalidInput, match="count"):
        Charge.of(LaplaceLoss(ONE)) * count


def test_numpy_counts_do_not_wrap() -> None:
    assert Charge(ONE) * np.int8(100) * np.int8(100) == Charge(ONE) * 10**4  # type: ignore[operator]


@pytest.mark.parametrize("bad", [-1, -1e-300, math.nan, math.inf, "1", True, 1j, [1]])
@pytest.mark.parametrize("field", ["pure", "mu_squared", "rho", "delta"])
def test_amounts_are_finite_numbers_and_never_negative(field: str, bad: Any) -> None:
    with pytest.raises(InvalidInput, match=field):
        Charge(**{"pure": 1} | {field: bad})


def test_a_charge_of_unknown_size_is_never_allowed() -> None:
    unknown = Charge(delta=Fraction(0))
    assert not TwoMeterFilter(BUDGET).allows(unknown)
    assert TwoMeterFilter(BUDGET).fits(unknown) == 0
    with pytest.raises(InvalidInput, match="delta"):
        Charge(ONE, delta=None)  # type: ignore[arg-type]


def test_floats_are_read_at_the_larger_reading() -> None:
    assert Charge(0.1).pure == Fraction(0.1) > Fraction(1, 10)  # type: ignore[arg-type]
    assert Charge(Decimal("0.1")).pure == Fraction(1, 10)  # type: ignore[arg-type]


def test_only_a_loss_has_a_charge() -> None:
    with pytest.raises(InvalidInput, match="only a Loss"):
        Charge.of(RandomizedResponse(Fraction(3, 4)))  # type: ignore[arg-type]


def test_certain_outcomes_are_taken_out_as_delta() -> None:
    """With 1/10 the neighbour is given away, else a coin of ratio 3; and the same when only one side can tell."""
    nothing, tenth = Fraction(0), Fraction(1, 10)
    p = (tenth, nothing, Fraction(27, 40), Fraction(9, 40))
    charge = Charge.of(FiniteLoss(p, (p[1], p[0], p[3], p[2])), count=2)
    coin = Charge.of(FiniteLoss((Fraction(3, 4), Fraction(1, 4)), (Fraction(1, 4), Fraction(3, 4))))
    assert charge == replace(2 * coin, delta=Fraction(1, 5))
    one_sided = Charge.of(FiniteLoss((tenth, Fraction(9, 10)), (nothing, ONE)))
    assert one_sided == replace(NOTHING, delta=tenth)
    with pytest.raises(InvalidInput, match="never give the same"):
        Charge.of(FiniteLoss((ONE, nothing), (nothing, ONE)))


def test_other_losses_with_certain_outcomes_are_refused() -> None:
    infinite = dict.fromkeys(Loss.__abstractmethods__, lambda *_: math.inf)
    with pytest.raises(InvalidInput, match=r"Charge\.approximate"):
        Charge.of(type("Unbounded", (Loss,), infinite)())


@pytest.mark.parametrize(
    "epsilon",
    [Fraction(1, 10**12), Fraction(1, 10), Fraction(99, 100), ONE, Fraction(5), Fraction(300)],
)
def test_a_pure_charge_is_that_of_randomized_response(epsilon: Fraction) -> None:
    """approximate(epsilon, delta) covers the response calibrated to epsilon, by little."""
    charge, response = (
        Charge.approximate(epsilon, MILLIONTH),
        RandomizedResponse.calibrated(epsilon=epsilon),
    )
    loss = Charge.of(response.loss())
    assert charge.delta == MILLIONTH
    assert charge.pure == epsilon
    assert loss.pure is not None
    assert loss.pure <= epsilon
    for stated, real in zip(charge.meters, loss.meters, strict=True):
        assert float(stated or 0) == pytest.approx(float(real or 0), rel=1e-5)


def test_nothing_known_but_no_privacy_lost() -> None:
    assert Charge.approximate(0, 0) == NOTHING


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [(-1, 0), (1, 1), (1, -1), (math.nan, 0), (math.inf, 0), ("1", 0), (1, None)],
)
def test_approximate_charges_need_a_promise(epsilon: Any, delta: Any) -> None:
    with pytest.raises(InvalidInput):
        Charge.approximate(epsilon, delta)


@given(st.lists(charges, max_size=6), st.randoms(use_true_random=False))
def test_sums_are_exact_in_any_order(parts: list[Charge], random: Random) -> None:
    total = sum(parts, NOTHING)
    random.shuffle(parts)
    assert sum(parts, NOTHING) == total
    assert total.delta == sum(part.delta for part in parts)
    for i, amount in enumerate(total.meters):
        each = [part.meters[i] for part in parts]
        assert amount == (None if None in each else sum(x for x in each if x is not None))


@given(charges, st.integers(1, 50))
def test_a_count_is_repeated_addition(charge: Charge, count: int) -> None:
    assert sum([charge] * count, NOTHING) == count * charge == charge * count


def test_only_charges_are_added() -> None:
    with pytest.raises(InvalidInput, match="takes a Charge"):
        NOTHING + 1  # type: ignore[operator]


def test_charges_are_frozen_and_readable() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        NOTHING.pure = ONE  # type: ignore[misc]
    assert repr(Charge(Fraction(1, 2), delta=MILLIONTH)) == "Charge(pure=0.5, delta=1e-06)"


# Filters


def test_the_caps_are_the_largest_certain_ones() -> None:
    meter = TwoMeterFilter(BUDGET, Fraction(1, 10**7))
    assert meter.caps == Remaining(
        ONE, largest_mu(ONE, Fraction(9, 10**7)) ** 2, None, Fraction(1, 10**7)
    )
    assert GaussianLoss(largest_mu(ONE, MILLIONTH)).delta(1) <= 1e-6
    assert TwoMeterFilter(Budget(ONE)).caps == Remaining(pure=ONE)
    assert TwoMeterFilter(BUDGET, MILLIONTH).caps == Remaining(pure=ONE, delta=MILLIONTH)
    assert ZcdpFilter(BUDGET).caps == Remaining(rho=largest_rho(ONE, MILLIONTH))


@each_filter
@given(costly, costly)
def test_how_many_fit_is_how_many_can_be_spent(
    kind: type[Filter], before: Charge, charge: Charge
) -> None:
    meter = kind(BUDGET)
    meter = meter.spend(before) if meter.allows(before) else meter
    count = meter.fits(charge)
    assert not meter.allows((count + 1) * charge)
    assert count == 0 or meter.spend(count * charge).fits(charge) == 0


@each_filter
@given(st.lists(charges, max_size=6), st.randoms(use_true_random=False))
def test_order_does_not_matter_and_refusals_change_nothing(
    kind: type[Filter], parts: list[Charge], random: Random
) -> None:
    """Allowed one by one is allowed in any order and all at once; a refused charge leaves everything as it was."""
    meter = kind(BUDGET, Fraction(1, 10**7))
    spent = []
    for part in parts:
        if meter.allows(part):
            meter = meter.spend(part)
            spent.append(part)
        else:
            before = meter.spent
            with pytest.raises(BudgetExceeded):
                meter.spend(part)
            assert meter.spent == before
            assert meter.fits(part) == 0 if part.delta or all(part.meters) else True
    random.shuffle(spent)
    again = kind(BUDGET, Fraction(1, 10**7))
    for part in spent:
        again = again.spend(part)
    assert again == meter
    assert hash(again) == hash(meter)
    assert not spent or kind(BUDGET, Fraction(1, 10**7)).allows(sum(spent, NOTHING))


@each_filter
@given(charges, charges)
def test_what_costs_more_is_never_allowed_instead(kind: type[Filter], a: Charge, b: Charge) -> None:
    meter = kind(BUDGET, Fraction(1, 10**7))
    assert meter.allows(a) or not meter.allows(a + b)
    assert kind(Budget(Fraction(2), 2 * MILLIONTH), Fraction(1, 10**7)).allows(
        a
    ) or not meter.allows(a)


def test_nothing_is_absorbed() -> None:
    """The classic: 1e6 + 1e-11 == 1e6 in floats, and in 28-digit decimals sooner or later."""
    million = Budget(Fraction(10**6))
    tiny = Charge(Fraction(1, 10**11))
    meter = TwoMeterFilter(million).spend(Charge(Fraction(10**6 - 1)))
    assert meter.fits(tiny) == 10**11
    for n in range(1, 1001):
        meter = meter.spend(tiny)
        assert meter.spent.pure == 10**6 - 1 + n * Fraction(1, 10**11)
    assert meter.fits(tiny) == 10**11 - 1000
    subnormal = Charge(Fraction(5e-324))
    full = meter.spend((10**11 - 1000) * tiny)
    assert full.remaining.pure == 0
    assert not full.allows(subnormal)


def test_three_thirds_fit_and_not_a_hair_more() -> None:
    meter = TwoMeterFilter(Budget(ONE))
    for _ in range(3):
        meter = meter.spend(Charge.of(LaplaceLoss(Fraction(1, 3))))
    assert meter.remaining == Remaining(pure=Fraction(0))
    assert not meter.allows(Charge(Fraction(1, 10**1000)))
    assert meter.allows(NOTHING)


@settings(deadline=None)
@given(st.lists(parts_of(Fraction(1, 10**9), 1), min_size=1, max_size=50), st.integers(1, 10**6))
def test_millions_of_tiny_spends_are_their_exact_sum(sizes: list[Fraction], count: int) -> None:
    meter = TwoMeterFilter(Budget(ONE))
    for size in sizes:
        meter = meter.spend(Charge(size)).spend(count * Charge(size / 100))
    assert meter.spent.pure == sum(sizes) * (1 + Fraction(count, 100))
    assert meter.remaining.pure == 1 - sum(sizes) * (1 + Fraction(count, 100))


def test_either_meter_is_enough() -> None:
    meter = TwoMeterFilter(BUDGET)
    laplace, gauss = (
        Charge.of(LaplaceLoss(Fraction(1, 100))),
        Charge.of(GaussianLoss(Fraction(1, 100))),
    )
    assert meter.fits(laplace) == 358 > 100
    assert meter.fits(Charge.of(LaplaceLoss(Fraction(1, 2)))) == 2
    assert meter.fits(gauss) == 560
    by_gauss = meter.spend(gauss)
    assert by_gauss.remaining.pure is None
    assert meter.spend(150 * laplace).remaining.pure is None
    by_pure = meter.spend(Charge.of(LaplaceLoss(ONE)))
    assert by_pure.remaining.mu_squared is None
    assert not by_pure.allows(gauss)
    assert not TwoMeterFilter(Budget(ONE)).allows(gauss)
    assert not by_gauss.allows(Charge.of(LaplaceLoss(ONE)))


def test_unknown_amounts_close_a_meter_for_good() -> None:
    meter = TwoMeterFilter(BUDGET).spend(Charge(pure=Fraction(1, 2)))
    assert meter.remaining == Remaining(pure=Fraction(1, 2))
    with pytest.raises(BudgetExceeded):
        meter.spend(Charge(mu_squared=Fraction(1, 10**6)))
    assert not ZcdpFilter(BUDGET).allows(Charge(pure=Fraction(1, 10**9)))
    assert ZcdpFilter(BUDGET).fits(Charge(pure=Fraction(1, 10**9))) == 0


def test_reserved_deltas_are_a_meter_of_their_own() -> None:
    keys = Charge.approximate(Fraction(1, 100), Fraction(1, 10**8))
    meter = TwoMeterFilter(BUDGET, reserved_delta=Fraction(5, 10**8))
    assert meter.fits(keys) == 5
    full = meter.spend(5 * keys)
    assert full.remaining.delta == 0
    assert not full.allows(keys)
    assert full.allows(Charge.of(LaplaceLoss(Fraction(1, 100))))
    assert not TwoMeterFilter(BUDGET).allows(keys)


@each_filter
def test_a_lowered_budget_refuses_all_that_costs(kind: type[Filter]) -> None:
    """A stored state may exceed a budget that was lowered since: then only what reveals nothing is allowed."""
    meter = kind(BUDGET, spent=Charge(Fraction(5), Fraction(5), Fraction(5), Fraction(1, 2)))
    assert meter.remaining.meters == (None, None, None)
    assert meter.fits(Charge.of(LaplaceLoss(ONE))) == 0
    least = Fraction(1, 10**300)
    for charge in (
        Charge.of(LaplaceLoss(ONE)),
        Charge(least, least, least),
        replace(NOTHING, delta=least),
    ):
        with pytest.raises(BudgetExceeded):
            meter.spend(charge)
    assert meter.spend(NOTHING) == meter


@pytest.mark.parametrize(
    ("meter", "charge", "message"),
    [
        (TwoMeterFilter(Budget(Fraction(3, 10))), Charge(Fraction(1, 2)), "this query costs epsilon 0.5, 0.3 is left. Lo"),
        (TwoMeterFilter(Budget(ONE)), Charge(mu_squared=ONE), "this query costs unbounded epsilon, 1 is left."),
        (TwoMeterFilter(BUDGET), Charge(Fraction(2), ONE), "this query costs 200 % of the budget, 100 % of it is left."),
        (TwoMeterFilter(BUDGET, spent=Charge(mu_squared=MILLIONTH)), Charge(Fraction(2), ONE), ", 99.99 % of it is left."),
        (ZcdpFilter(BUDGET), Charge(rho=ONE), "this query costs rho 1, 0.024"),
        (TwoMeterFilter(BUDGET), Charge(ONE, delta=MILLIONTH), "costs delta 1e-06, 0 of the reserved delta is left."),
        (Odometer(BUDGET), Charge(ONE, delta=MILLIONTH), "costs delta 1e-06, 0 of the reserved delta is left."),
    ],
)  # fmt: skip
def test_refusals_say_what_it_costs_and_what_is_left(
    meter: Filter | Odometer, charge: Charge, message: str
) -> None:
    with pytest.raises(BudgetExceeded) as caught:
        meter.spend(charge)
    assert message in str(caught.value)
    assert isinstance(caught.value, SordinoError)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.cost) == (str(caught.value), caught.value.cost)


@pytest.mark.parametrize("kind", [TwoMeterFilter, ZcdpFilter, Odometer])
def test_wrong_kinds_of_things_are_refused(kind: Any) -> None:
    for arguments in (
        (ONE,),
        (BUDGET, 2 * MILLIONTH),
        (BUDGET, -1),
        (BUDGET, math.nan),
        (BUDGET, 0, ONE),
    ):
        with pytest.raises(InvalidInput):
            kind(*arguments)
    for charge in (ONE, 0.1, None, LaplaceLoss(ONE)):
        with pytest.raises(InvalidInput, match="takes a Charge"):
            kind(BUDGET).spend(charge)


@pytest.mark.parametrize("delta", [1e-7, 3e-7, 1e-6, 0.1])
def test_all_of_a_delta_can_be_reserved_however_it_reads(delta: Any) -> None:
    assert TwoMeterFilter(Budget(ONE, delta), reserved_delta=delta).free_delta == 0


def test_more_wrong_things_are_refused() -> None:
    with pytest.raises(InvalidInput, match="TwoMeterFilter"):
        ZcdpFilter(Budget(ONE))
    with pytest.raises(InvalidInput, match="TwoMeterFilter"):
        ZcdpFilter(BUDGET, MILLIONTH)
    with pytest.raises(InvalidInput, match="any number of them fits"):
        TwoMeterFilter(BUDGET).fits(NOTHING)
    with pytest.raises(InvalidInput, match="takes a Charge"):
        TwoMeterFilter(BUDGET).fits(0.1)  # type: ignore[arg-type]


def test_filters_are_frozen_and_readable() -> None:
    meter = TwoMeterFilter(BUDGET, Fraction(1, 10**7))
    after = meter.spend(Charge(Fraction(1, 2)))
    assert meter.spent == NOTHING != after.spent
    with pytest.raises(dataclasses.FrozenInstanceError):
        meter.spent = NOTHING  # type: ignore[misc]
    text = "TwoMeterFilter(Budget(epsilon=1, delta=1e-06), reserved_delta=1e-07, spent=Charge(pure=0.5, delta=0))"
    assert repr(after) == text
    assert repr(TwoMeterFilter(Budget(ONE)).remaining) == "Remaining(share=1, pure=1, delta=0)"
    assert repr(meter.caps).startswith("Remaining(pure=1, mu_squared=0.")


def test_what_is_left_is_told_as_a_part_of_the_budget_and_its_amounts_when_asked() -> None:
    """Printed, in a notebook and at a prompt: no mu^2 nor rho, which say nothing to those who only ask."""
    two, zcdp = TwoMeterFilter(BUDGET, Fraction(1, 10**7)), ZcdpFilter(BUDGET)
    gauss = Charge.of(GaussianLoss(Fraction(1, 10)))
    for left in (two.remaining, two.spend(gauss).remaining, zcdp.spend(gauss).remaining):
        for text in (str(left), repr(left), left._repr_html_()):
            assert not {"mu", "rho"} & set(re.findall("[a-z]+", text))
    assert str(two.remaining) == "100 % of the budget, and 100 % of what is kept for private keys"
    pure = TwoMeterFilter(Budget(ONE)).spend(Charge(Fraction(1, 3)))
    assert str(pure.remaining) == "66.66 % of the budget (epsilon 0.6666 of 1)"
    assert repr(pure.remaining).startswith("Remaining(share=0.6666, pure=")
    assert "66.66 % of the budget" in pure.remaining._repr_html_()
    after = two.spend(gauss).remaining
    assert after.share == (after.mu_squared or 0) / (two.caps.mu_squared or 1) < 1
    assert str(pure.spend(Charge(Fraction(2, 3))).remaining) == "0 % of the budget (epsilon 0 of 1)"
    assert str(pure.spend(Charge(Fraction(0), ONE)).remaining) == str(pure.remaining)
    assert pure.remaining == Remaining(pure=Fraction(2, 3))
    assert str(Remaining(pure=ONE)) == repr(Remaining(pure=ONE)) == "Remaining(pure=1, delta=0)"
    assert "pure=1" in Remaining(pure=ONE)._repr_html_()


# Conversion of zCDP


@pytest.mark.parametrize(
    "epsilon", [Fraction(1, 10**9), Fraction(1, 100), ONE, Fraction(8), Fraction(1000)]
)
@pytest.mark.parametrize(
    "delta", [Fraction(1, 10**300), Fraction(1, 10**6), Fraction(1, 20), Fraction(9, 10)]
)
def test_the_largest_rho_lies_between_the_simple_one_and_the_gaussian_one(
    epsilon: Fraction, delta: Fraction
) -> None:
    """Above Bun and Steinke's (sqrt(epsilon + log 1/delta) - sqrt(log 1/delta))^2;
    below mu^2/2, what a Gaussian needs.
    """
    rho, tail = (
        largest_rho(epsilon, delta),
        -math.log(delta.numerator) + math.log(delta.denominator),
    )
    simple = (float(epsilon) / (math.sqrt(float(epsilon) + tail) + math.sqrt(tail))) ** 2
    assert simple * (1 - 1e-9) < rho <= largest_mu(epsilon, delta) ** 2 / 2


@settings(max_examples=50, deadline=None)
@given(st.fractions(Fraction(1, 1000), 20), st.fractions(Fraction(1, 10**9), Fraction(9, 10)))
def test_the_largest_rho_is_the_best_of_all_orders(epsilon: Fraction, delta: Fraction) -> None:
    """As good as any order of a fine grid; it grows with epsilon and with delta."""
    orders = 1 + np.exp(np.linspace(-12, 12, 2000))
    x = orders - 1
    grid = (float(epsilon) + (math.log(delta) + np.log(x) + orders * np.log1p(1 / x)) / x) / orders
    rho = largest_rho(epsilon, delta)
    assert float(rho) >= grid.max() * (1 - 1e-9)
    assert largest_rho(epsilon * Fraction(11, 10), delta) > rho
    assert largest_rho(epsilon, delta * Fraction(11, 10)) > rho


def test_zcdp_or_gaussian_currency() -> None:
    """The mu^2 meter is better for Gaussian noise, the rho meter for hundreds of small pure releases."""
    gauss, laplace = (
        Charge.of(GaussianLoss(Fraction(1, 100))),
        Charge.of(LaplaceLoss(Fraction(1, 100))),
    )
    assert (TwoMeterFilter(BUDGET).fits(gauss), ZcdpFilter(BUDGET).fits(gauss)) == (560, 487)
    assert (TwoMeterFilter(BUDGET).fits(laplace), ZcdpFilter(BUDGET).fits(laplace)) == (358, 488)


# Every adaptive strategy


class Meter(Hashable, Protocol):
    """What the adversary plays against."""

    def allows(self, charge: Charge) -> bool: ...
    def spend(self, charge: Charge) -> Self: ...


@dataclass(frozen=True)
class Move:
    """A mechanism: its two laws on a pair of neighbours, and what it is billed as."""

    pair: tuple[tuple[Fraction, Fraction], ...]
    charge: Charge


def move(loss: FiniteLoss, charge: Charge | None = None) -> Move:
    return Move(tuple(zip(loss.p, loss.q, strict=True)), charge or Charge.of(loss))


def coins(ratio: Fraction, count: int) -> FiniteLoss:
    """The number of heads of `count` coins with odds `ratio` against those with odds 1/ratio:
    nearly Gaussian for many.
    """
    head = ratio / (1 + ratio)
    law = tuple(comb(count, i) * head ** (count - i) * (1 - head) ** i for i in range(count + 1))
    return FiniteLoss(law, law[::-1])


def revealing(loss: FiniteLoss, delta: Fraction) -> FiniteLoss:
    """With probability delta the neighbour is given away, else a release with this loss."""
    p, q = (tuple((1 - delta) * x for x in side) for side in (loss.p, loss.q))
    return FiniteLoss((delta, Fraction(0), *p), (Fraction(0), delta, *q))


def exp_lower(epsilon: Fraction | None) -> Fraction:
    assert epsilon is not None
    return exact_lower(certified(lambda: ball(epsilon).exp(), 200))


def best_attack(
    meter: Meter, menu: list[Move], steps: int, factor: Callable[[Any], Fraction]
) -> Fraction:
    """The largest sum over transcripts of (P - factor Q)+ that any adaptive strategy reaches against the meter.

    The adversary sees the transcript, hence the ratio P/Q so far; only that and the meter matter for what it can still
    reach. With factor <= e^epsilon this is an upper bound of the true delta(epsilon), computed in exact rationals.
    """

    @cache
    def value(meter: Any, ratio: Fraction, steps: int) -> Fraction:
        """The best reachable sum, per unit of Q's probability."""
        best = max(Fraction(0), ratio - factor(meter))
        for choice in menu if steps else ():
            if meter.allows(choice.charge):
                after = meter.spend(choice.charge)
                outcomes = (
                    q * value(after, ratio * p / q, steps - 1) if q else ratio * p
                    for p, q in choice.pair
                )
                best = max(best, sum(outcomes, Fraction(0)))
        return best

    return value(meter, ONE, steps)


RATIO = Fraction(11, 10)
LOG_RATIO = Charge.of(coins(RATIO, 1)).pure or ONE
HALF = Fraction(1, 2)
ONE_COIN, FOUR_COINS, MANY_COINS = (move(coins(RATIO, n)) for n in (1, 4, 16))
SKEWED = FiniteLoss(
    (HALF, Fraction(3, 10), Fraction(1, 5)), (Fraction(2, 5), Fraction(1, 5), Fraction(2, 5))
)
SKEWED_BACK = FiniteLoss(SKEWED.q, SKEWED.p)


def budget_for(copies: int, epsilon: Fraction = HALF) -> Budget:
    """A budget into whose mu^2 meter exactly so many MANY_COINS fit: the attack can come close to its delta."""
    assert MANY_COINS.charge.mu_squared is not None
    mu_squared = MANY_COINS.charge.mu_squared * copies
    delta = Fraction(GaussianLoss(Fraction(math.sqrt(mu_squared) * (1 + 1e-9))).delta(epsilon))
    budget = Budget(epsilon, delta)
    assert TwoMeterFilter(budget).fits(MANY_COINS.charge) == copies
    return budget


def constant(epsilon: Fraction) -> Callable[[Any], Fraction]:
    low = exp_lower(epsilon)
    return lambda _: low


def attack(
    meter: TwoMeterFilter | ZcdpFilter | PayEither, menu: list[Move], steps: int
) -> Fraction:
    return best_attack(meter, menu, steps, constant(meter.budget.epsilon)) / meter.budget.delta


def test_no_strategy_breaks_the_two_meter_filter() -> None:
    """Four near-Gaussian mechanisms deep, mixed with others: the best attack gets 97 % of delta, never more."""
    assert (
        Fraction(97, 100)
        < attack(TwoMeterFilter(budget_for(4)), [ONE_COIN, FOUR_COINS, MANY_COINS], 6)
        <= 1
    )


def test_no_strategy_breaks_it_with_skewed_mechanisms() -> None:
    menu = [move(SKEWED), move(SKEWED_BACK), move(coins(Fraction(3, 2), 2)), MANY_COINS]
    assert HALF < attack(TwoMeterFilter(budget_for(3)), menu, 4) <= 1


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1, 4), ONE])
def test_no_strategy_breaks_it_at_other_budgets(epsilon: Fraction) -> None:
    assert (
        HALF
        < attack(TwoMeterFilter(budget_for(2, epsilon)), [ONE_COIN, MANY_COINS, move(SKEWED)], 4)
        <= 1
    )


def test_no_strategy_breaks_the_pure_meter() -> None:
    """Without delta nothing at all is left above e^epsilon, though the last coin brings the ratio to it exactly."""
    budget = Budget(3 * LOG_RATIO)
    menu = [ONE_COIN, FOUR_COINS, move(coins(Fraction(21, 20), 1)), move(SKEWED)]
    assert best_attack(TwoMeterFilter(budget), menu, 6, constant(budget.epsilon)) == 0
    assert (
        best_attack(TwoMeterFilter(budget), menu, 6, constant(budget.epsilon * Fraction(99, 100)))
        > 0
    )


LEAK = Fraction(1, 50)
SILENT = move(revealing(FiniteLoss((ONE,), (ONE,)), LEAK))
LEAKY = move(revealing(coins(RATIO, 1), LEAK))
ROUGH = move(revealing(coins(RATIO, 1), LEAK), Charge.approximate(LOG_RATIO, LEAK))


@pytest.mark.parametrize("leaky", [SILENT, LEAKY, ROUGH])
def test_no_strategy_breaks_it_with_reserved_deltas(leaky: Move) -> None:
    """Reveals are allowed twice beside three near-Gaussian mechanisms, and used: up to 95 % of delta is reached."""
    plain = budget_for(3)
    meter = TwoMeterFilter(Budget(plain.epsilon, plain.delta + 2 * LEAK), reserved_delta=2 * LEAK)
    without, reached = attack(meter, [MANY_COINS], 5), attack(meter, [leaky, MANY_COINS], 5)
    assert without < Fraction(3, 4) < Fraction(95 if leaky is SILENT else 80, 100) < reached <= 1


def test_no_strategy_breaks_the_zcdp_filter() -> None:
    budget = budget_for(4)
    leaky = ZcdpFilter(Budget(budget.epsilon, budget.delta + LEAK), reserved_delta=LEAK)
    assert Fraction(2, 5) < attack(ZcdpFilter(budget), [ONE_COIN, FOUR_COINS, MANY_COINS], 6) <= 1
    assert attack(leaky, [LEAKY, MANY_COINS], 5) <= 1


class Generous(TwoMeterFilter):
    """Wrong: a third more than the meter has."""

    @property
    def caps(self) -> Remaining:
        caps = super().caps
        return replace(caps, mu_squared=(caps.mu_squared or 0) * Fraction(4, 3))


class Unsquared(TwoMeterFilter):
    """Wrong: the sum of squares is compared with mu, not with mu^2."""

    @property
    def caps(self) -> Remaining:
        return replace(super().caps, mu_squared=Fraction(math.sqrt(super().caps.mu_squared or 0)))


class OneByOne(TwoMeterFilter):
    """Wrong: each charge is compared with the whole budget."""

    @property
    def remaining(self) -> Remaining:
        return self.caps


class Unreserved(TwoMeterFilter):
    """Wrong: the reserved deltas are not taken out of delta."""

    @property
    def caps(self) -> Remaining:
        return replace(TwoMeterFilter(self.budget).caps, delta=self.reserved_delta)


@dataclass(frozen=True)
class PayEither:
    """Wrong: each charge may be paid from the meter that still has enough, instead of one meter holding for all."""

    budget: Budget
    pure: Fraction = Fraction(0)
    mu_squared: Fraction = Fraction(0)

    def allows(self, charge: Charge) -> bool:
        caps = TwoMeterFilter(self.budget).caps
        return self.pure + (charge.pure or 0) <= (caps.pure or 0) or self._by_mu(charge) <= (
            caps.mu_squared or 0
        )

    def _by_mu(self, charge: Charge) -> Fraction:
        return self.mu_squared + (charge.mu_squared or 0)

    def spend(self, charge: Charge) -> Self:
        if self.pure + (charge.pure or 0) <= self.budget.epsilon:
            return replace(self, pure=self.pure + (charge.pure or 0))
        return replace(self, mu_squared=self._by_mu(charge))


@pytest.mark.parametrize("wrong", [Generous, Unsquared, OneByOne])
def test_wrong_filters_are_caught(wrong: type[TwoMeterFilter]) -> None:
    assert attack(wrong(budget_for(3)), [ONE_COIN, MANY_COINS], 5) > Fraction(11, 10)


def test_forgetting_to_reserve_is_caught() -> None:
    budget = budget_for(3)
    assert attack(TwoMeterFilter(budget, LEAK), [SILENT, MANY_COINS], 5) <= 1
    assert attack(Unreserved(budget, LEAK), [SILENT, MANY_COINS], 5) > Fraction(11, 10)


def test_paying_from_either_meter_is_caught() -> None:
    """The disjunction is about the whole history; per query it would hand out the budget twice."""
    menu = [move(coins(Fraction(27, 10), 1)), MANY_COINS]
    assert attack(TwoMeterFilter(budget_for(3, ONE)), menu, 4) <= 1
    assert attack(PayEither(budget_for(3, ONE)), menu, 4) > Fraction(11, 10)


# Odometer


def share(j: int) -> Fraction:
    return Fraction(12, 7 * (abs(j) + 3) * (abs(j) + 4))


def test_the_shares_of_the_rungs_sum_to_one() -> None:
    n = 1000
    rest = 2 * Fraction(12, 7 * (n + 4))  # the telescoping tail beyond n on both sides
    assert sum(share(j) for j in range(-n, n + 1)) + rest == 1


@pytest.mark.parametrize(
    "shift", [Fraction(1, 1000), Fraction(1, 30), Fraction(1, 5), ONE, Fraction(7)]
)
def test_the_report_is_the_lowest_rung_that_holds_with_its_share(shift: Fraction) -> None:
    loss = GaussianLoss(shift)
    report = Odometer(BUDGET, MILLIONTH / 2).spend(Charge.of(loss)).epsilon
    j = round(math.log(report) / math.log(1.1))
    assert report == Fraction(11, 10) ** j
    assert loss.satisfies(report, share(j) * MILLIONTH / 2)
    assert not loss.satisfies(report * Fraction(10, 11), share(j - 1) * MILLIONTH / 2)


def test_pure_reports_are_exact_and_need_no_delta() -> None:
    meter = Odometer(Budget(ONE))
    assert meter.epsilon == 0
    for n in range(1, 10):
        meter = meter.spend(Charge.of(LaplaceLoss(Fraction(1, 3))))
        assert meter.epsilon == Fraction(n, 3)


@given(st.lists(costly, max_size=5))
def test_reports_only_grow_and_ignore_the_order(parts: list[Charge]) -> None:
    meter, back = Odometer(BUDGET), Odometer(BUDGET)
    last = Fraction(0)
    for part in parts:
        meter = meter.spend(replace(part, pure=None))
        assert meter.epsilon >= last
        last = meter.epsilon
    for part in reversed(parts):
        back = back.spend(replace(part, pure=None))
    assert back == meter


@pytest.mark.parametrize("shift", [Fraction(1, 30), Fraction(1, 5), ONE, Fraction(7)])
def test_a_report_is_not_far_above_what_a_filter_made_for_it_would_say(shift: Fraction) -> None:
    loss = GaussianLoss(shift)
    truth = Fraction(loss.epsilon(MILLIONTH))
    report = Odometer(BUDGET).spend(Charge.of(loss)).epsilon
    assert truth < report < truth * Fraction(3, 2)
    assert Odometer(Budget(truth, MILLIONTH)).spend(Charge.of(loss)).epsilon < truth * Fraction(
        13, 10
    )


def test_extreme_reports() -> None:
    def report(budget: Budget, mu_squared: Fraction) -> Fraction:
        return Odometer(budget).spend(Charge(mu_squared=mu_squared)).epsilon

    assert report(BUDGET, Fraction(0)) == 0
    assert 0 < report(BUDGET, Fraction(1, 10**800)) < Fraction(1, 10**9)
    assert 5 * 10**11 < report(BUDGET, Fraction(10**12)) < 6 * 10**11
    assert report(Budget(Fraction(1, 10**200), MILLIONTH), Fraction(1, 100)) < 1
    assert report(Budget(Fraction(10**6), Fraction(9, 10)), Fraction(1, 100)) < 1
    for spent in (Charge(rho=ONE), Charge(mu_squared=Fraction(10**12 + 1))):
        with pytest.raises(InvalidInput, match="sum of pure epsilons"):
            Odometer(BUDGET).spend(spent)
    with pytest.raises(InvalidInput, match="sum of pure epsilons"):
        Odometer(Budget(ONE)).spend(Charge(mu_squared=ONE))


@cache
def report_lower(meter: Any) -> Fraction:
    return exp_lower(meter.epsilon)


def test_no_strategy_and_no_moment_of_reading_breaks_the_odometer() -> None:
    """P(E) <= E_Q[e^report; E] + delta for every strategy that stops when it likes; a naive report is caught."""
    delta = Fraction(1, 20)
    menu = [ONE_COIN, FOUR_COINS, MANY_COINS, LEAKY]
    meter = Odometer(Budget(HALF, delta), reserved_delta=LEAK)
    reached = best_attack(_Free(meter), menu, 5, lambda free: report_lower(free.meter))
    assert LEAK < reached <= delta

    def naive(free: Any) -> Fraction:
        mu = Fraction(math.sqrt(free.meter.spent.mu_squared or 0))
        return exp_lower(Fraction(GaussianLoss(mu).epsilon(delta)) if mu else Fraction(0))

    fair = Odometer(Budget(HALF, delta))
    assert best_attack(_Free(fair), [MANY_COINS], 6, cache(naive)) > delta * Fraction(11, 10)
    assert best_attack(_Free(fair), [MANY_COINS], 6, lambda free: report_lower(free.meter)) <= delta


@dataclass(frozen=True)
class _Free:
    """An odometer as a meter that refuses only what it cannot reserve."""

    meter: Odometer

    def allows(self, charge: Charge) -> bool:
        return self.meter.spent.delta + charge.delta <= self.meter.reserved_delta

    def spend(self, charge: Charge) -> Self:
        return replace(self, meter=self.meter.spend(charge))


# Proofs


def test_the_proofs_name_code_that_exists() -> None:
    page = Path(filters.__file__).with_suffix(".md").read_text()
    code = " ".join(path.read_text() for path in Path(filters.__file__).parents[1].rglob("*.py"))
    for theorem in range(1, 8):
        assert f"**Theorem {theorem}" in page
    for name in (quoted.strip("()") for quoted in page.split("`")[1::2]):
        assert not name.isidentifier() or name in code, name

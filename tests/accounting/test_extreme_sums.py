"""Sums with losses that floats can hardly hold, large or tiny: an answer on the safe side, and no warning."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import pytest

import sordino as so

F = Fraction
LARGE = [F(480), F(720), F(1000), F(10**4), F(10**6), F(10**9, 3), F(10**12), F(10**99), F(10**300)]
BESIDE = [
    so.LaplaceLoss(F(1)),
    so.RandomizedResponse(F(3, 4)).loss(),
    so.GaussianLoss(F(1)),
    so.LaplaceLoss(F(800)),
]


@pytest.mark.parametrize("shift", LARGE, ids=lambda t: f"{float(t):.0e}")
def test_a_sum_reveals_at_least_what_each_part_does(shift: Fraction) -> None:
    large = so.LaplaceLoss(shift)
    for beside, delta in product(BESIDE, (1e-12, 1e-6, 0.3)):
        both = large + beside
        most = (
            large.maximum()
            + (beside.epsilon(delta) if beside.maximum() == math.inf else beside.maximum())
            + 1e-3
        )
        assert large.epsilon(delta) * (1 - 2.0**-40) <= both.epsilon(delta) <= most * (1 + 2.0**-40)
    for epsilon in (-1.0, 0.0, 1.0, float(shift) / 2):
        assert large.delta(epsilon) * (1 - 2.0**-30) <= (large + BESIDE[0]).delta(epsilon) <= 1


@pytest.mark.parametrize("shift", LARGE[:6], ids=lambda t: f"{float(t):.0e}")
@pytest.mark.parametrize("count", [2, 5])
def test_what_is_missing_to_the_largest_loss_does_not_depend_on_a_large_shift(
    shift: Fraction, count: int
) -> None:
    """shift - L has the same law for every shift, but for less than e^-shift."""
    for delta in (1e-6, 0.1):
        known = (count * so.LaplaceLoss(F(60))).epsilon_bounds(delta)  # type: ignore[attr-defined]
        found = (count * so.LaplaceLoss(shift)).epsilon_bounds(delta)  # type: ignore[attr-defined]
        more = float(count * (shift - 60))
        assert found.lower * (1 - 2.0**-40) <= known.upper + more
        assert known.lower + more <= found.upper * (1 + 2.0**-40)


@pytest.mark.parametrize("shift", [F(40), F(60), F(200)])
def test_a_large_gaussian_loss_beside_another(shift: Fraction) -> None:
    gaussian = so.GaussianLoss(shift)
    found = (gaussian + so.LaplaceLoss(F(1))).epsilon_bounds(1e-6)  # type: ignore[attr-defined]
    alone = gaussian.epsilon(1e-6)
    assert alone <= found.upper <= alone + 1 + 1e-3 * alone
    assert found.lower <= alone + 1
    assert (gaussian + so.LaplaceLoss(F(1))).delta(1) == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("shift", [F(1, 10**300), F(1, 10**12)])
def test_a_tiny_loss_beside_an_ordinary_one_costs_next_to_nothing(shift: Fraction) -> None:
    """Once asked for terabytes: the grid was made as fine as the tiny loss."""
    tiny = so.LaplaceLoss(shift)
    for loss in (
        so.GaussianLoss(F(1)),
        so.LaplaceLoss(F(1)),
        so.RandomizedResponse(F(3, 4)).loss(),
    ):
        alone = loss.epsilon(1e-6)
        assert alone * (1 - 1e-9) <= (3 * tiny + loss).epsilon(1e-6) <= alone * (1 + 1e-3)


@pytest.mark.parametrize(
    "loss",
    [so.FiniteLoss((F(1), F(0)), (F(0), F(1))), so.LaplaceLoss(F(10**400))],
    ids=["everything", "beyond floats"],
)
def test_what_gives_everything_away_still_does_beside_others(loss: so.Loss) -> None:
    for both in (2 * loss, loss + so.LaplaceLoss(F(1))):
        assert both.epsilon(1e-6) == math.inf
        assert both.delta(1) == 1


def test_a_finite_pair_whose_ratio_no_float_holds() -> None:
    rare = F(1, 10**400)
    loss = so.FiniteLoss((1 - rare, rare), (rare, 1 - rare))
    found = (3 * loss + so.LaplaceLoss(F(1))).epsilon_bounds(1e-6)  # type: ignore[attr-defined]
    assert 3 * loss.epsilon(0) * (1 - 1e-9) <= found.upper <= 3 * loss.epsilon(0) + 1 + 1e-6
    assert 3 * loss.epsilon(0) * (1 - 1e-9) <= found.lower <= found.upper


def _given_away(chance: Fraction) -> so.FiniteLoss:
    return so.FiniteLoss((1 - chance, chance, F(0)), (1 - chance, F(0), chance))


def test_what_is_given_away_too_rarely_for_a_float_to_see_still_adds_up() -> None:
    """1 - 1e-17 is 1 in floats; a million million times 1e-17 is not nothing."""
    chance, count = F(1, 10**17), 10**12
    true = -math.expm1(count * math.log1p(-1e-17))
    plan = count * _given_away(chance)
    found = plan.delta_bounds(0)  # type: ignore[attr-defined]
    assert found.lower <= true <= found.upper <= true * 1.001
    assert not plan.satisfies(F(0), F(0))
    assert plan.epsilon(1e-6) == math.inf
    assert true <= float(plan.infinite()) <= true * (1 + 1e-9)
    beside = plan + 2 * so.LaplaceLoss(F(1))
    assert beside.delta(2) >= true
    assert beside.epsilon(1e-6) == math.inf


def test_no_sum_is_called_pure_because_floats_end() -> None:
    rare, certain = F(1, 10**10), 1 - F(1, 10**60)
    lopsided = 33 * so.FiniteLoss((rare, 1 - rare), (rare / 10, 1 - rare / 10))
    with_gaussian = so.GaussianLoss(F(1, 10)) + 5 * so.FiniteLoss(
        (certain, 1 - certain), (1 - certain, certain)
    )
    faint = 2 * _given_away(F(1, 10**400)) + so.LaplaceLoss(F(1))
    for plan, epsilon in ((lopsided, F(75)), (with_gaussian, F(1904)), (faint, F(50))):
        assert plan.delta(epsilon) > 0
        assert not plan.satisfies(epsilon, F(0))
    assert lopsided.delta(lopsided.maximum() + 1) == 0
    assert faint.epsilon(F(1, 10**401)) == math.inf


def test_faint_deltas_are_not_known_from_below() -> None:
    rare = F(1, 10**400)
    found = (2 * so.FiniteLoss((rare, 1 - rare), (rare / 3, 1 - rare / 3))).delta_bounds(0.5)  # type: ignore[attr-defined]
    assert found.lower == 0 < found.upper
    for loss in (so.FiniteLoss((F(1), F(0)), (F(0), F(1))), so.LaplaceLoss(F(10**400))):
        found = (2 * loss).epsilon_bounds(1e-6)  # type: ignore[attr-defined]
        assert found.lower == found.upper == math.inf

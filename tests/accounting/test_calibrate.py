"""From a budget to a scale or a count: what is found fits, and a little less noise, or one use more, would not."""

from __future__ import annotations

import math
from fractions import Fraction
from time import process_time
from typing import Any

import pytest

import sordino as so
from sordino.errors import InvalidInput
from sordino.privacy.loss import GaussianLoss, SubsampledLoss

F = Fraction


def test_the_smallest_scale_of_a_mixed_plan_fits_and_is_smallest() -> None:
    def plan(scale: F) -> so.Loss:
        return 20 * so.Laplace(scale).loss(1) + 2 * so.Gaussian(2 * scale).loss(3)

    scale = so.smallest_scale(plan, epsilon=1, delta=1e-6)
    assert plan(scale).epsilon(1e-6) <= 1
    lower = plan(scale * F(997, 1000)).epsilon_bounds(1e-6).lower  # type: ignore[attr-defined]
    assert lower > 1


def test_one_release_agrees_with_the_mechanisms_own_calibration() -> None:
    own = so.Gaussian.calibrated(sensitivity=1, epsilon=0.7, delta=1e-8).scale
    found = so.smallest_scale(lambda s: so.Gaussian(s).loss(1), epsilon=0.7, delta=1e-8)
    assert own <= found <= own * F(10002, 10000)
    pure = so.smallest_scale(lambda s: so.Laplace(s).loss(1), epsilon=0.5, delta=0, start=1000)
    assert 2 <= pure <= F(20003, 10000)


@pytest.mark.parametrize(
    ("loss", "delta"),
    [(so.Laplace(10).loss(1), 1e-6), (so.Gaussian(10).loss(1), 1e-6), (so.Laplace(10).loss(1), 0)],
)
def test_the_largest_count_fits_and_one_more_does_not(loss: so.Loss, delta: float) -> None:
    count = so.largest_count(loss, epsilon=2, delta=delta)
    assert (count * loss).epsilon(delta) <= 2 < ((count + 1) * loss).epsilon(delta)


def test_counts_beside_other_releases() -> None:
    loss, other = so.Laplace(10).loss(1), so.Gaussian(3).loss(1)
    alone = so.largest_count(loss, epsilon=3, delta=1e-6)
    beside = so.largest_count(loss, epsilon=3, delta=1e-6, beside=other)
    assert 0 < beside < alone
    assert so.largest_count(so.Laplace(1).loss(5), epsilon=1, delta=1e-6) == 0


@pytest.mark.parametrize(
    "bad",
    [
        {"epsilon": 0},
        {"epsilon": -1},
        {"epsilon": math.nan},
        {"delta": -1},
        {"delta": 2},
        {"start": 0},
    ],
)
def test_bad_budgets_are_refused(bad: dict[str, Any]) -> None:
    good: dict[str, Any] = {"epsilon": 1, "delta": 1e-6}
    with pytest.raises(InvalidInput):
        so.smallest_scale(lambda s: so.Laplace(s).loss(1), **{**good, **bad})
    if "start" not in bad:
        with pytest.raises(InvalidInput):
            so.largest_count(so.Laplace(1).loss(1), **{**good, **bad})


def test_a_budget_that_nothing_fits_is_said_so() -> None:
    with pytest.raises(InvalidInput, match="no scale"):
        so.smallest_scale(lambda s: so.Gaussian(s).loss(1), epsilon=1, delta=0)


@pytest.mark.parametrize(
    ("epsilon", "rate", "steps"),
    [
        (0.001, F(1, 100), 1000),
        pytest.param(0.001, F(1, 100), 20, marks=pytest.mark.slow),
        pytest.param(0.1, F(1, 10**4), 20, marks=pytest.mark.slow),
        pytest.param(8, F(1, 10**4), 90, marks=pytest.mark.slow),
    ],
)
def test_few_looks_find_the_noise_of_small_rates_and_small_epsilons(
    epsilon: float, rate: F, steps: int
) -> None:
    """Some of these took more than 40 seconds."""
    tried: list[F] = []

    def plan(scale: F) -> so.Loss:
        tried.append(scale)
        return steps * SubsampledLoss(GaussianLoss(1 / scale), rate)

    start = process_time()
    scale = so.smallest_scale(plan, epsilon=epsilon, delta=1e-6)
    assert process_time() - start < 4
    assert len(tried) <= 16
    assert plan(scale).epsilon(1e-6) <= epsilon
    assert plan(scale * F(996, 1000)).epsilon_bounds(1e-6).lower > epsilon  # type: ignore[attr-defined]


@pytest.mark.parametrize("sensitivity", [F(1, 10**13), F(10**13)])
def test_scales_of_any_size_are_found(sensitivity: F) -> None:
    found = so.smallest_scale(lambda s: so.Laplace(s).loss(sensitivity), epsilon=1, delta=0)
    assert sensitivity <= found <= sensitivity * F(10002, 10000)

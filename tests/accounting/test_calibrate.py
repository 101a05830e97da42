"""From a budget to a scale or a count: what is found fits, and a little less noise, or one use more, would not."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest

import sordino as so
from sordino.errors import InvalidInput

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

"""Losses built by hand: refusals, extremes, and the bugs that were."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest

import sordino as so
from sordino.errors import InvalidInput
from sordino.privacy.ball import ball, certified, lower, upper
from sordino.privacy.loss.law import CELL_ERROR

F = Fraction


@pytest.mark.parametrize("kind", [so.LaplaceLoss, so.GaussianLoss])
@pytest.mark.parametrize("bad", [0, -1, math.nan, math.inf, "1", None])
def test_bad_shifts_are_refused(kind: Any, bad: Any) -> None:
    with pytest.raises(InvalidInput, match="shift"):
        kind(bad)


def test_numbers_of_any_kind_build_a_loss() -> None:
    assert so.LaplaceLoss(0.5) == so.LaplaceLoss(F(1, 2))  # type: ignore[arg-type]
    assert so.FiniteLoss((0.7, 0.3), (0.3, 0.7)).p == (F(7, 10), F(3, 10))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("p", "q"), [((), ()), ((1,), (1, 0)), ((F(1, 2),), (1,)), ((1.5, -0.5), (1, 0)), ((0.1, 0.8), (1, 0))]
)
def test_bad_distributions_are_refused(p: Any, q: Any) -> None:
    with pytest.raises(InvalidInput):
        so.FiniteLoss(p, q)


@pytest.mark.parametrize(
    "loss", [so.LaplaceLoss(F(1)), so.GaussianLoss(F(1)), so.FiniteLoss((F(1, 2),) * 2, (F(1, 3), F(2, 3)))], ids=repr
)
def test_bad_arguments_of_views_are_refused(loss: so.Loss) -> None:
    for bad in (math.nan, "1", None, True):
        with pytest.raises(InvalidInput, match="epsilon"):
            loss.delta(bad)  # type: ignore[arg-type]
        for view in (loss.epsilon, loss.trade_off, loss.rdp):
            with pytest.raises(InvalidInput):
                view(bad)  # type: ignore[arg-type]
    for bad_delta in (-0.1, 1.1, math.inf):
        with pytest.raises(InvalidInput, match="delta"):
            loss.epsilon(bad_delta)
    for order in (0, 0.5, -1):
        with pytest.raises(InvalidInput, match="order"):
            loss.rdp(order)
    for grid in ([], [1, 1], [2, 1], [math.nan]):
        with pytest.raises(InvalidInput, match="grid"):
            loss.pmf(grid)
    with pytest.raises(InvalidInput, match=r"\.png"):
        loss.plot("picture.bmp")


@pytest.mark.parametrize("ending", ["png", "svg", "html", "json"])
def test_pictures_are_saved_in_every_format(ending: str, tmp_path: Any) -> None:
    path = tmp_path / f"loss.{ending}"
    so.RandomizedResponse(F(3, 4)).loss().plot(path)
    start = path.read_bytes()[:200]
    assert {"png": b"\x89PNG", "svg": b"<svg", "html": b"<!DOCTYPE html>", "json": b"{"}[ending] in start


def test_delta_equal_to_the_mass_at_infinity_is_decided_exactly() -> None:
    """Once looped until floats overflowed: no precision separates equal rationals."""
    loss = so.FiniteLoss((F(99, 100), F(1, 100)), (F(1), F(0)))
    assert loss.epsilon(0.01) == 0
    assert loss.epsilon(F(9, 1000)) == math.inf
    assert so.RandomizedResponse(F(2, 3)).loss().epsilon(F(1, 3)) == 0


def test_rho_of_a_lopsided_pair_is_bracketed_quickly() -> None:
    """Once took 66,648 evaluations; the chord bound needs a few hundred."""
    calls = 0
    loss = so.FiniteLoss((F(1, 2), F(1, 2)), (F(1, 3), F(2, 3)))

    class Counting(so.FiniteLoss):
        def rdp(self, alpha: Any) -> float:
            nonlocal calls
            calls += 1
            return super().rdp(alpha)

    rho = Counting(loss.p, loss.q).rho()
    assert calls < 2000
    largest = max(loss.rdp(a) / a for a in np.geomspace(1, 50, 400).tolist())
    assert largest <= rho <= largest * (1 + 1e-4)


def test_extremes_answer_instead_of_failing() -> None:
    assert so.GaussianLoss(F(10**300)).epsilon(1e-6) == math.inf
    assert so.GaussianLoss(F(1, 10**12)).delta(1000) == 5e-324  # never 0 by underflow
    assert so.LaplaceLoss(F(1, 10**12)).delta(0) == pytest.approx(5e-13, rel=1e-12)
    assert so.GaussianLoss(F(1000)).total_variation() == 1
    with pytest.raises(InvalidInput, match="mu below"):
        so.Gaussian.calibrated(sensitivity=1, epsilon=F(1, 10**400), delta=F(1, 10**400))


def test_lower_ends_are_tight() -> None:
    assert lower(certified(lambda: ball(F(7, 10)))) == pytest.approx(0.7, rel=4e-16)
    assert upper(certified(lambda: ball(F(7, 10)))) == pytest.approx(0.7, rel=4e-16)


@pytest.mark.parametrize("shift", [F(1, 10**6), F(1, 10), F(1), F(20)])
@pytest.mark.parametrize("kind", [so.LaplaceLoss, so.GaussianLoss])
def test_float_laws_agree_with_balls(kind: Any, shift: Fraction) -> None:
    loss = kind(shift)
    (law,) = loss.laws()
    edges = np.sort(np.random.default_rng(1).uniform(-1.2, 1.2, 60)) * float(shift) * (1 if kind is so.LaplaceLoss else 5)
    p, q = law.cells(edges)
    for a, b, cell in zip(edges.tolist(), edges[1:].tolist(), p.tolist(), strict=False):
        atoms = sum(mass for value, mass in law.atoms if a < value <= b)
        exact = certified(partial(loss.mass_ball, F(a), F(b)))
        assert abs(float(exact.mid()) - atoms - cell) <= 4 * CELL_ERROR * (cell + atoms) + 1e-15 * atoms + 1e-300
    inside = (p > 0) & (edges[:-1] >= law.low) & (edges[1:] <= law.high)
    ratio = np.log(p[inside] / q[inside])
    assert inside.sum() > 10
    assert (ratio > edges[:-1][inside] - 1e-8).all()
    assert (ratio < edges[1:][inside] + 1e-8).all()

"""Losses built by hand: refusals, extremes, and the bugs that were."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
from flint import arb

import sordino as so
from sordino.errors import InvalidInput
from sordino.privacy.ball import ball, certified, lower, upper, working

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
    ("p", "q"),
    [((), ()), ((1,), (1, 0)), ((F(1, 2),), (1,)), ((1.5, -0.5), (1, 0)), ((0.1, 0.8), (1, 0))],
)
def test_bad_distributions_are_refused(p: Any, q: Any) -> None:
    with pytest.raises(InvalidInput):
        so.FiniteLoss(p, q)


@pytest.mark.parametrize(
    "loss",
    [
        so.LaplaceLoss(F(1)),
        so.GaussianLoss(F(1)),
        so.FiniteLoss((F(1, 2),) * 2, (F(1, 3), F(2, 3))),
    ],
    ids=repr,
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
    assert {"png": b"\x89PNG", "svg": b"<svg", "html": b"<!DOCTYPE html>", "json": b"{"}[
        ending
    ] in start


def test_delta_equal_to_the_mass_at_infinity_is_decided_exactly() -> None:
    """Once looped until floats overflowed: no precision separates equal rationals."""
    loss = so.FiniteLoss((F(99, 100), F(1, 100)), (F(1), F(0)))
    assert loss.epsilon(0.01) == 0
    assert loss.epsilon(F(9, 1000)) == math.inf
    assert so.RandomizedResponse(F(2, 3)).loss().epsilon(F(1, 3)) == 0


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
    edges = (
        np.sort(np.random.default_rng(1).uniform(-1.2, 1.2, 60))
        * float(shift)
        * (1 if kind is so.LaplaceLoss else 5)
    )
    p, q = law.cells(edges)
    for a, b, cell in zip(edges.tolist(), edges[1:].tolist(), p.tolist(), strict=False):
        atoms = sum(mass for value, mass in law.atoms if a < value <= b)
        exact = certified(partial(loss.mass_ball, F(a), F(b)))
        assert (
            abs(float(exact.mid()) - atoms - cell)
            <= 4 * law.error * (cell + atoms) + 1e-15 * atoms + 1e-300
        )
    inside = (p > 0) & (edges[:-1] >= law.low) & (edges[1:] <= law.high)
    ratio = np.log(p[inside] / q[inside])
    assert inside.sum() > 10
    assert (ratio > edges[:-1][inside] - 1e-8).all()
    assert (ratio < edges[1:][inside] + 1e-8).all()


@pytest.mark.parametrize(
    "shift",
    [
        F(1, 10**300),
        F(1, 10**12),
        F(1, 3),
        F(750),
        F(10**9, 3),
        F(10**12),
        F(10**300),
        F(17 * 10**307),
    ],
)
def test_the_law_of_laplace_noise_at_any_shift(shift: Fraction) -> None:
    """Once overflowed, with a warning, at shifts above 1419."""
    loss = so.LaplaceLoss(shift)
    (law,) = loss.laws()
    t = float(shift)
    near = np.array([0.0, 1e-9, 1e-3, 0.1, 1.0, 3.0, 20.0, 300.0])
    ends = np.concatenate([near, np.linspace(0, 1, 9) * t])
    edges = np.concatenate(
        [[-math.inf], np.unique(np.clip(np.concatenate([t - ends, ends - t]), -t, t)), [math.inf]]
    )
    p, q = law.cells(edges)
    assert p.sum() + sum(mass for _, mass in law.atoms) == pytest.approx(1, rel=1e-12)
    assert q.sum() == pytest.approx(-math.expm1(-t) / 2, rel=1e-12)
    for a, b, under_p, under_q in zip(
        edges[1:-1].tolist(), edges[2:-1].tolist(), p[1:].tolist(), q[1:].tolist(), strict=False
    ):
        # the law is of the float t, and between the atoms exp(-l) turns P into Q, which mirrors it
        with working(200 + 4 * 1100):
            low, high, end = ball(F(a)) / 2, ball(F(b)) / 2, ball(F(t)) / 2
            exact = (
                ((high - end).exp() - (low - end).exp()) / 2,
                ((-low - end).exp() - (-high - end).exp()) / 2,
            )
        for found, value in zip((under_p, under_q), exact, strict=True):
            assert abs(found - float(value.mid())) <= law.error * float(value.mid()) + 1e-300
    for view in (
        loss.rho(),
        loss.mu(),
        loss.maximum(),
        loss.epsilon(1e-6),
        loss.rdp(2),
        loss.delta(1),
        loss.trade_off(0.1),
    ):
        assert math.isfinite(view)


def test_a_shift_beyond_the_floats_gives_everything_away() -> None:
    loss = so.LaplaceLoss(F(10**400))
    assert loss.laws()[0].infinite == 1
    assert (loss.epsilon(1e-6), loss.rho(), loss.delta(1), loss.maximum()) == (
        math.inf,
        math.inf,
        1.0,
        math.inf,
    )


@pytest.mark.parametrize("digits", [1, 12, 20, 300, 400])
def test_float_laws_of_close_and_of_wild_pairs(digits: int) -> None:
    """Once a loss of 1e-12 was known to four digits only, and one of 800 overflowed."""
    d = F(1, 10**digits)
    for side in (F(1, 2) + d / 3, d / 3):
        loss = so.FiniteLoss((side, 1 - side), (F(1, 2), F(1, 2)))
        for law, (p, q) in zip(loss.laws(), ((loss.p, loss.q), (loss.q, loss.p)), strict=False):
            exact = sorted(
                (float(certified(partial(_log_ratio, a, b)).mid()), a)
                for a, b in zip(p, q, strict=True)
            )
            for (value, mass), (true, probability) in zip(law.atoms, exact, strict=True):
                assert value == pytest.approx(true, rel=1e-14, abs=5e-324)
                assert mass == pytest.approx(float(probability), rel=1e-14, abs=0) or mass == 5e-324


def _log_ratio(a: Fraction, b: Fraction) -> arb:
    return (ball(a) / ball(b)).log()

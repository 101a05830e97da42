"""The loss of bounded range: each view is the worst over all places of the interval, and a sum of them is certified."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import sordino as so
from sordino.errors import InvalidInput
from sordino.privacy.loss.bounded_range import BoundedRangeLoss

WIDTHS = [Fraction(1, 1000), Fraction(1, 2), Fraction(3), Fraction(9)]


def pair(t: float, width: float) -> tuple[float, float]:
    """The probabilities of the first of two outcomes with losses t and t - width."""
    q = (math.exp(-t) - math.exp(-width)) / -math.expm1(-width)
    return math.exp(t) * q, q


def places(width: Fraction) -> list[tuple[float, float]]:
    return [pair(t, float(width)) for t in np.linspace(0, float(width), 2001)[1:-1].tolist()]


def hockey_stick(p: float, q: float, epsilon: float) -> float:
    return sum(max(0.0, a - math.exp(epsilon) * b) for a, b in ((p, q), (1 - p, 1 - q)))


@pytest.mark.parametrize("width", WIDTHS, ids=str)
def test_delta_is_the_worst_place_and_epsilon_its_inverse(width: Fraction) -> None:
    loss, pairs = BoundedRangeLoss(width), places(width)
    for share in (-1.5, -0.7, 0.0, 0.3, 0.9, 1.0, 1.1):
        epsilon = share * float(width)
        worst = max(hockey_stick(p, q, epsilon) for p, q in pairs)
        assert worst - 1e-15 <= loss.delta(epsilon) <= worst * (1 + 1e-5) + 1e-6 * float(width) ** 2
        if 0 < loss.delta(epsilon) < 1:
            assert loss.epsilon(loss.delta(epsilon)) == pytest.approx(epsilon, rel=1e-9, abs=1e-12)
            assert loss.satisfies(
                Fraction(loss.epsilon(loss.delta(epsilon))), Fraction(loss.delta(epsilon))
            )
    assert loss.delta(0) == pytest.approx(math.tanh(float(width) / 4), rel=1e-12)


@pytest.mark.parametrize("width", WIDTHS, ids=str)
def test_the_other_views_are_the_worst_places_too(width: Fraction) -> None:
    loss, pairs = BoundedRangeLoss(width), places(width)
    e = float(width)
    for alpha in (1.0, 1.5, 2.0, 10.0):
        if alpha == 1:
            worst = max(
                p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q)) for p, q in pairs
            )
        else:
            moments = (
                p**alpha * q ** (1 - alpha) + (1 - p) ** alpha * (1 - q) ** (1 - alpha)
                for p, q in pairs
            )
            worst = math.log(max(moments)) / (alpha - 1)
        assert loss.rdp(alpha) == pytest.approx(worst, rel=1e-4, abs=1e-12)
        assert loss.rdp(alpha) <= alpha * loss.rho()
    for alpha in (0.01, 0.3, 0.7):
        assert loss.trade_off(alpha) == pytest.approx(
            (1 - alpha) / (1 - alpha + alpha * math.exp(e)), rel=1e-12
        )
    from scipy.special import ndtri

    assert loss.mu() == pytest.approx(max(float(ndtri(p) - ndtri(q)) for p, q in pairs), rel=1e-5)
    assert loss.maximum() >= e
    assert loss.rho() == pytest.approx(min(e * e / 8, e * math.tanh(e / 2)))


@pytest.mark.parametrize("width", WIDTHS, ids=str)
def test_its_law_is_the_derivative_of_delta(width: Fraction) -> None:
    """delta(e) = P[L > e] - e^e Q[L > e], from the cells in floats and from the balls."""
    loss = BoundedRangeLoss(width)
    (law,) = loss.laws()
    e = float(width)
    edges = np.linspace(-e, e, 65)
    p, q = law.cells(edges)
    assert (p.sum(), q.sum()) == pytest.approx((1, 1))
    for i in range(65):
        assert loss.delta(float(edges[i])) == pytest.approx(
            p[i:].sum() - math.exp(edges[i]) * q[i:].sum(), abs=1e-12
        )
    assert loss.pmf(edges.tolist())[1:-1] == pytest.approx(p, rel=1e-9)


def test_sums_are_dominated_by_and_dominate_what_they_should() -> None:
    width = Fraction(1, 10)
    loss = BoundedRangeLoss(width)
    found = (100 * loss).epsilon(1e-6)
    assert found < 0.62 * (100 * so.LaplaceLoss(width)).epsilon(1e-6)
    p, q = pair(0.05, 0.1)
    a, b = Fraction(p), Fraction(q)
    central = so.FiniteLoss((a, 1 - a), (b, 1 - b))
    assert (100 * central).epsilon(1e-6) < found
    assert (2 * loss).rho() == pytest.approx(2 * 0.01 / 8)
    assert so.Loss.from_json(loss.to_json()) == loss
    assert repr(loss) == "BoundedRangeLoss(width=0.1)"
    assert len(loss.outputs().under_p) == 401


def test_it_can_be_charged() -> None:
    charge = so.Charge.of(BoundedRangeLoss(Fraction(1, 16)))
    assert (charge.pure, charge.rho) == (Fraction(1, 16), Fraction(1, 2048))
    assert so.TwoMeterFilter(so.Budget(1)).fits(charge) == 16
    assert so.ZcdpFilter(so.Budget(1, 1e-6)).fits(charge) == 49


@pytest.mark.parametrize("width", [0, -1, math.nan])
def test_refusals(width: float) -> None:
    with pytest.raises(InvalidInput):
        BoundedRangeLoss(width)  # type: ignore[arg-type]

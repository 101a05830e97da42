"""Calibration of the Gaussian mechanism against a reference of its own."""

from __future__ import annotations

from fractions import Fraction

import pytest
from flint import arb

import sordino as so
from sordino.errors import InvalidInput
from sordino.privacy.ball import ball, working

EPSILONS = (1e-12, 1e-6, 0.01, 0.1, 1.0, 3.0, 10.0, 100.0, 1000.0)
DELTAS = (0.4, 1e-3, 1e-6, 1e-12, 1e-100, 1e-300)
GRID = [(e, d) for e in EPSILONS for d in DELTAS]


def delta_reference(mu: Fraction, epsilon: Fraction) -> arb:
    """Balle and Wang's formula, written out with 4,000 bits and nothing else."""
    with working(4000):
        m, e = arb(mu.numerator) / mu.denominator, arb(epsilon.numerator) / epsilon.denominator
        root = arb(2).sqrt()
        return ((e / m - m / 2) / root).erfc() / 2 - e.exp() * ((e / m + m / 2) / root).erfc() / 2


@pytest.mark.parametrize(("epsilon", "delta"), GRID)
def test_the_scale_suffices_and_no_smaller_float_does(epsilon: float, delta: float) -> None:
    """Under both readings of the floats, and within one part in 10^12 of the least noise."""
    mu = 1 / so.Gaussian.calibrated(sensitivity=1, epsilon=epsilon, delta=delta).scale
    for e in (Fraction(epsilon), Fraction(str(epsilon))):
        for d in (Fraction(delta), Fraction(str(delta))):
            with working(4000):
                assert delta_reference(mu, e) <= ball(d)
    larger = mu * (1 + Fraction(1, 10**12))
    with working(4000):
        assert delta_reference(larger, Fraction(epsilon)) > ball(Fraction(delta)) * (
            1 - arb("1e-15")
        )


def test_sensitivity_scales_the_noise_exactly() -> None:
    one = so.Gaussian.calibrated(sensitivity=1, epsilon=1, delta=1e-6).scale
    assert so.Gaussian.calibrated(sensitivity=1000, epsilon=1, delta=1e-6).scale == 1000 * one


def test_classic_adds_more_noise_and_satisfies() -> None:
    for epsilon in (1e-6, 0.1, 0.5, 1):
        for delta in (1e-300, 1e-6, 0.5):
            classic = so.Gaussian.calibrated(
                sensitivity=1, epsilon=epsilon, delta=delta, method="classic"
            )
            exact = so.Gaussian.calibrated(sensitivity=1, epsilon=epsilon, delta=delta)
            assert classic.scale > exact.scale
            assert classic.loss(1).delta(epsilon) <= delta


def test_classic_is_refused_where_its_proof_ends() -> None:
    with pytest.raises(
        InvalidInput, match=r"got epsilon=1\.5: the classic proof ends at epsilon = 1.*exact"
    ):
        so.Gaussian.calibrated(sensitivity=1, epsilon=1.5, delta=1e-6, method="classic")
    with pytest.raises(InvalidInput, match="delta = 1/2"):
        so.Gaussian.calibrated(sensitivity=1, epsilon=1, delta=0.6, method="classic")
    with pytest.raises(InvalidInput, match="two methods"):
        so.Gaussian.calibrated(sensitivity=1, epsilon=1, delta=1e-6, method="best")  # type: ignore[arg-type]

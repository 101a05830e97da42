from __future__ import annotations

import math
import pickle
from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from flint import acb, arb
from scipy.special import ndtr

from sordino.errors import InvalidInput
from sordino.privacy.ball import (
    ball,
    certified,
    exact_lower,
    normal_tail,
    normal_tail_inverse,
    upper,
    working,
)
from sordino.privacy.exact import least_reading
from sordino.privacy.loss import FiniteLoss, GaussianLoss, LaplaceLoss, Loss
from sordino.privacy.loss.law import Floats
from sordino.privacy.loss.subsampled import SubsampledLoss
from sordino.privacy.neighbors import Neighbors

ADD_REMOVE, REPLACE = Neighbors.ADD_REMOVE, Neighbors.REPLACE
RATES = [Fraction(r) for r in ("1/10000", "1/100", "1/2", "9/10")]
SHIFTS = [Fraction(s) for s in ("1/1000", "1", "5")]
BASES: tuple[type[GaussianLoss | LaplaceLoss], ...] = (GaussianLoss, LaplaceLoss)
SOME = [
    ("1/1000", "1/100"),
    ("1/1000", "9/10"),
    ("1", "1/10000"),
    ("1", "1/100"),
    ("1", "1/2"),
    ("5", "1/10000"),
    ("5", "1/2"),
]
LOSSES = [
    SubsampledLoss(base(Fraction(shift)), Fraction(rate), neighbors)
    for base, (shift, rate), neighbors in product(BASES, SOME, Neighbors)
]
FEW = [
    loss
    for loss in LOSSES
    if loss.base.shift == 1 and loss.rate in (Fraction(1, 100), Fraction(1, 2))
]

every = pytest.mark.parametrize("loss", LOSSES, ids=repr)
few = pytest.mark.parametrize("loss", FEW, ids=repr)


def centres(loss: SubsampledLoss) -> tuple[Fraction, Fraction]:
    return loss.base.shift, -loss.base.shift if loss.neighbors is REPLACE else Fraction(0)


def log_ratio(loss: SubsampledLoss, y: Fraction) -> arb:
    """The loss at output y, from the densities and nothing else."""

    def mixed(centre: Fraction) -> arb:
        normal = isinstance(loss.base, GaussianLoss)
        exponent = centre * y - centre**2 / 2 if normal else abs(y) - abs(y - centre)
        return ball(1 - loss.rate) + ball(loss.rate) * ball(exponent).exp()

    p, q = (mixed(c) for c in centres(loss))
    return (p / q).log()


def place(loss: SubsampledLoss, value: Fraction) -> Fraction:
    """A rational y very near the place where the loss passes `value`,
    by bisection; an end of the axis if it never does.
    """
    low, high = Fraction(-200), Fraction(200)
    for _ in range(140):
        middle = (low + high) / 2
        low, high = (middle, high) if log_ratio(loss, middle) <= ball(value) else (low, middle)
    return high


def density(loss: SubsampledLoss, centre: Fraction, side: int, y: acb) -> acb:
    """The density at y of the noise at a centre that lies below y (side 1) or above it (side -1)."""
    x = y - acb(ball(centre))
    if isinstance(loss.base, GaussianLoss):
        return (-(x**2) / 2).exp() / (2 * acb.pi()).sqrt()
    return (-side * x).exp() / 2


def excess(
    loss: SubsampledLoss, epsilon: Fraction, start: Fraction, end: Fraction, swapped: bool
) -> arb:
    """The integral of p - e^epsilon q, or of q - e^epsilon p, from start to end."""
    r, factor, total = acb(ball(loss.rate)), acb(ball(epsilon).exp()), arb(0)
    cuts = sorted({start, end, *(x for x in (Fraction(0), *centres(loss)) if start < x < end)})
    for a, b in pairwise(cuts):
        sides = [(x, 1 if x <= a else -1) for x in (Fraction(0), *centres(loss))]

        def f(y: acb, _: bool, sides: list[tuple[Fraction, int]] = sides) -> acb:
            zero, c, d = (density(loss, x, side, y) for x, side in sides)
            p, q = (1 - r) * zero + r * c, (1 - r) * zero + r * d
            return q - factor * p if swapped else p - factor * q

        total += acb.integral(f, ball(a), ball(b), abs_tol=arb(2) ** -180).real
    return total


def epsilons(loss: SubsampledLoss) -> list[Fraction]:
    """From far below the smallest loss to far above the typical one, with the interesting part in between."""
    unit = Fraction(
        math.log1p(float(loss.rate) * math.expm1(float(loss.base.shift)))
    ).limit_denominator(10**12)
    return [
        *(unit * j / 8 for j in (-20, -8, -3, -1, 0, 1, 3, 7, 12)),
        Fraction(-2),
        Fraction(1, 3),
    ]


@pytest.mark.parametrize("loss", [x for x in LOSSES if x.rate != Fraction(9, 10)], ids=repr)
def test_delta_is_the_integral_over_the_best_event(loss: SubsampledLoss) -> None:
    """The worse direction's integral of the excess, split where the excess changes sign, to 25 digits."""
    with working(224):
        for epsilon in epsilons(loss)[::2]:
            removed = excess(loss, epsilon, place(loss, epsilon), Fraction(200), swapped=False)
            added = excess(loss, epsilon, Fraction(-200), place(loss, -epsilon), swapped=True)
            assert abs(loss.delta_ball(epsilon) - removed.max(added)) < arb(10) ** -25


@pytest.mark.parametrize("loss", [x for x in LOSSES if x.neighbors is ADD_REMOVE], ids=repr)
def test_delta_follows_from_that_of_the_base(loss: SubsampledLoss) -> None:
    """r d(log((e^e - 1 + r)/r)) when a person is removed; its mirror image when one is added."""
    r = float(loss.rate)
    for epsilon in epsilons(loss):
        factor = math.exp(epsilon)
        removed, added = -math.expm1(epsilon), 0.0
        if factor > 1 - r:
            removed = r * loss.base.delta(math.log1p(math.expm1(epsilon) / r))
        if factor * (1 - r) < 1:
            rest = 1 - factor * (1 - r)
            added = rest * loss.base.delta(math.log(factor * r / rest))
        assert loss.delta(epsilon) == pytest.approx(max(removed, added), rel=1e-6, abs=1e-15)


def test_known_values() -> None:
    """DP-SGD's step with noise multiplier 1 and rate 1/100, by formulas worked out by hand."""
    step = SubsampledLoss(GaussianLoss(Fraction(1)), Fraction(1, 100))
    assert step.total_variation() == pytest.approx(0.01 * (2 * ndtr(0.5) - 1), rel=1e-12)
    assert step.rdp(2) == pytest.approx(math.log1p(1e-4 * (math.e - 1)), rel=1e-12)
    moments = 0.99**3 + 3 * 0.99**2 * 0.01 + 3 * 0.99 * 0.01**2 * math.e + 0.01**3 * math.e**3
    assert step.rdp(3) == pytest.approx(math.log(moments) / 2, rel=1e-9)
    assert step.epsilon(1e-5) == pytest.approx(
        math.log1p(0.01 * math.expm1(step.base.epsilon(1e-3))), rel=1e-9
    )
    replaced = SubsampledLoss(GaussianLoss(Fraction(1)), Fraction(1, 100), REPLACE)
    assert replaced.total_variation() == pytest.approx(0.01 * (2 * ndtr(1) - 1), rel=1e-12)
    count = SubsampledLoss(LaplaceLoss(Fraction(1)), Fraction(1, 10))
    assert count.total_variation() == pytest.approx(0.1 * -math.expm1(-0.5), rel=1e-12)
    assert count.rdp(2) == pytest.approx(
        math.log1p(0.01 * ((2 * math.e + math.exp(-2)) / 3 - 1)), rel=1e-12
    )


@every
def test_epsilon_undoes_delta(loss: SubsampledLoss) -> None:
    for level in (1e-300, 1e-9, 1e-3, 0.2, 0.9):
        found = loss.epsilon(level)
        assert loss.delta(found) <= level
        assert loss.satisfies(least_reading(found), Fraction(level))
        if found > 0:
            assert loss.delta(found * (1 - 1e-9)) > level
    assert loss.epsilon(0) == loss.maximum()
    assert loss.epsilon(1) == -math.inf


@pytest.mark.parametrize(
    "base", [GaussianLoss(Fraction(2, 3)), LaplaceLoss(Fraction(2, 3))], ids=repr
)
@pytest.mark.parametrize("neighbors", Neighbors)
def test_rate_one_is_the_release_on_everybody(
    base: LaplaceLoss | GaussianLoss, neighbors: Neighbors
) -> None:
    """In every view; a replaced person then moves the result by twice the shift."""
    loss = SubsampledLoss(base, Fraction(1), neighbors)
    plain = type(base)(base.shift * (2 if neighbors is REPLACE else 1))
    for epsilon in (-3, Fraction(-1, 3), 0, Fraction(2, 3), Fraction(4, 3), 2, math.inf):
        assert loss.delta(epsilon) == plain.delta(epsilon)
    for level in (0, 1e-300, 1e-6, 0.2, 0.9, 1):
        assert loss.epsilon(level) == plain.epsilon(level)
        assert loss.trade_off(level) == plain.trade_off(level)
    for order in (1, 1.5, 2, 100, math.inf):
        assert loss.rdp(order) == plain.rdp(order)
    assert (loss.maximum(), loss.rho(), loss.mu()) == (plain.maximum(), plain.rho(), plain.mu())
    assert loss.infinite() == 0
    grid = [Fraction(j, 3) for j in range(-6, 7)]
    assert loss.pmf(grid).tolist() == plain.pmf(grid).tolist()
    assert loss.outputs() == plain.outputs()
    (law,), (known,) = loss.laws(), plain.laws()
    edges = np.linspace(-2, 2, 41)
    assert law.atoms == known.atoms
    assert np.array_equal(law.cells(edges), known.cells(edges))


@every
def test_sampling_less_or_moving_less_is_more_private(loss: SubsampledLoss) -> None:
    """delta grows with the rate and with the shift, up to that of the release on everybody; Theorem 1's last line."""
    kind, shift = type(loss.base), loss.base.shift
    whole = SubsampledLoss(loss.base, Fraction(1), loss.neighbors)
    rarer = SubsampledLoss(loss.base, loss.rate * Fraction(9, 10), loss.neighbors)
    nearer = SubsampledLoss(kind(shift * Fraction(9, 10)), loss.rate, loss.neighbors)
    added = SubsampledLoss(loss.base, loss.rate)
    for epsilon in epsilons(loss):
        delta = loss.delta(epsilon)
        assert rarer.delta(epsilon) <= delta <= whole.delta(epsilon)
        assert nearer.delta(epsilon) <= delta
        assert added.delta(epsilon) <= delta
        if epsilon == 0:
            assert rarer.delta(0) < delta < whole.delta(0)
    assert rarer.rdp(3) < loss.rdp(3) < whole.rdp(3)
    assert nearer.rdp(3) < loss.rdp(3)
    for alpha in (1e-6, 0.01, 0.3, 0.9):
        assert rarer.trade_off(alpha) >= loss.trade_off(alpha) >= whole.trade_off(alpha)


@pytest.mark.parametrize("rate", RATES, ids=str)
@pytest.mark.parametrize("shift", SHIFTS, ids=str)
def test_largest_loss_is_the_classical_amplification(rate: Fraction, shift: Fraction) -> None:
    """log(1 + r (e^epsilon - 1)) for Laplace noise; the other direction's end is nearer."""
    loss = SubsampledLoss(LaplaceLoss(shift), rate)
    truth = certified(lambda: (ball(rate) * ball(shift).expm1()).log1p())
    other = certified(lambda: -(ball(rate) * ball(-shift).expm1()).log1p())
    assert loss.maximum() == upper(truth) > upper(other)
    assert loss.delta(loss.maximum()) == 0 < loss.delta(loss.maximum() * (1 - 1e-9))
    replaced = SubsampledLoss(LaplaceLoss(shift), rate, REPLACE)
    assert replaced.maximum() == pytest.approx(upper(truth) + upper(other), rel=1e-14)
    assert replaced.delta(replaced.maximum()) == 0 < replaced.delta(replaced.maximum() * (1 - 1e-9))
    assert SubsampledLoss(GaussianLoss(shift), rate).maximum() == math.inf


def test_largest_loss_that_is_a_rational_number() -> None:
    """Replaced at rate 1/2, the largest Laplace loss is the shift itself: no precision could tell, so it is known."""
    loss = SubsampledLoss(LaplaceLoss(Fraction(1, 3)), Fraction(1, 2), REPLACE)
    top = Fraction(1, 3)
    assert loss.delta(top) == 0
    assert loss.maximum() == pytest.approx(1 / 3, rel=1e-15)
    assert loss.cdf_ball(top) == 1
    bottom = 0.25 * math.exp(-1 / 3) + 0.25 * math.exp(-2 / 3)
    assert float(loss.cdf_ball(-top).mid()) == pytest.approx(bottom, rel=1e-12)
    assert float(loss.mass_ball(-2 * top, -top).mid()) == pytest.approx(bottom, rel=1e-12)
    assert certified(lambda: loss.cdf_ball(-top - Fraction(1, 10**30))) == 0


def test_views_near_an_end_of_the_loss_are_decided() -> None:
    """A hair to either side of log(1 - r), where precision must grow."""
    loss = SubsampledLoss(GaussianLoss(Fraction(1)), Fraction(1, 100))
    edge = exact_lower(certified(lambda: ball(Fraction(-1, 100)).log1p(), 400))
    hair = Fraction(1, 10**60)
    assert certified(partial(loss.cdf_ball, edge - hair)) == 0
    assert certified(partial(loss.cdf_ball, edge + hair)) > 0
    assert certified(partial(loss.mass_ball, edge - hair, edge + hair)) < arb(10) ** -1000
    for epsilon in (edge - hair, edge + hair):
        assert loss.delta(epsilon) == pytest.approx(loss.delta(edge), rel=1e-12)
        # adding a person gives away more than removing one
        assert loss.delta(epsilon) > -math.expm1(epsilon)
    for epsilon in (-edge - hair, -edge + hair):
        assert loss.delta(epsilon) == pytest.approx(loss.delta(-edge), rel=1e-12)


def trapezoid(loss: SubsampledLoss, alpha: float, swapped: bool) -> float:
    """The Renyi divergence by a sum over a fine grid with points at the centres."""
    c, d = (float(x) for x in centres(loss))
    step = 1e-3 * max(min(1.0, c), 0.01)
    y = np.arange(round(-30 / step), round(60 / step)) * step

    def noise(centre: float) -> Floats:
        x = y - centre
        return (
            np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)
            if isinstance(loss.base, GaussianLoss)
            else np.exp(-abs(x)) / 2
        )

    r = float(loss.rate)
    p, q = ((1 - r) * noise(0.0) + r * noise(centre) for centre in (c, d))
    p, q = (q, p) if swapped else (p, q)
    ok = (p > 0) & (q > 0)
    logs = np.log(p[ok]) - np.log(q[ok])
    if alpha == 1:
        return float((p[ok] * logs).sum() * step)
    return math.log1p(float((p[ok] * np.expm1((alpha - 1) * logs)).sum() * step)) / (alpha - 1)


@pytest.mark.parametrize("loss", [x for x in LOSSES if x.base.shift == 1], ids=repr)
def test_renyi_divergence_is_its_integral_and_removing_is_the_worse_direction(
    loss: SubsampledLoss,
) -> None:
    """Theorem 3 of subsampled.md; whole orders are sums, the others integrals."""
    for alpha in (1.0, 1.25, 2.0, 3.5, 8.0):
        removed, added = (trapezoid(loss, alpha, swapped) for swapped in (False, True))
        assert loss.rdp(alpha) == pytest.approx(removed, rel=2e-5)
        assert added <= removed * (1 + 2e-5)
        if loss.neighbors is ADD_REMOVE and alpha > 1:
            assert added < removed * (1 - 1e-5) or loss.rate < Fraction(1, 1000)


@pytest.mark.parametrize("loss", [x for x in LOSSES if x.neighbors is ADD_REMOVE], ids=repr)
def test_binomial_sum_and_integral_agree(loss: SubsampledLoss) -> None:
    for order in (2, 5, 30):
        with working(256):
            integral = loss._noise.integral(Fraction(order), loss.rate, Fraction(0)).log() / (
                order - 1
            )
            direct = loss.rdp_ball(Fraction(order))
        assert integral.overlaps(direct)
        assert abs(integral - direct) < abs(direct) * arb(10) ** -40
    assert loss.rdp(10) < loss.rdp(Fraction(10) + Fraction(1, 10**9)) < loss.rdp(11)


def test_pointwise_inequality_behind_the_worse_direction() -> None:
    """A^a + x B^a >= A^(1 - a) + x B^(1 - a), with equality at a = 1, for A = 1 - r + r x and B = 1 - r + r/x."""
    x, r, a = np.meshgrid(
        np.geomspace(1e-3, 1e3, 61), np.linspace(0.01, 0.99, 33), np.linspace(1, 9, 33)
    )
    big, small = 1 - r + r * x, 1 - r + r / x
    left, right = big**a + x * small**a, big ** (1 - a) + x * small ** (1 - a)
    assert (left >= right * (1 - 1e-12)).all()
    assert np.allclose(left[:, :, 0], right[:, :, 0], rtol=1e-12)
    assert not (left[:, :, 1:] >= right[:, :, 1:] * 1.5).all()


@every
def test_rho_and_mu_bound_every_order_and_every_test(loss: SubsampledLoss) -> None:
    rho, mu = loss.rho(), Fraction(loss.mu())
    for order in (1, Fraction(5, 4), 2, 5, 40, 1000):
        assert loss.rdp(order) <= rho * float(order) * (1 + 1e-12)
    with working(128):
        for alpha in (
            Fraction(a) for a in ("1e-40", "1e-9", "1/1000", "1/20", "1/4", "1/2", "3/4", "99/100")
        ):
            allowed = normal_tail(ball(mu) - normal_tail_inverse(ball(alpha)))
            assert not ball(Fraction(loss.trade_off(alpha))) < allowed * (1 - arb(10) ** -12)
    assert rho <= SubsampledLoss(loss.base, Fraction(1), loss.neighbors).rho()


@pytest.mark.parametrize("rate", RATES, ids=str)
def test_rho_and_mu_of_the_subsampled_gaussian_are_those_of_the_base(rate: Fraction) -> None:
    """Sampling does not lower them: both are approached far out. Replacing costs them little more."""
    base = GaussianLoss(Fraction(2))
    loss, replaced = SubsampledLoss(base, rate), SubsampledLoss(base, rate, REPLACE)
    assert (loss.rho(), loss.mu()) == (2.0, 2.0)
    assert 2 * 0.999 < loss.rdp(10**5) / 10**5 < 2
    with working(4096):
        far = loss._split_at(arb(60))
        assert 1.8 < normal_tail_inverse(far.above_q) - normal_tail_inverse(far.above_p) < 2
    assert 2 <= replaced.rho() <= 2 - math.log1p(-float(rate)) + 1e-12
    assert 2 <= replaced.mu() <= min(4, 2 + 2 * float(rate) / (1 - float(rate)))


@every
def test_trade_off_curve_is_the_envelope_of_delta(loss: SubsampledLoss) -> None:
    """No line 1 - delta(e) - e^e a is above it; in the better direction, the one at the best test's loss touches it."""
    c, d = (float(x) for x in centres(loss))
    ends = (-8.0, 8.0 + c) if isinstance(loss.base, GaussianLoss) else (d - 0.1 * c, 1.1 * c)
    places = [Fraction(y) for y in np.linspace(*ends, 161).tolist()]
    with working(192):
        lines: tuple[list[tuple[arb, arb]], ...] = ([], [])
        for y in places:
            factor, split = log_ratio(loss, y).exp(), loss._split_at(ball(y))
            lines[0].append((split.below_p + factor * split.above_q, factor))
            lines[1].append((split.above_q + split.below_p / factor, 1 / factor))
        for alpha in (Fraction(1, 100), Fraction(1, 3), Fraction(1, 2), Fraction(4, 5)):
            curve = loss.trade_off_ball(alpha)
            assert curve.rel_accuracy_bits() > 96
            best = min(
                max(float((start - slope * ball(alpha)).mid()) for start, slope in side)
                for side in lines
            )
            assert best == pytest.approx(
                float(curve.mid()), abs=4e-3 * min(1.0, c) * float(loss.rate), rel=1e-15
            )
            assert best < float(curve.mid()) * (1 + 1e-12)
            for epsilon in epsilons(loss):
                assert not 1 - loss.delta_ball(epsilon) - ball(epsilon).exp() * ball(alpha) > curve
            assert not ball(Fraction(loss.trade_off(alpha))) > curve


@few
def test_no_threshold_test_beats_the_trade_off_curve(loss: SubsampledLoss) -> None:
    """Its errors at every threshold lie on or above the curve, and in the better direction on it."""
    with working(192):
        for y in (Fraction(j, 4) for j in range(-12, 17)):
            split = loss._split_at(ball(y))
            for alpha_ball, beta in (
                (split.above_q, split.below_p),
                (split.below_p, split.above_q),
            ):
                alpha = Fraction(float(alpha_ball.mid()))
                error = loss.trade_off_ball(alpha)
                assert not error > beta + arb(10) ** -12
                if loss.neighbors is REPLACE:
                    assert abs(error - beta) < arb(10) ** -12
    small = loss.trade_off(1e-300)
    assert 0.99 < small < 1
    assert loss.trade_off(0) == 1
    assert loss.trade_off(1) == 0


@every
def test_law_is_that_of_the_log_ratio_under_p(loss: SubsampledLoss) -> None:
    """P[L <= the loss at y] = P[output <= y], and so on between two places."""
    c, _ = (float(x) for x in centres(loss))
    r = float(loss.rate)

    def up_to(y: float) -> float:
        if isinstance(loss.base, GaussianLoss):
            return float((1 - r) * ndtr(y) + r * ndtr(y - c))
        return sum(
            w * (math.exp(x) / 2 if x < 0 else 1 - math.exp(-x) / 2)
            for w, x in ((1 - r, y), (r, y - c))
        )

    shares = (0.1, 0.3, 0.5, 0.8) if isinstance(loss.base, LaplaceLoss) else (-2.0, -0.5, 0.1, 1.0)
    places = [
        Fraction(s) * (loss.base.shift if isinstance(loss.base, LaplaceLoss) else 1) for s in shares
    ]
    with working(256):
        values = [exact_lower(log_ratio(loss, y)) for y in places]
    found = [float(certified(partial(loss.cdf_ball, v)).mid()) for v in values]
    assert found == pytest.approx([up_to(float(y)) for y in places], rel=1e-9)
    mass = certified(lambda: loss.mass_ball(values[1], values[2]))
    assert float(mass.mid()) == pytest.approx(found[2] - found[1], rel=1e-6)
    grid = [*values, values[-1] + 100]
    assert 1 <= sum(map(Fraction, loss.pmf(grid).tolist())) <= 1 + Fraction(1, 10**12)


LAWS = [
    SubsampledLoss(base(Fraction(shift)), Fraction(rate), neighbors)
    for base, (shift, rate), neighbors in product(
        BASES,
        [
            ("1", "1/100"),
            ("1", "1/10000"),
            ("1e-6", "1/100"),
            ("1e-12", "1/10000"),
            ("1/3", "1/2"),
            ("12", "999/1000"),
        ],
        Neighbors,
    )
]


def exact_cell(
    loss: SubsampledLoss, a: float, b: float, direction: int
) -> tuple[float, float] | None:
    """The probabilities of a < L <= b under both sides, in balls; None if the cell may hold an atom."""
    low, high = (Fraction(a), Fraction(b)) if direction == 0 else (-Fraction(b), -Fraction(a))
    ends = loss._certified_ends()
    if isinstance(loss.base, LaplaceLoss) and not (ball(low) > ends[0] and ball(high) < ends[1]):
        return None

    def mass(side: int) -> float:
        def between() -> arb:
            first, second = loss._split(low), loss._split(high)
            far = first[side + 2] < 0.5
            return first[side + 2] - second[side + 2] if far else second[side] - first[side]

        return float(certified(between, 60).mid())

    p, q = mass(0), mass(1)
    return (p, q) if direction == 0 else (q, p)


@pytest.mark.parametrize("loss", LAWS, ids=repr)
def test_float_cells_are_as_exact_as_promised(loss: SubsampledLoss) -> None:
    """Within what the law promises of balls at any place,
    for cells of the narrowest allowed width and for wide ones.
    """
    rng = np.random.default_rng(1)
    checked = 0
    for direction, law in enumerate(loss.laws()):
        for _ in range(12):
            y = Fraction(rng.normal() * rng.choice([1, 3, 8])) + centres(loss)[rng.integers(2)]
            if isinstance(loss.base, LaplaceLoss):
                y = centres(loss)[0] * Fraction(rng.random())
            with working(256):
                start = float(log_ratio(loss, y).mid()) * (1 - 2 * direction)
            for width in (2.0**-15, 2.0**-7, 1.0, 50.0):
                edges = start + law.spread * width * np.array([0.0, 1.0, 2.5])
                p, q = law.cells(edges)
                for i in (0, 1):
                    exact = exact_cell(loss, float(edges[i]), float(edges[i + 1]), direction)
                    if exact is not None and min(exact) > 1e-290:
                        assert abs(p[i] / exact[0] - 1) < law.error
                        assert abs(q[i] / exact[1] - 1) < law.error
                        checked += 1
    assert checked > 10


@pytest.mark.parametrize("loss", LAWS, ids=repr)
def test_float_laws_sum_to_one_and_give_delta(loss: SubsampledLoss) -> None:
    """All cells and atoms have probability 1 under P and under Q; the excess over cells is delta, from below."""
    removed = loss.laws()
    assert len(removed) == (1 if loss.neighbors is REPLACE else 2)
    directions = []
    for law in removed:
        assert law.infinite == 0
        assert [value for value, _ in law.atoms] == sorted(value for value, _ in law.atoms)
        reach = max(loss.epsilon(Fraction(loss.total_variation()) / 10**13), law.spread)
        inner = np.linspace(max(law.low, -reach), min(law.high, reach), 4001)
        p, q = law.cells(np.concatenate([[-math.inf], inner, [math.inf]]))
        atoms = [(x, x * math.exp(-value)) for value, x in law.atoms]
        p, q = (np.concatenate([side, [x[i] for x in atoms]]) for i, side in enumerate((p, q)))
        assert math.fsum(p) == pytest.approx(1, abs=1e-12)
        assert math.fsum(q) == pytest.approx(1, abs=1e-12)
        directions.append((p, q, reach / 2000))
    for epsilon in epsilons(loss):
        found = max(float(np.maximum(p - math.exp(epsilon) * q, 0).sum()) for p, q, _ in directions)
        width = max(width for _, _, width in directions)
        assert found <= loss.delta(epsilon) * (1 + 1e-6) + 1e-14
        assert found >= loss.delta(epsilon + Fraction(2 * width)) * (1 - 1e-6) - 1e-14


def test_laws_keep_the_ends_of_the_loss() -> None:
    """Edges outside a law add nothing, and the ends of its continuous part are rounded outward."""
    for loss in LAWS:
        for law in loss.laws():
            wide = np.array(
                [-math.inf, -800.0, max(law.low, -700.0), min(law.high, 700.0), 800.0, math.inf]
            )
            p, q = law.cells(wide)
            assert np.isfinite(p).all()
            assert np.isfinite(q).all()
            assert (p >= 0).all()
            if math.isfinite(law.low):
                assert p[0] == p[1] == 0
            if math.isfinite(law.high):
                assert p[3] == p[4] == 0


@few
def test_output_curves_are_densities(loss: SubsampledLoss) -> None:
    pair = loss.outputs()
    y, p, q = (np.array(x, dtype=float) for x in (pair.outcomes, pair.under_p, pair.under_q))
    assert np.trapezoid(p, y) == pytest.approx(1, abs=0.01)
    assert np.trapezoid(q, y) == pytest.approx(1, abs=0.01)
    assert not pair.discrete


def vectors(kind: str, radius: float, rng: np.random.Generator) -> Iterator[tuple[float, float]]:
    """Contributions of one person to two coordinates: any within a circle, or to one coordinate only."""
    for _ in range(12):
        if kind == "gaussian":
            angle, size = rng.random() * 2 * math.pi, radius * math.sqrt(rng.random())
            yield size * math.cos(angle), size * math.sin(angle)
        else:
            size = radius * (2 * rng.random() - 1)
            yield (size, 0.0) if rng.random() < 0.5 else (0.0, size)


@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
@pytest.mark.parametrize("rate", [0.1, 0.6])
def test_no_replaced_vectors_are_told_apart_better_than_opposite_ones(
    kind: str, rate: float
) -> None:
    """Theorem 2 in two dimensions: random pairs of contributions, and the opposite pair which attains the bound."""
    base = GaussianLoss(Fraction(1)) if kind == "gaussian" else LaplaceLoss(Fraction(1))
    loss = SubsampledLoss(base, Fraction(str(rate)), REPLACE)
    axis = np.linspace(-11, 11, 441)
    x, y = np.meshgrid(axis, axis)

    def noise(centre: tuple[float, float]) -> Floats:
        a, b = x - centre[0], y - centre[1]
        height = np.exp(-(a**2 + b**2) / 2) if kind == "gaussian" else np.exp(-abs(a) - abs(b))
        return np.asarray(height / height.sum())

    def delta(u: tuple[float, float], v: tuple[float, float], epsilon: float) -> float:
        p, q = ((1 - rate) * noise((0.0, 0.0)) + rate * noise(w) for w in (u, v))
        return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())

    rng = np.random.default_rng(2)
    for epsilon in (-0.3, 0.0, 0.1, 0.4):
        most = loss.delta(epsilon)
        assert delta((1.0, 0.0), (-1.0, 0.0), epsilon) == pytest.approx(most, rel=3e-3)
        for u, v in zip(vectors(kind, 1.0, rng), vectors(kind, 1.0, rng), strict=True):
            assert delta(u, v, epsilon) <= most * 1.003


@every
def test_stored_form_keeps_everything(loss: SubsampledLoss) -> None:
    again = Loss.from_json(loss.to_json())
    assert again == loss
    assert hash(again) == hash(loss)
    assert repr(again) == repr(loss)
    assert again.to_json() == loss.to_json()
    assert pickle.loads(pickle.dumps(loss)) == loss


def test_stored_form_and_name() -> None:
    loss = SubsampledLoss(GaussianLoss(Fraction(1)), 0.01)  # type: ignore[arg-type]
    assert repr(loss) == "SubsampledLoss(GaussianLoss(shift=1), rate=0.01)"
    assert loss.rate == Fraction(1, 100)
    stored = '{"kind": "subsampled", "v": 1, "base": "gaussian", "shift": "1", "rate": "1/100", "neighbors": "add_remove"}'
    assert loss.to_json() == stored
    replaced = SubsampledLoss(LaplaceLoss(Fraction(1, 3)), Fraction(1, 7), "replace")  # type: ignore[arg-type]
    assert repr(replaced) == "SubsampledLoss(LaplaceLoss(shift=1/3), rate=1/7, neighbors='replace')"
    assert replaced.neighbors is REPLACE
    assert loss != SubsampledLoss(GaussianLoss(Fraction(1)), Fraction(1, 100), REPLACE)


@pytest.mark.parametrize(
    "stored",
    [
        '{"kind": "subsampled", "v": 1, "base": "finite", "shift": "1", "rate": "1/100", "neighbors": "add_remove"}',
        '{"kind": "subsampled", "v": 1, "base": ["gaussian"], "shift": "1", "rate": "1/2", "neighbors": "add_remove"}',
        '{"kind": "subsampled", "v": 1, "shift": "1", "rate": "1/100", "neighbors": "add_remove"}',
        '{"kind": "subsampled", "v": 1, "base": "gaussian", "shift": 1, "rate": "1/100", "neighbors": "add_remove"}',
        '{"kind": "subsampled", "v": 1, "base": "gaussian", "shift": "1", "rate": "2", "neighbors": "add_remove"}',
        '{"kind": "subsampled", "v": 1, "base": "gaussian", "shift": "1", "rate": "1/2", "neighbors": "both"}',
        '{"kind": "subsampled", "v": 1, "base": "gaussian", "shift": "1", "rate": "1/2"}',
    ],
)
def test_a_broken_stored_form_is_refused(stored: str) -> None:
    with pytest.raises(InvalidInput):
        Loss.from_json(stored)


@pytest.mark.parametrize(
    "rate", [0, -0.1, 1.01, Fraction(0), 2, math.nan, math.inf, True, "0.1", None]
)
def test_a_rate_that_is_no_probability_is_refused(rate: Any) -> None:
    with pytest.raises(InvalidInput, match="rate"):
        SubsampledLoss(GaussianLoss(Fraction(1)), rate)


def test_other_losses_cannot_be_subsampled() -> None:
    """Nor a sampled one once more: two samplings are one, with the product of their rates."""
    once = SubsampledLoss(GaussianLoss(Fraction(1)), Fraction(1, 2))
    for base in (FiniteLoss((Fraction(1),), (Fraction(1),)), once, 1.0, None):
        with pytest.raises(InvalidInput, match="Laplace or Gaussian"):
            SubsampledLoss(base, Fraction(1, 2))  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="neighbors"):
        SubsampledLoss(GaussianLoss(Fraction(1)), Fraction(1, 2), "add")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="Renyi order"):
        once.rdp(0.5)

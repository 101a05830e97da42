"""The views of one loss agree: delta, epsilon, total variation, Renyi, trade-off and the law of the loss itself."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from flint import acb, arb

from sordino import FiniteLoss, GaussianLoss, LaplaceLoss, Loss, RandomizedResponse
from sordino.privacy.ball import ball, certified, lower, normal_tail, normal_tail_inverse, working
from sordino.privacy.exact import least_reading
from theorems.naive import (
    Law,
    agree,
    chance,
    events,
    exceeds,
    integral,
    laplace_density,
    logarithm,
    normal_density,
    pairs,
)

SHIFTS = [Fraction(s) for s in ("1e-12", "1/1000", "1/3", "1", "10", "1000")]
LAPLACES = [LaplaceLoss(s) for s in SHIFTS]
GAUSSIANS = [GaussianLoss(s) for s in SHIFTS]


def law(*probabilities: str) -> Law:
    return tuple(Fraction(p) for p in probabilities)


SYMMETRIC = [
    RandomizedResponse(truth=Fraction(3, 4)).loss(),
    RandomizedResponse(truth=Fraction(1, 2), categories=4).loss(),
    RandomizedResponse(truth=1 - Fraction(1, 10**12)).loss(),
    FiniteLoss(law("500000000001/1000000000000", "499999999999/1000000000000"),
               law("499999999999/1000000000000", "500000000001/1000000000000")),
    FiniteLoss(law("1/2", "1/3", "1/6"), law("1/6", "1/3", "1/2")),
]  # fmt: skip
LOPSIDED = [
    FiniteLoss(law("1/2", "1/2"), law("1/3", "2/3")),
    FiniteLoss(law("1/10", "2/10", "3/10", "4/10"), law("2/5", "1/5", "1/5", "1/5")),
    FiniteLoss(law("1/2", "1/2", "0"), law("3/8", "1/2", "1/8")),
]
ENDLESS = [FiniteLoss(law("1", "0"), law("0", "1")), LOPSIDED[2]]
FINITES = [*SYMMETRIC, *LOPSIDED]
LOSSES: list[Loss] = [*LAPLACES, *GAUSSIANS, *FINITES]
ALPHAS = [
    Fraction(a)
    for a in ("1e-30", "1e-9", "1/1000", "1/20", "1/4", "1/2", "2/3", "9/10", "999/1000")
]

every = pytest.mark.parametrize("loss", LOSSES, ids=repr)


def unit(loss: Loss) -> Fraction:
    """How large a typical loss is."""
    if isinstance(loss, LaplaceLoss):
        return loss.shift
    if isinstance(loss, GaussianLoss):
        return max(loss.shift, loss.shift**2)
    ratios = [math.log(a / b) for a, b in zip(*_sides(loss), strict=True) if a and b]
    return Fraction(max(map(abs, ratios)))


def epsilons(loss: Loss) -> list[Fraction]:
    return [unit(loss) * j / 8 for j in range(-12, 25)]


def _sides(loss: Loss) -> tuple[Law, Law]:
    assert isinstance(loss, FiniteLoss)
    return loss.p, loss.q


def gaussian_curve(mu: Fraction, alpha: Fraction) -> arb:
    """The smallest type II error between N(0, 1) and N(mu, 1) at type I error alpha."""
    return normal_tail(ball(mu) - normal_tail_inverse(ball(alpha)))


def hardest(loss: Loss) -> list[Fraction]:
    """Type I errors where the pair is told apart best, compared with two normals."""
    if isinstance(loss, LaplaceLoss):
        return [Fraction(lower(certified(lambda: ball(-loss.shift / 2).exp() / 2)))]
    if isinstance(loss, GaussianLoss):
        return [Fraction(1, 2)]
    return [
        chance(side, e)
        for side in _sides(loss)
        for e in events(len(side))
        if 0 < chance(side, e) < 1
    ]


def best_epsilon(loss: Loss, alpha: Fraction) -> list[Fraction]:
    """Where the line 1 - delta(e) - e^e alpha should touch the trade-off curve: the log of its slope, to a hair."""
    if isinstance(loss, GaussianLoss):
        middle = certified(
            lambda: ball(loss.shift) * normal_tail_inverse(ball(alpha)) - ball(loss.shift**2 / 2),
            128,
        )
    elif isinstance(loss, LaplaceLoss):
        middle = certified(lambda: -ball(loss.shift) - (4 * ball(alpha) ** 2).log(), 128)
        middle = middle.max(ball(-loss.shift)).min(ball(loss.shift))
    else:
        ratios = {a / b for a, b in zip(*_sides(loss), strict=True) if a and b}
        ratios |= {1 / r for r in ratios}
        return [_near(logarithm(r)) for r in ratios]
    return [_near(middle)]


def _near(value: arb) -> Fraction:
    mantissa, exponent = value.mid().man_exp()
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)


@every
def test_delta_never_grows_with_epsilon(loss: Loss) -> None:
    """A weaker promise needs no larger delta; at last it is smaller than at first. Notes: Lecture 2, Definition 4."""
    deltas = [loss.delta(e) for e in epsilons(loss)]
    assert all(a >= b for a, b in pairwise(deltas))
    assert deltas[0] > deltas[-1] or unit(loss) > 100


@every
def test_delta_is_convex_in_the_factor(loss: Loss) -> None:
    """As a function of e^epsilon, delta is a supremum of lines. Notes: Lecture 2, Definition 4, over all events."""
    grid = epsilons(loss)[::4]
    with working(4096):
        points = [(ball(e).exp(), loss.delta_ball(e)) for e in grid]
        for (x0, y0), (x1, y1), (x2, y2) in zip(points, points[1:], points[2:], strict=False):
            assert not y1 * (x2 - x0) > y0 * (x2 - x1) + y2 * (x1 - x0)


@every
def test_epsilon_undoes_delta(loss: Loss) -> None:
    """epsilon(delta(e)) <= e up to rounding, and delta(epsilon(d)) <= d always. Notes: Lecture 2, Definition 4."""
    for e in epsilons(loss)[::3]:
        d = loss.delta(e)
        if 0 < d < 1:
            assert loss.epsilon(d) <= e + Fraction(1, 10**12) * (abs(e) + unit(loss))
    for level in (1e-300, 1e-12, 1e-3, 0.1, 0.3, 0.9):
        found = loss.epsilon(level)
        if found < math.inf:
            assert loss.delta(found) <= level
            assert loss.satisfies(least_reading(found), Fraction(level))
        if 0 < found < math.inf:
            assert loss.delta(found * (1 - 1e-9)) > level


@every
def test_total_variation_is_delta_at_zero(loss: Loss) -> None:
    """How much likelier an event can become is the delta that epsilon = 0 needs. Notes: Lecture 12, Definition 0.1."""
    assert loss.total_variation() == loss.delta(0)
    with working(192):
        if isinstance(loss, LaplaceLoss):
            assert agree(loss.delta_ball(Fraction(0)), 1 - ball(-loss.shift / 2).exp(), 1e-20)
        elif isinstance(loss, GaussianLoss):
            assert agree(
                loss.delta_ball(Fraction(0)), 1 - 2 * normal_tail(ball(loss.shift / 2)), 1e-20
            )
        else:
            p, q = _sides(loss)
            assert loss.delta_ball(Fraction(0)).overlaps(
                ball(max(chance(p, e) - chance(q, e) for e in events(len(p))))
            )


@every
def test_delta_of_an_infinite_epsilon_is_the_chance_of_an_infinite_loss(loss: Loss) -> None:
    """What no epsilon covers is what only one side can output. Notes: Lecture 2, Figure 1."""
    assert loss.delta(math.inf) == float(loss.infinite())
    assert loss.delta(-math.inf) == 1.0
    assert (loss.infinite() > 0) <= (loss.maximum() == math.inf)


@pytest.mark.parametrize("loss", [*LAPLACES, *SYMMETRIC], ids=repr)
def test_epsilon_at_delta_zero_is_the_largest_loss(loss: Loss) -> None:
    """Pure privacy is approximate privacy with delta 0. Notes: Lecture 2, after Definition 4; Lecture 3, Claim 1.1."""
    top = loss.maximum()
    assert loss.epsilon(0) == top
    assert loss.delta(top) == 0.0
    assert loss.delta(top * (1 - 1e-9)) > 0


@pytest.mark.parametrize("loss", [*LAPLACES, *GAUSSIANS, *SYMMETRIC], ids=repr)
def test_rho_bounds_every_renyi_order_and_no_smaller_one_does(loss: Loss) -> None:
    """rdp(a) <= rho a for all a >= 1; a smaller rho fails. Beyond the notes: Bun and Steinke 2016, Definition 1.1."""
    rho = Fraction(loss.rho())
    orders = [1 + Fraction(10) ** j * k for j in range(-9, 4) for k in (1, 3)]
    with working(8192 if unit(loss) > 100 else 512):
        divergences = [loss.rdp_ball(a) / ball(a) for a in [Fraction(1), *orders]]
        assert not any(d > ball(rho) for d in divergences)
        assert any(d > ball(rho) * ball(1 - Fraction(1, 10**5)) for d in divergences)


@pytest.mark.parametrize("loss", [*LAPLACES, *GAUSSIANS, *SYMMETRIC, *LOPSIDED[:2]], ids=repr)
def test_renyi_divergence_grows_with_its_order_up_to_the_largest_loss(loss: Loss) -> None:
    """From Kullback-Leibler at order 1 to the maximum at infinity. Beyond the notes: Mironov 2017, Proposition 9."""
    orders = [Fraction(a) for a in ("1", "1.000001", "1.5", "2", "10", "100")]
    values = [loss.rdp(a) for a in orders]
    assert all(a < b * (1 + 1e-12) for a, b in pairwise(values))
    assert values[0] <= values[-1] <= loss.maximum() == loss.rdp(math.inf)


@every
def test_mu_bounds_the_trade_off_curve_and_no_smaller_one_does(loss: Loss) -> None:
    """trade_off(a) >= Phi(Phi^-1(1 - a) - mu); a smaller mu fails.

    Beyond the notes: Dong, Roth and Su 2022, Def. 2.6.
    """
    if loss.infinite():
        assert loss.mu() == math.inf
        return
    mu = Fraction(loss.mu())
    grid = [*ALPHAS, *hardest(loss)]
    with working(2048):
        assert not any(loss.trade_off_ball(a) < gaussian_curve(mu, a) for a in grid)
        assert any(
            loss.trade_off_ball(a) < gaussian_curve(mu * (1 - Fraction(1, 10**9)), a) for a in grid
        )


@every
def test_every_point_of_the_delta_curve_is_a_line_below_the_trade_off_curve(loss: Loss) -> None:
    """trade_off(a) >= 1 - delta(e) - e^e a for all e. Beyond the notes: Dong, Roth and Su 2022, Proposition 2.12."""
    with working(4096):
        lines = [(1 - loss.delta_ball(e), ball(e).exp()) for e in epsilons(loss)]
        for alpha in [*ALPHAS, *hardest(loss)]:
            curve = loss.trade_off_ball(alpha)
            assert not any(curve < start - slope * ball(alpha) for start, slope in lines)
            assert not ball(Fraction(loss.trade_off(alpha))) > curve


# Phi(-1000) would take a million bits to cancel
@pytest.mark.parametrize(
    "loss", [*LAPLACES, *[g for g in GAUSSIANS if g.shift < 100], *SYMMETRIC], ids=repr
)
def test_trade_off_curve_is_the_upper_envelope_of_those_lines(loss: Loss) -> None:
    """At the best e the line touches the curve. Beyond the notes: Dong, Roth and Su 2022, Proposition 2.12."""
    with working(4096):
        for alpha in ALPHAS:
            curve = loss.trade_off_ball(alpha)
            touching = arb(0)
            for e in best_epsilon(loss, alpha):
                touching = touching.max(1 - loss.delta_ball(e) - ball(e).exp() * ball(alpha))
            assert not touching > curve
            assert curve - touching < curve * arb(10) ** -20


def test_no_event_beats_the_trade_off_curve() -> None:
    """Rejecting on any event errs at least as the curve says, and some event attains each corner. Notes: Lecture 2."""
    attained = 0
    for p, q in pairs((3, 4)):
        loss = FiniteLoss(p, q)
        for a, b in ((p, q), (q, p)):
            for e in events(3):
                alpha, beta = chance(a, e), 1 - chance(b, e)
                if 0 < alpha < 1:
                    curve = loss.trade_off_ball(alpha)
                    assert not ball(beta) < curve
                    attained += bool(ball(beta).overlaps(curve))
    assert attained > 0


@pytest.mark.parametrize("loss", [*LAPLACES[:-1], *GAUSSIANS[:-1], *SYMMETRIC], ids=repr)
def test_law_on_a_grid_sums_to_one_and_bounds_delta(loss: Loss) -> None:
    """Rounded up to a grid of width h, the loss has a delta in [delta(e), delta(e - h)].

    Notes: Lecture 3, Claim 1.2.
    """
    centre, reach = (
        (loss.shift**2 / 2, 12 * loss.shift)
        if isinstance(loss, GaussianLoss)
        else (Fraction(0), unit(loss) * 2)
    )
    width = reach / 50
    grid = [centre - reach + j * width for j in range(101)]
    masses = loss.pmf(grid)
    assert len(masses) == 102
    assert (masses >= 0).all()
    assert 1 <= sum(map(Fraction, masses.tolist())) <= 1 + Fraction(1, 10**12)
    exact = [Fraction(m) for m in masses.tolist()]
    for e in grid[10:90:9]:
        with working(2048):
            total = ball(exact[-1])
            for point, mass in zip(grid, exact[:-1], strict=True):
                if point > e:
                    total += ball(mass) * -ball(e - point).expm1()
            assert not total < loss.delta_ball(e)
            assert total < loss.delta_ball(e - width) + ball(Fraction(1, 10**14)) * (
                loss.delta_ball(e - width) + ball(unit(loss))
            )


@pytest.mark.parametrize("loss", [*LAPLACES, *GAUSSIANS, *SYMMETRIC], ids=repr)
def test_law_on_a_grid_that_ends_too_early_still_bounds_delta(loss: Loss) -> None:
    """What lies above the grid counts as an infinite loss. Notes: Lecture 3, Claim 1.2."""
    grid = [unit(loss) * j / 16 for j in range(-12, 3)]
    *masses, above = (Fraction(m) for m in loss.pmf(grid).tolist())
    assert 1 <= sum(masses) + above <= 1 + Fraction(1, 10**12)
    with working(2048):
        assert not ball(above) < 1 - loss.cdf_ball(grid[-1])
        for e in grid:
            bad = sum(
                (
                    ball(m) * -ball(e - point).expm1()
                    for point, m in zip(grid, masses, strict=True)
                    if point > e
                ),
                arb(0),
            )
            assert not bad + ball(above) < loss.delta_ball(e)


@every
def test_every_float_view_errs_on_the_safe_side(loss: Loss) -> None:
    """delta and rdp are never below the truth, trade_off never above it, in either reading.

    Notes: Lecture 2, Def. 4.
    """
    for e in epsilons(loss)[::3]:
        truth = certified(partial(loss.delta_ball, e), 512)
        with working(1024):
            assert not ball(least_reading(loss.delta(e))) < truth.min(arb(1))
            assert loss.delta(e) == pytest.approx(float(truth.mid()), rel=1e-12, abs=1e-300)
    for alpha in ALPHAS:
        truth = certified(partial(loss.trade_off_ball, alpha), 512)
        with working(1024):
            assert not -ball(least_reading(-loss.trade_off(alpha))) > truth
            assert loss.trade_off(alpha) == pytest.approx(float(truth.mid()), rel=1e-12, abs=1e-300)
    if not loss.infinite():
        for order in (Fraction(1), Fraction(3, 2), Fraction(20)):
            truth = certified(partial(loss.rdp_ball, order), 512)
            with working(1024):
                assert not ball(least_reading(loss.rdp(order))) < truth


def test_law_of_a_finite_loss_is_that_of_its_log_ratio() -> None:
    """P[L <= v] adds up p over the outcomes with p <= e^v q, ties included.

    Notes: Lecture 3, Claim 1.2, the set BAD.
    """
    values = [Fraction(v) for v in ("-1", "-1/2", "0", "1/3", "1")]
    for p, q in pairs((3, 4)):
        loss = FiniteLoss(p, q)
        below = [
            1 - sum((a for a, b in zip(p, q, strict=True) if exceeds(a, b, v)), Fraction(0))
            for v in values
        ]
        assert all(loss.cdf_ball(v).overlaps(ball(c)) for v, c in zip(values, below, strict=True))
        for (low, c), (high, d) in pairwise(zip(values, below, strict=True)):
            assert loss.mass_ball(low, high).overlaps(ball(d - c))


def test_law_on_a_grid_reads_arrays_too() -> None:
    """The same law from an array as from a list: two atoms and a density for Laplace. Notes: Lecture 3, the loss."""
    grid = np.array([-2.0, -1.0, 0.0, 1.0])
    masses = LaplaceLoss(Fraction(1)).pmf(grid)
    assert masses.tolist() == LaplaceLoss(Fraction(1)).pmf(grid.tolist()).tolist()
    assert masses == pytest.approx(
        [0, math.exp(-1) / 2, (math.exp(-0.5) - math.exp(-1)) / 2, 1 - math.exp(-0.5) / 2, 0]
    )


def two_laplace(y: acb, shift: arb, *, right_of_q: bool, right_of_p: bool) -> tuple[acb, acb]:
    """The densities at y of Laplace(shift, 1) and Laplace(0, 1), on known sides of both centres."""
    return laplace_density(y - shift, acb(1), right=right_of_p), laplace_density(
        y, acb(1), right=right_of_q
    )


@pytest.mark.parametrize("shift", ["1e-12", "1/10", "1", "5"])
def test_laplace_delta_is_the_integral_over_the_best_event(shift: str) -> None:
    """delta(e) is the integral of p - e^e q over y > (t + e)/2, to 40 digits.

    Notes: Lecture 12, Claim 0.5's densities.
    """
    loss = LaplaceLoss(Fraction(shift))
    with working(256):
        t, far = ball(loss.shift), arb(120)
        for j in (-3, 0, 1, 3):
            e = loss.shift * j / 4
            factor, edge = acb(ball(e).exp()), ball((loss.shift + e) / 2)

            def between(y: acb, factor: acb = factor) -> acb:
                p, q = two_laplace(y, t, right_of_q=True, right_of_p=False)
                return p - factor * q

            def beyond(y: acb, factor: acb = factor) -> acb:
                p, q = two_laplace(y, t, right_of_q=True, right_of_p=True)
                return p - factor * q

            total = integral(between, [edge, t]) + integral(beyond, [t, far])
            assert abs(total - loss.delta_ball(e)) < arb(10) ** -40


@pytest.mark.parametrize("shift", ["1/10", "1", "5"])
def test_laplace_delta_is_the_riemann_sum_of_the_excess(shift: str) -> None:
    """Summing max(0, p - e^e q) over cells, as balls, encloses delta without naming an event.

    Notes: Lecture 2, Def. 4.
    """
    loss = LaplaceLoss(Fraction(shift))
    cell = Fraction(1, 32)
    with working(96):
        half = ball(cell / 2)
        cells = [arb(ball(cell * j + cell / 2), half) for j in range(-32 * 20, 32 * 30)]
        densities = [((-abs(y - ball(loss.shift))).exp() / 2, (-abs(y)).exp() / 2) for y in cells]
        for j in (-2, 0, 1, 2, 4):
            e = loss.shift * j / 4
            factor = ball(e).exp()
            total = sum((((p - factor * q).max(arb(0))) for p, q in densities), arb(0)) * ball(cell)
            assert total.overlaps(loss.delta_ball(e))
            assert total.rad() < 0.05


@pytest.mark.parametrize("shift", ["1/10", "1", "5"])
def test_laplace_renyi_divergence_is_its_integral(shift: str) -> None:
    """rdp(a) = log(integral of p^a q^(1 - a))/(a - 1), piece by piece. Beyond the notes: Mironov 2017, Definition 3."""
    loss = LaplaceLoss(Fraction(shift))
    with working(256):
        t, far = ball(loss.shift), arb(100)
        for order in (Fraction(3, 2), Fraction(2), Fraction(7)):
            total = arb(0)
            a = ball(order)
            for ends, right_of_q, right_of_p in (
                ([-far, arb(0)], False, False),
                ([arb(0), t], True, False),
                ([t, t + far], True, True),
            ):

                def integrand(
                    y: acb, a: arb = a, q_side: bool = right_of_q, p_side: bool = right_of_p
                ) -> acb:
                    log_p, log_q = (y - t) * (-1 if p_side else 1), y * (-1 if q_side else 1)
                    return (acb(a) * log_p + acb(1 - a) * log_q).exp() / 2

                total += integral(integrand, ends)
            assert abs(total.log() / (a - 1) - loss.rdp_ball(order)) < arb(10) ** -38


@pytest.mark.parametrize("shift", ["1/10", "1", "5"])
def test_gaussian_delta_is_the_integral_over_the_best_event(shift: str) -> None:
    """delta(e) is the integral of p - e^e q beyond e/mu + mu/2, to 40 digits. Notes: Lecture 3, proof of Claim 4.2."""
    loss = GaussianLoss(Fraction(shift))
    with working(256):
        mu = acb(ball(loss.shift))
        for e in (Fraction(-1), Fraction(0), loss.shift, Fraction(2)):
            factor, edge = acb(ball(e).exp()), ball(e / loss.shift + loss.shift / 2)

            def excess(y: acb, factor: acb = factor) -> acb:
                return normal_density(y - mu, acb(1)) - factor * normal_density(y, acb(1))

            total = integral(excess, [edge, arb(40)])
            assert abs(total - loss.delta_ball(e)) < arb(10) ** -40


@pytest.mark.parametrize("shift", ["1/10", "1", "4"])
def test_gaussian_renyi_divergence_is_its_integral(shift: str) -> None:
    """rdp(a) = a mu^2/2, as the integral of p^a q^(1 - a) says. Beyond the notes: Mironov 2017, Proposition 7."""
    loss = GaussianLoss(Fraction(shift))
    with working(256):
        mu = acb(ball(loss.shift))
        for order in (Fraction(3, 2), Fraction(2), Fraction(5)):
            a = acb(ball(order))

            def integrand(y: acb, a: acb = a) -> acb:
                return (-(a * (y - mu) ** 2 + (1 - a) * y**2) / 2).exp() / (2 * acb.pi()).sqrt()

            peak = ball(order * loss.shift)
            total = integral(integrand, [peak - 30, peak, peak + 30])
            assert abs(total.log() / ball(order - 1) - loss.rdp_ball(order)) < arb(10) ** -40


@pytest.mark.parametrize("loss", ENDLESS, ids=repr)
def test_views_of_a_loss_that_can_be_infinite_say_so(loss: FiniteLoss) -> None:
    """An outcome that gives a neighbour away leaves delta as the only finite promise. Notes: Lecture 2, Figure 1."""
    assert loss.maximum() == loss.rho() == loss.mu() == loss.rdp(2) == math.inf
    assert loss.infinite() > 0
    assert loss.epsilon(loss.infinite() / 2) == math.inf
    assert loss.trade_off(0) == float(1 - loss.infinite())

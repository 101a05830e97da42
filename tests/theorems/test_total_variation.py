"""Total variation and multiplicative distance: the two notions of stability, and how one bounds the other."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise, product

import pytest
from flint import acb, arb

from sordino import (
    FiniteLoss,
    GaussianLoss,
    LaplaceLoss,
    Neighbors,
    RandomizedResponse,
    global_sensitivity,
)
from sordino.privacy.ball import ball, certified, normal_tail, working
from sordino.privacy.divergence import multiplicative_distance, total_variation, verify_pure
from theorems.naive import (
    agree,
    chance,
    events,
    exceeds,
    factor_between,
    integral,
    just_above,
    logarithm,
    normal_density,
    pairs,
)

SIZES = (1, 2, 10, 1000)
SIGMAS = [Fraction(s) for s in ("1/1000", "1/10", "1", "30")]


def stated_bound(m: int, sigma: Fraction) -> arb:
    """1/(sqrt(2 pi) m sigma)."""
    return 1 / ((2 * arb.pi()).sqrt() * m * ball(sigma))


def exact_distance(m: int, sigma: Fraction) -> arb:
    """2 Phi(1/(2 m sigma)) - 1."""
    return 1 - 2 * normal_tail(ball(1 / (2 * m * sigma)))


def test_total_variation_is_the_largest_gap_half_the_l1_norm_and_delta_at_zero() -> None:
    """sup |P(E) - Q(E)| = |P - Q|_1/2 = delta(0), on every small pair. Notes: Lecture 12, Claim 0.6, first line."""
    for p, q in pairs((3, 5), (4, 3)):
        by_events = max(abs(chance(p, e) - chance(q, e)) for e in events(len(p)))
        assert by_events == sum((abs(a - b) for a, b in zip(p, q, strict=True)), Fraction(0)) / 2
        assert by_events == total_variation(p, q) == total_variation(q, p)
        loss = FiniteLoss(p, q)
        with working(256):
            assert loss.delta_ball(Fraction(0)).overlaps(ball(by_events))
            assert loss.total_variation() == loss.delta(0) == by_events or just_above(
                loss.delta(0), ball(by_events)
            )


def test_an_event_and_its_complement_have_the_same_gap() -> None:
    """|P(E) - Q(E)| = |P(not E) - Q(not E)|, and one of the two has Q <= 1/2. Notes: Lecture 12, proof of Claim 0.6."""
    for p, q in pairs((3, 4)):
        for event in events(3):
            rest = [y for y in range(3) if y not in event]
            assert abs(chance(p, event) - chance(q, event)) == abs(
                chance(p, rest) - chance(q, rest)
            )
            assert min(chance(q, event), chance(q, rest)) <= Fraction(1, 2)


def test_multiplicative_distance_is_the_largest_log_ratio_of_an_event() -> None:
    """It is sup |ln P(E)/Q(E)| over all events, and the same in both orders. Notes: Lecture 12, Definition 0.3."""
    for p, q in pairs((3, 5), (4, 3)):
        factor, found = factor_between(p, q), multiplicative_distance(p, q)
        assert found == multiplicative_distance(q, p)
        if factor == math.inf:
            assert found == math.inf
        else:
            assert found == 0 if factor == 1 else just_above(found, logarithm(Fraction(factor)))


def test_one_order_alone_is_not_symmetric() -> None:
    """The ratio P/Q may be bounded while Q/P is not, so the absolute value matters.

    Notes: Lecture 12, Definition 0.3.
    """
    p, q = (Fraction(1), Fraction(0)), (Fraction(1, 2), Fraction(1, 2))
    assert not any(exceeds(chance(p, e), chance(q, e), Fraction(7, 10)) for e in events(2))
    assert multiplicative_distance(p, q) == math.inf


def test_multiplicative_distance_epsilon_bounds_every_event() -> None:
    """If the distance is at most e then P(X) <= e^e Q(X) for every X. Notes: Lecture 12, after Definition 0.3."""
    for p, q in pairs((3, 5)):
        distance = multiplicative_distance(p, q)
        if distance < math.inf:
            assert verify_pure(p, q, distance)
            assert not any(
                exceeds(chance(p, e), chance(q, e), Fraction(distance)) for e in events(3)
            )


def test_privacy_implies_total_variation_stability() -> None:
    """d_TV <= (e^d - 1)/2 for multiplicative distance d. Notes: Lecture 12, Claim 0.6."""
    for p, q in pairs((3, 6), (4, 4)):
        factor = factor_between(p, q)
        assert total_variation(p, q) <= (factor - 1) / 2


def test_tanh_is_the_tight_bound_and_a_coin_attains_it() -> None:
    """d_TV <= (e^d - 1)/(e^d + 1) = tanh(d/2), with equality for binary answers.

    Notes: Lecture 12, Claim 0.6, sharpened.
    """
    for p, q in pairs((3, 6), (4, 4)):
        factor = factor_between(p, q)
        if isinstance(factor, Fraction):
            assert total_variation(p, q) <= (factor - 1) / (factor + 1) <= (factor - 1) / 2
    for t in (Fraction(501, 1000), Fraction(3, 4), Fraction(999, 1000)):
        loss = RandomizedResponse(truth=t).loss()
        factor = t / (1 - t)
        assert total_variation(loss.p, loss.q) == (factor - 1) / (factor + 1) < (factor - 1) / 2
        assert total_variation(loss.p, loss.q) > (factor - 1) / (factor + 1) * Fraction(999, 1000)
        with working(192):
            assert agree((ball(factor).log() / 2).tanh(), ball((factor - 1) / (factor + 1)))


def test_laplace_is_more_stable_than_its_epsilon_says() -> None:
    """Its distance 1 - e^(-e/2) is below tanh(e/2), which is below (e^e - 1)/2.

    Notes: Lecture 12, Claims 0.5 and 0.6.
    """
    with working(256):
        for e in (Fraction(x) for x in ("1e-6", "1/10", "1", "5")):
            distance, epsilon = LaplaceLoss(e).delta_ball(Fraction(0)), ball(e)
            assert agree(distance, 1 - (-epsilon / 2).exp(), 1e-20)
            assert distance < (epsilon / 2).tanh() < epsilon.expm1() / 2


def test_total_variation_stability_does_not_imply_privacy() -> None:
    """The converse fails: distance 2^-40 with an outcome that only one side has. Notes: Lecture 12, Claim 0.6."""
    tiny = Fraction(1, 2**40)
    loss = FiniteLoss((1 - tiny, tiny), (Fraction(1), Fraction(0)))
    assert loss.total_variation() == pytest.approx(2.0**-40, rel=1e-15)
    assert loss.maximum() == math.inf


def test_densities_cross_halfway_between_the_means() -> None:
    """The density with the lower mean is larger just below mu + 1/(2m). Notes: Lecture 12, proof of Claim 0.2."""
    for m, k in product((1, 2, 5), range(-20, 21)):
        mu, x = Fraction(1, 3), Fraction(k, 7)
        other = mu + Fraction(1, m)
        assert ((x - mu) ** 2 < (x - other) ** 2) == (x < mu + Fraction(1, 2 * m))
        middle = mu + Fraction(1, 2 * m)
        assert (middle - mu) ** 2 == (middle - other) ** 2


@pytest.mark.parametrize("m", SIZES)
@pytest.mark.parametrize("sigma", SIGMAS[1:], ids=str)
def test_gaussian_total_variation_is_the_mass_within_half_a_step(m: int, sigma: Fraction) -> None:
    """d_TV is the integral of the density over [-1/(2m), 1/(2m)]: 2 Phi(1/(2 m sigma)) - 1.

    Notes: Lecture 12, Claim 0.2.
    """
    with working(256):
        half = ball(Fraction(1, 2 * m))
        mass = integral(lambda x: normal_density(x, acb(ball(sigma))), [-half, half])
        assert agree(mass, exact_distance(m, sigma))
        assert agree(mass, GaussianLoss(1 / (m * sigma)).delta_ball(Fraction(0)))


@pytest.mark.parametrize("m", SIZES)
@pytest.mark.parametrize("sigma", SIGMAS, ids=str)
def test_gaussian_mechanism_for_a_statistical_query_is_stable(m: int, sigma: Fraction) -> None:
    """It is 1/(sqrt(2 pi) m sigma)-TV stable, and exactly 2 Phi(1/(2 m sigma)) - 1. Notes: Lecture 12, Claim 0.2."""
    loss = GaussianLoss(Fraction(1, m) / sigma)
    with working(1024):
        assert loss.delta_ball(Fraction(0)) < stated_bound(m, sigma)
    exact = certified(lambda: exact_distance(m, sigma))
    assert loss.total_variation() == 1.0 or just_above(loss.total_variation(), exact)


def test_stability_bound_is_sharp_for_much_noise_and_empty_for_little() -> None:
    """bound/d_TV lies in (1, 1 + 1/(22 (m s)^2)) for m s >= 1; the bound is above 1 below 0.398.

    Notes: Lecture 12, 0.2.
    """
    with working(512):
        ratios = []
        for product_ in (Fraction(x) for x in ("1", "3", "10", "100", "10000", "1e9")):
            ratio = stated_bound(1, product_) / exact_distance(1, product_)
            assert 1 < ratio < 1 + 1 / (22 * ball(product_) ** 2)
            ratios.append(ratio)
        assert all(a > b for a, b in pairwise(ratios))
        assert stated_bound(1, Fraction("0.398")) > 1 > stated_bound(1, Fraction("0.399"))
        assert exact_distance(1, Fraction("0.398")) < ball(Fraction(4, 5))


@pytest.mark.parametrize("m", [1, 2, 3])
def test_stability_bound_covers_every_pair_of_neighbouring_datasets(m: int) -> None:
    """Means of phi over neighbours are at most 1/m apart, so their outputs are that close.

    Notes: Lecture 12, Def. 0.1.
    """
    phi = (Fraction(0), Fraction(1, 3), Fraction(1))
    sigma = Fraction(1, 2)

    def mean(rows: tuple[Fraction, ...]) -> Fraction:
        return sum(rows, Fraction(0)) / m

    assert global_sensitivity(mean, universe=phi, size=m, neighbors="replace").value == Fraction(
        1, m
    )
    with working(256):
        for x in product(phi, repeat=m):
            for y in Neighbors.REPLACE.around(x, phi):
                distance = GaussianLoss(abs(mean(x) - mean(y)) / sigma).delta_ball(Fraction(0))
                assert 0 < distance < stated_bound(m, sigma)

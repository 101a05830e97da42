"""What differential privacy says: its forms, what epsilon and delta mean,
and what follows from the definition alone.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations, pairwise, product

import pytest
from flint import arb

from sordino import FiniteLoss, GaussianLoss, Laplace, LaplaceLoss, Neighbors, RandomizedResponse
from sordino.mechanisms.rounded import LAPLACE, RoundedNoise
from sordino.privacy.ball import ball, certified, working
from sordino.privacy.divergence import (
    hockey_stick,
    max_divergence,
    multiplicative_distance,
    total_variation,
    verify_approximate,
    verify_pure,
)
from sordino.privacy.neighbors import histogram
from theorems.naive import (
    EPSILONS,
    Law,
    agree,
    chance,
    events,
    exceeds,
    factor_between,
    just_above,
    largest_gap,
    largest_ratio,
    laws,
    logarithm,
    pairs,
    ratio_of_events,
)

ONE = Fraction(1)
COIN, SWAPPED = (Fraction(3, 4), Fraction(1, 4)), (Fraction(1, 4), Fraction(3, 4))


def loss_tail(p: Law, q: Law, epsilon: Fraction) -> Fraction:
    """P[L > epsilon] for L = log p/q under p."""
    return sum((a for a, b in zip(p, q, strict=True) if exceeds(a, b, epsilon)), Fraction(0))


def merged(law: Law, i: int, j: int) -> Law:
    return (law[i] + law[j], *(x for k, x in enumerate(law) if k not in (i, j)))


def test_pure_privacy_by_events_by_points_and_by_loss_is_the_same() -> None:
    """The factor that all events need is what single outcomes need, e^(largest loss). Notes: Lecture 3, Claim 1.1."""
    for p, q in pairs((3, 5), (4, 3)):
        by_events = ratio_of_events(p, q)
        assert by_events == largest_ratio(zip(p, q, strict=True))
        loss = max_divergence(p, q)
        if by_events == math.inf:
            assert loss == math.inf
        else:
            assert loss == by_events - 1 == 0 or just_above(loss, logarithm(Fraction(by_events)))


def test_pure_privacy_is_decided_as_all_events_in_both_orders_decide_it() -> None:
    """epsilon-DP is P(E) <= e^epsilon Q(E) for every event E and either order. Notes: Lectures 2, 5, 12, Recitation."""
    answers = set()
    for p, q in pairs((3, 4)):
        chances = [(chance(p, e), chance(q, e)) for e in events(3)]
        for epsilon in EPSILONS:
            naive = not any(exceeds(a, b, epsilon) or exceeds(b, a, epsilon) for a, b in chances)
            assert bool(verify_pure(p, q, epsilon)) == naive
            answers.add(naive)
    assert answers == {True, False}


def test_approximate_privacy_is_the_worst_event() -> None:
    """The smallest delta is the largest P(E) - e^epsilon Q(E) over all events and both orders.

    Notes: Lecture 2, Def. 4.
    """
    with working(256):
        for p, q in pairs((3, 4), (4, 2)):
            for epsilon in EPSILONS:
                forth, back = largest_gap(p, q, epsilon), largest_gap(q, p, epsilon)
                assert FiniteLoss(p, q).delta_ball(epsilon).overlaps(forth.max(back))
                assert hockey_stick(p, q, epsilon) == pytest.approx(
                    float(forth.mid()), rel=1e-15, abs=1e-70
                )


def test_outcome_by_outcome_is_weaker_than_event_by_event_once_delta_is_positive() -> None:
    """n outcomes that each respect delta can make one event that needs n delta. Notes: Lecture 2, subset or element."""
    for n in (2, 3, 10):
        delta = Fraction(1, n)
        p, q = (*[delta] * n, Fraction(0)), (*[Fraction(0)] * n, ONE)
        for epsilon in EPSILONS:
            assert not any(exceeds(a, b, epsilon, delta) for a, b in zip(p, q, strict=True))
            assert not verify_approximate(p, q, epsilon, delta)
            assert verify_approximate(p, q, epsilon, delta).needed == 1 == n * delta


def test_events_and_outcomes_agree_at_delta_zero_only() -> None:
    """On all small pairs the two forms agree at delta 0 and disagree somewhere at delta 1/5. Notes: Lecture 2."""
    disagreements = dict.fromkeys((Fraction(0), Fraction(1, 5)), 0)
    for p, q in pairs((3, 5)):
        for delta in disagreements:
            by_points = not any(exceeds(a, b, ONE, delta) for a, b in zip(p, q, strict=True))
            by_events = not any(exceeds(chance(p, e), chance(q, e), ONE, delta) for e in events(3))
            assert by_points or not by_events
            disagreements[delta] += by_points != by_events
    assert disagreements[Fraction(0)] == 0 < disagreements[Fraction(1, 5)]


def test_small_chance_of_a_large_loss_gives_approximate_privacy() -> None:
    """If P[L > epsilon] <= delta in both orders, the pair is (epsilon, delta)-DP. Notes: Lecture 3, Claim 1.2."""
    for p, q in pairs((3, 5), (4, 3)):
        for epsilon in EPSILONS:
            delta = max(loss_tail(p, q, epsilon), loss_tail(q, p, epsilon))
            assert verify_approximate(p, q, epsilon, delta)


def test_both_orders_are_needed_for_a_loss_tail_to_give_privacy() -> None:
    """A loss that is never above epsilon in one order alone promises nothing in the other.

    Notes: Lecture 3, Claim 1.2.
    """
    p, q = (ONE, Fraction(0)), (Fraction(1, 2), Fraction(1, 2))
    assert loss_tail(p, q, ONE) == 0
    assert loss_tail(q, p, ONE) == Fraction(1, 2)
    assert not verify_approximate(p, q, 1, Fraction(49, 100))
    assert verify_approximate(p, q, 1, Fraction(1, 2))


@pytest.mark.parametrize("mu", ["1/1000", "1/3", "1", "4", "30"])
def test_gaussian_loss_tail_bounds_its_delta_strictly(mu: str) -> None:
    """P[L > epsilon] is a valid delta for the Gaussian, and more than it needs. Notes: Lecture 3, Claim 1.2."""
    loss = GaussianLoss(Fraction(mu))
    with working(4096):
        for j in range(-8, 9):
            epsilon = loss.shift**2 / 2 + j * loss.shift
            assert 0 < loss.delta_ball(epsilon) < 1 - loss.cdf_ball(epsilon)


def test_approximate_privacy_does_not_bound_the_loss_tail() -> None:
    """The converse fails: a coin has loss above 1/2 three times in four, yet delta(1/2) is below 0.34.

    Notes: Lecture 3.
    """
    epsilon = Fraction(1, 2)
    assert loss_tail(COIN, SWAPPED, epsilon) == Fraction(3, 4)
    assert verify_approximate(COIN, SWAPPED, epsilon, Fraction(34, 100))
    assert not verify_approximate(COIN, SWAPPED, epsilon, Fraction(33, 100))


def test_delta_forgives_a_blip() -> None:
    """A rare outcome of large ratio rules out a small epsilon, until delta covers it. Notes: Lecture 2, Fig. 1."""
    p = (Fraction(490, 1000), Fraction(490, 1000), Fraction(20, 1000))
    q = (Fraction(499, 1000), Fraction(499, 1000), Fraction(2, 1000))
    assert FiniteLoss(p, q).maximum() == pytest.approx(math.log(10), rel=1e-15)
    assert not verify_pure(p, q, Fraction(1, 10))
    assert verify_approximate(p, q, Fraction(1, 10), Fraction(18, 1000))
    assert not verify_approximate(p, q, Fraction(1, 10), Fraction(17, 1000))


def test_delta_must_cover_what_only_one_side_can_output() -> None:
    """If an outcome of chance c is impossible for a neighbour, no epsilon works with delta < c.

    Notes: Lecture 2, Fig. 1.
    """
    c = Fraction(1, 128)
    loss = FiniteLoss((1 - c, c), (ONE, Fraction(0)))
    assert loss.maximum() == math.inf
    assert loss.infinite() == c
    for epsilon in (0, 1, 100, 10**6):
        assert loss.satisfies(Fraction(epsilon), c)
        assert not loss.satisfies(Fraction(epsilon), c * Fraction(999, 1000))
    assert loss.epsilon(c * Fraction(999, 1000)) == math.inf


def test_epsilon_zero_means_identical_outputs() -> None:
    """Perfect privacy is the same distribution for every neighbour, and nothing else is.

    Notes: Lecture 2, on epsilon.
    """
    for p, q in pairs((3, 5), (4, 3)):
        assert bool(verify_pure(p, q, 0)) == (p == q)
        assert (multiplicative_distance(p, q) == 0) == (p == q)


def test_epsilon_infinity_means_no_privacy() -> None:
    """Outputs that never coincide satisfy no finite epsilon, and every pair satisfies the infinite one.

    Notes: Lecture 2.
    """
    for p, q in pairs((3, 4)):
        assert multiplicative_distance(p, q) <= math.inf
        if not any(a and b for a, b in zip(p, q, strict=True)):
            assert multiplicative_distance(p, q) == math.inf
            assert not verify_pure(p, q, 10**6)
            assert FiniteLoss(p, q).delta(10**6) == 1.0


def test_deterministic_algorithm_is_private_only_if_it_is_constant() -> None:
    """Of all 64 functions of databases of up to 2 rows, the 2 constant ones are private.

    Notes: Lecture 2, randomization.
    """
    databases = sorted({histogram(d, "ab") for n in range(3) for d in product("ab", repeat=n)})
    related = [
        (i, j)
        for (i, x), (j, y) in combinations(enumerate(databases), 2)
        if Neighbors.ADD_REMOVE.related(x, y)
    ]
    point = {0: (ONE, Fraction(0)), 1: (Fraction(0), ONE)}
    for outputs in product((0, 1), repeat=len(databases)):
        distances = [
            multiplicative_distance(point[outputs[i]], point[outputs[j]]) for i, j in related
        ]
        if len(set(outputs)) == 1:
            assert max(distances) == 0
        else:
            assert max(distances) == math.inf
            assert (
                max(total_variation(point[outputs[i]], point[outputs[j]]) for i, j in related) == 1
            )


def test_e_to_the_epsilon_is_about_one_plus_epsilon() -> None:
    """1 + e + e^2/2 < exp(e) < 1 + e + e^2 for 0 < e <= 1; the upper bound ends before e = 2.

    Notes: Lectures 2 and 5.
    """
    with working(512):
        for e in (Fraction(1, 2**80), Fraction(1, 10**6), Fraction(1, 10), Fraction(1, 2), ONE):
            assert ball(e + e * e / 2) < ball(e).expm1() < ball(e + e * e)
        assert not arb(2).expm1() < 2 + 4


def test_sensible_epsilon_is_neither_tiny_nor_huge() -> None:
    """At 2^-80 a whole nation leaves no trace in the output; at 100 one person can be read off. Notes: Lecture 5."""
    nation = LaplaceLoss(Fraction(10**9, 2**80))
    assert nation.total_variation() < 1e-15
    one = LaplaceLoss(Fraction(100))
    assert one.trade_off(Fraction(1, 10**20)) < 1e-20
    with working(256):
        assert 1 - one.delta_ball(Fraction(0)) < arb(10) ** -21
    moderate = LaplaceLoss(Fraction(1, 10))
    assert moderate.total_variation() < 0.05 < LaplaceLoss(Fraction(1, 10) * 100).total_variation()


def test_noise_fitted_to_the_database_at_hand_is_not_private() -> None:
    """It is over all pairs: scales 1 and 2 on two neighbours differ without bound in the tail. Notes: Lecture 2."""
    calm, lively = RoundedNoise(LAPLACE, ONE), RoundedNoise(LAPLACE, Fraction(2))
    with working(1024):
        for epsilon in (1, 10, 100):
            assert lively.pmf_ball(6 * epsilon) > arb(epsilon).exp() * calm.pmf_ball(6 * epsilon)


def test_losses_along_a_chain_of_neighbours_add_up() -> None:
    """The factors between neighbours multiply along a chain, so k steps cost k epsilon.

    Notes: Lecture 2, worst case.
    """
    small = laws(3, 4)
    factor = {(p, q): factor_between(p, q) for p, q in product(small, repeat=2)}
    for p, q, r in product(small, repeat=3):
        if factor[p, q] != math.inf and factor[q, r] != math.inf:
            assert factor[p, r] <= factor[p, q] * factor[q, r]


@pytest.mark.parametrize("sensitivity", ["1/8", "1", "5"])
def test_laplace_group_of_k_pays_exactly_k_times(sensitivity: str) -> None:
    """For Laplace noise the price of a group is tight: k epsilon and not less. Notes: Lecture 2, Theorem 8."""
    s, mechanism = Fraction(sensitivity), Laplace(scale=4)
    for k in (1, 2, 3, 10, 1000):
        assert mechanism.loss(k * s).maximum() == k * mechanism.loss(s).maximum()
        assert not mechanism.loss(k * s).satisfies(k * s / 4 * Fraction(999, 1000), Fraction(0))


def test_gaussian_group_of_k_pays_k_epsilon_and_a_grown_delta() -> None:
    """delta_k(k e) <= (exp(k e) - 1)/(exp(e) - 1) delta(e); k delta(e) would not do. Notes: Lecture 2, Definition 4."""
    beyond_k = 0
    with working(512):
        for mu, e, k in product(("1/100", "1/2", "2"), ("1/100", "1/2", "1", "3"), (2, 3, 10)):
            epsilon, shift = Fraction(e), Fraction(mu)
            one, group = (GaussianLoss(j * shift).delta_ball(j * epsilon) for j in (1, k))
            assert group < ball(k * epsilon).expm1() / ball(epsilon).expm1() * one
            beyond_k += bool(group > k * one)
    assert beyond_k > 0


def test_merging_outcomes_never_makes_a_pair_easier_to_tell_apart() -> None:
    """Post-processing lowers every divergence and raises the trade-off curve. Notes: Lecture 3, after its toolbox."""
    strictly = 0
    with working(192):
        for p, q in pairs((3, 4)):
            before = FiniteLoss(p, q)
            for i, j in combinations(range(3), 2):
                p2, q2 = merged(p, i, j), merged(q, i, j)
                after = FiniteLoss(p2, q2)
                assert total_variation(p2, q2) <= total_variation(p, q)
                assert factor_between(p2, q2) <= factor_between(p, q)
                strictly += factor_between(p2, q2) < factor_between(p, q)
                for epsilon in EPSILONS:
                    assert not after.delta_ball(epsilon) > before.delta_ball(epsilon)
                for alpha in (Fraction(1, 10), Fraction(1, 3), Fraction(4, 5)):
                    assert not after.trade_off_ball(alpha) < before.trade_off_ball(alpha)
                if not before.infinite():
                    for order in (1, 2, 7):
                        assert not after.rdp_ball(Fraction(order)) > before.rdp_ball(
                            Fraction(order)
                        )
    assert strictly > 0


def test_randomized_post_processing_is_harmless_too() -> None:
    """Sending each outcome through one noisy channel, whatever it is, lowers all distances. Notes: Lecture 3."""
    rows = laws(2, 2)
    for p, q in pairs((3, 3)):
        for channel in product(rows, repeat=3):
            p2, q2 = (
                tuple(
                    sum((x * r[y] for x, r in zip(law, channel, strict=True)), Fraction(0))
                    for y in (0, 1)
                )
                for law in (p, q)
            )
            assert total_variation(p2, q2) <= total_variation(p, q)
            assert factor_between(p2, q2) <= factor_between(p, q)


def test_a_small_delta_makes_many_releases_cheaper_than_their_sum() -> None:
    """100 coins of epsilon 1/10 cost 10 in all, but below 4.3 at delta 1e-4; delta 0 has no discount.

    Notes: Lecture 3.
    """
    k = 100
    coin = RandomizedResponse.calibrated(epsilon=Fraction(1, 10))
    t = coin.truth
    # how many answers are 0: sufficient
    p = tuple(math.comb(k, j) * t**j * (1 - t) ** (k - j) for j in range(k + 1))
    loss = FiniteLoss(p, tuple(reversed(p)))
    assert loss.maximum() == pytest.approx(10, rel=1e-9)
    assert loss.epsilon(Fraction(1, 10**4)) < 4.3
    assert agree(certified(lambda: ball(sum(p, Fraction(0)))), arb(1))


def test_loss_of_one_release_is_bounded_for_laplace_and_unbounded_for_gaussian() -> None:
    """Laplace noise has no catastrophic tail, Normal noise has one of every height. Notes: Lecture 3, intuition."""
    for shift in (Fraction(1, 8), ONE, Fraction(10)):
        assert LaplaceLoss(shift).maximum() == shift
        assert LaplaceLoss(shift).cdf_ball(shift) == 1
        assert LaplaceLoss(shift).delta(shift) == 0.0
        assert GaussianLoss(shift).maximum() == math.inf
        gaussian = [GaussianLoss(shift).delta(m * shift) for m in (1, 2, 5, 20)]
        assert all(a > b > 0 for a, b in pairwise(gaussian))

"""The Laplace mechanism, step by step: for the density of the notes, and for the integers that are released."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise, product

import pytest
from flint import acb, arb

from sordino import Laplace, LaplaceLoss, global_sensitivity
from sordino.mechanisms.rounded import LAPLACE, RoundedNoise
from sordino.privacy.ball import ball, working
from sordino.privacy.neighbors import Neighbors
from theorems.naive import agree, integral, laplace_density

HALVES = [Fraction(n, 2) for n in range(-12, 13)]
SCALES = [Fraction(s) for s in ("1/10", "1/2", "1", "7/3", "10", "1000")]


def exponent(y: Fraction, centre: Fraction, scale: Fraction) -> Fraction:
    """log of the density of Laplace(centre, scale), without the constant log(2 scale) that every ratio loses."""
    return -abs(y - centre) / scale


def mean(values: tuple[Fraction, ...]) -> Fraction:
    return sum(values, Fraction(0)) / len(values)


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_sliding_the_density_changes_it_by_a_bounded_factor(scale: Fraction) -> None:
    """h(y)/h(y + d) <= e^(|d|/b) for all y and d, with equality for each d at some y. Notes: Recitation, sliding."""
    zero = Fraction(0)
    for d in HALVES:
        logs = [exponent(y, zero, scale) - exponent(y + d, zero, scale) for y in HALVES]
        assert max(logs) == abs(d) / scale


def test_density_has_the_stated_form() -> None:
    """The density is e^(-|y - centre|/b)/(2b), even about its centre, 1/(2b) there. Notes: Lecture 2, Def. 6."""
    with working(192):
        for scale, y in product(SCALES, HALVES):
            b = acb(ball(scale))
            direct = ball(exponent(y, Fraction(0), scale)).exp() / (2 * ball(scale))
            assert agree(laplace_density(acb(ball(y)), b, right=y >= 0).real, direct)
            assert agree(laplace_density(acb(ball(-y)), b, right=y <= 0).real, direct)


def test_difference_of_distances_is_at_most_the_distance_of_the_centres() -> None:
    """| |y - u| - |y - v| | <= |u - v|; equality exactly where y is not strictly between. Notes: Recitation, proof."""
    between = 0
    for y, u, v in product(HALVES, repeat=3):
        gap = abs(abs(y - u) - abs(y - v))
        assert gap <= abs(u - v)
        inside = min(u, v) < y < max(u, v)
        assert (gap == abs(u - v)) == (not inside)
        between += inside
    assert between > 0


@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_vector_noise_is_private_for_the_l1_distance(dimension: int) -> None:
    """With Laplace(b) on each coordinate, the largest log ratio is the L1 distance over b.

    Notes: Lecture 5, Theorem.
    """
    scale, points = Fraction(3, 2), [Fraction(n) for n in (-4, -1, 0, 2, 3, 5)]
    for centre in product((Fraction(-1), Fraction(0), Fraction(3)), repeat=dimension):
        logs = (
            sum(
                (
                    exponent(y, Fraction(0), scale) - exponent(y, c, scale)
                    for y, c in zip(ys, centre, strict=True)
                ),
                Fraction(0),
            )
            for ys in product(points, repeat=dimension)
        )
        assert max(logs) == sum(map(abs, centre)) / scale


def test_noise_fitted_to_the_l2_distance_is_not_private() -> None:
    """Four coordinates that move by 1 are 2 apart in L2 and 4 in L1: scale 2/epsilon gives 2 epsilon.

    Notes: Lecture 2.
    """

    def four(rows: tuple[int, ...]) -> list[int]:
        return [sum(rows)] * 4

    l1, l2 = (global_sensitivity(four, universe=(0, 1), size=3, norm=norm).value for norm in (1, 2))
    epsilon = Fraction(1, 2)
    wrong, right = (Laplace.calibrated(sensitivity=s, epsilon=epsilon) for s in (l2, l1))
    assert wrong.loss(l1).maximum() == 2 * epsilon
    assert right.loss(l1).maximum() == epsilon
    with working(192):
        noise = RoundedNoise(LAPLACE, wrong.scale)
        ratio = (
            noise.pmf_ball(-1) / noise.pmf_ball(-2)
        ) ** 4  # all four noisy coordinates at -1, centres 0 and 1
        assert ratio > ball(epsilon).exp()
        assert agree(ratio, ball(2 * epsilon).exp())


@pytest.mark.parametrize("scale", SCALES, ids=str)
@pytest.mark.parametrize("shift", [1, 2, 5, 17])
def test_released_integers_are_as_private_as_the_density(scale: Fraction, shift: int) -> None:
    """P[0 + noise = k] <= e^(s/b) P[s + noise = k] for every k, equal just where k <= -1.

    Notes: Lecture 2, Theorem 8.
    """
    noise = RoundedNoise(LAPLACE, scale)
    with working(512):
        factor = ball(shift / scale).exp()
        for k in range(-60, 61):
            here, there = noise.pmf_ball(k), factor * noise.pmf_ball(k - shift)
            if k <= -1:  # both are tails of one exponential: the same number
                assert agree(here, there, 1e-100)
            else:
                assert here < there


@pytest.mark.parametrize(
    ("scale", "shifts"), [("1/2", (1, 1)), ("3", (1, 2)), ("10", (0, 4)), ("7/3", (2, -3))]
)
def test_released_vectors_are_private_for_the_l1_distance(
    scale: str, shifts: tuple[int, int]
) -> None:
    """The ratio of products of pmfs is at most e^(|s|_1/b), and reaches it in a corner. Notes: Lecture 2, Theorem 8."""
    b = Fraction(scale)
    noise = RoundedNoise(LAPLACE, b)
    reached = 0
    with working(384):
        factor = ball(sum(map(abs, shifts)) / b).exp()
        mass = {k: noise.pmf_ball(k) for k in range(-18, 19)}
        for point in product(range(-12, 13), repeat=2):
            here, there = arb(1), factor
            for k, s in zip(point, shifts, strict=True):
                here, there = here * mass[k], there * mass[k - s]
            equal = agree(here, there, 1e-60)
            assert equal or here < there
            reached += equal
    assert 0 < reached < 25**2


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_mean_magnitude_of_the_noise_is_its_scale(scale: Fraction) -> None:
    """E|Z| = b: the integral of |z| times the density, with what lies beyond T in closed form.

    Notes: Lecture 5, Facts.
    """
    with working(192):
        b, far = ball(scale), 60 * ball(scale)
        inside = 2 * integral(lambda z: z * laplace_density(z, acb(b), right=True), [arb(0), far])
        beyond = (far + b) * (-far / b).exp()
        assert agree(inside + beyond, b)


@pytest.mark.parametrize("scale", SCALES[:-1], ids=str)
def test_mean_magnitude_of_the_released_integer_is_just_below_the_scale(scale: Fraction) -> None:
    """E|round(Z)| = 1/(2 sinh(1/(2b))), which lies between b - 1/(24b) and b. Notes: Lecture 5, Facts."""
    noise = RoundedNoise(LAPLACE, scale)
    last = int(120 * scale) + 2
    with working(256):
        b = ball(scale)
        closed = 1 / (2 * (1 / (2 * b)).sinh())
        inside = 2 * sum((k * noise.pmf_ball(k) for k in range(1, last + 1)), arb(0))
        beyond = 2 * noise.tail_ball(last) * (last + 1 / (1 - (-1 / b).exp()))  # a geometric series
        assert agree(inside + beyond, closed)
        assert beyond < closed * arb(10) ** -20
        assert b - 1 / (24 * b) < closed < b


@pytest.mark.parametrize("epsilon", [0.1, Fraction(1, 3), 1, 2.5, 1e-12, 100])
@pytest.mark.parametrize("sensitivity", [1, Fraction(1, 7), 0.3, 1000])
def test_laplace_mechanism_is_private(
    sensitivity: float | Fraction, epsilon: float | Fraction
) -> None:
    """Noise of scale sensitivity/epsilon is epsilon-DP, and any less noise is not.

    Notes: Lectures 2, 5, 3 (Claim 3.1).
    """
    mechanism = Laplace.calibrated(sensitivity=sensitivity, epsilon=epsilon)
    assert mechanism.loss(sensitivity).shift <= min(Fraction(epsilon), Fraction(str(epsilon)))
    less = Laplace(scale=mechanism.scale * Fraction(10**6 - 1, 10**6))
    assert less.loss(sensitivity).shift > Fraction(epsilon)
    assert less.loss(sensitivity).delta(epsilon) > 0


@pytest.mark.parametrize("m", [1, 2, 3])
@pytest.mark.parametrize("epsilon", [Fraction(1, 4), Fraction(2)])
def test_noisy_mean_of_a_statistical_query_is_private(m: int, epsilon: Fraction) -> None:
    """The mean of phi over m rows plus Lap(1/(m epsilon)) is epsilon-DP on all neighbours.

    Notes: Lecture 12, Claim 0.5.
    """
    phi = (Fraction(0), Fraction(1, 2), Fraction(1))
    step = Fraction(1, 2 * m)
    mechanism = Laplace(scale=1 / (m * epsilon), step=step)
    noise = RoundedNoise(LAPLACE, mechanism.scale / step)
    moves = {
        int((mean(y) - mean(x)) / step)
        for x in product(phi, repeat=m)
        for y in Neighbors.REPLACE.around(x, phi)
    }
    assert max(moves) == 2
    with working(384):
        factor = ball(epsilon).exp()
        for move, k in product(moves, range(-40, 41)):
            here, there = noise.pmf_ball(k), factor * noise.pmf_ball(k - move)
            assert here < there or (abs(move) == 2 and agree(here, there, 1e-60))
    assert mechanism.loss(Fraction(1, m)).maximum() == epsilon


def test_smaller_scale_is_pointier_and_larger_scale_is_flatter() -> None:
    """The peak falls with b, and every tail grows. Notes: Lecture 2, after Definition 6."""
    with working(2048):
        for small, large in pairwise(SCALES):
            a, b = RoundedNoise(LAPLACE, small), RoundedNoise(LAPLACE, large)
            assert 1 / (2 * ball(small)) > 1 / (2 * ball(large))
            assert a.pmf_ball(0) > b.pmf_ball(0)
            assert all(a.tail_ball(k) < b.tail_ball(k) for k in range(60))


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_changing_the_value_translates_the_curve(scale: Fraction) -> None:
    """The output law on a neighbour is the same law, moved by the change of f.

    Notes: Recitation, Laplace distribution.
    """
    mechanism = Laplace(scale)
    for move in (-3, 1, 10**12):
        assert [mechanism.pmf(k + move, value=move) for k in range(-20, 21)] == [
            mechanism.pmf(k) for k in range(-20, 21)
        ]
        assert [mechanism.cdf(k + move, value=move) for k in range(-20, 21)] == [
            mechanism.cdf(k) for k in range(-20, 21)
        ]


def test_loss_lies_between_plus_and_minus_epsilon() -> None:
    """Between the centres the loss runs from -epsilon to epsilon, beyond them it is constant. Notes: Lecture 3."""
    scale, centre = Fraction(2), Fraction(3)
    loss = LaplaceLoss(centre / scale)
    for y in HALVES:
        value = exponent(y, centre, scale) - exponent(y, Fraction(0), scale)
        assert value == (
            -loss.shift if y <= 0 else loss.shift if y >= centre else (2 * y - centre) / scale
        )
    with working(192):
        assert loss.cdf_ball(-loss.shift - Fraction(1, 10**9)) == 0
        assert loss.cdf_ball(loss.shift) == 1
        assert (
            0
            < 1 - loss.cdf_ball(loss.shift - Fraction(1, 10**40)) - ball(Fraction(1, 2))
            < arb(10) ** -40
        )

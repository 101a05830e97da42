"""Basic probability: two coin tosses in full, and the laws of the mechanisms as examples
of discrete and continuous ones.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise, product

import pytest
from flint import acb, arb

from sordino import FiniteLoss, Gaussian, Laplace, RandomizedResponse
from sordino.mechanisms.rounded import LAPLACE, NORMAL, RoundedNoise, Shape
from sordino.privacy.ball import ball, normal_tail, working
from theorems.naive import agree, integral, laplace_density, normal_density

TOSSES = dict.fromkeys(("".join(t) for t in product("HT", repeat=2)), Fraction(1, 4))
EVENTS = [
    frozenset(t for t, chosen in zip(TOSSES, bits, strict=True) if chosen)
    for bits in product((0, 1), repeat=4)
]
SCALES = [Fraction(s) for s in ("1/10", "1/2", "1", "10/3", "40")]
SHAPES = [LAPLACE, NORMAL]


def probability(event: frozenset[str]) -> Fraction:
    return sum((TOSSES[t] for t in event), Fraction(0))


def conditional(event: frozenset[str], given: frozenset[str]) -> Fraction:
    return probability(event & given) / probability(given)


def heads(toss: str) -> int:
    return toss.count("H")


def test_two_tosses_obey_the_three_axioms() -> None:
    """No event has a negative chance, the sure one has chance 1, disjoint ones add up. Notes: Recitation."""
    assert all(probability(a) >= 0 for a in EVENTS)
    assert probability(frozenset(TOSSES)) == 1
    for a, b, c in product(EVENTS, repeat=3):
        if not (a & b or a & c or b & c):
            assert probability(a | b | c) == probability(a) + probability(b) + probability(c)
    overlapping = frozenset({"HH", "HT"}), frozenset({"HH", "TH"})
    assert probability(overlapping[0] | overlapping[1]) < sum(map(probability, overlapping))


def test_two_heads_and_one_head_never_happen_together() -> None:
    """The joint chance of {HH} and {HT, TH} is 0, although neither alone has chance 0. Notes: Recitation."""
    two, one = frozenset({"HH"}), frozenset({"HT", "TH"})
    assert probability(two & one) == 0 < probability(two) * probability(one)


def test_conditional_probability_is_a_share_of_the_condition() -> None:
    """P(B|A) = P(A and B)/P(A) is itself a probability, and averages back to P(B). Notes: Recitation."""
    sure = frozenset(TOSSES)
    for given in EVENTS:
        if not given:
            with pytest.raises(ZeroDivisionError):
                conditional(sure, given)
            continue
        assert conditional(sure, given) == 1
        for event in EVENTS:
            assert 0 <= conditional(event, given) <= 1
            if given != sure:
                parts = (
                    conditional(event, part) * probability(part) for part in (given, sure - given)
                )
                assert probability(event) == sum(parts)
    first_is_heads = frozenset({"HH", "HT"})
    assert conditional(frozenset({"HH"}), first_is_heads) == Fraction(1, 2)
    assert probability(frozenset({"HH"})) == Fraction(1, 4)


def test_number_of_heads_has_the_law_of_its_preimages() -> None:
    """A random variable's pmf is the chance of the outcomes it maps to a value; it sums to 1. Notes: Recitation."""
    law = {x: probability(frozenset(t for t in TOSSES if heads(t) == x)) for x in range(3)}
    assert law == {0: Fraction(1, 4), 1: Fraction(1, 2), 2: Fraction(1, 4)}
    assert law[0] == probability(frozenset({"TT"}))
    assert sum(law.values()) == 1
    FiniteLoss(tuple(law.values()), tuple(law.values()))
    with pytest.raises(ValueError, match="sum to exactly 1"):
        FiniteLoss((Fraction(1, 4), Fraction(1, 2)), (Fraction(1, 4), Fraction(3, 4)))


@pytest.mark.parametrize("categories", [2, 3, 10])
def test_answers_at_pure_chance_are_uniform(categories: int) -> None:
    """A discrete uniform law gives each of k values 1/k, whatever the truth. Notes: Recitation."""
    chance = RandomizedResponse(truth=Fraction(1, categories), categories=categories)
    for value, report in product(range(categories), repeat=2):
        assert chance.pmf(report, value) == Fraction(1, categories)
        assert chance.cdf(report, value) == Fraction(report + 1, categories)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda s: s.name)
def test_magnitude_of_a_continuous_uniform_has_the_noise_law(shape: Shape) -> None:
    """If U is uniform on (0, 1] then P[U < u] = u, and the sampler's map of U has the tail of |Z|.

    Notes: Recitation.
    """
    with working(256):
        for u in (Fraction(1, 10**30), Fraction(1, 7), Fraction(1, 2), Fraction(999, 1000)):
            assert agree(2 * shape.tail(shape.magnitude_ball(ball(u))), ball(u))


@pytest.mark.parametrize("shape", SHAPES, ids=lambda s: s.name)
@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_mass_function_of_released_noise_sums_to_one(shape: Shape, scale: Fraction) -> None:
    """The sum of a pmf over all values is 1; what lies beyond the summed range is below e^-49. Notes: Recitation."""
    noise = RoundedNoise(shape, scale)
    last = int(50 * scale) + 1
    with working(256):
        inside = sum((noise.pmf_ball(k) for k in range(-last, last + 1)), arb(0))
        beyond = 2 * noise.tail_ball(last)
        assert agree(inside + beyond, arb(1))
        assert 0 < beyond < arb(-49).exp()
        assert all(noise.pmf_ball(k) > 0 for k in range(-last, last + 1))


@pytest.mark.parametrize("mechanism", [m(s) for m in (Laplace, Gaussian) for s in SCALES], ids=repr)
def test_distribution_function_is_the_sum_of_the_mass_function(
    mechanism: Laplace | Gaussian,
) -> None:
    """P[X <= k] is the sum of P[X = j] over j <= k, to within the rounding of floats. Notes: Recitation."""
    running = mechanism.cdf(-31)
    for k in range(-30, 31):
        running += mechanism.pmf(k)
        assert running == pytest.approx(mechanism.cdf(k), rel=1e-12, abs=1e-300)
    assert mechanism.cdf(-1) + mechanism.pmf(0) / 2 == pytest.approx(0.5, rel=1e-15)


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_densities_are_nonnegative_and_integrate_to_one(scale: Fraction) -> None:
    """Both noise densities have integral 1 over the whole line. Notes: Recitation."""
    with working(192):
        b = acb(ball(scale))
        far = 60 * ball(scale)
        laplace = 2 * integral(lambda y: laplace_density(y, b, right=True), [arb(0), far])
        normal = integral(lambda y: normal_density(y, b), [-far, arb(0), far])
        assert agree(laplace + arb(-60).exp(), arb(1))
        assert agree(normal + 2 * normal_tail(arb(60)), arb(1))
        assert laplace_density(acb(far), b, right=True).real > 0
        assert normal_density(acb(far), b).real > 0


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_mass_of_a_released_integer_is_the_integral_of_the_density_over_its_cell(
    scale: Fraction,
) -> None:
    """P[a <= X <= b] is the integral of the density from a to b. Notes: Recitation."""
    with working(192):
        b, half = acb(ball(scale)), ball(Fraction(1, 2))
        for k in (0, 1, 2, 7):
            if k == 0:
                laplace = 2 * integral(lambda y: laplace_density(y, b, right=True), [arb(0), half])
            else:
                laplace = integral(
                    lambda y: laplace_density(y, b, right=True), [k - half, k + half]
                )
            normal = integral(lambda y: normal_density(y, b), [k - half, k + half])
            assert agree(laplace, RoundedNoise(LAPLACE, scale).pmf_ball(k), 1e-20)
            assert agree(normal, RoundedNoise(NORMAL, scale).pmf_ball(k), 1e-20)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda s: s.name)
def test_a_single_value_of_a_continuous_variable_has_probability_zero(shape: Shape) -> None:
    """P[a - h < Z <= a + h] falls to 0 with h, by its density at a; a released integer keeps its mass.

    Notes: Recitation.
    """
    a = Fraction(1, 3)
    with working(512):
        masses = [
            shape.tail(ball(a - h)) - shape.tail(ball(a + h))
            for h in (Fraction(1, 10**j) for j in range(1, 60))
        ]
        assert all(0 < later < earlier / 9 for earlier, later in pairwise(masses))
        assert masses[-1] < arb(10) ** -58
        assert RoundedNoise(shape, Fraction(1)).pmf_ball(0) > arb(1) / 3

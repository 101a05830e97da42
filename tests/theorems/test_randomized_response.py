"""Randomized response: the coin of the notes and its generalisation, by enumerating every answer of every database."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from itertools import product

import pytest

from sordino import FiniteLoss, Neighbors, RandomizedResponse
from sordino.privacy.ball import ball, certified, working
from sordino.privacy.divergence import verify_pure
from sordino.privacy.exact import float_upper
from theorems.naive import just_above

COIN = RandomizedResponse(truth=Fraction(3, 4))
RESPONSES = [
    RandomizedResponse(truth=Fraction(t), categories=k)
    for t, k in (("3/5", 2), ("99/100", 2), ("1/2", 3), ("2/3", 3), ("1/3", 4), ("9/10", 4))
]


def likelihood(
    response: RandomizedResponse, answers: tuple[int, ...], truths: tuple[int, ...]
) -> Fraction:
    return math.prod(
        (response.pmf(y, x) for y, x in zip(answers, truths, strict=True)), start=Fraction(1)
    )


def expectation(
    response: RandomizedResponse,
    truths: tuple[int, ...],
    value: Callable[[tuple[int, ...]], Fraction],
) -> Fraction:
    """The mean of a function of the answers of people with these truths, over all answers they may give."""
    everything = product(range(response.categories), repeat=len(truths))
    return sum((likelihood(response, y, truths) * value(y) for y in everything), Fraction(0))


def variance(response: RandomizedResponse, truths: tuple[int, ...], category: int) -> Fraction:
    """The mean square error of the estimated proportion of one category."""
    a, b = response.coefficients
    return expectation(
        response, truths, lambda y: (a * share(y, category) + b - share(truths, category)) ** 2
    )


def share(rows: tuple[int, ...], category: int = 1) -> Fraction:
    return Fraction(rows.count(category), len(rows))


def test_the_coin_is_log_three_private_and_no_better() -> None:
    """Truthful with 3/4, each answer is ln 3-DP, and not e-DP for any e below ln 3. Notes: Lecture 5, Theorem."""
    ratios = {COIN.pmf(y, a) / COIN.pmf(y, b) for y, a, b in product((0, 1), repeat=3)}
    assert max(ratios) == 3
    assert just_above(COIN.loss().maximum(), certified(lambda: ball(3).log()))
    p, q = ([COIN.pmf(y, x) for y in (0, 1)] for x in (0, 1))
    assert verify_pure(p, q, Fraction(COIN.loss().maximum()))
    assert not verify_pure(p, q, Fraction(COIN.loss().maximum()) - Fraction(1, 10**15))


@pytest.mark.parametrize("n", [1, 2, 3])
def test_all_answers_together_hide_one_person_as_one_answer_does(n: int) -> None:
    """P[A(x) = y] <= 3 P[A(x') = y] for all answers y and neighbours x, x'. Notes: Lecture 5, basic proof strategy."""
    ratios = {
        likelihood(COIN, y, x) / likelihood(COIN, y, x2)
        for x in product((0, 1), repeat=n)
        for x2 in Neighbors.REPLACE.around(x, (0, 1))
        for y in product((0, 1), repeat=n)
    }
    assert ratios == {Fraction(1, 3), Fraction(3)}


def test_expected_answer_is_half_the_truth_plus_a_quarter() -> None:
    """E[Y] = X/2 + 1/4. Notes: Lecture 5, estimation."""
    for x in (0, 1):
        assert expectation(COIN, (x,), lambda y: Fraction(y[0])) == Fraction(x, 2) + Fraction(1, 4)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_twice_the_share_less_a_half_is_unbiased(n: int) -> None:
    """2 * share - 1/2 has mean p for every true database; no other line has. Notes: Lecture 5, a = 2, b = -1/2."""
    assert COIN.coefficients == (Fraction(2), Fraction(-1, 2))
    means = {x: expectation(COIN, x, share) for x in product((0, 1), repeat=n)}
    a, b = COIN.coefficients
    assert all(a * m + b == share(x) for x, m in means.items())
    for other_a, other_b in (
        (a, b + Fraction(1, 100)),
        (a * Fraction(101, 100), b),
        (Fraction(1), Fraction(0)),
    ):
        assert any(other_a * m + other_b != share(x) for x, m in means.items())


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_variance_of_the_estimate_is_three_over_four_n(n: int) -> None:
    """The estimate has variance 3/(4n), whatever the true answers are. Notes: Lecture 5, estimation."""
    assert {variance(COIN, x, 1) for x in product((0, 1), repeat=n)} == {Fraction(3, 4 * n)}


@pytest.mark.parametrize("response", RESPONSES, ids=repr)
def test_any_response_has_epsilon_log_of_truth_over_other(response: RandomizedResponse) -> None:
    """Truth t over k categories is ln(t(k - 1)/(1 - t))-DP, tightly.

    Notes: Lecture 5, the homework's generalisation.
    """
    k, t = response.categories, response.truth
    ratios = {response.pmf(y, a) / response.pmf(y, b) for y, a, b in product(range(k), repeat=3)}
    assert max(ratios) == t * (k - 1) / (1 - t)
    assert just_above(
        response.loss().maximum(), certified(lambda: ball(t * (k - 1) / (1 - t)).log())
    )


@pytest.mark.parametrize("response", RESPONSES, ids=repr)
def test_loss_of_a_response_is_that_of_its_worst_pair_of_truths(
    response: RandomizedResponse,
) -> None:
    """Every two different truths have the same hockey-stick curve, the one of loss(). Notes: Lecture 5, Theorem."""
    k = response.categories
    for a, b in product(range(k), repeat=2):
        if a == b:
            continue
        pair = FiniteLoss(
            tuple(response.pmf(y, a) for y in range(k)), tuple(response.pmf(y, b) for y in range(k))
        )
        with working(192):
            for epsilon in (Fraction(0), Fraction(1, 2), Fraction(1), Fraction(3)):
                assert pair.delta_ball(epsilon).overlaps(response.loss().delta_ball(epsilon))


@pytest.mark.parametrize("response", RESPONSES, ids=repr)
def test_estimate_of_any_response_is_unbiased(response: RandomizedResponse) -> None:
    """a * share + b has the true proportion as its mean, for each category and database. Notes: Lecture 5, homework."""
    a, b = response.coefficients
    for n in (1, 2, 3):
        for truths in product(range(response.categories), repeat=n):
            for c in {0, response.categories - 1}:
                assert a * expectation(response, truths, partial(share, category=c)) + b == share(
                    truths, c
                )


@pytest.mark.parametrize("response", RESPONSES, ids=repr)
def test_variance_of_any_estimate_is_the_mean_of_the_answers_variances(
    response: RandomizedResponse,
) -> None:
    """It is a^2/n times the average of q(1 - q) over people, q their chance of that answer.

    Notes: Lecture 5, homework.
    """
    a, _ = response.coefficients
    for truths in product(range(response.categories), repeat=3):
        chances = [response.pmf(0, x) for x in truths]
        exact = a * a * sum((q * (1 - q) for q in chances), Fraction(0)) / 9
        assert variance(response, truths, 0) == exact


@pytest.mark.parametrize("response", [COIN, *RESPONSES], ids=repr)
def test_estimate_is_the_stated_line_of_the_shares(response: RandomizedResponse) -> None:
    """What `estimate` returns is a * share + b, rounded once. Notes: Lecture 5, estimation."""
    a, b = response.coefficients
    for answers in product(range(response.categories), repeat=4):
        found = response.estimate(list(answers)).proportions
        assert found == tuple(float(a * share(answers, c) + b) for c in range(response.categories))


@pytest.mark.parametrize("categories", [2, 3, 100])
@pytest.mark.parametrize("epsilon", ["1/1000000", "1/10", "1", "5", "40"])
def test_calibrated_response_spends_epsilon_and_no_more(categories: int, epsilon: str) -> None:
    """The most truthful epsilon-DP response has truth e^e/(e^e + k - 1), up to rounding down.

    Notes: Lecture 5, homework.
    """
    e = Fraction(epsilon)
    response = RandomizedResponse.calibrated(epsilon=e, categories=categories)
    with working(512):
        best = 1 / (1 + (categories - 1) * ball(-e).exp())
        assert ball(response.truth) < best
        assert ball(response.truth - Fraction(1, categories)) > (
            best - ball(Fraction(1, categories))
        ) * ball(1 - Fraction(1, 10**9))
        spent = (ball(response.truth) * (categories - 1) / ball(1 - response.truth)).log()
        assert ball(e * (1 - Fraction(1, 10**9))) < spent < ball(e)
    assert response.loss().maximum() <= float_upper(e)

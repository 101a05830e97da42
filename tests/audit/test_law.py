"""Exact laws by exploring a coin, against closed forms."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import sordino as so
from sordino.audit.computed.law import Coin, law
from sordino.errors import InvalidInput, TooLarge

HALF = Fraction(1, 2)


def randomized_response(mechanism: so.RandomizedResponse) -> Any:
    def respond(answer: int, coin: Coin) -> int:
        if coin.event(mechanism.truth):
            return answer
        return (answer + 1 + coin.below(mechanism.categories - 1)) % mechanism.categories

    return respond


def two_sided(ratio: Fraction, reach: int) -> Any:
    """The geometric mechanism of Ghosh, Roughgarden and Sundararajan, its tails put on the ends 0 and reach."""

    def noise(value: int, coin: Coin) -> int:
        up, down = coin.geometric(ratio, reach), coin.geometric(ratio, reach)
        return min(max(value + up - down, 0), reach)

    return noise


@pytest.mark.parametrize(
    ("truth", "categories"), [(Fraction(3, 4), 2), (Fraction(1, 2), 3), (Fraction(7, 10), 5)]
)
def test_randomized_response_has_the_law_of_our_mechanism(truth: Fraction, categories: int) -> None:
    mechanism = so.RandomizedResponse(truth, categories)
    for value in range(categories):
        found = law(randomized_response(mechanism), value)
        assert found == {y: mechanism.pmf(y, value) for y in range(categories)}


def test_a_law_sums_to_exactly_one_and_equals_the_binomial() -> None:
    found = law(lambda n, coin: sum(coin.event(Fraction(1, 3)) for _ in range(n)), 8)
    assert found == {k: math.comb(8, k) * Fraction(2 ** (8 - k), 3**8) for k in range(9)}
    assert sum(found.values()) == 1


def test_noisy_max_of_two_counts_equals_the_double_sum() -> None:
    ratio, reach = Fraction(1, 3), 6
    noise = law(lambda _, coin: coin.geometric(ratio, reach) - coin.geometric(ratio, reach), None)

    def noisy_max(counts: tuple[int, int], coin: Coin) -> int:
        noisy = [c + coin.geometric(ratio, reach) - coin.geometric(ratio, reach) for c in counts]
        return 0 if noisy[0] >= noisy[1] else 1

    found = law(noisy_max, (2, 1))
    first = sum(noise[a] * noise[b] for a, b in itertools.product(noise, noise) if 2 + a >= 1 + b)
    assert found == {0: first, 1: 1 - first}


def test_truncated_two_sided_geometric_noise() -> None:
    """Within the reach of both counts the law is the geometric one: (1-r)/(1+r) r^|k|, up to the cut tails."""
    found = law(two_sided(HALF, 12), 5)
    assert sum(found.values()) == 1
    assert abs(found[6] / found[7] - 2) < Fraction(1, 100)


def test_choice_with_weights_and_a_certain_event_is_no_question() -> None:
    assert law(lambda _, coin: coin.choice("abc", [1, 0, 3]), None) == {
        "a": Fraction(1, 4),
        "c": Fraction(3, 4),
    }
    assert law(
        lambda _, coin: (coin.event(1), coin.event(0), coin.below(1), coin.choice("x")), None
    ) == {(True, False, 0, "x"): Fraction(1)}
    assert law(lambda _, coin: coin.choice([3, 4]), None) == {3: HALF, 4: HALF}


def test_outputs_that_are_not_numbers_are_one_output() -> None:
    assert list(
        law(lambda _, coin: float("nan") if coin.event(0.5) else -float("nan"), None).values()
    ) == [1]


def test_a_loop_that_never_ends_is_refused() -> None:
    def until_heads(_: Any, coin: Coin) -> int:
        tries = 0
        while not coin.event(HALF):
            tries += 1
        return tries

    with pytest.raises(TooLarge, match="may never stop"):
        law(until_heads, None, most=500)
    with pytest.raises(TooLarge, match="500 paths"):
        law(lambda _, coin: [coin.event(HALF) for _ in range(20)].count(True), None, most=500)
    with pytest.raises(TooLarge, match="choice among"):
        law(lambda _, coin: coin.below(10**30), None)


def test_as_many_paths_as_allowed_are_explored() -> None:
    assert len(law(lambda _, coin: coin.below(500), None, most=500)) == 500
    with pytest.raises(TooLarge):
        law(lambda _, coin: (coin.below(250), coin.below(3)), None, most=749)


def test_a_refusal_cannot_be_hidden() -> None:
    def stubborn(_: Any, coin: Coin) -> int:
        while True:
            try:
                coin.event(HALF)
            except TooLarge:
                return 0

    with pytest.raises(TooLarge, match="may never stop"):
        law(stubborn, None, most=50)


def test_errors_of_the_function_are_its_own() -> None:
    with pytest.raises(ZeroDivisionError):
        law(lambda _, coin: 1 // coin.below(2), None)


def test_other_randomness_is_noticed() -> None:
    seen = iter(range(10**6))
    with pytest.raises(InvalidInput, match="must come from the coin alone"):
        law(lambda _, coin: coin.event(HALF) and coin.event(Fraction(1, 2 + next(seen))), None)
    with pytest.raises(InvalidInput, match="instead of"):
        law(lambda _, coin: (coin.event(HALF), next(seen)), None)
    with pytest.raises(InvalidInput, match="decisions instead of"):
        law(
            lambda _, coin: tuple(coin.event(HALF) for _ in range(2 if next(seen) % 2 else 4)), None
        )
    data = [1, 2, 3]
    with pytest.raises(InvalidInput, match="must not change its data"):
        law(lambda rows, coin: coin.event(HALF) and rows.pop(), data)


@pytest.mark.parametrize("wrong", [-0.1, 1.5, float("nan"), "half", None, Fraction(3, 2)])
def test_probabilities_must_be_probabilities(wrong: Any) -> None:
    with pytest.raises(InvalidInput):
        law(lambda _, coin: coin.event(wrong), None)


def test_bad_questions_and_outputs() -> None:
    questions: list[Any] = [
        lambda _, coin: coin.below(0),
        lambda _, coin: coin.below(2.5),
        lambda _, coin: coin.choice([], []),
        lambda _, coin: coin.choice("ab", [1]),
        lambda _, coin: coin.choice("ab", [0, 0]),
        lambda _, coin: coin.choice("ab", [-1, 2]),
        lambda _, coin: [coin.event(0.5)],
        lambda _, coin: np.array([coin.event(0.5)]),
    ]
    for ask in questions:
        with pytest.raises(InvalidInput):
            law(ask, None)
    with pytest.raises(InvalidInput, match="most="):
        law(lambda _, coin: 1, None, most=0)

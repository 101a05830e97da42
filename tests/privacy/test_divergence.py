from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import chain, combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sordino.errors import InvalidInput
from sordino.privacy.divergence import (
    Verdict,
    hockey_stick,
    max_divergence,
    multiplicative_distance,
    total_variation,
    verify_approximate,
    verify_pure,
)

COIN, SWAPPED = [Fraction(3, 4), Fraction(1, 4)], [Fraction(1, 4), Fraction(3, 4)]


@st.composite
def distributions(draw: st.DrawFn, size: int = 4) -> list[Fraction]:
    weights = draw(st.lists(st.integers(0, 12), min_size=size, max_size=size).filter(any))
    return [Fraction(w, sum(weights)) for w in weights]


rationals = st.fractions(-2, 2, max_denominator=12)
levels = st.fractions(0, 1, max_denominator=12)


def exp(epsilon: Fraction, digits: int = 80) -> Fraction:
    """e^epsilon to about `digits` digits, by the decimal module and not by flint."""
    with localcontext() as context:
        context.prec = digits
        return Fraction((Decimal(epsilon.numerator) / Decimal(epsilon.denominator)).exp())


def events(p: list[Fraction], q: list[Fraction]) -> list[tuple[frozenset[int], Fraction, Fraction]]:
    outcomes = range(len(p))
    chosen = chain.from_iterable(combinations(outcomes, k) for k in range(len(p) + 1))
    return [
        (frozenset(e), sum((p[i] for i in e), Fraction(0)), sum((q[i] for i in e), Fraction(0)))
        for e in chosen
    ]


def largest_gap(p: list[Fraction], q: list[Fraction], epsilon: Fraction) -> Fraction:
    """The largest p(E) - e^epsilon q(E) over all events, to 80 digits."""
    factor = exp(epsilon)
    return max(a - factor * b for _, a, b in events(p, q))


@given(distributions(), distributions())
def test_total_variation_is_the_largest_difference_over_events(
    p: list[Fraction], q: list[Fraction]
) -> None:
    assert (
        total_variation(p, q)
        == max(abs(a - b) for _, a, b in events(p, q))
        == total_variation(q, p)
    )


@given(distributions(), distributions(), rationals)
def test_hockey_stick_is_the_largest_gap_over_events(
    p: list[Fraction], q: list[Fraction], epsilon: Fraction
) -> None:
    found, truth = hockey_stick(p, q, epsilon), largest_gap(p, q, epsilon)
    assert Fraction(found) >= truth - Fraction(1, 10**70)
    assert math.nextafter(math.nextafter(found, -1), -1) < truth or found == 0
    assert 0 <= found <= 1


@given(distributions(), distributions())
def test_hockey_stick_at_zero_is_total_variation(p: list[Fraction], q: list[Fraction]) -> None:
    distance = total_variation(p, q)
    assert distance <= Fraction(hockey_stick(p, q, 0))
    assert abs(Fraction(hockey_stick(p, q, 0)) - distance) <= Fraction(1, 2**51)


@given(distributions(), distributions())
def test_max_divergence_is_the_largest_log_ratio_over_events(
    p: list[Fraction], q: list[Fraction]
) -> None:
    found = max_divergence(p, q)
    if any(a > 0 and b == 0 for _, a, b in events(p, q)):
        assert found == math.inf
        return
    ratio = max(a / b for _, a, b in events(p, q) if b > 0)
    assert exp(Fraction(found)) >= ratio
    assert found == 0 or exp(Fraction(found) * (1 - Fraction(1, 2**50))) < ratio
    assert (found == 0) == (p == q)


@given(distributions(), distributions())
def test_multiplicative_distance_is_the_larger_direction(
    p: list[Fraction], q: list[Fraction]
) -> None:
    assert multiplicative_distance(p, q) == max(max_divergence(p, q), max_divergence(q, p))
    assert multiplicative_distance(p, q) == multiplicative_distance(q, p)


def test_randomized_response_of_the_notes_costs_ln_three() -> None:
    assert max_divergence(COIN, SWAPPED) == math.log(3)
    assert verify_pure(COIN, SWAPPED, math.log(3))
    assert not verify_pure(COIN, SWAPPED, math.nextafter(math.log(3), 0))
    assert hockey_stick(COIN, SWAPPED, 5) == 0


def test_a_log_that_the_float_rounds_down_does_not_hold() -> None:
    p, q = [Fraction(2, 3), Fraction(1, 3)], [Fraction(1, 3), Fraction(2, 3)]
    assert not verify_pure(p, q, math.log(2))
    assert max_divergence(p, q) == math.nextafter(math.log(2), 1)
    assert verify_pure(p, q, max_divergence(p, q))


def three_floats_below(x: float) -> Fraction:
    return Fraction(max(0.0, math.nextafter(math.nextafter(math.nextafter(x, -1), -1), -1)))


@settings(deadline=None)
@given(distributions(), distributions(), st.floats(-3, 3))
def test_what_is_needed_holds_in_both_readings_and_hardly_less_does(
    p: list[Fraction], q: list[Fraction], epsilon: float
) -> None:
    pure = multiplicative_distance(p, q)
    if pure < math.inf:
        assert verify_pure(p, q, pure)
        assert verify_pure(p, q, Fraction(pure))
        assert verify_pure(p, q, Fraction(str(pure)))
        assert pure == 0 or not verify_pure(p, q, three_floats_below(pure))
    delta = max(hockey_stick(p, q, epsilon), hockey_stick(q, p, epsilon))
    assert verify_approximate(p, q, epsilon, delta)
    assert verify_approximate(p, q, Fraction(epsilon), Fraction(str(delta)))
    assert verify_approximate(p, q, Fraction(str(epsilon)), Fraction(delta))
    assert delta == 0 or not verify_approximate(p, q, epsilon, three_floats_below(delta))


@given(distributions(), distributions(), st.fractions(0, 2, max_denominator=12))
def test_pure_verdict_agrees_with_all_events(
    p: list[Fraction], q: list[Fraction], epsilon: Fraction
) -> None:
    factor = 1 if epsilon == 0 else exp(epsilon)
    verdict = verify_pure(p, q, epsilon)
    assert bool(verdict) is all(a <= factor * b and b <= factor * a for _, a, b in events(p, q))
    first, second = (p, q) if verdict.direction == "p over q" else (q, p)
    assert verdict.probability == sum(first[i] for i in verdict.event)
    assert verdict.probability_other == sum(second[i] for i in verdict.event)
    assert all(
        a * verdict.probability_other <= verdict.probability * b
        and b * verdict.probability_other <= verdict.probability * a
        for _, a, b in events(p, q)
    )
    assert verdict.needed == multiplicative_distance(p, q)
    assert verdict.parameter == "epsilon"


@given(distributions(), distributions(), rationals, levels)
def test_approximate_verdict_agrees_with_all_events(
    p: list[Fraction], q: list[Fraction], epsilon: Fraction, delta: Fraction
) -> None:
    factor = 1 if epsilon == 0 else exp(epsilon)
    verdict = verify_approximate(p, q, epsilon, delta)
    assert bool(verdict) is all(
        a <= factor * b + delta and b <= factor * a + delta for _, a, b in events(p, q)
    )
    first, second = (p, q) if verdict.direction == "p over q" else (q, p)
    assert verdict.probability == sum(first[i] for i in verdict.event)
    assert verdict.probability_other == sum(second[i] for i in verdict.event)
    worst = max(largest_gap(p, q, epsilon), largest_gap(q, p, epsilon))
    assert abs(verdict.probability - factor * verdict.probability_other - worst) < Fraction(
        1, 10**70
    )
    assert verdict.needed == max(hockey_stick(p, q, epsilon), hockey_stick(q, p, epsilon))
    assert verdict.parameter == "delta"


@pytest.mark.parametrize("epsilon", [Fraction(1), Fraction(1, 7), Fraction(40)])
def test_a_hair_in_the_four_hundredth_digit_is_decided(epsilon: Fraction) -> None:
    factor, hair = exp(epsilon, 460), Fraction(1, 10**400)
    for ratio, holds in ((factor - hair, True), (factor + hair, False)):
        p = [ratio / (1 + ratio), 1 / (1 + ratio)]
        assert bool(verify_pure(p, p[::-1], epsilon)) is holds
        assert bool(verify_approximate(p, p[::-1], epsilon, 0)) is holds
    gap = Fraction(99, 100) - exp(Fraction(1, 7), 460) / 100
    skewed = [Fraction(99, 100), Fraction(1, 100)]
    assert verify_approximate(skewed, skewed[::-1], Fraction(1, 7), gap + hair)
    assert not verify_approximate(skewed, skewed[::-1], Fraction(1, 7), gap - hair)


def test_equality_counts_as_holding() -> None:
    assert verify_pure(COIN, COIN, 0)
    assert verify_approximate(COIN, SWAPPED, 0, Fraction(1, 2))
    assert not verify_approximate(COIN, SWAPPED, 0, Fraction(1, 2) - Fraction(1, 10**30))
    lost = {"a": Fraction(9, 10), "lost": Fraction(1, 10)}
    assert verify_approximate(lost, {"a": 1}, 3, Fraction(1, 10))
    assert verify_approximate(lost, {"a": 1}, 3, 0.1)
    assert not verify_approximate(lost, {"a": 1}, 3, Fraction(1, 10) - Fraction(1, 10**30))


def test_a_float_counts_at_its_smaller_reading() -> None:
    assert Fraction(0.1) > Fraction(1, 10)
    p, q = [Fraction(0.1), 1 - Fraction(0.1)], [Fraction(0), Fraction(1)]
    assert verify_approximate(p, q, 0, Fraction(0.1))
    assert not verify_approximate(p, q, 0, 0.1)
    between = exp((Fraction(1, 10) + Fraction(0.1)) / 2)
    p = [between / (1 + between), 1 / (1 + between)]
    for epsilon, holds in ((Fraction(0.1), True), (0.1, False), (Fraction(1, 10), False)):
        assert bool(verify_pure(p, p[::-1], epsilon)) is holds
        assert bool(verify_approximate(p, p[::-1], epsilon, 0)) is holds


def test_an_outcome_that_only_one_can_have() -> None:
    p, q = {"a": 0.5, "b": 0.5}, {"b": 0.5, "c": 0.5}
    verdict = verify_pure(p, q, 100)
    assert (verdict.holds, verdict.event, verdict.needed) == (False, frozenset("a"), math.inf)
    assert (verdict.probability, verdict.probability_other) == (Fraction(1, 2), Fraction(0))
    assert max_divergence({"b": 1}, q) < max_divergence(q, {"b": 1}) == math.inf
    assert verify_pure({"b": 1}, q, 100).direction == "q over p"
    assert verify_approximate({"b": 1}, q, 100, 0.4).direction == "q over p"
    assert total_variation(p, q) == Fraction(1, 2)
    assert hockey_stick(p, q, 1000) == 0.5


@pytest.mark.parametrize(
    ("epsilon", "same", "swapped"),
    [
        (1e300, 0.0, 0.0),
        (-1e300, 1.0, 1.0),
        (10**40, 0.0, 0.0),
        (-(10**40), 1.0, 1.0),
        (1e-300, 0.0, 0.5),
    ],
)
def test_extreme_epsilon(epsilon: float, same: float, swapped: float) -> None:
    assert hockey_stick(COIN, COIN, epsilon) == same
    assert hockey_stick(COIN, SWAPPED, epsilon) == swapped


@pytest.mark.parametrize(
    ("p", "q"),
    [
        ([0.75, 0.25], [0.25, 0.75]),
        ((Decimal("0.75"), Decimal("0.25")), (Decimal("0.25"), Decimal("0.75"))),
        (np.array([0.75, 0.25]), np.array([0.25, 0.75])),
        ({0: 0.75, 1: 0.25}, {1: 0.75, 0: 0.25}),
        ({0: 0.75, 1: 0.25, 2: 0}, {1: 0.75, 0: 0.25}),
    ],
)
def test_every_way_to_write_a_distribution(p: Any, q: Any) -> None:
    assert verify_approximate(p, q, 0.5, 0.1) == verify_approximate(COIN, SWAPPED, 0.5, 0.1)
    assert verify_pure(p, q, 2) == verify_pure(COIN, SWAPPED, 2)
    assert total_variation(p, q) == Fraction(1, 2)


def test_floats_are_probabilities_by_their_decimals() -> None:
    assert total_variation([0.1] * 10, [0.1] * 10) == 0
    assert total_variation([0.1, 0.2, 0.7], [0.3, 0.3, 0.4]) == Fraction(3, 10)


def test_verdict_is_readable_and_frozen() -> None:
    assert str(verify_pure(COIN, SWAPPED, 2)) == (
        "holds: epsilon 1.0986122886681098 is needed; the event {0} has probability 0.75 under p and 0.25 under q"
    )
    assert str(verify_approximate({"b": 1}, {"b": 0.5, "c": 0.25, "a": 0.25}, 0, 0)) == (
        "does not hold: delta 0.5 is needed; the event {'b'} has probability 1 under p and 0.5 under q"
    )
    assert str(verify_pure({"b": 1}, {"b": 0.5, "c": 0.25, "a": 0.25}, 0)) == (
        "does not hold: epsilon inf is needed; the event {'a', 'c'} has probability 0.5 under q and 0 under p"
    )
    assert (
        str(verify_approximate(COIN, COIN, 1, 0))
        == "holds: delta 0.0 is needed; no event has an excess"
    )
    wide = str(
        verify_pure(
            [Fraction(1, 60)] * 60 + [Fraction(0)] * 60,
            [Fraction(0)] * 60 + [Fraction(1, 60)] * 60,
            1,
        )
    )
    assert "...} has probability 1 under p" in wide
    assert len(wide) < 200
    with pytest.raises(dataclasses.FrozenInstanceError):
        verify_pure(COIN, SWAPPED, 2).holds = False  # type: ignore[misc]


FUNCTIONS: list[Callable[[Any, Any], object]] = [
    total_variation,
    max_divergence,
    multiplicative_distance,
    lambda p, q: hockey_stick(p, q, 1),
    lambda p, q: verify_pure(p, q, 1),
    lambda p, q: verify_approximate(p, q, 1, 0),
]


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize(
    ("p", "q", "value", "rule", "hint"),
    [
        ([-0.5, 1.5], COIN, "p[0]=-0.5", "between 0 and 1", "Divide counts"),
        (COIN, [0, 2], "q[1]=2", "between 0 and 1", "Divide counts"),
        (COIN, {"a": math.nan}, "q['a']=nan", "must be finite", "finite number"),
        ([math.inf, 0], COIN, "p[0]=inf", "must be finite", "finite number"),
        ([True, False], COIN, "p[0]=True", "must be a number, not bool", "Pass an int"),
        (["1"], [1], "p[0]='1'", "must be a number, not str", "Pass an int"),
        ([0.5, 0.25], COIN, "p with sum 1 - 0.25", "sum to exactly 1", "Fraction(1, 3)"),
        ([1 / 3] * 3, [1], "p with sum 1 - 1e-16", "sum to exactly 1", "Fraction(1, 3)"),
        (COIN, [0.5, 0.5, 1e-30], "q with sum 1 + 1e-30", "sum to exactly 1", "Fraction(1, 3)"),
        ([], COIN, "p=[]", "must have an outcome", "at least one"),
        (COIN, {}, "q={}", "must have an outcome", "at least one"),
        (COIN, [1], "2 and 1 probabilities", "the same outcomes", "Write a 0"),
        (
            COIN,
            {0: 1},
            "a list and a dict",
            "both be mappings or both be sequences",
            "Name the outcomes",
        ),
        ("ab", COIN, "p='ab'", "mapping from outcomes", "dict or a list"),
        (COIN, 1, "q=1", "mapping from outcomes", "dict or a list"),
        (np.array(1.0), COIN, "p=1.0", "mapping from outcomes", "dict or a list"),
        (COIN, {0.5}, "q={0.5}", "mapping from outcomes", "dict or a list"),
        (np.array([[1.0]]), [1], "p[0]=[1.0]", "must be a number, not list", "Pass an int"),
    ],
)
def test_bad_distributions_are_refused_by_every_function(
    function: Callable[[Any, Any], object], p: Any, q: Any, value: str, rule: str, hint: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        function(p, q)
    assert caught.value.value == value
    assert rule in caught.value.rule
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    ("call", "value", "rule", "hint"),
    [
        (
            lambda: verify_pure(COIN, COIN, -0.1),
            "epsilon=-0.1",
            "must not be negative",
            "zero or more",
        ),
        (
            lambda: verify_pure(COIN, COIN, math.inf),
            "epsilon=inf",
            "must be finite",
            "finite number",
        ),
        (lambda: verify_pure(COIN, COIN, "1"), "epsilon='1'", "must be a number", "Pass an int"),  # type: ignore[arg-type]
        (
            lambda: hockey_stick(COIN, COIN, math.nan),
            "epsilon=nan",
            "must be finite",
            "finite number",
        ),
        (
            lambda: verify_approximate(COIN, COIN, math.nan, 0),
            "epsilon=nan",
            "must be finite",
            "finite number",
        ),
        (
            lambda: verify_approximate(COIN, COIN, 1, -1e-9),
            "delta=-1e-09",
            "between 0 and 1",
            "probability",
        ),
        (
            lambda: verify_approximate(COIN, COIN, 1, 1.5),
            "delta=1.5",
            "between 0 and 1",
            "probability",
        ),
        (
            lambda: verify_approximate(COIN, COIN, 1, math.nan),
            "delta=nan",
            "must be finite",
            "finite number",
        ),
    ],
)
def test_bad_promises_are_refused(
    call: Callable[[], Verdict], value: str, rule: str, hint: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        call()
    assert caught.value.value == value
    assert rule in caught.value.rule
    assert hint in caught.value.hint

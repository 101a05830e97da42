"""Optimal composition of pure losses, against sums over every single outcome."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise, product

import pytest
from flint import arb, fmpz
from hypothesis import given, settings
from hypothesis import strategies as st

from sordino.accounting import pure
from sordino.accounting.pure import (
    MOST_ALIKE,
    MOST_EPSILON,
    _fewer,
    delta_bounds,
    delta_bounds_response,
    epsilon_bounds,
    epsilon_bounds_response,
)
from sordino.errors import InvalidInput, TooLarge
from sordino.privacy.ball import ball, exact_lower, working

Pures = list[tuple[Fraction, int]]
Pair = tuple[arb, arb]

BITS = 512
TENTH = Fraction(1, 10)


def every_answer(truths: Sequence[arb]) -> list[Pair]:
    """P and Q of each of the 2^k lists of answers,
    where the i-th response tells the truth with probability truths[i].
    """
    outcomes = []
    for answer in product((True, False), repeat=len(truths)):
        p = math.prod(
            (t if said else 1 - t for t, said in zip(truths, answer, strict=True)), start=arb(1)
        )
        q = math.prod(
            (1 - t if said else t for t, said in zip(truths, answer, strict=True)), start=arb(1)
        )
        outcomes.append((p, q))
    return outcomes


def truths_of(pures: Pures) -> list[arb]:
    return [ball(e).exp() / (1 + ball(e).exp()) for e, count in pures for _ in range(count)]


def naive_delta(outcomes: list[Pair], epsilon: Fraction) -> arb:
    return sum(((p - ball(epsilon).exp() * q).max(arb(0)) for p, q in outcomes), arb(0))


def naive_epsilon(outcomes: list[Pair], delta: Fraction) -> arb:
    """log of the largest (P(E) - delta)/Q(E) over the events that take the likeliest outcomes first."""
    best, p_sum, q_sum = arb("-inf"), arb(0), arb(0)
    for p, q in sorted(outcomes, key=lambda o: float((o[0] / o[1]).log()), reverse=True):
        p_sum, q_sum = p_sum + p, q_sum + q
        if p_sum > ball(delta):
            best = best.max(((p_sum - ball(delta)) / q_sum).log())
    return best


def encloses(bounds: tuple[float, float], truth: arb, ulps: int = 8) -> bool:
    """Whether the bounds hold the truth under both readings, with at most a few floats in between."""
    low, high = bounds
    readings = (max(Fraction(low), Fraction(repr(low))), min(Fraction(high), Fraction(repr(high))))
    tight = high - low <= ulps * math.ulp(high) + 1e-35  # near a tie at zero no precision decides
    return readings[0] <= -exact_lower(-truth) and exact_lower(truth) <= readings[1] and tight


TRUTHS = [
    Fraction(t) for t in ("3/4", "1/4", "51/100", "999999/1000000", "1/3", "0.1234567890123456789")
]
PLANS: list[Pures] = [
    [(TENTH, 1)],
    [(TENTH, 7)],
    [(Fraction(1), 3), (Fraction(1, 2), 4)],
    [(Fraction(1, 3), 2), (Fraction(1, 7), 3), (Fraction(2), 1)],
    [(Fraction(i, 10), 1) for i in range(1, 9)],
    [(Fraction(1, 10 + i), 1) for i in range(8)],
    [(Fraction(5), 2), (Fraction(1, 10**9), 3)],
    [(Fraction(0), 3), (Fraction(1, 4), 2)],
    [(Fraction(0.1), 2), (Fraction(0.3), 2), (Fraction(20), 1)],
]
DELTAS = [
    Fraction(d) for d in ("1e-300", "1e-12", "1e-6", "1/1000", "1/20", "1/3", "9/10", "999/1000")
]


@pytest.mark.parametrize("truth", TRUTHS, ids=str)
@pytest.mark.parametrize("count", [1, 2, 3, 8])
def test_equal_responses_are_the_sum_over_all_answers(truth: Fraction, count: int) -> None:
    with working(BITS):
        outcomes = every_answer([ball(truth)] * count)
        step = float(abs(ball(truth / (1 - truth)).log()))
        for j in range(-2 * count - 3, 2 * count + 4):
            epsilon = Fraction(step * j / 2) + Fraction(1, 10**9)
            assert encloses(
                delta_bounds_response(truth, count, epsilon), naive_delta(outcomes, epsilon)
            ), epsilon
        for delta in DELTAS:
            assert encloses(
                epsilon_bounds_response(truth, count, delta), naive_epsilon(outcomes, delta)
            ), delta


@pytest.mark.parametrize("plan", PLANS, ids=str)
def test_pure_losses_are_the_sum_over_all_answers(plan: Pures) -> None:
    """Also where epsilon is exactly a possible loss, and where losses tie."""
    total = sum((e * count for e, count in plan), Fraction(0))
    smallest = min(e for e, _ in plan)
    with working(BITS):
        outcomes = every_answer(truths_of(plan))
        points = [total * j / 12 for j in range(-14, 12)] + [
            total - 2 * smallest,
            total - smallest / 1000,
            Fraction(0),
        ]
        for epsilon in points:
            assert encloses(delta_bounds(plan, epsilon), naive_delta(outcomes, epsilon)), epsilon
        for delta in DELTAS:
            assert encloses(epsilon_bounds(plan, delta), naive_epsilon(outcomes, delta)), delta


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.fractions(0, 3, max_denominator=50), st.integers(1, 3)), min_size=1, max_size=3
    ),
    st.fractions(Fraction(1, 10**6), Fraction(99, 100), max_denominator=10**6),
)  # fmt: skip
def test_random_plans(plan: Pures, delta: Fraction) -> None:
    with working(BITS):
        outcomes = every_answer(truths_of(plan))
        low, high = epsilon_bounds(plan, delta)
        assert encloses((low, high), naive_epsilon(outcomes, delta))
        at = Fraction(random.Random(int(delta * 10**6)).uniform(-5, 5))
        assert encloses(delta_bounds(plan, at), naive_delta(outcomes, at))
        # what is promised is kept, and a hair less would not be
        assert delta_bounds(plan, Fraction(high))[1] <= math.nextafter(float(delta), 1)
        assert (
            delta_bounds(plan, Fraction(low) - abs(Fraction(low)) / 2**40 - Fraction(1, 2**40))[0]
            > delta
        )


@pytest.mark.parametrize(
    ("count", "epsilon"), [(100, "4"), (1000, "20"), (1000, "-1"), (1001, "100"), (10_000, "96.6")]
)
def test_many_equal_losses_by_the_published_formula(count: int, epsilon: str) -> None:
    """Kairouz, Oh, Viswanath (2015), Theorem 3.3, with whole binomial coefficients and every term."""
    target = Fraction(epsilon)
    with working(2048):
        e, factor = ball(TENTH), ball(target).exp()
        total, ways = arb(0), fmpz(1)
        for lies in range(count + 1):
            gap = ((count - lies) * e).exp() - factor * (lies * e).exp()
            if gap > 0:
                total += ways * gap
            ways = ways * (count - lies) // (lies + 1)
        truth = total / (1 + e.exp()) ** count
        assert encloses(delta_bounds([(TENTH, count)], target), truth)


KNOWN = [(10, 0.9993709057), (100, 4.7745675881), (1000, 19.3446714480), (10_000, 96.5718400331)]


@pytest.mark.parametrize(("count", "expected"), KNOWN)
def test_known_values_at_a_tenth(count: int, expected: float) -> None:
    low, high = epsilon_bounds([(TENTH, count)], Fraction(1, 10**6))
    assert low < high == pytest.approx(expected, rel=1e-10)
    assert high - low <= 4 * math.ulp(high)


@pytest.mark.parametrize("bits", [16, 32, 128])
@pytest.mark.parametrize(
    "log_odds", [Fraction(-3), Fraction(-1, 10), Fraction(1, 1000), Fraction(1), Fraction(900)]
)
def test_sums_cut_short_still_hold_the_whole(bits: int, log_odds: Fraction) -> None:
    """The fewer bits, the more terms are left to the geometric series; the ball must hold the full sum all the same."""
    count = 400
    with working(2000):
        odds = ball(log_odds).exp()
        terms = [
            arb(fmpz.bin_uiui(count, lies)) * odds ** (count - lies) / (1 + odds) ** count
            for lies in range(count + 1)
        ]
        sums = [sum(terms[:edge], arb(0)) for edge in range(0, count + 2, 13)]
    for edge, full in zip(range(0, count + 2, 13), sums, strict=True):
        with working(bits):
            short = _fewer(count, edge, ball(log_odds))
        assert short.overlaps(full)
        with working(64):
            assert (short.rad() / full <= 2.0 ** (14 - bits)) or edge == 0


def test_the_geometric_series_bounds_what_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut after four terms, the ball is wide, and must hold the full sum."""
    with working(128):
        full = [_fewer(400, edge, ball(Fraction(1, 5))) for edge in range(10, 180, 17)]
        monkeypatch.setattr(pure, "_negligible", lambda count, top, tilt: max(0, top - 4))
        short = [_fewer(400, edge, ball(Fraction(1, 5))) for edge in range(10, 180, 17)]
    assert all(a.contains(b) and not b.contains(a) for a, b in zip(short, full, strict=True))


@pytest.mark.parametrize("bits", [6, 10, 20, 60])
def test_few_bits_widen_the_ball_but_keep_the_truth(bits: int) -> None:
    """With few bits many outcomes cannot be told from epsilon; they count for what they may be worth."""
    for size in (TENTH, Fraction(5)):
        for j in range(-10, 10):
            epsilon = size * j - TENTH
            with working(BITS):
                truth = naive_delta(every_answer(truths_of([(size, 7)])), epsilon)
            with working(bits):
                assert pure._rational_responses([(size, 7)]).delta(epsilon).overlaps(truth), epsilon


@pytest.mark.parametrize("wrong", [-0.9, -0.01, -1e-12, 1e-12, 0.003, 2.0])
@pytest.mark.parametrize("plan", [PLANS[1], PLANS[3]], ids=str)
def test_a_bad_guess_is_not_trusted(
    plan: Pures, wrong: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    with working(BITS):
        truth = naive_epsilon(every_answer(truths_of(plan)), Fraction(1, 1000))
    monkeypatch.setattr(pure, "_guess", lambda responses, delta: truth + arb(wrong))
    low, high = epsilon_bounds(plan, Fraction(1, 1000))
    assert arb(low) < truth < arb(high)


def test_different_losses_meet_in_the_middle() -> None:
    """A group listed whole, split off, or nearly equal to another gives the same answer."""
    delta = Fraction(1, 10**6)
    whole = epsilon_bounds([(TENTH, 600)], delta)
    near = epsilon_bounds([(TENTH, 300), (TENTH + Fraction(1, 10**17), 300)], delta)
    assert near[0] == pytest.approx(whole[0], rel=1e-13)
    assert near[1] == pytest.approx(whole[1], rel=1e-13)
    assert epsilon_bounds([(TENTH, 200), (TENTH, 400)], delta) == whole


def test_a_response_is_its_own_pure_epsilon() -> None:
    """log(t/(1-t)), rounded up or down, brackets what the truth itself gives."""
    truth, count, delta = Fraction(3, 4), 200, Fraction(1, 10**6)
    with working(200):
        odds = exact_lower(ball(Fraction(3)).log())
    low, high = epsilon_bounds_response(truth, count, delta)
    assert epsilon_bounds([(odds, count)], delta)[0] <= high
    assert epsilon_bounds([(odds + Fraction(1, 2**150), count)], delta)[1] >= low
    assert epsilon_bounds([(odds, count)], delta) == pytest.approx((low, high), rel=1e-15)
    assert epsilon_bounds_response(1 - truth, count, delta) == (low, high)


def test_nothing_is_learnt_from_a_fair_coin() -> None:
    half, tenth = Fraction(1, 2), Fraction(1, 10)
    assert (
        delta_bounds_response(half, 10, Fraction(0))
        == (0.0, 0.0)
        == delta_bounds([(Fraction(0), 10)], Fraction(0))
    )
    assert delta_bounds_response(half, 10, Fraction(-1)) == pytest.approx((1 - math.exp(-1),) * 2)
    assert epsilon_bounds_response(half, 10, tenth) == pytest.approx((math.log(0.9),) * 2)
    assert epsilon_bounds([(Fraction(0), 1)], tenth) == pytest.approx((math.log(0.9),) * 2)


def test_beyond_the_largest_loss_nothing_is_left() -> None:
    assert delta_bounds([(TENTH, 10)], Fraction(1)) == (0.0, 0.0)
    assert 0 < delta_bounds([(TENTH, 10)], 1 - Fraction(1, 10**30))[0] < 1e-30
    assert epsilon_bounds([(TENTH, 10), (Fraction(1, 3), 3)], Fraction(0)) == (2.0, 2.0)
    assert epsilon_bounds([(TENTH, 10)], Fraction(1, 10**300))[1] == 1.0
    low, high = epsilon_bounds_response(Fraction(3, 4), 10, Fraction(0))
    assert low <= 10 * math.log(3) <= high <= low + 4 * math.ulp(low)
    assert delta_bounds_response(Fraction(3, 4), 10, Fraction(11)) == (0.0, 0.0)


def test_exact_ties_are_decided_safely() -> None:
    """delta(0) of one response is 2 t - 1, a rational: no precision can tell it from itself."""
    low, high = epsilon_bounds_response(Fraction(3, 4), 1, Fraction(1, 2))
    assert -1e-25 < low <= 0 <= high < 1e-25
    assert delta_bounds_response(Fraction(3, 4), 1, Fraction(0)) == pytest.approx(
        (0.5, 0.5), abs=1e-15
    )


def test_monotone() -> None:
    for plan in ([(TENTH, 500)], [(TENTH, 30), (Fraction(1, 3), 20)]):
        highs = [epsilon_bounds(plan, delta)[1] for delta in DELTAS]
        assert all(a > b for a, b in pairwise(highs))
        deltas = [delta_bounds(plan, Fraction(j, 2))[1] for j in range(-6, 16)]
        assert all(a > b for a, b in pairwise(deltas))
    counts = [
        epsilon_bounds([(TENTH, count)], Fraction(1, 10**6))[1]
        for count in (1, 2, 3, 10, 99, 100, 101, 5000)
    ]
    mixes = [[(Fraction(e, 100), 50), (TENTH, 9)] for e in (1, 2, 3, 9, 10, 11, 50, 300)]
    sizes = [epsilon_bounds(mix, Fraction(1, 10**6))[1] for mix in mixes]
    assert all(a < b for series in (counts, sizes) for a, b in pairwise(series))


def test_order_and_grouping_do_not_matter() -> None:
    plan = [(TENTH, 4), (Fraction(1, 3), 2), (Fraction(2), 1)]
    singles = [(e, 1) for e, count in reversed(plan) for _ in range(count)]
    for delta in DELTAS:
        assert epsilon_bounds(plan, delta) == epsilon_bounds(singles, delta)
    assert delta_bounds(plan, Fraction(1)) == delta_bounds(singles, Fraction(1))


@pytest.mark.parametrize("epsilon", ["1e-30", "1e-12", "1e6", "1e9"])
@pytest.mark.parametrize("count", [1, 100, 10**6])
def test_extreme_losses_stay_tight(epsilon: str, count: int) -> None:
    for delta in (Fraction(1, 10**40), Fraction(1, 10**6), Fraction(1, 2)):
        low, high = epsilon_bounds([(Fraction(epsilon), count)], delta)
        assert high - low <= 8 * math.ulp(high)
        assert high <= float(Fraction(epsilon) * count) * (1 + 1e-15)


def test_too_large_is_refused_before_anything_is_computed() -> None:
    with pytest.raises(TooLarge, match="different epsilons"):
        epsilon_bounds(
            [(Fraction(1, p), 30) for p in (101, 103, 107, 109, 113, 127, 131)], Fraction(1, 10**6)
        )
    with pytest.raises(TooLarge, match="equal losses"):
        delta_bounds([(TENTH, MOST_ALIKE + 1)], Fraction(1))
    with pytest.raises(TooLarge, match="at most 1000000000"):
        delta_bounds([(Fraction(MOST_EPSILON + 1), 1)], Fraction(1))


def test_many_commensurate_epsilons_are_not_too_large() -> None:
    """A hundred different epsilons, but few different sums."""
    low, high = epsilon_bounds([(Fraction(i, 100), 1) for i in range(1, 101)], Fraction(1, 10**6))
    assert low < high == pytest.approx(38.353445375135486, rel=1e-13)


@pytest.mark.parametrize(("call", "words"), [
    (lambda: delta_bounds([], Fraction(1)), ("no losses", "at least one loss")),
    (lambda: delta_bounds([(Fraction(-1), 1)], Fraction(1)), ("epsilon=-1", "at least 0")),
    (lambda: delta_bounds([(0.1, 1)], Fraction(1)), ("epsilon=0.1", "Fraction")),  # type: ignore[list-item]
    (lambda: delta_bounds([(TENTH, 1)], 0.5), ("epsilon=0.5", "Fraction")),  # type: ignore[arg-type]
    (lambda: epsilon_bounds([(TENTH, 1)], 1e-6), ("delta=1e-06", "Fraction")),  # type: ignore[arg-type]
    (lambda: epsilon_bounds([(TENTH, 1)], Fraction(1)), ("delta=1", "less than 1")),
    (lambda: epsilon_bounds([(TENTH, 1)], Fraction(-1, 9)), ("delta=-1/9", "at least 0")),
    (lambda: epsilon_bounds([(TENTH, 0)], Fraction(1, 9)), ("count=0", "at least once")),
    (lambda: epsilon_bounds([(TENTH, -3)], Fraction(1, 9)), ("count=-3", "at least once")),
    (lambda: epsilon_bounds([(TENTH, True)], Fraction(1, 9)), ("count=True", "whole number")),
    (lambda: epsilon_bounds([(TENTH, 2.0)], Fraction(1, 9)), ("count=2.0", "whole number")),  # type: ignore[list-item]
    (lambda: delta_bounds_response(Fraction(1), 1, Fraction(1)), ("truth=1", "strictly between 0 and 1")),
    (lambda: delta_bounds_response(Fraction(0), 1, Fraction(1)), ("truth=0", "strictly between 0 and 1")),
    (lambda: delta_bounds_response(0.75, 1, Fraction(1)), ("truth=0.75", "Fraction")),  # type: ignore[arg-type]
    (lambda: epsilon_bounds_response(Fraction(3, 4), 0, Fraction(1, 9)), ("count=0", "at least once")),
])  # fmt: skip
def test_bad_input_is_named(call: object, words: tuple[str, ...]) -> None:
    assert callable(call)
    with pytest.raises(InvalidInput) as caught:
        call()
    assert all(word in str(caught.value) for word in words)

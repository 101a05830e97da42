"""Certified ends of probabilities, against exact rational tails, and against SciPy's where runs are many."""

from __future__ import annotations

import math
from fractions import Fraction
from math import comb

import numpy as np
import pytest
from flint import arb, ctx
from scipy.special import bdtr, bdtrc

from sordino.audit.sampled.bounds import (
    delta_lower,
    epsilon_lower,
    least_probability,
    most_probability,
    predicted,
    predicted_jointly,
    ratio_lower,
    uniform_error,
)

ALPHAS = (0.5, 0.05, 0.0005, 1e-12)


def at_least(runs: int, hits: int, p: Fraction) -> Fraction:
    """P[at least `hits` of `runs`], exactly."""
    return sum(
        (comb(runs, j) * p**j * (1 - p) ** (runs - j) for j in range(hits, runs + 1)), Fraction(0)
    )


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("runs", [1, 2, 7, 30])
def test_ends_are_safe_and_tight(runs: int, alpha: float) -> None:
    for hits in range(runs + 1):
        low, high = (Fraction(f(hits, runs, alpha)) for f in (least_probability, most_probability))
        assert at_least(runs, hits, low) <= Fraction(alpha) or hits == low == 0
        assert at_least(runs, runs - hits, 1 - high) <= Fraction(alpha) or (
            hits == runs and high == 1
        )
        if hits:
            assert at_least(runs, hits, low * Fraction(1.000001)) > Fraction(alpha)
        if hits < runs:
            wider = 1 - high * Fraction(0.999999)
            assert at_least(runs, runs - hits, wider) > Fraction(alpha)


@pytest.mark.parametrize("runs", [10, 23])
def test_coverage_is_exact_for_every_parameter(runs: int) -> None:
    """The chance that an end is on the wrong side of the truth, summed exactly over all outcomes."""
    alpha = Fraction(1, 20)
    ends = [
        (least_probability(k, runs, 0.05), most_probability(k, runs, 0.05)) for k in range(runs + 1)
    ]
    for p in (Fraction(i, 97) for i in range(1, 97)):
        law = [comb(runs, k) * p**k * (1 - p) ** (runs - k) for k in range(runs + 1)]
        assert sum(mass for mass, (low, _) in zip(law, ends, strict=True) if low > p) <= alpha
        assert sum(mass for mass, (_, high) in zip(law, ends, strict=True) if high < p) <= alpha


@pytest.mark.parametrize("alpha", [0.05, 1e-9])
@pytest.mark.parametrize(
    ("hits", "runs"),
    [
        (7, 10**8),
        (5 * 10**7, 10**8),
        (123_456, 10**6),
        (10**8 - 5, 10**8),
        (1, 10**8),
        (4_500_000, 9_000_000),
    ],
)
def test_ends_of_many_runs(hits: int, runs: int, alpha: float) -> None:
    before = ctx.prec
    ctx.prec = 320
    try:
        level = arb(alpha)
        low, high = (arb(f(hits, runs, alpha)) for f in (least_probability, most_probability))
        tail = low.beta_lower(arb(hits), arb(runs - hits + 1), 1)
        other = (1 - high).beta_lower(arb(runs - hits), arb(hits + 1), 1)
        assert tail <= level
        assert tail >= level * (1 - 1e-3)
        assert other <= level
        assert other >= level * (1 - 1e-3)
        assert bdtrc(hits - 1, runs, float(low)) == pytest.approx(alpha, rel=1e-3)
        assert bdtr(hits, runs, 1 - float(1 - high)) == pytest.approx(alpha, rel=1e-3)
    finally:
        ctx.prec = before


def test_no_hits_and_all_hits() -> None:
    assert least_probability(0, 100, 0.01) == 0
    assert most_probability(100, 100, 0.01) == 1
    assert most_probability(0, 100, 0.01) == pytest.approx(1 - 0.01**0.01)
    assert least_probability(100, 100, 0.01) == pytest.approx(0.01**0.01)


def test_epsilon_and_delta_round_down() -> None:
    assert epsilon_lower(0.5, 0.25, Fraction(0)) <= math.log(2)
    assert epsilon_lower(0.5, 0.25, Fraction(0)) == pytest.approx(math.log(2), abs=1e-15)
    assert epsilon_lower(0.5, 0.25, Fraction(1, 4)) == 0
    assert epsilon_lower(0.1, 0.2, Fraction(0)) == 0
    assert epsilon_lower(0.0, 0.2, Fraction(0)) == 0
    assert epsilon_lower(0.5, 0.1, Fraction(1)) == 0
    assert delta_lower(0.5, 0.25, Fraction(0)) == 0.25
    assert delta_lower(0.5, 0.25, Fraction(1)) == 0
    assert delta_lower(0.5, 0.0, Fraction(10**6)) == 0.5
    assert delta_lower(0.5, 0.1, Fraction(10**300)) == 0


def test_a_bound_that_holds_for_all_thresholds() -> None:
    assert uniform_error(10**6, 0.05) == pytest.approx(math.sqrt(math.log(20) / 2e6))
    assert uniform_error(10**6, 0.05) >= math.sqrt(math.log(20) / 2e6)
    assert uniform_error(1, 1e-9) == 1


def test_what_is_predicted_is_near_what_is_certified() -> None:
    seen = final = (10**6, 10**6)
    for p, q in ((0.5, 0.25), (0.01, 0.001), (0.9, 0.8), (1e-4, 0)):
        guess = float(predicted(p * 1e6, q * 1e6, seen, final, 0.001, 0.0, 0.0))
        low = least_probability(round(p * 10**6), 10**6, 0.0005)
        high = most_probability(round(q * 10**6), 10**6, 0.0005)
        assert guess == pytest.approx(epsilon_lower(low, high, Fraction(0)), rel=0.15, abs=1e-3)


def test_luck_with_few_runs_is_not_promising() -> None:
    few = predicted(
        np.array([5.0, 50_000.0]),
        np.array([0.0, 40_000.0]),
        (10**5, 10**5),
        (10**6, 10**6),
        0.001,
        0.0,
        2.0,
    )
    assert few[0] < few[1]


@pytest.mark.parametrize("alpha", [Fraction(1, 5), Fraction(1, 20)])
def test_the_ratio_of_pairs_covers_exactly(alpha: Fraction) -> None:
    """The chance that the bound is above the true ratio, summed exactly over all outcomes of ten pairs."""
    runs = 10
    outcomes = [
        (a, b, c)
        for a in range(runs + 1)
        for b in range(runs + 1 - a)
        for c in range(runs + 1 - a - b)
    ]
    ends = {(a, b, c): ratio_lower(a, b, a + c, runs, float(alpha)) for a, b, c in outcomes}
    assert max(ends.values()) > 1
    for i, j in ((1, 1), (2, 1), (1, 2), (5, 5), (9, 3), (11, 1), (12, 12), (12, 6), (6, 3)):
        p, q = Fraction(i, 13), Fraction(j, 13)
        cells = p * (1 - q), q * (1 - p), p * q, (1 - p) * (1 - q)
        wrong = Fraction(0)
        for (a, b, c), end in ends.items():
            if end > p / q:
                ways = comb(runs, a) * comb(runs - a, b) * comb(runs - a - b, c)
                wrong += (
                    ways
                    * cells[0] ** a
                    * cells[1] ** b
                    * cells[2] ** c
                    * cells[3] ** (runs - a - b - c)
                )
        assert wrong <= alpha, (p, q)


@pytest.mark.parametrize(("p", "q"), [(0.02, 0.018), (0.5, 0.45), (0.001, 0.0005)])
def test_pairs_say_more_than_two_ends_and_as_much_as_predicted(p: float, q: float) -> None:
    n, alpha = 8_000_000, 0.1
    here, there = round(n * p * (1 - q)), round(n * q * (1 - p))
    found = math.log(ratio_lower(here, there, round(n * p), n, alpha))
    ends = epsilon_lower(
        least_probability(round(n * p), n, alpha / 2),
        most_probability(round(n * q), n, alpha / 2),
        Fraction(0),
    )
    expected = float(predicted_jointly(n * p, n * q, (n, n), n, alpha, 0.0))
    assert ends < found < math.log(p / q)
    assert abs(found - expected) < 0.02 * (math.log(p / q) - found)
    deviation = math.sqrt(1 / here + 1 / there)
    assert found > math.log(p / q) - 1.7 * deviation


def test_pairs_that_show_nothing() -> None:
    assert ratio_lower(0, 0, 0, 10, 0.1) == 0
    assert ratio_lower(3, 5, 9, 100, 0.1) == 0
    assert ratio_lower(10, 0, 10, 10, 0.1) <= 1 / (1 - Fraction(99, 100))

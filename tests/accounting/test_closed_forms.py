"""Every closed form against the truth where it can be enumerated, and against its formula written out once more."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

from sordino import FiniteLoss, GaussianLoss, LaplaceLoss, Loss, RandomizedResponse
from sordino.accounting import closed_forms, pure
from sordino.accounting.closed_forms import (
    METHODS,
    advanced,
    basic,
    basic_split,
    gdp,
    optimal_pure,
    rdp,
    zcdp,
)
from sordino.errors import InvalidInput
from sordino.privacy.ball import ball, exact_lower, working

Plan = list[tuple[Loss, int]]

COUNTS = (10, 100, 1000, 10_000)
LAPLACE = LaplaceLoss(Fraction(1, 10))
GAUSS = GaussianLoss(Fraction(1, 10))
LOPSIDED = FiniteLoss((Fraction(1, 2), Fraction(1, 2)), (Fraction(1, 3), Fraction(2, 3)))
TELLTALE = FiniteLoss(
    (Fraction(1, 2), Fraction(1, 2), Fraction(0)), (Fraction(3, 8), Fraction(1, 2), Fraction(1, 8))
)
BLIND = FiniteLoss((Fraction(1, 2), Fraction(1, 2)), (Fraction(1, 2), Fraction(1, 2)))

every = pytest.mark.parametrize("method", METHODS.values(), ids=METHODS.keys())


def response(truth: Fraction) -> FiniteLoss:
    return FiniteLoss((truth, 1 - truth), (1 - truth, truth))


def reading(value: float) -> Fraction:
    return min(Fraction(value), Fraction(repr(value)))


def outcomes(plan: Plan) -> list[tuple[Fraction, Fraction]]:
    """P and Q of every list of answers, exactly."""
    sides = [
        list(zip(loss.p, loss.q, strict=True))
        for loss, count in plan
        for _ in range(count)
        if isinstance(loss, FiniteLoss)
    ]
    one = Fraction(1)
    return [
        (math.prod((p for p, _ in answer), start=one), math.prod((q for _, q in answer), start=one))
        for answer in product(*sides)
    ]


def true_epsilon(plan: Plan, delta: Fraction) -> arb:
    """log of the largest (P(E) - delta)/Q(E) over events of the likeliest outcomes and over both directions."""
    best = Fraction(0)
    for swap in (False, True):
        pairs = [(q, p) if swap else (p, q) for p, q in outcomes(plan)]
        p_sum, q_sum = Fraction(0), Fraction(0)
        for p, q in sorted(pairs, key=lambda pair: pair[0] / pair[1], reverse=True):
            p_sum, q_sum = p_sum + p, q_sum + q
            best = max(best, (p_sum - delta) / q_sum)
    with working(256):
        return ball(best).log()


truths = st.fractions(Fraction(1, 50), Fraction(49, 50), max_denominator=50)
small_deltas = st.fractions(Fraction(1, 10**9), Fraction(99, 100), max_denominator=10**9).filter(
    lambda d: d > 0
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(truths, st.integers(1, 3)), min_size=1, max_size=3), small_deltas)
def test_every_bound_is_above_the_truth_and_one_is_the_truth(
    plan: list[tuple[Fraction, int]], delta: Fraction
) -> None:
    """Responses with any truths; the optimal bound from pure epsilons is exact for them."""
    parts: Plan = [(response(t), count) for t, count in plan]
    truth = true_epsilon(parts, delta)
    for name, method in METHODS.items():
        assert reading(method(parts, delta)) >= exact_lower(truth), name
    assert optimal_pure(parts, delta) == pytest.approx(float(truth), rel=1e-13, abs=1e-15)


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.integers(1, 9), min_size=3, max_size=3),
    st.lists(st.integers(1, 9), min_size=3, max_size=3),
    small_deltas,
)
def test_lopsided_pairs_are_bounded_too(p: list[int], q: list[int], delta: Fraction) -> None:
    loss = FiniteLoss(tuple(Fraction(x, sum(p)) for x in p), tuple(Fraction(x, sum(q)) for x in q))
    parts: Plan = [(loss, 3), (LOPSIDED, 1)]
    truth = true_epsilon(parts, delta)
    for name, method in METHODS.items():
        assert reading(method(parts, delta)) >= exact_lower(truth), name


@pytest.mark.parametrize("count", COUNTS)
def test_laplace_bounds_are_above_what_thresholding_shows(count: int) -> None:
    """Is the output above the middle? That is a randomized response, and post-processing: the truth is no smaller."""
    truth = Fraction(1 - math.exp(-0.05) / 2) - Fraction(1, 10**12)
    floor = pure.epsilon_bounds_response(truth, count, Fraction(1, 10**6))[0]
    bounds = {name: method([(LAPLACE, count)], 1e-6) for name, method in METHODS.items()}
    assert all(value > floor for value in bounds.values()), bounds
    assert min(bounds.values()) < 2.1 * floor


GAUSSIAN_TRUTH = dict(zip(COUNTS, (1.367571, 4.886554, 19.423656, 96.717272), strict=True))


@pytest.mark.parametrize("count", COUNTS)
def test_gaussians(count: int) -> None:
    parts: Plan = [(GAUSS, count)]
    truth = GAUSSIAN_TRUTH[count]
    assert gdp(parts, 1e-6) == pytest.approx(truth, abs=1e-6)
    assert zcdp(parts, 1e-6) == pytest.approx(rdp(parts, 1e-6), rel=1e-12)
    assert truth < zcdp(parts, 1e-6) < 1.08 * truth
    assert basic_split(parts, 1e-6) > truth
    assert [method(parts, 1e-6) for method in (basic, advanced, optimal_pure)] == [math.inf] * 3


def converted(divergence: Callable[[Any], Any], delta: float) -> float:
    """The best order on a dense grid, in floats."""
    order = np.logspace(-6, 9, 300_001)
    alpha = 1 + order
    return float(
        np.min(
            divergence(alpha) + np.log(order / alpha) - (math.log(delta) + np.log(alpha)) / order
        )
    )


def laplace_rdp(shift: float) -> Callable[[Any], Any]:
    def divergence(alpha: Any) -> Any:
        terms = (
            np.log(alpha / (2 * alpha - 1)) + (alpha - 1) * shift,
            np.log((alpha - 1) / (2 * alpha - 1)) - alpha * shift,
        )
        return np.logaddexp(*terms) / (alpha - 1)

    return divergence


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("delta", [1e-12, 1e-6, 0.01, 0.3])
def test_conversions_find_the_best_order(count: int, delta: float) -> None:
    rho = 0.1 + math.exp(-0.1) - 1
    parts: Plan = [(LAPLACE, count)]
    assert zcdp(parts, delta) == pytest.approx(
        converted(lambda a: count * rho * a, delta), rel=1e-7
    )
    expected = min(count * 0.1, converted(lambda a: count * laplace_rdp(0.1)(a), delta))
    assert rdp(parts, delta) == pytest.approx(expected, rel=1e-6)
    mixed: Plan = [(LAPLACE, count), (GaussianLoss(Fraction(1, 5)), 7)]
    assert zcdp(mixed, delta) == pytest.approx(
        converted(lambda a: (count * rho + 0.14) * a, delta), rel=1e-7
    )
    assert rdp(mixed, delta) == pytest.approx(
        converted(lambda a: count * laplace_rdp(0.1)(a) + 0.14 * a, delta), rel=1e-6
    )


@pytest.mark.parametrize("shift", ["1e-6", "1e-3", "1", "30", "1000"])
def test_the_best_order_may_be_far_from_two(shift: str) -> None:
    rho = float(shift) ** 2 / 2
    assert zcdp([(GaussianLoss(Fraction(shift)), 1)], 1e-6) == pytest.approx(
        converted(lambda a: rho * a, 1e-6), rel=1e-7
    )


ZCDP_VALUES = list(
    zip(COUNTS, (1.4456064149, 5.1248599602, 20.1265371409, 98.2156046772), strict=True)
)


@pytest.mark.parametrize(("count", "expected"), ZCDP_VALUES)
def test_known_values_of_zcdp(count: int, expected: float) -> None:
    assert zcdp([(LAPLACE, count)], 1e-6) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("order", ["1.000001", "1.5", "2", "7", "1000", "1e9"])
def test_no_order_does_better_by_much(order: str) -> None:
    """The certified result is at most the formula at any other order, up to what the search leaves."""
    parts: Plan = [(LAPLACE, 50), (LOPSIDED, 5), (GAUSS, 10)]
    a, delta = float(order), 1e-6
    at_order = sum(count * loss.rdp(Fraction(order)) for loss, count in parts)
    assert rdp(parts, delta) <= at_order + math.log1p(-1 / a) - math.log(delta * a) / (a - 1) + 1e-9


@pytest.mark.parametrize("count", COUNTS)
def test_advanced_is_the_published_formula(count: int) -> None:
    for parts in ([(LAPLACE, count)], [(LAPLACE, count), (LaplaceLoss(Fraction(1, 2)), 3)]):
        for delta in (1e-9, 1e-6, 0.1):
            shifts = [float(loss.shift) for loss, times in parts for _ in range(times)]
            drift = sum((math.exp(e) - 1) * e / (math.exp(e) + 1) for e in shifts)
            squares = sum(e * e for e in shifts)
            second = drift + math.sqrt(2 * squares * math.log(math.e + math.sqrt(squares) / delta))
            third = drift + math.sqrt(2 * squares * math.log(1 / delta))
            plan: Plan = [*parts]
            assert advanced(plan, delta) == pytest.approx(
                min(sum(shifts), second, third), rel=1e-12
            )
            assert optimal_pure(plan, delta) <= advanced(plan, delta) <= basic(plan, delta)


def test_basic_sums_are_exact() -> None:
    assert basic([(LAPLACE, 10)]) == 1.0
    assert basic([(LAPLACE, 3), (LaplaceLoss(Fraction(1, 4)), 4)], 0.5) == 1.3
    assert basic([(LAPLACE, 3), (GAUSS, 1)]) == math.inf
    assert basic_split([(GAUSS, 4)], 1e-6) == pytest.approx(
        4 * GAUSS.epsilon(Fraction(1, 4 * 10**6))
    )
    assert basic_split([(LAPLACE, 2), (GAUSS, 2)], 0) == math.inf


def test_gdp_adds_squares() -> None:
    """3 and 4 are 5, with no rounding on the way; Laplace noise counts by its envelope."""
    assert gdp(
        [(GaussianLoss(Fraction(3)), 1), (GaussianLoss(Fraction(4)), 1)], 1e-6
    ) == GaussianLoss(Fraction(5)).epsilon(1e-6)
    assert gdp([(GaussianLoss(Fraction(1, 10)), 25)], 1e-9) == GaussianLoss(Fraction(1, 2)).epsilon(
        1e-9
    )
    envelope = GaussianLoss(reading(LAPLACE.mu()))
    assert gdp([(LAPLACE, 4)], 1e-6) == pytest.approx(
        GaussianLoss(2 * envelope.shift).epsilon(1e-6), rel=1e-14
    )


MIXED: Plan = [(LAPLACE, 4), (RandomizedResponse(truth=Fraction(3, 4)).loss(), 2), (LOPSIDED, 3)]


@every
def test_singles_and_order_do_not_matter(method: Callable[[Plan, Any], float]) -> None:
    singles: Plan = [(loss, 1) for loss, count in reversed(MIXED) for _ in range(count)]
    assert method(MIXED, 1e-6) == method(singles, 1e-6) == method(MIXED[::-1], Fraction(1, 10**6))
    assert method([(GAUSS, 9)], 1e-6) == method([(GAUSS, 1)] * 9, 1e-6)


@every
def test_monotone(method: Callable[[Plan, Any], float]) -> None:
    by_delta = [method(MIXED, delta) for delta in (1e-12, 1e-6, 1e-3, 0.1, 0.5, 0.99)]
    by_count = [
        method([(LAPLACE, count), (LOPSIDED, 2)], 1e-6) for count in (1, 2, 5, 50, 51, 5000)
    ]
    by_size = [
        method([(LaplaceLoss(Fraction(shift, 100)), 30), (LOPSIDED, 2)], 1e-6)
        for shift in (1, 2, 10, 50, 300)
    ]
    assert all(a >= b for a, b in pairwise(by_delta))
    assert all(a < b for series in (by_count, by_size) for a, b in pairwise(series))


@every
def test_a_float_delta_is_kept_under_both_readings(method: Callable[[Plan, Any], float]) -> None:
    """0.1 is a hair above 1/10, 0.3 a hair below 3/10: the smaller counts."""
    for delta, smaller in ((0.1, Fraction(1, 10)), (0.3, Fraction(0.3))):
        assert method(MIXED, delta) == method(MIXED, smaller)


def test_without_delta_only_pure_privacy_is_left() -> None:
    for method in (basic, basic_split, advanced, optimal_pure, rdp):
        assert method([(LAPLACE, 30)], 0) == 3.0
        assert method([(GAUSS, 30)], 0) == math.inf
    assert zcdp([(LAPLACE, 30)], 0) == gdp([(LAPLACE, 30)], 0) == math.inf


@every
def test_a_release_that_may_give_all_away_has_no_bound(
    method: Callable[[Plan, Any], float],
) -> None:
    assert method([(LAPLACE, 1), (TELLTALE, 2)], 1e-6) == math.inf


@every
def test_a_release_that_shows_nothing_costs_nothing(method: Callable[[Plan, Any], float]) -> None:
    """The neighbours look the same: epsilon is at most 0, and log(1 - delta) at best."""
    value = method([(BLIND, 5)], 0.25)
    assert math.log(0.75) <= value <= 0
    assert method in (basic, basic_split, advanced) or value == pytest.approx(
        math.log(0.75), rel=1e-9
    )
    assert method([(BLIND, 5), (LAPLACE, 2)], 1e-6) == pytest.approx(
        method([(LAPLACE, 2)], 1e-6), rel=1e-5
    )


def test_too_many_different_epsilons_fall_back_to_the_advanced_bound() -> None:
    parts: Plan = [(LaplaceLoss(Fraction(1, p)), 30) for p in (101, 103, 107, 109, 113, 127, 131)]
    assert optimal_pure(parts, 1e-6) == advanced(parts, 1e-6) < basic(parts)
    huge: Plan = [(LaplaceLoss(Fraction(10**12)), 1)]
    assert optimal_pure(huge, 1e-6) == 10.0**12


def test_methods_are_listed_in_order() -> None:
    assert list(METHODS) == [
        "basic",
        "basic_split",
        "advanced",
        "optimal_pure",
        "zcdp",
        "rdp",
        "gdp",
    ]
    assert all(getattr(closed_forms, name) is method for name, method in METHODS.items())


BAD: list[tuple[Any, Any, tuple[str, ...]]] = [
    ([(LAPLACE, 1)], -1e-9, ("delta=-1e-09", "at least 0", "1e-6")),
    ([(LAPLACE, 1)], 1, ("delta=1", "less than 1", "1e-6")),
    ([(LAPLACE, 1)], 1.5, ("delta=1.5", "less than 1")),
    ([(LAPLACE, 1)], math.nan, ("delta=nan", "finite")),
    ([(LAPLACE, 1)], math.inf, ("delta=inf", "finite")),
    ([(LAPLACE, 1)], True, ("delta=True", "number")),
    ([(LAPLACE, 1)], "1e-6", ("delta='1e-6'", "number")),
    ([(LAPLACE, 0)], 1e-6, ("count=0", "at least once", "leave the loss out")),
    ([(LAPLACE, 2), (GAUSS, -1)], 1e-6, ("count=-1", "at least once")),
    ([(LAPLACE, True)], 1e-6, ("count=True", "whole number")),
    ([(LAPLACE, 1.0)], 1e-6, ("count=1.0", "whole number")),
    ([(LAPLACE, math.nan)], 1e-6, ("count=nan", "whole number")),
    ([], 1e-6, ("empty plan", "at least one loss", "[(loss, 10)]")),
    ([LAPLACE], 1e-6, ("LaplaceLoss", "a loss and a count", "[(loss, 10)]")),
    ([(0.1, 3)], 1e-6, ("(0.1, 3)", "a loss and a count")),
    ([(LAPLACE, 3, 3)], 1e-6, ("a loss and a count",)),
    (LAPLACE, 1e-6, ("parts=LaplaceLoss", "sequence of (loss, count)")),
    ("plan", 1e-6, ("parts='plan'", "sequence of (loss, count)")),
    (None, 1e-6, ("parts=None", "sequence of (loss, count)")),
]


@every
@pytest.mark.parametrize(("parts", "delta", "words"), BAD, ids=lambda x: str(x)[:40])
def test_bad_input_is_named(
    method: Callable[[Any, Any], float], parts: Any, delta: Any, words: tuple[str, ...]
) -> None:
    with pytest.raises(InvalidInput) as caught:
        method(parts, delta)
    assert all(word in str(caught.value) for word in words), caught.value


@every
def test_numpy_integers_count(method: Callable[[Any, Any], float]) -> None:
    assert method([(LAPLACE, np.int64(3))], np.float64(1e-6)) == method([(LAPLACE, 3)], 1e-6)

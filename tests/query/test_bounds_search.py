"""Searches: what their mechanisms are told sums to the price, whatever the data are; and what they find is useful."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import sordino as so
from sordino.mechanisms.interval_draw import IntervalDraw
from sordino.mechanisms.laplace import Laplace
from sordino.mechanisms.observer import watching
from sordino.query.bounds_search import MOST_COUNT, CountSearch, Found, NumberSearch, Price, Search
from sordino.query.three_digits import LARGEST, code_of, number_of
from tape import Tape, replay

PRICE = Price(Fraction(1, 2), Fraction(1, 5), Fraction(1, 10))
SEARCHES: list[Search] = [
    NumberSearch("x"),
    NumberSearch("x", whole=True),
    NumberSearch("x", lower=Fraction(0)),
    NumberSearch("x", summed=True),
    NumberSearch("x", lower=Fraction(-3), upper=Fraction(7, 2), step=Fraction(1, 4)),
    CountSearch("n"),
]


def cells(values: list[float]) -> tuple[Any, Any]:
    return np.unique(
        np.array([code_of(Fraction(value)) for value in values], np.int64), return_counts=True
    )


def watched(
    search: Search, places: Any, weights: Any, moved: int, outputs: list[Any] | None = None
) -> list[tuple[Any, Any]]:
    """The mechanisms that are called, with their outputs; given some, the calls return these."""
    calls: list[tuple[Any, Any]] = []

    def watcher(mechanism: Any, operation: str, value: Any, draw: Callable[[], Any]) -> Any:
        output = draw() if outputs is None else outputs[len(calls)]
        calls.append((mechanism, output))
        return output

    with watching(watcher):
        search.found(places, weights, PRICE, moved, 1)
    return calls


@pytest.mark.parametrize("search", SEARCHES, ids=str)
@pytest.mark.parametrize("moved", [1, 2, 2**17])
def test_all_draws_and_counts_cost_the_price_together(search: Search, moved: int) -> None:
    calls = watched(search, *cells([1, 5, 700]), moved)
    draws = [m for m, _ in calls if isinstance(m, IntervalDraw)]
    noises = [m for m, _ in calls if isinstance(m, Laplace)]
    assert len(draws) + len(noises) == len(calls)
    assert sum(draw.whole_rate * moved for draw in draws) == PRICE.draws
    assert sum(moved / noise.scale for noise in noises) == PRICE.counts
    assert PRICE.draws + PRICE.counts == PRICE.epsilon


@pytest.mark.parametrize("search", SEARCHES, ids=str)
def test_mechanisms_depend_on_data_through_earlier_outputs_only(search: Search) -> None:
    """Record on D, replay the same outputs on another D': each mechanism is told the same candidates and penalties."""
    rng = random.Random(4)
    for _ in range(5):
        one, other = (
            cells([rng.lognormvariate(2, 3) * rng.choice((-1, 1)) for _ in range(50)])
            for _ in range(2)
        )
        calls = watched(search, *one, 3)
        again = watched(search, *other, 3, [output for _, output in calls])
        assert len(again) == len(calls)
        for (ours, _), (theirs, _) in zip(calls, again, strict=True):
            assert type(ours) is type(theirs)
            assert ours == theirs


def test_the_counted_parts_are_all_there_is_once() -> None:
    """The three numbers that get Laplace noise are a partition:
    their sum is the whole weight, and none is counted twice.
    """
    seen: list[Any] = []

    def watcher(mechanism: Any, operation: str, value: Any, draw: Callable[[], Any]) -> Any:
        if isinstance(mechanism, Laplace):
            seen.append(np.asarray(value))
        return draw()

    places, weights = cells([float(i) for i in range(-40, 900)])
    for search in SEARCHES[:3]:
        with watching(watcher):
            search.found(places, weights, PRICE, 1, 1)
    assert all(parts.sum() == 940 and (parts >= 0).all() and len(parts) == 3 for parts in seen)
    assert len(seen) == 3


def found(search: Search, known: tuple[Any, Any], price: Price = PRICE) -> Found:
    return search.found(*known, price, 1, 1)


@pytest.mark.parametrize(
    ("values", "low", "high"),
    [
        (lambda r: r.uniform(0, 100), (-60, 10), (90, 200)),
        (lambda r: r.gauss(-50, 10), (-160, -65), (-40, 60)),
        (lambda r: r.lognormvariate(4, 1), (-1500, 10), (200, 4000)),
        (lambda r: r.expovariate(1) / 1000, (-1, 1), (0.002, 1)),
    ],
)
def test_what_is_found_holds_most_and_is_not_far_too_wide(values: Any, low: Any, high: Any) -> None:
    rng = random.Random(7)
    data = cells([values(rng) for _ in range(5000)])
    with replay(Tape(11)):
        for _ in range(20):
            bounds = found(NumberSearch("x"), data)
            assert low[0] <= bounds.lower <= low[1]
            assert high[0] <= bounds.upper <= high[1]
            assert bounds.inside > 4000


def test_whole_numbers_have_whole_bounds_and_known_ends_are_kept() -> None:
    data = cells([float(i % 40) for i in range(4000)])
    with replay(Tape(12)):
        for _ in range(10):
            whole = found(NumberSearch("x", whole=True), data)
            assert whole.lower.denominator == whole.upper.denominator == 1
            known = found(NumberSearch("x", lower=Fraction(0), upper=Fraction(50)), data)
            assert 0 <= known.lower < known.upper <= 50


def test_nothing_at_all_and_far_beyond_are_found_without_failing() -> None:
    empty = np.zeros(0, np.int64)
    for search in SEARCHES:
        assert search.found(empty, empty, PRICE, 1, 1).lower < LARGEST
        bounds = search.found(
            np.array([-(10**9), 10**9]), np.array([2**55, 2**55]), PRICE, 2**17, 2**16
        )
        assert bounds.lower < bounds.upper


def test_counts_are_round_numbers_up_to_a_million() -> None:
    points = CountSearch("n").points
    assert points[0] == 1
    assert points[-1] == MOST_COUNT
    assert all(1 < b / a <= 2 for a, b in pairwise(points))
    with replay(Tape(13)):
        many = [
            CountSearch("n").found(
                np.array([1, 2, 3, 90]), np.array([900, 900, 900, 2]), PRICE, 1, 1
            )
            for _ in range(30)
        ]
    assert sum(bounds.upper in (3, 4) for bounds in many) > 20


def test_a_smaller_later_epsilon_allows_more_to_be_cut() -> None:
    """The bound follows the error of the later question: noise that is larger anyway forgives a longer cut-off tail."""
    rng = random.Random(8)
    data = cells([rng.paretovariate(1.2) for _ in range(20_000)])
    rich = Price(Fraction(2), Fraction(1, 5), Fraction(10))
    poor = Price(Fraction(2), Fraction(1, 5), Fraction(1, 100))
    with replay(Tape(14)):
        wide, narrow = (
            [float(found(NumberSearch("x"), data, p).upper) for _ in range(15)]
            for p in (rich, poor)
        )
    assert np.median(narrow) < np.median(wide) / 2


def test_the_fine_points_are_numbers_of_three_digits() -> None:
    search = NumberSearch("x")
    points = search.coarse
    for low, high in zip(points[:-3:5], points[3::5], strict=False):
        for point in search.fine(low, high):
            if abs(point) >= Fraction(1, 10**6):
                assert number_of(code_of(point)) == point
    assert math.isfinite(float(points[-1]))


def test_the_auditor_agrees() -> None:
    """Replayed on neighbours, all calls of a search together cost what it claims, and no less is certain."""

    def search(values: list[float]) -> Found:
        return SEARCHES[0].found(*cells(values), PRICE, 1, 1)

    with replay(Tape(15)):
        report = so.audit.replay(
            search, [1.0, 5.0, 700.0, 9.0], [1.0, 5.0, 700.0], epsilon=Fraction(1, 2)
        )
        broken = so.audit.replay(
            search, [1.0, 5.0, 700.0, 9.0], [1.0, 5.0, 700.0], epsilon=Fraction(1, 20)
        )
    assert report.passed
    assert not broken.passed


def test_a_large_epsilon_finds_the_narrowest_bounds() -> None:
    """Penalties are finer than a person, so that empty room is cut off at any rate."""
    price = Price(Fraction(1000), Fraction(1, 5), Fraction(100))
    data = cells([float(i) for i in range(101)])
    with replay(Tape(16)):
        counts = [
            CountSearch("n").found(np.array([1, 2, 3]), np.array([9, 9, 9]), price, 1, 1).upper
            for _ in range(20)
        ]
        widths = [
            bounds.upper - bounds.lower
            for bounds in (found(NumberSearch("x"), data, price) for _ in range(20))
        ]
    assert min(counts) == 3
    assert np.median([float(count) for count in counts]) <= 4
    assert min(widths) >= 100
    assert np.median([float(width) for width in widths]) <= 150

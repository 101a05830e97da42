"""Quantiles: the law of the draws, privacy by enumeration, honest intervals, good estimates."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise, product
from typing import Any
from unittest import mock

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import chdtrc

from sordino.errors import InvalidInput
from sordino.mechanisms.bits import SecureBits
from sordino.query.aggregates import quantiles
from sordino.query.aggregates.quantiles import (
    FINENESS,
    QuantileEstimate,
    interval_rank,
    noisy_quantiles,
    rank_bound,
    rank_error,
    rates,
)
from statistics_of_draws import ACCEPT, REJECT
from tape import Tape

HALF = Fraction(1, 2)
QUARTILES = (Fraction(1, 4), HALF, Fraction(3, 4))


class Naive:
    """The mechanism by its definition: weights of cells, a cell in `fineness` parts, every cut looked at by itself."""

    def __init__(self, weights: tuple[int, ...], fineness: int) -> None:
        self.parts = [Fraction(w, fineness) for w in weights for _ in range(fineness)]

    def distances(self, low: int, high: int, level: Fraction) -> list[Fraction]:
        total = sum(self.parts[low:high], Fraction(0))
        return [abs(sum(self.parts[low:t], Fraction(0)) - level * total) for t in range(low, high + 1)]

    def law(self, low: int, high: int, level: Fraction, rate: Fraction) -> list[float]:
        spread = 1 if level in (0, 1) else 2 * max(level, 1 - level)
        weights = [math.exp(-rate / spread * d) for d in self.distances(low, high, level)]
        return [w / sum(weights) for w in weights]

    def outcomes(
        self, levels: tuple[Fraction, ...], rate: Fraction, low: int, high: int, under: Fraction, over: Fraction
    ) -> dict[tuple[int, ...], float]:
        """The law of all cuts of the recursion."""
        if not levels:
            return {(): 1.0}
        middle = len(levels) // 2
        level = levels[middle]
        found: dict[tuple[int, ...], float] = {}
        for cut, p in enumerate(self.law(low, high, (level - under) / (over - under), rate), low):
            left = self.outcomes(levels[:middle], rate, low, cut, under, level)
            right = self.outcomes(levels[middle + 1 :], rate, cut, high, level, over)
            for (a, x), (b, y) in product(left.items(), right.items()):
                found[(*a, cut, *b)] = p * x * y
        return found

    def all_cuts(self, levels: tuple[Fraction, ...], rate: Fraction) -> dict[tuple[int, ...], float]:
        depth = len(levels).bit_length()
        return self.outcomes(levels, rate / depth, 0, len(self.parts), Fraction(0), Fraction(1))


def neighbours(tables: list[tuple[int, ...]], l1: int) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """All pairs that differ by at most so much weight, whether added, removed or moved."""
    for a, b in product(tables, repeat=2):
        if 0 < sum(abs(x - y) for x, y in zip(a, b, strict=True)) <= l1:
            yield a, b


def test_one_unit_of_weight_moves_the_distances_apart_by_no_more_than_the_lemma_says_and_by_that_much() -> None:
    tables = [*product(range(4), repeat=3), (0, 40, 0), (1, 40, 0), (0, 40, 1)]
    for level in (Fraction(0), Fraction(1, 10), Fraction(1, 3), HALF, Fraction(4, 5), Fraction(1)):
        widest = Fraction(0)
        for a, b in neighbours(tables, 1):
            x, y = (Naive(w, 2).distances(0, 6, level) for w in (a, b))
            changes = [p - q for p, q in zip(x, y, strict=True)]
            widest = max(widest, max(changes) - min(changes))
        allowed = Fraction(quantiles._range(level), level.denominator)
        assert widest == allowed


@pytest.mark.parametrize(
    ("levels", "positions", "most", "fineness"),
    [((HALF,), 3, 3, 2), ((Fraction(9, 10),), 3, 3, 2), ((Fraction(1),), 3, 3, 1), (QUARTILES, 3, 2, 1),
     ((Fraction(1, 10), Fraction(2, 3)), 2, 3, 2), ((HALF, Fraction(3, 4), Fraction(1)), 2, 2, 2)],
)  # fmt: skip
def test_all_cuts_together_are_private_for_every_neighbour(
    levels: tuple[Fraction, ...], positions: int, most: int, fineness: int
) -> None:
    rate = HALF
    tables = list(product(range(most + 1), repeat=positions))
    laws = {table: Naive(table, fineness).all_cuts(levels, rate) for table in tables}
    tightest = 0.0
    for a, b in neighbours(tables, 2):
        epsilon = float(rate) * sum(abs(x - y) for x, y in zip(a, b, strict=True))
        loss = max(abs(math.log(p / laws[b][cuts])) for cuts, p in laws[a].items())
        assert loss <= epsilon + 1e-12
        tightest = max(tightest, loss / epsilon)
    assert tightest > 0.25


@pytest.mark.parametrize("level", [Fraction(0), Fraction(1, 10), HALF, Fraction(4, 5)], ids=str)
def test_intervals_are_private_for_every_neighbour(level: Fraction) -> None:
    """The exact law over the candidates, of the code's own distances."""
    rate, positions = HALF, 4
    tables = list(product(range(3), repeat=positions))
    for value in range(positions):
        laws = {}
        for table in tables:
            spread = quantiles._Spread.of(np.arange(positions), np.array(table), positions, (level,))
            found = quantiles._Intervals.around(value, spread, level, rate, 0.6)
            weights = [math.exp(-found.slope * d) for d in found.distances]
            laws[table] = [w / sum(weights) for w in weights]
            assert min(found.distances) == 0
        for a, b in neighbours(tables, 2):
            epsilon = float(rate) * sum(abs(x - y) for x, y in zip(a, b, strict=True))
            assert max(abs(math.log(p / q)) for p, q in zip(laws[a], laws[b], strict=True)) <= epsilon + 1e-12


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7, 8])
def test_all_draws_of_one_answer_spend_no_more_than_its_rates(count: int) -> None:
    """A unit of weight meets one point draw at each depth of the descent, and one interval of every level."""
    levels = tuple(Fraction(i + 1, count + 1) for i in range(count))
    cells, weights = np.arange(6), np.array([3, 1, 4, 1, 5, 9])
    points: list[tuple[int, int, Fraction]] = []
    flanks: list[Fraction] = []
    cut, around = quantiles._draw_cut, quantiles._Intervals.around

    def drawn(spread: Any, low: int, high: int, level: Fraction, rate: Fraction, bits: Any) -> int:
        points.append((low, high, rate))
        return cut(spread, low, high, level, rate, bits)

    def flanked(value: int, spread: Any, level: Fraction, rate: Fraction, confidence: Any) -> Any:
        flanks.append(rate)
        return around(value, spread, level, rate, confidence)

    with mock.patch.object(quantiles, "_draw_cut", drawn), mock.patch.object(quantiles._Intervals, "around", flanked):
        rate, flank_rate = rates(Fraction(1), 3)
        found = noisy_quantiles(
            cells, weights, positions=6, levels=levels, rate=rate, flank_rate=flank_rate, bits=Tape(count)
        )
    assert len(found) == len(points) == len(flanks) == count
    for unit in range(6 * FINENESS):
        assert sum(own for low, high, own in points if low <= unit < high) <= rate
    assert sum(flanks) <= (flank_rate or 0)
    assert rate + (flank_rate or 0) == Fraction(1, 3)


def p_value(observed: dict[Any, int], law: dict[Any, float]) -> float:
    count = sum(observed.values())
    assert set(observed) <= set(law)
    common = [k for k, p in law.items() if p * count >= 5]
    rest = count * (1 - sum(law[k] for k in common))
    statistic = sum((observed.get(k, 0) - count * law[k]) ** 2 / (count * law[k]) for k in common)
    if rest >= 5:
        statistic += (count - sum(observed.get(k, 0) for k in common) - rest) ** 2 / rest
    return float(chdtrc(len(common) - (rest < 5), statistic))


@pytest.mark.parametrize(
    ("weights", "levels", "rate"),
    [((5, 0, 30, 2), (Fraction(2, 5),), Fraction(1, 5)), ((0, 40, 0, 3), QUARTILES, Fraction(1, 3)),
     ((0, 0, 0, 0), QUARTILES, Fraction(1)), ((400, 0, 0, 300), (Fraction(1, 3), Fraction(2, 3)), Fraction(1, 40))],
)  # fmt: skip
def test_the_descent_has_the_law_of_the_definition_and_no_other(
    weights: tuple[int, ...], levels: tuple[Fraction, ...], rate: Fraction
) -> None:
    fineness, bits = 3, SecureBits()
    with mock.patch.object(quantiles, "FINENESS", fineness):
        spread = quantiles._Spread.of(np.arange(4), np.array(weights), 4, levels)
        depth = len(levels).bit_length()
        observed: dict[Any, int] = {}
        for _ in range(1500):
            cuts = tuple(quantiles._Descent(spread, levels, rate / depth, bits).cuts())
            observed[cuts] = observed.get(cuts, 0) + 1
    assert p_value(observed, Naive(weights, fineness).all_cuts(levels, rate)) > ACCEPT
    if any(weights):
        assert p_value(observed, Naive(weights, fineness).all_cuts(levels, rate * Fraction(8, 5))) < 1e-4
        shifted = (*weights[1:], weights[0])
        assert p_value(observed, Naive(shifted, fineness).all_cuts(levels, rate)) < REJECT


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(0, 9), min_size=1, max_size=6), st.integers(1, 4), st.integers(0, 60))
def test_ranks_and_their_inverse(weights: list[int], scale: int, target: int) -> None:
    """`below` adds up the parts; `reach` is the first cut with enough before it; one at a time and many."""
    with mock.patch.object(quantiles, "FINENESS", scale):
        spread = quantiles._Spread.of(np.arange(len(weights)), np.array(weights), len(weights), (HALF,))
        parts = [w for w in weights for _ in range(scale)]
        expected = [sum(parts[:t]) for t in range(len(parts) + 1)]
        assert spread.below(np.arange(len(parts) + 1)).tolist() == expected
        assert [spread.below_one(t) for t in range(len(parts) + 1)] == expected
        first = next((t for t, rank in enumerate(expected) if rank >= target), len(parts) + 1)
        assert spread.reach([target, 0, 10**30]).tolist() == [first, 0, len(parts) + 1]


def true_quantiles(cells: npt.NDArray[np.int64], weights: npt.NDArray[np.int64], level: Fraction, positions: int) -> range:
    """All cells v with weight(< v) <= level * total <= weight(<= v)."""
    total, dense = int(weights.sum()), np.zeros(positions, np.int64)
    dense[cells] = weights
    at_most = np.cumsum(dense)
    fits = (level.denominator * (at_most - dense) <= level.numerator * total) & (
        level.denominator * at_most >= level.numerator * total
    )
    found = np.flatnonzero(fits)
    return range(int(found[0]), int(found[-1]) + 1)


def shapes() -> dict[str, npt.NDArray[np.int64]]:
    rng = np.random.default_rng(8)
    return {
        "empty": np.empty(0, np.int64),
        "one row": np.array([700]),
        "five": np.array([1, 5, 400, 900, 999]),
        "one cell": np.full(3000, 123),
        "ties": rng.choice([10, 20, 21, 500], 2000),
        "bimodal": np.concatenate([rng.normal(100, 5, 1000), rng.normal(900, 5, 1000)]).astype(np.int64),
        "even": rng.integers(0, 1000, 5000),
        "skewed": np.minimum(rng.exponential(30, 4000), 999).astype(np.int64),
        "at the ends": np.array([0] * 500 + [999] * 500),
    }


@pytest.mark.parametrize("name", shapes())
@pytest.mark.parametrize("level", [HALF, Fraction(9, 10)], ids=str)
def test_intervals_cover_all_true_quantiles(name: str, level: Fraction) -> None:
    data, unit, trials, bits = shapes()[name], 16, 150, Tape(7)
    cells, counts = np.unique(data, return_counts=True)
    truth = true_quantiles(cells, counts, level, 1000)
    for epsilon in (Fraction(1), Fraction(30)):
        rate, flank = rates(epsilon, 2 * unit)
        covered = 0
        for _ in range(trials):
            (found,) = noisy_quantiles(
                cells, counts * unit, positions=1000, levels=(level,), rate=rate, flank_rate=flank, confidence=0.9, bits=bits
            )
            assert 0 <= found.low <= found.value <= found.high <= 999
            covered += found.low <= truth[0] and truth[-1] <= found.high
        assert covered >= trials * 0.9 - 3 * math.sqrt(trials * 0.09)


def test_an_interval_with_less_slack_does_not_cover() -> None:
    """The slack matters: where half of the slack is promised, a bad first guess is not noticed."""
    data = np.arange(1000).repeat(20)
    cells, counts = np.unique(data, return_counts=True)
    spread = quantiles._Spread.of(cells, counts, 1000, (HALF,))
    bits, trials = Tape(8), 400

    def coverage(slack: float) -> float:
        real = quantiles._slack
        with mock.patch.object(quantiles, "_slack", lambda *a: int(real(*a) * slack)):
            law = quantiles._Intervals.around(200, spread, HALF, Fraction(1, 200), 0.95)
        ends = (law.draw(bits) for _ in range(trials))
        return sum(low <= 499 and high >= 500 for low, high in ends) / trials

    assert coverage(1) > 0.93
    assert coverage(0) < 0.9


def test_small_data_give_the_whole_range() -> None:
    rate, flank = rates(Fraction(1), 1)
    found = noisy_quantiles(
        np.array([40]),
        np.array([1]),
        positions=101,
        levels=(HALF,),
        rate=rate,
        flank_rate=flank,
        confidence=0.9999,
        bits=SecureBits(),
    )
    assert (found[0].low, found[0].high) == (0, 100)


def test_ties_are_divided_so_that_levels_around_them_are_right() -> None:
    """30 % below, 50 % on one cell, 20 % above: quartiles and their neighbours come out exactly when there is no noise."""
    cells, weights = np.array([10, 20, 30, 40]), np.array([150, 150, 500, 200])
    levels = tuple(Fraction(i, 100) for i in (10, 20, 29, 31, 50, 79, 81, 95))
    for seed in range(5):
        found = noisy_quantiles(cells, weights, positions=50, levels=levels, rate=Fraction(1000), bits=Tape(seed))
        assert [q.value for q in found] == [10, 20, 20, 30, 30, 30, 40, 40]


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_anything_allowed_gives_ordered_estimates_on_the_grid(data: st.DataObject) -> None:
    positions = data.draw(st.sampled_from([1, 2, 7, 1000, 2**50]))
    cells = sorted(data.draw(st.sets(st.integers(0, positions - 1), max_size=5)))
    weights = data.draw(st.lists(st.integers(0, 2**62 // 6), min_size=len(cells), max_size=len(cells)))
    levels = tuple(data.draw(st.lists(st.fractions(0, 1, max_denominator=1000), min_size=1, max_size=5)))
    rate = data.draw(st.sampled_from([Fraction(1, 2**80), Fraction(1, 65536), Fraction(1), Fraction(10**9)]))
    found = noisy_quantiles(
        np.array(cells, np.int64), np.array(weights, np.int64), positions=positions, levels=levels, rate=rate,
        flank_rate=rate, bits=Tape(data.draw(st.integers(0, 1000))),
    )  # fmt: skip
    for estimate in found:
        assert 0 <= estimate.low <= estimate.value <= estimate.high < positions
    ordered = [estimate.value for _, estimate in sorted(zip(levels, found, strict=True), key=lambda pair: pair[0])]
    assert all(a <= b for a, b in pairwise(ordered))


def test_python_integers_give_the_same_answers_as_int64() -> None:
    cells, weights = np.array([3, 9, 12]), np.array([5, 8, 6])
    levels = (Fraction(1, 3), Fraction(2, 3))
    plain = noisy_quantiles(cells, weights, positions=20, levels=levels, rate=HALF, flank_rate=HALF, bits=Tape(3))
    real = quantiles._Spread.of

    def exact(*arguments: Any) -> quantiles._Spread:
        spread = real(*arguments)
        return quantiles._Spread(spread.positions, spread.starts, spread.weights.astype(object), spread.ends.astype(object))

    with mock.patch.object(quantiles._Spread, "of", exact):
        again = noisy_quantiles(cells, weights, positions=20, levels=levels, rate=HALF, flank_rate=HALF, bits=Tape(3))
    assert plain == again


def test_the_error_is_that_of_the_theory() -> None:
    """100,000 gamma amounts to the cent, ten rows a person, epsilon 1: about 14 ranks, 0.0225 in value on even ground."""
    rng = np.random.default_rng(12)
    amounts = np.round(np.clip(rng.gamma(2, 50, 100_000), 0, 1000) * 100).astype(np.int64)
    cells, counts = np.unique(amounts, return_counts=True)
    rate, _ = rates(Fraction(1), 10, interval=False)
    truth = float(np.median(amounts))
    bits = SecureBits()
    errors = [
        noisy_quantiles(cells, counts, positions=100_001, levels=(HALF,), rate=rate, bits=bits)[0].value - truth
        for _ in range(400)
    ]
    assert 0.015 < math.sqrt(np.mean(np.square(errors))) / 100 < 0.032
    ranks = np.searchsorted(np.sort(amounts), truth + np.array(errors)) - 50_000
    assert np.mean(np.abs(ranks) <= rank_error(rate) + 10) > 0.9
    assert np.abs(ranks).max() <= rank_bound(rate, 100_001, 0.9999)


def test_previews_say_what_the_intervals_will_be() -> None:
    cells = np.arange(10_000)
    weights = np.full(10_000, 3)
    rate, flank = rates(Fraction(1), 4)
    assert flank is not None
    expected = interval_rank(flank, 10_000)
    widths = []
    for _ in range(60):
        (q,) = noisy_quantiles(
            cells, weights, positions=10_000, levels=(HALF,), rate=rate, flank_rate=flank, bits=SecureBits()
        )
        widths.append(3 * (q.high - q.low) / 2)
    assert expected * 0.9 <= np.mean(widths) <= expected * 1.5


def test_rates_split_epsilon_and_no_more() -> None:
    rate, flank = rates(Fraction(2), 30)
    assert flank is not None
    assert (rate + flank) * 30 == 2
    assert rates(Fraction(2), 30, interval=False) == (Fraction(1, 15), None)
    with pytest.raises(InvalidInput):
        rates(Fraction(0), 3)
    with pytest.raises(InvalidInput):
        rates(Fraction(1), 0)


def test_without_a_flank_rate_the_interval_is_the_grid_and_one_level_may_be_asked_twice() -> None:
    found = noisy_quantiles(
        np.array([4]), np.array([10**6]), positions=9, levels=(HALF, HALF), rate=Fraction(1), bits=Tape(1)
    )
    assert found == (QuantileEstimate(4, 0, 8),) * 2
    assert FINENESS == 1024


@pytest.mark.parametrize(
    "wrong",
    [{"cells": [3, 2]}, {"cells": [2, 2]}, {"cells": [-1, 2]}, {"cells": [1, 10]}, {"weights": [-1, 1]}, {"weights": [1]},
     {"positions": 0}, {"positions": 2**51}, {"levels": ()}, {"levels": (Fraction(3, 2),)}, {"rate": Fraction(0)},
     {"flank_rate": Fraction(-1)}, {"confidence": 1}],
    ids=str,
)  # fmt: skip
def test_refusals(wrong: dict[str, Any]) -> None:
    good: dict[str, Any] = {"cells": [1, 2], "weights": [1, 1], "positions": 10, "levels": (HALF,), "rate": HALF}
    good |= {"flank_rate": HALF, "bits": Tape(0)} | wrong
    with pytest.raises(InvalidInput):
        noisy_quantiles(np.array(good.pop("cells")), np.array(good.pop("weights")), **good)

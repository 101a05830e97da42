"""Noisy max: exact laws, exact draws, the loss of each method and what is not true of the other."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import permutations, product
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import polars as pl
import pytest
from flint import arb
from scipy.special import chdtrc

import sordino as so
from sordino.errors import InvalidInput, OffLattice, TooLarge
from sordino.mechanisms.exponential import happen
from sordino.mechanisms.noisy_max import NoisyMax
from sordino.privacy.ball import working
from sordino.privacy.loss.bounded_range import BoundedRangeLoss
from statistics_of_draws import ACCEPT, REJECT
from tape import Script, Tape, replay

METHODS = ("permute_and_flip", "exponential")
each = pytest.mark.parametrize("method", METHODS)
SCORES = [5, 3, 0, 5, 1]


def naive(scores: list[int], rate: float, method: str) -> list[float]:
    """The laws by their definitions: shares; and all orders, each with the first head."""
    weights = [math.exp(-rate * (max(scores) - s)) for s in scores]
    if method == "exponential":
        return [w / sum(weights) for w in weights]
    law = [0.0] * len(scores)
    orders = list(permutations(range(len(scores))))
    for order in orders:
        still = 1 / len(orders)
        for i in order:
            law[i] += still * weights[i]
            still *= 1 - weights[i]
    return law


def p_value(observed: npt.NDArray[np.int64], law: list[float]) -> float:
    expected = np.array(law) * observed.sum()
    return float(chdtrc(len(law) - 1, float(((observed - expected) ** 2 / expected).sum())))


@each
def test_the_law_is_that_of_the_definition(method: str) -> None:
    for scores, epsilon in product(
        ([5, 3, 0, 5, 1], [0, 0], [7], [1, 2, 3, 4, 5, 6], [0, 10**6]), (0.1, 1, 7)
    ):
        best = NoisyMax(epsilon, method=method)
        assert best.probabilities(scores) == pytest.approx(
            naive(scores, epsilon / 2, method), rel=1e-12
        )
        error = sum(
            (max(scores) - s) * p
            for s, p in zip(scores, naive(scores, epsilon / 2, method), strict=True)
        )
        assert best.expected_error(scores) == pytest.approx(error, rel=1e-12)


@each
def test_draws_have_the_law_and_no_other(method: str) -> None:
    best = NoisyMax.calibrated(epsilon=1, method=method)
    tape, gaps = Tape(5), 5 - np.array(SCORES)
    observed = np.bincount([best._place(gaps, tape) for _ in range(8000)], minlength=5)
    assert p_value(observed, best.probabilities(SCORES).tolist()) > ACCEPT
    (other,) = set(METHODS) - {method}
    assert p_value(observed, naive(SCORES, 0.5, other)) < REJECT
    for off in (1.25, 0.8):
        assert p_value(observed, naive(SCORES, 0.5 * off, method)) < 1e-5


@each
@pytest.mark.parametrize(
    "rate", [Fraction(1, 3), Fraction(1, 10**9), Fraction(1, 2**1000), Fraction(2**950)], ids=str
)
def test_floats_and_balls_are_the_same_function_of_the_bits(method: str, rate: Fraction) -> None:
    best = NoisyMax(2 * rate, method=method)
    gaps = np.array([3, 0, 2, 8, 0, 40] * 5)
    fast = [best._place(gaps, Tape(seed)) for seed in range(30)]
    assert fast == [best._place(gaps, Tape(seed), always_refine=True) for seed in range(30)]


def test_a_coin_beside_its_probability_is_decided_by_later_bits() -> None:
    with working(300):
        digits = int(((-arb(3)).exp() * 2**127).floor().unique_fmpz() or 0)
    top, rest = digits >> 64, digits & (2**64 - 1)
    gaps, rate = np.array([3]), Fraction(1)
    assert happen(gaps, rate, Script([top, rest - 1])).tolist() == [True]
    assert happen(gaps, rate, Script([top, rest + 1])).tolist() == [False]
    for offset in (2**j for j in range(20, 50, 5)):
        assert happen(gaps, rate, Script([top + offset], then=0)).tolist() == [False]
        assert happen(gaps, rate, Script([top - offset], then=2**64 - 1)).tolist() == [True]
    assert happen(np.array([0]), rate, Script([2**63 - 1], then=2**64 - 1)).tolist() == [True]
    huge = np.array([10**60, 0, 2**70], object)
    assert happen(huge, Fraction(2**900), Script([], then=1)).tolist() == [False, True, False]


def hockey_stick(p: npt.NDArray[np.float64], q: npt.NDArray[np.float64], epsilon: float) -> float:
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


def worst_excess(
    method: str, monotone: bool, loss: so.Loss, epsilon: Fraction
) -> tuple[float, float]:
    """Over all neighbouring scores in 0 .. 3 of three options: delta beyond the loss's, and the largest loss seen."""
    rate = float(epsilon / (1 if monotone else 2))
    laws = {q: np.array(naive(list(q), rate, method)) for q in product(range(4), repeat=3)}
    allowed = {e: loss.delta(e) for e in (-0.5, 0.0, 0.2, 0.5, 0.8, 0.95, float(epsilon))}
    excess, largest = -1.0, 0.0
    for p, q in product(laws, repeat=2):
        moves = [a - b for a, b in zip(p, q, strict=True)]
        same_way = min(moves) >= 0 or max(moves) <= 0
        if max(map(abs, moves)) > 1 or (monotone and not same_way):
            continue
        largest = max(largest, float(np.log(laws[p] / laws[q]).max()))
        excess = max(
            excess, max(hockey_stick(laws[p], laws[q], e) - most for e, most in allowed.items())
        )
    return excess, largest


@each
@pytest.mark.parametrize("monotone", [False, True])
def test_every_pair_of_small_neighbours_is_within_the_loss(method: str, monotone: bool) -> None:
    epsilon = Fraction(1)
    best = NoisyMax(epsilon, method=method, monotone=monotone)
    excess, largest = worst_excess(method, monotone, best.loss(), epsilon)
    assert excess <= 1e-12
    assert 0.8 <= largest <= 1 + 1e-12


def test_the_checks_have_teeth() -> None:
    """A tenth more than allowed, permute-and-flip with the loss of bounded range,
    monotone noise for scores that are not.
    """
    one = Fraction(1)
    for method, loss in zip(METHODS, (so.LaplaceLoss(one), BoundedRangeLoss(one)), strict=True):
        assert worst_excess(method, False, loss, one * 11 / 10)[0] > 1e-3
        assert worst_excess(method, False, loss, 2 * one)[0] > 0.05
    assert worst_excess("permute_and_flip", False, BoundedRangeLoss(one), one)[0] > 0.05


def test_permute_and_flip_costs_more_rho_than_bounded_range() -> None:
    """Two options: the exact law's Kullback-Leibler divergence is 2.6 times epsilon^2/8, and within Laplace's rho."""
    best = NoisyMax.calibrated(epsilon=1)
    p, q = (best.probabilities(scores) for scores in ([1, 0], [0, 1]))
    v = math.exp(-0.5) / 2
    assert p == pytest.approx([1 - v, v], rel=1e-14)
    divergence = float((p * np.log(p / q)).sum())
    assert divergence == pytest.approx(0.3273, abs=1e-4)
    assert divergence > 2.6 / 8
    assert divergence <= best.loss().rho() == pytest.approx(math.exp(-1))
    for alpha in (1.5, 2.0, 8.0):
        renyi = math.log(float((p**alpha * q ** (1 - alpha)).sum())) / (alpha - 1)
        assert renyi <= best.loss().rdp(alpha) <= alpha * best.loss().rho()
        if alpha < 8:
            assert renyi > alpha / 8
    sharper = NoisyMax.calibrated(epsilon=1, method="exponential")
    p, q = (sharper.probabilities(scores) for scores in ([1, 0], [0, 1]))
    assert float((p * np.log(p / q)).sum()) <= sharper.loss().rho() == 0.125


def test_permute_and_flip_meets_the_laplace_loss() -> None:
    """With two options every threshold test of the Laplace pair is a selection."""
    loss = NoisyMax(1).loss()
    for epsilon in (0.0, 0.3, 0.9):
        gaps = np.linspace(-4, 4, 801)
        worse = np.where(
            gaps >= 0, np.exp(-np.abs(gaps) / 2) / 2, 1 - np.exp(-np.abs(gaps) / 2) / 2
        )
        moved = np.where(
            gaps + 2 >= 0, np.exp(-np.abs(gaps + 2) / 2) / 2, 1 - np.exp(-np.abs(gaps + 2) / 2) / 2
        )
        assert float((worse - math.exp(epsilon) * moved).max()) == pytest.approx(
            loss.delta(epsilon), rel=1e-4
        )


def test_permute_and_flip_is_never_worse_at_the_same_epsilon() -> None:
    rng = np.random.default_rng(8)
    for _ in range(40):
        scores = rng.integers(0, 30, rng.integers(2, 12)).tolist()
        flip, exponential = (NoisyMax(1, method=m).expected_error(scores) for m in METHODS)
        assert exponential / 2.001 <= flip <= exponential * (1 + 1e-12)


@each
@pytest.mark.parametrize("options", [1, 2, 7, 40])
def test_the_interval_is_right_for_the_worst_scores_and_no_wider(method: str, options: int) -> None:
    best = NoisyMax(Fraction(1, 3), method=method, step=Fraction(1, 2))

    def beyond(width: float) -> float:
        """All others just beyond the width; and for comparison a spread of scores."""
        far = [0.0] + [-(width + 0.5)] * (options - 1)
        return float(best.probabilities(far)[1:].sum())

    width = best.interval(0.9, options=options)
    assert beyond(width) <= 0.1 + 1e-12
    if width:
        assert beyond(width - 0.5) > 0.1
    rng = np.random.default_rng(options)
    for _ in range(5):
        scores = -rng.integers(0, 4 * int(width) + 2, options) / 2
        law = best.probabilities(scores)
        assert float(law[scores.max() - scores > width].sum()) <= 0.1 + 1e-12


@each
def test_calibrated_to_rho(method: str) -> None:
    best = NoisyMax.calibrated(rho=Fraction(1, 10), method=method)
    assert 0.1 * (1 - 1e-12) < best.loss().rho() <= 0.1
    assert NoisyMax.calibrated(rho=Fraction(1, 10)).method == "exponential"


@pytest.mark.parametrize("rho", [2**64, 10**400, 10**700])
def test_a_rho_beyond_all_floats_is_calibrated_to(rho: int) -> None:
    """epsilon + e^-epsilon - 1 <= rho < epsilon + 1 there."""
    found = NoisyMax.calibrated(rho=rho, method="permute_and_flip")
    assert found.epsilon == rho
    assert found.release([1, 9, 3]) == 1


def test_filters_take_its_charge() -> None:
    meter = so.TwoMeterFilter(so.Budget(1))
    for method in METHODS:
        charge = so.Charge.of(NoisyMax.calibrated(epsilon=Fraction(1, 4), method=method).loss())
        assert meter.fits(charge) == 4
    total = (
        NoisyMax(1).loss() + NoisyMax(1, method="exponential").loss() + so.LaplaceLoss(Fraction(1))
    )
    assert total.maximum() == 3.0


def test_a_hundred_thousand_options_and_numbers_of_any_size() -> None:
    scores = np.arange(100_000) // 10
    for method in METHODS:
        best = NoisyMax(2, method=method)
        assert (
            0
            <= scores.max() - scores[best.release(scores)]
            <= best.interval(1 - 1e-12, options=100_000)
        )
        assert best.release([2**70, -(2**70), 0]) == 0
        assert NoisyMax(2**101, method=method).release([2**1100, 0]) == 0
        assert best.release(np.array([-(2**63), 2**63 - 1])) == 1
        assert best.release([4]) == 0
        assert NoisyMax(10**6, method=method, step=0.01).release([0.28, 0.29]) == 1
        assert NoisyMax(10**6, method=method).release([0.4, 0.6], round_to_lattice=True) == 1
        assert best.select(["a", "b"], np.array([0, 200])) == "b"


def test_the_tape_decides() -> None:
    best = NoisyMax(Fraction(1, 100))
    scores = list(range(500))
    with replay(Tape(3)):
        first = [best.release(scores) for _ in range(10)]
    with replay(Tape(3)):
        assert [best.release(scores) for _ in range(10)] == first


def test_promises_and_words() -> None:
    assert NoisyMax(0.1).epsilon == min(Fraction(0.1), Fraction(1, 10))
    assert NoisyMax(1, 0.1).sensitivity == max(Fraction(0.1), Fraction(1, 10))
    assert NoisyMax(1, monotone=True).rate == 1 == 2 * NoisyMax(1).rate
    text = "NoisyMax(epsilon=1, sensitivity=2, method='exponential', monotone=True, step=0.5)"
    assert repr(NoisyMax(1, 2, "exponential", True, 0.5)) == text


@pytest.mark.parametrize(
    "wrong",
    [{"epsilon": 0}, {"epsilon": -1}, {"epsilon": math.nan}, {"sensitivity": 0}, {"method": "laplace"}, {"monotone": 1},
     {"step": 0}, {"step": -1}, {"epsilon": None}, {"rho": 1}, {"epsilon": None, "rho": 0}],
    ids=str,
)  # fmt: skip
def test_refusals(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        NoisyMax.calibrated(**({"epsilon": 1} | wrong))


@pytest.mark.parametrize(
    "scores", [[], 3, [[1, 2]], np.ones((2, 2), int), [math.nan, 1], ["a"], [True], None], ids=str
)
def test_scores_that_are_refused(scores: Any) -> None:
    with pytest.raises(InvalidInput):
        NoisyMax(1).release(scores)


def test_more_refusals() -> None:
    with pytest.raises(OffLattice):
        NoisyMax(1).release([0.5, 1])
    with pytest.raises(InvalidInput, match="2 options and 3 scores"):
        NoisyMax(1).select(["a", "b"], [1, 2, 3])
    with pytest.raises(TooLarge, match="interval"):
        NoisyMax(1).probabilities(list(range(1001)))
    for options in (0, True, 1.5):
        with pytest.raises(InvalidInput):
            NoisyMax(1).interval(options=options)  # type: ignore[arg-type]


def test_options_are_taken_by_their_place_whatever_labels_they_have() -> None:
    frame = pd.DataFrame(
        {"name": ["x", "y", "z"], "votes": [10, 90_000, 500]}, index=[7, 3, 5]
    ).sort_values("votes")
    sharp = NoisyMax(10)
    assert sharp.select(frame["name"], frame["votes"]) == "y"
    assert sharp.select(pl.Series(["a", "b"]), pl.Series([1, 90_000])) == "b"
    assert sharp.select({"a": 1, "b": 2}.keys(), (90_000, 1)) == "a"
    for options in (None, 5):
        with pytest.raises(InvalidInput, match="must be a list"):
            sharp.select(options, [1, 2])  # type: ignore[arg-type]

"""Randomized response: exact law, estimate, coverage, refusals."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.special import chdtrc

import sordino as so
from sordino.errors import InvalidInput
from sordino.mechanisms.bits import SecureBits
from sordino.mechanisms.discrete import bernoulli, uniform, uniform_one
from sordino.mechanisms.proportions import estimate, half_width
from statistics_of_draws import ACCEPT, REJECT
from tape import Script, Tape, replay

COIN = so.RandomizedResponse(truth=Fraction(3, 4))


def test_answers_come_back_as_they_came() -> None:
    assert type(COIN.release(1)) is int
    assert type(COIN.release(True)) is bool
    assert {type(x) for x in COIN.release([0, 1, True])} == {int}
    assert COIN.release(np.zeros((2, 3), bool)).dtype == bool
    assert COIN.release(np.zeros((2, 3), np.uint8)).dtype == np.int64
    assert COIN.release(np.zeros((2, 3), np.uint8)).shape == (2, 3)
    named = so.RandomizedResponse(0.5, categories=["yes", "no", "unsure"])
    assert named.release("no") in named.names  # type: ignore[operator]
    assert set(named.release(["no"] * 200)) == {"yes", "no", "unsure"}
    assert set(named.release(np.array([["no"] * 200])).ravel().tolist()) == {"yes", "no", "unsure"}


@pytest.mark.parametrize(
    ("truth", "k"), [(Fraction(3, 4), 2), (Fraction(2, 7), 5), (Fraction(99, 100), 3)]
)
def test_the_law_is_the_stated_one_and_no_other(truth: Fraction, k: int) -> None:
    m = so.RandomizedResponse(truth, categories=k)
    n = 400_000
    for value in (0, k - 1):
        counts = np.bincount(m.release(np.full(n, value)), minlength=k)

        def p_value(law: list[float], counts: Any = counts) -> float:
            expected = np.array(law) * n
            return float(chdtrc(k - 1, float(((counts - expected) ** 2 / expected).sum())))

        law = [float(m.pmf(j, value)) for j in range(k)]
        assert p_value(law) > ACCEPT
        wrong = [
            p * (0.97 if j == value else (1 - 0.97 * law[value]) / (1 - law[value]))
            for j, p in enumerate(law)
        ]
        assert p_value(wrong) < REJECT


def test_pmf_and_cdf_are_exact_and_consistent() -> None:
    m = so.RandomizedResponse(Fraction(3, 7), categories=4)
    for value in range(4):
        assert sum(m.pmf(j, value) for j in range(4)) == 1
        assert [m.cdf(j, value) for j in range(4)] == [
            sum(m.pmf(i, value) for i in range(j + 1)) for j in range(4)
        ]


@pytest.mark.parametrize(
    "probability", [Fraction(x) for x in ("3/4", "1/3", f"1/{2**63}", f"1/{2**70}", "0", "1")]
)
def test_bernoulli_compares_every_bit(probability: Fraction) -> None:
    """Words at the threshold: the event is {uniform < probability} for every continuation of the word."""
    first = min(int(probability * 2**63), 2**63 - 1)
    for word in {0, max(first - 1, 0), first, min(first + 1, 2**63 - 1), 2**63 - 1}:
        for more in (0, 1, 2**63, 2**64 // 3, 2**64 // 3 + 1, 2**64 - 1):
            for last in (0, 2**64 - 1):
                low = Fraction(word, 2**63) + Fraction(more, 2**127) + Fraction(last, 2**191)
                high = low + Fraction(1, 2**191)
                event = bool(bernoulli(probability, 1, Script([word, more, last], then=last))[0])
                assert event == (low < probability)
                assert low >= probability or high <= probability or last == 0


def test_uniform_redraws_what_would_bias_it() -> None:
    below = 3 * 2**61
    script = Script([2**63 - 1, 2**63 - 2, below - 1, 5])
    assert uniform(below, 1, script).tolist() == [below - 1]
    assert script.asked == 3
    assert uniform(1, 3, Tape(0)).tolist() == [0, 0, 0]
    counts = np.bincount(uniform(7, 16_000, SecureBits()), minlength=7)
    assert np.abs(counts - 16_000 / 7).max() < 7 * math.sqrt(16_000 / 7)


def test_one_uniform_number_is_as_many_are() -> None:
    below = 3 * 2**61
    script = Script([2**63 - 1, below, below - 1])
    assert uniform_one(below, script) == below - 1
    assert script.asked == 3
    assert uniform_one(1, Tape(0)) == 0
    bits = SecureBits()
    counts = np.bincount([uniform_one(7, bits) for _ in range(7000)], minlength=7)
    assert ((counts - 1000) ** 2 / 1000).sum() < 35


@pytest.mark.parametrize("categories", [2, 3, 10, 1000])
@pytest.mark.parametrize("epsilon", [1e-12, 1e-3, 0.1, 0.3, 1, 5, 50, 1000])
def test_calibration_is_tight_and_never_above(epsilon: float, categories: int) -> None:
    loss = so.RandomizedResponse.calibrated(epsilon=epsilon, categories=categories).loss()
    assert epsilon * (1 - 1e-14) <= loss.maximum() <= epsilon


def test_the_estimate_is_the_line_of_the_notes() -> None:
    assert COIN.coefficients == (Fraction(2), Fraction(-1, 2))
    found = COIN.estimate_from_counts([40, 60])
    assert found.proportions == (0.3, 0.7)
    assert found.answers == 100
    assert found == COIN.estimate([0] * 40 + [1] * 60)
    assert all(
        low <= p <= high
        for low, p, high in zip(found.lower, found.proportions, found.upper, strict=True)
    )


def poisson_binomial(ones: int, zeros: int, truth: Fraction) -> list[Fraction]:
    """The exact law of the number of answers 1, when so many are truly 1 and 0."""
    law = [Fraction(1)]
    for p in [truth] * ones + [1 - truth] * zeros:
        law = [
            (law[i] if i < len(law) else 0) * (1 - p) + (law[i - 1] if i else 0) * p
            for i in range(len(law) + 1)
        ]
    return law


@pytest.mark.parametrize("confidence", [0.5, 0.8, 0.95, 0.999])
def test_intervals_cover_the_answering_persons_exactly_enough(confidence: float) -> None:
    """For every true database of up to 30 persons, by enumeration of the exact law: Hoeffding's theorem at work."""
    least = 1.0
    for n in (1, 2, 3, 5, 10, 30):
        for truth in (Fraction(3, 4), Fraction(6, 10), Fraction(95, 100)):
            m = so.RandomizedResponse(truth)
            ends = [m.estimate_from_counts([n - c, c], confidence) for c in range(n + 1)]
            for ones in range(n + 1):
                law = poisson_binomial(ones, n - ones, truth)
                covered = sum(
                    p
                    for p, e in zip(law, ends, strict=True)
                    if e.lower[1] <= ones / n <= e.upper[1]
                )
                least = min(least, float(covered))
    assert confidence <= least < 1


def test_an_interval_three_quarters_as_wide_would_not_cover() -> None:
    n, m = 60, COIN
    ends = [m.estimate_from_counts([n - c, c]) for c in range(n + 1)]
    worst = 1.0
    for ones in range(n + 1):
        narrow = [
            abs(ones / n - e.proportions[1]) <= 0.75 * (e.upper[1] - e.lower[1]) / 2 for e in ends
        ]
        worst = min(
            worst,
            float(
                sum(
                    p
                    for p, hit in zip(
                        poisson_binomial(ones, n - ones, m.truth), narrow, strict=True
                    )
                    if hit
                )
            ),
        )
    assert worst < 0.95


def test_the_planned_half_width_is_the_largest_that_comes() -> None:
    for n in (*range(1, 40), 100, 1001):
        widths = []
        for c in range(n + 1):
            # a line that is never clipped
            raw = estimate([n - c, c], Fraction(1, 10), Fraction(9, 20), 0.95)
            widths += [
                10 * (raw.upper[1] - raw.proportions[1]),
                10 * (raw.proportions[1] - raw.lower[1]),
            ]
        assert max(widths) <= half_width(n, Fraction(1), 0.95) * (1 + 1e-9)
    assert COIN.interval(0.95, answers=10**6) == pytest.approx(0.00196, rel=0.01)


@pytest.mark.parametrize("bad", [0, 1, -0.1, 1.5, 0.4, math.nan, math.inf, "3/4", None, True])
def test_bad_truth_is_refused(bad: Any) -> None:
    with pytest.raises(InvalidInput, match="truth"):
        so.RandomizedResponse(bad)


@pytest.mark.parametrize(
    "bad", [1, 0, -3, 2.0, True, "ab", [], ["a"], ["a", "a"], ["a", 1], None, 2**40]
)
def test_bad_categories_are_refused(bad: Any) -> None:
    with pytest.raises(InvalidInput, match="categories"):
        so.RandomizedResponse(0.75, categories=bad)
    with pytest.raises(InvalidInput, match="categories"):
        so.RandomizedResponse.calibrated(epsilon=1, categories=bad)


@pytest.mark.parametrize(
    "bad",
    [
        2,
        -1,
        0.5,
        1.0,
        math.nan,
        "1",
        None,
        [],
        [2],
        [0.0],
        np.array([]),
        np.array([0.0, 1.0]),
        np.array([3]),
        [[0, 1]],
    ],
)
def test_bad_answers_are_refused_and_nothing_is_drawn(bad: Any) -> None:
    script = Script([])
    with replay(script):
        with pytest.raises(InvalidInput):
            COIN.release(bad)
        with pytest.raises(InvalidInput):
            COIN.estimate(bad)
    assert script.asked == 0


@pytest.mark.parametrize("bad", [[1], [1, 2, 3], [-1, 2], [0, 0]])
def test_bad_counts_are_refused(bad: list[int]) -> None:
    with pytest.raises(InvalidInput, match="counts"):
        COIN.estimate_from_counts(bad)


@pytest.mark.parametrize("epsilon", [0, -1, math.nan, math.inf, "1", None])
def test_bad_epsilon_is_refused(epsilon: Any) -> None:
    with pytest.raises(InvalidInput, match="epsilon"):
        so.RandomizedResponse.calibrated(epsilon=epsilon)


def test_other_refusals() -> None:
    with pytest.raises(InvalidInput, match="pure chance"):
        so.RandomizedResponse(Fraction(1, 2)).estimate([0, 1])
    with pytest.raises(InvalidInput, match="one answer"):
        COIN.loss(2)
    for answers in (0, -1, 1.5, True):
        with pytest.raises(InvalidInput, match="answers"):
            COIN.interval(answers=answers)  # type: ignore[arg-type]


def test_names_in_errors_and_repr() -> None:
    named = so.RandomizedResponse(Fraction(1, 2), categories=["yes", "no"])
    with pytest.raises(InvalidInput, match="yes, no"):
        named.release("maybe")
    assert repr(named) == "RandomizedResponse(truth=0.5, categories=['yes', 'no'])"
    assert repr(COIN) == "RandomizedResponse(truth=0.75)"


def test_every_pair_of_truths_is_within_the_stated_loss() -> None:
    for truth, k in product((Fraction(3, 4), Fraction(9, 10)), (2, 3, 5)):
        m = so.RandomizedResponse(truth, categories=k)
        epsilon = m.loss().maximum()
        for a, b in product(range(k), repeat=2):
            p, q = [m.pmf(j, a) for j in range(k)], [m.pmf(j, b) for j in range(k)]
            assert so.divergence.verify_pure(p, q, epsilon)
            assert a == b or not so.divergence.verify_pure(p, q, epsilon * 0.999)


@pytest.mark.parametrize(
    ("field", "wrong"),
    [("categories", "5/2"), ("categories", "2"), ("names", ["a", "b"]), ("names", "abc")],
)
def test_a_stored_mechanism_with_other_categories_than_names_is_refused(
    field: str, wrong: object
) -> None:
    stored = json.loads(so.RandomizedResponse(Fraction(3, 5), ["a", "b", "c"]).to_json())
    with pytest.raises(InvalidInput):
        so.mechanism_from_json(json.dumps(stored | {field: wrong}))

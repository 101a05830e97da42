"""How far a holdout's values can be from the population: the lemmas by enumeration,
the promise against analysts who try.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sordino.adaptive.freedman import freedman
from sordino.adaptive.holdout import Holdout, _Wanted
from sordino.errors import BudgetExceeded, InvalidInput
from tape import Tape, replay

T = Fraction(1, 20)


@pytest.mark.parametrize("seed", range(10))
def test_private_transcripts_are_within_tanh_of_the_population_each(seed: int) -> None:
    """Theorem 3's core, two or three bits and a random channel, enumerated: every transcript, the worst question."""
    random = np.random.default_rng(seed)
    places, bias = int(random.integers(2, 4)), random.uniform(0.05, 0.95)
    samples = 2**places
    sums = np.array([bin(s).count("1") for s in range(samples)])
    law = np.exp(
        random.uniform(0, 1)
        * (random.standard_normal((samples, 5)) + np.outer(sums, np.arange(5)) / 3)
    )
    law /= law.sum(axis=1, keepdims=True)
    pairs = [(s, s ^ (1 << i)) for s in range(samples) for i in range(places)]
    epsilon = max(float(np.abs(np.log(law[s] / law[t])).max()) for s, t in pairs)
    joint = (bias**sums * (1 - bias) ** (places - sums))[:, None] * law
    given = (joint * (sums / places)[:, None]).sum(axis=0) / joint.sum(axis=0)
    assert np.abs(given - bias).max() <= math.tanh(epsilon / 4) + 1e-12


@pytest.mark.parametrize(
    ("k", "most", "told"), [*itertools.product((1, 2, 3, 5), (1, 2, 5), (2, 3))]
)
def test_the_questions_that_values_can_lead_to_are_counted(k: int, most: int, told: int) -> None:
    def histories(asked: int, corrected: int) -> int:
        """Questions from here on: one now, then what follows an agreement or each correction."""
        if asked == k or corrected == most:
            return 0
        return 1 + histories(asked + 1, corrected) + told * histories(asked + 1, corrected + 1)

    accuracy = _Wanted(T, most, epsilon=Fraction(1)).on(1000)
    object.__setattr__(accuracy, "told", told)
    exact = sum(math.comb(k, i + 1) * told**i for i in range(min(k, most)))
    assert histories(0, 0) == exact
    assert math.log(exact) <= accuracy._log_questions(k) + 1e-12


def test_values_stay_near_the_sample_as_often_as_they_should() -> None:
    """Lemma 1 at confidence 1/2: far fewer than half of the lives break it,
    though the threshold alone is often passed.
    """
    worst, bound = [], 0.0
    rows = np.arange(1000) % 2
    with replay(Tape(21)):
        for _ in range(100):
            holdout = Holdout(rows, epsilon=4, threshold=0.1, most=3)
            bound = holdout.guarantee(0.5, questions=8).sample or 1.0
            worst.append(
                max(
                    abs(holdout.check(0.603, lambda x: x).value - 0.5) if holdout.left else 0
                    for _ in range(8)
                )
            )
    assert sum(value > bound for value in worst) <= 30
    assert sum(value > 0.1 for value in worst) >= 40


class Analyst:
    """Asks for random halves of the points, keeps those that seem large, and asks for a vote of all of them last."""

    def __init__(self, questions: int, seed: int) -> None:
        self.sets = np.random.default_rng(seed).random((questions, 2**12)) < 0.5

    def worst(self, holdout: Holdout) -> float:
        """The largest error on the uniform population of points, of all answers."""
        errors, leanings = [], np.zeros(2**12)
        for chosen in self.sets:
            told = self.asked(holdout, chosen)
            errors.append(abs(told - chosen.mean()))
            leanings += np.where(chosen, 1, -1) * (told - chosen.mean())
        errors.append(abs(self.asked(holdout, leanings > 0) - (leanings > 0).mean()))
        return float(max(errors))

    @staticmethod
    def asked(holdout: Any, chosen: Any) -> float:
        return float(holdout.check(0.0, lambda x: chosen[x]).value)


@pytest.mark.parametrize("seed", range(4))
def test_the_promise_holds_against_an_analyst_who_collects_corrections(seed: int) -> None:
    """Little noise, so that only Theorem 4 protects: a bound for fixed questions breaks, ours does not."""
    rows = np.random.default_rng([5, seed]).integers(0, 2**12, 4000)
    with replay(Tape(seed)):
        holdout = Holdout(rows, epsilon=20, threshold=0.01, most=61, example=np.arange(4))
        worst = Analyst(60, seed).worst(holdout)
    promised = holdout.guarantee(questions=61).population
    fixed = math.sqrt(math.log(2 * 61 / 0.05) / 8000)
    assert holdout.left == 0
    assert fixed < worst < promised < 0.3


def test_freedmans_analysis_stays_within_the_promise() -> None:
    with replay(Tape(11)):
        found = freedman(rows=2_000, features=1_000, epsilon=8)
    promised = (
        _Wanted(T, 30, epsilon=Fraction(8)).on(2_000).guarantee(1_014, Fraction(95, 100)).population
    )
    assert found.guarded.sizes
    assert found.guarded.fooled <= promised < 0.42


def test_a_holdout_that_promises_nothing_is_refused_with_what_would_do() -> None:
    rows = np.zeros(1000)
    with pytest.raises(InvalidInput, match="about 32,000 rows, or most=37") as refused:
        Holdout(rows, tolerance=0.002, threshold=0.001, most=1200)
    assert "1200 corrected values" in str(refused.value)
    Holdout(np.zeros(32_000), tolerance=0.002, threshold=0.001, most=1200)
    Holdout(rows, tolerance=0.002, threshold=0.001, most=37)
    with pytest.raises(InvalidInput, match="smaller threshold"):
        Holdout(rows, epsilon=1, threshold=0.5)
    with pytest.raises(InvalidInput, match=r"Take about 1,600 rows\."):
        Holdout(np.zeros(100), epsilon=1)


def test_either_theorem_can_be_the_better_one() -> None:
    few = _Wanted(T, 20, epsilon=Fraction(1)).on(20_000).guarantee(1_000, 0.95)
    many = _Wanted(T, 1_000, epsilon=Fraction(1, 5)).on(10**6).guarantee(10**5, 0.95)
    assert (few.method, many.method) == ("counting", "pure")
    assert 0.16 < few.population < 0.17
    assert 0.33 < many.population < 0.34


def test_more_rows_fewer_questions_less_confidence_are_never_worse() -> None:
    base = _Wanted(T, 10, epsilon=Fraction(1)).on(20_000)
    found = base.guarantee(100, 0.95)
    for other in (
        _Wanted(T, 10, epsilon=Fraction(1)).on(30_000).guarantee(100, 0.95),
        base.guarantee(50, 0.95),
        base.guarantee(100, 0.9),
        _Wanted(T, 5, epsilon=Fraction(1)).on(20_000).guarantee(100, 0.95),
    ):
        assert other.population < found.population
        assert other.sample is not None
        assert found.sample is not None
        assert other.sample < found.sample < found.population
    assert base.guarantee(100, 0.95).population < base.guarantee(10**9, 0.95).population < 1


def test_half_widths_grow_with_questions_and_their_failures_sum_to_what_is_allowed() -> None:
    holdout = Holdout(np.zeros(20_000), epsilon=1)
    widths = [holdout.check(0.0, lambda x: x).half_width for _ in range(9)]
    assert widths == sorted(widths)
    assert len(set(widths)) == 5  # 1, 2, 4, 8, 16 questions
    assert widths[2] == holdout.guarantee(1 - Fraction(5, 100) / 12, questions=4).population
    assert holdout.asked == 9


def test_hardly_any_noise_is_no_matter_for_floats() -> None:
    holdout = Holdout(np.ones(10_000), epsilon=10**6, most=3)
    # a hundred scales of the noise
    assert holdout.check(0, lambda x: x).value == pytest.approx(1.0, abs=1e-7)
    assert holdout.guarantee(questions=10).population < 0.2
    with pytest.raises(InvalidInput, match="a million"):
        Holdout(np.ones(10_000), epsilon=10**400, most=3)


@pytest.mark.parametrize(
    "bad", [{"questions": 0}, {"questions": True}, {"questions": 5, "confidence": 1}]
)
def test_bad_input_is_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        Holdout(np.zeros(20_000), epsilon=1).guarantee(**bad)


def test_freedman_ends_the_curve_when_the_holdout_is_used_up() -> None:
    with replay(Tape(2)):
        found = freedman(rows=2_000, features=2_000)
    assert (found.guarded.sizes, found.corrected) == ((), 30)
    holdout = Holdout(np.zeros(5_000), epsilon=4, most=1)
    holdout.check(0.9, lambda x: x)
    with pytest.raises(BudgetExceeded):
        holdout.check(0.0, lambda x: x)

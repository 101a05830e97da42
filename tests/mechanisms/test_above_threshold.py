"""Above threshold: the exact law of the answers on neighbours,
variants that are known to be wrong, one life for each.
"""

from __future__ import annotations

import copy
import math
import os
import pickle
import threading
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.special import chdtrc

import sordino as so
from forked import refused_in_a_child
from sordino.errors import BudgetExceeded, InvalidInput, OffLattice
from sordino.mechanisms.above_threshold import AboveThreshold, _scales
from statistics_of_draws import ACCEPT
from tape import Tape, replay

Answers = tuple[bool, ...]
TAIL = 1e-40
"""What the sum over the threshold's noise leaves out."""
COUNTS = 1e-30
"""Answers less likely than this on both sides are left aside: beside the others TAIL is nothing."""


def at_least(k: Any, scale: float) -> Any:
    """P[round(Z) >= k] for Laplace noise of this scale; without noise, whether 0 >= k."""
    if scale == 0:
        return np.where(k <= 0, 1.0, 0.0)
    x = (k - 0.5) / scale
    tail = np.exp(-np.abs(x)) / 2
    return np.where(x >= 0, tail, 1 - tail)


@dataclass(frozen=True)
class Variant:
    """The sparse vector technique with scales in steps;
    `stops` after `most` positive answers; may refresh the threshold.
    """

    threshold_scale: float
    question_scale: float
    most: int
    stops: bool = True
    refreshes: bool = False

    def probability(self, values: tuple[int, ...], answers: Answers) -> float:
        """P[answers] to within TAIL, for threshold 0; answers after the end must be False."""
        pieces, start = [], 0
        if self.stops and sum(answers) >= self.most:
            end = [i for i, yes in enumerate(answers) if yes][self.most - 1] + 1
            if any(answers[end:]):
                return 0.0
            values, answers = values[:end], answers[:end]
        if self.refreshes:
            for i, yes in enumerate(answers):
                if yes:
                    pieces.append(slice(start, i + 1))
                    start = i + 1
        pieces.append(slice(start, len(answers)))
        return math.prod(self._piece(values[piece], answers[piece]) for piece in pieces)

    def _piece(self, values: tuple[int, ...], answers: Answers) -> float:
        reach = math.ceil(self.threshold_scale * -math.log(TAIL)) + 1
        z = np.arange(-reach, reach + 1)
        size = np.abs(z)  # by symmetry, without cancellation
        terms = at_least(size, self.threshold_scale) - at_least(size + 1, self.threshold_scale)
        for value, yes in zip(values, answers, strict=True):
            terms = terms * at_least(z - value if yes else 1 - (z - value), self.question_scale)
        return float(terms.sum())


def log_ratio(p: float, q: float) -> float:
    if max(p, q) < COUNTS:
        return 0.0
    return abs(math.log(p / q)) if min(p, q) > 0 else math.inf


def right(epsilon: float, most: int, monotone: bool = False) -> Variant:
    above = AboveThreshold.calibrated(epsilon=epsilon, threshold=0, most=most, monotone=monotone)
    return Variant(float(above.threshold_noise.scale), float(above.question_noise.scale), most)


def worst(variant: Variant, questions: int, monotone: bool = False) -> float:
    """The largest log ratio over neighbours that are 1 apart in each value, around three base values."""
    largest = 0.0
    transcripts = list(product((False, True), repeat=questions))
    for base, moves in product((-2, 0, 1), product((-1, 0, 1), repeat=questions)):
        if monotone and min(moves) < 0 < max(moves):
            continue
        one, other = (base,) * questions, tuple(base + m for m in moves)
        for answers in transcripts:
            largest = max(
                largest,
                log_ratio(variant.probability(one, answers), variant.probability(other, answers)),
            )
    return largest


def worst_long(variant: Variant, questions: int) -> float:
    """The same for many answers of one kind, and for half of each kind, on values that all move, or move apart."""
    half = questions // 2
    largest = 0.0
    for answers in ((False,) * questions, (False,) * half + (True,) * half, (True, False) * half):
        for one, other in (((0,) * questions, (1,) * questions), ((0,) * questions, (1,) * half + (-1,) * half),
                           ((0, 0) * half, (-1, 1) * half), ((2, 0) * half, (1, 1) * half)):  # fmt: skip
            largest = max(
                largest,
                log_ratio(variant.probability(one, answers), variant.probability(other, answers)),
            )
    return largest


@pytest.mark.parametrize(("epsilon", "most"), [(1.0, 1), (1.0, 2), (3.0, 1)])
def test_all_answers_together_are_within_epsilon(epsilon: float, most: int) -> None:
    variant = right(epsilon, most)
    assert worst(variant, 3) <= epsilon + 1e-12
    assert worst(variant, 3) >= 0.4 * epsilon
    for questions in (2, 8, 24):
        assert worst_long(variant, questions) <= epsilon + 1e-12


def test_monotone_values_need_less_noise_and_only_they() -> None:
    variant = right(1, 2, monotone=True)
    assert variant.question_scale < 0.65 * right(1, 2).question_scale
    assert worst(variant, 3, monotone=True) <= 1 + 1e-12
    apart = (False, False, False, False, False, True, True)
    one, other = (0,) * 7, (1,) * 5 + (-1,) * 2
    assert abs(math.log(variant.probability(one, apart) / variant.probability(other, apart))) > 1


@pytest.mark.parametrize(
    "wrong",
    [
        replace(right(1, 2), threshold_scale=0.0),
        replace(right(1, 2), question_scale=0.0),
        replace(right(1, 4), question_scale=right(1, 1).question_scale),
        replace(right(1, 2), stops=False),
    ],
    ids=[
        "no noise on the threshold",
        "no noise on the values",
        "noise that does not grow with most",
        "no end",
    ],
)
def test_known_mistakes_are_caught_by_the_same_checks(wrong: Variant) -> None:
    assert max(worst_long(wrong, questions) for questions in (2, 8, 24)) > 2


@pytest.mark.parametrize("most", [1, 2])
def test_the_object_has_that_law_and_no_other(most: int) -> None:
    # by the exact laws, of seven tried the best at telling these variants apart
    values, runs = (
        (-5, -5, 5, 5),
        2500,
    )
    variant = right(1.5, most)
    outcomes = [a for a in product((False, True), repeat=4) if variant.probability(values, a) > 0]
    counts = dict.fromkeys(outcomes, 0)
    with replay(Tape(11)):
        for _ in range(runs):
            above = AboveThreshold(1.5, 0, most)
            counts[tuple(above.ask(v) if above.left else False for v in values)] += 1

    def p_value(law: Variant) -> float:
        expected = np.array([law.probability(values, a) for a in outcomes]) * runs
        observed = np.array([counts[a] for a in outcomes])
        keep = expected > 5
        return float(
            chdtrc(keep.sum() - 1, float(((observed - expected)[keep] ** 2 / expected[keep]).sum()))
        )

    assert sum(variant.probability(values, a) for a in outcomes) == pytest.approx(1, abs=1e-12)
    assert p_value(variant) > ACCEPT
    assert p_value(replace(variant, threshold_scale=variant.threshold_scale * 1.5)) < 1e-6
    assert p_value(replace(variant, question_scale=variant.question_scale * 1.5)) < 1e-6
    if most == 2:
        assert p_value(replace(variant, refreshes=True)) < 1e-6


def test_the_split_has_the_least_variance() -> None:
    for most, monotone in product((1, 5, 100), (False, True)):
        first, second = _scales(Fraction(1), Fraction(1), most, monotone)
        times = most * (1 if monotone else 2)
        assert 1 / first + times / second == 1
        best = min(
            1 / e**2 + (times / (1 - e)) ** 2 for e in np.linspace(0.001, 0.999, 9999).tolist()
        )
        assert float(first**2 + second**2) <= best * (1 + 1e-6)


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), 0.1, 1, 3.7, 30, Fraction(1, 10**9)], ids=str)
def test_the_loss_covers_the_noise_and_costs_no_more_than_epsilon(epsilon: Any) -> None:
    above = AboveThreshold.calibrated(epsilon=epsilon, threshold=0, most=3, sensitivity=2)
    spent = 2 / above.threshold_noise.scale + 3 * 2 * 2 / above.question_noise.scale
    truth = above.loss().p[0]
    assert spent == above.usable_epsilon
    assert float(spent) == pytest.approx(float(epsilon), rel=1e-12)
    from sordino.privacy.ball import ball, certified

    assert certified(lambda: ball(truth / (1 - truth)).log() - ball(spent)) >= 0
    charge = so.Charge.of(above.loss())
    assert charge.pure is not None
    assert charge.pure <= above.epsilon <= min(Fraction(epsilon), Fraction(str(epsilon)))
    assert so.TwoMeterFilter(so.Budget(epsilon)).fits(charge) == 1


def test_it_ends_after_the_last_positive_answer() -> None:
    above = AboveThreshold.calibrated(epsilon=1, threshold=100, most=2)
    assert [above.ask(v) for v in (-(10**6), 10**6, -(10**6), 10**6)] == [False, True, False, True]
    assert above.left == 0
    for value in (-(10**6), 10**6):
        with pytest.raises(BudgetExceeded, match="2 positive answers were given"):
            above.ask(value)


def test_nothing_can_carry_its_noise_elsewhere() -> None:
    above = AboveThreshold.calibrated(epsilon=1, threshold=0, most=3)
    for attempt in (
        copy.copy,
        copy.deepcopy,
        pickle.dumps,
        lambda x: copy.deepcopy([x]),
        lambda x: x.__reduce_ex__(2),
    ):
        with pytest.raises(InvalidInput, match="used twice"):
            attempt(above)
    assert not hasattr(above, "__dict__")
    assert repr(above) == "AboveThreshold(epsilon=1, threshold=0, most=3, sensitivity=1)"
    above._process = os.getpid() + 1
    with pytest.raises(InvalidInput, match="another process"):
        above.ask(0)


def test_a_forked_child_cannot_ask() -> None:
    above = AboveThreshold.calibrated(epsilon=1, threshold=0)
    assert refused_in_a_child(lambda: above.ask(0))


def test_an_epsilon_below_all_floats_is_refused() -> None:
    with pytest.raises(InvalidInput, match="below all floats"):
        AboveThreshold(Fraction(1, 10**400), 1)
    assert AboveThreshold(Fraction(1, 10**300), 1).left == 1


def test_threads_get_no_more_than_the_allowed_answers() -> None:
    above = AboveThreshold.calibrated(epsilon=1, threshold=0, most=50)
    found: list[bool] = []

    def work() -> None:
        for _ in range(40):
            try:
                found.append(above.ask(10**6))
            except BudgetExceeded:
                found.append(False)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(found) == 50


def test_answers_are_right_beyond_the_interval() -> None:
    with replay(Tape(2)):
        wrong = 0
        for _ in range(300):
            above = AboveThreshold.calibrated(
                epsilon=1, threshold=5, most=6, sensitivity=Fraction(1, 10), step=0.01
            )
            width = above.interval(0.9, questions=12)
            values = [5 + width * side * 1.01 for side in (1, -1) * 6]
            wrong += [above.ask(v, round_to_lattice=True) for v in values[:11]] != [
                True,
                False,
            ] * 5 + [True]
    assert wrong <= 30 + 5 * math.sqrt(27)


@pytest.mark.parametrize(
    "bad",
    [{"epsilon": 0}, {"epsilon": math.inf}, {"sensitivity": 0}, {"most": 0}, {"most": 1.5}, {"most": True}, {"step": 0},
     {"monotone": 2}, {"threshold": math.nan}, {"threshold": [1]}],
    ids=str,
)  # fmt: skip
def test_refusals(bad: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        AboveThreshold.calibrated(**({"epsilon": 1, "threshold": 0} | bad))


def test_values_that_are_refused_cost_nothing() -> None:
    above = AboveThreshold.calibrated(epsilon=1, threshold=0)
    for value in (math.nan, [1], "1", None, True):
        with pytest.raises(InvalidInput):
            above.ask(value)  # type: ignore[arg-type]
    for wrong in (0.5, Fraction(1, 3)):
        with pytest.raises(OffLattice):
            above.ask(wrong)
    with pytest.raises(OffLattice):
        AboveThreshold(1, 0.5)
    with pytest.raises(InvalidInput):
        above.interval(questions=0)
    assert above.left == 1

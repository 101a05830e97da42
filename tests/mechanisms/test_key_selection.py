"""Key selection: the law of one key, the guarantee over all keys, the draws."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations_with_replacement, product

import numpy as np
import numpy.typing as npt
import pytest
from flint import arb

from sordino.errors import InvalidInput
from sordino.mechanisms.bits import SecureBits
from sordino.mechanisms.key_selection import DOUBT, KeySelection
from sordino.privacy.ball import ball, upper, working
from statistics_of_draws import ACCEPT
from tape import Script, Tape, replay

UNIT = 65536


def unit_delta(selection: KeySelection) -> arb:
    """d1 by the formula of the proof, at the working precision."""
    share = Fraction(selection.linf, selection.l1)
    return (
        ball(selection.delta * share)
        * ball(selection.unit_epsilon).expm1()
        / ball(selection.epsilon * share).expm1()
    )


def places(selection: KeySelection) -> list[int]:
    """Weights near zero, near both joints, and in between."""
    joints = (0, selection._turn, selection.half, selection.certain)
    near = {n + i for n in joints for i in range(-3, 4)}
    between = {selection.certain * i // 37 for i in range(38)}
    return sorted(n for n in near | between if n >= 0)


EXTREMES = [
    KeySelection.calibrated(epsilon=epsilon, delta=delta, l1=k * unit, linf=unit)
    for epsilon, delta, k, unit in product(
        (1e-6, 0.1, 1, 10), (1e-12, 1e-6, 0.01), (1, 50), (1, UNIT)
    )
] + [
    KeySelection.calibrated(epsilon=2000, delta=1e-9, l1=3, linf=1),
    KeySelection.calibrated(epsilon=1, delta=Fraction(1, 10**400), l1=30, linf=4),
    KeySelection.calibrated(epsilon=Fraction(1, 10**30), delta=Fraction(1, 10**40), l1=30, linf=4),
    KeySelection.calibrated(epsilon=1, delta=0.999, l1=1, linf=1),
]


@pytest.mark.parametrize("selection", EXTREMES, ids=repr)
def test_one_unit_of_weight_keeps_both_promises_at_every_weight(selection: KeySelection) -> None:
    """pi(n+1) <= e^e1 pi(n) + d1 and 1 - pi(n) <= e^e1 (1 - pi(n+1)) + d1, in balls, and one of the two is tight."""
    with working(4096):
        e, d = ball(selection.unit_epsilon).exp(), unit_delta(selection)
        assert selection.probability_ball(0) == 0
        assert selection.probability_ball(selection.certain) == 1
        for n in places(selection):
            p, after = selection.probability_ball(n), selection.probability_ball(n + 1)
            assert not after < p
            publish, withhold = after - e * p - d, (1 - p) - e * (1 - after) - d
            assert upper(publish) <= float(d) * 1e-30 + 1e-320
            assert upper(withhold) <= float(d) * 1e-30 + 1e-320
            if n + 1 < selection.certain:
                assert publish.contains(0) or withhold.contains(0)


def recursion(epsilon: float, delta: float, count: int) -> list[float]:
    """The optimal rule of the paper, step by step."""
    p, found = 0.0, [0.0]
    for _ in range(count):
        p = min(math.exp(epsilon) * p + delta, 1 - math.exp(-epsilon) * (1 - p - delta), 1.0)
        found.append(p)
    return found


@pytest.mark.parametrize(
    ("epsilon", "delta", "k"), [(1.0, 1e-5, 1), (0.1, 1e-8, 1), (3.0, 1e-3, 7), (0.01, 0.2, 2)]
)
def test_with_units_of_one_it_is_the_optimal_rule(epsilon: float, delta: float, k: int) -> None:
    selection = KeySelection.calibrated(epsilon=epsilon, delta=delta, l1=k, linf=1)
    count = min(selection.certain + 3, 5000)
    expected = recursion(epsilon / k, delta / k, count)
    found = [selection.probability(n) for n in range(count + 1)]
    assert np.allclose(found, expected, rtol=1e-9, atol=1e-13)
    assert selection.half == next(n for n, p in enumerate(expected) if p >= 0.5)


@pytest.mark.parametrize("unit", [2, 64, UNIT])
def test_persons_of_full_weight_get_the_optimal_rule_up_to_the_turn_and_less_than_one_person_more_behind(
    unit: int,
) -> None:
    selection = KeySelection.calibrated(epsilon=3, delta=Fraction(1, 10**6), l1=3 * unit, linf=unit)
    optimal = recursion(1.0, 1e-6 / 3, 60)
    for persons in range(60):
        p = selection.probability(persons * unit)
        assert p <= optimal[persons] + 1e-12
        assert p >= optimal[max(0, persons - 1)]
        if persons * unit <= selection._turn:
            assert p == pytest.approx(optimal[persons], rel=1e-12, abs=1e-300)


def hockey_stick(
    p: npt.NDArray[np.float64], q: npt.NDArray[np.float64], epsilon: float
) -> npt.NDArray[np.float64]:
    """sup_E P(E) - e^epsilon Q(E) for sets of keys published independently; the keys are the last axis."""
    total = np.zeros(p.shape[:-1])
    for outcome in product((False, True), repeat=p.shape[-1]):
        a = np.prod(np.where(outcome, p, 1 - p), axis=-1)
        b = np.prod(np.where(outcome, q, 1 - q), axis=-1)
        total += np.maximum(a - math.exp(epsilon) * b, 0)
    return total


def moves(l1: int, linf: int, keys: int) -> Iterator[tuple[int, ...]]:
    """All ways to move the weights of some keys, up to their order; signs as in a replacement."""
    for move in combinations_with_replacement(range(-linf, linf + 1), keys):
        if 0 < sum(map(abs, move)) <= l1:
            yield move


def worst(
    law: npt.NDArray[np.float64], l1: int, linf: int, keys: int, bases: list[int], epsilon: float
) -> float:
    """The largest divergence over all moves and all base weights, both directions (the moves have both signs)."""
    grid = np.array(list(product(bases, repeat=keys)))
    found = 0.0
    for move in moves(l1, linf, keys):
        moved = grid + np.array(move)
        allowed = (moved >= 0).all(axis=1)
        p, q = (
            law[np.minimum(grid[allowed], len(law) - 1)],
            law[np.minimum(moved[allowed], len(law) - 1)],
        )
        found = max(found, float(hockey_stick(p, q, epsilon).max()))
    return found


SMALL = [(1, 1), (1, 2), (1, 4), (2, 2), (2, 4), (3, 3), (3, 5), (4, 4)]


@pytest.mark.parametrize(("linf", "l1"), SMALL)
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.05), (0.3, 0.01), (4.0, 0.001)])
def test_the_published_set_is_private_for_every_person(
    linf: int, l1: int, epsilon: float, delta: float
) -> None:
    """Exhaustive over all moves of up to four keys on top of small and of critical weights."""
    selection = KeySelection.calibrated(epsilon=epsilon, delta=delta, l1=l1, linf=linf)
    law = np.array([selection.probability(n) for n in range(selection.certain + 1)])
    keys = min(4, l1)
    critical = {
        0,
        1,
        2,
        selection._turn - 1,
        selection._turn,
        selection.certain - 2,
        selection.certain - 1,
    }
    every = (
        list(range(selection.certain + linf + 1))
        if keys <= 2
        else sorted(n for n in critical if n >= 0)
    )
    found = worst(law, l1, linf, keys, every, epsilon)
    assert found <= delta * (1 + 1e-9) + 1e-15
    if l1 == linf == 1:
        assert found > delta * 0.999


def test_a_threshold_on_whole_persons_is_not_private_when_weights_are_spread_thin() -> None:
    """Why pi must grow with every unit: the optimal rule on floor(weight/F) lets a
    thin person tip many keys at once.
    """
    linf = l1 = 4
    optimal = recursion(1.0, 0.05, 40)
    law = np.array([optimal[n // linf] for n in range(40 * linf)])
    assert worst(law, l1, linf, 4, [3, 7, 11, 15], 1.0) > 0.05
    # it is only right for one key
    assert worst(law, l1, linf, 1, list(range(80)), 1.0) <= 0.05 * (1 + 1e-9)


@pytest.mark.parametrize("selection", [s for s in EXTREMES if s._fast], ids=repr)
def test_float_probabilities_are_closer_than_an_eighth_of_the_doubt(
    selection: KeySelection,
) -> None:
    weights = np.array(
        [n for n in places(selection) if 0 < n < min(selection.certain, 2**63)], np.int64
    )
    for weight, p in zip(
        weights.tolist(), selection._float_probabilities(weights).tolist(), strict=True
    ):
        with working(256):
            assert abs(selection.probability_ball(weight) - arb(p)) < DOUBT / 8


@pytest.mark.parametrize(
    "selection", [EXTREMES[0], EXTREMES[13], EXTREMES[-1], EXTREMES[-4], EXTREMES[-3]], ids=repr
)
def test_the_slow_path_is_the_same_function_of_the_bits(selection: KeySelection) -> None:
    weights = np.random.default_rng(4).integers(0, min(selection.certain + 10, 2**62), 400)
    fast = selection._select(weights, Tape(6))
    assert fast.tolist() == selection._select(weights, Tape(6), always_refine=True).tolist()


def test_words_beside_the_boundary_are_decided_as_balls_decide_them() -> None:
    selection = KeySelection.calibrated(epsilon=1, delta=1e-6, l1=3 * UNIT, linf=UNIT)
    for weight in (1, UNIT, 30 * UNIT, selection._turn + 5, selection.certain - 1):
        with working(256):
            edge = int((selection.probability_ball(weight) * 2**63).floor().unique_fmpz() or 0)
        for offset in (0, 1, -1, *(s * 2**j for j in range(4, 60, 5) for s in (-1, 1))):
            word = edge + offset
            if not 0 <= word < 2**63:
                continue
            found = {
                bool(selection._select(np.array([weight]), Script([word], then=t))[0])
                for t in (0, 2**64 - 1)
            }
            assert found == ({offset < 0} if offset else {True, False})


def test_draws_have_the_law_and_no_other() -> None:
    selection = KeySelection.calibrated(epsilon=1, delta=1e-3, l1=40, linf=20)
    count, bits = 200_000, SecureBits()
    statistic = wrong = 0.0
    weights = range(10, selection.certain, 25)
    for weight in weights:
        p = selection.probability(weight)
        hits = int(selection._select(np.full(count, weight), bits).sum())
        statistic += (hits - count * p) ** 2 / (count * p * (1 - p))
        wrong += (hits - count * p * 1.05) ** 2 / (count * p * (1 - p))
    from scipy.special import chdtrc

    assert chdtrc(len(weights), statistic) > ACCEPT
    assert chdtrc(len(weights), wrong) < 1e-12


def test_nothing_is_never_published_and_certain_keys_always() -> None:
    selection = KeySelection.calibrated(epsilon=1, delta=0.5, l1=1, linf=1)
    weights = [0, selection.certain, 2**63 - 1] * 5000
    assert selection.select(weights).tolist() == [False, True, True] * 5000
    assert selection.select([]).tolist() == []
    with replay(Script([0], then=0)):
        assert selection.select([0]).tolist() == [False]


def test_the_tape_decides() -> None:
    selection = KeySelection.calibrated(epsilon=1, delta=1e-3, l1=2, linf=1)
    weights = np.arange(40_000) % 30
    with replay(Tape(9)):
        first = selection.select(weights)
    with replay(Tape(9)):
        assert selection.select(weights).tolist() == first.tolist()
    with replay(Tape(10)):
        assert selection.select(weights).tolist() != first.tolist()


def test_the_numbers_for_explanations_are_where_the_law_says() -> None:
    for selection in EXTREMES:
        if selection.certain < 10**14:
            assert (
                selection.probability(selection.half)
                >= 0.5
                > selection.probability(selection.half - 1)
            )
            assert selection.probability(selection.certain) == 1.0
            with working(2048):
                assert selection.probability_ball(selection.certain - 1) < 1


def test_promises_hold_under_both_readings_of_a_float() -> None:
    selection = KeySelection.calibrated(epsilon=0.1, delta=1e-5, l1=2, linf=1)
    assert selection.epsilon <= min(Fraction(0.1), Fraction(1, 10))
    assert selection.delta <= min(Fraction(1e-5), Fraction(1, 10**5))
    assert repr(selection) == "KeySelection(epsilon=0.1, delta=1e-05, l1=2, linf=1)"


@pytest.mark.parametrize(
    "wrong",
    [
        {"epsilon": 0},
        {"epsilon": -1},
        {"delta": 0},
        {"delta": 1},
        {"l1": 0},
        {"linf": 0},
        {"linf": 3},
        {"l1": 1.5},
        {"l1": True},
    ],
    ids=str,
)
def test_refusals(wrong: dict[str, float]) -> None:
    good = {"epsilon": 1, "delta": 1e-6, "l1": 2, "linf": 1}
    with pytest.raises(InvalidInput):
        KeySelection.calibrated(**(good | wrong))  # type: ignore[arg-type]


@pytest.mark.parametrize("weights", [[-1], [0.5], [2**63], [[1]], ["a"]], ids=str)
def test_weights_that_are_refused(weights: list[object]) -> None:
    with pytest.raises(InvalidInput) as refusal:
        KeySelection.calibrated(epsilon=1, delta=1e-6, l1=2, linf=1).select(weights)  # type: ignore[arg-type]
    assert "0.5" not in str(refusal.value)

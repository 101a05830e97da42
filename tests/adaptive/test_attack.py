"""The population guarantee against an adaptive attacker, and Freedman's paradox."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sordino.adaptive import attack as module
from sordino.adaptive.attack import Attacked, attack
from sordino.adaptive.freedman import freedman
from sordino.adaptive.statistical_queries import StatisticalQueries
from sordino.errors import InvalidInput
from sordino.mechanisms import bits
from tape import Tape, replay


def _campaign(runs: int, capsys: pytest.CaptureFixture[str]) -> list[Attacked]:
    with replay(Tape(runs)):
        found = [attack() for _ in range(runs)]
    with capsys.disabled():
        naive, ours = min(run.exact for run in found), max(run.noisy for run in found)
        head = f"{runs} attacks, {found[0].rows} rows, {found[0].questions} questions"
        print(f"\n{head}: promised {found[0].promised:.4f}, worst of ours {ours:.4f}, best of naive {naive:.4f}")
    return found


def test_our_promise_holds_and_exact_answers_break_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert all(run.holds and run.naive_fails for run in _campaign(20, capsys))


@pytest.mark.slow
def test_our_promise_holds_in_five_hundred_attacks(capsys: pytest.CaptureFixture[str]) -> None:
    assert all(run.holds and run.naive_fails for run in _campaign(500, capsys))


def test_the_attack_is_as_strong_as_its_theory() -> None:
    """The last exact answer is off by E|h - lambda|/(2 lambda), h the Poisson count of a point: about sqrt(k/(2 pi n))."""
    with replay(Tape(1)):
        found = attack(rows=100_000, size=14)
    assert found.last_exact == pytest.approx(math.sqrt(found.questions / (2 * math.pi * found.rows)), rel=0.03)
    assert found.exact == found.last_exact


def test_the_transform_is_all_parities() -> None:
    counts = np.random.default_rng(5).integers(0, 9, 16)
    naive = [sum(int(c) * (-1) ** bin(x & mask).count("1") for x, c in enumerate(counts)) for mask in range(16)]
    assert module._parities(counts).tolist() == naive


@pytest.mark.parametrize("size", [3, 17])
def test_points_are_uniform(size: int) -> None:
    with replay(Tape(size)):
        counts = module._counts(200_001, size)
    assert counts.sum() == 200_001
    assert len(counts) == 2**size
    assert ((counts - 200_001 / 2**size) ** 2).sum() / (200_001 / 2**size) < 2**size + 8 * math.sqrt(2 * 2**size) + 20


def test_the_simulated_oracle_is_the_real_one() -> None:
    """The same bits, the same questions: asked one at a time through the oracle, the answers are those of the simulation."""
    points = np.random.default_rng(3).integers(0, 8, 5_000)
    with replay(Tape(2)):
        oracle = StatisticalQueries(points, questions=8)
        asked = [oracle.ask(lambda rows, mask=mask: np.bitwise_count(rows & mask) % 2 == 0).value for mask in range(1, 8)]
    exact = (5_000 + module._parities(np.bincount(points, minlength=8))[1:]) // 2
    mechanism = oracle.mechanism
    noise = np.array(asked) - exact / 5_000
    assert np.abs(noise).max() < 8 * float(mechanism.scale)
    assert np.abs(noise).max() > 0
    with replay(Tape(2)):
        simulated = (
            module._answered(np.repeat(exact, 3_000), 5_000, mechanism) / (5_000 * 2**20) - np.repeat(exact, 3_000) / 5_000
        )
    assert simulated.std() == pytest.approx(float(mechanism.scale), rel=0.05)


@pytest.mark.parametrize("bad", [{"rows": 0}, {"rows": True}, {"size": 0}, {"size": 40}, {"confidence": 1}])
def test_bad_input_of_the_attack(bad: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        attack(**bad)  # type: ignore[arg-type]


def test_a_plain_holdout_is_fooled_and_ours_is_not() -> None:
    with replay(Tape(11)):
        found = freedman(rows=2_000, features=2_000, epsilon=8)
    assert found.plain.holdout[-1] > 0.58
    assert abs(found.guarded.holdout[-1] - 0.5) < 0.05
    assert found.guarded.train[-1] > 0.7
    assert all(abs(value - 0.5) < 0.06 for curve in (found.plain, found.guarded) for value in curve.fresh)
    assert found.guarded.fooled < found.plain.fooled
    assert 0 < found.corrected <= 30
    for curve in (found.plain, found.guarded):
        assert len(curve.sizes) == len(curve.train) == len(curve.holdout) == len(curve.fresh) > 3


def test_a_used_up_holdout_ends_the_curve() -> None:
    with replay(Tape(4)):
        found = freedman(rows=1_000, features=200, most=1)
    assert found.guarded.sizes == ()
    assert found.guarded.fooled == 0.0
    assert found.corrected == 1


@pytest.mark.parametrize("bad", [{"rows": 10}, {"features": 1.5}, {"rows": True}, {"epsilon": 0}])
def test_bad_input_of_the_paradox(bad: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        freedman(**bad)  # type: ignore[arg-type]


def test_nothing_is_seeded() -> None:
    assert isinstance(bits.source(), bits.SecureBits)
    assert attack(rows=5_000, size=6) != attack(rows=5_000, size=6)

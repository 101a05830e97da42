"""The population guarantee against an adaptive attacker, and Freedman's paradox."""

from __future__ import annotations

import math
from fractions import Fraction
from unittest import mock

import numpy as np
import numpy.typing as npt
import pytest

from sordino.adaptive import attack as module
from sordino.adaptive.attack import Attacked, attack
from sordino.adaptive.freedman import freedman
from sordino.adaptive.guard import GRID
from sordino.adaptive.statistical_queries import StatisticalQueries
from sordino.errors import InvalidInput
from sordino.mechanisms import bits
from sordino.mechanisms.gaussian import Gaussian
from sordino.mechanisms.laplace import Laplace
from tape import Tape, replay

Whole = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
ANSWERED = module._answered


def _campaign(runs: int, capsys: pytest.CaptureFixture[str]) -> list[Attacked]:
    with replay(Tape(runs)):
        found = [attack() for _ in range(runs)]
    with capsys.disabled():
        naive, ours = min(run.exact for run in found), max(run.noisy for run in found)
        head = f"{runs} attacks, {found[0].rows} rows, {found[0].questions} questions"
        print(
            f"\n{head}: promised {found[0].promised:.4f}, worst of ours {ours:.4f}, best of naive {naive:.4f}"
        )
    return found


def test_our_promise_holds_and_exact_answers_break_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert all(run.holds and run.naive_fails for run in _campaign(20, capsys))


@pytest.mark.slow
def test_our_promise_holds_in_five_hundred_attacks(capsys: pytest.CaptureFixture[str]) -> None:
    assert all(run.holds and run.naive_fails for run in _campaign(500, capsys))


def test_the_attack_is_as_strong_as_its_theory() -> None:
    """The last exact answer is off by E|h - lambda|/(2 lambda),
    h the Poisson count of a point: about sqrt(k/(2 pi n)).
    """
    with replay(Tape(1)):
        found = attack(rows=100_000, size=14)
    assert found.last_exact == pytest.approx(
        math.sqrt(found.questions / (2 * math.pi * found.rows)), rel=0.03
    )
    assert found.exact == found.last_exact


def test_the_transform_is_all_parities() -> None:
    counts = np.random.default_rng(5).integers(0, 9, 16)
    naive = [
        sum(int(c) * (-1) ** bin(x & mask).count("1") for x, c in enumerate(counts))
        for mask in range(16)
    ]
    assert module._parities(counts).tolist() == naive


@pytest.mark.parametrize("size", [3, 17])
def test_points_are_uniform(size: int) -> None:
    with replay(Tape(size)):
        counts = module._counts(200_001, size)
    assert counts.sum() == 200_001
    assert len(counts) == 2**size
    assert ((counts - 200_001 / 2**size) ** 2).sum() / (
        200_001 / 2**size
    ) < 2**size + 8 * math.sqrt(2 * 2**size) + 20


class Parity:
    """Whether a point has an even number of the bits of a mask."""

    by_row = True

    def __init__(self, mask: int) -> None:
        self.mask = mask

    def __call__(self, rows: Whole) -> Bools:
        even: Bools = np.bitwise_count(rows & self.mask) % 2 == 0
        return even


def _asked(points: Whole, size: int) -> tuple[StatisticalQueries, list[float], Bools]:
    """The whole attack through the oracle: all answers, and the points that were asked for last."""
    oracle = StatisticalQueries(points, questions=2**size, example=np.arange(4))
    told = [oracle.ask(Parity(mask)).value for mask in range(1, 2**size)]
    units = len(points) * GRID
    leanings = np.array([0, *(2 * round(value * units) - units for value in told)])
    chosen = module._parities(leanings) > 0
    return oracle, [*told, oracle.ask(lambda rows: chosen[rows]).value], chosen


@pytest.mark.parametrize("seed", range(3))
def test_an_attack_through_the_oracle_is_the_simulated_one(seed: int) -> None:
    """The same tape, one question at a time: the same answers to the last bit,
    the same last question, the same error.
    """
    points, size = np.random.default_rng(seed).integers(0, 64, 3_000), 6
    counts = np.bincount(points, minlength=64)
    with replay(Tape(seed)):
        oracle, told, chosen = _asked(points, size)
    totals = [*((3_000 + module._parities(counts)[1:]) // 2).tolist(), int(counts[chosen].sum())]
    with replay(Tape(seed)):
        simulated = [
            int(module._answered(np.array([total]), 3_000, oracle.mechanism)[0]) for total in totals
        ]
    assert told == [float(Fraction(value, 3_000 * GRID)) for value in simulated]
    assert oracle.left == 0
    errors = [abs(value - 0.5) for value in told[:-1]] + [abs(told[-1] - float(chosen.mean()))]
    assert max(errors) <= oracle.guarantee().population
    with replay(Tape(seed)), mock.patch.object(module, "_answered", _one_by_one):
        assert module._errors(counts, oracle.mechanism) == pytest.approx(
            (max(errors), errors[-1]), abs=1e-12
        )


def _one_by_one(totals: Whole, rows: int, mechanism: Gaussian | Laplace) -> Whole:
    return np.concatenate(
        [ANSWERED(totals[i : i + 1], rows, mechanism) for i in range(len(totals))]
    )


def test_the_noise_of_the_oracles_answers_is_its_own_centred_and_independent() -> None:
    """2,048 answers of attacks with the best noise; each claim within five deviations."""
    points, size = np.random.default_rng(9).integers(0, 2**10, 4_000), 10
    counts = np.bincount(points, minlength=2**10)
    exact = (4_000 + module._parities(counts)[1:]) / 2 / 4_000
    found = []
    with replay(Tape(9)):
        for _ in range(2):
            oracle, told, _ = _asked(points, size)
            found.append((np.array(told[:-1]) - exact) / float(oracle.mechanism.scale))
    noise, count = np.concatenate(found), 2 * (2**size - 1)
    # no answer is clamped
    assert np.abs(exact - 0.5).max() + 6 * float(oracle.mechanism.scale) < 0.5
    assert abs(noise.mean()) < 5 / math.sqrt(count)
    assert abs(noise.std() - 1) < 5 / math.sqrt(2 * count)
    assert abs((noise[1:] * noise[:-1]).mean()) < 5 / math.sqrt(count)
    assert abs((found[0] * found[1]).mean()) < 5 / math.sqrt(len(exact))
    truth = np.tile((exact - exact.mean()) / exact.std(), 2)
    assert abs((noise * truth).mean()) < 5 / math.sqrt(count)
    assert abs((np.abs(noise) > 1.959964).mean() - 0.05) < 5 * math.sqrt(0.05 * 0.95 / count)


@pytest.mark.parametrize(
    "bad", [{"rows": 0}, {"rows": True}, {"size": 0}, {"size": 40}, {"confidence": 1}]
)
def test_bad_input_of_the_attack(bad: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        attack(**bad)  # type: ignore[arg-type]


def test_a_plain_holdout_is_fooled_and_ours_is_not() -> None:
    with replay(Tape(11)):
        found = freedman(rows=2_000, features=2_000, epsilon=8)
    assert found.plain.holdout[-1] > 0.58
    assert abs(found.guarded.holdout[-1] - 0.5) < 0.05
    assert found.guarded.train[-1] > 0.7
    assert all(
        abs(value - 0.5) < 0.06 for curve in (found.plain, found.guarded) for value in curve.fresh
    )
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

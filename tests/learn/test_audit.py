"""The audit of training runs: the bound is right, ours passes, and seven broken trainers do not."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip(
    "torch", reason="PyTorch is not installed: pip install 'sordino[torch]'"
)

import sordino as so  # noqa: E402
from learn.trainers import BROKEN, DELTA, EPSILON, RATE, SETTINGS, SIGMA, STEPS, Plain, right  # noqa: E402
from sordino.errors import InvalidInput  # noqa: E402
from sordino.learn.canaries import audit_training, certified_epsilon  # noqa: E402


def test_the_noise_of_the_examples_is_what_the_accountant_asks_for() -> None:
    plan = so.learn.RunPlan.within(
        epsilon=EPSILON, delta=DELTA, rate=Fraction(str(RATE)), steps=STEPS
    )
    assert float(plan.sigma) == pytest.approx(SIGMA, abs=0.001)


@pytest.mark.parametrize("name", BROKEN)
def test_broken_trainers_are_flagged(name: str) -> None:
    torch.set_num_threads(1)
    canaries, ordinary = SETTINGS.get(name, (1000, 100))
    rate = 1 / STEPS if "shuffled" in name else RATE
    found = audit_training(
        BROKEN[name],
        epsilon=EPSILON,
        delta=DELTA,
        rate=rate,
        canaries=canaries,
        ordinary=ordinary,
        name=name,
    )
    assert not found.passed, str(found)
    assert ("SAMPLER" if "shuffled" in name else "FALSE") in str(found)
    assert bool(found.sampling) == ("shuffled" in name)


def test_the_right_trainer_passes() -> None:
    torch.set_num_threads(1)
    for trainer in (right, Plain()):
        found = audit_training(
            trainer, epsilon=EPSILON, delta=DELTA, rate=RATE, canaries=300, ordinary=100
        )
        assert found.passed, str(found)
        assert found.epsilon_lower < EPSILON


def test_noise_that_is_correlated_passes() -> None:
    torch.set_num_threads(1)

    def correlated(model: Any, optimizer: Any, loss: Any, x: Any, y: Any) -> None:
        so.learn.Trainer(
            model, optimizer, loss, (x, y), epsilon=EPSILON, delta=DELTA, steps=STEPS, rate=Fraction(1, 10), size=250,
            physical_batch=64, bands=10,
        ).train(progress=False)  # fmt: skip

    found = audit_training(correlated, epsilon=EPSILON, delta=DELTA, canaries=300, ordinary=100)
    assert found.passed, str(found)


def test_the_bound_holds_for_randomized_response() -> None:
    """Guesses that are right with chance e^eps/(1 + e^eps) refute eps with chance 1 -
    confidence at most, and nearly eps.
    """
    made = np.random.default_rng(0)
    chance = 1 / (1 + np.exp(-1.0))
    bounds = [
        certified_epsilon(int(made.binomial(500, chance)), 500, 500, 0.0, 0.9) for _ in range(400)
    ]
    assert 0.05 < np.mean(np.array(bounds) > 1) < 0.15
    assert np.median(bounds) > 0.7
    assert certified_epsilon(250, 500, 500, 0.0, 0.999) == 0
    assert (
        certified_epsilon(500, 500, 500, 1e-5, 0.999)
        < certified_epsilon(500, 500, 500, 0.0, 0.999)
        < 5
    )


def test_what_cannot_be_audited_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"optimizer\.step"):
        audit_training(lambda *_: None, epsilon=1, delta=1e-5)
    with pytest.raises(InvalidInput, match="canaries"):
        audit_training(right, epsilon=1, delta=1e-5, canaries=3)


def test_the_command_line_audits_trainers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from typer.testing import CliRunner

    from sordino.cli.commands import app

    text = (Path(__file__).parent / "trainers.py").read_text()
    (tmp_path / "train.py").write_text(text + "\n\ndef loud(model, optimizer, loss, x, y):\n    "
                                       "Plain(no_clipping=True)(model, optimizer, loss, x, y)\n")  # fmt: skip
    monkeypatch.chdir(tmp_path)
    run = CliRunner().invoke(app, ["audit", "train.py:loud", "--epsilon", "2", "--delta", "1e-5"])
    assert run.exit_code == 6, run.output
    assert "THE CLAIM IS FALSE" in run.output

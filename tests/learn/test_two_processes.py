"""Two processes that train one model: the same whole numbers as in one,
noise once, one charge, the same model in both.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip(
    "torch", reason="PyTorch is not installed: pip install 'sordino[torch]'"
)

import sordino as so  # noqa: E402
from learn import two_processes  # noqa: E402
from learn.two_processes import (  # noqa: E402
    Recorded,
    help_with_canaries,
    joined,
    noise_not_shared,
    refusal,
    trainer,
)
from sordino.errors import InvalidInput  # noqa: E402
from sordino.learn import TrainingResult  # noqa: E402
from sordino.learn import trainer as trainer_module  # noqa: E402
from sordino.learn.sampler import sampled  # noqa: E402


class _Stop(BaseException):
    pass


def begun_alone(folder: Path) -> Any:
    """A run of this process alone, interrupted after two steps; what it spent."""
    left = [2]

    def draw(*asked: Any) -> Any:
        left[0] -= 1
        if left[0] < 0:
            raise _Stop
        return sampled(*asked)

    made = trainer(None, steps=6, ledger=folder / "runs.ledger", budget=so.Budget(4, 1e-4))
    with pytest.MonkeyPatch.context() as changes:
        changes.setattr(trainer_module, "sampled", draw)
        with pytest.raises(_Stop):
            made.train(folder / "run.pt", progress=False)
    spent = made.ledger.spent
    made.ledger.close()
    return spent


@dataclass
class Both:
    """What the first process saw, and what the second one wrote down."""

    recorded: Recorded
    result: TrainingResult
    ledger: str
    models: list[Any]
    refused: list[str]
    spent: list[Any]
    second: dict[str, Any]


def first(folder: Path) -> dict[str, Any]:
    """All that the first process does, in the order of `second` in two_processes.py."""
    group = joined(folder, 0)
    try:
        whole, correlated = trainer(group), trainer(group, bands=2)
        with Recorded() as recorded:
            result = whole.train(progress=False)
        correlated.train(progress=False)
        refused = [refusal(folder, group), refusal(folder, group)]
        settings: dict[str, Any] = {"ledger": folder / "runs.ledger", "budget": so.Budget(4, 1e-4)}
        continued = trainer(group, steps=6, **settings).resume(folder / "run.pt")
        continued.train(folder / "run.pt", progress=False)
        spent = continued.ledger.spent
        continued.ledger.close()
        help_with_canaries()
        with noise_not_shared():
            help_with_canaries()
    finally:
        torch.distributed.destroy_process_group()
    models = [one.model.state_dict() for one in (whole, correlated, continued)]
    return {
        "recorded": recorded, "result": result, "ledger": repr(whole.ledger), "models": models, "refused": refused,
        "spent": spent,
    }  # fmt: skip


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Both:
    folder = tmp_path_factory.mktemp("both")
    roots = [str(Path(__file__).parents[1]), *filter(None, sys.path)]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(roots),
        "SORDINO_STATE": str(folder / "state"),
    }
    script = [sys.executable, two_processes.__file__, str(folder)]
    spent = begun_alone(folder)
    with subprocess.Popen(
        script, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as other:
        try:
            found = first(folder)
            told = other.communicate(timeout=300)[0]
        except BaseException:
            other.kill()
            print(other.communicate()[0])
            raise
    assert other.returncode == 0, told
    found["spent"] = [spent, found["spent"]]
    return Both(**found, second=torch.load(folder / "second.pt", weights_only=True))


def test_sums_of_two_processes_are_those_of_one_bit_for_bit(both: Both) -> None:
    """The same samples, and the same released numbers, in one process."""
    alone = trainer(None)
    with Recorded(like=both.recorded) as again:
        alone.train(progress=False)
    assert len(again.sums) == len(both.recorded.sums) == 5
    assert all(len(sample) > 1 for sample in again.samples)
    for one, two in zip(again.sums, both.recorded.sums, strict=True):
        assert np.array_equal(one, two)
    assert all(
        torch.equal(a, b)
        for a, b in zip(alone.model.state_dict().values(), both.models[0].values(), strict=True)
    )


def test_both_processes_hold_the_same_model_and_one_charge_pays(both: Both) -> None:
    for mine, theirs in zip(both.models, both.second["models"], strict=True):
        assert all(torch.equal(mine[name], theirs[name]) for name in mine)
    assert both.second["statement"] == str(both.result)
    assert both.second["receipt"] == both.result.receipt.number
    assert "4 entries" in both.ledger  # terms, the charge, one stretch and its end


def test_a_run_that_one_process_began_is_continued_by_two(both: Both) -> None:
    assert both.spent[0] == both.spent[1]


def test_processes_that_disagree_are_refused_and_a_refusal_reaches_both(both: Both) -> None:
    assert both.refused == both.second["refused"]
    assert both.refused[0].startswith("InvalidInput: got another plan: ")
    assert both.refused[1].startswith("BudgetExceeded: ")


def test_the_audit_passes_it_and_flags_noise_that_is_not_shared(both: Both) -> None:
    """Seen from the second process, which draws none."""
    assert both.second["right"], both.second["told"]
    assert not both.second["broken"], both.second["told"]


def test_a_group_needs_torch_distributed() -> None:
    with pytest.raises(InvalidInput, match="has not been started"):
        trainer("WORLD")

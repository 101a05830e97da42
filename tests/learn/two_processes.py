"""What each of two processes does when they train one model together; run as a script it is the second one."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import torch

import sordino as so
from learn.models import CROSS_ENTROPY, built
from learn.trainers import CLIP, DELTA, EPSILON, RATE, STEPS
from sordino.errors import SordinoError
from sordino.learn import Trainer
from sordino.learn import trainer as trainer_module
from sordino.learn.gradient_noise import GradientNoise
from sordino.learn.process_group import ProcessGroup
from sordino.learn.sampler import sampled

COUNT = 40
CANARIES, ORDINARY = 300, 100
distributed = torch.distributed


def joined(folder: Path, rank: int) -> Any:
    """The group of both processes, which meet in a file."""
    torch.set_num_threads(1)
    meeting = f"file://{folder / 'meeting'}"
    distributed.init_process_group(
        "gloo", init_method=meeting, rank=rank, world_size=2, timeout=timedelta(minutes=5)
    )
    return distributed.group.WORLD


def trainer(group: Any, seed: int = 0, **settings: Any) -> Trainer:
    """A small run; the same data for every seed, and another model to begin with."""
    model, _, _ = built("mlp", 1, seed)
    _, x, y = built("mlp", COUNT)
    given: dict[str, Any] = {
        "epsilon": 3,
        "delta": 1e-5,
        "steps": 5,
        "batch_size": 20,
        "size": 40,
        "physical_batch": 1,
    }
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.5)
    return Trainer(model, optimizer, CROSS_ENTROPY, (x, y), **{**given, **settings}, group=group)


class Recorded:
    """A run whose samples and releases are written down, or taken from another."""

    def __init__(self, like: Recorded | None = None) -> None:
        self.samples: list[Any] = []
        self.sums: list[Any] = []
        self.released: list[Any] = []
        self._like, self._changes = like, pytest.MonkeyPatch()

    def __enter__(self) -> Recorded:
        noisy, like = GradientNoise.noisy, self._like

        def sample(rate: Fraction, count: int) -> Any:
            self.samples.append(
                sampled(rate, count) if like is None else like.samples[len(self.samples)]
            )
            return self.samples[-1]

        def release(noise: GradientNoise, sums: Any) -> Any:
            self.sums.append(sums.copy())
            self.released.append(
                noisy(noise, sums) if like is None else like.released[len(self.released)]
            )
            return self.released[-1]

        self._changes.setattr(trainer_module, "sampled", sample)
        self._changes.setattr(GradientNoise, "noisy", release)
        return self

    def __exit__(self, *_: object) -> None:
        self._changes.undo()


def refusal(folder: Path, group: Any, **settings: Any) -> str:
    """What a run with other settings in one process, or with too small a budget, is told."""
    try:
        trainer(group, ledger=folder / "small.ledger", budget=so.Budget(1, 1e-4), **settings).train(
            progress=False
        )
    except SordinoError as error:
        return f"{type(error).__name__}: {error}"
    return "nothing"


def train_canaries(model: Any, optimizer: Any, loss: Any, x: Any, y: Any) -> None:
    """A trainer of both processes, as an audit calls it in the second one, which gives the first the examples."""
    distributed.broadcast_object_list([x, y], src=1)
    train_together(model, optimizer, loss, x, y)


def help_with_canaries() -> None:
    """What the first process does meanwhile."""
    given: list[Any] = [None, None]
    distributed.broadcast_object_list(given, src=1)
    x, y = given
    model = torch.nn.Linear(x.shape[1], 1, bias=False)
    torch.nn.init.zeros_(model.weight)
    train_together(
        model,
        torch.optim.SGD(model.parameters(), lr=1e-6),
        lambda out, target: -(out[:, 0] * target),
        x,
        y,
    )


def train_together(model: Any, optimizer: Any, loss: Any, x: Any, y: Any) -> None:
    Trainer(
        model, optimizer, loss, (x, y), epsilon=EPSILON, delta=DELTA, steps=STEPS, rate=RATE, size=CANARIES // 2 + ORDINARY,
        clip=CLIP, physical_batch=64, group=distributed.group.WORLD,
    ).train(progress=False)  # fmt: skip


@contextmanager
def noise_not_shared() -> Iterator[None]:
    """A planted bug: sums reach all processes, the noise only the first."""

    def released(self: ProcessGroup, sums: Any, release: Any) -> Any:
        distributed.all_reduce(sums, group=self.group)
        return release(sums) if self.first else sums.clone()

    with pytest.MonkeyPatch.context() as changes:
        changes.setattr(ProcessGroup, "released", released)
        changes.setattr(ProcessGroup, "expect_same", lambda *_: None)
        yield


def second(folder: Path) -> None:
    """All that the second process does, in the order of `first` in test_two_processes.py."""
    from sordino.learn.canaries import audit_training

    group = joined(folder, 1)
    whole, correlated = trainer(group, seed=1), trainer(group, seed=1, bands=2)
    result = whole.train(progress=False)
    correlated.train(progress=False)
    refused = [refusal(folder, group, steps=6), refusal(folder, group)]
    continued = trainer(group, seed=1, steps=6).resume(folder / "run.pt")
    continued.train(folder / "run.pt", progress=False)
    found = {"refused": refused, "statement": str(result), "receipt": result.receipt.number}
    models = [one.model.state_dict() for one in (whole, correlated, continued)]
    audit: dict[str, Any] = {
        "epsilon": EPSILON,
        "delta": DELTA,
        "canaries": CANARIES,
        "ordinary": ORDINARY,
    }
    right = audit_training(train_canaries, **audit)
    with noise_not_shared():
        broken = audit_training(train_canaries, **audit)
    audits = {"right": right.passed, "broken": broken.passed, "told": f"{right}\n{broken}"}
    torch.save({**found, **audits, "models": models}, folder / "second.pt")
    distributed.destroy_process_group()


if __name__ == "__main__":
    second(Path(sys.argv[1]))

"""Training with differential privacy: charge, then noisy steps on Poisson samples, then a model with a receipt.

Each step is proven in step.md to have exactly the loss that `RunPlan` accounts for; where noise is correlated over
steps, each turn of a unit in correlated_noise.md.
"""

from __future__ import annotations

import contextlib
import inspect
import math
import sys
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from sordino.errors import InvalidInput, SordinoError
from sordino.learn.checkpoint import (
    Checkpoint,
    model_digest,
    save_checkpoint,
    writable_place,
)
from sordino.learn.clipped_sums import ClippedSums, captured_calls
from sordino.learn.correlated_noise import CorrelatedNoise
from sordino.learn.examples import Examples, Places, made_up
from sordino.learn.gradient_noise import MOST_UNITS, GradientNoise
from sordino.learn.graphed_sums import GraphedSums
from sordino.learn.payment import Mark, Payments, ledger_for
from sordino.learn.process_group import ProcessGroup
from sordino.learn.rehearsal import (
    expect_examples_apart,
    expect_whole_gradients,
    unchanged,
)
from sordino.learn.run_plan import RunPlan
from sordino.learn.sampler import Turns, sampled
from sordino.learn.secret_seeds import secret_seeds
from sordino.learn.torch_extra import torch
from sordino.ledger.chain import digest
from sordino.ledger.ledger import Ledger
from sordino.ledger.receipt import Receipt
from sordino.privacy.budget import Budget
from sordino.privacy.exact import Number, decimal_reading, four_digits, readable, show
from sordino.privacy.neighbors import Neighbors

__all__ = ["Trainer", "TrainingResult"]

_PHYSICAL = 256
_SAVE_EVERY = 100


@dataclass(frozen=True, eq=False)
class TrainingResult:
    """The trained model, what was promised, and the proof that it was paid for."""

    model: Any
    plan: RunPlan
    receipt: Receipt
    steps: int
    statement: str

    def __str__(self) -> str:
        return self.statement


class Trainer:
    """Trains a PyTorch model so that the result is (epsilon, delta)-differentially private for each example or person.

    `loss` gives one number for each example (reduction="none"). Batches are Poisson samples: every unit is in one with
    chance `rate`, or batch_size / `size`, where `size` is a public number of units near the true one, which itself is
    secret unless neighbors="replace". Each unit's gradient is clipped to the L2 norm `clip`. With `persons`, who each
    example is of, a unit is a person with up to `max_examples` of their examples.

    With `bands` above 1 the noise is correlated over so many steps (DP-FTRL): what one step adds, the next ones take
    back in part, and each unit takes part in at most one of so many steps. With `bands` = 1 / rate nothing is sampled.

    With a `group` of torch.distributed, processes that were given the same things train one model: each computes a
    part of each sample, and the first adds noise, once, and pays.

    The whole run is charged to `ledger` before the first gradient: that of a session, a file with a `budget`, or one
    in memory for this run alone. `physical_batch` is how many units are computed at a time; it changes memory, not
    results.

    Privacy: step.md, under the assumptions named there. What the optimizer does with noisy gradients is
    post-processing.
    """

    def __init__(
        self,
        model: Any,
        optimizer: Any,
        loss: Callable[[Any, Any], Any],
        data: Any,
        *,
        epsilon: Number,
        delta: Number,
        epochs: Number | None = None,
        steps: int | None = None,
        batch_size: int | None = None,
        rate: Number | None = None,
        size: int | None = None,
        clip: float = 1.0,
        persons: Any = None,
        max_examples: int | None = None,
        neighbors: Neighbors | str = Neighbors.ADD_REMOVE,
        bands: int = 1,
        physical_batch: int = _PHYSICAL,
        group: Any = None,
        ledger: Ledger | str | Path | None = None,
        budget: Budget | None = None,
        analyst: str | None = None,
        run: str | None = None,
    ) -> None:
        _expect_pytorch(model, optimizer)
        self.model, self.optimizer, self._loss = model, optimizer, loss
        self._examples = Examples.of(data, persons, max_examples)
        self._group = ProcessGroup(group)
        relation = Neighbors(neighbors)
        public = _public_size(size, self._examples, relation)
        chance = _rate(rate, batch_size, public)
        count = _steps(steps, epochs, chance)
        if isinstance(clip, bool) or not isinstance(clip, int | float) or not 1e-30 < clip < 1e30:
            rule = "the norm to which gradients are clipped is a number above zero"
            raise InvalidInput(f"clip={show(clip)}", rule, "Pass clip=1.0 or the like.")
        unit = "example" if persons is None else "person"
        self.plan = RunPlan.within(
            epsilon=epsilon,
            delta=delta,
            rate=chance,
            steps=count,
            neighbors=relation,
            unit=unit,
            bands=bands,
        )
        self.expected = float(chance * public)
        """How many units a batch holds on average, by the public size: what noisy sums are divided by."""
        if self._examples.units > MOST_UNITS:
            rule = f"at most {MOST_UNITS:,} examples or persons can be summed"
            raise InvalidInput("these data", rule, "Pass fewer.")
        slots = min(_whole("physical_batch", physical_batch), 4096)
        self._sums = ClippedSums(model, float(clip), units=slots, per_unit=self._examples.per_unit)
        self._batches = GraphedSums(self._sums, self._losses)
        _expect_owned(optimizer, self._sums)
        sigma = self.plan.sigma
        self._noise = GradientNoise.of(sigma) if bands == 1 else CorrelatedNoise(sigma, bands)
        self._turns: Turns | None = None
        model_digest(model)  # refuses a state that cannot be told at the end
        self._rehearse()
        settings = self._settings(clip)
        self._group.expect_same({"plan": settings, "number of examples": self._examples.units})
        _expect_name(run)
        self.run = self._group.by_first(lambda: run or f"training-{uuid.uuid4().hex}")
        self._payments: Payments | None = None

        def open_ledger() -> None:
            self._payments = Payments(
                ledger_for(self.plan, ledger, budget),
                f"train {type(model).__name__}",
                settings,
                analyst,
            )

        self._group.by_first(open_ledger)
        self._mark = Mark(self.run)
        self._receipt: Receipt | None = None

    def __deepcopy__(self, memo: object) -> NoReturn:
        rule = "its sums are of the parameters of its own model, so it cannot be copied"
        raise InvalidInput("a Trainer", rule, "Make a new one for the copy of the model.")

    @property
    def ledger(self) -> Ledger:
        """What pays."""
        return self._paying.ledger

    @property
    def _paying(self) -> Payments:
        if self._payments is None:
            raise InvalidInput(
                "the ledger", "the first process of the group keeps it", "Ask there."
            )
        return self._payments

    def preview(self) -> RunPlan:
        """What the run will do and cost; free, and no data are read."""
        return self.plan

    def _settings(self, clip: float) -> str:
        shapes = ",".join(
            f"{self._sums.names[key]}{tuple(p.shape)}" for key, p in self._sums.parameters.items()
        )
        parts = (
            str(self.plan),
            self.plan.neighbors.value,
            self.plan.unit,
            f"clip {clip!r}",
            f"model {digest(shapes)[:16]}",
            f"exactly {digest(self.plan.exact)[:16]}",  # a run paid for is not continued with a little less noise
        )
        return "; ".join(parts)

    def _device(self) -> Any:
        return next(iter(self._sums.parameters.values())).device

    def _losses(self, x: Any, y: Any, used: Any) -> Callable[[Any], Any]:
        def run(model: Any) -> Any:
            losses = self._loss(model(x), y)
            if losses.dim() == 0 or len(losses) != len(x):
                rule = "the loss must give one number for each example of the batch"
                raise InvalidInput(
                    f"a loss of shape {tuple(losses.shape)}",
                    rule,
                    'Pass one with reduction="none".',
                )
            return torch.where(used, losses.reshape(len(x), -1).mean(1), 0.0)

        return run

    def _rehearse(self) -> None:
        """Run the model on made-up examples: learn its shapes, and refuse it if one example reaches another."""
        self.model.train()
        count = self._sums.units * self._sums.per_unit
        form_x, form_y = self._examples.forms
        numbers = self._numbers = GradientNoise(2**10).release(np.zeros(997, np.int64)) / 2**10
        (x, y), (other_x, other_y) = (
            [
                made_up(form, count, numbers, other=other).to(self._device())
                for form in (form_x, form_y)
            ]
            for other in (False, True)
        )
        every = torch.ones(count, dtype=torch.bool, device=x.device)
        only = every.clone()
        only[1:] = False
        with _told(
            "the model"
        ):  # what is kept from a first pass, such as a table of places, may stay
            captured_calls(
                self.model,
                self._sums.layers,
                self._sums.parameters,
                self._losses(other_x, other_y, every),
            )
        with _told("the model"), unchanged(self.model, self._loss):
            calls, losses = captured_calls(
                self.model, self._sums.layers, self._sums.parameters, self._losses(x, y, every)
            )
            alone = captured_calls(
                self.model, self._sums.layers, self._sums.parameters, self._losses(x, y, only)
            )[0]
        if not bool(torch.isfinite(losses).all()):
            rule = "it is not finite on made-up examples"
            raise InvalidInput(
                "this loss", rule, "Check model and loss on a few examples of your own first."
            )
        for call in (*calls, *alone):
            if len(call.into) != count or len(call.out_gradient) != count:
                name = next(
                    name for name, layer in self._sums.layers.items() if layer is call.layer
                )
                rule = "the first axis of what goes in and comes out must count examples"
                raise InvalidInput(
                    f"layer {name!r}", rule, "Keep examples apart on the first axis all the way."
                )
        if count > 1 and any(bool((call.out_gradient[1:] != 0).any()) for call in alone):
            rule = "the loss of one example depends on other examples of the batch"
            raise InvalidInput(
                "this model",
                rule,
                "Leave out what mixes a batch, such as means over its first axis.",
            )
        self._sums.learn_shapes(calls)
        with _told("the model"):
            expect_examples_apart(
                self._sums,
                lambda x, y: self._losses(x, y, every),
                (x, y),
                (other_x, other_y),
            )
            expect_whole_gradients(self._sums, self._losses(x, y, every))

    def _expect_as_rehearsed(self) -> None:
        """Refuse a model that was changed since: units on which it calls other layers add nothing, and none could be
        told of, so that it would be trained on noise alone.
        """
        count = self._sums.units * self._sums.per_unit
        self.model.train()
        with secret_seeds(), _told("the model as it is now"):
            x, y = (
                made_up(form, count, self._numbers).to(self._device())
                for form in self._examples.forms
            )
            every = torch.ones(count, dtype=torch.bool, device=x.device)
            self._sums.add(self._losses(x, y, every))
        self._sums.clear()

    def train(
        self,
        checkpoint: str | Path | None = None,
        *,
        save_every: int = _SAVE_EVERY,
        progress: bool = True,
    ) -> TrainingResult:
        """Charge the run, if that was not done before, and take all steps that are left.

        With a `checkpoint` the run is written there every `save_every` steps and when it is interrupted, and `resume`
        continues it. Steps that a crash loses stay spent: the run then ends after fewer useful steps.
        """
        path = None if checkpoint is None else writable_place(checkpoint)
        between = _whole("save_every", save_every)
        self._expect_as_rehearsed()
        if self._receipt is None:
            self._receipt = self._group.by_first(lambda: self._paying.begin(self.run, self.plan))
        if self._turns is None and self.plan.bands > 1 and self._group.first:
            self._turns = Turns.fresh(self.plan.bands, self._examples.units)
        self._group.equalize(self.model.state_dict().values())
        every = self.plan.steps if path is None else between
        self.model.train()
        with secret_seeds(), _bar(self.plan.steps, show=progress) as moved:
            while self._mark.step < self.plan.steps:
                self._stretch(path, min(self._mark.step + every, self.plan.steps), moved)
        statement = self._group.by_first(self._statement)
        return TrainingResult(self.model, self.plan, self._receipt, self.plan.steps, statement)

    def resume(self, checkpoint: str | Path) -> Trainer:
        """Continue a run from its last checkpoint: nothing is charged again, and no step is taken twice."""

        def read() -> tuple[Checkpoint, Mark, Receipt]:
            found = Checkpoint.read(checkpoint)
            mark = self._paying.resumed(found.mark)
            self._remember(found)
            return replace(found, secret=None), mark, self._paying.paid(mark.run)

        found, self._mark, self._receipt = self._group.by_first(read)
        found.put_back(self.model, self.optimizer)
        self.run = self._mark.run
        return self

    def _secret(self, step: int) -> dict[str, Any] | None:
        """What a run whose noise is correlated needs to go on, and nobody else may see."""
        if (
            not isinstance(self._noise, CorrelatedNoise)
            or self._turns is None
            or step == self.plan.steps
        ):
            return None
        return {
            "turns": torch.as_tensor(self._turns.of),
            "noise": self._noise.state(self._sums.flat),
        }

    def _remember(self, found: Checkpoint) -> None:
        """Take turns and noise from a checkpoint."""
        if not isinstance(self._noise, CorrelatedNoise) or found.mark.step == self.plan.steps:
            return
        with found.fitting():
            secret = found.secret or {}
            turns = secret["turns"].numpy()
            if len(turns) != self._examples.units:
                raise ValueError("turns of other examples")
            self._noise.restore(secret["noise"], self._sums.flat)
            self._turns = Turns(self.plan.bands, turns)

    def _stretch(self, path: Path | None, until: int, moved: Callable[[int], None]) -> None:
        """Steps that were made ours in the ledger first; where they end is recorded with what they led to."""
        opened = self._group.by_first(lambda: self._paying.open_stretch(self._mark, until))
        step = self._mark.step
        try:
            while step < until:
                self._add_up(step + 1)
                step += 1  # from here on it counts, even if it is interrupted: its noisy sum may have moved the model
                self._move(step)
                moved(step)
        finally:  # also if interrupted: steps that were taken are kept
            self.optimizer.zero_grad(set_to_none=True)
            self._mark = Mark(self.run, self._mark.stretch + 1, step, model_digest(self.model))
            if self._group.first:
                if path is not None:
                    save_checkpoint(
                        path, self.model, self.optimizer, self._mark, self._secret(step)
                    )
                self._paying.close_stretch(opened, self._mark)
        self._group.expect_same({"trained model": self._mark.model})

    def _add_up(self, step: int) -> None:
        """The exact sums of a step, which do not leave this object."""
        self._sums.clear()
        places = self._group.share_of(self._group.by_first(lambda: self._sample(step)))
        no_memory = False
        try:
            self._add_all(places)
        except _OutOfMemory:
            no_memory = True
        if self._group.anywhere(no_memory, self._device()):
            raise _OutOfMemory

    def _sample(self, step: int) -> Places:
        if self._turns is None:
            return sampled(self.plan.rate, self._examples.units)
        theirs = self._turns.at(step)
        return theirs[sampled(self.plan.chance, len(theirs))]

    def _add_all(self, places: Places) -> None:
        try:
            for batch in self._batches_of(places):
                self._add(batch)
        except _OutOfMemory:
            raise
        except Exception:  # whatever one unit does must not end the run, which would tell of it
            self._sums.clear()
            for batch in self._batches_of(places):
                self._add_those_that_work(batch)

    def _release(self, sums: Any, step: int) -> Any:
        if isinstance(self._noise, CorrelatedNoise):
            return self._noise.release(sums, step)
        return self._noise.noisy_tensor(sums)

    def _move(self, step: int) -> None:
        """Release the sums with noise, and let the optimizer move the model by them."""
        noisy = self._group.released(self._sums.flat, lambda sums: self._release(sums, step))
        self._sums.set_gradients(noisy, self._sums.step / self.expected)
        try:
            self.optimizer.step()
        except Exception as error:  # it knows released numbers only
            told = " ".join(str(error).split())[:300]
            rule = f"it fails on noisy gradients: {type(error).__name__}: {told}"
            hint = "Choose other settings, and begin a new run; what was charged stays spent."
            raise InvalidInput("the optimizer", rule, hint) from error
        ends = [
            end.double()
            for some in self._sums.parameters.values()
            if some.numel()
            for end in torch.aminmax(some.detach())
        ]
        if not bool(torch.isfinite(torch.stack(ends)).all()):
            rule = "the model's numbers are no longer finite"
            raise InvalidInput(
                "this learning rate",
                rule,
                "Lower it, and begin a new run; what was charged stays spent.",
            )

    def _batches_of(self, places: Places) -> list[Places]:
        return [
            places[start : start + self._sums.units]
            for start in range(0, len(places), self._sums.units)
        ]

    def _add(self, places: Places) -> None:
        x, y, used = self._examples.take(places, self._sums.units, self._device())
        try:
            self._batches.add(x, y, used)
        except (MemoryError, torch.OutOfMemoryError):
            raise _OutOfMemory from None

    def _add_those_that_work(self, places: Places) -> None:
        """Add these units but for those that fail: where a group fails, its halves are tried apart (step.md)."""
        before = self._sums.flat.clone()
        try:
            self._add(places)
        except _OutOfMemory:
            raise
        except Exception:
            self._sums.flat.copy_(before)
            if len(places) > 1:
                half = len(places) // 2
                self._add_those_that_work(places[:half])
                self._add_those_that_work(places[half:])

    def _statement(self) -> str:
        plan, receipt = self.plan, self._receipt
        if receipt is None:
            return "not trained"
        k = self._sums.per_unit
        persons = f", at most {k} examples each" if plan.unit == "person" else ""
        if isinstance(self._noise, CorrelatedNoise):
            sampled_how = "" if plan.chance == 1 else f", there with chance {readable(plan.chance)}"
            batches = f"with every {plan.unit} in at most one of {plan.bands} consecutive steps{sampled_how}"
            size, over = self._noise.size, f", correlated over {plan.bands} steps"
        else:
            batches, size, over = (
                f"on Poisson samples of rate {readable(plan.rate)}",
                plan.sigma,
                "",
            )
        return (
            f"This model is {plan.promise}{persons}. It was trained in {plan.steps:,} steps {batches}; gradients were "
            f"clipped to norm {self._sums.clip:g}, summed in whole numbers, and given exact Gaussian noise of "
            f"{four_digits(size)} clipping norms{over}. "
            f"Paid as entry {receipt.number} of the ledger ({self.ledger.place}) before data were read."
        )


class _OutOfMemory(SordinoError):
    """No memory for a physical batch, whose shape is always the same: it does not matter whose examples it holds."""

    def __init__(self) -> None:
        super().__init__(
            "a step ran out of memory. What was charged stays spent. Pass a smaller physical_batch=, and continue from the "
            "last checkpoint by resume()."
        )


@contextlib.contextmanager
def _told(what: str) -> Iterator[None]:
    """Errors on made-up examples, told in full."""
    try:
        yield
    except SordinoError:
        raise
    except Exception as error:
        told = " ".join(str(error).split())[:300]
        rule = f"it fails on made-up examples: {type(error).__name__}: {told}"
        raise InvalidInput(
            what, rule, "Check that model, loss, inputs and targets fit together."
        ) from None


def _expect_name(run: object) -> None:
    """A name that entries of the ledger can begin with."""
    if run is not None and not isinstance(run, str):
        raise InvalidInput(f"run={show(run)}", "its name is a text", "Pass run='march-model'.")
    if run is not None and "/" in run:
        rule = "its stretches are entered in the ledger as run/1, run/2 and so on"
        raise InvalidInput(f"run={show(run)}", rule, "Pass a name without a slash.")


def _public_size(size: int | None, examples: Examples, relation: Neighbors) -> int:
    if size is None:
        if relation is Neighbors.REPLACE:
            return examples.units
        rule = "the number of examples is secret where one may be added or removed, so rates cannot come from it"
        raise InvalidInput(
            "no size", rule, 'Pass size=10_000, a public number near it; or neighbors="replace".'
        )
    if isinstance(size, bool) or not isinstance(size, int) or size < 1:
        raise InvalidInput(
            f"size={show(size)}", "it is a number of units", "Pass size=10_000 or the like."
        )
    return size


def _rate(rate: Number | None, batch_size: int | None, size: int) -> Fraction:
    if (rate is None) == (batch_size is None):
        raise InvalidInput(
            "rate and batch_size",
            "exactly one of them says how large batches are",
            "Pass batch_size=256.",
        )
    if rate is not None:
        return decimal_reading("rate", rate)
    if (
        isinstance(batch_size, bool)
        or not isinstance(batch_size, int)
        or not 1 <= batch_size <= size
    ):
        rule = f"a batch holds from 1 unit to all of them, {size}"
        raise InvalidInput(
            f"batch_size={show(batch_size)}", rule, "Pass batch_size=256 or the like."
        )
    return Fraction(batch_size, size)


def _steps(steps: int | None, epochs: Number | None, rate: Fraction) -> int:
    if (steps is None) == (epochs is None):
        raise InvalidInput(
            "steps and epochs", "exactly one of them says how long to train", "Pass epochs=10."
        )
    if steps is not None:
        return steps
    wanted = decimal_reading("epochs", epochs)
    if wanted <= 0 or rate <= 0:
        raise InvalidInput(
            f"epochs={show(epochs)}", "it must be greater than zero", "Pass epochs=10."
        )
    return max(1, math.ceil(wanted / rate))


def _whole(name: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InvalidInput(
            f"{name}={show(value)}", "it must be a whole number above zero", "Pass 100 or the like."
        )
    return value


def _expect_pytorch(model: Any, optimizer: Any) -> None:
    """A model of PyTorch, and an optimizer that moves it by gradients alone."""
    if not isinstance(model, torch.nn.Module):
        rule = "the model must be a module of PyTorch"
        raise InvalidInput(
            f"a model of type {type(model).__name__}",
            rule,
            "Pass torch.nn.Sequential(...) or the like.",
        )
    others = torch.optim.LBFGS, torch.optim.SparseAdam
    if (
        not isinstance(optimizer, torch.optim.Optimizer)
        or isinstance(optimizer, others)
        or _needs_closure(optimizer)
    ):
        rule = "it must be an optimizer of PyTorch that takes one gradient a step, and no closure"
        hint = "Pass torch.optim.SGD(model.parameters(), lr=0.1), Adam or the like."
        raise InvalidInput(f"an optimizer of type {type(optimizer).__name__}", rule, hint)


def _needs_closure(optimizer: Any) -> bool:
    """Whether a step wants to compute losses of its own, which would be without noise."""
    given = list(inspect.signature(optimizer.step).parameters.values())
    positional = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
    return any(one.default is inspect.Parameter.empty and one.kind in positional for one in given)


def _expect_owned(optimizer: Any, sums: ClippedSums) -> None:
    """The optimizer must move what is trained, and nothing else."""
    held = {
        id(parameter)
        for group in optimizer.param_groups
        for parameter in group["params"]
        if parameter.requires_grad
    }
    if held != set(sums.parameters):
        lost = sorted(sums.names[key] for key in set(sums.parameters) - held)
        value = f"parameter {lost[0]!r}" if lost else "an optimizer with other parameters"
        raise InvalidInput(
            value,
            "the optimizer must hold all trained parameters of the model",
            "Pass model.parameters().",
        )


@contextlib.contextmanager
def _bar(steps: int, *, show: bool) -> Iterator[Callable[[int], None]]:
    """A bar on standard error, if somebody is watching; it shows steps only, never a loss."""
    if not show or not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = TextColumn("Training"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=steps)
        yield lambda done: bar.update(task, completed=done)

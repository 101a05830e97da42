"""Audit of a training run by canaries: examples that are in or out by a coin, and must not be told apart too well.

One run with many canaries gives a lower bound on its epsilon that holds with a chosen confidence, whatever the trainer
does (Steinke, Nasr and Jagielski 2023). The theorem, and what a canary is here, are in canaries.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from sordino.errors import InvalidInput
from sordino.learn.torch_extra import torch
from sordino.mechanisms import bits
from sordino.mechanisms.discrete import bernoulli
from sordino.privacy.exact import Number, four_digits, open_unit, positive, whole

__all__ = ["TrainingAudit", "audit_training", "certified_epsilon", "is_trainer"]

Floats = npt.NDArray[np.float64]
Trainer = Callable[[Any, Any, Any, Any, Any], Any]

_LOUD = 1e4
_PARAMETERS = ("model", "optimizer", "loss")


@dataclass(frozen=True)
class TrainingAudit:
    """What the canaries of one run show."""

    name: str
    epsilon: float
    delta: float
    confidence: float
    epsilon_lower: float
    """At least this is the epsilon of the run, with the confidence."""
    canaries: int
    guesses: int
    correct: int
    statistic: str
    sampling: str = ""
    """How examples were sampled otherwise than claimed; empty where nothing was found, or no rate was claimed."""

    @property
    def passed(self) -> bool:
        """Whether the claim stands: not that it is proven."""
        return self.epsilon_lower <= self.epsilon and not self.sampling

    def __str__(self) -> str:
        verdict = "the claim stands" if self.passed else "THE CLAIM IS FALSE"
        return (
            f"{self.name}: {verdict}. It claims epsilon {four_digits(self.epsilon)} at delta {self.delta:g}; canaries show "
            f"at least {four_digits(self.epsilon_lower)}, with confidence {self.confidence:g}: of {self.canaries} canaries, "
            f"{self.guesses} were guessed (by the {self.statistic} of noisy gradients), {self.correct} of them rightly."
            f"{self.sampling and ' '}{self.sampling}"
        )


def is_trainer(function: Any) -> bool:
    """Whether a function takes a model, an optimizer and a loss, as trainers do here."""
    code = getattr(function, "__code__", None)
    return code is not None and code.co_varnames[:3] == _PARAMETERS


def audit_training(
    trainer: Trainer,
    *,
    epsilon: Number,
    delta: Number,
    canaries: int = 400,
    ordinary: int = 200,
    confidence: Number = 0.999,
    rate: Number | None = None,
    name: str | None = None,
) -> TrainingAudit:
    """Run `trainer(model, optimizer, loss, x, y)` once, with canaries among the examples, and bound its epsilon from
    below.

    The trainer must train the given model in place, with the given optimizer and loss (one number for each example),
    and claims that this is (epsilon, delta)-differentially private for adding or removing one example. If it accounts
    for Poisson samples, pass their `rate`: then it is also checked, in what the model sees, that examples are sampled
    so.
    """
    claimed = float(positive("epsilon", epsilon).upper)
    small, sure = (
        float(open_unit(*given).upper) for given in (("delta", delta), ("confidence", confidence))
    )
    for what, number in (("canaries", canaries), ("ordinary", ordinary)):
        whole(what, number, 20, 20_000, "Pass 400 or so.")
    coins = (bernoulli(Fraction(1, 2), 1, bits.source()) for _ in range(canaries))
    included = np.concatenate(list(coins))
    x, y = _examples(included, ordinary)
    model = torch.nn.Linear(canaries, 1, bias=False)
    torch.nn.init.zeros_(model.weight)
    seen: list[Floats] = []
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    now: set[int] = set()
    present: list[set[int]] = []

    def looked(_: Any, arguments: tuple[Any, ...]) -> None:
        largest, place = arguments[0].detach().max(1)
        now.update(place[largest == _LOUD].tolist())

    def stepped(*_: Any) -> None:
        seen.append(model.weight.grad[0].detach().double().cpu().numpy().copy())
        present.append(set(now))
        now.clear()

    model.register_forward_pre_hook(looked)
    optimizer.register_step_pre_hook(stepped)
    trainer(model, optimizer, lambda out, target: -(out[:, 0] * target), x, y)
    if not seen:
        hint = "Train the given model with it."
        raise InvalidInput("this trainer", "it never called optimizer.step()", hint)
    sampling = ""
    if rate is not None:
        sampling = _sampling(present, included, float(positive("rate", rate).upper), sure)
    guess = _chosen(np.array(seen), included, sure)
    test = slice(canaries // 2, canaries)
    correct, certain = guess.correct(included, test), canaries - canaries // 2
    lower = certified_epsilon(correct, guess.count, certain, small, sure)
    shown = name or str(getattr(trainer, "__name__", "the trainer"))
    return TrainingAudit(
        shown, claimed, small, sure, lower, canaries, guess.count, correct, guess.label, sampling
    )


def _sampling(
    present: list[set[int]], included: npt.NDArray[np.bool_], rate: float, confidence: float
) -> str:
    """Whether canaries took part as independent coins would have it: by their number, and by how much it varies.

    Under Poisson sampling each included canary takes part in Bin(steps, rate) steps, independently. Both sides of the
    mean and of the dispersion are tested, four tests that share 1 - confidence.
    """
    from scipy.special import chdtr, chdtrc, ndtr

    places, steps = np.flatnonzero(included), len(present)
    counts = np.array([sum(place in batch for batch in present) for place in places], float)
    variance = steps * rate * (1 - rate)
    if not counts.any():
        return "No canary was seen by the model: the trainer does not call it, so that sampling could not be checked."
    mean, spread = 0.0, float(len(counts))
    if variance:
        mean = (counts.mean() - steps * rate) / math.sqrt(variance / len(counts))
        spread = float(((counts - steps * rate) ** 2).sum() / variance)
    level = (1 - confidence) / 4
    told = f"examples took part in {four_digits(float(counts.mean()))} of {steps} steps, where rate {rate:g} was claimed"
    # a normal law in place of a binomial: hence a quarter of the level
    if ndtr(-abs(mean)) < level / 4:
        return f"THE SAMPLER IS NOT AS CLAIMED: {told}."
    if chdtr(len(counts), spread) < level / 4 or chdtrc(len(counts), spread) < level / 4:
        ratio = four_digits(spread / len(counts))
        varies = f"how often they took part varies {ratio} times as much as for Poisson samples"
        return f"THE SAMPLER IS NOT AS CLAIMED: {varies}; {told}."
    return ""


def _examples(included: npt.NDArray[np.bool_], ordinary: int) -> tuple[Any, Any]:
    """Canary i is loud in coordinate i alone; ordinary examples are the same in all coordinates, with a sign."""
    count = len(included)
    loud = _LOUD * np.eye(count)[included]
    signs = np.where(np.arange(ordinary) % 2, 1.0, -1.0)
    x = np.vstack([loud, signs[:, None] * np.ones((ordinary, count))])
    y = np.concatenate([np.ones(len(loud)), signs])
    order = bits.random_order(len(y))
    return tuple(torch.as_tensor(each[order], dtype=torch.float32) for each in (x, y))


def _statistics(gradients: Floats) -> dict[str, Floats]:
    """Numbers for each coordinate that may tell whether its canary was there."""
    centred = gradients - np.median(gradients, 1, keepdims=True)
    size = np.median(np.abs(centred)) / 0.6745
    size = size if size > 0 else max(float(np.abs(centred).max()), 1e-300)
    scaled = np.clip(-centred / size, -1e6, 1e6)
    top, steps = scaled.max(0), np.abs(np.diff(gradients, axis=0))
    found = {
        "sum": scaled.sum(0),
        "largest": top,
        "variation": gradients.std(0) / size,
        "first difference": steps.max(0) / size if len(steps) else scaled[0],
    }
    for sharpness in (0.5, 1.0, 2.0, 4.0):
        mean = np.exp(sharpness * (scaled - top)).mean(0)
        found[f"soft maximum ({sharpness:g})"] = top + np.log(mean) / sharpness
    return found


@dataclass(frozen=True, eq=False)
class _Guess:
    """Canaries with the `high` highest scores are guessed to be in, those with the `low` lowest to be out."""

    label: str
    scores: Floats
    high: int
    low: int

    @property
    def count(self) -> int:
        return self.high + self.low

    def correct(self, included: npt.NDArray[np.bool_], among: slice) -> int:
        """How many guesses about these canaries are right."""
        order = np.argsort(-self.scores[among], kind="stable")
        there = included[among][order]
        return int(there[: self.high].sum() + (~there[len(there) - self.low :]).sum())


def _chosen(gradients: Floats, included: npt.NDArray[np.bool_], confidence: float) -> _Guess:
    """How to guess, chosen by the first half of the canaries: what the second half shows is certified."""
    half = len(included) // 2

    def promise(guess: _Guess) -> float:
        # so that no choice wins by luck alone
        careful = max(0, guess.correct(included, slice(half)) - guess.count // 25)
        return certified_epsilon(careful, guess.count, half, 0.0, confidence, digits=8)

    guesses = (
        _Guess(label, sign * values, high, low)
        for label, values in _statistics(gradients).items()
        for sign in (1.0, -1.0)
        for high in {max(1, half // 50), half // 20 or 1, half // 8, half // 4, 2 * half // 5}
        for low in (0, high)
    )
    return max(guesses, key=promise)


def certified_epsilon(
    correct: int, guesses: int, canaries: int, delta: float, confidence: float, digits: int = 40
) -> float:
    """The largest epsilon that this many right guesses refute, at the confidence; 0 if none. Privacy: canaries.md."""
    if not guesses or not _refuted(0.0, correct, guesses, canaries, delta, confidence):
        return 0.0
    low, high = 0.0, 1.0
    while high < 64 and _refuted(high, correct, guesses, canaries, delta, confidence):
        low, high = high, 2 * high
    for _ in range(digits):
        middle = (low + high) / 2
        refuted = _refuted(middle, correct, guesses, canaries, delta, confidence)
        low, high = (middle, high) if refuted else (low, middle)
    return low


def _refuted(
    epsilon: float, correct: int, guesses: int, canaries: int, delta: float, confidence: float
) -> bool:
    """Whether in an (epsilon, delta)-private run so many guesses are right with a chance below 1 - confidence only."""
    from scipy.special import bdtrc

    chance = 1 / (1 + math.exp(-epsilon))
    beyond = float(bdtrc(correct - 1, guesses, chance)) if correct else 1.0
    alpha = 0.0
    if delta:
        fewer = np.arange(1, canaries + 1)
        tails = bdtrc(np.maximum(correct - fewer - 1, 0), guesses, chance)
        at_least = np.where(correct > fewer, tails, 1.0)
        alpha = float(((at_least - beyond) / fewer).max())
    return (beyond + 2 * canaries * delta * alpha) * (1 + 1e-9) < 1 - confidence

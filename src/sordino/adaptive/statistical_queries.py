"""An oracle for statistical queries: means over one sample with noise, asked adaptively, good for the population.

Theorem. All answers together are as private for replacing one row as the losses charged for them say, and within
`guarantee` of the population with the stated confidence. Proof in statistical_queries.md and transfer.md.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from sordino.accounting.charge import Charge
from sordino.accounting.filters import TwoMeterFilter
from sordino.adaptive.guard import GRID, GuardedSample, Phi
from sordino.adaptive.noise_of_answers import NoiseName
from sordino.adaptive.number_text import places, rounded, rounded_up
from sordino.adaptive.payment import Payer, paid
from sordino.adaptive.predicate import Predicate
from sordino.adaptive.samples import expect_one
from sordino.adaptive.transfer import Guarantee, best_noise, failure_of, guarantee
from sordino.errors import BudgetExceeded, InvalidInput
from sordino.mechanisms.gaussian import Gaussian
from sordino.mechanisms.laplace import Laplace
from sordino.mechanisms.single_use import SingleUse
from sordino.privacy.budget import Budget
from sordino.privacy.exact import Number, brief, float_upper, open_unit, positive, show
from sordino.privacy.loss import Loss
from sordino.privacy.wording import counted

__all__ = ["Answered", "StatisticalQueries"]

_MOST = 10**9
_MOST_ROWS = 2**42
_VACUOUS = 0.5
"""Whoever always answers 1/2 is never farther off."""


@dataclass(frozen=True)
class Answered:
    """The noisy mean, and how many questions are `left`.

    With the oracle's confidence all its answers are within `half_width` of the population's means; and, with the same
    confidence, all are within `noise` of the sample's.
    """

    value: float
    half_width: float
    noise: float
    left: int

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        far, near = (
            rounded_up(self.half_width, places(self.half_width)),
            rounded_up(self.noise, places(self.noise)),
        )
        value = rounded(self.value, places(min(self.half_width, self.noise)))
        return f"{value}, within {far} of the population and {near} of the sample; {counted(self.left, 'question')} left"


class StatisticalQueries(SingleUse):
    """Answers means of functions over one sample, with noise, up to `questions` times.

    Noise: what `questions` answers need to stay within a `budget`; or a given `scale`; or, with neither, the scale
    that makes the error on the population least, which is refused if that error is one half or more. `meter` is the
    filter that pays for all questions at the start; with a budget it is one of its own. A filter is a value that is
    never changed: to pay for more from it, go on with `oracle.meter`. The number of rows is public.

    Privacy: `loss()` for all answers, for replacing one row, for functions of each row by itself (see `guard`).

    Example:
        >>> import numpy as np
        >>> oracle = StatisticalQueries({"age": np.arange(100_000) % 100}, questions=100)
        >>> answer = oracle.ask("age >= 65")
        >>> abs(answer.value - 0.35) < 0.06, answer.left
        (True, 99)
        >>> 0.031 < answer.half_width < 0.032
        True
    """

    _counted = "its questions must be counted once"
    _instead = "Share the object itself, in the process that made it."

    def __init__(
        self,
        sample: Any,
        *more: Any,
        questions: int,
        budget: Budget | None = None,
        scale: Number | None = None,
        noise: NoiseName = "gaussian",
        confidence: Number = 0.95,
        example: Any = None,
        meter: Payer | None = None,
    ) -> None:
        super().__init__()
        expect_one(more)
        if (
            isinstance(questions, bool)
            or not isinstance(questions, int)
            or not 1 <= questions <= _MOST
        ):
            rule = "the number of questions must be a whole number, at least 1"
            raise InvalidInput(
                f"questions={show(questions)}", rule, "Pass how many questions you plan."
            )
        if noise not in ("gaussian", "laplace"):
            raise InvalidInput(
                f"noise={show(noise)}", 'noise is "gaussian" or "laplace"', 'Pass "gaussian".'
            )
        if (budget is not None) + (scale is not None) + (meter is not None and scale is None) > 1:
            rule = "the noise must be given in one way: by a budget or by its scale; a meter goes with a scale"
            raise InvalidInput(
                "budget, scale, meter", rule, "Pass budget=so.Budget(1, 1e-6), for example."
            )
        failure_of(confidence)
        self.questions, self.confidence = questions, confidence
        self._sample = GuardedSample.of(sample, example)
        step = Fraction(1, self.rows * GRID)
        if budget is not None:
            self.mechanism = _within(budget, noise, questions, self.rows, step)
        elif scale is not None:
            exact = positive("scale", scale).upper
            self.mechanism = Laplace(exact, step) if noise == "laplace" else Gaussian(exact, step)
        else:
            self.mechanism = best_noise(self.rows, questions, confidence, noise=noise)
        self._each = self.mechanism.loss(Fraction(1, self.rows))
        payer = TwoMeterFilter(budget) if budget is not None else meter
        self.meter = None if payer is None else paid(payer, Charge.of(self._each, questions))
        self._promise = self.guarantee()
        if budget is None and scale is None and self._promise.population >= _VACUOUS:
            raise self._refusal(noise)
        self._asked = 0
        self._lock = threading.RLock()

    @property
    def rows(self) -> int:
        """How many rows the sample has."""
        return self._sample.count

    @property
    def asked(self) -> int:
        """How many questions were answered."""
        return self._asked

    @property
    def left(self) -> int:
        """How many more can be."""
        return self.questions - self._asked

    def loss(self) -> Loss:
        """The privacy loss of all planned answers together."""
        return self.questions * self._each

    def guarantee(
        self, confidence: Number | None = None, *, method: str = "conditional"
    ) -> Guarantee:
        """What holds for all answers of the oracle's life at once, however the questions depend on answers.

        It also holds for those given so far, whenever one stops. It is void if the rows are no independent draws from
        the population, or if anything else about them was used to choose the questions.
        """
        sure = self.confidence if confidence is None else confidence
        return guarantee(self.mechanism, self.rows, self.questions, sure, method=method)

    def so_far(self, confidence: Number | None = None) -> Guarantee:
        """A guarantee for the answers given so far; it may be read at any moment, also to decide whether to go on.

        It is that of the next power of two of questions, 2^j, at confidence 1 - (1 - confidence)/((j + 1)(j + 2)): the
        failures sum to 1 - confidence, so that with that probability all of these hold.
        """
        sure = open_unit("confidence", self.confidence if confidence is None else confidence).upper
        j = max(0, (self._asked - 1).bit_length()) if self._asked else 0
        return guarantee(self.mechanism, self.rows, 2**j, 1 - (1 - sure) / ((j + 1) * (j + 2)))

    def ask(self, phi: Phi | str) -> Answered:
        """The mean of phi over the sample, with noise: a function of rows to numbers in [0, 1], or a condition in SQL.

        phi looks at each row by itself. It is first tried on public rows, where errors are shown. On the sample values
        are clamped, and rows on which it fails or has no value count as 0.

        Privacy: counted before the rows are read; what is returned, and whether anything is, depends on the rows only
        through the noisy mean.
        """
        self._expect_own_process()
        if not isinstance(phi, str) and not callable(phi):
            rule = "a question is a function of rows, or a condition in SQL as a text"
            raise InvalidInput(show(phi), rule, f'Pass {self._sample.sketch}, or "age >= 65".')
        question = self._condition(phi) if isinstance(phi, str) else phi
        self._sample.rehearse(question)
        with self._lock:
            if not self.left:
                hint = f"It has answered the {self.questions} questions that its noise was made for; take fresh rows."
                raise BudgetExceeded("one more question", "none", hint)
            self._asked += 1
            left = self.left
        exact = Fraction(self._sample.total(question), self.rows * GRID)
        value = float(min(1, max(0, self.mechanism.release(exact))))
        promise = self._promise
        return Answered(
            value, promise.population, promise.sample if promise.sample is not None else 1.0, left
        )

    def _condition(self, text: str) -> Phi:
        if len(self._sample.parts) != 1:
            value = f"a sample of {len(self._sample.parts)} parts"
            raise InvalidInput(
                value, "a condition in SQL needs one table", "Pass one table with all columns."
            )
        return Predicate.of(text, self._sample.example[0])

    def _refusal(self, noise: NoiseName) -> InvalidInput:
        """The error where the best noise promises nothing of the population."""

        def useful(rows: int, questions: int) -> bool:
            mechanism = best_noise(rows, questions, self.confidence, noise=noise)
            return guarantee(mechanism, rows, questions, self.confidence).population < _VACUOUS

        enough, fewer = 2 * self.rows, self.questions // 2
        while enough <= _MOST_ROWS and not useful(enough, self.questions):
            enough *= 2
        while fewer and not useful(self.rows, fewer):
            fewer //= 2
        value = f"{counted(self.rows, 'row')} for {counted(self.questions, 'question')}"
        rule = "all answers could be off by one half or more in the population"
        ways = [f"take about {counted(enough, 'row')}"] * (enough <= _MOST_ROWS) + [
            f"plan questions={fewer}"
        ] * (fewer > 0)
        ways += ["pass a budget or a scale if privacy is what you need"]
        hint = ", or ".join(ways)
        return InvalidInput(value, rule, hint[0].upper() + hint[1:] + ".")

    def __repr__(self) -> str:
        name = type(self.mechanism).__name__.lower()
        noise = f"{name} noise of scale {brief(self.mechanism.scale, up=True)}"
        rows, left = counted(self.rows, "row"), counted(self.questions, "question")
        return f"StatisticalQueries({rows}, {noise}, {self.left} of {left} left)"


def _within(
    budget: Budget, noise: NoiseName, questions: int, rows: int, step: Fraction
) -> Gaussian | Laplace:
    """The least noise of which this many answers fit into the budget."""
    meter = TwoMeterFilter(budget)
    reach = Fraction(1, rows)
    if noise == "gaussian":
        mu_squared = meter.caps.mu_squared
        if mu_squared is None:
            rule = "Gaussian noise needs a budget with a delta"
            raise InvalidInput(show(budget), rule, 'Pass Budget(1, 1e-6), or noise="laplace".')
        return Gaussian(_root_upper(questions / mu_squared) * reach, step)
    pure = Laplace(questions * reach / budget.epsilon, step)
    if not budget.delta:
        return pure
    fewest, most = Fraction(0), pure.scale
    while most - fewest > most / 2**20:
        middle = Fraction(float_upper((fewest + most) / 2))
        fits = meter.fits(Charge.of(Laplace(middle, step).loss(reach))) >= questions
        fewest, most = (fewest, middle) if fits else (middle, most)
    return Laplace(most, step)


def _root_upper(value: Fraction) -> Fraction:
    from sordino.privacy.ball import ball, certified, exact_upper

    return exact_upper(certified(lambda: ball(value).sqrt()))

"""Above threshold, the sparse vector technique: any number of questions, of which only the few positive answers cost.

Theorem. If one person moves each value by at most `sensitivity`, all answers up to the last allowed positive one are
together epsilon-differentially private, however the questions are chosen. Proof in above_threshold.md.
"""

from __future__ import annotations

import threading
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any, Self

from sordino.errors import BudgetExceeded, InvalidInput
from sordino.mechanisms.bits import Bits
from sordino.mechanisms.laplace import Laplace
from sordino.mechanisms.lattice import Lattice
from sordino.mechanisms.observer import drawn
from sordino.mechanisms.randomized_response import RandomizedResponse
from sordino.mechanisms.single_use import SingleUse
from sordino.privacy.ball import ball, certified, lower
from sordino.privacy.exact import Number, decimal_reading, open_unit, positive, readable, show
from sordino.privacy.loss import FiniteLoss
from sordino.privacy.wording import a_or_an

__all__ = ["AboveThreshold"]

_MOST = 10**9


class AboveThreshold(SingleUse):
    """Says of one value after the other whether it is at least a public threshold, about; ends after `most` times yes.

    The noise on the threshold is drawn once, the noise on each value anew, and neither is ever shown. So an object is
    used up, and cannot be copied, stored or taken along into another process. `monotone`: one person moves all values
    the same way, up or down, each by at most `sensitivity`; this saves up to half of the noise.

    Privacy: epsilon-differentially private for all answers together, for questions chosen adaptively.

    Source: Lyu, Su, Li, "Understanding the sparse vector technique" (2017), Algorithm 1 and Section 4.2, on a lattice.

    Example:
        >>> alarm = AboveThreshold.calibrated(epsilon=1, threshold=1000, most=2)
        >>> [alarm.ask(value) for value in (10, 3000, 20)]
        [False, True, False]
        >>> alarm.left
        1
    """

    __slots__ = (
        "__secret", "_lattice", "_left", "_lock", "epsilon", "monotone", "most", "question_noise", "sensitivity", "step",
        "threshold", "threshold_noise",
    )  # fmt: skip

    def __init__(
        self,
        epsilon: Number,
        threshold: Number,
        most: int = 1,
        sensitivity: Number = 1,
        monotone: bool = False,
        step: Number = 1,
    ) -> None:
        super().__init__()
        self.epsilon = positive("epsilon", epsilon).lower
        self.sensitivity = positive(
            "sensitivity", sensitivity, "It is how far one person can move a value."
        ).upper
        self.step = decimal_reading("step", step)
        if self.step <= 0:
            raise InvalidInput(
                f"step={show(step)}", "step must be greater than zero", "Pass a positive number."
            )
        if isinstance(most, bool) or not isinstance(most, int) or not 1 <= most <= _MOST:
            rule = "the number of positive answers must be a whole number, at least 1"
            raise InvalidInput(f"most={show(most)}", rule, "Pass 1 to stop at the first.")
        if not isinstance(monotone, bool):
            hint = "Pass True only if one person moves all values the same way."
            raise InvalidInput(f"monotone={show(monotone)}", "monotone must be True or False", hint)
        self.most, self.monotone = most, monotone
        self._lattice = Lattice(self.step)
        self.threshold = self._steps("the threshold", threshold, False) * self.step
        first, second = _scales(self.usable_epsilon, self.sensitivity, most, monotone)
        self.threshold_noise, self.question_noise = (
            Laplace(first, self.step),
            Laplace(second, self.step),
        )
        self._left, self._lock = most, threading.Lock()
        self.__secret: int | None = None

    @classmethod
    def calibrated(
        cls,
        *,
        epsilon: Number,
        threshold: Number,
        most: int = 1,
        sensitivity: Number = 1,
        monotone: bool = False,
        step: Number = 1,
    ) -> Self:
        """One that is epsilon-private for its whole life, epsilon split between the two noises for the least variance.

        Privacy: epsilon-differentially private, under both readings of a float.
        """
        return cls(epsilon, threshold, most, sensitivity, monotone, step)

    @property
    def parameters(self) -> tuple[Any, ...]:
        """All that is public about it: two with the same parameters answer alike, each with noise of its own."""
        return self.epsilon, self.threshold, self.most, self.sensitivity, self.monotone, self.step

    @property
    def usable_epsilon(self) -> Fraction:
        """What the noise is calibrated to: log(truth/(1 - truth)) of the coin in `loss()`, rounded down."""
        return _coin(self.epsilon)[1]

    @property
    def left(self) -> int:
        """How many positive answers are left."""
        return self._left

    def loss(self) -> FiniteLoss:
        """The privacy loss of all answers together: the worst that is epsilon-private."""
        return _coin(self.epsilon)[0]

    def ask(self, value: Number, *, round_to_lattice: bool = False) -> bool:
        """Whether value + noise >= threshold + noise; BudgetExceeded after the last positive answer.

        Privacy: part of what `loss()` states, if neighbouring data move each value by at most `sensitivity` on the
        lattice.
        """
        self._expect_own_process()
        steps = self._steps("the value", value, round_to_lattice)
        with self._lock:
            if self._left == 0:
                answers = (
                    "positive answer was"
                    if self.most == 1
                    else f"{self.most} positive answers were"
                )
                hint = f"The allowed {answers} given; a new AboveThreshold costs epsilon again."
                raise BudgetExceeded("one more positive answer", "none", hint)
            positive_answer = drawn(self, "ask", steps, partial(self._reaches, steps))
            self._left -= positive_answer
        return positive_answer

    def _reaches(self, steps: int, source: Bits) -> bool:
        """Whether value and noise reach threshold and noise, in steps; the threshold's is drawn for the first one."""
        if self.__secret is None:
            self.__secret = int(self.threshold / self.step) + self.threshold_noise.steps(source)
        return steps + self.question_noise.steps(source) >= self.__secret

    def interval(self, confidence: Number = 0.95, *, questions: int) -> float:
        """With at least that probability, each of this many answers is right for values this far from the threshold.

        Half of what may fail is given to the noise on the threshold, half to that on the values.
        """
        if isinstance(questions, bool) or not isinstance(questions, int) or questions < 1:
            raise InvalidInput(
                f"questions={show(questions)}",
                "there must be at least one question",
                "Pass how many.",
            )
        alpha = 1 - open_unit("confidence", confidence).upper
        widths = (
            self.threshold_noise.interval(1 - alpha / 2),
            self.question_noise.interval(1 - alpha / (2 * questions)),
        )
        return float(sum(widths))

    def _steps(self, name: str, value: Any, rounding: bool) -> int:
        steps = self._lattice.steps(value, round_to_lattice=rounding)
        if not isinstance(steps, int):
            raise InvalidInput(
                a_or_an(type(value).__name__),
                f"{name} must be one number",
                "Ask one question at a time.",
            )
        return steps

    def __repr__(self) -> str:
        more = ", monotone=True" if self.monotone else ""
        more += "" if self.step == 1 else f", step={readable(self.step)}"
        sides = f"epsilon={readable(self.epsilon)}, threshold={readable(self.threshold)}, most={self.most}"
        return f"AboveThreshold({sides}, sensitivity={readable(self.sensitivity)}{more})"


@lru_cache(maxsize=256)
def _coin(epsilon: Fraction) -> tuple[FiniteLoss, Fraction]:
    """The worst pair with a rational coin whose loss is at most epsilon, and that loss, rounded down."""
    coin = RandomizedResponse.calibrated(epsilon=epsilon)
    odds = coin.truth / (1 - coin.truth)
    usable = Fraction(lower(certified(lambda: ball(odds).log())))
    if usable <= 0:
        rule = "an epsilon below all floats leaves nothing to be told"
        raise InvalidInput(f"epsilon={show(epsilon)}", rule, "Pass a larger one, such as 0.1.")
    return coin.loss(), usable


def _scales(
    epsilon: Fraction, sensitivity: Fraction, most: int, monotone: bool
) -> tuple[Fraction, Fraction]:
    """The scales of the noise on the threshold and on the values; the split is about Lyu's, 1 : (2 most)^(2/3)."""
    times = most if monotone else 2 * most
    ratio = Fraction(round(times ** (2 / 3) * 2**20), 2**20)
    first = epsilon / (1 + ratio)
    return sensitivity / first, times * sensitivity / (epsilon - first)

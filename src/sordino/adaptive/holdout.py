"""A reusable holdout (Thresholdout): a validation set that can be asked again and again.

Theorem. All that a holdout answers in its life is epsilon-differentially private for replacing one of its rows, for
functions that look at each row by itself; and within `guarantee` of the population. Proofs in holdout.md.
"""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from sordino.accounting.charge import Charge
from sordino.accounting.filters import TwoMeterFilter
from sordino.adaptive.guard import GRID, GuardedSample, Phi
from sordino.adaptive.holdout_guarantee import HoldoutAccuracy
from sordino.adaptive.number_text import places, rounded, rounded_up
from sordino.adaptive.payment import Payer, paid
from sordino.adaptive.samples import expect_one
from sordino.adaptive.scorer import HoldoutScorer, Metric, WholeSplit, expect_flat, metric_of
from sordino.adaptive.transfer import Guarantee
from sordino.errors import BudgetExceeded, InvalidInput
from sordino.mechanisms.above_threshold import AboveThreshold
from sordino.mechanisms.laplace import Laplace
from sordino.mechanisms.single_use import SingleUse
from sordino.privacy.budget import Budget
from sordino.privacy.exact import (
    Number,
    brief,
    closed_unit,
    decimal_reading,
    open_unit,
    positive,
    readable,
    show,
)
from sordino.privacy.loss import Loss
from sordino.privacy.wording import counted

__all__ = ["Checked", "Holdout"]

_ANSWERS_SHARE = Fraction(1, 3)
_CONFIDENCE = Fraction(95, 100)
_VACUOUS = 0.5
"""Whoever always answers 1/2 is never farther off."""
_MOST_ROWS = 2**42
_USUAL = Fraction(1, 10)
_ROUND = tuple(digit * Fraction(10) ** power for power in range(-4, 3) for digit in (1, 2, 5))


@dataclass(frozen=True)
class Checked:
    """The `value` to go on with; whether the training value was off (`overfit`); how many more may be off (`left`).

    With 95 % confidence all values that a holdout gives in its life are within their `half_width` of the population's
    means.
    """

    value: float
    overfit: bool
    left: int
    half_width: float

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        found = "corrected by the holdout" if self.overfit else "agrees with the holdout"
        digits, left = places(self.half_width), counted(self.left, "correction")
        far = rounded_up(self.half_width, digits)
        return (
            f"{rounded(self.value, digits)}, {found}, within {far} of the population; {left} left"
        )


class Holdout(SingleUse):
    """A holdout that can be asked again and again, until it has corrected `most` values.

    A training value within about `threshold` of the mean over the holdout comes back as it is, which costs nothing;
    one that is farther off is replaced by that mean with noise. Give `epsilon`, or `tolerance`: how close a correction
    is to the holdout's mean, 95 % of the time. The number of rows is public. `meter` is the filter that pays for the
    whole life at the start, one of its own if none is given. A filter is a value that is never changed: to pay for
    more from it, go on with `holdout.meter`. Refused is a holdout of whose `most` corrections nothing follows for the
    population.

    Privacy: epsilon-differentially private for replacing one row, for functions of each row by itself (see `guard`).

    Source: Dwork, Feldman, Hardt, Pitassi, Reingold, Roth, "The reusable holdout" (2015), with the sparse vector
    technique of above_threshold.md.

    Example:
        >>> import numpy as np
        >>> holdout = Holdout(np.arange(100_000) % 2, epsilon=1, threshold=0.1, most=5)
        >>> found = holdout.check(0.5, lambda rows: rows)
        >>> found.value, found.overfit, found.left, found.half_width < 0.12
        (0.5, False, 5, True)
        >>> holdout.check(0.9, lambda rows: rows).overfit
        True
        >>> holdout.guarantee(questions=1000).population < 0.14
        True
    """

    _instead = "Share the object itself, in the process that made it: with scikit-learn, n_jobs=1 or threads."

    def __init__(
        self,
        data: Any,
        *more: Any,
        epsilon: Number | None = None,
        tolerance: Number | None = None,
        threshold: Number = 0.05,
        most: int = 10,
        example: Any = None,
        meter: Payer | None = None,
    ) -> None:
        super().__init__()
        expect_one(more)
        if (epsilon is None) == (tolerance is None):
            value = f"epsilon={show(epsilon)}, tolerance={show(tolerance)}"
            raise InvalidInput(
                value, "exactly one of epsilon and tolerance must be given", "Pass epsilon=1."
            )
        if isinstance(most, bool) or not isinstance(most, int) or most < 1:
            raise InvalidInput(
                f"most={show(most)}",
                "a holdout must be able to correct at least one value",
                "Pass 10.",
            )
        bar = open_unit("threshold", threshold, "Pass a small number such as 0.05.").lower
        self._sample = GuardedSample.of(data, example)
        if epsilon is not None:
            wanted = _Wanted(bar, most, epsilon=positive("epsilon", epsilon).lower)
        else:
            close = open_unit("tolerance", tolerance, "Pass a small number such as 0.01.").lower
            wanted = _Wanted(bar, most, tolerance=close)
        self._accuracy = wanted.on(self.rows)
        if not wanted.useful(self._accuracy):
            raise wanted.refusal(self.rows)
        self.epsilon = self._accuracy.epsilon
        self._above, self._noise = self._accuracy.above, self._accuracy.noise
        life = Charge.of(self._above.loss()) + Charge.of(
            self._noise.loss(Fraction(1, self.rows)), most
        )
        self.meter = paid(TwoMeterFilter(Budget(self.epsilon)) if meter is None else meter, life)
        self._asked = 0
        self._lock = threading.RLock()

    @property
    def rows(self) -> int:
        """How many rows the holdout has."""
        return self._sample.count

    @property
    def most(self) -> int:
        """How many values it can correct in its life."""
        return self._above.most

    @property
    def left(self) -> int:
        """How many more values it can correct."""
        return self._above.left

    @property
    def threshold(self) -> Fraction:
        """How far a training value may be off, about; a multiple of the step of means."""
        return self._above.threshold

    @property
    def asked(self) -> int:
        """How many questions were answered."""
        return self._asked

    def loss(self) -> Loss:
        """The privacy loss of its whole life."""
        return self._above.loss() + self.most * self._noise.loss(Fraction(1, self.rows))

    def interval(self, confidence: Number = 0.95) -> float:
        """The half-width of a correction: how far it is from the holdout's mean, with at least that probability."""
        return float(self._noise.interval(confidence)) + 1 / (2 * (self._accuracy.told - 1))

    def guarantee(self, confidence: Number = 0.95, *, questions: int) -> Guarantee:
        """What holds for all values at once if this many questions are asked, however they depend on the values before.

        `sample` is how far they are from the means over the holdout, `population` from those of the population. The
        last is void if the rows are no independent draws from it, or if anything else about them was used to choose
        questions.
        """
        return self._accuracy.guarantee(questions, confidence)

    def check(self, train_value: Number, phi: Phi) -> Checked:
        """About what the mean of phi, found to be `train_value` on training data, is in the population: see `Checked`.

        phi maps rows to one number in [0, 1] for each, looking at each row by itself. It is first tried on public
        rows, where errors are shown. On the holdout values are clamped, and rows on which it fails or has no value
        count as 0.

        Privacy: what is returned, and whether anything is, depends on the rows only through private answers.
        """
        return self._check(train_value, phi, self._sample)

    def check_like(self, train_value: Number, phi: Phi, example: tuple[Any, ...]) -> Checked:
        """The same, rehearsed on these public rows, which must have the form of the holdout's."""
        return self._check(train_value, phi, self._sample.with_example(example))

    def _check(self, train_value: Number, phi: Phi, stage: GuardedSample) -> Checked:
        """The same, rehearsed on the example of `stage`."""
        self._expect_own_process()
        train = closed_unit(
            "train_value", train_value, "Pass the mean of phi over the training rows."
        ).lower
        stage.rehearse(phi)
        with self._lock:
            if self.left == 0:
                hint = f"It has corrected {counted(self.most, 'value')}; take fresh rows, which cost their epsilon again."
                raise BudgetExceeded("one more correction of this holdout", "none", hint)
            self._asked += 1
            half_width = self._accuracy.so_far(self._asked, _CONFIDENCE).population
            units = self.rows * GRID
            total, near = self._sample.total(phi), math.floor(train * units + Fraction(1, 2))
            if not self._above.ask(Fraction(abs(total - near), units)):
                return Checked(
                    float(decimal_reading("train_value", train_value)), False, self.left, half_width
                )
            last = self._accuracy.told - 1
            place = math.floor(
                Fraction(self._noise.release(Fraction(total, units))) * last + Fraction(1, 2)
            )
            return Checked(min(last, max(0, place)) / last, True, self.left, half_width)

    def scorer(self, metric: str | Metric = "accuracy") -> HoldoutScorer:
        """A scorer for scikit-learn's `scoring=`; the holdout must be (X, y).

        A metric scores each row by a number in [0, 1], larger is better: of squared errors the worst model would be
        chosen.

        Example: `GridSearchCV(model, grid, scoring=holdout.scorer(), cv=holdout.splitter(), error_score="raise")`;
        without the last, scikit-learn takes a refusal, or the end of the holdout, for a score of NaN.
        """
        if len(self._sample.parts) != 2:
            value = f"a holdout of {len(self._sample.parts)} part"
            raise InvalidInput(
                value, "a scorer needs rows and their targets", "Make it with Holdout((X, y), ...)."
            )
        expect_flat(self._sample.parts[1])
        return HoldoutScorer(self, metric_of(metric))

    def splitter(self) -> WholeSplit:
        """A splitter for scikit-learn's `cv=` that leaves validation to `scorer()`, which alone may score with it.

        Any other, such as `scoring="accuracy"`, would report the score on the training rows.
        """
        return WholeSplit()

    def __repr__(self) -> str:
        sides = f"epsilon={readable(self.epsilon)}, threshold={readable(self.threshold)}"
        error = brief(Fraction(self.guarantee(questions=self.most).population), up=True)
        promise = f"within {error} of the population for {counted(self.most, 'question')}, 95 % of the time"
        return f"Holdout({counted(self.rows, 'row')}, {sides}, most={self.most}, left={self.left}; {promise})"


@dataclass(frozen=True)
class _Wanted:
    """A holdout without its rows: what it would be on this many of them."""

    threshold: Fraction
    most: int
    epsilon: Fraction | None = None
    tolerance: Fraction | None = None

    def on(self, rows: int) -> HoldoutAccuracy:
        reach = Fraction(1, rows)
        step = reach / GRID
        # A correction is told in multiples of at most half its noise's scale, a quarter of which rounding may add.
        quantile = _log_upper(1 / (1 - _CONFIDENCE)) + Fraction(1, 4)
        share = (
            self.epsilon * _ANSWERS_SHARE
            if self.epsilon
            else reach * self.most * quantile / (self.tolerance or 1)
        )
        epsilon = self.epsilon or share / _ANSWERS_SHARE
        bar = math.floor(self.threshold / step) * step
        above = AboveThreshold(epsilon - share, bar, self.most, reach, step=step)
        noise = Laplace.calibrated(sensitivity=reach, epsilon=share / self.most, step=step)
        return HoldoutAccuracy(
            rows, epsilon, above, noise, min(math.ceil(2 / noise.scale), rows * GRID) + 1
        )

    def useful(self, accuracy: HoldoutAccuracy) -> bool:
        """Whether something follows for the population if all corrections are used."""
        return accuracy.guarantee(self.most, _CONFIDENCE).population < _VACUOUS

    def refusal(self, rows: int) -> InvalidInput:
        enough, fewer, sharper = 2 * rows, self.most // 2, self._sharper(rows)
        while enough <= _MOST_ROWS and not self.useful(self.on(enough)):
            enough *= 2
        while fewer and not (other := replace(self, most=fewer)).useful(other.on(rows)):
            fewer //= 2
        rule = f"{self.most} corrected values could be off by one half or more in the population"
        more = f"about {counted(enough, 'row')}" if enough <= _MOST_ROWS else ""
        ways = [way for way in (sharper, more, f"most={fewer}" if fewer else "") if way]
        last = (
            "a larger epsilon and more rows"
            if self.threshold <= _USUAL
            else "a smaller threshold, such as 0.05"
        )
        hint = f"Take {', or '.join(ways) or last}."
        name, given = (
            ("epsilon", self.epsilon)
            if self.epsilon
            else ("tolerance", self.tolerance or Fraction(1))
        )
        sides = f"threshold={brief(self.threshold, up=True)} and {name}={brief(given, up=True)}"
        return InvalidInput(f"a holdout of {counted(rows, 'row')} with {sides}", rule, hint)

    def _sharper(self, rows: int) -> str:
        """The least larger epsilon of one digit, or the largest smaller tolerance, with which it would be useful."""
        if self.epsilon:
            wanted = (replace(self, epsilon=value) for value in _ROUND if value > self.epsilon)
        else:
            wanted = (
                replace(self, tolerance=1 / value)
                for value in _ROUND
                if 1 / value < (self.tolerance or 1)
            )
        for one in wanted:
            if one.useful(one.on(rows)):
                return (
                    f"tolerance={readable(one.tolerance)}"
                    if one.tolerance
                    else f"epsilon={readable(one.epsilon or _USUAL)}"
                )
        return ""


def _log_upper(value: Fraction) -> Fraction:
    from sordino.privacy.ball import ball, certified, upper

    return Fraction(upper(certified(lambda: ball(value).log())))

"""A reusable holdout (Thresholdout): a validation set that can be asked again and again.

Theorem. All that a holdout answers in its life is epsilon-differentially private for replacing one of its rows, for
functions that look at each row by itself. Proof in holdout.md.
"""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NoReturn

from sordino.accounting.charge import Charge
from sordino.accounting.filters import TwoMeterFilter, ZcdpFilter
from sordino.adaptive.guard import GRID, GuardedSample, Phi
from sordino.adaptive.scorer import HoldoutScorer, Metric, WholeSplit, metric_of
from sordino.errors import BudgetExceeded, InvalidInput
from sordino.mechanisms.above_threshold import AboveThreshold
from sordino.mechanisms.laplace import Laplace
from sordino.privacy.budget import Budget
from sordino.privacy.exact import Number, closed_unit, decimal_reading, open_unit, positive, readable, show
from sordino.privacy.loss import Loss

__all__ = ["Checked", "Holdout"]

_ANSWERS_SHARE = Fraction(1, 3)
_CONFIDENCE = Fraction(95, 100)


@dataclass(frozen=True)
class Checked:
    """The trustworthy `value`; whether the training value was off (`overfit`); how many more may be off (`left`)."""

    value: float
    overfit: bool
    left: int


class Holdout:
    """A holdout that can be asked again and again, until it has corrected `most` values.

    A training value within about `threshold` of the mean over the holdout comes back as it is, which costs nothing; one that
    is farther off is replaced by that mean with noise. Give `epsilon`, or `tolerance`: how close a correction is to the
    holdout's mean, 95 % of the time. The number of rows is public. `meter` is the filter that pays, one of its own
    if none is given; the whole life must fit into it.

    Privacy: epsilon-differentially private for replacing one row, for functions of each row by itself (see `guard`).

    Source: Dwork, Feldman, Hardt, Pitassi, Reingold, Roth, "The reusable holdout" (2015), with the sparse vector technique
    of above_threshold.md.

    Example:
        >>> import numpy as np
        >>> holdout = Holdout(np.arange(100_000) % 2, epsilon=1, threshold=0.1, most=5)
        >>> holdout.check(0.5, lambda rows: rows)
        Checked(value=0.5, overfit=False, left=5)
        >>> holdout.check(0.9, lambda rows: rows).overfit
        True
    """

    def __init__(
        self,
        data: Any,
        *,
        epsilon: Number | None = None,
        tolerance: Number | None = None,
        threshold: Number = 0.05,
        most: int = 10,
        example: Any = None,
        meter: TwoMeterFilter | ZcdpFilter | None = None,
    ) -> None:
        if (epsilon is None) == (tolerance is None):
            value = f"epsilon={show(epsilon)}, tolerance={show(tolerance)}"
            raise InvalidInput(value, "exactly one of epsilon and tolerance must be given", "Pass epsilon=1.")
        if isinstance(most, bool) or not isinstance(most, int) or most < 1:
            raise InvalidInput(f"most={show(most)}", "a holdout must be able to correct at least one value", "Pass 10.")
        bar = open_unit("threshold", threshold, "Pass a small number such as 0.05.").lower
        self._sample = GuardedSample.of(data, example)
        reach = Fraction(1, self._sample.count)
        step = reach / GRID
        if epsilon is not None:
            self.epsilon = positive("epsilon", epsilon).lower
        else:
            close = open_unit("tolerance", tolerance, "Pass a small number such as 0.01.").lower
            self.epsilon = reach * most * _log_upper(1 / (1 - _CONFIDENCE)) / close / _ANSWERS_SHARE
        self.threshold = math.floor(bar / step) * step
        answers = self.epsilon * _ANSWERS_SHARE
        self._above = AboveThreshold(self.epsilon - answers, self.threshold, most, reach, step=step)
        self._noise = Laplace.calibrated(sensitivity=reach, epsilon=answers / most, step=step)
        self._correction = Charge.of(self._noise.loss(reach))
        self.meter = TwoMeterFilter(Budget(self.epsilon)) if meter is None else meter
        self.meter.spend(Charge.of(self.loss()))  # refuses a life that does not fit
        self.meter = self.meter.spend(Charge.of(self._above.loss()))
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

    def loss(self) -> Loss:
        """The privacy loss of its whole life."""
        return self._above.loss() + self.most * self._noise.loss(Fraction(1, self.rows))

    def interval(self, confidence: Number = 0.95) -> float:
        """The half-width of a correction: how far it is from the mean over the holdout, with at least that probability."""
        return float(self._noise.interval(confidence))

    def check(self, train_value: Number, phi: Phi) -> Checked:
        """What the mean of phi, found to be `train_value` on training data, is on fresh data.

        phi maps rows to one number in [0, 1] for each, looking at each row by itself. It is first tried on public rows,
        where errors are shown. On the holdout values are clamped, and rows on which it fails or has no value count as 0.

        Privacy: what is returned, and whether anything is, depends on the rows only through private answers.
        """
        train = closed_unit("train_value", train_value, "Pass the mean of phi over the training rows.").lower
        self._sample.rehearse(phi)
        with self._lock:
            if self.left == 0:
                hint = f"It has corrected {self.most} values; take fresh rows, which cost their epsilon again."
                raise BudgetExceeded("one more correction of this holdout", "none", hint)
            units = self.rows * GRID
            total, near = self._sample.total(phi), math.floor(train * units + Fraction(1, 2))
            if not self._above.ask(Fraction(abs(total - near), units)):
                return Checked(float(decimal_reading("train_value", train_value)), False, self.left)
            self.meter = self.meter.spend(self._correction)
            value = self._noise.release(Fraction(total, units))
            return Checked(min(1.0, max(0.0, float(value))), True, self.left)

    def scorer(self, metric: str | Metric = "accuracy") -> HoldoutScorer:
        """A scorer for scikit-learn's `scoring=`; the holdout must be (X, y).

        Example: `GridSearchCV(model, grid, scoring=holdout.scorer(), cv=holdout.splitter()).fit(X_train, y_train)`.
        """
        if len(self._sample.parts) != 2:
            value = f"a holdout of {len(self._sample.parts)} part"
            raise InvalidInput(value, "a scorer needs rows and their targets", "Make it with Holdout((X, y), ...).")
        return HoldoutScorer(self, metric_of(metric))

    def splitter(self) -> WholeSplit:
        """A splitter for scikit-learn's `cv=` that leaves validation to the scorer."""
        return WholeSplit()

    def __copy__(self) -> NoReturn:
        _refuse()

    def __deepcopy__(self, memo: Any) -> NoReturn:
        _refuse()

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        _refuse()

    def __repr__(self) -> str:
        sides = f"epsilon={readable(self.epsilon)}, threshold={readable(self.threshold)}"
        return f"Holdout({self.rows} rows, {sides}, most={self.most}, left={self.left})"


def _log_upper(value: Fraction) -> Fraction:
    from sordino.privacy.ball import ball, certified, upper

    return Fraction(upper(certified(lambda: ball(value).log())))


def _refuse() -> NoReturn:
    rule = "its noise must not be used twice, so it cannot be copied or sent to another process"
    raise InvalidInput("a Holdout", rule, "Share the object itself: with scikit-learn, n_jobs=1 or threads.")

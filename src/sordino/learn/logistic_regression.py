"""Logistic regression by noisy gradient descent on all rows, with exact sums.

Privacy: in each step a row adds c (outer) a, for a its features and 1 as whole numbers (`SCALE` to the unit) and c its
residuals times a public factor, shortened so that |c| |a| <= the bound, and cut off towards zero. So one row moves the
whole numbers by at most the bound, and each step is Gaussian-private with its share of mu; so is the noisy number of
rows, which comes first. How many steps there are follows from mu and that noisy number: whatever it is, the squares of
the steps' shares add up to the same, so that the whole is mu-Gaussian-private by adaptive composition. Scores are exact
products of whole numbers (bounded_rows.py): no other row can change one by a rounding.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, Self

import numpy as np

from sordino.errors import InvalidInput
from sordino.learn.bounded_rows import SCALE, Floats, exact_scores, on_lattice
from sordino.learn.estimator import (
    ClassifierMixin,
    PrivateEstimator,
    classes_of,
    positive_number,
    shape_of,
    shared,
    targets_of,
    whole_number,
)
from sordino.mechanisms.gaussian import Gaussian
from sordino.privacy.exact import show

__all__ = ["LogisticRegression"]

_CLIP = 2**33
_ROWS_AT_A_TIME = 2**18
_SIZE_SHARE = Fraction(1, 100)
_PACES = ((3_000, 150, 4.0), (30_000, 300, 16.0), (math.inf, 1000, 64.0))
"""Up to which mu times the noisy number of rows: how many steps, and the learning rate."""


class LogisticRegression(ClassifierMixin, PrivateEstimator):  # type: ignore[misc]
    """Gradient descent with momentum; the answer is the mean of the later steps.

    `classes` and `bounds` are declared. `clip` bounds the gradient of one row, for features scaled to [0, 1]. Number
    and length of steps are by default chosen by budget and noisy number of rows: more and longer ones where noise is
    small beside the rows.
    """

    _what = "fit a logistic regression"

    def __init__(
        self,
        epsilon: Any = 1.0,
        delta: Any = 1e-6,
        *,
        bounds: Any = None,
        classes: Any = None,
        steps: int | None = None,
        learning_rate: float | None = None,
        momentum: float = 0.9,
        clip: float = 1.0,
        ledger: Any = None,
    ) -> None:
        self.epsilon, self.delta, self.bounds, self.classes, self.ledger = (
            epsilon,
            delta,
            bounds,
            classes,
            ledger,
        )
        self.steps, self.learning_rate, self.momentum, self.clip = (
            steps,
            learning_rate,
            momentum,
            clip,
        )

    def _expect(self) -> None:
        if self.steps is not None:
            whole_number("steps", self.steps)
        if self.learning_rate is not None:
            positive_number("learning_rate", self.learning_rate)
        positive_number("clip", self.clip)
        if (
            isinstance(self.momentum, bool)
            or not isinstance(self.momentum, int | float)
            or not 0 <= self.momentum < 1
        ):
            raise InvalidInput(
                f"momentum={show(self.momentum)}", "it is at least 0 and below 1", "Pass 0.9."
            )

    def fit(self, X: Any, y: Any) -> Self:  # noqa: N803
        """Learn from rows and their classes."""
        self.classes_, places = classes_of(self.classes, targets_of(y, shape_of(X)[0]))
        with self._fitting(X) as (x, mu):
            weights = self._descended(x, mu, places)
            self.coef_ = weights[:, :-1] / (self._box.high - self._box.low)
            self.intercept_ = weights[:, -1] - self.coef_ @ self._box.low
            self._finish(self.coef_, self.intercept_)
        return self

    def _descended(self, x: Floats, mu: Fraction, places: Any) -> Floats:
        """The mean weights of the later steps, of features in [0, 1] and a last one that is always 1."""
        (for_size,) = shared(mu, [_SIZE_SHARE])
        whole = on_lattice(np.column_stack([x, np.ones(len(x))]), math.sqrt(x.shape[1] + 1))
        count = max(
            1.0, float(Gaussian._for(Fraction(1), 1 / for_size, Fraction(1, 256)).release(len(x)))
        )
        steps, rate = _pace(mu, count)
        steps, rate = self.steps or steps, self.learning_rate or rate
        (each,) = shared(mu, [(1 - _SIZE_SHARE) / steps])
        noise = Gaussian._for(Fraction(_CLIP), _CLIP / each, 1)
        kinds = 1 if len(self.classes_) == 2 else len(self.classes_)
        wanted = (
            np.eye(len(self.classes_))[places]
            if kinds > 1
            else (places[:, None] == 1).astype(float)
        )
        weights, speed = (np.zeros((kinds, whole.shape[1])) for _ in range(2))
        total, used = np.zeros_like(weights), 0
        lengths = np.sqrt(np.einsum("ij,ij->i", whole, whole))
        for step in range(steps):
            gradient = self._noisy_gradient(whole, lengths, wanted, weights, noise) / count
            speed = self.momentum * speed - rate * gradient
            weights = weights + speed
            if 2 * step >= steps:
                total, used = total + weights, used + 1
        return np.asarray(total / used)

    def _noisy_gradient(
        self, whole: Floats, lengths: Floats, wanted: Floats, weights: Floats, noise: Gaussian
    ) -> Floats:
        """The sum over rows of clipped gradients, with noise."""
        total = np.zeros(weights.shape, np.int64)
        factor, most_row = _CLIP / (float(self.clip) * SCALE), float(SCALE * whole.shape[1])
        for start in range(0, len(whole), _ROWS_AT_A_TIME):
            part = slice(start, start + _ROWS_AT_A_TIME)
            residuals = (
                _chances(exact_scores(whole[part], weights, most_row) / SCALE) - wanted[part]
            )
            sizes = np.sqrt(np.square(residuals).sum(1))
            most = _CLIP * (1 - 2.0**-40) / np.maximum(lengths[part], 1)
            shorter = np.minimum(factor, most / np.maximum(sizes, 1e-300))
            total += (np.trunc(residuals * shorter[:, None]).T @ whole[part]).astype(np.int64)
        noisy: Floats = noise.release(total).astype(float)
        return noisy * (float(self.clip) / _CLIP)

    def decision_function(self, X: Any) -> Floats:  # noqa: N803
        """The log-odds of the second of two classes, or the score of each class."""
        rows = self._rows(X) * (self._box.high - self._box.low) + self._box.low
        scores = rows @ self.coef_.T + self.intercept_
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict_proba(self, X: Any) -> Floats:  # noqa: N803
        """The chance of each class."""
        scores = self.decision_function(X)
        if scores.ndim == 2:
            return _chances(scores)
        second = _chances(scores[:, None])
        return np.column_stack([1 - second[:, 0], second[:, 0]])

    def predict(self, X: Any) -> Any:  # noqa: N803
        """The likeliest class."""
        places = self.predict_proba(X).argmax(1)
        return self.classes_[places]


def _pace(mu: Fraction, count: float) -> tuple[int, float]:
    """How many steps, and the learning rate: from what is public by then."""
    return next((steps, rate) for most, steps, rate in _PACES if float(mu) * count <= most)


def _chances(scores: Floats) -> Floats:
    if scores.shape[1] == 1:
        return 1 / (1 + np.exp(-np.clip(scores, -500, 500)))
    raised = np.exp(scores - scores.max(1, keepdims=True))
    return np.asarray(raised / raised.sum(1, keepdims=True))

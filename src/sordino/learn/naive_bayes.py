"""Naive Bayes from one noisy sum: for each class the number of rows, and of each feature the sums of x and x(1 - x).

Privacy: a row adds (1, x, x(1 - x)) to the sums of its class and nothing elsewhere, released once (bounded_rows.py).
Columns of zeros and ones have x(1 - x) = 0, so that they cost nothing twice.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, Self

import numpy as np

from sordino.learn.bounded_rows import Floats, noisy_sums, shortened
from sordino.learn.estimator import (
    ClassifierMixin,
    PrivateEstimator,
    classes_of,
    row_norm_number,
    row_norm_of,
    shape_of,
    targets_of,
)

__all__ = ["NaiveBayes"]

_LEAST_VARIANCE = 1e-3
_LEAST_CHANCE = 1e-3
_COIN = 0.25


class NaiveBayes(ClassifierMixin, PrivateEstimator):  # type: ignore[misc]
    """Naive Bayes: features that are zeros and ones by their noisy sums are coins, all others normal.

    `classes` and `bounds` are declared; `row_norm` is as for LinearRegression.
    """

    _what = "fit a naive Bayes classifier"

    def __init__(
        self,
        epsilon: Any = 1.0,
        delta: Any = 1e-6,
        *,
        bounds: Any = None,
        classes: Any = None,
        row_norm: float | None = None,
        ledger: Any = None,
    ) -> None:
        self.epsilon, self.delta, self.bounds, self.classes, self.ledger = (
            epsilon,
            delta,
            bounds,
            classes,
            ledger,
        )
        self.row_norm = row_norm

    def _expect(self) -> None:
        row_norm_number(self.row_norm)

    def fit(self, X: Any, y: Any) -> Self:  # noqa: N803
        """Learn from rows and their classes."""
        self.classes_, places = classes_of(self.classes, targets_of(y, shape_of(X)[0]))
        with self._fitting(X) as (x, mu):
            self._learn(x, mu, places)
            self._finish(self.class_prior_, self.theta_, self.var_)
        return self

    def _learn(self, x: Floats, mu: Fraction, places: Any) -> None:
        d = x.shape[1]
        norm = row_norm_of(self.row_norm, math.sqrt(d))
        x = shortened(x, norm)
        parts = np.column_stack([np.ones(len(x)), x, x * (1 - x)])
        kinds = len(self.classes_)
        bound = math.sqrt(1 + norm**2 + min(d / 16, norm**2))
        sums = noisy_sums(parts, places, kinds, bound, mu)
        counts = np.maximum(sums[:, :1], 1.0)
        mean = np.clip(sums[:, 1 : d + 1] / counts, 0.0, 1.0)
        mixed = np.clip(sums[:, d + 1 :] / counts, 0.0, 0.25)
        self.class_prior_ = counts[:, 0] / counts.sum()
        self.theta_ = mean
        self.var_ = np.maximum(
            mean - mixed - mean**2, np.maximum(_LEAST_VARIANCE, mean * (1 - mean) * 0.02)
        )
        spread_of = (counts * mean * (1 - mean)).sum(0)
        self.coins_ = (counts * mixed).sum(0) < _COIN * spread_of

    def _joint(self, X: Any) -> Floats:  # noqa: N803
        x = self._rows(X)[:, None, :]
        normal = -0.5 * (np.log(2 * np.pi * self.var_) + (x - self.theta_) ** 2 / self.var_)
        chance = np.clip(self.theta_, _LEAST_CHANCE, 1 - _LEAST_CHANCE)
        coin = x * np.log(chance) + (1 - x) * np.log1p(-chance)
        return np.asarray(np.where(self.coins_, coin, normal).sum(2) + np.log(self.class_prior_))

    def predict_proba(self, X: Any) -> Floats:  # noqa: N803
        """The chance of each class."""
        joint = self._joint(X)
        raised = np.exp(joint - joint.max(1, keepdims=True))
        return np.asarray(raised / raised.sum(1, keepdims=True))

    def predict(self, X: Any) -> Any:  # noqa: N803
        """The likeliest class."""
        places = self._joint(X).argmax(1)
        return self.classes_[places]

"""Linear regression from one noisy matrix of second moments.

Privacy: all that is learned is a function of sum of z (outer) z, z = (features, 1, target), released once with the
whole budget (bounded_rows.py). The ridge that makes it solvable depends on the noise's public scale and on the noisy
matrix.
"""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np

from sordino.errors import InvalidInput
from sordino.learn.bounded_rows import Floats, noisy_moments, shortened
from sordino.learn.estimator import (
    PrivateEstimator,
    RegressorMixin,
    numbers_of,
    row_norm_number,
    row_norm_of,
    shape_of,
)
from sordino.privacy.exact import show

__all__ = ["LinearRegression"]


class LinearRegression(RegressorMixin, PrivateEstimator):  # type: ignore[misc]
    """Least squares on noisy sufficient statistics, regularised as much as their noise needs.

    `bounds` and `target_bounds` are declared limits. Rows are scaled to [0, 1] and shortened to `row_norm`, by default
    the root of the number of features; where only some features are not zero (one-hot columns) a smaller one means
    less noise.
    """

    _what = "fit a linear regression"

    def __init__(
        self,
        epsilon: Any = 1.0,
        delta: Any = 1e-6,
        *,
        bounds: Any = None,
        target_bounds: Any = None,
        row_norm: float | None = None,
        ledger: Any = None,
    ) -> None:
        self.epsilon, self.delta, self.bounds, self.ledger = epsilon, delta, bounds, ledger
        self.target_bounds, self.row_norm = target_bounds, row_norm

    def _expect(self) -> None:
        row_norm_number(self.row_norm)

    def fit(self, X: Any, y: Any) -> Self:  # noqa: N803
        """Learn from rows and targets."""
        low, high = _target_bounds(self.target_bounds)
        targets = numbers_of(y, shape_of(X)[0])
        with self._fitting(X) as (x, mu):
            with np.errstate(all="ignore"):
                scaled = (2 * targets - (low + high)) / (high - low)
            t = np.clip(np.where(np.isnan(scaled), 0.0, scaled), -1.0, 1.0)
            d = x.shape[1]
            norm = row_norm_of(self.row_norm, math.sqrt(d))
            x = shortened(x, norm)
            bound = math.sqrt(norm**2 + 2)
            moments = noisy_moments(np.column_stack([x, np.ones(len(x)), t]), bound, mu)
            weights = _solved(moments, bound**2 / float(mu))
            half, middle = (high - low) / 2, (high + low) / 2
            self.coef_ = half * weights[:d] / (self._box.high - self._box.low)
            self.intercept_ = float(middle + half * weights[d] - self.coef_ @ self._box.low)
            self._finish(self.coef_, np.array([self.intercept_]))
        return self

    def predict(self, X: Any) -> Floats:  # noqa: N803
        """Predicted targets, within the declared limits."""
        rows = self._rows(X) * (self._box.high - self._box.low) + self._box.low
        low, high = _target_bounds(self.target_bounds)
        return np.clip(rows @ self.coef_ + self.intercept_, low, high)


def _solved(moments: Floats, sd: float) -> Floats:
    """Ridge regression on noisy moments: the ridge lifts the smallest eigenvalue above the noise's spectral norm."""
    a, b = moments[:-1, :-1], moments[:-1, -1]
    size = len(a)
    count = max(float(moments[-2, -2]), 1.0)
    values, vectors = np.linalg.eigh(a)
    noise = sd * math.sqrt(2 * size)
    ridge = max(noise - values[0], 0.1 * noise, 1e-9 * count)
    return np.asarray(vectors @ ((vectors.T @ b) / (values + ridge)))


def _target_bounds(bounds: Any) -> tuple[float, float]:
    try:
        low, high = (float(side) for side in bounds)
    except (TypeError, ValueError):
        rule = "limits of the target are declared, never taken from the data"
        raise InvalidInput(
            f"target_bounds={show(bounds)}", rule, "Pass target_bounds=(0, 100)."
        ) from None
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise InvalidInput(
            f"target_bounds={show(bounds)}", "they must be finite and in order", "Pass (0, 100)."
        )
    return low, high

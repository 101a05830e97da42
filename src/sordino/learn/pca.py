"""Principal components from one noisy matrix of second moments (bounded_rows.py), centred by its own noisy means."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np

from sordino.errors import InvalidInput
from sordino.learn.bounded_rows import Floats, noisy_moments, shortened
from sordino.learn.estimator import (
    PrivateEstimator,
    TransformerMixin,
    origin_of,
    positive_number,
    shape_of,
    whole_number,
)
from sordino.privacy.exact import show

__all__ = ["PCA"]


class PCA(TransformerMixin, PrivateEstimator):  # type: ignore[misc]
    """The directions of largest variance, of features scaled to [0, 1] by their declared bounds.

    `row_norm` is as for LinearRegression; without it, or if it is no less than the distance from the middle of the box
    to its corners, rows are seen from that middle.
    """

    _what = "fit principal components"

    def __init__(
        self,
        n_components: int = 2,
        epsilon: Any = 1.0,
        delta: Any = 1e-6,
        *,
        bounds: Any = None,
        row_norm: float | None = None,
        ledger: Any = None,
    ) -> None:
        self.n_components, self.epsilon, self.delta, self.bounds = (
            n_components,
            epsilon,
            delta,
            bounds,
        )
        self.row_norm, self.ledger = row_norm, ledger

    def _expect(self) -> None:
        whole_number("n_components", self.n_components)
        if self.row_norm is not None:
            positive_number("row_norm", self.row_norm)

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: N803, ARG002
        """Learn from rows; `y` is not looked at."""
        _, width = shape_of(X)
        if whole_number("n_components", self.n_components) > width:
            rule = f"there are from 1 to {width} components"
            raise InvalidInput(
                f"n_components={show(self.n_components)}", rule, "Pass n_components=2."
            )
        with self._fitting(X) as (x, mu):
            origin, norm = origin_of(self.row_norm, width)
            moved = shortened(x - origin, norm)
            moments = noisy_moments(
                np.column_stack([moved, np.ones(len(x))]), math.sqrt(norm**2 + 1), mu
            )
            count = max(float(moments[-1, -1]), 1.0)
            mean = np.clip(moments[-1, :-1] / count, -origin, 1 - origin)
            values, vectors = np.linalg.eigh(moments[:-1, :-1] / count - np.outer(mean, mean))
            self.mean_ = mean + origin
            self.components_ = vectors.T[::-1][: self.n_components]
            self.explained_variance_ = np.maximum(values[::-1][: self.n_components], 0.0)
            self._finish(self.mean_, self.components_, self.explained_variance_)
        return self

    def transform(self, X: Any) -> Floats:  # noqa: N803
        """The components of rows."""
        return np.asarray((self._rows(X) - self.mean_) @ self.components_.T)

    def inverse_transform(self, X: Any) -> Floats:  # noqa: N803
        """Rows with these components, in the units of the data."""
        unit = np.asarray(X, float) @ self.components_ + self.mean_
        return np.asarray(unit * (self._box.high - self._box.low) + self._box.low)

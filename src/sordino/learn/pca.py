"""Principal components from one noisy matrix of second moments (bounded_rows.py), centred by its own noisy means."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np

from sordino.errors import InvalidInput
from sordino.learn.bounded_rows import Floats, noisy_moments, shortened
from sordino.learn.estimator import (
    PrivateEstimator,
    TransformerMixin,
    matrix_of,
    origin_of,
    row_norm_number,
    shape_of,
    whole_number,
)
from sordino.privacy.exact import show

__all__ = ["PCA", "Axes"]


@dataclass(frozen=True, eq=False)
class Axes:
    """The mean of rows in the unit box, the directions of their variance with the largest first, all with noise."""

    mean: Floats
    directions: Floats
    """One column each."""
    variances: Floats
    noise: float
    """About the largest variance that noise alone would show."""

    @staticmethod
    def of(x: Floats, row_norm: float | None, mu: Fraction) -> Axes:
        """From rows in the unit box.

        Privacy: mu-Gaussian-private, a function of one release of second moments.
        """
        width = x.shape[1]
        origin, norm = origin_of(row_norm, width)
        moved = np.column_stack([shortened(x - origin, norm), np.ones(len(x))])
        bound = math.sqrt(norm**2 + 1)
        moments = noisy_moments(moved, bound, mu)
        count = max(float(moments[-1, -1]), 1.0)
        mean = np.clip(moments[-1, :-1] / count, -origin, 1 - origin)
        values, vectors = np.linalg.eigh(moments[:-1, :-1] / count - np.outer(mean, mean))
        noise = bound**2 / float(mu) * math.sqrt(2 * width) / count
        return Axes(mean + origin, vectors[:, ::-1], np.maximum(values[::-1], 0.0), noise)


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
        row_norm_number(self.row_norm)

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: N803, ARG002
        """Learn from rows; `y` is not looked at."""
        _, width = shape_of(X)
        if whole_number("n_components", self.n_components) > width:
            rule = f"there are from 1 to {width} components"
            raise InvalidInput(
                f"n_components={show(self.n_components)}", rule, "Pass n_components=2."
            )
        with self._fitting(X) as (x, mu):
            axes = Axes.of(x, self.row_norm, mu)
            self.mean_ = axes.mean
            self.components_ = axes.directions.T[: self.n_components]
            self.explained_variance_ = axes.variances[: self.n_components]
            self._finish(self.mean_, self.components_, self.explained_variance_)
        return self

    def transform(self, X: Any) -> Floats:  # noqa: N803
        """The components of rows."""
        return np.asarray((self._rows(X) - self.mean_) @ self.components_.T)

    def get_feature_names_out(self, input_features: Any = None) -> Any:  # noqa: ARG002
        """The names of the components: pca0, pca1 and so on."""
        return np.array([f"pca{place}" for place in range(len(self.components_))], object)

    def inverse_transform(self, X: Any) -> Floats:  # noqa: N803
        """Rows with these components, in the units of the data."""
        parts, count = matrix_of(X), len(self.components_)
        if parts.shape[1] != count:
            rule = f"each row has {count} components"
            raise InvalidInput(f"{parts.shape[1]} columns", rule, "Pass what transform() returned.")
        unit = parts @ self.components_ + self.mean_
        return np.asarray(unit * (self._box.high - self._box.low) + self._box.low)

"""Lloyd's algorithm on noisy sums: in each round the number and the sum of the rows of each cluster (bounded_rows.py).

Privacy: a row adds (1, x - a public point) to its cluster and nothing elsewhere; each round has its share of mu. The
first centres are public points of the box, spread evenly.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, Self

import numpy as np

from sordino.learn.bounded_rows import SCALE, Floats, noisy_sums, shortened
from sordino.learn.estimator import (
    ClusterMixin,
    PrivateEstimator,
    origin_of,
    positive_number,
    shared,
    whole_number,
)

__all__ = ["KMeans"]


class KMeans(ClusterMixin, PrivateEstimator):  # type: ignore[misc]
    """`n_clusters` centres after `rounds` noisy rounds, for features within declared `bounds`; `row_norm` is as for
    PCA.
    """

    _what = "fit k-means"

    def __init__(
        self,
        n_clusters: int = 8,
        epsilon: Any = 1.0,
        delta: Any = 1e-6,
        *,
        bounds: Any = None,
        rounds: int = 6,
        row_norm: float | None = None,
        ledger: Any = None,
    ) -> None:
        self.n_clusters, self.epsilon, self.delta, self.bounds = n_clusters, epsilon, delta, bounds
        self.rounds, self.row_norm, self.ledger = rounds, row_norm, ledger

    def _expect(self) -> None:
        whole_number("n_clusters", self.n_clusters)
        whole_number("rounds", self.rounds)
        if self.row_norm is not None:
            positive_number("row_norm", self.row_norm)

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: N803, ARG002
        """Learn from rows; `y` is not looked at."""
        with self._fitting(X) as (x, mu):
            self._centres = self._moved(x, mu)
            self.cluster_centers_ = self._centres * (self._box.high - self._box.low) + self._box.low
            self._finish(self.cluster_centers_)
        return self

    def _moved(self, x: Floats, mu: Fraction) -> Floats:
        """The centres after all rounds, in the unit box."""
        (each,) = set(shared(mu, [Fraction(1, int(self.rounds))] * int(self.rounds)))
        width, k = x.shape[1], int(self.n_clusters)
        origin, norm = origin_of(self.row_norm, width)
        bound = math.sqrt(norm**2 * 2)
        centres = _spread(k, width)
        parts = np.column_stack([np.full(len(x), norm), shortened(x - origin, norm)])
        for _ in range(int(self.rounds)):
            spread = np.zeros((len(x), k, width + 1))
            spread[np.arange(len(x)), _nearest(x, centres)] = parts
            sums = noisy_sums(spread.reshape(len(x), k * (width + 1)), bound, each).reshape(
                k, width + 1
            )
            counts, sd = sums[:, :1] / norm, bound / float(each) / norm
            moved = np.clip(sums[:, 1:] / np.maximum(counts, 1.0) + origin, 0.0, 1.0)
            centres = np.where(counts > 3 * sd, moved, centres)
        return centres

    def predict(self, X: Any) -> Any:  # noqa: N803
        """The nearest centre of each row."""
        return _nearest(self._rows(X), self._centres)


def _nearest(x: Floats, centres: Floats) -> Any:
    """The place of the nearest centre, on a lattice where distances are exact: a tie is not decided by other rows."""
    rows, points = np.rint(x * SCALE), np.rint(centres * SCALE)
    return (np.square(points).sum(1) - 2 * rows @ points.T).argmin(1)


def _spread(count: int, width: int) -> Floats:
    """Public points of the unit box: a Kronecker sequence, whose points keep apart."""
    root = 1.5
    for _ in range(60):  # the root of r^(width + 1) = r + 1
        root = (1 + root) ** (1 / (width + 1))
    steps = (1 / root) ** np.arange(1, width + 1)
    return np.asarray(0.25 + 0.5 * ((0.5 + np.outer(np.arange(1, count + 1), steps)) % 1))

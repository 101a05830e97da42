"""Lloyd's algorithm on noisy sums: in each round the number and the sum of the rows of each cluster (bounded_rows.py).

Privacy: a row adds (1, x - a public point) to its cluster and nothing elsewhere; each round has its share of mu, as the
mean and the axes of all rows have, which come first (pca.py). The first centres, where a cluster that lost its rows
begins anew, and how much of a centre is taken for noise are functions of what was released by then.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np
from scipy.special import ndtri

from sordino.learn.bounded_rows import SCALE, Floats, noisy_sums, shortened
from sordino.learn.estimator import (
    ClusterMixin,
    PrivateEstimator,
    origin_of,
    row_norm_number,
    shared,
    whole_number,
)
from sordino.learn.pca import Axes

__all__ = ["KMeans"]

_AXES_SHARE = Fraction(3, 10)
_ALIVE = 3
"""So many deviations of its noise a cluster's number of rows is above zero, or the cluster has none."""


class KMeans(ClusterMixin, PrivateEstimator):  # type: ignore[misc]
    """`n_clusters` centres after `rounds` noisy rounds, for features within declared `bounds`; `row_norm` is as for
    PCA.

    The first centres are spread along the axes of largest variance. What of a centre lies across them, and is no longer
    than noise is, is left out.
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
        row_norm_number(self.row_norm)

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: N803, ARG002
        """Learn from rows; `y` is not looked at."""
        with self._fitting(X) as (x, mu):
            self._centres = self._moved(x, mu)
            self.cluster_centers_ = self._centres * (self._box.high - self._box.low) + self._box.low
            self._finish(self.cluster_centers_)
        return self

    def _moved(self, x: Floats, mu: Fraction) -> Floats:
        """The centres after all rounds, in the unit box."""
        rounds, k = int(self.rounds), int(self.n_clusters)
        for_axes, *each = shared(mu, [_AXES_SHARE, *[(1 - _AXES_SHARE) / rounds] * rounds])
        axes = Axes.of(x, self.row_norm, for_axes)
        frame = _Frame.of(axes, k)
        origin, norm = origin_of(self.row_norm, x.shape[1])
        bound = math.sqrt(norm**2 * 2)
        centres = frame.first(k)
        parts = np.column_stack([np.full(len(x), norm), shortened(x - origin, norm)])
        for left, share in zip(reversed(range(rounds)), each, strict=True):
            sums = noisy_sums(parts, _nearest(x, centres), k, bound, share)
            counts, sd = np.maximum(sums[:, :1] / norm, 1.0), bound / float(share)
            found = frame.cleaned(sums[:, 1:] / counts + origin, sd / counts)
            alive = sums[:, 0] > _ALIVE * sd
            centres = np.where(alive[:, None], found, centres)
            if left:
                centres = frame.revived(centres, alive, counts[:, 0])
        return centres

    def predict(self, X: Any) -> Any:  # noqa: N803
        """The nearest centre of each row."""
        return _nearest(self._rows(X), self._centres)


def _nearest(x: Floats, centres: Floats) -> Any:
    """The place of the nearest centre, on a lattice where distances are exact: a tie is not decided by other rows."""
    rows, points = np.rint(x * SCALE), np.rint(centres * SCALE)
    return (np.square(points).sum(1) - 2 * rows @ points.T).argmin(1)


@dataclass(frozen=True, eq=False)
class _Frame:
    """The axes that stand out of the noise, no more than clusters can need, and how far rows spread along each."""

    mean: Floats
    directions: Floats
    spreads: Floats

    @staticmethod
    def of(axes: Axes, count: int) -> _Frame:
        clear = int((axes.variances > axes.noise).sum())
        used = max(1, min(clear, count - 1))
        return _Frame(axes.mean, axes.directions[:, :used], np.sqrt(axes.variances[:used]))

    def first(self, count: int) -> Floats:
        """Points that lie as rows of a normal law along these axes would."""
        places = ndtri(_even_points(count, len(self.spreads))) * self.spreads
        return np.asarray(np.clip(self.mean + places @ self.directions.T, 0.0, 1.0))

    def cleaned(self, centres: Floats, sd: Floats) -> Floats:
        """Centres whose part across the axes is shortened as James and Stein do, by the noise of each entry."""
        along = (centres - self.mean) @ self.directions @ self.directions.T
        across = centres - self.mean - along
        noise = sd**2 * max(1, across.shape[1] - len(self.spreads))
        length = np.square(across).sum(1, keepdims=True)
        kept = np.maximum(0.0, 1.0 - noise / np.maximum(length, 1e-300))
        return np.asarray(np.clip(self.mean + along + kept * across, 0.0, 1.0))

    def revived(self, centres: Floats, alive: Any, counts: Floats) -> Floats:
        """Centres without rows begin anew beside those with the most."""
        largest = np.argsort(-np.where(alive, counts, 0.0))[: int(alive.sum())]
        if not len(largest):
            return centres
        dead = np.flatnonzero(~alive)
        turns, used = np.arange(len(dead)), len(self.spreads)
        axis, side = turns % used, 1 - 2 * (turns // used % 2)
        away = (side * self.spreads[axis])[:, None] * self.directions[:, axis].T
        found = centres.copy()
        found[dead] = np.clip(centres[largest[turns % len(largest)]] + away, 0.0, 1.0)
        return found


def _even_points(count: int, width: int) -> Floats:
    """Public points between zeros and ones: a Kronecker sequence, whose points keep apart."""
    root = 1.5
    for _ in range(60):  # the root of r^(width + 1) = r + 1
        root = (1 + root) ** (1 / (width + 1))
    steps = (1 / root) ** np.arange(1, width + 1)
    return np.asarray((0.5 + np.outer(np.arange(1, count + 1), steps)) % 1)

"""Sums, means and counts of rows: noise of the right law for the wrong sensitivity.

Most are the shapes of bugs that were found in libraries; the issue is named where there is one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from sordino.audit.known_truth import noise
from sordino.audit.known_truth.noise import Floats
from sordino.audit.known_truth.specimen import Specimen
from sordino.mechanisms.laplace import Laplace

__all__ = ["SPECIMENS"]

Batched = Callable[..., Any]


def _noisy(statistic: Callable[[Any], float], scale: float) -> Batched:
    """A number computed from the rows, with Laplace noise."""
    return lambda data, *, size: statistic(data) + noise.laplace(scale, size)


def _clipped_sum(data: Any) -> float:
    return float(np.clip(np.asarray(data, float), 0, 1).sum())


def _mean_of_n(data: Any, *, size: int) -> Any:
    """A noisy whole sum divided by the exact number of rows."""
    total = round(_clipped_sum(data))
    return Laplace.calibrated(sensitivity=1, epsilon=1).release(np.full(size, total)) / len(data)


def _mean_with_noise_of_n(data: Any, *, size: int) -> Floats:
    return _clipped_sum(data) / len(data) + noise.laplace(1 / len(data), size)


def _bounds_from_data(data: Any, *, size: int) -> Floats:
    rows = np.asarray(data, float)
    return float(rows.sum()) + noise.laplace(float(np.abs(rows).max()), size)


def _within_total(data: Any, *, size: int) -> Any:
    """A noisy count of ones, kept between 0 and the number of rows."""
    noisy = Laplace.calibrated(sensitivity=1, epsilon=1).release(np.full(size, sum(data)))
    return np.clip(noisy, 0, len(data))


def _unbounded(data: Any, *, size: int, bounds: tuple[float, float] | None = None) -> Floats:
    """Noise for the bounds; without bounds there is nothing to scale it by."""
    total = np.full(size, float(np.sum(data)))
    return total if bounds is None else total + noise.laplace(max(map(abs, bounds)), size)


def _wrapped(data: Any) -> float:
    """Summed in eight bits."""
    return float(np.asarray(data, np.int8).sum(dtype=np.int8))


def _nulls_free(data: Any, *, size: int) -> Floats:
    """The noisy number of rows, beside the number of those that could not be read."""
    missing = float(sum(row is None for row in data))
    return np.stack([len(data) + noise.laplace(1, size), np.full(size, missing)], axis=1)


def _codes_by_appearance(data: Any) -> float:
    """Each kind is numbered when it is first seen."""
    codes: dict[Any, int] = {}
    return float(sum(codes.setdefault(row, len(codes)) for row in data))


def _gaps_of_pairs(data: Any) -> float:
    """Rows paired two by two, an odd one dropped; the distances within the pairs."""
    rows = np.asarray(data, float)[: len(data) // 2 * 2]
    return float(np.abs(np.diff(rows.reshape(-1, 2), axis=1)).sum())


def _first_half(data: Any) -> float:
    return _clipped_sum(data[: len(data) // 2])


_RIGHT = (
    Specimen(
        name="clipped-sum",
        title="A sum of values clipped to [0, 1]",
        broken=False,
        why="A row adds at most 1.",
        mechanism=_noisy(_clipped_sum, 1),
        pair=([0.5, 0.25, 7.0], [0.5, 0.25, 7.0, 9.0]),
        neighbors="add_remove",
        epsilon=1,
        truth=1,
    ),
    Specimen(
        name="mean-of-public-n",
        title="A mean over a public number of rows",
        broken=False,
        why="Where rows are replaced their number is no secret, and the sum moves by at most 1.",
        mechanism=_mean_of_n,
        pair=([0, 1, 1, 0], [0, 1, 1, 1]),
        neighbors="replace",
        epsilon=1,
        truth=1,
    ),
)

_BROKEN = (
    Specimen(
        name="mean-leaks-n",
        title="A noisy sum divided by the exact number of rows",
        broken=True,
        why="The output is a whole number over n, which shows n.",
        mechanism=_mean_of_n,
        pair=([0, 1, 1], [0, 1, 1, 1]),
        neighbors="add_remove",
        epsilon=1,
        truth=math.inf,
    ),
    Specimen(
        name="mean-with-noise-of-n",
        title="A mean with noise for the n at hand",
        broken=True,
        why="The scale of the noise is a function of the data (the shape of SmartNoise-Core issue 356).",
        mechanism=_mean_with_noise_of_n,
        pair=([1], [1, 1]),
        neighbors="add_remove",
        epsilon=1,
        truth=math.inf,
    ),
    Specimen(
        name="bounds-from-data",
        title="Bounds taken from the largest value found",
        broken=True,
        why="One outlier moves the sum and the scale of the noise.",
        mechanism=_bounds_from_data,
        pair=([1, 1, 2], [1, 1, 2, 8]),
        neighbors="add_remove",
        epsilon=1,
        truth=math.inf,
    ),
    Specimen(
        name="nan-through-clip",
        title="A NaN that passes through the clipping",
        broken=True,
        why="NaN is neither below nor above a bound, and one makes the sum NaN.",
        mechanism=_noisy(_clipped_sum, 1),
        pair=([0.5, 0.25], [0.5, 0.25, math.nan]),
        neighbors="add_remove",
        epsilon=1,
        truth=math.inf,
    ),
    Specimen(
        name="clip-before-expression",
        title="Clipped to [0, 1], then multiplied by four",
        broken=True,
        why="The bounds are those of the column, not of what is summed (the shape of SmartNoise issue 201).",
        mechanism=_noisy(lambda data: 4 * _clipped_sum(data), 2),
        pair=([0.5, 0.25], [0.5, 0.25, 1.0]),
        neighbors="add_remove",
        epsilon=0.5,
        truth=2,
    ),
    Specimen(
        name="squares-not-squared",
        title="A sum of squares with the sensitivity of the values",
        broken=True,
        why="A value of up to 3 has a square of up to 9 (the shape of SmartNoise issue 203).",
        mechanism=_noisy(lambda data: float(np.square(np.clip(data, 0, 3)).sum()), 6),
        pair=([1, 2], [1, 2, 3]),
        neighbors="add_remove",
        epsilon=0.5,
        truth=1.5,
    ),
    Specimen(
        name="clipping-dropped",
        title="The clipped copy of the rows is not the one summed",
        broken=True,
        why="A row of 4 moves the sum by 4 (the shape of SmartNoise issue 622).",
        mechanism=_noisy(lambda data: float(np.sum(data)), 2),
        pair=([1, 1], [1, 1, 4]),
        neighbors="add_remove",
        epsilon=0.5,
        truth=2,
    ),
    Specimen(
        name="clip-after-noise",
        title="The noisy sum is clipped, not the rows",
        broken=True,
        why="Clipping the output hides little of a row of 4: P(0) still differs by e^(4 epsilon).",
        mechanism=lambda data, *, size: np.clip(np.sum(data) + noise.laplace(2, size), 0, 10),
        pair=([1, 1], [1, 1, 4]),
        neighbors="add_remove",
        epsilon=0.5,
        truth=2,
    ),
    Specimen(
        name="no-bounds-no-noise",
        title="A column without bounds gets no noise",
        broken=True,
        why="An unknown sensitivity was read as none (the shape of SmartNoise issue 317).",
        mechanism=_unbounded,
        pair=([1, 2], [1, 2, 3]),
        neighbors="add_remove",
        epsilon=1,
        truth=math.inf,
    ),
    Specimen(
        name="stale-sensitivity",
        title="The bound was raised from 1 to 2, the noise was not",
        broken=True,
        why="The sensitivity was computed before the last change.",
        mechanism=_noisy(lambda data: float(np.clip(data, 0, 2).sum()), 2),
        pair=([0.5, 1.5], [0.5, 1.5, 2.0]),
        neighbors="add_remove",
        epsilon=0.5,
        truth=1,
    ),
    Specimen(
        name="sum-of-replaced-rows",
        title="A sum over [-1, 1] billed for adding a row where rows are replaced",
        broken=True,
        why="A row that goes from -1 to 1 moves the sum by 2: the wrong neighbour relation, by a factor 2.",
        mechanism=_noisy(lambda data: float(np.clip(data, -1, 1).sum()), 2),
        pair=([0.5, -1.0], [0.5, 1.0]),
        neighbors="replace",
        epsilon=0.5,
        truth=1,
    ),
    Specimen(
        name="overflow-wraps",
        title="A sum of values up to 100 in eight bits",
        broken=True,
        why="127 and 1 make -128: the sum moves by 255, not by 100.",
        mechanism=_noisy(_wrapped, 100),
        pair=([100, 27], [100, 27, 1]),
        neighbors="add_remove",
        epsilon=1,
        truth=2.55,
    ),
    Specimen(
        name="nulls-counted-free",
        title="The number of unreadable rows is shown as it is",
        broken=True,
        why="What a failed cast makes null is data too (the shape of OpenDP issue 2938).",
        mechanism=_nulls_free,
        pair=([3, None], [3, None, None]),
        neighbors="add_remove",
        epsilon=1,
        truth=math.inf,
    ),
    Specimen(
        name="codes-by-appearance",
        title="Kinds numbered in the order in which they appear",
        broken=True,
        why="One row renumbers all others (the shape of OpenDP issue 2944).",
        mechanism=_noisy(_codes_by_appearance, 2),
        pair=(list("abbbb"), list("bbbb")),
        neighbors="add_remove",
        epsilon=0.5,
        truth=2,
    ),
    Specimen(
        name="pairs-shift",
        title="Rows paired by their places",
        broken=True,
        why="A missing row makes new pairs of all that follow (the shape of OpenDP issue 2950).",
        mechanism=_noisy(_gaps_of_pairs, 2),
        pair=([0, 0, 1, 1, 0, 0, 1, 1], [0, 1, 1, 0, 0, 1, 1]),
        neighbors="add_remove",
        epsilon=0.5,
        truth=1.5,
    ),
    Specimen(
        name="rows-of-a-person",
        title="Rows counted where persons are protected",
        broken=True,
        why="The bound of one row a person was lost on the way (the shape of OpenDP issue 2949).",
        mechanism=_noisy(lambda data: float(sum(map(len, data))), 2),
        pair=([(1,), (1,)], [(1,), (1,), (1, 1, 1)]),
        neighbors="add_remove",
        epsilon=0.5,
        truth=1.5,
    ),
    Specimen(
        name="kept-within-true-total",
        title="A noisy count kept below the exact number of rows",
        broken=True,
        why="The largest output is the number of rows.",
        mechanism=_within_total,
        pair=([1, 0], [1, 0, 0]),
        neighbors="add_remove",
        epsilon=1,
        truth=math.inf,
    ),
    Specimen(
        name="sampling-that-is-none",
        title="The first half of the rows, billed as a random half",
        broken=True,
        why="Sampling lowers epsilon from 1 to log(1 + (e - 1)/2) only if it is random.",
        mechanism=_noisy(_first_half, 1),
        pair=([1, 0, 1, 0], [0, 0, 1, 0]),
        neighbors="replace",
        epsilon=math.log1p((math.e - 1) / 2),
        truth=1,
    ),
)

SPECIMENS = _RIGHT + _BROKEN

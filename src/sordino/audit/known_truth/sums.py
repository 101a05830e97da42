"""Numbers with noise: values, sums of rows and vectors, with noise of the right or the wrong kind.

What gets noise is a statistic of the data, named in `STATISTICS`. Floats are as textbooks have them: value plus noise
is rounded to the floats near the result, so that last bits tell the value (Mironov, CCS 2012; Jin et al., arXiv
2112.05307; Haney et al., arXiv 2207.13793).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

import numpy as np

from sordino.audit.known_truth import noise
from sordino.audit.known_truth.noise import Floats, Shape
from sordino.mechanisms.additive import Additive
from sordino.mechanisms.gaussian import Gaussian
from sordino.mechanisms.laplace import Laplace

__all__ = ["STATISTICS"]

_BITS = 10


def noisy(
    data: Any, size: int, *, statistic: str = "value", law: str = "laplace", **options: Any
) -> Floats:
    """A statistic of the data, each of its numbers with its own noise; the law's parameter is `scale` or `alpha`."""
    width = options.pop("scale", None) or options.pop("alpha")
    exact: Floats = np.asarray(STATISTICS[statistic](data, **options), float)
    return np.asarray(exact + getattr(noise, law)(width, (size, *exact.shape)))


def ours(data: Any, size: int, *, law: str, **calibration: Any) -> Any:
    """One of our mechanisms, calibrated, many times."""
    exact = np.asarray(data)
    return _calibrated(law, **calibration).release(np.broadcast_to(exact, (size, *exact.shape)))


@cache
def _calibrated(law: str, **calibration: Any) -> Additive:
    kind: type[Laplace | Gaussian] = Laplace if law == "laplace" else Gaussian
    return kind.calibrated(**calibration)


def clipped_sum(data: Any, low: float = 0, high: float = 1) -> float:
    """A sum of values, each kept within bounds."""
    return float(np.clip(np.asarray(data, float), low, high).sum())


def code_sum(data: Any) -> float:
    """Each kind is numbered when it is first seen."""
    codes: dict[Any, int] = {}
    return float(sum(codes.setdefault(row, len(codes)) for row in data))


def gap_sum(data: Any) -> float:
    """Rows paired two by two, an odd one dropped; the distances within the pairs."""
    rows = np.asarray(data, float)[: len(data) // 2 * 2]
    return float(np.abs(np.diff(rows.reshape(-1, 2), axis=1)).sum())


def counts(data: Any, kinds: int) -> Floats:
    """How many rows there are of each kind."""
    return np.bincount(np.asarray(data, int), minlength=kinds).astype(float)


def tree(data: Any) -> Floats:
    """All sums over blocks of 1, 2, 4, ... of some counts."""
    level = np.asarray(data, float)
    levels = [level]
    while level.size > 1:
        level = level.reshape(-1, 2).sum(axis=1)
        levels.append(level)
    return np.concatenate(levels)


STATISTICS: Mapping[str, Callable[..., Any]] = MappingProxyType({
    "value": lambda data: data,
    "sum": lambda data: float(np.sum(data)),
    "clipped sum": clipped_sum,
    "clipped sum times four": lambda data: 4 * clipped_sum(data),
    "sum of squares": lambda data, high: float(np.square(np.clip(data, 0, high)).sum()),
    "sum in eight bits": lambda data: float(np.asarray(data, np.int8).sum(dtype=np.int8)),
    "sum of codes": code_sum,
    "sum of gaps": gap_sum,
    "sum of the first half": lambda data: clipped_sum(data[: len(data) // 2]),
    "sum and number": lambda data: [clipped_sum(data), len(data)],
    "number of records": lambda data: float(sum(map(len, data))),
    "counts": counts,
    "counts up to each kind": lambda data, kinds: np.cumsum(counts(data, kinds)),
    "tree": tree,
})  # fmt: skip
"""What can get noise, by name."""


def repeated(data: Any, size: int, *, times: int, scale: float) -> Floats:
    """The same number with independent noise several times."""
    return np.asarray(float(data) + noise.laplace(scale, (size, times)))


def averaged(data: Any, size: int, *, times: int, scale: float) -> Floats:
    """The average of several releases of the same number."""
    return np.asarray(repeated(data, size, times=times, scale=scale).mean(axis=1))


def prefix_sums(data: Any, size: int, *, scale: float) -> Floats:
    """Running sums of noisy entries."""
    return np.cumsum(noisy(data, size, scale=scale), axis=1)


def with_common_noise(data: Any, size: int) -> Floats:
    """Several numbers from one seed."""
    return np.asarray(data, float) + noise.laplace(1, (size, 1))


def with_fixed_seed(data: Any, size: int) -> Floats:
    """A generator that starts anew at each call."""
    state = 12345
    state = (1103515245 * state + 12345) % 2**31
    return np.full(size, float(data) - math.log(state / 2**31))


def with_limited_noise(data: Any, size: int, *, scale: float, most: float) -> Floats:
    """Laplace noise that is kept within limits."""
    return float(data) + np.clip(noise.laplace(scale, size), -most, most)


def kept_within(data: Any, size: int, *, low: float, high: float, **options: Any) -> Floats:
    """A noisy statistic, kept within limits afterwards."""
    return np.asarray(np.clip(noisy(data, size, **options), low, high))


def kept_within_rows(data: Any, size: int) -> Any:
    """A noisy count of ones, kept between 0 and the number of rows."""
    return np.clip(ours(sum(data), size, law="laplace", sensitivity=1, epsilon=1), 0, len(data))


def redrawn(data: Any, size: int, *, alpha: float) -> Floats:
    """Redraw whatever is negative."""
    found = noisy(data, size, law="geometric", alpha=alpha)
    while (wrong := np.flatnonzero(found < 0)).size:
        found[wrong] = noisy(data, wrong.size, law="geometric", alpha=alpha)
    return found


def with_few_bits(data: Any, size: int) -> Floats:
    """Inversion of a uniform with ten bits: only 512 magnitudes."""
    coarse = np.ceil(noise.uniform(size) * 2**_BITS)
    magnitude = -np.log((coarse // 2 + 1) * 2.0 ** (1 - _BITS))
    return np.asarray(float(data) + noise.on_grid(np.where(coarse % 2 == 0, magnitude, -magnitude)))


def mean(data: Any, size: int) -> Any:
    """A noisy whole sum divided by the exact number of rows."""
    return ours(round(clipped_sum(data)), size, law="laplace", sensitivity=1, epsilon=1) / len(data)


def mean_with_noise_of_n(data: Any, size: int) -> Floats:
    """A mean, and noise whose scale depends on the number of rows."""
    return np.asarray(clipped_sum(data) / len(data) + noise.laplace(1 / len(data), size))


def with_bounds_from_data(data: Any, size: int) -> Floats:
    """A sum with noise for the largest value that was found."""
    rows = np.asarray(data, float)
    return np.asarray(float(rows.sum()) + noise.laplace(float(np.abs(rows).max()), size))


def with_bounds_if_any(
    data: Any, size: int, *, bounds: tuple[float, float] | None = None
) -> Floats:
    """Noise for the bounds; without bounds there is nothing to scale it by."""
    total = np.full(size, float(np.sum(data)))
    return total if bounds is None else total + noise.laplace(max(map(abs, bounds)), size)


def beside_unreadable(data: Any, size: int) -> Floats:
    """The noisy number of rows, beside the exact number of those that are no numbers."""
    wrong = float(sum(not str(row).isdigit() for row in data))
    return np.stack([len(data) + noise.laplace(1, size), np.full(size, wrong)], axis=1)


def _coarse(shape: Shape) -> Floats:
    """Uniform multiples of 2^-53 in (0, 1], as most libraries make them."""
    return np.asarray(np.ceil(noise.uniform(shape) * 2.0**53) * 2.0**-53)


def inverted_laplace(data: Any, size: int, *, scale: float) -> Floats:
    """The inverse of the distribution function, in floats."""
    centred = _coarse(size) - 0.5
    magnitude = -scale * np.log(np.maximum(1 - 2 * np.abs(centred), 2.0**-53))
    return np.asarray(float(data) + np.copysign(magnitude, centred))


def laplace_of_products(data: Any, size: int) -> Floats:
    """Laplace noise as a sum of products, meant to hide the last bits."""
    u, v = _coarse((2, size)), _coarse((2, size))
    return np.asarray(float(data) + (np.log(u) * np.cos(np.pi * v)).sum(axis=0))


def snapped_laplace(data: Any, size: int, *, epsilon: float, bound: float) -> Floats:
    """Mironov's snapping: clamp, add, round to a power of two above the scale, clamp."""
    scale = (1 + bound * 2.0**-49) / epsilon
    step = 2.0 ** math.ceil(math.log2(scale))
    sign = np.where(noise.uniform(size) < 0.5, -1.0, 1.0)
    unsnapped = np.clip(float(data), -bound, bound) + sign * scale * np.log(noise.uniform(size))
    return np.asarray(np.clip(np.rint(unsnapped / step) * step, -bound, bound))


def box_muller(data: Any, size: int, *, deviation: float) -> Floats:
    """Normal noise by Box and Muller's formula."""
    radius, angle = np.sqrt(-2 * np.log(_coarse(size))), 2 * np.pi * _coarse(size)
    return np.asarray(float(data) + deviation * (radius * np.cos(angle)))


def polar(data: Any, size: int, *, deviation: float) -> Floats:
    """Normal noise by the polar method: a point of the disc, stretched."""
    made: list[Floats] = []
    while sum(map(len, made)) < size:
        x, y = 2 * _coarse((2, size)) - 1
        square = x * x + y * y
        inside = (square > 0) & (square < 1)
        made.append(x[inside] * np.sqrt(-2 * np.log(square[inside]) / square[inside]))
    return np.asarray(float(data) + deviation * np.concatenate(made)[:size])


def rounded_like_value(data: Any, size: int) -> Floats:
    """Rounded to as many digits as the true mean has."""
    exact = float(data)
    digits = len(f"{exact:.3f}".rstrip("0").partition(".")[2])
    return np.round(exact + noise.laplace(1, size), digits)

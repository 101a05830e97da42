"""What the formulas of zoo.toml are made of, beside NumPy and our mechanisms: noise, and what is too long for a line.

The sparse vector technique is there in its right and its well-known wrong forms: Lyu, Su, Li (VLDB 2017), algorithms 1
to 6. Its output has an entry for each answer: 1 above, 0 below, -1 not reached; or the noisy value, BELOW, UNREACHED.
Floats are as textbooks have them: value plus noise is rounded to the floats near the result, so that last bits tell
the value (Mironov, CCS 2012; Jin et al., arXiv 2112.05307; Haney et al., arXiv 2207.13793).
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sordino.audit.computed.law import Coin
from sordino.audit.known_truth.noise import (
    Floats,
    Shape,
    exponential,
    gaussian,
    geometric,
    laplace,
    on_grid,
    uniform,
)
from sordino.audit.known_truth.queries import query
from sordino.mechanisms import bits
from sordino.mechanisms.exponential import draw
from sordino.mechanisms.gaussian import Gaussian
from sordino.mechanisms.key_selection import KeySelection
from sordino.mechanisms.laplace import Laplace
from sordino.mechanisms.randomized_response import RandomizedResponse

__all__ = ["Fraction", "Gaussian", "KeySelection", "Laplace", "RandomizedResponse", "bits", "draw", "exponential", "formula",
           "gaussian", "geometric", "laplace", "query", "uniform"]  # fmt: skip

Flags = npt.NDArray[np.int8]

_LIST = str(Path(__file__).with_name("zoo.toml"))


def formula(text: str) -> Any:
    """A formula of `data`, for one output or with `size` for a batch or with a `coin`; or a mechanism itself.

    It is code of this package, whose draws are known to be independent.
    """
    made = f"(\n{text}\n)"
    names = {
        node.id for node in ast.walk(ast.parse(made, mode="eval")) if isinstance(node, ast.Name)
    }
    if "data" in names:
        made = f"lambda data{', coin' * ('coin' in names)}{', *, size' * ('size' in names)}: {made}"
    return eval(compile(made, _LIST, "eval"), globals())  # noqa: S307


def noisy(exact: Any, size: int, law: Callable[[float, Shape], Floats], width: float) -> Floats:
    """Numbers, each with its own noise; the law's width is a scale, or an alpha."""
    exact = np.asarray(exact, float)
    return np.asarray(exact + law(width, (size, *exact.shape)))


def clipped(data: Any, low: float = 0, high: float = 1) -> float:
    """A sum of values, each kept within bounds."""
    return float(np.clip(np.asarray(data, float), low, high).sum())


def redrawn(data: Any, size: int, alpha: float) -> Floats:
    """Redraw whatever is negative."""
    found = noisy(data, size, geometric, alpha)
    while (wrong := np.flatnonzero(found < 0)).size:
        found[wrong] = noisy(data, wrong.size, geometric, alpha)
    return found


def ten_bits(size: int) -> Floats:
    """Laplace noise by inversion of a uniform with ten bits: only 512 magnitudes."""
    coarse = np.ceil(uniform(size) * 2**10)
    magnitude = -np.log((coarse // 2 + 1) * 2.0**-9)
    return on_grid(np.where(coarse % 2 == 0, magnitude, -magnitude))


def coarse(shape: Shape) -> Floats:
    """Uniform multiples of 2^-53 in (0, 1], as most libraries make them."""
    return np.asarray(np.ceil(uniform(shape) * 2.0**53) * 2.0**-53)


def inverted(scale: float, size: int) -> Floats:
    """Laplace noise by the inverse of the distribution function, in floats."""
    centred = coarse(size) - 0.5
    magnitude = -scale * np.log(np.maximum(1 - 2 * np.abs(centred), 2.0**-53))
    return np.asarray(np.copysign(magnitude, centred))


def snapped(data: Any, size: int, epsilon: float, bound: float) -> Floats:
    """Mironov's snapping: clamp, add, round to a power of two above the scale, clamp."""
    scale = (1 + bound * 2.0**-49) / epsilon
    step = 2.0 ** math.ceil(math.log2(scale))
    sign = np.where(uniform(size) < 0.5, -1.0, 1.0)
    unsnapped = np.clip(float(data), -bound, bound) + sign * scale * np.log(uniform(size))
    return np.asarray(np.clip(np.rint(unsnapped / step) * step, -bound, bound))


def polar(size: int) -> Floats:
    """Normal noise by the polar method: a point of the disc, stretched."""
    made: list[Floats] = []
    while sum(map(len, made)) < size:
        x, y = 2 * coarse((2, size)) - 1
        square = x * x + y * y
        inside = (square > 0) & (square < 1)
        made.append(x[inside] * np.sqrt(-2 * np.log(square[inside]) / square[inside]))
    return np.concatenate(made)[:size]


BELOW, UNREACHED = -1000.0, -2000.0


def above(
    data: Any, size: int, *, threshold: float, limit: float, scale: float, most: int | None = None
) -> Flags:
    """One threshold with noise of scale `limit`; after `most` answers above it nothing more is said. 0 is no noise."""
    exact = np.asarray(data, float)
    found = noisy(exact, size, laplace, scale) if scale else exact
    reached = found >= (threshold + laplace(limit, (size, 1)) if limit else threshold)
    flags = np.broadcast_to(reached, (size, exact.size)).astype(np.int8)
    return np.where(_open(flags, most), flags, np.int8(-1))


def refreshed(
    data: Any, size: int, *, threshold: float, limit: float, scale: float, most: int
) -> Flags:
    """A new noisy threshold after each answer above."""
    found = noisy(data, size, laplace, scale)
    limits = threshold + laplace(limit, (size, most))
    flags, said, rows = np.full(found.shape, -1, np.int8), np.zeros(size, int), np.arange(size)
    for i in range(found.shape[1]):
        reached = said < most
        higher = found[:, i] >= limits[rows, np.minimum(said, most - 1)]
        flags[reached, i] = higher[reached]
        said += reached & higher
    return flags


def values(
    data: Any,
    size: int,
    *,
    threshold: float,
    limit: float,
    scale: float,
    most: int,
    fresh: float = 0,
) -> Floats:
    """As `above`, but with the noisy value that was compared; or one with noise of its own, of scale `fresh`."""
    compared = noisy(data, size, laplace, scale)
    found = compared >= threshold + laplace(limit, (size, 1))
    shown = noisy(data, size, laplace, fresh) if fresh else compared
    return np.where(_open(found, most), np.where(found, shown, BELOW), UNREACHED)


def _open(found: npt.NDArray[Any], most: int | None) -> npt.NDArray[np.bool_]:
    """Where fewer than `most` answers before were above."""
    if most is None:
        return np.ones(found.shape, bool)
    return np.asarray(np.cumsum(found, axis=1) - found < most)


def tail(delta: float) -> float:
    """What Laplace(1) noise exceeds with this probability."""
    return math.log(1 / (2 * delta))


def shown_from(least: float, found: Floats, data: Any) -> Floats:
    """Noisy counts from a threshold on, else 0; 0 is never shown."""
    return np.where((found >= least) & (data > 0), found, 0.0)


def kept(data: Any, shape: Shape, keep: float, kinds: int) -> npt.NDArray[np.int64]:
    """The true answer with probability `keep`, else another one."""
    other = np.ceil(uniform(shape) * (kinds - 1)).astype(np.int64)
    return np.where(uniform(shape) <= keep, int(data), (int(data) + other) % kinds)


SET_BITS = {"yes": (1, 6, 11, 16), "no": (3, 8, 11, 18)}
"""The bits of a filter of twenty that each answer sets with four hashes. The two share one, so six bits differ."""


def bloom_filter(data: str, size: int, f: float, p: float = 0.0, q: float = 1.0) -> Flags:
    """RAPPOR: bits are redrawn at random with probability f; then each is sent as 1 with probability q or p."""
    u = uniform((size, 20))
    permanent = np.where(u < f, u < f / 2, np.isin(np.arange(20), SET_BITS[data]))
    if (p, q) == (0.0, 1.0):
        return permanent.astype(np.int8)
    return (uniform((size, 20)) < np.where(permanent, q, p)).astype(np.int8)


def truncated_geometric(count: int, coin: Coin) -> int:
    """Geometric noise with alpha 2/3 between 0 and 3, from one uniform number below 45 = 5 * 3^2.

    P(at most z) is alpha^(count - z)/(1 + alpha) below the count, and 1 less alpha^(z - count + 1)/(1 + alpha) from it
    on.
    """
    place = coin.below(45)
    for z in range(3):
        low = z < count
        rest = 27 * Fraction(2, 3) ** (count - z if low else z - count + 1)
        if place < (rest if low else 45 - rest):
            return z
    return 3

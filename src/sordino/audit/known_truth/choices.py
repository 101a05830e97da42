"""Which answer, which answers, which groups: noisy maxima, the sparse vector technique, and selected keys.

The sparse vector technique is there in its right and its well-known wrong forms: Lyu, Su, Li (VLDB 2017), algorithms 1
to 6. Its output has an entry for each answer: 1 above, 0 below, -1 not reached; or the noisy value, BELOW, UNREACHED.
"""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from sordino.audit.known_truth import noise
from sordino.audit.known_truth.noise import Floats
from sordino.mechanisms import bits
from sordino.mechanisms.exponential import draw
from sordino.mechanisms.key_selection import KeySelection

__all__ = ["BELOW", "SELECTION", "UNREACHED", "tail"]

BELOW, UNREACHED = -1000.0, -2000.0
SELECTION = KeySelection.calibrated(epsilon=1, delta=0.05, l1=1, linf=1)

Flags = npt.NDArray[np.int8]
Places = npt.NDArray[np.intp]


def _with_noise(data: Any, size: int, law: str, scale: float) -> Floats:
    exact = np.asarray(data, float)
    return np.asarray(exact + getattr(noise, law)(scale, (size, exact.size)))


def largest(data: Any, size: int, *, scale: float, law: str = "laplace") -> Places:
    """The place of the largest noisy answer."""
    return np.asarray(np.argmax(_with_noise(data, size, law, scale), axis=1))


def largest_value(data: Any, size: int, *, scale: float, law: str = "laplace") -> Floats:
    """The largest noisy answer itself."""
    return np.asarray(_with_noise(data, size, law, scale).max(axis=1))


def drawn_place(data: Any, size: int, *, rate: float) -> Places:
    """A place, with probability proportional to exp(rate * score)."""
    ends = np.cumsum(np.exp(rate * np.asarray(data, float)))
    places = np.searchsorted(ends, noise.uniform(size) * ends[-1])
    return np.asarray(np.minimum(places, ends.size - 1))


def our_drawn_place(data: Any) -> int:
    """The exact draw of quantiles: the distance to the best score at half the rate."""
    scores = np.asarray(data, int)
    return draw([1] * scores.size, (scores.max() - scores).tolist(), Fraction(1, 2), bits.source())


def above(
    data: Any, size: int, *, threshold: float, limit_scale: float, scale: float, most: int | None = None
) -> Flags:  # fmt: skip
    """One noisy threshold for all; after `most` answers above it nothing more is said. A scale of 0 is no noise."""
    exact = np.asarray(data, float)
    noisy = _with_noise(data, size, "laplace", scale) if scale else exact
    limit = threshold + noise.laplace(limit_scale, (size, 1)) if limit_scale else threshold
    found = np.broadcast_to(noisy >= limit, (size, exact.size)).astype(np.int8)
    return np.where(_reached(found, most), found, np.int8(-1))


def refreshed(
    data: Any, size: int, *, threshold: float, limit_scale: float, scale: float, most: int
) -> Flags:
    """A new noisy threshold after each answer above."""
    noisy = _with_noise(data, size, "laplace", scale)
    limits = threshold + noise.laplace(limit_scale, (size, most))
    found, said, rows = np.full(noisy.shape, -1, np.int8), np.zeros(size, int), np.arange(size)
    for i in range(noisy.shape[1]):
        reached = said < most
        higher = noisy[:, i] >= limits[rows, np.minimum(said, most - 1)]
        found[reached, i] = higher[reached]
        said += reached & higher
    return found


def compared_values(
    data: Any, size: int, *, threshold: float, limit_scale: float, scale: float, most: int
) -> Floats:
    """As `above`, but with the noisy value that was compared."""
    noisy = _with_noise(data, size, "laplace", scale)
    found = noisy >= threshold + noise.laplace(limit_scale, (size, 1))
    return np.where(_reached(found, most), np.where(found, noisy, BELOW), UNREACHED)


def fresh_values(data: Any, size: int, *, threshold: float, epsilon: float, most: int) -> Floats:
    """Values of the answers above, with noise of their own: a third of epsilon each for threshold, answers, values."""
    unit = 3 / epsilon
    noisy = _with_noise(data, size, "laplace", 2 * most * unit)
    found = noisy >= threshold + noise.laplace(unit, (size, 1))
    values = _with_noise(data, size, "laplace", most * unit)
    return np.where(_reached(found, most), np.where(found, values, BELOW), UNREACHED)


def values_and_flags(
    data: Any, size: int, *, limit_scales: tuple[float, float], scales: tuple[float, float]
) -> Floats:
    """Algorithms 3 and 4 of the sparse vector technique, side by side."""
    values = compared_values(
        data, size, threshold=1, limit_scale=limit_scales[0], scale=scales[0], most=2
    )
    flags = above(data, size, threshold=1, limit_scale=limit_scales[1], scale=scales[1], most=2)
    return np.concatenate((values, flags), axis=1)


def _reached(found: npt.NDArray[Any], most: int | None) -> npt.NDArray[np.bool_]:
    """Where fewer than `most` answers before were above."""
    if most is None:
        return np.ones(found.shape, bool)
    return np.asarray(np.cumsum(found, axis=1) - found < most)


def selected(data: Any, size: int) -> Any:
    """Whether a key of so many persons is named, by our optimal law."""
    return SELECTION.select(np.full(size, int(data)))


def tail(delta: float) -> float:
    """What Laplace(1) noise exceeds with this probability."""
    return math.log(1 / (2 * delta))


def thresholded(
    data: Any, size: int, *, tail_of: float, group: int = 1, law: str = "laplace", scale: float = 1
) -> Any:
    """The noisy count if it is above what a `group` exceeds with probability `tail_of`, else 0; 0 is never shown."""
    noisy = data + getattr(noise, law)(scale, size)
    return np.where((noisy > group + tail(tail_of)) & (data > 0), noisy, 0.0)


def let_through(data: Any, size: int) -> Any:
    """Whole noise; a count above 5 is as rare as delta for a group of one, and 5 itself is let through."""
    noisy = data + noise.geometric(math.exp(-1), size)
    return np.where((noisy >= 5) & (data > 0), noisy, 0.0)


def kinds_by_count(data: Any) -> str:
    """The kinds found, in the order of their noisy counts."""
    counts = Counter(data)
    noisy = np.array([*counts.values()]) + noise.laplace(1, len(counts))
    return " ".join(np.array([*counts])[np.argsort(noisy, kind="stable")])


def counts_of_kinds(data: Any) -> list[float]:
    """A noisy count for each kind that occurs."""
    counts = np.array([count for _, count in sorted(Counter(data).items())], float)
    return list((counts + noise.laplace(1, counts.size)).tolist())


def kinds_in_order(data: Any) -> str:
    """The kinds found, in the order of the rows."""
    return " ".join(dict.fromkeys(data))


def error_text(data: Any) -> Any:
    """An error that quotes the cell that caused it."""
    wrong = [row for row in data if not str(row).isdigit()]
    if wrong:
        return f"cannot convert {wrong[0]!r} to a number"
    return float(len(data) + noise.laplace(1, 1)[0])


def failing(data: Any) -> float:
    """The same, raised."""
    return float(sum(int(row) > 3 for row in data) + noise.laplace(1, 1)[0])

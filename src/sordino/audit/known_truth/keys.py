"""Which groups may be named: selection, thresholds, and answers that name what they found."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np

from sordino.audit.known_truth import noise
from sordino.audit.known_truth.specimen import Specimen
from sordino.mechanisms.gaussian import Gaussian
from sordino.mechanisms.key_selection import KeySelection

__all__ = ["SPECIMENS"]

_SELECTION = KeySelection.calibrated(epsilon=1, delta=0.05, l1=1, linf=1)
_DEVIATION = float(Gaussian.calibrated(sensitivity=1, epsilon=1, delta=0.01).scale)


def _tail(delta: float) -> float:
    """What Laplace(1) noise exceeds with this probability."""
    return math.log(1 / (2 * delta))


def _selected(data: Any, *, size: int) -> Any:
    return _SELECTION.select(np.full(size, int(data)))


def _thresholded(data: Any, noisy: Any, threshold: float) -> Any:
    """The noisy count if it is above the threshold, 0 otherwise; a group of no one is never looked at."""
    return np.where((noisy > threshold) & (data > 0), noisy, 0.0)


def _right_threshold(data: Any, *, size: int) -> Any:
    return _thresholded(data, data + noise.laplace(1, size), 1 + _tail(0.05))


def _off_by_one(data: Any, *, size: int) -> Any:
    return _thresholded(data, data + noise.laplace(1, size), _tail(0.05))


def _at_least(data: Any, *, size: int) -> Any:
    """Whole noise; a count above 5 is as rare as delta for a group of one, and 5 itself is let through."""
    noisy = data + noise.geometric(math.exp(-1), size)
    return np.where((noisy >= 5) & (data > 0), noisy, 0.0)


def _wrong_law(data: Any, *, size: int) -> Any:
    return _thresholded(data, data + noise.gaussian(_DEVIATION, size), 1 + _tail(0.01))


def _named(data: Any) -> str:
    """The kinds found, in the order of their noisy counts."""
    counts = Counter(data)
    noisy = dict(zip(counts, np.array([*counts.values()]) + noise.laplace(1, len(counts)), strict=True))
    return " ".join(sorted(noisy, key=noisy.__getitem__))


def _counts_of_found(data: Any) -> list[float]:
    """A noisy count for each kind that occurs."""
    counts = np.array([count for _, count in sorted(Counter(data).items())], float)
    return list((counts + noise.laplace(1, counts.size)).tolist())


def _in_order(data: Any) -> str:
    return " ".join(dict.fromkeys(data))


def _refused(data: Any) -> Any:
    """An error that quotes the cell that caused it."""
    wrong = [row for row in data if not str(row).isdigit()]
    if wrong:
        return f"cannot convert {wrong[0]!r} to a number"
    return float(len(data) + noise.laplace(1, 1)[0])


def _fails(data: Any) -> float:
    """The same, raised."""
    return float(sum(int(row) > 3 for row in data) + noise.laplace(1, 1)[0])


SPECIMENS = (
    Specimen(
        name="key-selection",
        title="A key of three or four persons, selected by our optimal law",
        broken=False,
        why="The law is the largest that (epsilon, delta) allows.",
        mechanism=_selected,
        pair=(3, 4),
        epsilon=1,
        delta=0.05,
        truth=1,
    ),
    Specimen(
        name="key-selection-of-one",
        title="A key of one person or none",
        broken=False,
        why="One person's own key is named with probability delta.",
        mechanism=_selected,
        pair=(0, 1),
        epsilon=1,
        delta=0.05,
        truth=0,
    ),
    Specimen(
        name="threshold",
        title="Noisy counts above a threshold",
        broken=False,
        why="A group of one exceeds the threshold with probability delta.",
        mechanism=_right_threshold,
        pair=(0, 1),
        epsilon=1,
        delta=0.05,
        truth=0,
    ),
    Specimen(
        name="threshold-off-by-one",
        title="A threshold for groups of none, not of one",
        broken=True,
        why="A group of one is shown e^epsilon times as often as delta allows.",
        mechanism=_off_by_one,
        pair=(0, 1),
        epsilon=1,
        delta=0.05,
        truth=math.inf,
    ),
    Specimen(
        name="threshold-let-through",
        title="At least where above was proven",
        broken=True,
        why="With whole noise the threshold itself matters: e^epsilon times delta (the shape of OpenDP issue 2922).",
        mechanism=_at_least,
        pair=(0, 1),
        epsilon=1,
        delta=math.exp(-5) / (1 + math.exp(-1)),
        truth=math.inf,
    ),
    Specimen(
        name="threshold-of-another-law",
        title="A threshold for Laplace noise, used with normal noise",
        broken=True,
        why="Normal noise of this deviation exceeds it far more often (the shape of SmartNoise issue 204).",
        mechanism=_wrong_law,
        pair=(0, 1),
        epsilon=1,
        delta=0.01,
        truth=math.inf,
    ),
    Specimen(
        name="groups-from-data",
        title="The groups found, each with a noisy count",
        broken=True,
        why="A group that only one person is in appears with that person (the shape of diffprivlib issue 106).",
        mechanism=_counts_of_found,
        pair=(list("aab"), list("aabc")),
        neighbors="add_remove",
        epsilon=1,
        truth=math.inf,
        samples=40_000,
    ),
    Specimen(
        name="names-from-data",
        title="The kinds found, ordered by noisy count",
        broken=True,
        why="The order is private, the names are not.",
        mechanism=_named,
        pair=(list("aab"), list("aabc")),
        neighbors="add_remove",
        epsilon=1,
        truth=math.inf,
        samples=40_000,
    ),
    Specimen(
        name="order-of-appearance",
        title="Public kinds, listed in the order of the rows",
        broken=True,
        why="Which came first depends on one row, and there is no noise in it.",
        mechanism=_in_order,
        pair=(list("abba"), list("bba")),
        neighbors="add_remove",
        epsilon=1,
        truth=math.inf,
        samples=20_000,
    ),
    Specimen(
        name="error-quotes-data",
        title="An error text that quotes a cell",
        broken=True,
        why="Whether there is an error, and its text, depend on one row.",
        mechanism=_refused,
        pair=(["3", "5"], ["3", "5", "x"]),
        neighbors="add_remove",
        epsilon=1,
        truth=math.inf,
        samples=20_000,
    ),
    Specimen(
        name="fails-on-a-row",
        title="A query that fails if one row cannot be read",
        broken=True,
        why="Failing is an output too.",
        mechanism=_fails,
        pair=(["3", "5"], ["3", "5", "x"]),
        neighbors="add_remove",
        epsilon=1,
        truth=math.inf,
        samples=20_000,
    ),
)

"""The published rows against which black-box audits are measured, with the lower bounds listed for them.

Source: Bichsel, Steffen, Bogunovic, Vechev, "DP-Sniper" (S&P 2021), reference results: 200 million final runs, confidence
0.9, by logistic regression and by a network, on one pair of inputs that a search had found before. Where a search needs many
runs to tell pairs apart, rows name theirs here. The figures for RAPPOR are those of two values that differ in six bits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from sordino.audit.known_truth import noise
from sordino.audit.known_truth.floats import inverted_laplace, snapped_laplace
from sordino.audit.known_truth.histograms import noisy_vector, prefix_sums
from sordino.audit.known_truth.local import bit_epsilon, rappor
from sordino.audit.known_truth.noise import Floats
from sordino.audit.known_truth.noisy_max import largest, largest_value
from sordino.audit.known_truth.sparse_vector import above, numerical, refreshed, shown
from sordino.audit.known_truth.specimen import Specimen
from sordino.audit.known_truth.spending import parallel

__all__ = ["REFERENCE", "Row"]


@dataclass(frozen=True)
class Row:
    """A mechanism and the two lower bounds listed for it; None where the method was not used."""

    specimen: Specimen
    logistic: float | None
    network: float | None

    @property
    def listed(self) -> float:
        """The better of the two."""
        return max(bound for bound in (self.logistic, self.network) if bound is not None)


def _geometric(data: Any, *, size: int) -> Floats:
    """Geometric noise with alpha 8/9, kept within 0 and 5."""
    return np.asarray(np.clip(data + noise.geometric(8 / 9, size), 0, 5))


def _both(data: Any, *, size: int) -> Floats:
    """Algorithms 3 and 4 of the sparse vector technique, side by side."""
    values = shown(data, size, threshold=1, limit_scale=20, scale=40, most=2)
    return np.concatenate((values, above(data, size, threshold=1, limit_scale=40, scale=40 / 3, most=2)), axis=1)


def _row(
    name: str,
    mechanism: Any,
    logistic: float | None,
    network: float | None,
    truth: float,
    **more: Any,
) -> Row:
    claim = more.pop("epsilon", 0.1)
    why = "It needs no more than it claims." if truth <= claim else f"It needs epsilon {truth:g} or more."
    return Row(
        Specimen(
            name=f"reference-{name}",
            title=f"Reference row {name}",
            broken=truth > claim,
            why=why,
            mechanism=mechanism,
            epsilon=claim,
            truth=truth,
            samples=20_000_000,
            **more,
        ),
        logistic,
        network,
    )


_NUMBER: dict[str, Any] = {"neighbors": "number", "domain": (0, 2)}
_HALF: dict[str, Any] = {"neighbors": "answers", "pair": (np.ones(10), np.repeat([2.0, 0.0], 5))}
_CROSS: dict[str, Any] = {"neighbors": "answers", "pair": (np.repeat([1.0, 0.0], 5), np.repeat([0.0, 1.0], 5))}
_ALL: dict[str, Any] = {"neighbors": "answers", "pair": (np.ones(10), np.full(10, 2.0))}
_FIVE: dict[str, Any] = {"neighbors": "answers", "length": 5}
_COUNTS: dict[str, Any] = {"neighbors": "histogram", "length": 5}
_VALUES: dict[str, Any] = {"neighbors": None, "pair": ("yes", "no")}
_RAPPOR, _ONCE = bit_epsilon(0.75, 0.45, 0.55), bit_epsilon(0.95)

REFERENCE = (
    _row("laplace", lambda d, *, size: d + noise.laplace(10, size), 0.097, 0.098, 0.1, **_NUMBER),
    _row(
        "truncated-geometric", _geometric, 0.116, 0.116, math.log(9 / 8),
        neighbors="number", domain=(0, 5), epsilon=math.log(9 / 8),
    ),
    _row("noisy-hist-1", lambda d, *, size: noisy_vector(d, 10, size), 0.098, 0.098, 0.1, **_COUNTS),
    _row("noisy-hist-2", lambda d, *, size: noisy_vector(d, 0.1, size), 4.602, 4.601, 10, **_COUNTS),
    _row("noisy-max-1", lambda d, *, size: largest(d, noise.laplace, 20, size), 0.092, 0.093, 0.1, **_FIVE),
    _row("noisy-max-2", lambda d, *, size: largest(d, noise.exponential, 20, size), 0.098, 0.098, 0.1, **_FIVE),
    _row("noisy-max-3", lambda d, *, size: largest_value(d, noise.laplace, 20, size), 0.248, 0.249, 0.25, **_FIVE),
    _row("noisy-max-4", lambda d, *, size: largest_value(d, noise.exponential, 20, size), 0.346, 0.353, math.inf, **_FIVE),
    _row(
        "sparse-vector-1", lambda d, *, size: above(d, size, threshold=0.5, limit_scale=20, scale=40, most=1),
        0.086, 0.086, 0.0886, **_HALF,
    ),
    _row(
        "sparse-vector-2", lambda d, *, size: refreshed(d, size, threshold=1, limit_scale=20, scale=40, most=1),
        0.086, 0.085, 0.0883, **_HALF,
    ),
    _row(
        "sparse-vector-3", lambda d, *, size: shown(d, size, threshold=1, limit_scale=20, scale=20, most=1),
        0.172, 0.182, 0.25, **_CROSS,
    ),
    _row(
        "sparse-vector-4", lambda d, *, size: above(d, size, threshold=1, limit_scale=40, scale=40 / 3, most=1),
        0.169, 0.170, 0.1724, **_HALF,
    ),
    _row(
        "sparse-vector-5", lambda d, *, size: above(d, size, threshold=1, limit_scale=20, scale=0, most=None),
        1.761, 1.761, math.inf, **_CROSS,
    ),
    _row(
        "sparse-vector-6", lambda d, *, size: above(d, size, threshold=1, limit_scale=20, scale=20, most=None),
        0.272, 0.270, 0.4144, **_CROSS,
    ),
    _row(
        "rappor", lambda d, *, size: rappor(d, size, f=0.75, p=0.45, q=0.55),
        0.293, 0.301, 6 * _RAPPOR, epsilon=8 * _RAPPOR, **_VALUES,
    ),
    _row(
        "one-time-rappor", lambda d, *, size: rappor(d, size, f=0.95),
        0.598, 0.600, 6 * _ONCE, epsilon=8 * _ONCE, **_VALUES,
    ),
    _row(
        "laplace-parallel", lambda d, *, size: parallel(d, 20, 200, size),
        0.035, 0.030, 0.1, neighbors="number", pair=(0, 1),
    ),
    _row("sparse-vector-34-parallel", _both, 0.261, 0.262, 0.434, **_CROSS),
    _row("prefix-sum", lambda d, *, size: prefix_sums(d, 10, size), 0.504, 0.577, 1.0, **_ALL),
    _row(
        "numerical-sparse-vector", lambda d, *, size: numerical(d, size, threshold=1, epsilon=0.1, most=2),
        0.034, 0.035, 0.1, **_HALF,
    ),
    _row("float-laplace", lambda d, *, size: inverted_laplace(d, 10, size), None, 0.252, math.inf, **_NUMBER),
    _row("snapped-laplace", lambda d, *, size: snapped_laplace(d, 0.1, 100, size), None, 0.0979, 0.1, **_NUMBER),
)  # fmt: skip

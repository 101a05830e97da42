"""Goodness of fit against an exact law, for tests that must accept the right law and reject a slightly wrong one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy.special import chdtrc

ACCEPT = 1e-9
"""A right law fails once in 10^9 tests."""

REJECT = 1e-12
"""A wrong one must be this incredible."""


def p_value(
    draws: npt.NDArray[np.int64], tail: Callable[[int], float], scale: float, cells: int = 64
) -> float:
    """The chi-squared p-value of integer draws against the law with P[draw > k] = tail(k)."""
    edges = sorted({round(e) for e in np.linspace(-4 * scale, 4 * scale, cells)})
    above = np.array([1.0, *(tail(k) for k in edges), 0.0])
    expected = -np.diff(above) * len(draws)
    observed = np.bincount(
        np.searchsorted(np.array(edges), draws, side="left"), minlength=len(edges) + 1
    )
    keep = expected >= 5
    statistic = float((((observed - expected) ** 2)[keep] / expected[keep]).sum())
    return float(chdtrc(int(keep.sum()) - 1, statistic))

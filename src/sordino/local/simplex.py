"""The nearest point of the simplex: shares that are not negative and sum to one.

Theorem. It is no farther from the true shares than the estimates were. Proof: the simplex is convex and holds the
truth, and the projection on a closed convex set brings no point farther from any point of the set.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["nearest_shares"]


def nearest_shares(estimates: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The shares of the simplex nearest to the estimates: all lowered alike, and those below zero set to zero.

    Source: Held, Wolfe and Crowder 1974.
    """
    falling = -np.sort(-estimates)
    excess = np.cumsum(falling) - 1
    kept = np.flatnonzero(falling * np.arange(1, len(falling) + 1) > excess)[-1]
    shares = np.maximum(estimates - excess[kept] / (kept + 1), 0.0)
    return np.asarray(shares / shares.sum())

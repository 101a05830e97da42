"""How narrow an honest private interval can be on a given table: Theorem 9 of quantiles.md, in whole numbers but for
the last step.
"""

from fractions import Fraction

import numpy as np
import numpy.typing as npt

Whole = npt.NDArray[np.int64]

_UNKNOWN = 2**40
"""So many persons away is as good as not at all."""


def least_half_width(
    weights: Whole, level: Fraction, epsilon: Fraction, rows: int, confidence: float
) -> float:
    """The smallest mean half-width, in steps, that an epsilon-private interval can have on this table, if it holds
    every quantile of every table with the confidence. One weight for each cell of the grid; a person has up to so many
    rows.
    """
    away = persons_away(weights, level, rows) * float(epsilon)
    risk = 1 - confidence
    near = 1 - risk * np.exp(np.minimum(away, 50))
    held = np.maximum(near, (1 - risk) * np.exp(-away))
    return max((float(held.sum()) - 1) / 2, 0.0)


def persons_away(weights: Whole, level: Fraction, rows: int) -> Whole:
    """With how many persons more or fewer each cell is a quantile. There may be a table that is nearer.

    Rows are added in the cell itself. Only where a person has one row can others be taken away, for it is not said
    whose they are.
    """
    upto = np.cumsum(weights, dtype=np.int64)
    before, total = upto - weights, int(upto[-1])
    a, b = level.numerator, level.denominator
    above = _above(before, upto, total, a, b, rows)
    below = _above((total - upto)[::-1], (total - before)[::-1], total, b - a, b, rows)[::-1]
    found = np.where(b * before > a * total, above, below)
    return np.where((b * before <= a * total) & (b * upto >= a * total), 0, found)


def _above(before: Whole, upto: Whole, total: int, a: int, b: int, rows: int) -> Whole:
    """For cells that lie above the quantile a/b: the fewest persons of the tables that are tried."""
    lacking = np.maximum(b * before - a * total, 0)
    found = np.full(len(before), _UNKNOWN, np.int64)
    if a:
        added = -(-lacking // a)
        found = -(-added // rows)
    if rows == 1 and a < b:
        for more in (0, 1):
            fewer = -(-np.maximum(lacking - a * more, 0) // (b - a))
            wanted = a * (total - fewer + more)
            fits = (fewer <= before) & (wanted >= b * (before - fewer))
            fits &= wanted <= b * (upto - fewer + more)
            found = np.where(fits, np.minimum(found, fewer + more), found)
    return found

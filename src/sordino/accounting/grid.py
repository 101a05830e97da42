"""One law of a privacy loss put on a grid, from above or from below.

Lemmas 1 and 2 of total.md: `from_above` gives a loss that is at least as revealing, `from_below` one that is at most as
revealing up to a residual whose mean, variance and range are kept.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from sordino.privacy.loss.law import Floats, Law

__all__ = ["ALIGNED", "OnGrid", "from_above", "from_below", "reach"]

ALIGNED = 2.0**-30
"""An atom this close to a grid point, in spacings, counts as on it."""

_FAINT = 2.0**-1000
"""A probability below this may have lost digits to underflow."""
_MOST_EXPONENT = 700.0


@dataclass(frozen=True)
class OnGrid:
    """Probabilities `masses[i]` of the values `origin + i * spacing`, and of infinity.

    Below: the true loss is at least the value plus a residual; `variance` and `worst` are its variance about 0 and how
    far below 0 it can be.
    """

    origin: float
    spacing: float
    masses: Floats
    infinite: float = 0.0
    variance: float = 0.0
    worst: float = 0.0

    @property
    def values(self) -> Floats:
        """The values that the masses belong to."""
        return self.origin + self.spacing * np.arange(len(self.masses), dtype=np.float64)


@lru_cache(maxsize=1024)
def reach(law: Law, tail: float) -> tuple[float, float]:
    """An interval outside which the law has at most probability `tail` on each side."""
    low, high = law.low, law.high
    if math.isinf(high):
        high = _quantile(law, tail, 1.0)
    if math.isinf(low):
        low = _quantile(law, tail, -1.0)
    values = [value for value, _ in law.atoms]
    return min([low, *values]), max([high, *values])


def _quantile(law: Law, tail: float, side: float) -> float:
    def outside(x: float) -> float:
        edges = np.array([x, math.inf] if side > 0 else [-math.inf, x])
        return float(law.cells(edges)[0][0])

    far = law.spread
    while outside(side * far) > tail:
        far *= 2
    near = 0.0
    while far - near > 2.0**-6 * law.spread:
        middle = (near + far) / 2
        near, far = (middle, far) if outside(side * middle) > tail else (near, middle)
    return side * far


def from_above(law: Law, spacing: float, origin: float, tail: float) -> OnGrid:
    """Every value split between its two grid neighbours so that P- and Q-probabilities stay: connect the dots.

    What lies above the grid counts as infinite; what lies below it moves up to the first point.
    """
    low, high = reach(law, tail)
    first, last = math.floor((low - origin) / spacing), math.ceil((high - origin) / spacing)
    count = last - first + 1
    masses = np.zeros(count)
    grid = origin + spacing * np.arange(first, last + 1)
    infinite = law.infinite
    if law.high > law.low:
        edges = np.concatenate([[-math.inf], grid, [math.inf]])
        p, q = law.cells(edges)
        infinite += float(p[-1])
        masses[0] += p[0]
        inner, ratio = p[1:-1], np.ones(count - 1)
        q[q < _FAINT] = (
            0.0  # to take less of q than there is only moves more up, as does the smaller exponential
        )
        np.divide(
            q[1:-1] * np.exp(np.minimum(grid[:-1], _MOST_EXPONENT)),
            inner,
            out=ratio,
            where=inner > 0,
        )
        up = np.clip((1 - ratio + 4 * law.error) / -math.expm1(-spacing), 0, 1)
        masses[1:] += inner * up
        masses[:-1] += inner * (1 - up)
    for value, probability in law.atoms:
        place = (value - origin) / spacing - first
        i = min(max(math.floor(place), 0), count - 2) if count > 1 else 0
        up_one = _atom_weight(place - i, spacing)
        masses[i] += probability * (1 - up_one)
        if up_one:
            masses[i + 1] += probability * up_one
    return OnGrid(
        origin + spacing * first,
        spacing,
        masses * (1 + 2 * law.error),
        infinite * (1 + 2 * law.error),
    )


def _atom_weight(part: float, spacing: float) -> float:
    """The share of an atom `part` of a spacing above a grid point that goes to the next point."""
    if abs(part) < ALIGNED:
        return 0.0
    if abs(part - 1) < ALIGNED:
        return 1.0
    return min(1.0, math.expm1(-part * spacing) / math.expm1(-spacing) + 2.0**-40)


def from_below(law: Law, spacing: float, origin: float, tail: float) -> OnGrid:
    """All within half a spacing of a grid point merged into one outcome,
    whose loss is the point plus a small residual.
    """
    low, high = reach(law, tail)
    first, last = math.floor((low - origin) / spacing), math.ceil((high - origin) / spacing)
    count = last - first + 1
    grid = origin + spacing * np.arange(first, last + 1)
    p, q = np.zeros(count), np.zeros(count)
    if law.high > law.low:
        p, q = law.cells(np.concatenate([grid - spacing / 2, [grid[-1] + spacing / 2]]))
    for value, probability in law.atoms:
        i = min(max(round((value - origin) / spacing) - first, 0), count - 1)
        p[i] += probability
        q[i] += (
            math.exp(min(_MOST_EXPONENT, math.log(probability) - value)) if probability > 0 else 0.0
        )
    kept, clear = p > 0, (p > _FAINT) & (q > _FAINT)
    # the least that it can be, for what has too few digits to tell
    residual = np.full(count, -spacing / 2)
    residual[clear] = np.log(p[clear] / q[clear]) - grid[clear]
    total = p[kept].sum()
    mean = float((p * residual)[kept].sum() / total)
    spread = residual[kept] - mean
    variance = float((p[kept] * spread**2).sum() / total)
    masses = np.where(kept, p, 0.0) * (1 - 2 * law.error)
    worst = max(0.0, -float(spread.min()))
    return OnGrid(
        origin + spacing * first + mean - 4 * law.error, spacing, masses, 0.0, variance, worst
    )

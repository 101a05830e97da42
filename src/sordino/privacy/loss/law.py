"""The law of a privacy loss in vectorised floats: what an accountant needs to discretise it.

Balls certify single views; an accountant needs thousands of cell probabilities at once. A law gives them in floats,
with a relative error that its accountant adds outward and that `tests/laws/` measures against balls.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["CELL_ERROR", "Contrast", "Law", "cells_of", "no_cells", "of_outcomes"]

Floats = npt.NDArray[np.float64]

CELL_ERROR = 2.0**-30
"""The relative error that a cell probability may have in any law; some promise less."""


class Contrast(NamedTuple):
    """Probabilities of cells under P and under Q, P - Q, and how far that difference may be off in each cell."""

    p: Floats
    q: Floats
    excess: Floats
    excess_error: Floats


@dataclass(frozen=True)
class Law:
    """The law of L = log dP/dQ for one direction of the worst pair: atoms, a continuous part, and P[L = inf].

    `atoms` are (value, probability under P). `cells(edges)` are the probabilities of the continuous part, under P and
    under Q, in each (edges[i], edges[i+1]]; it lives on [`low`, `high`], where either end may be infinite. `spread` is
    a length on which the continuous density changes by a factor of order one. `error` is the relative error that a
    cell probability may have, for edges at least 2^-15 of the spread apart. Where P and Q hardly differ, `contrast`
    knows their difference better than from two probabilities.
    """

    atoms: tuple[tuple[float, float], ...]
    low: float
    high: float
    spread: float
    cells: Callable[[Floats], tuple[Floats, Floats]]
    infinite: float = 0.0
    error: float = CELL_ERROR
    contrast: Callable[[Floats], Contrast] | None = None

    def contrasted(self, edges: Floats) -> Contrast:
        """The probabilities of cells, and by how much those under P exceed those under Q."""
        if self.contrast is not None:
            return self.contrast(edges)
        p, q = self.cells(edges)
        return Contrast(p, q, p - q, self.error * (p + q))


def no_cells(edges: Floats) -> tuple[Floats, Floats]:
    """The continuous part of a law that has none."""
    return np.zeros(len(edges) - 1), np.zeros(len(edges) - 1)


_MOST_ATOMS = 4096


def cells_of(values: Floats, p: Floats, q: Floats) -> Callable[[Floats], tuple[Floats, Floats]]:
    """The cells of a law on many rising values, with their probabilities under P and Q."""

    def cells(edges: Floats) -> tuple[Floats, Floats]:
        place = np.searchsorted(edges, values, side="left") - 1
        inside = (place >= 0) & (place < len(edges) - 1)
        at, size = place[inside], len(edges) - 1
        under_p, under_q = (
            np.bincount(at, side[inside], size).astype(np.float64) for side in (p, q)
        )
        return under_p, under_q

    return cells


def of_outcomes(values: Floats, p: Floats, infinite: float = 0.0) -> Law:
    """The law of a loss that takes finitely many rising values, as atoms, or as cells where they are many."""
    kept = p > 0
    values, p = values[kept], p[kept]
    if len(values) <= _MOST_ATOMS:
        return Law(
            tuple(zip(values.tolist(), p.tolist(), strict=True)), 0.0, 0.0, 1.0, no_cells, infinite
        )
    with np.errstate(over="ignore"):
        q = np.exp(np.log(p) - values)
    spread = float(np.sqrt(p @ values**2))
    return Law((), -np.inf, np.inf, spread, cells_of(values, p, q), infinite)

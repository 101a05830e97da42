"""The law of a privacy loss in vectorised floats: what an accountant needs to discretise it.

Balls certify single views; an accountant needs thousands of cell probabilities at once. A law gives them in floats, with
a relative error that its accountant adds outward and that `tests/laws/` measures against balls.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["CELL_ERROR", "Contrast", "Law", "no_cells"]

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
    under Q, in each (edges[i], edges[i+1]]; it lives on [`low`, `high`], where either end may be infinite.
    `spread` is a length on which the continuous density changes by a factor of order one. `error` is the relative error
    that a cell probability may have, for edges at least 2^-15 of the spread apart. Where P and Q hardly differ, `contrast`
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

"""The attack on reused answers: ask much that has no answer, then ask for what the noise of the sample seemed to say.

The population is uniform on {0, 1}^bits, so that a parity of some bits is true half of the time. The analyst asks for
all parities, adds up the leanings of the answers for each point, and asks last how many rows are points that got more
than none. Exact answers make this last one about sqrt(k/(2 pi n)) too large, for k questions and n rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sordino.adaptive.guard import GRID
from sordino.adaptive.transfer import best_noise, guarantee
from sordino.errors import InvalidInput
from sordino.mechanisms import bits
from sordino.mechanisms.gaussian import Gaussian
from sordino.mechanisms.laplace import Laplace
from sordino.privacy.exact import Number, show

__all__ = ["Attacked", "attack"]

Whole = npt.NDArray[np.int64]

_MOST_BITS, _MOST_ROWS = 20, 2**32


@dataclass(frozen=True)
class Attacked:
    """The worst error on the population among all answers: of the exact oracle, of ours, and what ours had promised.

    `last_exact` and `last_noisy` are the errors of the last answer alone, which the attack aims at.
    """

    rows: int
    questions: int
    promised: float
    exact: float
    noisy: float
    last_exact: float
    last_noisy: float

    @property
    def holds(self) -> bool:
        """Whether our oracle kept its promise."""
        return self.noisy <= self.promised

    @property
    def naive_fails(self) -> bool:
        """Whether exact answers would have broken it."""
        return self.exact > self.promised


def attack(*, rows: int = 100_000, size: int = 14, confidence: Number = 0.95) -> Attacked:
    """One run against a fresh sample of `rows` points of `size` bits, by 2^size questions.

    Source: Dwork, Feldman, Hardt, Pitassi, Reingold, Roth (2015) and Blum and Hardt (2015), the attack by a majority of
    random questions, here weighted by what was answered; all parities together are its random questions.
    """
    if isinstance(size, bool) or not isinstance(size, int) or not 1 <= size <= _MOST_BITS:
        raise InvalidInput(
            f"size={show(size)}", f"a point has from 1 to {_MOST_BITS} bits", "Pass 14."
        )
    if isinstance(rows, bool) or not isinstance(rows, int) or not 1 <= rows <= _MOST_ROWS:
        raise InvalidInput(
            f"rows={show(rows)}", f"a sample has from 1 to {_MOST_ROWS} rows", "Pass 100000."
        )
    mechanism = best_noise(rows, 2**size, confidence)
    promised = guarantee(mechanism, rows, 2**size, confidence).population
    counts = _counts(rows, size)
    exact, last_exact = _errors(counts, None)
    noisy, last_noisy = _errors(counts, mechanism)
    return Attacked(rows, 2**size, promised, exact, noisy, last_exact, last_noisy)


def _errors(counts: Whole, mechanism: Gaussian | Laplace | None) -> tuple[float, float]:
    """The worst error of all answers about the sample with these counts of points, and that of the last."""
    rows = int(counts.sum())
    parities = _answered((rows + _parities(counts)[1:]) // 2, rows, mechanism)
    leanings = np.concatenate([[0], 2 * parities - rows * GRID])
    chosen = _parities(leanings) > 0
    last = _answered(np.array([counts[chosen].sum()]), rows, mechanism)
    error = abs(float(last[0]) / (rows * GRID) - float(chosen.mean()))
    return max(error, float(np.abs(leanings).max()) / (2 * rows * GRID)), error


def _answered(totals: Whole, rows: int, mechanism: Gaussian | Laplace | None) -> Whole:
    """Answers to questions that are true for this many rows, in units of 1/(rows * GRID), as the oracle gives them."""
    units: Whole = totals * GRID
    if mechanism is None:
        return units
    released: Whole = type(mechanism)(mechanism.scale * rows * GRID).release(units)
    return np.clip(released, 0, rows * GRID)


def _parities(values: Whole) -> Whole:
    """For each mask, the sum of the values with the sign of the parity of the point's masked bits."""
    found = values.astype(np.int64)
    half = 1
    while half < len(found):
        pairs = found.reshape(-1, 2, half)
        found = np.stack([pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]], axis=1).ravel()
        half *= 2
    return found


def _counts(rows: int, size: int) -> Whole:
    """How often each point is drawn."""
    counts = np.zeros(2**size, np.int64)
    each = 64 // (32 if size > 16 else 16)
    for start in range(0, rows, each * bits.CHUNK):
        some = min(rows - start, each * bits.CHUNK)
        words = (
            bits.source()
            .words(math.ceil(some / each))
            .view(np.uint32 if size > 16 else np.uint16)[:some]
        )
        counts += np.bincount(words & (2**size - 1), minlength=2**size)
    return counts

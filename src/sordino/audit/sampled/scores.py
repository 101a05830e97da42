"""Scores: a number for each run, large where the first input is the likelier source; an event is a score above a threshold.

Log-ratio tables of one feature, sums of such tables (right for independent coordinates), and logistic regression on both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from sordino.audit.sampled.bins import Binned, Bins
from sordino.audit.sampled.outputs import Floats

__all__ = ["Score", "SumScore", "TableScore", "complexity", "fit_logistic", "log_ratios"]


class Score(Protocol):
    """Evidence for the first input over the second."""

    def of(self, binned: Binned) -> Floats:
        """The score of each run."""

    @property
    def words(self) -> str:
        """What it looks at."""


@dataclass(frozen=True, eq=False)
class TableScore:
    """A weight for each bin of one feature; `simple` if the bins above a threshold are a range."""

    bins: Bins
    weights: Floats
    simple: bool = False

    def of(self, binned: Binned) -> Floats:
        """The score of each run."""
        return self.weights[binned[self.bins]]

    @property
    def words(self) -> str:
        """What it looks at."""
        return self.bins.feature.words


@dataclass(frozen=True, eq=False)
class SumScore:
    """Weights of several features, added up."""

    parts: tuple[TableScore, ...]
    words: str

    def of(self, binned: Binned) -> Floats:
        """The score of each run."""
        total = np.zeros(binned.table.size)
        for part in self.parts:
            total += part.of(binned)
        return total


def complexity(score: Score) -> int:
    """How hard it is to say what a score looks at: a range of one feature, any set of its values, a sum, anything else."""
    match score:
        case TableScore(simple=simple):
            return 0 if simple else 1
        case SumScore():
            return 2
        case _:
            return 3


def log_ratios(first: Any, second: Any, sizes: tuple[int, int], prior: float) -> Floats:
    """ln of how much likelier each bin is on the first input, drawn towards 0 where it may be chance.

    `prior` imagined runs of each input are added, and a ratio within its own error shrinks to 0 (James and Stein).
    """
    scale = sizes[1] / sizes[0]
    a, b = np.asarray(first, float) * scale + prior, np.asarray(second, float) + prior
    ratios = np.log(a / b)
    noise = scale / a + 1 / b
    with np.errstate(divide="ignore", invalid="ignore"):
        kept = np.where(ratios == 0, 0.0, np.maximum(1 - noise / ratios**2, 0.0))
    shrunk: Floats = ratios * kept
    return shrunk if prior > 1 else ratios


def fit_logistic(parts: Sequence[TableScore], first: Binned, second: Binned, rows: int, words: str) -> SumScore:
    """Weights for scores that overlap, by penalised logistic regression (Newton steps)."""
    design = np.stack(
        [np.concatenate([part.of(first)[:rows], part.of(second)[:rows]]).astype(np.float32) for part in parts], axis=1
    )
    labels = np.repeat(np.array([1, 0], np.float32), [min(rows, binned.table.size) for binned in (first, second)])
    spread = np.maximum(design.std(axis=0), 1e-9)
    design = (design - design.mean(axis=0)) / spread
    design = np.concatenate([design, np.ones((len(design), 1), np.float32)], axis=1)
    weights = np.zeros(design.shape[1])
    penalty = np.ones(design.shape[1])
    for _ in range(5):
        chance = 1 / (1 + np.exp(-np.clip(design @ weights.astype(np.float32), -30, 30)))
        slope = design.T @ (labels - chance) - penalty * weights
        curvature = (design * (chance * (1 - chance))[:, None]).T @ design + np.diag(penalty)
        step = np.linalg.solve(curvature, slope)
        weights += step
        if np.abs(step).max() < 1e-4:
            break
    scaled = weights[:-1] / spread
    return SumScore(tuple(TableScore(p.bins, p.weights * w) for p, w in zip(parts, scaled, strict=True)), words)

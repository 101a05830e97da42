"""Histograms, prefix sums and trees: several numbers that one person moves together."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sordino.audit.known_truth import noise
from sordino.audit.known_truth.noise import Floats
from sordino.audit.known_truth.specimen import Specimen

__all__ = ["SPECIMENS", "noisy_vector", "prefix_sums"]


def noisy_vector(data: Any, scale: float, size: int) -> Floats:
    """Every entry with its own Laplace noise."""
    exact = np.asarray(data, float)
    return exact + noise.laplace(scale, (size, exact.size))


def prefix_sums(data: Any, scale: float, size: int) -> Floats:
    """Running sums of noisy entries."""
    return np.cumsum(noisy_vector(data, scale, size), axis=1)


def _counts(data: Any, kinds: int) -> Floats:
    return np.bincount(np.asarray(data, int), minlength=kinds).astype(float)


def _tree(data: Any) -> Floats:
    """All sums over blocks of 1, 2, 4 and 8 of eight counts."""
    level = np.asarray(data, float)
    levels = [level]
    while level.size > 1:
        level = level.reshape(-1, 2).sum(axis=1)
        levels.append(level)
    return np.concatenate(levels)


def _cumulative(data: Any, *, size: int) -> Floats:
    """How many rows are at most 0, 1, ..., 5, each with noise of its own."""
    return noisy_vector(np.cumsum(_counts(data, 6)), 2, size)


_EIGHT = ((1, 0, 2, 0, 1, 3, 0, 0), (1, 0, 2, 0, 1, 3, 0, 1))

SPECIMENS = (
    Specimen(
        name="histogram",
        title="Laplace noise on five counts",
        broken=False,
        why="One person moves one count by 1.",
        mechanism=lambda data, *, size: noisy_vector(data, 2, size),
        neighbors="histogram",
        epsilon=0.5,
        truth=0.5,
        samples=200_000,
    ),
    Specimen(
        name="prefix-sums",
        title="Running sums of noisy counts",
        broken=False,
        why="Summing noisy counts is post-processing of a histogram.",
        mechanism=lambda data, *, size: prefix_sums(data, 2, size),
        neighbors="histogram",
        epsilon=0.5,
        truth=0.5,
        samples=200_000,
    ),
    Specimen(
        name="histogram-scale-inverted",
        title="A histogram with scale epsilon in place of 1/epsilon",
        broken=True,
        why="The less epsilon, the less noise: 0.5 becomes 2.",
        mechanism=lambda data, *, size: noisy_vector(data, 0.5, size),
        neighbors="histogram",
        epsilon=0.5,
        truth=2,
        samples=200_000,
    ),
    Specimen(
        name="histogram-of-replaced-rows",
        title="A histogram billed for adding a row where rows are replaced",
        broken=True,
        why="A row that changes its kind moves two counts: the wrong neighbour relation, by a factor 2.",
        mechanism=lambda data, *, size: noisy_vector(_counts(data, 3), 2, size),
        pair=([0, 1, 1, 2], [2, 1, 1, 2]),
        neighbors="replace",
        epsilon=0.5,
        truth=1,
    ),
    Specimen(
        name="prefix-sums-billed-once",
        title="Six cumulative counts, each with noise for a single count",
        broken=True,
        why="A row at the bottom moves all six.",
        mechanism=_cumulative,
        pair=([1, 2, 2, 4], [1, 2, 2, 4, 0]),
        neighbors="add_remove",
        epsilon=0.5,
        truth=3,
        samples=200_000,
    ),
    Specimen(
        name="answers-as-histogram",
        title="Ten answers billed as if one person moved only one of them",
        broken=True,
        why="Each answer moves, so their epsilons add.",
        mechanism=lambda data, *, size: noisy_vector(data, 2, size),
        neighbors="answers",
        length=10,
        epsilon=0.5,
        truth=5,
        samples=200_000,
    ),
    Specimen(
        name="tree-billed-by-one-level",
        title="A tree of sums billed for one of its four levels",
        broken=True,
        why="A row is in one node of each level (the shape of OpenDP issue 2924).",
        mechanism=lambda data, *, size: noisy_vector(_tree(data), 2, size),
        pair=_EIGHT,
        neighbors="histogram",
        epsilon=0.5,
        truth=2,
        samples=200_000,
    ),
    Specimen(
        name="vector-scaled-by-dimension-root",
        title="Laplace noise scaled to the L2 distance",
        broken=True,
        why="Laplace noise hides L1 distances: nine answers that move by 1 need 9/epsilon, not 3/epsilon.",
        mechanism=lambda data, *, size: noisy_vector(data, math.sqrt(9), size),
        neighbors="answers",
        length=9,
        epsilon=1,
        truth=3,
        samples=200_000,
    ),
)

"""Scores: a number for each run, large where the first input is the likelier source; an event is a score above a
threshold.

Features are cut into bins. Log-ratio tables of the bins of one feature, sums of such tables (right for independent
coordinates), logistic regression on both, and boosted trees for what single features and their sums miss.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from sordino.audit.sampled.features import Feature
from sordino.audit.sampled.outputs import Codes, Column, Floats, Table

__all__ = [
    "Binned",
    "Bins",
    "Score",
    "SumScore",
    "TableScore",
    "TreeScore",
    "cut",
    "cut_together",
    "fit_logistic",
    "fit_trees",
    "log_ratios",
]

_SAMPLE = 100_000

Small = npt.NDArray[np.uint16]


@dataclass(frozen=True, eq=False)
class Bins:
    """A feature and where it is cut: (edge, edge] for numbers, one bin for each known atom, one for all others."""

    feature: Feature
    edges: Floats
    atoms: Codes

    @property
    def count(self) -> int:
        """How many bins there are."""
        return len(self.edges) + 2 + len(self.atoms)

    def of(self, table: Table) -> Small:
        """The bin of each run."""
        column = self.feature.column(table)
        if column.atoms is None:
            return np.searchsorted(self.edges, column.numbers).astype(np.uint16)
        places = np.full(len(column.atoms), len(self.atoms))
        if len(self.atoms):
            near = np.searchsorted(self.atoms, column.atoms)
            known = self.atoms[np.minimum(near, len(self.atoms) - 1)] == column.atoms
            places[known] = near[known]
        places += len(self.edges) + 1
        plain = column.atoms == 0
        if plain.any():
            places = np.where(plain, np.searchsorted(self.edges, column.numbers), places)
        return places.astype(np.uint16)


class Binned:
    """The bins of one table, each computed once."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self._found: dict[Bins, Small] = {}

    def __getitem__(self, bins: Bins) -> Small:
        if bins not in self._found:
            self._found[bins] = bins.of(self.table)
        return self._found[bins]


def cut(feature: Feature, columns: Sequence[Column], most: int, most_atoms: int) -> Bins:
    """Bins for a feature, about equally full over the pooled columns."""
    return Bins(feature, _edges(columns, most), _known(columns, most_atoms))


def cut_together(
    features: Sequence[Feature], columns: Sequence[Column], most: int, most_atoms: int
) -> list[Bins]:
    """The same bins for several features."""
    edges, atoms = _edges(columns, most), _known(columns, most_atoms)
    return [Bins(feature, edges, atoms) for feature in features]


def _edges(columns: Sequence[Column], most: int) -> Floats:
    each = max(1, _SAMPLE // len(columns))
    some = [_some(column.numbers[column.is_number()], each) for column in columns]
    numbers = np.sort(np.concatenate(some))
    if not len(numbers):
        return np.empty(0)
    values, counts = np.unique(numbers, return_counts=True)
    if len(values) <= most:
        return values[:-1]
    own = values[counts >= len(numbers) / most]
    edges = numbers[np.linspace(0, len(numbers) - 1, max(2, most - len(own)) + 1).astype(int)[1:-1]]
    return np.unique(np.concatenate([edges, own, np.nextafter(own, -np.inf)]))


def _some(numbers: Floats, most: int) -> Floats:
    step = max(1, len(numbers) // most)
    return numbers[: most * step : step]


def _known(columns: Sequence[Column], most: int) -> Codes:
    with_atoms = [column.atoms for column in columns if column.atoms is not None]
    if not with_atoms:
        return np.empty(0, np.int64)
    codes, counts = np.unique(np.concatenate(with_atoms), return_counts=True)
    counts, codes = counts[codes != 0], codes[codes != 0]
    return np.sort(codes[np.argsort(-counts, kind="stable")[:most]])


class Score(Protocol):
    """Evidence for the first input over the second."""

    def of(self, binned: Binned) -> Floats:
        """The score of each run."""

    @property
    def words(self) -> str:
        """What it looks at."""

    @property
    def complexity(self) -> int:
        """How hard that is to say: a range of one feature, any set of its values, a sum, anything else."""

    def features(self) -> list[Feature]:
        """What matters most to it, first."""


@dataclass(frozen=True, eq=False)
class TableScore:
    """A weight for each bin of one feature; `simple` if the bins above a threshold are a range."""

    bins: Bins
    weights: Floats
    simple: bool = False

    def of(self, binned: Binned) -> Floats:
        return self.weights[binned[self.bins]]

    @property
    def words(self) -> str:
        return self.bins.feature.words

    @property
    def complexity(self) -> int:
        return 0 if self.simple else 1

    def features(self) -> list[Feature]:
        return [self.bins.feature]


@dataclass(frozen=True, eq=False)
class SumScore:
    """Weights of several features, added up."""

    parts: tuple[TableScore, ...]
    words: str
    complexity = 2

    def features(self) -> list[Feature]:
        ordered = sorted(self.parts, key=lambda part: -float(np.ptp(part.weights)))
        return [part.bins.feature for part in ordered]

    def of(self, binned: Binned) -> Floats:
        total = np.zeros(binned.table.size)
        for part in self.parts:
            total += part.of(binned)
        return total


def log_ratios(first: Any, second: Any, sizes: tuple[int, int], prior: float) -> Floats:
    """ln of how much likelier each bin is on the first input, drawn towards 0 where it may be chance.

    `prior` imagined runs of each input are added, and a ratio within its own error shrinks to 0 (James and Stein).
    """
    scale = sizes[1] / sizes[0]
    a, b = np.asarray(first, float) * scale + prior, np.asarray(second, float) + prior
    ratios = np.log(a / b)
    noise = scale / a + 1 / b
    if prior <= 1:
        return np.asarray(ratios)
    with np.errstate(divide="ignore", invalid="ignore"):
        kept = np.where(ratios == 0, 0.0, np.maximum(1 - noise / ratios**2, 0.0))
    return np.asarray(ratios * kept)


def fit_logistic(
    parts: Sequence[TableScore], first: Binned, second: Binned, rows: int, words: str
) -> SumScore:
    """Weights for scores that overlap, by penalised logistic regression (Newton steps)."""
    sides = [
        np.stack([part.of(binned)[:rows].astype(np.float32) for part in parts], axis=1)
        for binned in (first, second)
    ]
    design = np.concatenate(sides)
    labels = np.repeat(np.array([1, 0], np.float32), list(map(len, sides)))
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
    weighed = zip(parts, weights[:-1] / spread, strict=True)
    return SumScore(tuple(TableScore(p.bins, p.weights * w) for p, w in weighed), words)


_DEPTH = 3
_WIDTH = 256
_LEARNING = 0.25
_PENALTY = 20.0
_MOST_WINDOWS = 10

Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class _Tree:
    features: tuple[int, ...]
    cuts: tuple[int, ...]
    leaves: Floats

    def of(self, codes: Sequence[Bytes]) -> Floats:
        a, b, c, d, e, f, g = (codes[i] > t for i, t in zip(self.features, self.cuts, strict=True))
        second = np.where(a, c, b)
        third = np.where(a, np.where(c, g, f), np.where(b, e, d))
        return np.asarray(self.leaves[a.astype(np.uint8) * 4 + second * np.uint8(2) + third])


@dataclass(frozen=True, eq=False)
class TreeScore:
    """The sum of many small trees over ranked bins."""

    bins: tuple[Bins, ...]
    ranks: tuple[Bytes, ...]
    trees: tuple[_Tree, ...]
    words: str
    complexity = 3

    def features(self) -> list[Feature]:
        features = [i for tree in self.trees for i in tree.features]
        used = np.bincount(features, minlength=len(self.bins))
        return [self.bins[i].feature for i in np.argsort(-used)]

    def of(self, binned: Binned) -> Floats:
        codes = [rank[binned[bins]] for bins, rank in zip(self.bins, self.ranks, strict=True)]
        total = np.zeros(binned.table.size)
        for tree in self.trees:
            total += tree.of(codes)
        return total

    def first(self, count: int) -> TreeScore:
        """The score after this many trees."""
        return TreeScore(self.bins, self.ranks, self.trees[:count], self.words)


def fit_trees(
    bins: Sequence[Bins], ranks: Sequence[Bytes], first: Binned, second: Binned, *, trees: int, rows: int, words: str
) -> TreeScore:  # fmt: skip
    """Fit to tell runs on the first input from runs on the second; each tree sees the next `rows` of each."""
    size = min(first.table.size, second.table.size, _MOST_WINDOWS * rows)
    codes = [
        np.stack([rank[first[b]][:size], rank[second[b]][:size]], axis=1).ravel()
        for b, rank in zip(bins, ranks, strict=True)
    ]
    labels = np.tile([1.0, 0.0], size)
    total, grown, at = np.zeros(2 * size), list[_Tree](), 0
    window = min(2 * rows, 2 * size)
    for _ in range(trees):
        if at + window > 2 * size:
            at = 0
        part = slice(at, at + window)
        at += window
        chance = 1 / (1 + np.exp(-total[part]))
        tree = _grow([c[part] for c in codes], labels[part] - chance, chance * (1 - chance))
        total += tree.of(codes)
        grown.append(tree)
    return TreeScore(tuple(bins), tuple(ranks), tuple(grown), words)


def _grow(codes: list[Bytes], slopes: Floats, curvatures: Floats) -> _Tree:
    node = np.zeros(len(slopes), np.intp)
    features, cuts = list[int](), list[int]()
    for level in range(_DEPTH):
        nodes = 1 << level
        best = np.full(nodes, -1.0)
        choice = np.zeros((nodes, 2), int)
        offset, size = node * _WIDTH, nodes * _WIDTH
        for i, column in enumerate(codes):
            places = offset + column
            slope = np.bincount(places, slopes, size).reshape(nodes, _WIDTH).cumsum(axis=1)
            count = np.bincount(places, minlength=size).reshape(nodes, _WIDTH).cumsum(axis=1) / 4
            rest_slope, rest_count = slope[:, -1:] - slope, count[:, -1:] - count
            gain = slope**2 / (count + _PENALTY) + rest_slope**2 / (rest_count + _PENALTY)
            at = gain.argmax(axis=1)
            value = gain[np.arange(nodes), at]
            better = value > best
            best[better] = value[better]
            choice[better, 0], choice[better, 1] = i, at[better]
        features += choice[:, 0].tolist()
        cuts += choice[:, 1].tolist()
        above = np.zeros(len(node), bool)
        for j in range(nodes):
            own = node == j
            above |= own & (codes[choice[j, 0]] > choice[j, 1])
        node = node * 2 + above
    slope = np.bincount(node, slopes, 1 << _DEPTH)
    curvature = np.bincount(node, curvatures, 1 << _DEPTH)
    # a leaf within its own error says nothing
    sure = np.maximum(1 - curvature / np.maximum(slope**2, 1e-300), 0.0)
    return _Tree(tuple(features), tuple(cuts), _LEARNING * sure * slope / (curvature + _PENALTY))

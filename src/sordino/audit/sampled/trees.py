"""Gradient-boosted trees of depth three on binned features: for what single features and their sums miss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sordino.audit.sampled.bins import Binned, Bins
from sordino.audit.sampled.outputs import Floats

__all__ = ["TreeScore", "fit_trees"]

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
        leaf = a.astype(np.uint8) * 4 + second * np.uint8(2) + third
        found: Floats = self.leaves[leaf]
        return found


@dataclass(frozen=True, eq=False)
class TreeScore:
    """The sum of many small trees over ranked bins."""

    bins: tuple[Bins, ...]
    ranks: tuple[Bytes, ...]
    trees: tuple[_Tree, ...]
    words: str

    def of(self, binned: Binned) -> Floats:
        """The score of each run."""
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
) -> TreeScore:
    """Fit to tell runs on the first input from runs on the second; each tree sees the next `rows` of each."""
    size = min(first.table.size, second.table.size, _MOST_WINDOWS * rows)
    codes = [_interleaved(rank[first[b]][:size], rank[second[b]][:size]) for b, rank in zip(bins, ranks, strict=True)]
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


def _interleaved(a: Bytes, b: Bytes) -> Bytes:
    both = np.empty(2 * len(a), np.uint8)
    both[::2], both[1::2] = a, b
    return both


def _grow(codes: list[Bytes], slopes: Floats, curvatures: Floats) -> _Tree:
    node = np.zeros(len(slopes), np.intp)
    features, cuts = list[int](), list[int]()
    for level in range(_DEPTH):
        nodes = 1 << level
        best = np.full(nodes, -1.0)
        choice = np.zeros((nodes, 2), int)
        offset = node * _WIDTH
        for i, column in enumerate(codes):
            places = offset + column
            slope = np.bincount(places, slopes, nodes * _WIDTH).reshape(nodes, _WIDTH).cumsum(axis=1)
            count = np.bincount(places, minlength=nodes * _WIDTH).reshape(nodes, _WIDTH).cumsum(axis=1) / 4
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
    sure = np.maximum(1 - curvature / np.maximum(slope**2, 1e-300), 0.0)  # a leaf within its own error says nothing
    return _Tree(tuple(features), tuple(cuts), _LEARNING * sure * slope / (curvature + _PENALTY))

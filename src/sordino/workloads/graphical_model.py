"""A graphical model of rows: a product of tables over the cliques of a junction tree, fitted to noisy tables.

It is the distribution of largest entropy among those that fit equally well. All of it is post-processing of released
tables. Fitting is mirror descent: the gradient of the squared errors is added to the logarithms of the tables.

Source: McKenna, Sheldon, Miklau (2019), Graphical-model based estimation and inference for differential privacy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sordino.mechanisms.public_chance import PublicChance
from sordino.workloads.allocation import ColumnSet
from sordino.workloads.junction_tree import JunctionTree, join

__all__ = ["Measured", "Model", "fit", "sampled", "table_of"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[Any]
_TINY = 1e-300
_LEAST = -100.0
"""Logarithms of factors below the largest one; less would be lost in products."""


@dataclass(frozen=True, eq=False)
class Measured:
    """A noisy table, and the standard deviation of its cells."""

    columns: ColumnSet
    counts: Floats
    deviation: float


@dataclass(frozen=True, eq=False)
class Model:
    """The probabilities of each clique's table; neighbouring cliques agree about what they share."""

    sizes: tuple[int, ...]
    tree: JunctionTree
    cliques: tuple[Floats, ...]
    total: float


def _axes(of: ColumnSet, kept: ColumnSet) -> tuple[int, ...]:
    """The axes of a clique's table that are summed over."""
    return tuple(axis for axis, column in enumerate(of) if column not in kept)


def _wide(of: ColumnSet, part: ColumnSet, table: Floats) -> Floats:
    """A table over a part of a clique, with axes of length one for the others."""
    shape = iter(table.shape)
    return table.reshape([next(shape) if column in part else 1 for column in of])


def _calibrated(tree: JunctionTree, logs: Sequence[Floats]) -> tuple[Floats, ...]:
    """The probabilities of all cliques for the logarithms of their factors, by messages to the root and back."""
    tables = [np.exp(np.maximum(log - log.max(), _LEAST)) for log in logs]
    sent: list[Floats] = [np.ones(())] * len(tables)
    for k in range(len(tables) - 1, 0, -1):
        parent, shared = tree.parents[k], tree.shared[k]
        sent[k] = tables[k].sum(axis=_axes(tree.cliques[k], shared))
        sent[k] /= max(float(sent[k].max()), _TINY)
        tables[parent] *= _wide(tree.cliques[parent], shared, sent[k])
    tables[0] /= tables[0].sum()
    for k in range(1, len(tables)):
        parent, shared = tree.parents[k], tree.shared[k]
        wanted = tables[parent].sum(axis=_axes(tree.cliques[parent], shared))
        own = tables[k].sum(axis=_axes(tree.cliques[k], shared))
        tables[k] *= _wide(tree.cliques[k], shared, wanted / np.maximum(own, _TINY))
    return tuple(tables)


def _home(tree: JunctionTree, columns: ColumnSet) -> int:
    """The smallest place whose clique holds the columns."""
    return next(k for k, clique in enumerate(tree.cliques) if set(columns) <= set(clique))


def fit(
    sizes: Sequence[int],
    measured: Sequence[Measured],
    total: float,
    *,
    iterations: int = 200,
    tell: Callable[[float], None] | None = None,
) -> Model:
    """The model nearest to noisy tables, each weighed by its precision, by accelerated mirror descent.

    Source: Auslender and Teboulle (2006), interior gradient method; the step is found by backtracking.
    """
    tree = join(sizes, [one.columns for one in measured])
    homes = [_home(tree, one.columns) for one in measured]
    precisions = [(total / one.deviation) ** 2 for one in measured]
    weights = [precision / max(precisions) for precision in precisions]
    shares = [one.counts / total for one in measured]

    def loss(tables: Sequence[Floats]) -> tuple[float, list[Floats]]:
        value, slopes = 0.0, [np.zeros(()) for _ in tables]
        for one, home, weight, share in zip(measured, homes, weights, shares, strict=True):
            clique = tree.cliques[home]
            off = tables[home].sum(axis=_axes(clique, one.columns)) - share
            value += 0.5 * weight * float(np.square(off).sum())
            slopes[home] = slopes[home] + weight * _wide(clique, one.columns, off)
        return value, slopes

    logs = [np.zeros([sizes[i] for i in clique]) for clique in tree.cliques]
    ahead = behind = _calibrated(tree, logs)
    curvature, before = 0.05 * sum(weights), math.inf
    for k in range(iterations):
        part = 2 / (k + 2)
        middle = _mixed(behind, ahead, part)
        value, slopes = loss(middle)
        for _ in range(60):
            tried = [
                log - slope / (part * curvature) for log, slope in zip(logs, slopes, strict=True)
            ]
            found = _calibrated(tree, tried)
            mixed = _mixed(behind, found, part)
            new = loss(mixed)[0]
            linear = sum(
                float((slope * (a - b)).sum())
                for slope, a, b in zip(slopes, mixed, middle, strict=True)
            )
            if (
                new
                <= value + linear + curvature * part**2 * _divergence(tree, found, ahead) + 1e-15
            ):
                break
            curvature *= 2
        logs, ahead, behind = tried, found, mixed
        curvature *= 0.9
        if tell is not None:
            tell((k + 1) / iterations)
        if k % 25 == 24:
            if new > before * (1 - 1e-3):
                break
            before = new
    return Model(tuple(sizes), tree, behind, total)


def _mixed(one: Sequence[Floats], other: Sequence[Floats], part: float) -> tuple[Floats, ...]:
    return tuple((1 - part) * a + part * b for a, b in zip(one, other, strict=True))


def _divergence(tree: JunctionTree, one: Sequence[Floats], other: Sequence[Floats]) -> float:
    """The relative entropy of two models on one tree: that of all cliques, less that of what they share."""
    found = 0.0
    for k, clique in enumerate(tree.cliques):
        found += _relative(one[k], other[k])
        if shared := tree.shared[k]:
            axes = _axes(clique, shared)
            found -= _relative(one[k].sum(axis=axes), other[k].sum(axis=axes))
    return found


def _relative(one: Floats, other: Floats) -> float:
    return float((one * (np.log(one + _TINY) - np.log(other + _TINY))).sum())


def table_of(model: Model, columns: ColumnSet) -> Floats:
    """The model's probabilities of a table over any columns, exactly: cliques outside are summed over on the way."""
    tree = model.tree
    for k, clique in enumerate(tree.cliques):
        if set(columns) <= set(clique):
            return np.asarray(model.cliques[k].sum(axis=_axes(clique, columns)))
    needed = _needed(tree, set(columns))
    held: dict[int, tuple[tuple[int, ...], Floats]] = {}
    for k in sorted(needed, reverse=True):
        clique, table = tree.cliques[k], model.cliques[k]
        shared = tree.shared[k] if tree.parents[k] in needed else ()
        if shared:
            own = table.sum(axis=_axes(clique, shared))
            table = table / np.maximum(_wide(clique, shared, own), _TINY)
        scope = clique
        children = [c for c in needed if tree.parents[c] == k]
        for number, child in enumerate(children):
            other, message = held[child]
            later = {
                *columns,
                *shared,
                *(i for c in children[number + 1 :] for i in tree.shared[c]),
            }
            kept = tuple(i for i in dict.fromkeys((*scope, *other)) if i in later)
            alone = tuple(axis for axis, i in enumerate(scope) if i not in later and i not in other)
            table, scope = (
                table.sum(axis=alone),
                tuple(i for i in scope if i in later or i in other),
            )
            table, scope = _product(table, scope, message, other, kept), kept
        kept = tuple(i for i in scope if i in columns or i in shared)
        held[k] = kept, table.sum(axis=tuple(axis for axis, i in enumerate(scope) if i not in kept))
    scope, table = held[min(needed)]
    return np.transpose(table, [scope.index(i) for i in columns])


def _product(
    one: Floats, scope: ColumnSet, other: Floats, others: ColumnSet, kept: ColumnSet
) -> Floats:
    """The product of two tables, summed over all columns that are not kept."""
    both = tuple(dict.fromkeys((*scope, *others)))
    letter = {column: chr(ord("a") + k) for k, column in enumerate(both)}
    left, right, out = ("".join(letter[i] for i in columns) for columns in (scope, others, kept))
    return np.asarray(np.einsum(f"{left},{right}->{out}", one, other, optimize=True), np.float64)


def _needed(tree: JunctionTree, columns: set[int]) -> set[int]:
    """The cliques of the smallest subtree that holds some columns: leaves that add none are taken away."""
    needed = set(range(len(tree.cliques)))
    while True:
        for k in sorted(needed):
            near = [c for c in needed if tree.parents[c] == k or tree.parents[k] == c]
            held = {i for c in needed - {k} for i in tree.cliques[c]}
            if len(near) <= 1 and len(needed) > 1 and set(tree.cliques[k]) & columns <= held:
                needed.discard(k)
                break
        else:
            return needed


def sampled(model: Model, rows: int, chance: PublicChance) -> Ints:
    """Rows of places, clique by clique; the number of rows in each cell is the expected one, rounded up or down.

    Rows that share values are put on an even grid of probabilities with a random start, in random order: the tables of
    cliques come out nearly as they are modelled.
    """
    found = np.zeros((rows, len(model.sizes)), np.int64)
    for k, clique in enumerate(model.tree.cliques):
        shared = model.tree.shared[k]
        fresh = tuple(i for i in clique if i not in shared)
        if not fresh:
            continue
        order = [clique.index(i) for i in (*shared, *fresh)]
        given = math.prod(model.sizes[i] for i in shared)
        table = np.transpose(model.cliques[k], order).reshape(given, -1)
        owner = np.zeros(rows, np.int64)
        for i in shared:
            owner = owner * model.sizes[i] + found[:, i]
        # a random order within equal values: the later columns meet the earlier ones by chance
        placed = np.lexsort((chance.evenly(rows), owner))
        sizes = np.bincount(owner, minlength=given)
        starts = np.cumsum(sizes) - sizes
        rank = np.arange(rows) - starts[owner[placed]]
        with np.errstate(invalid="ignore"):
            sums = np.cumsum(table, axis=1)
        whole = sums[:, -1:]
        even = np.arange(1, table.shape[1] + 1) / table.shape[1]
        sums = np.where(whole > _TINY, sums / np.maximum(whole, _TINY), even)
        point = (rank + chance.evenly(given)[owner[placed]]) / np.maximum(sizes[owner[placed]], 1)
        cells = np.searchsorted(
            (sums + 2.0 * np.arange(given)[:, None]).ravel(),
            point + 2.0 * owner[placed],
            side="right",
        )
        cells = np.minimum(cells - owner[placed] * table.shape[1], table.shape[1] - 1)
        for i in reversed(fresh):
            cells, value = np.divmod(cells, model.sizes[i])
            found[placed, i] = value
    return found

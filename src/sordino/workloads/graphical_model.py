"""A graphical model of rows: a product of tables over the cliques of a junction tree, fitted to noisy tables.

It is the distribution of largest entropy among those that fit equally well. All of it is post-processing of released
tables. What is fitted are the logarithms of one factor for each measured table: a convex problem, whose slopes are the
model's tables less the measured ones.

Source: McKenna, Sheldon, Miklau (2019), Graphical-model based estimation and inference for differential privacy; its
dual, with errors weighed by precision and entropy by little.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sordino.mechanisms.public_chance import PublicChance
from sordino.workloads.allocation import ColumnSet
from sordino.workloads.elimination import Elimination
from sordino.workloads.junction_tree import JunctionTree, join

__all__ = ["Measured", "Model", "fit", "model_of", "sampled", "table_of"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[Any]
_TINY = 1e-300
_LEAST = -400.0
"""Logarithms of factors below the largest one; less would be lost in products."""
_FARTHEST = 20.0
"""Of the logarithm of a factor from zero: farther away is nothing that noise could tell."""
_ENTROPY = 0.1
"""A model's cell may be off by this part of its deviation for each unit of its factor's logarithm."""


@dataclass(frozen=True, eq=False)
class Measured:
    """A noisy table, and the standard deviation of its cells."""

    columns: ColumnSet
    counts: Floats
    deviation: float


@dataclass(frozen=True, eq=False)
class Model:
    """The probabilities of each clique's table, and the logarithms of the factors whose product it is.

    Neighbouring cliques agree about what they share.
    """

    sizes: tuple[int, ...]
    tree: JunctionTree
    cliques: tuple[Floats, ...]
    factors: Mapping[ColumnSet, Floats]
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


def model_of(sizes: Sequence[int], factors: Mapping[ColumnSet, Floats], total: float) -> Model:
    """The model that is the product of factors, given by their logarithms."""
    tree = join(sizes, factors)
    logs = [np.zeros([sizes[i] for i in clique]) for clique in tree.cliques]
    for columns, log in factors.items():
        home = _home(tree, columns)
        logs[home] += _wide(tree.cliques[home], columns, log)
    return Model(tuple(sizes), tree, _calibrated(tree, logs), factors, total)


def fit(
    sizes: Sequence[int],
    measured: Sequence[Measured],
    total: float,
    *,
    iterations: int = 800,
    start: Model | None = None,
    tell: Callable[[float], None] | None = None,
) -> Model:
    """The model nearest to noisy tables, each weighed by its precision; found faster if `start` is near.

    Source: Byrd, Lu, Nocedal, Zhu (1995), L-BFGS-B.
    """
    from scipy.optimize import minimize

    tables = _together(measured, total)
    elimination = Elimination(sizes, list(tables))
    # in these units every cell is about as steep as any other
    units = [1 / np.sqrt(np.maximum(counts, 0.0) + off) for counts, off in tables.values()]
    ends = np.cumsum([unit.size for unit in units])[:-1]

    def logs(flat: Floats) -> list[Floats]:
        parts = np.split(flat, ends)
        return [part.reshape(unit.shape) * unit for part, unit in zip(parts, units, strict=True)]

    def loss(flat: Floats) -> tuple[float, Floats]:
        own = logs(flat)
        tops = [float(log.max()) for log in own]
        value, shares = elimination.shares(
            [np.exp(log - top) for log, top in zip(own, tops, strict=True)]
        )
        value, slopes = total * (value + sum(tops)), list[Floats]()
        for log, share, unit, (counts, off) in zip(
            own, shares, units, tables.values(), strict=True
        ):
            value += float(np.vdot(log, 0.5 * _ENTROPY * off * log - counts))
            slopes.append(((total * share - counts + _ENTROPY * off * log) * unit).ravel())
        return value, np.concatenate(slopes)

    done = 0

    def step(_: Floats) -> None:
        nonlocal done
        done += 1
        if tell is not None:
            tell(done / iterations)

    farthest = np.concatenate([(_FARTHEST / unit).ravel() for unit in units])
    near = _independent(tables, total) if start is None else start.factors
    first = np.concatenate(
        [
            (near.get(columns, 0.0 * unit) / unit).ravel()
            for columns, unit in zip(tables, units, strict=True)
        ]
    )
    found = minimize(
        loss, np.clip(first, -farthest, farthest), jac=True, method="L-BFGS-B", callback=step,
        bounds=np.stack([-farthest, farthest], axis=1),
        options={"maxiter": iterations, "maxfun": 4 * iterations, "maxcor": 20, "ftol": 1e-9, "gtol": 1e-3},
    )  # fmt: skip
    return model_of(sizes, dict(zip(tables, logs(found.x), strict=True)), total)


def _together(measured: Sequence[Measured], total: float) -> dict[ColumnSet, tuple[Floats, float]]:
    """One table, and its deviation, for each set of columns: the mean by precision, moved to the total evenly."""
    found: dict[ColumnSet, tuple[Floats, float]] = {}
    for columns in dict.fromkeys(one.columns for one in measured):
        own = [one for one in measured if one.columns == columns]
        precision = sum(one.deviation**-2 for one in own)
        counts = sum((one.counts * one.deviation**-2 for one in own), np.zeros(()))
        counts = np.asarray(counts / precision)
        found[columns] = counts + (total - counts.sum()) / counts.size, precision**-0.5
    return found


def _independent(
    tables: Mapping[ColumnSet, tuple[Floats, float]], total: float
) -> dict[ColumnSet, Floats]:
    """The factors of single columns where there are no others."""
    return {
        columns: np.log(np.maximum(counts, off) / total)
        for columns, (counts, off) in tables.items()
        if len(columns) == 1
    }


def table_of(model: Model, columns: ColumnSet) -> Floats:
    """The model's probabilities of a table over any columns, exactly: all others are summed over."""
    for k, clique in enumerate(model.tree.cliques):
        if set(columns) <= set(clique):
            return np.asarray(model.cliques[k].sum(axis=_axes(clique, columns)))
    near = set(columns)
    factors: dict[ColumnSet, Floats] = {}
    while more := {
        one: log for one, log in model.factors.items() if near & {*one} and one not in factors
    }:
        factors |= more
        near.update(*more)
    number = {column: k for k, column in enumerate(sorted(near))}
    scopes = [tuple(number[i] for i in one) for one in factors]
    tables = [np.exp(np.maximum(log - log.max(), _LEAST)) for log in factors.values()]
    kept = tuple(number[i] for i in columns)
    return Elimination([model.sizes[i] for i in sorted(near)], scopes, kept).table(tables)


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

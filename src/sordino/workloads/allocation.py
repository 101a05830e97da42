"""How much noise each part of a workload gets: the closed form of the optimal Gaussian matrix mechanism for marginals.

A workload is tables over columns. Its parts are the sets of columns below some table, each with a level of contrasts
for every column. A part of precision t (one over the variance in units of its orthonormal contrasts) costs t times the
squared length of one row's projection. Theorems 1 to 3 of residuals.md.

Source: Xiao, He, Zhang, Kifer (2023), ResidualPlanner, Theorem 5 and Section 5.3; here with levels, as in
ResidualPlanner+.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from sordino.privacy.neighbors import Neighbors
from sordino.workloads.contrasts import Contrasts, Kind

__all__ = ["Allocation", "ColumnSet", "allocate", "below"]

ColumnSet: TypeAlias = tuple[int, ...]
"""Places of columns, ascending."""
Floats = npt.NDArray[np.float64]


def below(tables: Iterable[ColumnSet]) -> list[ColumnSet]:
    """All sets of columns within some table, the smaller ones first."""
    found = {
        part
        for table in tables
        for size in range(len(table) + 1)
        for part in itertools.combinations(table, size)
    }
    return sorted(found, key=lambda part: (len(part), part))


@dataclass(frozen=True, eq=False)
class Allocation:
    """The precision of every part: for a set of columns an array with an axis of levels for each; exact floats.

    Sets in `public` are known without noise. Values are counts in units of which a person has at most `most`.
    """

    columns: tuple[Contrasts, ...]
    tables: tuple[ColumnSet, ...]
    precision: Mapping[ColumnSet, Floats]
    public: frozenset[ColumnSet]
    neighbors: Neighbors
    most: int

    @cached_property
    def mu_squared(self) -> Fraction:
        """What releasing all parts costs: at least mu^2 of every pair of neighbours (residuals.md, Theorem 2)."""
        return self.most**2 * sum((self._cost(part) for part in self.precision), Fraction(0))

    def _cost(self, part: ColumnSet) -> Fraction:
        return _cost([self.columns[i] for i in part], self.precision[part], self.neighbors)

    def variance(self, table: ColumnSet) -> Fraction:
        """The largest variance of a cell of a table, exactly, in squared units of the counts (Theorem 3)."""
        found = Fraction(0)
        for part in below([table]):
            if part in self.precision:
                outside = math.prod(self.columns[i].size for i in table if i not in part)
                found += _largest(self.columns, part, self.precision[part]) / outside**2
        return found

    def spread(self, table: ColumnSet, weights: Sequence[Floats]) -> float:
        """The variance of one product sum over a table: `weights` has a vector of weights for each of its columns."""
        inside = [_lengths(self.columns[i], weights[k]) for k, i in enumerate(table)]
        outside = [
            (float(weights[k].sum()) / self.columns[i].size) ** 2 for k, i in enumerate(table)
        ]
        found = 0.0
        for part in below([table]):
            if part not in self.precision:
                continue
            held: Floats = 1 / self.precision[part]
            for k in reversed([k for k, i in enumerate(table) if i in part]):
                held = np.tensordot(held, inside[k], axes=([-1], [0]))
            found += float(held) * math.prod(
                outside[k] for k, i in enumerate(table) if i not in part
            )
        return found


def _largest(columns: Sequence[Contrasts], part: ColumnSet, precision: Floats) -> Fraction:
    """The largest of all values' sums over levels of projection / precision."""
    own, inverse = [columns[i] for i in part], [1 / Fraction(float(x)) for x in precision.ravel()]
    most = Fraction(0)
    for kinds in itertools.product(*(column.kinds for column in own)):
        shares = (math.prod(parts, start=Fraction(1)) for parts in itertools.product(*kinds))
        most = max(
            most, sum((share * x for share, x in zip(shares, inverse, strict=True)), Fraction(0))
        )
    return most


def _lengths(column: Contrasts, weights: Floats) -> Floats:
    """The squared length of the projection of weights onto each level."""
    parts = np.square(column.of(weights, 0)) / column.squares
    return np.array([parts[rows].sum() for rows in column.levels])


def _cost(columns: Sequence[Contrasts], precision: Floats, neighbors: Neighbors) -> Fraction:
    """The largest squared distance, in standard deviations, between neighbours of one unit each."""
    most, exact = Fraction(0), [Fraction(float(x)) for x in precision.ravel()]
    for kinds in itertools.product(*(column.kinds for column in columns)):
        shares = (math.prod(parts, start=Fraction(1)) for parts in itertools.product(*kinds))
        most = max(
            most, sum((share * x for share, x in zip(shares, exact, strict=True)), Fraction(0))
        )
    return most * _apart(columns, neighbors)


def _apart(columns: Sequence[Contrasts], neighbors: Neighbors) -> Fraction:
    """How many times the squared length of one person's part two replaced persons' parts can be apart."""
    if neighbors is Neighbors.ADD_REMOVE or not columns:
        return Fraction(1)
    if any(len(column.levels) > 1 for column in columns):
        return Fraction(4)
    return 2 + Fraction(2, min(column.size for column in columns) - 1)


def allocate(
    columns: Sequence[Contrasts],
    kinds: Sequence[Kind],
    weights: Mapping[ColumnSet, float],
    neighbors: Neighbors,
    most: int,
    mu: Fraction,
    public: Iterable[ColumnSet] = (),
) -> Allocation:
    """The precisions that minimise the weighted mean variances of all tables, for what mu pays (Theorem 4).

    Nothing is spent on what is `public`, nor on columns of one value.
    """
    known = frozenset(below(public))
    tables = tuple(sorted(weights, key=lambda table: (len(table), table)))
    parts = [
        part
        for part in below(tables)
        if part not in known and all(columns[i].size > 1 for i in part)
    ]
    asked = [column.lengths(kind) for column, kind in zip(columns, kinds, strict=True)]
    shares = [
        np.array(
            [sum(row[k] for row in c.projections) / c.size for k in range(len(c.levels))], float
        )
        for c in columns
    ]
    need = _needs(tables, parts, weights, asked)
    raw: dict[ColumnSet, Floats] = {}
    for part in parts:
        cost = _outer([shares[i] for i in part]) * float(
            _apart([columns[i] for i in part], neighbors)
        )
        gain = _outer([np.array(asked[i][0]) for i in part]) * need[part]
        raw[part] = np.sqrt(gain / cost)
    if not raw:
        return Allocation(tuple(columns), tables, {}, known, neighbors, most)
    target = Fraction(mu) ** 2 / most**2
    first = Allocation(tuple(columns), tables, raw, known, neighbors, 1)
    # floats round, and nothing may exceed the target
    scale = float(target / first.mu_squared) * (1 - 2.0**-45)
    found = Allocation(
        tuple(columns), tables, {p: x * scale for p, x in raw.items()}, known, neighbors, most
    )
    if found.mu_squared > mu**2:
        raise AssertionError("the parts cost more than was offered")
    return found


def _needs(
    tables: Sequence[ColumnSet],
    parts: Sequence[ColumnSet],
    weights: Mapping[ColumnSet, float],
    asked: Sequence[tuple[list[float], float]],
) -> dict[ColumnSet, float]:
    """For each part the weighted sum over tables above it of what its noise weighs there,
    but for the part's own factor.
    """
    need = dict.fromkeys(parts, 0.0)
    for table in tables:
        for part in below([table]):
            if part in need:
                need[part] += weights[table] * math.prod(
                    asked[i][1] for i in table if i not in part
                )
    return need


def _outer(vectors: Sequence[Floats]) -> Floats:
    found: Floats = np.ones(())
    for vector in vectors:
        found = np.multiply.outer(found, vector)
    return found

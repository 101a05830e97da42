"""From exact counts to tables: the only place of this room where noise of marginals meets data.

Contrasts of exact counts, noise on all of them at once, then post-processing. `rehearse_marginals` tries it on made-up
counts before anything is charged.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from sordino.engines.engine import Exact
from sordino.mechanisms.scaled_gaussian import ScaledGaussian
from sordino.plan.dialects import DEFAULT
from sordino.release import rehearsed
from sordino.workloads.allocation import ColumnSet, below
from sordino.workloads.consistent import agreeing, estimates, residual, sums_of
from sordino.workloads.counts import summed
from sordino.workloads.marginals import Marginals
from sordino.workloads.plan import MarginalsPlan

__all__ = ["exact_contrasts", "noise_of", "rehearse_marginals", "release_marginals"]

Ints = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]
_SMALL = 2**62


def noise_of(plan: MarginalsPlan) -> ScaledGaussian:
    """The noise of all contrasts, one after another: sqrt(square / precision), rounded up, in steps of the lattice."""
    scales = []
    for part, precision in plan.allocation.precision.items():
        columns = [plan.allocation.columns[i] for i in part]
        squares, own = np.ones(()), precision
        for axis, column in enumerate(columns):
            squares = np.multiply.outer(squares, column.squares.astype(np.float64))
            own = np.take(own, column.level - 1, axis=axis)
        # four roundings of 2^-53 each: the factor makes up for them
        scales.append(np.ldexp(np.sqrt(squares / own) * (1 + 2.0**-49), plan.shift).ravel())
    return ScaledGaussian(np.concatenate(scales), plan.allocation.mu_squared)


def exact_contrasts(plan: MarginalsPlan, counts: dict[ColumnSet, Ints]) -> Ints:
    """The contrasts of exact counts in steps of the lattice, one set of columns after another."""
    total = max(int(np.abs(table).sum()) for table in counts.values()) << plan.shift
    found = []
    for part in plan.allocation.precision:
        columns = [plan.allocation.columns[i] for i in part]
        small = 2 * total * math.prod(2 * column.growth for column in columns) < _SMALL
        own = summed(counts, part).astype(np.int64 if small else object) * 2**plan.shift
        for axis, column in enumerate(columns):
            own = column.of(own, axis)
        found.append(np.asarray(own).ravel())
    wide = any(part.dtype == object for part in found)
    return np.concatenate([part.astype(object) for part in found] if wide else found)


def _published(plan: MarginalsPlan, noisy: Ints) -> Mapping[ColumnSet, Ints]:
    """The tables that noisy contrasts make."""
    residuals: dict[ColumnSet, Floats] = {}
    start = 0
    for part in plan.allocation.precision:
        columns = [plan.allocation.columns[i] for i in part]
        shape = tuple(len(column.first) for column in columns)
        own = np.asarray(noisy[start : start + math.prod(shape)], np.float64).reshape(shape)
        start += math.prod(shape)
        residuals[part] = residual(columns, np.ldexp(own, -plan.shift) / plan.unit)
    every = plan.allocation.columns
    for part in below(plan.counting.tables):
        if (known := plan.facts.known(part)) is not None and all(every[i].size > 1 for i in part):
            columns = [every[i] for i in part]
            for axis, column in enumerate(columns):
                known = column.of(known, axis)
            residuals[part] = residual(columns, np.asarray(known, np.float64))
    facts = plan.facts
    if facts.impossible:
        residuals = facts.projected(plan.allocation, residuals)
    if not facts.impossible or len(plan.counting.tables) > 1:
        return agreeing(every, residuals, plan.counting.tables, plan.bits, facts.zero, facts.pivots)
    (largest,) = plan.counting.tables
    best = np.where(facts.impossible[largest], 0.0, estimates(every, residuals, largest))
    return sums_of(largest, np.rint(np.ldexp(best, plan.bits)).astype(np.int64))


def release_marginals(exact: Exact, plan: MarginalsPlan) -> Marginals:
    """The tables of a workload.

    Privacy: `plan.charge`, that is mu^2 of all contrasts together (residuals.md, Theorem 2).
    """
    counts = plan.counting.counts(exact)
    noisy = noise_of(plan).release(exact_contrasts(plan, counts))
    return plan.answered(_published(plan, noisy))


def rehearse_marginals(plan: MarginalsPlan, dialect: str = DEFAULT) -> None:
    """Answer made-up counts before anything is charged: whatever could fail without data being at fault fails here."""

    def trial() -> None:
        for statement in plan.statements:
            statement.text(dialect)
        sizes = sum(math.prod(shape) for shape in plan.counting.shapes)
        places = list(range(min(sizes, 3)))
        sums = np.full((len(places), 1), plan.unit * 2**36, object)
        answer = release_marginals(Exact((places,), sums), plan)
        Marginals.from_json(answer.to_json())

    rehearsed(
        trial, "this workload at this price", "Choose fewer cells, or an epsilon less extreme."
    )

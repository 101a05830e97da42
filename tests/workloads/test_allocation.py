"""Contrasts and precisions: orthogonal whole numbers, the optimum,
and what neighbours cost, all found again naively.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import minimize

from sordino.privacy.neighbors import Neighbors
from sordino.workloads.allocation import Allocation, allocate, below
from sordino.workloads.contrasts import Contrasts, Kind, flat, tree

MU = Fraction(1, 3)


@pytest.mark.parametrize("make", [flat, tree])
@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 13, 40])
def test_contrasts_are_a_whole_orthogonal_basis(make: object, size: int) -> None:
    contrasts: Contrasts = make(size)  # type: ignore[operator]
    rows = contrasts.matrix
    assert rows.shape == (size - 1, size)
    assert not rows.sum(axis=1).any()
    assert np.array_equal(rows @ rows.T, np.diag(contrasts.squares))
    counts = np.random.default_rng(size).integers(0, 99, (3, size, 2))
    assert np.array_equal(contrasts.of(counts, 1), np.einsum("jn,anb->ajb", rows, counts))
    parts = contrasts.of(counts, 1)
    assert np.array_equal(contrasts.back(parts, 1), np.einsum("jn,ajb->anb", rows, parts))
    for value, lengths in enumerate(contrasts.projections):
        for level, found in zip(contrasts.levels, lengths, strict=True):
            own = zip(rows[level, value].tolist(), contrasts.squares[level].tolist(), strict=True)
            assert found == sum((Fraction(x * x, square) for x, square in own), Fraction(0))
    if size > 1:
        weights = np.abs(rows / contrasts.squares[:, None]).sum(axis=0)
        assert weights.max() <= contrasts.weight <= weights.max() * 1.001


def workload(sizes: tuple[int, ...], ways: int) -> list[tuple[int, ...]]:
    return list(itertools.combinations(range(len(sizes)), ways))


def whole_matrix(found: Allocation) -> np.ndarray:
    """All contrasts of one row in each cell of the whole domain, in standard deviations: columns are cells."""
    sizes = [column.size for column in found.columns]
    blocks = []
    for part, precision in found.precision.items():
        matrix: np.ndarray = np.ones((1, 1))
        scale: np.ndarray = np.ones(())
        for i, column in enumerate(found.columns):
            matrix = np.kron(matrix, column.matrix if i in part else np.ones((1, sizes[i])))
        for i in part:
            scale = np.multiply.outer(scale, found.columns[i].squares.astype(float))
        level = np.ix_(*(found.columns[i].level - 1 for i in part)) if part else ()
        blocks.append(matrix * np.sqrt(precision[level] / scale).ravel()[:, None])
    return np.concatenate(blocks)


@pytest.mark.parametrize("kinds", [("cells", "cells", "cells"), ("ranges", "cells", "prefixes")])
@pytest.mark.parametrize("neighbors", list(Neighbors))
def test_no_pair_of_neighbours_costs_more(kinds: tuple[Kind, ...], neighbors: Neighbors) -> None:
    """Against every pair of cells of the whole domain; for add/remove and flat columns the bound is reached."""
    sizes = (3, 2, 5)
    columns = [
        flat(n) if kind == "cells" else tree(n) for n, kind in zip(sizes, kinds, strict=True)
    ]
    found = allocate(columns, kinds, dict.fromkeys(workload(sizes, 2), 1.0), neighbors, 4, MU)
    rows = 4 * whole_matrix(found)
    alone = np.square(rows).sum(axis=0).max()
    pairs = max(
        np.square(rows[:, i] - rows[:, j]).sum() for i, j in itertools.combinations(range(30), 2)
    )
    largest = alone if neighbors is Neighbors.ADD_REMOVE else max(alone, pairs)
    assert largest <= float(found.mu_squared) * (1 + 1e-12) <= float(MU) ** 2 * (1 + 1e-12)
    if neighbors is Neighbors.ADD_REMOVE:
        assert largest > 0.5 * float(MU) ** 2
        if "ranges" not in kinds:
            assert largest == pytest.approx(float(MU) ** 2, rel=1e-9)


def test_variance_is_that_of_the_least_squares_estimate() -> None:
    """The exact variance of a cell, and of a sum of cells, against the generalised inverse of all that is measured."""
    sizes = (3, 2, 5)
    for kinds in (("cells",) * 3, ("ranges", "cells", "prefixes")):
        columns = [
            flat(n) if kind == "cells" else tree(n) for n, kind in zip(sizes, kinds, strict=True)
        ]
        found = allocate(
            columns, kinds, {(0, 1): 1.0, (1, 2): 3.0, (0,): 2.0}, Neighbors.ADD_REMOVE, 1, MU
        )
        rows = whole_matrix(found)
        covariance = np.linalg.pinv(rows.T @ rows)
        for table in ((0, 1), (1, 2), (0,), (2,), ()):
            queries = []
            for cell in itertools.product(*(range(sizes[i]) for i in table)):
                one = np.zeros(sizes)
                one[
                    tuple(cell[table.index(i)] if i in table else slice(None) for i in range(3))
                ] = 1
                queries.append(one.ravel())
            spread = [q @ covariance @ q for q in queries]
            assert max(spread) == pytest.approx(float(found.variance(table)), rel=1e-9)
        half = [np.array([1.0, 1.0, 0.0]), np.ones(2)]
        query = np.zeros(sizes)
        query[:2] = 1
        assert found.spread((0, 1), half) == pytest.approx(
            query.ravel() @ covariance @ query.ravel(), rel=1e-9
        )


def test_the_closed_form_is_the_optimum() -> None:
    """No other precisions of the same cost have smaller weighted variances: a numeric search finds the same number."""
    sizes, weights = (4, 3, 7), {(0, 1): 2.0, (1, 2): 1.0, (0,): 5.0}
    columns = [flat(n) for n in sizes]
    found = allocate(columns, ["cells"] * 3, weights, Neighbors.ADD_REMOVE, 1, MU)
    parts = below(weights)

    def loss(logs: np.ndarray) -> float:
        raw = dict(zip(parts, np.exp(logs), strict=True))
        cost = sum(t * math.prod(1 - 1 / sizes[i] for i in part) for part, t in raw.items())
        scaled = {part: np.array(t * float(MU) ** 2 / cost) for part, t in raw.items()}
        other = Allocation(
            tuple(columns), tuple(weights), scaled, frozenset(), Neighbors.ADD_REMOVE, 1
        )
        return sum(w * float(other.variance(table)) for table, w in weights.items())

    mine = sum(w * float(found.variance(table)) for table, w in weights.items())
    best = minimize(loss, np.zeros(len(parts)), method="BFGS", options={"gtol": 1e-10}).fun
    assert mine == pytest.approx(best, rel=1e-9)
    assert mine <= best * (1 + 1e-12)


def test_published_figures_of_adult() -> None:
    """All pairs of adult's 14 columns at epsilon 1, delta 1e-9: the deviations that ResidualPlanner has there."""
    from sordino.privacy.normal_pair import largest_mu

    sizes = (85, 9, 100, 16, 7, 15, 6, 5, 2, 100, 100, 99, 42, 2)
    pairs = workload(sizes, 2)
    mu = largest_mu(Fraction(1), Fraction(1, 10**9))
    found = allocate(
        [flat(n) for n in sizes],
        ["cells"] * 14,
        dict.fromkeys(pairs, 1.0),
        Neighbors.ADD_REMOVE,
        1,
        mu,
    )
    deviations = [math.sqrt(float(found.variance(pair))) for pair in pairs]
    assert np.mean(deviations) == pytest.approx(45.03, abs=0.01)
    assert max(deviations) == pytest.approx(48.13, abs=0.01)


def test_hierarchies_halve_the_errors_of_ranges() -> None:
    def error(columns: Contrasts, kind: Kind) -> float:
        found = allocate([columns], [kind], {(0,): 1.0}, Neighbors.ADD_REMOVE, 1, MU)
        spans = [(i, j) for i in range(0, 100, 7) for j in range(i + 1, 101, 7)]
        vectors = [
            np.concatenate([np.zeros(i), np.ones(j - i), np.zeros(100 - j)]) for i, j in spans
        ]
        return math.sqrt(np.mean([found.spread((0,), [vector]) for vector in vectors]))

    assert error(tree(100), "ranges") < 0.55 * error(flat(100), "cells")

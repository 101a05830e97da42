"""Junction trees and the model on them, against tables over the whole domain."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from sordino.mechanisms.public_chance import PublicChance
from sordino.workloads.graphical_model import Measured, Model, fit, model_of, sampled, table_of
from sordino.workloads.junction_tree import cliques_of, join

SIZES = (3, 2, 4, 2, 3)


def joint(model: Model) -> np.ndarray:
    """The probabilities of the whole domain: the product of cliques over the product of what they share."""
    whole = np.ones(SIZES)
    for k, clique in enumerate(model.tree.cliques):
        wide = [SIZES[i] if i in clique else 1 for i in range(len(SIZES))]
        table = model.cliques[k]
        whole = whole * table.reshape(wide)
        if shared := model.tree.shared[k]:
            axes = tuple(axis for axis, i in enumerate(clique) if i not in shared)
            narrow = [SIZES[i] if i in shared else 1 for i in range(len(SIZES))]
            whole = whole / np.maximum(table.sum(axis=axes), 1e-300).reshape(narrow)
    return whole


def random_model(seed: int, sets: list[tuple[int, ...]]) -> Model:
    rng = np.random.default_rng(seed)
    factors = {one: rng.normal(0, 1.5, [SIZES[i] for i in one]) for one in cliques_of(SIZES, sets)}
    return model_of(SIZES, factors, 1.0)


GRAPHS: list[list[tuple[int, ...]]] = [
    [(0, 1), (1, 2), (2, 3), (3, 4)],
    [(0, 1), (1, 2), (0, 2), (3, 4)],
    [(0, 1), (0, 2), (0, 3), (0, 4)],
    [(0, 1), (1, 2), (2, 3), (0, 3), (4,)],
    [(0,), (1,), (2,), (3,), (4,)],
    [(0, 1, 2), (2, 3, 4), (0, 4)],
]


@pytest.mark.parametrize("sets", GRAPHS)
def test_junction_trees_hold_every_set_and_hang_together(sets: list[tuple[int, ...]]) -> None:
    tree = join(SIZES, sets)
    assert all(any(set(one) <= set(clique) for clique in tree.cliques) for one in sets)
    assert sorted(tree.cliques) == sorted(cliques_of(SIZES, sets))
    for i in range(len(SIZES)):
        holding = [k for k, clique in enumerate(tree.cliques) if i in clique]
        tops = [k for k in holding if tree.parents[k] not in holding]
        assert len(tops) == 1


@pytest.mark.parametrize("sets", GRAPHS)
def test_tables_of_any_columns_are_sums_of_the_whole(sets: list[tuple[int, ...]]) -> None:
    model = random_model(7, sets)
    whole = joint(model)
    assert whole.sum() == pytest.approx(1)
    for size in (1, 2, 3):
        for columns in itertools.combinations(range(5), size):
            axes = tuple(i for i in range(5) if i not in columns)
            assert np.allclose(table_of(model, columns), whole.sum(axis=axes), atol=1e-12)


def test_a_fit_finds_the_model_that_made_the_tables() -> None:
    truth = random_model(3, GRAPHS[1])
    measured = [Measured(one, 1000 * table_of(truth, one), 1.0) for one in [*GRAPHS[1], (3,)]]
    found = fit(SIZES, measured, 1000.0, iterations=400)
    for one in GRAPHS[1]:
        assert np.abs(table_of(found, one) - table_of(truth, one)).sum() < 2e-3
    # of two tables that contradict each other the more precise one counts more
    apart = [
        Measured((0,), np.array([600.0, 200, 200]), 1.0),
        Measured((0,), np.array([200.0, 600, 200]), 10.0),
    ]
    near = table_of(fit((3,), apart, 1000.0), (0,))
    assert near[0] == pytest.approx(0.596, abs=0.01)


def test_rows_come_out_as_they_are_modelled() -> None:
    """In a clique each cell has its expected number of rows, rounded; columns of different cliques meet by chance."""
    model = random_model(5, GRAPHS[0])
    rows = sampled(model, 20_000, PublicChance())
    for columns in itertools.combinations(range(5), 2):
        expected = 20_000 * table_of(model, columns)
        cells = rows[:, columns[0]] * SIZES[columns[1]] + rows[:, columns[1]]
        counts = np.bincount(cells, minlength=expected.size).reshape(expected.shape)
        together = any(set(columns) <= set(clique) for clique in model.tree.cliques)
        assert np.abs(counts - expected).max() < (
            SIZES[columns[0]] + 2 if together else 6 * math.sqrt(expected.max())
        )
    assert rows.min() >= 0
    assert (rows.max(axis=0) < np.array(SIZES)).all()

"""Sums of products of tables against the whole domain written out, and far beyond the range of floats."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from sordino.workloads.elimination import Elimination

SIZES = (3, 2, 4, 2, 3)
GRAPHS: list[list[tuple[int, ...]]] = [
    [(0, 1), (1, 2), (2, 3), (3, 4)],
    [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3), (4,), (0,), (1,), (2,)],
    [(0, i) for i in range(1, 5)] + [(i,) for i in range(5)],
    [(0, 1, 2), (2, 3, 4), (0, 4)],
    [(2,)],
    list(itertools.combinations(range(5), 2)) + [(i,) for i in range(5)],
]


def whole(tables: list[Any], scopes: list[tuple[int, ...]]) -> np.ndarray:
    """The product over the whole domain, written out."""
    found = np.ones(SIZES)
    for table, scope in zip(tables, scopes, strict=True):
        found = found * table.reshape([SIZES[i] if i in scope else 1 for i in range(5)])
    return found


def summed(product: np.ndarray, columns: tuple[int, ...]) -> np.ndarray:
    found = product.sum(axis=tuple(i for i in range(5) if i not in columns)) / product.sum()
    kept = sorted(columns)
    return np.asarray(np.transpose(found, [kept.index(i) for i in columns]))


@pytest.mark.parametrize("scopes", GRAPHS)
def test_sums_and_shares_are_those_of_the_whole(scopes: list[tuple[int, ...]]) -> None:
    rng = np.random.default_rng(3)
    tables = [np.exp(rng.normal(0, 2, [SIZES[i] for i in scope])) for scope in scopes]
    log, shares = Elimination(SIZES, scopes).shares(tables)
    product = whole(tables, scopes)
    held = {i for scope in scopes for i in scope}
    free = math.prod(SIZES[i] for i in range(5) if i not in held)
    assert log == pytest.approx(math.log(product.sum() / free))
    for scope, share in zip(scopes, shares, strict=True):
        assert np.allclose(share, summed(product, scope), atol=1e-14)
    for size in (1, 2, 3):
        for kept in itertools.permutations(sorted(held), size):
            found = Elimination(SIZES, scopes, kept).table(tables)
            assert np.allclose(found, summed(product, kept), atol=1e-14)


def test_nothing_under_or_overflows() -> None:
    """A hundred tables that pull one column to and fro by factors of e^40: shares still add up to one."""
    rng = np.random.default_rng(5)
    sizes = [6] + [4] * 100
    scopes = [(0, i) for i in range(1, 101)]
    tables = [np.exp(rng.uniform(-40, 0, (6, 4))) for _ in scopes]
    log, shares = Elimination(sizes, scopes).shares(tables)
    column = np.sum([np.log(table.sum(axis=1)) for table in tables], axis=0)
    top = column.max()
    assert log == pytest.approx(top + math.log(np.exp(column - top).sum()))
    for table, share in zip(tables, shares, strict=True):
        assert share.sum() == pytest.approx(1)
        exact = np.exp(column - top) / np.exp(column - top).sum()
        assert np.allclose(
            share, exact[:, None] * table / table.sum(axis=1, keepdims=True), atol=1e-9
        )

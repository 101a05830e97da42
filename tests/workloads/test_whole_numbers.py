"""Nonnegative whole numbers that add up: they agree exactly, keep what is known, and are near what was released."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sordino as so
from sordino.errors import InvalidInput
from sordino.workloads import whole_numbers
from sordino.workloads.marginals import Marginals
from sordino.workloads.whole_numbers import nearest_whole, whole_tables

BITS = 10
SIZES = (4, 5, 6, 3)
Tables = dict[tuple[int, ...], Any]
PAIRS = [(0, 1), (1, 2), (0, 2), (2, 3)]
CHAIN = [(0, 1, 2), (1, 2, 3)]
STAR = [(0, 1, 2), (0, 3), (1, 3)]
TRIPLES = list(itertools.combinations(range(4), 3))


def margin(cells: Any, table: Sequence[int], part: Sequence[int]) -> Any:
    return cells.sum(axis=tuple(k for k, i in enumerate(table) if i not in part))


def world(sets: Sequence[tuple[int, ...]], seed: int, noise: float = 3) -> tuple[Tables, Any]:
    """Noisy tables that agree, in multiples of 2^-BITS, and the counts behind them."""
    rng = np.random.default_rng(seed)
    size = int(np.prod(SIZES))
    exact = rng.multinomial(2000, rng.dirichlet(np.full(size, 0.2))).reshape(SIZES)
    noisy = (exact << BITS) + np.rint(rng.normal(0, noise * 2**BITS, SIZES)).astype(np.int64)
    every = tuple(range(4))
    return {table: margin(noisy, every, table) for table in sets}, exact


def expect_agreement(found: Tables) -> None:
    for one, other in itertools.combinations(found, 2):
        shared = sorted(set(one) & set(other))
        assert np.array_equal(margin(found[one], one, shared), margin(found[other], other, shared))
    assert all(cells.dtype == np.int64 and (cells >= 0).all() for cells in found.values())


@pytest.mark.parametrize("joint", [2**16, 0])
@pytest.mark.parametrize("sets", [PAIRS, CHAIN, STAR, [(0,), (3,)], [(0, 1, 2, 3)]])
def test_they_agree_and_are_near(
    sets: list[tuple[int, ...]], joint: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(whole_numbers, "_JOINT", joint)
    for seed in range(3):
        noisy, _ = world(sets, seed)
        found = whole_tables(noisy, BITS, [])
        expect_agreement(found)
        for table, cells in found.items():
            rows = noisy[table] / 2**BITS
            # what is negative must move, and takes others with it; whole numbers are half a row off
            assert np.abs(cells - rows).mean() < 0.75 + 2 * np.abs(np.minimum(rows, 0)).mean()


def test_all_tables_of_a_small_domain_come_from_one_data_set() -> None:
    """Also where what they share closes a circle; and those that are whole already stay as they are."""
    noisy, _ = world(TRIPLES, 7)
    expect_agreement(whole_tables(noisy, BITS, []))
    clean, exact = world(TRIPLES, 7, noise=0)
    for table, cells in whole_tables(clean, BITS, []).items():
        assert np.abs(cells - margin(exact, range(4), table)).mean() < 0.4


def test_a_circle_is_refused_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whole_numbers, "_JOINT", 0)
    with pytest.raises(InvalidInput, match="closes a circle"):
        whole_tables(world(TRIPLES, 7)[0], BITS, [])
    one, two = np.eye(2, dtype=np.int64), 1 - np.eye(2, dtype=np.int64)
    with pytest.raises(InvalidInput, match="closes a circle"):
        nearest_whole((0, 1, 2), np.ones((2, 2, 2)), np.ones((2, 2, 2), bool),
                      {(0, 1): one, (1, 2): one, (0, 2): two})  # fmt: skip


@pytest.mark.parametrize(
    "parts", [[(0,), (1,), (2,), (3,)], [(0, 1), (1, 2), (2, 3)], [(2, 3), (0, 1), (1, 2)], [(0, 1, 2), (3,)], [()]]
)  # fmt: skip
def test_given_margins_are_met_whatever_the_numbers_are(
    parts: list[tuple[int, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Theorem 4: of margins that agree and close no circle there is always a table,
    far from the target, too, and where the projection has not settled.
    """
    rng = np.random.default_rng(len(parts))
    table = (0, 1, 2, 3)
    for trial in range(12):
        monkeypatch.setattr(whole_numbers, "_ROUNDS", 50 if trial % 3 else 1)
        rows = rng.integers(0, SIZES, (rng.integers(1, 60), 4))
        counts = np.zeros(SIZES, np.int64)
        np.add.at(counts, tuple(rows.T), 97 if trial % 2 else 1)
        given = {part: np.asarray(margin(counts, table, part)) for part in parts}
        target = rng.normal(0, 10.0 ** (trial % 4 - 1), SIZES)
        found = nearest_whole(table, target, np.ones(SIZES, bool), given)
        assert (found >= 0).all()
        assert all(np.array_equal(margin(found, table, part), own) for part, own in given.items())


def test_what_is_known_and_what_cannot_occur_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    for joint in (2**16, 0):
        monkeypatch.setattr(whole_numbers, "_JOINT", joint)
        noisy, exact = world(PAIRS, 3, noise=0)
        rng = np.random.default_rng(1)
        moved = np.rint(rng.normal(0, 3000, (5, 6))).astype(np.int64)
        moved -= moved.mean(axis=1).astype(np.int64)[:, None]
        moved[:, -1] -= moved.sum(axis=1)
        own = (noisy[1, 2] + moved)[:, :, None, None] * np.eye(1, dtype=np.int64)
        tables: Tables = {(0, 1): noisy[0, 1], (1, 2): own[:, :, 0, 0]}
        tables[0, 1] = np.where(noisy[0, 1] == 0, 0, noisy[0, 1])
        found = whole_tables(tables, BITS, [(1,)])
        expect_agreement(found)
        assert np.array_equal(margin(found[0, 1], (0, 1), (1,)), margin(exact, range(4), (1,)))
        assert not found[0, 1][noisy[0, 1] == 0].any()


N = 3000
RNG = np.random.default_rng(8)
NAMES = ["a", "b", "c", "d", "e"]
ROWS = {
    name: RNG.integers(0, size, N) for name, size in zip(NAMES, (12, 15, 11, 9, 13), strict=True)
}
COLUMNS: dict[str, Any] = {
    name: {"type": "int", "min": 0, "max": int(own.max()), "nullable": False} for name, own in ROWS.items()
}  # fmt: skip


def test_whole_numbers_are_found_where_few_cells_are_free() -> None:
    """Whatever the noise, where whole numbers with these sums exist some are found: zeros leave few ways to add up."""
    rng = np.random.default_rng(0)
    solved = 0
    for _ in range(400):
        shape = tuple(rng.integers(2, 6, 2))
        free = rng.random(shape) < rng.uniform(0.3, 0.9)
        exact = np.where(free, rng.integers(0, 6, shape), 0)
        given: dict[tuple[int, ...], Any] = {(0,): exact.sum(axis=1), (1,): exact.sum(axis=0)}
        noisy = np.where(free, exact + rng.normal(0, 10, shape), 0.0)
        whole = nearest_whole((0, 1), noisy, free, given)
        assert all(np.array_equal(margin(whole, (0, 1), part), own) for part, own in given.items())
        assert (whole >= 0).all()
        assert not whole[~free].any()
        solved += 1
    assert solved == 400
    nowhere = np.eye(2, dtype=bool)
    with pytest.raises(InvalidInput, match="no whole numbers"):
        nearest_whole(
            (0, 1), np.zeros((2, 2)), nowhere, {(0,): np.array([1, 0]), (1,): np.array([0, 1])}
        )


def test_pairs_of_many_columns() -> None:
    """All tables of two columns over more values than one table could hold; intervals hold, also when read again.

    Whether numbers can be rounded is known before anything is paid.
    """
    data = so.Dataset(pa.table(ROWS), unit="row", columns=COLUMNS, budget=so.Budget(9, 1e-6))
    totals = {value: int((ROWS["d"] == value).sum()) for value in range(9)}
    with so.Session(data) as session:
        found = session.marginals(NAMES, ways=2, epsilon=0.5, facts={"d": totals})
        triples = session.preview_marginals(NAMES, ways=3, epsilon=1)
    whole = found.rounded()
    expect_agreement({table.places: table.values.astype(np.int64) for table in whole})
    assert whole["d"].values.tolist() == list(totals.values())
    assert (found["a", "b"].values < 0).any()
    inside = []
    for table in whole:
        exact = np.zeros(table.cells.shape)
        np.add.at(exact, tuple(ROWS[name] for name in table.names), 1)
        before = found.at(table.places)
        assert table.half_width >= before.half_width
        assert (
            np.abs(table.values - before.values).max()
            <= table.half_width - before.half_width + 1e-9
        )
        assert np.square(table.values - exact).mean() < np.square(before.values - exact).mean()
        inside.append((np.abs(table.values - exact) <= table.half_width).mean())
    assert min(inside) > 0.95
    again = Marginals.from_json(whole.to_json())
    assert again["a", "b"].half_width == whole["a", "b"].half_width
    assert again.to_json() == whole.to_json()
    with pytest.raises(InvalidInput, match="closes a circle"):
        triples.example.rounded()

"""Theorem 9 of quantiles.md as the benchmark computes it: no honest private interval is narrower on a given table."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from statistics import mean

import numpy as np
import pytest
from benchmarks.suites.quantiles.bounds import least_half_width, persons_away
from benchmarks.suites.quantiles.sordino_widths import Cell, summary
from scipy.optimize import linprog
from scipy.sparse import coo_array

Table = tuple[int, ...]
LEVELS = (Fraction(1, 10), Fraction(1, 2), Fraction(2, 3))


def quantiles_of(table: Table, level: Fraction) -> list[int]:
    upto, total = np.cumsum(table), sum(table)
    return [
        cell
        for cell, weight in enumerate(table)
        if upto[cell] - weight <= level * total <= upto[cell]
    ]


def distance(one: Table, other: Table, rows: int) -> int:
    """Persons of up to so many rows, each in one or several cells, who come or go."""
    more = sum(max(b - a, 0) for a, b in zip(one, other, strict=True))
    fewer = sum(max(a - b, 0) for a, b in zip(one, other, strict=True))
    return -(-more // rows) + -(-fewer // rows)


@pytest.mark.parametrize("level", [Fraction(0), *LEVELS, Fraction(9, 10), Fraction(1)], ids=str)
@pytest.mark.parametrize("rows", [1, 3])
def test_there_is_a_table_as_near_as_is_said_in_which_the_cell_is_a_quantile(
    level: Fraction, rows: int
) -> None:
    """Of persons with one row there is no nearer one, but for grains of rows; of others nothing is taken away."""
    most, exact, counted = 9, 0, 0
    others = {table: quantiles_of(table, level) for table in product(range(most + 1), repeat=3)}
    for table in product(range(4), repeat=3):
        said = persons_away(np.array(table), level, rows)
        for cell in range(3):
            able = [
                distance(table, other, rows)
                for other, found in others.items()
                if cell in found
                and (rows == 1 or all(a <= b for a, b in zip(table, other, strict=True)))
            ]
            if said[cell] * rows > most - max(table):
                continue  # such tables were not listed
            assert min(able) <= said[cell]
            exact, counted = exact + (min(able) == said[cell]), counted + 1
    assert counted > 60
    assert exact > 0.9 * counted


def narrowest(
    table: Table, tables: list[Table], level: Fraction, epsilon: float, alpha: float
) -> float:
    """The least mean half-width on one table of all private intervals that are honest on each, by linear programming.

    Persons have one row.
    """
    cells = len(table)
    ends = [(low, high) for low in range(cells) for high in range(low, cells)]
    place = {pair: i for i, pair in enumerate(product(tables, ends))}
    rows: list[dict[int, float]] = []
    limits: list[float] = []
    for one in tables:
        for cell in quantiles_of(one, level):
            rows.append({place[one, i]: -1.0 for i in ends if i[0] <= cell <= i[1]})
            limits.append(alpha - 1)
        for nth in range(cells):
            other = (*one[:nth], one[nth] + 1, *one[nth + 1 :])
            if (other, ends[0]) in place:
                for i, (a, b) in product(ends, ((one, other), (other, one))):
                    rows.append({place[a, i]: 1.0, place[b, i]: -math.exp(epsilon)})
                    limits.append(0.0)
    where = [(i, j, x) for i, row in enumerate(rows) for j, x in row.items()]
    i, j, x = zip(*where, strict=True)
    sums = np.kron(np.eye(len(tables)), np.ones(len(ends)))
    cost = np.zeros(len(place))
    for low, high in ends:
        cost[place[table, (low, high)]] = (high - low) / 2
    best = linprog(
        cost,
        A_ub=coo_array((x, (i, j)), shape=(len(rows), len(place))).tocsr(),
        b_ub=limits,
        A_eq=sums,
        b_eq=np.ones(len(tables)),
    )
    return float(best.fun)


def test_no_honest_private_interval_is_narrower_and_some_are_hardly_wider() -> None:
    """On four cells and all small tables, against the best of all mechanisms for this very table."""
    most, alpha, parts = 3, 0.1, []
    tables = list(product(range(most + 1), repeat=3))
    for epsilon, level, table in product(
        (0.3, 1.0), (Fraction(1, 2), Fraction(2, 3)), ((0, 1, 0), (1, 0, 1), (2, 0, 0), (0, 0, 0))
    ):
        away = persons_away(np.array(table), level, 1)
        if away.max() > most - max(table):
            continue
        bound = least_half_width(np.array(table), level, Fraction(epsilon), 1, 1 - alpha)
        best = narrowest(table, tables, level, epsilon, alpha)
        assert bound <= best + 1e-6, (table, level, epsilon)
        parts.append(bound / best)
    assert len(parts) > 8
    assert mean(parts) > 0.8


def test_the_bound_is_that_of_the_theorem() -> None:
    """On even ground a half-width of 2.09 s/2r rows, and at least the stretch where all cells are quantiles."""
    even = np.ones(40_000, np.int64)
    for level in (Fraction(1, 2), Fraction(1, 10), Fraction(9, 10)):
        found = least_half_width(even, level, Fraction(1, 100), 1, 0.95)
        expected = 2.094 * 2 * float(max(level, 1 - level)) / 2 * 100
        assert found == pytest.approx(expected, rel=0.01)
    gap = np.zeros(1001, np.int64)
    gap[[100, 900]] = 50
    assert least_half_width(gap, Fraction(1, 2), Fraction(10), 1, 0.95) == pytest.approx(
        (0.95 * 801 - 1) / 2, rel=1e-3
    )


def test_cells_above_three_are_told_apart() -> None:
    cells = [
        Cell(error=10, at_most=14, half=29, held=95),
        Cell(error=10, at_most=14, half=41, held=95, least=5),
        Cell(error=10, at_most=14, half=43, held=96, least=5),
        Cell(error=2, at_most=3, half=10, held=96, least=5),
        Cell(error=10, at_most=14, half=35, held=99, least=31),
        Cell(error=0.5, at_most=1, half=4, held=99),
    ]
    assert [cell.verdict for cell in cells[:5]] == [
        "within",
        "chance",
        "left",
        "left",
        "impossible",
    ]
    found = summary(cells)
    names = ("cells", "inexact", "above", "impossible", "chance", "left", "grain", "least")
    assert [found[name] for name in names] == [6, 5, 4, 1, 1, 2, 1, 95]

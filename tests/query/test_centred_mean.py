"""Means of replaced persons without groups: the exact reach of one person, the estimates, and what they gain."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pytest

import sordino as so
from engine_plug import Plug
from sordino.mechanisms.combination import Noise
from sordino.plan.sensitivity import Contribution, bounding
from sordino.privacy.neighbors import Neighbors
from sordino.query.aggregates.centred_mean import CentredMean
from sordino.query.aggregates.grid import Grid
from sordino.query.aggregates.mean import Mean
from sordino.query.aggregates.partial import Partial
from sordino.query.bounds import Bounds
from sordino.query.types import Number

Family = Literal["laplace", "gaussian"]
FAMILIES: tuple[Family, ...] = ("laplace", "gaussian")
COLUMNS: dict[str, dict[str, Any]] = {
    "x": {"type": "int", "min": -3, "max": 7},
    "keep": {"type": "bool"},
    "g": {"type": "category", "values": ["a", "b"]},
}


def grid(cells: int, first: int = 0) -> Grid:
    return Grid.of(Number(Fraction(first), Fraction(first + cells), Fraction(1)), "x", 2**40)


def vectors(partial: CentredMean, rows: int, cells: int) -> list[tuple[int, ...]]:
    """What a person with up to so many rows can add:
    all numbers of rows with and without a value, and all sums of steps.
    """
    sums = [
        (n, s, n + o)
        for n in range(rows + 1)
        for s in range(n * cells + 1)
        for o in range(rows - n + 1)
    ]
    return sorted({tuple(v) for v in partial.vector(np.array(sums, object)).tolist()})


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("others", [False, True])
@pytest.mark.parametrize(("cells", "rows"), [(1, 1), (2, 1), (7, 1), (3, 3), (10, 2)])
def test_the_reach_of_a_replaced_person_is_attained_and_never_exceeded(
    family: Family, others: bool, cells: int, rows: int
) -> None:
    partial = replace(CentredMean("x", grid(cells)).suited(family), others=others)
    who = Contribution(Neighbors.REPLACE, Bounds(rows), 1, grouped=False)
    declared = bounding(partial, who, 1, "l1")
    points = vectors(partial, rows, cells)
    apart = [
        [abs(a - b) for a, b in zip(one, other, strict=True)]
        for one, other in product(points, points)
    ]
    assert max(map(sum, apart)) == declared.l1
    assert max(sum(d * d for d in each) for each in apart) == declared.l2_squared
    assert max(map(max, apart)) == declared.linf
    most = 2 * rows * partial.most
    assert (
        declared.l1 == most
        if family == "laplace"
        else declared.l2_squared == pytest.approx(most**2, rel=1e-3)
    )
    assert partial.most == cells if family == "laplace" else partial.most >= 1000


def session(neighbors: str = "replace", unit: str = "row", **more: Any) -> tuple[so.Dataset, Plug]:
    table = pa.table(
        {
            "id": [1, 1, 2, 3],
            "x": [-3, 7, 7, None],
            "keep": [True, True, False, True],
            "g": list("abab"),
        }
    )
    budget = {"epsilon": 100, "delta": 1e-6}
    return so.Dataset(
        table, unit=unit, neighbors=neighbors, columns=COLUMNS, budget=budget, **more
    ), Plug()


@pytest.mark.parametrize(
    ("sql", "neighbors", "chosen"),
    [
        ("SELECT AVG(x) AS a FROM data WHERE keep", "replace", CentredMean),
        ("SELECT AVG(x) AS a FROM data", "replace", CentredMean),  # x may be NULL
        ("SELECT SUM(x) AS s, COUNT(x) AS n FROM data WHERE keep", "replace", CentredMean),
        ("SELECT AVG(x) AS a, COUNT(*) AS n FROM data WHERE keep", "replace", CentredMean),
        ("SELECT AVG(x) AS a FROM data WHERE keep", "add_remove", Mean),
        ("SELECT g, AVG(x) AS a FROM data WHERE keep GROUP BY g", "replace", Mean),
    ],
)
def test_it_is_for_replaced_persons_without_groups_only(
    sql: str, neighbors: str, chosen: type[Partial]
) -> None:
    data, plug = session(neighbors)
    with so.Session(data, engine=plug) as asked:
        plan = asked.preview(sql, epsilon=1)
    assert [type(release.partial) for release in plan.sums] == [chosen]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("unit", ["row", "id"])
@pytest.mark.parametrize("select", ["AVG(x) AS a", "AVG(x) AS a, COUNT(*) AS n"])
def test_the_engine_attains_the_reach_on_real_neighbours(
    family: Family, unit: str, select: str
) -> None:
    """A person at one bound, at the other, behind the filter, and without a value."""
    bounds: dict[str, Any] = {} if unit == "row" else {"max_rows": 2, "max_groups": 1}
    rows: list[tuple[int | None, bool]] = [
        (-3, True),
        (7, True),
        (2, True),
        (7, False),
        (None, True),
    ]
    seen = []
    for x, keep in rows:
        table = pa.table({
            "id": [1, 1, 2], "x": pa.array([x, x, 4], pa.int64()), "keep": [keep, keep, True], "g": ["a"] * 3,
        })  # fmt: skip
        if unit == "row":
            table = table.slice(1)
        data = so.Dataset(
            table, unit=unit, neighbors="replace", columns=COLUMNS, budget={"epsilon": 100, "delta": 1e-6}, **bounds
        )  # fmt: skip
        plug = Plug()
        with so.Session(data, engine=plug) as asked:
            plan = asked.preview(
                f"SELECT {select} FROM data WHERE keep", epsilon=1, mechanism=family
            )
            seen.append([int(v) for v in plug.exact_groups(plan).vectors["s0"][0]])
    apart = [
        [abs(a - b) for a, b in zip(one, other, strict=True)] for one, other in product(seen, seen)
    ]
    declared = plan.sums[0].sensitivity
    assert max(map(sum, apart)) == declared.l1
    assert max(sum(d * d for d in pair) for pair in apart) == declared.l2_squared
    assert max(map(max, apart)) == declared.linf


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("first", [-3, 0, 5])
@pytest.mark.parametrize("others", [False, True])
def test_without_noise_the_estimates_are_exact(family: Family, first: int, others: bool) -> None:
    partial, unit = replace(CentredMean("x", grid(10, first)).suited(family), others=others), 4
    noise = Noise(family, Fraction(1, 1000))
    steps = [3, 10, 0, 7]
    exact = partial.vector(
        np.array([[unit * len(steps), unit * sum(steps), unit * (len(steps) + 9)]], object)
    )
    values = [first + k for k in steps]
    expected_of = {
        "count": 4,
        "sum": sum(values),
        "avg": sum(values) / 4,
        **({"rows": 13} if others else {}),
    }
    assert expected_of.keys() == partial.serves
    for function, expected in expected_of.items():
        found = partial.estimate(function, exact, unit, noise, 0.95)
        assert found.value[0] == pytest.approx(expected)
        assert found.low[0] <= expected <= found.high[0]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("place", "others"), [(0, False), (50, True), (93, False), (100, True)])
def test_intervals_of_means_cover(family: Family, place: int, others: bool) -> None:
    """900 of 1000 at a confidence of 0.9, less five standard deviations of that."""
    partial = replace(CentredMean("x", grid(100)).suited(family), others=others)
    scale = Fraction(2 * partial.most * 2)
    draw = so.Laplace(scale) if family == "laplace" else so.Gaussian(scale)
    for rows in (5, 300):
        exact = partial.vector(np.array([[rows, rows * place, rows + 7]] * 1000, object))
        noise = draw.release(np.zeros(1000 * partial.width, np.int64))
        noisy = exact + np.asarray(noise, object).reshape(-1, partial.width)
        found = partial.estimate("avg", noisy, 1, Noise(family, scale), 0.9)
        covered = int(((found.low <= place) & (place <= found.high)).sum())
        assert covered >= 900 - 5 * 9.5


@pytest.mark.parametrize(
    ("family", "position", "gain", "gain_with_rows"),
    [
        ("laplace", 0.0, 1 / 2, 3 / 4),
        ("laplace", 0.5, 1 / 2, 1 / 2),
        ("gaussian", 0.0, 2 / 3, 3 / 4),
        ("gaussian", 1.0, 2 / 3, 3 / 4),
        ("gaussian", 0.5, 1, 1),
    ],
)
@pytest.mark.parametrize("cells", [1, 10**6])
def test_the_variance_is_that_of_the_theorem(
    family: Family, position: float, gain: float, gain_with_rows: float, cells: int
) -> None:
    """The variance of (1-t) above - t below, for noise of the sensitivity, against that of the sums of a mean."""
    who = Contribution(Neighbors.REPLACE, Bounds(1), 1, grouped=False)

    def spread(partial: Partial) -> float:
        return (
            float(bounding(partial, who, 1, "l1").l1 or 0)
            if family == "laplace"
            else float(bounding(partial, who, 1, "l2").l2)
        )

    for others, smaller in ((False, gain), (True, gain_with_rows)):
        old = Mean("x", grid(cells), others)
        new = replace(CentredMean("x", grid(cells)).suited(family), others=others)
        plain = (position**2 + (1 - position) ** 2) * spread(old) ** 2
        counted, around, unit = new._sides
        weights = [
            ((1 - 2 * position) * c + w) / unit for c, w in zip(counted, around, strict=True)
        ]
        assert sum(w**2 for w in weights) * spread(new) ** 2 / plain == pytest.approx(
            smaller, rel=2e-3
        )

    def rows(partial: Partial) -> float:
        weights = partial.weights("rows", 1)
        assert weights is not None
        return sum(float(w) ** 2 for w in weights) * spread(partial) ** 2

    assert rows(new) / rows(old) == pytest.approx(1 / 3 if family == "laplace" else 1 / 4, rel=2e-3)


def test_a_question_about_replaced_persons_has_a_smaller_error_than_before() -> None:
    data, _ = session()
    with so.Session(data) as asked:
        sql = "SELECT AVG(x) AS a FROM data WHERE keep"
        laplace = asked.preview(sql, epsilon=1, rows=1000, mechanism="laplace").errors()["a"]
        noise = Noise("laplace", 2 * 10)
    before = Mean("x", grid(10, -3)).error("avg", 1, noise, 0.95, 1000)
    assert laplace is not None
    assert before is not None
    assert laplace < 0.8 * before

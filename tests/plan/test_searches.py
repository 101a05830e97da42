"""What is searched for bounds: exact weights as a plain loop finds them, and how far one person moves them."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest

import sordino as so
from sordino.accounting.filters import TwoMeterFilter
from sordino.engines.duckdb import DuckDB
from sordino.plan.searches import Searched
from sordino.plan.sensitivity import WEIGHT
from sordino.plan.suggestion import SuggestionPlan, plan_suggestion
from sordino.query.bounds_search import MOST_COUNT
from sordino.query.three_digits import code_of

Row = tuple[int | None, float | None, str | None]
COLUMNS: dict[str, Any] = {
    "x": {"type": "float"},
    "ward": {"type": "category", "values": ["A", "B", "C"]},
}


def random_rows(rng: random.Random, persons: int = 8) -> list[Row]:
    rows: list[Row] = []
    for person in range(persons):
        for _ in range(rng.choice((0, 1, 1, 2, 5, 40))):
            value = rng.choice(
                (None, 0.0, rng.gauss(0, 100), rng.lognormvariate(0, 9), -7.0, float("nan"))
            )
            rows.append(
                (
                    rng.choice((person, person, person, None)),
                    value,
                    rng.choice(("A", "B", "C", "D", None)),
                )
            )
    return rows


def planned(
    rows: list[Row], unit: str, neighbors: str = "add_remove"
) -> tuple[SuggestionPlan, list[Counter[int]]]:
    """The plan, and the exact weights of each search as the engine finds them."""
    people, numbers, wards = (
        (list(part) for part in zip(*rows, strict=True)) if rows else ([], [], [])
    )
    table = pa.table(
        {
            "p": pa.array(people, pa.int64()),
            "x": pa.array(numbers, pa.float64()),
            "ward": pa.array(wards, pa.string()),
        }
    )
    data = so.Dataset(
        table, unit=unit, neighbors=neighbors, columns=COLUMNS, budget=so.Budget(1), name="t"
    )
    plan = plan_suggestion(
        data,
        TwoMeterFilter(so.Budget(1), Fraction(0)),
        "t",
        epsilon=1,
        keys=["ward"] if unit == "p" else [],
    )
    engine = DuckDB(tuple(data.tables.values()))
    try:
        found = [engine.run(statement) for statement in plan.statements]
    finally:
        engine.close()
    return plan, [
        Counter(dict(zip(one.keys[0], map(int, one.sums[:, 0]), strict=True))) for one in found
    ]


def naive(rows: list[Row], unit: str) -> list[Counter[int]]:
    """The same by plain loops."""

    def code(value: float) -> int:
        return code_of(Fraction(repr(value))) if abs(value) < 1e300 else 0

    values = [(p, x) for p, x, _ in rows if x is not None and x == x]
    if unit == "row":
        return [Counter(code(x) for _, x in values)]
    known = [row for row in rows if row[0] is not None]
    mine = Counter(p for p, *_ in known)
    groups: dict[Any, Counter[str]] = defaultdict(Counter)
    for p, _, ward in known:
        if ward in ("A", "B", "C"):
            groups[p][ward] += 1
    weights: Counter[int] = Counter()
    own = Counter(p for p, _ in values if p is not None)
    for p, x in values:
        if p is not None:
            weights[code(x)] += WEIGHT // own[p]
    rows_of, groups_of = Counter(mine.values()), Counter(len(found) for found in groups.values())
    return [rows_of, groups_of, Counter(max(found.values()) for found in groups.values()), weights]


def apart(one: Counter[int], other: Counter[int]) -> int:
    return sum(abs(one[place] - other[place]) for place in one | other)


@pytest.mark.parametrize("unit", ["row", "p"])
def test_weights_are_those_of_plain_loops(unit: str) -> None:
    rng = random.Random(21)
    for _ in range(15):
        rows = random_rows(rng)
        _, found = planned(rows, unit)
        assert found == naive(rows, unit)


@pytest.mark.parametrize("neighbors", ["add_remove", "replace"])
def test_one_person_moves_no_more_than_is_declared(neighbors: str) -> None:
    """Neighbour replay by exact integers: one person with any number of rows is taken away, or replaced."""
    rng, worst = random.Random(22), Counter[str]()
    for _ in range(12):
        rows = random_rows(rng)
        people = sorted({p for p, *_ in rows if p is not None})
        if not people:
            continue
        gone = rng.choice(people)
        other = [row for row in rows if row[0] != gone]
        if neighbors == "replace":
            other += [(gone, x, ward) for _, x, ward in random_rows(rng, 2)]
        plan, found = planned(rows, "p", neighbors)
        _, found_other = planned(other, "p", neighbors)
        for one, ours, theirs in zip(plan.searched, found, found_other, strict=True):
            distance = apart(ours, theirs)
            assert distance <= one.moved, one.search.what
            worst[one.search.what] = max(worst[one.search.what], distance)
        assert all(
            one.moved == (2 if neighbors == "replace" else 1) * one.unit for one in plan.searched
        )
    assert worst["max_rows"] == worst["max_groups"] == (2 if neighbors == "replace" else 1)
    assert worst["x"] > 0.9 * WEIGHT


@pytest.mark.parametrize(("neighbors", "moved"), [("add_remove", 1), ("replace", 2)])
def test_one_row_is_one_person_where_rows_are(neighbors: str, moved: int) -> None:
    rng = random.Random(23)
    for _ in range(10):
        rows = random_rows(rng)
        if not rows:
            continue
        at = rng.randrange(len(rows))
        other = rows[:at] + rows[at + 1 :] + ([(1, 5.0, "A")] if neighbors == "replace" else [])
        plan, found = planned(rows, "row", neighbors)
        _, found_other = planned(other, "row", neighbors)
        assert [one.moved for one in plan.searched] == [moved]
        assert apart(found[0], found_other[0]) <= moved


def test_very_many_rows_are_one_place() -> None:
    rows: list[Row] = [(1, 1.0, "A")] * 3
    plan, _ = planned(rows, "p")
    assert str(MOST_COUNT + 1) in plan.statements[0].text()


def test_the_price_is_divided_equally() -> None:
    plan, _ = planned([(1, 1.0, "A")], "p")
    assert sum((one.price.epsilon for one in plan.searched), Fraction(0)) == plan.epsilon == 1
    assert plan.charge.pure == 1
    assert all(
        isinstance(one, Searched) and one.price.query_epsilon == Fraction(1, 10)
        for one in plan.searched
    )

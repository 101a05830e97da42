"""COUNT(DISTINCT column): no person moves it further than declared, and the order of rows does not matter."""

from __future__ import annotations

import hashlib
import random
from collections import defaultdict
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from sqlglot import exp

import sordino as so
from engine_plug import exact_sums
from engine_reference import Bench
from sordino.accounting.filters import TwoMeterFilter
from sordino.audit.replayed.distances import Exactly, moved
from sordino.plan import statement
from sordino.plan.cost import Cost
from sordino.plan.plan import Plan, make_plan
from sordino.query.front.sql import parse

COLUMNS: dict[str, Any] = {
    "x": {"type": "int", "min": 0, "max": 1000},
    "y": {"type": "float", "min": 0, "max": 10, "step": 0.5},
    "t": {"type": "text"},
    "g": {"type": "category", "values": ["A", "B", "C", "D"]},
}
SQL = {
    "alone": "SELECT COUNT(DISTINCT x) AS n FROM data",
    "of floats": "SELECT COUNT(DISTINCT y) AS n FROM data WHERE x > 2",
    "of an expression": "SELECT COUNT(DISTINCT x % 7) AS n FROM data",
    "of some": "SELECT COUNT(DISTINCT t) FILTER (WHERE x > 3) AS n, COUNT(*) AS m FROM data",
    "by group": "SELECT g, COUNT(DISTINCT t) AS n, SUM(x) AS s FROM data GROUP BY g",
    "by two": "SELECT g, BUCKET(x, 500) AS b, COUNT(DISTINCT x) AS n FROM data GROUP BY 1, 2",
    "by private key": "SELECT t, COUNT(DISTINCT x) AS n FROM data GROUP BY t",
}
Row = dict[str, Any]


def rows_of(rng: random.Random, persons: int) -> list[Row]:
    found = []
    for pid in range(persons):
        for _ in range(rng.choice([0, 1, 2, 9])):
            cells = {
                "x": rng.choice([None, *range(4), *range(100 * pid, 100 * pid + 9)]),
                "y": rng.choice([None, 0.1, 0.4, 7.0]),
                "t": rng.choice([None, "a", "b", "c|d", "é"]),
                "g": rng.choice([None, "A", "B", "C", "Z"]),
            }
            found.append({"pid": rng.choice([pid, pid, None]), **cells})
    return found


def table(rows: list[Row]) -> pa.Table:
    types = {
        "pid": pa.int64(),
        "x": pa.int64(),
        "y": pa.float64(),
        "t": pa.string(),
        "g": pa.string(),
    }
    return pa.table(
        {name: pa.array([row[name] for row in rows], kind) for name, kind in types.items()}
    )


def declared(unit: str, **options: Any) -> so.Dataset:
    bounds: dict[str, Any] = {} if unit == "row" else {"max_rows_per_group": 2, "max_groups": 2}
    budget = {"epsilon": 100, "delta": 1e-6}
    return so.Dataset(
        table([]), name="data", unit=unit, columns=COLUMNS, budget=budget, **bounds, **options
    )


def planned(sql: str, dataset: so.Dataset, mechanism: Any = "laplace") -> Plan:
    assert dataset.budget is not None
    meter = TwoMeterFilter(dataset.budget, dataset.reserved_delta or Fraction(0))
    return make_plan(parse(sql), dataset, Cost.offered(epsilon=1, mechanism=mechanism), meter)


BENCH = Bench()


def exact(plan: Plan, dataset: so.Dataset, rows: list[Row]) -> Exactly:
    BENCH.load(dataset.tables, {"data": table(rows)})
    return BENCH.run(plan)


KINDS = (
    ("pid", "add_remove", "laplace"),
    ("pid", "replace", "gaussian"),
    ("row", "replace", "laplace"),
)


@pytest.fixture(scope="module")
def plans() -> dict[tuple[str, ...], tuple[so.Dataset, Plan]]:
    found: dict[tuple[str, ...], tuple[so.Dataset, Plan]] = {}
    for unit, neighbors, mechanism in KINDS:
        dataset = declared(unit, neighbors=neighbors)
        for name, sql in SQL.items():
            found[name, unit, neighbors] = dataset, planned(sql, dataset, mechanism)
    return found


def replayed(plans: dict[tuple[str, ...], tuple[so.Dataset, Plan]], worlds: int) -> Iterator[str]:
    """Every neighbour of some random tables that moves anything further than declared,
    or is moved by the order of rows.
    """
    for seed in range(worlds):
        rng = random.Random(seed)
        rows = rows_of(rng, 6)
        for (name, unit, neighbors), (dataset, plan) in plans.items():
            one = exact(plan, dataset, rows)
            assert exact(plan, dataset, rng.sample(rows, len(rows))) == one, (name, seed)
            person = rng.randrange(6)
            other = [row for row in rows if row["pid"] != person]
            if unit == "row":
                other = [*rows[:-1], {**rows[-1], "x": 77, "g": "B", "t": "new"}]
            elif neighbors == "replace":
                other += [{**row, "pid": person} for row in rows_of(rng, 2)]
            for found in moved(plan, one, exact(plan, dataset, other)):
                if found.broken:
                    yield f"{name} {seed} {unit}: {found}"


def test_no_neighbour_is_further_than_declared(
    plans: dict[tuple[str, ...], tuple[so.Dataset, Plan]],
) -> None:
    assert list(replayed(plans, 4)) == []


@pytest.mark.parametrize("forgotten", ["ROW_NUMBER", "DENSE_RANK"])
def test_values_or_groups_that_are_not_chosen_are_noticed(
    forgotten: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    true = statement._rank
    kept = exp.Literal.number(1)

    def rank(function: str, *a: Any, **options: Any) -> Any:
        return kept.copy() if function == forgotten else true(function, *a, **options)

    monkeypatch.setattr(statement, "_rank", rank)
    dataset = declared("pid")
    plan = planned("SELECT g, COUNT(DISTINCT x) AS n FROM data GROUP BY g", dataset)
    assert any(
        "Moved(" in found
        for found in replayed({("by group", "pid", "add_remove"): (dataset, plan)}, 20)
    )


def test_the_bound_is_reached() -> None:
    """A person with two values of its own in each of two groups moves both counts by two."""
    dataset = declared("pid")
    plan = planned("SELECT g, COUNT(DISTINCT x) AS n FROM data GROUP BY g", dataset)
    rows = [{"pid": 1, "x": x, "y": None, "t": None, "g": g} for x in range(5) for g in "ABC"]
    (one, _, *_) = (
        found.tightness
        for found in moved(plan, exact(plan, dataset, rows), exact(plan, dataset, []))
    )
    assert one == 1


def test_both_zeros_are_one_value_in_any_order() -> None:
    """-0.0 equals 0.0 but is written otherwise: by its hash another value would be chosen,
    or not, as rows happen to lie.
    """

    def chosen(value: float) -> str:
        return hashlib.md5(f"1|{value}".encode()).hexdigest()

    one, other = sorted((chosen(0.0), chosen(-0.0)))
    between = next(float(i) for i in range(1, 1000) if one < chosen(float(i)) < other)
    counts = []
    for zeros in ([0.0, -0.0], [-0.0, 0.0]):
        table = pa.table({"pid": [1, 1, 1, 2], "y": [*zeros, between, between]})
        columns = {"y": {"type": "float"}}
        dataset = so.Dataset(
            table,
            unit="pid",
            max_rows_per_group=1,
            columns=columns,
            budget={"epsilon": 1, "delta": 0.01},
        )
        plan = planned("SELECT COUNT(DISTINCT y) AS n FROM data", dataset)
        counts.append([own.tolist() for own in exact_sums(plan, dataset).vectors.values()])
    assert counts[0] == counts[1]


def test_which_values_count_is_a_hash_of_person_and_value() -> None:
    rng = random.Random(3)
    rows: list[Row] = [
        {
            "pid": rng.randrange(9),
            "x": rng.randrange(40),
            "y": None,
            "t": None,
            "g": rng.choice("ABCD"),
        }
        for _ in range(300)
    ]
    dataset = declared("pid")
    plan = planned("SELECT g, COUNT(DISTINCT x) AS n FROM data GROUP BY g", dataset)
    own: dict[int, dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
    for row in rows:
        own[row["pid"]][1 + "ABCD".index(row["g"])].add(row["x"])

    def place(*parts: Any) -> str:
        return hashlib.md5("|".join(map(str, parts)).encode()).hexdigest()

    wanted: dict[int, set[int]] = defaultdict(set)
    for pid, groups in own.items():
        for g in sorted(groups, key=lambda g: place(pid, g))[:2]:
            wanted[g] |= set(sorted(groups[g], key=lambda x: place(pid, x))[:2])
    assert exact(plan, dataset, rows).vectors["s0"] == {
        (g,): (len(values),) for g, values in wanted.items()
    }


def test_persons_and_values_in_one_question() -> None:
    rows = [{"pid": i % 50, "x": i % 10, "y": None, "t": None, "g": "A"} for i in range(100)]
    data = so.Dataset(
        table(rows),
        name="data",
        unit="pid",
        max_rows_per_group=2,
        max_groups=1,
        columns=COLUMNS,
        budget={"epsilon": 1000},
    )
    with so.Session(data) as session:
        sql = (
            "SELECT COUNT(DISTINCT pid) AS persons, COUNT(DISTINCT x) AS v, COUNT(*) AS n FROM data"
        )
        answer = session.sql(sql, epsilon=900)
        again = session.table("data").agg(v=so.count_distinct("x").where("x < 5")).run(epsilon=90)
    assert (answer.value("persons"), answer.value("v"), answer.value("n")) == (50, 10, 100)
    assert again.value() == 5


def test_bounds_are_needed() -> None:
    data = so.Dataset(table([]), name="data", unit="pid", columns=COLUMNS, budget={"epsilon": 1})
    with pytest.raises(so.errors.InvalidInput, match="max_rows"):
        planned("SELECT COUNT(DISTINCT x) FROM data", data)
    planned("SELECT COUNT(DISTINCT pid) FROM data", data)

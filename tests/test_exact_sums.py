"""Sums are of whole numbers: the same in every order of rows and for any number of threads, and never moved by
rounding.

Float sums are not: on these tables, adding one row to a float sum can move it by far more than the row. Source of the
attacks: Casacuberta, Shoemate, Vadhan, Wagaman, "Widespread underestimation of sensitivity" (CCS 2022).
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from engine_reference import Bench, reference
from sordino.accounting.filters import TwoMeterFilter
from sordino.audit.replayed.distances import Exactly, moved
from sordino.plan.cost import Cost
from sordino.plan.plan import Plan, make_plan
from sordino.plan.sensitivity import WEIGHT
from sordino.query.dataset import Dataset, Table
from sordino.query.front.sql import parse

BIG = 2**53
TABLES: dict[str, tuple[Sequence[float], dict[str, Any]]] = {
    "a large one, then ones": ([float(BIG), *[1.0] * 60], {"min": 0, "max": BIG, "step": 8192}),
    "ones, then a large one": ([*[1.0] * 60, float(BIG)], {"min": 0, "max": BIG, "step": 8192}),
    "signs take turns": (
        [s * x for x in (2.0**52, 1.0) for _ in range(20) for s in (1, -1)],
        {"min": -(2**52), "max": 2**52, "step": 4096},
    ),
    "just above a power of two": ([2.0**40 + 2.0**-12] * 33, {"min": 0, "max": 2**41, "step": 2}),
    "rounding at every step": (
        [0.1, 0.2, 0.3, 1e15, -1e15, 0.1] * 8,
        {"min": -(10**15), "max": 10**15, "step": 1000},
    ),
    "huge and infinite": (
        [1e308, 1e308, -1e308, math.inf, -math.inf, math.nan, 5e-324] * 5,
        {"min": -(10**6), "max": 10**6},
    ),
    "fine steps": ([i / 97 for i in range(80)], {"min": 0, "max": 1}),
}


@cache
def bench(threads: int) -> Bench:
    return Bench(threads)


def declared(
    table: pa.Table, unit: str, y: dict[str, Any], neighbors: str = "add_remove"
) -> Dataset:
    bounds: dict[str, Any] = {} if unit == "row" else {"max_rows_per_group": 5, "max_groups": 2}
    columns = {
        "y": {"type": "float", **y},
        "x": {"type": "int", "min": -(2**52), "max": 2**52},
        "c": {"type": "category", "values": ["A", "B", "C"]},
    }
    return Dataset(
        table,
        unit=unit,
        neighbors=neighbors,
        columns=columns,
        budget={"epsilon": 100, "delta": 1e-6},
        **bounds,
    )


DECLARED: dict[int, tuple[Plan, Table]] = {}
"""The declared table of each plan; plans are kept, so that no two have one number."""


def planned(text: str, dataset: Dataset, family: Any = "laplace") -> Plan:
    assert dataset.budget is not None
    plan = make_plan(
        parse(text),
        dataset,
        Cost.offered(epsilon=1, mechanism=family),
        TwoMeterFilter(dataset.budget, Fraction(0)),
    )
    DECLARED[id(plan)] = plan, dataset.tables["data"]
    return plan


def table_of(values: Sequence[float]) -> pa.Table:
    whole = [int(v) if math.isfinite(v) and abs(v) < 2**62 else None for v in values]
    count = len(values)
    return pa.table(
        {
            "y": pa.array(values, pa.float64()),
            "x": pa.array(whole, pa.int64()),
            "c": ["ABC"[i % 3] for i in range(count)],
            "id": pa.array([i // 4 for i in range(count)], pa.int64()),
        }
    )


def run(plan: Plan, table: pa.Table, threads: int = 1) -> Exactly:
    bench(threads).load({"data": DECLARED[id(plan)][1]}, {"data": table})
    return bench(threads).run(plan)


SUMS = "SELECT SUM(y) AS a, AVG(y) AS m, VAR_POP(x) AS v, SUM(x * 3 - 1) AS b FROM data"


@pytest.mark.parametrize("name", TABLES)
def test_removing_any_row_moves_the_sum_by_no_more_than_the_bound(name: str) -> None:
    values, limits = TABLES[name]
    for neighbors, unit in (("add_remove", "row"), ("replace", "row"), ("add_remove", "id")):
        dataset = declared(table_of(values), unit, limits, neighbors)
        plan = planned(
            "SELECT SUM(y) AS a, SUM(x) AS b FROM data WHERE x >= -4503599627370496 OR x IS NULL",
            dataset,
        )
        whole = run(plan, table_of(values))
        assert whole == reference(plan, dataset, table_of(values).to_pylist(), {})
        table, printed = table_of(values), bench(1).printed(plan)
        for i in range(0, min(len(values), 25), 2 if unit == "row" else 4):
            if unit == "id":
                fewer = pa.concat_tables([table.slice(0, i), table.slice(i + 4)])
            elif neighbors == "replace":
                fewer = pa.concat_tables(
                    [table.slice(0, i), table_of([-values[i]]), table.slice(i + 1)]
                )
            else:
                fewer = pa.concat_tables([table.slice(0, i), table.slice(i + 1)])
            bench(1).load(dataset.tables, {"data": fewer})
            changed = bench(1).run(plan, printed)
            assert [m for m in moved(plan, whole, changed) if m.tightness > 1] == []


@pytest.mark.parametrize("family", ["laplace", "gaussian"])
def test_large_shares_are_scaled_to_the_bound_and_not_beyond(family: str) -> None:
    """Shares beyond 2^20 are weighed in coarse units, rounded up; rounded down, these would get a weight that is too
    large.

    Each person has two groups, of which one counts: the whole bound in one, and in the other just so much that a
    weight of `weight` would be too large. No two persons share a group, so that one run shows how far each of them
    moves the sums.
    """
    most, rows = 2**44, []
    for weight in range(47_000, 65_000, 61):
        room = WEIGHT * most // weight  # the largest norm with this weight
        rest = room - most if family == "laplace" else math.isqrt(room**2 - most**2)
        rows += [(weight, most, f"A{weight}"), (weight, rest + 1, f"B{weight}")]
    persons, values, groups = (list(column) for column in zip(*rows, strict=True))
    table = pa.table({"id": persons, "x": values, "c": groups})
    columns: dict[str, dict[str, Any]] = {
        "x": {"type": "int", "min": 0, "max": most},
        "c": {"type": "category", "values": groups},
    }
    dataset = Dataset(
        table,
        unit="id",
        max_rows_per_group=1,
        max_groups=1,
        columns=columns,
        budget={"epsilon": 100, "delta": 1e-6},
    )
    plan = planned("SELECT c, SUM(x) AS s FROM data GROUP BY c", dataset, family)
    (sums,), reached = run(plan, table).vectors.values(), 0.0
    for first, second in zip(groups[::2], groups[1::2], strict=True):
        alone = Exactly({"s0": {(group,): sums[(group,)] for group in (first, second)}}, {}, None)
        for distance in moved(plan, alone, Exactly({"s0": {}}, {}, None)):
            assert not distance.broken, (first, distance)
            reached = max(reached, distance.tightness)
    assert reached > 0.999


@pytest.mark.parametrize("name", TABLES)
def test_order_does_not_matter(name: str) -> None:
    values, limits = TABLES[name]
    dataset = declared(table_of(values), "id", limits)
    plan = planned(SUMS.replace(" FROM", ", c FROM") + " GROUP BY c", dataset, "gaussian")
    table = table_of(values)
    expected = reference(plan, dataset, table.to_pylist(), {})
    rng = random.Random(name)
    for _ in range(4):
        order = rng.sample(range(len(values)), len(values))
        assert run(plan, table.take(pa.array(order))) == expected


def test_float_sums_would_depend_on_the_order() -> None:
    """The tables are hard: their float sums do change, so that the tests above can fail."""
    changed = 0
    for values, _ in TABLES.values():
        finite = [v for v in values if math.isfinite(v) and abs(v) < 1e300]
        changed += (
            len(
                {
                    sum(order)
                    for order in (finite, finite[::-1], sorted(finite), sorted(finite, key=abs))
                }
            )
            > 1
        )
    assert changed >= 4


def test_threads_do_not_matter() -> None:
    """Enough rows for several threads, in pieces; whole numbers of the naive kind by numpy."""
    rng = np.random.default_rng(5)
    count = 300_000
    y = rng.choice([2.0**40, -(2.0**40), 1.0, 0.1, 1e300, math.nan], count)
    x = rng.integers(-(2**52), 2**52, count)
    persons, groups = rng.integers(0, 60_000, count), rng.integers(0, 3, count)
    table = pa.table({"y": y, "x": x, "c": np.array(["A", "B", "C"])[groups], "id": persons})
    table = pa.concat_tables([table.slice(start, 20_000) for start in range(0, count, 20_000)])
    limits = {"min": -(2**40), "max": 2**40, "step": 2}
    for unit, text in (("row", SUMS), ("id", SUMS.replace(" FROM", ", c FROM") + " GROUP BY c")):
        plan = planned(text, declared(table, unit, limits), "gaussian")
        shuffled = table.take(pa.array(rng.permutation(count)))
        results = [
            run(plan, table, 1),
            run(plan, table, 2),
            run(plan, table, 4),
            run(plan, shuffled, 4),
        ]
        assert all(result == results[0] for result in results)
        if unit == "row":
            steps = np.floor(np.clip(y[~np.isnan(y)], -(2.0**40), 2.0**40) / 2 + 0.5).astype(
                np.int64
            )
            both = next(
                results[0].vectors[release.name]
                for release in plan.sums
                if release.partial.width == 2
            )
            total = sum(map(int, steps))
            assert both[()] == (2**39 * len(steps) - total, total + 2**39 * len(steps))

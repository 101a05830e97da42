"""Neighbours of a dataset of several tables: one person leaves, or is replaced, in all of them at once."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import sordino as so
from sordino.audit.inputs.neighbors import check
from sordino.audit.inputs.rows import owners, stored_rows
from sordino.audit.replayed.query_replay import neighbourhood
from sordino.engines.duckdb import DuckDB

AMOUNT = {"type": "int", "min": 0, "max": 9}


def shop(neighbors: str = "add_remove", **rows: Any) -> so.Dataset:
    frames: dict[str, Any] = {
        "customers": {"id": [1, 2, 3, None]},
        "orders": {"id": ["a", "b", "c", "d", "e"], "customer": [1, 1, 2, 9, None]},
        "lines": {
            "order_id": ["a", "a", "b", "c", "d", "e", "f", None],
            "amount": [1, 2, 3, 4, 5, 6, 7, 8],
        },
        "staff": {"id": [1, 2], "amount": [3, 4]},
    } | rows
    sources = {name: {"source": pa.table(frame)} for name, frame in frames.items()}
    said: dict[str, dict[str, Any]] = {
        "customers": {"unit": "id", "persons": "customer", "neighbors": neighbors},
        "orders": {"unit": "customer", "neighbors": neighbors},
        "lines": {"via": {"order_id": "orders.id"}, "columns": {"amount": AMOUNT}},
        "staff": {"unit": "id", "columns": {"amount": AMOUNT}, "neighbors": neighbors},
    }
    return so.Dataset(
        tables={name: sources[name] | said[name] for name in said}, budget={"epsilon": 1}
    )


def rows(dataset: so.Dataset, table: str) -> list[tuple[Any, ...]]:
    return list(zip(*stored_rows(dataset.tables[table]).to_pydict().values(), strict=True))


def test_every_row_has_its_owner_or_nobody() -> None:
    dataset = shop()
    found = owners(
        dataset.tables.values(),
        {name: stored_rows(table) for name, table in dataset.tables.items()},
    )
    one, two, nine = (("customer", (i,)) for i in (1, 2, 9))
    assert found["lines"] == [one, one, one, two, nine, None, None, None]
    assert found["orders"] == [one, one, two, nine, None]
    assert found["customers"] == [one, two, ("customer", (3,)), None]
    assert found["staff"] == [("id", (1,)), ("id", (2,))]


def test_a_person_who_leaves_takes_all_rows_along() -> None:
    dataset = shop()
    around = neighbourhood(dataset, dataset.tables["orders"], 10)
    assert around.persons == 3
    label, without = next(iter(around.members.items()))
    assert label == "without a person with 2 rows"
    assert rows(without, "customers") == [(2,), (3,), (None,)]
    assert rows(without, "orders") == [("c", 2), ("d", 9), ("e", None)]
    assert [amount for _, amount in rows(without, "lines")] == [4, 5, 6, 7, 8]
    assert rows(without, "staff") == rows(dataset, "staff")
    through = neighbourhood(dataset, dataset.tables["lines"], 10)
    assert rows(through.members["without a person with 3 rows"], "orders") == rows(
        without, "orders"
    )


@pytest.mark.parametrize("neighbors", ["add_remove", "replace"])
@pytest.mark.parametrize("table", ["customers", "orders", "lines", "staff"])
def test_all_are_neighbours_and_pass_the_gate(neighbors: str, table: str) -> None:
    dataset = shop(neighbors)
    around = neighbourhood(dataset, dataset.tables[table], 10)
    assert len(around.members) == around.persons > 1
    changed = 0
    for other in around.members.values():
        if all(
            sorted(map(repr, rows(other, name))) == sorted(map(repr, rows(dataset, name)))
            for name in dataset.tables
        ):
            continue
        changed += 1
        assert check(dataset, other, None).ok
        DuckDB(other.tables.values()).close()
    assert changed > 0


def test_lines_of_two_persons_make_no_neighbours() -> None:
    lines = {
        "order_id": ["a", "a", "b", "c", "d", "e", "f", None],
        "amount": [1, 2, 3, 4, 5, 6, 7, 8],
    }
    one = {**lines, "amount": [1, 2, 0, 4, 5, 6, 7, 8]}
    two = {**lines, "amount": [1, 2, 0, 0, 5, 6, 7, 8]}
    orphan = {**lines, "amount": [1, 2, 0, 4, 5, 0, 0, 0]}
    assert check(shop("replace"), shop("replace", lines=one), None).ok
    assert check(shop("replace"), shop("replace", lines=orphan), None).ok
    assert not check(shop("replace"), shop("replace", lines=two), None).ok
    moved = {**lines, "order_id": ["b", "a", "b", "c", "d", "e", "f", None]}
    assert check(shop("replace"), shop("replace", lines=moved), None).ok
    assert not check(shop(), shop(lines=moved), None).ok

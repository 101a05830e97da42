"""Conditions and lookups stand early, and what is found stays the same:
beside relations in the order they were asked in.
"""

from __future__ import annotations

import itertools
import random
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest

from engine_reference import Bench
from plan.shop import planned
from sordino.plan import bind
from sordino.plan.plan import Plan
from sordino.plan.relations import Filter, Join, Lookup, Relation, Scan
from sordino.query.dataset import Dataset
from sordino.query.front.sql import parse


def whole(most: int) -> dict[str, Any]:
    return {"type": "int", "min": 0, "max": most}


def chain(rng: random.Random) -> Dataset:
    """Persons, their orders and lines, and public tables of which one leads to the next;
    keys and cells may be missing.
    """

    def cells(count: int, most: int, missing: float = 0.2) -> pa.Array:
        drawn = [None if rng.random() < missing else rng.randint(-1, most) for _ in range(count)]
        return pa.array(drawn, pa.int64())

    tables: dict[str, Any] = {
        "people": {"source": pa.table({"id": range(12), "nation": cells(12, 4), "x": cells(12, 9)}), "unit": "id",
                   "persons": "person", "columns": {"nation": whole(4), "x": whole(9)}},
        "orders": {"source": pa.table({"id": cells(30, 13), "o": range(30), "y": cells(30, 9)}), "unit": "id",
                   "persons": "person", "columns": {"y": whole(9)}},
        "lines": {"source": pa.table({"o": cells(60, 33), "part": cells(60, 6), "z": cells(60, 9)}),
                  "via": {"o": "orders.o"}, "columns": {"part": whole(6), "z": whole(9)}},
        "parts": {"source": pa.table({"part": [0, 1, 2, 3, 3], "nation": cells(5, 4), "size": cells(5, 3)}),
                  "public": True, "key": ["part"], "columns": {"part": whole(6), "nation": whole(4), "size": whole(3)}},
        "nations": {"source": pa.table({"nation": [0, 1, 2, 3], "region": cells(4, 2), "rank": cells(4, 3)}),
                    "public": True, "key": ["nation"],
                    "columns": {"nation": whole(4), "region": whole(2), "rank": whole(3)}},
        "regions": {"source": pa.table({"region": [0, 1], "size": cells(2, 3)}), "public": True, "key": ["region"],
                    "columns": {"region": whole(2), "size": whole(3)}},
    }  # fmt: skip
    for name in ("people", "orders", "lines"):
        tables[name] |= {"max_rows": 3, "max_groups": 2}
    return Dataset(tables=tables, budget={"epsilon": 100, "delta": 0.01})


PARTS = (
    "l.z < 7",
    "p.x > 2",
    "o.y <> 5",
    "parts.size = 1",
    "n.rank <= 2",
    "m.rank > 0",
    "regions.size IN (0, 2)",
)
MARKS = ("p.id IN (SELECT id FROM orders WHERE y > 3)", "l.o IN (SELECT o FROM orders WHERE y < 5)")
EITHER = (
    "parts.size = 1 AND n.rank = 1 OR parts.size = 2 AND n.rank = 2",
    "p.x < 2 OR l.z < 2 AND p.x > 5",
)


def questions(rng: random.Random) -> str:
    """Lines of persons' orders beside public tables, in any order of conditions; the joins are inner or left."""
    kinds = [rng.choice(["JOIN", "LEFT JOIN"]) for _ in range(6)]
    source = (
        f"people AS p {kinds[0]} orders AS o ON p.id = o.id {kinds[1]} lines AS l ON o.o = l.o "
        f"{kinds[2]} parts ON l.part = parts.part {kinds[3]} nations AS n ON parts.nation = n.nation "
        f"{kinds[4]} regions ON n.region = regions.region {kinds[5]} nations AS m ON p.nation = m.nation"
    )
    asked = [*PARTS, *EITHER, *(f"{rng.choice(['', 'NOT '])}({mark})" for mark in MARKS)]
    where = " AND ".join(f"({one})" for one in rng.sample(asked, rng.randint(1, 4)))
    return (
        f"SELECT COUNT(*) AS n, SUM(l.z + p.x) AS s, SUM(m.rank) AS r FROM {source} WHERE {where}"
    )


def exact(bench: Bench, dataset: Dataset, plan: Plan) -> Any:
    bench.load(dataset.tables, {name: table.source.frame for name, table in dataset.tables.items()})
    return [(found.keys, found.sums.tolist()) for found in map(bench.engine.run, plan.statements)]


def test_the_numbers_are_those_of_the_order_that_was_asked() -> None:
    rng, bench, changed, shown = random.Random(5), Bench(), 0, 0
    for _ in range(20):
        dataset, text = chain(rng), questions(rng)
        as_written = planned(text, dataset)
        with patch.object(bind, "pushed_down", lambda relation: relation):
            as_asked = planned(text, dataset)
        found, expected = exact(bench, dataset, as_written), exact(bench, dataset, as_asked)
        assert found == expected, text
        changed += [one.text() for one in as_written.statements] != [
            one.text() for one in as_asked.statements
        ]
        shown += any(any(row) for _, sums in found for row in sums)
    assert changed >= 17
    assert shown >= 7


def nodes(relation: Relation) -> list[Relation]:
    """A relation and those that it is made of."""
    match relation:
        case Filter(rows):
            below = [rows]
        case Lookup(rows, public):
            below = [rows, public]
        case Join(left, right):
            below = [left, right]
        case _:
            below = []
    return [relation, *itertools.chain.from_iterable(map(nodes, below))]


def asked(text: str) -> Relation:
    return bind.ask(parse(text), chain(random.Random(1))).relation


def test_public_rows_are_filtered_before_the_persons_rows_find_them() -> None:
    """A condition at the end of a chain of public tables drops lines before these meet their orders."""
    relation = asked(
        "SELECT COUNT(*) AS n FROM people AS p JOIN orders AS o ON p.id = o.id JOIN lines AS l ON o.o = l.o "
        "JOIN parts ON l.part = parts.part JOIN nations AS n ON parts.nation = n.nation "
        "JOIN regions ON n.region = regions.region WHERE regions.size = 1 AND p.x > 3"
    )
    assert isinstance(relation, Join)
    assert isinstance(relation.left, Join)
    assert isinstance(relation.left.left, Filter)
    (filters,) = [one for one in nodes(relation.right) if isinstance(one, Filter)]
    assert isinstance(filters.rows, Scan)
    assert filters.rows.table.name == "regions"
    chained = next(one for one in nodes(relation.right) if isinstance(one, Lookup))
    assert isinstance(chained.rows, Scan)
    assert chained.rows.table.name == "lines"


@pytest.mark.parametrize(("condition", "kind"), [("", "semi"), ("NOT ", "anti")])
def test_a_mark_that_decides_is_never_grouped(condition: str, kind: str) -> None:
    relation = asked(
        f"SELECT COUNT(*) AS n FROM people WHERE {condition}(id IN (SELECT id FROM orders WHERE y > 3))"
    )
    assert isinstance(relation, Join)
    assert relation.kind == kind

"""Random worlds behind real sources, made to mislead: the engine must find what the naive one finds in plain rows.

The files have collations, columns of every forbidden type beside the declared ones, extreme cells there, other
spellings of the names, another order of columns, folders named like columns and like patterns, and views beside the
tables.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine_reference import named_only, reference
from first_of import first_of
from query_cases import Questions, World, neighbor, random_rows, random_world
from sordino.accounting.filters import TwoMeterFilter
from sordino.audit.replayed.distances import Exactly, exactly, moved
from sordino.engines.duckdb import DuckDB
from sordino.errors import InvalidInput
from sordino.plan.cost import Cost
from sordino.plan.plan import Plan, make_plan
from sordino.query.dataset import Dataset, Source
from sordino.release import exact_groups

JUNK = {
    "far": pa.array([-(2**31), 2**31 - 1], pa.int32()).cast(pa.date32()),
    "nested": pa.array([{"id": "x"}, None]),
    "listed": pa.array([[1, None], None]),
    "blob": pa.array([b"\xff", None]),
    "nan": pa.array([float("nan"), -0.0]),
}


def misleading(table: pa.Table, rng: random.Random) -> pa.Table:
    """The same rows with other spellings, another order, and columns that nobody declared."""
    columns = {rng.choice([name, name.upper()]): table.column(name) for name in table.column_names}
    for name, cells in JUNK.items():
        if len(table):
            columns[name] = cells.take(pa.array([rng.randrange(2) for _ in range(len(table))]))
    names = list(columns)
    rng.shuffle(names)
    return pa.table({name: columns[name] for name in names})


def parquet(table: pa.Table, folder: Path, rng: random.Random) -> Source:
    path = folder / "data.parquet"
    pq.write_table(
        table, path, row_group_size=rng.choice([1, 7, 1000]), use_dictionary=rng.random() < 0.5
    )
    return Source("parquet", path)


def database(table: pa.Table, folder: Path, rng: random.Random) -> Source:
    path, collation = (
        folder / "data.duckdb",
        rng.choice(["NOCASE", "NOACCENT", "NOCASE.NOACCENT", '"binary"']),
    )
    with duckdb.connect(str(path)) as connection:
        connection.register("frame", table)
        described = connection.execute("DESCRIBE frame").fetchall()
        columns = [
            f'"{name}" {kind}' + (f" COLLATE {collation}" if kind == "VARCHAR" else "")
            for name, kind, *_ in described
        ]
        columns += [
            "made INTEGER GENERATED ALWAYS AS (CAST('7' AS INTEGER))",
            "either UNION(a INTEGER, b VARCHAR)",
        ]
        connection.execute(f"CREATE TABLE DATA ({', '.join(columns)})")
        names = ", ".join(f'"{row[0]}"' for row in described)
        connection.execute(f"INSERT INTO DATA ({names}) SELECT {names} FROM frame")
        connection.execute("CREATE VIEW data_of_all AS SELECT * FROM DATA")
        connection.execute("CREATE SCHEMA other; CREATE VIEW other.data AS SELECT 1 AS id")
    return Source("duckdb", path, "data")


def frame(table: pa.Table, folder: Path, rng: random.Random) -> Source:
    return Source("frame", frame=table)


SOURCES = {"parquet": parquet, "duckdb": database, "arrow": frame}


def behind(kind: str, world: World, rows: Any, folder: Path, rng: random.Random) -> Dataset:
    """The declaration over rows in a misleading source."""
    folder.mkdir(parents=True)
    plain = world.dataset(world.table(rows))
    source = SOURCES[kind](misleading(world.table(rows), rng), folder, rng)
    tables = {**plain.tables, "data": replace(plain.tables["data"], source=source)}
    assert plain.budget is not None
    return Dataset(tables=tables, budget=plain.budget, reserved_delta=plain.reserved_delta)


def sums(dataset: Dataset, plan: Plan) -> Exactly:
    engine = DuckDB(dataset.tables.values(), threads=1)
    try:
        return exactly(exact_groups(plan, [engine.run(statement) for statement in plan.statements]))
    finally:
        engine.close()


@pytest.mark.parametrize("kind", SOURCES)
@pytest.mark.parametrize("seed", first_of(2, range(6)))
def test_misleading_sources_give_the_sums_of_plain_rows(
    kind: str, seed: int, tmp_path: Path
) -> None:
    rng = random.Random(1000 * seed + list(SOURCES).index(kind))
    world = random_world(rng)
    rows = random_rows(rng, world)
    tables: list[Any] = [rows, neighbor(rng, world, rows)]
    datasets = [
        behind(kind, world, own, tmp_path / "id=7" / f"x=[{i}]*" / "T=oslo", rng)
        for i, own in enumerate(tables)
    ]
    raw = [world.table(own).to_pylist() for own in tables]
    public: Mapping[str, Any] = {"wards": datasets[0].tables["wards"].source.frame.to_pylist()}
    questions, made = Questions(rng, world), 0
    while made < 4:
        try:
            plan = planned(questions.one(), datasets[0], rng.choice(["laplace", "gaussian"]))
        except InvalidInput:
            continue
        made += 1
        found = [sums(dataset, plan) for dataset in datasets]
        for own, cells in zip(found, raw, strict=True):
            assert named_only(plan, own) == reference(plan, datasets[0], cells, public), plan.query
        assert [str(distance) for distance in moved(plan, *found) if distance.tightness > 1] == []


def planned(query: Any, dataset: Dataset, family: Any) -> Plan:
    assert dataset.budget is not None
    meter = TwoMeterFilter(dataset.budget, dataset.reserved_delta or 0)  # type: ignore[arg-type]
    return make_plan(query, dataset, Cost.offered(epsilon=1, mechanism=family), meter)

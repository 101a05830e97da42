"""The gate for data: each way in which a source, a name or a type once made the engine
see other persons than the proof.
"""

from __future__ import annotations

import copy
import gzip
import os
import random
import sqlite3
import stat
import subprocess
import sys
import textwrap
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date, datetime
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sordino as so
from engine_plug import Plug
from engines.csv_quotes import QUOTES
from first_of import first_of
from sordino.engines.duckdb import DuckDB, scratch, sources
from sordino.engines.duckdb import engine as database
from sordino.engines.duckdb.schema import tables_of
from sordino.engines.duckdb.sources import one_file
from sordino.errors import InvalidDeclaration, InvalidInput
from sordino.plan.statement import Statement
from sordino.query.tree import Aggregate, Call, Column, Expression, Literal, Output, Query, Table

AGE: dict[str, Any] = {"type": "int", "min": 0, "max": 100}


def declared(source: Any, columns: dict[str, Any] | None = None, **options: Any) -> so.Dataset:
    bounds = {"unit": "id", "max_rows_per_group": 2, "max_groups": 1, **options}
    if bounds["unit"] == "row":
        bounds = {k: v for k, v in bounds.items() if not k.startswith("max_")}
    chosen = {"age": AGE} if columns is None else columns
    return so.Dataset(source, name="data", columns=chosen, budget=so.Budget(10**6, 0.1), **bounds)


def exact(dataset: so.Dataset, sql: str | Query = "SELECT COUNT(*) AS n FROM data") -> Any:
    plug = Plug()
    with so.Session(dataset, engine=plug) as session:
        groups = plug.exact_groups(session.preview(sql, epsilon=1))
        return (
            groups.keys,
            [vector.tolist() for vector in groups.vectors.values()],
            [[(c.tolist(), w.tolist()) for c, w in column] for column in groups.cells.values()],
        )


def parquet(table: pa.Table, folder: Path) -> Any:
    pq.write_table(table, folder / "data.parquet")
    return folder / "data.parquet"


def csv(table: pa.Table, folder: Path) -> Any:
    table.to_pandas().to_csv(folder / "data.csv", index=False)
    return folder / "data.csv"


def database_file(table: pa.Table, folder: Path) -> Any:
    path = folder / "data.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.register("frame", table)
        connection.execute("CREATE TABLE data AS SELECT * FROM frame")
    return path


SOURCES: dict[str, Callable[[pa.Table, Path], Any]] = {
    "arrow": lambda table, _: table,
    "pandas": lambda table, _: table.to_pandas(),
    "polars": lambda table, _: pl.from_arrow(table),
    "parquet": parquet,
    "csv": csv,
    "duckdb": database_file,
}


# names


@pytest.mark.parametrize("kind", ["arrow", "pandas", "polars", "parquet", "csv"])
@pytest.mark.parametrize(
    "twins", [("id", "ID"), ("age", "Age"), ("straße", "STRASSE"), ("ÄGE", "äge")]
)
def test_columns_that_differ_only_in_case_are_refused(
    kind: str, twins: tuple[str, str], tmp_path: Path
) -> None:
    """A person with 1,000 rows under `ID` was counted by the row number under `id`."""
    rows = {twins[0]: list(range(1000)), twins[1]: [7] * 1000, "x": [1] * 1000}
    source = SOURCES[kind](pa.table(rows), tmp_path)
    with pytest.raises(InvalidDeclaration, match="one name but for case"):
        so.Session(declared(source, {"x": AGE}, unit=twins[1]))


COMPOSED, APART = "caf\u00e9", "cafe\u0301"


@pytest.mark.parametrize("kind", SOURCES)
@pytest.mark.parametrize("unit", [COMPOSED, APART.upper()])
def test_names_that_look_the_same_are_refused(kind: str, unit: str, tmp_path: Path) -> None:
    rows = {COMPOSED: [1] * 5, APART: list(range(5)), "age": [1] * 5}
    source = SOURCES[kind](pa.table(rows), tmp_path)
    with pytest.raises(InvalidDeclaration, match="one name but for case"):
        so.Session(declared(source, unit=unit))


@pytest.mark.parametrize("kind", SOURCES)
@pytest.mark.parametrize(("ours", "theirs"), [(COMPOSED, APART), (APART, COMPOSED)])
def test_names_are_found_however_they_are_composed(
    kind: str, ours: str, theirs: str, tmp_path: Path
) -> None:
    source = SOURCES[kind](pa.table({"id": [1, 1, 1, 2], theirs: [1, 2, 3, 4]}), tmp_path)
    data = declared(source, {ours: AGE})
    sql = f'SELECT COUNT(*) AS n FROM data WHERE "{theirs.upper()}" > 1'
    assert exact(data, sql)[1] == [[[3]]]
    (tmp_path / "own").mkdir()
    own = SOURCES[kind](pa.table({theirs: [1, 1, 1, 2], "age": [1, 2, 3, 4]}), tmp_path / "own")
    assert exact(declared(own, unit=ours))[1] == [[[3]]]


@pytest.mark.parametrize(("ours", "theirs"), [(COMPOSED, APART), (APART, COMPOSED)])
def test_names_in_questions_mean_one_thing_however_they_are_composed(
    ours: str, theirs: str
) -> None:
    """An item was not found under its own name, a key of GROUP BY was another column than the one selected."""
    frame = pa.table({"id": [1, 2, 3], theirs: [1, 2, 3], "x": [4, 5, 6]})
    bounds = {"type": "int", "min": 1, "max": 6}
    private = {"source": frame, "unit": "id", "max_rows": 1, "columns": {ours: bounds, "x": bounds}}
    dataset = so.Dataset(tables={ours: private}, budget=so.Budget(10**6, 0.1))
    with so.Session(dataset) as session:
        for answered in (
            f'SELECT "{ours}", COUNT(*) AS n FROM "{theirs}" GROUP BY "{theirs}"',
            f'SELECT SUM("{ours}"."{theirs}") AS n FROM "{theirs}"',
            f'SELECT SUM(q.y) AS n FROM (SELECT id, "{theirs}"."{ours}" AS y FROM "{ours}") q',
            f'SELECT x AS "{ours}", COUNT(*) AS n FROM "{ours}" GROUP BY x ORDER BY "{theirs}"',
            f'WITH "q{ours}" AS (SELECT id, x FROM "{ours}") SELECT SUM(x) AS n FROM "q{theirs}"',
        ):
            assert session.preview(answered, epsilon=1)
        for refused in (
            f'SELECT COUNT(*) AS "{ours}", SUM(x) AS "{theirs}" FROM "{ours}"',
            f'SELECT "{ours}" + 1 AS "{theirs}", COUNT(*) AS n FROM "{ours}" GROUP BY "{ours}"',
            f'SELECT SUM("{ours}") AS n FROM (SELECT id, x AS "{ours}", x AS "{theirs}" FROM "{ours}") q',
            f'WITH "q{ours}" AS (SELECT id FROM "{ours}"), "q{theirs}" AS (SELECT id FROM "{ours}") '
            f'SELECT COUNT(*) AS n FROM "q{ours}"',
        ):
            with pytest.raises(InvalidInput, match=r"twice|both a column|two columns"):
                session.preview(refused, epsilon=1)
        with pytest.raises(InvalidInput, match="given twice"):
            session.table(ours).agg(**{ours: so.count(), theirs: so.mean("x")}).preview(epsilon=1)


@pytest.mark.parametrize(("ours", "theirs"), [(COMPOSED, APART), (APART, COMPOSED)])
def test_tables_are_joined_by_names_however_they_are_composed(ours: str, theirs: str) -> None:
    one = {"type": "category", "values": [1, 2, 3]}
    many = {
        "a": {
            "source": pa.table({ours: [1, 2], "x": [1, 2]}),
            "unit": theirs,
            "max_rows": 1,
            "columns": {ours: one, "x": AGE},
        },
        "b": {
            "source": pa.table({theirs: [1, 2], "y": [3, 4]}),
            "unit": theirs,
            "max_rows": 1,
            "columns": {"y": AGE},
        },
        "lines": {
            "source": pa.table({theirs: [1, 1, 2], "z": [1, 2, 3]}),
            "via": {ours: f"a.{theirs}"},
            "max_rows": 2,
            "columns": {"z": AGE},
        },
        "known": {
            "source": pa.table({theirs: [1, 2], "f": [5, 6]}),
            "public": True,
            "key": [ours],
            "columns": {theirs: one, "f": AGE},
        },
    }
    dataset = so.Dataset(tables=many, budget=so.Budget(10**6, 0.1))
    tables = dataset.tables
    assert tables["a"].persons == tables["b"].persons == tables["lines"].persons
    assert tables["a"].person == ours  # as it is declared
    for sql, found in (
        (f'SELECT SUM(y) AS n FROM a JOIN b USING ("{ours}")', 7),
        (f'SELECT SUM(z) AS n FROM lines JOIN a ON lines."{ours}" = a."{theirs}"', 6),
        (f'SELECT SUM(f) AS n FROM a JOIN known USING ("{theirs}")', 11),
    ):
        with so.Session(dataset) as session:
            answer = session.sql(sql, epsilon=10**5, mechanism="laplace")
        assert round(answer.to_arrow()["n"][0].as_py()) == found


@pytest.mark.parametrize("kind", ["arrow", "pandas", "parquet"])
def test_a_column_that_is_there_twice_is_refused(kind: str, tmp_path: Path) -> None:
    table = pa.table([[1, 2], [3, 4]], names=["id", "id"])
    frame = pd.DataFrame([[1, 3], [2, 4]], columns=["id", "id"])
    source = frame if kind == "pandas" else SOURCES[kind](table, tmp_path)
    with pytest.raises(InvalidDeclaration, match="one name but for case"):
        so.Session(declared(source, {}))


@pytest.mark.parametrize("kind", SOURCES)
@pytest.mark.parametrize(
    ("named", "unit"),
    [
        ("ÄGE", "äge"),
        ("Id", "iD"),
        ("a b", "A B"),
        ('q"', 'Q"'),
        ("r1", "R1"),
        ("person", "Person"),
    ],
)
def test_names_are_found_without_regard_to_case(
    kind: str, named: str, unit: str, tmp_path: Path
) -> None:
    source = SOURCES[kind](
        pa.table({"other": [1, 2, 3, 4], named: [5, 5, 5, 6], "age": [1, 2, 3, 4]}), tmp_path
    )
    found = exact(
        declared(source, unit=unit),
        f'SELECT COUNT(*) AS n, COUNT(DISTINCT "{unit}") AS p FROM data'.replace(
            'q"', 'q""'
        ).replace('Q"', 'Q""'),
    )
    assert found[1] == [[[3]], [[2]]]


def test_names_that_only_sound_alike_are_not_the_same() -> None:
    with pytest.raises(InvalidDeclaration, match="no such column"):
        so.Session(declared(pa.table({"strasse": [1], "age": [1]}), unit="straße"))


@pytest.mark.parametrize(
    "other",
    [
        "frame of data",
        "frame 0",
        "file 0",
        "text 0",
        "shares",
        "spread",
        "cells",
        "lines",
        "gate",
        "main",
        "kinds",
    ],
)
def test_no_name_of_a_table_reaches_the_rows_of_another(other: str) -> None:
    """A public table called like a relation of the engine returned private rows, free."""
    private = so.Table.declare(
        pa.table({"id": [1, 1, 2], "age": [1, 2, 3]}),
        unit="id",
        columns={"age": AGE},
        max_rows_per_group=2,
        max_groups=1,
    )
    public = so.Table.declare(pa.table({"age": [50] * 7}), columns={"age": AGE}, public=True)
    dataset = so.Dataset(
        tables={"data": private, other: public}, budget={"epsilon": 100, "delta": 1e-6}
    )
    for name, count in (("data", 3), (other, 7)):
        query = Query(Table(name), (Output("n", Aggregate("count")),))
        assert exact(dataset, query)[1][0] == [[count]]


@pytest.mark.parametrize(
    "name",
    ["shares", "spread", "owned", "heavy", "light", "cells", "lines", "r", "gate", "u", "w0"],
)
def test_a_private_table_may_be_called_like_a_step_of_the_statement(name: str) -> None:
    table = pa.table({"id": [1, 1, 1, 2], "u": ["a", "b", "a", "b"], "age": [1, 2, 3, 4]})
    columns: dict[str, Any] = {"age": AGE, "u": {"type": "category", "values": ["a", "b"]}}
    wanted = exact(
        declared(table, columns), "SELECT u, COUNT(*) AS n, MEDIAN(age) AS m FROM data GROUP BY u"
    )
    own = so.Dataset(
        table,
        name=name,
        unit="id",
        max_rows_per_group=2,
        max_groups=1,
        columns=columns,
        budget=so.Budget(10**6, 0.1),
    )
    assert (
        exact(own, f'SELECT u, COUNT(*) AS n, MEDIAN(age) AS m FROM "{name}" GROUP BY u') == wanted
    )


@pytest.mark.parametrize("name", ["c0", "C0", "c1", "c0 of c0", "value"])
def test_a_long_list_beside_a_table_has_another_name(name: str) -> None:
    """A table called c0 with a column `value` failed after the charge:
    so was the list called that its values are in.
    """
    table = pa.table({"id": [1, 2, 3], "value": ["v1", "v2", "?"], "c0": [1, 2, 3]})
    listed = {"type": "category", "values": [f"v{i}" for i in range(100)]}
    columns: dict[str, Any] = {
        "value": listed,
        "c0": {"type": "category", "values": list(range(100))},
    }
    dataset = so.Dataset(
        table,
        name=name,
        unit="id",
        max_rows_per_group=1,
        max_groups=1,
        columns=columns,
        budget=so.Budget(10),
    )
    assert exact(dataset, f"SELECT COUNT(*) AS n FROM \"{name}\" WHERE value = 'v2' AND c0 = 2")[
        1
    ] == [[[1]]]


# views, generated columns, types of persons


def file_with(folder: Path, *statements: str) -> Path:
    path = folder / "data.duckdb"
    with duckdb.connect(str(path)) as connection:
        for statement in statements:
            connection.execute(statement)
    return path


def test_a_file_of_another_kind_has_nothing_loaded_for_it(tmp_path: Path) -> None:
    """DuckDB would load what reads SQLite, if it is installed: such a file changes by logs that nobody pins."""
    path = tmp_path / "visits.duckdb"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE visits (id INT, age INT)")
    other.close()
    dataset = declared(path, table="visits")
    connection = duckdb.connect(":memory:")
    with pytest.raises(duckdb.Error, match="not a valid DuckDB database file"):
        sources.enter(connection, dataset.tables["data"], 0)
    connection.close()
    with pytest.raises(InvalidDeclaration, match="cannot be read as duckdb"):
        so.Session(dataset)
    assert tables_of(path) is None


def _database_of(rows: int, folder: Path) -> bytes:
    path = file_with(
        folder, f"CREATE TABLE data AS SELECT range AS id, 1 AS age FROM range({rows})"
    )
    found = path.read_bytes()
    path.unlink()
    return found


def test_a_database_is_read_where_the_system_finds_it(tmp_path: Path) -> None:
    """DuckDB takes `..` away before it looks: after a link that is another folder, whose file was read unpinned."""
    (tmp_path / "x").mkdir()
    (tmp_path / "y" / "z").mkdir(parents=True)
    (tmp_path / "x" / "link").symlink_to(tmp_path / "y" / "z")
    (tmp_path / "x" / "data.duckdb").write_bytes(_database_of(40, tmp_path))
    (tmp_path / "y" / "data.duckdb").write_bytes(_database_of(7, tmp_path))
    found = exact(declared(tmp_path / "x" / "link" / ".." / "data.duckdb"))
    assert found[1] == [[[7]]]


@pytest.mark.skipif(os.name == "nt", reason="no such names there")
@pytest.mark.parametrize("kind", ["csv", "parquet", "duckdb"])
def test_a_backslash_in_a_path_is_refused(kind: str, tmp_path: Path) -> None:
    r"""For a database it is a / to DuckDB, which read a/b for a\\b; elsewhere it makes patterns mean other files."""
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a\\b").mkdir()
    SOURCES[kind](pa.table({"id": [1, 2, 3], "age": [1, 2, 3]}), tmp_path / "a" / "b")
    real = SOURCES[kind](pa.table({"id": [1], "age": [1]}), tmp_path)
    source = real.rename(tmp_path / "a\\b" / real.name)
    with pytest.raises(InvalidDeclaration, match="the engine would read another file"):
        so.Session(declared(source))
    if kind == "duckdb":
        with pytest.raises(InvalidDeclaration, match="the engine would read another file"):
            tables_of(source)


@pytest.mark.skipif(os.name == "nt", reason="no such names there")
def test_a_question_mark_in_the_path_of_a_database_is_refused(tmp_path: Path) -> None:
    """DuckDB puts the ending of a log before it: what is read from there was pinned by nobody, also behind a link."""
    folder = tmp_path / "q?z"
    folder.mkdir()
    (folder / "data.duckdb").write_bytes(_database_of(7, tmp_path))
    link = tmp_path / "link.duckdb"
    link.symlink_to(folder / "data.duckdb")
    for source in (folder / "data.duckdb", link):
        dataset = declared(link)
        table = dataset.tables["data"]
        placed = replace(table, source=replace(table.source, path=source))
        with pytest.raises(InvalidDeclaration, match="the engine would read another file"):
            so.Session(dataset.with_tables({"data": placed}))


def test_a_view_is_refused_and_told_how_to_be_copied(tmp_path: Path) -> None:
    """Its CAST failed on one person's cell after the charge, where a condition selected that person."""
    path = file_with(
        tmp_path,
        "CREATE TABLE raw AS SELECT 1 AS id, 'n/a' AS age",
        "CREATE VIEW data AS SELECT id, CAST(age AS INTEGER) AS age FROM raw",
    )
    with pytest.raises(
        InvalidDeclaration, match=r'is a view.*CREATE TABLE "data_copy" AS FROM "data"'
    ):
        so.Session(declared(path))


def test_a_missing_table_of_a_file_is_refused_with_those_that_it_has(tmp_path: Path) -> None:
    path = file_with(
        tmp_path,
        "CREATE TABLE visits (id INTEGER)",
        "CREATE SCHEMA s",
        "CREATE TABLE s.data (id INTEGER)",
    )
    with pytest.raises(InvalidDeclaration, match=r"no table 'data'.*visits"):
        so.Session(declared(path))


@pytest.mark.parametrize("twins", [("ÄGE", "äge"), ("\u212a", "k")])
def test_tables_of_a_file_are_told_apart_as_the_engine_does(
    twins: tuple[str, str], tmp_path: Path
) -> None:
    """Declared `äge` read the rows of `ÄGE`: DuckDB folds the case of A to Z only, and both can be there."""
    path = file_with(tmp_path, *(f'CREATE TABLE "{n}" AS SELECT i AS id, 1 AS age FROM range({k}) AS r(i)'
                                 for n, k in zip(twins, (3, 7), strict=True)))  # fmt: skip
    assert [exact(declared(path, table=name))[1] for name in twins] == [[[[3]]], [[[7]]]]
    file_with(tmp_path, "CREATE TABLE Visits AS SELECT 1 AS id, 1 AS age")
    assert exact(declared(path, table="vISITS"))[1] == [[[1]]]


def test_a_generated_column_is_refused(tmp_path: Path) -> None:
    path = file_with(
        tmp_path,
        "CREATE TABLE data (id INTEGER, s VARCHAR, age INTEGER GENERATED ALWAYS AS (CAST(s AS INTEGER)))",
        "INSERT INTO data VALUES (1, '5')",
    )
    with pytest.raises(InvalidDeclaration, match="computes this column"):
        so.Session(declared(path))
    assert exact(declared(path, {}))[1] == [[[1]]]


@pytest.mark.parametrize(
    "kind",
    [
        "UNION(a INTEGER, b VARCHAR)",
        "STRUCT(a VARCHAR)",
        "INTEGER[]",
        "MAP(VARCHAR, INTEGER)",
        "DOUBLE",
        "FLOAT",
        "BOOLEAN",
        "DATE",
        "TIMESTAMP",
        "INTERVAL",
        "BIT",
        "TIME",
    ],
)
def test_persons_are_not_named_by_types_that_may_differ_from_themselves(
    kind: str, tmp_path: Path
) -> None:
    path = file_with(tmp_path, f"CREATE TABLE data (id {kind}, age INTEGER)")
    rule = "a person is named by whole numbers or by text. Convert it in its source to one of them"
    with pytest.raises(InvalidDeclaration, match=rule):
        so.Session(declared(path))


@pytest.mark.parametrize(
    ("kind", "cells"),
    [
        ("HUGEINT", "170141183460469231731687303715884105727"), ("UHUGEINT", "340282366920938463463374607431768211455"),
        ("DECIMAL(18,3)", "1.5"), ("UUID", "'6ccd780c-baba-1026-9564-5b8c656024db'"), ("BLOB", "'\\x00\\xFF'"),
        ("ENUM('a', 'b')", "'a'"), ("VARCHAR", "''"), ("VARCHAR", "'n\x00ul'"),
    ],
)  # fmt: skip
def test_persons_of_every_admitted_type(kind: str, cells: str, tmp_path: Path) -> None:
    """The same person in every row counts once, whatever the type; NULL is nobody."""
    rows = ", ".join([f"({cells}, 1)"] * 50 + ["(NULL, 1)"] * 9)
    path = file_with(
        tmp_path, f"CREATE TABLE data (id {kind}, age INTEGER)", f"INSERT INTO data VALUES {rows}"
    )
    sql = "SELECT COUNT(*) AS n, COUNT(DISTINCT id) AS p, MEDIAN(age) AS m FROM data"
    _, vectors, cells_ = exact(declared(path), sql)
    assert vectors[:2] == [[[2]], [[1]]]
    assert sum(cells_[0][0][1]) <= 2 * 2**16


def test_nan_persons_of_polars_are_refused() -> None:
    with pytest.raises(InvalidDeclaration, match="CAST"):
        so.Session(declared(pl.DataFrame({"id": [float("nan")] * 3, "age": [1, 2, 3]})))


@pytest.mark.parametrize("name", ["ann", uuid.UUID(int=7)])
def test_python_objects_of_polars_are_refused(name: Any) -> None:
    """Polars hands out their addresses: a person with 1,000 equal objects was 1,000 persons."""
    names = [
        copy.deepcopy(name) if isinstance(name, uuid.UUID) else "".join(name) for _ in range(1000)
    ]
    frame = pl.DataFrame({"id": pl.Series(names, dtype=pl.Object), "age": [1] * 1000})
    with pytest.raises(InvalidDeclaration, match="the source holds Object"):
        so.Session(declared(frame))


@pytest.mark.parametrize("noted", ["bit", "time_tz", "bignum", "hugeint"])
def test_what_is_noted_beside_a_field_makes_no_other_type_of_it(noted: str) -> None:
    """Declared bytes became a BIT in the engine, and one person's cell made every question fail after the charge."""
    beside = {
        b"ARROW:extension:name": b"arrow.opaque",
        b"ARROW:extension:metadata": f'{{"type_name": "{noted}", "vendor_name": "DuckDB"}}'.encode(),
    }
    cells = pa.array([b"\x09" * 16, b"\x01" * 16, b"\x01" * 16], pa.binary(16))
    fields = [pa.field("id", cells.type, metadata=beside), pa.field("age", pa.int64())]
    table = pa.Table.from_arrays([cells, pa.array([1, 2, 3])], schema=pa.schema(fields))
    assert exact(declared(table), "SELECT COUNT(*) AS n, COUNT(DISTINCT id) AS p FROM data")[1] == [
        [[3]],
        [[2]],
    ]


def test_whole_numbers_noted_as_truth_stay_whole_numbers() -> None:
    fields = [
        pa.field("id", pa.int8(), metadata={b"ARROW:extension:name": b"arrow.bool8"}),
        pa.field("age", pa.int64()),
    ]
    table = pa.Table.from_arrays(
        [pa.array([1, 2, 3, 3], pa.int8()), pa.array([1] * 4)], schema=pa.schema(fields)
    )
    assert exact(declared(table), "SELECT COUNT(DISTINCT id) AS p FROM data")[1] == [[[3]]]


# collations


@pytest.mark.parametrize("collation", ["NOCASE", "NOACCENT", "NOCASE.NOACCENT"])
def test_collations_do_not_merge_keys_or_persons(collation: str, tmp_path: Path) -> None:
    """Keys were shown in one person's spelling; a quantile's weight moved by thousands; a lookup found 16 rows."""
    path = file_with(
        tmp_path,
        f"CREATE TABLE data (id VARCHAR COLLATE {collation}, t VARCHAR COLLATE {collation}, age INTEGER)",
        "INSERT INTO data SELECT ['ann', 'Ann', 'änn'][1 + i % 3], ['flu', 'FLU', 'flü'][1 + i % 3], 1 "
        "FROM range(30) AS r(i)",
        f"CREATE TABLE codes (t VARCHAR COLLATE {collation}, floor INTEGER)",
        "INSERT INTO codes VALUES ('flu', 1), ('FLU', 2), ('flü', 3)",
    )
    columns: dict[str, Any] = {"t": {"type": "text"}, "age": AGE}
    tables = {
        "data": so.Table.declare(
            path, unit="id", columns=columns, max_rows_per_group=10, max_groups=3
        ),
        "codes": so.Table.declare(
            path,
            table="codes",
            columns={"t": {"type": "text"}, "floor": AGE},
            public=True,
            key=["t"],
        ),
    }
    dataset = so.Dataset(tables=tables, budget={"epsilon": 10**6, "delta": 0.1})
    keys, vectors, _ = exact(
        dataset, "SELECT t, COUNT(*) AS n, COUNT(DISTINCT id) AS p FROM data GROUP BY t"
    )
    assert sorted(keys) == [("FLU",), ("flu",), ("flü",)]
    assert len({tuple(v[0] for v in vector) for vector in vectors}) == 2
    joined = "FROM data LEFT JOIN codes ON data.t = codes.t"
    assert exact(dataset, f"SELECT COUNT(*) AS n {joined}")[1] == [[[30]]]
    assert exact(dataset, f"SELECT SUM(floor) AS f {joined}")[1] == [[[60]]]
    assert exact(dataset, "SELECT COUNT(*) AS n FROM data WHERE t = 'flu'")[1] == [[[10]]]


# files


def test_patterns_in_folders_are_plain_letters(tmp_path: Path) -> None:
    """DuckDB read `clinic 2/w.csv` for `clinic [2]/w.csv`, and merged what `a*` matched."""
    for folder, rows in (
        ("clinic [2]", 1),
        ("clinic 2", 5),
        ("a*", 2),
        ("ab", 7),
        ("q?", 3),
        ("qq", 8),
        ("[", 4),
    ):
        (tmp_path / folder).mkdir()
        # DuckDB cannot write there
        for kind in ("csv", "parquet", *(["duckdb"] if "?" not in folder else [])):
            SOURCES[kind](pa.table({"id": list(range(rows)), "age": [1] * rows}), tmp_path / folder)
    for folder, rows in (("clinic [2]", 1), ("a*", 2), ("q?", 3), ("[", 4)):
        for kind in ("csv", "parquet", *(["duckdb"] if "?" not in folder else [])):
            toml = tmp_path / folder / f"{kind}.toml"
            source = f'source = "data.{kind}"\nunit = "id"\nmax_rows = 2'
            toml.write_text(
                f"[budget]\nepsilon = 10\n[tables.data]\n{source}\n"
                "[tables.data.columns]\nage = { type = 'int', min = 0, max = 9 }\n"
            )
            assert exact(so.Dataset.load(toml))[1] == [[[rows]]], (folder, kind)


def test_one_file_is_a_pattern_for_itself() -> None:
    assert one_file(Path("/a[1]/*?.csv")) == "/a[[]1]/[*][?].csv"


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_folders_named_like_columns_change_nothing(kind: str, tmp_path: Path) -> None:
    folder = tmp_path / "id=7" / "age=3"
    folder.mkdir(parents=True)
    source = SOURCES[kind](pa.table({"id": [1, 2, 3], "age": [10, 20, 30]}), folder)
    assert exact(declared(source), "SELECT COUNT(DISTINCT id) AS p, SUM(age) AS s FROM data")[
        1
    ] == [[[60]], [[3]]]


def test_a_pipe_is_refused_at_once(tmp_path: Path) -> None:
    for name in ("pipe.csv", "pipe.parquet", "pipe.duckdb"):
        os.mkfifo(tmp_path / name)
        with pytest.raises(InvalidDeclaration, match="not a plain file"):
            so.Session(declared(tmp_path / name), ledger=tmp_path / "l.ledger")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(InvalidDeclaration, match="it is a folder"):
        so.Session(declared(tmp_path / "folder.csv"))
    assert not (tmp_path / "l.ledger").exists()


@pytest.mark.parametrize("kind", ["csv", "parquet", "duckdb"])
@pytest.mark.parametrize("change", ["replaced", "written", "removed", "same size and time"])
def test_a_changed_file_is_refused_before_the_charge(
    kind: str, change: str, tmp_path: Path
) -> None:
    source = SOURCES[kind](pa.table({"id": [1, 2], "age": [1, 2]}), tmp_path)
    with so.Session(declared(source)) as session:
        session.sql("SELECT COUNT(*) AS n FROM data", epsilon=1, request_id="before")
        status = source.stat()
        if change in ("replaced", "same size and time"):
            copy = tmp_path / "other"
            copy.write_bytes(source.read_bytes())
            if change != "replaced":
                os.utime(copy, ns=(status.st_atime_ns, status.st_mtime_ns))
            copy.replace(source)
        elif change == "written":
            with source.open("ab") as file:
                file.write(b"\n")
        else:
            source.unlink()
        with pytest.raises(InvalidInput, match="not the one that this session opened"):
            session.sql("SELECT COUNT(*) AS n FROM data", epsilon=1)
        assert len(session.receipts) == 1
        # what was paid is given again
        assert session.sql("SELECT COUNT(*) AS n FROM data", epsilon=1, request_id="before")


LOGGED = ("INSERT INTO data VALUES (3, 3)", "INSERT INTO data VALUES (4, 4)")


def _with_log(path: Path, *changes: str) -> None:
    """Write changes that stay in the log beside a DuckDB file."""
    with duckdb.connect(str(path)) as connection:
        connection.execute("PRAGMA disable_checkpoint_on_shutdown")
        for change in changes:
            connection.execute(change)
    assert path.with_name(f"{path.name}.wal").stat().st_size


@pytest.mark.parametrize("linked", [False, True], ids=["itself", "by a link"])
@pytest.mark.parametrize("change", ["appearing", "vanishing", "longer", "replaced"])
def test_a_changed_log_of_a_duckdb_file_is_refused_before_the_charge(
    change: str, linked: bool, tmp_path: Path
) -> None:
    """What is in the log is part of the table, and the file itself stays as it was."""
    kept = SOURCES["duckdb"](pa.table({"id": [1, 2], "age": [1, 2]}), tmp_path)
    source, log, file = kept, kept.with_name(f"{kept.name}.wal"), kept.read_bytes()
    if change != "appearing":
        _with_log(kept, LOGGED[0])
    if linked:
        (tmp_path / "elsewhere").mkdir()
        source = tmp_path / "elsewhere" / "link.duckdb"
        source.symlink_to(kept)
    with so.Session(declared(source)) as session:
        session.sql("SELECT COUNT(*) AS n FROM data", epsilon=1)
        if change == "vanishing":
            log.unlink()
        else:
            other = tmp_path / "other.duckdb"
            other.write_bytes(file)
            _with_log(other, *(LOGGED if change == "longer" else LOGGED[:1]))
            other.with_name(f"{other.name}.wal").replace(log)
        assert kept.read_bytes() == file
        with pytest.raises(
            InvalidInput, match=r"not the one that this session opened.*its log of changes"
        ):
            session.sql("SELECT COUNT(*) AS n FROM data", epsilon=1)
        assert len(session.receipts) == 1


def test_a_log_that_is_a_pipe_is_refused_at_once(tmp_path: Path) -> None:
    source = SOURCES["duckdb"](pa.table({"id": [1, 2], "age": [1, 2]}), tmp_path)
    os.mkfifo(source.with_name(f"{source.name}.wal"))
    with pytest.raises(InvalidDeclaration, match="not a plain file"):
        so.Session(declared(source))


@pytest.mark.parametrize("seed", first_of(1, range(4)))
def test_no_damaged_parquet_file_loses_a_charge(seed: int, tmp_path: Path) -> None:
    """A file with a damaged page either does not open or answers:
    49 of 1,050 opened and then failed after the charge.
    """
    rng = random.Random(seed)
    rows = 3000
    table = pa.table(
        {
            "id": [i % 500 for i in range(rows)], "age": [rng.randrange(100) for _ in range(rows)],
            "cost": [rng.random() for _ in range(rows)], "t": [f"t{rng.randrange(50)}" for _ in range(rows)],
            "d": pa.array([rng.randrange(20000) for _ in range(rows)], pa.int32()).cast(pa.date32()),
            "b": [rng.random() < 0.5 for _ in range(rows)],
        }
    )  # fmt: skip
    path = tmp_path / "data.parquet"
    pq.write_table(
        table,
        path,
        row_group_size=700,
        compression=["snappy", "none", "zstd", "gzip"][seed],
        use_dictionary=seed % 2 == 0,
    )
    whole = path.read_bytes()
    columns = {
        "age": AGE, "cost": {"type": "float", "min": 0, "max": 1},
        "t": {"type": "text"}, "d": {"type": "date"}, "b": {"type": "bool"},
    }  # fmt: skip
    opened = refused = 0
    sql = (
        "SELECT COUNT(*) AS n, SUM(age) AS a, AVG(cost) AS c, AVG(b) AS b, MEDIAN(age) AS m FROM data "
        "WHERE t <> 'x' AND d > DATE '1971-01-01'"
    )
    for _ in range(20):
        damaged = bytearray(whole)
        for _ in range(rng.randint(1, 4)):
            damaged[rng.randrange(4, len(damaged) - 8)] ^= 1 << rng.randrange(8)
        path.write_bytes(damaged)
        try:
            session = so.Session(declared(path, columns))
        except InvalidDeclaration:
            refused += 1
            continue
        with session:
            opened += 1
            session.sql(sql, epsilon=1)
            session.sql("SELECT t, COUNT(*) AS n FROM data GROUP BY t", epsilon=1)
    assert opened + refused == 20
    assert refused


@pytest.mark.parametrize("kind", SOURCES)
@pytest.mark.parametrize("column", ["id", "t"])
def test_a_text_that_could_take_all_memory_is_refused(
    kind: str, column: str, tmp_path: Path
) -> None:
    """A name of 120 MB with memory="200MB" made questions that count its person fail after the charge."""
    for size in (2**20, 2**20 + 1):
        rows = {
            "id": ["a", "b"],
            "t": ["x", "y"],
            column: ["z", "é" * (size // 2) + "e" * (size % 2)],
        }
        source = SOURCES[kind](pa.table(rows), tmp_path)
        if size == 2**20:
            assert exact(declared(source, {"t": {"type": "text"}}))[1] == [[[2]]]
            for file in tmp_path.iterdir():
                file.unlink()
        else:
            with pytest.raises(InvalidDeclaration, match="longer than 1,048,576 bytes"):
                so.Session(declared(source, {"t": {"type": "text"}}))


# extreme cells: whatever an optimizer may evaluate early must not fail


UNITS = ["year", "quarter", "month", "week", "day"]
PARTS = [*UNITS, "dow", "isodow", "doy"]
CLOCK = ["hour", "minute"]


def calls() -> Iterator[tuple[str, Expression]]:
    """Every function of days and moments, and of the extremes of other types."""
    for column, units, parts in (
        ("d", UNITS, PARTS),
        ("m", [*UNITS, "hour"], [*PARTS, *CLOCK]),
        ("z", [*UNITS, "hour"], [*PARTS, *CLOCK]),
        ("w", [*UNITS, *CLOCK], [*PARTS, *CLOCK]),
        ("s", UNITS, PARTS),
    ):
        for unit in units:
            yield (
                f"trunc {unit} {column}",
                Call("is_null", (Call("date_trunc", (Literal(unit), Column(column))),)),
            )
            moment = date(2020, 1, 1) if column == "d" else datetime(2020, 1, 1)
            yield (
                f"trunc {unit} {column} <",
                Call("<", (Call("date_trunc", (Literal(unit), Column(column))), Literal(moment))),
            )
        for part in parts:
            yield (
                f"part {part} {column}",
                Call(">", (Call("date_part", (Literal(part), Column(column))), Literal(2))),
            )
    for name in ("abs", "round", "floor", "ceil", "neg"):
        for column in ("x", "y", "h"):
            yield f"{name} {column}", Call(">", (Call(name, (Column(column),)), Literal(0)))
    for name in ("+", "-", "*", "/"):
        yield name, Call(">", (Call(name, (Column("x"), Column("h"))), Column("y")))
    yield "%", Call("=", (Call("%", (Column("x"), Literal(7))), Literal(1)))
    for name in ("lower", "upper"):
        yield name, Call("=", (Call(name, (Column("t"),)), Literal("a")))
    yield "length", Call(">", (Call("length", (Column("t"),)), Literal(2)))
    yield "substr", Call("=", (Call("substr", (Column("t"), Literal(2), Literal(3))), Literal("a")))
    yield "like", Call("like", (Column("t"), Literal("%a_%")))
    yield "ilike", Call("ilike", (Column("t"), Literal("%A_%")))
    yield (
        "||",
        Call(
            "=",
            (
                Call("||", (Call("substr", (Column("t"), Literal(1), Literal(5))), Literal("a"))),
                Literal("a"),
            ),
        ),
    )
    for name in ("ln", "log10", "exp", "sqrt"):
        for column in ("x", "y", "h", "u"):
            yield f"{name} {column}", Call(">", (Call(name, (Column(column),)), Literal(0)))
    for x, y in ("xu", "uu", "yx"):
        yield f"power {x} {y}", Call(">", (Call("power", (Column(x), Column(y))), Literal(0)))
    for column in "dmzsw":
        for name, value in (("dayname", "Monday"), ("monthname", "May")):
            yield f"{name} {column}", Call("=", (Call(name, (Column(column),)), Literal(value)))
        for width in ("9999 weeks", "5 months", *(("7 minutes",) if column != "d" else ())):
            yield (
                f"{width} {column}",
                Call("is_null", (Call("time_bucket", (Literal(width), Column(column))),)),
            )
        yield (
            f"diff {column}",
            Call(
                ">", (Call("date_diff", (Literal("day"), Column(column), Column("w"))), Literal(2))
            ),
        )
        for kind in ("date", "timestamp"):
            yield (
                f"{kind} {column}",
                Call("is_null", (Call("cast", (Literal(kind), Column(column))),)),
            )
        yield (
            f"clamp {column}",
            Call(
                "is_null",
                (Call("clamp", (Column(column), Literal("2020-01-01"), Literal("2021-01-01"))),),
            ),
        )
    for column in ("x", "y", "h"):
        yield (
            f"cast {column}",
            Call(">", (Call("cast", (Literal("integer"), Column(column))), Literal(2))),
        )
    for column in ("x", "y", "h", "u"):
        yield (
            f"clamp {column}",
            Call(
                ">",
                (Call("clamp", (Column(column), Literal(-1), Literal(Fraction(5, 2)))), Literal(2)),
            ),
        )


EXTREME = {
    "d": pa.array([-(2**31), 2**31 - 1, -(2**31) + 1, 0, None, 2932896, -719162], pa.int32()).cast(pa.date32()),
    "m": pa.array([1 - 2**63, 2**63 - 1, 0, None, -9223372022400000000, 253402300799999999, 1], pa.timestamp("us")),
    "z": pa.array([-(2**62), 2**62, 0, None, 5, -1, 1], pa.int64()).cast(pa.timestamp("us", tz="Asia/Tokyo")),
    "w": pa.array([2 - 2**63, 2**63 - 2, 0, None, -62135596800000001, 253402300800000000, 1], pa.int64()).cast(
        pa.timestamp("us", tz="UTC")
    ),
    "s": pa.array([-(2**33), 2**33, 0, None, 5, -1, 1], pa.int64()).cast(pa.timestamp("s")),
    "x": pa.array([-(2**63), 2**63 - 1, 0, None, 1, -1, 7], pa.int64()),
    "y": pa.array([float("nan"), float("inf"), -float("inf"), None, 1e308, -0.0, 5e-324]),
    "u": pa.array([float("nan"), float("inf"), -float("inf"), None, 1e308, -0.0, 5e-324]),
    "h": pa.array([2**64 - 1, 0, 1, None, 2**63, 2, 3], pa.uint64()),
    "t": pa.array(["", "a" * 10_000, "\x00", None, "İ", "\ud7ff", "%"]),
}  # fmt: skip
KINDS: dict[str, dict[str, Any]] = {
    "d": {"type": "date", "min": "2000-01-01", "max": "2030-12-31"}, "m": {"type": "datetime"}, "z": {"type": "datetime"},
    "s": {"type": "datetime"}, "x": {"type": "int", "min": -5, "max": 5}, "y": {"type": "float", "min": -5, "max": 5},
    "h": {"type": "int", "min": 0, "max": 9}, "t": {"type": "text"}, "u": {"type": "float"},
    "w": {"type": "datetime", "zone": "Pacific/Apia"},
}  # fmt: skip


FAR = "1,-5877641-06-25 (BC),290309-12-22 (BC) 00:00:00,294247-01-10 04:00:54,294247-01-10 04:00:54+00,infinity,"
FAR += "9" * 60 + ",1e999,-1e999,-1,x\n"


@cache
def extreme_statements() -> tuple[tuple[str, Statement], ...]:
    """A statement for each function; a plan does not depend on data, so one serves for all."""
    outputs = (Output("n", Aggregate("count")), Output("x", Aggregate("sum", (Column("x"),))))
    with so.Session(
        declared(pa.table({"id": [1], **{n: a.slice(0, 1) for n, a in EXTREME.items()}}), KINDS)
    ) as session:
        made = [
            (name, session.preview(Query(Table("data"), outputs, where), epsilon=1))
            for name, where in calls()
        ]
    return tuple((name, s) for name, plan in made for s in plan.statements)


@pytest.mark.parametrize("size", [1, 3, 2**20])
@pytest.mark.parametrize(("text", "right"), QUOTES)
def test_a_misplaced_quote_in_a_csv_swallows_nobody(
    text: str, right: bool, size: int, tmp_path: Path
) -> None:
    """Two of them, in the cells of two persons, made one record of all that was between; also where reading is cut."""
    parts = [
        text.encode().removeprefix(b"\xef\xbb\xbf")[i : i + size] for i in range(0, len(text), size)
    ]
    assert sources._in_place(parts) is right
    (tmp_path / "data.csv").write_bytes(text.encode())
    dataset = declared(tmp_path / "data.csv", {"city": {"type": "text"}})
    if right:
        DuckDB(dataset.tables.values()).close()
        return
    with pytest.raises(InvalidDeclaration, match="quotes must be closed"):
        DuckDB(dataset.tables.values())


SINGLE = tuple(range(7))


@pytest.mark.parametrize(
    ("kind", "cells"),
    [
        *first_of(
            2,
            [
                ("csv", (None,)),
                ("duckdb", (None,)),
                ("arrow", (None, 0)),
                ("parquet", (None, 0, 1)),
            ],
        ),
        *(
            pytest.param(kind, SINGLE, marks=pytest.mark.slow)
            for kind in ("arrow", "parquet", "duckdb")
        ),
    ],
    ids=str,
)
def test_no_function_fails_on_extreme_cells(
    kind: str, cells: tuple[int | None, ...], tmp_path: Path
) -> None:
    """A date of -2^31 days failed in DATE_TRUNC after the charge: DuckDB evaluated it on the column's statistics."""
    admitted = 0
    for only in cells:  # one extreme cell beside a plain one, or all together
        chosen = pa.array(range(7) if only is None else [only, 2])
        table = pa.table(
            {
                "id": list(range(len(chosen))),
                **{name: cells.take(chosen) for name, cells in EXTREME.items()},
            }
        )
        folder = tmp_path / f"{only}"
        folder.mkdir()
        source = folder / "data.csv" if kind == "csv" else SOURCES[kind](table, folder)
        if kind == "csv":
            source.write_text("id," + ",".join(EXTREME) + "\n" + FAR)
        try:
            engine = DuckDB(declared(source, KINDS).tables.values())
        except InvalidDeclaration:  # a cell that cannot be decoded is the owner's to mend
            continue
        admitted += 1
        for name, statement in extreme_statements():
            assert engine.run(statement).sums.shape[0] == 1 + statement.measured, name
        engine.close()
    assert admitted >= max(1, len(cells) - 2)


def test_zoned_moments_are_read_in_utc_wherever_it_runs(tmp_path: Path) -> None:
    code = """
    import sys, pyarrow as pa, sordino as so
    from sordino.engines.duckdb import DuckDB
    at = pa.array([0, 3600 * 10**6 * 23], pa.int64()).cast(pa.timestamp("us", tz="America/New_York"))
    data = so.Dataset(pa.table({"at": at}), unit="row", columns={"at": {"type": "datetime"}}, budget={"epsilon": 10**6})
    with so.Session(data) as session:
        made = session.preview("SELECT COUNT(*) AS n FROM data WHERE DATE_PART('hour', at) IN (0, 23)", epsilon=1)
        print(DuckDB(data.tables.values()).run(made.statements[0]).sums.tolist())
    """
    for zone in ("UTC", "Asia/Tokyo", "America/New_York"):
        environment = {**os.environ, "TZ": zone}
        shown = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(code)],
            capture_output=True,
            text=True,
            env=environment,
            check=True,
        )
        assert shown.stdout.strip() == "[[2]]"


@pytest.mark.parametrize("kind", ["arrow", "pandas", "polars", "parquet", "duckdb"])
def test_zoned_moments_in_nanoseconds_are_read(kind: str, tmp_path: Path) -> None:
    """Tables of pandas hold them; the hint said that no type reads them."""
    cells = pa.array([0, 23 * 3600 * 10**9 + 999, 10**18, None], pa.int64()).cast(
        pa.timestamp("ns", tz="Asia/Tokyo")
    )
    source = SOURCES[kind](pa.table({"id": [1, 2, 3, 4], "at": cells}), tmp_path)
    sql = "SELECT COUNT(*) AS n FROM data WHERE DATE_PART('hour', at) IN (0, 23)"
    assert exact(declared(source, {"at": {"type": "datetime"}}), sql)[1] == [[[2]]]


# what the engine may use, and what it leaves behind


@pytest.mark.parametrize("memory", ["abc", "0GB", "-1GB", "", "5", 5, "1e9GB", "1 parsec"])
def test_a_memory_that_makes_no_sense_is_refused(memory: Any) -> None:
    with pytest.raises(InvalidInput, match="memory"):
        so.Session(declared(pa.table({"id": [1], "age": [1]})), memory=memory)


@pytest.mark.parametrize("kind", SOURCES)
@pytest.mark.parametrize("memory", ["1KB", "300KB", "1MB", "4MB", "0.001%"])
def test_a_memory_with_which_nothing_is_answered_is_refused(
    kind: str, memory: str, tmp_path: Path
) -> None:
    """A session with a megabyte opened, and each of its questions failed after it was charged."""
    source = SOURCES[kind](pa.table({"id": [1], "age": [1]}), tmp_path)
    with pytest.raises(InvalidInput, match=r"memory = .*at least 16 MB"):
        so.Session(declared(source), memory=memory)
    with pytest.raises(InvalidInput, match="for each of 64 threads"):
        so.Session(declared(source), memory="16MB", threads=64)


@pytest.mark.parametrize("threads", [1, 4])
def test_the_least_memory_suffices_for_a_small_table(threads: int) -> None:
    people = pa.table({"id": [i // 2 for i in range(100)], "age": list(range(100))})
    with so.Session(declared(people), memory="16MB", threads=threads) as session:
        for sql in (
            "SELECT COUNT(*) AS n, MEDIAN(age) AS m FROM data",
            "SELECT COUNT(DISTINCT id) AS n, AVG(age) AS m FROM data GROUP BY BUCKET(age, 10)",
            "SELECT AVG(k) AS k FROM (SELECT id, COUNT(*) AS k FROM data GROUP BY id) AS v",
        ):
            session.sql(sql, epsilon=1)


@pytest.mark.parametrize("threads", [0, -1, 1.5, "2", True, 10**6])
def test_a_number_of_threads_that_makes_no_sense_is_refused(threads: Any) -> None:
    with pytest.raises(InvalidInput, match="threads"):
        so.Session(declared(pa.table({"id": [1], "age": [1]})), threads=threads)


def test_a_missing_temporary_folder_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "gone"))
    with pytest.raises(InvalidInput, match="temporary folder"):
        so.Session(declared(pa.table({"id": [1], "age": [1]})))


def test_a_temporary_folder_whose_name_is_no_text_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = os.fsencode(tmp_path) + b"/\xff"
    Path(os.fsdecode(folder)).mkdir()
    monkeypatch.setattr("tempfile.tempdir", os.fsdecode(folder))
    with pytest.raises(InvalidInput, match="temporary folder"):
        so.Session(declared(pa.table({"id": [1], "age": [1]})))


def test_what_is_spilled_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    table = pa.table(
        {
            "id": [f"SECRET-PERSON-{i:09d}" for i in range(400_000)],
            "t": [f"SECRET-TEXT-{i:09d}" for i in range(400_000)],
        }
    )
    csv(table, tmp_path)
    engine = DuckDB(
        declared(tmp_path / "data.csv", {"t": {"type": "text"}}).tables.values(),
        memory="20MB",
        threads=1,
    )
    spilled = [file for file in engine._scratch.path.iterdir() if file.suffix == ".tmp"]
    assert sum(file.stat().st_size for file in spilled) > 2**17
    assert not any(b"SECRET" in file.read_bytes() for file in spilled)
    engine.close()


KILLED = """
import os, signal, sys, tempfile
tempfile.tempdir = sys.argv[1]
from sordino.engines.duckdb import DuckDB
engine = DuckDB([])
(engine._scratch.path / "spilled.tmp").write_text("private rows")
if len(sys.argv) > 2:
    print("open", flush=True)
    sys.stdin.read()
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_session_left_is_removed_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(scratch, "_YOUNG", -10.0)
    assert subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], check=False).returncode < 0
    assert len(list(tmp_path.glob("sordino-*"))) == 1
    elsewhere = tmp_path / "kept"
    elsewhere.mkdir()
    (tmp_path / "sordino-link").symlink_to(elsewhere)
    (tmp_path / "sordino-notes").mkdir()  # somebody's own folder, without a lock
    running = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path), "wait"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert running.stdout is not None
    assert running.stdout.readline() == b"open\n"
    engine = DuckDB([])
    left = {folder.name for folder in tmp_path.glob("sordino-*/spilled.tmp")}
    assert len(left) == 1  # that of the session that lives
    assert elsewhere.exists()
    assert (tmp_path / "sordino-notes").exists()
    engine.close()
    running.communicate(b"")
    DuckDB([]).close()
    assert list(tmp_path.glob("sordino-*/spilled.tmp")) == []


def test_a_young_folder_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], check=False)
    DuckDB([]).close()
    assert len(list(tmp_path.glob("sordino-*"))) == 1
    (folder,) = tmp_path.glob("sordino-*")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    os.utime(folder, (time.time() - 3600,) * 2)
    DuckDB([]).close()
    assert list(tmp_path.glob("sordino-*")) == []


def test_optimizers_that_look_at_cells_are_off() -> None:
    """One of a million rows showed in the time of an answer through them."""
    engine = DuckDB([])
    ((off,),) = engine._connection.execute(
        "SELECT current_setting('disabled_optimizers')"
    ).fetchall()
    known = {
        row[0] for row in engine._connection.execute("SELECT * FROM duckdb_optimizers()").fetchall()
    }
    assert set(database._UNUSED_OPTIMIZERS) <= known
    by_statistics = {
        "statistics_propagation",
        "row_group_pruner",
        "late_materialization",
        "partitioned_execution",
    }
    assert set(off.split(",")) >= {*by_statistics, "filter_pushdown"}
    engine.close()


# CSV


@pytest.mark.parametrize("ending", ["csv.gz", "CSV.GZ", "csv"])
def test_the_ending_says_whether_a_csv_is_compressed(ending: str, tmp_path: Path) -> None:
    path, rows = tmp_path / f"data.{ending}", b"id,age\n1,2\n"
    path.write_bytes(
        rows + b"3,4\n" if ending == "csv" else gzip.compress(rows) + gzip.compress(b"3,4\n")
    )
    assert exact(declared(path))[1] == [[[2]]]


def test_persons_of_a_csv_are_never_rounded_together(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    ids = [str(2**53), str(2**53 + 1), "1.5", "2", "02", " 2", "+2", "x", "", "9" * 39]
    path.write_text("id,age\n" + "".join(f"{i},1\n" for i in ids))
    assert exact(declared(path), "SELECT COUNT(DISTINCT id) AS p FROM data")[1] == [[[9]]]
    whole = declared(path, {"age": AGE, "id": {"type": "int"}})
    assert exact(whole, "SELECT COUNT(DISTINCT id) AS p FROM data")[1] == [[[3]]]
    with pytest.raises(InvalidDeclaration, match="floats merge"):
        so.Session(declared(path, {"age": AGE, "id": {"type": "float"}}))

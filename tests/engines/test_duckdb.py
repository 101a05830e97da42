"""The embedded engine: every source gives the same integers, it is locked, and its errors say nothing of the data."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sordino as so
from engine_plug import Plug
from sordino.engines.duckdb import DuckDB
from sordino.errors import EngineFailed, InvalidDeclaration
from sordino.plan.statement import Statement

COLUMNS: dict[str, dict[str, Any]] = {
    "ward": {"type": "category", "values": ["A", "B"]},
    "age": {"type": "int", "min": 0, "max": 100},
    "cost": {"type": "float", "min": 0, "max": 100, "step": 0.5},
    "day": {"type": "date", "min": "2024-01-01", "max": "2024-12-31"},
    "smoker": {"type": "bool"},
}
TABLE = pa.table(
    {
        "pid": pa.array(["p1", "p1", "p2", "p3", None, "p4"]),
        "ward": pa.array(["A", "B", "A", "Z", "A", None]),
        "age": pa.array([10, 20, 200, -5, 50, None], pa.int64()),
        "cost": pa.array([1.25, 99.5, 1e300, -1.0, 3.0, None]),
        "day": pa.array(
            [
                date(2024, 1, 5),
                date(2023, 5, 5),
                date(2024, 2, 1),
                None,
                date(2024, 3, 1),
                date(2024, 3, 2),
            ]
        ),
        "smoker": pa.array([True, False, None, True, True, False]),
    }
)
SQL = (
    "SELECT ward, COUNT(*) AS n, SUM(age) AS a, AVG(cost) AS c, AVG(smoker) AS s, MEDIAN(age) AS m, COUNT(DISTINCT pid) "
    "AS p FROM data WHERE day < DATE '2024-03-01' OR day IS NULL GROUP BY ward"
)


def write_csv(folder: Path) -> Path:
    path = folder / "data.csv"
    TABLE.to_pandas().to_csv(path, index=False)
    return path


def write_gzip(folder: Path) -> Path:
    path = folder / "data.csv.gz"
    with gzip.open(path, "wt") as file:
        file.write(write_csv(folder).read_text())
    return path


def write_parquet(folder: Path) -> Path:
    path = folder / "data.parquet"
    pq.write_table(TABLE, path)
    return path


def write_duckdb(folder: Path) -> Path:
    path = folder / "data.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.register("frame", TABLE)
        connection.execute("CREATE TABLE data AS SELECT * FROM frame")
    return path


SOURCES: dict[str, Callable[[Path], Any]] = {
    "arrow": lambda _: TABLE,
    "pandas": lambda _: TABLE.to_pandas(),
    "polars": lambda _: pl.from_arrow(TABLE),
    "parquet": write_parquet,
    "csv": write_csv,
    "csv.gz": write_gzip,
    "duckdb": write_duckdb,
}


def declared(source: Any, **options: Any) -> so.Dataset:
    columns = options.pop("columns", COLUMNS)
    bounds = {"unit": "pid", "max_rows_per_group": 2, "max_groups": 1, **options}
    return so.Dataset(source, name="data", columns=columns, budget=so.Budget(100, 1e-6), **bounds)


def exact(dataset: so.Dataset, sql: str = SQL, **limits: Any) -> Any:
    plug = Plug(**limits)
    with so.Session(dataset, engine=plug) as session:
        groups = plug.exact_groups(session.preview(sql, epsilon=1))
    cells = [[(c.tolist(), w.tolist()) for c, w in column] for column in groups.cells.values()]
    return [vector.tolist() for vector in groups.vectors.values()], cells


@pytest.mark.parametrize("kind", SOURCES)
def test_every_source_gives_the_same_integers(kind: str, tmp_path: Path) -> None:
    dataset = declared(SOURCES[kind](tmp_path))
    assert exact(dataset) == exact(declared(TABLE))
    with so.Session(dataset) as session:
        assert session.sql(SQL, epsilon=1).names == ("ward", "n", "a", "c", "s", "m", "p")


def test_the_integers_are_right() -> None:
    sql = "SELECT ward, COUNT(*), COUNT(DISTINCT pid) FROM data GROUP BY ward"
    vectors, cells = exact(declared(TABLE, max_groups=2), sql)
    assert vectors == [[[2], [1]], [[2], [1]]]
    assert cells == []


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[DuckDB]:
    made = DuckDB(declared(write_parquet(tmp_path)).tables.values())
    yield made
    made.close()


@pytest.mark.parametrize(
    "attack",
    [
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM glob('/*')",
        "COPY (SELECT 1) TO 'leak.csv'",
        "ATTACH 'other.duckdb'",
        "SET enable_external_access = true",
        "SET lock_configuration = false",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SELECT * FROM TABLE",
        "CREATE SECRET (TYPE s3)",
    ],
)
def test_the_database_is_locked(engine: DuckDB, attack: str) -> None:
    with pytest.raises(duckdb.Error):
        engine._connection.execute(attack).fetchall()


def test_python_variables_are_not_tables(engine: DuckDB) -> None:
    secret = pd.DataFrame({"x": [1]})
    assert len(secret) == 1
    with pytest.raises(duckdb.Error):
        engine._connection.execute("SELECT * FROM secret")


def test_failures_of_the_engine_have_one_fixed_text(engine: DuckDB) -> None:
    class Broken(Statement):
        def text(self, dialect: str = "duckdb") -> str:
            return "SELECT CAST(pid AS INTEGER) FROM data"

    with pytest.raises(EngineFailed) as failure:
        engine.run(Broken(select=None, keys=0, sums=1))  # type: ignore[arg-type]
    assert failure.value.__cause__ is failure.value.__context__ is None
    assert "p1" not in str(failure.value)
    assert str(failure.value) == str(EngineFailed())


def test_the_folder_for_spilling_is_private_and_removed(tmp_path: Path) -> None:
    engine = DuckDB(declared(write_parquet(tmp_path)).tables.values())
    folder = engine._scratch.path
    assert folder.stat().st_mode & 0o077 == 0
    engine.close()
    assert not folder.exists()


@pytest.mark.parametrize(
    ("column", "kind", "words"),
    [
        ("age", {"type": "text"}, "BIGINT"),
        ("ward", {"type": "int", "min": 0, "max": 3}, "VARCHAR"),
        ("smoker", {"type": "date"}, "BOOLEAN"),
        ("day", {"type": "bool"}, "DATE"),
        ("agee", {"type": "int"}, "no such column.*Did you mean 'age'"),
    ],
)
def test_a_declaration_that_does_not_fit_is_refused(
    tmp_path: Path, column: str, kind: dict[str, Any], words: str
) -> None:
    with pytest.raises(InvalidDeclaration, match=words):
        so.Session(declared(write_parquet(tmp_path), columns={column: kind}))


def test_a_missing_person_column_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidDeclaration, match="unit"):
        so.Session(declared(write_parquet(tmp_path), unit="patient"))


@pytest.mark.parametrize("name", ["gone.parquet", "gone.csv", "gone.duckdb"])
def test_a_missing_file_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidDeclaration, match="cannot be read"):
        so.Session(declared(tmp_path / name))


def test_a_file_of_another_kind_is_refused_without_quoting_it(tmp_path: Path) -> None:
    path = tmp_path / "secret.parquet"
    path.write_text("token-8731,token-8732\n")
    with pytest.raises(InvalidDeclaration) as refusal:
        so.Session(declared(path))
    assert "token" not in str(refusal.value)


CSV = "pid,ward,age,cost,day,smoker\n"


def test_odd_csv_cells_become_null(tmp_path: Path) -> None:
    path = tmp_path / "odd.csv"
    path.write_text(CSV + 'p1,A,ten,nan,2024-99-01,maybe\np2,"B\n",5,inf,,\n')
    vectors, _ = exact(declared(path), "SELECT COUNT(*), COUNT(age), COUNT(day) FROM data")
    assert vectors == [[[1]], [[0]], [[2]]]


@pytest.mark.parametrize(
    "bad", ["p1,A\n", 'p1,"A,1,2,3,4\np2,B,1,2,,\n', "p1,A,1,2,,,token\n", "p1,\xff,1,2,,\n"]
)
def test_a_csv_that_is_not_well_formed_is_refused_at_opening(tmp_path: Path, bad: str) -> None:
    path = tmp_path / "odd.csv"
    path.write_bytes((CSV + bad).encode("latin-1"))
    with pytest.raises(InvalidDeclaration, match="one cell for each column") as refusal:
        so.Session(declared(path))
    assert "token" not in repr(refusal.value)
    assert refusal.value.__context__ is None


def test_records_with_line_breaks_are_never_split(tmp_path: Path) -> None:
    """A reader that starts within the file would take lines of one long cell for records
    (eight megabytes are one part).
    """
    path = tmp_path / "long.csv"
    line = "p{},A,30,1,2024-01-01,true\n"
    before = "".join(line.format(i) for i in range(8_000_000 // len(line.format(100_000))))
    inner = 'q"",B,1,1,,\n' * 20
    path.write_text(CSV + before + f'p0,"{inner}",1,1,,\n' * 50 + line.format(1))
    columns = {"age": COLUMNS["age"]}
    dataset = declared(path, unit="row", columns=columns, max_rows_per_group=None, max_groups=None)
    vectors, _ = exact(dataset, "SELECT COUNT(*) FROM data")
    assert vectors == [[[before.count("\n") + 51]]]


def test_a_cell_that_cannot_be_decoded_is_found_at_opening(tmp_path: Path) -> None:
    broken = pa.table(
        {"pid": ["p1", "p2"], "city": pa.array([b"ok", b"\xff\xfe"], pa.binary()).view(pa.string())}
    )
    far = pa.table({"pid": ["p1"], "at": pa.array([2**62], pa.timestamp("ms"))})
    for table, columns in (
        (broken, {"city": {"type": "text"}}),
        (far, {"at": {"type": "datetime"}}),
    ):
        pq.write_table(table, tmp_path / "broken.parquet")
        with pytest.raises(InvalidDeclaration, match="cannot be read"):
            so.Session(declared(tmp_path / "broken.parquet", columns=columns))
    with pytest.raises(InvalidDeclaration, match="UTF-8"):
        so.Session(declared(broken, columns={"city": {"type": "text"}}))


def test_mixed_pandas_cells_are_not_quoted() -> None:
    mixed = pd.DataFrame({"pid": ["p1", "p2"], "ward": ["SECRET", 5]})
    with pytest.raises(InvalidDeclaration) as refusal:
        so.Session(declared(mixed, columns={"ward": {"type": "text"}}))
    assert "SECRET" not in repr(refusal.value)
    assert refusal.value.__context__ is None


def test_sums_do_not_depend_on_threads_or_order() -> None:
    rng = np.random.default_rng(5)
    size = 20_000
    cost = rng.normal(0, 10.0 ** rng.integers(-5, 18, size))
    table = pa.table(
        {"pid": rng.integers(0, 900, size), "ward": rng.choice(["A", "B", "C"], size), "cost": cost}
    )
    columns = {
        "ward": COLUMNS["ward"],
        "cost": {"type": "float", "min": -1e15, "max": 1e15, "step": 0.5},
    }
    found = []
    for threads, order in ((1, np.arange(size)), (2, rng.permutation(size)), (4, np.argsort(cost))):
        sql = (
            "SELECT ward, SUM(cost), AVG(cost), STDDEV(cost), MEDIAN(cost) FROM data GROUP BY ward"
        )
        found.append(
            exact(declared(table.take(pa.array(order)), columns=columns), sql, threads=threads)
        )
    assert found[0] == found[1] == found[2]


class Endless(Statement):
    """Days of work, to be interrupted."""

    def text(self, dialect: str = "duckdb") -> str:
        return "SELECT SUM(i % 7) FROM range(100_000_000_000_000) AS t(i)"


def test_progress_is_told_to_another_thread_while_a_statement_runs(engine: DuckDB) -> None:
    assert engine.progress is None
    seen: list[float] = []
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(engine.run, Endless(select=None, keys=0, sums=1))  # type: ignore[arg-type]
        give_up = time.monotonic() + 60
        while len(set(seen)) < 3 and not running.done() and time.monotonic() < give_up:
            seen += [] if (now := engine.progress) is None else [now]
        assert engine._lock.locked()
        engine._connection.interrupt()
        assert isinstance(running.exception(), EngineFailed)
    assert len(set(seen)) == 3
    assert seen == sorted(seen)
    assert 0 <= seen[0] < seen[-1] < 1
    assert engine.progress is None


def test_progress_is_unknown_where_nothing_runs(engine: DuckDB) -> None:
    class One(Statement):
        def text(self, dialect: str = "duckdb") -> str:
            return "SELECT 1"

    assert engine.run(One(select=None, keys=0, sums=1)).sums.tolist() == [[1]]  # type: ignore[arg-type]
    assert engine.progress is None
    engine.close()
    assert engine.progress is None


def test_an_engine_may_be_closed_while_another_thread_asks_for_progress() -> None:
    over = threading.Event()
    opened: list[DuckDB] = []

    def ask() -> int:
        asked = 0
        while True:
            last = over.is_set()
            asked += sum(made.progress is None for made in opened)
            if last:
                return asked

    with ThreadPoolExecutor(1) as pool:
        asking = pool.submit(ask)
        try:
            for _ in range(10):
                opened.append(DuckDB([]))
                opened[-1].close()
        finally:
            over.set()
        assert asking.result() >= len(opened)


SLOW = """
import sys
import duckdb
from sordino.engines.duckdb import DuckDB
from sordino.plan.statement import Statement

connect, sql = duckdb.connect, "SELECT SUM(i % 7) FROM range(5_000_000) AS t(i)"

def hasty(*options):
    connection = connect(*options)  # whose bar, if it is on, appears after a millisecond; these settings turn it on
    for setting in ("enable_progress_bar_print = false", "progress_bar_time = 1"):
        connection.execute(f"SET {setting}")
    connection.execute(f"SET enable_progress_bar = {sys.argv[1] == 'bar'}")
    connection.execute("SET enable_progress_bar_print = true")
    return connection

class Slow(Statement):
    def text(self, dialect="duckdb"):
        return sql

if sys.argv[1] == "bar":
    hasty().execute(sql)
else:
    duckdb.connect = hasty
    engine = DuckDB([])
    engine.run(Slow(None, 0, 1))
    engine.close()
"""


@pytest.mark.parametrize("terminal", [True, False])
def test_nothing_is_printed(terminal: bool) -> None:
    """Neither to a terminal nor to a pipe, where the engine's own bar would be."""

    def printed(who: str) -> bytes:
        reader, writer = os.openpty() if terminal else os.pipe()
        with subprocess.Popen(
            [sys.executable, "-c", SLOW, who], stdin=writer, stdout=writer, stderr=writer
        ) as child:
            os.close(writer)
            out = b"".join(iter(lambda: _read(reader), b""))
            os.close(reader)
        assert child.returncode == 0, out
        return out

    assert "%" in printed("bar").decode()
    assert printed("engine") == b""


def _read(end: int) -> bytes:
    try:
        return os.read(end, 65536)
    except OSError:  # how a terminal says that its other side is closed
        return b""

"""The engine is a plug: a session opens what it is given, dialects belong to engines, and the lock is written once."""

from __future__ import annotations

import re
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from sqlglot import exp

import sordino as so
from engine_plug import Plug
from sordino.audit.replayed.distances import exactly
from sordino.engines.duckdb import DuckDB
from sordino.engines.duckdb.dialect import write
from sordino.engines.engine import Exact
from sordino.errors import InvalidInput
from sordino.query.meaning.neutral import ItemOf, Let, PlaceIn, TextList
from sordino.release import exact_groups

SOURCE = Path(so.__file__).parent
DATA = so.Dataset(
    pa.table({"x": [1, 2, 3]}),
    unit="row",
    columns={"x": {"type": "int", "min": 0, "max": 9}},
    budget={"epsilon": 100},
)


def test_a_session_asks_the_engine_that_it_is_given() -> None:
    plug = Plug(threads=1)
    with so.Session(DATA, engine=plug) as session:
        plan = session.preview("SELECT SUM(x) AS s FROM data", epsilon=1)
        session.sql("SELECT SUM(x) AS s FROM data", epsilon=1)
    assert plug.runs == list(plan.statements)
    with so.Session(DATA, engine=partial(DuckDB, memory="100MB", threads=1)) as session:
        session.sql("SELECT SUM(x) AS s FROM data", epsilon=1)


def test_the_engine_opens_the_tables_of_the_session() -> None:
    opened: list[Any] = []

    def opener(tables: Any) -> DuckDB:
        opened.append(tables)
        return DuckDB(tables)

    with so.Session(DATA, so.Budget(1), engine=opener) as session:
        assert opened == [tuple(session.dataset.tables.values())]


@pytest.mark.parametrize("keys", ["public", "private"])
def test_the_order_of_an_engines_rows_tells_nothing(keys: str) -> None:
    """Its threads decide on it, another one each time; what leaves is in the order of the keys."""
    words = [f"{i:02d}" for i in range(12)]
    kind = {"type": "category", "values": words} if keys == "public" else {"type": "text"}
    data = so.Dataset(
        pa.table({"id": range(96), "x": [i % 10 for i in range(96)], "g": words * 8}), name="t", unit="id",
        max_rows=1, columns={"x": {"type": "int", "min": 0, "max": 9}, "g": kind}, budget=so.Budget(10, 1e-3),
    )  # fmt: skip
    question = "SELECT g, COUNT(*) AS n, SUM(x) AS s, QUANTILE(x, 0.5) AS q FROM t GROUP BY g"
    plug = Plug()
    with so.Session(data, engine=plug) as session:
        plan = session.preview(question, epsilon=1)
        exacts = [plug.run(statement) for statement in plan.statements]
    turned = [Exact(tuple(key[::-1] for key in one.keys), one.sums[::-1]) for one in exacts]
    given, found = exact_groups(plan, exacts), exact_groups(plan, turned)
    assert given.keys == found.keys == sorted(given.keys)
    assert exactly(given) == exactly(found)
    assert len(given.keys) == 12


@pytest.mark.parametrize(
    ("given", "rule"),
    [({"engine": "duckdb"}, "a function that opens tables"), ({"engine": DuckDB, "threads": 1}, "of the default engine"),
     ({"engine": DuckDB, "memory": "1GB"}, "of the default engine")],
)  # fmt: skip
def test_what_is_no_engine_is_refused(given: dict[str, Any], rule: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=rule):
        so.Session(DATA, ledger=tmp_path / "new.ledger", **given)
    assert not (tmp_path / "new.ledger").exists()


def test_an_engine_that_does_not_open_leaves_the_ledger_closed(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        so.Session(DATA, ledger=tmp_path / "new.ledger", engine=lambda _: 1 // 0)  # type: ignore[arg-type, return-value]
    with so.Session(DATA, ledger=tmp_path / "new.ledger") as session:
        assert session.receipts == ()


def test_neutral_nodes_are_spelled_by_the_writer() -> None:
    v, x = exp.to_identifier("v"), exp.column("x")
    texts = TextList(this=exp.Literal.string("a|b"), expression=exp.Literal.string("|"))
    let = Let(this=x, expression=exp.Add(this=v, expression=v.copy()))
    assert write(let) == "LIST_EXTRACT(LIST_TRANSFORM([x], LAMBDA v : v + v), 1)"
    assert (
        write(PlaceIn(this=texts, expression=x.copy()))
        == "ARRAY_POSITION(STR_SPLIT('a|b', '|'), x)"
    )
    assert (
        write(ItemOf(this=texts.copy(), expression=exp.Literal.number(2)))
        == "LIST_EXTRACT(STR_SPLIT('a|b', '|'), 2)"
    )


def test_what_duckdb_has_no_words_for_is_refused() -> None:
    with pytest.raises(InvalidInput, match="no words for it"):
        write(exp.select("x").from_("t").hint("FAST"))


def test_the_lock_is_written_once() -> None:
    places = [
        p
        for p in SOURCE.rglob("*.py")
        if re.search("lock_configuration|enable_external_access", p.read_text())
    ]
    assert [str(place.relative_to(SOURCE)) for place in places] == ["engines/duckdb/locked.py"]


def test_the_lock_alone_loads_no_planner() -> None:
    script = "import sys, sordino.engines.duckdb.locked; print(sorted({'sqlglot', 'numpy', 'duckdb'} & set(sys.modules)))"
    assert (
        subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True
        ).stdout
        == "[]\n"
    )


def test_only_the_engine_knows_its_dialect() -> None:
    """No other room writes SQL in the dialect of an engine, or calls functions that only some engine has."""
    words = re.compile(
        r"""dialect="(duckdb|postgres|spark)"|\.sql\("duckdb"\)|LIST_EXTRACT|LIST_TRANSFORM|ARRAY_POSITION"""
    )
    outside = [
        p
        for p in SOURCE.rglob("*.py")
        if p.parent.parent.name != "engines" and words.search(p.read_text())
    ]
    assert outside == []


@pytest.mark.parametrize(
    ("library", "address", "extra"),
    [("psycopg", "postgresql://ana@localhost:1/none", "postgres"), ("pyspark", "spark", "spark")],
)
def test_without_its_library_every_door_says_what_to_install(
    library: str, address: str, extra: str, tmp_path: Path
) -> None:
    """A session, a look at the catalog, and a stub of it: in a process of its own, where nothing is loaded yet."""
    (tmp_path / "t.toml").write_text(
        f"""[budget]\nepsilon = 1\n[tables.t]\nsource = "{address}"\nunit = "row"
        [tables.t.columns]\nx = {{ type = "int" }}\n"""
    )
    script = f"""
import sys
sys.modules[{library!r}] = None
import sordino as so
from sordino.engines.admission import source_columns_of
from sordino.errors import InvalidInput
data = so.Dataset.load({str(tmp_path / "t.toml")!r})
for door in (so.Session, source_columns_of, lambda _: so.Dataset.schema_stub({address!r})):
    try:
        door(data)
    except InvalidInput as refused:
        print(refused)
"""
    found = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert found.stdout.count(f"Run: pip install 'sordino[{extra}]'.") == 3

"""PostgreSQL asked where the data are: what may enter, one snapshot a question, faults, and that nothing leaks."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from psycopg.types.numeric import FloatLoader, NumericLoader
from psycopg.types.string import TextLoader
from sqlglot import exp

import sordino as so
from cli.desk import process
from engines.adapter_postgres import server
from ledger.postgres_server import LOCKED, PASSWORD, PostgresServer
from sordino.audit.replayed.distances import exactly
from sordino.engines.admission import source_columns_of
from sordino.engines.postgres import Postgres
from sordino.engines.postgres.dialect import quoted, write
from sordino.engines.postgres.sources import facts_of
from sordino.errors import DeclarationWarning, EngineFailed, InvalidDeclaration, InvalidInput
from sordino.query.meaning import nodes
from sordino.release import exact_groups

COLUMNS: dict[str, dict[str, Any]] = {
    "age": {"type": "int", "min": 0, "max": 110},
    "cost": {"type": "float", "min": 0, "max": 5000, "step": 0.01},
    "ward": {"type": "category", "values": ["A", "B", "C"]},
    "city": {"type": "text", "max_length": 20},
}
COUNT = "SELECT COUNT(*) AS n FROM visits"
READER = "reader"


@pytest.fixture
def admin() -> Iterator[psycopg.Connection[Any]]:
    """A database swept clean, with a schema `clinic` of visits, and a role that may read it and nothing else."""
    with server().connect() as connection:
        connection.execute(
            f"""
            DROP SCHEMA IF EXISTS clinic CASCADE;
            DO $$ BEGIN CREATE ROLE {READER} LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$;
            CREATE SCHEMA clinic;
            CREATE TABLE clinic.visits (patient integer, age smallint, cost numeric(9,2), ward text, city varchar(90));
            INSERT INTO clinic.visits SELECT i / 3, i % 100, i, substr('ABCD', 1 + i % 4, 1), 'city ' || i % 5
                FROM generate_series(1, 300) AS s(i);
            GRANT USAGE ON SCHEMA clinic TO {READER};
            GRANT SELECT ON ALL TABLES IN SCHEMA clinic TO {READER};
            """
        )
        yield connection


def declared(table: str = "clinic.visits", **more: Any) -> so.Dataset:
    entries = {"columns": COLUMNS, "unit": "patient", "max_rows": 9, "name": "visits", **more}
    return so.Dataset(
        server().address(user=READER),
        table=table,
        budget={"epsilon": 10**6, "delta": 0.1},
        **entries,
    )


@contextmanager
def session(**more: Any) -> Iterator[so.Session]:
    with so.Session(declared(**more)) as opened:
        yield opened


def number(answer: so.Answer) -> float:
    return float(answer.to_arrow().column(0)[0].as_py())


def test_a_question_is_answered_where_the_data_are(admin: Any) -> None:
    with session() as asked:
        assert number(asked.sql(COUNT, epsilon=1000)) == pytest.approx(300, abs=2)
        by_ward = (
            asked.sql("SELECT ward, SUM(cost) AS c FROM visits GROUP BY ward", epsilon=1000)
            .to_arrow()
            .to_pydict()
        )
        assert by_ward["ward"] == ["A", "B", "C"]
        cities = asked.sql(
            "SELECT city, COUNT(*) AS n FROM visits GROUP BY city", epsilon=1000, delta=0.01
        ).to_arrow()
        assert sorted(cities.column(0).to_pylist()) == [f"city {i}" for i in range(5)]
        assert asked.suggest("visits", epsilon=100, columns=["age"]).bounds


def test_a_look_at_the_catalog_says_whether_a_declaration_fits(admin: Any) -> None:
    assert source_columns_of(declared()) == {"visits": ["patient", "age", "cost", "ward", "city"]}
    for more, told in (
        ({"unit": "person"}, "the source has no such column"),
        ({"columns": {"cost": {"type": "int"}}}, "which is not read as int"),
        ({"table": "clinic.visit"}, "visit"),
    ):
        with pytest.raises(InvalidDeclaration, match=told) as caught:
            source_columns_of(declared(**more))
        assert "city 3" not in str(caught.value)


@pytest.mark.parametrize(
    ("make", "more", "rule"),
    [
        ("CREATE VIEW clinic.v AS SELECT * FROM clinic.visits", {}, "it is a view"),
        ("CREATE MATERIALIZED VIEW clinic.v AS SELECT * FROM clinic.visits", {}, "it is a materialized view"),
        ("CREATE TABLE clinic.v AS SELECT * FROM clinic.visits; ALTER TABLE clinic.v ENABLE ROW LEVEL SECURITY", {},
         "row security is on"),
        ("CREATE TABLE clinic.v AS SELECT patient::float8, age, cost, ward, city FROM clinic.visits", {},
         "named by whole numbers or by text"),
        (f"CREATE TABLE clinic.v AS SELECT * FROM clinic.visits; REVOKE SELECT ON clinic.v FROM {READER}", {},
         "may not read the table"),
    ],
)  # fmt: skip
def test_a_look_at_the_catalog_refuses_what_a_session_would(
    admin: Any, make: str, more: dict[str, Any], rule: str
) -> None:
    admin.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA clinic TO {READER}; {make}")
    if "REVOKE" not in make:
        admin.execute(f"GRANT SELECT ON clinic.v TO {READER}")
    with pytest.raises(InvalidDeclaration, match=rule):
        source_columns_of(declared(table="clinic.v", **more))


def test_a_look_at_the_catalog_sees_keys_rights_and_public_files(
    admin: Any, tmp_path: Path
) -> None:
    admin.execute(
        f"""
        CREATE TABLE clinic.lines (visit integer, amount integer);
        GRANT SELECT ON clinic.lines TO {READER};
        GRANT INSERT ON clinic.lines TO {READER};
        """
    )
    (tmp_path / "wards.csv").write_text("ward,wing\nA,north\n")
    place = server().address(user=READER)
    visits = {
        "source": place,
        "table": "clinic.visits",
        "unit": "patient",
        "max_rows": 9,
        "columns": COLUMNS,
    }
    wards = {"source": tmp_path / "wards.csv", "public": True, "key": ["ward"],
             "columns": {"ward": {"type": "text"}, "wing": {"type": "text"}}}  # fmt: skip
    lines = {"source": place, "table": "clinic.lines", "via": {"visit": "visits.age"}, "max_rows": 20,
             "columns": {"amount": {"type": "int", "min": 0, "max": 3}}}  # fmt: skip
    tables = {"visits": visits, "wards": wards, "lines": lines}
    data = so.Dataset(tables=tables, budget={"epsilon": 1})
    with pytest.raises(InvalidDeclaration, match="no unique index"):
        source_columns_of(data)
    admin.execute(
        "DELETE FROM clinic.visits WHERE patient > 0; CREATE UNIQUE INDEX ON clinic.visits (age)"
    )
    with pytest.warns(DeclarationWarning, match="may write to 'lines'"):
        found = source_columns_of(data)
    assert list(found.items()) == [
        ("visits", ["patient", *COLUMNS]),
        ("wards", ["ward", "wing"]),
        ("lines", ["visit", "amount"]),
    ]


def test_no_stub_is_made_of_what_no_session_reads(admin: Any) -> None:
    admin.execute(
        f"""
        CREATE VIEW clinic.v AS SELECT * FROM clinic.visits;
        CREATE MATERIALIZED VIEW clinic.m AS SELECT * FROM clinic.visits;
        GRANT SELECT ON ALL TABLES IN SCHEMA clinic TO {READER};
        CREATE TABLE clinic.hidden AS SELECT * FROM clinic.visits;
        """
    )
    place = server().address(user=READER)
    for table, rule in (("clinic.v", "it is a view"), ("clinic.hidden", "may not read the table"),
                        ("clinic.visit", "Did you mean 'clinic.visits'")):  # fmt: skip
        with pytest.raises(InvalidDeclaration, match=rule):
            so.Dataset.schema_stub(place, table=table)
    assert 'table = "clinic.m"' in so.Dataset.schema_stub(place, table="clinic.m")


def test_public_files_are_sent_along(admin: Any, tmp_path: Path) -> None:
    (tmp_path / "wards.csv").write_text("ward,wing\nA,north\nB,north\nC,süd\n")
    wards = {
        "source": tmp_path / "wards.csv",
        "public": True,
        "key": ["ward"],
        "columns": {"wing": {"type": "text"}},
    }
    wards["columns"] = {
        "ward": {"type": "category", "values": ["A", "B", "C"]},
        "wing": {"type": "text"},
    }
    visits = {
        "source": server().address(user=READER),
        "table": "clinic.visits",
        "unit": "patient",
        "max_rows": 9,
    }
    data = so.Dataset(
        tables={"visits": {**visits, "columns": COLUMNS}, "wards": wards}, budget={"epsilon": 10**6}
    )
    with so.Session(data) as asked:
        query = "SELECT wing, COUNT(*) AS n FROM visits JOIN wards ON visits.ward = wards.ward GROUP BY wing"
        found = asked.sql(query, epsilon=1000).to_arrow().to_pydict()
        assert found["wing"] == ["north", "süd"]
        assert found["n"] == pytest.approx([150, 75], abs=2)
        (tmp_path / "wards.csv").write_text("ward,wing\nA,other\n")
        with pytest.raises(InvalidInput, match="changed, replaced or removed"):
            asked.sql(query, epsilon=1)


def test_public_tables_of_the_database_are_read_for_the_planner(admin: Any) -> None:
    admin.execute(
        f"""
        CREATE TABLE clinic.wards (ward text, wing text, big boolean, floor int, since date);
        INSERT INTO clinic.wards VALUES ('A', 'north', true, 1, '2020-01-01'), ('B', 'north', false, 2, '2021-01-01'),
            ('C', 'south', NULL, 3, NULL), ('C', 'east', true, 3, NULL);
        GRANT SELECT ON clinic.wards TO {READER};
        """
    )
    kinds = {"ward": "text", "wing": "text", "big": "bool", "floor": "int", "since": "date"}
    place = server().address(user=READER)
    wards = {"source": place, "table": "clinic.wards", "public": True, "key": ["ward"],
             "columns": {name: {"type": kind} for name, kind in kinds.items()}}  # fmt: skip
    visits = {
        "source": place,
        "table": "clinic.visits",
        "unit": "patient",
        "max_rows": 9,
        "columns": COLUMNS,
    }
    data = so.Dataset(tables={"visits": visits, "wards": wards}, budget={"epsilon": 10**6})
    with so.Session(data) as asked:
        for key in kinds:
            query = f"SELECT w.{key} AS k, COUNT(*) AS n FROM visits v JOIN wards w ON v.ward = w.ward GROUP BY w.{key}"
            assert sum(asked.sql(query, epsilon=1000).to_arrow().to_pydict()["n"]) == pytest.approx(
                225, abs=90
            )


def test_the_declaration_and_the_command_line(admin: Any, tmp_path: Path) -> None:
    target = tmp_path / "visits.toml"
    made = process(
        "init", server().address(user=READER), "--table", "clinic.visits", "-o", str(target)
    )
    assert made.returncode == 0, made.stderr
    text = target.read_text()
    assert 'table = "clinic.visits"' in text
    assert 'patient = { type = "int" }' in text
    assert 'cost = { type = "float" }' in text
    filled = text.replace("TODO", "patient").replace(
        "# [budget]\n# epsilon = ?", "[budget]\nepsilon = 100 #"
    )
    target.write_text(filled.replace("# max_rows = ?", "max_rows = 9 #"))
    for words in (["preview"], ["preview", "--sql"], ["query", "--format", "csv"]):
        asked = process(words[0], str(target), COUNT, "--epsilon", "10", *words[1:])
        assert asked.returncode == 0, asked.stderr
        assert b'"gate visits"' in asked.stdout or "--sql" not in words
    everything = process("init", server().address(user=READER), "-o", "-")
    assert b"[tables.visits]" in everything.stdout
    nothing = process("init", "postgresql://nobody:s3cret@localhost:1/none", "-o", "-")
    assert nothing.returncode != 0
    assert b"s3cret" not in nothing.stdout + nothing.stderr


# what may enter


@pytest.mark.parametrize(
    ("make", "more", "rule"),
    [
        ("CREATE VIEW clinic.v AS SELECT * FROM clinic.visits", {}, "it is a view"),
        ("CREATE MATERIALIZED VIEW clinic.v AS SELECT * FROM clinic.visits", {}, "it is a materialized view"),
        ("CREATE TABLE clinic.v () INHERITS (clinic.visits)", {"table": "clinic.visits"}, "inherit from it"),
        ("CREATE TABLE clinic.v AS SELECT * FROM clinic.visits; ALTER TABLE clinic.v ENABLE ROW LEVEL SECURITY", {},
         "row security is on"),
        ('CREATE TABLE clinic.v AS SELECT patient, age, age AS "AGE", cost, ward, city FROM clinic.visits', {},
         "one name but for case"),
        ("CREATE TABLE clinic.v AS SELECT patient, age::text, cost, ward, city FROM clinic.visits", {}, "not read as int"),
        ("CREATE TABLE clinic.v AS SELECT patient::float8, age, cost, ward, city FROM clinic.visits", {},
         "named by whole numbers or by text"),
        ("CREATE TABLE clinic.v AS SELECT age, cost, ward, city FROM clinic.visits", {}, "no such column"),
        ("CREATE TABLE clinic.v (patient int, age smallint, cost float8 GENERATED ALWAYS AS (1.0 / age) VIRTUAL,"
         " ward text, city text)", {}, "computes this column"),
        ("SELECT 1", {}, "there is no table"),
        ("SELECT 1", {"table": "nowhere.v"}, "there is no table"),
        ("SELECT 1", {"table": "clinic.visits", "materialized": True}, "no materialized view"),
    ],
)  # fmt: skip
def test_what_may_not_enter(admin: Any, make: str, more: dict[str, Any], rule: str) -> None:
    admin.execute(f"{make}; GRANT SELECT ON ALL TABLES IN SCHEMA clinic TO {READER}")
    with pytest.raises(InvalidDeclaration, match=rule):
        Postgres(declared(**{"table": "clinic.v", **more}).tables.values())


def test_a_hint_names_a_table_as_sql_does(admin: Any) -> None:
    admin.execute('CREATE TABLE clinic."Order" (id INTEGER)')
    with pytest.raises(InvalidDeclaration, match=r'GRANT SELECT ON clinic\."Order" TO the role'):
        Postgres(declared(table="clinic.Order", columns={}).tables.values())


def test_materialized_and_partitioned_tables_may_enter(admin: Any) -> None:
    admin.execute(
        f"""
        CREATE MATERIALIZED VIEW clinic.v AS SELECT * FROM clinic.visits;
        CREATE TABLE clinic.p (LIKE clinic.visits) PARTITION BY LIST (ward);
        CREATE TABLE clinic.p1 PARTITION OF clinic.p FOR VALUES IN ('A', 'B');
        CREATE TABLE clinic.p2 PARTITION OF clinic.p DEFAULT;
        INSERT INTO clinic.p SELECT * FROM clinic.visits;
        GRANT SELECT ON ALL TABLES IN SCHEMA clinic TO {READER};
        """
    )
    for more in ({"table": "clinic.v", "materialized": True}, {"table": "clinic.p"}):
        with session(**more) as asked:
            assert number(asked.sql(COUNT, epsilon=1000)) == pytest.approx(300, abs=2)
    admin.execute("CREATE FOREIGN DATA WRAPPER w; CREATE SERVER s FOREIGN DATA WRAPPER w")
    try:
        admin.execute(
            "CREATE FOREIGN TABLE clinic.p3 PARTITION OF clinic.p FOR VALUES IN ('Z') SERVER s"
        )
        with pytest.raises(InvalidDeclaration, match="a part of it is a foreign table"):
            Postgres(declared(table="clinic.p").tables.values())
        admin.execute(f"GRANT SELECT ON clinic.p3 TO {READER}")
        with pytest.raises(InvalidDeclaration, match="it is a foreign table"):
            Postgres(declared(table="clinic.p3").tables.values())
    finally:
        admin.execute("DROP FOREIGN DATA WRAPPER w CASCADE")


def test_a_role_needs_the_right_to_read_and_is_told_which(admin: Any) -> None:
    admin.execute(f"REVOKE SELECT ON clinic.visits FROM {READER}")
    with pytest.raises(InvalidDeclaration, match="may not read the table") as refused:
        Postgres(declared().tables.values())
    assert "GRANT SELECT ON clinic.visits" in str(refused.value)
    admin.execute(f"GRANT SELECT (patient, age, ward, city) ON clinic.visits TO {READER}")
    with pytest.raises(InvalidDeclaration, match="may not read the column 'cost'"):
        Postgres(declared().tables.values())
    admin.execute(f"GRANT SELECT (cost) ON clinic.visits TO {READER}")
    with session() as asked:
        assert number(asked.sql(COUNT, epsilon=1000)) == pytest.approx(300, abs=2)


def test_a_role_that_can_write_is_warned_about(admin: Any) -> None:
    admin.execute(f"GRANT INSERT ON clinic.visits TO {READER}")
    with pytest.warns(DeclarationWarning, match="may write to 'visits'"), session():
        pass
    data = so.Dataset(
        server().address(),
        table="clinic.visits",
        unit="patient",
        columns=COLUMNS,
        budget={"epsilon": 1},
    )
    with pytest.warns(DeclarationWarning, match="is a superuser"), so.Session(data):
        pass


@pytest.mark.parametrize(
    "able",
    [
        "GRANT writer TO {0} WITH INHERIT FALSE; GRANT UPDATE ON clinic.p TO writer",
        "GRANT UPDATE (age) ON clinic.p TO {0}",
        "ALTER TABLE clinic.p OWNER TO {0}; REVOKE ALL ON clinic.p FROM {0}; GRANT SELECT ON clinic.p TO {0}",
        "GRANT INSERT ON clinic.p1 TO {0}",
    ],
)
def test_a_role_that_can_come_to_write_is_warned_about(admin: Any, able: str) -> None:
    """By a role that it may take, by a column, as the owner, or to a part."""
    admin.execute(
        f"""
        DO $$ BEGIN CREATE ROLE writer; EXCEPTION WHEN duplicate_object THEN NULL; END $$;
        CREATE TABLE clinic.p (LIKE clinic.visits) PARTITION BY LIST (ward);
        CREATE TABLE clinic.p1 PARTITION OF clinic.p DEFAULT;
        GRANT SELECT ON clinic.p TO {READER};
        """
    )
    with session(table="clinic.p"):
        pass
    admin.execute(able.format(READER))
    try:
        with (
            pytest.warns(DeclarationWarning, match="may write to 'visits'"),
            session(table="clinic.p"),
        ):
            pass
    finally:
        admin.execute(f"REVOKE writer FROM {READER}")


def test_a_deadline_does_not_raise_the_limit_of_the_role(admin: Any) -> None:
    def limits(asked: so.Session) -> list[str]:
        connection, found = asked._engine._connection, []  # type: ignore[attr-defined]
        with asked._engine.snapshot():
            for seconds in (90_000, 60, 5.5, 60):
                connection.limit(seconds)
                found.append(connection.ask("SELECT current_setting('statement_timeout')")[0][0])
        return found

    with session() as asked:
        assert limits(asked) == ["25h", "1min", "5500ms", "5500ms"]
    admin.execute(f"ALTER ROLE {READER} SET statement_timeout = '2min'")
    try:
        with session() as asked:
            assert limits(asked) == ["2min", "1min", "5500ms", "5500ms"]
    finally:
        admin.execute(f"ALTER ROLE {READER} RESET statement_timeout")


def test_persons_through_foreign_keys_need_a_unique_index(admin: Any) -> None:
    admin.execute(
        f"""
        CREATE TABLE clinic.lines (visit integer, amount integer);
        ALTER TABLE clinic.visits ADD COLUMN id integer GENERATED ALWAYS AS IDENTITY;
        INSERT INTO clinic.lines SELECT i % 301, 2 FROM generate_series(1, 600) AS s(i);
        GRANT SELECT ON ALL TABLES IN SCHEMA clinic TO {READER};
        """
    )
    place = server().address(user=READER)
    visits = {
        "source": place,
        "table": "clinic.visits",
        "unit": "patient",
        "max_rows": 9,
        "columns": COLUMNS,
    }
    lines = {"source": place, "table": "clinic.lines", "via": {"visit": "visits.id"}, "max_rows": 20,
             "columns": {"amount": {"type": "int", "min": 0, "max": 3}}}  # fmt: skip
    data = so.Dataset(tables={"visits": visits, "lines": lines}, budget={"epsilon": 10**6})
    with pytest.raises(InvalidDeclaration, match="no unique index") as refused:
        Postgres(data.tables.values())
    assert "CREATE UNIQUE INDEX ON clinic.visits (id)" in str(refused.value)
    admin.execute(
        "CREATE UNIQUE INDEX few ON clinic.visits (id) WHERE id > 5; CREATE UNIQUE INDEX ON clinic.visits (id, age)"
    )
    with pytest.raises(InvalidDeclaration, match="no unique index"):
        Postgres(data.tables.values())
    admin.execute("CREATE UNIQUE INDEX good ON clinic.visits (id)")
    with so.Session(data) as asked:
        assert number(
            asked.sql("SELECT SUM(amount) AS n FROM lines", epsilon=1000)
        ) == pytest.approx(1196, abs=8)
        admin.execute("DROP INDEX clinic.good")
        with pytest.raises(InvalidInput, match="dropped, replaced or altered"):
            asked.sql("SELECT SUM(amount) AS n FROM lines", epsilon=1)


CELLS = [
    ("float8", "'NaN'", "cost"), ("float8", "'Infinity'", "cost"), ("float8", "'-0'", "cost"), ("numeric", "1e400", "cost"),
    ("numeric", "1e-400", "cost"), ("numeric", "'NaN'", "cost"), ("numeric", "'Infinity'", "cost"),
    ("numeric(30,0)", "9e29", "age"), ("numeric(30,0)", "'NaN'", "age"), ("bigint", "9223372036854775807", "age"),
    ("text", "repeat('x', 3000000)", "ward"), ("text", "repeat('x', 3000000)", "city"), ("char(5)", "'A'", "ward"),
    ("date", "'infinity'", "day"), ("date", "'-infinity'", "day"), ("date", "'4000-01-01 BC'", "day"),
    ("date", "'5874897-12-31'", "day"), ("timestamp", "'infinity'", "at"), ("timestamp", "'294276-12-31'", "at"),
    ("timestamptz", "'-infinity'", "at"), ("timestamptz", "'294276-12-31'", "at"), ("timestamptz", "'4713-01-02 BC'", "at"),
]  # fmt: skip
EXTREME = [
    "SELECT COUNT(*) AS n, SUM(cost) AS c, AVG(LEAST(GREATEST(cost * cost / age, 0), 9)) AS q FROM visits",
    "SELECT ward, SUM(age) AS n FROM visits GROUP BY ward",
    "SELECT UPPER(city) AS c, COUNT(*) AS n FROM visits GROUP BY UPPER(city)",
    "SELECT DATE_TRUNC('week', day) AS w, COUNT(*) AS n FROM visits GROUP BY DATE_TRUNC('week', day)",
    "SELECT DATE_DIFF('day', day, at) AS w, COUNT(*) AS n FROM visits WHERE TIME_BUCKET('5 hours', at) > '2020-01-01'"
    " GROUP BY DATE_DIFF('day', day, at)",
    "SELECT COUNT(DISTINCT city) AS n FROM visits WHERE city LIKE '%x%' OR city || ward > 'x'",
]


@pytest.mark.parametrize(("kind", "cell", "name"), CELLS)
def test_no_cell_makes_a_question_fail(admin: Any, kind: str, cell: str, name: str) -> None:
    """Whatever a column holds, questions are answered: a failure after the charge would tell of the cell."""
    kinds = {
        "age": "smallint",
        "cost": "float8",
        "ward": "text",
        "city": "text",
        "day": "date",
        "at": "timestamp",
        name: kind,
    }
    fields = ", ".join(f"{column} {type_}" for column, type_ in kinds.items())
    admin.execute(
        f"CREATE TABLE clinic.v (patient int, {fields}); GRANT SELECT ON clinic.v TO {READER}"
    )
    admin.execute("INSERT INTO clinic.v VALUES (1, 1, 1, 'A', 'x', '2020-01-02', '2020-01-02')")
    admin.execute(f"INSERT INTO clinic.v (patient, {name}) VALUES (2, {cell}), (2, NULL)")
    day = {"type": "date", "min": "2020-01-01", "max": "2020-02-01"}
    columns = {
        **COLUMNS,
        "day": day,
        "at": {"type": "datetime", "min": "2020-01-01T00:00:00", "max": "2020-02-01T00:00:00"},
    }
    with session(table="clinic.v", columns=columns) as asked:
        for query in EXTREME:
            asked.sql(query, epsilon=10, delta=1e-3 if "UPPER" in query else None)


def test_long_texts_are_null(admin: Any) -> None:
    admin.execute("UPDATE clinic.visits SET ward = repeat('A', 1048577) WHERE patient < 50")
    columns = {"ward": {"type": "text"}}
    with session(columns=columns) as asked:
        found = number(asked.sql("SELECT COUNT(ward) AS n FROM visits", epsilon=1000))
    assert found == pytest.approx(151, abs=2)


def test_names_that_postgresql_would_cut_stay_apart(admin: Any) -> None:
    one, other = "n" * 70 + "1", "n" * 70 + "2"
    assert quoted(one) != quoted(other)
    assert len(quoted(one)) <= 65
    assert quoted('a"b') == '"a""b"'
    with session(name=one) as asked:
        assert number(
            asked.sql(f'SELECT COUNT(*) AS n FROM "{one}"', epsilon=1000)
        ) == pytest.approx(300, abs=2)


def test_casts_that_may_fail_are_refused() -> None:
    with pytest.raises(InvalidInput, match="cannot fail"):
        write(nodes.try_cast(exp.Literal.string("x"), "bigint"))
    with pytest.raises(InvalidInput, match="cannot fail"):
        write(exp.Anonymous(this="PG_SLEEP", expressions=[exp.Literal.number(1)]))
    with pytest.raises(InvalidInput, match="NUL"):
        write(exp.Literal.string("a\0b"))


def test_each_row_is_computed_once() -> None:
    """What is tested and mentioned again, or summed twice, has a subquery of its own; small sums are those of INT."""
    columns = {**COLUMNS, "far": {"type": "int", "min": 0, "max": 2**21}}
    frame = pa.table(
        {"patient": [1], "age": [1], "cost": [1.0], "ward": ["A"], "city": ["x"], "far": [1]}
    )
    asked = so.Session(
        so.Dataset(
            frame, name="visits", unit="patient", max_rows=3, columns=columns, budget={"epsilon": 1}
        )
    )

    def written(query: str) -> str:
        (statement,) = asked.preview(query, epsilon=1, bias=False).statements
        return statement.text("postgres")

    mean = written("SELECT ward, AVG(cost) AS m, SUM(cost) AS s FROM visits GROUP BY ward")
    assert (
        mean.count("FLOOR("),
        mean.count("OFFSET CAST('0' AS BIGINT)"),
        mean.count("SUM(CAST("),
    ) == (1, 2, 3)
    assert (
        "SUM(CAST("
        not in written("SELECT ward, SUM(far) AS s FROM visits GROUP BY ward").partition(
            "GROUP BY"
        )[0]
    )
    assert "OFFSET" not in written("SELECT COUNT(*) AS n FROM visits")
    asked.close()


def test_what_a_condition_guards_is_not_computed_before_it() -> None:
    x = exp.column("x", quoted=True)
    guarded = nodes.case([(exp.Is(this=x.copy(), expression=exp.Null()), nodes.whole(0)),
                          (exp.LT(this=exp.Ln(this=x.copy()), expression=nodes.whole(1)), nodes.whole(1))],
                         exp.Floor(this=exp.Ln(this=x.copy())))  # fmt: skip
    lines = exp.select(exp.alias_(guarded, "v", quoted=True)).from_("t").subquery("lines")
    total = exp.Sum(this=exp.column("v", quoted=True))
    tree = exp.select(exp.alias_(total, "s", quoted=True)).from_(lines)
    assert "OFFSET" not in write(tree)


def exact(asked: so.Session, query: str, **offer: Any) -> Any:
    plan = asked.preview(query, epsilon=1000, **offer)
    with asked._engine.snapshot(plan.statements) as run:
        return exactly(exact_groups(plan, [run(statement) for statement in plan.statements]))


def beside_duckdb(
    frame: pa.Table, columns: dict[str, Any], query: str, **offer: Any
) -> tuple[Any, Any]:
    """What the table clinic.v gives, and what the same rows give in DuckDB."""
    given: dict[str, Any] = {"columns": columns, "unit": "patient", "max_rows": 9, "name": "visits"}
    data = so.Dataset(frame, budget={"epsilon": 10**6, "delta": 0.1}, **given)
    with so.Session(data) as duckdb, session(table="clinic.v", columns=columns) as asked:
        return exact(asked, query, **offer), exact(duckdb, query, **offer)


def test_spans_far_before_the_calendar_are_cut(admin: Any) -> None:
    """9999 years before 2000 PostgreSQL has no moments, and would fail on a cell."""
    days = [date(1, 1, 1), date(1999, 12, 31), date(2020, 1, 1), None]
    admin.execute(
        f"CREATE TABLE clinic.v (patient int, day date); GRANT SELECT ON clinic.v TO {READER}"
    )
    for patient, day in enumerate(days):
        admin.execute("INSERT INTO clinic.v VALUES (%s, %s)", (patient, day))
    frame = pa.table({"patient": list(range(len(days))), "day": days})
    for width in ("9999 years", "9999 quarters", "9999 months", "9999 weeks", "7 months"):
        query = f"SELECT TIME_BUCKET('{width}', day) AS k, COUNT(*) AS n FROM visits GROUP BY TIME_BUCKET('{width}', day)"
        found, wanted = beside_duckdb(frame, {"day": {"type": "date"}}, query)
        assert found == wanted


def test_the_empty_text_is_a_text(admin: Any) -> None:
    admin.execute(
        "CREATE TABLE clinic.v AS SELECT 1 AS patient, ''::text AS ward UNION ALL SELECT 2, 'A'"
    )
    admin.execute(f"GRANT SELECT ON clinic.v TO {READER}")
    frame = pa.table({"patient": [1, 2], "ward": ["", "A"]})
    for values in ([""], ["", "A"], ["A"]):
        for key in ("ward", "SUBSTR(ward, 2)"):
            columns = {"ward": {"type": "category", "values": values}}
            found, wanted = beside_duckdb(
                frame, columns, f"SELECT {key} AS k, COUNT(*) AS n FROM visits GROUP BY {key}"
            )
            assert found == wanted


def test_texts_of_a_question_are_compared_byte_by_byte() -> None:
    """Two literals would else meet under the collation of the database, by which 'a' is often before 'B'."""
    from sqlglot import exp

    one, other = exp.Literal.string("a"), exp.Literal.string("B")
    assert write(exp.LT(this=one, expression=other)) == """('a' COLLATE "C") < ('B' COLLATE "C")"""


def test_zones_that_mean_something_else_to_postgresql_are_refused(admin: Any) -> None:
    admin.execute(
        f"CREATE TABLE clinic.v (patient int, at timestamptz); GRANT SELECT ON clinic.v TO {READER}"
    )
    for zone in ("CET", "EET", "MET", "WET"):
        with pytest.raises(InvalidDeclaration, match="takes this name for an abbreviation"):
            Postgres(
                declared(
                    table="clinic.v", columns={"at": {"type": "datetime", "zone": zone}}
                ).tables.values()
            )
    for zone in ("UTC", "GMT", "Europe/Brussels"):
        with session(table="clinic.v", columns={"at": {"type": "datetime", "zone": zone}}):
            pass


def test_a_cast_that_somebody_made_is_not_called(admin: Any) -> None:
    admin.execute(
        f"""
        CREATE TYPE clinic.letter AS ENUM ('a', 'b');
        CREATE FUNCTION clinic.other(clinic.letter) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT 'a' $$;
        CREATE CAST (clinic.letter AS text) WITH FUNCTION clinic.other(clinic.letter);
        CREATE TABLE clinic.v (patient clinic.letter, ward clinic.letter);
        INSERT INTO clinic.v VALUES ('a', 'a'), ('b', 'b'), ('b', NULL);
        GRANT SELECT ON clinic.v TO {READER};
        """
    )
    frame = pa.table({"patient": ["a", "b", "b"], "ward": ["a", "b", None]})
    columns = {"ward": {"type": "category", "values": ["a", "b"]}}
    for query in (
        "SELECT COUNT(DISTINCT patient) AS n FROM visits",
        "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward",
    ):
        found, wanted = beside_duckdb(frame, columns, query)
        assert found == wanted


@pytest.fixture
def letters_of_latin(admin: Any) -> Iterator[None]:
    """Who logs in has an encoding without most letters: a trigger of the server goes after what a client asks for."""
    admin.execute(
        f"""
        CREATE FUNCTION clinic.greet() RETURNS event_trigger LANGUAGE plpgsql AS
            $$ BEGIN IF session_user = '{READER}' THEN SET client_encoding = 'LATIN1'; END IF; END $$;
        GRANT EXECUTE ON FUNCTION clinic.greet() TO {READER};
        CREATE EVENT TRIGGER greet ON login EXECUTE FUNCTION clinic.greet();
        """
    )
    yield
    admin.execute("DROP EVENT TRIGGER greet")


def test_no_cell_lacks_a_letter_in_what_the_server_sends(
    admin: Any, letters_of_latin: None
) -> None:
    admin.execute("UPDATE clinic.visits SET city = '日本' WHERE city = 'city 3'")
    question = "SELECT city, COUNT(*) AS n FROM visits GROUP BY city"
    with session() as asked:
        cities = asked.sql(question, epsilon=1000, delta=0.01).to_arrow().column(0).to_pylist()
    assert "日本" in cities


@pytest.fixture(params=["numeric", "text"])
def read_otherwise(request: pytest.FixtureRequest) -> Iterator[None]:
    """What the manual of the driver proposes for programs that want no decimals, for all connections to come."""

    class Shouted(TextLoader):
        def load(self, data: Any) -> str:
            return str(super().load(data)).upper()

    own, other = (
        (NumericLoader, FloatLoader) if request.param == "numeric" else (TextLoader, Shouted)
    )
    psycopg.adapters.register_loader(request.param, other)
    yield
    psycopg.adapters.register_loader(request.param, own)


def test_what_a_program_has_its_own_connections_do_changes_no_integer(
    admin: Any, read_otherwise: None
) -> None:
    admin.execute(
        "CREATE TABLE clinic.far AS SELECT 2::bigint ^ 53 + i AS x FROM generate_series(1, 3) AS s(i)"
    )
    admin.execute("ALTER TABLE clinic.far ALTER x TYPE bigint, ADD city text DEFAULT 'oslo'")
    admin.execute(f"GRANT SELECT ON clinic.far TO {READER}")
    columns = {"x": {"type": "int", "min": 2**53, "max": 2**53 + 9}, "city": {"type": "text"}}
    with session(table="clinic.far", unit="row", columns=columns, max_rows=None) as asked:
        plan = asked.preview("SELECT SUM(x) AS s FROM visits", epsilon=1)
        with asked._engine.snapshot(plan.statements) as run:
            sums = [run(statement).sums.tolist() for statement in plan.statements]
        by_city = asked.sql(
            "SELECT city, COUNT(*) AS n FROM visits GROUP BY city", epsilon=1000, delta=0.01
        )
    assert sums == [[[3 * 2**53 + 6]]]
    assert by_city.to_arrow().column(0).to_pylist() == ["oslo"]


def test_a_domain_of_an_enumeration_is_an_enumeration(admin: Any) -> None:
    admin.execute(
        """
        CREATE TYPE clinic.wards AS ENUM ('A', 'B', 'C');
        CREATE FUNCTION clinic.other(clinic.wards) RETURNS text LANGUAGE sql AS $$ SELECT 'A' $$;
        CREATE CAST (clinic.wards AS text) WITH FUNCTION clinic.other(clinic.wards) AS ASSIGNMENT;
        CREATE DOMAIN clinic.places AS clinic.wards;
        CREATE DOMAIN clinic.rooms AS clinic.places;
        CREATE TABLE clinic.in_rooms AS SELECT i / 3 AS id, CAST(substr('AABC', 1 + i % 4, 1) AS clinic.rooms) AS ward,
            CAST(substr('AABC', 1 + i % 4, 1) AS clinic.wards) AS plain FROM generate_series(1, 40) AS s(i);
        INSERT INTO clinic.in_rooms VALUES (1, NULL, NULL);
        """
    )
    admin.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA clinic TO {READER}")
    found = []
    for name in ("ward", "plain"):
        columns = {name: COLUMNS["ward"]}
        with session(table="clinic.in_rooms", unit="id", columns=columns) as asked:
            plan = asked.preview(
                f"SELECT COUNT(*) FILTER (WHERE {name} = 'A') AS a, COUNT({name}) AS n FROM visits",
                epsilon=1,
                bias=False,
            )
            with asked._engine.snapshot(plan.statements) as run:
                found.append([run(statement).sums.tolist() for statement in plan.statements])
    assert found == [[[[20, 40]]]] * 2


def test_what_a_person_is_called_is_not_listed_row_by_row(admin: Any) -> None:
    """A list of all rows' names fails when it is full, which one person's long name and many rows bring about."""
    columns = {**COLUMNS, "patient": {"type": "int", "min": 0, "max": 200}}
    people = "SELECT patient, COUNT(*) AS c FROM visits GROUP BY patient"
    question = f"SELECT COUNT(*) AS n FROM ({people}) AS p WHERE patient < 50"
    with session(columns=columns) as asked:
        (statement,) = asked.preview(question, epsilon=1).statements
        assert "ARRAY_AGG" not in statement.text("postgres")
        assert asked._engine.run(statement).sums.tolist() == [[50]]


def test_days_of_public_files_beyond_the_calendar_are_sent(admin: Any) -> None:
    far = pa.array([2**31 - 10, -(2**31) + 10], pa.int32()).cast(pa.date32())
    at = pa.array([2**62, -(2**61)], pa.int64()).cast(pa.timestamp("us"))
    wards = {"source": pa.table({"ward": ["A", "B"], "day": far, "at": at}), "public": True, "key": ["ward"],
             "columns": {"ward": {"type": "text"}, "day": {"type": "date"}, "at": {"type": "datetime"}}}  # fmt: skip
    visits = {
        "source": server().address(user=READER),
        "table": "clinic.visits",
        "unit": "patient",
        "max_rows": 9,
    }
    data = so.Dataset(
        tables={"visits": {**visits, "columns": COLUMNS}, "wards": wards}, budget={"epsilon": 10**6}
    )
    with so.Session(data) as asked:
        where = "w.day > '9999-01-01' AND w.at > '9999-01-01' OR w.day < '0001-02-01' AND w.at < '0001-02-01'"
        query = f"SELECT COUNT(*) AS n FROM visits v JOIN wards w ON v.ward = w.ward WHERE {where}"
        assert number(asked.sql(query, epsilon=1000)) == pytest.approx(150, abs=2)


# one snapshot, and faults


class Meddled:
    """The engine of a session, with something that happens before a statement of a question runs."""

    def __init__(self, before: Any, **limits: Any) -> None:
        self.before, self.limits = before, limits

    def __call__(self, tables: Any) -> Postgres:
        outer = self

        class Watched(Postgres):
            def _run(self, statement: Any, deadline: float | None = None) -> Any:
                outer.before(self)
                return super()._run(statement, deadline)

        return Watched(tables, **self.limits)


def spent(asked: so.Session) -> int:
    return len(asked.receipts)


def test_all_statements_of_a_question_see_one_moment(admin: Any) -> None:
    """Rows that are committed after the charge, or between two statements, are not in the answer."""
    more = "INSERT INTO clinic.visits SELECT 5000 + i, 50, 1, 'A', 'x' FROM generate_series(1, 1000) AS s(i)"
    engine = Meddled(lambda _: admin.execute(more))
    with so.Session(declared(), engine=engine) as asked:
        query = "SELECT COUNT(*) AS n, QUANTILE(age, 0.5) AS q FROM visits"
        assert len(asked.preview(query, epsilon=1000).statements) > 1
        answer = asked.sql(query, epsilon=1000).to_arrow().to_pydict()
        assert answer["n"][0] == pytest.approx(300, abs=2)
        assert number(asked.sql(COUNT, epsilon=1000)) > 1500


@pytest.mark.parametrize(
    "change",
    [
        "DROP TABLE clinic.visits",
        "ALTER TABLE clinic.visits DROP COLUMN cost",
        "ALTER TABLE clinic.visits ALTER COLUMN cost TYPE float8",
        "ALTER TABLE clinic.visits RENAME COLUMN age TO years",
        "ALTER TABLE clinic.visits RENAME TO others",
        "ALTER TABLE clinic.visits ENABLE ROW LEVEL SECURITY",
        "CREATE TABLE clinic.c () INHERITS (clinic.visits)",
        "ALTER TABLE clinic.visits RENAME TO o; CREATE TABLE clinic.visits AS SELECT * FROM clinic.o;"
        f" GRANT SELECT ON clinic.visits TO {READER}",
        f"REVOKE SELECT ON clinic.visits FROM {READER}",
    ],
)
def test_a_table_that_was_altered_is_refused_before_the_charge(admin: Any, change: str) -> None:
    with session() as asked:
        asked.sql(COUNT, epsilon=1)
        admin.execute(change)
        with pytest.raises(InvalidInput, match="dropped, replaced or altered"):
            asked.sql(COUNT, epsilon=1)
        assert spent(asked) == 1


def test_an_interrupt_before_the_charge_leaves_no_old_moment_behind(
    admin: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with session() as asked:
        with monkeypatch.context() as patch:
            patch.setattr("sordino.engines.postgres.engine.rewritten", _interrupted)
            with pytest.raises(KeyboardInterrupt):
                asked.sql(COUNT, epsilon=1)
        admin.execute(
            "INSERT INTO clinic.visits SELECT 5000 + i, 5, 1, 'A', 'x' FROM generate_series(1, 500) AS s(i)"
        )
        assert number(asked.sql(COUNT, epsilon=1000)) == pytest.approx(800, abs=2)
        assert spent(asked) == 1


def _interrupted(ask: Any, oids: Any) -> bool:
    ask("SELECT 1")
    raise KeyboardInterrupt


def test_a_table_may_be_rewritten_or_get_columns(admin: Any) -> None:
    with session() as asked:
        for change in (
            "VACUUM FULL clinic.visits",
            "ALTER TABLE clinic.visits ADD COLUMN more int DEFAULT 5",
        ):
            admin.execute(change)
            assert number(asked.sql(COUNT, epsilon=1000)) == pytest.approx(300, abs=2)


def test_a_table_emptied_before_the_lock_does_not_look_empty(
    admin: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A role without the right to lock: what was rewritten after the first look is noticed, and looked at anew."""
    admin.execute(f"REVOKE SELECT ON clinic.visits FROM {READER}; GRANT SELECT ({', '.join(['patient', *COLUMNS])})"
                  f" ON clinic.visits TO {READER}")  # fmt: skip
    refill = "TRUNCATE clinic.visits; INSERT INTO clinic.visits SELECT i, 5, 1, 'A', 'x' FROM generate_series(1, 70) AS s(i)"
    happening = [lambda: admin.execute(refill)]

    def late(connection: Any, _: Any) -> None:
        connection.ask("SELECT 1")
        if happening:
            happening.pop()()

    with session() as asked:
        monkeypatch.setattr("sordino.engines.postgres.connection.Connection.lock", late)
        assert number(asked.sql(COUNT, epsilon=1000)) == pytest.approx(70, abs=2)


@pytest.mark.parametrize("what", ["columns", "materialized"])
def test_what_cannot_be_locked_is_held_all_the_same(
    admin: Any, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """From before the catalog is compared: what is emptied or refreshed after that would look empty,
    or be other data.
    """
    if what == "columns":
        names = ", ".join(["patient", *COLUMNS])
        admin.execute(
            f"REVOKE SELECT ON clinic.visits FROM {READER}; GRANT SELECT ({names}) ON clinic.visits TO {READER}"
        )
        more, change = {}, "TRUNCATE clinic.visits"
    else:
        admin.execute("CREATE MATERIALIZED VIEW clinic.v AS SELECT * FROM clinic.visits")
        admin.execute(f"GRANT SELECT ON clinic.v TO {READER}; DELETE FROM clinic.visits")
        more, change = (
            {"table": "clinic.v", "materialized": True},
            "REFRESH MATERIALIZED VIEW clinic.v",
        )
    admin.execute("SET lock_timeout = '200ms'")

    def late(ask: Any, tables: Any) -> Any:
        found = facts_of(ask, tables)
        with pytest.raises(psycopg.errors.LockNotAvailable):
            admin.execute(change)
        return found

    with session(**more) as asked:
        monkeypatch.setattr("sordino.engines.postgres.engine.facts_of", late)
        assert number(asked.sql(COUNT, epsilon=1000)) == pytest.approx(300, abs=2)


def test_a_part_attached_during_a_question_is_not_read(admin: Any) -> None:
    """No lock of a reader prevents it, and later statements would see other rows than earlier ones."""
    admin.execute(
        f"""
        CREATE TABLE clinic.p (LIKE clinic.visits) PARTITION BY LIST (ward);
        CREATE TABLE clinic.p1 PARTITION OF clinic.p FOR VALUES IN ('A', 'B');
        CREATE TABLE clinic.p2 (LIKE clinic.visits);
        INSERT INTO clinic.p SELECT * FROM clinic.visits WHERE ward IN ('A', 'B');
        INSERT INTO clinic.p2 SELECT * FROM clinic.visits WHERE ward = 'C';
        GRANT SELECT ON ALL TABLES IN SCHEMA clinic TO {READER};
        """
    )
    happening = [
        lambda: admin.execute("ALTER TABLE clinic.p ATTACH PARTITION clinic.p2 FOR VALUES IN ('C')")
    ]
    engine = Meddled(lambda _: happening and happening.pop()())
    with so.Session(declared(table="clinic.p"), engine=engine) as asked:
        with pytest.raises(EngineFailed):
            asked.sql(COUNT, epsilon=1000)
        assert number(asked.sql(COUNT, epsilon=1000)) == pytest.approx(225, abs=2)


def test_a_table_cannot_be_dropped_during_a_question(admin: Any) -> None:
    admin.execute("SET lock_timeout = '200ms'")

    def drop(_: Any) -> None:
        with pytest.raises(psycopg.errors.LockNotAvailable):
            admin.execute("DROP TABLE clinic.visits")

    with so.Session(declared(), engine=Meddled(drop)) as asked:
        assert number(asked.sql(COUNT, epsilon=1000)) == pytest.approx(300, abs=2)


def test_a_lost_connection_is_opened_again_before_the_charge(admin: Any) -> None:
    with session() as asked:
        asked.sql(COUNT, epsilon=1)
        admin.execute(
            f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{READER}'"
        )
        assert number(asked.sql(COUNT, epsilon=1000)) == pytest.approx(300, abs=2)


def test_a_connection_lost_after_the_charge_is_one_fixed_text(admin: Any) -> None:
    kill = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{READER}'"
    happening = [lambda: admin.execute(kill)]
    with so.Session(declared(), engine=Meddled(lambda _: happening and happening.pop()())) as asked:
        with pytest.raises(EngineFailed) as failed:
            asked.sql(COUNT, epsilon=1)
        assert failed.value.__cause__ is None
        assert failed.value.__context__ is None
        assert spent(asked) == 1
        assert number(asked.sql(COUNT, epsilon=1000)) == pytest.approx(300, abs=2)


def test_a_server_that_restarts(admin: Any) -> None:
    other = PostgresServer()
    try:
        other.run(
            "CREATE TABLE visits AS SELECT i AS patient, 5 AS age FROM generate_series(1, 50) AS s(i)"
        )
        data = so.Dataset(
            other.address(), table="visits", unit="patient", max_rows=1, columns={"age": COLUMNS["age"]},
            budget={"epsilon": 10**6},
        )  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeclarationWarning)
            asked = so.Session(data)
        with asked:
            other.stop("immediate")
            with pytest.raises(InvalidInput, match="server"):
                asked.sql(COUNT, epsilon=1)
            assert spent(asked) == 0
            other.start()
            assert number(asked.sql(COUNT, epsilon=1000)) == pytest.approx(50, abs=2)
    finally:
        other.close()


def test_a_deadline_and_an_interrupt_end_a_statement(admin: Any) -> None:
    admin.execute(
        "INSERT INTO clinic.visits SELECT i, 5, 1, 'A', 'x' || i FROM generate_series(1, 200000) AS s(i)"
    )
    slow = "SELECT city, COUNT(*) AS n, AVG(cost) AS c FROM visits GROUP BY city"
    hurried = so.Session(declared(), engine=partial(Postgres, deadline=0.005))
    with hurried as asked, pytest.raises(EngineFailed):
        asked.sql(slow, epsilon=1, delta=0.01)
    with session() as asked:
        asked.deadline = 0.005  # of a question, and not of the engine
        with pytest.raises(EngineFailed):
            asked.sql(slow, epsilon=1, delta=0.01)
        asked.deadline = None
        done = threading.Event()

        def interrupt() -> None:
            while not done.wait(0.05):  # one that comes between two statements stops nothing
                asked.interrupt()

        stop = threading.Thread(target=interrupt)
        stop.start()
        began = time.monotonic()
        with pytest.raises(EngineFailed):
            _repeated(lambda: asked.sql(slow, epsilon=1, delta=1e-4))
        done.set()
        stop.join()
        assert time.monotonic() - began < 20
        assert number(asked.sql(COUNT, epsilon=1000)) > 200_000
    for wrong in (0, -1, "60", True, float("nan")):
        with pytest.raises(InvalidInput, match="deadline"):
            Postgres(declared().tables.values(), deadline=wrong)  # type: ignore[arg-type]


def _repeated(ask: Any) -> None:
    for _ in range(50):
        ask()


def test_settings_of_the_server_do_not_change_what_is_meant(admin: Any) -> None:
    settings = ("DateStyle = 'SQL, DMY'", "TimeZone = 'Asia/Tokyo'", "extra_float_digits = -15", "bytea_output = 'escape'",
                "transform_null_equals = on", "search_path = clinic", "default_transaction_isolation = 'read committed'",
                "IntervalStyle = 'iso_8601'", "enable_hashagg = off", "standard_conforming_strings = off",
                "quote_all_identifiers = on", "timezone_abbreviations = 'Australia'")  # fmt: skip
    query = "SELECT ward, SUM(cost) AS c, COUNT(DISTINCT city) AS n FROM visits WHERE city <> 'a\\b' GROUP BY ward"
    plain: list[Any] = []
    odd: list[Any] = []
    for found in (plain, odd):
        with session() as asked:
            plan = asked.preview(query, epsilon=1000)
            with asked._engine.snapshot(plan.statements) as run:
                found.append(
                    exactly(exact_groups(plan, [run(statement) for statement in plan.statements]))
                )
        for setting in settings:
            admin.execute(f"ALTER ROLE {READER} SET {setting}")
    admin.execute(f"ALTER ROLE {READER} RESET ALL")
    assert plain == odd


def test_nothing_is_written_and_nothing_can_be(admin: Any) -> None:
    with (
        session() as asked,
        asked._engine.snapshot(),
        pytest.raises(psycopg.errors.ReadOnlySqlTransaction),
    ):
        asked._engine._connection.ask("CREATE TABLE clinic.x (i int)")  # type: ignore[attr-defined]


# passwords


def test_passwords_come_from_files_and_are_never_shown(
    admin: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    admin.execute(
        f"GRANT USAGE ON SCHEMA clinic TO {LOCKED}; GRANT SELECT ON clinic.visits TO {LOCKED}"
    )
    (tmp_path / "secret").write_text(f"{PASSWORD}\n")
    (tmp_path / "wrong").write_text("not this one\n")
    entries: dict[str, Any] = {
        "table": "clinic.visits",
        "unit": "patient",
        "max_rows": 1,
        "columns": COLUMNS,
        "name": "visits",
    }
    plain = server().address(user=LOCKED)
    texts = []
    wrong: list[dict[str, Any]] = [
        {},
        {"password_file": tmp_path / "wrong"},
        {"password_file": tmp_path / "none"},
    ]
    for more in wrong:
        with pytest.raises(InvalidDeclaration, match=r"user in|cannot be read") as refused:
            so.Session(so.Dataset(plain, budget={"epsilon": 1}, **entries, **more))
        texts.append(str(refused.value) + repr(refused.value.__context__))
        # what programs that report errors send along: the variables of all functions on the way
        texts += [
            repr(frame.f_locals)
            for frame, _ in traceback.walk_tb(refused.value.__traceback__)
            if "postgres" in frame.f_code.co_filename and "tests" not in frame.f_code.co_filename
        ]
    data = so.Dataset(plain, budget={"epsilon": 1}, password_file=tmp_path / "secret", **entries)
    with so.Session(data, ledger=tmp_path / "a.ledger") as asked:
        texts += [asked.sql(COUNT, epsilon=1).to_json(), repr(asked), repr(data)]
    with pytest.warns(DeclarationWarning, match="holds a password"):
        data = so.Dataset(
            server().address(user=LOCKED, password=PASSWORD), budget={"epsilon": 1}, **entries
        )
    with so.Session(data) as asked:
        texts += [asked.sql(COUNT, epsilon=1).to_json(), repr(data), str(asked.receipts)]
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    with so.Session(so.Dataset(plain, budget={"epsilon": 1}, **entries)) as asked:
        asked.sql(COUNT, epsilon=1)
    texts.append((tmp_path / "a.ledger").read_bytes().decode("latin-1"))
    assert [text for text in texts if "hush" in text or "not this one" in text] == []


def test_the_same_data_through_two_ledgers_are_noticed(
    admin: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SORDINO_STATE", str(tmp_path / "state"))
    with so.Session(declared(), ledger=tmp_path / "one.ledger") as asked:
        asked.sql(COUNT, epsilon=1)
    with (
        pytest.warns(so.errors.LedgerWarning, match="also guarded"),
        so.Session(declared(), ledger=tmp_path / "two.ledger"),
    ):
        pass


def test_protected_files_are_not_sent() -> None:
    data = so.Dataset(pa.table({"x": [1]}), unit="row")
    with pytest.raises(InvalidDeclaration, match="none of the tables is in PostgreSQL"):
        Postgres(data.tables.values())


def test_a_missing_driver_says_what_to_install(tmp_path: Path) -> None:
    script = f"""
import sys
sys.modules["psycopg"] = None
import sordino as so
try:
    data = so.Dataset("postgresql://db/hospital", table="visits", unit="row", budget={{"epsilon": 1}})
    so.Session(data, ledger={str(tmp_path / "a")!r})
except so.errors.InvalidInput as refused:
    print(refused)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert "pip install 'sordino[postgres]'" in done.stdout
    assert not (tmp_path / "a").exists()

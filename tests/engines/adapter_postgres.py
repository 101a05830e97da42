"""PostgreSQL for the conformance suite: a real server, and one open engine whose tables are exchanged."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import pyarrow as pa

from engine_reference import named_only
from ledger.postgres_server import PostgresServer
from sordino.audit.replayed.distances import Exactly, exactly
from sordino.engines.engine import Exact
from sordino.engines.postgres import Postgres
from sordino.plan.plan import Plan
from sordino.plan.statement import Statement
from sordino.query.dataset import Source, Table
from sordino.release import exact_groups

__all__ = ["Adapter", "hostile_database", "server", "write_table"]

_SETTINGS = (
    "search_path = public, pg_catalog", "DateStyle = 'SQL, DMY'", "TimeZone = 'Asia/Tokyo'", "extra_float_digits = -15",
    "bytea_output = 'escape'", "transform_null_equals = on", "IntervalStyle = 'iso_8601'", "quote_all_identifiers = on",
    "standard_conforming_strings = off", "timezone_abbreviations = 'Australia'",
    "default_transaction_isolation = 'read committed'",
)  # fmt: skip
_ORDERED = (
    "boolean",
    "integer",
    "bigint",
    "numeric",
    "double precision",
    "text",
    "date",
    "timestamp",
)
_NUMBERS = ("integer", "bigint", "numeric", "double precision")
_OF_TEXTS = ("md5", "lower", "upper", "char_length", "octet_length", "trim_scale")


@cache
def server() -> PostgresServer:
    """A server of this test process; it ends with it."""
    return PostgresServer()


@cache
def hostile_database() -> str:
    """A database whose settings, and whose operators and functions in `public`, mean something else than usual.

    Letters have the cases of all of Unicode in it, where C knows those of ASCII only.
    """
    locale = ("TEMPLATE template0", "LOCALE_PROVIDER builtin", "BUILTIN_LOCALE 'PG_UNICODE_FAST'")
    name = server().database("hostile", *locale)
    made = []
    for kind in _ORDERED:
        made.append(
            f"CREATE FUNCTION public.never({kind}, {kind}) RETURNS boolean LANGUAGE sql AS 'SELECT false'"
        )
        made += [
            f"CREATE OPERATOR public.{sign} (LEFTARG = {kind}, RIGHTARG = {kind}, FUNCTION = public.never)"
            for sign in ("=", "<>", "<", "<=", ">", ">=")
        ]
        made.append(
            f"CREATE FUNCTION public.first({kind}, {kind}) RETURNS {kind} LANGUAGE sql AS 'SELECT $1'"
        )
        made += [
            f"CREATE AGGREGATE public.{name} ({kind}) (SFUNC = public.first, STYPE = {kind})"
            for name in ("sum", "min", "max")
        ]
    for kind in _NUMBERS:
        made += [
            f"CREATE OPERATOR public.{sign} (LEFTARG = {kind}, RIGHTARG = {kind}, FUNCTION = public.first)"
            for sign in "+-*/%"
        ]
        made += [
            f"CREATE FUNCTION public.{name}({kind}) RETURNS {kind} LANGUAGE sql AS 'SELECT $1'"
            for name in ("abs", "floor", "ceil", "trunc", "sign")
        ]
    made += [
        f"CREATE FUNCTION public.{name}(text) RETURNS text LANGUAGE sql AS 'SELECT $1'"
        for name in _OF_TEXTS
    ]
    with server().connect(name) as connection:
        for statement in made:
            connection.execute(statement)
        for setting in _SETTINGS:
            connection.execute(f"ALTER DATABASE {name} SET {setting}")
    return name


def postgres_type(kind: pa.DataType) -> str:
    """The type of a column that holds what an Arrow column holds."""
    t = pa.types
    if t.is_decimal(kind):
        return f"numeric({kind.precision},{kind.scale})"
    words = [
        (t.is_boolean, "boolean"), (t.is_int8, "smallint"), (t.is_int16, "smallint"), (t.is_int32, "integer"),
        (t.is_int64, "bigint"), (t.is_uint64, "numeric(20,0)"), (t.is_float32, "real"), (t.is_floating, "double precision"),
        (t.is_string, "text"), (t.is_large_string, "text"), (t.is_binary, "bytea"), (t.is_date, "date"),
        (t.is_timestamp, "timestamp"),
    ]  # fmt: skip
    return next(word for holds, word in words if holds(kind))


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def write_table(connection: Any, place: str, frame: pa.Table, unique: tuple[str, ...] = ()) -> None:
    """A table with the rows of a frame."""
    columns = ", ".join(f"{quoted(f.name)} {postgres_type(f.type)}" for f in frame.schema)
    key = f", UNIQUE ({', '.join(map(quoted, unique))})" if unique else ""
    connection.execute(f"CREATE TABLE {place} ({columns}{key})")
    with connection.cursor().copy(f"COPY {place} FROM STDIN") as copy:
        for row in frame.to_pylist():
            copy.write_row(list(row.values()))


class Adapter:
    """Exchanges tables in a schema, and opens the engine anew each time."""

    def __init__(self) -> None:
        self.server = server()
        self.database = hostile_database()
        self.admin = self.server.connect(self.database)
        self.admin.execute("SET standard_conforming_strings = on")  # else bytes are copied as texts
        self.engine: Postgres | None = None

    def load(self, declared: Mapping[str, Table], rows: Mapping[str, pa.Table]) -> None:
        """Public tables stay files, which are sent; all others become tables of the database."""
        if self.engine is not None:
            self.engine.close()
        self.admin.execute("DROP SCHEMA IF EXISTS world CASCADE; CREATE SCHEMA world")
        tables = []
        for name, table in declared.items():
            if table.public:
                tables.append(replace(table, source=Source("frame", frame=rows[name])))
                continue
            children = [
                t.via.of_parent
                for t in declared.values()
                if t.via is not None and t.via.parent == name
            ]
            write_table(
                self.admin, f"world.{quoted(name)}", rows[name], children[0] if children else ()
            )
            address = self.server.address(database=self.database)
            source = Source("postgres", table=f"world.{quoted(name)}", address=address)
            tables.append(replace(table, source=source))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.engine = Postgres(tables)

    def run(self, plan: Plan) -> Exactly:
        """What PostgreSQL and `exact_groups` make of the loaded tables."""
        assert self.engine is not None
        with self.engine.snapshot(plan.statements) as run:
            groups = exact_groups(plan, [run(statement) for statement in plan.statements])
        return named_only(plan, exactly(groups))

    def exact(self, statement: Statement) -> Exact:
        """What one statement gives."""
        assert self.engine is not None
        return self.engine.run(statement)

    def close(self) -> None:
        """The server stays for other tests of this process."""
        if self.engine is not None:
            self.engine.close()
        self.admin.close()

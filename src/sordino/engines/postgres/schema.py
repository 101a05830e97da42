"""The tables of a PostgreSQL database and the types of their columns, for a declaration to fill in; no row is read."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import psycopg

from sordino.engines.postgres.connection import connect, sqlstate
from sordino.engines.postgres.engine import Postgres
from sordino.engines.postgres.forms import kind_of
from sordino.engines.postgres.sources import expect_readable, facts_of
from sordino.errors import InvalidDeclaration
from sordino.query.dataset import Kind, Source, Table
from sordino.query.sources import name_parts
from sordino.query.stub import Fields, type_word

__all__ = ["source_columns_of", "tables_of"]

_READABLE = """
SELECT n.nspname::text, c.relname::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND n.nspname NOT IN ('pg_catalog', 'information_schema')
    AND c.relpersistence <> 't' AND has_schema_privilege(n.oid, 'USAGE')
    AND (has_table_privilege(c.oid, 'SELECT') OR has_any_column_privilege(c.oid, 'SELECT'))
ORDER BY 1, 2
"""


def source_columns_of(tables: Sequence[Table]) -> dict[str, list[str]]:
    """The names of the columns of each table there, which enter as a session has them enter; no row is read."""
    with closing(Postgres(tables)) as engine:
        return engine.source_columns


def tables_of(
    address: str, table: str | None, password_file: Path | None = None
) -> dict[str, Fields]:
    """The columns of each table that may be read, by schema and name; of one table if it is named.

    One that no session would read is refused, but for a materialized view, which a declaration can allow.
    """
    source = Source("postgres", address=address, password_file=password_file)
    connection, failed = connect(source, source.shown), ""
    try:
        connection.begin()
        wanted = [_parts(table)] if table is not None else connection.ask(_READABLE)
        places = [".".join(map(_spelled, parts)) for parts in wanted]
        tables = [Table(place, Source("postgres", table=place), {}) for place in places]
        facts = facts_of(connection.ask, tables)
        if table is not None:
            materialized = any(row[2] == "m" for row in facts.relations)
            named = replace(tables[0], source=replace(tables[0].source, materialized=materialized))
            expect_readable(connection.ask, named, 1, facts, source.shown)
    except psycopg.Error as error:
        failed = sqlstate(error) or "no answer"
    finally:
        connection.close()
    if failed:
        rule = f"the server failed while its catalog was read ({failed})"
        raise InvalidDeclaration(source.shown, rule, "Check the server and the rights of its user.")
    found: dict[str, list[tuple[str, Kind | None, str]]] = {
        places[row[0] - 1]: [] for row in facts.relations
    }
    for place, _, name, generated, kind, readable in facts.columns:
        fits = kind_of(kind) if readable and generated != "v" else None
        found[places[place - 1]].append((name, fits, type_word(kind)))
    return dict(found)


def _parts(table: str) -> tuple[str, str]:
    parts = name_parts(table) or [table]
    return (parts[-2], parts[-1]) if len(parts) > 1 else ("public", parts[-1])


def _spelled(name: str) -> str:
    return '"' + name.replace('"', '""') + '"' if set('". ') & set(name) else name

"""The tables of a catalog of Spark and the types of their columns, for a declaration to fill in; no cell is read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sordino.engines.gate import Admitted, expect_comparable, unreadable
from sordino.engines.spark.dialect import quoted
from sordino.engines.spark.forms import kind_of
from sordino.engines.spark.sessions import end_session, open_session, quiet
from sordino.engines.spark.sources import expect_base_table, is_base_table, looked_at
from sordino.errors import InvalidDeclaration
from sordino.query.dataset import Table
from sordino.query.sources import engine_of, name_parts
from sordino.query.stub import Fields, type_word

__all__ = ["base_tables", "source_columns_of", "tables_of"]


def source_columns_of(tables: Sequence[Table]) -> dict[str, list[str]]:
    """The names of the columns of each table there, which enter as they would for a session; no cell is read."""
    here = [table for table in tables if engine_of(table.source) == "spark"]
    names: dict[str, list[str]] = {}
    entered: dict[str, Sequence[Admitted]] = {table.name: () for table in tables}
    session = open_session(here[0].source.address)
    try:
        for table in here:
            names[table.name], entered[table.name] = _columns_of(session, table)
    finally:
        end_session(session)
    expect_comparable(tables, entered)
    return names


def _columns_of(session: Any, table: Table) -> tuple[list[str], Sequence[Admitted]]:
    with quiet():
        try:
            read, chosen = looked_at(session, table)
            return [column.name for column in read.columns], chosen
        except InvalidDeclaration:
            raise
        except Exception as error:
            failed = type(error).__name__
    raise unreadable(
        table, failed
    )  # outside of `except`: what it would carry along may quote cells


def tables_of(address: str, table: str | None) -> dict[str, Fields]:
    """The columns of the base tables in the current schema of the catalog, or of one table."""
    session = open_session(None if address == "spark" else address)
    failed = ""
    tables: dict[str, Fields] = {}
    with quiet():
        try:
            names = [table] if table is not None else base_tables(session)
            for name in names:
                path = ".".join(quoted(part) for part in name_parts(name))
                if table is not None:
                    expect_base_table(session, path, f"table = {name!r}")
                fields = session.table(path).schema.fields
                words = [(field.name, field.dataType.simpleString()) for field in fields]
                tables[name] = [
                    (column, kind_of(kind), type_word(kind.upper())) for column, kind in words
                ]
        except InvalidDeclaration:
            raise
        except Exception as error:
            failed = type(error).__name__
        finally:
            end_session(session)
    if failed:
        rule = f"the catalog could not be read ({failed})"
        raise InvalidDeclaration(
            f"table = {table!r}", rule, "Name a table that is there: clinic.visits."
        )
    return tables


def base_tables(session: Any) -> list[str]:
    """The tables of the current schema that are no views."""
    found = []
    for row in session.sql("SHOW TABLES").collect():
        if not row["isTemporary"]:
            parts = (*str(row["namespace"]).split("."), str(row["tableName"]))
            if is_base_table(session, ".".join(map(quoted, parts))):
                found.append(".".join(map(_written, parts)))
    return found


def _written(name: str) -> str:
    return '"' + name.replace('"', '""') + '"' if "." in name or '"' in name else name

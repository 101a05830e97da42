"""The tables of a catalog of Spark and the types of their columns, for a declaration to fill in; no cell is read."""

from __future__ import annotations

from typing import Any

from sordino.engines.spark.dialect import quoted
from sordino.engines.spark.forms import kind_of
from sordino.engines.spark.sessions import end_session, open_session, quiet
from sordino.engines.spark.sources import is_base_table
from sordino.errors import InvalidDeclaration
from sordino.query.sources import name_parts
from sordino.query.stub import Fields, type_word

__all__ = ["base_tables", "tables_of"]


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
                fields = session.table(path).schema.fields
                words = [(field.name, field.dataType.simpleString()) for field in fields]
                tables[name] = [
                    (column, kind_of(kind), type_word(kind.upper())) for column, kind in words
                ]
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

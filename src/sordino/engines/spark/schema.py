"""The tables of a catalog of Spark and the types of their columns, for a declaration to fill in; no cell is read."""

from __future__ import annotations

from sordino.engines.spark.dialect import quoted
from sordino.engines.spark.forms import kind_of
from sordino.engines.spark.sessions import open_session, quiet
from sordino.errors import InvalidDeclaration
from sordino.query.sources import name_parts
from sordino.query.stub import Fields, type_word

__all__ = ["tables_of"]


def tables_of(address: str, table: str | None) -> dict[str, Fields]:
    """The columns of the base tables in the current schema of the catalog, or of one table."""
    session, own = open_session(None if address == "spark" else address)
    failed = ""
    tables: dict[str, Fields] = {}
    with quiet():
        try:
            names = [table] if table is not None else _tables(session)
            for name in names:
                path = ".".join(quoted(part) for part in name_parts(name))
                fields = session.table(path).schema.fields
                words = [(field.name, field.dataType.simpleString()) for field in fields]
                tables[name] = [(column, kind_of(kind), type_word(kind.upper())) for column, kind in words]
        except Exception as error:
            failed = type(error).__name__
        finally:
            if own:
                session.stop()
    if failed:
        rule = f"the catalog could not be read ({failed})"
        raise InvalidDeclaration(f"table = {table!r}", rule, "Name a table that is there: clinic.visits.")
    return tables


def _tables(session: object) -> list[str]:
    listed = session.catalog.listTables()  # type: ignore[attr-defined]
    plain = [one for one in listed if one.tableType in ("MANAGED", "EXTERNAL")]
    return [".".join(_written(part) for part in (*(one.namespace or ()), one.name)) for one in plain]


def _written(name: str) -> str:
    return '"' + name.replace('"', '""') + '"' if "." in name or '"' in name else name

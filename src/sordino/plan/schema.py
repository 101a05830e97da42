"""Does the source hold what was declared? Looks at names and types of columns, never at cells."""

from __future__ import annotations

from collections.abc import Mapping

from sordino.errors import InvalidDeclaration, InvalidInput
from sordino.plan.scope import find
from sordino.query.dataset import Table
from sordino.query.meaning.reading import matches

__all__ = ["check_schema"]


def check_schema(table: Table, schema: Mapping[str, str]) -> None:
    """Refuse a declaration whose columns the source lacks, or holds in another type."""
    where = f"tables.{table.name}"
    if table.person is not None:
        _present(f"{where}.unit = {table.person!r}", table.person, schema, table)
    for name, column in table.columns.items():
        key = f"{where}.columns.{name}"
        kind = schema[_present(key, name, schema, table)]
        if not matches(column, kind):
            rule = f"the source holds {kind}, which is not read as {column.kind}"
            hint = f"Declare the type that fits {kind}, or convert the source."
            raise InvalidDeclaration(f"{key} with type = {column.kind!r}", rule, hint)


def _present(key: str, name: str, schema: Mapping[str, str], table: Table) -> str:
    try:
        return find("column", name, schema, "")
    except InvalidInput as missing:
        # a CSV without a header would show its first record here
        named = table.source.kind != "csv"
        hint = missing.hint.replace("Declared:", "It has:") if named else "Its first line must name the columns."
        raise InvalidDeclaration(key, "the source has no such column", hint) from None

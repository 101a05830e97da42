"""Whether declared tables fit their sources, from names and types of columns alone.

This is what a session refuses when it opens, but for what only cells can tell: quotes in a CSV file, cells that are too
long, keys that two rows share.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module

from sordino.engines.gate import Admitted, expect_columns, expect_comparable, pinned
from sordino.errors import InvalidDeclaration
from sordino.query.dataset import Column, Dataset, Kind, Table
from sordino.query.same_name import folded
from sordino.query.sources import engine_of, name_parts
from sordino.query.stub import Fields
from sordino.query.types import Number

__all__ = ["source_columns_of"]

_READ_AS: Mapping[Kind, tuple[Kind, ...]] = {
    "int": ("int",),
    "float": ("float", "int"),
    "bool": ("bool",),
    "category": ("text",),
    "text": ("text",),
    "date": ("date",),
    "datetime": ("datetime",),
}


def source_columns_of(dataset: Dataset) -> dict[str, list[str]]:
    """The names of the columns of each source; refuses a table that does not fit its own."""
    tables = list(dataset.tables.values())
    pinned(tables)
    files = [table for table in tables if engine_of(table.source) == "duckdb"]
    names: dict[str, list[str]] = {}
    entered: dict[str, Sequence[Admitted]] = {}
    if files:
        from sordino.engines.duckdb.schema import admitted_columns

        for table in files:
            names[table.name], entered[table.name] = admitted_columns(table)
        if len(files) == len(tables):
            expect_comparable(tables, entered)
    for table in tables:
        if table.name not in names:
            names[table.name] = _of_database(table)
    return names


def _of_database(table: Table) -> list[str]:
    """The columns of a table in PostgreSQL or Spark, by the kinds as which a stub would declare them."""
    source = table.source
    if source.files is not None:  # only Spark itself could tell, by reading them
        return [*table.columns]
    schema = import_module(f"sordino.engines.{engine_of(source)}.schema")
    more = [source.password_file] if source.kind == "postgres" else []
    tables: dict[str, Fields] = schema.tables_of(source.address or "spark", source.table, *more)
    wanted = (name_parts(source.table or "") or [""])[-1].casefold()
    fields = next(
        (
            each
            for place, each in tables.items()
            if (name_parts(place) or [""])[-1].casefold() == wanted
        ),
        None,
    )
    if fields is None:
        what = f"tables.{table.name}.source = {source.shown}"
        raise InvalidDeclaration(
            what,
            "there is no such table, or it may not be read",
            "Check table, and the rights of the user.",
        )
    names = [name for name, _, _ in fields]
    expect_columns(table, names)
    for name, column in table.columns.items():
        kind, word = next((kind, word) for own, kind, word in fields if folded(own) == folded(name))
        if kind not in _kinds(column):
            rule = f"the source holds {word}, which is not read as {column.kind}"
            hint = (
                f'Write type = "{kind}".'
                if kind
                else "No declared type reads it. Convert it in the source."
            )
            raise InvalidDeclaration(
                f"tables.{table.name}.columns.{name} with type = {column.kind!r}", rule, hint
            )
    return names


def _kinds(column: Column) -> tuple[Kind, ...]:
    whole = column.kind == "category" and isinstance(column.type, Number)
    return ("int",) if whole else _READ_AS[column.kind]

"""Which engine opens which tables, and reads their catalog: that of their sources, loaded when it is first needed."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from importlib import import_module
from typing import Any

from sordino.engines.engine import Opener
from sordino.errors import InvalidInput
from sordino.query.dataset import Table
from sordino.query.sources import Engine, engine_of

__all__ = ["catalog_of", "dialect_of", "opener_of"]

_CLASSES: dict[Engine, tuple[str, str]] = {
    "duckdb": ("sordino.engines.duckdb", "DuckDB"),
    "postgres": ("sordino.engines.postgres", "Postgres"),
    "spark": ("sordino.engines.spark", "Spark"),
}
"""The module of each engine, and what opens tables there. A module whose library is missing says what to install."""


def dialect_of(tables: Iterable[Table]) -> Engine:
    """The engine that reads these tables, which is also the name of its dialect."""
    found = {engine_of(table.source) for table in tables} - {"duckdb"}
    return next(iter(found), "duckdb")


def catalog_of(engine: Engine) -> Any:
    """The module of an engine that reads names and types of columns; without its library it says what to install."""
    module, name = _CLASSES[engine]
    getattr(import_module(module), name)
    return import_module(f"{module}.schema")


def opener_of(
    tables: Iterable[Table],
    memory: str | None = None,
    threads: int | None = None,
    *,
    held: bool = False,
) -> Opener:
    """What opens these tables; `memory` and `threads` are limits of DuckDB, which reads files and objects in memory, or
    holds copies of their cleaned rows.

    Public files go with any engine, so that a database among the sources decides.
    """
    engine = dialect_of(tables)
    module, name = _CLASSES[engine]
    opener: Any = getattr(import_module(module), name)
    if engine == "duckdb":
        return partial(opener, memory=memory, threads=threads, held=held)
    if memory is not None or threads is not None or held:
        rule = "memory, threads and held are DuckDB's, and these tables are asked where they are"
        raise InvalidInput(
            f"memory, threads or held beside a source in {engine}", rule, "Leave them out."
        )
    found_opener: Opener = opener
    return found_opener

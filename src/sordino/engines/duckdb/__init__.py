"""DuckDB, embedded and locked; loaded when it is first used, so that its lock alone stays light."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sordino.engines.duckdb.engine import DuckDB
    from sordino.engines.duckdb.sources import arrow, csv_records

__all__ = ["DuckDB", "arrow", "csv_records"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(name)
    from sordino.engines.duckdb import engine, sources

    return getattr(engine if name == "DuckDB" else sources, name)

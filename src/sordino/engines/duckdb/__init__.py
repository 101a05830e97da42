"""DuckDB, embedded and locked."""

from sordino.engines.duckdb.database import DuckDB
from sordino.engines.duckdb.sources import arrow, csv_records

__all__ = ["DuckDB", "arrow", "csv_records"]

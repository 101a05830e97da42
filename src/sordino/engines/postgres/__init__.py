"""PostgreSQL: the same plans where an operational database is; loaded when it is first used."""

from typing import TYPE_CHECKING, Any

from sordino.errors import InvalidInput

if TYPE_CHECKING:
    from sordino.engines.postgres.engine import Postgres

__all__ = ["Postgres"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(name)
    try:
        from sordino.engines.postgres import engine
    except ImportError as error:
        if (error.name or "").partition(".")[0] != "psycopg":
            raise
        rule = "tables in PostgreSQL are read by psycopg, which is not installed"
        raise InvalidInput(
            "an address postgresql://...", rule, "Run: pip install 'sordino[postgres]'."
        ) from None
    return engine.Postgres

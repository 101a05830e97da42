"""One connection to PostgreSQL, pinned: settings that change what SQL means are set in every transaction.

Texts of the server may quote cells, and those of the driver an address: none of them leaves this file.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import Any

import psycopg
from psycopg import conninfo
from psycopg.adapt import AdaptersMap
from psycopg.postgres import register_default_adapters, register_default_types
from psycopg.types import TypesRegistry
from psycopg.types.array import register_all_arrays

from sordino.errors import InvalidDeclaration
from sordino.query.dataset import Source

__all__ = ["LOST", "Connection", "connect", "sqlstate"]

LOST = (psycopg.OperationalError, psycopg.InterfaceError)
"""What the driver raises when the server is gone."""
_ALERT = {
    "connect_timeout": "10",
    "tcp_user_timeout": "60000",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
}
_SETTINGS = {
    "row_security": "off",  # fails instead of hiding rows
    "client_encoding": "UTF8",  # others lack letters, and fail on the cell that has one
    "DateStyle": "ISO, YMD", "IntervalStyle": "postgres", "TimeZone": "UTC", "timezone_abbreviations": "Default",
    "extra_float_digits": "1", "quote_all_identifiers": "off",
    "bytea_output": "hex", "standard_conforming_strings": "on", "transform_null_equals": "off", "array_nulls": "on",
    "lc_numeric": "C", "lc_monetary": "C", "lc_time": "C",
    "lock_timeout": "5s", "idle_in_transaction_session_timeout": "0",
    "jit": "off",  # which takes longer than most questions
}  # fmt: skip
"""In every transaction, since behind a pool each may be in another session."""
_LIMIT = """
SELECT set_config('statement_timeout', LEAST(NULLIF(EXTRACT(EPOCH FROM
    CAST(current_setting('statement_timeout') AS INTERVAL)) * 1000, 0), $1)::bigint::text || 'ms', true)
"""
_REASONS = {
    "28": "the server does not let this user in",
    "3D": "there is no such database",
    "53300": "the server has too many connections",
    "57P03": "the server is starting or stopping",
}


class _DriversOwn:
    """How the driver itself reads and writes values: a program may have it read all numbers as floats, for instance."""

    connection = None

    def __init__(self) -> None:
        types = TypesRegistry()
        register_default_types(types)
        self.adapters = AdaptersMap(types=types)
        register_default_adapters(self)
        register_all_arrays(self)


class Connection:
    """A connection in autocommit mode, over which transactions are spelled out."""

    def __init__(self, driver: Any) -> None:
        self._driver = driver

    @property
    def usable(self) -> bool:
        """Whether nothing is known to be wrong with it."""
        return not self._driver.closed and not self._driver.broken

    def begin(self) -> None:
        """A transaction that sees one moment and changes nothing."""
        lines = [
            "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY",
            "SET LOCAL search_path = pg_catalog, pg_temp",
        ]
        lines += [f"SET LOCAL {name} = '{value}'" for name, value in _SETTINGS.items()]
        self._driver.execute("; ".join(lines))

    def limit(self, seconds: float) -> None:
        """How long a statement may take from now on, until the transaction ends: no limit of the role's is raised."""
        self.ask(_LIMIT, max(round(seconds * 1000), 1))

    def lock(self, relations: Iterable[str]) -> None:
        """Keep tables from being dropped or altered until the transaction ends."""
        if names := ", ".join(relations):
            self._driver.execute(f"LOCK TABLE {names} IN ACCESS SHARE MODE")

    def ask(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """The rows of a statement with values for $1, $2, ..."""
        with psycopg.RawCursor(self._driver) as cursor:
            cursor.execute(statement, values or None)
            return cursor.fetchall()

    def end(self) -> None:
        """End the transaction; a connection that cannot is closed."""
        try:
            self._driver.execute("ROLLBACK")
        except Exception:
            self.close()

    def cancel(self) -> None:
        """Stop what it is running."""
        with contextlib.suppress(Exception):
            self._driver.cancel_safe(timeout=5)

    def close(self) -> None:
        """Close it."""
        with contextlib.suppress(Exception):
            self._driver.close()


def connect(source: Source, what: str) -> Connection:
    """A connection to the server of a source, called `what` in errors."""
    driver = _opened(source)
    if isinstance(driver, str):
        hint = "Check the address, the server, and the password: PGPASSWORD, .pgpass (PGPASSFILE) or password_file."
        raise InvalidDeclaration(what, driver, hint)
    return Connection(driver)


def _opened(source: Source) -> Any:
    """The driver's own connection, or why there is none: nothing is raised here, where an error would carry along the
    password in its variables, or quote the address.
    """
    try:
        given = conninfo.conninfo_to_dict(source.address or "")
        if source.password_file is not None:
            given["password"] = source.password_file.read_text(encoding="utf-8").rstrip("\r\n")
        known: dict[str, Any] = {
            **_ALERT,
            "fallback_application_name": "sordino",
            **given,
            "client_encoding": "utf8",
        }
        return psycopg.connect(
            **known, autocommit=True, prepare_threshold=None, context=_DriversOwn()
        )
    except psycopg.ProgrammingError:
        return "its parameters are not understood"
    except psycopg.Error as error:
        state = sqlstate(error)
        otherwise = "the server does not answer, or does not let this user in"
        return next((text for code, text in _REASONS.items() if state.startswith(code)), otherwise)
    except (OSError, UnicodeError):
        return "the password_file cannot be read"


def sqlstate(error: BaseException) -> str:
    """The code of a server's error; empty if it has none."""
    return str(getattr(error, "sqlstate", None) or "")

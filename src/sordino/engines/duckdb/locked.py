"""The lock of every DuckDB that is opened here: it reads the files that it was given,
nothing else, and stays locked.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

__all__ = ["NOTHING_LOADED", "lock", "text"]

NOTHING_LOADED = (
    "python_enable_replacements = false",
    "autoinstall_known_extensions = false",
    "autoload_known_extensions = false",
)
"""No name of a relation means a variable of the program, and no extension arrives by itself."""


def lock(connection: Any, paths: Iterable[str] = ()) -> None:
    """From now on the database reads these files and what it holds, and none of its settings can be changed."""
    allowed = ", ".join(text(path) for path in paths)
    for setting in (
        *NOTHING_LOADED,
        f"allowed_paths = [{allowed}]",
        "enable_external_access = false",
        "lock_configuration = true",
    ):
        connection.execute(f"SET {setting}")


def text(value: str) -> str:
    """A text literal."""
    return "'" + value.replace("'", "''") + "'"

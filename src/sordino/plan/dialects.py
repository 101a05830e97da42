"""How trees become SQL: each engine brings a writer for its dialect, which refuses what it cannot write as it is meant.

A tree is not translated into dialects that no engine has: a TRY_CAST would silently become a CAST, which fails on a
cell.
"""

from __future__ import annotations

from importlib import import_module
from typing import Protocol

from sqlglot import exp

from sordino.errors import InvalidInput
from sordino.privacy.exact import show

__all__ = ["DEFAULT", "Writer", "register", "writer"]

DEFAULT = "duckdb"
_MODULES = {name: f"sordino.engines.{name}.dialect" for name in ("duckdb", "postgres", "spark")}
"""The writers of the engines that come along, each loaded when it is first needed."""


class Writer(Protocol):
    """The SQL text of a tree, in one line or, `pretty`, in several."""

    def __call__(self, tree: exp.Expr, *, pretty: bool = False) -> str:
        """The text."""


_writers: dict[str, Writer] = {}


def register(dialect: str, writer: Writer) -> None:
    """Make the dialect of another engine known."""
    _writers[dialect] = writer


def writer(dialect: str) -> Writer:
    """The writer of a dialect; InvalidInput with the known ones if no engine has it."""
    if dialect not in _writers:
        if dialect not in _MODULES:
            known = ", ".join(sorted({*_MODULES, *_writers}))
            rule = (
                "no engine runs this dialect, and what no engine runs is not known to mean the same"
            )
            raise InvalidInput(f"the dialect {show(dialect)}", rule, f"Write one of: {known}.")
        _writers[dialect] = import_module(_MODULES[dialect]).write
    return _writers[dialect]

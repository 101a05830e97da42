"""Where a ledger is: the path of a file, or the address of a PostgreSQL database."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sordino.errors import InvalidInput
from sordino.ledger.chain import Row
from sordino.ledger.sqlite import SqliteStore
from sordino.ledger.store import Store
from sordino.privacy.exact import show

__all__ = ["Place"]


@dataclass(frozen=True)
class Place:
    """How to look for a ledger somewhere, make one and open it; `shown` is its name in messages, without passwords."""

    shown: str
    exists: Callable[[], bool]
    create: Callable[[Row, bytes], bool]
    open: Callable[[], Store]

    @staticmethod
    def of(where: str) -> Place:
        """The place of a path or an address."""
        if "://" not in where:
            if not where or any(unicodedata.category(c) in {"Cc", "Cs"} for c in where):
                rule = "a path is proper text without control characters"
                raise InvalidInput(show(where), rule, "Pass a path such as 'visits.ledger'.")
            # one file, one name: notes and journals go by it; a link to nothing stays what it is, and is refused
            path, at = os.path.realpath(where), Path(where).absolute()
            path = (
                path if os.path.lexists(path) else str(Path(os.path.realpath(at.parent)) / at.name)
            )
            return Place(
                path,
                lambda: SqliteStore.exists(path),
                lambda first, key: SqliteStore.create(path, first, key),
                lambda: SqliteStore(path),
            )
        if where.split("://")[0] not in ("postgresql", "postgres"):
            rule = "a ledger is a file, or in PostgreSQL"
            hint = 'Write path = "visits.ledger", or path = "postgresql://user@host/database?ledger=visits".'
            raise InvalidInput(f"an address {where.split('://')[0]}://...", rule, hint)
        from sordino.ledger.postgres import PostgresStore, shown

        return Place(
            shown(where),
            lambda: PostgresStore.exists(where),
            lambda first, key: PostgresStore.create(where, first, key),
            lambda: PostgresStore(where),
        )

    def differs(self, other: str) -> bool:
        """Whether another file is at the other place: not this one under another name, nor one that is gone."""
        if "://" in other or "://" in self.shown:
            return False
        try:
            return Path(other).exists() and not (
                Path(self.shown).exists() and Path(self.shown).samefile(other)
            )
        except (
            OSError,
            ValueError,
        ):  # where this user may not look there is nothing that this user could use
            return False

    def another(self, other: str) -> bool:
        """Whether the other place is another one that is still there, as far as can be told."""
        return self.differs(other) or ("://" in other + self.shown and other != self.shown)

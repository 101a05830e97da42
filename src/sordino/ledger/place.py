"""Where a ledger is: the path of a file, or the address of a PostgreSQL database."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sordino.errors import InvalidInput
from sordino.ledger.chain import Row
from sordino.ledger.sqlite import SqliteStore
from sordino.ledger.store import Store

__all__ = ["Place"]


@dataclass(frozen=True)
class Place:
    """How to look for a ledger somewhere, to make one and to open it; `shown` is how messages call it, without passwords."""

    shown: str
    exists: Callable[[], bool]
    create: Callable[[Row, bytes], bool]
    open: Callable[[], Store]

    @staticmethod
    def of(where: str) -> Place:
        """The place of a path or an address."""
        if "://" not in where:
            path = str(Path(where).absolute())
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
        """Whether another ledger file is at the other place: not this one under another name, nor a file that is gone."""
        if "://" in other or not Path(other).exists():
            return False
        return "://" in self.shown or not Path(self.shown).exists() or not Path(self.shown).samefile(other)

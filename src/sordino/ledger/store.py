"""Where a ledger's rows are kept: the one plug of the ledger. A new kind of place is one file and its conformance test.

A store knows nothing of budgets. It keeps rows and answers, gives one writer at a time a transaction that is durable
when `commit` returns, and turns every failure of its own into a LedgerError; it never retries a commit that failed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from sordino.ledger.chain import Link, Row

__all__ = ["NOT_GRANTED", "Busy", "Store"]

NOT_GRANTED = "Nothing was granted."
"""What became of a request that met a failure; another outcome is told by whoever knows of a charge before it."""


class Busy(Exception):
    """The transaction met another one before anything was written: the whole of it may be tried again."""


class Store(Protocol):
    """Rows of one ledger, durable where the store is."""

    place: str
    """How messages call it; without passwords."""
    durable: bool

    def begin(self) -> None:
        """Start a transaction as the only writer; waits for another one, and in the end refuses (LedgerUnavailable)."""

    def commit(self) -> None:
        """Make the transaction durable. If it fails the outcome is unknown, and the caller must grant nothing."""

    def rollback(self) -> None:
        """Undo the transaction; never fails."""

    def rows(self, after: int = 0, until: int | None = None) -> Iterator[Row]:
        """The rows with larger numbers, up to `until`, in order; a few at a time, so that writers need not wait."""

    def find(self, request: str) -> int | None:
        """The number of the row that is kept under a request."""

    def head(self) -> Link:
        """The end of the chain as it is noted apart from the rows."""

    def append(
        self, row: Row, head: Link, request: str | None = None, answer: bytes | None = None
    ) -> None:
        """Add a row after the head, which it replaces; refuses, as Busy, if the head is no longer that one.

        A second row with the same request is refused. An answer is kept under the number of the row.
        """

    def answer(self, sequence: int) -> bytes | None:
        """The answer that was stored with this row."""

    def answers(self) -> Iterator[tuple[int, bytes]]:
        """All answers, with the numbers of their rows, in order."""

    def requests(self) -> dict[int, str]:
        """The requests under which rows are kept, by the numbers of the rows."""

    def key(self) -> bytes:
        """The secret of this ledger, with which fingerprints of sources are made."""

    def faults(self) -> list[str]:
        """What the place itself finds wrong when it looks at all that it keeps, in words."""

    def close(self) -> None:
        """Give back what is held."""

"""A ledger in memory: the same rules, forgotten with the process."""

from __future__ import annotations

import os
from collections.abc import Iterator

from sordino.errors import LedgerUnavailable
from sordino.ledger.chain import Link, Row
from sordino.ledger.store import Busy

__all__ = ["MemoryStore"]


class MemoryStore:
    """Rows in a list. One ledger uses it, which lets in one thread at a time, so every step is a transaction."""

    place = "in memory"
    durable = False

    def __init__(self, first: Row, key: bytes) -> None:
        self._rows = [first]
        self._answers: dict[int, bytes] = {}
        self._requests: dict[str, int] = {}
        self._key = key
        self._process = os.getpid()
        self._begun: int | None = None
        """How many rows there were when the transaction began."""

    def begin(self) -> None:
        """Refuse in a forked child: its copy and the parent's would both grant what is left."""
        if os.getpid() != self._process:
            rule = "it is in the memory of another process, from which this one was forked"
            raise LedgerUnavailable(
                self.place, rule, "Declare a ledger file, which processes can share."
            )
        self._begun = len(self._rows)

    def commit(self) -> None:
        """Nothing can be undone any more."""
        self._begun = None

    def rollback(self) -> None:
        """Drop what was added since the transaction began."""
        if self._begun is not None:
            for added in self._rows[self._begun :]:
                self._answers.pop(added.sequence, None)
            self._requests = {
                name: number for name, number in self._requests.items() if number <= self._begun
            }
            del self._rows[self._begun :]
            self._begun = None

    def rows(self, after: int = 0, until: int | None = None) -> Iterator[Row]:
        """The rows with larger numbers."""
        return iter(self._rows[after:until])

    def find(self, request: str) -> int | None:
        """The number of the row that is kept under a request."""
        return self._requests.get(request)

    def head(self) -> Link:
        """The number and hash of the last row."""
        return Link(self._rows[-1].sequence, self._rows[-1].hash)

    def append(
        self, row: Row, head: Link, request: str | None = None, answer: bytes | None = None
    ) -> None:
        """Add a row after the head."""
        if head != self.head() or (request is not None and request in self._requests):
            raise Busy
        self._rows.append(row)
        if request is not None:
            self._requests[request] = row.sequence
        if answer is not None:
            self._answers[row.sequence] = answer

    def answer(self, sequence: int) -> bytes | None:
        """The answer that was stored with this row."""
        return self._answers.get(sequence)

    def answers(self) -> Iterator[tuple[int, bytes]]:
        """All answers."""
        return iter(sorted(self._answers.items()))

    def requests(self) -> dict[int, str]:
        """The requests under which rows are kept, by the numbers of the rows."""
        return {sequence: request for request, sequence in self._requests.items()}

    def key(self) -> bytes:
        """The secret of this ledger."""
        return self._key

    def faults(self) -> list[str]:
        """Memory finds nothing."""
        return []

    def close(self) -> None:
        """Nothing to give back."""

"""The entries of a ledger in its place: read up to their end, each link checked, and written by one writer at a time.

To write is one step: become the only writer, take in what others appended, decide, append, commit. After a failure the
outcome may be unknown, so nothing more is read or written here until the place is opened again.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from sordino.errors import LedgerDamaged, LedgerError, LedgerUnavailable
from sordino.ledger.chain import START, Broken, Entry, Link, Row, linked
from sordino.ledger.past import is_due, resumed
from sordino.ledger.state import Payment, State
from sordino.ledger.store import NOT_GRANTED, Busy, Store

__all__ = ["Draft", "Journal"]

_ATTEMPTS = 100


@dataclass(frozen=True)
class Draft:
    """What a writer wants to append: kind and facts of an entry, with the request or the answer kept with it."""

    kind: str
    facts: dict[str, Any]
    request: str | None = None
    answer: bytes | None = None


class Journal:
    """The entries at one place, and what they mean. `state` is only as new as the last `catch_up`, under the lock.

    `checked` is how far they were checked on this machine before; that the chain meets that end is yet to be seen.
    """

    def __init__(self, store: Store, checked: Link = START) -> None:
        self.store = store
        self.state = State()
        self.known = START
        """The furthest end that was seen here: the chain must hold it from then on."""
        self._checked = checked
        self._process = os.getpid()
        self._guard = threading.RLock()
        self._failed = ""

    @property
    def place(self) -> str:
        """Where they are kept."""
        return self.store.place

    @property
    def id(self) -> str:
        """The hash of the first entry, which no other ledger has."""
        with self.current() as state:
            return state.id

    def lock(self) -> threading.RLock:
        """One thread at a time. A forked child starts afresh: the thread that held the lock may not exist there."""
        if os.getpid() != self._process:
            self._process, self._guard, self.state = os.getpid(), threading.RLock(), State()
        return self._guard

    @contextlib.contextmanager
    def current(self) -> Iterator[State]:
        """What all entries up to now mean; other threads wait meanwhile."""
        with self.lock():
            self.catch_up()
            yield self.state

    def write(self, step: Callable[[], Draft | None]) -> Row | None:
        """Catch up as the only writer, let `step` decide, and append what it drafts: durable when this returns.

        After a failure the outcome may be unknown, so nothing more is granted here: the place must be opened again.
        """
        with self.lock():
            for _ in range(_ATTEMPTS):
                self._usable()
                try:
                    self.store.begin()
                except BaseException:
                    self.store.rollback()
                    raise
                try:
                    rows = self._append(step)
                except Busy:
                    self.store.rollback()
                    continue
                except BaseException as error:
                    self.store.rollback()
                    if isinstance(error, LedgerError):
                        self._failed = error.rule
                    raise
                if rows:
                    self._take_in(rows)
                    self.known = self.state.link
                return rows[-1] if rows else None
            raise LedgerUnavailable(self.place, "other processes were always faster", "Try again.", NOT_GRANTED)

    def catch_up(self) -> None:
        """Take in what others have appended, checked link by link from the last entry that was checked."""
        self._usable()
        head = self.store.head()  # read first: rows beyond it are of those who came later
        if self.state.link == START:
            self._start(head)
        if head != self.state.link:
            self._take_in(self.store.rows(self.state.link.sequence, head.sequence))
        if head != self.state.link or not (self.known == START or self.holds(self.known)):
            raise self.damaged(f"it was cut short or put back: {self.state.link.sequence} entries are left")
        self.known = head

    def reread(self) -> State:
        """Read every entry from the first on, up to where the ledger is known to be."""
        link, self.state = self.state.link, State()
        self._take_in(self.store.rows(0, link.sequence))
        if self.state.link != link:
            raise self.damaged(f"it was cut short or put back: {self.state.link.sequence} entries are left")
        return self.state

    def holds(self, link: Link) -> bool:
        """Whether the chain once ended like this."""
        with self.reading():
            return self.state.holds(link)

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        """Old entries are checked when they are read."""
        try:
            yield
        except Broken as error:
            raise self.damaged(str(error)) from None

    def payment(self, request_id: str) -> Payment | None:
        """The charge of a request: known from the entries since the start, else looked up in the place."""
        payment = self.state.payment(request_id)
        if payment is not None or self.state.start == START:
            return payment
        number = self.store.find(request_id)
        if number is None or number > self.state.link.sequence:  # or another process was faster just now
            return None
        with self.reading():
            payment = self.state.payment_at(number)
        if payment is None or payment.receipt.request_id != request_id:
            raise self.damaged(f"entry {number} is kept under another request than it says")
        return payment

    def damaged(self, rule: str) -> LedgerDamaged:
        """The error of a ledger that is not what was written; nothing more is granted here."""
        hint = "Run `sordino ledger verify`, and put the ledger back from a copy that holds."
        self._failed = rule
        return LedgerDamaged(self.place, rule, hint, NOT_GRANTED)

    def _append(self, step: Callable[[], Draft | None]) -> list[Row]:
        self.catch_up()
        if next(iter(self.store.rows(self.state.link.sequence)), None) is not None:  # nobody else can be writing now
            raise self.damaged("there are entries beyond its end")
        draft = step()
        if draft is None:
            self.store.rollback()
            return []
        # a checkpoint comes with the entry after it, in one transaction: a charge never fails for a summary
        drafts = [Draft("checkpoint", self.state.summary())] if is_due(self.state) else []
        rows: list[Row] = []
        link = self.state.link
        for each in (*drafts, draft):
            row = Entry.after(link, each.kind, each.facts).row
            self.store.append(row, link, each.request, each.answer)
            rows.append(row)
            link = Link(row.sequence, row.hash)
        self.store.commit()
        return rows

    def _usable(self) -> None:
        if self._failed:
            rule = f"it failed before ({self._failed})"
            raise LedgerUnavailable(self.place, rule, "Nothing more is granted here; mend the cause and open a new session.")

    def _start(self, head: Link) -> None:
        """Go on from a checkpoint that was checked here before; else look at all that the place keeps, and read it."""
        with self.reading():
            resumed_ = resumed(self.store, max(self.known, self._checked), head)
        if resumed_ is not None:
            self.state = resumed_
            return
        faults = self.store.faults()
        if faults:
            raise self.damaged(faults[0])

    def _take_in(self, rows: Iterable[Row]) -> None:
        try:
            for entry, hash_ in linked(rows, self.state.link):
                self.state.read(entry, hash_)
        except BaseException as error:  # an interrupt may leave half an entry in the state: it is read anew
            self.state = State()
            if isinstance(error, Broken):
                raise self.damaged(str(error)) from None
            raise

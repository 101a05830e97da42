"""The entries of a ledger in its place: read up to their end, each link checked, and written by one writer at a time.

To write is one step: become the only writer, take in what others appended, decide, append, commit. Threads that want
to write at the same time share one transaction, and so one sync of the disk. After a failure the outcome may be
unknown, so nothing more is read or written here until the place is opened again.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from sordino.errors import LedgerDamaged, LedgerError, LedgerUnavailable
from sordino.ledger.chain import START, Broken, Entry, Link, Row, linked
from sordino.ledger.old_entries import is_due, resumed
from sordino.ledger.receipt import request_key
from sordino.ledger.state import Payment, State
from sordino.ledger.store import NOT_GRANTED, Busy, Store

__all__ = ["Draft", "Journal", "Wish"]

_ATTEMPTS = 100
_TOGETHER = 256
"""How many entries are written in one transaction."""


@dataclass(frozen=True)
class Draft:
    """What a writer wants to append: kind and facts of an entry, with the request or the answer kept with it."""

    kind: str
    facts: dict[str, Any]
    request: str | None = None
    answer: bytes | None = None


class _Phase(Enum):
    """How far a transaction is."""

    BEFORE = 0
    INSIDE = 1
    COMMITTING = 2


@dataclass(eq=False)
class _Turn:
    """A thread that waits: whether it is the one that writes for all, and how it is told of a change."""

    leads: bool = False
    changed: threading.Event = field(default_factory=threading.Event)


@dataclass(eq=False)
class Wish:
    """A step of one thread that is to be written, and what became of it."""

    step: Callable[[], Draft | None]
    turn: _Turn
    row: Row | None = None
    failure: Exception | None = None
    is_settled: bool = False

    def settle(self) -> None:
        """Let the thread go on that waits for it."""
        self.is_settled = True
        self.turn.changed.set()


class Journal:
    """The entries at one place, and what they mean. `state` is only as new as the last `catch_up`, under the lock.

    `checked` is how far they were checked on this machine before; that the chain meets that end is yet to be seen.
    `noted` is called when entries have become durable, before anybody who waits for them goes on.
    """

    def __init__(
        self, store: Store, checked: Link = START, noted: Callable[[], None] = lambda: None
    ) -> None:
        self.store = store
        self.state = State()
        self.known = START
        """The furthest end that was seen here: the chain must hold it from then on."""
        self._checked = checked
        self._process = os.getpid()
        self._guard = threading.RLock()
        self._failed = ""
        self._waiting: deque[Wish] = deque()
        self._queue = threading.Lock()
        self._is_led = False
        """Whether some thread writes for all that wait."""
        self._phase = _Phase.BEFORE
        self._is_ahead = False
        """Whether the state holds entries of a transaction that is not committed yet."""
        self._noted = noted

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
            self._waiting, self._queue, self._is_led, self._is_ahead = (
                deque(),
                threading.Lock(),
                False,
                False,
            )
        return self._guard

    @contextlib.contextmanager
    def current(self) -> Iterator[State]:
        """What all entries up to now mean; other threads wait meanwhile."""
        with self.lock():
            self.catch_up()
            yield self.state

    def write(self, step: Callable[[], Draft | None]) -> Row | None:
        """Catch up as the only writer, let `step` decide, and append what it drafts: durable when this returns.

        Steps of threads that wait here are written together, one after the other in one transaction, by one of them.
        After a failure the outcome may be unknown, so nothing more is granted here: the place must be opened again. A
        step is run again where another process was faster.
        """
        (wish,) = self.write_all([step])
        if wish.failure is not None:
            raise wish.failure
        return wish.row

    def write_all(self, steps: Iterable[Callable[[], Draft | None]]) -> list[Wish]:
        """Several such steps, in this order and as far as possible in one transaction, and what became of each."""
        lock, turn = self.lock(), _Turn()
        wishes, waiting, owned = (
            [Wish(step, turn) for step in steps],
            self._waiting,
            lock._is_owned(),  # type: ignore[attr-defined]
        )
        with self._queue:
            waiting.extend(wishes)
            if not self._is_led:
                self._is_led = turn.leads = True
        try:
            while not all(wish.is_settled for wish in wishes):
                # who has the lock already would wait in vain for one who waits for it
                if turn.leads or owned:
                    with lock:
                        self._write_together(waiting)
                else:
                    turn.changed.wait()
                    turn.changed.clear()
        finally:
            with self._queue:
                for wish in wishes:
                    if not wish.is_settled:  # interrupted: nobody shall write it later
                        with contextlib.suppress(ValueError):
                            waiting.remove(wish)
                if turn.leads:
                    self._is_led = bool(waiting)
                    if waiting:
                        waiting[0].turn.leads = True
                        waiting[0].turn.changed.set()
        return wishes

    def _write_together(self, waiting: deque[Wish]) -> None:
        """Settle the wishes that wait, as many as go into one transaction; under the lock."""
        with self._queue:
            wishes = [waiting.popleft() for _ in range(min(len(waiting), _TOGETHER))]
        self._phase = _Phase.BEFORE
        try:
            written = self._written(wishes)
        except Exception as error:
            self._undo()
            if isinstance(error, LedgerError) and self._phase is not _Phase.BEFORE:
                self._failed = error.rule
            _refuse(wishes, error)
            return
        except BaseException:  # an interrupt of this thread, for which others should not suffer
            self._undo()
            if self._is_committing:
                rule = "the thread that wrote for several was interrupted, and whether this entry was kept is unknown"
                _refuse(
                    wishes,
                    LedgerUnavailable(
                        self.place, rule, "Ask again with the same request id.", NOT_GRANTED
                    ),
                )
            else:
                with self._queue:
                    waiting.extendleft(reversed(wishes))
            raise
        try:
            if written:
                self._noted()
        finally:
            for wish in wishes:
                wish.settle()

    def _written(self, wishes: Sequence[Wish]) -> bool:
        """Whether any entries were appended, all in one transaction, which is over."""
        for _ in range(_ATTEMPTS):
            self._usable()
            self.store.begin()
            self._phase = _Phase.INSIDE
            try:
                if not self._append(wishes):
                    self.store.rollback()
                    return False
                self._phase = _Phase.COMMITTING
                self.store.commit()
            except Busy:
                self._undo()
                self._phase = _Phase.BEFORE
                continue
            self._is_ahead, self.known = False, self.state.link
            return True
        raise LedgerUnavailable(
            self.place, "other processes were always faster", "Try again.", NOT_GRANTED
        )

    @property
    def _is_committing(self) -> bool:
        return self._phase is _Phase.COMMITTING

    def _undo(self) -> None:
        """Undo the transaction, and forget what was taken in of it."""
        self.store.rollback()
        if self._is_ahead:
            self.state, self._is_ahead = State(), False

    def catch_up(self) -> None:
        """Take in what others have appended, checked link by link from the last entry that was checked."""
        self._usable()
        head = self.store.head()  # read first: rows beyond it are of those who came later
        if self.state.link == START:
            self._start(head)
        if head != self.state.link:
            self._take_in(self.store.rows(self.state.link.sequence, head.sequence))
        if head != self.state.link or not (self.known == START or self.holds(self.known)):
            raise self.damaged(
                f"it was cut short or put back: {self.state.link.sequence} entries are left"
            )
        self.known = head

    def reread(self) -> State:
        """Read every entry from the first on, up to where the ledger is known to be."""
        link, self.state = self.state.link, State()
        self._take_in(self.store.rows(0, link.sequence))
        if self.state.link != link:
            raise self.damaged(
                f"it was cut short or put back: {self.state.link.sequence} entries are left"
            )
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

    def payment(self, request_id: str, analyst: str | None = None) -> Payment | None:
        """The charge of a request: known from the entries since the start, else looked up in the place."""
        key = request_key(analyst, request_id)
        payment = self.state.payment(key)
        if payment is not None or self.state.start == START:
            return payment
        for kept_as in (key, request_id):  # entries of an older Sordino are kept under the id alone
            number = self.store.find(kept_as)
            # or another process was faster just now
            if number is None or number > self.state.link.sequence:
                continue
            with self.reading():
                payment = self.state.payment_at(number)
            if payment is None or payment.receipt.request_id != request_id:
                raise self.damaged(f"entry {number} is kept under another request than it says")
            if payment.receipt.analyst == analyst:
                return payment
            if kept_as == key:
                raise self.damaged(f"entry {number} is kept under another request than it says")
        return None

    def damaged(self, rule: str) -> LedgerDamaged:
        """The error of a ledger that is not what was written; nothing more is granted here."""
        hint = "Run `sordino ledger verify`, and put the ledger back from a copy that holds."
        self._failed = rule
        return LedgerDamaged(self.place, rule, hint, NOT_GRANTED)

    def _append(self, wishes: Sequence[Wish]) -> bool:
        """Append what the steps draft, each deciding over the state that the entries before it leave."""
        self.catch_up()
        # nobody else can be writing now
        if next(iter(self.store.rows(self.state.link.sequence)), None) is not None:
            raise self.damaged("there are entries beyond its end")
        for wish in wishes:
            wish.row = wish.failure = None
            try:
                draft = wish.step()
            except (LedgerError, Busy):
                raise
            except Exception as error:  # a refusal, which concerns nobody else
                wish.failure = error
                continue
            if draft is not None:
                # a checkpoint comes with the entry after it, in one transaction: a charge never fails for a summary
                due = [Draft("checkpoint", self.state.summary())] if is_due(self.state) else []
                for each in (*due, draft):
                    wish.row = self._appended(each)
        return self._is_ahead

    def _appended(self, draft: Draft) -> Row:
        """The row of a draft, appended and taken in: from here to the commit the state is ahead of what is durable."""
        link = self.state.link
        row = Entry.after(link, draft.kind, draft.facts).row
        self.store.append(row, link, draft.request, draft.answer)
        self._is_ahead = True
        self._take_in([row])
        return row

    def _usable(self) -> None:
        if self._failed:
            rule = f"it failed before ({self._failed})"
            raise LedgerUnavailable(
                self.place,
                rule,
                "Nothing more is granted here; mend the cause and open a new session.",
            )

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
        except (
            BaseException
        ) as error:  # an interrupt may leave half an entry in the state: it is read anew
            self.state = State()
            if isinstance(error, Broken):
                raise self.damaged(str(error)) from None
            raise


def _refuse(wishes: Iterable[Wish], error: Exception) -> None:
    """None of them is granted; each thread raises an error of its own."""
    for wish in wishes:
        own = type(error)(*error.__reduce__()[1]) if isinstance(error, LedgerError) else error
        wish.row, wish.failure = None, own
        wish.settle()

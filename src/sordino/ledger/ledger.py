"""The ledger: charge, receipt, stored answer. What it promises, and why it holds, is in ledger.md.

A charge is durable before data are read, an answer before it is shown. The same request is charged once and answered with
the same bytes. Whatever fails, nothing is granted and nothing is refunded.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import threading
import uuid
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from sordino.accounting.charge import Charge
from sordino.accounting.filters import TwoMeterFilter
from sordino.errors import (
    InvalidInput,
    LedgerDamaged,
    LedgerError,
    LedgerMismatch,
    LedgerUnavailable,
    LedgerWarning,
    RequestRefused,
)
from sordino.ledger.anchor import Anchor
from sordino.ledger.chain import START, Broken, Entry, Link, Row, digest, linked
from sordino.ledger.fingerprint import Prints
from sordino.ledger.memory import MemoryStore
from sordino.ledger.past import is_due, resumed
from sordino.ledger.place import Place
from sordino.ledger.receipt import Receipt, Request, checked_name
from sordino.ledger.state import Payment, State, Tally
from sordino.ledger.store import NOT_GRANTED, Busy, Store
from sordino.ledger.terms import Allowance, Terms, charge_facts, short
from sordino.ledger.verify import Verdict, verify_store
from sordino.ledger.witness import Seen, Witness, machine_of
from sordino.privacy.budget import Budget
from sordino.privacy.exact import bounds
from sordino.query.dataset import Dataset

__all__ = ["Ledger", "Paid"]

_ATTEMPTS = 100
_ACCEPT = "If that is as it should be, let the owner run `sordino ledger accept`"


@dataclass(frozen=True)
class Paid:
    """A receipt; with the stored answer if the request was answered before."""

    receipt: Receipt
    answer: bytes | None = None


@dataclass(frozen=True)
class _Draft:
    kind: str
    facts: dict[str, Any]
    request: str | None = None
    answer: bytes | None = None


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _first(terms: Terms) -> tuple[Row, bytes]:
    """The first entry of a new ledger, different from that of any other, and its secret."""
    key = uuid.uuid4().bytes + uuid.uuid4().bytes
    facts = {**terms.facts, "key": digest(key), "name": uuid.uuid4().hex}
    return Entry(1, START.hash, "declare", _now(), facts).row, key


class Ledger:
    """What was spent on one dataset. Many sessions, threads and processes may use it at once."""

    def __init__(
        self, store: Store, prints: Prints | None = None, witness: Witness | None = None, at: Place | None = None
    ) -> None:
        self._store = store
        self._prints = prints or Prints({})
        self._witness = witness
        self._at = at
        self._process = os.getpid()
        self._guard = threading.RLock()
        self._failed = ""
        self._known = START
        self._checked = START
        self._state = State()
        try:
            seen = None if witness is None else witness.recall(store.place)
            notes = [] if witness is None else list(witness.others(store.place))
            self._checked = self._noted(seen, notes)
            self._catch_up()
            if digest(store.key()) != self._state.key_digest:
                raise self._damaged("the secret of the ledger was changed")
            self._recognise(seen, notes)
        except BaseException:
            store.close()
            raise

    @staticmethod
    def open(dataset: Dataset, place: str | None = None, *, create: bool = True, as_declared: bool = True) -> Ledger:
        """The ledger of a dataset: at the place given, or declared, or beside the declaration; else in memory.

        It is made if there was none, unless `create` is False: then it is opened to be looked at, and no source is touched.
        With `as_declared` it must hold the declared budget.
        """
        terms = Terms.of(dataset)
        where = place or Ledger.place_of(dataset)
        if where is None:
            return Ledger(MemoryStore(*_first(terms)))
        witness, at = Witness(), Place.of(where)
        prints = Prints(protected_files(dataset) if create else {})
        ledger = Ledger(_opened(at, terms, witness, create=create), prints, witness, at)
        try:
            if as_declared:
                ledger.expect(terms)
            ledger._remember()
        except BaseException:
            ledger.close()
            raise
        return ledger

    @staticmethod
    def place_of(dataset: Dataset) -> str | None:
        """Where the ledger of a dataset is: as declared, or beside the declaration."""
        return dataset.ledger or (None if dataset.file is None else str(dataset.file.with_suffix(".ledger")))

    @staticmethod
    def accept(dataset: Dataset, place: str | None = None) -> Ledger:
        """The ledger as it is now, though this machine has seen another state of it; what was seen is recorded in it.

        Privacy: what was spent in the state that is lost is no longer counted. Only the owner can answer for that.
        """
        where, witness = place or Ledger.place_of(dataset), Witness()
        if where is None:
            raise InvalidInput("a dataset without a ledger", "there is nothing to accept", "Declare one under [ledger].")
        at, terms = Place.of(where), Terms.of(dataset)
        seen = witness.recall(at.shown)
        ledger = Ledger(_opened(at, terms, None), Prints(protected_files(dataset)))
        with contextlib.ExitStack() as stack:
            stack.callback(ledger.close)
            copies = [other for other in witness.others(at.shown) if other.ledger == ledger.id]
            lost = max(filter(None, (seen, *copies)), key=lambda note: note.count, default=None)
            facts = {} if lost is None else {"ledger": lost.ledger, "count": lost.count, "hash": lost.hash}
            ledger._write(lambda: _Draft("accept", {"seen": facts}))
            for note in copies:  # only now: a note is not given up for an acceptance that failed
                witness.forget(note.place)
            witness.forget(at.shown)
            ledger._witness, ledger._at = witness, at
            ledger._remember()
            stack.pop_all()
        return ledger

    @property
    def place(self) -> str:
        """Where it is kept."""
        return self._store.place

    @property
    def durable(self) -> bool:
        """Whether it outlives the process."""
        return self._store.durable

    @property
    def id(self) -> str:
        """The hash of its first entry, which no other ledger has."""
        with self._lock():
            self._catch_up()
            return self._state.id

    @property
    def terms(self) -> Terms:
        """Whose data it guards, and the budget in force."""
        with self._lock():
            self._catch_up()
            if self._state.terms is None:
                raise self._damaged("its first entry does not declare a budget")
            return self._state.terms

    @property
    def allotments(self) -> dict[str, Allowance]:
        """The sub-budgets, by analyst."""
        with self._lock():
            self._catch_up()
            return dict(self._state.allotments)

    @property
    def payments(self) -> tuple[Payment, ...]:
        """All charges so far, and what became of each; reads every entry."""
        with self._lock():
            self._catch_up()
            if self._state.start != START:
                self._reread()
            return tuple(self._state.payments.values())

    @property
    def tallies(self) -> dict[str | None, Tally]:
        """How many charges each analyst has, how many of them were answered, and their sum."""
        with self._lock():
            self._catch_up()
            return self._state.tallies

    @property
    def spent(self) -> Charge:
        """The sum of all charges."""
        with self._lock():
            self._catch_up()
            return self._state.spent

    def recent(self, most: int, analyst: str | None = None) -> tuple[Payment, ...]:
        """The last charges, of an analyst if one is named; the newest last."""
        with self._lock(), self._reading():
            self._catch_up()
            tallies = self._state.tallies
            known = sum(each.charges for each in tallies.values()) if analyst is None else _of(tallies, analyst).charges
            wanted = (each for each in self._state.newest() if analyst in (None, each.receipt.analyst))
            return tuple(itertools.islice(wanted, min(most, known)))[::-1]

    def payment(self, request_id: str) -> Payment | None:
        """The charge that was made under a request id."""
        with self._lock():
            self._catch_up()
            return self._found(request_id)

    @property
    def forfeited(self) -> int:
        """How many charges have no answer and, unless their query still runs, never will."""
        with self._lock():
            self._catch_up()
            return self._state.forfeited

    def meter(self, analyst: str | None = None) -> TwoMeterFilter:
        """What may still be spent, by an analyst where there are sub-budgets."""
        with self._lock():
            self._catch_up()
            return self._state.meter(analyst)

    def stored(self, request: Request) -> Paid | None:
        """The receipt and answer of a request that was answered before; RequestRefused if it cannot be answered again."""
        with self._lock():
            self._catch_up()
            return self._repeated(request)

    def charge(self, charge: Charge, request: Request) -> Paid:
        """Debit a charge, durably; or BudgetExceeded, and nothing debited. A repeated request is not charged again."""
        amount = short(charge)  # what is checked is what is recorded
        before: list[Paid] = []

        def step() -> _Draft | None:
            repeated = self._repeated(request)
            if repeated is not None:
                before.append(repeated)
                return None
            self._state.meter(request.analyst).spend(amount)
            facts = {
                "request": request.id, "body": request.body, "question": request.question, "offer": request.offer,
                "analyst": request.analyst, "charge": charge_facts(amount), "sources": self._prints.under(self._store.key()),
            }  # fmt: skip
            return _Draft("charge", facts, request.id)

        row = self._write(step)
        if row is None:
            return before[0]
        return Paid(self._state.payments[row.sequence].receipt)

    def store(self, receipt: Receipt, answer: bytes) -> None:
        """Keep the answer to a charge, durably; only then may it be shown."""

        def step() -> _Draft:
            self._open_payment(receipt)
            return _Draft("answer", {"charge": receipt.number, "answer": digest(answer), "size": len(answer)}, answer=answer)

        with _after_charge(receipt):
            self._write(step)

    def forfeit(self, receipt: Receipt) -> None:
        """Record that a charge will have no answer; it stays spent."""

        def step() -> _Draft:
            self._open_payment(receipt)
            return _Draft("forfeit", {"charge": receipt.number})

        with _after_charge(receipt):
            self._write(step)

    def declare(self, terms: Terms) -> bool:
        """Put another budget, or other tables, in force, as the owner; False if they are in force already.

        Privacy: all answers together keep the largest epsilon that was ever in force, and as delta the sum of its largest
        part for keys and its largest rest (ledger.md, P2).
        """
        return self._write(lambda: None if terms == self._state.terms else _Draft("declare", terms.facts)) is not None

    def allot(self, analyst: str, budget: Budget | None, reserved_delta: Fraction | None = None) -> None:
        """Give an analyst ("*": every other) a part of the budget, as the owner; None takes it back.

        Once anybody has a sub-budget, only those who have one may ask. What an analyst spent before counts.
        """
        checked_name("analyst", analyst, "Pass a name, or '*' for everybody without a sub-budget of their own.")
        whole = self.terms.allowance
        allowance = None
        if budget is not None:
            if budget.epsilon > whole.budget.epsilon or budget.delta > whole.budget.delta:
                rule = f"a sub-budget is a part of the whole, {whole}"
                raise InvalidInput(str(budget), rule, "Give a part of it; the parts may add up to more than the whole.")
            share = whole.reserved_delta / whole.budget.delta if whole.budget.delta else Fraction(0)
            reserved = budget.delta * share if reserved_delta is None else bounds("reserved_delta", reserved_delta).lower
            allowance = Allowance(budget, reserved)
            allowance.meter()  # refuses a reserved delta beyond the delta
        facts = {"analyst": analyst, "allowance": None if allowance is None else allowance.facts}
        self._write(lambda: _Draft("allot", facts))

    def anchor(self) -> Anchor:
        """Its end now, to be kept elsewhere."""
        with self._lock():
            self._catch_up()
            return Anchor(self._state.id, *self._state.link)

    def verify(self, anchor: Anchor | None = None) -> Verdict:
        """Check all of it, against an anchor if one is given."""
        with self._lock():
            verdict = verify_store(self._store, anchor)
            if verdict and self._known != START:  # what this session has seen is an anchor, too
                row = next(iter(self._store.rows(self._known.sequence - 1, self._known.sequence)), None)
                if row is None or (row.sequence, row.hash) != self._known:
                    return replace(verdict, findings=("it was put back or rewritten while it was open",))
            return verdict

    def export(self) -> Iterator[str]:
        """Its entries, one line each: each holds the SHA-256 of the line before, and the anchor that of the last."""
        with self._lock():
            self._catch_up()
            return iter([row.text for row in self._store.rows(0, self._state.link.sequence)])

    def expect(self, terms: Terms) -> None:
        """Refuse if the ledger guards other tables, or holds another budget."""
        kept = self.terms
        if kept.lineage != terms.lineage:
            rule = f"it guards {kept}, and the declaration says {terms}"
            hint = (
                "Use the ledger of this table; or, if its declaration has changed, let the owner run `sordino budget set`."
            )
            raise LedgerMismatch(self.place, rule, hint)
        if kept.allowance != terms.allowance:
            rule = f"it holds a budget of {kept.allowance}, and the declaration says {terms.allowance}"
            hint = "Declare the recorded budget, or let the owner put the new one in force: sordino budget set."
            raise LedgerMismatch(self.place, rule, hint)

    def close(self) -> None:
        """Close the place where it is kept."""
        with self._lock():
            self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Ledger({self.place}: {self._state.link.sequence} entries)"

    def _lock(self) -> threading.RLock:
        """One thread at a time. A forked child starts afresh: the thread that held the lock may not exist there."""
        if os.getpid() != self._process:
            self._process, self._guard, self._state = os.getpid(), threading.RLock(), State()
        return self._guard

    def _write(self, step: Callable[[], _Draft | None]) -> Row | None:
        """Catch up as the only writer, let `step` decide, and append what it drafts: durable when this returns.

        After a failure the outcome may be unknown, so this ledger grants nothing more: it must be opened again.
        """
        with self._lock():
            for _ in range(_ATTEMPTS):
                self._usable()
                try:
                    self._store.begin()
                except BaseException:
                    self._store.rollback()
                    raise
                try:
                    rows = self._append(step)
                except Busy:
                    self._store.rollback()
                    continue
                except BaseException as error:
                    self._store.rollback()
                    if isinstance(error, LedgerError):
                        self._failed = error.rule
                    raise
                if rows:
                    self._take_in(rows)
                    self._known = self._state.link
                    self._remember()
                return rows[-1] if rows else None
            raise LedgerUnavailable(self.place, "other processes were always faster", "Try again.", NOT_GRANTED)

    def _append(self, step: Callable[[], _Draft | None]) -> list[Row]:
        self._catch_up()
        if next(iter(self._store.rows(self._state.link.sequence)), None) is not None:  # nobody else can be writing now
            raise self._damaged("there are entries beyond its end")
        draft = step()
        if draft is None:
            self._store.rollback()
            return []
        # a checkpoint comes with the entry after it, in one transaction: a charge never fails for a summary
        drafts = [_Draft("checkpoint", self._state.summary())] if is_due(self._state) else []
        rows: list[Row] = []
        link = self._state.link
        for each in (*drafts, draft):
            row = Entry(link.sequence + 1, link.hash, each.kind, _now(), each.facts).row
            self._store.append(row, link, each.request, each.answer)
            rows.append(row)
            link = Link(row.sequence, row.hash)
        self._store.commit()
        return rows

    def _usable(self) -> None:
        if self._failed:
            rule = f"it failed before ({self._failed})"
            raise LedgerUnavailable(self.place, rule, "Nothing more is granted here; mend the cause and open a new session.")

    def _catch_up(self) -> None:
        """Take in what others have appended, checked link by link from the last entry that was checked."""
        self._usable()
        head = self._store.head()  # read first: rows beyond it are of those who came later
        if self._state.link == START:
            self._start(head)
        if head != self._state.link:
            self._take_in(self._store.rows(self._state.link.sequence, head.sequence))
        if head != self._state.link or not (self._known == START or self._holds(self._known)):
            raise self._damaged(f"it was cut short or put back: {self._state.link.sequence} entries are left")
        self._known = head

    def _start(self, head: Link) -> None:
        """Go on from a checkpoint that was checked here before; else look at all that the place keeps, and read it."""
        with self._reading():
            resumed_ = resumed(self._store, max(self._known, self._checked), head)
        if resumed_ is not None:
            self._state = resumed_
            return
        faults = self._store.faults()
        if faults:
            raise self._damaged(faults[0])

    def _reread(self) -> None:
        """Read every entry from the first on, up to where the ledger is known to be."""
        link, self._state = self._state.link, State()
        self._take_in(self._store.rows(0, link.sequence))
        if self._state.link != link:
            raise self._damaged(f"it was cut short or put back: {self._state.link.sequence} entries are left")

    def _holds(self, link: Link) -> bool:
        """Whether the chain once ended like this."""
        with self._reading():
            return self._state.holds(link)

    @contextlib.contextmanager
    def _reading(self) -> Iterator[None]:
        """Old entries are checked when they are read."""
        try:
            yield
        except Broken as error:
            raise self._damaged(str(error)) from None

    def _found(self, request_id: str) -> Payment | None:
        """The charge of a request: known from the entries since the start, else looked up in the place."""
        payment = self._state.payment(request_id)
        if payment is not None or self._state.start == START:
            return payment
        number = self._store.find(request_id)
        if number is None or number > self._state.link.sequence:  # or another process was faster just now
            return None
        with self._reading():
            payment = self._state.payment_at(number)
        if payment is None or payment.receipt.request_id != request_id:
            raise self._damaged(f"entry {number} is kept under another request than it says")
        return payment

    def _take_in(self, rows: Iterable[Row]) -> None:
        try:
            for entry, hash_ in linked(rows, self._state.link):
                self._state.read(entry, hash_)
        except BaseException as error:  # an interrupt may leave half an entry in the state: it is read anew
            self._state = State()
            if isinstance(error, Broken):
                raise self._damaged(str(error)) from None
            raise

    def _damaged(self, rule: str) -> LedgerDamaged:
        hint = "Run `sordino ledger verify`, and put the ledger back from a copy that holds."
        self._failed = rule
        return LedgerDamaged(self.place, rule, hint, NOT_GRANTED)

    def _repeated(self, request: Request) -> Paid | None:
        payment = self._found(request.id)
        if payment is None:
            return None
        number = payment.receipt.number
        if payment.body != request.body:
            rule = f"entry {number} stands for another question, price or analyst under this id"
            raise RequestRefused(request.id, rule, "Use a new id for a new question. Nothing was charged.")
        if payment.status == "answered":
            answer = self._store.answer(payment.settled)
            if answer is None or digest(answer) != payment.answer:
                raise self._damaged(f"the answer to entry {number} was changed")
            return Paid(payment.receipt, answer)
        why = "its query failed" if payment.status == "forfeited" else "its query is running, or ended before it was stored"
        hint = "Wait if it is running; else the charge is forfeited, and a new id asks anew. Nothing was charged now."
        raise RequestRefused(request.id, f"it was charged as entry {number} and has no answer: {why}", hint)

    def _open_payment(self, receipt: Receipt) -> None:
        with self._reading():
            payment = self._state.payment_at(receipt.number)
        if payment is None or payment.receipt.hash != receipt.hash or payment.status != "unanswered":
            raise RequestRefused(receipt.request_id, "its charge is not open", "Only an open charge can be answered, once.")

    def _noted(self, seen: Seen | None, notes: list[Seen]) -> Link:
        """How far this machine has checked this ledger before; START if it has not. The hash there has yet to be met."""
        first = next(iter(self._store.rows(0, 1)), None)
        own = [note.link for note in (seen, *notes) if note is not None and first is not None and note.ledger == first.hash]
        return max(own, default=START)

    def _recognise(self, seen: Seen | None, notes: list[Seen]) -> None:
        """Refuse a ledger that is not the one, or not as far, as this machine has seen it."""
        if self._witness is None or self._at is None:
            return
        if seen is not None and not self._holds(seen.link):
            rule = f"an older copy was put back: it had {seen.count} entries, and has {self._state.link.sequence}"
            if seen.ledger != self.id:
                rule = "another ledger is in its place"
            elif self._state.link.sequence >= seen.count:
                rule = f"its history was rewritten: entry {seen.count} is not the one that was seen here"
            raise LedgerDamaged(self.place, rule, f"Put the newest one back. {_ACCEPT}.")
        own = self._note(self._witness)
        for note in notes:
            if note.ledger != self.id:
                continue
            if self._at.differs(note.place):
                rule = f"it is a copy of the one at {note.place}, and two copies would spend the budget twice"
                raise LedgerMismatch(self.place, rule, f"Use that one, or remove it. {_ACCEPT}.")
            if not self._holds(note.link):
                rule = f"it is an older or another copy: at {note.place} it had {note.count} entries"
                raise LedgerDamaged(self.place, rule, f"Put the newest one back. {_ACCEPT}.")
        for note in notes:
            if note.ledger != self.id and own.shares(note) and self._at.another(note.place):
                text = f"The data of {self.place} are also guarded by the ledger {note.place}: their budgets add up."
                warnings.warn(f"{text} Use one ledger for one table.", LedgerWarning, stacklevel=4)

    def _note(self, witness: Witness) -> Seen:
        sources = witness.sources(self._prints.samples())
        return Seen(self.place, self._state.id, *self._state.link, sources, self._prints.paths(), machine_of(self.place))

    def _remember(self) -> None:
        """Let this machine note how far the ledger is."""
        if self._witness is not None:
            self._witness.remember(self._note(self._witness))


@contextlib.contextmanager
def _after_charge(receipt: Receipt) -> Iterator[None]:
    """A failure that comes after a charge does not undo it, and its message says so."""
    try:
        yield
    except LedgerError as error:
        outcome = f"The charge, entry {receipt.number}, stays spent; its answer was not stored, and is not shown."
        raise type(error)(error.place, error.rule, error.hint, outcome) from None


def _of(tallies: dict[str | None, Tally], analyst: str) -> Tally:
    return tallies.get(analyst, Tally())


def protected_files(dataset: Dataset) -> dict[str, Path | None]:
    """The files of the tables that hold somebody's data; None for one in memory."""
    return {name: table.source.path for name, table in dataset.tables.items() if not table.public}


def _opened(place: Place, terms: Terms, witness: Witness | None, *, create: bool = True) -> Store:
    """The store at a place; a new one only where none was ever seen."""
    seen = None if witness is None else witness.recall(place.shown)
    if not place.exists():
        if seen is not None:
            rule = f"it is gone: when it was last used here it had {seen.count} entries"
            raise LedgerUnavailable(place.shown, rule, f"Put it back; nothing is granted without it. {_ACCEPT}.")
        if not create:
            raise LedgerUnavailable(place.shown, "there is none yet", "It is made when the first session opens.")
        place.create(*_first(terms))
    return place.open()

"""Is a ledger what was written? Checks all of it, and says everything that it finds."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from sordino.errors import LedgerDamaged
from sordino.ledger.anchor import Anchor
from sordino.ledger.chain import START, Broken, Link, Row, breaks, digest, linked
from sordino.ledger.state import State
from sordino.ledger.store import Store
from sordino.privacy.wording import counted

__all__ = ["Verdict", "verify_rows", "verify_store"]

_MOST = 20


@dataclass(frozen=True)
class Verdict:
    """What was found wrong, in words; nothing if the ledger holds. With the counts that were checked, and its end."""

    findings: tuple[str, ...]
    entries: int = 0
    charges: int = 0
    answers: int = 0
    forfeited: int = 0
    link: Link = START
    ledger: str = ""

    @property
    def holds(self) -> bool:
        """Whether nothing is wrong."""
        return not self.findings

    def __bool__(self) -> bool:
        return self.holds


def verify_rows(
    rows: Sequence[Row], anchor: Anchor | None = None, head: Link | None = None
) -> Verdict:
    """Whether rows form a whole chain whose charges keep the budgets in force, and that an anchor fits."""
    return _verified(lambda: rows, anchor, head)[0]


def _verified(
    rows: Callable[[], Iterable[Row]], anchor: Anchor | None, head: Link | None
) -> tuple[Verdict, State]:
    """Reads the rows from the first to the last, and again only if something is wrong with them."""
    found: list[str] = []
    state, seen = State(), _Ends(anchor)
    try:
        for entry, hash_ in linked(seen.noting(rows())):
            state.read(entry, hash_, strictly=True)
        state.check_budget()
    except Broken as error:
        seen = _Ends(anchor)
        found = list(breaks(seen.noting(rows())))[:_MOST] or [str(error)]
    last = seen.last
    if last == START:
        found.append("there are no entries")
    elif head is not None and head.sequence > last.sequence:
        noted = counted(head.sequence, "entry is", "entries are")
        found.append(f"it was cut short: {noted} noted, and the last is entry {last.sequence}")
    elif head is not None and head != last:
        found.append("the note of its last entry does not fit")
    if anchor is not None and last != START:
        found += _against(anchor, seen)
    payments = state.payments.values()
    answered = sum(payment.status == "answered" for payment in payments)
    counts = seen.count, len(payments), answered, len(payments) - answered
    return Verdict(tuple(found[:_MOST]), *counts, last, state.id), state


@dataclass
class _Ends:
    """Of rows that pass by: how many, the first and the last, and whether one is where an anchor was taken."""

    anchor: Anchor | None
    count: int = 0
    first: Link = START
    last: Link = START
    anchored: bool = False

    def noting(self, rows: Iterable[Row]) -> Iterator[Row]:
        """The same rows."""
        for row in rows:
            self.last = Link(row.sequence, row.hash)
            self.first = self.first if self.count else self.last
            self.anchored |= self.anchor is not None and self.anchor.link == self.last
            self.count += 1
            yield row


def _against(anchor: Anchor, seen: _Ends) -> Iterator[str]:
    if anchor.ledger != seen.first.hash:
        yield "the anchor is of another ledger"
    elif anchor.count > seen.last.sequence:
        known = counted(anchor.count, "entry", "entries")
        yield f"an older copy was put back: the anchor knows {known}, and there are {seen.last.sequence}"
    elif not seen.anchored:
        yield f"the history was rewritten: entry {anchor.count} is not the one that the anchor knows"


def verify_store(store: Store, anchor: Anchor | None = None) -> Verdict:
    """Whether all that a store keeps is what was written: its files, the chain, the note of its end, and every answer.

    Everything is read from the first entry on; a checkpoint is one more entry that must be right.
    """
    found = list(_gathered(store.faults))
    verdict, state = Verdict(()), State()
    try:
        head = store.head()
        until = _end(store, head)
        verdict, state = _verified(lambda: store.rows(0, until), anchor, head)
    except LedgerDamaged as error:  # one that cannot be read now is not a finding
        found.append(error.rule)
    found += verdict.findings
    if not found:
        found += _gathered(lambda: _answers(store, state))
    return replace(verdict, findings=tuple(dict.fromkeys(found))[:_MOST])


def _end(store: Store, head: Link) -> int | None:
    """Up to which row to read: None, for all, unless others have appended since the head was read."""
    beyond = next(iter(store.rows(head.sequence)), None) is not None
    return head.sequence if beyond and store.head() != head else None


def _gathered(check: Callable[[], Iterable[str]]) -> Iterable[str]:
    try:
        return list(itertools.islice(check(), _MOST))
    except LedgerDamaged as error:
        return [error.rule]


def _answers(store: Store, state: State) -> Iterator[str]:
    if digest(store.key()) != state.key_digest:
        yield "the secret of the ledger was changed"
    asked = {sequence: request for request, sequence in state.requests.items()}
    stored = {
        sequence: request
        for sequence, request in store.requests().items()
        if sequence <= state.link.sequence
    }
    for sequence in sorted(asked.keys() | stored.keys()):
        request = asked.get(sequence, "")
        alone = request.partition("\x1f")[2]  # as an older Sordino kept it
        if not request or stored.get(sequence) not in (request, alone):
            yield f"entry {sequence} is kept under another request than it says"
    due = {
        payment.settled: payment
        for payment in state.payments.values()
        if payment.status == "answered"
    }
    for sequence, answer in store.answers():
        payment = due.pop(sequence, None)
        if payment is None and sequence <= state.link.sequence:
            yield f"entry {sequence} has an answer that it should not have"
        elif payment is not None and (
            digest(answer) != payment.answer or len(answer) != payment.size
        ):
            yield f"the answer to entry {payment.receipt.number} was changed"
    for payment in due.values():
        yield f"the answer to entry {payment.receipt.number} is missing"

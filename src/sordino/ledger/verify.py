"""Is a ledger what was written? Checks all of it, and says everything that it finds."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from sordino.errors import LedgerDamaged
from sordino.ledger.anchor import Anchor
from sordino.ledger.chain import START, Broken, Link, Row, breaks, digest, linked
from sordino.ledger.state import State
from sordino.ledger.store import Store

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


def verify_rows(rows: list[Row], anchor: Anchor | None = None, head: Link | None = None) -> Verdict:
    """Whether rows form a whole chain whose charges keep the budgets in force, and that an anchor fits."""
    return _verified(rows, anchor, head)[0]


def _verified(rows: list[Row], anchor: Anchor | None, head: Link | None) -> tuple[Verdict, State]:
    found: list[str] = []
    state = State()
    try:
        for entry, hash_ in linked(rows):
            state.read(entry, hash_, strictly=True)
    except Broken as error:
        found = list(itertools.islice(breaks(rows), _MOST)) or [str(error)]
    last = Link(rows[-1].sequence, rows[-1].hash) if rows else START
    if not rows:
        found.append("there are no entries")
    elif head is not None and head.sequence > last.sequence:
        found.append(f"it was cut short: {head.sequence} entries are noted, and the last is entry {last.sequence}")
    elif head is not None and head != last:
        found.append("the note of its last entry does not fit")
    if anchor is not None and rows:
        found += _against(anchor, rows)
    payments = state.payments.values()
    answered = sum(payment.status == "answered" for payment in payments)
    counts = len(rows), len(payments), answered, len(payments) - answered
    return Verdict(tuple(found[:_MOST]), *counts, last, state.id), state


def _against(anchor: Anchor, rows: list[Row]) -> Iterator[str]:
    if anchor.ledger != rows[0].hash:
        yield "the anchor is of another ledger"
    elif anchor.count > rows[-1].sequence:
        yield f"an older copy was put back: the anchor knows {anchor.count} entries, and there are {rows[-1].sequence}"
    elif anchor.link not in (Link(row.sequence, row.hash) for row in rows):
        yield f"the history was rewritten: entry {anchor.count} is not the one that the anchor knows"


def verify_store(store: Store, anchor: Anchor | None = None) -> Verdict:
    """Whether all that a store keeps is what was written: its files, the chain, the note of its end, and every answer."""
    found = list(_gathered(store.faults))
    rows: list[Row] = []
    head: Link | None = None
    try:
        head = store.head()
        rows = list(store.rows())
        # what others appended since the head was read
        rows = rows if store.head() == head else [row for row in rows if row.sequence <= head.sequence]
    except LedgerDamaged as error:  # one that cannot be read now is not a finding
        found.append(error.rule)
    verdict, state = _verified(rows, anchor, head)
    found += verdict.findings
    if not verdict.findings:
        found += _gathered(lambda: _answers(store, state))
    return replace(verdict, findings=tuple(dict.fromkeys(found))[:_MOST])


def _gathered(check: Callable[[], Iterable[str]]) -> Iterable[str]:
    try:
        return list(itertools.islice(check(), _MOST))
    except LedgerDamaged as error:
        return [error.rule]


def _answers(store: Store, state: State) -> Iterator[str]:
    if digest(store.key()) != state.key_digest:
        yield "the secret of the ledger was changed"
    asked = {sequence: request for request, sequence in state.requests.items()}
    stored = {sequence: request for sequence, request in store.requests().items() if sequence <= state.link.sequence}
    for sequence, _ in sorted(asked.items() ^ stored.items()):
        yield f"entry {sequence} is kept under another request than it says"
    kept = set(store.answers())
    for payment in state.payments.values():
        if payment.status != "answered":
            continue
        answer = store.answer(payment.settled)
        kept.discard(payment.settled)
        if answer is None:
            yield f"the answer to entry {payment.receipt.number} is missing"
        elif digest(answer) != payment.answer or len(answer) != payment.size:
            yield f"the answer to entry {payment.receipt.number} was changed"
    for sequence in sorted(kept):
        if sequence <= state.link.sequence:
            yield f"entry {sequence} has an answer that it should not have"

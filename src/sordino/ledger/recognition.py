"""Is this the ledger that this machine has seen, and as far as it has seen it? Notes are taken and compared here.

The notes themselves are kept by witness.py.
"""

from __future__ import annotations

import warnings

from sordino.errors import LedgerDamaged, LedgerMismatch, LedgerWarning
from sordino.ledger.chain import START, Link
from sordino.ledger.fingerprint import Prints
from sordino.ledger.journal import Journal
from sordino.ledger.place import Place
from sordino.ledger.store import Store
from sordino.ledger.witness import Seen, Witness, machine_of
from sordino.privacy.wording import counted

__all__ = ["ACCEPT", "Recognition"]

ACCEPT = "If that is as it should be, let the owner run `sordino ledger accept`"


class Recognition:
    """What was noted on this machine about the ledger at a place, and about those elsewhere, when it was opened."""

    def __init__(self, store: Store, at: Place, prints: Prints, witness: Witness) -> None:
        self._store = store
        self._at = at
        self._prints = prints
        self._witness = witness
        self._seen = witness.recall(store.place)
        self._others = list(witness.others(store.place))

    def checked_before(self) -> Link:
        """How far this machine has checked this ledger before, else START. The hash there has yet to be met."""
        first = next(iter(self._store.rows(0, 1)), None)
        notes = [note for note in (self._seen, *self._others) if note is not None]
        return max(
            (note.link for note in notes if first is not None and note.ledger == first.hash),
            default=START,
        )

    def expect_known(self, journal: Journal) -> None:
        """Refuse a ledger that is not the one, or not as far, as this machine has seen it."""
        seen, place = self._seen, journal.place
        if seen is not None and not journal.holds(seen.link):
            had = counted(seen.count, "entry", "entries")
            rule = (
                f"an older copy was put back: it had {had}, and has {journal.state.link.sequence}"
            )
            if seen.ledger != journal.id:
                rule = "another ledger is in its place"
            elif journal.state.link.sequence >= seen.count:
                rule = f"its history was rewritten: entry {seen.count} is not the one that was seen here"
            raise LedgerDamaged(place, rule, f"Put the newest one back. {ACCEPT}.")
        own = self._note(journal)
        for note in self._others:
            if note.ledger != journal.id:
                continue
            if self._at.differs(note.place):
                rule = f"it is a copy of the one at {note.place}, and two copies would spend the budget twice"
                raise LedgerMismatch(place, rule, f"Use that one, or remove it. {ACCEPT}.")
            if not journal.holds(note.link):
                rule = f"it is an older or another copy: at {note.place} it had {counted(note.count, 'entry', 'entries')}"
                raise LedgerDamaged(place, rule, f"Put the newest one back. {ACCEPT}.")
        for note in self._others:
            if note.ledger != journal.id and own.shares(note) and self._at.another(note.place):
                text = f"The data of {place} are also guarded by the ledger {note.place}: their budgets add up."
                warnings.warn(f"{text} Use one ledger for one table.", LedgerWarning, stacklevel=4)

    def remember(self, journal: Journal) -> None:
        """Let this machine note how far the ledger is."""
        self._witness.remember(self._note(journal))

    def _note(self, journal: Journal) -> Seen:
        sources, paths = self._witness.sources(self._prints.samples()), self._prints.paths()
        return Seen(
            journal.place,
            journal.state.id,
            *journal.state.link,
            sources,
            paths,
            machine_of(journal.place),
        )

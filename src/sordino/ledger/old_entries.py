"""Entries before a checkpoint, read one by one when asked for, and believed only where hashes bind them to it.

Each checkpoint holds the hash of the checkpoint before it, and the lines in between are linked. So few lines show
whether an old one is what it was: the checkpoints after it, and those up to the next of them.
"""

from __future__ import annotations

from collections.abc import Iterator

from sordino.errors import InvalidInput
from sordino.ledger.chain import START, Broken, Entry, Link, digest, linked
from sordino.ledger.state import Payment, State
from sordino.ledger.store import Store

__all__ = ["EVERY", "Past", "is_due", "resumed"]

EVERY = 1024
"""After how many entries a checkpoint is written."""
_BY_ANALYST = 4
"""And after how many for each analyst: checkpoints stay a small part of the chain, however many there are."""
_MARK = '"kind":"checkpoint"'


def is_due(state: State) -> bool:
    """Whether the next writer should add a checkpoint."""
    since = state.link.sequence - state.checkpoint.sequence
    return since >= EVERY and since >= _BY_ANALYST * len(state.tallies)


def resumed(store: Store, checked: Link, head: Link) -> State | None:
    """The state at the head, read from the last checkpoint before an end of the chain that was checked before.

    None if there is no such checkpoint, or if the chain does not meet that end: then all of it must be read.
    """
    if not 0 < checked.sequence <= head.sequence:
        return None
    found = _last_checkpoint(store, checked.sequence)
    if found is None:
        return None
    try:
        entry, hash_ = found
        state = State.at(entry, hash_, Past(store, entry, hash_))
        for after, its_hash in linked(store.rows(entry.sequence, head.sequence), state.link):
            state.read(after, its_hash)
        return state if state.holds(checked) else None
    except (
        Broken,
        KeyError,
        ValueError,
        TypeError,
        AttributeError,
        ZeroDivisionError,
        InvalidInput,
    ):
        return None  # not what was checked, whatever it is


def _last_checkpoint(store: Store, until: int) -> tuple[Entry, str] | None:
    """The last one up to a number; not yet known to be right."""
    width = 2 * EVERY
    while until > 0:
        rows = list(store.rows(max(until - width, 0), until))
        for row in reversed(rows):
            if _MARK in row.text and digest(row.text) == row.hash:
                try:
                    entry = Entry.of(row)
                except Broken:
                    return None
                if entry.kind == "checkpoint" and entry.sequence == row.sequence:
                    return entry, row.hash
        until, width = max(until - width, 0), 2 * width
    return None


class Past:
    """The entries up to a checkpoint that is known to be right."""

    def __init__(self, store: Store, checkpoint: Entry, hash_: str) -> None:
        self._store = store
        self._checkpoints = [(checkpoint, Link(checkpoint.sequence, hash_))]
        """Those that were looked at, the newest first."""
        self._segment: tuple[Link, list[tuple[Entry, str]]] = (START, [])

    def holds(self, link: Link) -> bool:
        """Whether the chain once ended like this."""
        return any((entry.sequence, hash_) == link for entry, hash_ in self._entries(link.sequence))

    def payment(self, number: int) -> Payment | None:
        """The charge with this number, as it was at the checkpoint."""
        found = next(
            (
                (e, h)
                for e, h in self._entries(number)
                if e.sequence == number and e.kind == "charge"
            ),
            None,
        )
        if found is None:
            return None
        payment = Payment.of(*found)
        for entry, _ in self._entries(number):
            if _settles(entry, number):
                return payment.after(entry)
        for (
            checkpoint,
            _,
        ) in (
            self._checkpoints
        ):  # all from the newest down to the one after the charge were looked at
            later = next(
                (entry for charge, entry in checkpoint.facts["late"] if charge == number), 0
            )
            if later > number:
                settling = next(
                    entry for entry, _ in self._entries(later) if _settles(entry, number)
                )
                return payment.after(settling)
        return payment

    def payments(self) -> Iterator[Payment]:
        """The charges, the newest first."""
        end = self._checkpoints[0][1].sequence
        while end > 0:
            entries = self._entries(end)
            for entry, _ in reversed(entries):
                payment = self.payment(entry.sequence) if entry.kind == "charge" else None
                if payment is not None:
                    yield payment
            end = entries[0][0].sequence - 1

    def _entries(self, number: int) -> list[tuple[Entry, str]]:
        """The entries between two checkpoints around this one, with the later of the two; each with its hash."""
        if number < 1 or number > self._checkpoints[0][1].sequence:
            return []
        position = 0
        while True:
            checkpoint, link = self._at(position)
            before = checkpoint.facts["before"]
            start = START if before is None else Link(before["sequence"], before["hash"])
            if number > start.sequence:
                break
            position += 1
        if self._segment[0] != link:
            entries = list(linked(self._store.rows(start.sequence, link.sequence), start))
            if not entries or (entries[-1][0].sequence, entries[-1][1]) != link:
                raise Broken(
                    f"entries {start.sequence + 1} to {link.sequence} are not those that were there before"
                )
            self._segment = link, entries
        return self._segment[1]

    def _at(self, position: int) -> tuple[Entry, Link]:
        """The checkpoint this many before the newest."""
        while len(self._checkpoints) <= position:
            before = self._checkpoints[-1][0].facts["before"]
            link = Link(before["sequence"], before["hash"])
            row = next(iter(self._store.rows(link.sequence - 1, link.sequence)), None)
            if row is None or row.hash != link.hash or digest(row.text) != link.hash:
                raise Broken(f"entry {link.sequence} is not the one that was there before")
            self._checkpoints.append((Entry.of(row), link))
        return self._checkpoints[position]


def _settles(entry: Entry, number: int) -> bool:
    return entry.kind in ("answer", "forfeit") and entry.facts["charge"] == number

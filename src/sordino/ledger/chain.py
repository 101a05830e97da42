"""Entries of a ledger, each bound to all before it by a hash.

An entry is one line of canonical JSON that holds its number, the SHA-256 of the line before it, and the facts. Whoever knows
the last hash and the count can tell whether any earlier byte was changed, removed, added or moved: `sha256sum` is enough.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

__all__ = ["START", "Broken", "Entry", "Link", "Row", "breaks", "canonical", "digest"]

FORMAT = "sordino-ledger/1"


class Link(NamedTuple):
    """An end of the chain: the number of the last entry, and its hash."""

    sequence: int
    hash: str


START = Link(0, "0" * 64)
"""The end of a chain without entries."""


class Row(NamedTuple):
    """An entry as it is stored: its number, its line, and the hash of the line."""

    sequence: int
    text: str
    hash: str


class Broken(Exception):
    """What is wrong with a chain, in words; turned into a LedgerDamaged by those who know where the chain is kept."""


@dataclass(frozen=True)
class Entry:
    """One entry: its number, the hash of the entry before, what kind of thing happened, when, and its facts.

    The time is for people only: nothing is decided by it.
    """

    sequence: int
    previous: str
    kind: str
    time: str
    facts: Mapping[str, Any]

    @property
    def text(self) -> str:
        """The line of canonical JSON that is hashed and stored."""
        line = {"format": FORMAT, "sequence": self.sequence, "previous": self.previous, "kind": self.kind, "time": self.time}
        return canonical({**line, "facts": dict(self.facts)})

    @property
    def row(self) -> Row:
        """The entry as it is stored."""
        text = self.text
        return Row(self.sequence, text, digest(text))

    @staticmethod
    def of(row: Row) -> Entry:
        """The entry of a stored row whose hash was checked."""
        try:
            fields = json.loads(row.text)
            if fields["format"] != FORMAT:
                raise Broken(f"entry {row.sequence} has a form that this version of Sordino does not know")
            entry = Entry(fields["sequence"], fields["previous"], fields["kind"], fields["time"], fields["facts"])
        except (ValueError, KeyError, TypeError):
            raise Broken(f"entry {row.sequence} is not an entry") from None
        if entry.text != row.text:  # two lines for one meaning would let a line change unseen by those who read its facts
            raise Broken(f"entry {row.sequence} is not written in the canonical form")
        return entry


def canonical(value: Any) -> str:
    """The one JSON text of a value: sorted keys, no spaces."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"))


def digest(text: str | bytes) -> str:
    """SHA-256, as hexadecimal digits."""
    return hashlib.sha256(text if isinstance(text, bytes) else text.encode()).hexdigest()


def breaks(rows: Iterable[Row], start: Link = START) -> Iterator[str]:
    """All places where rows, in the order of their numbers, do not continue the chain that ended at `start`."""
    count, last = start
    for row in rows:
        if row.sequence != count + 1:
            gone = f"entry {count + 1} is" if row.sequence == count + 2 else f"entries {count + 1} to {row.sequence - 1} are"
            yield f"{gone} missing" if row.sequence > count else f"entry {row.sequence} is there twice"
        if digest(row.text) != row.hash:
            yield f"entry {row.sequence} was changed: its hash does not fit"
        try:
            entry = Entry.of(row)
        except Broken as error:
            yield str(error)
        else:
            if entry.sequence != row.sequence:
                yield f"entry {row.sequence} was moved: it says that it is entry {entry.sequence}"
            if entry.previous != last:
                yield f"entry {row.sequence} does not follow from the one before it: something was changed, moved or removed"
        count, last = row.sequence, row.hash

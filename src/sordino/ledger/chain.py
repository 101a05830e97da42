"""Entries of a ledger, each bound to all before it by a hash.

An entry is one line of canonical JSON that holds its number, the SHA-256 of the line before it, and the facts. Whoever
knows the last hash and the count can tell whether any earlier byte was changed, removed, added or moved: `sha256sum`
is enough.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

__all__ = ["START", "Broken", "Entry", "Link", "Row", "breaks", "canonical", "digest", "linked"]

FORMAT = "sordino-ledger/1"
_ENCODER = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":")
)


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
        line = {
            "format": FORMAT,
            "sequence": self.sequence,
            "previous": self.previous,
            "kind": self.kind,
            "time": self.time,
        }
        return canonical({**line, "facts": dict(self.facts)})

    @property
    def row(self) -> Row:
        """The entry as it is stored."""
        text = self.text
        return Row(self.sequence, text, digest(text))

    @staticmethod
    def after(link: Link, kind: str, facts: Mapping[str, Any]) -> Entry:
        """The entry that continues the chain which ended like this, made now."""
        return Entry(link.sequence + 1, link.hash, kind, _now(), facts)

    @staticmethod
    def of(row: Row) -> Entry:
        """The entry of a stored row whose hash was checked."""
        try:
            fields = json.loads(row.text)
            if fields["format"] != FORMAT:
                raise Broken(
                    f"entry {row.sequence} has a form that this version of Sordino does not know"
                )
            entry = Entry(
                fields["sequence"],
                fields["previous"],
                fields["kind"],
                fields["time"],
                fields["facts"],
            )
            exact = type(entry.sequence) is int and type(entry.facts) is dict
            if not exact or not all(
                type(x) is str for x in (entry.previous, entry.kind, entry.time)
            ):
                raise TypeError
            text = entry.text
        except (ValueError, KeyError, TypeError, RecursionError):
            raise Broken(f"entry {row.sequence} is not an entry") from None
        # two lines for one meaning would let a line change unseen by those who read its facts
        if text != row.text:
            raise Broken(f"entry {row.sequence} is not written in the canonical form")
        return entry


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def canonical(value: Any) -> str:
    """The one JSON text of a value: sorted keys, no spaces."""
    return _ENCODER.encode(value)


def digest(text: str | bytes) -> str:
    """SHA-256, as hexadecimal digits."""
    return hashlib.sha256(text if isinstance(text, bytes) else text.encode()).hexdigest()


def linked(rows: Iterable[Row], start: Link = START) -> Iterator[tuple[Entry, str]]:
    """The entries of rows that continue a chain from its end `start`, each with its hash; Broken where one does not."""
    last = start
    for row in rows:
        entry, found = _checked(row, last)
        if entry is None or found:
            raise Broken(found[0])
        yield entry, row.hash
        last = Link(row.sequence, row.hash)


def breaks(rows: Iterable[Row], start: Link = START) -> Iterator[str]:
    """All places where rows, in the order of their numbers, do not continue the chain that ended at `start`."""
    last = start
    for row in rows:
        yield from _checked(row, last)[1]
        last = Link(row.sequence, row.hash)


def _checked(row: Row, last: Link) -> tuple[Entry | None, list[str]]:
    found = []
    following = last.sequence + 1
    if row.sequence != following:
        gone = (
            f"entry {following} is"
            if row.sequence == following + 1
            else f"entries {following} to {row.sequence - 1} are"
        )
        found.append(
            f"{gone} missing"
            if row.sequence > following
            else f"entry {row.sequence} is there twice"
        )
    if digest(row.text) != row.hash:
        found.append(f"entry {row.sequence} was changed: its hash does not fit")
    try:
        entry = Entry.of(row)
    except Broken as error:
        return None, [*found, str(error)]
    if entry.sequence != row.sequence:
        found.append(f"entry {row.sequence} was moved: it says that it is entry {entry.sequence}")
    if entry.previous != last.hash:
        found.append(
            f"entry {row.sequence} does not follow from the one before it: something was changed, moved or removed"
        )
    return entry, found

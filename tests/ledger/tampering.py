"""Hands on a ledger that are not ours: bytes, rows and fields changed behind its back,
and what the ledger makes of it.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ledger.visits import Told, pay, told
from sordino.errors import LedgerError, RequestRefused
from sordino.ledger.anchor import Anchor
from sordino.ledger.chain import START, Entry, Link
from sordino.ledger.ledger import Ledger
from sordino.ledger.sqlite import SqliteStore

__all__ = [
    "Campaign",
    "changed",
    "changes",
    "edited",
    "judge",
    "judge_open",
    "leaves",
    "pack",
    "relinked",
]


def judge(path: Path, before: Told, anchor: Anchor | None = None) -> str:
    """What a ledger file is after somebody touched it: detected, harmless, or what must not be."""
    try:
        with Ledger(SqliteStore(path)) as ledger:
            if not ledger.verify(anchor):
                return "detected"
            return "harmless" if told(ledger) == before else "UNDETECTED"
    except LedgerError:
        return "detected"
    except RequestRefused:  # the same question is another one now
        return "UNDETECTED"
    except Exception as error:
        return f"RAW {type(error).__name__}"


def judge_open(path: Path, content: bytes, change: dict[int, int]) -> str:
    """The same for bytes that change while a session has the file open, and charges it then."""
    path.write_bytes(content)
    ledger = Ledger(SqliteStore(path))
    before = told(ledger)
    try:
        with path.open("r+b") as file:
            for place, byte in change.items():
                file.seek(place)
                file.write(bytes([byte]))
        pay(ledger, "while open", "1/64", b"an answer", "ana")
        after = told(ledger)
    except LedgerError:
        return "detected"
    except Exception as error:
        return f"RAW {type(error).__name__}"
    finally:
        ledger.close()
    grown = (after.payments[:-1], after.answers[:-1], after.terms) == (
        before.payments,
        before.answers,
        before.terms,
    )
    return judge(path, after) if grown else "UNDETECTED"


@dataclass
class Campaign:
    """Counts what became of many changes; those that must not be are kept by name."""

    name: str
    before: Told
    anchor: Anchor | None = None
    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def judge(self, path: Path, what: str) -> str:
        """Judge one change, and count it."""
        return self.count(judge(path, self.before, self.anchor), what)

    def count(self, verdict: str, what: str) -> str:
        """Count a verdict."""
        self.counts[verdict] += 1
        if verdict not in ("detected", "harmless"):
            self.wrong.append(f"{what}: {verdict}")
        return verdict

    def report(self) -> None:
        """Print the figures, and fail if something was wrong."""
        print(
            f"{self.name}: {sum(self.counts.values())} changes, {dict(sorted(self.counts.items()))}"
        )
        assert not self.wrong, self.wrong[:10]


def pack(source: Path, target: Path) -> bytes:
    """A copy in the smallest pages, so that most of its bytes mean something; and these bytes."""
    connection = sqlite3.connect(source)
    connection.execute("PRAGMA page_size = 512")
    connection.execute("VACUUM INTO ?", (str(target),))
    connection.close()
    return target.read_bytes()


def changes(content: bytes, step: int, *, both: bool) -> Iterator[tuple[str, int, int]]:
    """At every step-th place a byte inverted, and one bit of it (or these two in turn): name, place, new byte."""
    for number, place in enumerate(range(0, len(content), step)):
        masks = (0xFF, 1 << (number // 2 % 8))
        for mask in masks if both else masks[number % 2 :][:1]:
            yield f"byte {place} xor {mask:#x}", place, content[place] ^ mask


@contextmanager
def edited(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection of somebody who knows SQLite: triggers are out of the way,
    and back in the end as if nothing had been.
    """
    connection = sqlite3.connect(path, isolation_level=None)
    triggers = connection.execute(
        "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' ORDER BY rowid"
    ).fetchall()
    for pragma in ("foreign_keys = OFF", "ignore_check_constraints = ON", "synchronous = OFF"):
        connection.execute(f"PRAGMA {pragma}")
    connection.execute("BEGIN")
    for name, _ in triggers:
        connection.execute(f"DROP TRIGGER {name}")
    try:
        yield connection
        for _, text in triggers:
            connection.execute(text)
        connection.execute("COMMIT")
    finally:
        connection.close()


def relinked(connection: sqlite3.Connection) -> None:
    """Forge numbers, links and head so that the chain is whole again."""
    last = START
    rows = connection.execute("SELECT sequence, text FROM entries ORDER BY sequence").fetchall()
    for table in ("entries", "answers"):
        connection.execute(f"UPDATE {table} SET sequence = -sequence")
    for number, (old, text) in enumerate(rows, 1):
        fields = json.loads(text)
        row = Entry(number, last.hash, fields["kind"], fields["time"], fields["facts"]).row
        connection.execute(
            "UPDATE entries SET sequence = ?, text = ?, hash = ? WHERE sequence = ?", (*row, -old)
        )
        connection.execute("UPDATE answers SET sequence = ? WHERE sequence = ?", (number, -old))
        last = Link(row.sequence, row.hash)
    connection.execute("UPDATE head SET sequence = ?, hash = ?", last)


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths to all single values within a value."""
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(inner, (*path, key))
    else:
        yield path


def changed(value: Any, path: tuple[Any, ...]) -> Any:
    """The value with another one at the path; of the same type, and sensible where that is possible."""
    if path:
        inner = changed(value[path[0]], path[1:])
        items = value.items() if isinstance(value, dict) else enumerate(value)
        kept = {key: inner if key == path[0] else old for key, old in items}
        return kept if isinstance(value, dict) else list(kept.values())
    match value:
        case None:
            return "bob"
        case int():
            return value + 1
        case str() if "/" in value:
            return f"{value}1"  # a fraction is made smaller
        case str() if value.isdigit():
            return f"{value}1"
        case _:
            return f"{value[:-1]}{'b' if value[-1:] != 'b' else 'a'}"

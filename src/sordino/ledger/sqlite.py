"""A ledger in one SQLite file.

Rollback journal and synchronous=EXTRA: when a commit returns, the row is on the disk, and so is the removal of the
journal that would undo it. A file comes into being whole, under its name, or not at all; one that exists is never made
anew.
"""

from __future__ import annotations

import contextlib
import glob
import os
import sqlite3
import time
import uuid
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import quote

from sordino.errors import LedgerDamaged, LedgerError, LedgerUnavailable
from sordino.ledger import fork_gate
from sordino.ledger.chain import Link, Row
from sordino.ledger.store import NOT_GRANTED, Busy

__all__ = ["PATIENCE", "Connect", "SqliteStore"]

PATIENCE = 30.0
"""How many seconds to wait for another process that is writing."""
_ENTRIES, _ANSWERS = 4096, 64
"""How many are read at a time; an answer may be large."""
_APPLICATION = 0x50_52_44_4E
_VERSION = 1
_SCHEMA = (
    """CREATE TABLE entries (
    sequence INTEGER PRIMARY KEY CHECK (sequence > 0), text TEXT NOT NULL, hash TEXT NOT NULL, request TEXT UNIQUE
) STRICT""",
    "CREATE TABLE answers (sequence INTEGER PRIMARY KEY REFERENCES entries, bytes BLOB NOT NULL) STRICT",
    "CREATE TABLE head (one INTEGER PRIMARY KEY CHECK (one = 1), sequence INTEGER NOT NULL, hash TEXT NOT NULL) STRICT",
    "CREATE TABLE secret (one INTEGER PRIMARY KEY CHECK (one = 1), key BLOB NOT NULL) STRICT",
    *(
        f"CREATE TRIGGER {table}_{action.lower()} BEFORE {action} ON {table} "
        f"BEGIN SELECT RAISE(ABORT, 'a ledger is only ever appended to'); END"
        for table in ("entries", "answers")
        for action in ("UPDATE", "DELETE")
    ),
)
_CHANGED = "its tables were changed"
_BESIDE = ("-journal", "-wal")
"""What SQLite keeps beside a file, and would play into a new one of its name."""
_DAMAGE = {
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_NOTADB,
    sqlite3.SQLITE_FORMAT,
    sqlite3.SQLITE_MISMATCH,
}
_REASONS = {
    sqlite3.SQLITE_BUSY: ("another process is writing to it", "Try again, or look for a process that hangs"),
    sqlite3.SQLITE_LOCKED: ("it is locked", "Try again, or look for a process that hangs"),
    sqlite3.SQLITE_READONLY: ("it cannot be written to", "Make the file and its folder writable for you"),
    sqlite3.SQLITE_CANTOPEN: ("it cannot be opened", "Check the path, and that you may write to the file and its folder"),
    sqlite3.SQLITE_PERM: ("it may not be opened", "Make the file and its folder writable for you"),
    sqlite3.SQLITE_FULL: ("the disk is full", "Free some space and open a new session"),
    sqlite3.SQLITE_IOERR: ("the disk failed", "Check the disk, and open a new session"),
}  # fmt: skip

Connect: TypeAlias = Callable[[str], Any]
"""Opens a database by its URI; tests put a failing disk here."""


def _connect(uri: str) -> sqlite3.Connection:
    return sqlite3.connect(
        uri, uri=True, isolation_level=None, timeout=PATIENCE, check_same_thread=False
    )


_ABANDONED: list[object] = []
"""Connections of a process that forked amid a transaction: closing them in the child could undo the parent's work."""


class _Transaction:
    """Which thread is inside a transaction of a store, if one is; known also to whoever closes what was left open."""

    def __init__(self) -> None:
        self.stay: fork_gate.Stay | None = None

    def begun(self) -> None:
        if self.stay is None:
            self.stay = fork_gate.enter()

    def over(self, process: int) -> None:
        stay, self.stay = self.stay, None
        if stay is not None and os.getpid() == process:
            fork_gate.leave(stay)


def _close(connection: Any, process: int, transaction: _Transaction) -> None:
    """Close a connection: in the process that made it, or in a child that was forked when nothing was under way."""
    if os.getpid() != process and not fork_gate.is_clean():
        _ABANDONED.append(connection)
        return
    try:
        with contextlib.suppress(sqlite3.Error), fork_gate.entered():
            connection.close()
    finally:
        transaction.over(process)


class SqliteStore:
    """Rows in an SQLite file that exists."""

    durable = True

    def __init__(self, path: str | Path, connect: Connect = _connect) -> None:
        self.path = Path(path)
        self.place = str(path)
        self._connect = connect
        self._transaction = _Transaction()
        self._open()

    @staticmethod
    def exists(path: str | Path) -> bool:
        """Whether there is something at the path, or what a ledger leaves behind there."""
        return any(os.path.lexists(f"{path}{ending}") for ending in ("", *_BESIDE))

    @staticmethod
    def create(path: str | Path, first: Row, key: bytes, connect: Connect = _connect) -> bool:
        """A new file with its first row, made aside and then given its name; False if another was faster."""
        target = Path(path)
        aside = target.with_name(f".{target.name}.{os.getpid()}-{uuid.uuid4().hex}")
        try:
            if not target.parent.is_dir():
                raise LedgerUnavailable(
                    str(path), "its folder does not exist", "Make the folder, or correct the path."
                )
            # for its owner only: who can read the secret in it can confirm guesses about the data
            os.close(os.open(aside, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            _fill(str(aside), first, key, connect)
            return _name(aside, target)
        except (sqlite3.Error, OSError) as error:
            raise _refusal(str(path), error) from None
        finally:
            for leftover in (aside, Path(f"{aside}-journal")):
                with contextlib.suppress(OSError):
                    leftover.unlink(missing_ok=True)

    def _open(self) -> None:
        try:
            if not self.path.is_file():
                rule = "its journal is there, but the file is gone"
                if os.path.lexists(self.path):
                    rule = (
                        "it is a link to a file that is gone"
                        if self.path.is_symlink()
                        else "it is not a file"
                    )
                raise LedgerDamaged(self.place, rule, "Put the file back, from a copy if need be.")
            if self.path.stat().st_size == 0:
                raise LedgerDamaged(
                    self.place,
                    "the file is empty",
                    "Put it back from a copy; an empty file is no ledger.",
                )
            if _links(self.path) > 1:
                rule = "it has several names (hard links), and a journal of one would undo what was written under another"
                raise LedgerUnavailable(self.place, rule, "Keep one name and remove the others.")
            if not fork_gate.is_clean():
                rule = "this process was forked while another thread was using a ledger, and inherited its locks"
                raise LedgerUnavailable(
                    self.place,
                    rule,
                    "Start a new process: multiprocessing with 'spawn'.",
                    NOT_GRANTED,
                )
            with fork_gate.entered():
                self._connection = self._connect(_uri(self.path, "rw"))
            self._process = os.getpid()
            # if nobody closes it
            self._finish = weakref.finalize(
                self, _close, self._connection, self._process, self._transaction
            )
        except (sqlite3.Error, OSError) as error:
            raise _refusal(self.place, error) from None
        try:
            self._prepare()
        except BaseException:
            self.close()
            raise

    def _prepare(self) -> None:
        for pragma in (
            "trusted_schema = OFF",
            "cell_size_check = ON",
            "foreign_keys = ON",
            "fullfsync = ON",
        ):
            self._run(f"PRAGMA {pragma}")
        if self._one("PRAGMA application_id") != _APPLICATION:
            raise LedgerDamaged(self.place, "it is not a ledger of Sordino", "Check the path.")
        version = self._one("PRAGMA user_version")
        if version != _VERSION:
            rule = f"it has form {version}, and this version of Sordino knows form {_VERSION}"
            raise LedgerUnavailable(self.place, rule, "Use the newer Sordino that wrote it.")
        if str(self._one("PRAGMA journal_mode = DELETE")).lower() != "delete":
            raise LedgerUnavailable(
                self.place, "its journal cannot be used", "Close whatever else has opened it."
            )
        self._run("PRAGMA synchronous = EXTRA")
        if self._tables() != list(_SCHEMA):
            raise LedgerDamaged(
                self.place, _CHANGED, "Put it back from a copy, and compare with an anchor."
            )

    def _run(self, statement: str, values: tuple[object, ...] = ()) -> Any:
        if os.getpid() != self._process:
            self._transaction = _Transaction()  # the one under way is the parent's
            self._finish()
            self._open()
        try:
            with fork_gate.entered():
                return self._connection.execute(statement, values)
        except (
            sqlite3.Error,
            OverflowError,
            MemoryError,
            UnicodeError,
        ) as error:  # a message may quote what was damaged
            raise _refusal(self.place, error) from None

    def _rows(self, statement: str, values: tuple[object, ...] = ()) -> list[tuple[Any, ...]]:
        with fork_gate.entered():
            cursor = self._run(statement, values)
            try:
                return list(cursor.fetchall())
            except (sqlite3.Error, MemoryError, UnicodeError) as error:
                raise _refusal(self.place, error) from None

    def _one(self, statement: str, values: tuple[object, ...] = ()) -> Any:
        rows = self._rows(statement, values)
        return rows[0][0] if rows else None

    def begin(self) -> None:
        """Become the only writer."""
        self._run("BEGIN IMMEDIATE")
        self._transaction.begun()  # until commit or rollback

    def commit(self) -> None:
        """Make the transaction durable."""
        self._run("COMMIT")
        self._transaction.over(self._process)

    def rollback(self) -> None:
        """Undo the transaction."""
        try:
            with contextlib.suppress(sqlite3.Error), fork_gate.entered():
                if os.getpid() == self._process and self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
        finally:
            self._transaction.over(self._process)

    def rows(self, after: int = 0, until: int | None = None) -> Iterator[Row]:
        """The rows with larger numbers."""
        statement = "SELECT sequence, text, hash FROM entries WHERE sequence > ? AND sequence <= ? ORDER BY sequence LIMIT ?"
        for sequence, text, hash_ in self._paged(statement, after, _ENTRIES, until):
            if not (isinstance(text, str) and isinstance(hash_, str)):
                raise LedgerDamaged(
                    self.place, f"entry {sequence} is not text", "Put it back from a copy."
                )
            yield Row(sequence, text, hash_)

    def _paged(
        self, statement: str, after: int, most: int, until: int | None = None
    ) -> Iterator[tuple[Any, ...]]:
        """Rows by their numbers, this many at a time: who reads them all at once would keep writers out meanwhile."""
        last = 2**63 - 1 if until is None else until
        while True:
            found = self._rows(statement, (after, last, most))
            yield from found
            if len(found) < most:
                return
            after = found[-1][0]

    def find(self, request: str) -> int | None:
        """The number of the row that is kept under a request."""
        found = self._one("SELECT sequence FROM entries WHERE request = ?", (request,))
        return found if isinstance(found, int) else None

    def head(self) -> Link:
        """The end of the chain as noted in a table of its own."""
        rows = self._rows("SELECT sequence, hash FROM head")
        # STRICT does not bind who writes bytes
        if [tuple(map(type, row)) for row in rows] != [(int, str)]:
            raise LedgerDamaged(
                self.place, "the note of its last entry is gone", "Put it back from a copy."
            )
        return Link(*rows[0])

    def append(
        self, row: Row, head: Link, request: str | None = None, answer: bytes | None = None
    ) -> None:
        """Add a row after the head, if it is still the head."""
        moved = self._run(
            "UPDATE head SET sequence = ?, hash = ? WHERE sequence = ? AND hash = ?",
            (*row[::2], *head),
        )
        # apsw and sqlite3 tell the number of changed rows in different ways; SQL is the same for both
        moved.close()
        if self._one("SELECT changes()") != 1:
            raise Busy
        self._run("INSERT INTO entries VALUES (?, ?, ?, ?)", (*row, request))
        if answer is not None:
            self._run("INSERT INTO answers VALUES (?, ?)", (row.sequence, answer))

    def answer(self, sequence: int) -> bytes | None:
        """The answer that was stored with this row."""
        found = self._one("SELECT bytes FROM answers WHERE sequence = ?", (sequence,))
        return found if isinstance(found, bytes) else None

    def answers(self) -> Iterator[tuple[int, bytes]]:
        """All answers."""
        statement = "SELECT sequence, bytes FROM answers WHERE sequence > ? AND sequence <= ? ORDER BY sequence LIMIT ?"
        for sequence, found in self._paged(statement, -(2**63), _ANSWERS):
            yield sequence, found if isinstance(found, bytes) else b""

    def requests(self) -> dict[int, str]:
        """The requests under which rows are kept, by the numbers of the rows."""
        return dict(self._rows("SELECT sequence, request FROM entries WHERE request IS NOT NULL"))

    def key(self) -> bytes:
        """The secret of this ledger."""
        found = self._one("SELECT key FROM secret")
        return found if isinstance(found, bytes) else b""

    def faults(self) -> list[str]:
        """What SQLite finds wrong with the file, and any change of its tables."""
        try:
            found = [row[0] for row in self._rows("PRAGMA integrity_check")]
            tables = self._tables()
        except LedgerDamaged as error:
            return [error.rule]
        if found != ["ok"]:
            return ["the file is damaged: SQLite cannot read all of it"]
        return [] if tables == list(_SCHEMA) else [_CHANGED]

    def _tables(self) -> list[str]:
        return [
            sql
            for (sql,) in self._rows(
                "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid"
            )
        ]

    def close(self) -> None:
        """Close the file."""
        if os.getpid() == self._process:
            self._finish()


def _uri(path: Path | str, mode: str) -> str:
    return f"file:{quote(os.fsencode(Path(path).absolute()))}?mode={mode}"


def _links(path: Path) -> int:
    """How many names a file has, once the one under which it was made is taken away."""
    for _ in range(50):
        if path.stat().st_nlink == 1:
            return 1
        for left in path.parent.glob(f".{glob.escape(path.name)}.*"):
            with contextlib.suppress(OSError):
                if left.samefile(path):  # its maker has not come so far yet, or was killed before
                    left.unlink(missing_ok=True)
        time.sleep(0.01)
    return path.stat().st_nlink


def _fill(path: str, first: Row, key: bytes, connect: Connect) -> None:
    connection = connect(_uri(path, "rw"))
    try:
        connection.execute("PRAGMA synchronous = EXTRA")
        connection.execute(f"PRAGMA application_id = {_APPLICATION}")
        connection.execute(f"PRAGMA user_version = {_VERSION}")
        connection.execute("BEGIN IMMEDIATE")
        for statement in _SCHEMA:
            connection.execute(statement)
        connection.execute("INSERT INTO secret VALUES (1, ?)", (key,))
        connection.execute("INSERT INTO entries VALUES (?, ?, ?, NULL)", tuple(first))
        connection.execute("INSERT INTO head VALUES (1, ?, ?)", (first.sequence, first.hash))
        connection.execute("COMMIT")
    finally:
        connection.close()


def _name(aside: Path, target: Path) -> bool:
    """Give the finished file its name, unless there is something under it."""
    if any(os.path.lexists(f"{target}{ending}") for ending in _BESIDE) and not os.path.lexists(
        target
    ):
        rule = "its journal is there, but the file is gone"
        raise LedgerDamaged(str(target), rule, "Put the file back, from a copy if need be.")
    try:
        os.link(aside, target)
    except FileExistsError:
        return False
    except OSError:  # a file system without links: reserve the name, then move onto it
        try:
            os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        except FileExistsError:
            return False
        aside.replace(target)
    aside.unlink(missing_ok=True)
    if os.name == "posix":  # elsewhere a folder cannot be synced
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    return True


def _refusal(place: str, error: Exception) -> LedgerError | Busy:
    """What an error of SQLite or of the system means for the caller."""
    if isinstance(error, LedgerError):
        return error
    if isinstance(error, OSError):
        return LedgerUnavailable(
            place,
            f"it cannot be opened or made ({error.strerror})",
            "Check path, space and permissions.",
        )
    if isinstance(error, MemoryError):
        return LedgerUnavailable(
            place, "there is not enough memory", "Free some and open a new session."
        )
    if isinstance(error, OverflowError | sqlite3.DataError):
        return LedgerUnavailable(
            place, "the answer is too large to be stored", "Ask for fewer groups."
        )
    code = getattr(error, "sqlite_errorcode", None)
    if isinstance(error, sqlite3.ProgrammingError) and code is None:
        return LedgerUnavailable(place, "it is closed", "Open a new session.")
    kind = None if code is None else code & 0xFF
    if kind == sqlite3.SQLITE_CONSTRAINT:
        return Busy()
    if kind is None or kind in _DAMAGE:
        rule = "the file is damaged, or not a ledger"
        return LedgerDamaged(place, rule, "Put it back from a copy, and compare with an anchor.")
    name = getattr(error, "sqlite_errorname", "an unknown error")
    rule, hint = _REASONS.get(kind, ("SQLite cannot use it", "Open a new session"))
    if code == sqlite3.SQLITE_READONLY_DBMOVED:
        rule, hint = (
            "it was moved, removed or replaced while it was open",
            "Put it back, and open a new session",
        )
    return LedgerUnavailable(place, f"{rule} ({name})", f"{hint}.", NOT_GRANTED)

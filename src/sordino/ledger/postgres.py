"""A ledger in a PostgreSQL database, beside others: its rows carry its name.

A writer locks the note of the last entry, so there is one at a time. When a commit returns, the server has flushed it,
and so has a synchronous standby where there is one. A commit that was not confirmed has failed; it is never tried
again.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from functools import partial
from typing import Any, TypeAlias

from sordino.errors import InvalidInput, LedgerDamaged, LedgerError, LedgerUnavailable
from sordino.ledger.chain import Link, Row
from sordino.ledger.postgres_tables import CHANGED, Ask, faults, has_ledger, has_tables, make_tables
from sordino.ledger.store import NOT_GRANTED, Busy

try:
    import psycopg
    from psycopg import pq, sql

    from sordino.ledger.postgres_address import Address
except ImportError:
    raise InvalidInput(
        "an address postgresql://...",
        "a ledger in PostgreSQL needs psycopg",
        "Run: pip install 'sordino[postgres]'.",
    ) from None

__all__ = ["PATIENCE", "PostgresStore", "shown"]

PATIENCE = 30.0
"""How many seconds to wait for another process that is writing."""
_ENTRIES, _ANSWERS = 4096, 64
"""How many are read at a time; an answer may be large."""
_ATTEMPTS = 10
_FOR_SESSION = sql.SQL("""
SELECT current_setting('fsync'), current_setting('full_page_writes'), current_setting('server_encoding'),
    set_config('search_path', 'pg_catalog', false),
    set_config('lock_timeout', {lock}, false), set_config('statement_timeout', {answer}, false)
""")
# Set in each transaction: behind a pool of connections it may be in another session than the last one.
_BEGIN = sql.SQL("""
BEGIN ISOLATION LEVEL READ COMMITTED;
SELECT set_config('lock_timeout', {lock}, true), set_config('statement_timeout', {answer}, true),
    set_config('idle_in_transaction_session_timeout', {answer}, true),
    set_config('synchronous_commit',
        CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true);
""")
_LOCK_HEAD = sql.SQL("SELECT 1 FROM sordino.heads WHERE ledger = {} FOR UPDATE")
_LOCK_ALL = sql.SQL("SELECT pg_advisory_xact_lock({})").format(0x736F7264696E6F)
"""Under this lock tables and ledgers are made, one at a time."""
_BUSY = {"40001", "40P01", "23505"}
_LOST = "the connection was lost", "Check the server and the network, and open a new session"
_OVER = "its transaction is over, or that of another process", "Open a new session"
_REASONS = {
    "08": _LOST, "57P": _LOST, "25P03": _LOST,
    "25006": ("the server takes no changes: it is a standby, or set to read only", "Use the address of the primary"),
    "55P03": ("another process is writing to it", "Try again, or look for a process that hangs"),
    "57014": ("the server did not answer in time", "Try again, or look for what keeps it busy"),
    "53100": ("the disk of the server is full", "Free some space and open a new session"),
    "53200": ("the server is out of memory", "Try again, or give it more"),
    "53300": ("the server has too many connections", "Try again, or let it accept more"),
    "42501": ("this user lacks a right to its tables", "Let the owner of the schema sordino grant it"),
    "54000": ("the answer is too large to be stored", "Ask for fewer groups"),
    "58": ("the disk of the server failed", "Check the server, and open a new session"),
}  # fmt: skip
"""By error code, or the first signs of it."""
_DAMAGE = {
    "42": CHANGED,
    "3F": CHANGED,
    "XX": "the database is damaged: the server cannot read all of it",
}

_Cursor: TypeAlias = "psycopg.Cursor[tuple[Any, ...]]"
_Connection: TypeAlias = "psycopg.Connection[tuple[Any, ...]]"

_ABANDONED: list[object] = []
"""Connections of a process that forked: the child keeps its hands off what the parent is using."""


def shown(address: str) -> str:
    """How messages call an address: without its password.

    Example:
        >>> shown("postgresql://ana:secret@db.example.org:5432/hospital?ledger=visits")
        'postgresql://ana@db.example.org:5432/hospital?ledger=visits'
    """
    return Address.of(address).shown


class PostgresStore:
    """Rows in a PostgreSQL database, of a ledger that exists."""

    durable = True

    def __init__(self, address: str) -> None:
        self._address = Address.of(address)
        self._name = self._address.ledger
        self.place = self._address.shown
        self._writing = self._closed = False
        self._open()

    @staticmethod
    def exists(address: str) -> bool:
        """Whether there is a ledger of this name, or anything that one leaves behind."""
        at = Address.of(address)
        with contextlib.closing(_connect(at)) as connection:
            ask = partial(_ask, connection, at.shown)
            return has_tables(ask, at.shown) and has_ledger(ask, at.ledger)

    @staticmethod
    def create(address: str, first: Row, key: bytes) -> bool:
        """A new ledger with its first row, and the tables if they are not there; False if another was faster."""
        at = Address.of(address)
        with contextlib.closing(
            _connect(at)
        ) as connection:  # closing it undoes what was not committed
            ask = partial(_ask, connection, at.shown)
            try:
                ask(_timed(_BEGIN) + _LOCK_ALL)
                if not has_tables(ask, at.shown):
                    make_tables(ask)
                ask(
                    "INSERT INTO sordino.heads (ledger, sequence, hash) VALUES (%s, %s, %s)",
                    (at.ledger, *first[::2]),
                )
                ask("INSERT INTO sordino.secrets (ledger, key) VALUES (%s, %s)", (at.ledger, key))
                _insert(ask, at.shown, at.ledger, first)
            except Busy:
                return False
            _commit(connection, at.shown)
            return True

    def _open(self) -> None:
        self._connection = _connect(self._address)
        self._process = os.getpid()
        try:
            ask = partial(_ask, self._connection, self.place)
            if not (has_tables(ask, self.place) and has_ledger(ask, self._name)):
                raise LedgerUnavailable(
                    self.place, "there is none of this name", "Check the address."
                )
            found = faults(ask, self.place, self._name)
            if found:
                raise LedgerDamaged(
                    self.place, found[0], "Put it back from a copy, and compare with an anchor."
                )
        except BaseException:
            self._connection.close()
            raise

    def _run(self, statement: str | sql.Composed, values: Any = ()) -> _Cursor:
        """One statement; a connection that was lost is opened again, but never within a transaction."""
        if self._closed:
            raise LedgerUnavailable(self.place, "it is closed", "Open a new session.")
        if os.getpid() != self._process:
            _ABANDONED.append(self._connection)
            self._writing = False  # the transaction is the parent's
            self._open()
        try:
            return _ask(self._connection, self.place, statement, values)
        except LedgerUnavailable:
            if self._writing or not self._connection.closed:
                raise
        self._open()
        return _ask(self._connection, self.place, statement, values)

    def begin(self) -> None:
        """Become the only writer."""
        for _ in range(_ATTEMPTS):
            try:
                self._run(_timed(_BEGIN) + _LOCK_HEAD.format(self._name))
            except Busy:
                self.rollback()
            except BaseException:
                self.rollback()
                raise
            else:
                self._writing = True
                return
        raise _unavailable(self.place, _REASONS["55P03"])

    def commit(self) -> None:
        """Make the transaction durable."""
        self._expect_transaction()
        _commit(self._connection, self.place)
        self._writing = False

    def rollback(self) -> None:
        """Undo the transaction; if the connection cannot, it is closed, and the server undoes it."""
        self._writing = False
        if os.getpid() != self._process:
            return
        status = self._connection.info.transaction_status
        if status in (pq.TransactionStatus.INTRANS, pq.TransactionStatus.INERROR):
            try:
                self._connection.execute("ROLLBACK")
            except psycopg.Error:
                self._connection.close()
        elif status != pq.TransactionStatus.IDLE:
            self._connection.close()

    def rows(self, after: int = 0, until: int | None = None) -> Iterator[Row]:
        """The rows with larger numbers."""
        return (
            Row(*row)
            for row in self._paged(
                "sequence, text, hash FROM sordino.entries", after, _ENTRIES, until
            )
        )

    def _paged(
        self, what: str, after: int, most: int, until: int | None = None
    ) -> Iterator[tuple[Any, ...]]:
        """Rows by their numbers, this many at a time."""
        statement = f"SELECT {what} WHERE ledger = %s AND sequence > %s AND sequence <= %s ORDER BY sequence LIMIT %s"
        last = 2**63 - 1 if until is None else until
        while True:
            found = self._run(statement, (self._name, after, last, most)).fetchall()
            yield from found
            if len(found) < most:
                return
            after = found[-1][0]

    def find(self, request: str) -> int | None:
        """The number of the row that is kept under a request."""
        statement = "SELECT sequence FROM sordino.entries WHERE ledger = %s AND request = %s"
        found = self._run(statement, (self._name, request)).fetchone()
        return None if found is None else int(found[0])

    def head(self) -> Link:
        """The end of the chain as noted in a table of its own."""
        found = self._run(
            "SELECT sequence, hash FROM sordino.heads WHERE ledger = %s", (self._name,)
        ).fetchall()
        if len(found) != 1:
            raise LedgerDamaged(
                self.place, "the note of its last entry is gone", "Put it back from a copy."
            )
        return Link(*found[0])

    def append(
        self, row: Row, head: Link, request: str | None = None, answer: bytes | None = None
    ) -> None:
        """Add a row after the head, if it is still the head."""
        self._expect_transaction()
        moved = self._run(
            "UPDATE sordino.heads SET sequence = %s, hash = %s WHERE ledger = %s AND sequence = %s AND hash = %s",
            (*row[::2], self._name, *head),
        )
        if moved.rowcount != 1:
            raise Busy
        _insert(self._run, self.place, self._name, row, request)
        if answer is not None:
            statement = "INSERT INTO sordino.answers (ledger, sequence, bytes) VALUES (%s, %s, %s)"
            _expect_one(self._run(statement, (self._name, row.sequence, answer)), self.place)

    def answer(self, sequence: int) -> bytes | None:
        """The answer that was stored with this row."""
        statement = "SELECT bytes FROM sordino.answers WHERE ledger = %s AND sequence = %s"
        found = self._run(statement, (self._name, sequence)).fetchone()
        return None if found is None else bytes(found[0])

    def answers(self) -> Iterator[tuple[int, bytes]]:
        """All answers."""
        found = self._paged("sequence, bytes FROM sordino.answers", -(2**63), _ANSWERS)
        return ((sequence, bytes(answer)) for sequence, answer in found)

    def requests(self) -> dict[int, str]:
        """The requests under which rows are kept, by the numbers of the rows."""
        statement = "SELECT sequence, request FROM sordino.entries WHERE ledger = %s AND request IS NOT NULL"
        return dict(self._run(statement, (self._name,)).fetchall())

    def key(self) -> bytes:
        """The secret of this ledger."""
        found = self._run(
            "SELECT key FROM sordino.secrets WHERE ledger = %s", (self._name,)
        ).fetchone()
        return b"" if found is None else bytes(found[0])

    def faults(self) -> list[str]:
        """Any change of its tables, and whether the note of its last entry fits the rows."""
        return faults(self._run, self.place, self._name)

    def close(self) -> None:
        """Give the connection back."""
        self._closed = True
        if os.getpid() == self._process:
            self._connection.close()

    def _expect_transaction(self) -> None:
        """Outside of one, each statement would be a transaction of its own."""
        inside = self._writing and os.getpid() == self._process
        if not inside or self._connection.info.transaction_status != pq.TransactionStatus.INTRANS:
            raise _unavailable(self.place, _OVER)


def _connect(at: Address) -> _Connection:
    """A connection to a server that keeps what it is given."""
    connection: _Connection | None = None
    try:
        connection = psycopg.connect("", autocommit=True, prepare_threshold=None, **at.parameters)
    except (psycopg.Error, OSError, UnicodeError) as error:
        said = str(error)
    # out of the handler, so that the refusal does not carry an error that may quote the address
    if connection is None:
        raise _unreachable(at, said)
    try:
        fsync, pages, encoding, *_ = _ask(connection, at.shown, _timed(_FOR_SESSION)).fetchall()[0]
        if "off" in (fsync, pages):
            name = "fsync" if fsync == "off" else "full_page_writes"
            rule = f"its server runs with {name} = off, and could forget what was spent"
            raise LedgerUnavailable(at.shown, rule, f"Set {name} = on, or use another server.")
        if encoding != "UTF8":
            rule = f"its database is encoded in {encoding}"
            raise LedgerUnavailable(at.shown, rule, "Use a database made with ENCODING 'UTF8'.")
    except BaseException:
        connection.close()
        raise
    return connection


def _timed(statement: sql.SQL) -> sql.Composed:
    """How long to wait for a lock or an answer; after as long the server gives up on a writer that has stopped."""
    return statement.format(lock=f"{int(PATIENCE * 1000)}ms", answer=f"{int(PATIENCE * 2000)}ms")


def _commit(connection: _Connection, place: str) -> None:
    """Commit, or refuse since the outcome is unknown."""
    severities: list[str | None] = []

    def note(notice: psycopg.errors.Diagnostic) -> None:
        severities.append(notice.severity_nonlocalized)

    connection.add_notice_handler(note)
    try:  # a transaction that failed before is undone by COMMIT, without an error
        with _impatient(connection):
            done = connection.execute("COMMIT").statusmessage == "COMMIT"
    except psycopg.Error:
        done = False
    finally:
        connection.remove_notice_handler(note)
    # thus a server says that it no longer waits for its synchronous standby
    if not done or "WARNING" in severities:
        connection.close()
        rule = "the server did not confirm the last entry, so whether it was kept is unknown"
        raise _unavailable(place, (rule, "Check the server, and open a new session"))


@contextlib.contextmanager
def _impatient(connection: _Connection) -> Iterator[None]:
    """Cancel what takes too long: no setting of the server bounds how long a commit waits for a standby."""

    def cancel() -> None:
        with contextlib.suppress(psycopg.Error):
            connection.cancel_safe()

    timer = threading.Timer(2 * PATIENCE, cancel)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()


def _insert(ask: Ask, place: str, ledger: str, row: Row, request: str | None = None) -> None:
    statement = "INSERT INTO sordino.entries (ledger, sequence, text, hash, request) VALUES (%s, %s, %s, %s, %s)"
    _expect_one(ask(statement, (ledger, *row, request)), place)


def _expect_one(cursor: _Cursor, place: str) -> None:
    """A rule or trigger of others could swallow a row without an error."""
    if cursor.rowcount != 1:
        raise LedgerDamaged(place, CHANGED, "Remove rules and triggers that are not Sordino's.")


def _ask(
    connection: _Connection, place: str, statement: str | sql.Composed, values: Any = ()
) -> _Cursor:
    try:
        return connection.execute(statement, values or None)
    except psycopg.Error as error:
        code = error.sqlstate or ("08" if connection.closed else "of the client")
    if code in _BUSY and connection.info.transaction_status == pq.TransactionStatus.INERROR:
        raise Busy
    # out of the handler: the server's words may quote a row
    raise _refusal(place, "55P03" if code in _BUSY else code)


def _refusal(place: str, code: str) -> LedgerError:
    """What an error of the server means for the caller."""
    for start, rule in _DAMAGE.items():
        if code.startswith(start) and code not in _REASONS:
            return LedgerDamaged(
                place, rule, "Put it back from a copy, and compare with an anchor."
            )
    known = (_REASONS[start] for start in (code, code[:3], code[:2]) if start in _REASONS)
    return _unavailable(
        place, next(known, (f"PostgreSQL cannot use it (error {code})", "Open a new session"))
    )


def _unreachable(at: Address, said: str) -> LedgerUnavailable:
    """What a connection that failed means: the last words of the first line that was said about it."""
    reason = said.partition("\n")[0].rpartition("failed: ")[2].removeprefix("FATAL:").strip()
    if at.gives_away(reason):
        reason = "details are withheld, as they hold the password"
    hint = "Check that the server runs, and host, port, database, user and password of the address"
    return _unavailable(at.shown, (f"its server gives no connection ({reason})", hint))


def _unavailable(place: str, reason: tuple[str, str]) -> LedgerUnavailable:
    return LedgerUnavailable(place, reason[0], f"{reason[1]}.", NOT_GRANTED)

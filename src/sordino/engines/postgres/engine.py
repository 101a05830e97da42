"""PostgreSQL, asked where the data are: nothing is created there, and each question is one read-only transaction.

Errors of the server quote cells, so none of their text ever leaves this room. Proofs: postgres.md.
"""

from __future__ import annotations

import contextlib
import numbers
import threading
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import psycopg

from sordino.engines.deadline import stopped_after, within
from sordino.engines.engine import Exact, Run
from sordino.engines.gate import expect_comparable, pinned
from sordino.engines.postgres.connection import LOST, Connection, connect, sqlstate
from sordino.engines.postgres.dialect import gate_name, quoted
from sordino.engines.postgres.public_files import Sent, sent
from sordino.engines.postgres.sources import (
    Facts,
    Relation,
    expect_unique_parents,
    expect_zones,
    facts_of,
    parts_of,
    place_of,
    relation_of,
    rewritten,
    writable,
)
from sordino.errors import DeclarationWarning, EngineFailed, InvalidDeclaration, InvalidInput
from sordino.plan.statement import Statement, Values
from sordino.privacy.exact import show
from sordino.query.dataset import Table

__all__ = ["Postgres"]

_OLDEST = 140_000
_ATTEMPTS = 5
_SERVER = """
SELECT current_setting('server_version_num')::int, current_setting('server_encoding'),
    current_setting('max_identifier_length')::int, current_user::text,
    (SELECT rolsuper FROM pg_roles WHERE rolname = current_user), md5('')
"""
"""What must be known of a server. Where md5 is forbidden (FIPS) it fails here, and not after a charge."""


class Postgres:
    """The declared tables of one database, each in the canonical form of the gate; public files are sent along.

    Opening it reads the catalog and no row: what a question relies on holds whatever rows come and go. `deadline` is
    how many seconds one statement may take, if the role's own limit is not lower. `source_columns` are the names of all
    columns of each table there.
    """

    dialect = "postgres"

    def __init__(self, tables: Iterable[Table], *, deadline: float | None = None) -> None:
        self._deadline = _seconds(deadline)
        tables = list(tables)
        self._here = [table for table in tables if table.source.kind == "postgres"]
        if not self._here:
            rule = "none of the tables is in PostgreSQL"
            raise InvalidDeclaration(
                "a dataset", rule, 'Write source = "postgresql://...", or leave the engine out.'
            )
        files = [table for table in tables if table.source.kind != "postgres"]
        if protected := [table.name for table in files if not table.public]:
            rule = "it is protected and not in PostgreSQL, where only public tables may be sent"
            raise InvalidDeclaration(f"tables.{protected[0]}", rule, "Put it into the database.")
        self._files = pinned(files)
        self._sent: dict[str, Sent] = sent(files)
        self._what = f"tables.{self._here[0].name}.source = {self._here[0].source.shown}"
        self._lock = threading.Lock()
        self._closed = False
        self._running = threading.Event()
        self._relations: dict[str, Relation] = {}
        self.source_columns: dict[str, list[str]] = {}
        self._facts: Facts | None = None
        self._parts: list[int] = []
        self._connection = connect(self._here[0].source, self._what)
        try:
            self._open(tables)
        except BaseException:
            self.close()
            raise

    def _open(self, tables: Sequence[Table]) -> None:
        connection, failed = self._connection, ""
        try:
            connection.begin()
            self._expect_server(connection)
            facts = facts_of(connection.ask, self._here)
            for place, table in enumerate(self._here, start=1):
                self._relations[table.name] = relation_of(connection.ask, table, place, facts)
                self.source_columns[table.name] = [
                    row[2] for row in facts.columns if row[0] == place
                ]
            expect_unique_parents(tables, self._relations, facts)
            entered = {name: relation.columns for name, relation in self._relations.items()}
            expect_comparable(
                self._here, {**entered, **{name: one.columns for name, one in self._sent.items()}}
            )
            expect_zones(connection.ask, self._here)
            self._facts = self._kept(facts)
            can_write = writable(connection.ask, [one.oid for one in self._relations.values()])
            connection.end()
            self._warn_of_rights(can_write)
        except psycopg.Error as error:
            failed = sqlstate(error) or "no answer"
        if failed:  # outside of `except`: what it would carry along may quote anything
            rule = f"the server failed while its catalog was read ({failed})"
            raise InvalidDeclaration(self._what, rule, "Check the server, and open a new session.")

    def _expect_server(self, connection: Connection) -> None:
        ((version, encoding, longest, user, is_superuser, _),) = connection.ask(_SERVER)
        if version < _OLDEST:
            rule = f"PostgreSQL 14 or later is needed, and this is {version // 10_000}"
            raise InvalidDeclaration(self._what, rule, "Use a newer server.")
        if encoding != "UTF8" or longest != 63:
            rule = f"the database must be in UTF8, with names of 63 bytes, and is in {encoding} with {longest}"
            raise InvalidDeclaration(
                self._what, rule, "Copy the tables into a database with ENCODING 'UTF8'."
            )
        self._user, self._is_superuser = str(user), bool(is_superuser)

    def _kept(self, facts: Facts) -> Facts:
        used = {
            place: self._relations[table.name].used
            for place, table in enumerate(self._here, start=1)
        }
        return facts.kept(used)

    def _warn_of_rights(self, can_write: set[int]) -> None:
        """Say so if the role could change what it asks about: a question never does,
        but the role should not be able to.
        """
        can = [name for name, relation in self._relations.items() if relation.oid in can_write]
        if self._is_superuser or can:
            able = (
                "is a superuser"
                if self._is_superuser
                else f"may write to {', '.join(map(show, can))}"
            )
            text = f"The role {show(self._user)} {able}. Sordino only reads: use a role that has SELECT and nothing else."
            warnings.warn(text, DeclarationWarning, stacklevel=2)

    def expect_unchanged(self) -> None:
        """Refuse if a table was dropped, replaced or altered since, or a public file changed; asked on its own."""
        with self.snapshot():
            pass

    @contextlib.contextmanager
    def snapshot(
        self, statements: Sequence[Statement] = (), deadline: float | None = None
    ) -> Iterator[Run]:
        """One transaction, entered before the charge: a lost connection is opened again here, and never later."""
        with self._lock:
            for file in self._files:
                file.expect_unchanged()
            try:
                self._begin(statements)
                yield within(self._run, deadline)
            finally:  # also if interrupted while it begins: the next question must not find itself in this moment
                self._connection.end()

    def run(self, statement: Statement, deadline: float | None = None) -> Exact:
        """The exact sums of a statement, in a transaction of its own."""
        with self.snapshot(deadline=deadline) as run:
            return run(statement)

    def _begin(self, statements: Sequence[Statement]) -> None:
        """Begin where nothing was rewritten meanwhile, and nothing is other than it was when the session opened."""
        problem: InvalidInput | None = None
        for _ in range(_ATTEMPTS):
            if self._closed:
                raise InvalidInput(
                    "a closed engine", "it answers no more questions", "Open a new session."
                )
            try:
                problem = self._begun(statements)
            except LOST:  # also a server that restarted: from the beginning, on a new connection
                problem = _unavailable(self._what, "the connection was lost")
                self._connection.close()
            except psycopg.Error as error:
                problem = _unavailable(self._what, _reason(sqlstate(error)))
            if problem is None:
                return
            self._connection.end()
            if not problem.hint.startswith(_AGAIN):
                break
        if problem is not None:
            raise problem

    def _begun(self, statements: Sequence[Statement]) -> InvalidInput | None:
        """None if the transaction stands; else why it does not."""
        if not self._connection.usable:
            self._connection = connect(self._here[0].source, self._what)
        connection = self._connection
        connection.begin()
        places = {table.name: place_of(table) for table in self._here}
        lockable = [name for name, relation in self._relations.items() if relation.lockable]
        try:
            connection.lock(
                f"{quoted(places[name][0])}.{quoted(places[name][1])}" for name in lockable
            )
        except (
            psycopg.errors.UndefinedTable,
            psycopg.errors.InvalidSchemaName,
            psycopg.errors.InsufficientPrivilege,
        ):
            return self._changed()
        except psycopg.errors.LockNotAvailable:
            return _unavailable(self._what, "another program is altering a table")
        for relation in self._relations.values():
            if not relation.lockable:  # to plan it holds it as a lock does, from now on
                try:
                    connection.ask(f"EXPLAIN {relation.sql}")
                except LOST:
                    raise
                except psycopg.Error:
                    return self._changed()
        self._parts = parts_of(connection.ask, self._partitioned)
        if rewritten(connection.ask, [relation.oid for relation in self._relations.values()]):
            return (
                self._changed()
                if self._kept(facts_of(connection.ask, self._here)) != self._facts
                else _rewritten(self._what)
            )
        if self._kept(facts_of(connection.ask, self._here)) != self._facts:
            return self._changed()
        for statement in statements:
            try:
                connection.ask(f"EXPLAIN {self._text(statement)}", *self._values(statement))
            except LOST:
                raise
            except psycopg.Error as error:
                return _refused(sqlstate(error))
        if self._deadline is not None:
            connection.limit(self._deadline)
        return None

    @property
    def _partitioned(self) -> list[int]:
        return [relation.oid for relation in self._relations.values() if relation.partitioned]

    def _changed(self) -> InvalidInput:
        rule = "a table was dropped, replaced or altered since this session opened, or the role's rights to it were"
        return InvalidInput(
            self._what,
            rule,
            "Nothing was charged. Open a new session to ask the tables as they are now.",
        )

    def _text(self, statement: Statement) -> str:
        """The statement with what it reads put in front: tables behind the gate,
        public rows and lists that are sent.
        """
        text = statement.text(self.dialect)
        fronts, number = [], 0
        for name, relation in self._relations.items():
            if gate_name(name) in text:
                fronts.append(f"{gate_name(name)} AS NOT MATERIALIZED ({relation.sql})")
        for name, rows in self._sent.items():
            if gate_name(name) in text:
                fronts.append(f"{gate_name(name)} AS MATERIALIZED ({rows.sql(number)})")
                number += len(rows.values)
        for name, values in statement.lists.items():
            number += 1
            kind, collate = (
                ("TEXT", ' COLLATE "C"') if isinstance(values[0], str) else ("BIGINT", "")
            )
            rows_sql = f"SELECT value{collate} AS value FROM unnest(CAST(${number} AS {kind}[])) AS l(value)"  # noqa: S608
            fronts.append(f"{quoted(name)} AS MATERIALIZED ({rows_sql})")
        if not fronts:
            return text
        rest = f", {text.removeprefix('WITH ')}" if text.startswith("WITH ") else f" {text}"
        return f"WITH {', '.join(fronts)}{rest}"

    def _values(self, statement: Statement) -> list[Any]:
        """What is sent with it, in the order of `_text`. PostgreSQL has no text with NUL, so that none equals one."""
        text = statement.text(self.dialect)
        found: list[Any] = []
        for name, rows in self._sent.items():
            if gate_name(name) in text:
                found += rows.values
        for values in statement.lists.values():
            found.append(_sendable(values))
        return found

    def _run(self, statement: Statement, deadline: float | None = None) -> Exact:
        """The exact sums of a statement, within the transaction of a question."""
        rows: list[tuple[Any, ...]] | None = None
        self._running.set()
        # whatever an error says may quote a cell; the server gives up by itself, too, should our word not reach it
        with stopped_after(deadline, self.interrupt), contextlib.suppress(Exception):
            if deadline is not None:
                self._connection.limit(min(deadline, self._deadline or deadline))
            found = self._connection.ask(self._text(statement), *self._values(statement))
            if (
                not self._partitioned
                or parts_of(self._connection.ask, self._partitioned) == self._parts
            ):
                rows = found  # else a part was attached, which no lock of a reader prevents
        self._running.clear()
        if rows is None:
            raise EngineFailed
        columns = list(zip(*rows, strict=True)) or [()] * (statement.keys + statement.sums)
        sums = np.empty((len(rows), statement.sums), object)
        for j, cells in enumerate(columns[statement.keys :]):
            sums[:, j] = [None if cell is None else int(cell) for cell in cells]
        return Exact(tuple(list(cells) for cells in columns[: statement.keys]), sums)

    @property
    def progress(self) -> float | None:
        """PostgreSQL does not say."""
        return None

    def interrupt(self) -> None:
        """Stop the statement that another thread is running; it fails."""
        if self._running.is_set():
            self._connection.cancel()

    def close(self) -> None:
        """Stop what is running, and close the connection."""
        self._closed = True
        self.interrupt()
        with self._lock:
            self._connection.close()


_AGAIN = "Nothing was charged. Try again"


def _unavailable(what: str, rule: str) -> InvalidInput:
    return InvalidInput(what, rule, f"{_AGAIN}, or check the server.")


def _rewritten(what: str) -> InvalidInput:
    return _unavailable(what, "a table is being rewritten or emptied at this moment")


def _reason(state: str) -> str:
    known = {
        "57014": "the server did not answer in time",
        "55P03": "another program is altering a table",
    }
    return known.get(state, "the server failed before anything was read")


def _refused(state: str) -> InvalidInput:
    rule = f"the server does not take its SQL ({state or 'no code'})"
    hint = "Nothing was charged. Ask it with other functions."
    if state == "42704":
        hint = "Nothing was charged. LOWER, UPPER and ILIKE need PostgreSQL 17 or later (the collation pg_c_utf8)."
    return InvalidInput("this question", rule, hint)


def _sendable(values: Values) -> list[Any]:
    return [value for value in values if not isinstance(value, str) or "\0" not in value]


def _seconds(value: object) -> float | None:
    if value is None:
        return None
    if (
        isinstance(value, bool)
        or not isinstance(value, numbers.Real)
        or not 0.001 <= float(value) <= 2_000_000
    ):
        rule = "a deadline is a number of seconds, from 0.001 to 2,000,000"
        raise InvalidInput(
            f"deadline = {show(value)}", rule, "Pass deadline=60 or the like, or leave it out."
        )
    return float(value)

"""The SQLite file of the web process: people, tokens, rules of owners, and the questions that were asked through it.

It holds no data and no ledger: if it is lost, budgets and answers are not. Two connections share it. What changes
rights is on disk when a call returns; questions survive a crash of the process, and after a loss of power the ledger
still knows them.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, TypeAlias

from sordino.errors import InvalidInput
from sordino.ledger.receipt import checked_name
from sordino.server.accounts.people import EVERYWHERE, Person, Principal, Role, Scope, Token
from sordino.server.accounts.policy import DAY, Caps, Policy
from sordino.server.accounts.secrets_of_people import LINK, new_id, new_token, token_digest

__all__ = ["Pin", "Question", "Standing", "Store"]

Standing: TypeAlias = Literal["waiting", "accepted", "answered", "refused", "failed", "denied"]
_SETTLED = ("answered", "refused", "failed", "denied")
_VERSION = 3
_LONGEST_TOKEN = 400 * DAY
_SCHEMA = """
CREATE TABLE people (
  name TEXT PRIMARY KEY, roles TEXT NOT NULL, datasets TEXT NOT NULL, password TEXT, subject TEXT UNIQUE,
  active INTEGER NOT NULL DEFAULT 1) STRICT;
CREATE TABLE tokens (
  id TEXT PRIMARY KEY, digest TEXT NOT NULL UNIQUE, person TEXT NOT NULL, label TEXT NOT NULL, scopes TEXT NOT NULL,
  datasets TEXT NOT NULL, created REAL NOT NULL, expires REAL NOT NULL, revoked INTEGER NOT NULL DEFAULT 0,
  page INTEGER NOT NULL DEFAULT 0) STRICT;
CREATE INDEX tokens_of ON tokens (person);
CREATE TABLE policies (dataset TEXT PRIMARY KEY, body TEXT NOT NULL) STRICT;
CREATE TABLE caps (
  dataset TEXT NOT NULL, analyst TEXT NOT NULL, per_question TEXT, per_day TEXT, PRIMARY KEY (dataset, analyst)) STRICT;
CREATE TABLE questions (
  id TEXT PRIMARY KEY, dataset TEXT NOT NULL, analyst TEXT NOT NULL, key TEXT NOT NULL, kind TEXT NOT NULL,
  question TEXT NOT NULL, offer TEXT NOT NULL, same TEXT NOT NULL, price TEXT NOT NULL, reason TEXT NOT NULL,
  status TEXT NOT NULL, created REAL NOT NULL, settled REAL, decided_by TEXT, note TEXT, source TEXT, body BLOB,
  receipt TEXT, problem TEXT, UNIQUE (dataset, analyst, key)) STRICT;
CREATE INDEX questions_same ON questions (dataset, same, status);
CREATE INDEX questions_of ON questions (dataset, analyst, created);
CREATE INDEX questions_open ON questions (status);
"""
_PINS = """
CREATE TABLE pins (
  question TEXT PRIMARY KEY, dataset TEXT NOT NULL, person TEXT NOT NULL, title TEXT NOT NULL, created REAL NOT NULL) STRICT;
CREATE INDEX pins_of ON pins (dataset, person);
"""
_PARENTS = """
ALTER TABLE tokens ADD COLUMN parent TEXT;
CREATE INDEX tokens_by ON tokens (parent);
"""
_WITH_MADE = """
UPDATE tokens SET revoked = 1 WHERE id IN (
  WITH RECURSIVE made (id) AS (
    SELECT id FROM tokens WHERE {} UNION SELECT tokens.id FROM tokens JOIN made ON tokens.parent = made.id)
  SELECT id FROM made)
"""
"""Ends tokens, those that were made with them, and so on."""
_SECRETS = "CREATE TABLE secrets (name TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT;"


@dataclass(frozen=True)
class Question:
    """One question as the web process knows it. `same` is what two questions share that have one answer; `source` is
    the id of the question whose stored answer was given, where nothing was asked anew.
    """

    id: str
    dataset: str
    analyst: str
    key: str
    kind: Literal["sql", "suggest"]
    question: str
    offer: Mapping[str, Any]
    same: str
    price: Fraction
    reason: str
    status: Standing
    created: float
    settled: float | None = None
    decided_by: str | None = None
    note: str | None = None
    source: str | None = None
    body: bytes | None = None
    receipt: Mapping[str, Any] | None = None
    problem: Mapping[str, Any] | None = None

    @property
    def open(self) -> bool:
        """Whether something will still become of it."""
        return self.status not in _SETTLED


@dataclass(frozen=True)
class Pin:
    """An answer that somebody put on the board."""

    question: str
    dataset: str
    person: str
    title: str
    created: float


class Store:
    """All of it. Reads may come from any thread; a change of rights is seen by the very next request."""

    def __init__(self, path: Path | None = None, clock: Callable[[], float] = time.time) -> None:
        self.clock = clock
        self._lock = threading.RLock()
        self._known: dict[str, Principal] = {}
        self._seen = -1
        name = ":memory:" if path is None else str(path)
        if path is not None:
            path.touch(mode=0o600, exist_ok=True)
            path.chmod(0o600)
        self._rights = self._connect(name, "FULL")
        self._open_schema()
        self._work = self._rights if path is None else self._connect(name, "NORMAL")
        self.form_secret = self._secret("form")
        """What the keys of forms are made with; only this server has it, and its processes share it."""

    @staticmethod
    def _connect(name: str, synchronous: str) -> sqlite3.Connection:
        connection = sqlite3.connect(
            name, isolation_level=None, check_same_thread=False, timeout=10, cached_statements=256
        )
        connection.row_factory = sqlite3.Row
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA synchronous = {synchronous}")
        return connection

    def _open_schema(self) -> None:
        version = self._rights.execute("PRAGMA user_version").fetchone()[0]
        if version > _VERSION:
            rule = f"its version is {version}, and this Sordino knows {_VERSION}"
            raise InvalidInput("the file of accounts", rule, "Install a newer Sordino.")
        new = _PARENTS + _SECRETS
        missing = {0: _SCHEMA + _PINS + new, 1: _PINS + new, 2: new}.get(version)
        if missing is not None:
            self._rights.executescript(
                f"BEGIN; {missing} PRAGMA user_version = {_VERSION}; COMMIT;"
            )

    def _secret(self, name: str) -> bytes:
        look = "SELECT value FROM secrets WHERE name = ?"
        found = self._rights.execute(look, (name,)).fetchone()
        if found is None:
            with self._changed(self._rights) as connection:
                made = new_token().encode()
                connection.execute("INSERT OR IGNORE INTO secrets VALUES (?, ?)", (name, made))
            found = self._rights.execute(look, (name,)).fetchone()
        return bytes(found["value"])

    @contextlib.contextmanager
    def _changed(self, connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
        """One transaction, as the only writer."""
        with self._lock:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")
            if connection is self._rights:
                self._known.clear()

    def close(self) -> None:
        """Give the file back."""
        with self._lock:
            self._work.close()
            self._rights.close()

    # people

    def people(self) -> list[Person]:
        """All accounts, also those that are closed."""
        with self._lock:
            return [
                _person(row) for row in self._rights.execute("SELECT * FROM people ORDER BY name")
            ]

    def person(self, name: str) -> Person | None:
        """An account by its name."""
        with self._lock:
            row = self._rights.execute("SELECT * FROM people WHERE name = ?", (name,)).fetchone()
        return None if row is None else _person(row)

    def add_person(self, person: Person) -> None:
        """A new account. A name is never given twice, also not after it was closed: it has spent in the ledger."""
        checked_name("name", person.name, "Pass a name such as 'ana'.")
        if person.name == "*" or not person.roles:
            raise InvalidInput(
                f"name={person.name!r}",
                "an account has a name and at least one role",
                "Pass 'ana'.",
            )
        try:
            with self._changed(self._rights) as connection:
                connection.execute(
                    "INSERT INTO people (name, roles, datasets) VALUES (?, ?, ?)",
                    (person.name, _listed(person.roles), _listed(person.datasets)),
                )
        except sqlite3.IntegrityError:
            rule = "there is, or was, an account of that name, and its name stands in ledgers"
            raise InvalidInput(f"name={person.name!r}", rule, "Choose another name.") from None

    def close_person(self, name: str) -> bool:
        """Close an account, all its tokens and those that were made with them, at once and for good."""
        with self._changed(self._rights) as connection:
            found = connection.execute(
                "UPDATE people SET active = 0, password = NULL WHERE name = ? AND active", (name,)
            )
            connection.execute(_WITH_MADE.format("person = ?"), (name,))
            return found.rowcount > 0

    def set_password(self, name: str, hashed: str) -> None:
        """Keep the hash of a password; whoever is logged in to the pages is logged out."""
        with self._changed(self._rights) as connection:
            connection.execute(
                "UPDATE people SET password = ? WHERE name = ? AND active", (hashed, name)
            )
            connection.execute("UPDATE tokens SET revoked = 1 WHERE person = ? AND page", (name,))

    def password_of(self, name: str) -> str | None:
        """The hash of the password of an open account, if it has one."""
        with self._lock:
            row = self._rights.execute(
                "SELECT password FROM people WHERE name = ? AND active", (name,)
            ).fetchone()
        return None if row is None else row["password"]

    def bind_subject(self, name: str, subject: str) -> None:
        """Let an account be opened by a person of an identity provider, named by issuer and subject."""
        with self._changed(self._rights) as connection:
            connection.execute(
                "UPDATE people SET subject = ? WHERE name = ? AND active", (subject, name)
            )

    def by_subject(self, subject: str) -> Person | None:
        """The open account of somebody whom an identity provider knows."""
        with self._lock:
            row = self._rights.execute(
                "SELECT * FROM people WHERE subject = ? AND active", (subject,)
            ).fetchone()
        return None if row is None else _person(row)

    def subject_of(self, name: str) -> str | None:
        """Which person of an identity provider an account is bound to."""
        with self._lock:
            row = self._rights.execute(
                "SELECT subject FROM people WHERE name = ?", (name,)
            ).fetchone()
        return None if row is None else row["subject"]

    # tokens

    def add_token(
        self,
        person: str,
        label: str,
        scopes: frozenset[Scope],
        datasets: frozenset[str],
        lasts: float,
        *,
        page: bool = False,
        parent: Token | None = None,
    ) -> tuple[str, Token]:
        """A new token of an open account, shown once and never again; and what is kept of it.

        It ends with its `parent`, the token that it is made with, at the latest.
        """
        if not 0 < lasts <= _LONGEST_TOKEN:
            raise InvalidInput(
                f"{lasts} seconds",
                "a token lasts at least a second, and at most 400 days",
                "Pass 90 days.",
            )
        text, now = new_token(), self.clock()
        until = now + lasts if parent is None else min(now + lasts, parent.expires)
        token = Token(new_id()[:12], person, label, scopes, datasets, now, until, page=page)
        with self._changed(self._rights) as connection:
            if (
                connection.execute(
                    "SELECT 1 FROM people WHERE name = ? AND active", (person,)
                ).fetchone()
                is None
            ):
                raise InvalidInput(
                    f"name={person!r}",
                    "there is no open account of that name",
                    "Add the person first.",
                )
            over = "SELECT 1 FROM tokens WHERE id = ? AND revoked"
            if parent is not None and connection.execute(over, (parent.id,)).fetchone() is not None:
                raise InvalidInput(
                    "a token", "the one that it is made with has just ended", "Log in again."
                )
            connection.execute(
                "INSERT INTO tokens (id, digest, person, label, scopes, datasets, created, expires, page, parent) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (token.id, token_digest(text), person, label, _listed(scopes), _listed(datasets), token.created,
                 token.expires, page, None if parent is None else parent.id),
            )  # fmt: skip
        return text, token

    def tokens(self, person: str | None = None) -> list[Token]:
        """The tokens of a person, or of all."""
        where, values = ("", ()) if person is None else (" WHERE person = ?", (person,))
        with self._lock:
            rows = self._rights.execute(f"SELECT * FROM tokens{where} ORDER BY created", values)  # noqa: S608
            return [_token(row) for row in rows]

    def revoke(self, token: str) -> bool:
        """End a token by its id, and those that were made with it; False if there is no such one."""
        with self._changed(self._rights) as connection:
            return connection.execute(_WITH_MADE.format("id = ?"), (token,)).rowcount > 0

    def revoke_sessions(self) -> None:
        """End all sessions of the pages, and all links that would begin one."""
        with self._changed(self._rights) as connection:
            connection.execute("UPDATE tokens SET revoked = 1 WHERE page OR label = ?", (LINK,))

    def principal(self, text: str) -> Principal | None:
        """Who holds a token; None if it opens nothing (any more)."""
        digest = token_digest(text)
        with self._lock:
            seen = self._rights.execute("PRAGMA data_version").fetchone()[0]
            if seen != self._seen:  # another process has written
                self._known.clear()
                self._seen = seen
            found = self._known.get(digest)
            if found is None:
                row = self._rights.execute(
                    "SELECT * FROM tokens WHERE digest = ?", (digest,)
                ).fetchone()
                person = None if row is None else self.person(row["person"])
                if person is None or not person.active:
                    return None
                found = Principal(person, _token(row))
                if len(self._known) > 10_000:
                    self._known.clear()
                self._known[digest] = found
        return found if found.token.valid(self.clock()) else None

    # rules of owners

    def policy(self, dataset: str) -> Policy:
        """The rules of a dataset."""
        with self._lock:
            row = self._rights.execute(
                "SELECT body FROM policies WHERE dataset = ?", (dataset,)
            ).fetchone()
        if row is None:
            return Policy()
        facts = json.loads(row["body"])
        caps = Caps(_fraction(facts["per_question"]), _fraction(facts["per_day"]))
        above, sharing = _fraction(facts["approval_above"]), frozenset(facts["sharing"])
        return Policy(above, sharing, caps, suspended=facts.get("suspended", False))

    def set_policy(self, dataset: str, policy: Policy) -> None:
        """Put rules in force, whatever held before."""
        self.update_policy(dataset, lambda _: policy)

    def update_policy(self, dataset: str, change: Callable[[Policy], Policy]) -> Policy:
        """Change the rules that are in force; nobody else changes them between the look and the change."""
        with self._changed(self._rights) as connection:
            policy = change(self.policy(dataset))
            facts = {
                "approval_above": _text(policy.approval_above), "sharing": sorted(policy.sharing),
                "per_question": _text(policy.caps.per_question), "per_day": _text(policy.caps.per_day),
                "suspended": policy.suspended,
            }  # fmt: skip
            connection.execute(
                "REPLACE INTO policies (dataset, body) VALUES (?, ?)", (dataset, json.dumps(facts))
            )
        return policy

    def caps(self, dataset: str, analyst: str) -> Caps | None:
        """The caps of one person, if there are any."""
        with self._lock:
            row = self._rights.execute(
                "SELECT * FROM caps WHERE dataset = ? AND analyst = ?", (dataset, analyst)
            ).fetchone()
        return (
            None if row is None else Caps(_fraction(row["per_question"]), _fraction(row["per_day"]))
        )

    def set_caps(self, dataset: str, analyst: str, caps: Caps | None) -> None:
        """Set the caps of one person; None takes them away."""
        with self._changed(self._rights) as connection:
            connection.execute(
                "DELETE FROM caps WHERE dataset = ? AND analyst = ?", (dataset, analyst)
            )
            if caps is not None:
                values = (dataset, analyst, _text(caps.per_question), _text(caps.per_day))
                connection.execute("INSERT INTO caps VALUES (?, ?, ?, ?)", values)

    # questions

    def question(self, id_: str) -> Question | None:
        """A question by its id."""
        with self._lock:
            row = self._work.execute("SELECT * FROM questions WHERE id = ?", (id_,)).fetchone()
        return None if row is None else _question(row)

    def question_of(self, dataset: str, analyst: str, key: str) -> Question | None:
        """The question that somebody asked under an Idempotency-Key."""
        with self._lock:
            row = self._work.execute(
                "SELECT * FROM questions WHERE dataset = ? AND analyst = ? AND key = ?",
                (dataset, analyst, key),
            ).fetchone()
        return None if row is None else _question(row)

    def questions(self, dataset: str, analyst: str, most: int = 100) -> list[Question]:
        """The newest questions of one person, without their answers."""
        with self._lock:
            rows = self._work.execute(
                f"SELECT {_WITHOUT_BODY} FROM questions WHERE dataset = ? AND analyst = ? ORDER BY created DESC LIMIT ?",  # noqa: S608
                (dataset, analyst, most),
            )
            return [_question(row) for row in rows]

    def answered(self, dataset: str, analyst: str, question: str) -> list[Question]:
        """What somebody paid for one question, as the ledger has its text, without the answers; the oldest first."""
        with self._lock:
            rows = self._work.execute(
                f"SELECT {_WITHOUT_BODY} FROM questions "  # noqa: S608
                "WHERE dataset = ? AND analyst = ? AND status = 'answered' AND source IS NULL "
                "AND json_extract(receipt, '$.question') = ? ORDER BY created LIMIT 100",
                (dataset, analyst, question),
            )
            return [_question(row) for row in rows]

    def bodies(self, questions: Sequence[str], most: int | None = None) -> list[bytes] | None:
        """The stored answers of some questions, in their order; None if they have more bytes together than `most`."""
        which = f"FROM questions WHERE id IN ({', '.join('?' * len(questions))})"
        with self._lock:
            size = self._work.execute(f"SELECT SUM(length(body)) {which}", questions).fetchone()[0]
            if most is not None and size > most:
                return None
            found = dict(self._work.execute(f"SELECT id, body {which}", questions).fetchall())
        return [found[one] for one in questions]

    # the board

    def pin(self, pin: Pin) -> None:
        """Put an answer on the board, or give it another title there."""
        with self._changed(self._work) as connection:
            connection.execute(
                "INSERT INTO pins VALUES (?, ?, ?, ?, ?) ON CONFLICT (question) DO UPDATE SET title = excluded.title",
                (pin.question, pin.dataset, pin.person, pin.title, pin.created),
            )

    def unpin(self, question: str, person: str) -> bool:
        """Take one's own answer from the board."""
        with self._changed(self._work) as connection:
            done = connection.execute(
                "DELETE FROM pins WHERE question = ? AND person = ?", (question, person)
            )
            return done.rowcount > 0

    def pins(self, dataset: str) -> list[Pin]:
        """The board of a dataset, the newest first; whose pins somebody may see is decided by the owner's rules."""
        with self._lock:
            rows = self._work.execute(
                "SELECT * FROM pins WHERE dataset = ? ORDER BY created DESC LIMIT 1000", (dataset,)
            )
            return [Pin(**dict(row)) for row in rows]

    # questions that wait

    def waiting(self, dataset: str | None = None, status: Standing = "waiting") -> list[Question]:
        """The questions that wait for an owner, or that were accepted and have no outcome yet; the oldest first."""
        with self._lock:
            rows = self._work.execute(
                "SELECT * FROM questions WHERE status = ? AND (? IS NULL OR dataset = ?) ORDER BY created",
                (status, dataset, dataset),
            )
            return [_question(row) for row in rows]

    def pending(self, dataset: str, analyst: str) -> int:
        """How many questions of somebody have no outcome yet."""
        with self._lock:
            found = self._work.execute(
                "SELECT COUNT(*) FROM questions WHERE status IN ('waiting', 'accepted') AND dataset = ? AND analyst = ?",
                (dataset, analyst),
            )
            return int(found.fetchone()[0])

    def answered_before(
        self, dataset: str, same: str, whose: Callable[[str], bool]
    ) -> Question | None:
        """The newest stored answer to the same question at the same offer, of somebody who may share it."""
        with self._lock:
            rows = self._work.execute(
                "SELECT * FROM questions WHERE dataset = ? AND same = ? AND status = 'answered' AND source IS NULL "
                "ORDER BY created DESC LIMIT 1000",
                (dataset, same),
            )
            return next((_question(row) for row in rows if whose(row["analyst"])), None)

    def open_question(self, dataset: str, analyst: str, same: str) -> Question | None:
        """The same question of the same person at the same offer, if it has no outcome yet."""
        with self._lock:
            row = self._work.execute(
                "SELECT * FROM questions WHERE dataset = ? AND same = ? AND status IN ('waiting', 'accepted') "
                "AND analyst = ? ORDER BY created LIMIT 1",
                (dataset, same, analyst),
            ).fetchone()
        return None if row is None else _question(row)

    def spent_today(self, dataset: str, analyst: str) -> Fraction:
        """The prices of all that somebody asked in the last 24 hours and that was, or may be, charged."""
        with self._lock:
            rows = self._work.execute(
                "SELECT price, COUNT(*) FROM questions WHERE dataset = ? AND analyst = ? AND created > ? AND source IS NULL "
                "AND status IN ('waiting', 'accepted', 'answered', 'failed') GROUP BY price",
                (dataset, analyst, self.clock() - DAY),
            )
            return sum((Fraction(price) * count for price, count in rows), Fraction(0))

    def add_question(self, question: Question) -> Question:
        """Keep a question; the one that is kept already under its key, if there is one."""
        with self._changed(self._work) as connection:
            before = self.question_of(question.dataset, question.analyst, question.key)
            if before is not None:
                return before
            facts = _stored(question)
            names, marks = ", ".join(facts), ", ".join("?" * len(facts))
            connection.execute(
                f"INSERT INTO questions ({names}) VALUES ({marks})",  # noqa: S608
                tuple(facts.values()),
            )
        return question

    def reopen(self, question: Question) -> None:
        """Ask again what was refused for nothing: as it is now, under the id and the key that it had."""
        with self._changed(self._work) as connection:
            connection.execute(
                "UPDATE questions SET status = ?, reason = ?, price = ?, same = ?, created = ?, settled = NULL, "
                "problem = NULL, receipt = NULL, decided_by = NULL, note = NULL "
                "WHERE id = ? AND status IN ('refused', 'failed')",
                (
                    question.status,
                    question.reason,
                    str(question.price),
                    question.same,
                    question.created,
                    question.id,
                ),
            )

    def decide(
        self, id_: str, status: Literal["accepted", "denied"], by: str, note: str
    ) -> Question | None:
        """What an owner decides about a question that waits; None if it does not wait (any more)."""
        settled = self.clock() if status == "denied" else None
        with self._changed(self._work) as connection:
            done = connection.execute(
                "UPDATE questions SET status = ?, decided_by = ?, note = ?, settled = ? WHERE id = ? AND status = 'waiting'",
                (status, by, note, settled, id_),
            )
        return self.question(id_) if done.rowcount else None

    def settle(
        self,
        question: Question,
        status: Standing,
        body: bytes | None = None,
        receipt: Mapping[str, Any] | None = None,
        problem: Mapping[str, Any] | None = None,
    ) -> Question:
        """What became of a question that was accepted; only the first outcome counts."""
        settled = replace(
            question, status=status, settled=self.clock(), body=body, receipt=receipt, problem=problem
        )  # fmt: skip
        with self._changed(self._work) as connection:
            done = connection.execute(
                "UPDATE questions SET status = ?, settled = ?, body = ?, receipt = ?, problem = ? "
                "WHERE id = ? AND status = 'accepted'",
                (status, settled.settled, body, _json(receipt), _json(problem), question.id),
            )
        return settled if done.rowcount else (self.question(question.id) or settled)


_WITHOUT_BODY = (
    "id, dataset, analyst, key, kind, question, offer, same, price, reason, status, created, settled, decided_by, note, "
    "source, NULL AS body, receipt, problem"
)


def _stored(question: Question) -> dict[str, Any]:
    own = {
        **vars(question),
        "offer": json.dumps(dict(question.offer), sort_keys=True),
        "price": str(question.price),
    }
    return {**own, "receipt": _json(question.receipt), "problem": _json(question.problem)}


def _question(row: sqlite3.Row) -> Question:
    facts = dict(row)
    facts |= {"offer": json.loads(facts["offer"]), "price": Fraction(facts["price"])}
    facts |= {
        name: None if facts[name] is None else json.loads(facts[name])
        for name in ("receipt", "problem")
    }
    return Question(**facts)


def _json(value: Mapping[str, Any] | None) -> str | None:
    return None if value is None else json.dumps(dict(value))


def _listed(words: frozenset[Any]) -> str:
    return json.dumps(sorted(str(word) for word in words))


def _person(row: sqlite3.Row) -> Person:
    roles = frozenset(map(Role, json.loads(row["roles"])))
    return Person(row["name"], roles, _datasets(row["datasets"]), bool(row["active"]))


def _token(row: sqlite3.Row) -> Token:
    return Token(
        row["id"], row["person"], row["label"], frozenset(map(Scope, json.loads(row["scopes"]))), _datasets(row["datasets"]),
        row["created"], row["expires"], bool(row["revoked"]), bool(row["page"]),
    )  # fmt: skip


def _datasets(text: str) -> frozenset[str]:
    found = frozenset(json.loads(text))
    return EVERYWHERE if "*" in found else found


def _fraction(text: str | None) -> Fraction | None:
    return None if text is None else Fraction(text)


def _text(number: Fraction | None) -> str | None:
    return None if number is None else str(number)

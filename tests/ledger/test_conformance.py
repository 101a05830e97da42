"""What every ledger promises, wherever it is kept: one suite for memory, SQLite and PostgreSQL."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any

import psycopg
import pytest

from ledger.postgres_server import PostgresServer
from ledger.visits import pay, pure, spent, terms
from sordino.errors import (
    BudgetExceeded,
    InvalidInput,
    LedgerDamaged,
    LedgerMismatch,
    LedgerUnavailable,
    RequestRefused,
)
from sordino.ledger.anchor import Anchor
from sordino.ledger.chain import START, Entry, Link, Row, digest
from sordino.ledger.ledger import Ledger
from sordino.ledger.memory import MemoryStore
from sordino.ledger.opening import first_entry
from sordino.ledger.place import Place
from sordino.ledger.receipt import Receipt, Request
from sordino.ledger.store import Busy, Store
from sordino.ledger.terms import Terms
from sordino.ledger.verify import verify_rows
from sordino.privacy.budget import Budget
from sordino.query.dataset import Dataset

THIRD = Fraction(1, 3)
ODD = {
    "emoji": "🙈 👩‍👩‍👧 𐍈",
    "quotes": "' \" ` $$ '' ; --",
    "percent": "%s %(x)s {} {0} \\ \\n ?",
    "control": "a\x00b\x1f\x7f\x85",
    "lines": "one\r\ntwo\u2028three\ttab",
    "turned": "\u202eabc\u202c ﷺ \ufeff",
    "long": "x" * 100_000,
    "empty": "",
}


def data(epsilon: int | Fraction = 1, unit: str = "row") -> Dataset:
    columns = {"age": {"type": "int", "min": 0, "max": 110}}
    return Dataset("visits.csv", name="visits", unit=unit, columns=columns, budget=Budget(epsilon))


class Home:
    """A place for one ledger: how to open it, and how to reach into it past the ledger."""

    tables: Mapping[str, str] = MappingProxyType(
        {name: name for name in ("entries", "answers", "head", "secret")}
    )
    own = "1 = 1"

    def __init__(self, place: str | None = None) -> None:
        self.place = place
        self._opened = ExitStack()

    def ledger(self, dataset: Dataset | None = None, *, as_declared: bool = True) -> Ledger:
        """A new Ledger; made on first use."""
        opened = Ledger.open(dataset or data(), self.place, as_declared=as_declared)
        return self._opened.enter_context(opened)

    def store(self) -> Store:
        """The bare store of a ledger with one entry; made on first use."""
        place = Place.of(str(self.place))
        if not place.exists():
            assert place.create(*first_entry(Terms.of(data())))
        return self._opened.enter_context(closing(place.open()))

    def close(self) -> None:
        self._opened.close()

    def run(self, *statements: str, values: tuple[object, ...] = ()) -> None:
        """Statements, all or none, of somebody who may do all that the owner may; the values are for the first."""
        raise NotImplementedError

    def force(self, statement: str, *values: object) -> None:
        """One statement about this ledger ({entries}, {own}) of somebody who gets past the triggers."""
        raise NotImplementedError

    def filled(self, statement: str) -> str:
        return statement.format(**self.tables, own=self.own)


class MemoryHome(Home):
    def store(self) -> Store:
        return MemoryStore(*first_entry(Terms.of(data())))


class SqliteHome(Home):
    def run(self, *statements: str, values: tuple[object, ...] = ()) -> None:
        with closing(sqlite3.connect(str(self.place))) as connection, connection:
            for statement in statements:
                connection.execute(self.filled(statement), values)
                values = ()

    def force(self, statement: str, *values: object) -> None:
        with closing(sqlite3.connect(str(self.place))) as connection, connection:
            triggers = connection.execute(
                "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'"
            ).fetchall()
            for name, _ in triggers:
                connection.execute(f"DROP TRIGGER {name}")
            assert connection.execute(self.filled(statement), values).rowcount == 1
            for _, text in triggers:
                connection.execute(text)


class PostgresHome(Home):
    tables = MappingProxyType(
        {
            name: f"sordino.{table}"
            for name, table in zip(
                Home.tables, ("entries", "answers", "heads", "secrets"), strict=True
            )
        }
    )

    def __init__(self, server: PostgresServer, database: str = "postgres") -> None:
        name = uuid.uuid4().hex
        super().__init__(server.address(name, database=database))
        self.own = f"ledger = '{name}'"
        self.server, self.database = server, database

    def run(self, *statements: str, values: tuple[object, ...] = ()) -> None:
        with self.server.connect(self.database) as connection, connection.transaction():
            for statement in statements:
                connection.execute(self.filled(statement).replace("?", "%s"), values or None)
                values = ()

    def force(self, statement: str, *values: object) -> None:
        with self.server.connect(self.database) as connection:
            connection.execute("SET session_replication_role = replica")
            assert (
                connection.execute(self.filled(statement).replace("?", "%s"), values).rowcount == 1
            )


def settle(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Home]:
    made: Home
    if kind == "memory":
        made = MemoryHome()
    elif kind == "sqlite":
        made = SqliteHome(str(tmp_path / "visits.ledger"))
    else:
        made = PostgresHome(request.getfixturevalue("postgres_server"))
    yield made
    made.close()


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Home]:
    """Every kind of place."""
    yield from settle(request.param, tmp_path, request)


@pytest.fixture(params=["sqlite", "postgres"])
def lasting(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Home]:
    """The places that outlive a process, and can be opened twice."""
    yield from settle(request.param, tmp_path, request)


def entries(ledger: Ledger) -> list[dict[str, Any]]:
    return [json.loads(line) for line in ledger.export()]


def ask(
    id_: str, question: str = "SELECT 1", offer: str = "epsilon", analyst: str | None = None
) -> Request:
    return Request(id_, question, offer, analyst)


def test_a_charge_has_a_receipt_and_then_an_answer(home: Home) -> None:
    ledger = home.ledger()
    paid = ledger.charge(
        pure("1/4"), ask("march", "SELECT COUNT(*) AS n FROM visits", analyst="ana")
    )
    assert paid.answer is None
    receipt = paid.receipt
    assert (receipt.number, receipt.charge, receipt.request_id, receipt.analyst) == (
        2,
        pure("1/4"),
        "march",
        "ana",
    )
    assert receipt.question == "SELECT COUNT(*) AS n FROM visits"
    assert (receipt.number, receipt.hash) == ledger.anchor().link
    ledger.store(receipt, b"42")
    (payment,) = ledger.payments
    assert (payment.receipt, payment.status, payment.settled, payment.answer) == (
        receipt,
        "answered",
        3,
        digest(b"42"),
    )
    assert [entry["kind"] for entry in entries(ledger)] == ["declare", "charge", "answer"]
    assert ledger.meter().remaining.pure == Fraction(3, 4)
    assert ledger.forfeited == 0


def test_a_repeated_request_gets_the_same_bytes_and_is_charged_once(home: Home) -> None:
    ledger = home.ledger()
    answer = bytes(range(256)) * 3
    receipt = ledger.charge(pure("2/3"), ask("a")).receipt
    ledger.store(receipt, answer)
    before = ledger.anchor()
    for _ in range(3):
        for paid in (ledger.charge(pure("2/3"), ask("a")), ledger.stored(ask("a"))):
            assert paid is not None
            assert (paid.receipt, paid.answer) == (receipt, answer)
    assert ledger.anchor() == before
    assert spent(ledger) == Fraction(2, 3)
    assert ledger.stored(ask("b")) is None


@pytest.mark.parametrize(
    "other", [ask("a", "SELECT 2"), ask("a", offer="error"), ask("a", "SELECT 1epsilon", "")]
)
def test_an_id_stands_for_one_question_and_price(home: Home, other: Request) -> None:
    ledger = home.ledger()
    ledger.store(ledger.charge(pure("1/4"), ask("a")).receipt, b"42")
    before = ledger.anchor()
    with pytest.raises(RequestRefused, match="entry 2 stands for another question"):
        ledger.charge(pure("1/4"), other)
    with pytest.raises(RequestRefused, match="entry 2 stands for another question"):
        ledger.stored(other)
    assert ledger.anchor() == before


def test_ids_of_other_analysts_are_neither_refused_nor_told(home: Home) -> None:
    """Who uses an id first does not keep others from it, and nobody can see whether it is in use."""
    ledger = home.ledger()
    ledger.store(ledger.charge(pure("1/8"), ask("a")).receipt, b"nobody's")
    for who in ("ana", "bob"):
        assert ledger.stored(ask("a", analyst=who)) is None
        assert ledger.payment("a", who) is None
        paid = ledger.charge(pure("1/8"), ask("a", "SELECT 2", analyst=who))
        assert paid.answer is None
        ledger.store(paid.receipt, who.encode())
    if ledger.durable:
        home.close()
        ledger = home.ledger()
    for name, answer in (("", b"nobody's"), ("ana", b"ana"), ("bob", b"bob")):
        payment = ledger.payment("a", name or None)
        again = ledger.stored(ask("a", "SELECT 2" if name else "SELECT 1", analyst=name or None))
        assert payment is not None
        assert payment.receipt.analyst == (name or None)
        assert again is not None
        assert again.answer == answer
    assert spent(ledger) == Fraction(3, 8)
    assert ledger.verify()


def test_an_open_charge_is_neither_answered_nor_charged_again(home: Home) -> None:
    ledger = home.ledger()
    receipt = ledger.charge(pure("1/4"), ask("a")).receipt
    for why in ("is running, or ended before", "failed"):
        with pytest.raises(RequestRefused, match=why):
            ledger.charge(pure("1/4"), ask("a"))
        with pytest.raises(RequestRefused, match=why):
            ledger.stored(ask("a"))
        assert spent(ledger) == Fraction(1, 4)
        assert ledger.forfeited == 1
        if why != "failed":
            ledger.forfeit(receipt)


def test_a_forfeited_charge_stays_spent_and_cannot_be_answered(home: Home) -> None:
    ledger = home.ledger()
    receipt = ledger.charge(pure(1), ask("a")).receipt
    ledger.forfeit(receipt)
    with pytest.raises(RequestRefused, match="not open"):
        ledger.forfeit(receipt)
    with pytest.raises(RequestRefused, match="not open"):
        ledger.store(receipt, b"late")
    assert ledger.payments[0].status == "forfeited"
    with pytest.raises(BudgetExceeded):
        ledger.charge(pure("1/1000"), ask("b"))


def test_a_charge_is_answered_once_and_by_its_own_receipt(home: Home) -> None:
    ledger = home.ledger()
    receipt = ledger.charge(pure("1/4"), ask("a")).receipt
    foreign = Receipt(
        receipt.number, receipt.charge, receipt.question, receipt.request_id, hash="0" * 64
    )
    with pytest.raises(RequestRefused, match="not open"):
        ledger.store(foreign, b"forged")
    ledger.store(receipt, b"first")
    with pytest.raises(RequestRefused, match="not open"):
        ledger.store(receipt, b"second")
    paid = ledger.stored(ask("a"))
    assert paid is not None
    assert paid.answer == b"first"


def test_three_thirds_are_exactly_one_and_then_nothing_is_left(home: Home) -> None:
    ledger = home.ledger()
    for name in "abc":
        ledger.charge(pure(THIRD), ask(name))
    assert ledger.meter().remaining.pure == 0
    before = ledger.anchor()
    with pytest.raises(BudgetExceeded):
        ledger.charge(pure(Fraction(1, 10**40)), ask("d"))
    assert ledger.anchor() == before  # a refusal leaves no trace
    assert ledger.stored(ask("d")) is None
    assert ledger.verify()


def test_the_cap_is_never_exceeded_by_the_smallest_amount(home: Home) -> None:
    ledger, last = home.ledger(), Fraction(1, 2**128)
    ledger.charge(pure(1 - last), ask("a"))
    for more in (Fraction(1, 10**30), Fraction(1, 7**60)):
        with pytest.raises(BudgetExceeded):
            ledger.charge(pure(last + more), ask("b"))
    assert ledger.charge(pure(last), ask("b")).receipt.charge == pure(last)
    assert spent(ledger) == 1


def test_an_amount_that_is_too_long_to_add_up_is_rounded_up(home: Home) -> None:
    ledger, long = home.ledger(), Fraction(1, 7**60)
    charged = ledger.charge(pure(long), ask("a")).receipt.charge.pure
    assert charged is not None
    assert long < charged < Fraction(1, 10**30)
    assert ledger.meter().remaining.pure == 1 - charged


def test_sub_budgets_bind_each_analyst_and_the_whole_binds_all(home: Home) -> None:
    ledger = home.ledger()
    pay(ledger, "before", "1/8", analyst="ana")
    ledger.allot("ana", Budget(Fraction(1, 2)))
    for analyst in ("bob", None):
        with pytest.raises(InvalidInput, match="there is none for them"):
            pay(ledger, "no", "1/100", analyst=analyst)
    with pytest.raises(BudgetExceeded):
        pay(ledger, "no", "7/16", analyst="ana")  # what she spent before counts
    pay(ledger, "a1", "1/4", analyst="ana")
    with pytest.raises(BudgetExceeded):
        pay(ledger, "no", "3/16", analyst="ana")  # all of it, not the last alone
    pay(ledger, "a2", "1/8", analyst="ana")
    ledger.allot("*", Budget(Fraction(3, 8)))
    pay(ledger, "b", "3/8", analyst="bob")
    with pytest.raises(BudgetExceeded):
        pay(ledger, "no", "1/100", analyst="bob")
    with pytest.raises(BudgetExceeded):
        pay(ledger, "no", "1/4", analyst="carl")  # within his part, beyond the whole
    pay(ledger, "c", "1/8", analyst="carl")
    assert spent(ledger) == 1
    assert set(ledger.allotments) == {"ana", "*"}
    assert ledger.verify()


def test_a_sub_budget_can_be_changed_and_taken_back(home: Home) -> None:
    ledger = home.ledger()
    ledger.allot("ana", Budget(Fraction(1, 4)))
    pay(ledger, "a", "1/4", analyst="ana")
    ledger.allot("ana", Budget(Fraction(1, 2)))
    pay(ledger, "b", "1/4", analyst="ana")
    with pytest.raises(InvalidInput, match="part of the whole"):
        ledger.allot("ana", Budget(2))
    ledger.allot("ana", None)
    assert ledger.allotments == {}
    pay(ledger, "c", "1/2", analyst="bob")  # as before anybody had one
    assert ledger.verify()


def test_another_budget_is_put_in_force_by_an_entry(home: Home) -> None:
    ledger = home.ledger()
    pay(ledger, "a", 1)
    assert not ledger.declare(ledger.terms)
    assert ledger.declare(terms(data(), 2))
    pay(ledger, "b", 1)
    assert ledger.declare(terms(data(), 1))  # below what was spent: nothing more is granted
    with pytest.raises(BudgetExceeded):
        pay(ledger, "c", Fraction(1, 10**9))
    assert [entry["kind"] for entry in entries(ledger)] == [
        "declare",
        "charge",
        "declare",
        "charge",
        "declare",
    ]
    assert ledger.verify()


def test_a_declaration_with_another_budget_is_refused_until_it_is_in_force(lasting: Home) -> None:
    lasting.ledger().close()
    with pytest.raises(
        LedgerMismatch, match=r"holds a budget of epsilon 1, .*declaration says epsilon 2"
    ):
        lasting.ledger(data(2))
    lasting.ledger(data(2), as_declared=False).declare(Terms.of(data(2)))
    assert lasting.ledger(data(2)).meter().remaining.pure == 2
    with pytest.raises(LedgerMismatch):
        lasting.ledger(data(1))


def test_a_ledger_guards_its_own_tables_only(lasting: Home) -> None:
    lasting.ledger().close()
    with pytest.raises(LedgerMismatch, match="it guards visits by row"):
        lasting.ledger(data(unit="pid"))


def test_verify_and_anchors(home: Home) -> None:
    ledger = home.ledger()
    first = ledger.anchor()
    pay(ledger, "a", "1/4", b"42")
    pay(ledger, "b", "1/4")
    ledger.forfeit(pay(ledger, "c", "1/4"))
    last = ledger.anchor()
    verdict = ledger.verify(last)
    assert verdict.findings == ()
    assert (verdict.entries, verdict.charges, verdict.answers, verdict.forfeited) == (6, 3, 1, 2)
    assert (verdict.ledger, *verdict.link) == (last.ledger, last.count, last.hash)
    assert ledger.verify(first)
    assert Anchor.from_json(last.to_json()) == last
    for wrong, said in [
        (Anchor(last.ledger, 7, "0" * 64), "an older copy was put back"),
        (Anchor(last.ledger, 5, last.hash), "the history was rewritten"),
        (Anchor("0" * 64, last.count, last.hash), "the anchor is of another ledger"),
    ]:
        (found,) = ledger.verify(wrong).findings
        assert said in found


def test_an_export_can_be_verified_by_whoever_has_the_anchor(home: Home) -> None:
    ledger = home.ledger()
    for name in "abc":
        pay(ledger, name, "1/4", name.encode())
    lines, anchor = list(ledger.export()), ledger.anchor()
    rows = [Row(number, line, digest(line)) for number, line in enumerate(lines, 1)]
    assert verify_rows(rows, anchor)
    assert not verify_rows(rows[:-1], anchor)
    assert not verify_rows([*rows[:2], *rows[3:]], anchor)
    lines[1] = lines[1].replace("1/4", "1/5")
    assert not verify_rows(
        [Row(number, line, digest(line)) for number, line in enumerate(lines, 1)], anchor
    )
    assert all(name not in "".join(lines) for name in ("password", str(home.place)))


def test_a_large_answer_comes_back_whole(home: Home) -> None:
    ledger = home.ledger()
    answer = os.urandom(5_000_000)
    pay(ledger, "a", "1/4", answer)
    paid = ledger.stored(ask("a", "SELECT 'a'"))
    assert paid is not None
    assert paid.answer == answer
    assert ledger.verify()


@pytest.mark.parametrize("text", ODD.values(), ids=ODD.keys())
def test_odd_texts_are_kept_as_they_are(home: Home, text: str) -> None:
    ledger = home.ledger()
    request = ask("a", text, offer=text)
    receipt = ledger.charge(pure("1/4"), request).receipt
    ledger.store(receipt, text.encode())
    paid = ledger.stored(ask("a", text, offer=text))
    assert paid is not None
    assert paid.answer == text.encode()
    assert paid.receipt.question == receipt.question == text
    assert ledger.verify()


def test_half_a_surrogate_pair_is_refused_before_it_is_charged(home: Home) -> None:
    ledger = home.ledger()
    with pytest.raises(InvalidInput, match="half of a surrogate pair"):
        ledger.charge(pure("1/4"), ask("a", "lone \ud800"))
    assert ledger.payments == ()
    receipt = pay(ledger, "a", "1/4")
    # an answer is bytes, whatever they mean
    ledger.store(receipt, "lone \ud800".encode(errors="surrogatepass"))
    assert ledger.verify()


NAMES = [
    "🙈 ' \" $$ ; --",
    "%s %(x)s {} \\ ?",
    "N" * 200,
    "N" * 199,
    "n" * 200,
    "ﬀ",
    "ff",
    "é",
    "e\u0301",
    "*",
    "null",
    "A",
    "a",
]


def test_names_that_look_alike_are_kept_apart(home: Home) -> None:
    ledger = home.ledger()
    for name in NAMES:
        assert ledger.stored(ask(name)) is None
        pay(ledger, name, "1/100", name.encode(), analyst=name)
    assert [payment.receipt.request_id for payment in ledger.payments] == NAMES
    assert [payment.receipt.analyst for payment in ledger.payments] == NAMES
    for name in NAMES:
        paid = ledger.stored(Request(name, f"SELECT '{name}'", "epsilon", name))
        assert paid is not None
        assert paid.answer == name.encode()
        ledger.allot(name, Budget(Fraction(1, 100)))
    assert list(ledger.allotments) == NAMES
    assert ledger.verify()


def test_two_ledgers_at_one_place_see_each_other(lasting: Home) -> None:
    one, two = lasting.ledger(), lasting.ledger()
    assert one.id == two.id
    receipt = pay(one, "a", "1/2", b"42")
    paid = two.stored(ask("a", "SELECT 'a'"))
    assert paid is not None
    assert (paid.receipt, paid.answer) == (receipt, b"42")
    pay(two, "b", "1/2")
    with pytest.raises(BudgetExceeded):
        pay(one, "c", "1/1000")
    two.allot("ana", Budget(Fraction(1, 2)))
    assert list(one.allotments) == ["ana"]
    assert one.anchor() == two.anchor()


def test_a_ledger_outlives_whoever_opened_it(lasting: Home) -> None:
    first = lasting.ledger()
    pay(first, "a", THIRD, b"42")
    anchor = first.anchor()
    first.close()
    again = lasting.ledger()
    assert again.anchor() == anchor
    assert again.meter().remaining.pure == Fraction(2, 3)
    for attempt in (first.anchor, lambda: pay(first, "b", THIRD), first.meter):
        with pytest.raises(LedgerUnavailable, match="it is closed"):
            attempt()


def outcome(call: Callable[[], object]) -> str:
    try:
        call()
    except BudgetExceeded:
        return "refused"
    return "granted"


def test_threads_share_one_ledger(home: Home) -> None:
    ledger = home.ledger()
    with ThreadPoolExecutor(16) as pool:
        found = Counter(
            pool.map(lambda i: outcome(lambda: pay(ledger, f"{i}", "1/5", b"42")), range(16))
        )
    assert found == {"granted": 5, "refused": 11}
    assert ledger.verify()


def test_threads_with_ledgers_of_their_own_share_one_budget(lasting: Home) -> None:
    ledgers = [lasting.ledger() for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        found = Counter(
            pool.map(lambda i: outcome(lambda: pay(ledgers[i], f"{i}", "1/3", b"42")), range(8))
        )
    assert found == {"granted": 3, "refused": 5}
    assert spent(ledgers[0]) == 1
    assert ledgers[0].verify()


def test_threads_with_one_request_are_charged_once(lasting: Home) -> None:
    ledgers = [lasting.ledger() for _ in range(8)]

    def same(ledger: Ledger) -> str:
        try:
            ledger.store(ledger.charge(pure("1/3"), ask("a")).receipt, b"42")
        except RequestRefused:
            return "refused"
        return "granted"

    with ThreadPoolExecutor(8) as pool:
        found = Counter(pool.map(same, ledgers))
    assert found["granted"] == 1
    assert spent(ledgers[0]) == THIRD


def following(store: Store, facts: dict[str, Any] | None = None) -> Row:
    link = store.head()
    return Entry(link.sequence + 1, link.hash, "accept", "2024-01-01", facts or {"seen": {}}).row


def test_a_second_writer_waits_for_the_first(lasting: Home) -> None:
    store, ledger = lasting.store(), lasting.ledger()
    store.begin()
    row = following(store)
    store.append(row, store.head())
    started = threading.Event()

    def second() -> int:
        started.set()
        return pay(ledger, "a", "1/2").number

    with ThreadPoolExecutor(1) as pool:
        number = pool.submit(second)
        started.wait()
        store.commit()
        assert number.result() == row.sequence + 1
    assert ledger.verify()


def test_a_second_writer_is_refused_in_the_end(
    lasting: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = "sqlite" if isinstance(lasting, SqliteHome) else "postgres"
    monkeypatch.setattr(import_module(f"sordino.ledger.{kind}"), "PATIENCE", 0.05)
    store, ledger = lasting.store(), lasting.ledger()
    store.begin()
    with pytest.raises(LedgerUnavailable, match="another process is writing to it"):
        pay(ledger, "a", "1/2")
    store.rollback()
    assert pay(ledger, "a", "1/2").number == 2  # nothing was charged before


def test_a_store_keeps_what_was_committed_and_nothing_else(lasting: Home) -> None:
    store, other = lasting.store(), lasting.store()
    first = store.head()
    row = following(store)
    store.begin()
    store.append(row, first, "a", b"42")
    assert [each.sequence for each in store.rows()] == [1, 2]
    store.rollback()
    for each in (store, other):
        assert each.head() == first
        assert [kept.sequence for kept in each.rows()] == [1]
        assert each.answer(2) is None
    store.begin()
    store.append(row, first, "a", b"42")
    store.commit()
    for each in (store, other):
        assert each.head() == Link(row.sequence, row.hash)
        assert list(each.rows(1)) == [row]
        assert (each.answer(1), each.answer(2), list(each.answers())) == (None, b"42", [(2, b"42")])
        assert each.faults() == []
    store.rollback()  # after a commit there is nothing to undo
    assert other.head() == Link(row.sequence, row.hash)


def test_a_store_refuses_a_row_after_another_head_and_a_second_request(home: Home) -> None:
    store = home.store()
    first, key = store.head(), store.key()
    assert len(key) == 32
    for head in (START, Link(1, "0" * 64), Link(2, first.hash)):
        store.begin()
        with pytest.raises(Busy):
            store.append(following(store), head)
        store.rollback()
    assert store.head() == first
    store.begin()
    store.append(following(store), first, "a")
    store.commit()
    second = store.head()
    store.begin()
    with pytest.raises(Busy):
        store.append(following(store), second, "a")
    store.rollback()
    assert (store.head(), store.key()) == (second, key)
    assert [row.sequence for row in store.rows()] == [1, 2]


def test_a_ledger_is_made_once(lasting: Home) -> None:
    place = Place.of(str(lasting.place))
    assert not place.exists()
    made = [first_entry(Terms.of(data())) for _ in range(3)]
    assert [place.create(*each) for each in made] == [True, False, False]
    assert place.exists()
    with closing(place.open()) as store:
        assert list(store.rows()) == [made[0][0]]
        assert store.key() == made[0][1]


def test_a_missing_ledger_is_not_made_by_looking(lasting: Home) -> None:
    place = Place.of(str(lasting.place))
    with pytest.raises(LedgerUnavailable, match="there is none yet"):
        Ledger.open(data(), lasting.place, create=False)
    assert not place.exists()


def test_a_ledger_that_is_gone_is_not_made_anew(lasting: Home) -> None:
    pay(lasting.ledger(), "a", "1/2")
    lasting.close()
    if isinstance(lasting, SqliteHome):
        Path(str(lasting.place)).unlink()
    else:
        for table in ("secret", "head"):
            lasting.force(f"DELETE FROM {{{table}}} WHERE {{own}}")
        for number in (1, 2):
            lasting.force("DELETE FROM {entries} WHERE {own} AND sequence = ?", number)
    with pytest.raises(
        LedgerUnavailable, match="it is gone: when it was last used here it had 2 entries"
    ):
        lasting.ledger()
    with Ledger.accept(data(), lasting.place) as ledger:  # as the owner, who answers for it
        assert [entry["kind"] for entry in entries(ledger)] == ["declare", "accept"]
        assert entries(ledger)[1]["facts"]["seen"]["count"] == 2
        assert ledger.verify()


@pytest.mark.parametrize(
    "statement", ["UPDATE {t} SET sequence = 9", "DELETE FROM {t}", "DELETE FROM {t} WHERE {own}"]
)
@pytest.mark.parametrize("table", ["entries", "answers"])
def test_the_database_itself_only_appends(lasting: Home, table: str, statement: str) -> None:
    ledger = lasting.ledger()
    pay(ledger, "a", "1/2", b"42")
    with pytest.raises(
        (sqlite3.IntegrityError, psycopg.errors.RaiseException), match="only ever appended to"
    ):
        lasting.run(statement.replace("{t}", f"{{{table}}}"))
    assert ledger.verify()


EDITS = {
    "a cheaper charge": (
        "UPDATE {entries} SET text = replace(text, '1/2', '1/9') WHERE {own} AND sequence = ?",
        2,
    ),
    "another hash": ("UPDATE {entries} SET hash = '0' WHERE {own} AND sequence = ?", 2),
    "no first entry": ("DELETE FROM {entries} WHERE {own} AND sequence = ?", 1),
    "no charge": ("DELETE FROM {entries} WHERE {own} AND sequence = ?", 2),
    "no last entry": ("DELETE FROM {entries} WHERE {own} AND sequence = ?", 6),
    "a gap": ("UPDATE {entries} SET sequence = 9 WHERE {own} AND sequence = ?", 6),
    "an older note": ("UPDATE {head} SET sequence = 5 WHERE {own} AND sequence = ?", 6),
    "a newer note": ("UPDATE {head} SET sequence = 7 WHERE {own} AND sequence = ?", 6),
    "a forged note": ("UPDATE {head} SET hash = '0' WHERE {own} AND sequence = ?", 6),
    "no note": ("DELETE FROM {head} WHERE {own} AND sequence = ?", 6),
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS.keys())
def test_entries_edited_behind_its_back_are_found(lasting: Home, edit: tuple[str, int]) -> None:
    ledger = lasting.ledger()
    pay(ledger, "a", "1/2", b"42")
    pay(ledger, "b", "1/4", b"43")
    ledger.allot("ana", Budget(1))
    lasting.force(*edit)
    assert ledger.verify().findings
    with pytest.raises(LedgerDamaged):
        lasting.ledger()


SECRETS = {
    "another answer": (
        "UPDATE {answers} SET bytes = ? WHERE {own} AND sequence = 3",
        "was changed",
    ),
    "no answer": (
        "DELETE FROM {answers} WHERE {own} AND sequence = 3 AND bytes <> ?",
        "is missing|was changed",
    ),
    "another key": (
        "UPDATE {secret} SET key = ? WHERE {own}",
        "the secret of the ledger was changed",
    ),
}


@pytest.mark.parametrize(("statement", "said"), SECRETS.values(), ids=SECRETS.keys())
def test_answers_and_secrets_edited_behind_its_back_are_found(
    lasting: Home, statement: str, said: str
) -> None:
    ledger = lasting.ledger()
    pay(ledger, "a", "1/2", b"42")
    lasting.force(statement, b"forged")
    (found,) = ledger.verify().findings
    assert any(part in found for part in said.split("|"))
    if "answer" in statement:
        with pytest.raises(LedgerDamaged, match="the answer to entry 2 was changed"):
            ledger.stored(ask("a", "SELECT 'a'"))


def test_a_ledger_in_memory_finds_edits_too() -> None:
    ledger = MemoryHome().ledger()
    pay(ledger, "a", "1/2", b"42")
    store = ledger._journal.store
    assert isinstance(store, MemoryStore)
    store._answers[3] = b"43"
    assert ledger.verify().findings == ("the answer to entry 2 was changed",)
    with pytest.raises(LedgerDamaged):
        ledger.stored(ask("a", "SELECT 'a'"))
    store._rows[1] = Row(2, store._rows[1].text.replace("1/2", "1/9"), store._rows[1].hash)
    assert "entry 2 was changed: its hash does not fit" in ledger.verify().findings


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_newer_form_is_refused(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    place: Home
    if kind == "sqlite":
        place = SqliteHome(str(tmp_path / "visits.ledger"))
        newer = "PRAGMA user_version = 2"
    else:  # a database of its own, as the form is that of all ledgers in it
        database = request.getfixturevalue("postgres_database")
        place = PostgresHome(request.getfixturevalue("postgres_server"), database)
        newer = "UPDATE sordino.format SET version = 2"
    place.ledger()
    place.close()
    place.run(newer)
    with pytest.raises(
        LedgerUnavailable,
        match=r"form 2, and this version of Sordino knows form 1\. Use the newer Sordino",
    ):
        place.ledger()


FORK = """
import json, os, sys
from ledger.test_conformance import data
from ledger.visits import pay
from sordino.errors import BudgetExceeded
from sordino.ledger.ledger import Ledger

with Ledger.open(data(), sys.argv[1]) as ledger:
    pay(ledger, "before", "1/4", b"before")
    children = []
    for name in ("one", "two", "three"):
        child = os.fork()
        if not child:
            try:
                pay(ledger, name, "1/4", name.encode())
                ledger.close()
            except BudgetExceeded:
                os._exit(7)
            os._exit(0)
        children.append(child)
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    try:
        pay(ledger, "after", "1/4")
    except BudgetExceeded:
        codes.append(7)
    print(json.dumps([codes, len(ledger.payments), list(ledger.verify().findings)]))
"""


def test_children_of_a_process_use_its_ledger_safely(lasting: Home) -> None:
    """A connection must not be shared by two processes: each child opens its own, and the parent's goes on."""
    path = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", FORK, str(lasting.place)],
        env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    codes, payments, findings = json.loads(done.stdout)
    assert codes == [0, 0, 0, 7]
    assert payments == 4
    assert findings == []

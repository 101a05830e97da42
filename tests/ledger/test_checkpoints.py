"""Checkpoints save reading, and nobody believes them: what a ledger grants is the same with and without."""

from __future__ import annotations

import contextlib
import itertools
import json
import shutil
import sqlite3
import time
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from first_of import first_of
from ledger.tampering import edited, relinked
from ledger.visits import declare, pay, pure, told
from sordino.errors import LedgerDamaged, LedgerError, RequestRefused
from sordino.ledger import old_entries
from sordino.ledger.chain import Entry, Link, Row, canonical, digest
from sordino.ledger.ledger import Ledger
from sordino.ledger.memory import MemoryStore
from sordino.ledger.opening import first_entry
from sordino.ledger.receipt import Request, request_key
from sordino.ledger.recognition import Recognition
from sordino.ledger.sqlite import SqliteStore
from sordino.ledger.state import State
from sordino.ledger.terms import Terms, charge_facts
from sordino.ledger.verify import verify_store
from sordino.ledger.witness import Witness
from sordino.privacy.budget import Budget
from sordino.query.dataset import Dataset

FEW = 5


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(old_entries, "EVERY", FEW)
    monkeypatch.setattr(old_entries, "_BY_ANALYST", 0)


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    return declare(tmp_path / "data", 100)


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, dataset: Dataset) -> str:
    if request.param == "postgres":
        return str(request.getfixturevalue("postgres_address"))
    return str(Ledger.place_of(dataset))


def used(dataset: Dataset, place: str | None = None, charges: int = 20) -> None:
    """Charges of three kinds by three people; one of the first is answered late, when checkpoints have passed it by."""
    with Ledger.open(dataset, place) as ledger:
        ledger.allot("ana", Budget(50))
        ledger.allot("*", Budget(50))
        late = pay(ledger, "late", "1/7", analyst="ana")
        pay(ledger, "never", "1/9")
        for i in range(charges):
            receipt = pay(
                ledger,
                f"r{i}",
                Fraction(1, i + 2),
                None if i % 3 else f"answer {i}".encode(),
                (None, "ana", "bob")[i % 3],
            )
            if i % 3 == 1:
                ledger.forfeit(receipt)
        ledger.store(late, b"late, but there")
        pay(ledger, "after", "1/11", b"after")


def used_file(dataset: Dataset, charges: int = 20) -> Path:
    """The file of a ledger that was used."""
    used(dataset, charges=charges)
    return Path(str(Ledger.place_of(dataset)))


def kinds(store: Any) -> list[str]:
    return [json.loads(row.text)["kind"] for row in store.rows()]


def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of all rows that are read from now on."""
    seen: list[int] = []
    rows = SqliteStore.rows

    def spy(self: SqliteStore, after: int = 0, until: int | None = None) -> Iterator[Row]:
        for row in rows(self, after, until):
            seen.append(row.sequence)
            yield row

    monkeypatch.setattr(SqliteStore, "rows", spy)
    return seen


def test_a_ledger_opened_at_a_checkpoint_says_the_same(
    dataset: Dataset, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    used(dataset, place)
    with Ledger.open(dataset, place) as resumed:
        assert resumed._journal.state.start.sequence > FEW
        assert kinds(resumed._journal.store).count("checkpoint") >= 5
        monkeypatch.setattr(Recognition, "checked_before", lambda *_: Link(0, "0" * 64))
        with Ledger.open(dataset, place) as whole:
            assert whole._journal.state.start.sequence == 0
            assert whole._journal.state.summary() == resumed._journal.state.summary()
            assert whole.tallies == resumed.tallies
            assert whole.spent == resumed.spent
            assert whole.forfeited == resumed.forfeited
            for who in (None, "ana", "bob"):
                assert whole.meter(who) == resumed.meter(who)
                assert whole.recent(4, who) == resumed.recent(4, who)
            assert whole.recent(999) == resumed.recent(999) == whole.payments
            for payment in whole.payments:
                assert (
                    resumed.payment(payment.receipt.request_id, payment.receipt.analyst) == payment
                )
                assert resumed._journal.holds(payment.receipt.link)
                assert not resumed._journal.holds(payment.receipt.link._replace(hash="0" * 64))
            assert told(resumed) == told(whole)
            assert resumed.verify(whole.anchor())


def test_old_requests_are_answered_again_or_refused_and_never_charged_twice(
    dataset: Dataset, place: str
) -> None:
    used(dataset, place)
    with Ledger.open(dataset, place) as ledger:
        spent = ledger.spent
        assert ledger._journal.state.payment(request_key("ana", "late")) is None
        paid = ledger.charge(pure("1/7"), Request("late", "SELECT 'late'", "epsilon", "ana"))
        assert paid.answer == b"late, but there"
        analysts = {
            payment.receipt.request_id: payment.receipt.analyst for payment in ledger.recent(999)
        }
        for request, amount in (("never", "1/9"), ("r1", "1/3"), ("late", "1/7")):
            with pytest.raises(RequestRefused):
                ledger.charge(
                    pure(amount),
                    Request(request, "SELECT 'something else'", "epsilon", analysts[request]),
                )
        with pytest.raises(RequestRefused):
            ledger.store(paid.receipt, b"twice")
        assert ledger.spent == spent


def test_opening_reads_the_last_entries_only(
    dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    used(dataset, charges=100)
    with Ledger.open(dataset) as ledger:  # so that the late answer is behind a checkpoint, too
        for i in range(2 * FEW):
            pay(ledger, f"more {i}", "1/50", analyst="ana")
    seen = counted(monkeypatch)
    with Ledger.open(dataset) as ledger:
        ledger.meter("ana")
        pay(ledger, "new", "1/3", b"x", "ana")
        assert {
            number for number in seen if number < ledger._journal.state.start.sequence - 2 * FEW
        } == {1}
        assert len(seen) < 12 * FEW
        seen.clear()
        ledger.payment("r50", "bob")
        assert len(seen) < ledger.anchor().count // FEW + 6 * FEW


def test_without_notes_all_is_read(dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing but what this machine has checked before lets it skip entries."""
    used(dataset)
    monkeypatch.setenv("SORDINO_STATE", "")
    seen = counted(monkeypatch)
    with Ledger.open(dataset) as ledger:
        assert set(seen) == set(range(1, ledger.anchor().count + 1))


def _forged(path: Path, number: int, change: Any) -> None:
    """Change the facts of an entry, and make the chain whole again."""
    with edited(path) as connection:
        text = connection.execute(
            "SELECT text FROM entries WHERE sequence = ?", (number,)
        ).fetchone()[0]
        fields = json.loads(text)
        change(fields["facts"])
        connection.execute(
            "UPDATE entries SET text = ? WHERE sequence = ?", (canonical(fields), number)
        )
        relinked(connection)


def _cheaper(facts: dict[str, Any]) -> None:
    for tally in facts["tallies"]:
        tally[3]["pure"] = "0"


def _fewer(facts: dict[str, Any]) -> None:
    facts["tallies"] = facts["tallies"][1:]


def _richer(facts: dict[str, Any]) -> None:
    facts["terms"]["allowance"]["epsilon"] = "100000"


CHANGES = [
    _cheaper, _fewer, _richer, lambda f: f.update(late=[[3, 4]]), lambda f: f.update(before=None),
    lambda f: f.update(allotments={}), lambda f: f.update(extra=1), lambda f: f.clear(),
]  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("noted", first_of(1, ["all", "before", "nothing"]))
def test_a_forged_checkpoint_is_found(
    dataset: Dataset, change: Any, noted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a machine that has seen it, by one that was there before it, and by one that never was."""
    path = used_file(dataset, charges=4)
    note = Witness().recall(str(path))
    used_more = note.count if note else 0
    with Ledger.open(dataset) as ledger:
        for i in range(20):
            pay(ledger, f"more {i}", "1/50", b"x", "ana")
        last = max(
            row.sequence
            for row in ledger._journal.store.rows()
            if '"kind":"checkpoint"' in row.text
        )
    assert last > used_more + FEW
    if noted != "all":
        Witness().forget(str(path))
        if noted == "before" and note is not None:
            Witness().remember(note)
    _forged(path, last, change)
    with pytest.raises(LedgerDamaged):
        Ledger.open(dataset)
    with contextlib.closing(SqliteStore(path)) as store:
        assert not verify_store(store)


def test_old_entries_edited_grant_nothing_and_are_found_when_they_are_read(
    dataset: Dataset,
) -> None:
    """Every entry before the checkpoint: opening does not look at it, its sums stand, and whoever reads it notices."""
    path = used_file(dataset)
    with Ledger.open(dataset) as ledger:
        spent, start = ledger.spent, ledger._journal.state.start.sequence
        charges = {p.receipt.number: p.receipt for p in ledger.payments if p.receipt.number < start}
        rows = {row.sequence: row for row in ledger._journal.store.rows()}
    content, state = path.read_bytes(), Witness().recall(str(path))
    assert state is not None
    assert len(charges) > 12
    for number, receipt in charges.items():
        path.write_bytes(content)
        fields = json.loads(rows[number].text)
        fields["facts"]["charge"]["pure"] = "0"
        text = canonical(fields)
        with edited(path) as connection:
            connection.execute(
                "UPDATE entries SET text = ?, hash = ? WHERE sequence = ?",
                (text, digest(text), number),
            )
        with Ledger.open(dataset) as ledger:
            assert ledger.spent == spent
            assert not ledger.verify()
            with pytest.raises(LedgerDamaged):
                ledger.payment(receipt.request_id, receipt.analyst)
            with pytest.raises(LedgerError):  # and from then on it grants nothing
                pay(ledger, "more", "1/100")


def test_old_entries_rewritten_up_to_the_checkpoint_are_found(dataset: Dataset) -> None:
    """While the ledger is open, links and hashes of the last stretch made to fit, the checkpoint's own among them."""
    path = used_file(dataset)
    with Ledger.open(dataset) as ledger:
        start = ledger._journal.state.start.sequence
        rows = [row for row in ledger._journal.store.rows() if row.sequence <= start]
        number, facts = next(
            (row.sequence, json.loads(row.text)["facts"])
            for row in reversed(rows)
            if '"kind":"charge"' in row.text
        )
        with edited(path) as connection:
            last = rows[number - 2].hash
            for row in rows[number - 1 :]:
                fields = json.loads(row.text) | {"previous": last}
                if row.sequence == number:
                    fields["facts"]["charge"]["pure"] = "0"
                text, last = canonical(fields), digest(canonical(fields))
                connection.execute(
                    "UPDATE entries SET text = ?, hash = ? WHERE sequence = ?",
                    (text, last, row.sequence),
                )
        with pytest.raises(LedgerDamaged):
            ledger.payment(facts["request"], facts["analyst"])


def test_an_older_copy_is_found_also_before_its_checkpoint(
    dataset: Dataset, tmp_path: Path
) -> None:
    path = used_file(dataset, charges=4)
    shutil.copy(path, tmp_path / "old")
    with Ledger.open(dataset) as ledger:
        for i in range(20):
            pay(ledger, f"more {i}", "1/50", b"x", "ana")
    shutil.copy(tmp_path / "old", path)
    with pytest.raises(LedgerDamaged, match="an older copy was put back"):
        Ledger.open(dataset)


def test_a_ledger_from_before_checkpoints_opens_and_gets_one(
    dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(old_entries, "EVERY", 10**9)
    used(dataset)
    with Ledger.open(dataset) as ledger:
        assert "checkpoint" not in kinds(ledger._journal.store)
        before = told(ledger)
        monkeypatch.setattr(old_entries, "EVERY", FEW)
        pay(ledger, "one more", "1/100", analyst="ana")
        assert kinds(ledger._journal.store)[-2:] == ["checkpoint", "charge"]
    with Ledger.open(dataset) as ledger:
        assert ledger._journal.state.start.sequence == ledger.anchor().count - 1
        assert ledger.verify()
        assert told(ledger).payments[:-1] == before.payments


def test_a_checkpoint_and_its_entry_are_one_transaction(
    dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Ledger.open(dataset) as ledger:
        for i in range(FEW - 1):
            pay(ledger, f"r{i}", "1/50")
        before = ledger.anchor().count
    appended = SqliteStore.append
    calls = itertools.count()

    def failing(self: SqliteStore, *values: Any) -> None:
        if next(calls) == 1:
            raise sqlite3.OperationalError("the disk is full")
        appended(self, *values)

    with Ledger.open(dataset) as ledger:
        monkeypatch.setattr(SqliteStore, "append", failing)
        with pytest.raises(sqlite3.OperationalError):
            pay(ledger, "unlucky", "1/50")
    monkeypatch.setattr(SqliteStore, "append", appended)
    with Ledger.open(dataset) as ledger:
        assert ledger.anchor().count == before
        assert ledger.verify()


def test_a_ledger_in_memory_has_checkpoints_too(
    monkeypatch: pytest.MonkeyPatch, dataset: Dataset
) -> None:
    with Ledger(MemoryStore(*first_entry(Terms.of(dataset)))) as ledger:
        for i in range(3 * FEW):
            pay(ledger, f"r{i}", "1/50", b"x")
        assert kinds(ledger._journal.store).count("checkpoint") >= 5
        assert ledger.verify()
        before = told(ledger)
        ledger._journal.state = State()  # as in a forked child
        assert ledger.spent.pure == Fraction(3 * FEW, 50)
        assert ledger._journal.state.start.sequence > 0
        assert told(ledger) == before


def long_ledger(dataset: Dataset, charges: int) -> None:
    """A ledger with many charges, each answered, written at once."""
    with Ledger.open(dataset) as ledger:
        path = Path(ledger.place)
        state = ledger._journal.state
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA synchronous = OFF")
    connection.execute("BEGIN")

    def add(kind: str, facts: dict[str, Any], request: str | None = None) -> Entry:
        entry = Entry(
            state.link.sequence + 1, state.link.hash, kind, "2026-11-16T00:00:00+00:00", facts
        )
        row = entry.row
        state.read(entry, row.hash)
        state.hashes.clear()
        connection.execute("INSERT INTO entries VALUES (?, ?, ?, ?)", (*row, request))
        return entry

    amounts = [charge_facts(pure(Fraction(k, 10**9))) for k in range(1, 50)]
    answer = b"x" * 600
    for i in range(charges):
        if old_entries.is_due(state):
            add("checkpoint", state.summary())
            state.payments.clear()
            state.requests.clear()
        asked = Request(
            f"request {digest(str(i))}",
            f"SELECT COUNT(*) AS n FROM visits WHERE age >= {i % 90}",
            "epsilon",
        )
        facts = {
            "request": asked.id, "body": asked.body, "question": asked.question, "offer": asked.offer, "analyst": None,
            "charge": amounts[i % 49], "sources": {"visits": "a" * 32},
        }  # fmt: skip
        number = add("charge", facts, asked.id).sequence
        settled = add(
            "answer", {"charge": number, "answer": digest(answer), "size": len(answer)}
        ).sequence
        connection.execute("INSERT INTO answers VALUES (?, ?)", (settled, answer))
    connection.execute("UPDATE head SET sequence = ?, hash = ?", state.link)
    connection.execute("COMMIT")
    connection.close()
    note = Witness().recall(str(path))
    assert note is not None
    Witness().remember(replace(note, count=state.link.sequence, hash=state.link.hash))


@pytest.mark.slow
def test_a_million_charges_open_within_a_second(
    dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(old_entries, "EVERY", 1024)
    long_ledger(dataset, 1_000_000)
    times: list[float] = []
    for _ in range(3):
        begun = time.process_time()
        with Ledger.open(dataset) as ledger:
            pay(ledger, f"another {len(times)}", "1/1000", b"x")
            ledger.recent(10)
        times.append(time.process_time() - begun)
    print(f"opened, charged and listed in {times} s")
    assert min(times) < 1


def test_ids_of_an_older_sordino_are_found_and_hinder_nobody(dataset: Dataset) -> None:
    """Before ids belonged to analysts, rows were kept under the id alone."""
    path = used_file(dataset)
    with edited(path) as connection:
        connection.execute(
            "UPDATE entries SET request = substr(request, instr(request, char(31)) + 1)"
        )
    with Ledger.open(dataset) as ledger:
        assert ledger._journal.state.start.sequence > FEW
        assert ledger.verify()
        spent = ledger.spent
        for receipt in [payment.receipt for payment in ledger.recent(999)]:
            found = ledger.payment(receipt.request_id, receipt.analyst)
            assert found is not None
            assert found.receipt == receipt
        assert ledger.payment("late", "bob") is None
        assert (
            ledger.charge(pure("1/7"), Request("late", "SELECT 'late'", "epsilon", "ana")).answer
            == b"late, but there"
        )
        assert ledger.spent == spent
        assert (
            ledger.charge(pure("1/7"), Request("late", "SELECT 'late'", "epsilon", "bob")).answer
            is None
        )
        assert ledger.verify()

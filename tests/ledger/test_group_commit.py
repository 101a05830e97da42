"""Threads that write at the same time share a transaction: fewer syncs, and each promise as before."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from ledger.visits import declare, pure
from sordino.errors import BudgetExceeded, LedgerUnavailable, RequestRefused, SordinoError
from sordino.ledger import journal
from sordino.ledger.ledger import Ledger, Paid
from sordino.ledger.memory import MemoryStore
from sordino.ledger.opening import first_entry
from sordino.ledger.receipt import Request
from sordino.ledger.sqlite import SqliteStore
from sordino.ledger.terms import Terms


@pytest.fixture(params=["sqlite", "memory"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ledger]:
    dataset = declare(tmp_path, 1)
    opened = (
        Ledger.open(dataset)
        if request.param == "sqlite"
        else Ledger(MemoryStore(*first_entry(Terms.of(dataset))))
    )
    with opened:
        yield opened


def together(ledger: Ledger, calls: list[Callable[[], Any]]) -> list[Any]:
    """What becomes of calls that all wait when the first of them writes, in this order."""
    found: list[Any] = [None] * len(calls)

    def run(place: int) -> None:
        try:
            found[place] = calls[place]()
        except (SordinoError, KeyboardInterrupt, ZeroDivisionError) as error:
            found[place] = error

    threads = [threading.Thread(target=run, args=(place,)) for place in range(len(calls))]
    with ledger._journal.lock():
        for place, thread in enumerate(threads):
            thread.start()
            while len(ledger._journal._waiting) <= place:
                time.sleep(0.001)
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()
    return found


def charging(
    ledger: Ledger, name: str, amount: str | Fraction, analyst: str | None = None
) -> Callable[[], Paid]:
    return lambda: ledger.charge(pure(amount), Request(name, "SELECT 1", "", analyst))


@pytest.fixture
def commits(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    counts: Counter[str] = Counter()
    for kind in (SqliteStore, MemoryStore):
        original = kind.commit

        def commit(self: Any, original: Callable[[Any], None] = original) -> None:
            counts["commits"] += 1
            original(self)

        monkeypatch.setattr(kind, "commit", commit)
    return counts


def test_many_charges_are_one_commit(ledger: Ledger, commits: Counter[str]) -> None:
    found = together(ledger, [charging(ledger, f"r{i}", Fraction(1, 64)) for i in range(32)])
    assert commits["commits"] == 1
    assert sorted(paid.receipt.number for paid in found) == list(range(2, 34))
    assert len({paid.receipt.hash for paid in found}) == 32
    assert [ledger.payment(f"r{i}").receipt for i in range(32)] == [paid.receipt for paid in found]  # type: ignore[union-attr]
    assert ledger.spent.pure == Fraction(1, 2)
    assert ledger.verify()


def test_answers_and_charges_share_a_commit(ledger: Ledger, commits: Counter[str]) -> None:
    first = [charging(ledger, f"r{i}", Fraction(1, 64))() for i in range(4)]
    commits.clear()
    calls: list[Callable[[], Any]] = [
        lambda i=i: ledger.store(first[i].receipt, b"%d" % i)  # type: ignore[misc]
        for i in range(4)
    ]
    together(ledger, [*calls, *(charging(ledger, f"s{i}", Fraction(1, 64)) for i in range(4))])
    assert commits["commits"] == 1
    assert [ledger.stored(Request(f"r{i}", "SELECT 1")).answer for i in range(4)] == [  # type: ignore[union-attr]
        b"0",
        b"1",
        b"2",
        b"3",
    ]
    assert ledger.verify()


def test_no_group_goes_over_the_budget(ledger: Ledger) -> None:
    """Each step decides over what those before it in the same transaction spent."""
    found = together(ledger, [charging(ledger, f"r{i}", Fraction(1, 3)) for i in range(7)])
    assert [type(each) for each in found] == [Paid] * 3 + [BudgetExceeded] * 4
    assert ledger.spent.pure == 1
    assert ledger.verify()


def test_one_id_is_drawn_once_within_a_group(ledger: Ledger) -> None:
    found = together(ledger, [charging(ledger, "same", Fraction(1, 8)) for _ in range(6)])
    assert [type(each) for each in found] == [Paid] + [RequestRefused] * 5
    assert ledger.spent.pure == Fraction(1, 8)


def test_a_bug_in_one_step_is_raised_there_only(ledger: Ledger) -> None:
    def broken() -> None:
        ledger._write(lambda: 1 // 0)  # type: ignore[arg-type,return-value]

    found = together(ledger, [charging(ledger, "a", "1/8"), broken, charging(ledger, "b", "1/8")])
    assert [type(each) for each in found] == [Paid, ZeroDivisionError, Paid]
    assert ledger.verify()


@pytest.mark.parametrize("step", ["append", "commit"])
def test_a_failure_grants_nothing_to_anybody_and_stops_the_ledger(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    charging(ledger, "before", "1/8")()
    store, calls = ledger._journal.store, Counter[str]()
    original = getattr(store, step)

    def failing(*arguments: Any) -> None:
        calls[step] += 1
        if step == "commit" or calls[step] == 3:
            raise LedgerUnavailable(store.place, "the disk is full", "Free some.")
        original(*arguments)

    monkeypatch.setattr(store, step, failing)
    found = together(ledger, [charging(ledger, f"r{i}", "1/16") for i in range(5)])
    assert {type(each) for each in found} == {LedgerUnavailable}
    assert len({id(each) for each in found}) == 5
    monkeypatch.undo()
    with pytest.raises(LedgerUnavailable, match="it failed before"):
        ledger.meter()
    journal_ = journal.Journal(store)  # opened again
    journal_.catch_up()
    assert [p.receipt.request_id for p in journal_.state.payments.values()] == ["before"]


@pytest.mark.parametrize("place", [1, 3])
def test_an_interrupt_before_the_commit_leaves_the_others_be(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, place: int
) -> None:
    store, calls = ledger._journal.store, Counter[str]()
    original = store.append

    def interrupted(*arguments: Any) -> None:
        original(*arguments)
        calls["append"] += 1
        if calls["append"] == place:
            raise KeyboardInterrupt

    monkeypatch.setattr(store, "append", interrupted)
    found = together(ledger, [charging(ledger, f"r{i}", "1/16") for i in range(5)])
    kinds = Counter(type(each) for each in found)
    assert kinds == {Paid: 4, KeyboardInterrupt: 1}
    assert ledger.spent.pure == Fraction(4, 16)
    assert ledger.verify()


def test_an_interrupt_amid_the_commit_grants_nothing_and_draws_nothing_twice(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, first = ledger._journal.store, [True]
    original = store.commit

    def interrupted() -> None:
        original()
        if first.pop() if first else False:
            raise KeyboardInterrupt

    monkeypatch.setattr(store, "commit", interrupted)
    found = together(ledger, [charging(ledger, f"r{i}", "1/16") for i in range(5)])
    assert Counter(type(each) for each in found) == {LedgerUnavailable: 4, KeyboardInterrupt: 1}
    assert ledger.spent.pure == Fraction(5, 16)  # they are in the place, so they count
    for i in range(5):
        with pytest.raises(RequestRefused, match="has no answer"):
            charging(ledger, f"r{i}", "1/16")()
    assert ledger.verify()


def test_groups_of_two_ledgers_at_one_place_keep_one_budget(tmp_path: Path) -> None:
    dataset = declare(tmp_path, 1)
    with Ledger.open(dataset) as one, Ledger.open(dataset) as other:
        granted: list[Paid] = []

        def ask(ledger: Ledger, name: str) -> None:
            for i in range(10):
                try:
                    granted.append(charging(ledger, f"{name} {i}", Fraction(1, 40))())
                except BudgetExceeded:
                    return

        threads = [
            threading.Thread(target=ask, args=((one, other)[i % 2], f"t{i}")) for i in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert len(granted) == 40
        assert one.spent.pure == other.spent.pure == 1
        assert one.verify()

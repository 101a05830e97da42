"""Random histories of a ledger, crashes among them, against a model of a few lines that has neither files nor locks."""

from __future__ import annotations

import os
import uuid
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from ledger.model import Model
from ledger.postgres_server import PostgresServer
from ledger.visits import declare, pure, quick_folder, terms
from sordino.accounting.charge import NOTHING, Charge
from sordino.errors import SordinoError
from sordino.ledger import journal
from sordino.ledger.anchor import Anchor
from sordino.ledger.chain import Entry
from sordino.ledger.ledger import Ledger
from sordino.ledger.memory import MemoryStore
from sordino.ledger.opening import first_entry
from sordino.ledger.receipt import Receipt, Request
from sordino.ledger.sqlite import SqliteStore
from sordino.ledger.state import State
from sordino.privacy.budget import Budget

HANDLES = st.integers(0, 1)
NAMES = st.integers(1, 99).map(str)
PICKS = st.integers(0, 3)
QUESTIONS = st.sampled_from(["q1", "q2"])
ANALYSTS = st.sampled_from([None, "ana", "bea"])
TINY = Fraction(1, 10**12)
"""Everything is a multiple of it, as the ledger adds up decimal numbers without rounding."""
SIZES = st.sampled_from(
    ["none", "tiny", "third", "half", "all but a bit", "all", "a bit more", "twice"]
)


def whole(amount: Fraction) -> Fraction:
    """Rounded down to a multiple of the smallest amount."""
    return amount // TINY * TINY


def size(left: Fraction, name: str) -> Fraction:
    """A charge around what is left."""
    left = max(left, Fraction(0))
    return {
        "none": Fraction(0), "tiny": TINY, "third": whole(left / 3), "half": whole(left / 2),
        "all but a bit": max(left - TINY, Fraction(0)), "all": left, "a bit more": left + TINY, "twice": 2 * left + TINY,
    }[name]  # fmt: skip


def outcome(call: Callable[[], Any]) -> tuple[str, Any]:
    """`ok` and what came of a call, or the name of the error."""
    try:
        return "ok", call()
    except SordinoError as error:
        return type(error).__name__, error


class Histories(RuleBasedStateMachine):
    """One ledger, used by up to two handles at a time."""

    steps: ClassVar[Counter[str]] = Counter()
    anchors = Bundle("anchors")

    def __init__(self) -> None:
        super().__init__()
        self.exit = ExitStack()
        self.folder = self.exit.enter_context(quick_folder())
        # put back by the fixture of every test
        os.environ["SORDINO_STATE"] = str(self.folder / "state")
        self.dataset = declare(self.folder / "data", 1)
        self.model = Model(Fraction(1))
        self.receipts: dict[tuple[str, str | None], Receipt] = {}
        self.handles: list[Ledger] = []

    def open(self) -> Ledger:
        """A new handle."""
        raise NotImplementedError

    def handle(self, number: int) -> Ledger:
        """One of the open handles, opened if need be."""
        if not self.handles:
            self.handles.append(self.open())
        return self.handles[number % len(self.handles)]

    def teardown(self) -> None:
        for handle in self.handles:
            handle.close()
        self.exit.close()

    @rule(h=HANDLES, name=NAMES, question=QUESTIONS, analyst=ANALYSTS, part=SIZES)
    def charge(self, h: int, name: str, question: str, analyst: str | None, part: str) -> None:
        amount = size(self.model.left(analyst) or Fraction(0), part)
        expected = self.model.charge(name, question, amount, analyst)
        found, paid = outcome(
            lambda: self.handle(h).charge(pure(amount), Request(name, question, "", analyst))
        )
        assert found == ("ok" if expected == "again" else expected)
        if expected == "ok":
            assert paid.answer is None
            self.receipts[name, analyst] = paid.receipt
        elif expected == "again":
            assert (paid.answer, paid.receipt) == (
                self.model.asked[name, analyst].answer,
                self.receipts[name, analyst],
            )
        self.steps[f"charge: {expected}"] += 1

    @precondition(lambda self: self.receipts)
    @rule(h=HANDLES, pick=PICKS, answer=st.none() | st.binary(max_size=20), part=SIZES)
    def settle(self, h: int, pick: int, answer: bytes | None, part: str) -> None:
        """Answer or forfeit one of the newest charges; an answer is then given again."""
        name = list(self.receipts)[-1 - pick % len(self.receipts)]
        expected, handle, receipt = (
            self.model.settle(name, answer),
            self.handle(h),
            self.receipts[name],
        )
        found, _ = outcome(
            lambda: handle.forfeit(receipt) if answer is None else handle.store(receipt, answer)
        )
        assert found == expected
        self.steps[f"settle: {found}"] += 1
        if found == "ok" and answer is not None:
            known = self.model.asked[name]
            self.charge(h, name[0], known.question, known.analyst, part)

    @precondition(lambda self: self.receipts)
    @rule(h=HANDLES, pick=PICKS, other=st.sampled_from(["", "", "question", "analyst"]), part=SIZES)
    def repeat(self, h: int, pick: int, other: str, part: str) -> None:
        """Ask again under a known id: the same, or with another question or analyst."""
        name = list(self.receipts)[-1 - pick % len(self.receipts)]
        known = self.model.asked[name]
        question = "another" if other == "question" else known.question
        analyst = "cleo" if other == "analyst" else known.analyst
        found, paid = outcome(
            lambda: self.handle(h).stored(Request(name[0], question, "", analyst))
        )
        # an id of somebody else is free
        if other == "analyst" and (name[0], analyst) not in self.model.asked:
            assert (found, paid) == ("ok", None)
        elif other != "analyst":
            assert found == ("ok" if known.status == "answered" and not other else "RequestRefused")
            assert found != "ok" or paid.answer == known.answer
        self.charge(h, name[0], question, analyst, part)

    @rule(
        h=HANDLES,
        change=st.sampled_from([Fraction(1, 3), Fraction(1), Fraction(3, 2), Fraction(5, 2)]),
    )
    def declare(self, h: int, change: Fraction) -> None:
        spent = sum(each.amount for each in self.model.asked.values())
        cap = whole(max(spent, Fraction(1, 7)) * change)  # below, at and above what is spent
        expected = cap != self.model.cap
        self.model.declare(cap)
        assert self.handle(h).declare(terms(self.dataset, cap)) is expected

    @rule(
        h=HANDLES,
        analyst=st.sampled_from(["*", "ana", "bea"]),
        part=st.none() | st.sampled_from([1, 2, 3, 9]),
    )
    def allot(self, h: int, analyst: str, part: int | None) -> None:
        budget = None if part is None else whole(self.model.cap * part / 8)
        expected = self.model.allot(analyst, budget)
        found, _ = outcome(
            lambda: self.handle(h).allot(analyst, None if budget is None else Budget(budget))
        )
        assert found == expected
        self.steps[f"allot: {found}"] += 1

    @rule(h=HANDLES, target=anchors)
    def anchor(self, h: int) -> Anchor:
        found = self.handle(h).anchor()
        assert found.count - self.checkpoints(h) == self.model.entries
        return found

    @rule(h=HANDLES, anchor=anchors)
    def verify(self, h: int, anchor: Anchor) -> None:
        verdict = self.handle(h).verify(anchor)
        assert verdict, verdict.findings
        answered = sum(each.status == "answered" for each in self.model.asked.values())
        counts = (
            verdict.entries - self.checkpoints(h),
            verdict.charges,
            verdict.answers,
            verdict.forfeited,
        )
        assert counts == (
            self.model.entries,
            len(self.model.asked),
            answered,
            len(self.model.asked) - answered,
        )
        self.steps["verify"] += 1

    def checkpoints(self, h: int) -> int:
        """How many entries say nothing new."""
        return sum('"kind":"checkpoint"' in line for line in self.handle(h).export())

    @invariant()
    def says_what_the_model_says(self) -> None:
        self.steps["states"] += 1
        for handle in self.handles:
            found = [
                (p.receipt.request_id, p.receipt.charge.pure, p.receipt.analyst, p.status)
                for p in handle.payments
            ]
            assert found == [
                (name, each.amount, each.analyst, each.status)
                for (name, _), each in self.model.asked.items()
            ]
            assert handle.terms.allowance.budget.epsilon == self.model.cap
            assert handle._journal.state.spent.pure == sum(
                each.amount for each in self.model.asked.values()
            )
            assert {
                name: part.budget.epsilon for name, part in handle.allotments.items()
            } == self.model.parts


class MemoryHistories(Histories):
    """In memory there is one handle, and nothing to crash."""

    def open(self) -> Ledger:
        return Ledger(MemoryStore(*first_entry(terms(self.dataset, 1))))


class DurableHistories(Histories):
    """In a place that outlives its handles: these come, go and crash."""

    place: str | None = None

    def open(self) -> Ledger:
        return Ledger.open(self.dataset, self.place, as_declared=False)

    def lose(self, ledger: Ledger) -> None:
        """End its connection as the end of its process would."""
        store: Any = ledger._journal.store
        store._connection.close()

    @rule()
    def come(self) -> None:
        if len(self.handles) < 2:
            self.handles.append(self.open())

    @rule(h=HANDLES)
    def go(self, h: int) -> None:
        if self.handles:
            self.handles.pop(h % len(self.handles)).close()

    @rule(h=HANDLES, name=NAMES)
    def crash_before_the_answer_is_stored(self, h: int, name: str) -> None:
        """The process ends after a charge: its handle is lost without being closed."""
        self.charge(h, name, "q1", None, "half")
        ledger = self.handle(h)
        self.handles.remove(ledger)
        self.lose(ledger)
        self.steps["crash after a charge"] += 1

    @rule(h=HANDLES, kind=st.sampled_from(["charge", "answer", "declare"]))
    def crash_within_a_transaction(self, h: int, kind: str) -> None:
        """The process ends after it has written, and before it commits."""
        ledger = self.handle(h)
        link = ledger.anchor().link
        ledger._journal.store.begin()
        row = Entry(link.sequence + 1, link.hash, kind, "now", {}).row
        ledger._journal.store.append(
            row, link, "lost" if kind == "charge" else None, b"lost" if kind == "answer" else None
        )
        self.handles.remove(ledger)
        self.lose(ledger)
        self.steps["crash within a transaction"] += 1


class SqliteHistories(DurableHistories):
    """In a file, of which old copies turn up."""

    copies = Bundle("copies")

    @property
    def path(self) -> Path:
        return self.folder / "data" / "visits.ledger"

    def leave(self) -> None:
        """Close all handles; the machine has noted the newest state."""
        self.handles.append(self.open())
        while self.handles:
            self.handles.pop().close()

    @rule(target=copies)
    def copy(self) -> tuple[int, bytes]:
        self.handle(0)
        return self.model.entries, self.path.read_bytes()

    @rule(copy=copies)
    def an_old_copy_is_put_back(self, copy: tuple[int, bytes]) -> None:
        """It is refused by the machine's note, and by an anchor."""
        anchor = self.handle(0).anchor()
        self.leave()
        newest = self.path.read_bytes()
        self.path.write_bytes(copy[1])
        found, error = outcome(self.open)
        with Ledger(SqliteStore(self.path)) as unseen:
            verdict = unseen.verify(anchor)
        if copy[0] < self.model.entries:
            assert found == "LedgerDamaged"
            assert "an older copy was put back" in str(error)
            assert "an older copy was put back" in verdict.findings[0]
            self.steps["old copy refused"] += 1
        else:
            error.close()
            assert verdict
        self.path.write_bytes(newest)

    @rule(copy=copies, h=HANDLES)
    def an_old_copy_is_written_over_an_open_ledger(self, copy: tuple[int, bytes], h: int) -> None:
        """Whoever has it open notices; a new handle goes on when the newest is back."""
        if copy[0] < self.model.entries:
            ledger = self.handle(h)
            assert ledger.anchor().count - self.checkpoints(h) == self.model.entries
            newest = self.path.read_bytes()
            self.path.write_bytes(copy[1])
            assert (
                outcome(lambda: ledger.charge(pure(0), Request("while it is old", "q1")))[0]
                == "LedgerDamaged"
            )
            self.path.write_bytes(newest)
            self.leave()
            self.steps["old copy under an open ledger"] += 1

    @rule()
    def the_file_is_gone_for_a_while(self) -> None:
        self.leave()
        aside = self.path.rename(self.path.with_suffix(".aside"))
        assert outcome(self.open)[0] == "LedgerUnavailable"
        assert not self.path.exists()
        aside.rename(self.path)
        self.steps["file gone"] += 1


def _run(
    machine: Callable[[], Histories], examples: int, length: int, **options: Any
) -> Counter[str]:
    """Random histories, and how often what happened in them."""
    Histories.steps.clear()
    checks = list(HealthCheck)
    chosen = settings(
        max_examples=examples,
        stateful_step_count=length,
        deadline=None,
        suppress_health_check=checks,
        **options,
    )
    run_state_machine_as_test(machine, settings=chosen)  # type: ignore[arg-type]  # it takes what makes one, too
    print(f"states as in the model, and what led there: {dict(sorted(Histories.steps.items()))}")
    return Histories.steps


OUTCOMES = {
    "charge: ok",
    "charge: again",
    "charge: BudgetExceeded",
    "charge: RequestRefused",
    "settle: ok",
    "verify",
}
CRASHES = {"crash after a charge", "crash within a transaction"}
COPIES = {"old copy refused", "old copy under an open ledger", "file gone"}


def test_a_ledger_in_memory_does_what_the_model_does() -> None:
    assert set(_run(MemoryHistories, 40, 50, derandomize=True)) >= OUTCOMES


def test_a_ledger_in_a_file_does_what_the_model_does() -> None:
    assert set(_run(SqliteHistories, 20, 50, derandomize=True)) >= {"charge: ok"} | CRASHES | COPIES


def test_a_ledger_in_postgres_does_what_the_model_does(postgres_server: PostgresServer) -> None:
    assert set(_run(_in_postgres(postgres_server), 5, 50, derandomize=True)) >= CRASHES


@pytest.mark.slow
def test_a_ledger_in_memory_does_what_the_model_does_for_long() -> None:
    assert _run(MemoryHistories, 700, 100)["states"] > 62_000


@pytest.mark.slow
def test_a_ledger_in_a_file_does_what_the_model_does_for_long() -> None:
    assert _run(SqliteHistories, 470, 100)["states"] > 38_000


@pytest.mark.slow
def test_a_ledger_in_postgres_does_what_the_model_does_for_long(
    postgres_server: PostgresServer,
) -> None:
    assert _run(_in_postgres(postgres_server), 50, 50)["states"] > 2_000


def _in_postgres(server: PostgresServer) -> Callable[[], Histories]:
    def machine() -> Histories:
        made = DurableHistories()
        made.place = server.address(f"model {uuid.uuid4().hex}")
        return made

    return machine


def test_a_ledger_that_refunds_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The model can tell: a ledger that takes a forfeited charge out of the sum does not pass."""

    class Generous(State):
        @property
        def spent(self) -> Charge:
            kept = (
                payment.receipt.charge
                for payment in self.payments.values()
                if payment.status != "forfeited"
            )
            return sum(kept, NOTHING)

    monkeypatch.setattr(journal, "State", Generous)
    with pytest.raises(AssertionError):
        _run(MemoryHistories, 100, 30, phases=[Phase.generate])

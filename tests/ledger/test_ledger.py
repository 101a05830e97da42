"""What a reviewer once broke: forks, interrupts, long fractions, hostile entries, and who may read the file."""

from __future__ import annotations

import os
import stat
import threading
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

import sordino as so
from ledger.visits import declare, pay, pure, spent
from sordino.errors import BudgetExceeded, LedgerDamaged, LedgerMismatch, LedgerUnavailable
from sordino.ledger import old_entries
from sordino.ledger.chain import START, Entry, Link, Row
from sordino.ledger.ledger import Ledger
from sordino.ledger.receipt import Request
from sordino.ledger.state import State
from sordino.ledger.terms import Terms
from sordino.ledger.verify import Verdict, verify_rows
from sordino.query.dataset import Dataset

TRUE_TERMS = Terms.of


def test_a_new_ledger_is_readable_for_its_owner_only(tmp_path: Path) -> None:
    with Ledger.open(declare(tmp_path)) as ledger:
        assert stat.S_IMODE(Path(ledger.place).stat().st_mode) == 0o600


def test_sums_stay_short_whatever_denominators_are_chosen(tmp_path: Path) -> None:
    with Ledger.open(declare(tmp_path)) as ledger:
        total = Fraction(0)
        for i in range(40):
            # no two have a common factor worth naming
            amount = Fraction(1, 10**6 + 2 * i + 1) * Fraction(2**900, 3**570)
            pay(ledger, f"r{i}", amount)
            total += amount
        # rounded up, by next to nothing
        assert total <= spent(ledger) < total + Fraction(1, 10**60)
        assert spent(ledger).denominator.bit_length() < 400
        assert ledger.verify()


def test_thirds_and_floats_are_exact(tmp_path: Path) -> None:
    with Ledger.open(declare(tmp_path, 3)) as ledger:
        for i in range(3):
            pay(ledger, f"third {i}", "1/3")
        for i in range(10):
            pay(ledger, f"tenth {i}", "1/10")
        pay(ledger, "float", Fraction(0.1))
        assert spent(ledger) == 2 + Fraction(0.1)


def in_child(action: object) -> int:
    """The exit code of a forked child that runs an action: 0 if it returned, 7 if the ledger refused, 8 if damaged."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            assert callable(action)
            action()
            code = 0
        except LedgerUnavailable:
            code = 7
        except LedgerDamaged:
            code = 8
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_a_child_does_not_wait_for_a_thread_that_it_does_not_have(tmp_path: Path) -> None:
    with Ledger.open(declare(tmp_path)) as ledger:
        pay(ledger, "before", "1/10")
        held, done = threading.Event(), threading.Event()

        def hold() -> None:
            with ledger._journal.lock():
                held.set()
                done.wait(60)

        thread = threading.Thread(target=hold)
        thread.start()
        held.wait(60)
        try:
            code = in_child(lambda: pay(ledger, "child", "1/10"))
        finally:
            done.set()
            thread.join()
        assert code == 0
        assert [p.receipt.request_id for p in ledger.payments] == ["before", "child"]
        assert ledger.verify()


def test_a_ledger_in_memory_is_not_spent_twice_by_a_child() -> None:
    columns = {"age": {"type": "int", "min": 0, "max": 110}}
    ledger = Ledger.open(Dataset("v.csv", unit="row", columns=columns, budget=so.Budget(1)))
    assert in_child(lambda: pay(ledger, "child", "1/2")) == 7
    pay(ledger, "parent", 1)
    with pytest.raises(BudgetExceeded):
        pay(ledger, "more", "1/100")


def test_an_interrupt_while_entries_are_read_is_not_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = declare(tmp_path)
    with Ledger.open(data) as one, Ledger.open(data) as other:
        for i in range(3):
            pay(other, f"r{i}", "1/10", b"x")
        read, calls = State.read, iter(range(100))

        def interrupted(self: State, entry: Entry, hash_: str, *, strictly: bool = False) -> None:
            read(self, entry, hash_, strictly=strictly)
            if next(calls) == 2:
                raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(State, "read", interrupted)
            with pytest.raises(KeyboardInterrupt):
                _ = one.payments
        assert spent(one) == Fraction(3, 10)
        pay(one, "after", "7/10")
        assert one.verify()


def chained(ledger: Ledger, *entries: tuple[str, dict[str, object]]) -> list[Row]:
    """The rows of a ledger with further ones behind them, hashes and all, as a forger would write them."""
    rows = list(ledger._journal.store.rows())
    link = Link(rows[-1].sequence, rows[-1].hash)
    for kind, facts in entries:
        rows.append(Entry(link.sequence + 1, link.hash, kind, "", facts).row)
        link = Link(rows[-1].sequence, rows[-1].hash)
    return rows


AMOUNTS = [
    "1e999999999",
    "1e-30000000",
    "0.5",
    "1/0",
    "-1",
    "2/4",
    " 1",
    "1/",
    "",
    "+1",
    "\u0661",
    "1" * 5000,
    1,
    0.5,
    True,
    [],
]


def forged(
    ledger: Ledger, *, asked: str = "q", recorded: str = "q", pure: object = "1/4"
) -> Verdict:
    """What is found of a chain with one more charge: for a question, recorded as another, of an amount."""
    charge = {"pure": pure, "mu_squared": None, "rho": None, "delta": "0"}
    facts = {
        "request": "r",
        "body": Request("r", asked).body,
        "question": recorded,
        "offer": "",
        "analyst": None,
    }
    return verify_rows(chained(ledger, ("charge", {**facts, "sources": {}, "charge": charge})))


@pytest.mark.parametrize("amount", AMOUNTS, ids=lambda a: str(a)[:12])
def test_amounts_that_are_no_fractions_are_found_at_once(tmp_path: Path, amount: object) -> None:
    with Ledger.open(declare(tmp_path)) as ledger:
        assert forged(ledger)
        assert forged(ledger, pure=amount).findings == ("entry 2 lacks facts of its kind",)


def test_a_question_that_was_exchanged_is_found(tmp_path: Path) -> None:
    with Ledger.open(declare(tmp_path)) as ledger:
        assert forged(ledger, asked="SELECT 1", recorded="SELECT 1")
        found = forged(ledger, asked="SELECT 1", recorded="SELECT 2").findings
        assert found == ("entry 2 has a question that does not fit its digest",)


def test_a_forged_charge_beyond_the_cap_is_found(tmp_path: Path) -> None:
    with Ledger.open(declare(tmp_path)) as ledger:
        assert forged(ledger, pure="1")
        assert forged(ledger, pure="5/4").findings == ("entry 2 charges more than was left",)


def test_a_deeply_nested_line_is_no_entry() -> None:
    text = "[" * 200_000
    assert verify_rows([Row(1, text, START.hash)]).findings[-1] == "entry 1 is not an entry"


def test_what_is_granted_is_what_was_checked(tmp_path: Path) -> None:
    """A charge that is rounded up when written down must fit as it is written."""
    with Ledger.open(declare(tmp_path)) as ledger:
        odd = Fraction(3**400, 3**400 * 2 + 1)  # a hair below one half, off the grid
        pay(ledger, "a", odd)
        with pytest.raises(BudgetExceeded):
            ledger.charge(pure(1 - odd), Request("b", "q"))
        pay(ledger, "c", 1 - spent(ledger))
        assert spent(ledger) == 1
        assert ledger.verify()


def test_a_budget_off_the_grid_is_not_exceeded_by_rounding() -> None:
    """Rounded up when written down, a charge of the whole budget is more than the budget."""
    odd = Fraction(3**400, 3**400 * 2 + 1)
    ledger = Ledger.open(
        Dataset("v.csv", unit="row", columns={"age": {"type": "int"}}, budget=so.Budget(odd))
    )
    with pytest.raises(BudgetExceeded):
        pay(ledger, "all", odd)
    pay(ledger, "nearly all", Fraction(49, 100))
    assert spent(ledger) <= odd
    assert ledger.verify()


def test_a_child_does_not_believe_an_old_copy_that_was_put_back(tmp_path: Path) -> None:
    """It reads the ledger from the beginning, and must still know how far its parent had seen it."""
    with Ledger.open(declare(tmp_path)) as ledger:
        pay(ledger, "a", "1/2")
        old = Path(ledger.place).read_bytes()
        pay(ledger, "b", "1/2")
        Path(ledger.place).write_bytes(old)
        assert in_child(lambda: pay(ledger, "c", "1/2")) == 8


@pytest.mark.parametrize("checkpointed", [False, True])
def test_a_ledger_of_other_bounds_is_recognised_and_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, checkpointed: bool
) -> None:
    """Begun when max_rows meant rows within a group: refused in words,
    until the owner puts the declaration in force.
    """
    if checkpointed:
        monkeypatch.setattr(old_entries, "EVERY", 4)
        monkeypatch.setattr(old_entries, "_BY_ANALYST", 0)
    dataset = declare(tmp_path, unit="pid")
    with monkeypatch.context() as before:
        before.setattr(
            Terms, "of", staticmethod(lambda data: replace(TRUE_TERMS(data), max_rows="group"))
        )
        with Ledger.open(dataset) as ledger:
            assert "max_rows" not in "".join(ledger.export())
            for i in range(5):
                pay(ledger, f"old {i}", "1/100", b"42")
    with pytest.raises(
        LedgerMismatch,
        match="begun when max_rows was how many rows of one person count within a group",
    ):
        so.Session(dataset)
    with Ledger.open(dataset, as_declared=False) as ledger:
        assert ledger.terms.max_rows == "group"
        assert "max_rows within a group" in str(ledger.terms)
        assert ledger.declare(Terms.of(dataset))
        assert spent(ledger) == Fraction(5, 100)
        assert ledger.verify()
    with so.Session(dataset) as session:
        assert session.ledger.terms.max_rows == "answer"
    with monkeypatch.context() as before:  # of rows that are persons it says nothing
        before.setattr(
            Terms, "of", staticmethod(lambda data: replace(TRUE_TERMS(data), max_rows="group"))
        )
        Ledger.open(declare(tmp_path / "rows", rows="1 2 3")).close()
    so.Session(declare(tmp_path / "rows", rows="1 2 3")).close()

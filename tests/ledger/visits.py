"""A small declared table, charges on it, and all that its ledger says: what many tests of the ledger share."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from sordino.accounting.charge import Charge
from sordino.ledger.ledger import Ledger
from sordino.ledger.receipt import Receipt, Request
from sordino.ledger.state import Payment
from sordino.ledger.terms import Allowance, Terms
from sordino.privacy.budget import Budget
from sordino.query.dataset import Dataset

__all__ = [
    "Told",
    "declare",
    "fill",
    "pay",
    "pure",
    "quick_folder",
    "script",
    "spent",
    "terms",
    "told",
]

_OFFER = "epsilon"
_DECLARATION = """[budget]
epsilon = {epsilon}

[tables.visits]
source = "{source}"
unit = "{unit}"

[tables.visits.columns]
age = {{ type = "int", min = 0, max = 110 }}
"""


def script(name: str, job: dict[str, Any], timeout: float) -> dict[str, Any]:
    """Run a module beside this one as a process of its own; told a job, it prints what it found, both as JSON."""
    path = Path(__file__).with_name(f"{name}.py")
    places = [str(path.parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
    done = subprocess.run(
        [sys.executable, str(path), json.dumps(job)], env={**os.environ, "PYTHONPATH": os.pathsep.join(places)},
        capture_output=True, text=True, timeout=timeout, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@contextmanager
def quick_folder() -> Iterator[Path]:
    """A folder in memory where the system has such a place, for ledgers that need not survive anything."""
    memory = Path("/dev/shm")
    with TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as folder:
        yield Path(folder)


def declare(
    folder: Path,
    epsilon: int | float = 1,
    *,
    name: str = "visits",
    unit: str = "row",
    rows: str = "31 47 65",
) -> Dataset:
    """A declaration file and its table in a folder; rows that are there already stay."""
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "visits.csv").exists():
        (folder / "visits.csv").write_text(
            "\n".join(["age,pid", *(f"{age},{age}" for age in rows.split()), ""])
        )
    (folder / f"{name}.toml").write_text(
        _DECLARATION.format(epsilon=epsilon, source="visits.csv", unit=unit)
    )
    return Dataset.load(folder / f"{name}.toml")


def terms(dataset: Dataset, epsilon: int | Fraction) -> Terms:
    """What a dataset declares, with another epsilon."""
    return Terms(Terms.of(dataset).lineage, Allowance(Budget(epsilon)))


def pure(amount: int | str | Fraction) -> Charge:
    """A charge that takes some epsilon and nothing else."""
    return Charge(pure=Fraction(amount))


def pay(
    ledger: Ledger,
    request: str,
    amount: int | str | Fraction,
    answer: bytes | None = None,
    analyst: str | None = None,
) -> Receipt:
    """Charge a question, and store its answer where there is one."""
    receipt = ledger.charge(
        pure(amount), Request(request, f"SELECT '{request}'", _OFFER, analyst)
    ).receipt
    if answer is not None:
        ledger.store(receipt, answer)
    return receipt


def fill(ledger: Ledger) -> None:
    """An entry of every kind: answered, forfeited and open charges,
    sub-budgets given and taken back, another budget.
    """
    pay(ledger, "first", "1/10", b"forty-two")
    ledger.forfeit(pay(ledger, "failed", "1/20"))
    ledger.allot("ana", Budget(Fraction(1, 2)))
    ledger.allot("*", Budget(Fraction(1, 4)))
    pay(ledger, "second", "1/8", b"another answer", "ana")
    ledger.declare(Terms(ledger.terms.lineage, Allowance(Budget(2))))
    pay(ledger, "open", "1/16", analyst="bea")
    ledger.allot("*", None)
    pay(ledger, "last", "1/32", b"the last answer", "ana")


def spent(ledger: Ledger) -> Fraction:
    """The epsilon of all charges."""
    return sum(
        (payment.receipt.charge.pure or Fraction(0) for payment in ledger.payments), Fraction(0)
    )


class Told(NamedTuple):
    """All that a ledger says."""

    id: str
    terms: Terms
    allotments: tuple[tuple[str, Allowance], ...]
    payments: tuple[Payment, ...]
    answers: tuple[bytes | None, ...]


def told(ledger: Ledger) -> Told:
    """What a ledger says now; answers as they are given out again to those who asked by `pay`."""
    payments = ledger.payments
    answers = tuple(
        _again(ledger, payment) if payment.status == "answered" else None for payment in payments
    )
    return Told(
        ledger.id, ledger.terms, tuple(sorted(ledger.allotments.items())), payments, answers
    )


def _again(ledger: Ledger, payment: Payment) -> bytes | None:
    receipt = payment.receipt
    paid = ledger.stored(Request(receipt.request_id, receipt.question, _OFFER, receipt.analyst))
    return None if paid is None else paid.answer

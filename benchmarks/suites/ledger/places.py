"""Ledgers to measure: of a dataset without data, in a folder on the disk of the repository."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

from sordino.accounting.charge import Charge
from sordino.ledger.ledger import Ledger
from sordino.ledger.receipt import Request
from sordino.privacy.budget import Budget
from sordino.query.dataset import Dataset

QUESTION = "SELECT ward, COUNT(*) AS n, AVG(cost) AS cost FROM visits WHERE age >= 65 GROUP BY ward"
CHARGE = Charge(Fraction(1, 100), Fraction(14963632926385, 10**18), Fraction(4837418035959, 10**18))
ANSWER = b"x" * 1000
"""About the size of an answer with six groups and two numbers."""


@contextmanager
def folder() -> Iterator[Path]:
    """A folder on the same disk as the repository, for a disk in memory would make every sync free."""
    path = Path(tempfile.mkdtemp(prefix=".ledger-", dir=Path(__file__).parent))
    os.environ["SORDINO_STATE"] = str(path / "state")
    try:
        yield path
    finally:
        shutil.rmtree(path)


def dataset(place: str | None, source: str = "visits.parquet") -> Dataset:
    columns = {"age": {"type": "int", "min": 0, "max": 110}}
    return Dataset(source, unit="row", columns=columns, budget=Budget(10**6, 1e-6), ledger=place)


def cycle(ledger: Ledger, number: int) -> None:
    """What one query does: the charge, made durable, and then the answer."""
    paid = ledger.charge(CHARGE, Request(f"request {number}", QUESTION, "epsilon=1/100"))
    ledger.store(paid.receipt, ANSWER)

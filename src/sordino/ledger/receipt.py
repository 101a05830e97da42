"""The proof that an answer was paid for before its data were read."""

from __future__ import annotations

from dataclasses import dataclass

from sordino.accounting.charge import Charge

__all__ = ["Receipt"]


@dataclass(frozen=True)
class Receipt:
    """The number of the charge in its ledger, what was charged, and for which question."""

    number: int
    charge: Charge
    question: str

"""The meter of one session, in memory: what was spent is forgotten when the session ends.

Charging comes before data are read, and nothing is ever refunded.
"""

from __future__ import annotations

import threading

from sordino.accounting.charge import Charge
from sordino.accounting.filters import TwoMeterFilter
from sordino.ledger.receipt import Receipt

__all__ = ["MemoryLedger"]


class MemoryLedger:
    """A two-meter filter behind a lock, and the receipts it gave."""

    def __init__(self, meter: TwoMeterFilter) -> None:
        self._lock = threading.Lock()
        self._meter = meter
        self._receipts: list[Receipt] = []

    @property
    def meter(self) -> TwoMeterFilter:
        """What may still be spent."""
        return self._meter

    @property
    def receipts(self) -> tuple[Receipt, ...]:
        """All charges so far."""
        return tuple(self._receipts)

    def charge(self, charge: Charge, question: str) -> Receipt:
        """Debit a charge, or BudgetExceeded and nothing debited."""
        with self._lock:
            self._meter = self._meter.spend(charge)
            receipt = Receipt(len(self._receipts) + 1, charge, question)
            self._receipts.append(receipt)
            return receipt

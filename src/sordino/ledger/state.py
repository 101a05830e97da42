"""What the entries of a ledger say together: the terms in force, what was spent and by whom, and what became of it.

A state is a fold over the entries; nothing else is remembered, so nothing can disagree with the chain.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from sordino.accounting.charge import NOTHING, Charge
from sordino.accounting.filters import TwoMeterFilter
from sordino.accounting.sub_budget import SubBudget
from sordino.errors import InvalidInput, SordinoError
from sordino.ledger.chain import START, Broken, Entry, Link, Row
from sordino.ledger.receipt import Receipt
from sordino.ledger.terms import Allowance, Terms, read_charge

__all__ = ["ANYBODY", "Payment", "State", "Status"]

Status: TypeAlias = Literal["answered", "forfeited", "unanswered"]
ANYBODY = "*"
"""The name under which an owner gives a sub-budget to every analyst without one of their own."""


@dataclass(frozen=True)
class Payment:
    """A charge and what became of it: answered; forfeited, where it is known to have failed; else unanswered.

    A charge stays unanswered while its query runs, and for good if its process ended before an answer was stored.
    """

    receipt: Receipt
    body: str
    sources: Mapping[str, str]
    status: Status = "unanswered"
    settled: int = 0
    """The number of the entry that says so."""
    answer: str = ""
    """The digest of the stored answer."""


class State:
    """The meaning of a chain, entry by entry."""

    def __init__(self) -> None:
        self.link: Link = START
        self.id = ""
        self.key_digest = ""
        self.terms: Terms | None = None
        self.spent = NOTHING
        self.allotments: dict[str, Allowance] = {}
        self.spent_by: dict[str | None, Charge] = {}
        self.payments: dict[int, Payment] = {}
        self.requests: dict[str, int] = {}
        self.hashes: list[str] = []

    def read(self, row: Row, *, strictly: bool = False) -> None:
        """Take in the next row of a checked chain; `strictly` also asks whether each charge was within the budget."""
        entry = Entry.of(row)
        try:
            match entry.kind:
                case "declare":
                    self._declare(entry, row)
                case "charge":
                    self._charge(entry, row, strictly=strictly)
                case "answer":
                    self._settle(entry, "answered")
                case "forfeit":
                    self._settle(entry, "forfeited")
                case "allot":
                    self._allot(entry.facts)
                case "accept":
                    pass
                case _:
                    raise Broken(f"entry {entry.sequence} is of a kind that this version of Sordino does not know")
        except (KeyError, ValueError, TypeError, ZeroDivisionError, AttributeError, SordinoError):
            raise Broken(f"entry {entry.sequence} lacks facts of its kind") from None
        self.link = Link(row.sequence, row.hash)
        self.hashes.append(row.hash)

    def holds(self, link: Link) -> bool:
        """Whether the chain once ended like this."""
        return 0 < link.sequence <= len(self.hashes) and self.hashes[link.sequence - 1] == link.hash

    def _declare(self, entry: Entry, row: Row) -> None:
        self.terms = Terms.read(entry.facts)
        if entry.sequence == 1:
            self.id, self.key_digest = row.hash, str(entry.facts["key"])

    def _charge(self, entry: Entry, row: Row, *, strictly: bool) -> None:
        facts = entry.facts
        request, analyst, charge = str(facts["request"]), facts["analyst"], read_charge(facts["charge"])
        if self.terms is None or request in self.requests:
            raise Broken(f"entry {entry.sequence} charges a request that was charged before")
        if strictly and not self.meter(analyst).allows(charge):
            raise Broken(f"entry {entry.sequence} charges more than was left")
        receipt = Receipt(entry.sequence, charge, str(facts["question"]), request, analyst, entry.time, row.hash)
        self.payments[entry.sequence] = Payment(receipt, str(facts["body"]), dict(facts["sources"]))
        self.requests[request] = entry.sequence
        self.spent += charge
        self.spent_by[analyst] = self.spent_by.get(analyst, NOTHING) + charge

    def _settle(self, entry: Entry, status: Status) -> None:
        payment = self.payments.get(entry.facts["charge"])
        if payment is None or payment.status != "unanswered":
            raise Broken(f"entry {entry.sequence} answers a charge that is not open")
        answer = str(entry.facts["answer"]) if status == "answered" else ""
        self.payments[payment.receipt.number] = replace(payment, status=status, settled=entry.sequence, answer=answer)

    def _allot(self, facts: Mapping[str, Any]) -> None:
        if facts["allowance"] is None:
            self.allotments.pop(str(facts["analyst"]), None)
        else:
            self.allotments[str(facts["analyst"])] = Allowance.of(facts["allowance"])

    def meter(self, analyst: str | None = None) -> TwoMeterFilter:
        """What may still be spent by an analyst: within the whole budget, and within a sub-budget where there are any."""
        if self.terms is None:
            raise Broken("the first entry does not declare a budget")
        whole = self.terms.allowance.meter(self.spent)
        if not self.allotments:
            return whole
        own = self.allotments.get(analyst or ANYBODY) or self.allotments.get(ANYBODY)
        if own is None:
            who = "no analyst" if analyst is None else f"analyst {analyst!r}"
            rule = "this ledger gives sub-budgets, and there is none for them"
            raise InvalidInput(who, rule, "Ask as one who has one, or let the owner run: sordino budget allot.")
        return SubBudget(own.budget, own.reserved_delta, self.spent_by.get(analyst, NOTHING), whole)

    def payment(self, request: str) -> Payment | None:
        """The charge of a request id."""
        number = self.requests.get(request)
        return None if number is None else self.payments[number]

    @property
    def forfeited(self) -> int:
        """How many charges have no answer and, unless their query still runs, never will."""
        return sum(payment.status != "answered" for payment in self.payments.values())

"""What the entries of a ledger say together: the terms in force, what was spent and by whom, and what became of it.

A state is a fold over the entries; nothing else is remembered, so nothing can disagree with the chain.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from sordino.accounting.charge import NOTHING, Charge
from sordino.accounting.filters import TwoMeterFilter
from sordino.accounting.sub_budget import SubBudget
from sordino.errors import InvalidInput, SordinoError
from sordino.ledger.chain import START, Broken, Entry, Link
from sordino.ledger.receipt import Receipt, Request
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
    size: int = 0


class State:
    """The meaning of a chain, entry by entry."""

    def __init__(self) -> None:
        self.link: Link = START
        self.id = ""
        self.key_digest = ""
        self.terms: Terms | None = None
        self.allotments: dict[str, Allowance] = {}
        self._spent = NOTHING
        self._spent_by: dict[str | None, Charge] = {}
        self._due: Counter[tuple[str | None, int]] = Counter()
        self._charges: dict[int, Charge] = {}
        self.payments: dict[int, Payment] = {}
        self.requests: dict[str, int] = {}
        self.hashes: list[str] = []

    def read(self, entry: Entry, hash_: str, *, strictly: bool = False) -> None:
        """Take in the next entry of a checked chain; `strictly` also asks whether each charge was within the budget."""
        if self.terms is None and entry.kind != "declare":
            raise Broken("the first entry does not declare a budget")
        try:
            shape = _SHAPES.get(entry.kind)
            if shape is None:
                raise Broken(f"entry {entry.sequence} is of a kind that this version of Sordino does not know")
            _expect(entry, shape)
            match entry.kind:
                case "declare":
                    self._declare(entry, hash_)
                case "charge":
                    self._charge(entry, hash_, strictly=strictly)
                case "answer" | "forfeit":
                    self._settle(entry)
                case "allot":
                    self._allot(entry.facts)
        except (KeyError, ValueError, TypeError, ZeroDivisionError, AttributeError, SordinoError):
            raise Broken(f"entry {entry.sequence} lacks facts of its kind") from None
        self.link = Link(entry.sequence, hash_)
        self.hashes.append(hash_)

    def holds(self, link: Link) -> bool:
        """Whether the chain once ended like this."""
        return 0 < link.sequence <= len(self.hashes) and self.hashes[link.sequence - 1] == link.hash

    def _declare(self, entry: Entry, hash_: str) -> None:
        first = entry.sequence == 1
        if first != ("key" in entry.facts) or first != ("name" in entry.facts):
            raise Broken(f"entry {entry.sequence} is not the kind of declaration that belongs there")
        self.terms = Terms.read(entry.facts)
        if first:
            self.id, self.key_digest = hash_, entry.facts["key"]

    def _charge(self, entry: Entry, hash_: str, *, strictly: bool) -> None:
        facts = entry.facts
        request, analyst, charge = facts["request"], facts["analyst"], read_charge(facts["charge"])
        if self.terms is None or request in self.requests:
            raise Broken(f"entry {entry.sequence} charges a request that was charged before")
        if strictly:
            if Request(request, facts["question"], facts["offer"], analyst).body != facts["body"]:
                raise Broken(f"entry {entry.sequence} has a question that does not fit its digest")
            if not self.meter(analyst).allows(charge):
                raise Broken(f"entry {entry.sequence} charges more than was left")
        receipt = Receipt(entry.sequence, charge, facts["question"], request, analyst, entry.time, hash_)
        self.payments[entry.sequence] = Payment(receipt, facts["body"], facts["sources"])
        self.requests[request] = entry.sequence
        self._charges[id(charge)] = charge
        self._due[analyst, id(charge)] += 1

    def _settle(self, entry: Entry) -> None:
        payment = self.payments.get(entry.facts["charge"])
        if payment is None or payment.status != "unanswered":
            raise Broken(f"entry {entry.sequence} answers a charge that is not open")
        answered = entry.kind == "answer"
        kept = (entry.facts["answer"], entry.facts["size"]) if answered else ("", 0)
        self.payments[payment.receipt.number] = Payment(
            payment.receipt, payment.body, payment.sources, "answered" if answered else "forfeited", entry.sequence, *kept
        )

    def _allot(self, facts: Mapping[str, Any]) -> None:
        if facts["allowance"] is None:
            self.allotments.pop(facts["analyst"], None)
        else:
            self.allotments[facts["analyst"]] = Allowance.of(facts["allowance"])

    def _add_up(self) -> None:
        """Bring the sums up to date: equal charges, of which there are many, are multiplied and not added one by one."""
        if not self._due:
            return
        total, by = self._spent, dict(self._spent_by)
        for (analyst, known), count in self._due.items():
            amount = self._charges[known] * count
            total += amount
            by[analyst] = by.get(analyst, NOTHING) + amount
        # in one step: an interrupt must not leave charges both added and due
        self._spent, self._spent_by, self._due, self._charges = total, by, Counter(), {}

    @property
    def spent(self) -> Charge:
        """The sum of all charges."""
        self._add_up()
        return self._spent

    def spent_by(self, analyst: str | None) -> Charge:
        """The sum of the charges of an analyst."""
        self._add_up()
        return self._spent_by.get(analyst, NOTHING)

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
        return SubBudget(own.budget, own.reserved_delta, self.spent_by(analyst), whole)

    def payment(self, request: str) -> Payment | None:
        """The charge of a request id."""
        number = self.requests.get(request)
        return None if number is None else self.payments[number]

    @property
    def forfeited(self) -> int:
        """How many charges have no answer and, unless their query still runs, never will."""
        return sum(payment.status != "answered" for payment in self.payments.values())


_NONE = type(None)
_SHAPES: Mapping[str, Mapping[str, tuple[type, ...]]] = {
    "declare": {"lineage": (list,), "allowance": (dict,)},
    "charge": {
        "request": (str,), "body": (str,), "question": (str,), "offer": (str,), "analyst": (str, _NONE), "charge": (dict,),
        "sources": (dict,),
    },
    "answer": {"charge": (int,), "answer": (str,), "size": (int,)},
    "forfeit": {"charge": (int,)},
    "allot": {"analyst": (str,), "allowance": (dict, _NONE)},
    "accept": {"seen": (dict,)},
}  # fmt: skip
_PARTS: Mapping[str, frozenset[str]] = {
    "charge": frozenset(("pure", "mu_squared", "rho", "delta")),
    "allowance": frozenset(("epsilon", "delta", "reserved_delta")),
}


def _expect(entry: Entry, shape: Mapping[str, tuple[type, ...]]) -> None:
    """Refuse facts that are not exactly those of their kind: what nobody reads nobody should be able to write."""
    names = entry.facts.keys() - ({"key", "name"} if entry.kind == "declare" else set())
    if names != shape.keys() or not all(type(entry.facts[name]) in types for name, types in shape.items()):
        raise TypeError
    for name, parts in _PARTS.items():
        part = entry.facts.get(name)
        if type(part) is dict and part.keys() != parts:
            raise TypeError
    if not all(type(x) is str for x in entry.facts.get("sources", {}).values()):
        raise TypeError

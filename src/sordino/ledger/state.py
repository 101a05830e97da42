"""What the entries of a ledger say together: the terms in force, what was spent and by whom, and what became of it.

A state is a fold over the entries; nothing else is remembered, so nothing can disagree with the chain. It may start at
a checkpoint, which holds the sums of all entries before it; what single ones say is then read when somebody asks
(past.py).
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, TypeAlias

from sordino.accounting.charge import NOTHING, Charge
from sordino.accounting.filters import TwoMeterFilter
from sordino.accounting.sub_budget import SubBudget
from sordino.errors import InvalidInput, SordinoError
from sordino.ledger.chain import START, Broken, Entry, Link, canonical
from sordino.ledger.receipt import Receipt, Request, request_key
from sordino.ledger.terms import Allowance, Terms, charge_facts, read_charge

__all__ = ["ANYBODY", "Earlier", "Payment", "State", "Status", "Tally"]

Status: TypeAlias = Literal["answered", "forfeited", "unanswered"]
ANYBODY = "*"
"""The name under which an owner gives a sub-budget to every analyst without one of their own."""
_BATCH = 1024
"""How many charges are checked against the budget together."""


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

    @staticmethod
    def of(entry: Entry, hash_: str) -> Payment:
        """The payment that an entry of kind `charge` opens."""
        facts = entry.facts
        charge = read_charge(facts["charge"])
        receipt = Receipt(
            entry.sequence,
            charge,
            facts["question"],
            facts["request"],
            facts["analyst"],
            entry.time,
            hash_,
        )
        return Payment(receipt, facts["body"], facts["sources"])

    def after(self, entry: Entry) -> Payment:
        """The payment after the entry, of kind `answer` or `forfeit`, that settles it."""
        if entry.kind == "forfeit":
            return replace(self, status="forfeited", settled=entry.sequence)
        answer, size = entry.facts["answer"], entry.facts["size"]
        return replace(self, status="answered", settled=entry.sequence, answer=answer, size=size)


@dataclass(frozen=True)
class Tally:
    """The charges of one analyst: how many, how many of them answered, and their sum."""

    charges: int = 0
    answered: int = 0
    spent: Charge = NOTHING


class Earlier(Protocol):
    """Reads single entries up to the checkpoint at which a state started."""

    def holds(self, link: Link) -> bool:
        """Whether the chain once ended like this."""

    def payment(self, number: int) -> Payment | None:
        """The charge with this number, as it was at the checkpoint."""

    def payments(self) -> Iterator[Payment]:
        """The charges, the newest first."""


class State:
    """The meaning of a chain, entry by entry."""

    def __init__(self) -> None:
        self.link: Link = START
        self.start: Link = START
        """The checkpoint from which it was read, else the start of the chain."""
        self.checkpoint: Link = START
        """The last checkpoint."""
        self.id = ""
        self.key_digest = ""
        self.terms: Terms | None = None
        self.allotments: dict[str, Allowance] = {}
        self._spent = NOTHING
        self._spent_by: dict[str | None, Charge] = {}
        self._due: Counter[tuple[str | None, int]] = Counter()
        self._charges: dict[int, Charge] = {}
        self._made: Counter[str | None] = Counter()
        self._answered: Counter[str | None] = Counter()
        self._late: list[list[int]] = []
        self._unchecked: list[Receipt] = []
        self._earlier: Earlier | None = None
        self.payments: dict[int, Payment] = {}
        """The charges since `start`, and older ones that were settled since."""
        self.requests: dict[str, int] = {}
        """The charges since `start` by the names of their requests, `request_key`."""
        self.hashes: list[str] = []

    @staticmethod
    def at(entry: Entry, hash_: str, earlier: Earlier) -> State:
        """The state at a checkpoint that is known to be right."""
        state, facts = State(), entry.facts
        state.link = state.start = state.checkpoint = Link(entry.sequence, hash_)
        state.id, state.key_digest, state.terms = (
            facts["ledger"],
            facts["key"],
            Terms.read(facts["terms"]),
        )
        state.allotments = {name: Allowance.of(part) for name, part in facts["allotments"].items()}
        for analyst, made, answered, charge in facts["tallies"]:
            state._made[analyst], state._answered[analyst] = made, answered
            state._spent_by[analyst] = read_charge(charge)
            state._spent += state._spent_by[analyst]
        state._earlier = earlier
        return state

    def summary(self) -> dict[str, Any]:
        """The facts of a checkpoint that would follow now: all sums, and older charges that were settled since."""
        if self.terms is None:
            raise Broken("the first entry does not declare a budget")
        by_name = sorted(
            self.tallies.items(), key=lambda each: (each[0] is not None, each[0] or "")
        )
        before = (
            None
            if self.checkpoint == START
            else {"sequence": self.checkpoint.sequence, "hash": self.checkpoint.hash}
        )
        return {
            "ledger": self.id, "key": self.key_digest, "terms": self.terms.facts, "before": before, "late": self._late,
            "allotments": {name: part.facts for name, part in self.allotments.items()},
            "tallies": [[name, tally.charges, tally.answered, charge_facts(tally.spent)] for name, tally in by_name],
        }  # fmt: skip

    def read(self, entry: Entry, hash_: str, *, strictly: bool = False) -> None:
        """Take in the next entry of a checked chain.

        `strictly` also asks whether each charge was within the budget: some at once, so `check_budget` ends the
        reading.
        """
        if self.terms is None and entry.kind != "declare":
            raise Broken("the first entry does not declare a budget")
        if strictly and (entry.kind in ("declare", "allot") or len(self._unchecked) >= _BATCH):
            self.check_budget()
        try:
            shape = _SHAPES.get(entry.kind)
            if shape is None:
                raise Broken(
                    f"entry {entry.sequence} is of a kind that this version of Sordino does not know"
                )
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
                case "checkpoint":
                    self._compare(entry, hash_, strictly=strictly)
        except (KeyError, ValueError, TypeError, ZeroDivisionError, AttributeError, SordinoError):
            raise Broken(f"entry {entry.sequence} lacks facts of its kind") from None
        self.link = Link(entry.sequence, hash_)
        self.hashes.append(hash_)

    def holds(self, link: Link) -> bool:
        """Whether the chain once ended like this."""
        if self._earlier is not None and link.sequence <= self.start.sequence:
            return self._earlier.holds(link)
        place = link.sequence - self.start.sequence
        return 0 < place <= len(self.hashes) and self.hashes[place - 1] == link.hash

    def _declare(self, entry: Entry, hash_: str) -> None:
        first = entry.sequence == 1
        if first != ("key" in entry.facts) or first != ("name" in entry.facts):
            raise Broken(
                f"entry {entry.sequence} is not the kind of declaration that belongs there"
            )
        self.terms = Terms.read(entry.facts)
        if first:
            self.id, self.key_digest = hash_, entry.facts["key"]

    def _charge(self, entry: Entry, hash_: str, *, strictly: bool) -> None:
        payment = Payment.of(entry, hash_)
        receipt = payment.receipt
        analyst, charge = receipt.analyst, receipt.charge
        key = request_key(analyst, receipt.request_id)
        if key in self.requests:
            raise Broken(f"entry {entry.sequence} charges a request that was charged before")
        if strictly:
            if (
                Request(receipt.request_id, receipt.question, entry.facts["offer"], analyst).body
                != payment.body
            ):
                raise Broken(f"entry {entry.sequence} has a question that does not fit its digest")
            self._unchecked.append(receipt)
        self.payments[entry.sequence] = payment
        self.requests[key] = entry.sequence
        self._charges[id(charge)] = charge
        self._due[analyst, id(charge)] += 1
        self._made[analyst] += 1

    def _settle(self, entry: Entry) -> None:
        payment = self.payment_at(entry.facts["charge"])
        if payment is None or payment.status != "unanswered":
            raise Broken(f"entry {entry.sequence} answers a charge that is not open")
        number = payment.receipt.number
        self.payments[number] = payment.after(entry)
        self._answered[payment.receipt.analyst] += entry.kind == "answer"
        if number < self.checkpoint.sequence:
            self._late.append([number, entry.sequence])

    def _allot(self, facts: Mapping[str, Any]) -> None:
        if facts["allowance"] is None:
            self.allotments.pop(facts["analyst"], None)
        else:
            self.allotments[facts["analyst"]] = Allowance.of(facts["allowance"])

    def _compare(self, entry: Entry, hash_: str, *, strictly: bool) -> None:
        """A checkpoint is never believed: whoever reads the entries before it adds them up, too."""
        if strictly:
            self.check_budget()  # before the sums are brought up to date
        if canonical(dict(entry.facts)) != canonical(self.summary()):
            raise Broken(f"entry {entry.sequence} sums up other entries than those before it")
        self.checkpoint, self._late = Link(entry.sequence, hash_), []

    def check_budget(self) -> None:
        """Whether each charge that was read strictly fitted into what was left; Broken at the first that did not.

        Sums only grow. So if those after a batch are within one meter of a filter, then so were those after each of its
        charges, and the filter allowed them all. Else they are gone through one by one.
        """
        batch, self._unchecked = self._unchecked, []
        if not batch:
            return
        total, by = self._spent, dict(self._spent_by)
        self._add_up()
        with contextlib.suppress(InvalidInput):  # somebody without a sub-budget
            if all(
                _within(self.meter(analyst)) for analyst in {receipt.analyst for receipt in batch}
            ):
                return
        for receipt in batch:
            analyst, own = receipt.analyst, by.get(receipt.analyst, NOTHING)
            try:
                allowed = self._meter(analyst, total, own).allows(receipt.charge)
            except InvalidInput:
                allowed = False
            if not allowed:
                raise Broken(f"entry {receipt.number} charges more than was left")
            total, by[analyst] = total + receipt.charge, own + receipt.charge

    def _add_up(self) -> None:
        """Bring the sums up to date: equal charges, of which there are many, are multiplied, not added one by one."""
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

    @property
    def tallies(self) -> dict[str | None, Tally]:
        """The charges of each analyst who has any."""
        self._add_up()
        return {
            name: Tally(made, self._answered[name], self._spent_by[name])
            for name, made in self._made.items()
        }

    def meter(self, analyst: str | None = None) -> TwoMeterFilter:
        """What an analyst may still spend: within the whole budget, and within a sub-budget where there are any."""
        return self._meter(analyst, self.spent, self.spent_by(analyst))

    def _meter(self, analyst: str | None, spent: Charge, spent_by: Charge) -> TwoMeterFilter:
        if self.terms is None:
            raise Broken("the first entry does not declare a budget")
        whole = self.terms.allowance.meter(spent)
        if not self.allotments:
            return whole
        own = self.allotments.get(analyst or ANYBODY) or self.allotments.get(ANYBODY)
        if own is None:
            who = "no analyst" if analyst is None else f"analyst {analyst!r}"
            rule = "this ledger gives sub-budgets, and there is none for them"
            raise InvalidInput(
                who, rule, "Ask as one who has one, or let the owner run: sordino budget allot."
            )
        return SubBudget(own.budget, own.reserved_delta, spent_by, whole)

    def payment(self, key: str) -> Payment | None:
        """The charge of a request by its name, `request_key`, if it was made since `start`."""
        number = self.requests.get(key)
        return None if number is None else self.payments[number]

    def payment_at(self, number: int) -> Payment | None:
        """The charge with this number."""
        payment = self.payments.get(number)
        if payment is None and self._earlier is not None and number <= self.start.sequence:
            payment = self._earlier.payment(number)
        return payment

    def newest(self) -> Iterator[Payment]:
        """All charges, the newest first."""
        for number in sorted(self.payments, reverse=True):
            if number > self.start.sequence:
                yield self.payments[number]
        for payment in () if self._earlier is None else self._earlier.payments():
            yield self.payments.get(payment.receipt.number, payment)

    @property
    def forfeited(self) -> int:
        """How many charges have no answer and, unless their query still runs, never will."""
        return self._made.total() - self._answered.total()


def _within(meter: TwoMeterFilter) -> bool:
    """Whether what was spent is within one meter of each filter, and its delta."""
    if isinstance(meter, SubBudget) and meter.whole is not None and not _within(meter.whole):
        return False
    caps, spent = meter.caps, meter.spent
    pairs = zip(spent.meters, caps.meters, strict=True)
    return spent.delta <= caps.delta and any(
        a is not None and b is not None and a <= b for a, b in pairs
    )


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
    "checkpoint": {
        "ledger": (str,), "key": (str,), "terms": (dict,), "before": (dict, _NONE), "late": (list,), "allotments": (dict,),
        "tallies": (list,),
    },
}  # fmt: skip
_PARTS: Mapping[str, frozenset[str]] = {
    "charge": frozenset(("pure", "mu_squared", "rho", "delta")),
    "allowance": frozenset(("epsilon", "delta", "reserved_delta")),
}


def _expect(entry: Entry, shape: Mapping[str, tuple[type, ...]]) -> None:
    """Refuse facts that are not exactly those of their kind: what nobody reads nobody should be able to write."""
    names = entry.facts.keys() - ({"key", "name", "max_rows"} if entry.kind == "declare" else set())
    if names != shape.keys() or not all(
        type(entry.facts[name]) in types for name, types in shape.items()
    ):
        raise TypeError
    for name, parts in _PARTS.items():
        part = entry.facts.get(name)
        if type(part) is dict and part.keys() != parts:
            raise TypeError
    if not all(type(x) is str for x in entry.facts.get("sources", {}).values()):
        raise TypeError

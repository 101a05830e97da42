"""What pays for a run: a charge for the whole of it, and an entry for each stretch of steps,
so that none is taken twice.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from sordino.accounting.charge import NOTHING
from sordino.errors import InvalidInput, RequestRefused
from sordino.learn.run_plan import RunPlan
from sordino.ledger.chain import digest
from sordino.ledger.ledger import Ledger
from sordino.ledger.memory import MemoryStore
from sordino.ledger.opening import first_entry, open_store
from sordino.ledger.place import Place
from sordino.ledger.receipt import Receipt, Request
from sordino.ledger.state import Payment
from sordino.ledger.terms import Allowance, Terms
from sordino.ledger.witness import Witness
from sordino.privacy.budget import Budget
from sordino.privacy.exact import show
from sordino.privacy.neighbors import Neighbors

__all__ = ["Mark", "Payments", "expect_same_promise", "ledger_for"]

_SINGLE = ("row", "example")
"""Units of ledgers that one example is."""


def ledger_for(plan: RunPlan, ledger: Ledger | str | Path | None, budget: Budget | None) -> Ledger:
    """The ledger that pays: the one given, the one of a file with a budget of its own,
    or one in memory for this run.
    """
    if budget is not None and not isinstance(budget, Budget):
        hint = "Pass budget=so.Budget(3, 1e-5)."
        raise InvalidInput(f"budget={show(budget)}", "it must be a Budget", hint)
    if isinstance(ledger, Ledger):
        if budget is not None:
            rule = "this ledger has a budget already, which is what counts"
            raise InvalidInput(f"budget={budget}", rule, "Leave budget out.")
        expect_same_promise(ledger, plan.unit, plan.neighbors)
        return ledger
    if ledger is not None and not isinstance(ledger, str | Path):
        raise InvalidInput(
            f"ledger={show(ledger)}",
            "it must be a Ledger or a path",
            "Pass session.ledger, or a file name.",
        )
    if ledger is not None and budget is None:
        rule = "a ledger of its own needs to know what may be spent"
        raise InvalidInput(
            f"ledger={show(str(ledger))}", rule, "Pass budget=so.Budget(3, 1e-5) as well."
        )
    alone = Fraction(plan.epsilon) * Fraction(1_000_001, 1_000_000)  # charges are rounded up
    whole = budget or Budget(alone, min(2 * plan.delta, Fraction(1, 2)))
    reserved = whole.delta / 2 if plan.chance < 1 else Fraction(0)
    terms = Terms((("training", plan.unit, plan.neighbors.value),), Allowance(whole, reserved))
    if ledger is None:
        return Ledger(MemoryStore(*first_entry(terms)))
    at, witness = Place.of(str(ledger)), Witness()
    opened = Ledger(open_store(at, terms, witness), None, witness, at)
    try:
        opened.expect(terms)
    except BaseException:
        opened.close()
        raise
    return opened


def expect_same_promise(ledger: Ledger, unit: str, neighbors: Neighbors) -> None:
    """Refuse a ledger whose budget is about others than what a run hides: persons, or another relation."""
    for table, protected, relation in ledger.terms.lineage:
        if unit == "example" and protected not in _SINGLE:
            rule = (
                f"it counts what is told of each {protected}, and here single examples are hidden"
            )
            hint = "Pass persons= and max_examples= to a Trainer; or use a ledger of its own."
            raise InvalidInput(f"the ledger of {table!r}", rule, hint)
        if relation != neighbors.value:
            rule = f"it is about {relation}, and this run about {neighbors.value}"
            hint = "Train for the same relation of neighbours, or use a ledger of its own."
            raise InvalidInput(f"the ledger of {table!r}", rule, hint)


@dataclass(frozen=True)
class Mark:
    """Where a run stands: how many stretches were begun, how many steps are done or lost,
    and the model's digest there.
    """

    run: str
    stretch: int = 0
    step: int = 0
    model: str = ""

    @property
    def answer(self) -> bytes:
        """What the ledger keeps of a finished stretch."""
        return json.dumps({"step": self.step, "model": self.model}, sort_keys=True).encode()


class Payments:
    """The entries of one run in a ledger."""

    def __init__(self, ledger: Ledger, question: str, offer: str, analyst: str | None) -> None:
        self.ledger, self.question, self.offer, self.analyst = ledger, question, offer, analyst

    def _request(self, run: str, stretch: int | None = None, steps: str = "") -> Request:
        if stretch is None:
            return Request(run, self.question, self.offer, self.analyst)
        return Request(f"{run}/{stretch}", f"{self.question}, {steps}", self.offer, self.analyst)

    def begin(self, run: str, plan: RunPlan) -> Receipt:
        """Charge the whole run; RequestRefused if it was charged before."""
        if self._payment(run) is not None:
            rule = "this run was paid for and begun before"
            raise RequestRefused(
                run, rule, "Continue it from its checkpoint by resume(), or name another run."
            )
        return self.ledger.charge(plan.charge, self._request(run)).receipt

    def _payment(self, request: str) -> Payment | None:
        """What the analyst of this run was charged under an id: ids of others are others'."""
        return self.ledger.payment(request, self.analyst)

    def paid(self, run: str) -> Receipt:
        """The receipt of a run that was begun."""
        payment = self._payment(run)
        if payment is None or payment.body != self._request(run).body:
            rule = "the ledger holds no charge for this run with these settings"
            raise RequestRefused(
                run,
                rule,
                "Use the ledger, model, data settings and plan that the run was begun with.",
            )
        return payment.receipt

    def open_stretch(self, mark: Mark, until: int) -> Receipt:
        """Make the next steps of a run ours, durably, before any of them is taken: nobody can take them again."""
        request = self._request(mark.run, mark.stretch + 1, f"steps {mark.step + 1} to {until}")
        known = self._payment(request.id) is not None
        # the ledger decides who was first; it gives an answer again where the steps were ended in between
        paid = None if known else self.ledger.charge(NOTHING, request)
        if paid is None or paid.answer is not None:
            rule = "these steps were taken already"
            raise RequestRefused(request.id, rule, "Continue from the last checkpoint of the run.")
        return paid.receipt

    def close_stretch(self, receipt: Receipt, mark: Mark) -> None:
        """Record where the stretch ended, and with which model."""
        self.ledger.store(receipt, mark.answer)

    def resumed(self, mark: Mark) -> Mark:
        """The mark of a checkpoint, moved past steps that were begun after it and lost;
        refuses one that is not the last.
        """
        self.paid(mark.run)
        payment = self._payment(f"{mark.run}/{mark.stretch}")
        if payment is None or payment.answer != digest(mark.answer):
            rule = "the ledger does not know this checkpoint"
            raise RequestRefused(mark.run, rule, "Load the file that the run wrote, unchanged.")
        stretch, step = mark.stretch, mark.step
        while (later := self._payment(f"{mark.run}/{stretch + 1}")) is not None:
            if later.status == "answered":
                rule = "the run was continued after this checkpoint"
                raise RequestRefused(
                    mark.run, rule, "Load the later one: steps are never taken twice."
                )
            stretch += 1
            step = int(later.receipt.question.rsplit(" to ", 1)[1])
        return Mark(mark.run, stretch, step, mark.model)

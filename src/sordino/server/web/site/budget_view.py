"""A budget as one bar: what the last questions took, what older ones took, and what is left."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from sordino.accounting.budget_share import left_share, part_of
from sordino.errors import InvalidInput
from sordino.ledger.terms import read_charge
from sordino.privacy.exact import readable
from sordino.server.accounts.people import Principal, Scope
from sordino.server.accounts.store import Question
from sordino.server.link import ANYBODY, Facts
from sordino.server.web.desk import Desk

__all__ = ["BudgetView", "Taken", "budget_view"]

_LAST = 5


@dataclass(frozen=True)
class Taken:
    """What one question took, as a part of the whole; `begin` is where it lies in the bar."""

    part: float
    begin: float
    question: Question


@dataclass(frozen=True)
class BudgetView:
    """All parts are of the whole budget; `own` is whether it is somebody's own part, or shared with others."""

    epsilon: str
    delta: str
    left: float
    older: float
    last: list[Taken]
    own: bool


def budget_view(desk: Desk, who: Principal, dataset: str) -> BudgetView | None:
    """The budget of somebody who asks; None if they have none.

    What they asked is shown to a token that reads answers.
    """
    facts = desk.link(who, dataset).facts()
    try:
        meter = facts.meter(who.name)
    except InvalidInput:
        return None
    left, own = left_share(meter), _is_own(facts, who.name)
    last: list[tuple[Fraction, Question]] = []
    for question in (
        desk.store.questions(dataset, who.name, 50) if Scope.ask in who.token.scopes else ()
    ):
        if question.source is None and question.receipt is not None and len(last) < _LAST:
            part = part_of(read_charge(question.receipt["charge"]), meter)
            last.append((part or Fraction(0), question))
    spent = 1 - left
    older = max(spent - sum((part for part, _ in last), Fraction(0)), Fraction(0))
    begin, taken = older, []
    for part, question in reversed(last):
        taken.append(Taken(float(part), float(begin), question))
        begin += part
    budget = meter.budget
    delta = readable(budget.delta) if budget.delta else ""
    return BudgetView(readable(budget.epsilon), delta, float(left), float(older), taken, own)


def _is_own(facts: Facts, name: str) -> bool:
    return name in facts.meters or ANYBODY in facts.meters

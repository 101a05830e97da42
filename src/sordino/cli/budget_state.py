"""How a budget stands: in force, spent by whom and on what, and left; as text and as JSON."""

from __future__ import annotations

import json
import textwrap
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from sordino.answer.text_plot import Bar, bars
from sordino.cli.budget_words import (
    KEYS,
    USUAL,
    BudgetBar,
    budget_bars,
    cost_words,
    part_words,
    usual_answers,
)
from sordino.cli.declared import existing_ledger, ledger_place, load
from sordino.cli.numbers import rounded_up
from sordino.cli.streams import hanging, say, width
from sordino.privacy.text_table import aligned

if TYPE_CHECKING:
    from sordino.accounting.charge import Charge
    from sordino.accounting.filters import TwoMeterFilter
    from sordino.ledger.state import Payment, Tally
    from sordino.ledger.terms import Allowance, Terms
    from sordino.query.dataset import Dataset

__all__ = ["LAST", "BudgetState", "budget_state_of", "show"]

LAST = 10
"""How many charges are listed unless all are asked for."""

_WIDEST_BAR = 72


@dataclass(frozen=True)
class BudgetState:
    """A ledger at one moment; `exists` is False if there is none yet. `meter` is that of the analyst, or of everybody.

    `tallies` and `charges` are of the analyst, or of everybody: also of those with a sub-budget who have not asked
    yet. Of the charges these may be only the last.
    """

    place: str
    exists: bool
    terms: Terms
    declared: Terms
    allotments: dict[str, Allowance]
    tallies: dict[str | None, Tally]
    charges: tuple[Payment, ...]
    analyst: str | None
    meter: TwoMeterFilter

    @property
    def count(self) -> int:
        """How many charges there are."""
        return sum(tally.charges for tally in self.tallies.values())

    @property
    def forfeited(self) -> int:
        """How many of them have no answer."""
        return self.count - sum(tally.answered for tally in self.tallies.values())


def show(
    file: str,
    analyst: str | None = None,
    *,
    everything: bool = False,
    as_json: bool = False,
    details: bool = False,
) -> None:
    """Print how the budget of a declaration stands; with `details` by each way in which answers are added up."""
    state = budget_state_of(load(file), analyst, None if everything or as_json else LAST)
    say(
        json.dumps(_fields(state), indent=2, ensure_ascii=False)
        if as_json
        else _text(state, details=details)
    )


def budget_state_of(
    dataset: Dataset, analyst: str | None = None, last: int | None = None
) -> BudgetState:
    """How the budget of a dataset stands now, with this many of the last charges (None: all)."""
    from sordino.accounting.charge import NOTHING
    from sordino.ledger.receipt import checked_analyst
    from sordino.ledger.state import Tally
    from sordino.ledger.terms import Terms

    if analyst is not None:
        checked_analyst(analyst)
    declared = Terms.of(dataset)
    ledger = existing_ledger(dataset)
    if ledger is None:
        place = ledger_place(dataset).shown
        return BudgetState(
            place, False, declared, declared, {}, {}, (), analyst, _shown(declared, NOTHING)
        )
    with ledger:
        terms, allotments = ledger.terms, ledger.allotments
        tallies: dict[str | None, Tally] = dict.fromkeys(allotments, Tally())
        tallies |= ledger.tallies
        tallies = {name: tally for name, tally in tallies.items() if analyst in (None, name)}
        most = sum(tally.charges for tally in tallies.values()) if last is None else last
        meter = _shown(terms, ledger.spent) if analyst is None else ledger.meter(analyst)
        charges = ledger.recent(most, analyst)
        return BudgetState(
            ledger.place, True, terms, declared, allotments, tallies, charges, analyst, meter
        )


def _shown(terms: Terms, spent: Charge) -> TwoMeterFilter:
    from sordino.cli.approximate_meter import ApproximateMeter

    return ApproximateMeter(terms.allowance.budget, terms.allowance.reserved_delta, spent)


def _text(state: BudgetState, *, details: bool) -> str:
    """The state for the eye."""
    parts = [_heading(state), _left(state, details=details)]
    if set(state.tallies) - {None}:
        parts.append(_by_analyst(state, details=details))
    if state.charges:
        parts.append(_charges(state, details=details))
    return "\n\n".join(parts)


def _fields(state: BudgetState) -> dict[str, Any]:
    """The state for programs: numbers as floats, a closed meter as null. Exact ones are in `ledger export`."""
    allowance = state.terms.allowance
    return {
        "ledger": state.place,
        "exists": state.exists,
        "as_declared": state.terms == state.declared,
        "tables": [
            dict(zip(("name", "unit", "neighbors"), table, strict=True))
            for table in state.terms.lineage
        ],
        "budget": _allowance_fields(allowance),
        "analyst": state.analyst,
        "left": [
            {"meter": g.name, "left": _float(g.left), "of": float(g.whole)}
            for g in budget_bars(state.meter, details=True)
        ],
        "more_answers": {"epsilon": float(USUAL), **usual_answers(state.meter)},
        "forfeited": state.forfeited,
        "sub_budgets": {name: _allowance_fields(part) for name, part in state.allotments.items()},
        "charges": [_payment_fields(p) for p in state.charges],
    }


def _heading(state: BudgetState) -> str:
    terms = state.terms
    lines = [
        f"Budget    {terms.allowance}, for all answers together",
        f"Protects  {_protected(terms)}",
    ]
    if state.exists:
        lost = state.forfeited
        gone = (
            f"; {lost:,} without an answer: forfeited, unless the query still runs" if lost else ""
        )
        whose = f" by {state.analyst}" if state.analyst is not None else ""
        lines += [f"Ledger    {state.place}", f"Charges   {state.count:,}{whose}{gone}"]
    else:
        lines.append(f"Ledger    none yet; the first question makes {state.place}")
    if terms != state.declared:
        told = (
            "It is not in force, and nothing is answered until the owner runs `sordino budget set`."
        )
        lines.append(f"Declared  {state.declared}. {told}")
    return hanging("\n".join(lines), 10)


def _protected(terms: Terms) -> str:
    units = [
        f"each row of {name}" if unit == "row" else f"each {unit} of {name}"
        for name, unit, _ in terms.lineage
    ]
    return ", ".join(units) or "nobody: all tables are public"


def _left(state: BudgetState, *, details: bool) -> str:
    found = budget_bars(state.meter, details=details)
    drawn = bars(
        [Bar(g.name, g.share, g.words) for g in found], width=min(width(), _WIDEST_BAR) - 2
    )
    title = "Left" if state.analyst is None else f"Left for {state.analyst}"
    return "\n".join(
        [title, textwrap.indent(drawn, "  "), "", hanging(_meaning(found, state.meter), 0)]
    )


def _meaning(found: list[BudgetBar], meter: TwoMeterFilter) -> str:
    """What the meters allow, in words."""
    adding = [g for g in found if g.name != KEYS]
    rule = "A question is answered while the budget has room for it."
    if adding[0].name == "epsilon":
        rule = "Answers add up their epsilons."
    if len(adding) > 1 and all(g.left is not None for g in adding):
        rule = (
            "Answers are added up in two ways, by epsilon and by mu^2, which suits many answers with Gaussian noise: "
            "a question is answered while one of them has room."
        )
    elif len(adding) > 1:
        rule = f"Only {adding[0].name if adding[1].left is None else adding[1].name} counts from now on."
    if not any(g.left for g in adding):
        return "Nothing more will be answered."
    if len(found) > len(adding):
        rule += " Selecting private keys also takes delta."
    fitting = usual_answers(meter)
    counts = [f"{count:,} with {noise.title()} noise" for noise, count in fitting.items()]
    return (
        f"{rule} Answers with epsilon {rounded_up(USUAL)} that still fit: {', or '.join(counts)}."
    )


def _by_analyst(state: BudgetState, *, details: bool) -> str:
    spent = ["epsilon", "mu^2"] if details else ["of the budget"]
    rows = [["analyst", "charges", "forfeited", *spent, "sub-budget"]]
    for name, tally in state.tallies.items():
        part, lost = state.allotments.get(name or ""), tally.charges - tally.answered
        amounts = [_amount(tally.spent.pure), _amount(tally.spent.mu_squared)]
        amounts = amounts if details else [part_words(tally.spent, state.meter)]
        rows.append(
            [name or "(no name)", f"{tally.charges:,}", f"{lost:,}", *amounts, str(part or "none")]
        )
    right = [0 < place < len(rows[0]) - 1 for place in range(len(rows[0]))]
    return "\n".join(["Spent", *(f"  {line}" for line in aligned(rows, right))])


def _charges(state: BudgetState, *, details: bool) -> str:
    from sordino.privacy.text_table import clean

    kept, meter = state.charges, None if details else state.meter
    lines = [
        "Charges"
        if len(kept) == state.count
        else f"Charges (the last {len(kept)}; --all lists all)"
    ]
    digits = len(str(kept[-1].receipt.number))
    for payment in kept:
        receipt = payment.receipt
        when = clean(receipt.time)[:16].replace("T", " ")
        who = f"  {receipt.analyst}" if receipt.analyst else ""
        lines.append(
            f"  {receipt.number:>{digits}}  {when}  {cost_words(receipt.charge, meter)}  {payment.status}{who}"
        )
        lines.append(hanging(f"  {'':>{digits}}  {clean(receipt.question)}", digits + 4))
    return "\n".join(lines)


def _amount(amount: Fraction | None) -> str:
    return "-" if amount is None else rounded_up(amount)


def _float(amount: Fraction | None) -> float | None:
    return None if amount is None else float(amount)


def _allowance_fields(allowance: Allowance) -> dict[str, float]:
    budget = allowance.budget
    return {
        "epsilon": float(budget.epsilon),
        "delta": float(budget.delta),
        "key_delta": float(allowance.reserved_delta),
    }


def _payment_fields(payment: Payment) -> dict[str, Any]:
    receipt, charge = payment.receipt, payment.receipt.charge
    return {
        "entry": receipt.number, "time": receipt.time, "analyst": receipt.analyst, "request_id": receipt.request_id,
        "status": payment.status, "epsilon": _float(charge.pure), "mu_squared": _float(charge.mu_squared),
        "delta": float(charge.delta), "question": receipt.question, "hash": receipt.hash,
    }  # fmt: skip

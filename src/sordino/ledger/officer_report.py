"""The page for a data-protection officer: what is promised and to whom, what was spent and by whom, and what proves it.

It is made of the declaration and of charges, which hold no data: whoever may read the ledger may read it. One HTML file
without scripts that prints to paper.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import assert_never

from sordino.accounting.budget_share import left_share, part_of, percent
from sordino.accounting.charge import NOTHING, Charge
from sordino.accounting.filters import TwoMeterFilter
from sordino.privacy.budget import Budget
from sordino.privacy.exact import readable
from sordino.privacy.html_page import (
    bullets,
    fact_table,
    page,
    paragraphs,
    safe,
    section,
    table,
)
from sordino.privacy.neighbors import Neighbors
from sordino.privacy.wording import counted
from sordino.query.dataset import Dataset, Table
from sordino.query.types import Day, Moment, Nothing, Number, Text, Truth, Type

__all__ = ["Account", "Spent", "officer_report"]

_LISTED = 500
"""How many charges are listed; all of them are counted, and all are in the ledger."""

_SHOWN = 12
"""How many of a column's values are listed."""

_NOT_PROMISED = (
    "The data are not protected from those who hold them: the owner, and whoever runs the machine.",
    "Limits, categories and public tables of the declaration are taken to be public. One that was looked up in the data is "
    "a leak that no software can see.",
    "What a group has in common can be learnt, and concerns its members whether or not they are in the data.",
    "Units other than the declared one are protected less: a household of k persons k times less.",
    "The same data asked elsewhere, through another ledger or another system, have another budget, and the two add up.",
)
_TIME_SERVED = (
    "Answers leave at ticks of a clock that does not depend on data. What overruns of the clock can tell is bounded, and "
    "they are counted; load that others see on the same machine is not hidden."
)
_TIME_EMBEDDED = (
    "How long a question takes depends on the data. Whoever asks on the machine that holds them can measure it: let others "
    "ask through the server, whose answers leave at ticks of a clock."
)


@dataclass(frozen=True)
class Spent:
    """One charge: its number in the ledger, when, by whom, what was asked, and what became of it."""

    number: int
    time: str
    analyst: str | None
    question: str
    charge: Charge
    status: str


@dataclass(frozen=True)
class Account:
    """All that is reported about one dataset.

    `meters` has the whole budget under None, and the sub-budgets of analysts. `checkpoint` and `key` are those of the
    ledger's public log. `rules` are the owner's further rules, in words. `served` is whether answers leave at ticks.
    """

    name: str
    dataset: Dataset
    budget: Budget
    meters: Mapping[str | None, TwoMeterFilter]
    charges: Sequence[Spent]
    checkpoint: str
    key: str
    rules: Sequence[str] = ()
    served: bool = False


def officer_report(account: Account, now: datetime | None = None) -> str:
    """The whole page."""
    made = f"{now or datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
    head = f'<header><p class="kind">Report for the data-protection officer</p><h1>{safe(account.name)}</h1></header>'
    body = (
        head,
        _standing(account),
        section("What is promised", _promise(account)),
        section("Who is protected, and what is public", _tables(account.dataset)),
        section("What was spent, and by whom", _by_analyst(account)),
        section("The owner's rules", bullets(account.rules)),
        section("Every charge", _charges(account)),
        section("What proves it", _proof(account)),
        section(
            "What is not promised",
            bullets((*_NOT_PROMISED, _TIME_SERVED if account.served else _TIME_EMBEDDED)),
        ),
        f"<footer><p>Written by Sordino, {made}. It holds no data: questions, prices and names only.</p></footer>",
    )
    return page(f"Privacy report: {account.name}", "".join(body))


def _standing(account: Account) -> str:
    left = left_share(account.meters[None])
    look, word = ("good", "Within its budget") if left else ("open", "Its budget is used up")
    answered = sum(one.status == "answered" for one in account.charges)
    forfeited = sum(one.status == "forfeited" for one in account.charges)
    said = (
        f"{percent(left, up=False)} of the budget is left after {counted(len(account.charges), 'charge')}: "
        f"{answered:,} answered, {forfeited:,} forfeited, {len(account.charges) - answered - forfeited:,} without an answer."
    )
    return f'<div class="verdict {look}"><strong>{safe(word)}</strong>{safe(said)}</div>'


def _promise(account: Account) -> str:
    budget, units = (
        account.budget,
        sorted({_unit(table) for table in account.dataset.tables.values() if not table.public}),
    )
    sure = _success(budget)
    facts = [
        (
            "Guarantee",
            f"differential privacy with epsilon {readable(budget.epsilon)}, delta {readable(budget.delta)}",
        ),
        ("For", "; ".join(units)),
        (
            "Over",
            "all answers that ever leave under this ledger, to all analysts, each asked in view of all before",
        ),
    ]
    words = (
        "Whatever anybody does with all answers, and whatever else they know: anything that the answers show is at most "
        f"e^epsilon = {_up(math.exp(min(float(budget.epsilon), 700.0)))} times as likely with a protected person's rows as "
        "without them, but for events of probability delta. Somebody who thinks it as likely as not that a person is in the "
        f"data guesses right with a probability of at most {sure} after all answers."
    )
    return fact_table(facts) + paragraphs(words)


def _success(budget: Budget) -> str:
    """The probability of guessing right from even odds, at most (e^epsilon + delta) / (1 + e^epsilon); rounded up."""
    odds = math.exp(min(float(budget.epsilon), 700.0))
    return f"{_up(100 * min((odds + float(budget.delta)) / (1 + odds), 1.0))} %"


def _up(value: float) -> str:
    """Three digits, rounded up."""
    if not math.isfinite(value) or value <= 0:
        return f"{value:g}"
    scale = 10.0 ** (2 - math.floor(math.log10(value)))
    return f"{math.ceil(value * scale * (1 - 1e-12)) / scale:,g}"


def _unit(table: Table) -> str:
    if table.person is not None:
        whose = f"each person named by {table.person} in {table.name}, with all their rows"
    elif table.via is not None:
        whose = f"the persons that rows of {table.name} name through {table.via.parent}"
    else:
        whose = f"each row of {table.name}"
    change = (
        "present or not" if table.neighbors is Neighbors.ADD_REMOVE else "exchanged for any other"
    )
    return f"{whose} ({change})"


def _tables(dataset: Dataset) -> str:
    parts = []
    for declared in dataset.tables.values():
        whose = "public: protects nobody" if declared.public else _unit(declared)
        bounds = [f"{name} = {bound:,}" for name, bound in declared.bounds.given.items()]
        rows = [
            f"<tr><td>{safe(name)}</td><td>{safe(column.kind)}</td><td>{safe(_public_facts(column.type))}</td></tr>"
            for name, column in declared.columns.items()
        ]
        counts = (
            paragraphs(f"Of one person at most this counts in one answer: {', '.join(bounds)}.")
            if bounds
            else ""
        )
        parts.append(
            section(
                declared.name,
                paragraphs(whose) + counts + table(("column", "type", "public facts"), rows),
                3,
            )
        )
    return "".join(parts)


def _public_facts(kind: Type) -> str:
    match kind:
        case Number(values=tuple(values)) | Text(values=tuple(values)):
            some = ", ".join(map(str, values[:_SHOWN]))
            return (
                f"one of {some}"
                if len(values) <= _SHOWN
                else f"one of {len(values):,} values: {some}, ..."
            )
        case Number(lower, upper, step):
            limits = (
                "no limits"
                if lower is None or upper is None
                else f"{readable(lower)} to {readable(upper)}"
            )
            return limits if step is None else f"{limits}, in steps of {readable(step)}"
        case Text(longest=longest):
            return "any text" if longest is None else f"any text of at most {longest:,} characters"
        case Day(lower, upper) | Moment(lower, upper):
            return f"{lower} to {upper}"
        case Truth():
            return "true or false"
        case Nothing():
            return "nothing"
        case _:
            assert_never(kind)


def _by_analyst(account: Account) -> str:
    whole = account.meters[None]
    names = {one.analyst for one in account.charges} | set(account.meters) - {None}
    rows = []
    for name in sorted(names, key=lambda each: (each is not None, each or "")):
        own = [one for one in account.charges if one.analyst == name]
        took = part_of(sum((one.charge for one in own), NOTHING), whole)
        meter = account.meters.get(name) if name is not None else None
        cells = (
            "(no name)" if name is None else name,
            f"{len(own):,}",
            f"{sum(one.status == 'answered' for one in own):,}",
            "-" if took is None else percent(took, up=True),
            "-" if meter is None else percent(left_share(meter), up=False),
        )
        rows.append(f"<tr>{''.join(f'<td>{safe(cell)}</td>' for cell in cells)}</tr>")
    heads = ("analyst", "charges", "answered", "of the whole budget", "left of their part")
    return table(heads, rows) if rows else paragraphs("Nothing was spent.")


def _charges(account: Account) -> str:
    whole, last = account.meters[None], account.charges[-_LISTED:]
    rows = []
    for one in last:
        took = part_of(one.charge, whole)
        price = "-" if took is None else percent(took, up=True)
        cells = (f"{one.number:,}", one.time, one.analyst or "", price, one.status)
        inside = "".join(f'<td class="short">{safe(cell)}</td>' for cell in cells)
        rows.append(f"<tr>{inside}<td>{safe(one.question)}</td></tr>")
    missing = len(account.charges) - len(last)
    note = (
        paragraphs(f"The last {len(last):,} are listed; {missing:,} older ones are in the ledger.")
        if missing
        else ""
    )
    return (
        note + table(("entry", "time", "analyst", "price", "status", "question"), rows)
        if rows
        else ""
    )


def _proof(account: Account) -> str:
    words = (
        "Every charge was written to the ledger before data were read, every answer before it was shown. All entries are "
        "leaves of a tree whose root is signed here; an analyst's receipt proves that an answer is among them. A later "
        "checkpoint proves that it continues this one. Keep this page: it shows if entries before it are changed later."
    )
    signed = "\n".join(map(safe, account.checkpoint.splitlines()))
    how = "Check a receipt: sordino receipt verify FILE --key KEY. Check the ledger itself: sordino ledger verify."
    return (
        paragraphs(words)
        + f"<pre>{signed}</pre>"
        + fact_table([("Key", account.key)])
        + paragraphs(how)
    )

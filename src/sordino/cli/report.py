"""`sordino report`: the page for a data-protection officer, from the declaration and its ledger."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from sordino.cli.arguments import Declaration
from sordino.cli.declared import load, opened_ledger
from sordino.cli.output import check_target, write_text
from sordino.cli.streams import note

if TYPE_CHECKING:
    from sordino.accounting.filters import TwoMeterFilter
    from sordino.ledger.ledger import Ledger
    from sordino.ledger.officer_report import Account
    from sordino.query.dataset import Dataset

__all__ = ["account_of", "report"]


def report(
    file: Declaration,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="Write to this file.")
    ] = None,
) -> None:
    """Write a report for the data-protection officer: what is promised, what was spent, by whom, and what proves it.

    One HTML page that prints to paper. It holds questions, prices and names, and no data.

    Example: sordino report visits.toml --output visits-report.html
    """
    from sordino.ledger.officer_report import officer_report

    dataset = load(file)
    check_target(None if output == "-" else output, "--output", dataset)
    with opened_ledger(dataset) as ledger:
        account = account_of(dataset, ledger)
    write_text(officer_report(account), output)
    if output not in (None, "-"):
        note(f"Written to {output}. Open it in a browser, and print it from there.")


def account_of(dataset: Dataset, ledger: Ledger) -> Account:
    """All that is reported about a dataset whose ledger is at hand."""
    from sordino.ledger.officer_report import Account, Spent

    whole, log = ledger.terms.allowance, ledger.public_log()
    charges = [
        Spent(r.number, r.time, r.analyst, r.question, r.charge, payment.status)
        for payment in ledger.payments
        for r in (payment.receipt,)
    ]
    names = set(ledger.allotments) - {"*"}
    meters: dict[str | None, TwoMeterFilter] = {None: whole.meter(ledger.spent)}
    meters.update((name, ledger.meter(name)) for name in names)
    name = " and ".join(table.name for table in dataset.tables.values() if not table.public)
    return Account(
        name, dataset, whole.budget, meters, charges, str(log.checkpoint()), str(log.key)
    )

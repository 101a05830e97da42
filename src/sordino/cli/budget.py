"""`sordino budget`: what was spent, by whom and on what; what is left; and what the owner puts in force."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from sordino.cli import budget_state, remote
from sordino.cli.arguments import Analyst, Declaration, Details, Yes
from sordino.cli.declared import existing_ledger, load
from sordino.cli.numbers import exact, positive
from sordino.cli.streams import confirmed, note, prose
from sordino.errors import InvalidInput

__all__ = ["app"]


class Form(StrEnum):
    """How the budget is shown."""

    table = "table"
    json = "json"


class _ShowByDefault(TyperGroup):
    """`budget FILE` means `budget show FILE`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        first = args[0] if args else ""
        if (
            first not in self.commands
            and first not in ctx.help_option_names
            and any(mark in first for mark in "./-")
        ):
            args = ["show", *args]
        return super().parse_args(ctx, args)

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        return [
            *super().shell_complete(ctx, incomplete),
            *self.commands["show"].params[0].shell_complete(ctx, incomplete),
        ]


app = typer.Typer(
    cls=_ShowByDefault,
    no_args_is_help=True,
    subcommand_metavar="FILE | COMMAND ...",
    help="Show what was spent and what is left: sordino budget visits.toml; or change what is in force.",
)


@app.command()
def show(
    file: Declaration,
    analyst: Analyst = None,
    all_: Annotated[
        bool,
        typer.Option("--all", help=f"List all charges, not only the last {budget_state.LAST}."),
    ] = False,
    form: Annotated[Form, typer.Option("--format", help="Text for the eye, or JSON.")] = Form.table,
    details: Details = False,
) -> None:
    """Show what was spent and what is left; `show` may be left out.

    Example: sordino budget visits.toml
    """
    if remote.is_address(file):
        remote.show_budget(file, analyst, as_json=form is Form.json)
        return
    budget_state.show(file, analyst, everything=all_, as_json=form is Form.json, details=details)


@app.command("set")
def set_(file: Declaration, yes: Yes = False) -> None:
    """Put the declared budget in force, as the owner. So are the declared tables; the change is recorded.

    Example: sordino budget set visits.toml
    """
    from sordino.ledger.terms import Terms

    dataset = load(file)
    declared = Terms.of(dataset)
    ledger = existing_ledger(dataset)
    if ledger is None:
        prose(
            f"There is no ledger yet. The first question makes one, with what is declared: {declared}."
        )
        return
    with ledger:
        kept = ledger.terms
        if kept == declared:
            prose(f"In force already: {declared}.")
            return
        note(f"in force  {kept}\ndeclared  {declared}\n", indent=10)
        note(
            "All answers together keep the largest epsilon, and of delta the largest parts, that were ever in force."
        )
        left = declared.allowance.meter(ledger.spent).remaining
        if left.meters == (None, None, None) or left.delta < 0:
            note(
                "More than the declared budget is spent already, so that nothing more would be answered."
            )
        if not confirmed("Put what is declared in force?", yes=yes):
            prose("Nothing was changed.")
            return
        ledger.declare(declared)
        prose(f"In force from entry {ledger.anchor().count:,} on: {declared}.")


@app.command()
def allot(
    file: Declaration,
    analyst: Annotated[
        str, typer.Argument(metavar="ANALYST", help="Who gets it; '*' is everybody without one.")
    ],
    epsilon: Annotated[
        str | None, typer.Option(metavar="NUMBER", help="The epsilon that they may spend.")
    ] = None,
    delta: Annotated[
        str | None, typer.Option(metavar="NUMBER", help="Their delta. Default: all of it.")
    ] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Take the sub-budget back.")] = False,
) -> None:
    """Give an analyst a part of the budget, as the owner. From then on only those with a part may ask.

    Example: sordino budget allot visits.toml anna --epsilon 0.5
    """
    from sordino.ledger.ledger import Ledger
    from sordino.privacy.budget import Budget

    if remove == (epsilon is not None) or (remove and delta is not None):
        value = "--remove with a number" if remove else "no --epsilon"
        raise InvalidInput(
            value, "a sub-budget is given or taken back", "Write --epsilon 0.5, or --remove."
        )
    with Ledger.open(load(file)) as ledger:
        if epsilon is None:
            if analyst not in ledger.allotments:
                raise InvalidInput(
                    repr(analyst), "they have no sub-budget", f"See them all: sordino budget {file}"
                )
            ledger.allot(analyst, None)
            prose(
                f"Taken back from {analyst}.{'' if ledger.allotments else ' There are no sub-budgets any more.'}"
            )
            return
        whole = ledger.terms.allowance.budget.delta
        first = not ledger.allotments
        part = Budget(
            positive(epsilon, "--epsilon"), whole if delta is None else exact(delta, "--delta")
        )
        ledger.allot(analyst, part)
        who = "Everybody without a sub-budget of their own" if analyst == "*" else analyst
        prose(f"{who} may spend {ledger.allotments[analyst]}.")
        if first and analyst != "*":
            prose(
                "From now on only those with a sub-budget may ask; '*' gives one to everybody else."
            )

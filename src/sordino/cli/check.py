"""`sordino check` and `sordino schema`: whether a declaration fits its data, and the schema for editors.

Nothing is computed from cells: files are found, and the names and types of their columns are read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from sordino.cli.arguments import Declaration
from sordino.cli.declared import load
from sordino.cli.outcome import DOES_NOT_HOLD
from sordino.cli.output import check_target, write_text
from sordino.cli.streams import hanging, note, say
from sordino.privacy.wording import counted
from sordino.query.same_name import folded

if TYPE_CHECKING:
    from sordino.query.dataset import Dataset, Table

__all__ = ["check", "schema"]

_INDENT = 10


def check(
    file: Declaration,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict", help="Leave with 6 if there is anything to look at again, for scripts."
        ),
    ] = False,
) -> None:
    """Check a declaration: files, columns, types, persons and ledger; and what its owner should look at again.

    Free, and for the owner of the data: names and types of columns are read, no cell.

    Example: sordino check visits.toml
    """
    from sordino.engines.admission import source_columns_of
    from sordino.query.second_look import second_look

    dataset = load(file)
    found = source_columns_of(dataset)
    for name, table in dataset.tables.items():
        say(hanging(_told(table, found[name]), _INDENT))
        say()
    say(hanging(_budget(dataset), _INDENT))
    remarks = second_look(dataset)
    if remarks:
        say("\nLook at again")
        for remark in remarks:
            say(hanging(f"  {remark}", 4))
    say(f"\n{file} fits its data." + ("" if remarks else " There is nothing to look at again."))
    if strict and remarks:
        note(f"{len(remarks)} to look at again.")
        raise typer.Exit(DOES_NOT_HOLD)


def _told(table: Table, names: list[str]) -> str:
    """One table: its source, whom it protects, and how its columns are declared."""
    declared = {
        folded(name) for name in (*table.columns, *([table.person] if table.person else []))
    }
    others = [name for name in names if folded(name) not in declared]
    lines = [f"Table     {table.name}, from {table.source.shown}", f"Protects  {_protects(table)}"]
    columns = ", ".join(f"{name} ({column.kind})" for name, column in table.columns.items())
    lines.append(f"Columns   {columns or 'none'}")
    if others:
        # where no name of a CSV file is declared, its first line may be a record
        named = (
            ", ".join(others)
            if declared or table.source.kind != "csv"
            else f"{len(others):,} columns"
        )
        lines.append(f"Hidden    {named}: not declared, so that nobody can ask about them")
    return "\n".join(lines)


def _protects(table: Table) -> str:
    if table.public:
        return "nobody: it is public"
    who = "each row" if table.unit == "row" else f"each {table.unit}"
    bounds = ", ".join(
        f"{name} {value:,}" for name, value in table.bounds.given.items() if value is not None
    )
    return f"{who} ({table.neighbors.value}){f'; {bounds}' if bounds else ''}"


def _budget(dataset: Dataset) -> str:
    """The budget, and how the ledger stands to it."""
    from sordino.cli.budget_state import budget_state_of

    if dataset.budget is None:
        return "Budget    none is declared"
    state = budget_state_of(dataset)
    lines = [f"Budget    {state.declared.allowance}, for all answers together"]
    if not state.exists:
        lines.append(f"Ledger    none yet; the first question makes {state.place}")
    else:
        lines.append(f"Ledger    {state.place}, with {counted(state.count, 'charge')}")
    if state.exists and state.terms != state.declared:
        lines.append(
            f"In force  {state.terms}. Nothing is answered until the owner runs `sordino budget set`."
        )
    return "\n".join(lines)


def schema(
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="Write to this file.")
    ] = None,
) -> None:
    """Print the JSON Schema of declarations, with which editors complete and check them.

    Let the first line of a declaration name it: #:schema ./sordino.schema.json

    Example: sordino schema --output sordino.schema.json
    """
    from sordino.query.declaration_schema import SCHEMA_FILE

    check_target(None if output == "-" else output, "--output", None)
    write_text(SCHEMA_FILE.read_text("utf-8"), output)

"""`sordino ledger`: is the ledger what was written, and its entries and its end to be kept elsewhere."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sordino.cli.arguments import Declaration, Yes
from sordino.cli.declared import (
    existing_ledger,
    ledger_place,
    load,
    opened_ledger,
    read_text,
    toml_files,
)
from sordino.cli.outcome import DOES_NOT_HOLD
from sordino.cli.output import check_target, write_text
from sordino.cli.streams import confirmed, note, prose, warn
from sordino.errors import LedgerDamaged, LedgerError, LedgerMismatch, LedgerUnavailable
from sordino.privacy.wording import counted

if TYPE_CHECKING:
    from sordino.ledger.anchor import Anchor
    from sordino.ledger.place import Place
    from sordino.ledger.verify import Verdict
    from sordino.query.dataset import Dataset

__all__ = ["app"]

app = typer.Typer(
    help="Verify the ledger, export it, or take an anchor of it.", no_args_is_help=True
)

Output = Annotated[
    str | None, typer.Option("--output", "-o", metavar="FILE", help="Write to this file.")
]


@app.command()
def verify(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="A declaration, or an export as .jsonl.", autocompletion=toml_files
        ),
    ],
    anchor: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="An anchor kept elsewhere: its file, or its text."),
    ] = None,
) -> None:
    """Check that every entry and every answer is what was written. Exit code 6 if not.

    Example: sordino ledger verify visits.toml --anchor visits.anchor
    """
    kept = None if anchor is None else _anchor(anchor)
    exported = file.lower().endswith((".jsonl", ".json"))
    place, verdict = _verified_export(Path(file), kept) if exported else _verified(load(file), kept)
    if not verdict.holds:
        prose(f"{place} does NOT hold:")
        for finding in verdict.findings:
            prose(f"  - {finding}")
        raise typer.Exit(DOES_NOT_HOLD)
    open_ = verdict.forfeited
    charges = f"{counted(verdict.charges, 'charge')}, {verdict.answers:,} answered and {open_:,} without an answer"
    prose(f"{place} holds: {counted(verdict.entries, 'entry', 'entries')}, {charges}.")
    prose(f"It ends with entry {verdict.link.sequence:,}, hash {verdict.link.hash}.")
    if kept is not None:
        prose(f"It continues the anchor, which was taken at entry {kept.count:,}.")
    elif exported:
        prose(
            "Whether its last entries were cut off can only be told with an anchor: --anchor visits.anchor"
        )
    else:
        prose(
            "An anchor kept elsewhere would also show whether an older copy was put back: sordino ledger anchor --help"
        )


@app.command()
def export(file: Declaration, output: Output = None) -> None:
    """Write all entries, for auditors. One line of JSON each, with the SHA-256 of the line before; holds no data.

    Example: sordino ledger export visits.toml --output visits.jsonl
    """
    dataset = load(file)
    check_target(None if output == "-" else output, "--output", dataset)
    with opened_ledger(dataset) as ledger:
        lines = "".join(f"{line}\n" for line in ledger.export())
        anchor = ledger.anchor()
    write_text(lines, output)
    note(f"{anchor.count:,} entries. The last has hash {anchor.hash}.")


@app.command()
def anchor(file: Declaration, output: Output = None) -> None:
    """Write the end of the ledger, to keep elsewhere. This one line shows later if entries were changed or put back.

    Example: sordino ledger anchor visits.toml --output visits.anchor
    """
    dataset = load(file)
    check_target(None if output == "-" else output, "--output", dataset)
    with opened_ledger(dataset) as ledger:
        end = ledger.anchor()
    write_text(f"{end.to_json()}\n", output)
    note(
        "Keep it where whoever can write the ledger cannot: in a mail, a minute book, another machine."
    )


@app.command()
def accept(file: Declaration, yes: Yes = False) -> None:
    """Let the ledger go on after a restore, as the owner. What this machine saw of it before is recorded.

    Example: sordino ledger accept visits.toml
    """
    from sordino.ledger.ledger import Ledger

    dataset = load(file)
    refused = _refusal(dataset)
    if refused is None:
        prose(
            "There is nothing to accept: the ledger is the one that this machine knows, or there is none yet."
        )
        return
    note(str(refused))
    note(
        f"\n{_meaning(refused, ledger_place(dataset))} The acceptance is recorded in the ledger.\n"
    )
    if not confirmed("Accept the ledger as it is now?", yes=yes):
        prose("Nothing was changed.")
        return
    with Ledger.accept(dataset) as ledger:
        prose(f"Accepted: {ledger.place} goes on with entry {ledger.anchor().count:,}.")


def _verified(dataset: Dataset, anchor: Anchor | None) -> tuple[str, Verdict]:
    """All that is wrong with the ledger of a dataset, by itself and by what this machine has seen of it."""
    from sordino.ledger.verify import Verdict, verify_store

    place = ledger_place(dataset)
    if not place.exists():
        existing_ledger(dataset)  # says that it is gone if one was seen here
        raise LedgerUnavailable(
            place.shown, "there is none yet", "It is made when the first question is asked."
        )
    try:
        store = place.open()
    except LedgerDamaged as error:
        return place.shown, Verdict((error.rule,))
    try:
        verdict = verify_store(store, anchor)
    finally:
        store.close()
    if verdict.holds:
        refused = _refusal(dataset)
        if isinstance(refused, LedgerMismatch):  # a copy, which may hold by itself
            warn(str(refused))
        elif refused is not None:
            verdict = dataclasses.replace(verdict, findings=(refused.rule,))
    return place.shown, verdict


def _verified_export(path: Path, anchor: Anchor | None) -> tuple[str, Verdict]:
    from sordino.ledger.chain import Row, digest
    from sordino.ledger.verify import verify_rows

    text = read_text(path, "an export of a ledger")
    lines = text.removesuffix("\n").split("\n") if text else []
    return str(path), verify_rows(
        [Row(i, line, digest(line)) for i, line in enumerate(lines, start=1)], anchor
    )


def _refusal(dataset: Dataset) -> LedgerError | None:
    """Why this machine would not use the ledger, if so."""
    try:
        ledger = existing_ledger(dataset)
    except LedgerError as error:
        return error
    if ledger is not None:
        ledger.close()
    return None


def _meaning(refused: LedgerError, place: Place) -> str:
    """What it means to accept a ledger that was refused; raises the refusal if accepting would not help."""
    from sordino.ledger.verify import verify_store

    if not place.exists():
        return "A new, empty ledger would be made. All that was spent before would no longer be counted."
    if isinstance(refused, LedgerUnavailable):
        raise refused
    store = place.open()
    try:
        if not verify_store(store).holds:
            raise refused
    finally:
        store.close()
    if isinstance(refused, LedgerMismatch):
        return "This copy would count from now on, and the other one must not be used any more."
    return "What was spent after this state would no longer be counted, so that all answers together may exceed the budget."


def _anchor(text: str) -> Anchor:
    from sordino.ledger.anchor import Anchor

    return Anchor.from_json(
        text if text.lstrip().startswith("{") else read_text(Path(text), "an anchor")
    )

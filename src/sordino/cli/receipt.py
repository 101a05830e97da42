"""`sordino receipt`: proofs that a question was charged and answered,
and their check, which needs nothing but the file.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sordino.cli.arguments import Analyst, Declaration
from sordino.cli.declared import load, opened_ledger, read_text
from sordino.cli.outcome import DOES_NOT_HOLD
from sordino.cli.output import check_target, write_text
from sordino.cli.streams import note, prose, put_text

if TYPE_CHECKING:
    from sordino.ledger.public_log import Checkpoint, Proof, VerifyingKey

__all__ = ["app"]

app = typer.Typer(
    help="Prove that an answer was recorded, or check such a proof offline.", no_args_is_help=True
)

Since = Annotated[
    str | None,
    typer.Option(
        "--since",
        metavar="FILE",
        help="An older receipt or checkpoint of the same ledger, which this continues.",
    ),
]


@app.command()
def get(
    file: Declaration,
    request_id: Annotated[
        str, typer.Argument(metavar="REQUEST_ID", help="The id that was printed with the answer.")
    ],
    analyst: Analyst = None,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="Write to this file.")
    ] = None,
    since: Since = None,
) -> None:
    """Write the receipt of a question: its entries in the ledger, with a signed proof that they are there.

    Example: sordino receipt get visits.toml march-report-1 --output march.receipt
    """
    dataset = load(file)
    check_target(None if output == "-" else output, "--output", dataset)
    older = None if since is None else _checkpoint(since).size
    with opened_ledger(dataset) as ledger:
        proof = ledger.proof(request_id, analyst, since=older)
    write_text(proof.to_json(), output)
    note(f"The key of this ledger's log, for those who check: {proof.key}")


@app.command()
def key(file: Declaration) -> None:
    """Print the key of the ledger's log. Give it to analysts, so that they need not trust the one in a receipt.

    Example: sordino receipt key visits.toml
    """
    with opened_ledger(load(file)) as ledger:
        put_text(f"{ledger.public_log().key}\n")


@app.command()
def checkpoint(file: Declaration) -> None:
    """Print the signed state of the ledger's log, to be published: it shows later that nothing before it was changed.

    Example: sordino receipt checkpoint visits.toml > visits.checkpoint
    """
    with opened_ledger(load(file)) as ledger:
        put_text(str(ledger.public_log().checkpoint()))


@app.command()
def verify(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="A receipt, as `sordino receipt get` or a server wrote it."
        ),
    ],
    key: Annotated[
        str | None,
        typer.Option(
            metavar="KEY", help="The key that the owner published; by default the receipt's own."
        ),
    ] = None,
    since: Since = None,
) -> None:
    """Check a receipt offline: that the answer was recorded, and that the log was not forked since. Exit code 6 if not.

    Example: sordino receipt verify march.receipt --since february.receipt
    """
    from sordino.ledger.public_log import findings

    proof = _proof(read_text(Path(file), "a receipt"))
    wrong = findings(proof, _trusted(key), None if since is None else _checkpoint(since))
    if wrong:
        prose(f"{file} does NOT hold:")
        for finding in wrong:
            prose(f"  - {finding}")
        raise typer.Exit(DOES_NOT_HOLD)
    prose(f"{file} holds.")
    for line in _told(proof):
        prose(line)
    if key is None:
        prose(
            f"It was checked with its own key. Compare it with the one that the owner published: {proof.key}"
        )
    if since is None:
        prose(
            "Whether the log was forked can be told with an older receipt: --since february.receipt"
        )


def _told(proof: Proof) -> list[str]:
    facts, number = proof.charge["facts"], proof.charge["sequence"]
    who = "" if facts["analyst"] is None else f" by {facts['analyst']}"
    offer = f" ({facts['offer']})" if facts["offer"] else ""
    lines = [
        f"Entry {number:,} of {proof.checkpoint.size:,} charged{who}: {facts['question']}{offer}"
    ]
    for settled in proof.entries[1:]:
        entry = settled.facts
        answered = f"holds the answer, SHA-256 {entry['facts'].get('answer')}"
        lines.append(
            f"Entry {entry['sequence']:,} {answered if entry['kind'] == 'answer' else 'says that it was forfeited'}."
        )
    if len(proof.entries) == 1:
        lines.append("When the receipt was made there was no answer yet.")
    return lines


def _trusted(text: str | None) -> VerifyingKey | None:
    from sordino.ledger.public_log import VerifyingKey

    if text is None:
        return None
    return VerifyingKey.of(text if "+" in text else read_text(Path(text), "a key"))


def _proof(text: str) -> Proof:
    from sordino.ledger.public_log import Proof

    return Proof.from_json(text)


def _checkpoint(path: str) -> Checkpoint:
    """The checkpoint of a file, or of the receipt in it."""
    from sordino.ledger.public_log import Checkpoint

    text = read_text(Path(path), "a receipt or checkpoint")
    return _proof(text).checkpoint if text.lstrip().startswith("{") else Checkpoint.of(text)

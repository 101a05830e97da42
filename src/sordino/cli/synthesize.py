"""`sordino synthesize`: synthetic rows of a table, with a page about their quality."""

from __future__ import annotations

import io
import sys
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sordino.cli.arguments import Analyst, Declaration
from sordino.cli.ask import INDENT, answered, interrupted, meter_of
from sordino.cli.declared import check_sources, load
from sordino.cli.numbers import exact
from sordino.cli.output import check_target, write_file
from sordino.cli.streams import folded, is_terminal, note, put_text, say
from sordino.errors import InvalidInput

if TYPE_CHECKING:
    from sordino.workloads.synthetic import Synthetic

__all__ = ["synthesize"]

_ENDINGS = (".parquet", ".csv")


def synthesize(
    file: Declaration,
    epsilon: Annotated[
        str, typer.Option(metavar="NUMBER", help="What rows and report together may cost.")
    ],
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="Where the rows go: .parquet or .csv."),
    ] = None,
    report: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Where the quality page goes: .html. Default: beside the rows."
        ),
    ] = None,
    rows: Annotated[
        int | None, typer.Option(help="How many rows. Default: about as many as there are.")
    ] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(
            "--column",
            "-c",
            metavar="NAME",
            help="Only this column. May be repeated. Default: all.",
        ),
    ] = None,
    where: Annotated[
        str | None, typer.Option(metavar="CONDITION", help="Only rows such as age >= 65.")
    ] = None,
    table: Annotated[
        str | None, typer.Option(metavar="NAME", help="A table, or a SELECT of one row per person.")
    ] = None,
    max_rows: Annotated[int | None, typer.Option(help="How many rows of one person count.")] = None,
    analyst: Analyst = None,
    request_id: Annotated[
        str | None,
        typer.Option(
            metavar="ID", help="A name of your own: asked again, it gives the same rows for free."
        ),
    ] = None,
    preview: Annotated[
        bool, typer.Option("--preview", help="Show what would be measured; nothing is charged.")
    ] = False,
) -> None:
    """Make synthetic rows with the declared columns, and say how good they are. It is charged like a question.

    Example: sordino synthesize visits.toml --epsilon 1 --output synthetic.parquet
    """
    given = {"rows": rows, "columns": column, "where": where, "max_rows": max_rows}
    asked: dict[str, Any] = {"epsilon": exact(epsilon, "--epsilon")}
    asked |= {name: value for name, value in given.items() if value is not None}
    dataset = load(file)
    if preview:
        from sordino.workloads.synthesis_plan import plan_synthesis

        check_sources(dataset)
        plan = plan_synthesis(dataset, meter_of(dataset, analyst), table, **asked)
        say(folded(f"{plan.explain()}\n  charged      nothing now", INDENT))
        return
    if output is None or Path(output).suffix.lower() not in _ENDINGS:
        rule = f"synthetic rows are written to a file that ends in {' or '.join(_ENDINGS)}"
        raise InvalidInput(
            f"--output {output or ''}",
            rule,
            "Write --output synthetic.parquet. Nothing was charged.",
        )
    page = str(Path(output).with_suffix(".html")) if report is None else report
    for path, option in ((output, "--output"), (page, "--report")):
        check_target(path, option, dataset)
    if Path(page).resolve() == Path(output).resolve():
        rule = "the rows and the page about them are two files"
        raise InvalidInput(
            f"--report {page!r}", rule, "Write --report quality.html. Nothing was charged."
        )
    request = uuid.uuid4().hex if request_id is None else request_id
    try:
        found, receipt = answered(
            dataset, request, analyst, lambda session: session.synthesize(table, request_id=request, **asked)
        )  # fmt: skip
    except KeyboardInterrupt:
        raise interrupted(dataset, request) from None
    write_file(output, _rows(found, Path(output).suffix.lower()), "--output")
    write_file(page, found.to_html().encode(), "--report")
    put_text(f"{len(found):,} rows in {output}, their quality in {page}\n{found.report}\n")
    if is_terminal(sys.stderr):
        note("")
    for line in (*found.notes, found.privacy, receipt):
        note(line)


def _rows(found: Synthetic, ending: str) -> bytes:
    from pyarrow import csv, parquet

    file = io.BytesIO()
    (parquet.write_table if ending == ".parquet" else csv.write_csv)(found.to_arrow(), file)
    return file.getvalue()

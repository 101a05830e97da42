"""`sordino suggest`: bounds for a declaration, found privately and charged."""

from __future__ import annotations

import sys
import uuid
from typing import Annotated, Any

import typer

from sordino.cli import remote
from sordino.cli.arguments import Analyst, Declaration
from sordino.cli.ask import INDENT, answered, interrupted, meter_of
from sordino.cli.declared import check_sources, load
from sordino.cli.numbers import exact
from sordino.cli.streams import folded, is_terminal, note, put_text, say, warn

__all__ = ["suggest"]


def suggest(
    file: Declaration,
    epsilon: Annotated[str, typer.Option(metavar="NUMBER", help="What the suggestion may cost.")],
    table: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Which table, where more than one is protected."),
    ] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Look for limits of this column. Default: all without limits. May be repeated.",
        ),
    ] = None,
    key: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Later questions group by this column: max_groups is also found. May be repeated.",
        ),
    ] = None,
    query_epsilon: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER", help="The epsilon of later questions. Default: a tenth of the budget."
        ),
    ] = None,
    analyst: Analyst = None,
    request_id: Annotated[
        str | None,
        typer.Option(
            metavar="ID", help="A name of your own: asked again, it gives the same lines for free."
        ),
    ] = None,
    preview: Annotated[
        bool,
        typer.Option(
            "--preview",
            help="Show what would be searched and what it would cost; nothing is charged or read.",
        ),
    ] = False,
) -> None:
    """Find bounds privately: rows and groups of a person, and limits of numbers and dates. It is charged like a
    question.

    The lines for the declaration go to standard output; accept those that you like by writing them into it.

    Example: sordino suggest visits.toml --epsilon 0.1
    """
    asked: dict[str, Any] = {
        "epsilon": exact(epsilon, "--epsilon"),
        "columns": column or None,
        "keys": key or (),
    }
    if query_epsilon is not None:
        asked["query_epsilon"] = exact(query_epsilon, "--query-epsilon")
    dataset = None if remote.is_address(file) else load(file)
    if preview and dataset is None:
        remote.preview_suggest(file, table, asked, analyst, INDENT)
        return
    if preview and dataset is not None:
        from sordino.plan.suggestion import plan_suggestion

        check_sources(dataset)
        plan = plan_suggestion(dataset, meter_of(dataset, analyst), table, **asked)
        say(folded(f"{plan.explain(folded=False)}\n  charged      nothing now", INDENT))
        return
    request = uuid.uuid4().hex if request_id is None else request_id
    try:
        if dataset is None:
            found, receipt = remote.answered(
                file, analyst, lambda s: s.suggest(table, request_id=request, **asked)
            )
        else:
            found, receipt = answered(
                dataset, request, analyst, lambda session: session.suggest(table, request_id=request, **asked)
            )  # fmt: skip
    except KeyboardInterrupt:
        raise interrupted(dataset, request, analyst) from None
    put_text(f"{found}\n")
    if is_terminal(sys.stderr):
        note("")
    for bound in found.found:
        if not bound.held:
            warn(
                f"{bound.name} is too uncertain to rely on. Ask with a larger --epsilon, or for fewer columns at once."
            )
    note(receipt)

"""Words that several commands take."""

from __future__ import annotations

from typing import Annotated

import typer

from sordino.cli.declared import toml_files

__all__ = ["Analyst", "Declaration", "Details", "Yes"]

Declaration = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="The declaration, such as visits.toml; or the address of a server.",
        autocompletion=toml_files,
    ),
]
Analyst = Annotated[
    str | None, typer.Option(metavar="NAME", help="Who asks, where the owner gave sub-budgets.")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask: I am the owner, and mean it.")]
Details = Annotated[
    bool, typer.Option("--details", help="Show prices as they are added up: epsilon and mu^2.")
]

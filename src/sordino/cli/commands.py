"""All commands, as one Typer app."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from sordino.cli import (
    ask,
    audit,
    budget,
    check,
    docs,
    explain,
    init,
    ledger,
    marginals,
    mcp,
    plan,
    receipt,
    report,
    serve,
    suggest,
    synthesize,
    workbench,
)
from sordino.cli.outcome import EXIT_CODES, exit_code
from sordino.cli.streams import say
from sordino.errors import InvalidInput

__all__ = ["app"]

_ORDER = (
    "init", "check", "suggest", "preview", "query", "marginals", "synthesize", "budget", "ledger", "receipt", "report",
    "explain", "plan", "audit", "workbench", "serve", "mcp", "schema", "docs", "version",
)  # fmt: skip
_OTHER_WORDS = {
    **dict.fromkeys(
        ("ask", "sql", "select", "run"), 'query visits.toml "SELECT ..." --epsilon 0.1'
    ),
    **dict.fromkeys(
        ("price", "cost", "estimate"), 'preview visits.toml "SELECT ..." --epsilon 0.1'
    ),
    **dict.fromkeys(("validate", "lint", "verify"), "check visits.toml"),
    **dict.fromkeys(("spent", "left", "remaining"), "budget visits.toml"),
    **dict.fromkeys(("new", "create", "declare", "schema"), "init visits.parquet"),
    "help": "--help",
}
_EPILOG = (
    "Answers go to standard output, everything else to standard error.\n\n\b\nExit codes:\n"
    + "\n".join(f"  {code:<4} {meaning}" for code, meaning in EXIT_CODES.items())
)


class _Commands(TyperGroup):
    """Whatever a command raises ends in a sentence and an exit code."""

    def list_commands(self, ctx: Any) -> list[str]:
        return sorted(super().list_commands(ctx), key=_ORDER.index)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and args[0] in _OTHER_WORDS and self.get_command(ctx, args[0]) is None:
            raise InvalidInput(
                args[0], "there is no such command", f"Write: sordino {_OTHER_WORDS[args[0]]}"
            )
        return super().resolve_command(ctx, args)

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        def run() -> Any:
            try:
                return super(_Commands, self).main(
                    args, prog_name, complete_var, False, windows_expand_args, **extra
                )
            except typer.Abort:  # Ctrl-C, or the end of input, at a question
                raise KeyboardInterrupt from None

        return sys.exit(exit_code(run)) if standalone_mode else run()


app = typer.Typer(
    cls=_Commands,
    name="sordino",
    epilog=_EPILOG,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
)


def _versions() -> str:
    import platform
    import sqlite3
    from importlib.metadata import PackageNotFoundError, version

    def installed(name: str) -> str:
        try:
            return version(name)
        except PackageNotFoundError:
            return "not installed"

    from sordino import __version__

    return "\n".join(
        f"{name:<9}{found}"
        for name, found in (
            ("Sordino", __version__),
            ("Python", platform.python_version()),
            ("DuckDB", installed("duckdb")),
            ("SQLite", sqlite3.sqlite_version),
        )
    )


def _show_version(wanted: bool) -> None:
    if wanted:
        say(_versions())
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _start(
    context: typer.Context,
    version: Annotated[  # noqa: ARG001
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the versions."),
    ] = False,
) -> None:
    """Answers about sensitive tables, with differential privacy and a budget that is kept.

    Start with `sordino init DATA`, fill in the declaration, check it, then preview and query.
    """
    if context.invoked_subcommand is None:
        say(context.get_help())


app.command("init", short_help="Write a declaration to fill in, from the schema of a file.")(
    init.init
)
app.command("check", short_help="Check a declaration against its data, without reading cells.")(
    check.check
)
app.command("suggest", short_help="Find bounds for a declaration privately, and pay for it.")(
    suggest.suggest
)
app.command("preview", short_help="Show the price of a question, for free.")(ask.preview)
app.command("query", short_help="Ask a question, and pay for it.")(ask.query)
app.command("synthesize", short_help="Make synthetic rows, with a page about their quality.")(
    synthesize.synthesize
)
app.command("marginals", short_help="Count rows in many tables at once, which agree.")(
    marginals.marginals
)
app.add_typer(
    budget.app, name="budget", short_help="Show what was spent and what is left, or change it."
)
app.add_typer(
    receipt.app,
    name="receipt",
    short_help="Prove that an answer was recorded, or check such a proof.",
)
app.add_typer(
    ledger.app, name="ledger", short_help="Verify the ledger, export it, take an anchor of it."
)
app.command("report", short_help="Write the page for a data-protection officer.")(report.report)
app.add_typer(
    explain.app, name="explain", short_help="Explain a mechanism, with numbers and a picture."
)
app.command("plan", short_help="Plan a budget for many questions.")(plan.plan)
app.add_typer(
    audit.app,
    name="audit",
    short_help="Audit a claim of privacy: of a function, a query, or the zoo.",
)
app.command("workbench", short_help="Ask your own tables in a browser.")(workbench.workbench)
app.command("serve", short_help="Lend the datasets of a folder to analysts, over HTTP.")(
    serve.serve
)
app.command("mcp", short_help="Give an agent tools to ask, over standard input and output.")(
    mcp.mcp
)
app.command("schema", short_help="Print the schema of declarations, for editors.")(check.schema)
app.command("docs", short_help="Print a page of the documentation, or the list of pages.")(
    docs.docs
)


@app.command("version")
def _version() -> None:
    """Show the versions."""
    say(_versions())

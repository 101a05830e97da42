"""The command `sordino`."""

from __future__ import annotations

import sys

from sordino.cli.outcome import exit_code

__all__ = ["main"]


def main() -> None:
    """Run the command line."""
    match sys.argv[1:]:
        case ["budget", file] if file.endswith(".toml"):
            # Asked so often that it is answered before the parser of command lines is loaded, which takes longer.
            from sordino.cli.budget_state import show

            sys.exit(exit_code(lambda: show(file)))
        case _:
            from sordino.cli.commands import app

            app(prog_name="sordino")

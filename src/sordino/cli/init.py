"""`sordino init`: a declaration to fill in, from the schema of a file only."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Annotated

import typer

from sordino.cli.streams import hanging, put_text, say
from sordino.errors import InvalidInput

__all__ = ["init"]


def init(
    source: Annotated[str, typer.Argument(metavar="DATA", help="A Parquet, CSV or DuckDB file.")],
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="Where to write it; - is standard output.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a declaration that is there.")] = False,
) -> None:
    """Write a declaration to fill in, from the names and types of the columns; no value is read.

    Example: sordino init visits.parquet
    """
    from sordino.query.dataset import Dataset
    from sordino.query.declaration import table_name

    if output == "-":
        put_text(Dataset.schema_stub(source))
        return
    target = Path(output or f"{table_name(Path(source))}.toml")
    if target.exists() and not force:
        rule = "it exists already, and may hold what you have filled in"
        raise InvalidInput(repr(str(target)), rule, "Choose another --output, or add --force to replace it.")
    if target.exists():
        _replace(source, target)
    else:
        Dataset.schema_stub(source, target)
    say(hanging(_next_steps(target, table_name(Path(source))), 14))


def _replace(source: str, target: Path) -> None:
    """Made aside first, so that what is there stays if the source cannot be read."""
    from sordino.query.dataset import Dataset

    if target.is_dir():
        raise InvalidInput(repr(str(target)), "it is a folder", "Choose another --output.")
    aside = target.with_name(f".{target.stem}.{os.getpid()}.toml")
    try:
        Dataset.schema_stub(source, aside)
        aside.replace(target)
    except OSError as error:
        raise InvalidInput(
            repr(str(target)), f"it cannot be written ({error.strerror})", "Choose another --output."
        ) from None
    finally:
        aside.unlink(missing_ok=True)


def _next_steps(target: Path, table: str) -> str:
    example = f'sordino preview {shlex.quote(str(target))} "SELECT COUNT(*) AS n FROM {table}" --epsilon 0.1'  # noqa: S608
    return f"""\
Wrote {target}, from the names and types of the columns alone. Fill in what only the owner knows:

  unit        who is protected: the column that names the person, or "row" if each row is another
  [budget]    what all answers together may reveal, such as epsilon = 1.0 and delta = 1e-6
  columns     limits (min, max, step) and values that are public; do not look them up in the data
  max_rows    how much one person may weigh in an answer, where the unit is a column

Then look at the price of a question, which is free:

  {example}"""

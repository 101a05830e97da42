"""`sordino init`: a declaration to fill in, from the schema of a file or a database only."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path
from typing import Annotated

import typer

from sordino.cli.streams import hanging, put_text, say
from sordino.errors import InvalidInput
from sordino.privacy.paths import is_folder, is_there

__all__ = ["SCHEMA", "init"]

SCHEMA = "sordino.schema.json"
"""How the schema is called beside a declaration."""


def init(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="DATA...", help="Parquet, CSV or DuckDB files, or postgresql://..., or spark."
        ),
    ],
    public: Annotated[
        list[str] | None,
        typer.Option(
            "--public", metavar="FILE", help="A file that everybody may see. May be repeated."
        ),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Where to write it; - is standard output."
        ),
    ] = None,
    table: Annotated[
        str | None,
        typer.Option(
            "--table", metavar="NAME", help="Of a database only this table, such as clinic.visits."
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace a declaration that is there.")
    ] = False,
    schema: Annotated[
        bool,
        typer.Option(
            "--schema",
            help="Write the schema for editors beside it, and let the declaration name it.",
        ),
    ] = False,
) -> None:
    """Write a declaration to fill in, from the names and types of the columns; no value is read.

    Several files are several tables of one declaration. A CSV file has no types: they are guessed from the names.

    Example: sordino init visits.parquet --public wards.csv
    """
    from sordino.query.dataset import Dataset

    public = public or []
    if output == "-":
        put_text(Dataset.schema_stub(sources, table=table, public=public))
        return
    name = _name(sources[0], table)
    target = Path(output or f"{name}.toml")
    if is_there(target) and not force:
        rule = "it exists already, and may hold what you have filled in"
        raise InvalidInput(
            repr(str(target)), rule, "Choose another --output, or add --force to replace it."
        )
    if is_there(target):
        _replace(sources, target, table, public)
    else:
        Dataset.schema_stub(sources, target, table=table, public=public)
    if schema:
        _write_schema(target)
    say(hanging(_next_steps(target, name), 14))


def _name(source: str, table: str | None) -> str:
    """What to call the declaration: like the table, the file or the database."""
    from sordino.query.sources import database_kind, name_parts, shown_address, table_name

    if database_kind(source) is None:
        return table_name(Path(source))
    inside = name_parts(table or "")
    database = re.search(r"/([A-Za-z0-9_-]+)(\?|$)", shown_address(source))
    return inside[-1] if inside else database[1] if database else "data"


def _replace(sources: list[str], target: Path, table: str | None, public: list[str]) -> None:
    """Made aside first, so that what is there stays if the source cannot be read."""
    from sordino.query.dataset import Dataset

    if is_folder(target):
        raise InvalidInput(repr(str(target)), "it is a folder", "Choose another --output.")
    aside = target.with_name(f".{target.stem}.{os.getpid()}.toml")
    try:
        Dataset.schema_stub(sources, aside, table=table, public=public)
        aside.replace(target)
    except OSError as error:
        raise InvalidInput(
            repr(str(target)),
            f"it cannot be written ({error.strerror})",
            "Choose another --output.",
        ) from None
    finally:
        aside.unlink(missing_ok=True)


def _write_schema(target: Path) -> None:
    """The schema beside a declaration, whose first line then names it: editors with Taplo look for that."""
    from sordino.cli.output import write_file
    from sordino.query.declaration_schema import SCHEMA_FILE

    beside = target.with_name(SCHEMA)
    write_file(str(beside), SCHEMA_FILE.read_bytes(), "--schema")
    target.write_text(f"#:schema ./{SCHEMA}\n{target.read_text('utf-8')}", "utf-8")


def _next_steps(target: Path, table: str) -> str:
    example = f'sordino preview {shlex.quote(str(target))} "SELECT COUNT(*) AS n FROM {table}" --epsilon 0.1'  # noqa: S608
    return f"""\
Wrote {target}, from the names and types of the columns alone. Fill in what only the owner knows:

  unit        who is protected: the column that names the person, or "row" if each row is another
  [budget]    what all answers together may reveal, such as epsilon = 1.0 and delta = 1e-6
  columns     limits (min, max, step) and values that are public; do not look them up in the data
  max_rows    how many rows of each person count in one answer, where the unit is a column

Then check it, and look at the price of a question, which is free:

  sordino check {shlex.quote(str(target))}
  {example}"""

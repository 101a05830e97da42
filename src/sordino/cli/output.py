"""An answer as a table, CSV, JSON or Parquet, on standard output or in a file."""

from __future__ import annotations

import contextlib
import io
import sys
import uuid
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from sordino.cli.declared import own_files
from sordino.cli.streams import is_terminal, put_text
from sordino.errors import InvalidInput
from sordino.privacy.paths import is_there, not_writable

if TYPE_CHECKING:
    from sordino.answer.answer import Answer
    from sordino.query.dataset import Dataset

__all__ = [
    "Format",
    "check_target",
    "chosen",
    "real_place",
    "remarks",
    "rendered",
    "write_file",
    "write_text",
]

_UNBOUNDED = 10**6


class Format(StrEnum):
    """How an answer is written."""

    table = "table"
    csv = "csv"
    json = "json"
    parquet = "parquet"


_ENDINGS = {
    ".csv": Format.csv,
    ".json": Format.json,
    ".parquet": Format.parquet,
    ".txt": Format.table,
    "": Format.table,
}
_SPREADSHEETS = (".xlsx", ".xls", ".xlsm", ".xlsb", ".ods", ".numbers")


def chosen(format_: Format | None, output: str | None) -> Format:
    """The format that was asked for, or that the ending of the file means; refused where it would fill the screen."""
    ending = "" if output is None else Path(output).suffix.lower()
    if format_ is None and ending not in _ENDINGS:
        rule = (
            f"without --format the ending says how to write it: {', '.join(filter(None, _ENDINGS))}"
        )
        excel = " Spreadsheets open .csv." if ending in _SPREADSHEETS else ""
        raise InvalidInput(
            f"--output {output!r}", rule, f"Write --output answer.csv.{excel} Nothing was charged."
        )
    known = format_ or _ENDINGS[ending]
    if output is None and known is Format.parquet and is_terminal(sys.stdout):
        rule = "Parquet is not for the eye"
        raise InvalidInput(
            "--format parquet", rule, "Add --output answer.parquet, or write to a pipe or a file."
        )
    if output is None and sys.stdout is None:
        raise InvalidInput(
            "a closed standard output", "the answer has nowhere to go", "Add --output answer.csv."
        )
    return known


def rendered(answer: Answer, format_: Format, *, formulas: bool = False) -> bytes:
    """The rows of an answer, all of them; text in UTF-8. In CSV, formulas are made inert unless they are to stay."""
    match format_:
        case Format.csv:
            return answer.to_csv(formulas=formulas).encode()
        case Format.json:
            return f"{answer.to_records_json()}\n".encode()
        case Format.parquet:
            from pyarrow import parquet

            file = io.BytesIO()
            parquet.write_table(answer.to_arrow(), file)
            return file.getvalue()
        case Format.table:
            return f"{_parts(answer)[0]}\n".encode()


def remarks(answer: Answer) -> list[str]:
    """What has to be said about the numbers: what the intervals hold, the promise, and notes."""
    return _parts(answer)[1]


def _parts(answer: Answer) -> tuple[str, list[str]]:
    """The table with all rows and columns, and the sentences below it."""
    text = answer.to_text(_UNBOUNDED, max(len(answer), 1))
    table, _, below = text.rpartition("\n\n")
    return (table, below.split("\n")) if table else (text, [])


def check_target(path: str | None, option: str, dataset: Dataset | None) -> None:
    """Refuse a file that could not be written, or that belongs to the dataset, before anything is charged."""
    if path is None:
        return
    target = real_place(path)
    fault = "it is not the path of a file" if target is None else not_writable(target)
    if (
        target is not None
        and not fault
        and dataset is not None
        and any(_same(target, own) for own in own_files(dataset))
    ):
        fault = "it is the declaration, the ledger or the data"
    if fault:
        raise InvalidInput(f"{option} {path!r}", fault, "Choose another file. Nothing was charged.")


def real_place(path: str) -> Path | None:
    """Where a path leads to, through all links; None if it leads nowhere."""
    try:
        return Path(path).resolve()
    except (OSError, RuntimeError, ValueError):  # links in a circle, a folder that is gone, a NUL
        return None


def _same(target: Path, own: Path) -> bool:
    """Whether two paths lead to one file, or would."""
    if is_there(target) and is_there(own):
        return target.samefile(own)
    return target == real_place(str(own))


def write_file(path: str, data: bytes, option: str) -> None:
    """Write a file; a new one appears whole or not at all."""
    target = real_place(path)  # through a link, not instead of it
    if target is None:
        rule = "it is not the path of a file"
        raise InvalidInput(f"{option} {path!r}", rule, "Choose another file.")
    # What is there is written to, not replaced: it may be a pipe or a device, and has an owner and permissions.
    aside = target if is_there(target) else target.with_name(f".sordino-{uuid.uuid4().hex}")
    try:
        # Made here, not found: nobody can put a link under that name beforehand.
        with aside.open("wb" if aside is target else "xb") as file:
            file.write(data)
        if aside is not target:
            aside.replace(target)
    except OSError as error:
        raise InvalidInput(
            f"{option} {path!r}", f"it cannot be written ({error.strerror})", "Choose another file."
        ) from None
    finally:
        if aside is not target:
            with contextlib.suppress(OSError):
                aside.unlink(missing_ok=True)


def write_text(text: str, output: str | None) -> None:
    """Write a text to a file; by default, and for "-", to standard output."""
    if output in (None, "-"):
        put_text(text)
    elif output is not None:
        write_file(output, text.encode(), "--output")

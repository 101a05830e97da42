"""The declaration that a command is given, and the ledger that belongs to it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sordino.errors import InvalidInput, LedgerUnavailable
from sordino.privacy.paths import is_file, is_folder

if TYPE_CHECKING:
    from sordino.ledger.ledger import Ledger
    from sordino.ledger.place import Place
    from sordino.query.dataset import Dataset

__all__ = [
    "check_sources", "existing_ledger", "ledger_place", "load", "opened_ledger", "own_files", "read_text", "toml_files",
]  # fmt: skip


def toml_files(incomplete: str) -> list[str]:
    """Declarations and folders that begin so, for shell completion."""
    folder = Path(incomplete) if incomplete.endswith("/") else Path(incomplete).parent
    shown = incomplete[: incomplete.rfind("/") + 1]
    try:
        found = sorted(folder.iterdir())
    except OSError:
        return []
    kept = (p for p in found if not p.name.startswith("."))
    names = [
        f"{shown}{p.name}/" if is_folder(p) else f"{shown}{p.name}"
        for p in kept
        if is_folder(p) or p.suffix == ".toml"
    ]
    return [name for name in names if name.startswith(incomplete)]


def load(file: str) -> Dataset:
    """The dataset that a file declares."""
    from sordino.query.dataset import Dataset

    if file.lstrip()[:6].upper() == "SELECT":
        shown = repr(file if len(file) < 60 else f"{file[:57]}...")
        raise InvalidInput(
            shown, "the declaration comes first", 'Write: sordino query visits.toml "SELECT ..."'
        )
    beside = f"{file}.toml"
    if not file.lower().endswith(".toml") and is_file(Path(beside)):
        raise InvalidInput(
            repr(file), "a declaration is a file that ends in .toml", f"Did you mean {beside}?"
        )
    return Dataset.load(file)


def ledger_place(dataset: Dataset) -> Place:
    """Where the ledger of a dataset is, or will be."""
    from sordino.ledger.ledger import Ledger
    from sordino.ledger.place import Place

    return Place.of(Ledger.place_of(dataset) or "")  # a declaration from a file always has one


def check_sources(dataset: Dataset) -> None:
    """Refuse a declaration whose files are missing, or lack its unit or a column; looks at names of columns only."""
    from sordino.engines.gate import expect_columns, pinned
    from sordino.query.stub import source_columns

    pinned(dataset.tables.values())
    for table in dataset.tables.values():
        if table.source.path is not None:
            expect_columns(table, source_columns(table.source, table.name))


def own_files(dataset: Dataset) -> list[Path]:
    """The declaration, the ledger with its journals and the data, which no command writes to."""
    from sordino.ledger.ledger import Ledger

    ledger = Ledger.place_of(dataset) or ""
    kept = [Path(f"{ledger}{ending}") for ending in ("", "-journal", "-wal", "-shm")]
    paths = [dataset.file, *kept, *(table.source.path for table in dataset.tables.values())]
    return [path for path in paths if path is not None]


def existing_ledger(dataset: Dataset) -> Ledger | None:
    """The ledger as it is, whatever budget it holds; None if there is none, and none was seen here before."""
    from sordino.ledger.ledger import Ledger
    from sordino.ledger.witness import Witness

    place = ledger_place(dataset)
    if not place.exists() and Witness().recall(place.shown) is None:
        return None
    return Ledger.open(dataset, create=False, as_declared=False)


def opened_ledger(dataset: Dataset) -> Ledger:
    """The ledger as it is, whatever budget it holds; refuses if there is none."""
    ledger = existing_ledger(dataset)
    if ledger is None:
        hint = "It is made when the first question is asked."
        raise LedgerUnavailable(ledger_place(dataset).shown, "there is none yet", hint)
    return ledger


def read_text(path: Path, what: str) -> str:
    """The text of a file that was named on the command line."""
    try:
        return path.read_bytes().decode(errors="replace")
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "not a path"
        raise InvalidInput(
            repr(str(path)), f"{what} cannot be read there ({why})", "Check the path."
        ) from None

"""Where the ledger of a dataset is, how a new one begins, and when one may be made."""

from __future__ import annotations

import uuid

from sordino.errors import LedgerUnavailable
from sordino.ledger.chain import START, Entry, Row, digest
from sordino.ledger.fingerprint import Prints
from sordino.ledger.place import Place
from sordino.ledger.recognition import ACCEPT
from sordino.ledger.store import Store
from sordino.ledger.terms import Terms
from sordino.ledger.witness import Witness
from sordino.privacy.wording import counted
from sordino.query.dataset import Dataset

__all__ = ["first_entry", "open_store", "place_of", "prints_of"]


def place_of(dataset: Dataset) -> str | None:
    """Where the ledger of a dataset is: as declared, or beside the declaration."""
    return dataset.ledger or (
        None if dataset.file is None else str(dataset.file.with_suffix(".ledger"))
    )


def prints_of(dataset: Dataset) -> Prints:
    """How the data are recognized that belong to somebody: by samples of files, by the place of tables in databases."""
    sources = {name: table.source for name, table in dataset.tables.items() if not table.public}
    places = [source.place for source in sources.values() if source.place is not None]
    return Prints({name: source.path for name, source in sources.items()}, places)


def first_entry(terms: Terms) -> tuple[Row, bytes]:
    """The first entry of a new ledger, different from that of any other, and its secret."""
    key = uuid.uuid4().bytes + uuid.uuid4().bytes
    facts = {**terms.facts, "key": digest(key), "name": uuid.uuid4().hex}
    return Entry.after(START, "declare", facts).row, key


def open_store(
    place: Place, terms: Terms, witness: Witness | None, *, create: bool = True
) -> Store:
    """The store at a place; a new one only where none was ever seen."""
    seen = None if witness is None else witness.recall(place.shown)
    if not place.exists():
        if seen is not None:
            rule = f"it is gone: when it was last used here it had {counted(seen.count, 'entry', 'entries')}"
            raise LedgerUnavailable(
                place.shown, rule, f"Put it back; nothing is granted without it. {ACCEPT}."
            )
        if not create:
            raise LedgerUnavailable(
                place.shown, "there is none yet", "It is made when the first session opens."
            )
        place.create(*first_entry(terms))
    return place.open()

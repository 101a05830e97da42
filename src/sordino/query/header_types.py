"""The type that the name of a column suggests: all that is known of a CSV file before a cell is read.

A guess is for the owner to check. Where the name suggests nothing, or several things, the column is text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from sordino.query.dataset import Kind

__all__ = ["suggested"]

_WORDS: Mapping[Kind, frozenset[str]] = {
    "bool": frozenset({"is", "has", "was", "flag"}),
    "datetime": frozenset({"timestamp", "datetime", "at"}),
    "date": frozenset({"date", "day", "birthday", "dob", "on"}),
    "int": frozenset({"age", "year", "count", "number", "num", "quantity", "qty", "children", "persons", "visits", "days",
                      "hours", "minutes", "floor", "rank", "votes"}),
    "float": frozenset({"cost", "price", "amount", "fee", "salary", "income", "revenue", "weight", "height", "length",
                        "width", "distance", "duration", "score", "rate", "ratio", "percent", "share", "temperature", "lat",
                        "latitude", "lon", "lng", "longitude", "value", "total", "balance"}),
}  # fmt: skip
_FIRST = {"bool": frozenset({"is", "has", "was"})}
"""These count at the beginning of a name only."""
_LAST: Mapping[Kind, frozenset[str]] = {
    "datetime": frozenset({"at"}),
    "date": frozenset({"on", "day"}),
}
"""These count at the end of a name only."""


def suggested(name: str) -> Kind:
    """The type that a name suggests; text if it suggests none.

    Example:
        >>> [suggested(name) for name in ("age", "admittedAt", "is_urgent", "unit price", "ward", "patient_number_id")]
        ['int', 'datetime', 'bool', 'float', 'text', 'text']
    """
    parts = re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)
    words = [part.casefold() for part in parts]
    if not words or words[-1] in ("id", "key", "code", "name", "type", "group"):
        return "text"
    found = [
        kind
        for kind, known in _WORDS.items()
        if any(_counts(kind, words, i) for i in range(len(words)) if words[i] in known)
    ]
    return found[0] if len(found) == 1 else "text"


def _counts(kind: Kind, words: list[str], place: int) -> bool:
    word = words[place]
    if word in _FIRST.get(kind, ()):
        return place == 0 and len(words) > 1
    if word in _LAST.get(kind, ()):
        return place == len(words) - 1
    return True

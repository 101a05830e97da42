"""One entry of the zoo: a mechanism, what it claims, and what is true; and how entries are read from their data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from sordino.audit.known_truth.queries import visits
from sordino.audit.known_truth.vocabulary import formula

__all__ = ["ZooEntry", "read_entry"]


@dataclass(frozen=True, kw_only=True)
class ZooEntry:
    """A mechanism of known truth.

    `truth` is the epsilon that it truly needs at the claimed delta, in the worst case of the neighbours below;
    infinite if none is enough. Of a broken one it may also be a lower bound, of a right one an upper bound.

    `mechanism` is one of ours, or is called as its audit does: with `size=` in batches or for one output, with a coin;
    or it is a query.
    With `pair` the audit compares these two inputs; without, it searches the patterns of `neighbors`, `length` and
    `domain`.
    """

    name: str
    title: str
    why: str
    mechanism: Any
    epsilon: float
    truth: float
    broken: bool = False
    delta: float = 0.0
    pair: tuple[Any, Any] | None = None
    neighbors: str | None = None
    length: int = 5
    domain: tuple[float, float] | None = None
    method: Literal["black box", "exact law", "record and replay"] = "black box"
    samples: int = 400_000


def read_entry(name: str, fields: dict[str, Any]) -> ZooEntry:
    """The entry of a table in TOML, whose `mechanism` is a SQL query or a formula."""
    known: dict[str, Any] = {**fields, "name": name}
    for ends in {"pair", "domain"} & known.keys():
        known[ends] = tuple(known[ends])
    if known["mechanism"].startswith("SELECT "):
        known["pair"] = tuple(map(visits, known["pair"]))
    else:
        known["mechanism"] = formula(known["mechanism"])
    return ZooEntry(**known)

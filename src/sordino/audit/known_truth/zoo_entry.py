"""One entry of the zoo: a mechanism, what it claims, and what is true; and how entries are read from their data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal

from sordino.audit.sampled.runs import in_batches

__all__ = ["ZooEntry", "read_entry"]


@dataclass(frozen=True, kw_only=True)
class ZooEntry:
    """A mechanism of known truth.

    `truth` is the epsilon that it truly needs at the claimed delta, in the worst case of the neighbours below;
    infinite if none is enough. Of a broken one it may also be a lower bound, of a right one an upper bound.

    `mechanism` is called as its audit does: with `size=` in batches or for one output, with a coin, or it is a query.
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
    """The entry of a table in TOML.

    `mechanism` is a SQL query, or names a function of a module of this room, beside the options that it is called with.
    """
    fields = dict(fields)
    for ends in ("pair", "domain"):
        if ends in fields:
            fields[ends] = tuple(fields[ends])
    if isinstance(fields["mechanism"], dict):
        fields["mechanism"] = _mechanism(**fields["mechanism"])
    else:
        from sordino.audit.known_truth.programs import visits

        fields["pair"] = tuple(map(visits, fields["pair"]))
    return ZooEntry(name=name, **fields)


def _mechanism(function: str, **options: Any) -> Callable[..., Any]:
    """The function with its options; a function of this package, whose draws are known to be independent."""
    module, name = function.split(".")
    made: Callable[..., Any] = getattr(import_module(f"sordino.audit.known_truth.{module}"), name)
    if not options:
        return made
    if in_batches(made):
        return lambda data, *, size: made(data, size, **options)
    return lambda data: made(data, **options)

"""One entry of the zoo: a mechanism, what it claims, and what is true."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

__all__ = ["Specimen"]


@dataclass(frozen=True, kw_only=True)
class Specimen:
    """A mechanism of known truth.

    `truth` is the epsilon that it truly needs at the claimed delta, in the worst case of the neighbours below; infinite if
    none is enough. Of a broken one it may also be a lower bound, of a right one an upper bound.

    `mechanism` is called as its audit does: with `size=` in batches or for one output, with a coin, or it is a query.
    With `pair` the audit compares these two inputs; without, it searches the patterns of `neighbors`, `length` and `domain`.
    """

    name: str
    title: str
    broken: bool
    why: str
    mechanism: Any
    epsilon: float
    truth: float
    delta: float = 0.0
    pair: tuple[Any, Any] | None = None
    neighbors: str | None = None
    length: int = 5
    domain: Any = None
    method: Literal["black box", "exact law", "record and replay"] = "black box"
    samples: int = 400_000

"""How far the exact numbers behind an answer are apart on two inputs, and how far its plan says they may be.

Everything is whole numbers or fractions, so a bound that is broken by one unit is seen as broken.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from sordino.plan.plan import Plan
from sordino.release import Groups

__all__ = [
    "Cells", "Exactly", "Moved", "Vector", "exactly", "keys_moved", "moved", "vector_steps", "weight_moved",
]  # fmt: skip

Cells = tuple[Any, ...]
Vector = tuple[Any, ...]
"""Whole numbers, or fractions of them."""


@dataclass(frozen=True)
class Exactly:
    """Sums by release and key, zeros left out: vectors, the weight of each value that is drawn from, keys' weights, and
    the numbers of what lies beyond the bounds.
    """

    vectors: dict[str, dict[Cells, Vector]]
    cells: dict[str, dict[Cells, dict[int, int]]]
    found: dict[Cells, int] | None
    beyond: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Moved:
    """How far a part of a plan is apart on two inputs in one norm, and how far it may be; L2 distances are squared."""

    part: str
    norm: str
    observed: Fraction | int
    declared: int

    @property
    def tightness(self) -> float:
        """1 where the bound is reached; above 1 it is broken."""
        if self.declared:
            return float(Fraction(self.observed) / self.declared)
        return math.inf if self.observed else 0.0

    @property
    def broken(self) -> bool:
        """Whether the inputs are further apart than declared."""
        return self.observed > self.declared


def exactly(groups: Groups) -> Exactly:
    """The sums of exact groups by key."""

    def by_key(own: Iterable[Any]) -> Iterator[tuple[Cells, Any]]:
        return zip(groups.keys, own, strict=True)

    vectors = {
        name: {key: tuple(map(int, v)) for key, v in by_key(own.tolist()) if any(v)}
        for name, own in groups.vectors.items()
    }
    cells = {
        name: {
            key: dict(zip(v.tolist(), w.tolist(), strict=True))
            for key, (v, w) in by_key(own)
            if len(v)
        }
        for name, own in groups.cells.items()
    }
    found = None if groups.found is None else dict(by_key(map(int, groups.found)))
    return Exactly(vectors, cells, found, None if groups.beyond is None else tuple(groups.beyond))


def moved(plan: Plan, one: Exactly, other: Exactly) -> list[Moved]:
    """Every distance that the plan bounds, between two tables; a key of one of them only has zeros in the other."""
    found = []
    for release in plan.sums:
        sensitivity, name = release.sensitivity, type(release.partial).__name__
        differences = vector_steps(one.vectors[release.name], other.vectors[release.name])
        if plan.price.family == "laplace":
            if sensitivity.l1 is not None:
                found.append(Moved(name, "l1", sum(differences), sensitivity.l1))
        else:
            found.append(Moved(name, "l2", sum(d * d for d in differences), sensitivity.l2_squared))
        found.append(Moved(name, "linf", max(differences, default=0), sensitivity.linf))
        if sensitivity.l0 is not None:
            found.append(Moved(name, "l0", sum(1 for d in differences if d), sensitivity.l0))
    for drawn in plan.drawn:
        name = "Quantile" if drawn.column.draws.is_number else "Mode"
        weight = weight_moved(one.cells[drawn.name], other.cells[drawn.name])
        found.append(Moved(name, "l1", weight, drawn.moved))
    selection = None if plan.selection is None else plan.selection.mechanism
    if selection is not None:
        steps = keys_moved(one, other)
        found.append(Moved("Keys", "l1", sum(steps), selection.l1))
        found.append(Moved("Keys", "linf", max(steps, default=0), selection.linf))
    if plan.beyond is not None and one.beyond is not None and other.beyond is not None:
        steps = [abs(a - b) for a, b in zip(one.beyond, other.beyond, strict=True)]
        found.append(Moved("Beyond", "l1", sum(steps), plan.beyond.l1))
    return found


def keys_moved(one: Exactly, other: Exactly) -> list[int]:
    """How far the weights of keys are apart."""
    ours, theirs = one.found or {}, other.found or {}
    return [abs(ours.get(key, 0) - theirs.get(key, 0)) for key in ours.keys() | theirs.keys()]


def vector_steps(a: dict[Cells, Vector], b: dict[Cells, Vector]) -> list[Any]:
    """How far each number of two vectors by key is apart."""
    return [
        abs(x - y)
        for key in a.keys() | b.keys()
        for x, y in itertools.zip_longest(a.get(key, ()), b.get(key, ()), fillvalue=0)
    ]


def weight_moved(a: dict[Cells, dict[int, int]], b: dict[Cells, dict[int, int]]) -> int:
    """The weight that is moved, over all groups and values."""
    return sum(
        abs(a.get(key, {}).get(k, 0) - b.get(key, {}).get(k, 0))
        for key in a.keys() | b.keys()
        for k in a.get(key, {}).keys() | b.get(key, {}).keys()
    )

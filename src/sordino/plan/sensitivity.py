"""How far one person moves a channel's sums, in every norm; the proofs are in sensitivity.md."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from sordino.privacy.neighbors import Neighbors
from sordino.query.aggregates.partial import Partial

__all__ = ["WEIGHT", "Contribution", "Norm", "Sensitivity", "bounding", "square_root_upper"]

Norm = Literal["l1", "l2"]

WEIGHT = 2**16
"""The weight of a person whose contribution is not scaled down: weights are whole multiples of 1/WEIGHT."""


@dataclass(frozen=True)
class Contribution:
    """What the declaration and the query say of one person: rows a group, groups, and the neighbour relation.

    `certain` says that each person has exactly one row, and that no filter or group leaves it out. `public` says that the
    table protects nobody. `scaled` says that a person may be in more groups than that and is then scaled down.
    """

    neighbors: Neighbors
    rows: int
    groups: int
    grouped: bool
    certain: bool = False
    public: bool = False
    scaled: bool = False

    @property
    def persons(self) -> int:
        """How many persons' contributions neighbours differ in: who is replaced leaves, and another one comes."""
        return 2 if self.neighbors is Neighbors.REPLACE else 1


@dataclass(frozen=True)
class Sensitivity:
    """The largest distances between neighbours, in whole units of the channel's lattice; `l0` counts coordinates.

    None where there is no bound: a person in any number of groups, scaled down in L2, has no bounded L0 or L1.
    """

    l0: int | None
    l1: int | None
    l2_squared: int
    linf: int

    @property
    def l2(self) -> Fraction:
        """The L2 distance, rounded up where it is irrational."""
        return square_root_upper(self.l2_squared)

    @property
    def nothing(self) -> bool:
        """Whether neighbours never differ, so that the value is public."""
        return self.linf == 0


def square_root_upper(square: int) -> Fraction:
    """The square root of a whole number, rounded up to a multiple of 2^-32; exact for squares."""
    root = math.isqrt(square)
    if root * root == square:
        return Fraction(root)
    return Fraction(math.isqrt(square << 64) + 1, 1 << 32)


def bounding(partial: Partial, who: Contribution, weight: int, norm: Norm) -> Sensitivity:
    """The sensitivity of partial sums whose weights are multiples of 1/`weight`.

    `norm` is the one in which persons in many groups are scaled down: then `l0` is None, and in L2 so is `l1`.
    Privacy: sensitivity.md, Theorems 1 and 2.
    """
    found = _unscaled(partial, who, weight)
    if not who.scaled or partial.bounding == "choose":  # who chooses groups is in no more than that
        return found
    return Sensitivity(None, None if norm == "l2" else found.l1, found.l2_squared, found.linf)


def _unscaled(partial: Partial, who: Contribution, weight: int) -> Sensitivity:
    """The same for a person who cannot be in too many groups."""
    if who.public:
        return Sensitivity(0, 0, 0, 0)
    reach = partial.reach
    rows = 1 if partial.bounding == "once" else who.rows
    l1, l2_squared, linf = (
        weight * who.groups * rows * reach.l1,
        weight**2 * who.groups * rows**2 * reach.l2_squared,
        weight * rows * reach.linf,
    )
    l0 = partial.width * who.groups
    if who.neighbors is Neighbors.ADD_REMOVE:
        return Sensitivity(l0, l1, l2_squared, linf)
    if who.certain and partial.always:
        spread, twice = weight * reach.spread, min(partial.width, 2)  # wider vectors are nonnegative with a constant sum
        return Sensitivity(l0, twice * spread, twice * spread**2, spread)
    l0 = 2 * l0 if who.grouped else l0
    if not who.grouped and (apart := reach.replaced) is not None:
        most = weight * rows
        return Sensitivity(l0, most * apart.l1, most**2 * apart.l2_squared, most * apart.linf)
    if not who.grouped and partial.width == 1:
        wide = linf if not reach.signed else weight * rows * reach.spread
        return Sensitivity(l0, wide, wide**2, wide)
    twice = 4 if reach.signed else 2
    return Sensitivity(l0, 2 * l1, twice * l2_squared, 2 * linf if reach.signed else linf)

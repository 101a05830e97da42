"""How far one person moves a channel's sums, in every norm; the proofs are in sensitivity.md."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

from sordino.privacy.neighbors import Neighbors
from sordino.query.aggregates.partial import Bounding, Partial
from sordino.query.bounds import Bounds, least

__all__ = [
    "WEIGHT", "Contribution", "Norm", "Quota", "Sensitivity", "bounding", "square_root_upper",
]  # fmt: skip

Norm = Literal["l1", "l2"]

WEIGHT = 2**16
"""The weight of a person whose contribution is not scaled down: weights are whole multiples of 1/WEIGHT."""


@dataclass(frozen=True)
class Quota:
    """How many rows of one person count for partial sums: in each group, and in all of them together.

    `groups` is in how many groups a person can count, None if in any number. `scaled` says that a person may have more
    in all groups together and is then scaled down.
    """

    each: int
    total: int
    groups: int | None
    scaled: bool

    @property
    def squares(self) -> int:
        """The largest sum of squares of numbers of rows, each at most `each` and together at most `total`."""
        full, rest = divmod(self.total, self.each)
        return full * self.each**2 + rest**2


@dataclass(frozen=True)
class Contribution:
    """What the declaration and the query say of one person: bounds, the neighbour relation, and how many groups there
    are.

    `possible` is the number of public groups, None where keys are private. `by_row` says that nobody has more than one
    row, `certain` that each person has exactly one, and that no filter or group leaves it out. `public` says that the
    table protects nobody.
    """

    neighbors: Neighbors
    bounds: Bounds
    possible: int | None
    grouped: bool
    by_row: bool = False
    certain: bool = False
    public: bool = False

    @property
    def persons(self) -> int:
        """How many persons' contributions neighbours differ in: who is replaced leaves, and another one comes."""
        return 2 if self.neighbors is Neighbors.REPLACE else 1

    def applied(self, bounding: Bounding, norm: Norm) -> Bounds:
        """The bounds that are applied: for L1 only `rows` where it is as low with that
        alone (sensitivity.md, Lemma 3).
        """
        given = self.bounds
        enough = (
            norm == "l1" and given.rows is not None and self._total(bounding, given) == given.rows
        )
        return Bounds(given.rows) if enough else given

    def _each(self, bounding: Bounding, given: Bounds) -> int | None:
        return 1 if bounding == "once" else least(given.per_group, given.rows)

    def _total(self, bounding: Bounding, given: Bounds) -> int | None:
        each, groups = self._each(bounding, given), least(given.groups, self.possible)
        return least(given.rows, None if each is None or groups is None else each * groups)

    def quota(self, bounding: Bounding, norm: Norm) -> Quota | None:
        """How many rows count for partial sums that are bounded like this; None if nothing bounds them."""
        if self.by_row:
            return Quota(1, 1, 1, scaled=False)
        given, possible = self.applied(bounding, norm), self.possible
        each, total, groups = (
            self._each(bounding, given),
            self._total(bounding, given),
            least(given.groups, possible),
        )
        if each is None or total is None:
            return None
        scaled = possible is None or total < possible * each
        # who chooses is in no more groups than that, and in each with one value at least
        if bounding == "choose":
            groups = least(groups, total)
        return Quota(
            min(each, total), total, groups if bounding == "choose" or not scaled else None, scaled
        )

    def expect_quota(self, bounding: Bounding, norm: Norm) -> Quota:
        """The same where a plan has found that there is one."""
        quota = self.quota(bounding, norm)
        if quota is None:
            raise AssertionError("nothing bounds how much of one person counts")
        return quota


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
    if who.public:
        return Sensitivity(0, 0, 0, 0)
    quota = who.expect_quota(partial.bounding, norm)
    found = _within(partial, who, quota, weight)
    if norm == "l1" or not quota.scaled or partial.bounding == "choose":
        return found
    return replace(found, l1=None)


def _within(partial: Partial, who: Contribution, quota: Quota, weight: int) -> Sensitivity:
    """The distances where one person has no more than the quota, in every norm."""
    reach = partial.reach
    l1, l2_squared, linf = (
        weight * quota.total * reach.l1,
        weight**2 * quota.squares * reach.l2_squared,
        weight * quota.each * reach.linf,
    )
    l0 = None if quota.groups is None else partial.width * quota.groups
    if who.neighbors is Neighbors.ADD_REMOVE:
        return Sensitivity(l0, l1, l2_squared, linf)
    if who.certain and partial.always:
        # wider vectors are nonnegative with a constant sum
        spread, twice = (
            weight * reach.spread,
            min(partial.width, 2),
        )
        return Sensitivity(l0, twice * spread, twice * spread**2, spread)
    l0 = 2 * l0 if l0 is not None and who.grouped else l0
    if not who.grouped and (apart := reach.replaced) is not None:
        most = weight * quota.each
        return Sensitivity(l0, most * apart.l1, most**2 * apart.l2_squared, most * apart.linf)
    if not who.grouped and partial.width == 1:
        wide = linf if not reach.signed else weight * quota.each * reach.spread
        return Sensitivity(l0, wide, wide**2, wide)
    twice = 4 if reach.signed else 2
    return Sensitivity(l0, 2 * l1, twice * l2_squared, 2 * linf if reach.signed else linf)

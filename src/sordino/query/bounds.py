"""How much of one person counts: rows in the whole answer, rows within a group, and groups.

Each bound is optional; what follows from those that are given is proven in plan/sensitivity.md.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass

__all__ = ["NAMES", "NO_BOUNDS", "Bounds", "least"]

NAMES = ("max_rows", "max_rows_per_group", "max_groups")
"""The names of the bounds in declarations and questions, in the order of the fields of `Bounds`."""


@dataclass(frozen=True)
class Bounds:
    """At most `rows` rows in one answer, `per_group` of them in one group,
    in at most `groups` groups; None: no bound.
    """

    rows: int | None = None
    per_group: int | None = None
    groups: int | None = None

    @property
    def given(self) -> dict[str, int]:
        """The bounds that there are, by name."""
        return {
            name: bound
            for name, bound in zip(NAMES, astuple(self), strict=True)
            if bound is not None
        }

    @property
    def total(self) -> int | None:
        """The most rows in one answer, by all that is given; None if nothing bounds it."""
        product = (
            None if self.per_group is None or self.groups is None else self.per_group * self.groups
        )
        return least(self.rows, product)

    def within(self, other: Bounds) -> Bounds:
        """The tighter of both, bound by bound."""
        pairs = zip(astuple(self), astuple(other), strict=True)
        return Bounds(*(least(one, another) for one, another in pairs))

    def beside(self, other: Bounds) -> Bounds:
        """Of one person's pairs of rows: the wider of both, or the one that is given."""
        pairs = zip(astuple(self), astuple(other), strict=True)
        return Bounds(*(max((x for x in pair if x is not None), default=None) for pair in pairs))

    def after(self, other: Bounds) -> Bounds:
        """Of one person's rows of two tables, one after another: the sum of both."""
        pairs = zip(astuple(self), astuple(other), strict=True)
        return Bounds(
            *(None if one is None or another is None else one + another for one, another in pairs)
        )


NO_BOUNDS = Bounds()


def least(*bounds: int | None) -> int | None:
    """The smallest of those that there are."""
    return min((bound for bound in bounds if bound is not None), default=None)

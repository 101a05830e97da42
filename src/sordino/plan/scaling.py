"""How much of one person's share counts: each share is bounded, and all of a person's are scaled down together.

Lemmas 1 and 2 of sensitivity.md, as SQL over `shares`: one row for each person and group, with the person's own sums.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from sordino.plan.fragments import column, whole
from sordino.plan.sensitivity import WEIGHT, Norm, Quota
from sordino.query.aggregates.partial import Partial
from sordino.query.meaning.neutral import WideDiv
from sordino.query.types import LARGEST

__all__ = ["Term", "bounded", "full", "least", "person_weight", "share_weight", "size"]


@dataclass(frozen=True)
class Term:
    """Partial sums of columns of the lines: none where rows are counted; `name` begins the names of the sums.

    `quota` is how much of one person counts for them. Where values are chosen, `groups` is in how many groups, None if
    in all of them.
    """

    partial: Partial
    name: str
    columns: tuple[str, ...]
    quota: Quota
    groups: int | None = None

    @property
    def sums(self) -> list[tuple[exp.Expr, str]]:
        """The sums over rows, each with its name."""
        return list(zip(self.partial.sums(*map(column, self.columns)), self.names, strict=True))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the sums."""
        return tuple(f"s{self.name}_{j}" for j in range(self.partial.inputs))

    @property
    def rows(self) -> exp.Expr:
        """How many of a person's rows count, for scaling."""
        return exp.Count(
            this=exp.Star()
            if self.partial.every_row or not self.columns
            else column(self.columns[0])
        )


def full(weight: exp.Expr) -> exp.Expr:
    """Persons who need no scaling are not in `spread`: their weight is whole."""
    return exp.Coalesce(this=weight, expressions=[whole(WEIGHT)])


def bounded(term: Term, own: exp.Expr, weighted: bool) -> exp.Expr:
    """A person's own sum in one group, cut to what the rows that count can reach where sums are cut."""
    rows = term.quota.each
    if term.partial.bounding != "clip":
        return (
            exp.Coalesce(this=own, expressions=[whole(0)])
            if term.partial.bounding == "scale"
            else own
        )
    if not term.partial.grids:
        return exp.func("LEAST", own, whole(rows))
    (grid,) = term.partial.grids
    low, high = min(0, rows * grid.first), max(0, rows * grid.last)
    # a person without a value here has the sum NULL, which LEAST would skip and so turn into the bound
    clipped = exp.func("LEAST", exp.Coalesce(this=own, expressions=[whole(0)]), whole(high))
    if low:
        clipped = exp.func("GREATEST", clipped, whole(low))
    small = max(-low, high) * (WEIGHT if weighted else 1) < LARGEST
    return exp.cast(clipped, "BIGINT") if small else clipped


def share_weight(term: Term) -> exp.Expr | None:
    """The person's weight in this group in units of 1/WEIGHT, or None where it is always 1."""
    weight: exp.Expr | None = full(column(f"w{term.name}")) if term.quota.scaled else None
    if term.partial.bounding != "scale":
        return weight
    n = column(f"n{term.name}")
    scale = exp.Mul(this=weight or whole(WEIGHT), expression=least(n, term.quota.each))
    # weights and numbers of rows that count are BIGINT, and so is their product, which is below 2^46
    return exp.IntDiv(this=exp.Paren(this=scale), expression=exp.func("GREATEST", n, whole(1)))


def size(term: Term) -> tuple[exp.Expr, int]:
    """How much a person's bounded share of one group weighs,
    and the most that one row can: a norm, in a common unit.
    """
    match term.partial.bounding:
        case "once":
            return whole(1), 1
        case "scale":
            return least(column(f"n{term.name}"), term.quota.each), 1
        case "choose":
            return least(column(term.names[0]), term.quota.each), 1
        case "clip":
            (name,), grids = term.names, term.partial.grids
            row = max((max(abs(grid.first), abs(grid.last)) for grid in grids), default=1)
            own = bounded(term, column(name), weighted=False)
            return (exp.Abs(this=own) if any(grid.first < 0 for grid in grids) else own), max(
                row, 1
            )


def person_weight(size: exp.Expr, row: int, quota: Quota, norm: Norm) -> exp.Expr:
    """Over the groups of one person: the largest whole w <= WEIGHT with w |x| <= WEIGHT * bound, x being all shares.

    The bound is total * row in L1, sqrt(squares) * row in L2, a row weighing at most `row`. Shares are counted in
    whole units, rounded up, so that nothing overflows; a unit is 1 unless a share can be very large. The square root
    is exact: for whole S <= 2^32 the float nearest to sqrt(S) has the same floor.
    """
    most, groups = quota.each * row, -(-quota.total // quota.each)
    unit = max(1, most >> (20 if norm == "l1" else (28 - groups.bit_length()) // 2))
    if unit > 1:
        size = WideDiv(
            this=exp.Paren(this=exp.Add(this=size, expression=whole(unit - 1))),
            expression=whole(unit),
        )
    if norm == "l1":
        total, bound = exp.Sum(this=size), WEIGHT * (quota.total * row // unit)
    else:
        total = exp.Sum(
            this=exp.Mul(this=exp.Paren(this=size), expression=exp.Paren(this=size.copy()))
        )
        bound = WEIGHT**2 * (quota.squares * row**2 // unit**2)
    # no person has anything in 2^40 groups, so that the sum fits into 64 bits
    positive = exp.func("GREATEST", exp.cast(total, "BIGINT"), whole(1))
    divided = exp.IntDiv if bound < LARGEST else WideDiv
    ratio = exp.Paren(this=divided(this=whole(bound), expression=positive))
    if norm == "l1":
        weight = exp.func("LEAST", ratio, whole(WEIGHT))
        return weight if bound < LARGEST else exp.cast(weight, "BIGINT")
    square = exp.func("LEAST", ratio, whole(WEIGHT**2))
    return exp.cast(exp.func("FLOOR", exp.func("SQRT", exp.cast(square, "DOUBLE"))), "BIGINT")


def least(value: exp.Expr, most: int) -> exp.Expr:
    """The value, or the most that it may be."""
    return exp.Least(this=value.copy(), expressions=[whole(most)])

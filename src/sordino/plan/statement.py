"""The SQL that computes exact whole numbers: rows are cleaned, summed for each person and group, bounded, and added up.

Built from the plan only, as a syntax tree; no text of a user enters it except quoted names from the declaration and
literals. Nothing in it can fail on any data, nothing is random, and every sum is of integers, so that the result does not
depend on the order of rows or the number of threads.

    cells   one row a row: cleaned columns            (FROM the table, with lookups in public tables)
    lines   person, keys, whole numbers to sum        (WHERE)
    shares  summed by person and group, bounded       (only where a person may have several rows)
    spread  the number of groups of each person       (only where a person may have too many)
    result  keys, sums over persons
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from sqlglot import exp

from sordino.plan.fragments import column, count_rows, identifier, named, not_null, select, whole
from sordino.plan.sensitivity import WEIGHT
from sordino.query.aggregates.partial import Partial
from sordino.query.types import LARGEST

__all__ = ["Lines", "Norm", "Statement", "Term", "cell_sums", "group_sums"]

Norm = Literal["l1", "l2"]


@dataclass(frozen=True)
class Lines:
    """The cleaned, filtered rows: a SELECT with the columns `u` (the person, if there is one), keys, and values."""

    select: exp.Select
    keys: tuple[str, ...]
    person: bool


@dataclass(frozen=True)
class Term:
    """One channel's partial sums; `column` is the value column of the lines, None where rows are counted."""

    partial: Partial
    column: str | None


@dataclass(frozen=True)
class Statement:
    """One SELECT; the first columns are keys, the others whole numbers. `text` is for a dialect of sqlglot."""

    select: exp.Expr
    keys: int
    sums: int

    def text(self, dialect: str = "duckdb") -> str:
        """The SQL for one engine."""
        return self.select.sql(dialect=dialect, pretty=True)


def _sum(expression: exp.Expr) -> exp.Expr:
    return exp.Coalesce(this=exp.Sum(this=expression), expressions=[whole(0)])


def group_sums(lines: Lines, terms: Sequence[Term], *, rows: int, groups: int | None, norm: Norm, found: bool) -> Statement:
    """The sums of all terms for each group.

    `rows` bounds a person within a group; `groups` bounds the number of groups (None: no scaling needed). With `found` the
    last column is each group's weight for the selection of keys.
    """
    names = [[f"s{i}_{j}" for j in range(len(term.partial.sums(column("v"))))] for i, term in enumerate(terms)]
    keys: list[exp.Expr] = [column(key) for key in lines.keys]
    if not lines.person:
        sums = [
            named(s if isinstance(s, exp.Count) else exp.Coalesce(this=s, expressions=[whole(0)]), name)
            for term, inner in zip(terms, names, strict=True)
            for s, name in zip(term.partial.sums(_argument(term)), inner, strict=True)
        ]
        sums += [named(count_rows(), "found")] if found else []
        return Statement(select([*keys, *sums], lines.select, "lines", group=lines.keys), len(keys), len(sums))
    shares = _shares(lines, terms, names)
    sums = []
    for i, (term, inner) in enumerate(zip(terms, names, strict=True)):
        weight = _weight(term, f"n{i}", rows, groups, norm)
        sums += [named(_sum(_times(_clipped(term, column(n), rows, weight is not None), weight)), n) for n in inner]
    if found:
        sums.append(named(_sum(_group_weight(groups, "l1")), "found"))
    if groups is None:
        return Statement(select([*keys, *sums], shares, "shares", group=lines.keys), len(keys), len(sums))
    result = select([*keys, *sums], "shares", group=lines.keys)
    result = _with(result, "spread", _spread("shares"), using=["u"])
    return Statement(_with(result, "shares", shares), len(keys), len(sums))


def cell_sums(lines: Lines, value: str, *, rows: int, groups: int | None) -> Statement:
    """The weight of each value in each group: (keys, value, weight), where a person's weights add up to at most `rows`."""
    keys: list[exp.Expr] = [column(key) for key in (*lines.keys, value)]
    owner, cell = ("u", *lines.keys), (*lines.keys, value)
    if not lines.person:
        found = select([*keys, named(count_rows(), "w")], lines.select, "lines", where=[not_null(value)], group=cell)
        return Statement(found, len(keys), 1)
    items = [column("u"), *keys, named(count_rows(), "c")]
    shares = select(items, lines.select, "lines", where=[not_null(value)], group=(*owner, value))
    rows_of_person = exp.cast(exp.Sum(this=column("c")), "BIGINT")
    owned = select([*(column(name) for name in owner), named(rows_of_person, "n")], "shares", group=owner)
    scaled = exp.Mul(this=exp.Paren(this=_group_weight(groups, "l1")), expression=_least(column("n"), rows))
    weight = exp.IntDiv(this=exp.Paren(this=scaled), expression=column("n"))
    total = named(_sum(exp.Mul(this=column("c"), expression=exp.Paren(this=weight))), "w")
    result = select([*keys, total], "shares", group=cell)
    if groups is not None:
        result = _with(result, "spread", _spread("owned"), using=["u"])
    return Statement(_with(_with(result, "owned", owned, using=owner), "shares", shares), len(keys), 1)


def _spread(source: str) -> exp.Select:
    """The number of groups of each person."""
    return select([column("u"), named(count_rows(), "g")], source, group=["u"])


def _with(result: exp.Select, name: str, query: exp.Select, using: Sequence[str] = ()) -> exp.Select:
    """The result with one more named subquery in front, joined to it by some columns if they are given."""
    if using:
        table = exp.Table(this=identifier(name))
        result = result.join(table, using=[identifier(column) for column in using], copy=False)
    before = result.args.get("with_")
    result = result.with_(identifier(name), as_=query, materialized=name != "spread", append=False, copy=False)
    if before is not None:
        for cte in before.expressions:
            result.args["with_"].append("expressions", cte)
    return result


def _argument(term: Term) -> exp.Expr:
    return exp.Star() if term.column is None else column(term.column)


def _sum_over_rows(aggregate: exp.Expr) -> exp.Expr:
    """SUM of no rows is NULL, which stands for 0."""
    return aggregate if isinstance(aggregate, exp.Count) else exp.func("COALESCE", aggregate, whole(0))


def _shares(lines: Lines, terms: Sequence[Term], names: Sequence[Sequence[str]]) -> exp.Select:
    """One row for each person and group, with the person's own sums, not yet bounded."""
    sums: list[exp.Expr] = []
    for i, (term, inner) in enumerate(zip(terms, names, strict=True)):
        if term.partial.bounding == "once":
            sums.append(named(whole(1), inner[0]))
            continue
        argument = _argument(term)
        sums += [named(s, n) for s, n in zip(term.partial.sums(argument), inner, strict=True)]
        if term.partial.bounding == "scale":
            every = exp.Star() if term.partial.every_row else argument
            sums.append(named(exp.Count(this=every), f"n{i}"))
    owner = ("u", *lines.keys)
    return select([*(column(name) for name in owner), *sums], lines.select, "lines", group=owner)


def _clipped(term: Term, own: exp.Expr, rows: int, weighted: bool) -> exp.Expr:
    if term.partial.bounding != "clip":
        return exp.Coalesce(this=own, expressions=[whole(0)]) if term.partial.bounding == "scale" else own
    grid = term.partial.grid
    if grid is None:
        return exp.func("LEAST", own, whole(rows))
    low, high = min(0, rows * grid.first), max(0, rows * grid.last)
    # a person without a value here has the sum NULL, which LEAST would skip and so turn into the bound
    clipped = exp.func("LEAST", exp.Coalesce(this=own, expressions=[whole(0)]), whole(high))
    if low:
        clipped = exp.func("GREATEST", clipped, whole(low))
    small = max(-low, high) * (WEIGHT if weighted else 1) < LARGEST
    return exp.cast(clipped, "BIGINT") if small else clipped


def _times(value: exp.Expr, weight: exp.Expr | None) -> exp.Expr:
    return value if weight is None else exp.Mul(this=value, expression=exp.Paren(this=weight))


def _weight(term: Term, count: str, rows: int, groups: int | None, norm: Norm) -> exp.Expr | None:
    """The person's weight in this group in units of 1/WEIGHT, or None where it is always 1."""
    weight = _group_weight(groups, norm) if groups is not None else None
    if term.partial.bounding != "scale":
        return weight
    n = column(count)
    scaled = exp.Mul(this=whole(WEIGHT) if weight is None else exp.Paren(this=weight), expression=_least(n, rows))
    return exp.IntDiv(this=exp.Paren(this=scaled), expression=exp.func("GREATEST", n.copy(), whole(1)))


def _group_weight(groups: int | None, norm: Norm) -> exp.Expr:
    """The largest whole w <= WEIGHT with w g <= WEIGHT k (l1), or with w^2 g <= WEIGHT^2 k (l2).

    The square root is exact: for whole S < 2^52 the float nearest to sqrt(S) has the same floor.
    """
    if groups is None:
        return whole(WEIGHT)
    g = column("g")
    if norm == "l1":
        most = exp.Mul(this=whole(WEIGHT), expression=_least(g, groups))
        return exp.IntDiv(this=exp.Paren(this=most), expression=g.copy())
    square = exp.cast(exp.Paren(this=exp.IntDiv(this=whole(WEIGHT**2 * groups), expression=g)), "DOUBLE")
    return exp.func("LEAST", exp.cast(exp.func("FLOOR", exp.func("SQRT", square)), "BIGINT"), whole(WEIGHT))


def _least(value: exp.Expr, most: int) -> exp.Expr:
    return exp.Least(this=value.copy(), expressions=[whole(most)])

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

from sordino.plan.sensitivity import WEIGHT
from sordino.query.aggregates.partial import Partial
from sordino.query.types import LARGEST

__all__ = ["Lines", "Statement", "Term", "cell_sums", "group_sums"]

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


def column(name: str, table: str | None = None) -> exp.Column:
    """A quoted column of ours."""
    return exp.column(exp.to_identifier(name, quoted=True), table=exp.to_identifier(table, quoted=True) if table else None)


def whole(number: int) -> exp.Expr:
    """An integer literal; negative ones in brackets."""
    return exp.Literal.number(number) if number >= 0 else exp.paren(exp.Neg(this=exp.Literal.number(-number)))


def _named(expression: exp.Expr, name: str) -> exp.Expr:
    return exp.alias_(expression, name, quoted=True)


def _from(select: exp.Select, source: exp.Select | str, alias: str) -> exp.Select:
    if isinstance(source, str):
        return select.from_(exp.to_identifier(source, quoted=True))
    return select.from_(source.subquery(exp.to_identifier(alias, quoted=True)))


def _sum(expression: exp.Expr) -> exp.Expr:
    return exp.func("COALESCE", exp.Sum(this=expression), whole(0))


def group_sums(lines: Lines, terms: Sequence[Term], *, rows: int, groups: int | None, norm: Norm, found: bool) -> Statement:
    """The sums of all terms for each group.

    `rows` bounds a person within a group; `groups` bounds the number of groups (None: no scaling needed). With `found` the
    last column is each group's weight for the selection of keys.
    """
    names = [[f"s{i}_{j}" for j in range(len(term.partial.sums(column("v"))))] for i, term in enumerate(terms)]
    if not lines.person:
        sums = [
            _named(_sum_over_rows(s), name)
            for term, inner in zip(terms, names, strict=True)
            for s, name in zip(term.partial.sums(_argument(term)), inner, strict=True)
        ]
        sums += [_named(exp.Count(this=exp.Star()), "found")] if found else []
        select = _from(exp.select(*_keys(lines), *sums), lines.select, "lines")
        return Statement(_grouped(select, lines.keys), len(lines.keys), len(sums))
    shares = _shares(lines, terms, names)
    source: exp.Select | str = shares
    result = exp.Select()
    if groups is not None:
        spread = _from(exp.select(column("u"), _named(exp.Count(this=exp.Star()), "g")), "shares", "").group_by(column("u"))
        result = result.with_("shares", as_=shares, materialized=True).with_("spread", as_=spread)
        source = "shares"
    sums = []
    for i, (term, inner) in enumerate(zip(terms, names, strict=True)):
        weight = _weight(term, f"n{i}", rows, groups, norm)
        sums += [_named(_sum(_times(_clipped(term, column(n), rows, weight is not None), weight)), n) for n in inner]
    if found:
        sums.append(_named(_sum(_group_weight(groups, "l1")), "found"))
    result = _from(result.select(*_keys(lines), *sums), source, "shares")
    if groups is not None:
        result = result.join(exp.to_identifier("spread", quoted=True), using=[exp.to_identifier("u", quoted=True)])
    return Statement(_grouped(result, lines.keys), len(lines.keys), len(sums))


def cell_sums(lines: Lines, value: str, *, rows: int, groups: int | None) -> Statement:
    """The weight of each value in each group: (keys, value, weight), where a person's weights add up to at most `rows`."""
    keys, cell = _keys(lines), column(value)
    present = exp.Not(this=exp.Is(this=cell.copy(), expression=exp.Null()))
    if not lines.person:
        select = _from(exp.select(*keys, cell, _named(exp.Count(this=exp.Star()), "w")), lines.select, "lines")
        return Statement(_grouped(select.where(present), (*lines.keys, value)), len(keys) + 1, 1)
    shares = _from(exp.select(column("u"), *keys, cell, _named(exp.Count(this=exp.Star()), "c")), lines.select, "lines")
    shares = _grouped(shares.where(present), ("u", *lines.keys, value))
    owned = _from(exp.select(column("u"), *keys, _named(exp.cast(exp.Sum(this=column("c")), "BIGINT"), "n")), "shares", "")
    owned = _grouped(owned, ("u", *lines.keys))
    result = exp.Select().with_("shares", as_=shares, materialized=True).with_("owned", as_=owned, materialized=True)
    if groups is not None:
        spread = _from(exp.select(column("u"), _named(exp.Count(this=exp.Star()), "g")), "owned", "").group_by(column("u"))
        result = result.with_("spread", as_=spread)
    scaled = exp.Mul(this=exp.paren(_group_weight(groups, "l1")), expression=_least(column("n"), rows))
    weight = exp.IntDiv(this=exp.paren(scaled), expression=column("n"))
    total = _named(_sum(exp.Mul(this=column("c"), expression=exp.paren(weight))), "w")
    result = _from(result.select(*keys, cell, total), "shares", "")
    result = result.join(exp.to_identifier("owned", quoted=True), using=[_name(n) for n in ("u", *lines.keys)])
    if groups is not None:
        result = result.join(exp.to_identifier("spread", quoted=True), using=[_name("u")])
    return Statement(_grouped(result, (*lines.keys, value)), len(keys) + 1, 1)


def _name(name: str) -> exp.Identifier:
    return exp.to_identifier(name, quoted=True)


def _keys(lines: Lines) -> list[exp.Expr]:
    return [column(key) for key in lines.keys]


def _grouped(select: exp.Select, keys: Sequence[str]) -> exp.Select:
    return select.group_by(*(column(key) for key in keys)) if keys else select


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
            sums.append(_named(whole(1), inner[0]))
            continue
        argument = _argument(term)
        sums += [_named(s, n) for s, n in zip(term.partial.sums(argument), inner, strict=True)]
        if term.partial.bounding == "scale":
            sums.append(_named(exp.Count(this=argument), f"n{i}"))
    select = _from(exp.select(column("u"), *_keys(lines), *sums), lines.select, "lines")
    return select.group_by(column("u"), *_keys(lines))


def _clipped(term: Term, own: exp.Expr, rows: int, weighted: bool) -> exp.Expr:
    if term.partial.bounding != "clip":
        return exp.func("COALESCE", own, whole(0)) if term.partial.bounding == "scale" else own
    grid = term.partial.grid
    if grid is None:
        return exp.func("LEAST", own, whole(rows))
    low, high = min(0, rows * grid.first), max(0, rows * grid.last)
    # a person without a value here has the sum NULL, which LEAST would skip and so turn into the bound
    clipped = exp.func("LEAST", exp.func("COALESCE", own, whole(0)), whole(high))
    if low:
        clipped = exp.func("GREATEST", clipped, whole(low))
    small = max(-low, high) * (WEIGHT if weighted else 1) < LARGEST
    return exp.cast(clipped, "BIGINT") if small else clipped


def _times(value: exp.Expr, weight: exp.Expr | None) -> exp.Expr:
    return value if weight is None else exp.Mul(this=value, expression=exp.paren(weight))


def _weight(term: Term, count: str, rows: int, groups: int | None, norm: Norm) -> exp.Expr | None:
    """The person's weight in this group in units of 1/WEIGHT, or None where it is always 1."""
    weight = _group_weight(groups, norm) if groups is not None else None
    if term.partial.bounding != "scale":
        return weight
    n = column(count)
    scaled = exp.Mul(this=whole(WEIGHT) if weight is None else exp.paren(weight), expression=_least(n, rows))
    return exp.IntDiv(this=exp.paren(scaled), expression=exp.func("GREATEST", n.copy(), whole(1)))


def _group_weight(groups: int | None, norm: Norm) -> exp.Expr:
    """The largest whole w <= WEIGHT with w g <= WEIGHT k (l1), or with w^2 g <= WEIGHT^2 k (l2).

    The square root is exact: for whole S < 2^52 the float nearest to sqrt(S) has the same floor.
    """
    if groups is None:
        return whole(WEIGHT)
    g = column("g")
    if norm == "l1":
        most = exp.Mul(this=whole(WEIGHT), expression=_least(g, groups))
        return exp.IntDiv(this=exp.paren(most), expression=g.copy())
    square = exp.cast(exp.paren(exp.IntDiv(this=whole(WEIGHT**2 * groups), expression=g)), "DOUBLE")
    return exp.func("LEAST", exp.cast(exp.func("FLOOR", exp.func("SQRT", square)), "BIGINT"), whole(WEIGHT))


def _least(value: exp.Expr, most: int) -> exp.Expr:
    return exp.func("LEAST", value.copy(), whole(most))

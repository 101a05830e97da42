"""The SQL that computes exact whole numbers: rows are cleaned, summed for each person and group, bounded, and added up.

Built from the plan only, as a syntax tree; no text of a user enters it except quoted names from the declaration and
literals. Nothing in it can fail on any data, nothing is random, and every sum is of integers, so that the result does not
depend on the order of rows or the number of threads.

    cells   one row a row: cleaned columns            (FROM the table, with lookups in public tables)
    lines   person, keys, whole numbers to sum        (WHERE)
    shares  summed by person and group, bounded       (only where a person may have several rows)
    spread  the weights of persons who must be scaled, by the norm of all their shares
    result  keys, sums over persons
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from sqlglot import Generator, exp

from sordino.plan.dialects import DEFAULT, writer
from sordino.plan.fragments import column, count_rows, identifier, named, not_null, select, whole
from sordino.plan.sensitivity import WEIGHT, Norm
from sordino.query.aggregates.partial import Partial
from sordino.query.types import LARGEST

__all__ = ["Lines", "Statement", "Term", "Values", "cell_sums", "chosen_values", "group_sums"]

Values: TypeAlias = tuple[str, ...] | tuple[int, ...]
"""A public list."""


@dataclass(frozen=True)
class Lines:
    """The cleaned, filtered rows: a SELECT with the columns `u` (the person, if there is one), keys, and values.

    Rows whose key is NULL belong to no group; they are left out after summing, because a filter on rows would cost the
    engine its dictionaries.
    """

    select: exp.Select
    keys: tuple[str, ...]
    person: bool
    lists: Mapping[str, Values] = field(default_factory=dict)


@dataclass(frozen=True)
class Term:
    """Partial sums of columns of the lines: none where rows are counted; `name` begins the names of the sums."""

    partial: Partial
    name: str
    columns: tuple[str, ...]

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
        return exp.Count(this=exp.Star() if self.partial.every_row or not self.columns else column(self.columns[0]))


@dataclass(frozen=True)
class Statement:
    """One SELECT; the first columns are keys, the others whole numbers. `text` is for the dialect of one engine.

    `lists` are relations that the SELECT reads beside the declared tables: public lists too long to be written into it, each
    with one column `value` of text or BIGINT in which no value is twice. The engine holds them before it runs the SELECT.
    """

    select: exp.Expr
    keys: int
    sums: int
    lists: Mapping[str, Values] = field(default_factory=dict)
    _texts: dict[str, str] = field(default_factory=dict, compare=False, repr=False)

    def text(self, dialect: str = DEFAULT) -> str:
        """The SQL that runs on one engine, written once: before anything is charged, as writing it can fail.

        In one line: to break lines, sqlglot rewrites texts that hold its placeholder.
        """
        if dialect not in self._texts:
            self._texts[dialect] = writer(dialect)(self.select)
        return self._texts[dialect]

    def pretty(self, dialect: str = DEFAULT) -> str:
        """The same SQL in several lines, for people; in one line if a text in it holds sqlglot's placeholder."""
        plain = self.text(dialect)
        return plain if Generator.SENTINEL_LINE_BREAK in plain else writer(dialect)(self.select, pretty=True)


def _sum(expression: exp.Expr) -> exp.Expr:
    return exp.Coalesce(this=exp.Sum(this=expression), expressions=[whole(0)])


def group_sums(lines: Lines, terms: Sequence[Term], *, rows: int, groups: int | None, norm: Norm, found: bool) -> Statement:
    """The sums of all terms for each group.

    `rows` bounds a person within a group; `groups` bounds the number of groups (None: no scaling needed). With `found` the
    last column is each group's weight for the selection of keys.
    """
    keys: list[exp.Expr] = [column(key) for key in lines.keys]
    if not lines.person:
        sums = [
            named(s if isinstance(s, exp.Count) else exp.Coalesce(this=s, expressions=[whole(0)]), name)
            for term in terms
            for s, name in term.sums
        ]
        sums += [named(count_rows(), "found")] if found else []
        return Statement(_by(lines.keys, [*keys, *sums], lines), len(keys), len(sums), lines.lists)
    shares = _shares(lines, terms)
    sums = []
    for term in terms:
        weight = _weight(term, rows, scaled=groups is not None)
        sums += [named(_sum(_times(_clipped(term, column(n), rows, weight is not None), weight)), n) for n in term.names]
    if found:
        sums.append(named(_sum(whole(WEIGHT) if groups is None else _full(column("w"))), "found"))
    if groups is None:
        return Statement(select([*keys, *sums], shares, "shares", group=lines.keys), len(keys), len(sums), lines.lists)
    weights = [named(_person_weight(*_size(term, rows), groups, norm), f"w{term.name}") for term in terms]
    if found:
        weights.append(named(_person_weight(whole(1), 1, groups, "l1"), "w"))
    spread = select([column("u"), *weights], "shares", group=["u"], having=[_lighter(weights)])
    result = _with(select([*keys, *sums], "shares", group=lines.keys), "spread", spread, using=["u"])
    return Statement(_with(result, "shares", shares), len(keys), len(sums), lines.lists)


def chosen_values(lines: Lines, term: Term, *, rows: int, groups: int | None) -> Statement:
    """The number of different values in each group, of which a person has at most `rows` in each of at most `groups`.

    Which ones is decided by a hash of the person and the value, or the group: the same for any order of rows.
    """
    (value,) = term.columns
    keys: list[exp.Expr] = [column(key) for key in lines.keys]
    result = [*keys, *(named(s, name) for s, name in term.sums)]
    if not lines.person:
        return Statement(_by(lines.keys, result, lines), len(keys), 1, lines.lists)
    owned = ["u", *lines.keys, value]
    present = [not_null(name) for name in (*lines.keys, value)]
    pairs = select([column(name) for name in owned], lines.select, "lines", group=owned, having=present)
    ranks = {"r": (_rank("ROW_NUMBER", ["u", *lines.keys], [value]), rows)}
    if groups is not None:
        ranks["g"] = _rank("DENSE_RANK", ["u"], list(lines.keys)), groups
    ranked = select([*map(column, owned), *(named(rank, name) for name, (rank, _) in ranks.items())], "pairs")
    few = [exp.LTE(this=column(name), expression=whole(most)) for name, (_, most) in ranks.items()]
    counted = select(result, ranked, "ranked", where=few, group=lines.keys)
    return Statement(_with(counted, "pairs", pairs), len(keys), 1, lines.lists)


def _rank(function: str, within: Sequence[str], names: Sequence[str]) -> exp.Expr:
    """The place of a person's row among those within the same, by the hash of the person and some columns, then by these."""
    text = exp.func("CONCAT_WS", exp.Literal.string("|"), *(exp.cast(column(name), "TEXT") for name in ("u", *names)))
    order = exp.Order(expressions=[exp.Ordered(this=part) for part in (exp.MD5(this=text), *map(column, names))])
    return exp.Window(this=exp.Anonymous(this=function), partition_by=list(map(column, within)), order=order)


def cell_sums(lines: Lines, value: str, *, rows: int, groups: int | None) -> Statement:
    """The weight of each value in each group: (keys, value, weight), where a person's weights add up to at most `rows`.

    A row weighs what its person weighs in the group. Who has no more than `rows` in all groups together has whole weight;
    only the others are summed by group, and only those who are too heavy are looked up row by row.
    """
    keys: list[exp.Expr] = [column(key) for key in (*lines.keys, value)]
    owner, cell = ("u", *lines.keys), (*lines.keys, value)
    if not lines.person:
        return Statement(_by(cell, [*keys, named(count_rows(), "w")], lines), len(keys), 1, lines.lists)
    count = exp.Count(this=column(value))
    many = exp.GT(this=count.copy(), expression=whole(rows))
    heavy = select([column("u")], "lines", group=["u"], having=[many])
    present = [*(not_null(key) for key in lines.keys), exp.GT(this=count.copy(), expression=whole(0))]
    owned = select([*(column(name) for name in owner), named(count, "n")], "lines", group=owner, having=present)
    owned = owned.join(exp.Table(this=identifier("heavy")), using=[identifier("u")], join_type="INNER", copy=False)
    person = whole(WEIGHT) if groups is None else _full(column("w0"))
    weight = exp.IntDiv(
        this=exp.Paren(this=exp.Mul(this=person, expression=_least(column("n"), rows))), expression=column("n")
    )
    lighter = [exp.LT(this=exp.Paren(this=weight.copy()), expression=whole(WEIGHT))]
    light = select([*(column(name) for name in owner), named(weight, "w")], "owned", where=lighter)
    if groups is not None:
        weights = [named(_person_weight(_least(column("n"), rows), rows, groups, "l1"), "w0")]
        spread = select([column("u"), *weights], "owned", group=["u"], having=[_lighter(weights)])
        light = light.join(exp.Table(this=identifier("spread")), using=[identifier("u")], join_type="LEFT", copy=False)
    # no table has 2^47 rows, so that the sum fits into 64 bits
    total = named(exp.cast(exp.Sum(this=_full(column("w"))), "BIGINT"), "w")
    result = select([*keys, total], "lines", group=cell, having=[not_null(name) for name in cell])
    result = _with(result, "light", light, using=owner)
    if groups is not None:
        result = _with(result, "spread", spread)
    result = _with(_with(result, "owned", owned), "heavy", heavy)
    return Statement(_with(result, "lines", lines.select), len(keys), 1, lines.lists)


def _full(weight: exp.Expr) -> exp.Expr:
    """Persons who need no scaling are not in `spread`: their weight is whole."""
    return exp.Coalesce(this=weight, expressions=[whole(WEIGHT)])


def _lighter(weights: Sequence[exp.Expr]) -> exp.Expr:
    """Some weight is less than whole."""
    below = [exp.LT(this=weight.this.copy(), expression=whole(WEIGHT)) for weight in weights]
    return exp.Paren(this=exp.or_(*below, copy=False)) if len(below) > 1 else below[0]


_FEW = ("spread", "light", "heavy")
"""Subqueries of only those persons who must be scaled."""


def _with(result: exp.Select, name: str, query: exp.Select, using: Sequence[str] = ()) -> exp.Select:
    """The result with one more named subquery in front, joined to it by some columns if they are given."""
    if using:
        table = exp.Table(this=identifier(name))
        kind = "LEFT" if name in _FEW else "INNER"
        result = result.join(table, using=[identifier(column) for column in using], join_type=kind, copy=False)
    before = result.args.get("with_")
    result = result.with_(identifier(name), as_=query, materialized=name not in _FEW, append=False, copy=False)
    if before is not None:
        for cte in before.expressions:
            result.args["with_"].append("expressions", cte)
    return result


def _shares(lines: Lines, terms: Sequence[Term]) -> exp.Select:
    """One row for each person and group, with the person's own sums, not yet bounded."""
    sums: list[exp.Expr] = []
    for term in terms:
        if term.partial.bounding == "once":
            sums += [named(whole(1), name) for name in term.names]
            continue
        sums += [named(s, name) for s, name in term.sums]
        if term.partial.bounding == "scale":
            sums.append(named(term.rows, f"n{term.name}"))
    return _by(lines.keys, [column("u"), *(column(key) for key in lines.keys), *sums], lines, "u")


def _by(keys: Sequence[str], items: Sequence[exp.Expr], lines: Lines, *more: str) -> exp.Select:
    """The lines summed by keys, and more, where no key is NULL."""
    return select(items, lines.select, "lines", group=(*more, *keys), having=[not_null(key) for key in keys])


def _clipped(term: Term, own: exp.Expr, rows: int, weighted: bool) -> exp.Expr:
    if term.partial.bounding != "clip":
        return exp.Coalesce(this=own, expressions=[whole(0)]) if term.partial.bounding == "scale" else own
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


def _times(value: exp.Expr, weight: exp.Expr | None) -> exp.Expr:
    return value if weight is None else exp.Mul(this=value, expression=exp.Paren(this=weight))


def _weight(term: Term, rows: int, *, scaled: bool) -> exp.Expr | None:
    """The person's weight in this group in units of 1/WEIGHT, or None where it is always 1."""
    weight: exp.Expr | None = _full(column(f"w{term.name}")) if scaled else None
    if term.partial.bounding != "scale":
        return weight
    n = column(f"n{term.name}")
    scale = exp.Mul(this=weight or whole(WEIGHT), expression=_least(n, rows))
    return exp.IntDiv(this=exp.Paren(this=scale), expression=exp.func("GREATEST", n, whole(1)))


def _size(term: Term, rows: int) -> tuple[exp.Expr, int]:
    """How much a person's bounded share of one group weighs, and the most that it can: a norm of it, in a common unit."""
    match term.partial.bounding:
        case "once":
            return whole(1), 1
        case "scale":
            return _least(column(f"n{term.name}"), rows), rows
        case "clip" | "choose":
            (name,), grids = term.names, term.partial.grids
            most = rows * max((max(abs(grid.first), abs(grid.last)) for grid in grids), default=1)
            own = _clipped(term, column(name), rows, weighted=False)
            return (exp.Abs(this=own) if any(grid.first < 0 for grid in grids) else own), max(most, 1)


def _person_weight(size: exp.Expr, most: int, groups: int, norm: Norm) -> exp.Expr:
    """Over the groups of one person: the largest whole w <= WEIGHT with w |x| <= WEIGHT * bound, x being all shares.

    The bound is groups * most in L1, sqrt(groups) * most in L2, each share being at most `most`. Shares are counted in whole
    units, rounded up, so that nothing overflows; a unit is 1 unless `most` is very large. The square root is exact: for
    whole S <= 2^32 the float nearest to sqrt(S) has the same floor.
    """
    unit = max(1, most >> (20 if norm == "l1" else (28 - groups.bit_length()) // 2))
    if unit > 1:
        size = exp.IntDiv(this=exp.Paren(this=exp.Add(this=size, expression=whole(unit - 1))), expression=whole(unit))
    if norm == "l1":
        total, bound = exp.Sum(this=size), WEIGHT * (groups * most // unit)
    else:
        total = exp.Sum(this=exp.Mul(this=exp.Paren(this=size), expression=exp.Paren(this=size.copy())))
        bound = WEIGHT**2 * (groups * most**2 // unit**2)
    # no person has anything in 2^40 groups, so that the sum fits into 64 bits
    positive = exp.func("GREATEST", exp.cast(total, "BIGINT"), whole(1))
    ratio = exp.Paren(this=exp.IntDiv(this=whole(bound), expression=positive))
    if norm == "l1":
        return exp.func("LEAST", ratio, whole(WEIGHT))
    square = exp.func("LEAST", ratio, whole(WEIGHT**2))
    return exp.cast(exp.func("FLOOR", exp.func("SQRT", exp.cast(square, "DOUBLE"))), "BIGINT")


def _least(value: exp.Expr, most: int) -> exp.Expr:
    return exp.Least(this=value.copy(), expressions=[whole(most)])

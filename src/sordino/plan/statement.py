"""The SQL that computes exact whole numbers: rows are cleaned, summed for each person and group, bounded, and added up.

Built from the plan only, as a syntax tree; no text of a user enters it except quoted names from the declaration and
literals. Nothing in it can fail on any data, nothing is random, and every sum is of integers, so that the result does
not depend on the order of rows or the number of threads.

    cells   one row a row: cleaned columns            (FROM the table, with lookups in public tables)
    lines   person, keys, whole numbers to sum        (WHERE)
    shares  summed by person and group, bounded       (only where a person may have several rows)
    spread  the weights of persons who must be scaled, by the norm of all their shares
    beyond  what lies beyond the bounds, over all persons (only where that is measured)
    result  keys, sums over persons
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from typing import TypeAlias, TypeVar

from sqlglot import Generator, exp

from sordino.plan.beyond import Measure
from sordino.plan.dialects import DEFAULT, writer
from sordino.plan.fragments import column, count_rows, identifier, named, not_null, select, whole
from sordino.plan.scaling import Term, bounded, full, least, person_weight, share_weight, size
from sordino.plan.sensitivity import WEIGHT, Norm, Quota
from sordino.query.aggregates.distinct import Values as Different
from sordino.query.meaning import nodes
from sordino.query.types import LARGEST

__all__ = ["Lines", "Statement", "Values", "cell_sums", "chosen_values", "group_sums"]

Q = TypeVar("Q", bound=exp.Query)
_NODE = 20
"""About how many characters a node of a tree has."""
_MOST_PADDED = 16
"""Up to so many sums a row of a measure has zeros beside its number; with more these rows get them all at once,
so that the SQL of k sums stays linear in k.
"""
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
class Statement:
    """One SELECT; the first columns are keys, the others whole numbers. `text` is for the dialect of one engine.

    `lists` are relations that the SELECT reads beside the declared tables: public lists too long to be written into
    it, each with one column `value` of text or BIGINT in which no value is twice. The engine holds them before it runs
    the SELECT. `measured` is how many rows are numbers of a measure.
    """

    select: exp.Query
    keys: int
    sums: int
    lists: Mapping[str, Values] = field(default_factory=dict)
    measured: int = 0
    _texts: dict[str, str] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def rough_size(self) -> int:
        """About how many characters it has in any dialect."""
        nodes = self.select.walk(bfs=False)
        return sum(len(node.this) if isinstance(node, exp.Literal) else _NODE for node in nodes)

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
        if Generator.SENTINEL_LINE_BREAK in plain:
            return plain
        lines = writer(dialect)(self.select, pretty=True)
        return lines if _dense(lines) == _dense(plain) else plain


def _dense(sql: str) -> str:
    return "".join(sql.split())


def _sum(expression: exp.Expr) -> exp.Expr:
    return exp.Coalesce(this=exp.Sum(this=expression), expressions=[whole(0)])


def group_sums(
    lines: Lines,
    terms: Sequence[Term],
    *,
    norm: Norm,
    found: Quota | None,
    measure: Measure | None = None,
) -> Statement:
    """The sums of all terms for each group; with `found` the last column is the weight by which keys are selected.

    With a `measure` there is one more key, the last one: NULL in these rows, and the place of a number in rows of the
    measure's own, where that number is the first of the sums.
    """
    keys: list[exp.Expr] = [column(key) for key in lines.keys]
    if measure is not None:
        keys.append(named(exp.cast(exp.Null(), "BIGINT"), "b"))
    if not lines.person:
        sums = [
            named(
                s if isinstance(s, exp.Count) else exp.Coalesce(this=s, expressions=[whole(0)]),
                name,
            )
            for term in terms
            for s, name in term.sums
        ]
        sums += [named(count_rows(), "found")] if found else []
        plain = _by(lines.keys, [*keys, *sums], lines)
        return _statement(plain, keys, sums, lines, measure)
    shares = _shares(lines, terms, measure)
    sums = []
    for term in terms:
        weight = share_weight(term)
        sums += [
            named(_sum(_times(bounded(term, column(n), weight is not None), weight)), n)
            for n in term.names
        ]
    weights = _weights(terms, norm)
    if found:
        sums.append(named(_sum(full(column("w"))), "found"))
        weights.append(named(person_weight(whole(1), 1, found, "l1"), "w"))
    if not weights and measure is None:
        return Statement(
            select([*keys, *sums], shares, "shares", group=lines.keys),
            len(keys),
            len(sums),
            lines.lists,
        )
    named_only = [not_null("u")] if measure is not None and measure.nobody else []
    result = select([*keys, *sums], "shares", where=named_only, group=lines.keys)
    if weights and measure is None:
        spread = select([column("u"), *weights], "shares", group=["u"], having=[_lighter(weights)])
        result = _joined(result, "spread", spread, ["u"])
    elif weights:
        whole_ = [named(column(weight.alias), weight.alias) for weight in weights]
        spread = select(
            [column("u"), *map(column, (weight.alias for weight in weights))],
            "persons",
            where=[_lighter(whole_)],
        )
        result = _joined(result, "spread", spread, ["u"])
    made = _statement(result, keys, sums, lines, measure)
    found_of = made.select
    if measure is not None:
        weights += _weights(_besides(terms, measure), "l1")  # as draws are
        items = [*weights, *measure.of_persons()]
        if not lines.keys:  # a person has one share, which needs no summing up
            items = [_of_one(item) for item in items]
        by_person = ["u"] if lines.keys else []
        persons = select([column("u"), *items], "shares", where=named_only, group=by_person)
        found_of = _with(found_of, "persons", persons)
    return replace(made, select=_with(found_of, "shares", shares))


def _of_one(item: exp.Expr) -> exp.Expr:
    """What aggregates of one row are: their argument."""

    def plain(node: exp.Expr) -> exp.Expr:
        argument: exp.Expr = node.this
        return argument if isinstance(node, exp.Sum | exp.BitwiseOrAgg) else node

    found: exp.Expr = item.transform(plain, copy=False)
    return found


def _weights(terms: Sequence[Term], norm: Norm) -> list[exp.Expr]:
    """The weights of one person, over all its shares, for the terms that need them; values are chosen, not weighed."""
    scaled = [term for term in terms if term.quota.scaled and term.partial.bounding != "choose"]
    return [named(person_weight(*size(term), term.quota, norm), f"w{term.name}") for term in scaled]


def _besides(terms: Sequence[Term], measure: Measure | None) -> list[Term]:
    """The terms that are measured and not released."""
    return [] if measure is None else [term for term in measure.terms if term not in terms]


def _statement(
    result: exp.Select,
    keys: Sequence[exp.Expr],
    sums: Sequence[exp.Expr],
    lines: Lines,
    measure: Measure | None,
) -> Statement:
    """The groups' rows, and one after another the numbers of a measure."""
    if measure is None:
        return Statement(result, len(keys), len(sums), lines.lists)
    numbers, found = (
        list[exp.Select](),
        measure.selects(lines.select.copy() if measure.by_row else lines.select, lines.keys),
    )
    empty = [named(exp.Null(), key) for key in lines.keys]
    first = sums[0].alias if sums else "v"
    wide = len(sums) > _MOST_PADDED
    for i, one in enumerate(found):
        for item in one.expressions:
            number = [named(whole(len(numbers)), "b"), named(column(item.alias), first)]
            rest = [] if wide else [named(whole(0), other.alias) for other in sums[1:]]
            before = [] if wide else [key.copy() for key in empty]
            numbers.append(select([*before, *number, *rest], f"beyond{i}"))
    if wide:
        rest = [named(whole(0), other.alias) for other in sums[1:]]
        apart = [*empty, column("b"), column(first), *rest]
        numbers = [select(apart, _one_below_another(numbers), "numbers")]
    whole_ = _one_below_another([result, *numbers] if sums else numbers)
    if sums and result.args.get("with_") is not None:
        whole_.set("with_", result.args["with_"].pop())
    for i, one in enumerate(found):
        whole_ = _with(whole_, f"beyond{i}", one)
    return Statement(whole_, len(keys), max(len(sums), 1), lines.lists, len(numbers))


def _one_below_another(queries: Sequence[exp.Query]) -> exp.Query:
    return reduce(lambda above, one: exp.Union(this=above, expression=one, distinct=False), queries)


def chosen_values(lines: Lines, term: Term) -> Statement:
    """The number of different values in each group, of which a person has no more than the quota.

    Which ones is decided by a hash of the person and the value, or the group: the same for any order of rows.
    """
    (value,), quota, groups = term.columns, term.quota, term.groups
    keys: list[exp.Expr] = [column(key) for key in lines.keys]
    result = [*keys, *(named(s, name) for s, name in term.sums)]
    if not lines.person:
        return Statement(_by(lines.keys, result, lines), len(keys), 1, lines.lists)
    owned = ["u", *lines.keys, value]
    present = [not_null(name) for name in (*lines.keys, value)]
    pairs = select(
        [column(name) for name in owned], lines.select, "lines", group=owned, having=present
    )
    real = (value,) if isinstance(term.partial, Different) and term.partial.real else ()
    ranks = {"r": (_rank("ROW_NUMBER", ["u", *lines.keys], [value], real=real), quota.each)}
    if groups is not None:
        ranks["g"] = _rank("DENSE_RANK", ["u"], list(lines.keys)), groups
    ranked = select(
        [*map(column, owned), *(named(rank, name) for name, (rank, _) in ranks.items())], "pairs"
    )
    few = [exp.LTE(this=column(name), expression=whole(most)) for name, (_, most) in ranks.items()]
    if quota.scaled and (groups is None or quota.total < groups * quota.each):
        # of those, the first in all groups together
        place = named(_rank("ROW_NUMBER", ["u"], [*lines.keys, value], real=real), "t")
        ranked = select([*map(column, owned), place], ranked, "ranked", where=few)
        few = [exp.LTE(this=column("t"), expression=whole(quota.total))]
    counted = select(result, ranked, "ranked", where=few, group=lines.keys)
    return Statement(_with(counted, "pairs", pairs), len(keys), 1, lines.lists)


def _rank(
    function: str,
    within: Sequence[str],
    names: Sequence[str],
    *,
    real: Sequence[str] = (),
    first: Sequence[exp.Expr] = (),
) -> exp.Expr:
    """The place of a person's row among those within the same, by the hash of the person and some columns, then by
    these.

    Engines spell doubles differently, so that `real` ones enter the hash in whole steps; those in one step share a
    hash. What comes `first` counts before the hash.
    """
    cells = [_coarse(column(name)) if name in real else column(name) for name in ("u", *names)]
    text = exp.func(
        "CONCAT_WS", exp.Literal.string("|"), *(exp.cast(cell, "TEXT") for cell in cells)
    )
    order = exp.Order(
        expressions=[
            exp.Ordered(this=part) for part in (*first, exp.MD5(this=text), *map(column, names))
        ]
    )
    return exp.Window(
        this=exp.Anonymous(this=function), partition_by=list(map(column, within)), order=order
    )


def _coarse(value: exp.Column) -> exp.Expr:
    """A double in steps of 2^-20, cut to 62 bits."""
    steps = exp.Floor(this=nodes.doubles("*", value, nodes.real(2.0**20)))
    return nodes.as_whole(steps, 1 - LARGEST, LARGEST - 1)


def cell_sums(lines: Lines, value: str, quota: Quota) -> Statement:
    """The weight of each value in each group: (keys, value, weight), where a person's weights are within the quota.

    A row weighs what its person weighs in the group. Who has no more in all groups together than counts in one has
    whole weight; only the others are summed by group, and only those who are too heavy are looked up row by row.
    """
    keys: list[exp.Expr] = [column(key) for key in (*lines.keys, value)]
    owner, cell = ("u", *lines.keys), (*lines.keys, value)
    if not lines.person:
        return Statement(
            _by(cell, [*keys, named(count_rows(), "w")], lines), len(keys), 1, lines.lists
        )
    count = exp.Count(this=column(value))
    many = exp.GT(this=count.copy(), expression=whole(quota.each))
    heavy = select([column("u")], "lines", group=["u"], having=[many])
    present = [
        *(not_null(key) for key in lines.keys),
        exp.GT(this=count.copy(), expression=whole(0)),
    ]
    owned = select(
        [*(column(name) for name in owner), named(count, "n")], "lines", group=owner, having=present
    )
    owned = owned.join(
        exp.Table(this=identifier("heavy")), using=[identifier("u")], join_type="INNER", copy=False
    )
    person = full(column("w0")) if quota.scaled else whole(WEIGHT)
    few = least(column("n"), quota.each)
    weight = exp.IntDiv(
        this=exp.Paren(this=exp.Mul(this=person, expression=few)), expression=column("n")
    )
    lighter = [exp.LT(this=exp.Paren(this=weight.copy()), expression=whole(WEIGHT))]
    light = select([*(column(name) for name in owner), named(weight, "w")], "owned", where=lighter)
    if quota.scaled:
        weights = [named(person_weight(few.copy(), 1, quota, "l1"), "w0")]
        spread = select([column("u"), *weights], "owned", group=["u"], having=[_lighter(weights)])
        light = light.join(
            exp.Table(this=identifier("spread")),
            using=[identifier("u")],
            join_type="LEFT",
            copy=False,
        )
    # no table has 2^47 rows, so that the sum fits into 64 bits
    total = named(exp.cast(exp.Sum(this=full(column("w"))), "BIGINT"), "w")
    result = select([*keys, total], "lines", group=cell, having=[not_null(name) for name in cell])
    result = _joined(result, "light", light, owner)
    if quota.scaled:
        result = _with(result, "spread", spread)
    result = _with(_with(result, "owned", owned), "heavy", heavy)
    return Statement(_with(result, "lines", lines.select), len(keys), 1, lines.lists)


def _lighter(weights: Sequence[exp.Expr]) -> exp.Expr:
    """Some weight is less than whole."""
    below = [exp.LT(this=weight.this.copy(), expression=whole(WEIGHT)) for weight in weights]
    return exp.Paren(this=exp.or_(*below, copy=False)) if len(below) > 1 else below[0]


_FEW = ("spread", "light", "heavy")
"""Subqueries of only those persons who must be scaled."""


def _joined(result: exp.Select, name: str, query: exp.Select, using: Sequence[str]) -> exp.Select:
    """The result with one more named subquery in front, joined to it by some columns."""
    kind, table = "LEFT" if name in _FEW else "INNER", exp.Table(this=identifier(name))
    result = result.join(
        table, using=[identifier(column) for column in using], join_type=kind, copy=False
    )
    return _with(result, name, query)


def _with(result: Q, name: str, query: exp.Select) -> Q:
    """The result with one more named subquery in front."""
    before = result.args.get("with_")
    result = result.with_(
        identifier(name), as_=query, materialized=name not in _FEW, append=False, copy=False
    )
    if before is not None:
        for cte in before.expressions:
            result.args["with_"].append("expressions", cte)
    return result


def _shares(lines: Lines, terms: Sequence[Term], measure: Measure | None) -> exp.Select:
    """One row for each person and group, with the person's own sums, not yet bounded."""
    sums: list[exp.Expr] = [] if measure is None else measure.shares()
    for term in (*terms, *_besides(terms, measure)):
        if term.partial.bounding == "once":
            sums += [named(whole(1), name) for name in term.names]
            continue
        sums += [named(s, name) for s, name in term.sums]
        if term.partial.bounding == "scale":
            sums.append(named(term.rows, f"n{term.name}"))
    shares = _by(lines.keys, [column("u"), *(column(key) for key in lines.keys), *sums], lines, "u")
    few = [term for term in _besides(terms, measure) if term.groups is not None]
    return (
        select([exp.Star(), *(_place(term, lines.keys) for term in few)], shares, "own")
        if few
        else shares
    )


def _place(term: Term, keys: Sequence[str]) -> exp.Expr:
    """The place of a person's group among those from which its values are chosen; groups without a value come last."""
    empty = exp.EQ(this=column(term.names[0]), expression=whole(0))
    last = exp.Case(ifs=[exp.If(this=empty, true=whole(1))], default=whole(0))
    return named(_rank("ROW_NUMBER", ["u"], keys, first=[last]), f"g{term.name}")


def _by(keys: Sequence[str], items: Sequence[exp.Expr], lines: Lines, *more: str) -> exp.Select:
    """The lines summed by keys, and more, where no key is NULL."""
    return select(
        items, lines.select, "lines", group=(*more, *keys), having=[not_null(key) for key in keys]
    )


def _times(value: exp.Expr, weight: exp.Expr | None) -> exp.Expr:
    return value if weight is None else exp.Mul(this=value, expression=exp.Paren(this=weight))

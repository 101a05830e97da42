"""A plan: what runs and what it costs, made together from the query and the declaration alone, so that they cannot disagree.

Every error that a user can make is raised here, before anything is spent or any data are read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from sqlglot import exp

from sordino.accounting.charge import Charge
from sordino.accounting.filters import TwoMeterFilter
from sordino.errors import InvalidInput, TooLarge
from sordino.plan.channels import Channel, Quantiles, Source, channels_of
from sordino.plan.cost import Cost
from sordino.plan.dialects import DEFAULT
from sordino.plan.fragments import column, named, not_null, select
from sordino.plan.keys import Key, all_keys, bind_key
from sordino.plan.price import Parts, Price
from sordino.plan.pricing import best_price
from sordino.plan.scope import Scope
from sordino.plan.sensitivity import WEIGHT, Contribution, Sensitivity, bounding
from sordino.plan.statement import Lines, Norm, Statement, Term, cell_sums, group_sums
from sordino.privacy.neighbors import Neighbors
from sordino.query import tree
from sordino.query.dataset import Dataset, Table
from sordino.query.having import check_having, check_order
from sordino.query.meaning.expressions import condition, typed
from sordino.query.meaning.listed import expect_listed_keys
from sordino.query.typed import Typed

__all__ = ["Plan", "make_plan"]

_MOST_ROWS, _MOST_GROUPS = 2**20, 2**19
_MOST_SQL = 2**22
_MOST_DRAWS = 50_000


@dataclass(frozen=True)
class Plan:
    """What runs, what it costs and how its numbers become an answer; printing it explains it. Nothing here is from data."""

    query: tree.Query
    table: Table
    cost: Cost
    keys: tuple[Key, ...]
    channels: tuple[Channel, ...]
    quantiles: tuple[Quantiles, ...]
    sources: tuple[Source, ...]
    who: Contribution
    units: tuple[int, ...]
    sensitivities: tuple[Sensitivity, ...]
    price: Price
    statement: Statement | None
    cells: tuple[Statement, ...]
    note: str

    @property
    def charge(self) -> Charge:
        """What it takes from each meter."""
        return self.price.charge

    @property
    def private_keys(self) -> bool:
        """Whether keys are selected with noise."""
        return any(key.private for key in self.keys)

    @property
    def aggregate_names(self) -> list[str]:
        """The names of the aggregates, in order."""
        return _aggregates(self.query)[1]

    @property
    def row_weight(self) -> int:
        """The weight of one whole row in quantiles, and of one whole person in key selection."""
        return WEIGHT if self.table.has_persons else 1

    @property
    def moved(self) -> int:
        """The most weight that one person moves in a quantile column."""
        return _moved(self.who, self.row_weight)

    @property
    def statements(self) -> tuple[Statement, ...]:
        """All that runs."""
        return (*((self.statement,) if self.statement else ()), *self.cells)

    def sql(self, dialect: str = DEFAULT) -> str:
        """The SQL that runs, in the dialect of one engine; InvalidInput for any other."""
        return ";\n\n".join(statement.pretty(dialect) for statement in self.statements)

    @cached_property
    def promise(self) -> str:
        """What is promised about the answer, in plain words."""
        from sordino.plan.explain import privacy_statement

        return privacy_statement(self)

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the answer should know about its numbers."""
        from sordino.plan.explain import reading_notes

        return reading_notes(self)

    def errors(self) -> dict[str, float | None]:
        """The half-width to expect of each aggregate; None where it depends on data and no number of rows was assumed."""
        return _errors(self.channels, self.sources, self.units, _aggregates(self.query)[1], self.cost)(self.price)

    def explain(self) -> str:
        """The plan in words."""
        from sordino.plan.explain import explain

        return explain(self)

    def __str__(self) -> str:
        return self.explain()

    def __repr__(self) -> str:
        return f"Plan({self.table.name}, {len(self.channels)} sums, {len(self.quantiles)} quantile columns, {self.charge})"


def make_plan(query: tree.Query, dataset: Dataset, cost: Cost, meter: TwoMeterFilter) -> Plan:
    """The plan of a query at a cost, for what the meter still allows."""
    scope = Scope(dataset, query)
    table = scope.table
    where = condition(query.where, scope.read) if query.where is not None else None
    aggregates, names = _aggregates(query)
    _check_names(query, names)
    keys = tuple(bind_key(_key_name(query, key), typed(key, scope.read)) for key in query.keys)
    if query.having is not None:
        expect_listed_keys(query.having, _listed(query, keys))
    private = any(key.private for key in keys)
    possible = None if private else len(all_keys(keys)) if keys else 1
    row_unit = not table.has_persons
    certain = (
        row_unit and not table.public and table.neighbors is Neighbors.REPLACE and where is None and not keys
        and all(join.kind == "left" for join in query.joins)
    )  # fmt: skip
    channels, quantiles, sources = channels_of(aggregates, names, scope, certain=certain)
    _expect_few_draws(quantiles, possible)
    who = _contribution(table, channels, quantiles, keys, possible, certain=certain)
    scaled = who.groups if who.scaled else None
    units = tuple(1 if row_unit or (scaled is None and c.partial.bounding != "scale") else WEIGHT for c in channels)
    sensitivities = tuple(bounding(c.partial, who, unit) for c, unit in zip(channels, units, strict=True))
    parts = _parts(who, sensitivities, quantiles, private=private and not table.public, row_unit=row_unit)
    found = _errors(tuple(channels), tuple(sources), units, names, cost)
    price, note = best_price(parts, cost, meter, found)
    if who.scaled and price.family == "gaussian":
        sensitivities = tuple(replace(s, l1=None) for s in sensitivities)
    norm: Norm = "l1" if price.family == "laplace" else "l2"
    statement = None
    if channels or private:
        terms = [Term(c.partial, None if c.value is None else f"v{i}") for i, c in enumerate(channels)]
        lines = _lines(scope, where, keys, {f"v{i}": c.value for i, c in enumerate(channels) if c.value is not None})
        statement = group_sums(lines, terms, rows=who.rows, groups=scaled, norm=norm, found=private)
    cells = tuple(
        cell_sums(_lines(scope, where, keys, {"q": column.value}), "q", rows=who.rows, groups=scaled) for column in quantiles
    )
    plan = Plan(
        query, table, cost, keys, tuple(channels), tuple(quantiles), tuple(sources), who, units, sensitivities, price,
        statement, cells, note,
    )  # fmt: skip
    _expect_small(plan)
    return plan


def _expect_few_draws(quantiles: list[Quantiles], groups: int | None) -> None:
    """Refuse quantiles of very many public groups: each is drawn by itself, whether or not anybody is in the group."""
    draws = (groups or 0) * sum(len(column.levels) for column in quantiles)
    if draws > _MOST_DRAWS:
        rule = f"at most {_MOST_DRAWS:,} quantiles can be drawn for one answer; these are {draws:,} in {groups:,} groups"
        hint = "Use wider buckets, declare narrower min and max of the keys, or ask for AVG."
        raise TooLarge(f"quantiles of {quantiles[0].what}", rule, hint)


def _expect_small(plan: Plan) -> None:
    """Refuse a plan that would take the engine very long whatever the data are."""
    size = 0
    for done, statement in enumerate(plan.statements, 1):
        size += len(statement.text())
        if size > _MOST_SQL:
            parts = f"{done} of {len(plan.statements)} parts"
            rule = f"it may become at most {_MOST_SQL:,} characters of SQL, and {parts} have more"
            hint = "Ask for fewer quantiles or shorter conditions at once, or compute a column beforehand."
            raise TooLarge("a question with very much SQL", rule, hint)


def _aggregates(query: tree.Query) -> tuple[list[tree.Aggregate], list[str]]:
    pairs = [(output.value, output.name) for output in query.outputs if isinstance(output.value, tree.Aggregate)]
    return [aggregate for aggregate, _ in pairs], [name for _, name in pairs]


def _key_name(query: tree.Query, key: tree.Expression) -> str:
    return next((output.name for output in query.outputs if output.value == key), getattr(key, "name", "an expression"))


def _listed(query: tree.Query, keys: tuple[Key, ...]) -> dict[str, tuple[tree.Value, ...]]:
    """The values of the answer's columns that are public keys."""
    found = zip(query.keys, keys, strict=True)
    values = [(key, bound.values) for key, bound in found if bound.values is not None]
    return {output.name: known for output in query.outputs for key, known in values if output.value == key}


def _check_names(query: tree.Query, aggregates: list[str]) -> None:
    names = [output.name for output in query.outputs]
    if not aggregates:
        raise InvalidInput("a query without aggregates", "rows are never shown", "Add COUNT(*) or another aggregate.")
    if query.having is not None:
        check_having(query.having, names)
    check_order(query.order, names)


def _contribution(
    table: Table,
    channels: list[Channel],
    quantiles: list[Quantiles],
    keys: tuple[Key, ...],
    possible: int | None,
    *,
    certain: bool,
) -> Contribution:
    rows = groups = 1
    if table.has_persons:
        if quantiles or any(channel.partial.bounding != "once" for channel in channels):
            rows = _declared(table, "max_rows", 10, "how many rows of one person count within a group", _MOST_ROWS)
        if keys and possible != 1:
            groups = _declared(table, "max_groups", 3, "in how many groups of one answer a person counts", _MOST_GROUPS)
            groups = groups if possible is None else min(groups, possible)
    scaled = table.has_persons and bool(keys) and (possible is None or possible > groups)
    return Contribution(table.neighbors, rows, groups, bool(keys), certain, table.public, scaled)


def _declared(table: Table, name: str, example: int, meaning: str, most: int) -> int:
    value: int | None = getattr(table, name)
    if value is None:
        rule = f"this query needs to know {meaning}, and bounds are never guessed"
        hint = f"Add the line `{name} = {example}` under [tables.{table.name}]."
        raise InvalidInput(f"tables.{table.name} without {name}", rule, hint)
    if value > most:
        raise InvalidInput(f"{name} = {value}", f"it can be at most {most}", "Choose a smaller bound: noise grows with it.")
    return value


def _parts(
    who: Contribution, sensitivities: tuple[Sensitivity, ...], quantiles: list[Quantiles], *, private: bool, row_unit: bool
) -> Parts:
    unit = 1 if row_unit else WEIGHT
    twice = 2 if who.neighbors is Neighbors.REPLACE else 1
    keys = (twice * who.groups * unit, unit) if private else None
    return Parts(sensitivities, (_moved(who, unit),) * len(quantiles), keys)


def _moved(who: Contribution, unit: int) -> int:
    twice = 2 if who.neighbors is Neighbors.REPLACE else 1
    return 0 if who.public else twice * who.groups * who.rows * unit


def _lines(scope: Scope, where: Typed | None, keys: tuple[Key, ...], values: Mapping[str, exp.Expr]) -> Lines:
    """Person, keys and some values of the rows that satisfy the condition; rows without a person are dropped.

    Each statement has lines with its own values only, so that all of them together grow with the question.
    """
    items = [named(key.sql.copy(), f"k{i}") for i, key in enumerate(keys)]
    items += [named(value, name) for name, value in values.items()]
    present: list[exp.Expr] = [] if where is None else [where.sql.copy()]
    cells, lists = scope.cells([*items, *present])
    person = scope.table.has_persons
    if person:
        items.insert(0, column("u"))
        present.insert(0, not_null("u"))
    lines = select(items or [named(exp.true(), "c")], cells, "cells", where=present)
    return Lines(lines, tuple(f"k{i}" for i in range(len(keys))), person, lists)


def _errors(
    channels: tuple[Channel, ...], sources: tuple[Source, ...], units: tuple[int, ...], names: list[str], cost: Cost
) -> Callable[[Price], dict[str, float | None]]:
    """The errors to expect of each aggregate, as a function of the price."""
    rows = None if cost.rows is None else float(cost.rows)

    def errors(price: Price) -> dict[str, float | None]:
        found: dict[str, float | None] = {}
        for name, source in zip(names, sources, strict=True):
            if source.level is not None:
                found[name] = None
                continue
            noise, partial = price.noise(source.channel), channels[source.channel].partial
            found[name] = partial.error(source.function, units[source.channel], noise, float(cost.confidence), rows)
        return found

    return errors

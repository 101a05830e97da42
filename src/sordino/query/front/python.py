"""Questions in Python, step by step, into the same tree as SQL: `Question("visits").group_by("ward").agg(n=count()).query`.

A question is frozen: every step returns a new one. A session that made it can run it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, Unpack

from sordino.errors import InvalidInput
from sordino.privacy.exact import show
from sordino.query.front import calls
from sordino.query.front.names import distinct_names
from sordino.query.front.outputs import Answered
from sordino.query.front.shapes import check_query, check_size, shape
from sordino.query.front.terms import (
    ColumnLike,
    Measure,
    Term,
    When,
    bucket,
    coalesce,
    col,
    concat,
    condition_tree,
    count,
    count_distinct,
    date_diff,
    date_part,
    date_trunc,
    day,
    greatest,
    least,
    lit,
    mean,
    median,
    month,
    quantile,
    quarter,
    stddev,
    sum_,  # fmt: skip
    term_tree,
    time_bucket,
    variance,
    week,
    when,
    year,
)
from sordino.query.offer import Offer, takes_offer
from sordino.query.tree import Aggregate, Column, Expression, Join, Order, Output, Query

__all__ = ["Asks", "Measure", "Question", "Term", "When", "bucket", "coalesce", "col", "concat", "count", "count_distinct",
           "date_diff", "date_part", "date_trunc", "day", "greatest", "least", "lit", "mean", "median", "month",
           "quantile", "quarter", "stddev", "sum_", "time_bucket", "variance", "week", "when", "year"]  # fmt: skip


class Asks(Protocol):
    """What can run a question: a session."""

    def run(self, query: Query, *, request_id: str | None = None, **offer: Unpack[Offer]) -> Any:
        """Answer it, for a price."""

    def preview(self, query: Query, **offer: Unpack[Offer]) -> Any:
        """Tell what the answer would be like, for nothing."""


@dataclass(frozen=True)
class Question:
    """A question about one table, built step by step.

    Example:
        >>> question = Question("visits").where("age >= 65").group_by("ward").agg(n=count(), cost=mean("cost"))
        >>> [output.name for output in question.query.outputs]
        ['ward', 'n', 'cost']
    """

    table: str
    session: Asks | None = field(default=None, repr=False, compare=False)
    joins: tuple[Join, ...] = ()
    conditions: tuple[Expression, ...] = ()
    keys: tuple[tuple[str | None, Expression], ...] = ()
    measures: tuple[tuple[str, Aggregate], ...] = ()
    filters: tuple[str | Expression, ...] = ()
    orders: tuple[str, ...] = ()
    rows: int | None = None
    skipped: int = 0

    def __post_init__(self) -> None:
        calls.check_name(self.table)

    def where(self, *conditions: ColumnLike) -> Question:
        """Only rows that satisfy all the conditions; each is SQL such as `age >= 65`, or a term such as col("age") >= 65."""
        tables = (self.table, *(join.table for join in self.joins))
        return replace(self, conditions=(*self.conditions, *(condition_tree(condition, tables) for condition in conditions)))

    def join(
        self, table: str, on: str | Sequence[str] | Mapping[str, str], *, how: Literal["inner", "left"] = "inner"
    ) -> Question:
        """Look a row of a public table up: by a column of the same name, by several, or by {"ours": "theirs"}."""
        calls.check_name(table)
        if how not in {"inner", "left"}:
            raise InvalidInput(
                f"how={show(how)}", "a join is inner or left", "Write how='left' to keep rows that find nothing."
            )
        if table.casefold() in {self.table.casefold(), *(join.table.casefold() for join in self.joins)}:
            raise InvalidInput(table, "it is part of the question already", "Join every table once.")
        pairs = on if isinstance(on, Mapping) else {name: name for name in ([on] if isinstance(on, str) else on)}
        if not pairs:
            raise InvalidInput("on=[]", "a public table is joined by equal columns", "Write join('wards', on='ward').")
        found = tuple((Column(calls.check_name(ours)), calls.check_name(theirs)) for ours, theirs in pairs.items())
        return replace(self, joins=(*self.joins, Join(table, found, how)))

    def group_by(self, *keys: ColumnLike, **named: ColumnLike) -> Question:
        """One row of the answer for every value of the keys; named keys head their columns by that name."""
        plain = tuple((None, term_tree(key)) for key in keys)
        return replace(self, keys=(*self.keys, *plain, *((name, term_tree(key)) for name, key in named.items())))

    def agg(self, **measures: Measure) -> Question:
        """Aggregates, each under its name."""
        for name, measure in measures.items():
            if not isinstance(measure, Measure):
                raise InvalidInput(
                    f"{name}={show(measure)}", "agg takes aggregates", "Write agg(n=count(), cost=mean('cost'))."
                )
        return replace(self, measures=(*self.measures, *((name, measure.tree) for name, measure in measures.items())))

    def having(self, *conditions: ColumnLike) -> Question:
        """Only rows of the noisy answer that satisfy the conditions, on its columns."""
        for condition in conditions:
            if not isinstance(condition, str | Term):
                raise InvalidInput(show(condition), "a condition belongs here", "Write 'n > 5' or col('n') > 5.")
        new = tuple(condition.tree if isinstance(condition, Term) else condition for condition in conditions)
        return replace(self, filters=(*self.filters, *new))

    def order_by(self, *names: str) -> Question:
        """Sort the noisy answer by its columns; a minus in front means descending."""
        for name in names:
            if not isinstance(name, str):
                raise InvalidInput(
                    show(name), "the order is given by names of the answer's columns", "Write order_by('-n', 'ward')."
                )
        return replace(self, orders=(*self.orders, *names))

    def limit(self, rows: int, *, offset: int = 0) -> Question:
        """Only so many rows of the noisy answer, after skipping some."""
        for name, value in (("rows", rows), ("offset", offset)):
            if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 10**18:
                raise InvalidInput(f"{name}={show(value)}", "it must be a whole number, not negative", "Write limit(10).")
        return replace(self, rows=rows, skipped=offset)

    @property
    def query(self) -> Query:
        """The query tree; refuses a question that is not complete."""
        if not self.measures:
            raise InvalidInput(
                f"a question about {self.table} without aggregates", "rows are never shown", "Add agg(n=count())."
            )
        self._check_outputs()
        keys: dict[object, Expression] = {}
        for _, key in self.keys:
            keys.setdefault(shape(key), key)
        outputs = self._outputs(keys)
        answered = Answered(outputs)
        query = Query(
            table=self.table,
            outputs=outputs,
            where=calls.all_of(*self.conditions) if self.conditions else None,
            keys=tuple(keys.values()),
            joins=self.joins,
            having=calls.all_of(*(self._filter(each, answered) for each in self.filters)) if self.filters else None,
            order=self._ordering(answered),
            limit=self.rows,
            offset=self.skipped,
        )
        check_query(query)
        return query

    @takes_offer
    def run(self, *, request_id: str | None = None, **offer: Unpack[Offer]) -> Any:
        """Ask the session that made the question; the offer is what `Session.sql` takes, such as epsilon=0.2."""
        return self._asker().run(self.query, request_id=request_id, **offer)

    @takes_offer
    def preview(self, **offer: Unpack[Offer]) -> Any:
        """What the answer would be like, for nothing."""
        return self._asker().preview(self.query, **offer)

    def _asker(self) -> Asks:
        if self.session is None:
            raise InvalidInput(
                f"a question about {self.table}", "no session can run it", "Begin with session.table('visits')."
            )
        return self.session

    def _check_outputs(self) -> None:
        check_size([*(key for _, key in self.keys), *(measure for _, measure in self.measures)])
        taken: set[str] = set()
        for name in (name for name, _ in (*self.keys, *self.measures) if name is not None):
            if calls.check_name(name).casefold() in taken:
                raise InvalidInput(name, "the name is given twice", "Give every output its own name.")
            taken.add(name.casefold())

    def _outputs(self, keys: Mapping[object, Expression]) -> tuple[Output, ...]:
        values: list[Expression | Aggregate] = [keys[shape(key)] for _, key in self.keys]
        values += [measure for _, measure in self.measures]
        names = distinct_names([name for name, _ in (*self.keys, *self.measures)], values)
        return tuple(Output(name, value) for name, value in zip(names, values, strict=True))

    def _filter(self, condition: str | Expression, answered: Answered) -> Expression:
        if isinstance(condition, str):
            from sordino.query.front.sql import parse_having

            return parse_having(condition, answered)
        check_size([condition])
        return answered.condition(condition)

    def _ordering(self, answered: Answered) -> tuple[Order, ...]:
        orders: dict[str, Order] = {}
        for name in self.orders:
            found = answered.require(Column(name.removeprefix("-")))
            orders.setdefault(found, Order(found, name.startswith("-")))  # ordering twice by one output changes nothing
        return tuple(orders.values())

"""Questions in Python, step by step, into the same tree as SQL: `Question("visits").agg(n=so.count()).query`.

A question is frozen: every step returns a new one. A session that made it can run it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol, Unpack

from sordino.errors import InvalidInput, no_attribute
from sordino.privacy.exact import show
from sordino.query.front import calls
from sordino.query.front.names import distinct_names
from sordino.query.front.outputs import Answered
from sordino.query.front.shapes import check_query, check_size, expect_few_tables, shape
from sordino.query.front.terms import (
    ColumnLike,
    Measure,
    Over,
    Term,
    condition_tree,
    over_tree,
    term_tree,
)
from sordino.query.offer import Offer, takes_offer
from sordino.query.same_name import folded
from sordino.query.tree import (
    Aggregate,
    Call,
    Column,
    Expression,
    Join,
    Order,
    Output,
    Query,
    Rows,
    Source,
    Subquery,
    Table,
    UnionAll,
)

__all__ = ["Asks", "Question"]


_OTHER_WORDS = {
    **{
        name: f"Write .agg(n=so.{of}), then .run(epsilon=0.1)."
        for name, of in {
            "count": "count()", "sum": 'sum("cost")', "mean": 'mean("cost")', "avg": 'mean("cost")',
            "median": 'median("cost")', "quantile": 'quantile("cost", 0.9)', "std": 'stddev("cost")', "size": "count()",
        }.items()
    },
    **dict.fromkeys(("filter", "query_rows", "loc"), 'Write .where("age >= 65").'),
    **dict.fromkeys(("groupby", "group", "by"), 'Write .group_by("ward").'),
    **dict.fromkeys(("aggregate", "summarise", "summarize"), "Write .agg(n=so.count())."),
    **dict.fromkeys(("sort", "sort_values", "orderby", "sort_by"), 'Write .order_by("-n").'),
    **dict.fromkeys(("head", "take", "top"), "Write .limit(10)."),
    **dict.fromkeys(("answer", "execute", "collect", "release", "compute", "ask"), "Write .run(epsilon=0.1)."),
    **dict.fromkeys(("merge",), 'Write .join("wards", on="ward").'),
}  # fmt: skip


class Asks(Protocol):
    """What can run a question: a session."""

    def run(self, query: Query, *, request_id: str | None = None, **offer: Unpack[Offer]) -> Any:
        """Answer it, for a price."""

    def preview(self, query: Query, **offer: Unpack[Offer]) -> Any:
        """Tell what the answer would be like, for nothing."""

    def person_of(self, name: str, source: Source) -> str | None:
        """The column that names the person in the first table of a source, if it is known."""


@dataclass(frozen=True, init=False)
class Question:
    """A question about a table, or about rows derived from tables, built step by step.

    Example:
        >>> from sordino import count, mean
        >>> question = Question("visits").where("age >= 65").group_by("ward").agg(n=count(), cost=mean("cost"))
        >>> [output.name for output in question.query.outputs]
        ['ward', 'n', 'cost']
    """

    source: Source
    session: Asks | None = field(default=None, repr=False, compare=False)
    conditions: tuple[Expression, ...] = ()
    keys: tuple[tuple[str | None, Expression], ...] = ()
    measures: tuple[tuple[str, Aggregate | Call], ...] = ()
    filters: tuple[str | Expression, ...] = ()
    orders: tuple[str, ...] = ()
    rows_shown: int | None = None
    skipped: int = 0

    def __init__(self, source: str | Source, session: Asks | None = None, **steps: Any) -> None:
        derived = isinstance(source, Table | Subquery | Join)
        object.__setattr__(self, "source", source if derived else Table(calls.check_name(source)))
        object.__setattr__(self, "session", session)
        for each in fields(self)[2:]:
            object.__setattr__(self, each.name, steps.get(each.name, each.default))

    if not TYPE_CHECKING:  # else every attribute would be one

        def __getattr__(self, name: str) -> Any:
            raise no_attribute(self, name, _OTHER_WORDS)

    @property
    def _names(self) -> tuple[str, ...]:
        """What qualifies the columns of each table, the first one's first."""
        names, source = [], self.source
        while isinstance(source, Join):
            names.append(source.right.name)
            source = source.left
        return (source.name, *reversed(names))

    def where(self, *conditions: ColumnLike) -> Question:
        """Only rows that satisfy all the conditions; each is SQL such as `age >= 65`,
        or a term such as col("age") >= 65.
        """
        found = tuple(condition_tree(condition, self._names) for condition in conditions)
        return replace(self, conditions=(*self.conditions, *found))

    def join(
        self,
        table: str | Question,
        on: str | Sequence[str] | Mapping[str, str],
        *,
        how: Literal["inner", "left"] = "inner",
        name: str | None = None,
    ) -> Question:
        """Rows of another table beside these: by a column of the same name, by several, or by {"ours": "theirs"}.

        A public table is looked up by its whole key; a protected one is joined on the person, or on a declared key.
        `name` qualifies the columns of the other table, where that is not its own name.
        """
        if how not in {"inner", "left"}:
            hint = "Write how='left' to keep rows that find nothing."
            raise InvalidInput(f"how={show(how)}", "a join is inner or left", hint)
        if isinstance(table, Question):
            right: Table | Subquery = Subquery(
                table.rows, calls.check_name(name or table._names[0])
            )
        else:
            right = Table(calls.check_name(table), None if name is None else calls.check_name(name))
        if folded(right.name) in {folded(known) for known in self._names}:
            rule = "it is part of the question already"
            hint = "Join every table once, or give it another name: join(..., name='b')."
            raise InvalidInput(right.name, rule, hint)
        pairs = (
            on
            if isinstance(on, Mapping)
            else {name: name for name in ([on] if isinstance(on, str) else on)}
        )
        if not pairs:
            raise InvalidInput(
                "on=[]", "tables are joined by equal columns", "Write join('wards', on='ward')."
            )
        found = tuple(
            (Column(calls.check_name(ours)), Column(calls.check_name(theirs), right.name))
            for ours, theirs in pairs.items()
        )
        return replace(self, source=Join(self.source, right, found, how))

    @property
    def _where(self) -> Expression | None:
        """All conditions so far."""
        return calls.all_of(*self.conditions) if self.conditions else None

    @property
    def rows(self) -> Rows:
        """The rows of a question that asks for no aggregates yet, as those of a subquery."""
        if self.keys or self.measures or self.filters or self.orders or self.rows_shown is not None:
            rule = "only rows can stand in another question, before group_by and agg"
            hint = "Use per_person(...) for aggregates of one person's rows."
            raise InvalidInput("a question with aggregates", rule, hint)
        if (
            isinstance(self.source, Subquery)
            and isinstance(self.source.rows, Rows)
            and not self.conditions
        ):
            return self.source.rows
        return Rows(self.source, where=self._where, every=True)

    def _step(self, name: str, rows: Rows | UnionAll) -> Question:
        expect_few_tables(rows)
        return Question(Subquery(rows, name), self.session)

    def select(self, *columns: ColumnLike, **named: ColumnLike) -> Question:
        """Rows with these columns only; named ones may be computed."""
        given = [(None, term_tree(column)) for column in columns] + [
            (name, term_tree(term)) for name, term in named.items()
        ]
        values = [value for _, value in given]
        names = distinct_names(
            [None if name is None else calls.check_name(name) for name, _ in given], values
        )
        items = tuple(Output(name, value) for name, value in zip(names, values, strict=True))
        return self._step(self._names[0], Rows(self.source, items, self._where))

    def per_person(
        self, *keys: ColumnLike, person: str | None = None, **items: Measure | Term
    ) -> Question:
        """One row for each person, and each value of the keys if there are any: aggregates of that person's own rows.

        `person` is the column that names the person, if the session does not know it.
        """
        who = Column(calls.check_name(person or self._person()))
        groups = [term_tree(key) for key in keys]
        given = [who.name, *[None] * len(groups), *map(calls.check_name, items)]
        values = [who, *groups, *(_own(name, item) for name, item in items.items())]
        if len({folded(name) for name in (who.name, *items)}) <= len(items):
            rule = "the person and every item have a name of their own"
            raise InvalidInput(", ".join(items), rule, "Give every output its own name.")
        names = distinct_names(given, values)
        shown = [Output(name, value) for name, value in zip(names, values, strict=True)]
        return self._step(
            "per_person", Rows(self.source, tuple(shown), self._where, (who, *groups))
        )

    def window(
        self,
        *,
        order_by: str | Sequence[str] = (),
        by: ColumnLike | Sequence[ColumnLike] = (),
        person: str | None = None,
        rows: tuple[int | None, int | None] | None = None,
        **items: Measure | Over,
    ) -> Question:
        """Each row with functions of the same person's rows around it, in an order; a minus in front means descending.

        count, sum and first_value are of the rows up to this one, or of `rows`: (-2, 0) are two before and this one,
        None is without end.
        """
        who = Column(calls.check_name(person or self._person()))
        more = [by] if isinstance(by, str | Term) else by
        names = [order_by] if isinstance(order_by, str) else order_by
        order = tuple(
            (Column(calls.check_name(name.removeprefix("-"))), name.startswith("-"))
            for name in names
        )
        partition = (who, *(term_tree(one) for one in more))
        shown = tuple(
            Output(
                calls.check_name(name), over_tree(name, item, partition, order, calls.frame(rows))
            )
            for name, item in items.items()
        )
        return self._step(self._names[0], Rows(self.source, shown, self._where, every=True))

    def union_all(self, *others: Question) -> Question:
        """These rows and those of the others, whose columns correspond by their place."""
        return self._step(self._names[0], UnionAll((self.rows, *(other.rows for other in others))))

    def distinct(self) -> Question:
        """Rows without repetitions; the person must be among their columns."""
        return self._step(self._names[0], replace(self.rows, distinct=True))

    def _person(self) -> str:
        found = (
            None if self.session is None else self.session.person_of(self._names[0], self.source)
        )
        if found is None:
            rule = "the column that names the person is not known here"
            raise InvalidInput(
                "per_person()", rule, "Write per_person(person='patient_id', visits=so.count())."
            )
        return found

    def group_by(self, *keys: ColumnLike, **named: ColumnLike) -> Question:
        """One row of the answer for every value of the keys; named keys head their columns by that name."""
        plain = tuple((None, term_tree(key)) for key in keys)
        return replace(
            self,
            keys=(*self.keys, *plain, *((name, term_tree(key)) for name, key in named.items())),
        )

    def agg(self, **measures: Measure) -> Question:
        """Aggregates, each under its name."""
        for name, measure in measures.items():
            if not isinstance(measure, Measure):
                hint = "Write agg(n=count(), cost=mean('cost'))."
                raise InvalidInput(f"{name}={show(measure)}", "agg takes aggregates", hint)
        return replace(
            self,
            measures=(
                *self.measures,
                *((name, measure.tree) for name, measure in measures.items()),
            ),
        )

    def having(self, *conditions: ColumnLike) -> Question:
        """Only rows of the noisy answer that satisfy the conditions, on its columns."""
        for condition in conditions:
            if not isinstance(condition, str | Term):
                raise InvalidInput(
                    show(condition), "a condition belongs here", "Write 'n > 5' or col('n') > 5."
                )
        new = tuple(
            condition.tree if isinstance(condition, Term) else condition for condition in conditions
        )
        return replace(self, filters=(*self.filters, *new))

    def order_by(self, *names: str) -> Question:
        """Sort the noisy answer by its columns; a minus in front means descending."""
        for name in names:
            if not isinstance(name, str):
                rule = "the order is given by names of the answer's columns"
                raise InvalidInput(show(name), rule, "Write order_by('-n', 'ward').")
        return replace(self, orders=(*self.orders, *names))

    def limit(self, rows: int, *, offset: int = 0) -> Question:
        """Only this many rows of the noisy answer, after skipping some."""
        for name, value in (("rows", rows), ("offset", offset)):
            if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 10**18:
                rule = "it must be a whole number, not negative"
                raise InvalidInput(f"{name}={show(value)}", rule, "Write limit(10).")
        return replace(self, rows_shown=rows, skipped=offset)

    @property
    def query(self) -> Query:
        """The query tree; refuses a question that is not complete."""
        if not self.measures:
            what = f"a question about {self._names[0]} without aggregates"
            raise InvalidInput(what, "rows are never shown", "Add agg(n=count()).")
        self._check_outputs()
        keys: dict[object, Expression] = {}
        for _, key in self.keys:
            keys.setdefault(shape(key), key)
        filters = [self._filter(each) for each in self.filters]
        answered = Answered(self._outputs(keys)).asking(keys.values(), filters)
        query = Query(
            source=self.source,
            outputs=answered.outputs,
            where=self._where,
            keys=tuple(keys.values()),
            having=calls.all_of(*map(answered.condition, filters)) if filters else None,
            order=self._ordering(answered),
            limit=self.rows_shown,
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
            what = f"a question about {self._names[0]}"
            raise InvalidInput(what, "no session can run it", "Begin with session.table('visits').")
        return self.session

    def _check_outputs(self) -> None:
        check_size([*(key for _, key in self.keys), *(measure for _, measure in self.measures)])
        taken: set[str] = set()
        for name in (name for name, _ in (*self.keys, *self.measures) if name is not None):
            if folded(calls.check_name(name)) in taken:
                raise InvalidInput(
                    name, "the name is given twice", "Give every output its own name."
                )
            taken.add(folded(name))

    def _outputs(self, keys: Mapping[object, Expression]) -> tuple[Output, ...]:
        values: list[Expression | Aggregate] = [keys[shape(key)] for _, key in self.keys]
        values += [measure for _, measure in self.measures]
        names = distinct_names([name for name, _ in (*self.keys, *self.measures)], values)
        return tuple(Output(name, value) for name, value in zip(names, values, strict=True))

    def _filter(self, condition: str | Expression) -> Expression:
        if isinstance(condition, str):
            from sordino.query.front.sql import parse_having

            return parse_having(condition)
        check_size([condition])
        return condition

    def _ordering(self, answered: Answered) -> tuple[Order, ...]:
        orders: dict[str, Order] = {}
        for name in self.orders:
            found = answered.require(Column(name.removeprefix("-")))
            # ordering twice by one output changes nothing
            orders.setdefault(found, Order(found, name.startswith("-")))
        return tuple(orders.values())


def _own(name: str, item: object) -> Expression:
    """An item of per_person: an aggregate, or an expression of aggregates."""
    if isinstance(item, Measure | Term):
        return item.tree
    what = f"{name}={show(item)}"
    raise InvalidInput(what, "per_person takes aggregates", "Write per_person(visits=so.count()).")

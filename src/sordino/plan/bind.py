"""From names to relations: which declared columns a question means, and whether its rows stay one person's own.

SQL is case-insensitive, so names are; a name that is not declared is refused with the nearest ones that are. Whatever
would make a row depend on two persons is refused here, with a question that works instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal, assert_never

from sqlglot import exp

from sordino.errors import InvalidInput
from sordino.plan.fragments import column, named, not_null, select
from sordino.plan.joins import joined, marked
from sordino.plan.names import Names, conjuncts, find, outermost
from sordino.plan.pushdown import pushed_down
from sordino.plan.relations import (
    PERSON,
    Derive,
    Field,
    Filter,
    Join,
    LookedUp,
    Lookup,
    Relation,
    Scan,
    Whose,
    mentioned,
)
from sordino.plan.rows import cleaned_rows
from sordino.plan.statement import Lines, Values
from sordino.plan.subqueries import derived, distinct, per_person, union
from sordino.privacy.exact import readable
from sordino.query import dataset, tree
from sordino.query.meaning import reading
from sordino.query.meaning.expressions import condition
from sordino.query.same_name import folded, lowered
from sordino.query.typed import Typed
from sordino.query.types import Nothing, Number, Text

__all__ = ["Asked", "ask", "public_scan"]


_COMPARED = frozenset({"=", "<>", "<", "<=", ">", ">=", "in"})


@dataclass(frozen=True)
class Asked:
    """The rows that a question is about: a relation, and how names are read."""

    relation: Relation
    names: Names

    @property
    def whose(self) -> Whose:
        """Whose rows they are."""
        return self.relation.whose

    def read(self, expression: tree.Expression) -> Typed:
        """The cleaned column that a name means."""
        return self.names.read(expression)

    def is_person(self, expression: tree.Expression) -> bool:
        """Whether an expression is the column that names the protected person."""
        return self.names.is_person(expression)

    def never_null(self, expression: tree.Expression) -> bool:
        """Whether an expression is a column declared without NULLs. Privacy does not rest on it."""
        return isinstance(expression, tree.Column) and not self.names.value(expression).nullable

    def looked_up(self, expression: tree.Expression) -> LookedUp | None:
        """The column of a public table that an expression is, if it is one."""
        return (
            self.names.value(expression).looked_up if isinstance(expression, tree.Column) else None
        )

    @property
    def keeps_nobody(self) -> bool:
        """Whether rows without a person reach the end of the relation, so that they can be counted there."""
        relation = self.relation
        while isinstance(relation, Filter | Derive | Lookup):
            relation = relation.rows
        return isinstance(relation, Scan) and relation.whose.owner == "person"

    def lines(
        self, keys: Sequence[exp.Expr], values: Mapping[str, exp.Expr], *, with_nobody: bool = False
    ) -> Lines:
        """Person, keys and some values of the rows; of those without a person only if wanted.

        Each statement has lines with its own values only, so that all of them together grow with the question.
        """
        items = [named(key.copy(), f"k{i}") for i, key in enumerate(keys)]
        items += [named(value, name) for name, value in values.items()]
        lists: dict[str, Values] = {}
        cells = cleaned_rows(self.relation, mentioned(items), lists)
        present = [not_null(PERSON)] if self.whose.owner == "person" and not with_nobody else []
        by_person = not self.whose.by_row
        if by_person:
            items.insert(0, column(PERSON))
        lines = select(items or [named(exp.true(), "c")], cells, "cells", where=present)
        return Lines(lines, tuple(f"k{i}" for i in range(len(keys))), by_person, lists)


def ask(query: tree.Query, declared: dataset.Dataset) -> Asked:
    """The rows of a question; refuses what is not declared, and what would mix persons."""
    binder = _Binder(declared.tables)
    names = binder.rows(query.source, query.where)
    return Asked(pushed_down(names.relation), names)


def public_scan(table: dataset.Table) -> Scan:
    """The rows of a public table, cleaned."""
    scan = _Binder({table.name: table}).source(tree.Table(table.name))
    if not isinstance(scan, Scan):
        raise AssertionError(f"the rows of {table.name} are those of persons")
    return replace(scan, fields=tuple(replace(field, raw=None) for field in scan.fields))


def _chain(source: tree.Source) -> tuple[tree.Table | tree.Subquery, list[tree.Join]]:
    """The first table of FROM, and the joins with the others."""
    joins = []
    while isinstance(source, tree.Join):
        joins.append(source)
        source = source.left
    return source, joins[::-1]


class _Binder:
    """Makes relations, whose columns all have aliases of their own."""

    def __init__(self, tables: Mapping[str, dataset.Table]) -> None:
        self._tables = tables
        self._count = 0
        self._scans = 0

    def _fresh(self) -> str:
        self._count += 1
        return f"c{self._count - 1}"

    def rows(self, source: tree.Source, where: tree.Expression | None) -> Names:
        """The rows of a FROM clause that satisfy a condition, by name."""
        conditions = [] if where is None else conjuncts(where)
        first, joins = _chain(source)
        ours = Names(self.source(first), first.name)
        others = [(join, Names(self.source(join.right), join.right.name)) for join in joins]
        names = replace(ours, relation=joined(ours, others, conditions, self._tables))
        return replace(names, relation=self.conditions(names, conditions))

    def source(self, source: tree.Table | tree.Subquery) -> Relation:
        """The relation of one table of a FROM clause."""
        match source:
            case tree.Table(name):
                return self._table(self._tables[find("table", name, self._tables, "")], source.name)
            case tree.Subquery(rows, name):
                if isinstance(rows, tree.UnionAll):
                    listed = not any(part.every for part in rows.parts)
                    found = [self._rows(part) for part in rows.parts]
                    inner = union(found, self._fresh, listed=listed)
                else:
                    inner = self._rows(rows)
                fields = tuple(replace(field, table=name, hidden=False) for field in inner.fields)
                return Derive(inner, fields, {})
            case _:
                assert_never(source)

    def _table(self, table: dataset.Table, name: str) -> Scan | Join:
        """The rows of a declared table; of one with a `via` beside the parent rows whose persons are theirs."""
        fields = []
        look = f"{name} from c{self._count} on"
        for declared, cells in table.columns.items():
            kind = cells.type
            listed = kind.values if isinstance(kind, Text) else None
            raw = cells if listed is not None and not reading.is_long(listed) else None
            nullable = isinstance(kind, Nothing) or kind.nullable
            cleaned = kind if isinstance(kind, Nothing) else replace(kind, nullable=True)
            public = LookedUp(table, look, declared) if table.public else None
            fields.append(
                Field(
                    declared,
                    name,
                    self._fresh(),
                    cleaned,
                    raw=raw,
                    nullable=nullable,
                    looked_up=public,
                )
            )
        parent = (
            None
            if table.via is None
            else self._table(self._tables[table.via.parent], table.via.parent)
        )
        person = table.person if parent is None else _inherited(table, parent.whose.who)
        if person is not None and table.has_persons:
            fields.append(Field(person, name, PERSON, identity=table.name))
        self._scans += 1
        fields += [
            Field(
                key, name, self._fresh(), identity=table.name, scan=self._scans, column=lowered(key)
            )
            for key in table.identities
        ]
        owner: Literal["person", "row", "nobody"]
        owner = "nobody" if table.public else "person" if table.has_persons else "row"
        whose = Whose(
            owner, table.persons or "row", person or "row", table.neighbors, table.bounds, (table.name,),
            every=True,
        )  # fmt: skip
        scan = Scan(table, tuple(fields), whose)
        if parent is None or table.via is None:
            return scan
        keys = tuple((_key(scan, own), _key(parent, theirs)) for own, theirs in table.via.keys)
        return Join(scan, parent, scan.fields, "inner", keys=keys, owner="right", via=True)

    def conditions(self, names: Names, conditions: Sequence[tree.Expression]) -> Relation:
        """The rows that satisfy all conditions."""
        relation, first = names.relation, names.first
        marks: dict[tree.Expression, Typed] = {}
        for member in outermost(conditions, lambda part: isinstance(part, tree.Member)):
            if isinstance(member, tree.Member):
                join = marked(
                    Names(relation, first),
                    member.column,
                    self._rows(member.rows),
                    self._fresh(),
                    self._tables,
                )
                relation, marks[member] = join, join.fields[-1].typed
        names = Names(relation, first)
        for one in conditions:
            _expect_within_cut(one, names)
        filters = tuple(condition(one, names.read, marks).sql for one in conditions)
        return Filter(relation, filters) if filters else relation

    def _rows(self, rows: tree.Rows) -> Relation:
        """The relation of a SELECT of rows."""
        names = self.rows(rows.source, rows.where)
        relation = names.relation
        aggregates = outermost(
            (item.value for item in rows.items), lambda part: isinstance(part, tree.Aggregate)
        )
        if rows.keys is not None or rows.having is not None or aggregates:
            relation = per_person(names, rows, self._fresh)
        elif rows.items or not rows.every or any(field.hidden for field in relation.fields):
            relation = derived(names, rows, self._fresh)
        return distinct(relation, self._fresh) if rows.distinct else relation


def _inherited(table: dataset.Table, who: str) -> str:
    """What the persons of a parent are called here: like there,
    unless a column or key of the table itself is called so.
    """
    taken = {folded(name) for name in (*table.columns, *table.identities)}
    return next(
        name
        for name in (who, table.persons or who, f"{who} of {table.name}")
        if folded(name) not in taken
    )


def _key(rows: Relation, name: str) -> Field:
    """The field that identifies a row of a declared table by a column of it."""
    return next(field for field in rows.fields if field.identity and field.column == lowered(name))


def _expect_within_cut(expression: tree.Expression, names: Names) -> None:
    """Refuse to compare a number that we cut with one beyond the cut: the comparison would say nothing."""
    for part in outermost(
        [expression], lambda part: isinstance(part, tree.Call) and part.function in _COMPARED
    ):
        if not isinstance(part, tree.Call):
            continue
        written = [one.value for one in part.arguments if isinstance(one, tree.Literal)]
        for one in part.arguments:
            field = names.value(one) if isinstance(one, tree.Column) else None
            if field is None or not field.cut or not isinstance(field.type, Number):
                continue
            low, high = field.type.lower or Fraction(0), field.type.upper or Fraction(0)
            for number in written:
                if isinstance(number, int | Fraction) and not low <= number <= high:
                    rule = f"{field.name} was cut to {readable(low)} to {readable(high)}, what max_rows rows reach"
                    hint = "Write the bounds into the subquery: CLAMP(COUNT(*), 0, 1000) AS n, for example."
                    raise InvalidInput(
                        f"{field.name} compared with {readable(Fraction(number))}", rule, hint
                    )

"""From names to relations: which declared columns a question means, and whether its rows stay one person's own.

SQL is case-insensitive, so names are; a name that is not declared is refused with the nearest ones that are. Whatever would
make a row depend on two persons is refused here, with a question that works instead.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, assert_never

from sqlglot import exp

from sordino.errors import InvalidInput
from sordino.plan.fragments import column, named, not_null, select
from sordino.plan.own_rows import over_rows, within_person
from sordino.plan.relations import (
    PERSON,
    Derive,
    Field,
    Filter,
    Join,
    Lookup,
    PerPerson,
    Relation,
    Scan,
    UnionAll,
    Whose,
    Window,
)
from sordino.plan.rows import mentioned, select_rows
from sordino.plan.statement import Lines, Values
from sordino.query import dataset, tree
from sordino.query.front.shapes import children
from sordino.query.meaning import nodes, reading
from sordino.query.meaning.expressions import condition, typed
from sordino.query.meaning.function import alike, hull, selection
from sordino.query.meaning.functions import FUNCTIONS
from sordino.query.typed import Typed
from sordino.query.types import Nothing, Number, Text, Truth, Type

__all__ = ["Asked", "ask", "find"]


def find(kind: str, name: str, known: Iterable[str], hint: str) -> str:
    """The declared spelling of a name; InvalidInput with the nearest declared ones if there is none."""
    names = {spelling.casefold(): spelling for spelling in known}
    if name.casefold() in names:
        return names[name.casefold()]
    near = difflib.get_close_matches(name.casefold(), names, n=1, cutoff=0.6)
    meant = f"Did you mean {names[near[0]]!r}? " if near else ""
    listed = ", ".join(sorted(names.values())[:20]) or "none"
    raise InvalidInput(f"{kind} {name!r}", f"no such {kind} is declared", f"{meant}Declared: {listed}. {hint}".strip())


@dataclass(frozen=True)
class _Names:
    """The columns of a relation by name; `first` qualifies those of the first table."""

    relation: Relation
    first: str

    def of(self, named: tree.Column) -> list[Field]:
        """All fields that a name can mean; refuses a name that is not there, or that means two things."""
        fields, name = self.relation.fields, named.name.casefold()
        if named.table is not None:
            qualifier = named.table
        elif named.first:
            qualifier = self.first
        else:
            return self._unqualified(named, [field for field in fields if field.name.casefold() == name])
        table = find("table", qualifier, dict.fromkeys(field.table for field in fields), "It is not in FROM or JOIN.")
        found = [field for field in fields if field.table == table and field.name.casefold() == name]
        return found or self._missing(named, table)

    def _unqualified(self, named: tree.Column, found: list[Field]) -> list[Field]:
        seen = [field for field in found if not field.hidden]
        tables = list(dict.fromkeys(field.table for field in seen))
        if len(tables) > 1:
            rule = f"{' and '.join(tables)} both have a column of this name"
            raise InvalidInput(f"column {named.name!r}", rule, f"Write {tables[0]}.{named.name}, for example.")
        return seen or found[:1] or self._missing(named, self.first)

    def _missing(self, named: tree.Column, table: str) -> list[Field]:
        known = dict.fromkeys(field.name for field in self.relation.fields if field.table == table and not field.identity)
        hint = f"Declare it under [tables.{table}.columns]." if _is_declared(self.relation, table) else ""
        people = [field.name for field in self.relation.fields if field.table == table]
        find("column", named.name, known or people, hint)
        raise AssertionError(named)

    def value(self, named: tree.Column) -> Field:
        """The column whose values a name means."""
        found = self.of(named)
        read = next((field for field in found if field.type is not None), None)
        if read is not None:
            return read
        what = found[0]
        if what.alias == PERSON:
            rule = f"it names the protected persons of {what.table} and is not declared as a column"
            raise InvalidInput(
                f"column {what.name!r}", rule, f"Use COUNT(DISTINCT {what.name}), or declare what is public of it."
            )
        rule = f"it names rows of another table and is not declared as a column of {what.table}"
        raise InvalidInput(f"column {what.name!r}", rule, f"Declare it under [tables.{what.table}.columns] to read it.")

    def identity(self, expression: tree.Expression) -> Field | None:
        """The field that identifies a person or a row, if the expression is one."""
        if not isinstance(expression, tree.Column):
            return None
        return next((field for field in self.of(expression) if field.identity is not None), None)

    def is_person(self, expression: tree.Expression) -> bool:
        """Whether an expression is the column that names the protected person."""
        found = self.identity(expression)
        return found is not None and found.alias == PERSON

    def read(self, named: tree.Expression) -> Typed:
        """The cleaned column that a name means."""
        match named:
            case tree.Column():
                return self.value(named).typed
            case tree.Window():
                rule = "a window stands in SELECT of a subquery, where each row is still one person's"
                hint = "Write FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY person ORDER BY day) AS k FROM t) AS s."
                raise InvalidInput(f"{named.function.upper()} OVER (...)", rule, hint)
            case tree.Member():
                rule = "whether a person is among others is asked in WHERE"
                raise InvalidInput("IN (SELECT ...)", rule, "Put the condition into WHERE.")
            case tree.Aggregate():
                rule = "an aggregate must stand alone in SELECT, or in a subquery with GROUP BY on the person"
                raise InvalidInput(
                    named.function.upper(), rule, "Ask for each by itself, or group by the person in a subquery."
                )
            case _:
                raise AssertionError(named)


def _is_declared(relation: Relation, name: str) -> bool:
    """Whether the columns that a name qualifies are those of a declared table of that name."""
    match relation:
        case Scan(table):
            return table.name == name
        case Filter(rows) | Window(rows):
            return _is_declared(rows, name)
        case Lookup(rows, public):
            return _is_declared(rows, name) or _is_declared(public, name)
        case Join(left, right):
            return _is_declared(left, name) or _is_declared(right, name)
        case Derive() | PerPerson() | UnionAll():
            return False


@dataclass(frozen=True)
class Asked:
    """The rows that a question is about: a relation, conditions on it, and how names are read."""

    relation: Relation
    names: _Names
    where: tuple[exp.Expr, ...]

    @property
    def whose(self) -> Whose:
        """Whose rows they are; with a condition not every row is there."""
        whose = self.relation.whose
        return replace(whose, every=False) if self.where else whose

    def read(self, expression: tree.Expression) -> Typed:
        """The cleaned column that a name means."""
        return self.names.read(expression)

    def is_person(self, expression: tree.Expression) -> bool:
        """Whether an expression is the column that names the protected person."""
        return self.names.is_person(expression)

    def never_null(self, expression: tree.Expression) -> bool:
        """Whether an expression is a column declared without NULLs. Privacy does not rest on it."""
        return isinstance(expression, tree.Column) and not self.names.value(expression).nullable

    def lines(self, keys: Sequence[exp.Expr], values: Mapping[str, exp.Expr]) -> Lines:
        """Person, keys and some values of the rows that satisfy the conditions; rows without a person are dropped.

        Each statement has lines with its own values only, so that all of them together grow with the question.
        """
        items = [named(key.copy(), f"k{i}") for i, key in enumerate(keys)]
        items += [named(value, name) for name, value in values.items()]
        present = [part.copy() for part in self.where]
        lists: dict[str, Values] = {}
        cells = select_rows(self.relation, mentioned([*items, *present]), lists)
        if self.whose.owner == "person":
            present.insert(0, not_null(PERSON))
        by_person = not self.whose.by_row
        if by_person:
            items.insert(0, column(PERSON))
        lines = select(items or [named(exp.true(), "c")], cells, "cells", where=present)
        return Lines(lines, tuple(f"k{i}" for i in range(len(keys))), by_person, lists)


def ask(query: tree.Query, declared: dataset.Dataset) -> Asked:
    """The rows of a question; refuses what is not declared, and what would mix persons."""
    binder = _Binder(declared)
    relation, first = binder.source(query.source), _first(query.source)
    conditions = [] if query.where is None else _conjuncts(query.where)
    relation, where = binder.conditions(relation, first, conditions)
    return Asked(relation, _Names(relation, first), tuple(where))


def _first(source: tree.Source) -> str:
    while isinstance(source, tree.Join):
        source = source.left
    return source.name


def _conjuncts(expression: tree.Expression) -> list[tree.Expression]:
    match expression:
        case tree.Call("and", parts):
            return list(parts)
        case _:
            return [expression]


class _Binder:
    """Makes relations, whose columns all have aliases of their own."""

    def __init__(self, declared: dataset.Dataset) -> None:
        self._dataset = declared
        self._count = 0
        self._scans = 0

    def _fresh(self) -> str:
        self._count += 1
        return f"c{self._count - 1}"

    def source(self, source: tree.Source) -> Relation:
        """The relation of a FROM clause."""
        match source:
            case tree.Table(name):
                return self._scan(self._dataset.tables[find("table", name, self._dataset.tables, "")], source.name)
            case tree.Subquery(rows, name):
                inner = self._union(rows) if isinstance(rows, tree.UnionAll) else self._rows(rows)
                fields = tuple(replace(field, table=name, hidden=False) for field in inner.fields)
                return Derive(inner, fields, {})
            case tree.Join():
                return self._join(source)
            case _:
                assert_never(source)

    def _scan(self, table: dataset.Table, name: str) -> Scan:
        fields = []
        for declared, cells in table.columns.items():
            kind = cells.type
            listed = kind.values if isinstance(kind, Text) else None
            raw = cells if listed is not None and not reading.is_long(listed) else None
            nullable = isinstance(kind, Nothing) or kind.nullable
            cleaned = kind if isinstance(kind, Nothing) else replace(kind, nullable=True)
            fields.append(Field(declared, name, self._fresh(), cleaned, raw=raw, nullable=nullable))
        parent = None if table.via is None else self._scan(self._dataset.tables[table.via.parent], table.via.parent)
        person = table.person if parent is None else parent.whose.who
        if person is not None and table.has_persons:
            fields.append(Field(person, name, PERSON, identity=table.name))
        self._scans += 1
        fields += [Field(key, name, self._fresh(), identity=table.name, scan=self._scans) for key in table.identities]
        owner: Literal["person", "row", "nobody"]
        owner = "nobody" if table.public else "person" if table.has_persons else "row"
        whose = Whose(
            owner, table.persons or "row", person or "row", table.neighbors, table.max_rows, table.max_groups,
            (table.name,), every=True,
        )  # fmt: skip
        return Scan(table, tuple(fields), whose, parent)

    # conditions

    def conditions(
        self, relation: Relation, first: str, conditions: Sequence[tree.Expression]
    ) -> tuple[Relation, list[exp.Expr]]:
        """The relation filtered by those conditions that concern one side of a join only, and the SQL of the others."""
        marks: dict[tree.Expression, Typed] = {}
        for member in _outermost(conditions, lambda part: isinstance(part, tree.Member)):
            if isinstance(member, tree.Member):
                relation, marks[member] = self._marked(relation, first, member)
        read = _Names(relation, first).read
        rest: list[exp.Expr] = []
        for one in conditions:
            sql = condition(one, read, marks).sql
            below = _pushed(relation, sql)
            if below is None:
                rest.append(sql)
            else:
                relation = below
        return relation, rest

    def _marked(self, relation: Relation, first: str, member: tree.Member) -> tuple[Relation, Typed]:
        """The rows with a mark that says whether their person is among others."""
        inner = self._rows(member.rows)
        ours, theirs = _Names(relation, first).identity(member.column), inner.fields[0] if len(inner.fields) == 1 else None
        if ours is None or ours.alias != PERSON or theirs is None or theirs.alias != PERSON:
            rule = "IN (SELECT ...) and EXISTS look for the row's own person, so that each row depends on one person only"
            hint = (
                "Write WHERE person IN (SELECT person FROM ...), or look a public table up: "
                "JOIN wards ON visits.ward = wards.name, with WHERE on its columns."
            )
            raise InvalidInput(f"{member.column.name} IN (SELECT ...)", rule, hint)
        _expect_same_persons(relation.whose, inner.whose)
        mark = Field("", "", self._fresh(), Truth(nullable=False), hidden=True)
        return Join(relation, inner, (*relation.fields, mark), "mark"), mark.typed

    def _filtered(self, relation: Relation, first: str, where: tree.Expression | None) -> Relation:
        if where is None:
            return relation
        relation, rest = self.conditions(relation, first, _conjuncts(where))
        return Filter(relation, exp.and_(*rest, copy=False)) if rest else relation

    # joins

    def _join(self, join: tree.Join) -> Relation:
        left, right = self.source(join.left), self.source(join.right)
        if right.fields and any(field.table == join.right.name for field in left.fields):
            raise InvalidInput(f"table {join.right.name!r}", "this name is in FROM already", "Give it another name with AS.")
        ours, theirs = _Names(left, _first(join.left)), _Names(right, join.right.name)
        pairs = [_sides(ours, theirs, pair) for pair in join.on]
        if right.whose.public or (left.whose.public and join.kind == "inner"):
            return self._lookup(join, ours, theirs, pairs)
        if left.whose.public:
            rule = "a public row that finds nothing would belong to nobody"
            raise InvalidInput(f"LEFT JOIN {join.right.name}", rule, f"Begin with FROM {join.right.name}.")
        _expect_same_persons(left.whose, right.whose)
        return self._same_persons(join, ours, theirs, pairs)

    def _lookup(
        self, join: tree.Join, ours: _Names, theirs: _Names, pairs: Sequence[tuple[tree.Column, tree.Column]]
    ) -> Relation:
        """A look into a public table, on whichever side it stands."""
        swapped = not theirs.relation.whose.public
        rows, public = (theirs.relation, ours.relation) if swapped else (ours.relation, theirs.relation)
        if not isinstance(public, Scan):
            rule = "only a declared public table can be looked up, by its whole key"
            raise InvalidInput(f"JOIN {join.right.name}", rule, "Join the public table itself, and filter with WHERE.")
        # cleaned before rows are grouped by their key: two spellings of nothing are one
        public = replace(public, fields=tuple(replace(field, raw=None) for field in public.fields))
        ours, theirs = (replace(ours, relation=public), theirs) if swapped else (ours, replace(theirs, relation=public))
        table = public.table
        on = {(ours.value(pair[0]) if swapped else theirs.value(pair[1])).name for pair in pairs}
        if not table.key or set(table.key) != on:
            keys = ", ".join(table.key) or "none declared"
            rule = f"a public table is looked up by its whole key ({keys}), so that each row finds at most one"
            hint = f"Join on the key, or declare tables.{table.name}.key = {sorted(on)!r} if no two rows share it."
            raise InvalidInput(f"JOIN {table.name} ON {', '.join(sorted(on))}", rule, hint)
        taken = {field.name.casefold() for field in rows.fields}
        shown = tuple(replace(field, hidden=field.name.casefold() in taken, nullable=True) for field in public.fields)
        fields = (*shown, *rows.fields) if swapped else (*rows.fields, *shown)
        matches = [_equal(ours.value(one), theirs.value(other), f"JOIN {table.name}") for one, other in pairs]
        if join.condition is not None:
            rule = "a public table is looked up by equal columns"
            raise InvalidInput(f"JOIN {table.name}", rule, "Put other conditions into WHERE.")
        return Lookup(rows, public, exp.and_(*matches, copy=False), fields, join.kind)

    def _same_persons(
        self, join: tree.Join, ours: _Names, theirs: _Names, pairs: Sequence[tuple[tree.Column, tree.Column]]
    ) -> Relation:
        left, right = ours.relation, theirs.relation
        on_person = any(ours.is_person(one) and theirs.is_person(other) for one, other in pairs)
        keyed = None if on_person else self._keyed(ours, theirs, pairs)
        if not on_person and keyed is None:
            person = left.whose.who
            shown = ", ".join(one.name for one, _ in pairs)
            rule = "protected tables are joined on the person, or on a declared key, so that each row belongs to one person"
            hint = f"Write JOIN {join.right.name} USING ({person}), or ask about each table by itself."
            raise InvalidInput(f"JOIN {join.right.name} ON {shown}", rule, hint)
        same = {(one.name.casefold(), other.name.casefold()) for one, other in pairs}
        matches = [
            _equal(ours.value(one), theirs.value(other), f"JOIN {join.right.name}")
            for one, other in pairs
            if not (ours.is_person(one) and theirs.is_person(other))
            and not (keyed and any(theirs.identity(other) == known for _, known in keyed[0]))
        ]
        shown_right = tuple(
            replace(
                field,
                hidden=field.hidden or (field.name.casefold(), field.name.casefold()) in same,
                nullable=field.nullable or join.kind == "left",
            )
            for field in right.fields
            # the person on the right of a left join may be missing where the row's is not
            if join.kind == "inner" or field.alias != PERSON
        )
        fields = (*left.fields, *shown_right)
        joined = Join(left, right, fields, join.kind)
        if keyed is not None:
            keys, parent = keyed
            # a row on the left that finds nothing keeps its own person
            joined = replace(joined, keys=keys, owner="left" if join.kind == "left" else parent)
        if join.condition is not None:
            names = _Names(joined, _first(join.left))
            matches += [condition(one, names.read).sql for one in _conjuncts(join.condition)]
        return replace(joined, condition=exp.and_(*matches, copy=False)) if matches else joined

    def _keyed(
        self, ours: _Names, theirs: _Names, pairs: Sequence[tuple[tree.Column, tree.Column]]
    ) -> tuple[tuple[tuple[Field, Field], ...], Literal["left", "right"]] | None:
        """The pairs that are a whole declared key, by which rows of one side name rows of the other; and whose key it is."""
        found = [(ours.identity(one), theirs.identity(other)) for one, other in pairs]
        known = [(one, other) for one, other in found if one is not None and other is not None]
        for one, other in known:
            same = [pair for pair in known if (pair[0].scan, pair[1].scan) == (one.scan, other.scan)]
            for child, parent, side in ((0, 1, "right"), (1, 0, "left")):
                via = self._dataset.tables[(one, other)[child].identity or ""].via
                if via is None or via.parent != (one, other)[parent].identity:
                    continue
                named = {(pair[child].name.lower(), pair[parent].name.lower()) for pair in same}
                if named == {(own.lower(), key.lower()) for own, key in via.keys}:
                    return tuple(same), "right" if side == "right" else "left"
        return None

    # subqueries

    def _rows(self, rows: tree.Rows) -> Relation:
        """The relation of a SELECT of rows."""
        first = _first(rows.source)
        relation = self._filtered(self.source(rows.source), first, rows.where)
        aggregates = _outermost((item.value for item in rows.items), lambda part: isinstance(part, tree.Aggregate))
        grouped = rows.keys is not None or bool(aggregates)
        if grouped:
            relation = self._per_person(relation, first, rows)
        elif rows.items or not rows.every:
            relation = self._derived(relation, first, rows)
        return self._distinct(relation) if rows.distinct else relation

    def _derived(self, relation: Relation, first: str, rows: tree.Rows) -> Relation:
        """The items of a SELECT, row by row; windows are computed first, beside the rows."""
        fields = [field for field in relation.fields if rows.every and not field.hidden]
        relation, windows = self._windows(relation, first, rows.items)
        names = _Names(relation, first)
        values: dict[str, exp.Expr] = {}
        for item in rows.items:
            own = names.of(item.value) if isinstance(item.value, tree.Column) else []
            if own:
                fields += [replace(field, name=item.name, table="", hidden=False) for field in own]
                continue
            found = typed(item.value, names.read, windows)
            alias = self._fresh()
            fields.append(Field(item.name, "", alias, found.type, found.domain))
            values[alias] = found.sql
        return Derive(relation, tuple(fields), values)

    def _windows(
        self, relation: Relation, first: str, items: Sequence[tree.Output]
    ) -> tuple[Relation, dict[tree.Expression, Typed]]:
        """The rows with the windows of all items beside them."""
        wanted = _outermost((item.value for item in items), lambda part: _window(part) is not None)
        if not wanted:
            return relation, {}
        names = _Names(relation, first)
        if relation.whose.owner != "person":
            rule = "a window looks at the rows of one person, and here no column names the person"
            raise InvalidInput("OVER (...)", rule, "Declare the unit of the table as a column, or ask with GROUP BY.")
        found: dict[tree.Expression, Typed] = {}
        values: dict[str, exp.Expr] = {}
        # keys that are no columns count too: a later join on them would tell rows apart that tie in all others
        cells = [column(field.alias) if field.type is None else field.typed.sql for field in relation.fields
                 if field.alias != PERSON]  # fmt: skip
        for part in wanted:
            window, limits = _window(part) or (None, None)
            if window is None:
                continue
            if not any(names.is_person(one) for one in window.partition):
                person = relation.whose.who
                rule = "a window looks at the rows of one person only, so that each row stays that person's own"
                hint = f"Write OVER (PARTITION BY {person} ORDER BY ...). Ranks of groups can be computed from the answer."
                raise InvalidInput(f"{window.function.upper()} OVER (...)", rule, hint)
            keys = [typed(one, names.read).sql for one in window.partition if not names.is_person(one)]
            order = [(typed(one, names.read).sql, down) for one, down in window.order]
            arguments = [typed(one, names.read) for one in window.arguments]
            made = over_rows(window, arguments, keys, order, cells, limits)
            alias = self._fresh()
            values[alias] = made.sql
            found[part] = Typed(made.type, column(alias), domain=made.domain)
        fields = (*relation.fields, *(Field("", "", alias, hidden=True) for alias in values))
        return Window(relation, fields, values), found

    def _per_person(self, relation: Relation, first: str, rows: tree.Rows) -> Relation:
        """One row for each person and value of the keys."""
        names, whose = _Names(relation, first), relation.whose
        keys = rows.keys or ()
        if whose.owner != "person" or not any(names.is_person(key) for key in keys):
            person = whose.persons if whose.owner == "person" else "person"
            rule = "a subquery may aggregate the rows of one person only; a sum over persons leaves with noise"
            hint = f"Write GROUP BY {person} in the subquery, or ask for the aggregate itself."
            raise InvalidInput("an aggregate in a subquery", rule, hint)
        fields: list[Field] = [field for field in relation.fields if field.alias == PERSON]
        known: dict[tree.Expression, Typed] = {}
        derived: dict[str, exp.Expr] = {}
        for key in keys:
            if names.is_person(key) and not any(field.type is not None for field in names.of(key)):  # type: ignore[arg-type]
                continue
            found = typed(key, names.read)
            alias = self._fresh()
            derived[alias] = found.sql
            known[key] = Typed(found.type, column(alias), domain=found.domain)
            fields.append(Field(getattr(key, "name", ""), "", alias, found.type, found.domain))
        by = [key for key in keys if not names.is_person(key)]
        values: dict[str, exp.Expr] = {}
        cut = False
        wanted = [item.value for item in rows.items] + ([] if rows.having is None else [rows.having])
        for part in _outermost(wanted, lambda part: part in known or _aggregate(part) is not None):
            aggregate, limits = _aggregate(part) or (None, None)
            if aggregate is None or part in known:
                continue
            argument = typed(aggregate.arguments[0], names.read) if aggregate.arguments else None
            if argument is not None:
                alias = self._fresh()
                derived[alias] = argument.sql
                argument = Typed(argument.type, column(alias), argument.constant, argument.domain)
            made = within_person(aggregate, argument, whose.max_rows, limits)
            cut = cut or (limits is None and aggregate.function in ("count", "sum") and whose.max_rows is not None)
            alias = self._fresh()
            values[alias] = made.sql
            known[part] = Typed(made.type, column(alias), domain=made.domain)
        inner = Derive(relation, relation.fields, derived)
        aliases = tuple(known[key].sql.name for key in by if key in known)
        one_value = {
            known[key].sql.name: exp.Min(this=known[key].sql.copy()) for key in keys if key in known and key not in by
        }
        fields += [Field("", "", alias, known[part].type, hidden=True) for part, alias in
                   ((part, known[part].sql.name) for part in known) if alias in values]  # fmt: skip
        result: Relation = PerPerson(inner, tuple(fields), aliases, values | one_value, cut=cut)

        def read(leaf: tree.Expression) -> Typed:
            if isinstance(leaf, tree.Column):
                rule = "in a subquery with GROUP BY it is neither an aggregate nor a key"
                raise InvalidInput(f"column {leaf.name!r}", rule, "Add it to GROUP BY, or take MIN, MAX or SUM of it.")
            return names.read(leaf)

        if rows.having is not None:
            result = Filter(result, condition(rows.having, read, known).sql)
        shown: list[Field] = []
        computed: dict[str, exp.Expr] = {}
        for item in rows.items:
            if names.is_person(item.value):
                shown += [replace(field, name=item.name, table="", hidden=False) for field in fields[:1]]
            if item.value in known or not names.is_person(item.value):
                made = typed(item.value, read, known)
                alias = self._fresh()
                shown.append(Field(item.name, "", alias, made.type, made.domain))
                computed[alias] = made.sql
        return Derive(result, tuple(shown), computed)

    def _distinct(self, relation: Relation) -> Relation:
        """The rows without repetitions of one person's."""
        if relation.whose.owner != "person" or not any(field.alias == PERSON for field in relation.fields):
            rule = "DISTINCT drops repetitions among one person's rows, so the person must be selected"
            raise InvalidInput("SELECT DISTINCT", rule, "Select the person column as well, or leave DISTINCT out.")
        values = {self._fresh(): field for field in relation.fields if field.type is not None}
        inner = Derive(relation, relation.fields, {alias: field.typed.sql for alias, field in values.items()})
        fields = tuple(
            [field for field in relation.fields if field.alias == PERSON]
            + [replace(field, alias=alias, raw=None) for alias, field in values.items()]
        )
        return PerPerson(inner, fields, tuple(values), {})

    def _union(self, union: tree.UnionAll) -> Relation:
        """All parts, with columns of one type each."""
        parts = [self._rows(part) for part in union.parts]
        first, *others = parts
        columns = [[field for field in part.fields if field.type is not None] for part in parts]
        for part, own in zip(others, columns[1:], strict=True):
            _expect_same_persons(first.whose, part.whose)
            if len(own) != len(columns[0]) or _person_places(part) != _person_places(first):
                rule = "the parts of a UNION ALL have the same number of columns, and the person in the same place"
                raise InvalidInput("UNION ALL", rule, "Select the same columns in the same order in each part.")
        aliases = [self._fresh() for _ in columns[0]]
        values: list[dict[str, exp.Expr]] = [{} for _ in parts]
        fields: dict[str, Field] = {}
        for place, alias in enumerate(aliases):
            cells = alike("UNION ALL", [own[place].typed for own in columns])
            kind: Type = hull(cells)
            for i, cell in enumerate(cells):
                values[i][alias] = _as_kind(kind, cell)
            fields[alias] = replace(
                columns[0][place], alias=alias, type=kind, domain=None, raw=None, table="", nullable=True
            )
        people = [field for field in first.fields if field.alias == PERSON]
        made = tuple(Derive(part, (*people, *fields.values()), own) for part, own in zip(parts, values, strict=True))
        return UnionAll(made, (*people, *fields.values()))


def _equal(ours: Field, theirs: Field, what: str) -> exp.Expr:
    """The SQL of one equality; refuses whole numbers beside floats, where different keys may be equal."""
    if isinstance(ours.type, Number) and isinstance(theirs.type, Number) and ours.type.integral != theirs.type.integral:
        rule = "one side is computed in whole numbers and the other in floats, where different keys may be equal"
        hint = f"Declare both {ours.name} and {theirs.table}.{theirs.name} as int with min and max."
        raise InvalidInput(f"{what} ON {ours.name} = {theirs.name}", rule, hint)
    return FUNCTIONS["="].apply(ours.typed, theirs.typed).sql


def _as_kind(kind: Type, cell: Typed) -> exp.Expr:
    """A column of a part of a union in the type of all parts; numbers in BIGINT where all are whole, else in DOUBLE."""
    if not isinstance(kind, Number):
        return selection(kind, [cell], lambda sql: sql[0]).sql
    if isinstance(cell.type, Number) and kind.integral and cell.type.integral:
        return cell.sql
    return nodes.as_double(cell) if isinstance(cell.type, Number) else nodes.null("bigint" if kind.integral else "double")


def _person_places(relation: Relation) -> int:
    return sum(field.alias == PERSON for field in relation.fields)


def _window(part: tree.Expression) -> tuple[tree.Window, tuple[tree.Value, tree.Value] | None] | None:
    """A window, perhaps within CLAMP, whose bounds are then those of the result."""
    match part:
        case tree.Window():
            return part, None
        case tree.Call("clamp", (tree.Window() as inner, tree.Literal(low), tree.Literal(high))):
            return inner, (low, high)
        case _:
            return None


def _aggregate(part: tree.Expression) -> tuple[tree.Aggregate, tuple[tree.Value, tree.Value] | None] | None:
    """An aggregate, perhaps within CLAMP, whose bounds are then those of the result."""
    match part:
        case tree.Aggregate():
            return part, None
        case tree.Call("clamp", (tree.Aggregate() as inner, tree.Literal(low), tree.Literal(high))):
            return inner, (low, high)
        case _:
            return None


def _outermost(expressions: Iterable[tree.Expression], wanted: Callable[[tree.Expression], bool]) -> list[tree.Expression]:
    """The parts of expressions that are wanted, and within no other that is; each once."""

    def walk(expression: tree.Expression) -> Iterator[tree.Expression]:
        if wanted(expression):
            yield expression
        else:
            for child in children(expression):
                yield from walk(child)

    return list(dict.fromkeys(part for one in expressions for part in walk(one)))


def _sides(ours: _Names, theirs: _Names, pair: tuple[tree.Column, tree.Column]) -> tuple[tree.Column, tree.Column]:
    """The two columns of an equality, that of the left side first, whichever way it was written."""

    def there(names: _Names, one: tree.Column) -> bool:
        try:
            return bool(names.of(one))
        except InvalidInput:
            return False

    one, other = pair
    if there(ours, other) and there(theirs, one) and not (there(ours, one) and there(theirs, other)):
        one, other = other, one
    ours.of(one), theirs.of(other)
    return one, other


def _expect_same_persons(ours: Whose, theirs: Whose) -> None:
    what = f"{', '.join(ours.tables)} and {', '.join(theirs.tables)} together"
    if "row" in (ours.owner, theirs.owner):
        rule = 'each row of a table with unit = "row" is another person, so that its rows belong to no one else\'s'
        raise InvalidInput(what, rule, "Declare the column that names the person as unit of both tables.")
    if ours.persons != theirs.persons:
        rule = f"the persons of one are {ours.persons}, of the other {theirs.persons}: a row could belong to two"
        raise InvalidInput(what, rule, 'Declare persons = "..." alike in both tables if they speak of the same persons.')
    if ours.neighbors is not theirs.neighbors:
        rule = 'one table is declared with neighbors = "add_remove", the other with "replace"'
        raise InvalidInput(what, rule, "Declare the same for both.")


def _pushed(relation: Relation, sql: exp.Expr) -> Relation | None:
    """The relation with the condition where it concerns one side of a join only; None if it must stay above."""
    aliases = mentioned([sql])
    match relation:
        case Lookup(rows) if aliases and aliases <= {field.alias for field in rows.fields}:
            return replace(relation, rows=_below(rows, sql))
        case Join(left, right, _, kind) if aliases:
            if aliases <= {field.alias for field in left.fields}:
                return replace(relation, left=_below(left, sql))
            if kind == "inner" and aliases <= {field.alias for field in right.fields}:
                return replace(relation, right=_below(right, sql))
    return None


def _below(relation: Relation, sql: exp.Expr) -> Relation:
    return _pushed(relation, sql) or Filter(relation, sql)

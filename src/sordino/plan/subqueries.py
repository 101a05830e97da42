"""The rows of a subquery: computed columns, windows and aggregates within one person, different rows, and unions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias, TypeVar

from sqlglot import exp

from sordino.errors import InvalidInput
from sordino.plan.fragments import column
from sordino.plan.joins import expect_same_persons
from sordino.plan.names import Names, outermost
from sordino.plan.own_rows import over_rows, within_person
from sordino.plan.relations import (
    PERSON,
    Derive,
    Field,
    Filter,
    PerPerson,
    Relation,
    UnionAll,
    Window,
)
from sordino.query import tree
from sordino.query.meaning import nodes
from sordino.query.meaning.expressions import condition, typed
from sordino.query.meaning.function import alike, hull, selection
from sordino.query.same_name import folded
from sordino.query.typed import Typed
from sordino.query.types import Number, Type

__all__ = ["derived", "distinct", "per_person", "union"]

Fresh: TypeAlias = Callable[[], str]
"""Gives an alias that nothing has yet."""


def derived(names: Names, rows: tree.Rows, fresh: Fresh) -> Relation:
    """The items of a SELECT, row by row; windows are computed first, beside the rows."""
    fields = [field for field in names.relation.fields if rows.every and not field.hidden]
    relation, windows = _windows(names, rows.items, fresh)
    names = replace(names, relation=relation)
    values: dict[str, exp.Expr] = {}
    for item in rows.items:
        own = names.of(item.value) if isinstance(item.value, tree.Column) else []
        if own:
            fields += [replace(field, name=item.name, table="", hidden=False) for field in own]
            continue
        found = typed(item.value, names.read, windows)
        alias = fresh()
        fields.append(Field(item.name, "", alias, found.type, found.domain))
        values[alias] = found.sql
    return Derive(relation, tuple(fields), values)


def _windows(
    names: Names, items: Sequence[tree.Output], fresh: Fresh
) -> tuple[Relation, dict[tree.Expression, Typed]]:
    """The rows with the windows of all items beside them."""
    wanted = outermost(
        (item.value for item in items), lambda part: _bounded(part, tree.Window) is not None
    )
    relation = names.relation
    if not wanted:
        return relation, {}
    if relation.whose.owner != "person":
        rule = "a window looks at the rows of one person, and here no column names the person"
        raise InvalidInput(
            "OVER (...)", rule, "Declare the unit of the table as a column, or ask with GROUP BY."
        )
    found: dict[tree.Expression, Typed] = {}
    values: dict[str, exp.Expr] = {}
    # keys that are no columns count too: a later join on them would tell rows apart that tie in all others
    cells = [column(field.alias) if field.type is None else field.typed.sql for field in relation.fields
             if field.alias != PERSON]  # fmt: skip
    windows = [(part, *one) for part in wanted if (one := _bounded(part, tree.Window)) is not None]
    if sum(bool(window.order) for _, window, _ in windows) > 1:
        # one order of equal rows for all windows: which of their numbers stand side by side must not hang on the engine
        place = fresh()
        numbered = over_rows(
            tree.Window("row_number", (), ()), [], [], [(cell, False) for cell in cells], [], None
        )
        fields = (*relation.fields, Field("", "", place, hidden=True))
        relation, cells = Window(relation, fields, {place: numbered.sql}), [column(place)]
    for part, window, limits in windows:
        if not any(names.is_person(one) for one in window.partition):
            person = relation.whose.who
            rule = "a window looks at the rows of one person only, so that each row stays that person's own"
            hint = f"Write OVER (PARTITION BY {person} ORDER BY ...). Ranks of groups can be computed from the answer."
            raise InvalidInput(f"{window.function.upper()} OVER (...)", rule, hint)
        keys = [typed(one, names.read).sql for one in window.partition if not names.is_person(one)]
        order = [(typed(one, names.read).sql, down) for one, down in window.order]
        arguments = [typed(one, names.read) for one in window.arguments]
        made = over_rows(window, arguments, keys, order, cells, limits)
        alias = fresh()
        values[alias] = made.sql
        found[part] = Typed(made.type, column(alias), domain=made.domain)
    fields = (*relation.fields, *(Field("", "", alias, hidden=True) for alias in values))
    return Window(relation, fields, values), found


def per_person(names: Names, rows: tree.Rows, fresh: Fresh) -> Relation:
    """One row for each person and value of the keys."""
    relation, whose = names.relation, names.relation.whose
    keys = rows.keys or ()
    if whose.owner != "person" or not any(names.is_person(key) for key in keys):
        person = whose.who if whose.owner == "person" else "person"
        rule = "a subquery may aggregate the rows of one person only; a sum over persons leaves with noise"
        hint = f"Write GROUP BY {person} in the subquery, or ask for the aggregate itself."
        raise InvalidInput("an aggregate in a subquery", rule, hint)
    if rows.every:
        rule = "a subquery with GROUP BY selects its keys, and aggregates of a person's rows"
        hint = "Name the columns: SELECT person, COUNT(*) AS n, MAX(x) AS top."
        raise InvalidInput("SELECT * with GROUP BY", rule, hint)
    fields: list[Field] = [field for field in relation.fields if field.alias == PERSON]
    known: dict[tree.Expression, Typed] = {}
    derived: dict[str, exp.Expr] = {}
    for key in keys:
        if (
            names.is_person(key)
            and isinstance(key, tree.Column)
            and all(field.type is None for field in names.of(key))
        ):
            continue
        found = typed(key, names.read)
        alias = fresh()
        derived[alias] = found.sql
        known[key] = Typed(found.type, column(alias), domain=found.domain)
        fields.append(Field(getattr(key, "name", ""), "", alias, found.type, found.domain))
    by = [key for key in keys if not names.is_person(key)]
    values: dict[str, exp.Expr] = {}
    cut: set[str] = set()
    wanted = [item.value for item in rows.items] + ([] if rows.having is None else [rows.having])
    for part in outermost(
        wanted, lambda part: part in known or _bounded(part, tree.Aggregate) is not None
    ):
        aggregate, limits = _bounded(part, tree.Aggregate) or (None, None)
        if aggregate is None or part in known:
            continue
        argument = typed(aggregate.arguments[0], names.read) if aggregate.arguments else None
        if argument is not None:
            alias = fresh()
            derived[alias] = argument.sql
            argument = Typed(argument.type, column(alias), argument.constant, argument.domain)
        made = within_person(aggregate, argument, whose.bounds.total, limits)
        alias = fresh()
        if (
            limits is None
            and aggregate.function in ("count", "sum")
            and whose.bounds.total is not None
        ):
            cut.add(alias)
        values[alias] = made.sql
        known[part] = Typed(made.type, column(alias), domain=made.domain)
    inner = Derive(relation, relation.fields, derived)
    aliases = tuple(known[key].sql.name for key in by if key in known)
    one_value = {
        known[key].sql.name: nodes.extreme("min", known[key].sql.copy(), known[key].type)
        for key in keys
        if key in known and key not in by
    }
    fields += [Field("", "", alias, known[part].type, hidden=True) for part, alias in
               ((part, known[part].sql.name) for part in known) if alias in values]  # fmt: skip
    result: Relation = PerPerson(inner, tuple(fields), aliases, values | one_value, cut=bool(cut))

    def read(leaf: tree.Expression) -> Typed:
        if isinstance(leaf, tree.Column):
            rule = "in a subquery with GROUP BY it is neither an aggregate nor a key"
            raise InvalidInput(
                f"column {leaf.name!r}", rule, "Add it to GROUP BY, or take MIN, MAX or SUM of it."
            )
        return names.read(leaf)

    if rows.having is not None:
        result = Filter(result, (condition(rows.having, read, known).sql,))
    shown: list[Field] = []
    computed: dict[str, exp.Expr] = {}
    for item in rows.items:
        if names.is_person(item.value):
            shown += [
                replace(field, name=item.name, table="", hidden=False) for field in fields[:1]
            ]
        if item.value in known or not names.is_person(item.value):
            made = typed(item.value, read, known)
            alias = fresh()
            beyond = made.sql.name in cut if isinstance(made.sql, exp.Column) else False
            shown.append(Field(item.name, "", alias, made.type, made.domain, cut=beyond))
            computed[alias] = made.sql
    return Derive(result, tuple(shown), computed)


def distinct(relation: Relation, fresh: Fresh) -> Relation:
    """The rows without repetitions of one person's."""
    if relation.whose.owner != "person" or not any(
        field.alias == PERSON for field in relation.fields
    ):
        rule = "DISTINCT drops repetitions among one person's rows, so the person must be selected"
        raise InvalidInput(
            "SELECT DISTINCT", rule, "Select the person column as well, or leave DISTINCT out."
        )
    values: dict[str, exp.Expr] = {}
    fields: list[Field] = []
    for field in relation.fields:
        if field.type is None:  # the person, or a key of rows, by which they differ too
            fields.append(field)
        else:
            fields.append(replace(field, alias=fresh(), raw=None))
            values[fields[-1].alias] = field.typed.sql
    keys = tuple(dict.fromkeys(field.alias for field in fields if field.alias != PERSON))
    return PerPerson(Derive(relation, relation.fields, values), tuple(fields), keys, {})


def union(parts: Sequence[Relation], fresh: Fresh, *, listed: bool) -> Relation:
    """All parts, with columns of one type each; where these are `listed`, none is a *, the person has a place, too."""
    first, *others = parts
    columns = [[field for field in part.fields if field.type is not None] for part in parts]
    for part, own in zip(others, columns[1:], strict=True):
        expect_same_persons(first.whose, part.whose, by_row=True)
        ours, theirs = _persons(first), _persons(part)
        same = ours == theirs if listed else sum(ours) == sum(theirs)
        if len(own) != len(columns[0]) or not same:
            rule = "the parts of a UNION ALL have the same number of columns, and the person in the same place"
            raise InvalidInput(
                "UNION ALL", rule, "Select the same columns in the same order in each part."
            )
    read = [table for part in parts for table in part.whose.tables]
    if first.whose.owner == "row" and len(set(read)) < len(read):
        rule = 'with unit = "row" each row is a person, who would count twice where a table stands in two parts'
        raise InvalidInput(
            "UNION ALL", rule, "Name each table once: SELECT ... FROM events WHERE a OR b."
        )
    aliases = [fresh() for _ in columns[0]]
    values: list[dict[str, exp.Expr]] = [{} for _ in parts]
    fields: dict[str, Field] = {}
    for place, alias in enumerate(aliases):
        cells = alike("UNION ALL", [own[place].typed for own in columns])
        kind: Type = hull(cells)
        for i, cell in enumerate(cells):
            values[i][alias] = _as_kind(kind, cell)
        fields[alias] = replace(
            columns[0][place],
            alias=alias,
            type=kind,
            domain=None,
            raw=None,
            table="",
            nullable=True,
            looked_up=None,
        )
    people = [field for field in first.fields if field.alias == PERSON]
    made = tuple(
        Derive(part, (*people, *fields.values()), own)
        for part, own in zip(parts, values, strict=True)
    )
    return UnionAll(made, (*people, *fields.values()))


def _as_kind(kind: Type, cell: Typed) -> exp.Expr:
    """A column of a part of a union in the type of all parts; numbers in BIGINT where all are whole, else in DOUBLE."""
    if not isinstance(kind, Number):
        return selection(kind, [cell], lambda sql: sql[0]).sql
    if isinstance(cell.type, Number) and kind.integral and cell.type.integral:
        return cell.sql
    return (
        nodes.as_double(cell)
        if isinstance(cell.type, Number)
        else nodes.null("bigint" if kind.integral else "double")
    )


def _persons(relation: Relation) -> list[bool]:
    """Of each column, in order, whether it names the person; keys of rows are no columns of a union."""
    found: dict[tuple[str, str], bool] = {}
    for field in relation.fields:
        if field.alias == PERSON or field.type is not None:
            column_ = field.table, folded(field.name)
            found[column_] = found.get(column_, False) or field.alias == PERSON
    return list(found.values())


_Bounded = TypeVar("_Bounded", tree.Window, tree.Aggregate)


def _bounded(
    part: tree.Expression, kind: type[_Bounded]
) -> tuple[_Bounded, tuple[tree.Value, tree.Value] | None] | None:
    """A window or an aggregate, perhaps within CLAMP, whose bounds are then those of the result."""
    match part:
        case tree.Call("clamp", (inner, tree.Literal(low), tree.Literal(high))):
            return (inner, (low, high)) if isinstance(inner, kind) else None
        case _:
            return (part, None) if isinstance(part, kind) else None

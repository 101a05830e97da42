"""Rows side by side: lookups in public tables, and joins of tables that speak of the same persons.

Whatever would make a row depend on two persons is refused here, with a question that works instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal, TypeAlias

from sqlglot import exp

from sordino.errors import InvalidInput
from sordino.plan.names import Names, conjuncts
from sordino.plan.relations import PERSON, Field, Join, Lookup, Relation, Scan, Whose
from sordino.query import dataset, tree
from sordino.query.meaning.expressions import condition
from sordino.query.meaning.functions import FUNCTIONS
from sordino.query.same_name import folded, lowered
from sordino.query.tree import Call, Column, Expression
from sordino.query.types import Number, Text, Truth

__all__ = ["expect_same_persons", "joined", "marked"]

Pair: TypeAlias = tuple[Column, Column]
Pairs: TypeAlias = Sequence[Pair]
Tables: TypeAlias = Mapping[str, dataset.Table]
Key: TypeAlias = tuple[tuple[tuple[Field, Field], ...], Literal["left", "right"]]
"""Pairs of fields by which rows of one side name rows of the other, and the side whose key it is."""


def joined(
    first: Names,
    others: Sequence[tuple[tree.Join, Names]],
    conditions: list[Expression],
    tables: Tables,
) -> Relation:
    """The relation of a chain of joins. What only stands beside others (FROM a, b) is joined as soon as equalities of
    WHERE hold it together with those before; these are taken out of the conditions.
    """
    relation, rest = first.relation, list(others)
    sides = [first, *(names for _, names in others)]
    while rest:
        ours, before = replace(first, relation=relation), {id(names) for _, names in rest}
        known = [side for side in sides if id(side) not in before]
        join, theirs = rest[0]
        held: dict[int, Pair] = {}
        for join, theirs in rest:
            if join.on:
                break
            equal = _equalities(theirs, known, sides, conditions)
            if held := _holding(ours, theirs, equal, tables):
                break
        if not held and not (join.on and theirs is rest[0][1]):
            raise _apart(ours, rest[0][1])
        if held:
            join = replace(join, on=tuple(held.values()))
            conditions[:] = [one for i, one in enumerate(conditions) if i not in held]
        relation = _joined(join, ours, theirs, tables)
        rest = [one for one in rest if one[1] is not theirs]
    places = {side.first: place for place, side in enumerate(sides)}
    if isinstance(relation, Join | Lookup):  # in the order of FROM, for SELECT *
        in_order = sorted(relation.fields, key=lambda field: places.get(field.table, 0))
        relation = replace(relation, fields=tuple(in_order))
    return relation


def _equalities(
    theirs: Names, known: Sequence[Names], sides: Sequence[Names], conditions: Sequence[Expression]
) -> dict[int, Pair]:
    """The conditions, by place, that a column of a table and one of those that are joined are equal."""
    found: dict[int, Pair] = {}
    for i, one in enumerate(conditions):
        if isinstance(one, Call) and one.function == "=":
            left, right = one.arguments
            for a, b in ((left, right), (right, left)):
                if isinstance(a, Column) and isinstance(b, Column):
                    other = _side(a, sides)
                    if _side(b, sides) is theirs and any(other is side for side in known):
                        found[i] = a, b
    return found


def _holding(ours: Names, theirs: Names, equal: dict[int, Pair], tables: Tables) -> dict[int, Pair]:
    """Those equalities that hold two tables together: of the person, of a declared key, or of the whole key of a public
    table. None if they do not.
    """
    if ours.relation.whose.public or theirs.relation.whose.public:
        side = 1 if theirs.relation.whose.public else 0
        public = (ours, theirs)[side].relation
        if not isinstance(public, Scan):
            return equal
        found: dict[str, int] = {}
        for i, pair in equal.items():
            found.setdefault(folded(pair[side].name), i)
        keys = [folded(name) for name in public.table.key]
        return {found[name]: equal[found[name]] for name in keys} if {*keys} <= {*found} else {}
    people = {i: (a, b) for i, (a, b) in equal.items() if ours.is_person(a) and theirs.is_person(b)}
    if people:
        return people
    rows = {i: (a, b) for i, (a, b) in equal.items() if ours.identities(a) and theirs.identities(b)}
    return rows if _keyed(_identified(ours, theirs, list(rows.values())), tables) else {}


def _side(column: Column, sides: Sequence[Names]) -> Names | None:
    """The only one of some tables that a column can be of."""
    found = [side for side in (sides[:1] if column.first else sides) if _is_there(side, column)]
    return found[0] if len(found) == 1 else None


def _is_there(names: Names, column: Column) -> bool:
    try:
        return bool(names.of(column))
    except InvalidInput:
        return False


def _apart(ours: Names, theirs: Names) -> InvalidInput:
    """The refusal of tables that nothing holds together."""
    left, right, name = ours.relation.whose, theirs.relation.whose, theirs.first
    if not left.public and not right.public:
        expect_same_persons(left, right)
        hint = f"Write WHERE {ours.first}.{left.who} = {name}.{right.who}"
    else:
        public, of = (theirs, ours) if right.public else (ours, theirs)
        table = public.relation.table if isinstance(public.relation, Scan) else None
        key = (table.key if table else ()) or ("key",)
        same = (f"{of.first}.{one} = {public.first}.{one}" for one in key)
        hint = f"Write WHERE {' AND '.join(same)}, with the columns that hold the key"
    rule = (
        "tables beside each other are held together by equalities in WHERE: "
        "of the person, of a declared key, or of the whole key of a public table"
    )
    return InvalidInput(f"FROM {ours.first}, {name}", rule, f"{hint}, or JOIN {name} ON the same.")


def _joined(join: tree.Join, ours: Names, theirs: Names, tables: Tables) -> Relation:
    """The relation of a join of two others."""
    left, right = ours.relation, theirs.relation
    if right.fields and any(field.table == join.right.name for field in left.fields):
        what = f"table {join.right.name!r}"
        raise InvalidInput(what, "this name is in FROM already", "Give it another name with AS.")
    pairs = [_sides(ours, theirs, pair) for pair in join.on]
    if right.whose.public or (left.whose.public and join.kind == "inner"):
        return _lookup(join, ours, theirs, pairs)
    if left.whose.public:
        rule = "a public row that finds nothing would belong to nobody"
        raise InvalidInput(
            f"LEFT JOIN {join.right.name}", rule, f"Begin with FROM {join.right.name}."
        )
    expect_same_persons(left.whose, right.whose)
    return _same_persons(join, ours, theirs, pairs, tables)


def _identified(ours: Names, theirs: Names, pairs: Pairs) -> list[tuple[Field, Field]]:
    return [
        (one, other)
        for pair in pairs
        for one in ours.identities(pair[0])
        for other in theirs.identities(pair[1])
    ]


def _lookup(join: tree.Join, ours: Names, theirs: Names, pairs: Pairs) -> Relation:
    """A look into a public table, on whichever side it stands."""
    swapped = not theirs.relation.whose.public
    rows, public = (theirs.relation, ours.relation) if swapped else (ours.relation, theirs.relation)
    if not isinstance(public, Scan):
        rule = "only a declared public table can be looked up, by its whole key"
        raise InvalidInput(
            f"JOIN {join.right.name}", rule, "Join the public table itself, and filter with WHERE."
        )
    # cleaned before rows are grouped by their key: two spellings of nothing are one
    public = replace(public, fields=tuple(replace(field, raw=None) for field in public.fields))
    ours, theirs = (
        (replace(ours, relation=public), theirs)
        if swapped
        else (ours, replace(theirs, relation=public))
    )
    table = public.table
    on = {(ours.value(pair[0]) if swapped else theirs.value(pair[1])).name for pair in pairs}
    if not table.key or set(table.key) != on:
        keys = ", ".join(table.key) or "none declared"
        rule = f"a public table is looked up by its whole key ({keys}), so that each row finds at most one"
        hint = f"Join on the key, or declare tables.{table.name}.key = {sorted(on)!r} if no two rows share it."
        raise InvalidInput(f"JOIN {table.name} ON {', '.join(sorted(on))}", rule, hint)
    taken = {folded(field.name) for field in rows.fields}
    shown = tuple(
        replace(field, hidden=folded(field.name) in taken, nullable=True) for field in public.fields
    )
    both = [(ours.value(one), theirs.value(other)) for one, other in pairs]
    matches = [_equal(*pair, f"JOIN {table.name}") for pair in both]
    if join.condition is not None:
        rule = "a public table is looked up by equal columns"
        raise InvalidInput(f"JOIN {table.name}", rule, "Put other conditions into WHERE.")
    sides = [(right, left) if swapped else (left, right) for left, right in both]
    found = {own.alias: public for own, public in sides if join.kind == "inner"}
    own = tuple(
        _found(field, found[field.alias]) if field.alias in found else field
        for field in rows.fields
    )
    fields = (*shown, *own) if swapped else (*own, *shown)
    return Lookup(rows, public, exp.and_(*matches, copy=False), fields, join.kind)


def _found(ours: Field, theirs: Field) -> Field:
    """Text that equals a public column wherever there is a row: its values are among the public ones."""
    known = theirs.type.values if isinstance(theirs.type, Text) else None
    free = isinstance(ours.type, Text) and ours.type.values is None and ours.domain is None
    return (
        replace(ours, domain=known, looked_up=theirs.looked_up)
        if known is not None and free
        else ours
    )


def _same_persons(
    join: tree.Join, ours: Names, theirs: Names, pairs: Pairs, tables: Tables
) -> Relation:
    left, right = ours.relation, theirs.relation
    on_person = any(ours.is_person(one) and theirs.is_person(other) for one, other in pairs)
    keyed = None if on_person else _keyed(_identified(ours, theirs, pairs), tables)
    if not on_person and keyed is None:
        one, other = left.whose.who, right.whose.who
        how = (
            f"USING ({one})"
            if one == other
            else f"ON {ours.first}.{one} = {join.right.name}.{other}"
        )
        shown = ", ".join(column.name for column, _ in pairs)
        rule = "protected tables are joined on the person, or on a declared key, so that each row belongs to one person"
        hint = f"Write JOIN {join.right.name} {how}, or ask about each table separately."
        raise InvalidInput(f"JOIN {join.right.name} ON {shown}", rule, hint)
    same = {(folded(one.name), folded(other.name)) for one, other in pairs}
    matches = [
        _equal(ours.value(one), theirs.value(other), f"JOIN {join.right.name}")
        for one, other in pairs
        if not (ours.is_person(one) and theirs.is_person(other))
        and not (keyed and any(known in theirs.identities(other) for _, known in keyed[0]))
    ]
    shown_right = tuple(
        replace(
            field,
            hidden=field.hidden or (folded(field.name), folded(field.name)) in same,
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
        names = replace(ours, relation=joined)
        matches += [condition(one, names.read).sql for one in conjuncts(join.condition)]
    return replace(joined, condition=exp.and_(*matches, copy=False)) if matches else joined


def _keyed(named: Sequence[tuple[Field, Field]], tables: Tables) -> Key | None:
    """The pairs that are a whole declared key, by which rows of one side name rows of the other;
    and whose key it is.
    """
    known = [pair for pair in named if PERSON not in (pair[0].alias, pair[1].alias)]
    for one, other in known:
        same = [pair for pair in known if (pair[0].scan, pair[1].scan) == (one.scan, other.scan)]
        for child, parent, side in ((0, 1, "right"), (1, 0, "left")):
            via = tables[(one, other)[child].identity or ""].via
            if via is None or via.parent != (one, other)[parent].identity:
                continue
            # by the names that the declared tables have, whatever a subquery calls them
            asked = {(pair[child].column, pair[parent].column) for pair in same}
            if asked == {(lowered(own), lowered(key)) for own, key in via.keys}:
                return tuple(same), "right" if side == "right" else "left"
    return None


def marked(relation: Names, column: Column, among: Relation, alias: str, tables: Tables) -> Join:
    """The rows with a mark, the last field: whether the person, or the row, that a column names is among others."""
    ours, theirs = (
        relation.identities(column),
        [field for field in among.fields if field.identity is not None],
    )
    on_person = any(field.alias == PERSON for field in ours) and any(
        field.alias == PERSON for field in theirs
    )
    keyed = (
        None if on_person else _keyed([(one, other) for one in ours for other in theirs], tables)
    )
    if not on_person and keyed is None:
        rule = "IN (SELECT ...) and EXISTS look for the row's own person, or for that person's rows by a declared key"
        hint = (
            "Write WHERE person IN (SELECT person FROM ...), or look a public table up: "
            "JOIN wards ON visits.ward = wards.name, with WHERE on its columns."
        )
        raise InvalidInput(f"{column.name} IN (SELECT ...)", rule, hint)
    rows = relation.relation
    expect_same_persons(rows.whose, among.whose)
    mark = Field("", "", alias, Truth(nullable=False), hidden=True)
    return Join(rows, among, (*rows.fields, mark), "mark", keys=keyed[0] if keyed else ())


def _sides(ours: Names, theirs: Names, pair: Pair) -> Pair:
    """The two columns of an equality, that of the left side first, whichever way it was written."""
    one, other = pair
    if (
        _is_there(ours, other)
        and _is_there(theirs, one)
        and not (_is_there(ours, one) and _is_there(theirs, other))
    ):
        one, other = other, one
    ours.of(one), theirs.of(other)
    return one, other


def _equal(ours: Field, theirs: Field, what: str) -> exp.Expr:
    """The SQL of one equality; refuses whole numbers beside floats, where different keys may be equal."""
    if (
        isinstance(ours.type, Number)
        and isinstance(theirs.type, Number)
        and ours.type.integral != theirs.type.integral
    ):
        rule = "one side is computed in whole numbers and the other in floats, where different keys may be equal"
        hint = f"Declare both {ours.name} and {theirs.table}.{theirs.name} as int with min and max."
        raise InvalidInput(f"{what} ON {ours.name} = {theirs.name}", rule, hint)
    return FUNCTIONS["="].apply(ours.typed, theirs.typed).sql


def expect_same_persons(ours: Whose, theirs: Whose, *, by_row: bool = False) -> None:
    """Refuse rows that could belong to two persons; `by_row` says that they stay apart,
    so that each may be a person.
    """
    what = f"{', '.join(ours.tables)} and {', '.join(theirs.tables)} together"
    if ours.owner != theirs.owner and "nobody" in (ours.owner, theirs.owner):
        rule = "one of them is public, and the rows of the other belong to persons"
        raise InvalidInput(what, rule, "Look the public table up by JOIN instead.")
    if not (by_row and ours.owner == theirs.owner) and "row" in (ours.owner, theirs.owner):
        rule = 'each row of a table with unit = "row" is another person, so that its rows belong to no one else\'s'
        raise InvalidInput(
            what, rule, "Declare the column that names the person as unit of both tables."
        )
    if ours.persons != theirs.persons:
        rule = f"the persons of one are {ours.persons}, of the other {theirs.persons}: a row could belong to two"
        hint = 'Declare persons = "..." alike in both tables if they speak of the same persons.'
        raise InvalidInput(what, rule, hint)
    if ours.neighbors is not theirs.neighbors:
        rule = 'one table is declared with neighbors = "add_remove", the other with "replace"'
        raise InvalidInput(what, rule, "Declare the same for both.")

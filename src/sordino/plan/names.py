"""The columns of a relation by name.

SQL is case-insensitive, so names are; others are refused with the nearest ones.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from sordino.errors import InvalidInput
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
    Window,
)
from sordino.query import tree
from sordino.query.front.shapes import children
from sordino.query.same_name import folded
from sordino.query.typed import Typed
from sordino.query.types import Text

__all__ = ["Names", "conjuncts", "find", "outermost"]


def find(kind: str, name: str, known: Iterable[str], hint: str, otherwise: str = "") -> str:
    """The declared spelling of a name; InvalidInput with the nearest declared ones,
    or something else, if there is none.
    """
    names = {folded(spelling): spelling for spelling in known}
    if folded(name) in names:
        return names[folded(name)]
    near = difflib.get_close_matches(folded(name), names, n=1, cutoff=0.6)
    meant = f"Did you mean {names[near[0]]!r}? " if near else otherwise
    listed = ", ".join(sorted(names.values())[:20]) or "none"
    hint = f"{meant}Declared: {listed}. {hint}".strip()
    error = InvalidInput(f"{kind} {name!r}", f"no such {kind} is declared", hint)
    raise error.about(word=name, instead=names[near[0]] if near else "")


@dataclass(frozen=True)
class Names:
    """The columns of a relation by name; `first` qualifies those of the first table."""

    relation: Relation
    first: str

    def of(self, named: tree.Column) -> list[Field]:
        """All fields that a name can mean; refuses a name that is not there, or that means two things."""
        fields, name = self.relation.fields, folded(named.name)
        if named.table is not None:
            qualifier = named.table
        elif named.first:
            qualifier = self.first
        else:
            return self._unqualified(
                named, [field for field in fields if folded(field.name) == name]
            )
        table = find(
            "table",
            qualifier,
            dict.fromkeys(field.table for field in fields),
            "It is not in FROM or JOIN.",
        )
        found = [field for field in fields if field.table == table and folded(field.name) == name]
        return found or self._missing(named, table)

    def _unqualified(self, named: tree.Column, found: list[Field]) -> list[Field]:
        seen = [field for field in found if not field.hidden]
        tables = list(dict.fromkeys(field.table for field in seen))
        if len(tables) > 1 and all(field.alias == PERSON for field in seen):
            return seen[:1]  # the persons of tables side by side are one: that of the row
        if len(tables) > 1:
            rule = f"{' and '.join(tables)} both have a column of this name"
            raise InvalidInput(
                f"column {named.name!r}", rule, f"Write {tables[0]}.{named.name}, for example."
            )
        return seen or found[:1] or self._missing(named, self.first)

    def _missing(self, named: tree.Column, table: str) -> list[Field]:
        known = dict.fromkeys(
            field.name
            for field in self.relation.fields
            if field.table == table and not field.identity
        )
        hint = (
            f"Declare it under [tables.{table}.columns]."
            if _is_declared(self.relation, table)
            else ""
        )
        people = [field.name for field in self.relation.fields if field.table == table]
        quoted = "'" + named.name.replace("'", "''") + "'"
        for field in self.relation.fields:
            if (
                isinstance(field.type, Text)
                and field.type.values is not None
                and named.name in field.type.values
            ):
                rule = f"no such column is declared; it is a value of {field.name}"
                hint = f"Text stands in single quotes: {field.name} = {quoted}."
                raise InvalidInput(f"column {named.name!r}", rule, hint)
        find(
            "column",
            named.name,
            known or people,
            hint,
            f"If it is text, write it in single quotes: {quoted}. ",
        )
        raise AssertionError(named)

    def value(self, named: tree.Column) -> Field:
        """The column whose values a name means."""
        found = self.of(named)
        read = [field for field in found if field.type is not None]
        if len(read) > 1:
            rule = f"{read[0].table or 'the subquery'} has two columns of this name"
            raise InvalidInput(
                f"column {named.name!r}", rule, "Give one of them another name with AS."
            )
        if read:
            return read[0]
        what = found[0]
        if what.alias == PERSON:
            rule = f"it names the protected persons of {what.table} and is not declared as a column"
            hint = f"Use COUNT(DISTINCT {what.name}), or declare what is public of it."
            raise InvalidInput(f"column {what.name!r}", rule, hint)
        rule = f"it names rows of another table and is not declared as a column of {what.table}"
        hint = f"Declare it under [tables.{what.table}.columns] to read it."
        raise InvalidInput(f"column {what.name!r}", rule, hint)

    def identities(self, expression: tree.Expression) -> list[Field]:
        """The fields that identify a person or a row, if the expression is such a column."""
        if not isinstance(expression, tree.Column):
            return []
        return [field for field in self.of(expression) if field.identity is not None]

    def is_person(self, expression: tree.Expression) -> bool:
        """Whether an expression is the column that names the protected person."""
        return any(field.alias == PERSON for field in self.identities(expression))

    def read(self, named: tree.Expression) -> Typed:
        """The cleaned column that a name means."""
        match named:
            case tree.Column():
                return self.value(named).typed
            case tree.Window():
                rule = (
                    "a window stands in SELECT of a subquery, where each row is still one person's"
                )
                hint = "Write FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY person ORDER BY day) AS k FROM t) AS s."
                raise InvalidInput(f"{named.function.upper()} OVER (...)", rule, hint)
            case tree.Member():
                rule = "whether a person is among others is asked in WHERE"
                raise InvalidInput("IN (SELECT ...)", rule, "Put the condition into WHERE.")
            case tree.Aggregate():
                rule = "an aggregate must stand alone in SELECT, or in a subquery with GROUP BY on the person"
                hint = "Ask for each separately, or group by the person in a subquery."
                raise InvalidInput(named.function.upper(), rule, hint)
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


def conjuncts(expression: tree.Expression) -> list[tree.Expression]:
    """The conditions that must all hold."""
    match expression:
        case tree.Call("and", parts):
            return [one for part in parts for one in conjuncts(part)]
        case _:
            return [expression]


def outermost(
    expressions: Iterable[tree.Expression], wanted: Callable[[tree.Expression], bool]
) -> list[tree.Expression]:
    """The parts of expressions that are wanted, and within no other that is; each once."""

    def walk(expression: tree.Expression) -> Iterator[tree.Expression]:
        if wanted(expression):
            yield expression
        elif not isinstance(expression, tree.Member):  # its rows have names of their own
            for child in children(expression):
                yield from walk(child)

    return list(dict.fromkeys(part for one in expressions for part in walk(one)))

"""What an expression looks like from outside: its parts, its size, and whether two of them ask the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from sordino.errors import InvalidInput
from sordino.query.same_name import folded
from sordino.query.tree import (
    Aggregate,
    Call,
    Case,
    Column,
    Expression,
    Join,
    Literal,
    Member,
    Query,
    Rows,
    Source,
    Subquery,
    Table,
    UnionAll,
    Window,
)

__all__ = ["DEEPEST", "LARGEST", "MOST_TABLES", "WITHIN_PERSON", "Shape", "check_query", "check_size", "children",
           "expect_few_tables", "rebuilt", "shape", "within"]  # fmt: skip

DEEPEST = 50
"""An expression may be nested this deep, so that no later step runs out of stack."""

LARGEST = 5000
"""All expressions of one query together may hold this many names, constants and operations."""

WITHIN_PERSON = {"min": "MIN", "max": "MAX", "any": "BOOL_OR", "every": "BOOL_AND"}
"""Aggregates of one person's own rows only, and their names in SQL."""

MOST_TABLES = 16
"""The tables of one question, counted as often as they are read."""


def children(node: Expression) -> tuple[Expression, ...]:
    """The expressions directly within one."""
    match node:
        case Call(_, arguments) | Aggregate(_, arguments, _):
            return arguments
        case Case(branches, otherwise):
            return (*(part for branch in branches for part in branch), otherwise)
        case Window(_, arguments, partition, order):
            return (*arguments, *partition, *(one for one, _ in order))
        case Member(column, rows):
            return (column, *within(rows))
        case Column() | Literal():
            return ()


def rebuilt(node: Expression, change: Callable[[Expression], Expression]) -> Expression:
    """A function or CASE of changed parts; all else as it is."""
    match node:
        case Call(function, arguments):
            return Call(function, tuple(map(change, arguments)))
        case Case(branches, otherwise):
            pairs = tuple((change(test), change(value)) for test, value in branches)
            return Case(pairs, change(otherwise))
        case _:
            return node


def within(source: Source | Rows | UnionAll) -> tuple[Expression, ...]:
    """The expressions directly within a source."""
    match source:
        case Table():
            return ()
        case Subquery(rows):
            return within(rows)
        case Join(left, right, on, _, condition):
            pairs = tuple(column for pair in on for column in pair)
            return (
                *within(left),
                *within(right),
                *pairs,
                *([] if condition is None else [condition]),
            )
        case Rows():
            parts = [
                *(item.value for item in source.items),
                *(source.keys or ()),
                source.where,
                source.having,
            ]
            return (*within(source.source), *(part for part in parts if part is not None))
        case UnionAll(parts):
            return tuple(one for part in parts for one in within(part))


def expect_few_tables(source: Source | Rows | UnionAll) -> None:
    """Refuse rows of very many tables: a table of WITH that is named twice in each of the next ones stands for many.

    To be called whenever rows get a name, so that the count itself stays short.
    """
    if _tables(source) > MOST_TABLES:
        rule = f"a question may look at {MOST_TABLES} tables, those of subqueries included"
        raise InvalidInput(
            "a question about very many tables", rule, "Ask several smaller questions."
        )


def _tables(source: Source | Rows | UnionAll) -> int:
    match source:
        case Table():
            return 1
        case Subquery(rows):
            return _tables(rows)
        case Join(left, right):
            return _tables(left) + _tables(right)
        case Rows(inner, _, where):
            return _tables(inner) + (0 if where is None else _member_tables(where))
        case UnionAll(parts):
            return sum(map(_tables, parts))


def _member_tables(condition: Expression) -> int:
    if isinstance(condition, Member):
        return _tables(condition.rows)
    return sum(map(_member_tables, children(condition)))


def check_size(nodes: Iterable[Expression]) -> None:
    """Refuse expressions that are nested too deep or too large together; without recursion, each shared part visited
    once.

    A part may be shared (`x BETWEEN ..` mentions x twice), so that a short text can stand for an enormous tree.
    """
    roots = list(nodes)
    measured: dict[int, tuple[int, int]] = {}  # id -> nodes, depth
    stack = list(roots)
    while stack:
        node = stack[-1]
        parts = children(node)
        missing = [part for part in parts if id(part) not in measured]
        if missing:
            stack.extend(missing)
            continue
        sizes = [measured[id(part)] for part in parts]
        size, depth = (
            1 + sum(nodes for nodes, _ in sizes),
            1 + max((depth for _, depth in sizes), default=0),
        )
        measured[id(stack.pop())] = size, depth
    if any(measured[id(root)][1] > DEEPEST for root in roots):
        what = "an expression that is nested too deep"
        hint = "Ask several smaller questions, or compute a column beforehand."
        raise InvalidInput(what, f"at most {DEEPEST} operations may be nested", hint)
    if sum(measured[id(root)][0] for root in roots) > LARGEST:
        rule = f"at most {LARGEST} names, constants and operations may occur in it"
        hint = "Ask several smaller questions, or compute a column beforehand."
        raise InvalidInput("a question that is too large", rule, hint)


def check_query(query: Query) -> None:
    """Refuse a question whose expressions are too large together."""
    parts = [
        *(output.value for output in query.outputs),
        *query.keys,
        query.where,
        query.having,
        *within(query.source),
    ]
    check_size(part for part in parts if part is not None)


@dataclass(frozen=True)
class Shape:
    """What makes two expressions the same question: spelling of names apart, but True is not 1."""

    parts: tuple[Any, ...]


def shape(node: Expression) -> Shape:
    """A value that is equal for expressions that ask the same, however their columns are spelled."""
    match node:
        case Column(name, table):
            return Shape(("column", folded(name), None if table is None else folded(table)))
        case Literal(value):
            return Shape(("literal", type(value).__name__, value))
        case Call(function, arguments):
            return Shape((function, *map(shape, arguments)))
        case Case():
            return Shape(("case", len(node.branches), *map(shape, children(node))))
        case Aggregate(function, _, parameter):
            return Shape(("aggregate", function, parameter, *map(shape, children(node))))
        case Window(function, arguments, partition, order, frame):
            sizes = len(arguments), len(partition), tuple(down for _, down in order), frame
            return Shape(("window", function, sizes, *map(shape, children(node))))
        case Member(column, rows):
            return Shape(("member", shape(column), rows))

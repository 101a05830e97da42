"""What an expression looks like from outside: its parts, its size, and whether two of them ask the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from sordino.errors import InvalidInput
from sordino.query.tree import Aggregate, Call, Case, Column, Combined, Expression, Item, Literal, Query

__all__ = ["DEEPEST", "LARGEST", "Shape", "check_query", "check_size", "children", "mapped", "shape"]

DEEPEST = 50
"""An expression may be nested this deep, so that no later step runs out of stack."""

LARGEST = 5000
"""All expressions of one query together may hold this many names, constants and operations."""


def children(node: Item) -> tuple[Item, ...]:
    """The expressions directly within one."""
    match node:
        case Call(_, arguments) | Aggregate(_, arguments, _) | Combined(_, arguments):
            return arguments
        case Case(branches, otherwise):
            return (*(part for branch in branches for part in branch), otherwise)
        case Column() | Literal():
            return ()


def mapped(node: Expression, part: Callable[[Expression], Expression]) -> Expression:
    """The expression with each of its parts replaced by what the function makes of it."""
    match node:
        case Call(function, arguments):
            return Call(function, tuple(map(part, arguments)))
        case Case(branches, otherwise):
            return Case(tuple((part(condition), part(value)) for condition, value in branches), part(otherwise))
        case Column() | Literal():
            return node


def check_size(nodes: Iterable[Item]) -> None:
    """Refuse expressions that are nested too deep or too large together; without recursion, each shared part visited once.

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
        size, depth = 1 + sum(nodes for nodes, _ in sizes), 1 + max((depth for _, depth in sizes), default=0)
        measured[id(stack.pop())] = size, depth
    if any(measured[id(root)][1] > DEEPEST for root in roots):
        raise InvalidInput(
            "an expression that is nested too deep",
            f"at most {DEEPEST} operations may be nested",
            "Ask several smaller questions, or compute a column beforehand.",
        )
    if sum(measured[id(root)][0] for root in roots) > LARGEST:
        raise InvalidInput(
            "a question that is too large",
            f"at most {LARGEST} names, constants and operations may occur in it",
            "Ask several smaller questions, or compute a column beforehand.",
        )


def check_query(query: Query) -> None:
    """Refuse a question whose expressions are too large together."""
    parts = [*(output.value for output in query.outputs), *query.keys, query.where, query.having]
    check_size(part for part in parts if part is not None)


@dataclass(frozen=True)
class Shape:
    """What makes two expressions the same question: spelling of names apart, but True is not 1."""

    parts: tuple[Any, ...]


def shape(node: Item) -> Shape:
    """A value that is equal for expressions that ask the same, however their columns are spelled."""
    match node:
        case Column(name, table):
            return Shape(("column", name.casefold(), None if table is None else table.casefold()))
        case Literal(value):
            return Shape(("literal", type(value).__name__, value))
        case Call(function, arguments) | Combined(function, arguments):
            return Shape((function, *map(shape, arguments)))
        case Case():
            return Shape(("case", len(node.branches), *map(shape, children(node))))
        case Aggregate(function, _, parameter):
            return Shape(("aggregate", function, parameter, *map(shape, children(node))))

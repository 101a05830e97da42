"""Comparisons, three-valued logic, and choices between values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from sqlglot import exp

from sordino.query.meaning import nodes
from sordino.query.meaning.function import (
    Function,
    alike,
    hull,
    is_null_constant,
    refuse,
    selection,
)
from sordino.query.typed import Typed
from sordino.query.types import Nothing, Number, Truth

__all__ = ["LOGIC_FUNCTIONS", "as_truth", "choose"]


def as_truth(function: str, arguments: Sequence[Typed]) -> list[Typed]:
    """The arguments if all are conditions; NULL is a condition that is not known."""
    for a in arguments:
        if not isinstance(a.type, Truth | Nothing):
            hint = "Compare the value with something, as in age >= 65."
            raise refuse(function, arguments, f"{function} needs conditions", hint)
    return [
        Typed(Truth(), nodes.null("boolean"), (None,)) if is_null_constant(a) else a
        for a in arguments
    ]


def _nullable(arguments: Sequence[Typed]) -> bool:
    return any(isinstance(a.type, Nothing) or a.type.nullable for a in arguments)


def _comparable(arguments: Sequence[Typed]) -> list[exp.Expression]:
    """SQL of alike arguments; numbers all in BIGINT or all in DOUBLE."""
    if all(not isinstance(a.type, Number) or a.type.integral for a in arguments):
        return [a.sql for a in arguments]
    return [nodes.as_double(a) if isinstance(a.type, Number) else a.sql for a in arguments]


def _comparison(name: str, node: type[exp.Expression]) -> Callable[[Typed, Typed], Typed]:
    def apply(x: Typed, y: Typed) -> Typed:
        pair = alike(name, (x, y))
        if any(is_null_constant(a) for a in pair):
            return Typed(Truth(), nodes.null("boolean"), (None,))
        left, right = _comparable(pair)
        return Typed(Truth(_nullable(pair)), nodes.binary(node, left, right))

    return apply


def _in(x: Typed, *listed: Typed) -> Typed:
    for literal in listed:
        if literal.constant is None:
            rule = "IN takes written-out values"
            raise refuse("in", (x, literal), rule, "Join several comparisons by OR instead.")
    if is_null_constant(x):
        return Typed(Truth(), nodes.null("boolean"), (None,))
    same = alike("in", (x, *listed))
    first, *rest = _comparable(same)
    # the engine copies what stands before IN
    return Typed(
        Truth(_nullable(same)),
        nodes.let(first, lambda v: exp.Paren(this=exp.In(this=v, expressions=rest))),
    )


def _joined(name: str, node: type[exp.Expression]) -> Callable[..., Typed]:
    def halves(sql: list[exp.Expression]) -> exp.Expression:
        # a balanced tree: a thousand conditions nest ten deep
        if len(sql) == 1:
            return sql[0]
        middle = len(sql) // 2
        return nodes.binary(node, halves(sql[:middle]), halves(sql[middle:]))

    def apply(*conditions: Typed) -> Typed:
        known = as_truth(name, conditions)
        return Typed(Truth(_nullable(known)), halves([c.sql for c in known]))

    return apply


def _not(condition: Typed) -> Typed:
    (known,) = as_truth("not", (condition,))
    return Typed(Truth(_nullable((known,))), exp.Paren(this=exp.Not(this=known.sql)))


def _is_null(x: Typed) -> Typed:
    return Typed(Truth(nullable=False), exp.Paren(this=exp.Is(this=x.sql, expression=exp.null())))


def _coalesce(*arguments: Typed) -> Typed:
    same = [a for a in alike("coalesce", arguments) if not is_null_constant(a)]
    if len(same) == 1:
        return same[0]
    type_ = hull(same)
    if not isinstance(type_, Nothing):
        type_ = replace(type_, nullable=all(_nullable([a]) for a in same))
    return selection(type_, same, lambda sql: exp.Coalesce(this=sql[0], expressions=sql[1:]))


def choose(branches: Sequence[tuple[Typed, Typed]], otherwise: Typed) -> Typed:
    """CASE: the value of the first branch whose condition is true, else `otherwise`."""
    conditions = as_truth("case", [when for when, _ in branches])
    values = alike("case", [*(then for _, then in branches), otherwise])
    type_ = hull([v for v in values if not is_null_constant(v)])
    if not isinstance(type_, Nothing):
        type_ = replace(type_, nullable=_nullable(values))

    def build(sql: list[exp.Expression]) -> exp.Expression:
        return nodes.case(
            [(c.sql, then) for c, then in zip(conditions, sql[:-1], strict=True)], sql[-1]
        )

    return selection(type_, values, build)


LOGIC_FUNCTIONS = (
    Function("=", 2, 2, "whether both are equal", _comparison("=", exp.EQ)),
    Function("<>", 2, 2, "whether they differ", _comparison("<>", exp.NEQ)),
    Function("<", 2, 2, "whether x is below y", _comparison("<", exp.LT)),
    Function("<=", 2, 2, "whether x is not above y", _comparison("<=", exp.LTE)),
    Function(">", 2, 2, "whether x is above y", _comparison(">", exp.GT)),
    Function(">=", 2, 2, "whether x is not below y", _comparison(">=", exp.GTE)),
    Function("and", 2, None, "whether all conditions are true", _joined("and", exp.And)),
    Function("or", 2, None, "whether one of the conditions is true", _joined("or", exp.Or)),
    Function("not", 1, 1, "whether the condition is false", _not),
    Function("in", 2, None, "whether x is one of the written-out values", _in),
    Function("is_null", 1, 1, "whether x is missing", _is_null),
    Function("coalesce", 1, None, "the first argument that is not NULL", _coalesce),
)

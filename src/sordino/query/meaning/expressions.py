"""From the query tree to types and SQL: the walk over an expression, conditions, keys, and whole steps.

`quantised` is what privacy rests on: whatever an expression yields, the integers that are summed stay within public
bounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import TypeAlias, assert_never

from sqlglot import exp

from sordino.errors import InvalidInput
from sordino.privacy.exact import readable, show
from sordino.query import tree
from sordino.query.meaning import nodes
from sordino.query.meaning.function import kind_words
from sordino.query.meaning.functions import FUNCTIONS
from sordino.query.meaning.logic import as_truth, choose
from sordino.query.meaning.neutral import Let
from sordino.query.meaning.unlisted_values import expect_listed
from sordino.query.typed import Typed
from sordino.query.types import LARGEST, Nothing, Number, Truth

__all__ = ["condition", "indicator", "key_index", "quantised", "typed"]


_DEEPEST = 120
"""Levels of SQL that its generator writes within Python's limit of nested calls,
with room for what the plan puts around.
"""


Reads: TypeAlias = Callable[[tree.Expression], Typed]
"""Reads a column, or whatever else is no expression of one row, or refuses it."""


def typed(
    expression: tree.Expression, read: Reads, known: Mapping[tree.Expression, Typed] | None = None
) -> Typed:
    """What an expression yields and the SQL that computes it; `known` are parts of it that are columns already."""
    found = _typed(expression, read, known or {})
    _refuse_deep(found.sql)
    return found


def _typed(
    expression: tree.Expression, read: Reads, known: Mapping[tree.Expression, Typed]
) -> Typed:
    if known and expression in known:
        leaf = known[expression]
        return Typed(leaf.type, leaf.sql.copy(), leaf.constant, leaf.domain)
    match expression:
        case tree.Column() | tree.Window() | tree.Member() | tree.Aggregate():
            leaf = read(expression)
            # a node has one parent: each mention of a column gets nodes of its own
            return Typed(leaf.type, leaf.sql.copy(), leaf.constant, leaf.domain)
        case tree.Literal(value):
            return nodes.constant(value)
        case tree.Call(name, arguments):
            function = FUNCTIONS.get(name)
            if function is None:
                raise InvalidInput(f"the function {show(name)}", "this function is not supported",
                                   f"Supported are {', '.join(sorted(FUNCTIONS))}.")  # fmt: skip
            found = [_typed(a, read, known) for a in arguments]
            expect_listed(expression, found)
            return function.apply(*found)
        case tree.Case(branches, otherwise):
            pairs = [
                (_typed(when, read, known), _typed(then, read, known)) for when, then in branches
            ]
            return choose(pairs, _typed(otherwise, read, known))
        case _:
            assert_never(expression)


def _refuse_deep(sql: exp.Expression) -> None:
    waiting = [(sql, 1)]
    while waiting:
        node, level = waiting.pop()
        if level > _DEEPEST:
            raise InvalidInput("an expression of many nested calls", f"it may become at most {_DEEPEST} levels of SQL",
                               "Write it with fewer calls inside calls.")  # fmt: skip
        below = level + (Let.levels if isinstance(node, Let) else 1)
        waiting += [(child, below) for child in node.iter_expressions()]


def condition(
    expression: tree.Expression, read: Reads, known: Mapping[tree.Expression, Typed] | None = None
) -> Typed:
    """An expression that must be a condition; NULL is one that is never true."""
    found = typed(expression, read, known)
    if not isinstance(found.type, Truth | Nothing):
        raise InvalidInput(f"{kind_words(found.type)} as a condition", "a condition is true, false or NULL",
                           "Compare the value with something, as in age >= 65.")  # fmt: skip
    return as_truth("condition", (found,))[0]


def indicator(truth: Typed) -> Typed:
    """A condition as the number 1 where it is true and 0 where it is false; NULL stays NULL."""
    nullable = not isinstance(truth.type, Truth) or truth.type.nullable
    number = Number(Fraction(0), Fraction(1), Fraction(1), None, nullable)
    return Typed(number, nodes.indicator(truth.sql))


def _nearest(value: Fraction, step: Fraction) -> int:
    return math.floor(value / step + Fraction(1, 2))


def quantised(number: Typed, step: Fraction, lower: Fraction, upper: Fraction) -> exp.Expression:
    """BIGINT number of steps nearest to a Number, NULL for NULL and NaN, clamped.

    Privacy: the result is NULL or within [floor(lower / step + 1/2), floor(upper / step + 1/2)] for every row,
    whatever the expression yields; this needs nothing of its type but BIGINT or DOUBLE.
    """
    type_ = nodes.as_number(number)
    if (
        nodes.nearest_double(step) <= 0
        or lower > upper
        or max(abs(lower), abs(upper)) >= (LARGEST - 1) * step
    ):
        raise InvalidInput(f"{readable(step)} as the step of numbers from {readable(lower)} to {readable(upper)}",
                           "a step is positive and fits less than 2^62 times into its bounds",
                           "Choose a coarser step.")  # fmt: skip
    first, last = _nearest(lower, step), _nearest(upper, step)
    if type_.integral:
        whole = _whole_steps(number.sql, step, lower, upper)
        if whole is not None:
            return whole
    steps = nodes.doubles(
        "/", nodes.as_double(number), nodes.real(step), safe=_divides_safely(type_, step)
    )
    x = nodes.binary(exp.Add, steps, nodes.real(0.5))
    return nodes.as_whole(exp.Floor(this=x), first, last)


def _divides_safely(number: Number, step: Fraction) -> bool:
    """Whether no quotient is infinite, nor becomes 0 where the number is none."""
    if number.lower is None or number.upper is None or step > 1:
        return False
    return max(abs(number.lower), abs(number.upper)) / step <= 2**1000


def _whole_steps(
    sql: exp.Expression, step: Fraction, lower: Fraction, upper: Fraction
) -> exp.Expression | None:
    """Steps of a BIGINT in integers only: clamped first, so that nothing after can overflow.

    None if 64 bits do not do.
    """
    low, high = math.ceil(lower), math.floor(upper)
    if low > high or max(abs(low), abs(high)) >= LARGEST:
        return None
    clamped = nodes.clamped_whole(sql, low, high)
    if step == 1:
        return clamped
    if step.numerator == 1:
        finer = step.denominator
        return (
            nodes.binary(exp.Mul, clamped, nodes.whole(finer))
            if max(abs(low), abs(high)) * finer < LARGEST
            else None
        )
    if step.denominator != 1:
        return None
    # floor((x + half) / step), counted from the lowest on, since the engine's whole division rounds towards zero
    size = int(step)
    first = _nearest(Fraction(low), step)
    shift = size // 2 - first * size
    if max(abs(shift), abs(low + shift), abs(high + shift)) >= LARGEST:
        return None
    shifted = nodes.binary(exp.Add, clamped, nodes.whole(shift))
    return nodes.binary(
        exp.Add, nodes.binary(exp.IntDiv, shifted, nodes.whole(size)), nodes.whole(first)
    )


def key_index(key: Typed) -> exp.Expression:
    """SQL by which rows are grouped: for a bounded Number with a step the multiple of it, so that floats meet as
    integers.

    Everything else is grouped by its own value.
    """
    match key.type:
        case Number(lower=Fraction() as lower, upper=Fraction() as upper, step=Fraction() as step):
            return quantised(
                key, step, math.ceil(lower / step) * step, math.floor(upper / step) * step
            )
        case _:
            return key.sql

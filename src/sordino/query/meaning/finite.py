"""Expressions with finitely many values, all of them public: SQL that tells them apart, and what the engine returns."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from sqlglot import exp

from sordino.query.meaning import nodes
from sordino.query.meaning.domains import Multiples, domain
from sordino.query.meaning.expressions import key_index
from sordino.query.meaning.reading import is_long
from sordino.query.tree import Value
from sordino.query.typed import Typed
from sordino.query.types import Number, Text

__all__ = ["MOST_VALUES", "Finite", "finite", "size_of"]

MOST_VALUES = 1_000_000


@dataclass(frozen=True)
class Finite:
    """SQL of one row's value; the values in order; and the `cells` that the engine returns for them."""

    sql: exp.Expr
    cells: tuple[Any, ...]
    values: tuple[Value, ...]


def size_of(typed: Typed) -> int | None:
    """How many values there are; None if they are not public."""
    known = domain(typed)
    return None if known is None else known.__len__()  # len() ends at 2^63


def finite(typed: Typed) -> Finite:
    """The values of an expression of which there are at most MOST_VALUES.

    A text enters the engine as its place in the list of all values (one with a long list as itself, looked up in that
    list before) and a number as its number of steps, so that nothing but public values can come back, whatever the
    data hold.
    """
    known = domain(typed) or ()
    values = tuple(known)
    match typed.type:
        case Text() if is_long([str(value) for value in values]):
            # whatever is typed as listed text is one of its values or NULL already: it is grouped by itself
            return Finite(typed.sql, values, values)
        case Text():
            place = nodes.place_in([str(value) for value in values], typed.sql)
            return Finite(place, tuple(range(1, len(values) + 1)), values)
        case Number(step=Fraction() as step):
            if step == 1:
                steps: tuple[Any, ...] = values
            elif isinstance(known, Multiples) and known.step == step:
                steps = tuple(range(known.first, known.last + 1))
            else:
                steps = tuple(
                    int(Fraction(v) / step) for v in values if isinstance(v, int | Fraction)
                )
            return Finite(key_index(typed), steps, values)
        case _:
            return Finite(typed.sql, values, values)

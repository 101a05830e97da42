"""An expression that is understood: its type, and the SQL that computes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from sordino.query.tree import Value
from sordino.query.types import Type

__all__ = ["Typed"]


@dataclass(frozen=True)
class Typed:
    """What is publicly known of an expression's values, and SQL that computes one of them from one row.

    `sql` yields BIGINT for an integral Number and DOUBLE for any other, BOOLEAN for a Truth, VARCHAR for Text, DATE
    for a Day and TIMESTAMP for a Moment. A constant carries its `constant` value in a 1-tuple (NULL is a constant,
    too). `domain` lists the values that may occur where the type alone does not say it; it may be lazy and long (see
    `domains.py`).
    """

    type: Type
    sql: exp.Expression
    constant: tuple[Value] | None = None
    domain: Sequence[Value] | None = None

"""The query tree: the closed set of questions that can be asked, whether they came as SQL or from Python.

Nothing here knows of text, bounds or data. Names of functions are those of `functions.py`, names of aggregates those of
`aggregates/registry.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from fractions import Fraction
from typing import Literal as OneOf
from typing import TypeAlias

__all__ = ["Aggregate", "Call", "Case", "Column", "Combined", "Expression", "Item", "Join", "Literal", "Order", "Output",
           "Query", "Value", "aggregates_in"]  # fmt: skip

Value: TypeAlias = bool | int | Fraction | str | date | datetime | None


@dataclass(frozen=True)
class Column:
    """A column by name; of the asked table, or of a public one if `table` says so."""

    name: str
    table: str | None = None


@dataclass(frozen=True, eq=False)
class Literal:
    """A constant; a number is an int or an exact Fraction, never a float. TRUE and 1 are different constants."""

    value: Value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Literal) and (type(self.value), self.value) == (type(other.value), other.value)

    def __hash__(self) -> int:
        return hash((type(self.value), self.value))


@dataclass(frozen=True)
class Call:
    """A function of `functions.py`, operators included, applied to expressions."""

    function: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True)
class Case:
    """The value of the first branch whose condition is true, else `otherwise`."""

    branches: tuple[tuple[Expression, Expression], ...]
    otherwise: Expression = Literal(None)


Expression: TypeAlias = Column | Literal | Call | Case


@dataclass(frozen=True)
class Aggregate:
    """One aggregate of the rows of a group; COUNT(*) has no arguments, `parameter` is the level of a quantile."""

    function: str
    arguments: tuple[Expression, ...] = ()
    parameter: Fraction | None = None


@dataclass(frozen=True)
class Combined:
    """Arithmetic of aggregates of the same group and constants: `+`, `-`, `*`, `/` of two, `neg` of one."""

    function: str
    parts: tuple[Aggregate | Combined | Literal, ...]

    @property
    def aggregates(self) -> tuple[Aggregate, ...]:
        """The aggregates in it, in order."""
        return tuple(found for part in self.parts for found in aggregates_in(part))


Item: TypeAlias = Expression | Aggregate | Combined
"""What SELECT may list."""


def aggregates_in(value: Item) -> tuple[Aggregate, ...]:
    """The aggregates that an item of SELECT asks for; none if it is a key."""
    return (value,) if isinstance(value, Aggregate) else value.aggregates if isinstance(value, Combined) else ()


@dataclass(frozen=True)
class Output:
    """One column of the answer: a key of the grouping, an aggregate or arithmetic of several, under a name."""

    name: str
    value: Item


@dataclass(frozen=True)
class Order:
    """Sort the answer by one of its columns."""

    output: str
    descending: bool = False


@dataclass(frozen=True)
class Join:
    """Look up a row of a public table: where each column of the asked table equals the public column beside it.

    A `left` join keeps rows that find nothing, with NULLs; an `inner` join drops them.
    """

    table: str
    on: tuple[tuple[Column, str], ...]
    kind: OneOf["left", "inner"] = "inner"


@dataclass(frozen=True)
class Query:
    """One SELECT: rows of `table` that satisfy `where`, grouped by `keys`; the last four are applied to the noisy answer.

    In `having`, a Column names an output.
    """

    table: str
    outputs: tuple[Output, ...]
    where: Expression | None = None
    keys: tuple[Expression, ...] = ()
    joins: tuple[Join, ...] = ()
    having: Expression | None = None
    order: tuple[Order, ...] = ()
    limit: int | None = None
    offset: int = 0

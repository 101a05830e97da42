"""The query tree: the closed set of questions that can be asked, whether they came as SQL or from Python.

Nothing here knows of text, bounds or data. Names of functions are those of `functions.py`, names of aggregates those of
`aggregates/`. A question is asked about a `Source`: a table, or rows that are derived from tables, person by person.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime
from fractions import Fraction
from typing import Literal as OneOf
from typing import TypeAlias

__all__ = ["Aggregate", "Call", "Case", "Column", "Expression", "Join", "Literal", "Member", "Order", "Output", "Query",
           "Rows", "Source", "Subquery", "Table", "UnionAll", "Value", "Window", "aggregates_in"]  # fmt: skip

Value: TypeAlias = bool | int | Fraction | str | date | datetime | None


@dataclass(frozen=True)
class Column:
    """A column by name; of the first table, or of another one if `table` says so.

    `first` says that the first table was named. Without it, a name that stands in several tables may be refused.
    """

    name: str
    table: str | None = None
    first: bool = field(default=False, compare=False, repr=False)


@dataclass(frozen=True, eq=False)
class Literal:
    """A constant; a number is an int or an exact Fraction, never a float. TRUE and 1 are different constants."""

    value: Value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Literal) and (type(self.value), self.value) == (
            type(other.value),
            other.value,
        )

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


@dataclass(frozen=True)
class Window:
    """A function of the rows of one person around a row: those that share `partition`, in an order; True is descending.

    With a `frame`, those from so many rows on to so many rows on (-2, 0: two rows before to this one); None is without
    end. Without, COUNT, SUM and FIRST_VALUE are of the rows up to this one.
    """

    function: str
    arguments: tuple[Expression, ...]
    partition: tuple[Expression, ...]
    order: tuple[tuple[Expression, bool], ...] = ()
    frame: tuple[int | None, int | None] | None = None


@dataclass(frozen=True)
class Member:
    """Whether the person that a column names is among those that the only item of some rows names."""

    column: Column
    rows: Rows


@dataclass(frozen=True)
class Aggregate:
    """One aggregate of the rows of a group; COUNT(*) has no arguments, `parameter` is the level of a quantile."""

    function: str
    arguments: tuple[Expression, ...] = ()
    parameter: Fraction | None = None


Expression: TypeAlias = Column | Literal | Call | Case | Window | Member | Aggregate
"""A value for each row. Windows, members and aggregates stand only where the front ends and `bind.py` let them."""


def aggregates_in(value: Expression) -> tuple[Aggregate, ...]:
    """The aggregates of which a value is arithmetic, in order; none where it is a value of rows."""
    match value:
        case Aggregate():
            return (value,)
        case Call(_, parts):
            return tuple(found for part in parts for found in aggregates_in(part))
    return ()


@dataclass(frozen=True)
class Output:
    """One column of the answer, or of derived rows: a key of the grouping,
    an expression or an aggregate, under a name.

    A `hidden` one is released like the others, for HAVING or ORDER BY, and not shown.
    """

    name: str
    value: Expression
    hidden: bool = False


@dataclass(frozen=True)
class Order:
    """Sort the answer by one of its columns."""

    output: str
    descending: bool = False


@dataclass(frozen=True)
class Table:
    """A declared table; `alias` qualifies its columns where it is not the table's own name."""

    table: str
    alias: str | None = None

    @property
    def name(self) -> str:
        """What qualifies its columns."""
        return self.alias or self.table


@dataclass(frozen=True)
class Subquery:
    """Derived rows under a name."""

    rows: Rows | UnionAll
    name: str


@dataclass(frozen=True)
class Join:
    """Rows side by side where the columns of `on` are equal and the condition holds, if there is one.

    A `left` join keeps rows that find nothing, with NULLs; an `inner` join drops them. Without `on` the tables only
    stand beside each other (FROM a, b), and equalities of WHERE hold them together.
    """

    left: Source
    right: Table | Subquery
    on: tuple[tuple[Column, Column], ...]
    kind: OneOf["left", "inner"] = "inner"
    condition: Expression | None = None


Source: TypeAlias = Table | Subquery | Join


@dataclass(frozen=True)
class Rows:
    """A SELECT of rows: the items, after all columns of the source if `every` says so.

    With `keys` (one of which must name the person) it has one row for each person and value of the other keys, and its
    items may be aggregates of one person's rows, on which `having` is a condition.
    """

    source: Source
    items: tuple[Output, ...] = ()
    where: Expression | None = None
    keys: tuple[Expression, ...] | None = None
    having: Expression | None = None
    distinct: bool = False
    every: bool = False


@dataclass(frozen=True)
class UnionAll:
    """The rows of all parts, whose columns correspond by their place; the first names them."""

    parts: tuple[Rows, ...]


@dataclass(frozen=True)
class Query:
    """One SELECT: rows of `source` that satisfy `where`, grouped by `keys`; the last four are applied to the noisy
    answer.

    In `having`, a Column names an output. With `sets` there is a table for each of them: the places of its keys,
    ascending.
    """

    source: Source
    outputs: tuple[Output, ...]
    where: Expression | None = None
    keys: tuple[Expression, ...] = ()
    having: Expression | None = None
    order: tuple[Order, ...] = ()
    limit: int | None = None
    offset: int = 0
    sets: tuple[tuple[int, ...], ...] | None = None

    @property
    def hidden(self) -> tuple[str, ...]:
        """The outputs that are released for HAVING or ORDER BY, and not shown."""
        return tuple(output.name for output in self.outputs if output.hidden)

"""COUNT(DISTINCT person): one whole number, to which each person adds 1, however many rows the person has.

One person moves a group's number by at most 1; nothing has to be declared for that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from sqlglot import exp

from sordino.errors import InvalidInput
from sordino.query.aggregates.argument import Argument
from sordino.query.aggregates.count import Counted
from sordino.query.aggregates.partial import Partial
from sordino.query.aggregates.registry import Example, Kind
from sordino.query.tree import Aggregate, Column, Expression

__all__ = ["KINDS", "Persons"]


@dataclass(frozen=True)
class Persons(Counted):
    """The number of persons."""

    bounding: ClassVar[Literal["clip", "scale", "once"]] = "once"

    @property
    def label(self) -> str:
        """What is summed, in words."""
        return "number of persons"

    @property
    def serves(self) -> frozenset[str]:
        """The count of distinct persons."""
        return frozenset({"count_distinct"})

    @property
    def always(self) -> bool:
        """Every person counts."""
        return True

    def sums(self, *arguments: exp.Expr) -> tuple[exp.Expr, ...]:
        """One for each person; where each row is another person, one for each row."""
        return (exp.Count(this=exp.Star()),)


@dataclass(frozen=True)
class _CountDistinct(Kind):
    def form(self, arguments: tuple[Expression, ...], parameter: Any = None) -> Aggregate:
        """Of a column: the person."""
        if len(arguments) == 1 and not isinstance(arguments[0], Column):
            rule = "only persons are counted distinctly"
            hint = "Write COUNT(DISTINCT patient_id) with the person column; conditions go into WHERE."
            raise InvalidInput("COUNT(DISTINCT ...) of an expression", rule, hint)
        return super().form(arguments, parameter)

    def filtered(self, condition: Expression, value: Aggregate) -> Aggregate:
        """Refused."""
        rule = "distinct persons are counted over all rows of the group"
        raise InvalidInput("COUNT(DISTINCT ...) with FILTER", rule, "Put the condition into WHERE.")


def _persons(_arguments: tuple[Argument, ...]) -> Partial:
    return Persons()


KINDS = (
    _CountDistinct(
        "count_distinct",
        ("COUNT",),
        "count_distinct",
        "The number of persons.",
        (
            Example(
                "persons",
                "COUNT(DISTINCT patient_id)",
                'so.count_distinct("patient_id")',
                "the declared person column only",
            ),
        ),
        _persons,
        arguments=("person",),
        distinct=True,
        of_persons=True,
    ),
)

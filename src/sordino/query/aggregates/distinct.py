"""COUNT(DISTINCT x): one whole number, how many different values there are; of the person, how many persons.

Each person counts with as many different values as rows may count, in a group and in all, chosen by a hash of the
person and the value. So one person moves the numbers no more than by rows (plan/sensitivity.md, Theorem 3). To the
number of persons each adds 1, however many rows the person has: nothing has to be declared for that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from sqlglot import exp

from sordino.query.aggregates.argument import Argument
from sordino.query.aggregates.count import Counted
from sordino.query.aggregates.partial import Bounding, Partial
from sordino.query.aggregates.registry import Example, Kind

__all__ = ["KINDS", "Persons", "Values"]


@dataclass(frozen=True)
class Persons(Counted):
    """The number of persons."""

    bounding: ClassVar[Bounding] = "once"

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
class Values(Counted):
    """The number of different values, which is no sum over persons: a value that two of them have counts once.

    `real` says that they are doubles, which engines spell differently.
    """

    bounding: ClassVar[Bounding] = "choose"
    what: str
    real: bool = False

    @property
    def label(self) -> str:
        """What is counted, in words."""
        return f"number of different values of {self.what}"

    @property
    def serves(self) -> frozenset[str]:
        """The count of distinct values."""
        return frozenset({"count_distinct"})

    def sums(self, *arguments: exp.Expr) -> tuple[exp.Expr, ...]:
        """The values that occur, each once."""
        return (exp.Count(this=exp.Distinct(expressions=[arguments[0]])),)


def _distinct(arguments: tuple[Argument, ...]) -> Partial:
    return Values(arguments[0].what, arguments[0].is_real) if arguments else Persons()


KINDS = (
    Kind(
        "count_distinct",
        ("COUNT",),
        "count_distinct",
        "The number of different values; of the person column, the number of persons.",
        (
            Example(
                "persons",
                "COUNT(DISTINCT patient_id)",
                'so.count_distinct("patient_id")',
                "needs no bounds",
            ),
            Example(
                "different values",
                "COUNT(DISTINCT city)",
                'so.count_distinct("city")',
                "a person counts with at most max_rows of them",
            ),
        ),
        _distinct,
        distinct=True,
        of_persons=True,
    ),
)

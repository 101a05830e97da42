"""COUNT(*) and COUNT(x): one whole number, to which each row that counts adds 1.

Within a group a person's own count is clipped to the number of rows that count there, e of plan/sensitivity.md. One
person therefore moves a group's count by at most e.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from sqlglot import exp

from sordino.query import tree
from sordino.query.aggregates.argument import Argument
from sordino.query.aggregates.partial import ROWS, Bounding, Partial, Reach
from sordino.query.aggregates.registry import Example, Kind
from sordino.query.tree import Aggregate, Expression

__all__ = ["KINDS", "Counted", "Rows"]


class Counted(Partial):
    """One number, the count itself."""

    @property
    def inputs(self) -> int:
        """One count."""
        return 1

    @property
    def reach(self) -> Reach:
        """What counts adds 1; two that both count add the same."""
        return Reach(l1=1, l2_squared=1, linf=1, spread=0)

    def weights(self, function: str, unit: int) -> tuple[Fraction, ...]:
        """The number itself."""
        return (Fraction(1, unit),)

    def is_whole(self, function: str) -> bool:
        """Counts are whole."""
        return True

    def never_negative(self, function: str) -> bool:
        """Counts are not negative."""
        return True


@dataclass(frozen=True)
class Rows(Counted):
    """The number of rows; with an argument, of rows where it is not NULL."""

    bounding: ClassVar[Bounding] = "clip"
    what: str | None = None

    @property
    def label(self) -> str:
        """What is summed, in words."""
        return "number of rows" if self.what is None else f"number of values of {self.what}"

    @property
    def serves(self) -> frozenset[str]:
        """Counts only."""
        return frozenset({"count", *([ROWS] if self.what is None else [])})

    @property
    def always(self) -> bool:
        """COUNT(*) counts every row; an argument may be NULL, even where the declaration says that it is not."""
        return self.what is None

    def sums(self, *arguments: exp.Expr) -> tuple[exp.Expr, ...]:
        """The count itself."""
        (counted,) = arguments or (exp.Star(),)
        return (exp.Count(this=counted),)


@dataclass(frozen=True)
class _Count(Kind):
    """COUNT(1) counts rows."""

    def form(self, arguments: tuple[Expression, ...], parameter: Any = None) -> Aggregate:
        """Without an argument where it is a constant."""
        if (
            len(arguments) == 1
            and isinstance(arguments[0], tree.Literal)
            and arguments[0].value is not None
        ):
            arguments = ()
        return super().form(arguments, parameter)


def _rows(arguments: tuple[Argument, ...]) -> Partial:
    return Rows(*(argument.what for argument in arguments))


KINDS = (
    _Count(
        "count",
        ("COUNT",),
        "count",
        "The number of rows, or of rows where `x` is not missing.",
        (
            Example("rows", "COUNT(*)", "so.count()"),
            Example("values", "COUNT(cost)", 'so.count("cost")', "values that are not missing"),
        ),
        _rows,
        least=0,
    ),
)

"""What is known of an argument of an aggregate while planning."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from sqlglot import exp

from sordino.errors import InvalidInput
from sordino.query.aggregates.grid import Grid
from sordino.query.meaning import nodes
from sordino.query.meaning.expressions import indicator, key_index, quantised
from sordino.query.typed import Typed
from sordino.query.types import Number, Truth

__all__ = ["Argument"]


@dataclass(frozen=True)
class Argument:
    """One argument: what to call it, its type and SQL, and whether all rows have a value and their number is public.

    `replaced` says that persons are replaced and nothing is grouped, so that a row and the one that replaces it meet.
    """

    what: str
    typed: Typed
    known: bool = False
    replaced: bool = False

    def grid(self, function: str, most: int) -> Grid:
        """The grid of its values, with at most this many steps; refuses what is neither a number nor a condition."""
        kind = self._number.type
        if isinstance(kind, Number):
            return Grid.of(
                kind,
                self.what,
                most,
                ' Or have them found for a part of the charge: bounds="private".',
            )
        rule = (
            f"{function.upper()} needs a number or a condition, not {type(kind).__name__.lower()}"
        )
        raise InvalidInput(self.what, rule, "Use COUNT, or group by it.")

    @property
    def limits(self) -> tuple[Fraction, Fraction] | None:
        """The smallest and the largest value of a number, where both are known."""
        kind = self._number.type
        if not isinstance(kind, Number) or kind.lower is None or kind.upper is None:
            return None
        return kind.lower, kind.upper

    @property
    def step(self) -> Fraction | None:
        """Of what a number is a multiple, where that is known."""
        kind = self._number.type
        return kind.step if isinstance(kind, Number) else None

    def steps(self, grid: Grid) -> exp.Expr:
        """SQL of the whole number of steps of each row's value, NULL where it has none."""
        return quantised(self._number, grid.step, grid.lower, grid.upper)

    def cell(self, *, compared: bool) -> exp.Expr:
        """SQL of each row's value; where values are compared, numbers with a step as whole numbers of steps."""
        if not compared:
            return self.typed.sql
        cell = key_index(self.typed)
        if not self.is_real:
            return cell
        # -0.0 equals 0.0 and has another hash: which of them stood for both would hang on the order of rows
        return nodes.let(cell, lambda v: nodes.case([(exp.EQ(this=v.copy(), expression=nodes.real(0.0)), nodes.real(0.0))],
                                                    v.copy()))  # fmt: skip

    @property
    def is_real(self) -> bool:
        """Whether its values are compared as doubles: numbers that are neither whole nor have a step."""
        kind = self.typed.type
        return (
            isinstance(kind, Number)
            and not kind.integral
            and not (kind.bounded and kind.step is not None)
        )

    @property
    def _number(self) -> Typed:
        return indicator(self.typed) if isinstance(self.typed.type, Truth) else self.typed

"""The public grid on which the values of an aggregate's argument lie: whole multiples of a step, from first to last."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from sordino.errors import InvalidInput
from sordino.query.types import Number, default_step

__all__ = ["MOST_CELLS", "Grid"]

MOST_CELLS = 2**40
"""So many steps times any number of rows and weights stays within 128-bit sums."""

_LARGEST = 10**150


@dataclass(frozen=True)
class Grid:
    """The numbers first*step, ..., last*step; a value is rounded to the nearest of
    them (halves upwards) and clamped.
    """

    step: Fraction
    first: int
    last: int

    @classmethod
    def of(cls, number: Number, what: str, most: int, otherwise: str = "") -> Grid:
        """The grid of a bounded number, with at most `most` steps: its own step, or a coarser one if that is too fine.

        A number that has no step gets the largest power of ten of which a million fit between its bounds. `otherwise`
        is what else helps where there are no bounds.
        """
        if number.lower is None or number.upper is None:
            rule = "an aggregate needs to know the smallest and the largest value publicly"
            hint = (
                'Declare min and max of its columns (for example cost = { type = "float", min = 0, max = 5000 }), '
                f"or bound the expression: LEAST(GREATEST(..., 0), 5000).{otherwise}"
            )
            raise InvalidInput(what, rule, hint)
        if max(abs(number.lower), abs(number.upper)) > _LARGEST:
            rule = "an aggregate needs bounds below 1e150, so that squares are finite numbers"
            hint = "Declare smaller bounds, or bound the expression with LEAST and GREATEST."
            raise InvalidInput(what, rule, hint)
        width = number.upper - number.lower
        step = number.step or (default_step(number.lower, number.upper) if width else Fraction(1))
        if step > _LARGEST:
            step = Fraction(1)  # zero is then the only value, and lies on every grid
        coarser = math.ceil(width / step / most)
        if coarser > 1:
            # in whole numbers: the quotient may be beyond all floats
            step *= 1 << (coarser - 1).bit_length()
        return cls(step, _nearest(number.lower / step), _nearest(number.upper / step))

    @property
    def cells(self) -> int:
        """The number of steps from the first to the last point."""
        return self.last - self.first

    def widened(self) -> Grid:
        """The same grid, with at least one step."""
        return self if self.cells else Grid(self.step, self.first, self.last + 1)

    @property
    def whole(self) -> bool:
        """Whether all its numbers are whole."""
        return self.step.denominator == 1

    @property
    def lower(self) -> Fraction:
        """The first point."""
        return self.first * self.step

    @property
    def upper(self) -> Fraction:
        """The last point."""
        return self.last * self.step


def _nearest(x: Fraction) -> int:
    return math.floor(x + Fraction(1, 2))

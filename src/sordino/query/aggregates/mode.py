"""MODE(x): the most frequent value, drawn by the exponential mechanism from the weights of all values that there can
be.

Theorem. A value of weight w is drawn with probability proportional to exp(epsilon/l1 * w). If one person moves at most
l1 of weight, in all groups together, all draws of one column are epsilon-differentially private, of bounded range.
Proof: mode.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sqlglot import exp

from sordino.errors import InvalidInput, TooLarge
from sordino.mechanisms.discrete import uniform
from sordino.mechanisms.exponential import draw
from sordino.mechanisms.observer import drawn
from sordino.privacy.exact import four_digits
from sordino.privacy.wording import counted
from sordino.query.aggregates.argument import Argument
from sordino.query.aggregates.draws import Cells, Draws
from sordino.query.aggregates.estimates import Chosen
from sordino.query.aggregates.registry import Example, Kind
from sordino.query.meaning.finite import MOST_VALUES, Finite, finite, size_of
from sordino.query.tree import Aggregate

__all__ = ["KINDS", "Mode", "ModeDraw", "most_frequent"]


@dataclass(frozen=True)
class ModeDraw:
    """Everything but the weights that `most_frequent` was told, as an audit names it."""

    positions: int
    rate: Fraction

    @property
    def whole_rate(self) -> Fraction:
        """The loss per unit of moved weight."""
        return self.rate


def most_frequent(cells: Cells, positions: int, rate: Fraction) -> int:
    """The place of a heavy value among 0 .. positions-1, drawn exactly; places that are not among the cells weigh
    nothing.

    Privacy: with neighbours that differ by at most w units of weight, in all calls with this rate together, all that
    comes back is rate * w differentially private.
    """
    places, weights = cells
    heaviest = int(weights.max(initial=0))
    rest = positions - len(places)
    sizes = [1] * len(places) + ([rest] if rest else [])
    distances = [heaviest - int(w) for w in weights] + ([heaviest] if rest else [])

    def chosen(bits: Any) -> int:
        at = draw(sizes, distances, rate, bits)
        if at < len(places):
            return int(places[at])
        free = int(uniform(rest, 1, bits)[0])  # the free-th place that has no weight
        for place in places.tolist():
            free += place <= free
        return free

    return drawn(ModeDraw(positions, rate), "most_frequent", cells, chosen)


@dataclass(frozen=True)
class Mode(Draws):
    """The most frequent of public values."""

    noun: ClassVar[str] = "mode"
    domain: Finite

    @property
    def positions(self) -> int:
        """All values."""
        return len(self.domain.values)

    @property
    def label(self) -> str:
        """The column and its values."""
        return f"of {self.what}, one of {counted(self.positions, 'value')}"

    @property
    def is_number(self) -> bool:
        """A value is no estimate."""
        return False

    def value(self, argument: Argument) -> exp.Expr:
        """What stands for the value."""
        return self.domain.sql

    def places(self, cells: Sequence[Any]) -> npt.NDArray[np.int64]:
        """Where the engine's cells are among the values."""
        place = {cell: i for i, cell in enumerate(self.domain.cells)}
        return np.array([place.get(cell, -1) for cell in cells], np.int64)

    def draw(
        self, cells: Cells, epsilon: Fraction, l1: int, confidence: Fraction
    ) -> tuple[int, ...]:
        """One place."""
        return (most_frequent(cells, self.positions, epsilon / l1),)

    def exactly(self, cells: Cells) -> tuple[int, ...]:
        """The first of the heaviest."""
        places, weights = cells
        return (int(places[int(np.argmax(weights))]) if len(places) else 0,)

    def estimated(self, value: Aggregate, drawn: list[tuple[Any, ...]]) -> Chosen:
        """The values at the places."""
        return Chosen(tuple(self.domain.values[place] for (place,) in drawn))

    def errors(self, epsilon: Fraction, l1: int, unit: int, confidence: Fraction) -> list[str]:
        """By how many rows what is drawn may be behind the most frequent one: Theorem 2 of mode.md."""
        behind = math.log(self.positions / float(1 - confidence)) * l1 / float(epsilon) / unit
        return [
            f"exponential mechanism: at most {four_digits(behind)} rows less frequent than the most frequent value"
        ]


def _drawn(arguments: tuple[Argument, ...], _: tuple[Fraction, ...]) -> Draws:
    (argument,) = arguments
    size = size_of(argument.typed)
    if size is None:
        rule = "the most frequent one is drawn from values that are public"
        hint = (
            'Declare them (type = "category", values = [...], or min and max of an int), or group by it with COUNT(*) AS n, '
            "ORDER BY n DESC LIMIT 1."
        )
        raise InvalidInput(f"MODE of {argument.what}", rule, hint)
    if size > MOST_VALUES:
        rule = f"it is drawn from at most {MOST_VALUES:,} values; these are {size:,}"
        raise TooLarge(
            f"MODE of {argument.what}", rule, "Use buckets, for example MODE(BUCKET(x, 10))."
        )
    return Mode(argument.what, finite(argument.typed))


KINDS = (
    Kind(
        "mode",
        ("MODE",),
        "mode",
        "The most frequent of the values that are public.",
        (
            Example(
                "most frequent value",
                "MODE(ward)",
                'so.mode("ward")',
                "of values that are public; it has no interval",
            ),
        ),
        draws=_drawn,
    ),
)

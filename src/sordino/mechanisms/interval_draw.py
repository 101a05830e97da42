"""An interval that holds most of the weight and is not wider than it needs to be, drawn by the exponential mechanism.

Theorem. A candidate is drawn with probability proportional to exp(-rate * (weight outside + penalty)), penalties being
public. If neighbours are apart by one person's weights, of w in total, one draw is (rate * w)-differentially private,
and of bounded range. Proof: interval_draw.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from sordino.errors import InvalidInput
from sordino.mechanisms.bits import Bits
from sordino.mechanisms.exponential import draw
from sordino.mechanisms.integers import INT64
from sordino.mechanisms.observer import drawn
from sordino.privacy.exact import readable, show

__all__ = ["FINENESS", "IntervalDraw", "draw_interval", "outside"]

FINENESS = 2**20
"""Penalties are whole multiples of 1/FINENESS of a unit of weight."""

Whole = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class IntervalDraw:
    """Everything but the weights that `draw_interval` was told: candidates low .. high with penalties, and the rate.

    Penalties are in units of 1/FINENESS.
    """

    lows: Whole
    highs: Whole
    penalties: npt.NDArray[np.object_]
    rate: Fraction

    def __post_init__(self) -> None:
        shapes = {self.lows.shape, self.highs.shape, self.penalties.shape}
        if (
            len(shapes) > 1
            or self.lows.ndim != 1
            or not self.lows.size
            or (self.lows > self.highs).any()
        ):
            rule = "each candidate has one low end, one high end not below it, and one penalty"
            raise InvalidInput(
                f"{self.lows.size} lows, {self.highs.size} highs",
                rule,
                "Pass flat arrays of one length.",
            )
        if self.rate <= 0:
            raise InvalidInput(
                f"rate={show(self.rate)}",
                "a rate must be greater than zero",
                "Pass epsilon / weight.",
            )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, IntervalDraw):
            return NotImplemented
        pairs = (
            (self.lows, other.lows),
            (self.highs, other.highs),
            (self.penalties, other.penalties),
        )
        return self.rate == other.rate and all(
            np.array_equal(one, another) for one, another in pairs
        )

    def __hash__(self) -> int:
        return hash((self.rate, len(self.lows)))

    def __repr__(self) -> str:
        return f"IntervalDraw({len(self.lows)} candidates, rate={readable(self.rate)})"

    @property
    def whole_rate(self) -> Fraction:
        """The loss per unit of moved weight."""
        return self.rate


def draw_interval(
    told: IntervalDraw, places: Whole, weights: Whole, bits: Bits | None = None
) -> int:
    """Which candidate is drawn, from the weights (0 or more) at sorted, different places.

    Privacy: (whole_rate * w)-differentially private where neighbours differ by at most w units of weight in total.
    """

    def chosen(source: Bits) -> int:
        lost = outside(told, places, weights)
        distances = FINENESS * lost.astype(object) + (told.penalties - told.penalties.min())
        return draw(
            np.ones(len(lost), np.int64), _short(distances), told.rate / FINENESS, bits or source
        )

    return drawn(told, "draw_interval", (places, weights), chosen)


def outside(told: IntervalDraw, places: Whole, weights: Whole) -> Whole:
    """The weight that lies outside of each candidate."""
    below = np.concatenate([np.zeros(1, np.int64), np.cumsum(weights, dtype=np.int64)])
    inside = (
        below[np.searchsorted(places, told.highs, "right")]
        - below[np.searchsorted(places, told.lows, "left")]
    )
    return np.asarray(below[-1] - inside, np.int64)


def _short(numbers: npt.NDArray[np.object_]) -> npt.NDArray[np.object_] | Whole:
    """As 64-bit integers where they fit, which is faster."""
    return numbers.astype(np.int64) if int(numbers.max()) < INT64 else numbers

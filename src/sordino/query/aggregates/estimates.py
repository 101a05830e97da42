"""Noisy numbers with the intervals that cover the exact ones, one per group; and what may be done to them afterwards.

An interval may grow and still cover. So each step below keeps or enlarges its set of possible values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sordino.query.tree import Value

__all__ = ["Chosen", "Estimated", "Estimates", "nonnegative", "whole", "within"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Estimates:
    """One number per group and the ends of its interval, low <= value <= high; NaN stands for NULL."""

    value: Floats
    low: Floats
    high: Floats

    def __post_init__(self) -> None:
        value, low, high = np.broadcast_arrays(
            *(np.atleast_1d(np.asarray(x, np.float64)) for x in self._ends())
        )
        for name, array in (
            ("value", value),
            ("low", np.fmin(low, value)),
            ("high", np.fmax(high, value)),
        ):
            frozen = array + 0.0  # a copy, without negative zeros
            frozen.setflags(write=False)
            object.__setattr__(self, name, frozen)

    def _ends(self) -> tuple[Floats, Floats, Floats]:
        return self.value, self.low, self.high

    def __len__(self) -> int:
        return len(self.value)

    @property
    def half_width(self) -> Floats:
        """The larger of the distances from the value to the ends."""
        return np.asarray(np.fmax(self.high - self.value, self.value - self.low), np.float64)

    def take(self, index: npt.NDArray[np.intp]) -> Estimates:
        """The groups at these places, in this order."""
        return Estimates(self.value[index], self.low[index], self.high[index])

    def mapped(self, function: Callable[[Floats], Floats]) -> Estimates:
        """A function that never falls, applied to the value and both ends."""
        return Estimates(*(function(x) for x in self._ends()))


@dataclass(frozen=True)
class Chosen:
    """One value for each group, which is no number with an interval."""

    values: tuple[Value, ...]


@dataclass(frozen=True)
class Estimated:
    """Estimates, and what is publicly known of the numbers that they stand for."""

    estimates: Estimates
    whole: bool = False
    never_negative: bool = False


def within(
    estimates: Estimates, lower: float | None = None, upper: float | None = None
) -> Estimates:
    """Estimates of numbers known to lie in [lower, upper], moved into it.

    A value outside is moved to the nearest end, and its interval with it before it is cut: no interval shrinks to a
    point only because the noise was large, and each still holds all that it held within the bounds.
    """
    bottom, top = -np.inf if lower is None else lower, np.inf if upper is None else upper
    value = np.clip(estimates.value, bottom, top)
    # Where the value is not moved, inf - inf must not become NaN.
    with np.errstate(invalid="ignore", over="ignore"):
        moved = np.where(value == estimates.value, 0.0, value - estimates.value)
    low, high = estimates.low + np.minimum(moved, 0.0), estimates.high + np.maximum(moved, 0.0)
    return Estimates(value, np.clip(low, bottom, top), np.clip(high, bottom, top))


def nonnegative(estimates: Estimates) -> Estimates:
    """Estimates of numbers that cannot be negative.

    Example:
        >>> nonnegative(Estimates(np.array([-5.0]), np.array([-8.0]), np.array([-2.0]))).high
        array([3.])
    """
    return within(estimates, lower=0.0)


def whole(estimates: Estimates) -> Estimates:
    """The nearest whole numbers, with intervals that are rounded outward."""
    return Estimates(np.rint(estimates.value), np.floor(estimates.low), np.ceil(estimates.high))

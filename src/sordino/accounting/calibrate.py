"""From a budget back to a plan: one monotone search for the smallest scale or the largest number of uses that fits.

Privacy: what is returned has been checked as it stands: the plan it gives is certainly within (epsilon, delta),
because a plan's epsilon is rounded up. How near it is to the true frontier is a matter of accuracy, not of privacy.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from sordino.accounting.total import Total
from sordino.errors import InvalidInput
from sordino.privacy.exact import Number, closed_unit, float_lower, positive, readable, show
from sordino.privacy.loss import Loss

__all__ = ["largest_count", "smallest_scale"]

_TOLERANCE = Fraction(1, 10**4)
_DOUBLINGS = 200
_FARTHEST = Fraction(2**10)
"""The search for a first scale that fits, or does not, goes in steps of at most this."""
_ROUGH = 0.03
"""The accuracy of epsilon at a first look, which mostly tells."""


def smallest_scale(
    plan: Callable[[Fraction], Loss], *, epsilon: Number, delta: Number, start: Number = 1
) -> Fraction:
    """The smallest scale, within a ten-thousandth, whose plan is (epsilon, delta)-differentially private.

    `plan` turns a scale into the loss of everything that will be released; a larger scale must cost less.

    Example:
        >>> from sordino import Gaussian, Laplace
        >>> scale = smallest_scale(lambda s: 10 * Laplace(s).loss(1) + Gaussian(s).loss(1), epsilon=1, delta=1e-6)
        >>> plan = 10 * Laplace(scale).loss(1) + Gaussian(scale).loss(1)
        >>> 0.99 < plan.epsilon(1e-6) <= 1
        True
    """
    costs = _Costs(plan, epsilon, delta)
    first = most = positive("start", start).upper
    if costs.fit(most):
        jump = Fraction(2)
        while costs.fit(low := most / jump):
            if low * 2**_DOUBLINGS < first:
                return low
            most, jump = low, min(jump**2, _FARTHEST)
    else:
        low = first
        while not costs.fit(most := low * costs.jump_from(low)):
            if most > first * 2**_DOUBLINGS:
                raise _nothing_fits(epsilon, delta)
            low = most
    turn = 0
    while most > low * (1 + _TOLERANCE):
        turn += 1
        middle = costs.between(low, most, halve=turn % 4 == 0)
        low, most = (low, middle) if costs.fit(middle) else (middle, most)
    return most


class _Costs:
    """The epsilons of the scales that were tried, and where between two of them the budget's must be."""

    def __init__(self, plan: Callable[[Fraction], Loss], epsilon: Number, delta: Number) -> None:
        self._plan, self._delta, self._budget = plan, delta, _budget(epsilon, delta)
        self._tried: dict[Fraction, float] = {}

    def fit(self, scale: Fraction) -> bool:
        """Whether the plan of this scale is within the budget, certainly: by a rough look where that can tell."""
        loss = self._plan(scale)
        if isinstance(loss, Total):
            rough = loss.epsilon_bounds(self._delta, _ROUGH)
            self._tried[scale] = rough.upper
            if rough.upper <= self._budget or rough.lower > self._budget:
                return rough.upper <= self._budget
        found = self._tried[scale] = loss.epsilon(self._delta)
        return found <= self._budget

    def jump_from(self, scale: Fraction) -> Fraction:
        """By how much to enlarge a scale that does not fit, as if epsilon fell with the scale."""
        over = self._tried[scale] / self._budget
        return Fraction(max(2, min(_FARTHEST, over))) if math.isfinite(over) else Fraction(2)

    def between(self, low: Fraction, high: Fraction, *, halve: bool) -> Fraction:
        """A scale between one that does not fit and one that does: on the line, in logarithms, through the two tried
        ones whose epsilons are nearest to the budget's, a little to the side where the bracket is wider.
        """
        places = sorted(
            (abs(math.log(found / self._budget)), math.log(found / self._budget), math.log(scale))
            for scale, found in self._tried.items()
            if 0 < found < math.inf
        )[:2]
        a, b = math.log(low), math.log(high)
        guess = (a + b) / 2
        if not halve and len(places) == 2 and places[0][1] != places[1][1]:
            (_, f, x), (_, g, y) = places
            root = x - f * (y - x) / (g - f)
            aside = 0.4 * float(_TOLERANCE)
            root += aside if b - root > root - a else -aside
            guess = root if a < root < b else guess
        middle = _short(Fraction(math.exp(guess)))
        return middle if low < middle < high else _short((low + high) / 2)


def largest_count(loss: Loss, *, epsilon: Number, delta: Number, beside: Loss | None = None) -> int:
    """How often a release can be made within (epsilon, delta), `beside` what else the plan holds; 0 if not once.

    Example:
        >>> from sordino import Laplace
        >>> largest_count(Laplace(10).loss(1), epsilon=1, delta=0)
        10
    """
    budget = _budget(epsilon, delta)

    def good(count: int) -> bool:
        uses = count * loss
        return (uses if beside is None else uses + beside).epsilon(delta) <= budget

    if not good(1):
        return 0
    low, high = 1, 2
    while good(high):
        low, high = high, 2 * high
        if high > 2**60:
            raise InvalidInput(
                repr(loss), "more than 2^60 uses fit", "The budget is not a limit for this loss."
            )
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if good(middle) else (low, middle)
    return low


def _budget(epsilon: Number, delta: Number) -> float:
    """The epsilon that a plan may cost at most, once both are known to be sound."""
    closed_unit("delta", delta)
    return float_lower(positive("epsilon", epsilon).lower)


def _short(value: Fraction) -> Fraction:
    """Nearly the same number with few digits; what is returned is checked, so either direction will do."""
    return Fraction(f"{float(value):.9g}") or value


def _nothing_fits(epsilon: Number, delta: Number) -> InvalidInput:
    value = f"epsilon={show(epsilon)}, delta={show(delta)}"
    hint = "Allow a delta above 0, or leave out releases without a pure bound."
    return InvalidInput(
        value, f"no scale up to {readable(Fraction(2) ** _DOUBLINGS)} makes the plan fit", hint
    )

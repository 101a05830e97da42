"""From a budget back to a plan: one monotone search for the smallest scale or the largest number of uses that fits.

Privacy: what is returned has been checked as it stands: the plan it gives is certainly within (epsilon, delta),
because a plan's epsilon is rounded up. How near it is to the true frontier is a matter of accuracy, not of privacy.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from sordino.errors import InvalidInput
from sordino.privacy.exact import Number, bounds, closed_unit, float_lower, positive, readable, show
from sordino.privacy.loss import Loss

__all__ = ["largest_count", "smallest_scale"]

_TOLERANCE = Fraction(1, 10**4)
_DOUBLINGS = 200


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
    fits = _within(epsilon, delta)

    def good(scale: Fraction) -> bool:
        return fits(plan(scale))

    high = bounds("start", start).upper
    positive("start", start)
    for _ in range(_DOUBLINGS):
        if good(high):
            break
        high *= 2
    else:
        raise _nothing_fits(epsilon, delta)
    low = high / 2
    for _ in range(_DOUBLINGS):
        if not good(low):
            break
        low, high = low / 2, low
    else:
        return high
    while high > low * (1 + _TOLERANCE):
        middle = _short((low + high) / 2)
        low, high = (low, middle) if good(middle) else (middle, high)
    return high


def largest_count(loss: Loss, *, epsilon: Number, delta: Number, beside: Loss | None = None) -> int:
    """How often a release can be made within (epsilon, delta), `beside` what else the plan holds; 0 if not once.

    Example:
        >>> from sordino import Laplace
        >>> largest_count(Laplace(10).loss(1), epsilon=1, delta=0)
        10
    """
    fits = _within(epsilon, delta)

    def good(count: int) -> bool:
        uses = count * loss
        return fits(uses if beside is None else uses + beside)

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


def _within(epsilon: Number, delta: Number) -> Callable[[Loss], bool]:
    most = float_lower(positive("epsilon", epsilon).lower)
    closed_unit("delta", delta)
    return lambda loss: loss.epsilon(delta) <= most


def _short(value: Fraction) -> Fraction:
    """Nearly the same number with few digits; what is returned is checked, so either direction will do."""
    return value.limit_denominator(10**12) or value


def _nothing_fits(epsilon: Number, delta: Number) -> InvalidInput:
    value = f"epsilon={show(epsilon)}, delta={show(delta)}"
    hint = "Allow a delta above 0, or leave out releases without a pure bound."
    return InvalidInput(
        value, f"no scale up to {readable(Fraction(2) ** _DOUBLINGS)} makes the plan fit", hint
    )

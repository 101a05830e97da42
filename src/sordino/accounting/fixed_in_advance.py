"""What releases of bounded range cost if all of them are fixed before any answer is seen: less than if they adapt.

A plan's sum (`loss + loss`) allows every release to be chosen by earlier answers, as long as the losses are fixed.
These two figures do not: not even the questions may depend on an answer. Theorems and proofs in fixed_in_advance.md.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from flint import arb

from sordino.accounting.pure import unit_delta, whole
from sordino.errors import InvalidInput
from sordino.privacy.ball import at_most, ball, certified, upper
from sordino.privacy.exact import Number, bounds, float_upper, least_reading, show
from sordino.privacy.loss import BoundedRangeLoss

__all__ = ["delta_if_fixed_in_advance", "epsilon_if_fixed_in_advance"]

_MOST = 300
_BISECTIONS = 60


def delta_if_fixed_in_advance(loss: BoundedRangeLoss, count: int, epsilon: Number) -> float:
    """The smallest delta of `count` releases of bounded range that are all fixed before the first answer, rounded up.

    Privacy: holds only if no release, nor which question it answers, depends on an answer. Else add losses.

    Source: Dong, Durfee and Rogers 2020 (arXiv 1909.13830); proven in fixed_in_advance.md.

    Example:
        >>> loss = BoundedRangeLoss(Fraction(3, 10))
        >>> f"{delta_if_fixed_in_advance(loss, 20, 3):.3g} {(20 * loss).delta(3):.2g}"
        '1.51e-06 1.9e-05'
    """
    uses, exact = _checked(loss, count), bounds("epsilon", epsilon).lower
    return min(1.0, upper(certified(lambda: _delta(loss.width, uses, exact), 64)))


def epsilon_if_fixed_in_advance(loss: BoundedRangeLoss, count: int, delta: Number) -> float:
    """The epsilon of `count` releases of bounded range that are all fixed before the first answer, rounded up.

    Privacy: as `delta_if_fixed_in_advance`.
    """
    uses, wanted = _checked(loss, count), unit_delta(delta)
    top = float_upper(uses * loss.width)
    if wanted == 0:
        return top
    low, high = 0.0, top
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (
            (low, middle)
            if _float_delta(float(loss.width), uses, middle) <= wanted
            else (middle, high)
        )

    def holds(epsilon: float) -> bool:
        return at_most(lambda: _delta(loss.width, uses, least_reading(epsilon)), wanted)

    step = 2.0**-48
    while high < top and not holds(high):
        high, step = high * (1 + step) + 2.0**-1000, 2 * step
    return min(high, top)


def _checked(loss: BoundedRangeLoss, count: int) -> int:
    if not isinstance(loss, BoundedRangeLoss):
        rule = "the theorem is about equal releases of bounded range"
        raise InvalidInput(
            f"loss={show(loss)}",
            rule,
            "Pass a BoundedRangeLoss, or add other losses: count * loss.",
        )
    uses = whole(count)
    if uses > _MOST:
        rule = f"it is computed for at most {_MOST} releases"
        raise InvalidInput(
            f"count={uses}", rule, "Use (count * loss).epsilon(delta), which is close for many."
        )
    return uses


def _places(width: Fraction, count: int, epsilon: Fraction) -> list[Fraction]:
    """The tops t of the interval of losses among which the worst is, one for each number of outcomes that count.

    At the ends, 0 and the width, both laws are the same, which is where `_delta` starts from.
    """
    tops = ((epsilon + number * width) / (count + 1) for number in range(1, count + 2))
    return [t for t in tops if 0 < t < width]


def _delta(width: Fraction, count: int, epsilon: Fraction) -> arb:
    worst = arb(0).max(-ball(epsilon).expm1())
    for t in _places(width, count, epsilon):
        high = ((-ball(t)).exp() - (-ball(width)).exp()) / -(
            -ball(width)
        ).expm1()  # Q of the outcome with loss t
        total, factor = arb(0), ball(epsilon).exp()
        for i in range(count + 1):
            loss = count * t - i * width
            if loss <= epsilon:
                break
            total += (
                math.comb(count, i)
                * high ** (count - i)
                * (1 - high) ** i
                * (ball(loss).exp() - factor)
            )
        worst = worst.max(total)
    return worst


def _float_delta(width: float, count: int, epsilon: float) -> float:
    """The same in floats, to find where to look."""
    from scipy.special import gammaln

    tops = np.clip(
        (epsilon + (np.arange(count + 1) + 1) * width) / (count + 1), 0, width * (1 - 1e-12)
    )[:, None]
    i = np.arange(count + 1)[None, :]
    high = (np.exp(-tops) - math.exp(-width)) / -math.expm1(-width)
    logs = (
        gammaln(count + 1)
        - gammaln(i + 1)
        - gammaln(count - i + 1)
        + (count - i) * np.log(high)
        + i * np.log1p(-high)
    )
    loss = count * tops - i * width
    gains = np.where(
        loss > epsilon, np.exp(logs + loss) * -np.expm1(np.minimum(epsilon - loss, 0)), 0.0
    )
    return float(gains.sum(axis=1).max())

"""The charge of a release, derived from what is known of it: its loss, or only that it is (epsilon, delta)-private.

Apart from `Charge`, which is plain fractions: adding up a ledger needs neither losses nor ball arithmetic.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

from flint import arb

from sordino.accounting.charge import NOTHING, Amount, Charge
from sordino.accounting.total import Total
from sordino.errors import InvalidInput
from sordino.privacy.ball import ball, certified, exact_upper, normal_tail_inverse, upper
from sordino.privacy.exact import Number, bounds, show
from sordino.privacy.loss import (
    BoundedRangeLoss,
    EpsilonDeltaLoss,
    FiniteLoss,
    GaussianLoss,
    LaplaceLoss,
    Loss,
)

__all__ = ["of_guarantee", "of_loss"]


def of_loss(loss: Loss) -> Charge:
    """The charge of one release with this loss. Privacy: filters.md, Theorem 5."""
    match loss:
        case LaplaceLoss():
            charge = Charge(loss.shift, _squared(loss.mu()), _rational(loss.rho()))
        case GaussianLoss():
            charge = Charge(None, loss.shift**2, loss.shift**2 / 2)
        case BoundedRangeLoss():
            charge = Charge(loss.width, _squared(loss.mu()), loss.rho_exact)
        case FiniteLoss() if loss.infinite():
            charge = replace(of_loss(_without_certainty(loss)), delta=loss.infinite())
        case FiniteLoss():
            ratio = max(max(a / b, b / a) for a, b in zip(loss.p, loss.q, strict=True) if a)
            # finer than a float, so that a response calibrated to epsilon costs no more than epsilon
            pure = exact_upper(certified(lambda: ball(ratio).log()))
            charge = Charge(pure, _squared(loss.mu()), _rational(loss.rho()))
        case EpsilonDeltaLoss():
            charge = of_guarantee(loss.most, loss.failure)
        case Total():
            charge = sum((of_loss(part) * times for part, times in loss.parts), NOTHING)
        case Loss():
            charge = Charge(_rational(loss.maximum()), _squared(loss.mu()), _rational(loss.rho()))
        case _:
            raise InvalidInput(
                f"loss={show(loss)}",
                "only a Loss has a charge",
                "Pass mechanism.loss(sensitivity).",
            )
    if charge.meters == (None, None, None):
        hint = "Choose a delta and use Charge.approximate(loss.epsilon(delta), delta)."
        raise InvalidInput(show(loss), "this loss is unbounded in every currency", hint)
    return charge


def of_guarantee(epsilon: Number, delta: Number) -> Charge:
    """The charge of a release of which only (epsilon, delta)-privacy is known. Privacy: filters.md, Theorem 4."""
    e, d = bounds("epsilon", epsilon).upper, bounds("delta", delta).upper
    if e < 0 or not 0 <= d < 1:
        value, rule = (
            f"epsilon={show(epsilon)}, delta={show(delta)}",
            "epsilon must be at least 0, and delta in [0, 1)",
        )
        raise InvalidInput(value, rule, "Pass what the release is known to satisfy.")

    def mu() -> arb:
        if e < 1:  # without cancellation near zero
            return 2 * arb(2).sqrt() * (ball(e) / 2).tanh().erfinv()
        return 2 * normal_tail_inverse(1 / (1 + ball(e).exp()))

    rho = upper(certified(lambda: ball(e) * (ball(e) / 2).tanh()))
    return Charge(e, _squared(upper(certified(mu))), _rational(rho), d)


def _rational(view: float) -> Amount:
    return Fraction(view) if math.isfinite(view) else None


def _squared(view: float) -> Amount:
    return Fraction(view) ** 2 if math.isfinite(view) else None


def _without_certainty(loss: FiniteLoss) -> FiniteLoss:
    """The pair given that the outcome is one that both sides reach."""
    common = [(a, b) for a, b in zip(loss.p, loss.q, strict=True) if a and b]
    if not common:
        raise InvalidInput(
            show(loss),
            "the two sides never give the same outcome",
            "Such a release has no privacy.",
        )
    p, q = (_scaled(side) for side in zip(*common, strict=True))
    return FiniteLoss(p, q)


def _scaled(side: tuple[Fraction, ...]) -> tuple[Fraction, ...]:
    whole = sum(side)
    return tuple(x / whole for x in side)

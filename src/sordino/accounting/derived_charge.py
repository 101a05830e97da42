"""The charge of a release, derived from what is known of it: its loss, or only that it is (epsilon, delta)-private.

Apart from `Charge`, which is plain fractions: adding up a ledger needs neither losses nor ball arithmetic.
"""

from __future__ import annotations

from sordino.accounting.charge import NOTHING, Charge
from sordino.accounting.total import Total
from sordino.errors import InvalidInput
from sordino.privacy.exact import Number, bounds, show
from sordino.privacy.loss import EpsilonDeltaLoss, Loss

__all__ = ["of_guarantee", "of_loss"]


def of_loss(loss: Loss) -> Charge:
    """The charge of one release with this loss. Privacy: filters.md, Theorem 5."""
    if not isinstance(loss, Loss):
        hint = "Pass mechanism.loss(sensitivity)."
        raise InvalidInput(f"loss={show(loss)}", "only a Loss has a charge", hint)
    if isinstance(loss, Total):
        return sum((of_loss(part) * times for part, times in loss.parts), NOTHING)
    sure = loss.without_certainty()
    amounts = sure.exact_maximum(), sure.exact_mu_squared(), sure.exact_rho()
    charge = Charge(*amounts, delta=loss.infinite())
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
    return of_loss(EpsilonDeltaLoss(e, d))

"""From an epsilon to noise and charge: every channel gets an equal part, and the family with the smaller error is chosen.

One family serves all sums of a query, because a person in many groups is scaled in that family's norm. Laplace noise of
scale l1/epsilon_j is pure; J Gaussian noises together are (epsilon, delta)-private by mu = largest_mu(epsilon, delta), each
with mu/sqrt(J). Quantiles and key selection have their own part of epsilon. By composition the answer alone is
(epsilon, delta + key_delta)-private.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Literal

from sordino.accounting.charge import NOTHING, Charge
from sordino.mechanisms.combination import EXACT, Noise
from sordino.mechanisms.exponential import bounded_range
from sordino.mechanisms.gaussian import Gaussian
from sordino.mechanisms.key_selection import KeySelection
from sordino.mechanisms.laplace import Laplace
from sordino.plan.sensitivity import Sensitivity, square_root_upper
from sordino.privacy.loss import GaussianLoss, LaplaceLoss, Loss, largest_mu

__all__ = ["Family", "Parts", "Price", "price"]

Family = Literal["laplace", "gaussian"]
_FINEST = 10**18


@dataclass(frozen=True)
class Parts:
    """What has to be paid for: sums, quantile columns and key selection, with how far one person moves each.

    `quantiles` holds the L1 weight a person moves in each quantile column; `keys` the L1 and Linf weight of key selection.
    """

    sums: tuple[Sensitivity, ...]
    quantiles: tuple[int, ...]
    keys: tuple[int, int] | None

    @property
    def count(self) -> int:
        """How many parts share the epsilon: sums that are public cost nothing."""
        return len(self.noisy) + sum(1 for l1 in self.quantiles if l1) + (self.keys is not None)

    @property
    def noisy(self) -> tuple[Sensitivity, ...]:
        """The sums that need noise."""
        return tuple(s for s in self.sums if not s.nothing)


@dataclass(frozen=True)
class Price:
    """Noise for each part, and what all of it costs; `epsilon` and `delta` are what the answer alone satisfies."""

    family: Family
    epsilon: Fraction
    delta: Fraction
    mechanisms: tuple[Laplace | Gaussian | None, ...]
    quantile_epsilons: tuple[Fraction, ...]
    selection: KeySelection | None
    losses: tuple[Loss, ...]
    charge: Charge

    def noise(self, channel: int) -> Noise:
        """The noise on each whole number of a channel."""
        mechanism = self.mechanisms[channel]
        return EXACT if mechanism is None else Noise(self.family, mechanism.scale)

    @property
    def spread(self) -> float:
        """The sum of the logarithms of the standard deviations, by which families are compared."""
        factor = math.sqrt(2) if self.family == "laplace" else 1.0
        return sum(math.log(factor * float(m.scale)) for m in self.mechanisms if m is not None)


@lru_cache(maxsize=1024)
def price(parts: Parts, family: Family, epsilon: Fraction, delta: Fraction, key_delta: Fraction) -> Price:
    """The noise that makes the answer (epsilon, delta + key_delta)-private, delta being used by Gaussian noise only.

    Privacy: Laplace sums are pure with epsilon/J each (laplace.md); Gaussian ones have sum of mu_j^2 <= mu^2 (gaussian.md;
    composition of Gaussian privacy adds mu^2); quantiles are pure (quantiles.md); the selection is (epsilon/J, key_delta)
    (key_selection.md); basic composition adds them. `Charge` restates each for the meters, rounded up.
    """
    count = parts.count
    part = epsilon / max(count, 1)
    noisy = parts.noisy
    mechanisms: list[Laplace | Gaussian | None] = []
    losses: list[Loss] = []
    charge = NOTHING
    mu = largest_mu(part * len(noisy), delta) if family == "gaussian" and noisy else Fraction(1)
    for sensitivity in parts.sums:
        if sensitivity.nothing:
            mechanisms.append(None)
            continue
        loss: Loss
        if family == "laplace":
            mechanisms.append(Laplace((sensitivity.l1 or 0) / part))
            loss = LaplaceLoss(part)
        else:
            share = _rounded_down(mu / square_root_upper(len(noisy)))
            mechanisms.append(Gaussian(sensitivity.l2 / share))
            loss = GaussianLoss(share)
        losses.append(loss)
        charge += Charge.of(loss)
    quantile_epsilons = tuple(part if l1 else Fraction(0) for l1 in parts.quantiles)
    for one in quantile_epsilons:
        if one:
            mu_squared, rho = bounded_range(one)
            charge += Charge(one, mu_squared, rho)
    selection = None
    if parts.keys is not None:
        l1, linf = parts.keys
        selection = KeySelection.calibrated(epsilon=part, delta=key_delta, l1=l1, linf=linf)
        charge += Charge.approximate(selection.epsilon, selection.delta)
    used = (delta if family == "gaussian" and noisy else Fraction(0)) + (charge.delta if selection else Fraction(0))
    total = epsilon if count else Fraction(0)
    tidy = _tidy(charge)
    return Price(family, total, used, tuple(mechanisms), quantile_epsilons, selection, tuple(losses), tidy)


def _rounded_down(x: Fraction) -> Fraction:
    """A short fraction not above x and within a millionth of a millionth of it, so that ledgers stay short."""
    scale = 10 ** max(12, 12 + math.ceil(-math.log10(float(x))))
    return Fraction(math.floor(x * scale), scale)


def _tidy(charge: Charge) -> Charge:
    """Amounts that are not typed by people, rounded up to whole multiples of 10^-18."""

    def up(x: Fraction | None) -> Fraction | None:
        return None if x is None else Fraction(math.ceil(x * _FINEST), _FINEST)

    return Charge(charge.pure, up(charge.mu_squared), up(charge.rho), charge.delta)

"""From an epsilon to noise and charge: every release gets an equal part of it. Which family is chosen says
`pricing.py`.

One family serves all sums of a query, because a person in many groups is scaled in that family's norm. Laplace noise
of scale l1/epsilon_j is pure; J Gaussian noises together are (epsilon, delta)-private by mu = largest_mu(epsilon,
delta), each with mu/sqrt(J). Draws and key selection have their own part of epsilon. By composition the answer alone
is (epsilon, delta + key_delta)-private.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache

from sordino.accounting.charge import NOTHING, Charge
from sordino.plan.releases import Beyond, Family, Keys, Release, Share, Sums
from sordino.plan.sensitivity import square_root_upper
from sordino.privacy.loss import largest_mu

__all__ = ["BEYOND", "Price", "price"]

BEYOND = Fraction(1, 10)
"""The part of epsilon with which it is measured what lies beyond the bounds."""
_FINEST = 10**18


@dataclass(frozen=True)
class Price:
    """The releases with their shares, and what all of it costs; the answer alone satisfies `epsilon` and `delta`."""

    family: Family
    epsilon: Fraction
    noise_delta: Fraction
    releases: tuple[Release, ...]

    @cached_property
    def charge(self) -> Charge:
        """What all releases take from the meters."""
        return _tidy(sum((release.charge for release in self.releases), NOTHING))

    @property
    def sums(self) -> tuple[Sums, ...]:
        """The releases of noisy sums."""
        return tuple(release for release in self.releases if isinstance(release, Sums))

    @property
    def delta(self) -> Fraction:
        """That of Gaussian noise, and that of selecting keys."""
        selected = any(isinstance(release, Keys) for release in self.releases)
        return self.noise_delta + (self.charge.delta if selected else Fraction(0))


def price(
    asked: Sequence[Release],
    family: Family,
    epsilon: Fraction,
    delta: Fraction,
    key_delta: Fraction,
) -> Price:
    """The noise that makes the answer (epsilon, delta + key_delta)-private, delta being used by Gaussian noise only.

    Privacy: Laplace sums are pure with epsilon/J each (laplace.md); Gaussian ones have sum of mu_j^2 <= mu^2
    (gaussian.md; composition of Gaussian privacy adds mu^2); draws are pure (quantiles.md); the selection is
    (epsilon/J, key_delta) (key_selection.md); what lies beyond the bounds is pure (beyond.md); basic composition adds
    them. `Charge` restates each for the meters, rounded up.
    """
    beyond = (
        epsilon * BEYOND if any(isinstance(release, Beyond) for release in asked) else Fraction(0)
    )
    count = sum(1 for release in asked if not release.public and not isinstance(release, Beyond))
    noisy = sum(1 for release in asked if isinstance(release, Sums) and not release.public)
    gaussian = family == "gaussian" and noisy > 0
    part = (epsilon - beyond) / max(count, 1)
    mu = _mu(part * noisy, delta) if gaussian else Fraction(1)
    share = Share(
        family, part, _rounded_down(mu / square_root_upper(noisy)) if gaussian else mu, key_delta
    )
    own = replace(share, epsilon=beyond)
    releases = tuple(release.at(own if isinstance(release, Beyond) else share) for release in asked)
    return Price(family, epsilon if count else beyond, delta if gaussian else Fraction(0), releases)


@lru_cache(maxsize=1024)
def _mu(epsilon: Fraction, delta: Fraction) -> Fraction:
    return largest_mu(epsilon, delta)


def _rounded_down(x: Fraction) -> Fraction:
    """A short fraction not above x and within a millionth of a millionth of it, so that ledgers stay short."""
    scale = 10 ** max(12, 12 + math.ceil(-math.log10(float(x))))
    return Fraction(math.floor(x * scale), scale)


def _tidy(charge: Charge) -> Charge:
    """Amounts that are not typed by people, rounded up to whole multiples of 10^-18."""

    def up(x: Fraction | None) -> Fraction | None:
        return None if x is None else Fraction(math.ceil(x * _FINEST), _FINEST)

    return Charge(charge.pure, up(charge.mu_squared), up(charge.rho), charge.delta)

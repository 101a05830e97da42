"""Losses of releases on a sample, besides those of noise on a Poisson sample: any finite pair, and samples of fixed
size.

`SampledFiniteLoss` is a finite pair on a Poisson sample, `WithoutReplacementLoss` a release on `drawn` of `persons`
persons. Proofs in sampling.md.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from flint import arb

from sordino.errors import InvalidInput
from sordino.privacy.ball import ball, certified, upper
from sordino.privacy.exact import decimal_reading, readable, show
from sordino.privacy.json_form import Field, dump, loaded, nested, rational, whole
from sordino.privacy.loss.base import Floats, Loss
from sordino.privacy.loss.by_pair import PairLoss
from sordino.privacy.loss.by_profile import ProfileLoss
from sordino.privacy.loss.finite import FiniteLoss
from sordino.privacy.loss.gaussian import GaussianLoss
from sordino.privacy.loss.laplace import LaplaceLoss
from sordino.privacy.loss.law import Law
from sordino.privacy.loss.subsampled import SubsampledLoss
from sordino.privacy.neighbors import Neighbors

__all__ = ["SampledFiniteLoss", "WithoutReplacementLoss"]


@dataclass(frozen=True, repr=False)
class SampledFiniteLoss(PairLoss):
    """The loss of a release with finitely many outcomes on a Poisson sample, for one person added or removed.

    `base.p` is the release on a sample with the person, `base.q` on the same sample without: the pair must be the
    worst one in this order.

    Source: Balle, Barthe and Gaboardi 2018, Theorem 8; sampling.md, Theorem 1.

    Example:
        >>> coin = FiniteLoss((Fraction(3, 4), Fraction(1, 4)), (Fraction(1, 4), Fraction(3, 4)))
        >>> round(SampledFiniteLoss(coin, Fraction(1, 100)).maximum(), 6)  # log(1 + (3 - 1)/100)
        0.019803
    """

    base: FiniteLoss
    rate: Fraction

    def __post_init__(self) -> None:
        if not isinstance(self.base, FiniteLoss):
            rule = "only a finite loss can be sampled here"
            hint = "For Laplace or Gaussian noise use SubsampledLoss(loss, rate)."
            raise InvalidInput(f"base={show(self.base)}", rule, hint)
        object.__setattr__(self, "rate", _rate(self.rate))

    @property
    def relation(self) -> Neighbors:
        return Neighbors.ADD_REMOVE

    @cached_property
    def pair(self) -> FiniteLoss:
        """The sampled release as a finite pair: with the person, and without."""
        r, (p, q) = self.rate, (self.base.p, self.base.q)
        return FiniteLoss(tuple(r * a + (1 - r) * b for a, b in zip(p, q, strict=True)), q)

    def to_json(self) -> str:
        base = nested(self.base.to_json())
        return dump("sampled_finite", 1, {"base": base, "rate": self.rate})

    def __repr__(self) -> str:
        return f"SampledFiniteLoss({self.base!r}, rate={readable(self.rate)})"


@dataclass(frozen=True, repr=False)
class WithoutReplacementLoss(ProfileLoss):
    """The loss of a release on `drawn` of `persons` persons, every choice of them equally likely, for one record
    replaced.

    `base` is the loss of the release on the sample for one record of the sample replaced: its shift is twice that of a
    person's presence. A finite base must be symmetric. `rdp`, `rho` and `mu` are those of the base, upper bounds.

    Privacy: holds if the sample is drawn afresh for this release and stays secret, and the number of persons is public.

    Source: Balle, Barthe and Gaboardi 2018, Theorem 9; sampling.md, Theorem 2.

    Example:
        >>> step = WithoutReplacementLoss(GaussianLoss(Fraction(1)), drawn=10, persons=1000)
        >>> round(step.epsilon(1e-5), 4)
        0.1995
    """

    base: LaplaceLoss | GaussianLoss | FiniteLoss
    drawn: int
    persons: int

    def __post_init__(self) -> None:
        match self.base:
            case LaplaceLoss() | GaussianLoss():
                pass
            case FiniteLoss() if _symmetric(self.base):
                pass
            case _:
                rule = (
                    "the release on the sample must have Laplace, Gaussian or symmetric finite loss"
                )
                hint = (
                    "Pass the loss of one release for one record replaced; "
                    "a pair (p, q) is symmetric if (q, p) is the same."
                )
                raise InvalidInput(f"base={show(self.base)}", rule, hint)
        for name in ("drawn", "persons"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
                rule = f"{name} must be a whole number of at least 1"
                raise InvalidInput(
                    f"{name}={show(value)}", rule, "Pass drawn=100, persons=60_000, for example."
                )
            object.__setattr__(self, name, int(value))
        if self.drawn > self.persons:
            rule = "no more persons can be drawn than there are"
            raise InvalidInput(f"drawn={self.drawn}, persons={self.persons}", rule, "Lower drawn.")

    @property
    def relation(self) -> Neighbors:
        return Neighbors.REPLACE

    @property
    def rate(self) -> Fraction:
        """The chance of one person to be in the sample."""
        return Fraction(self.drawn, self.persons)

    @cached_property
    def _finite(self) -> FiniteLoss | None:
        """The sampled pair: what favours P is sampled, what favours Q its mirror image, and the rest tells nothing."""
        if not isinstance(self.base, FiniteLoss):
            return None
        r = self.rate
        more = [
            (r * a + (1 - r) * b, b) for a, b in zip(self.base.p, self.base.q, strict=True) if a > b
        ]
        even = 1 - sum((a + b for a, b in more), Fraction(0))
        p = [a for a, _ in more] + [b for _, b in more] + [even]
        return FiniteLoss(tuple(p), (*(b for _, b in more), *(a for a, _ in more), even))

    @cached_property
    def _noisy(self) -> SubsampledLoss | None:
        """Noise on a Poisson sample, of which a removed person's direction serves above loss 0."""
        return (
            None
            if isinstance(self.base, FiniteLoss) or self.rate == 1
            else SubsampledLoss(self.base, self.rate)
        )

    def delta_ball(self, epsilon: Fraction) -> arb:
        if self._finite is not None:
            return self._finite.delta_ball(epsilon)
        if self._noisy is None:
            return self.base.delta_ball(epsilon)
        if epsilon < 0:
            return -ball(epsilon).expm1() + ball(epsilon).exp() * self.delta_ball(-epsilon)
        above = self._noisy._split(epsilon)
        return above.above_p - ball(epsilon).exp() * above.above_q

    def _epsilon_guess(self, delta: Fraction) -> float:
        return self._noisy._epsilon_guess(delta) if self._noisy is not None else 1.0

    def rdp_ball(self, alpha: Fraction) -> arb:
        return (self._finite or self.base).rdp_ball(alpha)

    def infinite(self) -> Fraction:
        return (self._finite or self.base).infinite()

    def maximum(self) -> float:
        return (self._finite or self._noisy or self.base).maximum()

    def rho(self) -> float:
        return (self._finite or self.base).rho()

    def mu(self) -> float:
        return (self._finite or self.base).mu()

    def laws(self) -> tuple[Law, ...]:
        if self._noisy is None:
            return (self._finite or self.base).laws()
        removed = self._noisy.laws()[0]

        split = self._noisy._split
        even = upper(certified(lambda: 1 - split(Fraction(0)).above_p - split(Fraction(0)).above_q))

        def cells(edges: Floats) -> tuple[Floats, Floats]:
            p, q = removed.cells(np.maximum(edges, 0.0))
            mirrored_p, mirrored_q = removed.cells(np.maximum(-edges[::-1], 0.0))
            p, q = p + mirrored_q[::-1], q + mirrored_p[::-1]
            # what tells nothing, in the cell that holds 0
            at = int(np.searchsorted(edges, 0.0, side="left")) - 1
            if 0 <= at < len(p):
                p[at] += even
                q[at] += even
            return p, q

        top = [(value, probability) for value, probability in removed.atoms if value > 0]
        atoms = [(-value, probability * math.exp(-value)) for value, probability in top] + top
        return (
            Law(
                tuple(atoms), -removed.high, removed.high, removed.spread, cells, 0.0, removed.error
            ),
        )

    def to_json(self) -> str:
        base = nested(self.base.to_json())
        sizes: dict[str, Field] = {"drawn": self.drawn, "persons": self.persons}
        return dump("without_replacement", 1, {"base": base, **sizes})

    def __repr__(self) -> str:
        return f"WithoutReplacementLoss({self.base!r}, drawn={self.drawn}, persons={self.persons})"


def _rate(value: Any) -> Fraction:
    rate = decimal_reading("rate", value)
    if not 0 < rate <= 1:
        hint = "Pass the probability that a person is in the sample, such as Fraction(1, 100)."
        raise InvalidInput(f"rate={show(value)}", "rate must be greater than 0 and at most 1", hint)
    return rate


def _symmetric(pair: FiniteLoss) -> bool:
    outcomes = Counter(zip(pair.p, pair.q, strict=True))
    return outcomes == Counter(zip(pair.q, pair.p, strict=True))


def _base(fields: dict[str, Any]) -> Any:
    return loaded(fields.get("base"), Loss.from_json)


Loss.kinds["sampled_finite", 1] = lambda fields: SampledFiniteLoss(
    _base(fields), rational(fields, "rate")
)
Loss.kinds["without_replacement", 1] = lambda fields: WithoutReplacementLoss(
    _base(fields), whole(fields, "drawn"), whole(fields, "persons")
)

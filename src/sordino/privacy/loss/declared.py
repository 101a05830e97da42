"""Losses of releases of which only a promise is known: (epsilon, delta), zero-concentrated privacy, or Renyi
divergences.

An (epsilon, delta) promise has a worst pair, and sums of it are exact. Renyi divergences have none: a plan that holds
one is certified through the divergences of all its parts, and its bracket's lower end says nothing. Proofs in
declared.md.
"""

from __future__ import annotations

import json
import math
from abc import abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

from flint import arb

from sordino.errors import InvalidInput
from sordino.privacy import json_form
from sordino.privacy.ball import ball, certified, normal_tail_inverse, upper
from sordino.privacy.exact import Number, bounds, float_upper, positive, readable, show
from sordino.privacy.loss.base import Floats, Loss, OutputPair
from sordino.privacy.loss.by_profile import ProfileLoss
from sordino.privacy.loss.law import Law, no_cells
from sordino.privacy.renyi_conversion import delta_from, epsilon_from

__all__ = ["EpsilonDeltaLoss", "MomentLoss", "RenyiLoss", "ZcdpLoss"]

_LEAST = 5e-324


@dataclass(frozen=True, repr=False)
class EpsilonDeltaLoss(Loss):
    """The worst loss of a release that is (epsilon, delta)-private; with one number, of a pure one.

    The loss is at most `most`, except with probability `failure`, when everything is given away.

    Source: Kairouz, Oh and Viswanath 2015; declared.md, Theorem 1.

    Example:
        >>> plan = 30 * EpsilonDeltaLoss(Fraction(1, 10), Fraction(1, 10**9))
        >>> round(plan.epsilon(1e-6), 3)
        2.348
    """

    most: Fraction
    failure: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        e, d = bounds("epsilon", self.most).upper, bounds("delta", self.failure).upper
        if e < 0 or not 0 <= d < 1:
            value = f"epsilon={show(self.most)}, delta={show(self.failure)}"
            rule = "epsilon must be at least 0, and delta at least 0 and below 1"
            raise InvalidInput(
                value,
                rule,
                "Pass what the release is known to satisfy, such as EpsilonDeltaLoss(1, 1e-6).",
            )
        object.__setattr__(self, "most", e)
        object.__setattr__(self, "failure", d)

    def _pure_delta(self, epsilon: Fraction) -> arb:
        if epsilon >= self.most:
            return arb(0)
        if epsilon <= -self.most:
            return -ball(epsilon).expm1()
        return -ball(epsilon - self.most).expm1() / (1 + ball(-self.most).exp())

    def delta_ball(self, epsilon: Fraction) -> arb:
        return ball(self.failure) + ball(1 - self.failure) * self._pure_delta(epsilon)

    def _epsilon(self, delta: Fraction) -> float:
        left = (delta - self.failure) / (1 - self.failure)
        if left == 0:
            return float_upper(self.most)

        def inverse() -> arb:
            odds = ball(self.most).exp()
            return (odds - ball(left) * (1 + odds)).max(ball(1 - left)).log()

        return min(float_upper(self.most), upper(certified(inverse)))

    def rdp_ball(self, alpha: Fraction) -> arb:
        e = ball(self.most)
        if self.failure or self.most == 0:
            return arb.pos_inf() if self.failure else arb(0)
        if alpha == 1:
            return e * (e / 2).tanh()
        a = ball(alpha)
        return (((a * e).exp() + ((1 - a) * e).exp()) / (1 + e.exp())).log() / (a - 1)

    def trade_off_ball(self, alpha: Fraction) -> arb:
        kept, a, odds = ball(1 - self.failure), ball(alpha), ball(self.most).exp()
        return (kept - odds * a).max((kept - a) / odds).max(arb(0))

    def cdf_ball(self, value: Fraction) -> arb:
        if value < -self.most:
            return arb(0)
        kept = ball(1 - self.failure)
        return kept if value >= self.most else kept / (1 + ball(self.most).exp())

    def mass_ball(self, low: Fraction, high: Fraction) -> arb:
        return self.cdf_ball(high) - self.cdf_ball(low)

    def infinite(self) -> Fraction:
        return self.failure

    def maximum(self) -> float:
        return math.inf if self.failure else float_upper(self.most)

    def exact_maximum(self) -> Fraction | None:
        return None if self.failure else self.most

    def without_certainty(self) -> EpsilonDeltaLoss:
        return EpsilonDeltaLoss(self.most)

    def rho(self) -> float:
        return math.inf if self.failure else upper(certified(lambda: self.rdp_ball(Fraction(1))))

    def mu(self) -> float:
        if self.failure or self.most == 0:
            return math.inf if self.failure else 0.0

        def central() -> arb:
            if self.most < 1:  # without cancellation near zero
                return 2 * arb(2).sqrt() * (ball(self.most) / 2).tanh().erfinv()
            return 2 * normal_tail_inverse(1 / (1 + ball(self.most).exp()))

        return upper(certified(central))

    def outputs(self) -> OutputPair:
        kept = float(1 - self.failure)
        few = kept / (1 + math.exp(min(700.0, float(self.most))))
        p = (float(self.failure), kept - few, few, 0.0)
        return OutputPair(("all", "yes", "no", "all'"), p, p[::-1], discrete=True)

    def laws(self) -> tuple[Law, ...]:
        e, kept = float_upper(self.most), float(1 - self.failure)
        if e == math.inf:
            return (Law((), 0.0, 0.0, 1.0, no_cells, 1.0),)
        few = math.exp(-e) / (1 + math.exp(-e))
        atoms = (
            ((-e, kept * few or _LEAST), (e, kept / (1 + math.exp(-e)))) if e else ((0.0, kept),)
        )
        return (Law(atoms, 0.0, 0.0, 1.0, no_cells, float_upper(self.failure)),)

    def to_json(self) -> str:
        return json_form.dump("epsilon_delta", 1, {"epsilon": self.most, "delta": self.failure})

    def __repr__(self) -> str:
        return f"EpsilonDeltaLoss({readable(self.most)}{f', {readable(self.failure)}' if self.failure else ''})"


class MomentLoss(ProfileLoss):
    """A loss known by bounds on its Renyi divergences only:
    no pair of outputs stands for all releases that have them.
    """

    @property
    def by_moments(self) -> bool:
        return True

    @property
    def orders(self) -> tuple[Fraction, ...]:
        """Orders at which the bounds are best, to be tried besides those of a search."""
        return ()

    @abstractmethod
    def rdp_ball(self, alpha: Fraction) -> arb:
        """The bound at an order of at least 1; infinite where there is none."""

    def delta_ball(self, epsilon: Fraction) -> arb:
        return delta_from(self.rdp_ball, epsilon, self.orders).min(arb(1))

    def _epsilon(self, delta: Fraction) -> float:
        return min(self.maximum(), epsilon_from(self.rdp_ball, delta, self.orders))

    def maximum(self) -> float:
        return math.inf

    def rho(self) -> float:
        return math.inf

    def mu(self) -> float:
        """None is certified: Renyi divergences do not bound the trade-off curve by a Gaussian one."""
        return math.inf

    def laws(self) -> tuple[Law, ...]:
        raise self._no_law()

    def pmf(self, grid: Iterable[Number] | Floats) -> Floats:  # noqa: ARG002
        raise self._no_law()

    def _no_law(self) -> InvalidInput:
        rule = "a loss that is known by its Renyi divergences has no law"
        return InvalidInput(
            repr(self),
            rule,
            "Ask for epsilon, delta, rdp or rho, or pass the loss of the release itself.",
        )


@dataclass(frozen=True, repr=False)
class ZcdpLoss(MomentLoss):
    """The loss of a release that is zero-concentrated: its Renyi divergence of order alpha is at most `bound` alpha.

    Source: Bun and Steinke 2016, Definition 1.1.

    Example:
        >>> plan = 10 * ZcdpLoss(Fraction(1, 100)) + EpsilonDeltaLoss(Fraction(1, 2))
        >>> round(plan.epsilon(1e-6), 3), plan.rho() < 0.2225
        (2.597, True)
    """

    bound: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(
            self,
            "bound",
            positive("rho", self.bound, "Pass the rho that the release satisfies.").upper,
        )

    def rdp_ball(self, alpha: Fraction) -> arb:
        return ball(self.bound * alpha)

    def rho(self) -> float:
        return float_upper(self.bound)

    def to_json(self) -> str:
        return json_form.dump("zcdp", 1, {"rho": self.bound})

    def __repr__(self) -> str:
        return f"ZcdpLoss({readable(self.bound)})"


@dataclass(frozen=True, repr=False)
class RenyiLoss(MomentLoss):
    """The loss of a release whose Renyi divergence is known at some orders: `points` are (order above 1, divergence).

    Between two orders (order - 1) divergence is at most its chord, below the first the divergence is at most the
    first one's, above the last nothing is known.

    Source: Mironov 2017; declared.md, Theorem 2.

    Example:
        >>> curve = RenyiLoss(((2, 0.1), (8, 0.4), (32, 1.6)))
        >>> round(curve.epsilon(1e-6), 4), curve.rdp(5)
        (1.8971, 0.36250000000000004)
    """

    points: tuple[tuple[Fraction, Fraction], ...]

    def __post_init__(self) -> None:
        hint = "Pass pairs in rising order, such as ((2, 0.1), (8, 0.4))."
        given: Any = self.points
        try:
            read = tuple(
                (bounds("order", a).lower, bounds("divergence", v).upper) for a, v in given
            )
        except (TypeError, ValueError):
            rule = "points must be pairs of an order and a divergence"
            raise InvalidInput(f"points={show(given)}", rule, hint) from None
        if (
            not read
            or read[0][0] <= 1
            or any(a >= b for (a, _), (b, _) in pairwise(read))
            or min(v for _, v in read) < 0
        ):
            rule = "orders must rise and be above 1, and divergences must not be negative"
            raise InvalidInput(f"points={show(given)}", rule, hint)
        object.__setattr__(self, "points", read)

    @property
    def orders(self) -> tuple[Fraction, ...]:
        return tuple(order for order, _ in self.points)

    def rdp_ball(self, alpha: Fraction) -> arb:
        known = [value for order, value in self.points if order >= alpha]
        if not known:
            return arb.pos_inf()
        best = min(known)  # divergences never fall along the order
        for (a, u), (b, v) in pairwise(self.points):
            if a <= alpha <= b:
                share = (alpha - a) / (b - a)
                best = min(best, ((1 - share) * (a - 1) * u + share * (b - 1) * v) / (alpha - 1))
        return ball(best)

    def to_json(self) -> str:
        orders, values = zip(*self.points, strict=True)
        return json_form.dump("renyi", 1, {"orders": orders, "divergences": values})

    def __repr__(self) -> str:
        shown = ", ".join(f"({readable(a)}, {readable(v)})" for a, v in self.points)
        return f"RenyiLoss(({shown}{',' if len(self.points) == 1 else ''}))"


def _load_renyi(fields: dict[str, Any]) -> RenyiLoss:
    orders, values = (json_form.rationals(fields, name) for name in ("orders", "divergences"))
    if len(orders) != len(values):
        rule = "there must be one divergence for each order"
        raise InvalidInput(show(json.dumps(fields)), rule, "Pass a text made by to_json().")
    return RenyiLoss(tuple(zip(orders, values, strict=True)))


_KINDS: dict[tuple[str, int], Callable[[dict[str, Any]], Loss]] = {
    ("epsilon_delta", 1): lambda f: EpsilonDeltaLoss(
        json_form.rational(f, "epsilon"), json_form.rational(f, "delta")
    ),
    ("zcdp", 1): lambda f: ZcdpLoss(json_form.rational(f, "rho")),
    ("renyi", 1): _load_renyi,
}
Loss.kinds.update(_KINDS)

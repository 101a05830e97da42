"""The loss of releases whose privacy loss, over all outcomes, stays within one interval of length `width`.

The exponential mechanism is one. Where the interval lies depends on the data, so each view is the worst over all
places. The curve of the worst tests is that of logistic noise whose centre moves by `width`; L has density e^(l/2)/(4
sinh(width/2)) on [-width, width]. Proofs in bounded_range.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from flint import arb

from sordino.privacy import json_form
from sordino.privacy.ball import ball, certified, normal_tail_inverse, upper
from sordino.privacy.exact import float_upper, positive, readable
from sordino.privacy.loss.base import Loss, OutputPair
from sordino.privacy.loss.law import CELL_ERROR, Floats, Law, no_cells

__all__ = ["BoundedRangeLoss"]


@dataclass(frozen=True, repr=False)
class BoundedRangeLoss(Loss):
    """The worst privacy loss of bounded range; `width` is also the pure epsilon.

    Example:
        >>> BoundedRangeLoss(Fraction(1)).rho()
        0.125
    """

    width: Fraction

    def __post_init__(self) -> None:
        hint = "It is the epsilon of an exponential mechanism."
        object.__setattr__(self, "width", positive("width", self.width, hint).upper)

    def delta_ball(self, epsilon: Fraction) -> arb:
        if epsilon >= self.width:
            return arb(0)
        if epsilon <= -self.width:
            return -ball(epsilon).expm1()
        top = ball((epsilon - self.width) / 2).expm1() ** 2
        return top / -ball(-self.width).expm1()

    def _epsilon(self, delta: Fraction) -> float:
        def inverse() -> arb:
            most = -ball(-self.width).expm1()
            inside = ball(self.width) + 2 * (-(ball(delta) * most).sqrt()).log1p()
            outside = ball(-delta).log1p()
            return (
                inside
                if ball(delta) < most
                else outside
                if ball(delta) > most
                else inside.union(outside)
            )

        return upper(certified(inverse))

    def rdp_ball(self, alpha: Fraction) -> arb:
        e = ball(self.width)
        if alpha == 1:
            ratio = e.expm1() / e
            return ratio.log() - 1 + 1 / ratio
        a = ball(alpha)
        far = -(-a * e).expm1()  # 1 - e^(-alpha width)
        place = ((a - 1) * far / (a * (-e).exp() * -(-(a - 1) * e).expm1())).log()
        return place + (far / (a * -(-e).expm1())).log() / (a - 1)

    def trade_off_ball(self, alpha: Fraction) -> arb:
        a = ball(alpha)
        return (1 - a) / (1 + a * ball(self.width).expm1())

    def cdf_ball(self, value: Fraction) -> arb:
        if abs(value) >= self.width:
            return arb(int(value > 0))
        return ball((value + self.width) / 2).expm1() / ball(self.width).expm1()

    def mass_ball(self, low: Fraction, high: Fraction) -> arb:
        return self.cdf_ball(high) - self.cdf_ball(low)

    def maximum(self) -> float:
        return float_upper(self.width)

    def exact_maximum(self) -> Fraction:
        return self.width

    def rho(self) -> float:
        """width^2/8, or that of any pure loss where this is smaller."""
        return float_upper(self.exact_rho())

    def exact_rho(self) -> Fraction:
        """The same as a rational: a bound on rdp(alpha)/alpha for every alpha > 1."""
        pure = upper(certified(lambda: ball(self.width) * (ball(self.width) / 2).tanh()))
        square = self.width**2 / 8
        return min(square, Fraction(pure)) if math.isfinite(pure) else square

    def mu(self) -> float:
        def central() -> arb:
            if self.width < 2:  # without cancellation near zero
                return 2 * arb(2).sqrt() * (ball(self.width) / 4).tanh().erfinv()
            return 2 * normal_tail_inverse(1 / (1 + (ball(self.width) / 2).exp()))

        return upper(certified(central))

    def outputs(self) -> OutputPair:
        t = float(self.width)
        x = np.linspace(-8.0, 8.0 + t, 401)
        curves = (1 / (4 * np.cosh((x - t) / 2) ** 2), 1 / (4 * np.cosh(x / 2) ** 2))
        return OutputPair(
            tuple(x.tolist()), tuple(curves[0].tolist()), tuple(curves[1].tolist()), discrete=False
        )

    def laws(self) -> tuple[Law, ...]:
        t = float(self.width)
        whole = -math.expm1(-t)

        def cells(edges: Floats) -> tuple[Floats, Floats]:
            a, b = np.clip(edges[:-1], -t, t), np.clip(edges[1:], -t, t)
            length = np.expm1((b - a) / 2) / whole
            return np.exp((a - t) / 2) * length, np.exp(-(b + t) / 2) * length

        return (Law((), -t, t, min(2.0, t), cells, 0.0, min(CELL_ERROR, 2.0**-46 * (1 + t))),)

    @property
    def idealized(self) -> bool:
        return True

    def attained_laws(self) -> tuple[Law, ...]:
        """That of the binary response with half of the width: the logistic pair's sums are those of no releases."""
        half = float(self.width) / 2 * (1 - 2.0**-50)
        truth = 1 / (1 + math.exp(-half))
        return (Law(((-half, 1 - truth), (half, truth)), 0.0, 0.0, 1.0, no_cells),)

    def to_json(self) -> str:
        return json_form.dump("bounded_range", 1, {"width": self.width})

    def __repr__(self) -> str:
        return f"BoundedRangeLoss(width={readable(self.width)})"


Loss.kinds["bounded_range", 1] = lambda fields: BoundedRangeLoss(
    json_form.rational(fields, "width")
)

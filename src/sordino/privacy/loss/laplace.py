"""The loss of Laplace noise whose centre moves by `shift` scales: P = Laplace(shift, 1), Q = Laplace(0, 1).

L is +shift with probability 1/2, -shift with probability e^-shift/2, and has density e^((l - shift)/2)/4 in between.
That this pair is the worst one for vectors within L1 distance `shift` is Theorem 2 of mechanisms/laplace.md, where the
formulas below are derived.
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

__all__ = ["LaplaceLoss"]


@dataclass(frozen=True, repr=False)
class LaplaceLoss(Loss):
    """The privacy loss of one Laplace release; `shift` is sensitivity / scale, the pure epsilon."""

    shift: Fraction

    def __post_init__(self) -> None:
        hint = "It is sensitivity / scale; mechanisms compute it in loss(sensitivity)."
        object.__setattr__(self, "shift", positive("shift", self.shift, hint).upper)

    def delta_ball(self, epsilon: Fraction) -> arb:
        if epsilon >= self.shift:
            return arb(0)
        return -ball(epsilon if epsilon < -self.shift else (epsilon - self.shift) / 2).expm1()

    def _epsilon(self, delta: Fraction) -> float:
        def inverse() -> arb:
            x = ball(-delta).log1p()
            return x.max(ball(self.shift) + 2 * x)

        return upper(certified(inverse))

    def rdp_ball(self, alpha: Fraction) -> arb:
        t = ball(self.shift)
        if alpha == 1:
            return t + (-t).expm1()
        a = ball(alpha)
        return ((a * ((a - 1) * t).expm1() + (a - 1) * (-a * t).expm1()) / (2 * a - 1)).log1p() / (
            a - 1
        )

    def trade_off_ball(self, alpha: Fraction) -> arb:
        a, t = ball(alpha), ball(self.shift)
        if alpha >= Fraction(1, 2):
            return (-t).exp() * (1 - a)
        line, curve = 1 - t.exp() * a, (-t).exp() / (4 * a)
        edge = (-t).exp() / 2
        return line if a < edge else curve if a > edge else line.union(curve)

    def cdf_ball(self, value: Fraction) -> arb:
        if abs(value) >= self.shift:
            return (
                arb(int(value >= self.shift))
                if value != -self.shift
                else (-ball(self.shift)).exp() / 2
            )
        return ball((value - self.shift) / 2).exp() / 2

    def mass_ball(self, low: Fraction, high: Fraction) -> arb:
        return self.cdf_ball(high) - self.cdf_ball(low)

    def maximum(self) -> float:
        return float_upper(self.shift)

    def exact_maximum(self) -> Fraction:
        return self.shift

    def rho(self) -> float:
        return self.rdp(1)

    def mu(self) -> float:
        def fixed_point() -> arb:
            half = ball(-self.shift / 2)
            if self.shift < 1:  # without cancellation near zero
                return 2 * arb(2).sqrt() * (-half.expm1()).erfinv()
            return 2 * normal_tail_inverse(half.exp() / 2)

        return upper(certified(fixed_point))

    def outputs(self) -> OutputPair:
        t = float(self.shift)
        x = np.linspace(-5.0, 5.0 + t, 401)
        curves = (np.exp(-np.abs(x - t)) / 2, np.exp(-np.abs(x)) / 2)
        return OutputPair(
            tuple(x.tolist()), tuple(curves[0].tolist()), tuple(curves[1].tolist()), discrete=False
        )

    def laws(self) -> tuple[Law, ...]:
        if self.maximum() == math.inf:  # more than any float is as good as certain
            return (Law((), 0.0, 0.0, 1.0, no_cells, 1.0),)
        t = float(self.shift)

        def cells(edges: Floats) -> tuple[Floats, Floats]:
            a, b = np.clip(edges[:-1], -t, t) / 2, np.clip(edges[1:], -t, t) / 2
            half = -np.expm1(a - b) / 2
            return np.exp(b - t / 2) * half, np.exp(
                -t / 2 - a
            ) * half  # each factor at most 1, whatever the shift

        error = min(CELL_ERROR, 2.0**-46 * (1 + t))
        return (Law(((-t, math.exp(-t) / 2), (t, 0.5)), -t, t, 2.0, cells, 0.0, error),)

    def to_json(self) -> str:
        return json_form.dump("laplace", 1, {"shift": self.shift})

    def __repr__(self) -> str:
        return f"LaplaceLoss(shift={readable(self.shift)})"


Loss.kinds["laplace", 1] = lambda fields: LaplaceLoss(json_form.rational(fields, "shift"))

"""The loss of Normal noise whose centre moves by `shift` standard deviations: P = N(shift, 1), Q = N(0, 1).

L is itself normal, N(shift^2/2, shift^2). That this pair is the worst one for vectors within L2 distance `shift`, and
the formulas below, are proven in mechanisms/gaussian.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from flint import arb

from sordino.privacy import json_form, normal_pair
from sordino.privacy.ball import ball, normal_tail, normal_tail_inverse
from sordino.privacy.exact import float_upper, least_reading, positive, readable
from sordino.privacy.float_search import nearest_good, rough_log
from sordino.privacy.loss.base import Loss, OutputPair
from sordino.privacy.loss.law import Floats, Law

__all__ = ["GaussianLoss"]

_NEWTON = 40


@dataclass(frozen=True, repr=False)
class GaussianLoss(Loss):
    """The privacy loss of one Gaussian release; `shift` is sensitivity / scale, the mu of Gaussian privacy."""

    shift: Fraction

    def __post_init__(self) -> None:
        hint = "It is sensitivity / scale; mechanisms compute it in loss(sensitivity)."
        object.__setattr__(self, "shift", positive("shift", self.shift, hint).upper)

    def delta_ball(self, epsilon: Fraction) -> arb:
        return normal_pair.delta_ball(self.shift, epsilon)

    def _epsilon_guess(self, delta: Fraction) -> float:
        mu = float_upper(self.shift)
        if mu > 1e150:
            return math.inf
        return mu * mu / 2 + mu * math.sqrt(-2 * rough_log(delta)) + 2.0**-1000

    def _epsilon(self, delta: Fraction) -> float:
        """By Newton's method on log delta, then certified among the floats around; if that fails, by bisection."""
        epsilon = self._epsilon_guess(delta)
        mu, target = float(self.shift), rough_log(delta)
        for _ in range(_NEWTON):
            if not 1e-300 < mu < 1e150 or not math.isfinite(epsilon):
                break
            value = self.delta(epsilon)
            slope = (
                math.exp(min(700.0, epsilon))
                * math.erfc((epsilon / mu + mu / 2) / math.sqrt(2))
                / 2
                / value
            )
            move = (math.log(value) - target) / slope if slope > 0 else 0.0
            epsilon += move
            if abs(move) <= 2.0**-50 * abs(epsilon):
                break
        return nearest_good(
            lambda e: self.satisfies(least_reading(e), delta), epsilon
        ) or super()._epsilon(delta)

    def rdp_ball(self, alpha: Fraction) -> arb:
        return ball(alpha * self.shift**2 / 2)

    def trade_off_ball(self, alpha: Fraction) -> arb:
        return normal_tail(ball(self.shift) - normal_tail_inverse(ball(alpha)))

    def _standard(self, value: Fraction) -> Fraction:
        return (value - self.shift**2 / 2) / self.shift

    def cdf_ball(self, value: Fraction) -> arb:
        return normal_tail(ball(-self._standard(value)))

    def mass_ball(self, low: Fraction, high: Fraction) -> arb:
        a, b = self._standard(low), self._standard(high)
        if a < 0:
            a, b = -b, -a
        return normal_tail(ball(a)) - normal_tail(ball(b))

    def maximum(self) -> float:
        return math.inf

    def rho(self) -> float:
        return float_upper(self.shift**2 / 2)

    def mu(self) -> float:
        return float_upper(self.shift)

    def exact_rho(self) -> Fraction:
        return self.shift**2 / 2

    def exact_mu_squared(self) -> Fraction:
        return self.shift**2

    def outputs(self) -> OutputPair:
        t = float(self.shift)
        x = np.linspace(-4.0, 4.0 + t, 401)
        curves = [np.exp(-((x - c) ** 2) / 2) / math.sqrt(2 * math.pi) for c in (t, 0.0)]
        return OutputPair(
            tuple(x.tolist()), tuple(curves[0].tolist()), tuple(curves[1].tolist()), discrete=False
        )

    def laws(self) -> tuple[Law, ...]:
        from scipy.special import ndtr

        mu = float(self.shift)

        def cells(edges: Floats) -> tuple[Floats, Floats]:
            z = (edges - mu * mu / 2) / mu
            return normal_cells(z), normal_cells(z + mu)

        def normal_cells(z: Floats) -> Floats:
            cell: Floats = np.where(
                z[:-1] < 0, ndtr(z[1:]) - ndtr(z[:-1]), ndtr(-z[:-1]) - ndtr(-z[1:])
            )
            return cell

        return (Law((), -math.inf, math.inf, mu, cells),)

    def to_json(self) -> str:
        return json_form.dump("gaussian", 1, {"shift": self.shift})

    def __repr__(self) -> str:
        return f"GaussianLoss(shift={readable(self.shift)})"


Loss.kinds["gaussian", 1] = lambda fields: GaussianLoss(json_form.rational(fields, "shift"))

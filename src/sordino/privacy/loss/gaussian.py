"""The loss of Normal noise whose centre moves by `shift` standard deviations: P = N(shift, 1), Q = N(0, 1).

L is itself normal, N(shift^2/2, shift^2). That this pair is the worst one for vectors within L2 distance `shift`, and the
formulas below, are proven in mechanisms/gaussian.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from flint import arb

from sordino.errors import InvalidInput
from sordino.privacy import json_form
from sordino.privacy.ball import ball, normal_tail, normal_tail_inverse
from sordino.privacy.exact import float_upper, least_reading, positive, readable, show
from sordino.privacy.loss.base import Loss, OutputPair, smallest_float
from sordino.privacy.loss.law import Floats, Law

__all__ = ["GaussianLoss", "largest_mu"]

_SMALLEST_MU = 1e-290
_NEWTON = 40


@dataclass(frozen=True, repr=False)
class GaussianLoss(Loss):
    """The privacy loss of one Gaussian release; `shift` is sensitivity / scale, the mu of Gaussian privacy."""

    shift: Fraction

    def __post_init__(self) -> None:
        hint = "It is sensitivity / scale; mechanisms compute it in loss(sensitivity)."
        object.__setattr__(self, "shift", positive("shift", self.shift, hint).upper)

    def delta_ball(self, epsilon: Fraction) -> arb:
        """Balle and Wang (2018), Theorem 8."""
        middle, half = epsilon / self.shift, self.shift / 2
        return normal_tail(ball(middle - half)) - ball(epsilon).exp() * normal_tail(ball(middle + half))

    def _epsilon_guess(self, delta: Fraction) -> float:
        mu = float_upper(self.shift)
        if mu > 1e150:
            return math.inf
        return mu * mu / 2 + mu * math.sqrt(-2 * _log(delta)) + 2.0**-1000

    def _epsilon(self, delta: Fraction) -> float:
        """By Newton's method on log delta, then certified among the floats around; if that fails, by bisection."""
        epsilon = self._epsilon_guess(delta)
        mu, target = float(self.shift), _log(delta)
        for _ in range(_NEWTON):
            if not 1e-300 < mu < 1e150 or not math.isfinite(epsilon):
                break
            value = self.delta(epsilon)
            slope = math.exp(min(700.0, epsilon)) * math.erfc((epsilon / mu + mu / 2) / math.sqrt(2)) / 2 / value
            move = (math.log(value) - target) / slope if slope > 0 else 0.0
            epsilon += move
            if abs(move) <= 2.0**-50 * abs(epsilon):
                break
        return _nearest_good(lambda e: self.satisfies(least_reading(e), delta), epsilon) or super()._epsilon(delta)

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

    def outputs(self) -> OutputPair:
        t = float(self.shift)
        x = np.linspace(-4.0, 4.0 + t, 401)
        curves = [np.exp(-((x - c) ** 2) / 2) / math.sqrt(2 * math.pi) for c in (t, 0.0)]
        return OutputPair(tuple(x.tolist()), tuple(curves[0].tolist()), tuple(curves[1].tolist()), discrete=False)

    def laws(self) -> tuple[Law, ...]:
        from scipy.special import ndtr

        mu = float(self.shift)

        def cells(edges: Floats) -> tuple[Floats, Floats]:
            z = (edges - mu * mu / 2) / mu
            return normal_cells(z), normal_cells(z + mu)

        def normal_cells(z: Floats) -> Floats:
            cell: Floats = np.where(z[:-1] < 0, ndtr(z[1:]) - ndtr(z[:-1]), ndtr(-z[:-1]) - ndtr(-z[1:]))
            return cell

        return (Law((), -math.inf, math.inf, mu, cells),)

    def to_json(self) -> str:
        return json_form.dump("gaussian", 1, {"shift": self.shift})

    def __repr__(self) -> str:
        return f"GaussianLoss(shift={readable(self.shift)})"


def largest_mu(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The largest float mu such that every mu-Gaussian-private release is certainly (epsilon, delta)-private.

    For epsilon >= 0 and 0 < delta < 1. delta grows with mu, so the search is a bisection over floats, begun at the larger
    of two values that satisfy: the total variation is at most mu/sqrt(2 pi), and P[L > epsilon] <= delta by the tail bound
    exp(-t^2/2) on a standard normal.
    """

    def good(mu: float) -> bool:
        return GaussianLoss(Fraction(mu)).satisfies(epsilon, delta)

    spread = math.sqrt(-2 * _log(delta))
    by_tail = 2 * float(epsilon) / (math.sqrt(spread**2 + 2 * float(epsilon)) + spread)
    low = max(by_tail, float(delta) * math.sqrt(2 * math.pi)) * (1 - 2.0**-40)
    if low < _SMALLEST_MU:
        asked = f"epsilon={show(float(epsilon))}, delta={show(float(delta))}"
        raise InvalidInput(asked, f"they ask for mu below {_SMALLEST_MU}", "Such a guarantee allows no useful release.")
    guess, target, e = low, _log(delta), float(epsilon)
    for _ in range(_NEWTON):
        value = GaussianLoss(Fraction(guess)).delta(epsilon)
        slope = math.exp(-((e / guess - guess / 2) ** 2) / 2) / math.sqrt(2 * math.pi) / value
        move = (target - math.log(value)) / slope if slope > 0 else 0.0
        guess = max(guess + move, guess / 2)
        if abs(move) <= 2.0**-50 * guess:
            break
    near = _nearest_good(lambda x: good(-x), -guess)
    if near is not None:
        return Fraction(-near)
    high = 2 * low
    while good(high):
        low, high = high, 2 * high
    return Fraction(-smallest_float(lambda x: good(-x), -high, -low))


def _log(delta: Fraction) -> float:
    return math.log(delta.numerator) - math.log(delta.denominator)


def _nearest_good(good: Callable[[float], bool], near: float) -> float | None:
    """The smallest good float close to `near`, if it is there."""
    low, high = near - 2.0**-46 * abs(near), near + 2.0**-46 * abs(near)
    if not math.isfinite(near) or good(low) or not good(high):
        return None
    return smallest_float(good, low, high)


Loss.kinds["gaussian", 1] = lambda fields: GaussianLoss(json_form.rational(fields, "shift"))

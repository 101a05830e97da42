"""The losses of noise on the integers: discrete Laplace and discrete Gaussian, whose centre moves by a whole number.

P = X + shift, Q = X. The loss never falls along the output y, and is rational there, so that every delta is that of one
threshold: P[y >= k] - e^epsilon Q[y >= k] for the first k with a loss above epsilon. Proofs in integer_noise.md.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from flint import arb, ctx

from sordino.errors import InvalidInput
from sordino.privacy import json_form
from sordino.privacy.ball import at_most, ball, certified, upper
from sordino.privacy.exact import decimal_reading, float_upper, least_reading, readable, show
from sordino.privacy.loss.base import Floats, Loss, OutputPair
from sordino.privacy.loss.by_profile import ProfileLoss
from sordino.privacy.loss.law import Law, of_outcomes

__all__ = ["DiscreteGaussianLoss", "DiscreteLaplaceLoss"]

_MOST_SHIFT = 10**6
_LARGEST_SCALE = 4096
_REACH = 37.3
"""Deviations of the window of a float law: less than 2^-1000 is outside."""
_FAINT = 2.0**-1000


@dataclass(frozen=True, repr=False)
class _IntegerNoiseLoss(ProfileLoss):
    shift: int
    scale: Fraction

    def __post_init__(self) -> None:
        s = self.shift
        if isinstance(s, bool) or not isinstance(s, int | np.integer) or not 1 <= s <= _MOST_SHIFT:
            rule = f"shift must be a whole number from 1 to {_MOST_SHIFT:,}"
            hint = "It is how far one person moves an integer result: its sensitivity, in the result's own units."
            raise InvalidInput(f"shift={show(s)}", rule, hint)
        object.__setattr__(self, "shift", int(s))
        scale = decimal_reading("scale", self.scale)
        if scale <= 0:
            rule = "scale must be greater than zero"
            raise InvalidInput(
                f"scale={show(self.scale)}", rule, "Pass it in the result's own units, such as 10."
            )
        object.__setattr__(self, "scale", scale)

    @abstractmethod
    def _first_above(self, epsilon: Fraction) -> int | None:
        """The first output whose loss is above epsilon; None if there is none."""

    @abstractmethod
    def _loss_at(self, output: int) -> Fraction:
        """The loss of an output."""

    @abstractmethod
    def _tail(self, k: int) -> arb:
        """P[X >= k], with full relative accuracy."""

    def _everything_above(self, epsilon: Fraction) -> bool:  # noqa: ARG002
        return False

    def delta_ball(self, epsilon: Fraction) -> arb:
        k = self._first_above(epsilon)
        if k is None:
            return arb(0)
        if self._everything_above(epsilon):
            return -ball(epsilon).expm1()
        return self._tail(k - self.shift) - ball(epsilon).exp() * self._tail(k)

    def _outputs_between(self) -> tuple[int, int]:
        """Outputs between which epsilon(delta) is decided, however small delta is."""
        raise NotImplementedError

    def _epsilon(self, delta: Fraction) -> float:
        """log((A - delta)/B) for the tails A, B of the output where delta(epsilon) passes delta;
        checked, else bisected.
        """
        low, high = self._outputs_between()
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (
                (low, middle) if self.satisfies(self._loss_at(middle), delta) else (middle, high)
            )

        def inverse() -> arb:
            return ((self._tail(high - self.shift) - ball(delta)) / self._tail(high)).log()

        found = upper(certified(inverse))
        if math.isfinite(found) and at_most(lambda: self.delta_ball(least_reading(found)), delta):
            return found
        return super()._epsilon(delta)

    def outputs(self) -> OutputPair | None:
        reach = max(3, math.ceil(5 * self.scale))
        if 2 * reach + self.shift > 200:
            return None
        places = range(-reach, self.shift + reach + 1)
        below = [float(self._tail(y)) for y in range(-reach - self.shift, self.shift + reach + 2)]
        mass = {
            y: below[i] - below[i + 1]
            for i, y in enumerate(range(-reach - self.shift, self.shift + reach + 1))
        }
        p, q = (tuple(mass[y - centre] for y in places) for centre in (self.shift, 0))
        return OutputPair(tuple(map(str, places)), p, q, discrete=True)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(shift={self.shift}, scale={readable(self.scale)})"


class DiscreteLaplaceLoss(_IntegerNoiseLoss):
    """The loss of one integer result with discrete Laplace noise: P[X = x] proportional to e^(-|x|/scale).

    Source: Ghosh, Roughgarden and Sundararajan 2012 (the geometric mechanism); integer_noise.md.

    Example:
        >>> DiscreteLaplaceLoss(shift=1, scale=Fraction(2)).maximum()
        0.5
    """

    def _first_above(self, epsilon: Fraction) -> int | None:
        if epsilon * self.scale >= self.shift:
            return None
        return max(math.floor((epsilon * self.scale + self.shift) / 2) + 1, 0)

    def _everything_above(self, epsilon: Fraction) -> bool:
        return epsilon * self.scale < -self.shift

    def _loss_at(self, output: int) -> Fraction:
        return (abs(output) - abs(output - self.shift)) / self.scale

    def _outputs_between(self) -> tuple[int, int]:
        return -1, self.shift

    def _tail(self, k: int) -> arb:
        ratio = ball(-1 / self.scale)
        if k > 0:
            return (k * ratio).exp() / (1 + ratio.exp())
        return 1 - ((1 - k) * ratio).exp() / (1 + ratio.exp())

    def rdp_ball(self, alpha: Fraction) -> arb:
        """The finite sum over the losses, those of the two ends as a whole, the rest a geometric series."""
        s, t = self.shift, 1 / self.scale
        if alpha == 1:
            q = ball(-t).exp()
            ends = ball(s * t) * (1 - ball(-s * t).exp()) / (1 + q)
            # sum over 0 < y < s of (1-q)/(1+q) q^(s-y) (2y-s) t, by i = s - y
            inner = (
                sum(((ball(-i * t)).exp() * (s - 2 * i) for i in range(1, s)), arb(0))
                * (1 - q)
                / (1 + q)
            )
            return ends + inner * ball(t)
        q, order = ball(-t).exp(), alpha - 1
        top = ball(order * s * t).exp() / (1 + q)
        bottom = ball(-(order + 1) * s * t).exp() / (1 + q)
        # y from 1 to s-1: (1-q)/(1+q) e^(-(s-y)t) e^(order (2y-s) t), a geometric series in y with ratio e^((1+2
        # order)t)
        step = ball((1 + 2 * order) * t)
        first = ball(-(s - 1) * t + order * (2 - s) * t).exp()
        inner = first * ((s - 1) * step).expm1() / step.expm1() * (1 - q) / (1 + q)
        return (top + bottom + inner).log() / ball(order)

    def maximum(self) -> float:
        return float_upper(self.shift / self.scale)

    def rho(self) -> float:
        """An upper bound: that of every release with this largest loss."""
        e = self.shift / self.scale
        return upper(certified(lambda: ball(e) * ball(e / 2).tanh()))

    def mu(self) -> float:
        """An upper bound: that of every release with this largest loss."""
        e = self.shift / self.scale
        return (
            upper(certified(lambda: 2 * arb(2).sqrt() * ball(e / 2).tanh().erfinv()))
            if e < 100
            else math.inf
        )

    def laws(self) -> tuple[Law, ...]:
        s, t = self.shift, float(1 / self.scale)
        y = np.arange(s + 1, dtype=np.float64)
        p = np.exp(-(s - y) * t) * (-math.expm1(-t) / (1 + math.exp(-t)))
        p[0], p[-1] = math.exp(-s * t) / (1 + math.exp(-t)), 1 / (1 + math.exp(-t))
        values: Floats = (2 * y - s) * t
        return (of_outcomes(values, p),)

    def to_json(self) -> str:
        return json_form.dump("discrete_laplace", 1, {"shift": self.shift, "scale": self.scale})


class DiscreteGaussianLoss(_IntegerNoiseLoss):
    """The loss of one integer result with discrete Gaussian noise: P[X = x] proportional to e^(-x^2/(2 scale^2)).

    `rdp` and `rho` are those of Gaussian noise, which bound it; delta and epsilon are exact.

    Source: Canonne, Kamath and Steinke 2020; integer_noise.md.

    Example:
        >>> loss = DiscreteGaussianLoss(shift=1, scale=Fraction(5))
        >>> loss.rho(), round(loss.epsilon(1e-6), 4)
        (0.02, 0.835)
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.scale > _LARGEST_SCALE:
            rule = (
                f"sums of discrete Gaussian noise are exact for a scale of at most {_LARGEST_SCALE}"
            )
            hint = "Use ZcdpLoss(Fraction(shift)**2 / (2 * scale**2)), which holds for every scale."
            raise InvalidInput(f"scale={readable(self.scale)}", rule, hint)

    def _first_above(self, epsilon: Fraction) -> int:
        return math.floor(epsilon * self.scale**2 / self.shift + Fraction(self.shift, 2)) + 1

    def _loss_at(self, output: int) -> Fraction:
        return (2 * output - self.shift) * self.shift / (2 * self.scale**2)

    def _outputs_between(self) -> tuple[int, int]:
        far = math.ceil(40 * self.scale) + 40
        return -far, self.shift + far

    def _tail(self, k: int) -> arb:
        if k <= 0:
            return 1 - self._tail(1 - k)
        return _half_sum(self.scale, k, ctx.prec) / _whole_sum(self.scale, ctx.prec)

    def rdp_ball(self, alpha: Fraction) -> arb:
        return ball(alpha * self.shift**2 / (2 * self.scale**2))

    def maximum(self) -> float:
        return math.inf

    def rho(self) -> float:
        return float_upper(self.shift**2 / (2 * self.scale**2))

    def mu(self) -> float:
        """None is certified: its tails are not those of Gaussian noise."""
        return math.inf

    def laws(self) -> tuple[Law, ...]:
        sigma, s = float(self.scale), self.shift
        far = math.ceil(_REACH * sigma) + 1
        x = np.arange(-far, far + 1, dtype=np.float64)
        weights = np.exp(-((x / sigma) ** 2) / 2)
        weights[weights < _FAINT] = 0.0
        values: Floats = (2 * (x + s) - s) * s / (2 * sigma**2)
        return (of_outcomes(values, weights / weights.sum(), _FAINT),)

    def to_json(self) -> str:
        return json_form.dump("discrete_gaussian", 1, {"shift": self.shift, "scale": self.scale})


@lru_cache(maxsize=256)
def _half_sum(scale: Fraction, k: int, bits: int) -> arb:
    """The sum of e^(-j^2/(2 scale^2)) over j >= k >= 1: terms by a recurrence,
    then a geometric series above the rest.
    """
    half = 1 / (2 * scale**2)
    term, ratio, step = (
        ball(-(k**2) * half).exp(),
        ball(-(2 * k + 1) * half).exp(),
        ball(-2 * half).exp(),
    )
    total, j = arb(0), k
    count = math.ceil(math.sqrt(2 * bits) * float(scale)) + 2
    for _ in range(count):
        total += term
        term *= ratio
        ratio *= step
        j += 1
    rest = term / (1 - ball(-j / scale**2).exp())
    return total + rest.union(arb(0))


@lru_cache(maxsize=256)
def _whole_sum(scale: Fraction, bits: int) -> arb:
    return 1 + 2 * _half_sum(scale, 1, bits)


def _load_laplace(fields: dict[str, Any]) -> Loss:
    return DiscreteLaplaceLoss(
        json_form.whole(fields, "shift"), json_form.rational(fields, "scale")
    )


def _load_gaussian(fields: dict[str, Any]) -> Loss:
    return DiscreteGaussianLoss(
        json_form.whole(fields, "shift"), json_form.rational(fields, "scale")
    )


Loss.kinds["discrete_laplace", 1] = _load_laplace
Loss.kinds["discrete_gaussian", 1] = _load_gaussian

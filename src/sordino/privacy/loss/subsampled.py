"""The loss of a Laplace or Gaussian release on a Poisson sample: each person is in it independently, with chance
`rate`.

The worst pair is P = (1 - r) Z + r (Z + c) against Q = (1 - r) Z + r (Z + d): Z the noise in units of its scale, c
`shift`, d = 0 if a person is added or removed, d = -c if one is replaced. The loss never falls along the output y, so
every view is a formula in the place y where it takes a value. Proofs: subsampled.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import wraps
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeVar, cast

import numpy as np
from flint import arb, ctx

from sordino.errors import InvalidInput
from sordino.privacy import json_form
from sordino.privacy.ball import ball, certified, lower, upper
from sordino.privacy.exact import decimal_reading, float_upper, readable, show
from sordino.privacy.loss.base import Loss, OutputPair
from sordino.privacy.loss.gaussian import GaussianLoss
from sordino.privacy.loss.laplace import LaplaceLoss
from sordino.privacy.loss.law import CELL_ERROR, Contrast, Floats, Law
from sordino.privacy.loss.sampled_noise import (
    LaplaceNoise,
    Noise,
    NormalNoise,
    near,
    nearest_log,
    unmix,
)
from sordino.privacy.neighbors import Neighbors

__all__ = ["SubsampledLoss"]

_A = ParamSpec("_A")
_T = TypeVar("_T")

_BASES: dict[str, type[LaplaceLoss | GaussianLoss]] = {
    "gaussian": GaussianLoss,
    "laplace": LaplaceLoss,
}
# of a float cell of sampled Gaussian noise; measured against balls it is below 2^-36
_NORMAL_ERROR = 2.0**-33
_MOST_TERMS = 2000  # of a binomial sum; beyond it an integral is faster


def _at_rate_one_unsampled(
    view: Callable[Concatenate[SubsampledLoss, _A], _T],
) -> Callable[Concatenate[SubsampledLoss, _A], _T]:
    """The view of the release without sampling where everybody is in the sample."""

    @wraps(view)
    def chosen(self: SubsampledLoss, *args: _A.args, **kwargs: _A.kwargs) -> _T:
        if self.rate < 1:
            return view(self, *args, **kwargs)
        return cast("_T", getattr(self._unsampled, view.__name__)(*args, **kwargs))

    return cast("Callable[Concatenate[SubsampledLoss, _A], _T]", chosen)


class _Split(NamedTuple):
    """The probabilities of a loss at most, and above, some value."""

    below_p: arb
    below_q: arb
    above_p: arb
    above_q: arb


@dataclass(frozen=True, repr=False)
class SubsampledLoss(Loss):
    """The privacy loss of one Laplace or Gaussian release on a Poisson sample.

    `base.shift` is how far one person's presence in the sample moves the result, over the scale, for both relations of
    neighbours. A replaced person may leave one end and enter at the other, so that without sampling the shift is twice
    that.

    Privacy: holds if the sample is drawn afresh for this release, with every person in it independently with
    probability `rate`, and stays secret. REPLACE with Laplace noise needs that a record moves one coordinate of the
    result only.

    Source: Zhu, Dong and Wang 2022 for a person added or removed; subsampled.md proves both pairs.

    Example:
        >>> step = SubsampledLoss(GaussianLoss(Fraction(1)), rate=Fraction(1, 100))
        >>> step
        SubsampledLoss(GaussianLoss(shift=1), rate=0.01)
        >>> round(step.epsilon(1e-5), 4), round(step.base.epsilon(1e-5), 4)
        (0.1995, 4.3772)
    """

    base: LaplaceLoss | GaussianLoss
    rate: Fraction
    neighbors: Neighbors = Neighbors.ADD_REMOVE

    def __post_init__(self) -> None:
        if not isinstance(self.base, LaplaceLoss | GaussianLoss):
            rule = "only the loss of one Laplace or Gaussian release can be subsampled"
            hint = "Pass the loss of the release made on the sample; for a finite pair use SampledFiniteLoss."
            raise InvalidInput(f"base={show(self.base)}", rule, hint)
        rate = decimal_reading("rate", self.rate)
        if not 0 < rate <= 1:
            hint = "Pass the probability that a person is in the sample, such as Fraction(1, 100)."
            raise InvalidInput(
                f"rate={show(self.rate)}", "rate must be greater than 0 and at most 1", hint
            )
        object.__setattr__(self, "rate", rate)
        object.__setattr__(self, "neighbors", Neighbors(self.neighbors))

    @property
    def relation(self) -> Neighbors:
        return self.neighbors

    @property
    def _replaced(self) -> bool:
        return self.neighbors is Neighbors.REPLACE

    @property
    def _other(self) -> Fraction:
        """The centre d of what a sampled person makes of Q."""
        return -self.base.shift if self._replaced else Fraction(0)

    @property
    def _unsampled(self) -> LaplaceLoss | GaussianLoss:
        """The release on everybody, which sampling can only make more private."""
        return type(self.base)(self.base.shift - self._other)

    @property
    def _noise(self) -> Noise:
        return (
            LaplaceNoise(self.base.shift)
            if isinstance(self.base, LaplaceLoss)
            else NormalNoise(self.base.shift)
        )

    def _ends(self) -> tuple[arb, arb]:
        """The smallest and the largest loss, at the working precision."""
        r = ball(self.rate)
        if isinstance(self.base, GaussianLoss):
            return arb.neg_inf() if self._replaced else (-r).log1p(), arb.pos_inf()
        t = ball(self.base.shift)
        low, high = (r * (-t).expm1()).log1p(), (r * t.expm1()).log1p()
        return (low - high, high - low) if self._replaced else (low, high)

    def _certified_ends(self) -> tuple[arb, arb]:
        return certified(lambda: self._ends()[0]), certified(lambda: self._ends()[1])

    def _place(self, value: Fraction) -> arb:
        """The output y at which the loss is `value`, strictly between its ends."""
        noise, r, loss = self._noise, ball(self.rate), ball(value)
        if not self._replaced:
            return ball(self.base.shift / 2) + (loss.expm1() / r).log1p() * ball(
                noise.outputs_per_loss
            )
        return noise.mirrored_place(loss if value >= 0 else -loss, r) * (1 if value >= 0 else -1)

    def _split(self, value: Fraction) -> _Split:
        low, high = self._ends()
        loss, none, every = ball(value), arb(0), arb(1)
        if loss < low:
            return _Split(none, none, every, every)
        if loss >= high or self._is_top(value):
            return _Split(every, every, none, none)
        if not (low < loss < high or self._is_top(-value)):
            unknown = arb(0.5, 0.5)  # too close to an end to tell at this precision
            return _Split(unknown, unknown, unknown, unknown)
        return self._split_at(self._place(value))

    def _is_top(self, value: Fraction) -> bool:
        """Whether a rational value is the largest loss: only for Laplace noise, replaced, at rate 1/2."""
        return (
            value == self.base.shift
            and 2 * self.rate == 1
            and self._replaced
            and isinstance(self.base, LaplaceLoss)
        )

    def _split_at(self, y: arb) -> _Split:
        """The probabilities of an output at most, and above, y."""
        tail, r, c, d = self._noise.tail, ball(self.rate), ball(self.base.shift), ball(self._other)
        return _Split(
            (1 - r) * tail(-y) + r * tail(c - y),
            (1 - r) * tail(-y) + r * tail(d - y),
            (1 - r) * tail(y) + r * tail(y - c),
            (1 - r) * tail(y) + r * tail(y - d),
        )

    @_at_rate_one_unsampled
    def delta_ball(self, epsilon: Fraction) -> arb:
        factor = ball(epsilon).exp()
        removed = self._split(epsilon)
        forth = removed.above_p - factor * removed.above_q
        if self._replaced:  # both directions are the same
            return forth
        added = self._split(-epsilon)
        return forth.max(added.below_q - factor * added.below_p)

    @_at_rate_one_unsampled
    def _epsilon(self, delta: Fraction) -> float:
        return super()._epsilon(delta)

    @_at_rate_one_unsampled
    def _epsilon_guess(self, delta: Fraction) -> float:
        guess = self.base._epsilon_guess(min(delta / self.rate, Fraction(1, 2)))
        return max(
            math.log1p(float(self.rate) * math.expm1(guess)) if guess < 700 else guess, 2.0**-1000
        )

    @_at_rate_one_unsampled
    def rdp_ball(self, alpha: Fraction) -> arb:
        """Removing a person is the worse direction at every order (subsampled.md, Theorem 3), and is the one computed.

        A binomial sum for whole orders if a person is added or removed (Mironov, Talwar and Zhang 2019),
        otherwise an integral in balls, tails included.
        """
        r = ball(self.rate)
        if alpha == 1:
            return self._noise.integral(alpha, self.rate, self._other)
        if self._replaced or alpha.denominator != 1 or alpha > _MOST_TERMS:
            power = self._noise.integral(alpha, self.rate, self._other)
        else:
            n, moment = int(alpha), self._noise.moment
            power = sum(
                (
                    ball(math.comb(n, k)) * (1 - r) ** (n - k) * r**k * moment(k)
                    for k in range(n + 1)
                ),
                arb(0),
            )
        return power.log() / ball(alpha - 1)

    @_at_rate_one_unsampled
    def trade_off_ball(self, alpha: Fraction) -> arb:
        error = self._split_at(self._quantile(alpha)).above_q
        if self._replaced:
            return error
        r = ball(self.rate)
        return error.min((1 - r) * ball(1 - alpha) + r * self.base.trade_off_ball(alpha))

    def _quantile(self, alpha: Fraction) -> arb:
        """The y with P[output <= y] = alpha: Newton's method on an interval that always holds it, with bisection."""
        noise, target, r, c = self._noise, ball(alpha), ball(self.rate), ball(self.base.shift)
        first = -noise.tail_inverse(alpha)  # of the part at 0; that of the part at c is c further
        where = first.union(first + c)
        for _ in range(4 * ctx.prec):
            before, middle = where, where.mid()
            slope = (1 - r) * noise.density(where) + r * noise.density(where - c)
            newton = middle - (self._split_at(middle).below_p - target) / slope
            if newton.is_finite():
                where = where.intersection(newton)
            if not where.rad() < before.rad() / 2:
                for share in (Fraction(3, 8), Fraction(5, 8)):
                    low, high = where.lower(), where.upper()
                    point = (low + (high - low) * ball(share)).mid()
                    gap = self._split_at(point).below_p - target
                    where = where.intersection(
                        point.union(high) if gap < 0 else low.union(point) if gap > 0 else where
                    )
            if not where.rad() < before.rad() * 0.9:
                break
        return where

    @_at_rate_one_unsampled
    def cdf_ball(self, value: Fraction) -> arb:
        return self._split(value).below_p

    @_at_rate_one_unsampled
    def mass_ball(self, low: Fraction, high: Fraction) -> arb:
        a, b = self._split(low), self._split(high)
        return a.above_p - b.above_p if a.above_p < 0.5 else b.below_p - a.below_p

    @_at_rate_one_unsampled
    def maximum(self) -> float:
        if isinstance(self.base, GaussianLoss):
            return math.inf
        return (
            float_upper(self.base.shift)
            if self._is_top(self.base.shift)
            else upper(certified(self._top))
        )

    def _top(self) -> arb:
        """The largest loss, of Laplace noise."""
        return self._ends()[1]

    @_at_rate_one_unsampled
    def rho(self) -> float:
        """An upper bound; for Gaussian noise and ADD_REMOVE no smaller rho holds (subsampled.md, Theorem 4)."""
        if isinstance(self.base, LaplaceLoss):
            bound = upper(certified(lambda: self._top() * (self._top() / 2).tanh()))
        elif self._replaced:
            bound = upper(
                certified(lambda: ball(self.base.shift**2 / 2) - ball(-self.rate).log1p())
            )
        else:
            bound = math.inf
        return min(bound, self._unsampled.rho())

    @_at_rate_one_unsampled
    def mu(self) -> float:
        """An upper bound; for Gaussian noise and ADD_REMOVE no smaller mu holds (subsampled.md, Theorem 4)."""
        if isinstance(self.base, LaplaceLoss):
            bound = upper(certified(lambda: 2 * arb(2).sqrt() * (self._top() / 2).tanh().erfinv()))
        elif self._replaced:
            bound = upper(
                certified(lambda: ball(self.base.shift) + arb(2).sqrt() * ball(self.rate).erfinv())
            )
        else:
            bound = math.inf
        return min(bound, self._unsampled.mu())

    @_at_rate_one_unsampled
    def outputs(self) -> OutputPair:
        r, c, d = float(self.rate), float(self.base.shift), float(self._other)
        reach = 4.0 if isinstance(self.base, GaussianLoss) else 5.0
        y = np.linspace(d - reach, c + reach, 401)

        def density(x: Floats) -> Floats:
            if isinstance(self.base, LaplaceLoss):
                return np.exp(-np.abs(x)) / 2
            return np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)

        p, q = ((1 - r) * density(y) + r * density(y - centre) for centre in (c, d))
        return OutputPair(tuple(y.tolist()), tuple(p.tolist()), tuple(q.tolist()), discrete=False)

    @_at_rate_one_unsampled
    def laws(self) -> tuple[Law, ...]:
        return _float_laws(self)

    def to_json(self) -> str:
        kind = next(name for name, base in _BASES.items() if isinstance(self.base, base))
        fields: dict[str, json_form.Field] = {
            "base": kind,
            "shift": self.base.shift,
            "rate": self.rate,
        }
        return json_form.dump("subsampled", 1, {**fields, "neighbors": self.neighbors.value})

    def __repr__(self) -> str:
        which = f", neighbors={self.neighbors.value!r}" if self._replaced else ""
        return f"SubsampledLoss({self.base!r}, rate={readable(self.rate)}{which})"


def _float_laws(loss: SubsampledLoss) -> tuple[Law, ...]:
    """The law of the loss when a person is removed, and when one is added unless it is the same."""
    noise, rate, shift, other = loss._noise, loss.rate, loss.base.shift, loss._other
    r, keep, c, d, pace = (float(x) for x in (rate, 1 - rate, shift, other, noise.outputs_per_loss))
    ends = loss._certified_ends()
    low, high = (near(end) for end in ends)
    # below every loss when a person is added or removed
    floor = near(certified(lambda: ball(-rate).log1p()))
    log_rate, log_odds = nearest_log(rate), nearest_log(1 / rate - 1)

    def mirrored(main: Floats, step: Floats) -> tuple[Floats, Floats]:
        y = np.copysign(noise.mirrored_stretch(np.abs(main), rate), main) * pace
        from_zero = np.maximum(np.maximum(main[:-1], -main[1:]), 0)
        across = (main[:-1] < 0) & (main[1:] > 0)
        return y, np.where(across, np.diff(y), noise.mirrored_width(from_zero, step, rate) * pace)

    def straight(main: Floats, rest: Floats, step: Floats) -> tuple[Floats, Floats]:
        above, close = (main - floor[0]) + (rest - floor[1]), np.expm1(main) < -r / 2
        unsampled = np.where(close, log_odds + np.log(np.expm1(above)), unmix(main, log_rate))
        # of the loss by the unsampled one
        slope = np.where(close, -np.expm1(-above), r - keep * np.expm1(-main))
        return c / 2 + unsampled * pace, np.log1p(np.expm1(step) / slope[:-1]) * pace

    def noise_cells(edges: Floats) -> tuple[Floats, Floats, Floats]:
        """The probabilities of the cells under Z, Z + c and Z + d."""
        # The edges, clipped to the law: a sum of two floats, as its ends must be known better than to one float.
        under = (edges < low[0]) | ((edges == low[0]) & (low[1] >= 0))
        over = (edges > high[0]) | ((edges == high[0]) & (high[1] <= 0))
        main = np.where(under, low[0], np.where(over, high[0], edges))
        rest = np.where(under, low[1], np.where(over, high[1], 0.0))
        with np.errstate(all="ignore"):
            step = np.diff(main) + np.diff(rest)
            y, width = mirrored(main, step) if other else straight(main, rest, step)
            if math.isfinite(high[0]):
                y = np.clip(np.where(under, d, np.where(over, c, y)), d, c)
            width = np.where(step > 0, np.where(np.isfinite(width), width, math.inf), 0.0)
            at_zero, at_c = (noise.cells(y[:-1] - x, y[1:] - x, width) for x in (0.0, c))
            return at_zero, at_c, noise.cells(y[:-1] - d, y[1:] - d, width) if other else at_zero

    def contrast(edges: Floats) -> Contrast:
        at_zero, at_c, at_d = noise_cells(edges)
        p, q = keep * at_zero + r * at_c, keep * at_zero + r * at_d
        return Contrast(p, q, r * (at_c - at_d), error * r * (at_c + at_d))

    def cells(edges: Floats) -> tuple[Floats, Floats]:
        return contrast(edges)[:2]

    def reversed_contrast(edges: Floats) -> Contrast:
        p, q, excess, excess_error = (x[::-1] for x in contrast(-edges[::-1]))
        return Contrast(q, p, -excess, excess_error)

    def reversed_cells(edges: Floats) -> tuple[Floats, Floats]:
        return reversed_contrast(edges)[:2]

    atoms = _float_atoms(loss, low[0], high[0]) if math.isfinite(high[0]) else []
    first, last = lower(ends[0]), upper(ends[1])
    # about its deviation
    spread = r * min(1.0, c) if atoms else min(c, r * math.sqrt(math.expm1(min(c * c, 700.0))))
    error = min(CELL_ERROR, 2.0**-43 * (1 + c)) if atoms else _NORMAL_ERROR
    removed = Law(
        tuple((value, p) for value, p, _ in atoms), first, last, spread, cells, 0.0, error, contrast
    )
    if other:
        return (removed,)
    turned = tuple((-value, q) for value, _, q in reversed(atoms))
    added = Law(turned, -last, -first, spread, reversed_cells, 0.0, error, reversed_contrast)
    return removed, added


def _float_atoms(loss: SubsampledLoss, low: float, high: float) -> list[tuple[float, float, float]]:
    """The smallest and the largest loss of Laplace noise, with their probabilities under P and Q."""

    def chance(place: Fraction, which: int) -> float:
        return near(certified(lambda: loss._split_at(ball(place))[which]))[0]

    bottom, top = loss._other, loss.base.shift
    return [(low, chance(bottom, 0), chance(bottom, 1)), (high, chance(top, 2), chance(top, 3))]


def _load(fields: Mapping[str, Any]) -> SubsampledLoss:
    base = fields.get("base")
    if not isinstance(base, str) or base not in _BASES:
        rule = f"the base must be one of: {', '.join(_BASES)}"
        raise InvalidInput(f"base={show(base)}", rule, "Pass a text made by to_json().")
    shift, rate = json_form.rational(fields, "shift"), json_form.rational(fields, "rate")
    return SubsampledLoss(_BASES[base](shift), rate, Neighbors(fields.get("neighbors")))


Loss.kinds["subsampled", 1] = _load

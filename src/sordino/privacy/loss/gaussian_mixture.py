"""The loss of Normal noise whose centre moves by a random distance: P = sum of p_i N(s_i, 1), Q = N(0, 1).

So it is for matrix mechanisms (correlated noise) with sampled participation. The loss grows along the output y, so
delta is decided at one threshold. Sums take its law on cells of y, split to their ends: proofs in gaussian_mixture.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from flint import arb, ctx

from sordino.errors import InvalidInput
from sordino.privacy import json_form
from sordino.privacy.ball import ball
from sordino.privacy.ball import normal_tail as tail
from sordino.privacy.exact import bounds, decimal_reading, float_upper, readable, show
from sordino.privacy.loss.base import Floats, Loss, OutputPair
from sordino.privacy.loss.by_profile import ProfileLoss
from sordino.privacy.loss.law import Law, cells_of
from sordino.privacy.neighbors import Neighbors

__all__ = ["GaussianMixtureLoss"]

_LARGEST_SHIFT = 100
_REACH = 37.0
_STEPS = 64
# of an interval: halves would hit a dyadic place, which no precision tells from it
_NEARLY_HALF = Fraction(10, 21)
_TAIL = 1e-298
"""More than a standard normal variable has beyond `_REACH`."""
_DIGITS = 2.0**-40
"""A relative error that no cell probability of y, nor a loss at its ends, exceeds."""


@dataclass(frozen=True, repr=False)
class GaussianMixtureLoss(ProfileLoss):
    """The loss of one Gaussian release that one person moves by shifts[i] scales with probability probabilities[i].

    `rdp`, `rho` and `mu` are upper bounds: those without the secret of which shift it was.

    Privacy: for one person added or removed, if which shift happens is drawn afresh and stays secret. Vectors enter by
    their lengths.

    Source: Choquette-Choo, Ganesh, Steinke and Thakurta 2023 (arXiv 2310.15526); gaussian_mixture.md.

    Example:
        >>> loss = GaussianMixtureLoss((0, Fraction(1, 2), 1), (Fraction(98, 100), Fraction(1, 100), Fraction(1, 100)))
        >>> round(loss.epsilon(1e-5), 4)
        0.2415
    """

    shifts: tuple[Fraction, ...]
    probabilities: tuple[Fraction, ...]

    def __post_init__(self) -> None:
        hint = "Pass shifts (0, 1) and probabilities (Fraction(99, 100), Fraction(1, 100)), for example."
        shifts = tuple(bounds("shift", s).upper for s in self.shifts)
        chances = tuple(decimal_reading("probability", p) for p in self.probabilities)
        if len(shifts) != len(chances) or not shifts or min(chances) < 0 or sum(chances) != 1:
            rule = "there must be a probability for each shift, none negative, and they must sum to exactly 1"
            raise InvalidInput(f"probabilities={show(self.probabilities)}", rule, hint)
        joined: dict[Fraction, Fraction] = {}
        for s, p in zip(shifts, chances, strict=True):
            if not 0 <= s <= _LARGEST_SHIFT:
                rule = f"a shift must be from 0 to {_LARGEST_SHIFT} scales"
                raise InvalidInput(
                    f"shift={show(s)}", rule, "It is sensitivity / scale, the length of a vector."
                )
            if p:
                joined[s] = joined.get(s, Fraction(0)) + p
        if set(joined) == {0}:
            raise InvalidInput(
                f"shifts={show(self.shifts)}",
                "some shift must be above 0 and have a probability",
                hint,
            )
        object.__setattr__(self, "shifts", tuple(sorted(joined)))
        object.__setattr__(self, "probabilities", tuple(joined[s] for s in sorted(joined)))

    @property
    def relation(self) -> Neighbors:
        return Neighbors.ADD_REMOVE

    @property
    def idealized(self) -> bool:
        return True

    @property
    def _still(self) -> Fraction:
        """The probability that nothing moves: the ratio of P to Q is always above it."""
        return self.probabilities[0] if self.shifts[0] == 0 else Fraction(0)

    def _terms(self) -> list[tuple[arb, arb]]:
        return [(ball(p), ball(s)) for p, s in zip(self.probabilities, self.shifts, strict=True)]

    def _ratio(self, y: arb) -> arb:
        return sum((p * (s * y - s**2 / 2).exp() for p, s in self._terms()), arb(0))

    def _place(self, value: Fraction) -> arb | None:
        """A ball that holds the y with loss `value`; None if every loss is above it."""
        wanted = ball(value).exp()
        if wanted <= ball(self._still):
            return None
        low, high = arb(-1), arb(1)
        while not self._ratio(low) < wanted:
            low *= 2
            if low < -(2**40):  # too near the smallest loss to tell at this precision
                return arb(0, 2**41)
        while not self._ratio(high) > wanted:
            high *= 2
        for _ in range(ctx.prec + 60):
            middle = (low + (high - low) * ball(_NEARLY_HALF)).mid()
            at = self._ratio(middle)
            if at < wanted:
                low = middle
            elif at > wanted:
                high = middle
            else:
                break
        return low.union(high)

    def delta_ball(self, epsilon: Fraction) -> arb:
        factor = ball(epsilon).exp()
        y, z = self._place(epsilon), self._place(-epsilon)
        removed = (
            1 - factor
            if y is None
            else sum((p * tail(y - s) for p, s in self._terms()), arb(0)) - factor * tail(y)
        )
        if z is None:
            return removed
        return removed.max(
            tail(-z) - factor * sum((p * tail(s - z) for p, s in self._terms()), arb(0))
        )

    def _epsilon_guess(self, delta: Fraction) -> float:
        mu = float(self.shifts[-1])
        return mu * mu / 2 + mu * math.sqrt(
            max(1.0, -2 * math.log(max(delta, Fraction(1, 10**300))))
        )

    def rdp_ball(self, alpha: Fraction) -> arb:
        if alpha == 1:
            return sum((p * s**2 / 2 for p, s in self._terms()), arb(0))
        a = ball(alpha)
        return sum(
            (p * (a * (a - 1) * s**2 / 2).expm1() for p, s in self._terms()), arb(0)
        ).log1p() / (a - 1)

    def maximum(self) -> float:
        return math.inf

    def rho(self) -> float:
        return float_upper(self.shifts[-1] ** 2 / 2)

    def mu(self) -> float:
        return float_upper(self.shifts[-1])

    def outputs(self) -> OutputPair:
        y = np.linspace(-4.0, 4.0 + float(self.shifts[-1]), 401)
        normal = math.sqrt(2 * math.pi)
        each = zip(self.probabilities, self.shifts, strict=True)
        p = sum(
            (float(w) * np.exp(-((y - float(s)) ** 2) / 2) / normal for w, s in each),
            np.zeros(len(y)),
        )
        q = np.exp(-(y**2) / 2) / normal
        return OutputPair(tuple(y.tolist()), tuple(p.tolist()), tuple(q.tolist()), discrete=False)

    @cached_property
    def _cells(self) -> tuple[Floats, Floats, Floats]:
        """The loss at the edges of cells of y, and the probabilities of the cells under P and Q."""
        from scipy.special import ndtr

        end = float(self.shifts[-1]) + _REACH
        y = np.arange(-_REACH, end + 1 / _STEPS, 1 / _STEPS)

        def normal(z: Floats) -> Floats:
            cell: Floats = np.where(
                z[:-1] < 0, ndtr(z[1:]) - ndtr(z[:-1]), ndtr(-z[:-1]) - ndtr(-z[1:])
            )
            return cell

        pairs = [(float(w), float(s)) for w, s in zip(self.probabilities, self.shifts, strict=True)]
        p = sum((w * normal(y - s) for w, s in pairs), np.zeros(len(y) - 1))
        exponents = np.array([s * y - s * s / 2 for _, s in pairs])
        weights = np.array([w for w, _ in pairs])[:, None]
        peak = exponents.max(axis=0)
        far = np.log((weights * np.exp(exponents - peak)).sum(axis=0)) + peak
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            near = np.log1p((weights * np.expm1(exponents)).sum(axis=0))
        return np.where(np.abs(peak) < 1, near, far), p, normal(y)

    def laws(self) -> tuple[Law, ...]:
        losses, p, q = self._cells
        return _split(losses, p, q), _split(-losses[::-1], q[::-1], p[::-1])

    def attained_laws(self) -> tuple[Law, ...]:
        """Each cell of y as one outcome, which is what someone sees who rounds the release."""
        _, p, q = self._cells
        return _merged(p, q), _merged(q[::-1], p[::-1])

    def to_json(self) -> str:
        return json_form.dump(
            "gaussian_mixture", 1, {"shifts": self.shifts, "probabilities": self.probabilities}
        )

    def __repr__(self) -> str:
        sides = (
            f"({', '.join(map(readable, side))})" for side in (self.shifts, self.probabilities)
        )
        return "GaussianMixtureLoss({}, {})".format(*sides)


def _split(losses: Floats, p: Floats, q: Floats) -> Law:
    """Each cell's probability, split between the losses at its ends so that P and Q stay, or more of it goes up."""
    low, step = losses[:-1], np.diff(losses)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        share = (
            1 - np.exp(np.log(q) + low - np.log(p)) + 8 * _DIGITS * (1 + np.abs(low))
        ) / -np.expm1(-step)
    up = np.where(np.isfinite(share), np.clip(share, 0, 1), 1.0)
    masses = np.zeros(len(losses))
    masses[1:] += p * up
    masses[:-1] += p * (1 - up)
    return _law(losses, masses, _TAIL)


def _merged(p: Floats, q: Floats) -> Law:
    clear = (p > 2.0**-900) & (q > 2.0**-900)
    values = np.log(p[clear] / q[clear])
    return _law(values - 2 * _DIGITS * (1 + np.abs(values)), p[clear], 0.0)


def _law(values: Floats, p: Floats, infinite: float) -> Law:
    order = np.argsort(values)
    values, p = values[order], p[order]
    with np.errstate(over="ignore", divide="ignore"):
        q = np.exp(np.minimum(np.log(p) - values, 700.0))
    return Law(
        (), -math.inf, math.inf, float(np.sqrt(p @ values**2)), cells_of(values, p, q), infinite
    )


def _load(fields: dict[str, Any]) -> GaussianMixtureLoss:
    return GaussianMixtureLoss(
        json_form.rationals(fields, "shifts"), json_form.rationals(fields, "probabilities")
    )


Loss.kinds["gaussian_mixture", 1] = _load

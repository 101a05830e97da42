"""Noisy max: the place of a large score among many, by permute-and-flip or by the exponential mechanism.

Theorem. If one person moves each score by at most `sensitivity`, one selection is epsilon-differentially private. Its
whole loss is at most that of Laplace noise (permute-and-flip), or of bounded range (exponential). Proofs in
noisy_max.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, Self, TypeVar

import numpy as np
import numpy.typing as npt
from flint import arb, arb_poly

from sordino.errors import InvalidInput, TooLarge
from sordino.mechanisms.bits import Bits
from sordino.mechanisms.discrete import uniform
from sordino.mechanisms.exponential import draw, happen
from sordino.mechanisms.integers import INT64, narrow
from sordino.mechanisms.lattice import Lattice
from sordino.mechanisms.observer import drawn
from sordino.privacy.ball import at_most, ball, certified, exact_upper, lower, working
from sordino.privacy.exact import Number, decimal_reading, open_unit, positive, readable, show
from sordino.privacy.float_search import smallest_float
from sordino.privacy.loss import LaplaceLoss, Loss
from sordino.privacy.loss.bounded_range import BoundedRangeLoss

__all__ = ["NoisyMax"]

Option = TypeVar("Option")
Gaps = npt.NDArray[Any]

_METHODS = ("permute_and_flip", "exponential")
_MOST_FLIPS = 1000
_ENOUGH = 96


@dataclass(frozen=True, init=False, repr=False)
class NoisyMax:
    """Pick one of many options whose scores are exact multiples of `step`, the better the likelier.

    `monotone`: one person moves all scores the same way, up or down, each by at most `sensitivity`; this saves half of
    the noise. `method="auto"` is permute-and-flip, whose error is never larger at the same epsilon.

    Privacy: epsilon-differentially private. By permute-and-flip the loss is at most that of Laplace noise, rho =
    epsilon + e^-epsilon - 1, about epsilon^2/2; the exponential mechanism is of bounded range, and its rho is
    epsilon^2/8.

    Source: McKenna, Sheldon, "Permute-and-flip" (2020); McSherry, Talwar, "Mechanism design via differential privacy"
    (2007); the two losses: noisy_max.md.

    Example:
        >>> best = NoisyMax.calibrated(epsilon=1, sensitivity=1)
        >>> best
        NoisyMax(epsilon=1, sensitivity=1, method='permute_and_flip')
        >>> best.release([3, 1000, 20])
        1
        >>> best.select(["a", "b", "c"], [3, 1000, 20])
        'b'
        >>> best.interval(0.95, options=3)
        5
    """

    epsilon: Fraction
    sensitivity: Fraction
    method: str
    monotone: bool
    step: Fraction

    def __init__(
        self,
        epsilon: Number,
        sensitivity: Number = 1,
        method: str = "auto",
        monotone: bool = False,
        step: Number = 1,
    ) -> None:
        known = ", ".join(_METHODS)
        if method != "auto" and method not in _METHODS:
            raise InvalidInput(
                f"method={show(method)}",
                f"the method must be auto or one of: {known}",
                "Leave it out.",
            )
        if not isinstance(monotone, bool):
            hint = "Pass True only if one person moves all scores the same way."
            raise InvalidInput(f"monotone={show(monotone)}", "monotone must be True or False", hint)
        unit = decimal_reading("step", step)
        if unit <= 0:
            raise InvalidInput(
                f"step={show(step)}", "step must be greater than zero", "Pass a positive number."
            )
        hint = "It is how far one person can move one score."
        values = {
            "epsilon": positive("epsilon", epsilon).lower,
            "sensitivity": positive("sensitivity", sensitivity, hint).upper,
            "method": _METHODS[0] if method == "auto" else method,
            "monotone": monotone,
            "step": unit,
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @classmethod
    def calibrated(
        cls,
        *,
        epsilon: Number | None = None,
        rho: Number | None = None,
        sensitivity: Number = 1,
        method: str = "auto",
        monotone: bool = False,
        step: Number = 1,
    ) -> Self:
        """The sharpest selection that is epsilon-private; or rho-zCDP, for which "auto" is the exponential mechanism.

        Privacy: epsilon-differentially private, or rho-zCDP, under both readings of a float.
        """
        if (epsilon is None) == (rho is None):
            value = f"epsilon={show(epsilon)}, rho={show(rho)}"
            raise InvalidInput(
                value, "exactly one of epsilon and rho must be given", "Pass epsilon=1, or rho=0.1."
            )
        if epsilon is not None:
            return cls(epsilon, sensitivity, method, monotone, step)
        chosen = _METHODS[1] if method == "auto" else method
        return cls(
            _epsilon_of(positive("rho", rho).lower, chosen), sensitivity, chosen, monotone, step
        )

    @property
    def rate(self) -> Fraction:
        """The exponent of one step of score: an option r steps below the best has weight exp(-rate * r)."""
        return (
            self.epsilon * self.step / (self.sensitivity if self.monotone else 2 * self.sensitivity)
        )

    def loss(self) -> Loss:
        """The privacy loss of one selection."""
        return (
            LaplaceLoss(self.epsilon)
            if self.method == "permute_and_flip"
            else BoundedRangeLoss(self.epsilon)
        )

    def release(self, scores: Any, *, round_to_lattice: bool = False) -> int:
        """The place of one option, drawn by its score.

        Privacy: the guarantee of `loss()`, if neighbouring data move each score by at most `sensitivity` on the
        lattice. With `round_to_lattice` it is that of the rounded scores: see `sordino.rounded_sensitivity`.
        """
        steps = self._steps(scores, round_to_lattice)
        return drawn(self, "release", steps, partial(self._place, _gaps(steps)))

    def select(
        self, options: Iterable[Option], scores: Any, *, round_to_lattice: bool = False
    ) -> Option:
        """One of the options, drawn by its score: the first score is the first option's, whatever their labels."""
        try:
            listed = list(options)
        except TypeError:
            raise InvalidInput(
                f"options={show(options)}", "options must be a list", 'Pass ["a", "b"].'
            ) from None
        count = np.shape(scores)[0] if np.ndim(scores) else 0
        if len(listed) != count:
            value = f"{len(listed)} options and {count} scores"
            raise InvalidInput(
                value, "there must be as many options as scores", "Give each option one score."
            )
        return listed[self.release(scores, round_to_lattice=round_to_lattice)]

    def _place(self, gaps: Gaps, source: Bits, *, always_refine: bool = False) -> int:
        if self.method == "exponential":
            return draw(
                np.ones(len(gaps), np.int64), gaps, self.rate, source, always_refine=always_refine
            )
        heads = np.flatnonzero(happen(gaps, self.rate, source, always_refine=always_refine))
        return int(heads[uniform(len(heads), 1, source)[0]] if len(heads) > 1 else heads[0])

    def _steps(self, scores: Any, rounding: bool) -> Gaps:
        steps = Lattice(self.step).steps(scores, round_to_lattice=rounding)
        if isinstance(steps, int) or (not isinstance(steps, list) and steps.ndim != 1):
            rule = "scores must be a flat list or array, one number for each option"
            raise InvalidInput(f"scores of shape {np.shape(scores)}", rule, "Pass [3, 1, 4].")
        return narrow(steps) if isinstance(steps, list) else steps

    def probabilities(self, scores: Any) -> npt.NDArray[np.float64]:
        """The probability of each option, to the last bit of a float. It is as secret as the scores."""
        _, law = self._law(scores)
        return np.array([float(p.mid()) for p in law])

    def expected_error(self, scores: Any) -> float:
        """How far below the best score the chosen one is on average. It is as secret as the scores."""
        gaps, law = self._law(scores)
        with working(_ENOUGH + 64):
            mean = sum((gap * p for gap, p in zip(gaps, law, strict=True)), arb(0)) * ball(
                self.step
            )
        return float(mean.mid())

    def _law(self, scores: Any) -> tuple[list[int], list[arb]]:
        """The gaps in steps, and the probabilities known to at least `_ENOUGH` bits."""
        gaps = _gaps(self._steps(scores, False)).tolist()
        flips = self.method == "permute_and_flip"
        if flips and len(gaps) > _MOST_FLIPS:
            rule = (
                f"the exact law of permute-and-flip is computed for at most {_MOST_FLIPS} options"
            )
            raise TooLarge(
                f"{len(gaps)} options",
                rule,
                "Ask `interval` for a bound that holds for all scores.",
            )
        size = 2 * _ENOUGH + (2 * len(gaps) if flips else 0)
        while True:
            with working(size):
                weights = [ball(-self.rate * gap).exp() for gap in gaps]
                law = _flips(weights) if flips else _shares(weights)
            if all(p.is_exact() or p.rel_accuracy_bits() >= _ENOUGH for p in law):
                return gaps, law
            size *= 2

    def interval(self, confidence: Number = 0.95, *, options: int) -> int | float:
        """How far the chosen score is at most below the best, with at least that probability, whatever the scores are.

        It is the smallest multiple of the step for which this is so.
        """
        if isinstance(options, bool) or not isinstance(options, int) or options < 1:
            raise InvalidInput(
                f"options={show(options)}",
                "there must be at least one option",
                "Pass how many there are.",
            )
        alpha = 1 - open_unit("confidence", confidence).upper

        def good(steps: int) -> bool:
            return options == 1 or at_most(partial(self._worst_tail, steps + 1, options), alpha)

        low, high = (
            -1,
            math.ceil(
                exact_upper(certified(lambda: ball(options / alpha).log() / ball(self.rate)))
            ),
        )
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if good(middle) else (middle, high)
        width: int | float = Lattice(self.step).values(high)
        return width

    def _worst_tail(self, steps: int, options: int) -> arb:
        """The largest probability of an option this many steps or more below the best: if all others are just there."""
        weight = ball(-self.rate * steps).exp()
        if self.method == "exponential":
            return 1 - 1 / (1 + (options - 1) * weight)
        return 1 + (options * (-weight).log1p()).expm1() / (options * weight)

    def __repr__(self) -> str:
        more = ", monotone=True" if self.monotone else ""
        more += "" if self.step == 1 else f", step={readable(self.step)}"
        sides = f"epsilon={readable(self.epsilon)}, sensitivity={readable(self.sensitivity)}"
        return f"NoisyMax({sides}, method={self.method!r}{more})"


def _gaps(steps: Gaps) -> Gaps:
    """How far each is below the largest, never wrapped."""
    if steps.dtype != object and int(steps.max()) - int(steps.min()) >= INT64:
        steps = steps.astype(object)
    gaps: Gaps = steps.max() - steps
    return gaps


def _shares(weights: list[arb]) -> list[arb]:
    total = sum(weights, arb(0))
    return [w / total for w in weights]


def _flips(weights: list[arb]) -> list[arb]:
    """P[i] = w_i * integral over u in [0, 1] of the product of (1 - w_j u), j != i (noisy_max.md, Theorem 2)."""
    product = arb_poly([1])
    for weight in weights:
        product *= arb_poly([1, -weight])
    law = []
    for weight in weights:
        coefficient, integral = arb(0), arb(0)
        for degree in range(len(weights)):  # product / (1 - weight u), by power series
            coefficient = product[degree] + weight * coefficient
            integral += coefficient / (degree + 1)
        law.append(weight * integral)
    return law


def _epsilon_of(rho: Fraction, method: str) -> Fraction:
    """The largest epsilon, rounded down, with which a selection by this method is rho-zCDP."""
    if method == "exponential":
        return Fraction(lower(certified(lambda: (8 * ball(rho)).sqrt())))
    if rho >= 2**64:  # epsilon + e^-epsilon - 1 <= epsilon, and no float is much nearer
        return rho

    def too_much(epsilon: float) -> bool:
        e = Fraction(epsilon)
        return not at_most(lambda: ball(e) + ball(-e).expm1(), rho)

    high = 2.0
    while not too_much(high):
        high *= 2
    return Fraction(math.nextafter(smallest_float(too_much, 0.0, high), 0.0))

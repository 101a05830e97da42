"""Transfer theorems: how far private answers can be from the population, by four arguments from weak to strong.

Each is a formula with free parameters; every choice of them is a valid bound, so a search in floats picks them and the
bound is then computed from certified numbers. Statements and proofs in transfer.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from sordino.adaptive.noise_of_answers import Noise

__all__ = ["THEOREMS", "Parameters", "Theorem", "least"]

_MARGIN = 1 + 2.0**-40
"""The formulas below are a few float operations on certified numbers, each within a few units of 2^-53."""
_GOLDEN = (math.sqrt(5) - 1) / 2
_LARGEST_EPSILON = 30.0


@dataclass(frozen=True)
class Parameters:
    """Where a formula is evaluated: epsilon = slope * mu; `other` is the second free number, if it has one."""

    slope: float
    other: float

    def epsilon(self, noise: Noise) -> float:
        """The epsilon at which the privacy of all answers is measured."""
        return min(_LARGEST_EPSILON, self.slope * noise.mu)


def _stability(noise: Noise, failure: float, _at: Parameters) -> float:
    return noise.tail_mean(failure / noise.questions) + noise.delta(0.0) / failure


def _monitor(noise: Noise, failure: float, at: Parameters) -> float:
    copies, epsilon = max(1, round(at.other / failure)), at.epsilon(noise)
    some_fails = -math.expm1(copies * math.log1p(-failure))
    moved = math.expm1(epsilon) + copies * noise.delta(epsilon)
    return (noise.tail_mean(1 / (copies * noise.questions)) + moved) / some_fails


def _posterior(noise: Noise, failure: float, at: Parameters) -> float:
    beta, epsilon = failure * min(0.5, at.other), at.epsilon(noise)
    # The least of c + 2d where beta/c + delta/d = failure.
    both = (math.sqrt(beta) + math.sqrt(2 * noise.delta(epsilon))) ** 2 / failure
    return noise.quantile(beta / noise.questions) + math.expm1(epsilon) + both


def _conditional(noise: Noise, failure: float, at: Parameters) -> float:
    epsilon = at.epsilon(noise)
    plus, minus = math.exp(epsilon) + 1, math.expm1(epsilon)
    # The smaller root alpha of plus * alpha - minus * (1 + alpha^2 + scale^2)/2 = 2 delta/failure.
    constant = minus * (1 + noise.scale**2) / 2 + 2 * noise.delta(epsilon) / failure
    square = plus**2 - 2 * minus * constant
    alpha = 2 * constant / (plus + math.sqrt(square)) if square > 0 else 1.0
    return noise.tail_mean(failure / noise.questions) + alpha


@dataclass(frozen=True)
class Theorem:
    """One transfer theorem: `bound` on the population error of all answers, which fails with chance `failure`."""

    name: str
    source: str
    formula: Callable[[Noise, float, Parameters], float]
    start: Parameters

    def best(self, noise: Noise, failure: float) -> Parameters:
        """Parameters for which the bound is about the least."""
        at = self.start
        for width in (3.0, 1.0, 0.5):
            for name in ("slope", "other"):
                centre, others = math.log(getattr(at, name)), {"slope": at.slope, "other": at.other}

                def along(x: float, name: str = name, others: dict[str, float] = others) -> float:
                    return self.formula(noise, failure, Parameters(**{**others, name: math.exp(x)}))

                at = Parameters(
                    **{**others, name: math.exp(least(along, centre - width, centre + width))}
                )
        return at

    def bound(self, noise: Noise, failure: float, at: Parameters) -> float:
        """The bound at these parameters, rounded up; 1 where nothing is guaranteed."""
        return min(1.0, self.formula(noise, failure, at) * _MARGIN)


THEOREMS = (
    Theorem("stability", "the lecture notes' TV stability", _stability, Parameters(1.0, 1.0)),
    Theorem("monitor", "Bassily and others 2016", _monitor, Parameters(4.0, 1.0)),
    Theorem("posterior", "Jung and others 2020", _posterior, Parameters(4.0, 0.01)),
    Theorem("conditional", "transfer.md, Theorem 4", _conditional, Parameters(2.3, 1.0)),
)


def least(value: Callable[[float], float], low: float, high: float, rounds: int = 20) -> float:
    """About where a function that falls, then rises, is least: golden section."""
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_left, at_right = value(left), value(right)
    for _ in range(rounds):
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - _GOLDEN * (high - low)
            at_left = value(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + _GOLDEN * (high - low)
            at_right = value(right)
    return (low + high) / 2

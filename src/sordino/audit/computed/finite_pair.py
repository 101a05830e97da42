"""Two laws with finitely many outputs and rational probabilities: everything about them is decided exactly."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Self

import numpy as np
from flint import arb

from sordino.audit.computed.truth import Truth
from sordino.audit.reporting.report import Figure, Grid, Series
from sordino.privacy.ball import ball, certified, lower, upper
from sordino.privacy.divergence import (
    Distribution,
    total_variation,
    verify_approximate,
    verify_pure,
)
from sordino.privacy.exact import decimal_reading, readable, show

__all__ = ["FinitePair"]

_ROWS = 12
_BARS = 40
_NAMED = 4


@dataclass(frozen=True)
class FinitePair(Truth):
    """Output -> probability on each of the two inputs; an output left out has probability 0."""

    p: Mapping[Any, Fraction]
    q: Mapping[Any, Fraction]
    relation: str = (
        "the two laws as they were given; whether they belong to neighbours is not known here"
    )
    sides: tuple[str, str] = ("first law", "second law")

    @classmethod
    def read(cls, p: Distribution, q: Distribution) -> Self:
        """Two laws as a user writes them: mappings, or sequences for the outputs 0, 1, ...; others are refused."""
        total_variation(p, q)  # complains about everything that is not a pair of laws
        return cls(_named(p), _named(q))

    @cached_property
    def _outputs(self) -> dict[Any, tuple[Fraction, Fraction]]:
        """Every output with its two probabilities."""
        zero = Fraction(0)
        return {y: (self.p.get(y, zero), self.q.get(y, zero)) for y in {**self.p, **self.q}}

    def total_variation(self) -> Fraction:
        """The largest difference of the two probabilities of one event."""
        return total_variation(self.p, self.q)

    def delta_ball(self, epsilon: Fraction) -> arb:
        worst = verify_approximate(self.p, self.q, epsilon, 0)
        return ball(worst.probability) - ball(epsilon).exp() * ball(worst.probability_other)

    def exceeds(self, epsilon: Fraction, delta: Fraction) -> bool:
        return not verify_approximate(self.p, self.q, epsilon, delta)

    def epsilon_bounds(self, delta: Fraction) -> tuple[float, float]:
        masses = list(self._outputs.values())
        swapped = [(b, a) for a, b in masses]
        most = max(_needed_ratio(masses, delta), _needed_ratio(swapped, delta))
        if most == math.inf:
            return math.inf, math.inf
        if most <= 1:
            return 0.0, 0.0
        value = certified(lambda: ball(Fraction(most)).log())
        return max(0.0, lower(value)), upper(value)

    def witness(self, epsilon: Fraction, delta: Fraction) -> str:
        worst = verify_pure(self.p, self.q, epsilon)
        if delta:
            worst = verify_approximate(self.p, self.q, epsilon, delta)
        if not worst.event:
            return ""
        here, there = self.sides if worst.direction == "p over q" else self.sides[::-1]
        p, q = _number(worst.probability), _number(worst.probability_other)
        return f"the output is {self._event(worst.event)}: probability {p} under the {here}, {q} under the {there}"

    def _event(self, event: frozenset[Any]) -> str:
        inside = [y for y in self._outputs if y in event]
        named = ", ".join(map(show, inside[:_NAMED]))
        if len(inside) == 1:
            return named
        more = len(inside) - _NAMED
        return f"one of {named}" + (f" and {more:,} more" if more > 0 else "")

    def profile(self, epsilons: list[float]) -> list[float]:
        masses = np.array(list(self._outputs.values()), float)
        growth = np.exp(epsilons)[:, None, None]
        excess = np.maximum(masses - growth * masses[:, ::-1], 0).sum(axis=1)
        return [float(most) for most in excess.max(axis=1)]

    def table(self) -> Grid:
        rated = [(_log_ratio(a, b), a, b, y) for y, (a, b) in self._outputs.items()]
        rated.sort(key=lambda row: (abs(row[0]), row[1] + row[2]), reverse=True)
        rows = tuple(
            (show(y), _number(a), _number(b), f"{ratio:+.6g}") for ratio, a, b, y in rated[:_ROWS]
        )
        return Grid("The most telling outputs", ("output", *self.sides, "log ratio"), rows)

    def outputs(self) -> Figure:
        shown = list(self._outputs)[:_BARS]
        x = tuple(map(float, range(len(shown))))
        series = tuple(
            Series(name, x, tuple(float(law.get(y, 0)) for y in shown))
            for name, law in zip(self.sides, (self.p, self.q), strict=True)
        )
        ticks = tuple(map(show, shown))
        return Figure("Outputs on the two inputs", "output", "probability", series, "bars", ticks)


def _log_ratio(a: Fraction, b: Fraction) -> float:
    if a == b:
        return 0.0
    if a == 0 or b == 0:
        return math.inf if a else -math.inf
    return float(certified(lambda: ball(a / b).log()).mid())


def _needed_ratio(masses: list[tuple[Fraction, Fraction]], delta: Fraction) -> Fraction | float:
    """The largest (P(E) - delta)/Q(E) over all events: the best ones hold the outputs above some likelihood ratio."""
    certain = sum((a for a, b in masses if b == 0), Fraction(0))
    if certain > delta:
        return math.inf
    best, first, second = Fraction(0), certain, Fraction(0)
    others = [(a, b) for a, b in masses if b]
    for a, b in sorted(others, key=lambda ab: ab[0] / ab[1], reverse=True):
        first, second = first + a, second + b
        best = max(best, (first - delta) / second)
    return best


def _named(given: Any) -> dict[Any, Fraction]:
    if hasattr(given, "tolist"):
        given = given.tolist()
    named = given if isinstance(given, Mapping) else dict(enumerate(given))
    return {y: decimal_reading("probability", value) for y, value in named.items()}


def _number(value: Fraction) -> str:
    text = readable(value)
    return text if len(text) <= 12 else f"{float(value):.6g}"

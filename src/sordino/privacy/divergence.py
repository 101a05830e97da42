"""How well two finite distributions can be told apart: every distance that a privacy promise is made of, certified.

A distribution is a mapping from outcomes to probabilities (an outcome left out has probability 0), or a sequence of
probabilities (outcomes 0, 1, ...). Decisions are exact: e^epsilon is irrational for rational epsilon but 0 (Lindemann),
so enough precision tells a from e^epsilon b. Floats leave rounded up, far enough to be a bound in both their readings.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, TypeAlias

from sordino.errors import InvalidInput
from sordino.privacy.ball import ball, certified, upper, working
from sordino.privacy.exact import (
    Number,
    bounds,
    closed_unit,
    decimal_reading,
    float_upper,
    readable,
    show,
)
from sordino.privacy.wording import a_or_an

__all__ = ["Distribution", "Verdict", "hockey_stick", "max_divergence", "multiplicative_distance", "total_variation",
           "verify_approximate", "verify_pure"]  # fmt: skip

Distribution: TypeAlias = Mapping[Any, Number] | Sequence[Number]
Direction: TypeAlias = Literal["p over q", "q over p"]

_Table = dict[Any, tuple[Fraction, Fraction]]


@dataclass(frozen=True)
class Verdict:
    """Whether a promise holds for two distributions, and the event that strains it most; true if it holds.

    `probability` is the event's under the distribution that `direction` names first, `probability_other` its other one.
    `needed` is the smallest epsilon (of a pure promise) or delta (of an approximate one) that holds, rounded up.
    """

    holds: bool
    event: frozenset[Any]
    probability: Fraction
    probability_other: Fraction
    needed: float
    parameter: Literal["epsilon", "delta"]
    direction: Direction

    def __bool__(self) -> bool:
        return self.holds

    def __str__(self) -> str:
        answer = f"{'holds' if self.holds else 'does not hold'}: {self.parameter} {self.needed} is needed"
        if not self.event:
            return f"{answer}; no event has an excess"
        over, under = self.direction.split(" over ")
        event = ", ".join(sorted(map(repr, self.event)))
        event = event if len(event) <= 80 else event[:77] + "..."
        chances = f"{readable(self.probability)} under {over} and {readable(self.probability_other)} under {under}"
        return f"{answer}; the event {{{event}}} has probability {chances}"


def total_variation(p: Distribution, q: Distribution) -> Fraction:
    """The largest difference between the probabilities that two distributions give to one event.

    Example:
        >>> total_variation([0.75, 0.25], [0.25, 0.75])
        Fraction(1, 2)
    """
    return sum((a - b for a, b in _table(p, q).values() if a > b), Fraction(0))


def max_divergence(p: Distribution, q: Distribution) -> float:
    """The smallest epsilon with p(E) <= e^epsilon q(E) for every event E, rounded up; inf if q misses an outcome of p.

    Source: Dwork and Roth 2014, Definition 3.6.

    Example:
        >>> max_divergence([0.75, 0.25], [0.25, 0.75])
        1.0986122886681098
    """
    return _log_upper(*_steepest(_table(p, q)))


def multiplicative_distance(p: Distribution, q: Distribution) -> float:
    """The smallest epsilon that holds for both orders of the two distributions: sup |ln p(E)/q(E)|, rounded up.

    Example:
        >>> multiplicative_distance({"a": 1}, {"a": 0.5, "b": 0.5})
        inf
    """
    return verify_pure(p, q, 0).needed


def hockey_stick(p: Distribution, q: Distribution, epsilon: Number) -> float:
    """The smallest delta with p(E) <= e^epsilon q(E) + delta for every event E, rounded up.

    Epsilon may be any real number; a float counts at its smaller reading, where delta is larger.

    Example:
        >>> hockey_stick([0.75, 0.25], [0.25, 0.75], 0)
        0.5
    """
    lowest = bounds("epsilon", epsilon).lower
    return _gap_upper(*_excess(_table(p, q), lowest)[1:], lowest)


def verify_pure(p: Distribution, q: Distribution, epsilon: Number) -> Verdict:
    """Whether p(E) <= e^epsilon q(E) and q(E) <= e^epsilon p(E) for every event E, decided exactly.

    Privacy: if it holds for the outputs on every two neighbours, the mechanism is epsilon-DP. A float epsilon counts at
    its smaller reading, so a verdict that holds does so for the number typed and the number stored.

    Example:
        >>> print(verify_pure([0.75, 0.25], [0.25, 0.75], 1))
        does not hold: epsilon 1.0986122886681098 is needed; the event {0} has probability 0.75 under p and 0.25 under q
    """
    lowest = bounds("epsilon", epsilon).lower
    if lowest < 0:
        rule = "epsilon must not be negative: two distributions are never closer than equal"
        raise InvalidInput(f"epsilon={show(epsilon)}", rule, "Pass zero or more.")
    table = _table(p, q)
    direction: Direction = "p over q"
    a, b = _steepest(table)
    c, d = _steepest(_swapped(table))
    if c * b > a * d:
        direction, table, a, b = "q over p", _swapped(table), c, d
    event = frozenset(outcome for outcome, (x, y) in table.items() if x > 0 and x * b == a * y)
    first, second = _masses(table, event)
    return Verdict(
        _sign(a, b, lowest) <= 0, event, first, second, _log_upper(a, b), "epsilon", direction
    )


def verify_approximate(p: Distribution, q: Distribution, epsilon: Number, delta: Number) -> Verdict:
    """Whether p(E) <= e^epsilon q(E) + delta and the same with p and q swapped, for every event E, decided exactly.

    Privacy: if it holds for the outputs on every two neighbours, the mechanism is (epsilon, delta)-DP. Floats count at
    their smaller reading, as in `verify_pure`. A negative epsilon is allowed and asks for more.

    Example:
        >>> bool(verify_approximate([0.75, 0.25], [0.25, 0.75], epsilon=0, delta=0.5))
        True
    """
    lowest, allowed = bounds("epsilon", epsilon).lower, closed_unit("delta", delta).lower
    table = _table(p, q)
    direction: Direction = "p over q"
    event, a, b = _excess(table, lowest)
    other, c, d = _excess(_swapped(table), lowest)
    if _sign(c - a, d - b, lowest) > 0:
        direction, event, a, b = "q over p", other, c, d
    return Verdict(
        _sign(a - allowed, b, lowest) <= 0,
        event,
        a,
        b,
        _gap_upper(a, b, lowest),
        "delta",
        direction,
    )


def _table(p: Distribution, q: Distribution) -> _Table:
    first, second = _read("p", p), _read("q", q)
    if isinstance(p, Mapping) != isinstance(q, Mapping):
        rule = "p and q must both be mappings or both be sequences"
        raise InvalidInput(
            f"{a_or_an(type(p).__name__)} and {a_or_an(type(q).__name__)}",
            rule,
            "Name the outcomes in both.",
        )
    if not isinstance(p, Mapping) and len(first) != len(second):
        rule = "two sequences must give probabilities to the same outcomes"
        hint = "Write a 0 for an outcome that cannot happen."
        raise InvalidInput(f"{len(first)} and {len(second)} probabilities", rule, hint)
    zero = Fraction(0)
    return {
        outcome: (first.get(outcome, zero), second.get(outcome, zero)) for outcome in first | second
    }


def _read(name: str, given: Any) -> dict[Any, Fraction]:
    if hasattr(given, "tolist"):
        given = given.tolist()
    if not isinstance(given, Mapping | Sequence) or isinstance(given, str | bytes):
        rule = f"{name} must be a mapping from outcomes to probabilities, or a sequence of probabilities"
        raise InvalidInput(f"{name}={show(given)}", rule, "Pass a dict or a list.")
    named = given if isinstance(given, Mapping) else dict(enumerate(given))
    read = {
        outcome: decimal_reading(f"{name}[{show(outcome)}]", value)
        for outcome, value in named.items()
    }
    if not read:
        raise InvalidInput(
            f"{name}={show(given)}",
            f"{name} must have an outcome",
            "Pass at least one probability.",
        )
    for outcome, value in read.items():
        if not 0 <= value <= 1:
            place = f"{name}[{show(outcome)}]={show(named[outcome])}"
            raise InvalidInput(
                place, "a probability must lie between 0 and 1", "Divide counts by their sum first."
            )
    miss = sum(read.values()) - 1
    if miss:
        total = f"1 {'+' if miss > 0 else '-'} {float(abs(miss)):.3g}"
        hint = "Use Fractions, such as Fraction(1, 3), where decimals cannot be exact."
        raise InvalidInput(f"{name} with sum {total}", "probabilities must sum to exactly 1", hint)
    return read


def _swapped(table: _Table) -> _Table:
    return {outcome: (b, a) for outcome, (a, b) in table.items()}


def _masses(table: _Table, event: frozenset[Any]) -> tuple[Fraction, Fraction]:
    zero = Fraction(0)
    return sum((table[y][0] for y in event), zero), sum((table[y][1] for y in event), zero)


def _steepest(table: _Table) -> tuple[Fraction, Fraction]:
    """The two probabilities of an outcome with the largest ratio; the second is 0 where it is infinite."""
    a, b = Fraction(0), Fraction(1)
    for x, y in table.values():
        if x * b > a * y:
            a, b = x, y
    return a, b


def _excess(table: _Table, epsilon: Fraction) -> tuple[frozenset[Any], Fraction, Fraction]:
    """The event where the first probability exceeds e^epsilon times the second, and its two probabilities."""
    event = frozenset(outcome for outcome, (a, b) in table.items() if _sign(a, b, epsilon) > 0)
    return event, *_masses(table, event)


def _sign(a: Fraction, b: Fraction, epsilon: Fraction) -> int:
    """The sign of a - e^epsilon b, exactly."""
    if epsilon == 0 or a == 0 or b == 0 or (a > 0) != (b > 0):
        return (a > b) - (a < b)
    bits = 64
    while True:
        with working(bits):
            gap = ball(a / b).log() - ball(epsilon)
        if gap > 0 or gap < 0:
            return 1 if (gap > 0) == (a > 0) else -1
        bits *= 2


def _log_upper(a: Fraction, b: Fraction) -> float:
    return upper(certified(lambda: ball(a / b).log())) if b else math.inf


def _gap_upper(a: Fraction, b: Fraction, epsilon: Fraction) -> float:
    most = a - b if epsilon >= 0 else a
    simple = float_upper(most)
    if epsilon == 0 or b == 0:
        return simple
    return min(simple, upper(certified(lambda: ball(a) - ball(epsilon).exp() * ball(b))))

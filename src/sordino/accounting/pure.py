"""Optimal composition of pure losses: exactly the product of binary randomized responses, in certified bounds.

Every pair with loss at most e is a post-processing of the binary response that tells the truth with odds e^e, so the
product of those responses is the worst case of their composition. Its delta(epsilon) is a sum over how many answers are
lies; Theorems 4 and 5 of closed_forms.md say how the sum is taken and inverted.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import accumulate
from numbers import Integral, Rational
from typing import Any, TypeAlias

from flint import arb, ctx

from sordino.errors import InvalidInput, TooLarge
from sordino.privacy.ball import ball, certified, lower, upper, working
from sordino.privacy.exact import bounds, float_lower, float_upper, least_reading, open_unit, show

__all__ = [
    "delta_bounds",
    "delta_bounds_response",
    "epsilon_bounds",
    "epsilon_bounds_response",
    "unit_delta",
    "whole",
]

Pures: TypeAlias = Sequence[tuple[Fraction, int]]
Interval: TypeAlias = tuple[float, float]

MOST_ALIKE = 10**9
"""The most responses with one epsilon, if there is no other."""
MOST_MIXED = 400_000
"""The most products that a composition of several epsilons may need."""
MOST_EPSILON = 10**9

_BITS = (128, 256, 512, 1024, 2048)
_STEPS = 200


def whole(count: Any) -> int:
    """How many times a loss is used: an integer of at least one."""
    if isinstance(count, bool) or not isinstance(count, Integral) or count < 1:
        rule = "a loss is used a whole number of times, at least once"
        raise InvalidInput(
            f"count={show(count)}", rule, "Pass an int such as 1, or leave the loss out."
        )
    return int(count)


def unit_delta(delta: Any) -> Fraction:
    """The smaller reading of a delta in [0, 1)."""
    read = bounds("delta", delta)
    if read.lower < 0 or read.upper >= 1:
        hint = "Pass a small number such as 1e-6."
        raise InvalidInput(f"delta={show(delta)}", "delta must be at least 0 and less than 1", hint)
    return read.lower


def delta_bounds(pures: Pures, epsilon: Fraction) -> Interval:
    """The smallest delta that holds for every composition of pure losses (epsilon, count), from below and from above.

    Privacy: whatever releases with these pure epsilons are composed, also adaptively, the whole is (epsilon,
    delta)-private with delta the upper end; randomized responses with these epsilons are not, for any delta under the
    lower end. `epsilon` may be negative. Raises `TooLarge` where several epsilons make too many combinations.
    Source: Kairouz, Oh, Viswanath (2015), Theorem 3.3; Murtagh, Vadhan (2016), Theorem 1.5.

    Example:
        >>> low, high = delta_bounds([(Fraction(1, 10), 100)], Fraction(4))
        >>> low < high < 1.000001 * low, round(high * 10**6, 3)
        (True, 34.223)
    """
    responses, at = _rational_responses(pures), _rational("epsilon", epsilon)
    return (0.0, 0.0) if at >= _total(pures) else _delta_bounds(responses, at)


def epsilon_bounds(pures: Pures, delta: Fraction) -> Interval:
    """The smallest epsilon that holds for every composition of pure losses (epsilon, count), from below and from above.

    Privacy: as `delta_bounds`. It is negative where delta exceeds the total variation distance of the product.
    """
    responses, exact, total = (
        _rational_responses(pures),
        unit_delta(_rational("delta", delta)),
        _total(pures),
    )
    if exact == 0:
        return float_lower(total), float_upper(total)
    low, high = _epsilon_bounds(responses, exact)
    return low, min(high, float_upper(total))


def delta_bounds_response(truth: Fraction, count: int, epsilon: Fraction) -> Interval:
    """The delta of `count` binary responses, each the truth with probability `truth`, from below and from above."""
    return _delta_bounds(_equal_responses(truth, count), _rational("epsilon", epsilon))


def epsilon_bounds_response(truth: Fraction, count: int, delta: Fraction) -> Interval:
    """The epsilon of `count` binary responses, each the truth with probability `truth`, from below and from above."""
    responses, exact = _equal_responses(truth, count), unit_delta(_rational("delta", delta))
    most = certified(responses.largest)
    if exact == 0:
        return lower(most), upper(most)
    low, high = _epsilon_bounds(responses, exact)
    return low, min(high, upper(most))


def _rational(name: str, value: Any) -> Fraction:
    if isinstance(value, bool) or not isinstance(value, Rational):
        raise InvalidInput(
            f"{name}={show(value)}", f"{name} must be an exact rational number", "Pass a Fraction."
        )
    return Fraction(int(value.numerator), int(value.denominator))


def _total(pures: Pures) -> Fraction:
    return sum((epsilon * count for epsilon, count in pures), Fraction(0))


def _rational_responses(pures: Pures) -> _Responses:
    counts: dict[Fraction, int] = {}
    for value, count in pures:
        epsilon = _rational("epsilon", value)
        if epsilon < 0:
            rule = "a pure epsilon must be at least 0"
            raise InvalidInput(
                f"epsilon={show(value)}", rule, "Pass the largest loss of the release."
            )
        if epsilon > MOST_EPSILON:
            raise TooLarge(
                f"epsilon={show(value)}",
                f"a pure epsilon may be at most {MOST_EPSILON}",
                "It promises nothing.",
            )
        counts[epsilon] = counts.get(epsilon, 0) + whole(count)
    if not counts:
        raise InvalidInput(
            "no losses",
            "a composition must hold at least one loss",
            "Pass [(Fraction(1, 10), 100)].",
        )
    counts.pop(Fraction(0), None)
    if len(counts) == 1:
        ((epsilon, count),) = counts.items()
        return _alike(lambda: ball(epsilon), count)
    return _mixed(counts)


def _equal_responses(truth: Fraction, count: int) -> _Responses:
    open_unit("truth", _rational("truth", truth), "Pass a Fraction such as Fraction(3, 4).")
    larger, often = max(truth, 1 - truth), whole(count)
    return (
        _alike(lambda: ball(larger / (1 - larger)).log(), often)
        if larger > Fraction(1, 2)
        else _mixed({})
    )


def _delta_bounds(responses: _Responses, epsilon: Fraction) -> Interval:
    if certified(lambda: responses.largest() - ball(epsilon)) <= 0:
        return 0.0, 0.0
    value = certified(lambda: responses.delta(epsilon), 64)
    return max(0.0, lower(value)), min(1.0, upper(value))


def _epsilon_bounds(responses: _Responses, delta: Fraction) -> Interval:
    """The ends of a guess, moved outward until each is certainly right under both its readings."""
    guess, grain = _guess(responses, delta), float(certified(responses.largest)) * 2.0**-100
    return (
        _outward(lower(guess), -1, grain, lambda e: responses.sign(-least_reading(-e), delta) > 0),
        _outward(upper(guess), +1, grain, lambda e: responses.sign(least_reading(e), delta) < 0),
    )


def _outward(start: float, direction: int, grain: float, good: Callable[[float], bool]) -> float:
    """The first good number from `start` on, in steps that double."""
    value, step = start, max(math.ulp(start), grain)
    while not good(value):
        value, step = value + direction * step, 2 * step
    return value


class _Responses(ABC):
    """Binary responses side by side. L is their privacy loss; balls are at the working precision."""

    @abstractmethod
    def largest(self) -> arb:
        """The largest loss."""

    @abstractmethod
    def moments(self) -> tuple[arb, arb]:
        """The mean of L, and the sum of the squares of all epsilons."""

    @abstractmethod
    def event(self, epsilon: Fraction) -> tuple[arb, arb, list[tuple[arb, arb]]]:
        """P and Q of {L > epsilon}, without outcomes that cannot be told from L = epsilon;
        and P and Q of each of those.
        """

    def delta(self, epsilon: Fraction) -> arb:
        """P(E) - e^epsilon Q(E) for the best event E."""
        under_p, under_q, undecided = self.event(epsilon)
        factor = ball(epsilon).exp()
        return (
            under_p
            - factor * under_q
            + sum(((p - factor * q).max(arb(0)) for p, q in undecided), arb(0))
        )

    def sign(self, epsilon: Fraction, delta: Fraction) -> int:
        """The sign of delta(epsilon) - delta; 0 if it cannot be told."""
        for bits in _BITS:
            with working(bits):
                gap = self.delta(epsilon) - ball(delta)
            if gap > 0 or gap < 0:
                return 1 if gap > 0 else -1
        return 0


def _guess(responses: _Responses, delta: Fraction) -> arb:
    """A ball around the epsilon where delta(epsilon) = delta: very likely, not certainly.

    As a function of e^epsilon delta is convex and piecewise linear: a tangent's root is never too large, and exact on
    the piece that holds it. log delta is nearly concave in epsilon, so that tangents to it, from the right, get near
    quickly; the search begins at Hoeffding's bound.
    """
    scale = float(certified(responses.largest))
    if scale == 0:
        return certified(lambda: ball(-delta).log1p())
    with working(_BITS[0] - min(0, math.frexp(scale)[1])):
        target = ball(delta)
        mean, squares = responses.moments()
        root, bound = (1 - target).log(), mean + (-2 * squares * target.log()).sqrt()
        low, high = float(root), min(scale, float(bound))
        at = high if high < scale else (low + high) / 2
        for _ in range(_STEPS):
            factor = arb(at).exp()
            under_p, under_q, _ = responses.event(Fraction(at))
            gap = under_p - factor * under_q
            ahead = (
                at + float((gap / target).log() * gap / (factor * under_q)) if gap > 0 else math.nan
            )
            if not gap > target:
                high = min(high, at)
            if under_p > target:
                root = ((under_p - target) / under_q).log()
                near = abs(float(root)) * 2.0**-48 + scale * 2.0**-60
                if abs(float(root) - at) <= near:
                    break
                if abs(float(root) - low) <= near:  # met before: look there
                    ahead = math.nextafter(low, high)
                low = max(low, float(root))
            at = ahead if low < ahead < high else (low + high) / 2
            if not low < at < high:
                break
        return root


def _alike(log_odds: Callable[[], arb], count: int) -> _Responses:
    if count > MOST_ALIKE:
        raise TooLarge(
            f"count={show(count)}",
            f"at most {MOST_ALIKE} equal losses can be composed",
            "Use a closed form.",
        )
    return _Alike(log_odds, count)


@dataclass(frozen=True)
class _Alike(_Responses):
    """`count` responses with the same odds. With m lies the loss is (count - 2 m) log_odds."""

    log_odds: Callable[[], arb]
    count: int

    def largest(self) -> arb:
        return self.count * self.log_odds()

    def moments(self) -> tuple[arb, arb]:
        e = self.log_odds()
        return self.count * e * (e / 2).tanh(), self.count * e**2

    def event(self, epsilon: Fraction) -> tuple[arb, arb, list[tuple[arb, arb]]]:
        e = self.log_odds()
        edge = (self.count - ball(epsilon) / e) / 2
        least, most = (
            min(max(int(end.ceil().fmpz()), 0), self.count + 1)
            for end in (edge.lower(), edge.upper())
        )
        undecided = [
            (_chance(self.count, m, e), _chance(self.count, self.count - m, e))
            for m in range(least, most)
        ]
        return _fewer(self.count, least, e), _fewer(self.count, least, -e), undecided


def _chance(count: int, lies: int, log_odds: arb) -> arb:
    """The probability of exactly `lies` lies among `count` answers, each with e^log_odds to 1 for the truth."""
    ways = arb(count + 1).lgamma() - arb(lies + 1).lgamma() - arb(count - lies + 1).lgamma()
    return (ways - count * (-log_odds).exp().log1p() - lies * log_odds).exp()


def _fewer(count: int, edge: int, log_odds: arb) -> arb:
    """The probability of fewer than `edge` lies among `count` answers.

    Summed downwards from the largest term, as 1 + c(1 + c'(1 + ...)) with ratios 1 > c > c' > ...; what lies below the
    last term kept is between one and a geometric series. Above the mode the other tail is summed instead.
    """
    if not 0 < edge <= count:
        return arb(int(edge > 0))
    tilt, top = float(log_odds), edge - 1
    if top * (1 + math.exp(min(tilt, 700.0))) > count:
        return 1 - _fewer(count, count - top, -log_odds)
    first, odds = _negligible(count, top, tilt), log_odds.exp()
    series = arb(1).union(1 / (1 - first * odds / (count - first + 1)))
    for lies in range(first + 1, top + 1):
        series = series * odds * lies / (count - lies + 1) + 1
    return _chance(count, top, log_odds) * series


def _negligible(count: int, top: int, tilt: float) -> int:
    """A number of lies so unlikely, compared with `top`,
    that it is lost at the working precision; 0 if there is none.
    """

    def weight(lies: int) -> float:
        return -math.lgamma(lies + 1) - math.lgamma(count - lies + 1) - lies * tilt

    small = weight(top) - (ctx.prec + 8) * math.log(2)
    low, high = 0, top
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if weight(middle) < small else (low, middle)
    return low


def _mixed(counts: dict[Fraction, int]) -> _Responses:
    """Several epsilons as integers of one unit, in two halves of similar size;
    `work` counts the products that it takes.
    """
    unit = Fraction(
        math.gcd(*(e.numerator for e in counts)) or 1, math.lcm(*(e.denominator for e in counts))
    )
    halves: tuple[list[tuple[int, int]], ...] = ([], [])
    sizes, reach, work = [1, 1], [0, 0], 0
    for epsilon, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        side = sizes.index(min(sizes))
        halves[side].append((int(epsilon / unit), count))
        work += sizes[side] * (count + 1)
        reach[side] += int(epsilon / unit) * count
        sizes[side] = min(sizes[side] * (count + 1), reach[side] + 1)
    if work > MOST_MIXED:
        rule = f"a composition of {len(counts)} different epsilons may need at most {MOST_MIXED} products"
        raise TooLarge(
            f"{show(work)} products",
            rule,
            "Round the epsilons up to a few common values, or use a closed form.",
        )
    return _Mixed(unit, (tuple(halves[0]), tuple(halves[1])))


@dataclass(frozen=True)
class _Half:
    """The law of the loss of some of the responses: whole units, largest first, with P and Q of all larger ones."""

    losses: list[int]
    chances: list[arb]
    above_p: list[arb]
    above_q: list[arb]


@dataclass(frozen=True)
class _Mixed(_Responses):
    """Responses with different epsilons (units, count), in two halves:
    every outcome of one meets a tail of the other.
    """

    unit: Fraction
    halves: tuple[tuple[tuple[int, int], ...], ...]
    laws: dict[int, tuple[_Half, ...]] = field(default_factory=dict)

    def largest(self) -> arb:
        return ball(self.unit * sum(units * count for half in self.halves for units, count in half))

    def moments(self) -> tuple[arb, arb]:
        groups = [(ball(self.unit * units), count) for half in self.halves for units, count in half]
        mean = sum((count * e * (e / 2).tanh() for e, count in groups), arb(0))
        return mean, sum((count * e**2 for e, count in groups), arb(0))

    def event(self, epsilon: Fraction) -> tuple[arb, arb, list[tuple[arb, arb]]]:
        if ctx.prec not in self.laws:
            self.laws[ctx.prec] = tuple(self._law(half) for half in self.halves)
        few, many = sorted(self.laws[ctx.prec], key=lambda half: len(half.losses))
        edge, under_p, under_q = math.floor(epsilon / self.unit), arb(0), arb(0)
        ends = [bisect_left(many.losses, loss - edge, key=lambda x: -x) for loss in few.losses]
        for end, p, q in zip(ends, few.chances, reversed(few.chances), strict=True):
            under_p, under_q = under_p + p * many.above_p[end], under_q + q * many.above_q[end]
        return under_p, under_q, []

    def _law(self, groups: tuple[tuple[int, int], ...]) -> _Half:
        """Equal losses are added. The law is symmetric: Q[L = x] = P[L = -x]."""
        law = {0: arb(1)}
        for units, count in groups:
            chances, before, law = _all_chances(ball(self.unit * units), count), law, {}
            for loss, p in before.items():
                for lies, chance in enumerate(chances):
                    total = loss + (count - 2 * lies) * units
                    law[total] = law[total] + p * chance if total in law else p * chance
        losses = sorted(law, reverse=True)
        ordered = [law[loss] for loss in losses]
        above_p, above_q = (
            list(accumulate(side, initial=arb(0))) for side in (ordered, reversed(ordered))
        )
        return _Half(losses, ordered, above_p, above_q)


def _all_chances(log_odds: arb, count: int) -> list[arb]:
    """The probabilities of 0, 1, ..., count lies."""
    lie = (-log_odds).exp()
    chances = [(-count * lie.log1p()).exp()]
    for lies in range(count):
        chances.append(chances[-1] * lie * (count - lies) / (lies + 1))
    return chances

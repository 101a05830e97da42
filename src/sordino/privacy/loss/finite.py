"""The loss of any pair of finite distributions with rational probabilities.

Randomized response is one; a deterministic release, whose two outputs never coincide, is another. A pair need not be
symmetric: every guarantee is the worse of its two directions, and the law of L is that of log p/q under p.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import pairwise
from typing import TypeAlias

from flint import arb

from sordino.errors import InvalidInput
from sordino.privacy import json_form
from sordino.privacy.ball import (
    ball,
    certified,
    exact_upper,
    holds,
    normal_tail_inverse,
    upper,
    working,
)
from sordino.privacy.exact import decimal_reading, float_upper, readable, show
from sordino.privacy.loss.base import Loss, OutputPair
from sordino.privacy.loss.concentration import concentration
from sordino.privacy.loss.law import Law, no_cells

__all__ = ["FiniteLoss"]

Pair: TypeAlias = tuple[tuple[Fraction, Fraction], ...]

_NOTHING = Fraction(0)
_LEAST = 5e-324


@dataclass(frozen=True, repr=False)
class FiniteLoss(Loss):
    """The privacy loss between two distributions over the same finitely many outcomes.

    Example:
        >>> coin = FiniteLoss((Fraction(3, 4), Fraction(1, 4)), (Fraction(1, 4), Fraction(3, 4)))
        >>> round(coin.maximum(), 6)  # ln 3
        1.098612
    """

    p: tuple[Fraction, ...]
    q: tuple[Fraction, ...]

    def __post_init__(self) -> None:
        for name, side in (("p", self.p), ("q", self.q)):
            object.__setattr__(self, name, tuple(decimal_reading(name, x) for x in side))
        if len(self.p) != len(self.q) or not self.p:
            value = f"{len(self.p)} and {len(self.q)} probabilities"
            raise InvalidInput(
                value, "both distributions must cover the same outcomes", "Write zeros out."
            )
        for name, side in (("p", self.p), ("q", self.q)):
            if min(side) < 0 or sum(side) != 1:
                rule = f"the probabilities of {name} must be at least 0 and sum to exactly 1"
                raise InvalidInput(
                    f"a sum of {readable(sum(side, _NOTHING))}", rule, "Pass Fractions."
                )

    def _directions(self) -> tuple[Pair, Pair]:
        """(p, q) and (q, p), without outcomes that neither reaches."""
        forth = tuple((a, b) for a, b in zip(self.p, self.q, strict=True) if a or b)
        return forth, tuple((b, a) for a, b in forth)

    def infinite(self) -> Fraction:
        return max(sum((a for a, b in pair if b == 0), _NOTHING) for pair in self._directions())

    def maximum(self) -> float:
        if self.infinite():
            return math.inf
        largest = max(a / b for pair in self._directions() for a, b in pair)
        return upper(certified(lambda: ball(largest).log()))

    def exact_maximum(self) -> Fraction | None:
        """Finer than a float, so that a response calibrated to epsilon costs no more than epsilon."""
        if self.infinite():
            return None
        largest = max(a / b for pair in self._directions() for a, b in pair)
        return exact_upper(certified(lambda: ball(largest).log()))

    def without_certainty(self) -> FiniteLoss:
        """The pair given that the outcome is one that both sides reach."""
        common = [(a, b) for a, b in zip(self.p, self.q, strict=True) if a and b]
        if not common:
            hint = "Such a release has no privacy."
            raise InvalidInput(show(self), "the two sides never give the same outcome", hint)
        p, q = (tuple(x / sum(side) for x in side) for side in zip(*common, strict=True))
        return FiniteLoss(p, q)

    def delta_ball(self, epsilon: Fraction) -> arb:
        forth, _ = self._directions()
        if epsilon == 0:
            return ball(sum((abs(a - b) for a, b in forth), _NOTHING) / 2)
        factor = ball(epsilon).exp()
        balls = [(ball(a), ball(b)) for a, b in forth]
        more = sum(((a - factor * b).max(arb(0)) for a, b in balls), arb(0))
        return more.max(sum(((b - factor * a).max(arb(0)) for a, b in balls), arb(0)))

    def _epsilon(self, delta: Fraction) -> float:
        """Exact: delta holds if and only if a - e^epsilon b <= delta for the masses (a, b) of every best event."""
        least = max(
            (mass - delta) / other
            for pair in self._directions()
            for other, mass in ((alpha, 1 - beta) for alpha, beta in self._corners(pair))
            if other > 0
        )
        return 0.0 if least == 1 else upper(certified(lambda: ball(least).log()))

    def rdp_ball(self, alpha: Fraction) -> arb:
        order = ball(alpha - 1)
        balls = [(ball(a), ball(b)) for a, b in self._directions()[0]]
        logs = [(a, b, (a / b).log()) for a, b in balls]
        if alpha == 1:
            return sum((a * log for a, _, log in logs), arb(0)).max(
                sum((-b * log for _, b, log in logs), arb(0))
            )
        forth = sum((a * (order * log).expm1() for a, _, log in logs), arb(0))
        back = sum((b * (-order * log).expm1() for _, b, log in logs), arb(0))
        return forth.max(back).log1p() / order

    def rho(self) -> float:
        """The supremum of rdp(alpha)/alpha, by branch and bound (concentration.py).

        Within a millionth above the truth, and never above e tanh(e/2), which holds for every pair with largest loss e
        and is exact for a binary one (Theorem 3 of mechanisms/randomized_response.md).
        """
        top = self.maximum()
        if top in (0.0, math.inf):
            return top
        cap = upper(certified(lambda: ball(Fraction(top)) * ball(Fraction(top) / 2).tanh()))
        forth, back = self._directions()
        rho = concentration(forth, top, 0.0, cap)
        return rho if Counter(forth) == Counter(back) else concentration(back, top, rho, cap)

    def _corners(self, pair: Pair) -> list[tuple[Fraction, Fraction]]:
        """The corners (type I error, type II error) of the best tests of the pair, by Neyman and Pearson."""
        corners, alpha, beta = [], _NOTHING, Fraction(1)
        for a, b in sorted(
            pair, key=lambda ab: (ab[0] == 0, ab[1] / ab[0] if ab[0] else _NOTHING), reverse=True
        ):
            corners.append((alpha, beta))
            alpha, beta = alpha + a, beta - b
        return [*corners, (alpha, beta)]

    def trade_off_ball(self, alpha: Fraction) -> arb:
        errors = []
        for pair in self._directions():
            corners = self._corners(pair)
            for (a0, b0), (a1, b1) in pairwise(corners):
                if a0 < a1 and a0 <= alpha <= a1:
                    errors.append(b0 + (b1 - b0) * (alpha - a0) / (a1 - a0))
                    break
        return ball(min(errors))

    def mu(self) -> float:
        """The largest over the corners: between them the curve is a chord, and the Gaussian curve is convex."""
        if self.infinite():
            return math.inf

        def distance(a: Fraction, b: Fraction) -> arb:
            return normal_tail_inverse(ball(a)) + normal_tail_inverse(ball(b))

        reached = {(min(c), max(c)) for pair in self._directions() for c in self._corners(pair)}
        corners = [(a, b) for a, b in reached if a > 0 and a + b < 1]
        with working(64):
            rough = [distance(a, b) for a, b in corners]
        far = max(rough, key=lambda x: float(x.mid()), default=arb(0))
        # any other is certainly nearer
        best = [c for c, x in zip(corners, rough, strict=True) if not x < far]
        return max((upper(certified(partial(distance, a, b))) for a, b in best), default=0.0)

    def _up_to(self, value: Fraction) -> Fraction:
        """P[L <= value], exactly: e^value is irrational unless value is 0, so that every comparison can be decided."""

        def at_most(a: Fraction, b: Fraction) -> bool:
            if value == 0 or b == 0:
                return a <= b

            def compare() -> bool | None:
                gap = ball(a) - ball(value).exp() * ball(b)
                return True if gap < 0 else False if gap > 0 else None

            return holds(compare)

        return sum((a for a, b in self._directions()[0] if a and at_most(a, b)), _NOTHING)

    def cdf_ball(self, value: Fraction) -> arb:
        return ball(self._up_to(value))

    def mass_ball(self, low: Fraction, high: Fraction) -> arb:
        return ball(self._up_to(high) - self._up_to(low))

    def outputs(self) -> OutputPair:
        names = tuple(str(i) for i in range(len(self.p)))
        return OutputPair(
            names, tuple(map(float, self.p)), tuple(map(float, self.q)), discrete=True
        )

    def laws(self) -> tuple[Law, ...]:
        def law(pair: Pair) -> Law:
            masses: dict[Fraction, Fraction] = {}
            for a, b in pair:
                if a and b:
                    masses[a / b] = masses.get(a / b, _NOTHING) + a
            atoms = sorted(
                (_log(r) if r > 1 else -_log(1 / r), float(a) or _LEAST) for r, a in masses.items()
            )
            certain = float_upper(sum((a for a, b in pair if b == 0), _NOTHING))
            return Law(tuple(atoms), 0.0, 0.0, 1.0, no_cells, certain)

        forth, back = (law(pair) for pair in self._directions())
        return (forth,) if forth == back else (forth, back)

    def to_json(self) -> str:
        return json_form.dump("finite", 1, {"p": self.p, "q": self.q})

    def __repr__(self) -> str:
        sides = (f"({', '.join(map(readable, side))})" for side in (self.p, self.q))
        return "FiniteLoss({}, {})".format(*sides)


def _log(ratio: Fraction) -> float:
    """The logarithm of a ratio of at least 1, as accurate as a float is,
    however near to 1 or beyond the floats it is.
    """
    if ratio.numerator.bit_length() - ratio.denominator.bit_length() > 1000:
        return math.log(ratio.numerator) - math.log(ratio.denominator)
    return math.log1p(float(ratio - 1))


Loss.kinds["finite", 1] = lambda fields: FiniteLoss(
    json_form.rationals(fields, "p"), json_form.rationals(fields, "q")
)

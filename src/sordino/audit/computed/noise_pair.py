"""The two laws of rounded noise whose centre moves by whole steps, from their probabilities alone.

Nothing here uses a formula of a loss: delta is the best threshold event's excess (Lemma 1 of exact.md says that no
event does better), and where the outputs are few it is summed over all of them as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from flint import arb

from sordino.audit.computed.truth import Truth, exceeds
from sordino.audit.reporting.report import Figure, Grid, Series
from sordino.mechanisms.rounded import NORMAL, RoundedNoise
from sordino.privacy.ball import at_most, ball, certified, lower, upper, working
from sordino.privacy.exact import readable

__all__ = ["NoisePair"]

_MOST_OUTPUTS = 4000
_SHOWN = 61


@dataclass(frozen=True)
class NoisePair(Truth):
    """P: the noise around `shift` steps, Q: the noise around 0; outputs are whole steps of size `step`."""

    noise: RoundedNoise
    shift: int
    step: Fraction

    @property
    def _moved(self) -> str:
        return readable(self.shift * self.step)

    @property
    def relation(self) -> str:
        return f"exact values {self._moved} apart, the worst that the sensitivity allows on the lattice"

    def _tails(self, t: int) -> tuple[arb, arb]:
        """P[output >= t] and Q[output >= t]."""
        return self.noise.tail_ball(t - self.shift - 1), self.noise.tail_ball(t - 1)

    def _masses(self, t: int) -> tuple[arb, arb]:
        """P[output = t] and Q[output = t]."""
        return self.noise.pmf_ball(t - self.shift), self.noise.pmf_ball(t)

    def log_ratio(self, t: int) -> arb:
        """log P[output = t]/Q[output = t]."""
        p, q = self._masses(t)
        return (p / q).log()

    def delta_ball(self, epsilon: Fraction) -> arb:
        t = _first_above(self, epsilon)
        if t is None:
            return arb(0)
        p, q = self._tails(t)
        return (p - ball(epsilon).exp() * q).max(arb(0))

    def epsilon_bounds(self, delta: Fraction) -> tuple[float, float]:
        if not exceeds(lambda: self.delta_ball(Fraction(0)), delta):
            return 0.0, 0.0
        if delta == 0 and self.noise.shape is NORMAL:
            return math.inf, math.inf
        t = self.shift + 1 if delta == 0 else self._best(delta)

        def needed() -> arb:
            p, q = self._tails(t)
            return ((p - ball(delta)) / q).log()

        value = certified(needed)
        return max(0.0, lower(value)), max(0.0, upper(value))

    def _best(self, delta: Fraction) -> int:
        """The threshold with the largest (P - delta)/Q: it rises while that is above p/q of the next output alone."""

        def falls(t: int) -> bool:
            def gain() -> arb:
                p, q = self._tails(t)
                return ((p - ball(delta)) / q).log() - self.log_ratio(t)

            return at_most(lambda: self._tails(t + 1)[0], delta) or not exceeds(gain, Fraction(0))

        low, high = 0, 1
        while not falls(high):
            low, high = high, 2 * high
        return _first(falls, low, high)

    def summed(self, epsilon: Fraction) -> tuple[arb, int] | None:
        """The cut tails are its error; None for too many outputs."""
        reach = math.ceil(self.noise.scale * (12 if self.noise.shape is NORMAL else 60)) + 1
        count = 2 * reach + self.shift + 1
        if count > _MOST_OUTPUTS:
            return None
        with working(192):
            factor, total = ball(epsilon).exp(), arb(0)
            for output in range(-reach, reach + self.shift + 1):
                p, q = self._masses(output)
                total += (p - factor * q).max(arb(0))
            cut = self.noise.tail_ball(reach) + self.noise.tail_ball(reach + self.shift)
            return total + cut.union(arb(0)), count

    def witness(self, epsilon: Fraction, delta: Fraction) -> str:
        if self.shift == 0:
            return ""
        t = _first_above(self, epsilon)
        if t is None:
            t = self.shift + 1 if delta == 0 else self._best(delta)
        with working(128):
            p, q = (float(x.mid()) for x in self._tails(t))
        return (
            f"the output is at least {readable(t * self.step)}: probability {p:.6g} where the exact value is "
            f"{self._moved}, {q:.6g} where it is 0"
        )

    def profile(self, epsilons: list[float]) -> list[float]:
        with working(128):
            return [float(self.delta_ball(Fraction(e)).mid()) for e in epsilons]

    def _places(self) -> range:
        """Outputs around both centres, as many as can be shown."""
        reach = math.ceil(4 * self.noise.scale) + 1
        width = 2 * reach + self.shift
        return range(-reach, reach + self.shift + 1, max(1, math.ceil(width / _SHOWN)))

    def _laws(self, output: int) -> tuple[float, float, float]:
        with working(192):
            p, q = self._masses(output)
            return float(p.mid()), float(q.mid()), float((p / q).log().mid())

    def table(self) -> Grid:
        places = self._places()
        picked = places[:: max(1, len(places) // 12)]
        rows = [(readable(y * self.step), *(f"{x:.6g}" for x in self._laws(y))) for y in picked]
        headings = ("output", "P, moved", "P, at 0", "log ratio")
        return Grid("Outputs and how telling they are", headings, tuple(rows))

    def outputs(self) -> Figure:
        places = self._places()
        laws = [self._laws(y) for y in places]
        x = tuple(float(y * self.step) for y in places)
        series = (
            Series(f"exact value {self._moved}", x, tuple(p for p, _, _ in laws)),
            Series("exact value 0", x, tuple(q for _, q, _ in laws)),
        )
        return Figure("Outputs on the two inputs", "output", "probability", series)


@lru_cache(maxsize=256)
def _first_above(pair: NoisePair, epsilon: Fraction) -> int | None:
    """The first output with log p/q > epsilon; none at the edge is none at all (Lemma 2 of exact.md)."""
    if pair.shift == 0:
        return None

    def above(t: int) -> bool:
        return exceeds(lambda: pair.log_ratio(t), epsilon) is True

    low, high = 0, pair.shift + 2 + math.ceil(epsilon * pair.noise.scale**2 / pair.shift)
    return _first(above, low, high) if above(high) else None


def _first(holds: Callable[[int], bool], low: int, high: int) -> int:
    """The first whole number from `low` on with a property that stays once it holds, and that holds at `high`."""
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low

"""The zero-concentrated privacy of a finite pair: the supremum over x > 1 of its Renyi divergence of order x, over x.

That is K(x)/(x(x-1)) for the cumulant function K(x) = log E[e^((x-1) L)] of L = log p/q under p. Branch and bound on
x, each piece bounded from K, K' and K'' at its two ends, all of it in balls.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce

from flint import arb

from sordino.privacy.ball import ball, upper, working

__all__ = ["concentration"]

_ACCURACY = 1e-6
_MOST_BITS = 1 << 16


def concentration(
    pair: Iterable[tuple[Fraction, Fraction]], top: float, known: float, cap: float
) -> float:
    """The supremum for one direction, at most a millionth above the truth; `known` if it is below that, else at most
    `cap`.

    `top` bounds log p/q from above, and the supremum must be known to be at most `cap`.
    """
    masses: dict[Fraction, Fraction] = {}
    for a, b in pair:
        masses[a / b] = masses.get(a / b, Fraction(0)) + a
    bits = 128
    while bits <= _MOST_BITS:
        with working(bits):
            cumulant = _Cumulant(masses)
            if cumulant.at(1.0).slope.rel_accuracy_bits() >= 64:
                return max(known, min(cap, _supremum(cumulant, top, known, cap)))
        bits *= 2
    return cap


@dataclass(frozen=True)
class _Jet:
    """K(x), K'(x), and a number that K''(x) is not above."""

    value: arb
    slope: arb
    bend: arb


class _Cumulant:
    """K, from the probability of each ratio p/q; K' and K'' are L's mean and variance under p tilted by e^((x-1) L)."""

    def __init__(self, masses: dict[Fraction, Fraction]) -> None:
        self._terms = [(ball(mass), ball(ratio).log()) for ratio, mass in masses.items()]
        self.range = _largest(log for _, log in self._terms) + _largest(
            -log for _, log in self._terms
        )

    def at(self, x: float) -> _Jet:
        order = arb(x) - 1
        zeroth, first, second = arb(0), arb(0), arb(0)
        for mass, log in self._terms:
            grown = mass * (order * log).expm1()
            tilted = (mass + grown) * log
            zeroth += grown
            first += tilted
            second += tilted * log
        mean = first / (1 + zeroth)
        return _Jet(zeroth.log1p(), mean, (second / (1 + zeroth) - mean * mean).abs_upper())


def _largest(values: Iterable[arb]) -> arb:
    return reduce(arb.max, values)


def _supremum(cumulant: _Cumulant, top: float, known: float, cap: float) -> float:
    jets = {1.0: cumulant.at(1.0)}
    best = max(known, upper(jets[1.0].slope))
    # beyond it the divergence over x is at most top/end
    end = min(max(2.0, 2 * top / best), 2.0**1000)
    jets[end] = cumulant.at(end)
    open_ = [(-_most_on(1.0, end, jets[1.0], jets[end], cumulant.range), 1.0, end)]
    while best * (1 + _ACCURACY) < min(cap, -open_[0][0]):
        _, a, b = open_[0]
        middle = math.sqrt(a) * math.sqrt(b)
        if not a < middle < b:
            break
        heapq.heappop(open_)
        jets[middle] = cumulant.at(middle)
        best = max(best, upper(jets[middle].value / (arb(middle) * (arb(middle) - 1))))
        for low, high in ((a, middle), (middle, b)):
            heapq.heappush(
                open_, (-_most_on(low, high, jets[low], jets[high], cumulant.range), low, high)
            )
    return max(best, -open_[0][0], upper(arb(top) / arb(end)))


def _most_on(low: float, high: float, at_low: _Jet, at_high: _Jet, reach: arb) -> float:
    """A bound on K(x)/(x(x-1)) for x in [low, high]: the better of two polynomials above K, over x(x-1).

    The chord is above K, which is convex. The cubic with K's values and slopes at both ends is below K by at most max
    K'''' (x-low)^2 (high-x)^2/24, hence by at most max K'''' times h^4/384 or (x-1) h^3/162, with h = high - low.
    K'''' is the fourth cumulant of a variable of range R = `reach`, at most R^2 K''; and since |K'''| <= R K'', K'' <=
    sqrt(K''(low) K''(high)) e^(R h/2), besides K'' <= R^2/4. The ratio of two polynomials is a weighted mean of the
    ratios of their Bernstein coefficients if those of the second are not negative; where low = 1 the first of both is
    0.
    """
    a, b = arb(low), arb(high)
    h = b - a
    chord = (
        at_low.value,
        (2 * at_low.value + at_high.value) / 3,
        (at_low.value + 2 * at_high.value) / 3,
        at_high.value,
    )
    cubic = (
        at_low.value,
        at_low.value + h * at_low.slope / 3,
        at_high.value - h * at_high.slope / 3,
        at_high.value,
    )
    first, middle, last = a * (a - 1), 2 * a * b - a - b, b * (b - 1)
    below = (first, (first + middle) / 3, (middle + last) / 3, last)
    start = 1 if low == 1 else 0
    straight, curved = (
        _largest(c / d for c, d in zip(cs[start:], below[start:], strict=True))
        for cs in (chord, cubic)
    )
    bend = ((at_low.bend * at_high.bend).sqrt() * (reach * h / 2).exp()).min(reach**2 / 4)
    error = h**3 / 162 if low == 1 else (h**3 / 162).min(h**4 / (384 * (a - 1)))
    return min(upper(straight), upper(curved + reach**2 * bend * error / a))

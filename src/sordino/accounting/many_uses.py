"""Certified bounds on epsilon(delta) and delta(epsilon) of many uses of losses, by Fourier series: Theorem 2 of total.md."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sordino.accounting.graded import Discrete, Graded, Sketch
from sordino.accounting.spectrum import Spectrum, Uses
from sordino.privacy.loss.law import Floats, Law

__all__ = ["Ends", "any_infinite", "delta_of_many", "epsilon_of_many"]

_SHARE = 2.0**-12
"""The share of delta that cut tails may take."""
_CELLS = 0.04
_SMOOTH = {1: 0.03, -1: 0.1}
"""The shares of the accuracy that cells, and that smoothing, may take for each end; the upper end is the promise."""
_LOOK = 30.0
"""How much less accurate the first look is, which finds out where delta is and how steep."""
_ROUNDS = 4
_COARSE = 40
_FINE = 24
_TRIED = 6
_OUTSIDE = 1e-7
_ORDINARY = 16.0
"""A window of so many deviations cannot be made much shorter."""
_NOISY = 9.0
"""Tilts whose Chernoff bound is larger by more than e to this power are avoided, as rounding would tell."""
_MOST_SMOOTH = 1.0
_LEAST_OUTSIDE = 1e-14
_CLOSE = 0.01
"""The share of the accuracy to which an epsilon is solved for."""

Parts = Sequence[tuple[Law, int]]


class Ends(NamedTuple):
    """Two ends with the true value in between, and whether they are as close as was asked."""

    lower: float
    upper: float
    close: bool


def any_infinite(each: Sequence[tuple[float, int]], side: int) -> float:
    """The probability that one of the losses, each infinite with its chance at each use, is; from above or from below."""
    if any(chance >= 1 for chance, _ in each):
        return 1.0 if side > 0 else 1 - 2.0**-40
    return -math.expm1(sum(count * math.log1p(-chance) for chance, count in each)) * (1 + side * 2.0**-40)


def epsilon_of_many(parts: Parts, delta: float, accuracy: float, known: float) -> Ends | None:
    """Two ends of epsilon(delta); None if this is no way to find them. Below `known` the lower one may be -inf."""
    scan = _Scan.of(_rough(parts, delta), delta=delta)
    tilt, epsilon = scan.best(delta=delta)
    lower, upper, slope, share, last = -math.inf, math.inf, tilt, _LOOK, math.inf
    for turn in range(1 + _ROUNDS):
        if not 0 < epsilon < math.inf:
            return None
        wanted = share * accuracy * epsilon / (slope + 1)
        laws = _Laws.of(parts, tilt, delta, wanted)
        above, infinite = laws.uses(1)
        if turn != 1:
            scan = _Scan.of(above, delta=delta)
        place = scan.place(epsilon if turn else None, delta)
        if (seen := Spectrum.of(above, place.tilt, _smooth(wanted, 1), place.outside)) is None:
            break
        close, start = _CLOSE * share * accuracy * epsilon, place.epsilon
        found = seen.epsilon((delta - infinite) * math.exp(-above.log_error(place.tilt)), 1, start, close)
        upper = min(upper, found + seen.value_error)
        if upper <= known:
            return Ends(lower, upper, True)
        if not 0 < upper < math.inf:
            return None
        tilt, epsilon, around = place.tilt, upper, seen
        if turn == 0:
            slope, share = _slope(around, epsilon), 1.0
            continue
        below, infinite = laws.uses(-1)
        if (seen := Spectrum.of(below, place.tilt, _smooth(wanted, -1), place.outside)) is None:
            break
        found = seen.epsilon((delta - infinite) * math.exp(below.log_error(place.tilt)), -1, upper, close)
        lower = max(lower, found - seen.value_error)
        width = (upper - lower) / upper
        if width <= accuracy:
            return Ends(lower, upper, True)
        if width > 0.8 * last:
            break
        last, slope = width, _slope(around, epsilon)
        share *= min(0.5, max(0.05, 0.6 * accuracy / width))
    return Ends(lower, upper, False)


def delta_of_many(parts: Parts, epsilon: float, accuracy: float, known: float) -> Ends | None:
    """Two ends of delta(epsilon); None if this is no way to find them. Below `known` the lower one may be 0."""
    if epsilon <= 0:
        return None
    guess, tilt, log_delta = 1e-3, 0.0, 0.0
    for turn in range(4):
        if turn:
            guess = math.exp(max(-650.0, min(math.log(0.3), log_delta - 3)))
        scan = _Scan.of(_rough(parts, guess), epsilon=epsilon)
        tilt, log_delta = scan.best(epsilon=epsilon)
    if log_delta > -1:
        return None
    lower, upper, slope, share, last = 0.0, 1.0, tilt, _LOOK, math.inf
    for turn in range(1 + _ROUNDS):
        wanted = share * accuracy * epsilon / (slope + 1)
        laws = _Laws.of(parts, tilt, guess, wanted)
        above, infinite = laws.uses(1)
        if turn != 1:
            scan = _Scan.of(above, epsilon=epsilon)
        place = scan.place(epsilon, upper if turn else guess)
        if (seen := Spectrum.of(above, place.tilt, _smooth(wanted, 1), place.outside)) is None:
            break
        found = seen.delta(epsilon - seen.value_error, 1)
        upper = min(upper, found * math.exp(above.log_error(place.tilt)) + infinite)
        if upper <= known:
            return Ends(lower, upper, True)
        if upper >= 1:
            return None
        tilt, guess = place.tilt, min(guess, upper)
        if turn == 0:
            slope, share = _slope(seen, epsilon), 1.0
            continue
        below, infinite = laws.uses(-1)
        if (seen := Spectrum.of(below, place.tilt, _smooth(wanted, -1), place.outside)) is None:
            break
        found = seen.delta(epsilon + seen.value_error, -1)
        lower = max(lower, found * math.exp(-below.log_error(place.tilt)) + infinite)
        width = math.log(upper / lower) / (1 + slope * epsilon) if lower > 0 else math.inf
        if width <= accuracy:
            return Ends(lower, upper, True)
        if width > 0.8 * last:
            break
        last = width
        share *= min(0.5, max(0.05, 0.6 * accuracy / width))
    return Ends(lower, upper, False)


def _smooth(wanted: float, side: int) -> float:
    """The shift of a Gaussian release that moves epsilon, by (slope + 1) shift^2/2, as much as it may."""
    return min(_MOST_SMOOTH, math.sqrt(2 * _SMOOTH[side] * wanted))


def _slope(seen: Spectrum, epsilon: float) -> float:
    """About how fast log delta falls at epsilon."""
    step = 0.1 / (seen.tilt + 1)
    near, far = seen.delta(epsilon, 1), seen.delta(epsilon + step, 1)
    return math.log(near / far) / step if near > far > 0 else seen.tilt


def _rough(parts: Parts, delta: float) -> Uses:
    """The sum of laws in rough cells: enough to find a tilt."""
    tail = delta * _SHARE / sum(count for _, count in parts)
    laws = []
    for law, count in parts:
        values, masses = np.array([v for v, _ in law.atoms]), np.array([p for _, p in law.atoms])
        if law.high > law.low:
            sketch = Sketch.of(law)
            kept = sketch.kept(tail)
            values, masses = np.append(values, sketch.losses[kept]), np.append(masses, sketch.masses[kept])
        laws.append((Discrete(values, masses), count))
    return Uses(laws)


@dataclass(frozen=True)
class _Laws:
    """The cells of each law."""

    cells: list[tuple[Graded, int]]

    @staticmethod
    def of(parts: Parts, tilt: float, delta: float, wanted: float) -> _Laws:
        """Cells that move epsilon, by about k (slope + 1) width^2/12 for each law, as much as they may."""
        moved = 12 * _CELLS * wanted
        tail = delta * _SHARE / sum(count for _, count in parts)
        sizes = [count ** (1 / 3) * law.spread ** (2 / 3) for law, count in parts]
        shares = [size / sum(sizes) for size in sizes]
        return _Laws(
            [
                (Graded.of(law, tilt, tail, count, moved * share), count)
                for (law, count), share in zip(parts, shares, strict=True)
            ]
        )

    def uses(self, side: int) -> tuple[Uses, float]:
        """The discrete losses from above or from below, and P[sum = inf]."""
        laws = [(cells.from_above() if side > 0 else cells.from_below(), count) for cells, count in self.cells]
        return Uses(laws), any_infinite([(law.infinite, count) for law, count in laws], side)


class _Place(NamedTuple):
    """Where delta is looked at, with which tilt, and the tilted probability left outside the window on each side."""

    epsilon: float
    tilt: float
    outside: float


@dataclass(frozen=True)
class _Scan:
    """The logs of Chernoff's bounds of a sum at many tilts: every tilt gives certain ends, a good one close ends."""

    uses: Uses
    tilts: Floats
    logs: Floats

    @staticmethod
    def of(uses: Uses, *, delta: float | None = None, epsilon: float = 0.0) -> _Scan:
        """Many tilts about the best one for this delta, or this epsilon."""
        scale = math.sqrt(max(uses.moments(uses.tilted(0.0)[0])[1], 1e-300))
        tilts = np.geomspace(1e-3 / scale, 100 / scale, _COARSE)
        for _ in range(2):  # a valley may be narrow
            scan = _Scan(uses, tilts, uses.log_moments(tilts) + tilts * np.log(tilts) - (1 + tilts) * np.log1p(tilts))
            best = int(np.argmin(scan._bounds(delta, epsilon)))
            tilts = np.geomspace(tilts[max(0, best - 2)], tilts[min(best + 2, len(tilts) - 1)], _FINE)
        return scan

    def _bounds(self, delta: float | None, epsilon: float) -> Floats:
        bounds: Floats = self.logs - self.tilts * epsilon
        return bounds if delta is None else (self.logs - math.log(delta)) / self.tilts

    def best(self, *, delta: float | None = None, epsilon: float = 0.0) -> tuple[float, float]:
        """The tilt of the least bound on epsilon at this delta, or on log delta at this epsilon, and that bound."""
        bounds = self._bounds(delta, epsilon)
        best = int(np.argmin(bounds))
        return float(self.tilts[best]), float(bounds[best])

    def place(self, epsilon: float | None, delta: float) -> _Place:
        """A tilt with a short window about epsilon, by default the bound, and so little noise that it does not tell."""
        about = self.best(delta=delta)[1] if epsilon is None else epsilon
        excess = self.logs - self.tilts * about - math.log(delta)
        first = int(np.argmin(excess))
        best = float(excess[first])
        tried = np.flatnonzero(excess <= max(best + 4, _NOISY))
        if len(tried) > _TRIED:
            tried = tried[np.linspace(0, len(tried) - 1, _TRIED).astype(int)]

        def length(i: int) -> float:
            window = self.uses.window(float(self.tilts[i]), _OUTSIDE)
            if not window.mean - 0.8 * window.down < about < window.mean + 0.8 * window.up:
                return math.inf
            if i == first and window.down + window.up < _ORDINARY * window.deviation:
                return 0.0
            return (window.down + window.up) * (1 + 0.15 * (float(excess[i]) - best))

        chosen = first
        if length(first) > 0:
            chosen = min([first, *tried.tolist()], key=length)
        times = math.exp(max(0.0, min(50.0, float(excess[chosen]))))  # Chernoff's bound over delta
        return _Place(about, float(self.tilts[chosen]), max(_LEAST_OUTSIDE, min(_OUTSIDE, 1e-5 / times)))

"""Certified bounds on epsilon(delta) and delta(epsilon) of many uses of losses,
by Fourier series: Theorem 2 of total.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sordino.accounting.graded import Discrete, Graded, Sketch, View
from sordino.accounting.large_losses import Bound, Cut, Series, Sizes, Split, Ways
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
_FAINT = 1e-300
_ROUNDS = 4
_SOUGHT = 12
_COARSE = 40
_FINE = 24
_NEAR = 1.5
_TRIED = 6
_OUTSIDE = 1e-7
_ORDINARY = 16.0
"""A window of this many deviations cannot be made much shorter."""
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
    """The probability that one of the losses, each infinite with its chance at each use,
    is; from above or from below.
    """
    if any(chance >= 1 for chance, _ in each):
        return 1.0 if side > 0 else 1 - 2.0**-40
    return -math.expm1(sum(count * math.log1p(-chance) for chance, count in each)) * (
        1 + side * 2.0**-40
    )


def epsilon_of_many(parts: Parts, delta: float, accuracy: float, known: float) -> Ends | None:
    """Two ends of epsilon(delta); None if this is no way to find them. Below `known` the lower one may be -inf."""
    rough = _rough(parts, delta)
    tilt, epsilon = _Scan.of(Uses(rough), delta=delta).best(delta=delta)
    found: Ends | None = None
    if (cut := Sizes.at_delta(rough, tilt, delta, epsilon)) is not None:
        found = _epsilon(parts, delta, accuracy, known, cut.epsilon, cut.ways, cut.sizes)
    if found is None or not found.close:
        found = _both(
            found,
            _epsilon(parts, delta, accuracy, known, epsilon, Ways.whole(len(parts), tilt), None),
        )
    return found


def _epsilon(
    parts: Parts,
    delta: float,
    accuracy: float,
    known: float,
    epsilon: float,
    ways: Ways,
    sizes: Sizes | None,
) -> Ends | None:
    """Two ends of epsilon(delta) by these ways; `epsilon` is where to look first."""
    tilt = max(way.tilt for way in ways.summed)
    lower, upper, slope, share, last = -math.inf, math.inf, tilt, _LOOK, math.inf
    scans: list[_Scan] = []
    for turn in range(1 + _ROUNDS):
        if not 0 < epsilon < math.inf:
            return None
        wanted = share * accuracy * epsilon / (slope + 1)
        laws = _Laws.of(parts, ways, delta, wanted)
        above, infinite = laws.split(1)
        if not all(above.possible(way.large) for way in ways.summed):
            break
        if turn != 1 or ways.cut:
            scans = _scans(above, ways, delta=delta)
        places = [scan.place(epsilon if turn or ways.cut else None, delta) for scan in scans]
        if (seen := _series(above, ways, places, _smooth(wanted, 1))) is None:
            break
        close, start = _CLOSE * share * accuracy * epsilon, places[0].epsilon
        upper = min(upper, seen.epsilon(delta - infinite, 1, start, close) + seen.value_error)
        if upper <= known:
            return Ends(lower, upper, True)
        if not 0 < upper < math.inf:
            return None
        epsilon, around = upper, seen
        if turn == 0:
            ways = _updated(ways, sizes, places, epsilon, math.log(delta))
            slope, share = around.slope(epsilon), 1.0
            continue
        below, infinite = laws.split(-1)
        if not all(below.possible(way.large) for way in ways.summed):
            break
        if (seen := _series(below, ways, places, _smooth(wanted, -1), lower=True)) is None:
            break
        lower = max(lower, seen.epsilon(delta - infinite, -1, upper, close) - seen.value_error)
        width = (upper - lower) / upper
        if width <= accuracy:
            return Ends(lower, upper, True)
        if width > 0.8 * last:
            break
        ways = _updated(ways, sizes, places, epsilon, math.log(delta))
        last, slope = width, around.slope(epsilon)
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
        rough = _rough(parts, guess)
        tilt, log_delta = _Scan.of(Uses(rough), epsilon=epsilon).best(epsilon=epsilon)
    if log_delta > -1:
        return None
    found: Ends | None = None
    if (cut := Sizes.at_epsilon(rough, tilt, epsilon)) is not None:
        found = _delta(parts, epsilon, accuracy, known, _least(cut), cut.ways, cut.sizes)
    if found is None or not found.close:
        found = _both(
            found,
            _delta(parts, epsilon, accuracy, known, guess, Ways.whole(len(parts), tilt), None),
        )
    if (found is None or not found.close) and (
        cut := _cut_where(parts, epsilon, log_delta)
    ) is not None:
        found = _both(
            found, _delta(parts, epsilon, accuracy, known, _least(cut), cut.ways, cut.sizes)
        )
    return found


def _least(cut: Cut) -> float:
    """A delta somewhat below the one that is expected, to size tails by."""
    return math.exp(max(-650.0, cut.log_delta - 3))


def _both(one: Ends | None, other: Ends | None) -> Ends | None:
    if one is None or other is None:
        return one or other
    return Ends(max(one.lower, other.lower), min(one.upper, other.upper), other.close)


def _cut_where(parts: Parts, epsilon: float, most: float) -> Cut | None:
    """The cut at the delta that belongs to epsilon, which is looked for below e to this power.

    Where large losses decide, the whole sum's bound at epsilon is so far above delta that its tilt shows no large
    losses.
    """
    low, high, best = -650.0, most, None
    for _ in range(_SOUGHT):
        delta = math.exp((low + high) / 2)
        rough = _rough(parts, delta)
        tilt, about = _Scan.of(Uses(rough), delta=delta).best(delta=delta)
        if (cut := Sizes.at_delta(rough, tilt, delta, about)) is not None:
            best, about = cut, cut.epsilon
        low, high = (math.log(delta), high) if about > epsilon else (low, math.log(delta))
    if best is None:
        return None
    log_delta = best.sizes.log_delta(epsilon)
    ways = best.sizes.ways(epsilon, log_delta)
    return None if ways is None else Cut(best.sizes, ways, epsilon, log_delta)


def _delta(
    parts: Parts,
    epsilon: float,
    accuracy: float,
    known: float,
    guess: float,
    ways: Ways,
    sizes: Sizes | None,
) -> Ends | None:
    """Two ends of delta(epsilon) by these ways; `guess` is about delta."""
    tilt = max(way.tilt for way in ways.summed)
    lower, upper, slope, share, last = 0.0, 1.0, tilt, _LOOK, math.inf
    scans: list[_Scan] = []
    for turn in range(1 + _ROUNDS):
        wanted = share * accuracy * epsilon / (slope + 1)
        laws = _Laws.of(parts, ways, guess, wanted)
        above, infinite = laws.split(1)
        if not all(above.possible(way.large) for way in ways.summed):
            break
        if turn != 1 or ways.cut:
            scans = _scans(above, ways, epsilon=epsilon)
        places = [scan.place(epsilon, upper if turn else guess) for scan in scans]
        if (seen := _series(above, ways, places, _smooth(wanted, 1))) is None:
            break
        upper = min(upper, seen.delta(epsilon - seen.value_error, 1) + infinite)
        if upper <= known:
            return Ends(lower, upper, True)
        if upper >= 1:
            return None
        guess = min(guess, upper)
        if turn == 0:
            ways = _updated(ways, sizes, places, epsilon, math.log(max(upper, _FAINT)))
            slope, share = seen.slope(epsilon), 1.0
            continue
        below, infinite = laws.split(-1)
        if not all(below.possible(way.large) for way in ways.summed):
            break
        if (seen := _series(below, ways, places, _smooth(wanted, -1), lower=True)) is None:
            break
        lower = max(lower, seen.delta(epsilon + seen.value_error, -1) + infinite)
        width = math.log(upper / lower) / (1 + slope * epsilon) if lower > 0 else math.inf
        if width <= accuracy:
            return Ends(lower, upper, True)
        if width > 0.8 * last:
            break
        ways = _updated(ways, sizes, places, epsilon, math.log(max(upper, _FAINT)))
        last = width
        share *= min(0.5, max(0.05, 0.6 * accuracy / width))
    return Ends(lower, upper, False)


def _smooth(wanted: float, side: int) -> float:
    """The shift of a Gaussian release that moves epsilon, by (slope + 1) shift^2/2, as much as it may."""
    return min(_MOST_SMOOTH, math.sqrt(2 * _SMOOTH[side] * wanted))


def _rough(parts: Parts, delta: float) -> list[tuple[Discrete, int]]:
    """The laws in rough cells: enough to find tilts."""
    tail = delta * _SHARE / sum(count for _, count in parts)
    laws = []
    for law, count in parts:
        values, masses = np.array([v for v, _ in law.atoms]), np.array([p for _, p in law.atoms])
        if law.high > law.low:
            sketch = Sketch.of(law)
            kept = sketch.kept(tail)
            values, masses = (
                np.append(values, sketch.losses[kept]),
                np.append(masses, sketch.masses[kept]),
            )
        laws.append((Discrete(values, masses), count))
    return laws


@dataclass(frozen=True)
class _Laws:
    """The cells of each law, and where its large losses begin."""

    cells: list[tuple[Graded, int]]
    cuts: tuple[float, ...]

    @staticmethod
    def of(parts: Parts, ways: Ways, delta: float, wanted: float) -> _Laws:
        """Cells that move epsilon, by about k (slope + 1) width^2/12 for each law, as much as they may."""
        moved = 12 * _CELLS * wanted
        tail = delta * _SHARE / sum(count for _, count in parts)
        sizes = [count ** (1 / 3) * law.spread ** (2 / 3) for law, count in parts]
        cells = []
        for i, (law, count) in enumerate(parts):
            views = _views(
                [(way.tilt, way.large[i]) for way in ways.looked_at], ways.cuts[i], count
            )
            cells.append((Graded.of_views(law, views, tail, moved * sizes[i] / sum(sizes)), count))
        return _Laws(cells, ways.cuts)

    def split(self, side: int) -> tuple[Split, float]:
        """The discrete losses from above or from below, cut in two, and P[sum = inf]."""
        laws = [
            (cells.from_above() if side > 0 else cells.from_below(), count)
            for cells, count in self.cells
        ]
        return Split.of(laws, self.cuts), any_infinite(
            [(law.infinite, count) for law, count in laws], side
        )


def _views(large: Sequence[tuple[float, int]], cut: float, count: int) -> list[View]:
    """The views of one law of which, with each tilt, this many uses are large."""
    if math.isinf(cut):
        return [View(tilt, count) for tilt, _ in large]
    small = [View(tilt, count - n, to=cut) for tilt, n in large if count > n]
    return small + [View(tilt, n, above=cut) for tilt, n in large if n]


def _scans(
    split: Split, ways: Ways, *, delta: float | None = None, epsilon: float = 0.0
) -> list[_Scan]:
    """For each way that is summed, the tilts about its own; for the whole sum, about the best."""
    if not ways.cut:
        return [
            _Scan.of(split.exactly(way.large)[0], delta=delta, epsilon=epsilon)
            for way in ways.summed
        ]
    return [_Scan.near(*split.exactly(way.large), way.tilt) for way in ways.summed]


def _updated(
    ways: Ways, sizes: Sizes | None, places: Sequence[_Place], epsilon: float, log_delta: float
) -> Ways:
    """The ways that matter where delta was found, or the one with the tilt that was found."""
    if sizes is None or not ways.cut:
        return ways.tilted([place.tilt for place in places])
    return sizes.ways(epsilon, log_delta) or ways


def _series(
    split: Split, ways: Ways, places: Sequence[_Place], smooth: float, lower: bool = False
) -> Series | None:
    """The sum over all ways; for a lower end only over those that count. None where one cannot be made."""
    spectra = []
    for way, place in zip(ways.summed, places, strict=True):
        uses, log_ways = split.exactly(way.large)
        seen = Spectrum.of(uses, place.tilt, smooth, place.outside, log_ways)
        if seen is None:
            return None
        spectra.append(seen)
    if lower:
        return Series(spectra, [])
    others = [
        (split.exactly(way.large), way.tilt) for way in ways.bounded if split.possible(way.large)
    ]
    others += [
        (split.at_least(way.large), way.tilt) for way in ways.beyond if split.possible(way.large)
    ]
    return Series(spectra, [Bound.of(*chosen, tilt, places[0].epsilon) for chosen, tilt in others])


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
            scan = _Scan(
                uses,
                tilts,
                uses.log_moments(tilts) + tilts * np.log(tilts) - (1 + tilts) * np.log1p(tilts),
            )
            best = int(np.argmin(scan._bounds(delta, epsilon)))
            tilts = np.geomspace(
                tilts[max(0, best - 2)], tilts[min(best + 2, len(tilts) - 1)], _FINE
            )
        return scan

    @staticmethod
    def near(uses: Uses, log_ways: float, tilt: float) -> _Scan:
        """Tilts about this one, for a sum that counts in this many ways."""
        tilts = np.geomspace(tilt / _NEAR, tilt * _NEAR, _FINE)
        payoffs = tilts * np.log(tilts) - (1 + tilts) * np.log1p(tilts)
        return _Scan(uses, tilts, log_ways + uses.log_moments(tilts) + payoffs)

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
        return _Place(
            about, float(self.tilts[chosen]), max(_LEAST_OUTSIDE, min(_OUTSIDE, 1e-5 / times))
        )

"""Many uses as a sum over how many of them are large: Lemma 6 of total.md.

At tiny deltas one large loss may decide by itself. Tilted, one use then is small or large and hardly ever in between,
and no tilt puts the sum where delta is decided. With the number of large losses fixed, one does.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sordino.accounting.graded import Discrete
from sordino.accounting.spectrum import Spectrum, Uses
from sordino.privacy.loss.law import Floats

__all__ = ["Bound", "Cut", "Series", "Sizes", "Split", "Way", "Ways"]

_DEEP = 3.0
"""How much rarer, in logs, losses between the small and the large ones must be for a cut there."""
_TELLS = -9.0
"""A cut is worthwhile where a way with large losses has at least this log share of delta."""
_FAINT = -14.0
"""A way with a smaller log share of delta is only bounded."""
_MOST_SUMMED = 4
_MOST_LARGE = 12
_MOST_WAYS = 100
_STEEPER = (1.0, 1.5, 2.2, 3.3, 5.0, 7.5)
"""The one large loss that decides is about epsilon;
it may take a steeper tilt than the whole sum's to cut below that.
"""
_ABOUT = np.array([0.4, 0.6, 0.8, 1.0, 1.2])
_WIDE = 30.0
_TILTS = 120
_BISECTIONS = 25


class Way(NamedTuple):
    """How many uses of each law are large, and a good tilt for the sum with this many."""

    large: tuple[int, ...]
    tilt: float


@dataclass(frozen=True)
class Split:
    """Discrete losses, each used `count` times, cut in two: the values up to a cut, and the large ones."""

    laws: Sequence[Discrete]
    counts: Sequence[int]
    small: Sequence[Discrete]
    large: Sequence[Discrete]

    @staticmethod
    def of(laws: Sequence[tuple[Discrete, int]], cuts: Sequence[float]) -> Split:
        """Each law cut at its own value; at inf, none of it is large."""
        small, large = [], []
        for (law, _), cut in zip(laws, cuts, strict=True):
            above = law.values > cut
            small.append(Discrete(law.values[~above], law.masses[~above], rounding=law.rounding))
            large.append(Discrete(law.values[above], law.masses[above], rounding=law.rounding))
        return Split([law for law, _ in laws], [count for _, count in laws], small, large)

    def possible(self, large: tuple[int, ...]) -> bool:
        """Whether there are large losses of each law that is to have some: not where all of them were cut off."""
        return all(not n or len(law.values) for law, n in zip(self.large, large, strict=True))

    def exactly(self, large: tuple[int, ...]) -> tuple[Uses, float]:
        """The sum of this many large losses and of small ones,
        and the log of how many ways there are to choose them.
        """
        return self._chosen(large, self.small)

    def at_least(self, large: tuple[int, ...]) -> tuple[Uses, float]:
        """The sum of this many large losses and of any others.

        In all the ways to choose them: more than is so in truth.
        """
        return self._chosen(large, self.laws)

    def _chosen(self, large: tuple[int, ...], others: Sequence[Discrete]) -> tuple[Uses, float]:
        parts = [
            (law, count - n)
            for law, count, n in zip(others, self.counts, large, strict=True)
            if count > n
        ]
        parts += [(law, n) for law, n in zip(self.large, large, strict=True) if n]
        return Uses(parts), _log_ways(self.counts, large)


class Bound(NamedTuple):
    """Chernoff's bound e^(log - tilt epsilon) on a part of delta."""

    log: float
    tilt: float

    @staticmethod
    def of(uses: Uses, log_ways: float, tilt: float, epsilon: float) -> Bound:
        """On E[(1 - e^(epsilon - sum))+], times the ways,
        with one of some tilts about this one: the best at epsilon.
        """
        tilts = tilt * _ABOUT
        logs = (
            log_ways
            + uses.log_moments(tilts)
            + tilts * np.log(tilts)
            - (1 + tilts) * np.log1p(tilts)
        )
        best = int(np.argmin(logs - tilts * epsilon))
        return Bound(float(logs[best]) + uses.log_error(float(tilts[best])), float(tilts[best]))


@dataclass(frozen=True)
class Ways:
    """Where the losses of each law count as large, and how many of the uses are.

    Delta is a sum: over `summed`, each a series; over `bounded`, which hardly count; and over `beyond`, more large
    ones.
    """

    cuts: tuple[float, ...]
    summed: tuple[Way, ...]
    bounded: tuple[Way, ...] = ()
    beyond: tuple[Way, ...] = ()
    told: bool = False
    """Whether ways with large losses have a share of delta that tells."""

    @staticmethod
    def whole(laws: int, tilt: float) -> Ways:
        """The one way if no loss counts as large."""
        return Ways((math.inf,) * laws, (Way((0,) * laws, tilt),))

    @property
    def cut(self) -> bool:
        """Whether any loss counts as large."""
        return bool(self.beyond)

    @property
    def worthwhile(self) -> bool:
        """Whether it is better to go by ways than to take the sum as a whole."""
        return self.told and len(self.summed) <= _MOST_SUMMED

    @property
    def looked_at(self) -> tuple[Way, ...]:
        """Those for which the laws need good cells: large losses among them, where there are any."""
        return (
            self.summed if any(sum(way.large) for way in self.summed) else self.summed + self.beyond
        )

    def tilted(self, tilts: Sequence[float]) -> Ways:
        """The same, what is summed with these tilts."""
        return replace(
            self,
            summed=tuple(
                Way(way.large, tilt) for way, tilt in zip(self.summed, tilts, strict=True)
            ),
        )


@dataclass(frozen=True)
class Series:
    """delta(epsilon) of many uses, way by way."""

    spectra: Sequence[Spectrum]
    bounds: Sequence[Bound]

    @property
    def value_error(self) -> float:
        """How far rounding can have moved the sum."""
        return max(seen.value_error for seen in self.spectra)

    def delta(self, epsilon: float, side: int) -> float:
        """Its upper (+1) or lower (-1) end."""
        found = float(sum(seen.delta(epsilon, side) for seen in self.spectra))
        if side > 0:
            found += sum(
                math.exp(min(0.0, bound.log - bound.tilt * epsilon)) for bound in self.bounds
            )
        return found

    def slope(self, epsilon: float) -> float:
        """About how fast log delta falls at epsilon."""
        steepest = max(seen.tilt for seen in self.spectra)
        step = 0.1 / (steepest + 1)
        near, far = self.delta(epsilon, 1), self.delta(epsilon + step, 1)
        return math.log(near / far) / step if near > far > 0 else steepest

    def epsilon(self, target: float, side: int, start: float, accuracy: float) -> float:
        """An epsilon at which delta's end is at most (side +1) or at least (side -1) the target; else side * inf.

        `accuracy` is how much too far it may be.
        """
        if target <= 0:
            return side * math.inf
        wanted, epsilon, slope = (
            math.log(target),
            start,
            max(seen.tilt for seen in self.spectra) + 1,
        )
        good, bad = side * math.inf, -side * math.inf
        before: tuple[float, float] | None = None
        for _ in range(40):
            found = self.delta(epsilon, side)
            off = math.log(found) - wanted if found > 0 else -math.inf
            if side * off <= 0:
                if abs(off) <= slope * accuracy:
                    return epsilon
                good = epsilon if math.isinf(good) else side * min(side * good, side * epsilon)
            else:
                bad = epsilon if math.isinf(bad) else side * max(side * bad, side * epsilon)
            if abs(good - bad) <= accuracy:
                break
            if (
                before is not None
                and epsilon != before[0]
                and math.isfinite(off)
                and math.isfinite(before[1])
            ):
                steep = (before[1] - off) / (epsilon - before[0])
                slope = steep if steep > 0 else slope
            before = epsilon, off
            follow = epsilon + off / slope + side * accuracy / 3 if math.isfinite(off) else math.inf
            low, high = min(good, bad), max(good, bad)
            low = max(low, min(seen.reference - seen.first for seen in self.spectra))
            high = min(high, max(seen.reference + seen.last for seen in self.spectra))
            epsilon = follow if low < follow < high else (low + high) / 2
        return good


@dataclass(frozen=True)
class Sizes:
    """Chernoff's bounds for each number of large uses at many tilts: which of them matter. Nothing certified depends
    on it.

    Rows are numbers of large uses, columns tilts; `exactly` this many, or `at_least`: logs of the bounds at epsilon 0.
    """

    cuts: tuple[float, ...]
    large: Sequence[tuple[int, ...]]
    tilts: Floats
    exactly: Floats
    at_least: Floats

    @staticmethod
    def at_delta(
        laws: Sequence[tuple[Discrete, int]], tilt: float, delta: float, most: float
    ) -> Cut | None:
        """The ways in which delta is reached, and about at which epsilon,
        at most this; None if no cut is worthwhile.
        """
        best: Cut | None = None
        epsilon = most
        for cuts in _cuts(laws, tilt):
            if _low(cuts, epsilon):
                sizes = Sizes.of(laws, tilt, cuts)
                epsilon = sizes._epsilon(delta, most)
                ways = sizes.ways(epsilon, math.log(delta))
                if (
                    ways is not None
                    and ways.worthwhile
                    and (best is None or epsilon < best.epsilon)
                ):
                    best = Cut(sizes, ways, epsilon, math.log(delta))
                if _low(cuts, epsilon / 2):
                    break
        return best

    @staticmethod
    def at_epsilon(laws: Sequence[tuple[Discrete, int]], tilt: float, epsilon: float) -> Cut | None:
        """The ways in which epsilon is passed, and about how often; None if no cut is worthwhile."""
        best: Cut | None = None
        for cuts in _cuts(laws, tilt):
            if _low(cuts, epsilon):
                sizes = Sizes.of(laws, tilt, cuts)
                log_delta = sizes.log_delta(epsilon)
                ways = sizes.ways(epsilon, log_delta)
                if (
                    ways is not None
                    and ways.worthwhile
                    and (best is None or log_delta < best.log_delta)
                ):
                    best = Cut(sizes, ways, epsilon, log_delta)
                if _low(cuts, epsilon / 2):
                    break
        return best

    @staticmethod
    def of(laws: Sequence[tuple[Discrete, int]], tilt: float, cuts: tuple[float, ...]) -> Sizes:
        """For these cuts; `tilt` is the best one of the whole sum."""
        split = Split.of(laws, cuts)
        tilts = np.geomspace(tilt / _WIDE, tilt * _WIDE, _TILTS)
        large = _numbers(
            [count if cut < math.inf else 0 for cut, (_, count) in zip(cuts, laws, strict=True)]
        )
        small, of_large, whole = (
            [
                Uses([(law, 1)]).log_moments(tilts) if len(law.values) else np.zeros(_TILTS)
                for law in each
            ]
            for each in (split.small, split.large, split.laws)
        )
        payoffs = tilts * np.log(tilts) - (1 + tilts) * np.log1p(tilts)

        def logs(others: list[Floats], n: tuple[int, ...]) -> Floats:
            each = zip(n, split.counts, others, of_large, strict=True)
            return sum(
                ((count - m) * other + m * own for m, count, other, own in each), payoffs
            ) + _log_ways(split.counts, n)

        exactly, at_least = (
            np.array([logs(others, n) for n in large]) for others in (small, whole)
        )
        return Sizes(cuts, large, tilts, exactly, at_least)

    def log_delta(self, epsilon: float) -> float:
        """About the log of delta."""
        return float(np.logaddexp.reduce((self.exactly - self.tilts * epsilon).min(axis=1)))

    def _epsilon(self, delta: float, most: float) -> float:
        """About epsilon, which is at most this."""
        low, high = 0.0, most
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2
            low, high = (
                (middle, high) if self.log_delta(middle) > math.log(delta) else (low, middle)
            )
        return high

    def ways(self, epsilon: float, log_delta: float) -> Ways | None:
        """The ways that matter where delta is decided; None if these are too many, or none."""
        exactly, at_least = (logs - self.tilts * epsilon for logs in (self.exactly, self.at_least))
        shares, more = (logs.min(axis=1) - log_delta for logs in (exactly, at_least))
        sizes = np.array([sum(n) for n in self.large])
        least = next(
            (m for m in range(1, int(sizes.max()) + 1) if (more[sizes == m] < _FAINT).all()), None
        )
        if least is None:
            return None

        def chosen(which: npt.NDArray[np.bool_], logs: Floats) -> tuple[Way, ...]:
            return tuple(
                Way(self.large[i], float(self.tilts[logs[i].argmin()]))
                for i in np.flatnonzero(which).tolist()
            )

        summed = chosen((sizes < least) & (shares >= _FAINT), exactly)
        if not summed:
            return None
        bounded = chosen((sizes < least) & (shares < _FAINT), exactly)
        told = max(
            (float(share) for share in shares[(sizes > 0) & (sizes < least)]), default=-math.inf
        )
        return Ways(self.cuts, summed, bounded, chosen(sizes == least, at_least), told >= _TELLS)


class Cut(NamedTuple):
    """Which losses are large, the ways that matter then, and about the epsilon and the log of delta where they do."""

    sizes: Sizes
    ways: Ways
    epsilon: float
    log_delta: float


def _numbers(most: Sequence[int]) -> list[tuple[int, ...]]:
    """How many uses of each law may be large: all of not too many in total."""
    total, laws = _MOST_LARGE, sum(m > 0 for m in most)
    while math.comb(total + laws, laws) > _MOST_WAYS:
        total -= 1
    return [n for n in product(*(range(min(total, m) + 1) for m in most)) if sum(n) <= total]


def _cuts(laws: Sequence[tuple[Discrete, int]], tilt: float) -> Iterator[tuple[float, ...]]:
    """Where the tilted laws fall into small and large losses, with steeper and steeper tilts, which cut lower."""
    for times in _STEEPER:
        cuts = tuple(_valley(law, times * tilt) for law, _ in laws)
        if all(math.isinf(cut) for cut in cuts):
            return
        yield cuts


def _low(cuts: tuple[float, ...], most: float) -> bool:
    """Whether there is no cut above this."""
    return all(math.isinf(cut) or cut < most for cut in cuts)


def _valley(law: Discrete, tilt: float) -> float:
    """The value between small and large losses, tilted, about which there are least; inf if there is no such place."""
    order = np.argsort(law.values)
    logs = np.log(np.maximum(law.masses[order], 1e-300)) + tilt * law.values[order]
    before, after = np.maximum.accumulate(logs), np.maximum.accumulate(logs[::-1])[::-1]
    depths = np.minimum(before, after) - logs
    deepest = int(np.argmax(depths))
    return float(law.values[order][deepest]) if depths[deepest] >= _DEEP else math.inf


def _log_ways(counts: Sequence[int], large: tuple[int, ...]) -> float:
    """The log of in how many ways this many of the uses can be chosen."""
    return sum(math.log(math.comb(count, n)) for count, n in zip(counts, large, strict=True))

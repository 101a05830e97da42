"""Events {score > threshold}, and the best of them by what they promise on runs that did not make the score."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from sordino.audit.sampled.bounds import predicted, predicted_jointly
from sordino.audit.sampled.outputs import Floats, Table
from sordino.audit.sampled.scores import Binned, Score

__all__ = [
    "Event", "Gauge", "Goal", "Levels", "Reading", "Tally", "best_events", "gauge", "levels_of", "simplest", "table_levels",
]  # fmt: skip

_PROFILE = 256
_LEVELS = 4097
_CARES = (2.0, 4.0)
_NEAR = 0.99


@dataclass(frozen=True)
class Goal:
    """What the final round will be: its runs on each input, its chance of error, the claimed delta."""

    runs: tuple[int, int]
    alpha: float
    delta: float
    independent: bool = False
    """Whether runs on the two inputs are known to be independent, so that they may be judged in pairs."""

    def predicted(self, hits: Any, misses: Any, seen: tuple[int, int], care: float = 2.0) -> Floats:
        """The bound on epsilon to expect, event by event, if what was seen was `care` standard deviations too good."""
        apart = predicted(hits, misses, seen, self.runs, self.alpha, self.delta, care)
        return np.maximum(apart, self._jointly(hits, misses, seen, care)) if self._pairs else apart

    @property
    def _pairs(self) -> bool:
        return self.independent and self.delta == 0

    def _jointly(self, hits: Any, misses: Any, seen: tuple[int, int], care: float) -> Floats:
        return predicted_jointly(hits, misses, seen, min(self.runs), self.alpha, care)

    def prefers_pairs(self, hits: float, misses: float, seen: tuple[int, int]) -> bool:
        """Whether an event should be judged in pairs of runs, rather than by a bound on each of its probabilities."""
        if not self._pairs:
            return False
        apart = predicted(hits, misses, seen, self.runs, self.alpha, self.delta, 0.0)
        return bool(self._jointly(hits, misses, seen, 0.0) > apart)


@dataclass(frozen=True, eq=False)
class Event:
    """{sign * score > threshold}: likelier on the first input, or on the second if `swapped`."""

    score: Score
    sign: int
    threshold: float
    swapped: bool
    predicted: float

    def same(self, other: Event) -> bool:
        """Whether both happen in the same runs, whatever was expected of them."""
        mine, its = ((e.sign, e.threshold, e.swapped) for e in (self, other))
        return self.score is other.score and mine == its

    def of(self, binned: Binned) -> npt.NDArray[np.bool_]:
        """Where it happens."""
        return np.asarray(self.sign * self.score.of(binned) > self.threshold)


@dataclass(frozen=True)
class Reading:
    """Counts of the final round on one input."""

    runs: int
    hits: int
    profile: npt.NDArray[np.int64]
    raised: int = 0
    marks: tuple[npt.NDArray[np.bool_], ...] = ()
    """Where the event happened, run by run, if pairs are counted."""
    beside: Reading | None = None
    """The counts of another event in the same runs."""

    def __add__(self, other: Reading) -> Reading:
        runs, hits = self.runs + other.runs, self.hits + other.hits
        profile, marks = self.profile + other.profile, self.marks + other.marks
        beside = self.beside + other.beside if self.beside and other.beside else None
        return Reading(runs, hits, profile, self.raised + other.raised, marks, beside)

    def marked(self, runs: int, missing: bool) -> npt.NDArray[np.bool_]:
        """All marks; runs that were not made are as said."""
        return np.concatenate([*self.marks, np.full(runs - sum(map(len, self.marks)), missing)])


class Tally(Protocol):
    """What runs are counted for."""

    def read(self, table: Table) -> Reading:
        """The counts of one batch."""

    def nothing(self) -> Reading:
        """Before the first batch."""


@dataclass(frozen=True, eq=False)
class Gauge:
    """What is counted in the final round: one event, by itself or in pairs of runs, and a histogram of one score.

    `beside` is another one, counted in the same runs.
    """

    event: Event
    score: Score
    edges: Floats
    pairs: bool
    beside: Gauge | None = None

    def read(self, table: Table) -> Reading:
        return self._read(Binned(table))

    def _read(self, binned: Binned) -> Reading:
        places = np.searchsorted(self.edges, self.score.of(binned))
        profile = np.bincount(places, minlength=len(self.edges) + 1)
        happens, table = self.event.of(binned), binned.table
        marks = (happens,) if self.pairs else ()
        beside = None if self.beside is None else self.beside._read(binned)
        return Reading(table.size, int(happens.sum()), profile, table.raised(), marks, beside)

    def nothing(self) -> Reading:
        beside = None if self.beside is None else self.beside.nothing()
        return Reading(0, 0, np.zeros(len(self.edges) + 1, np.int64), beside=beside)


def simplest(tried: Sequence[Event]) -> Event:
    """The event that is easiest to say, of those that promise about as much as the first."""
    best = tried[0].predicted
    near = [event for event in tried if best <= 0 or event.predicted >= _NEAR * best]
    return min(near, key=lambda event: event.score.complexity)


def gauge(event: Event, score: Score, first: Binned, second: Binned, goal: Goal) -> Gauge:
    """Count this event, in pairs if that promises more, and the score between its quantiles on both inputs."""
    values = np.sort(np.concatenate([score.of(first), score.of(second)]))
    places = np.linspace(0, len(values) - 1, _PROFILE + 1).astype(int)[:-1]
    here, there = (second, first) if event.swapped else (first, second)
    hits, misses = (float(event.of(binned).sum()) for binned in (here, there))
    pairs = goal.prefers_pairs(hits, misses, (here.table.size, there.table.size))
    return Gauge(event, score, np.unique(values[places]), pairs)


@dataclass(frozen=True)
class Levels:
    """The levels of a score, rising, and how many of this many runs on each input were at each."""

    values: Floats
    first: Floats
    second: Floats
    sizes: tuple[int, int]


def levels_of(score: Score, first: Binned, second: Binned) -> Levels:
    """The levels of a score; of one with many, quantiles."""
    a, b = np.sort(score.of(first)), np.sort(score.of(second))
    both = np.concatenate([a, b])
    both.sort()
    values = np.unique(both[np.linspace(0, len(both) - 1, _LEVELS).astype(int)])
    up_to = (np.searchsorted(numbers, values, side="right") for numbers in (a, b))
    here, there = (np.diff(places, prepend=0).astype(float) for places in up_to)
    return Levels(values, here, there, (len(a), len(b)))


def table_levels(weights: Floats, first: Floats, second: Floats) -> Levels:
    """The levels of a table of weights, from the counts of its bins."""
    values, inverse = np.unique(weights, return_inverse=True)
    here, there = (np.bincount(inverse, n, len(values)).astype(float) for n in (first, second))
    return Levels(values, here, there, (int(first.sum()), int(second.sum())))


def best_events(
    score: Score, levels: Levels, goal: Goal, *, one_way: bool = False
) -> Iterator[Event]:
    """The best thresholds of a score, more and less careful ones; in both directions unless the score has only one."""
    for sign in (1,) if one_way else (1, -1):
        values, a, b = (levels.values, levels.first, levels.second)
        if sign < 0:
            values, a, b = -values[::-1], a[::-1], b[::-1]
        above_a, above_b = (np.append(counts[::-1].cumsum()[::-1][1:], 0) for counts in (a, b))
        thresholds = np.append((values[:-1] + values[1:]) / 2, np.inf)
        for swapped in (False, True) if one_way else (sign < 0,):
            hits, misses = (above_b, above_a) if swapped else (above_a, above_b)
            seen = levels.sizes[::-1] if swapped else levels.sizes
            for care in _CARES:
                bound = goal.predicted(hits, misses, seen, care)
                at = int(bound.argmax())
                yield Event(score, sign, float(thresholds[at]), swapped, float(bound[at]))

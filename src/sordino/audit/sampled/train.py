"""From training runs to one event: features are screened, scores fitted on one half, events chosen on the other."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from sordino.audit.sampled.events import (
    Event,
    Gauge,
    Goal,
    best_events,
    gauge,
    levels_of,
    simplest,
    table_levels,
)
from sordino.audit.sampled.features import (
    Combined,
    Feature,
    Pattern,
    Summary,
    Value,
    Whole,
    propose,
)
from sordino.audit.sampled.outputs import Column, Floats, Table, concat
from sordino.audit.sampled.scores import (
    Binned,
    Bins,
    Score,
    SumScore,
    TableScore,
    cut,
    cut_together,
    fit_logistic,
    fit_trees,
    log_ratios,
)

__all__ = ["Found", "train"]

_LOOK = 20_000
_SCREEN = 16_000
_KEPT = 16
_SEATS = 6
_COORDINATES = 32
_PLACES = 64
_SHARES = (0.5, 0.8)
_SHORTLIST = 10
_CARE = (0.6, 1.0, 0.6, 1.0)
"""By complexity, how many standard deviations are taken off what training saw: more where more was fitted."""
_LOGISTIC_ROWS = 150_000
_FEWEST_ROWS = 500
_TREES = (15, 45)
_TREE_ROWS = 50_000


@dataclass(frozen=True, eq=False)
class Found:
    """The event to test, what to count with it, the best event of each way of looking, and the runs that judged."""

    event: Event
    gauge: Gauge
    tried: tuple[Event, ...]
    held: tuple[Table, Table]


class _Parts:
    """Training runs of both inputs in three parts: to fit scores, to choose thresholds, to judge the events."""

    def __init__(self, parts: Sequence[tuple[Table, Table]]) -> None:
        self.tables = tuple(parts)
        self.fit, self.choose, self.judge = ((Binned(a), Binned(b)) for a, b in parts)
        self._counts: dict[tuple[int, Bins], tuple[Floats, Floats]] = {}

    @classmethod
    def of(cls, first: Table, second: Table) -> _Parts:
        cuts = [[int(share * table.size) for share in _SHARES] for table in (first, second)]
        ranges = [[slice(0, a), slice(a, b), slice(b, None)] for a, b in cuts]
        return cls([(first.take(i), second.take(j)) for i, j in zip(*ranges, strict=True)])

    def first(self, rows: int) -> _Parts:
        """Only this many runs of each."""
        return _Parts([(a.take(slice(0, rows)), b.take(slice(0, rows))) for a, b in self.tables])

    @property
    def sizes(self) -> tuple[int, int]:
        return self.tables[0][0].size, self.tables[0][1].size

    def columns(self, feature: Feature) -> tuple[Column, Column]:
        return feature.column(self.tables[0][0]), feature.column(self.tables[0][1])

    def counts(self, bins: Bins, part: int = 0) -> tuple[Floats, Floats]:
        if (part, bins) not in self._counts:
            both = (self.fit, self.choose, self.judge)[part]
            a, b = (np.bincount(binned[bins], minlength=bins.count) for binned in both)
            self._counts[part, bins] = a.astype(float), b.astype(float)
        return self._counts[part, bins]

    def table(self, bins: Bins, prior: float) -> TableScore:
        return TableScore(bins, log_ratios(*self.counts(bins), self.sizes, prior))

    def events(self, score: Score, goal: Goal) -> Iterator[Event]:
        """The best thresholds of a score, chosen on the second part."""
        if isinstance(score, TableScore):
            levels = table_levels(score.weights, *self.counts(score.bins, 1))
        else:
            levels = levels_of(score, *self.choose)
        one_way = isinstance(score, TableScore) and score.simple
        return best_events(score, levels, goal, one_way=one_way)

    def judged(self, event: Event, goal: Goal) -> Event:
        """The event with what it promises on the runs that did not make its score."""
        if isinstance(event.score, TableScore):
            inside = event.sign * event.score.weights > event.threshold
            counts = [self.counts(event.score.bins, part) for part in (1, 2)]
            hits = [float(a[inside].sum() + b[inside].sum()) for a, b in zip(*counts, strict=True)]
        else:
            both = zip(self.choose, self.judge, strict=True)
            hits = [float(event.of(a).sum() + event.of(b).sum()) for a, b in both]
        sizes = [a.size + b.size for a, b in zip(*self.tables[1:], strict=True)]
        if event.swapped:
            hits, sizes = hits[::-1], sizes[::-1]
        care = _CARE[event.score.complexity]
        bound = goal.predicted(hits[0], hits[1], (sizes[0], sizes[1]), care)
        return dataclasses.replace(event, predicted=float(bound))


@np.errstate(over="ignore", invalid="ignore")
def train(first: Table, second: Table, goal: Goal, *, thorough: bool = True) -> Found:
    """The event that promises the largest bound on epsilon in the final round."""
    places = _promising(first, second)
    parts = _Parts.of(first.only(places), second.only(places))
    look = concat([table.take(slice(0, _LOOK)) for table in parts.tables[0]])
    kept = _screened(propose(look), parts, goal)
    singles = [_top(_single_events(bins, parts, goal)) for bins in kept]
    order = sorted(range(len(kept)), key=lambda i: -singles[i][0].predicted)
    shortlist = [event for i in order[:_SHORTLIST] for event in singles[i]]
    if thorough:
        numeric = [name for name, column in look.columns.items() if column.is_number().any()]
        numeric = numeric[:_COORDINATES]
        scores = [*_sums(numeric, parts), *_learned([kept[i] for i in order], numeric, parts)]
        shortlist += [event for score in scores for event in _top(parts.events(score, goal))]
    tried = [parts.judged(event, goal) for event in shortlist]
    tried.sort(key=lambda event: -event.predicted)
    event = simplest(tried)
    score = event.score
    if isinstance(score, TableScore):
        score = parts.table(score.bins, 4.0)
    return Found(event, gauge(event, score, *parts.judge, goal), tuple(tried), parts.tables[2])


def _promising(first: Table, second: Table) -> set[str]:
    """The places to look at: all of a few, of many those whose means, spreads or atoms differ most, in errors."""
    names = list(dict.fromkeys([*first.columns, *second.columns]))
    if len(names) <= _PLACES:
        return set(names)
    few = first.take(slice(0, _LOOK // 4)), second.take(slice(0, _LOOK // 4))

    def apart(name: str) -> float:
        a, b = (table.column(name) for table in few)
        middle = float(np.median(b.numbers))
        views = [
            (a.numbers, b.numbers),
            (np.abs(a.numbers - middle), np.abs(b.numbers - middle)),
            (a.is_number(), b.is_number()),
        ]
        errors = [max(1e-12, math.sqrt((x.var() + y.var()) / len(x))) for x, y in views]
        gaps = [float(abs(x.mean() - y.mean())) for x, y in views]
        return max(gap / error for gap, error in zip(gaps, errors, strict=True))

    return set(sorted(names, key=apart, reverse=True)[:_PLACES])


def _top(events: Iterator[Event]) -> list[Event]:
    """The best few of one way of looking, and for either input the best of those that are easy to say."""
    ordered = sorted(events, key=lambda event: -event.predicted)
    chosen = {id(event): event for event in ordered[:2]}
    for swapped in (False, True):
        own = (e for e in ordered if e.score.complexity == 0 and e.swapped == swapped)
        chosen |= {id(event): event for event in itertools.islice(own, 1)}
    return list(chosen.values())


def _resolution(rows: int) -> int:
    return int(np.clip(rows // 40, 4, 250))


def _cut(feature: Feature, parts: _Parts, most: int) -> Bins:
    atoms = 4000 if isinstance(feature, Whole | Pattern) else 250
    return cut(feature, parts.columns(feature), most, min(atoms, max(4, min(parts.sizes) // 20)))


def _screened(features: Sequence[Feature], parts: _Parts, goal: Goal) -> list[Bins]:
    """The bins of the features that promise most on few runs; constant ones are dropped."""
    few = parts.first(_SCREEN)
    bins = [_cut(feature, few, min(64, _resolution(min(few.sizes)))) for feature in features]
    varied = [b for b in bins if b.count > 2 or np.count_nonzero(np.add(*few.counts(b))) > 1]
    bins = varied or bins[:1]
    if len(bins) > _KEPT:

        def promise(b: Bins) -> float:
            return max(event.predicted for event in few.events(few.table(b, 4.0), goal))

        seats = Counter[str]()
        ordered, bins = sorted(bins, key=promise, reverse=True), []
        for b in ordered:
            kind = b.feature
            family = kind.family if isinstance(kind, Summary) else type(kind).__name__
            seats[family] += 1
            if seats[family] <= _SEATS:
                bins.append(b)
    most = _resolution(min(parts.sizes))
    return [_cut(b.feature, parts, most) for b in bins]


def _single_events(bins: Bins, parts: _Parts, goal: Goal) -> Iterator[Event]:
    """Events of one feature: above, below, between; one atom; any set of bins, by log ratio."""
    for prior in (0.5, 10.0):
        yield from parts.events(parts.table(bins, prior), goal)
    for weights in _ranges(bins, parts, goal):
        yield from parts.events(TableScore(bins, weights, simple=True), goal)


def _ranges(bins: Bins, parts: _Parts, goal: Goal) -> Iterator[Floats]:
    numbers = len(bins.edges) + 1
    rising = np.full(bins.count, -1.0)
    rising[:numbers] = np.arange(numbers)
    falling = rising.copy()
    falling[:numbers] = falling[:numbers][::-1]
    a, b = parts.counts(bins)
    if numbers > 2:
        yield rising
        yield falling
        for here, there, sizes in ((a, b, parts.sizes), (b, a, parts.sizes[::-1])):
            yield _best_interval(here[:numbers], there[:numbers], sizes, bins.count, goal)
    for here, there, sizes in ((a, b, parts.sizes), (b, a, parts.sizes[::-1])):
        single = np.zeros(bins.count)
        single[int(goal.predicted(here, there, sizes).argmax())] = 1
        yield single


def _best_interval(
    here: Floats, there: Floats, sizes: tuple[int, int], count: int, goal: Goal
) -> Floats:
    p, q = np.append(0, here.cumsum()), np.append(0, there.cumsum())
    start, end = np.triu_indices(len(p), 1)
    at = int(goal.predicted(p[end] - p[start], q[end] - q[start], sizes).argmax())
    inside = np.zeros(count)
    inside[start[at] : end[at]] = 1
    return inside


def _sums(numeric: Sequence[str], parts: _Parts) -> Iterator[Score]:
    """Sums of log ratios over coordinates: as they are, as steps from one to the next, with own or shared weights."""
    if len(numeric) < 2:
        return
    values: list[Feature] = [Value(name) for name in numeric]
    differences = (Combined(b, a, -1) for a, b in itertools.pairwise(numeric))
    steps: list[Feature] = [values[0], *differences]
    for title, features in (("coordinates", values), ("steps between coordinates", steps)):
        for most in (6, 32):
            bins = [cut(f, parts.columns(f), most, 16) for f in features]
            tables = tuple(parts.table(b, 10.0) for b in bins)
            yield SumScore(tables, f"the {title}, weighed one by one")
        columns = [column for f in features for column in parts.columns(f)]
        for most in (8, 64):  # few bins where each coordinate tells little
            shared = cut_together(features, columns, most, 16)
            counts = [parts.counts(b) for b in shared]
            first, second = (np.sum([pair[side] for pair in counts], axis=0) for side in (0, 1))
            weights = log_ratios(first, second, parts.sizes, 10.0)
            alike = tuple(TableScore(b, weights) for b in shared)
            yield SumScore(alike, f"the {title}, weighed alike")


def _learned(kept: Sequence[Bins], numeric: Sequence[str], parts: _Parts) -> Iterator[Score]:
    own = [b for b in kept if isinstance(b.feature, Value)]
    names = {b.feature.name for b in own if isinstance(b.feature, Value)}
    rest = [Value(name) for name in numeric if name not in names]
    bins = [*kept[:_KEPT], *(cut(f, parts.columns(f), 64, 64) for f in rest)]
    if not bins:
        return
    tables = [parts.table(b, 10.0) for b in bins]
    lines = [TableScore(b, _line(b)) for b in (*own, *bins[len(kept) :])]
    if len(bins) > 1 and min(parts.sizes) >= _FEWEST_ROWS:
        words = "several features, weighed together"
        yield fit_logistic([*tables, *lines], *parts.fit, _LOGISTIC_ROWS, words)
        words = "several features, by decision trees"
        ranks = [_ranked(table) for table in tables]
        score = fit_trees(bins, ranks, *parts.fit, trees=_TREES[-1], rows=_TREE_ROWS, words=words)
        yield from (score.first(count) for count in _TREES)


def _line(bins: Bins) -> Floats:
    line = np.zeros(bins.count)
    numbers = len(bins.edges) + 1
    line[:numbers] = np.linspace(-1, 1, numbers)
    return line


def _ranked(table: TableScore) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    """Bins as bytes: numbers keep their order where they fit, many atoms are ordered by their log ratio."""
    count = table.bins.count
    if count <= 256:
        return np.arange(count).astype(np.uint8)
    order = np.empty(count, int)
    order[np.argsort(table.weights)] = np.arange(count)
    return (order * 255 // (count - 1)).astype(np.uint8)

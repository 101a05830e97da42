"""The contest: scores that training shortlisted are counted on fresh runs, and one event of one of them is chosen.

Training chooses among many scores and thresholds on few runs. Of many rare events some look telling by chance, and the
one that looks best is likely to be such a one. So thresholds are chosen anew, on runs that fitted and shortlisted
nothing, and what an event seems to tell is drawn towards nothing, the more the less certain it is. Where even so a
rarer event was chosen than great care would choose, the careful choice is counted beside it: a chance find then costs
little.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sordino.audit.sampled.events import Event, Goal, Reading, gauge, simplest
from sordino.audit.sampled.outputs import Floats, Table
from sordino.audit.sampled.scores import Binned, Score, TableScore, log_ratios
from sordino.audit.sampled.train import Found

__all__ = ["Contest", "contest", "settled"]

_SCORES, _SIMPLE = 8, 2
_THRESHOLDS, _TAIL, _RAREST = 128, 32, 8
"""Of a score with many levels: thresholds at this many quantiles, and more in each tail, the last above 8 runs."""
_SPREAD = 2.0
_CARE, _GREAT_CARE = 1.0, 3.0
"""How many standard errors are taken off what was seen: of the event that is chosen, and of one that is beside it."""
_HALVINGS = 50
_PRIOR = 4.0


@dataclass(frozen=True, eq=False)
class Contest:
    """Scores, and for each the thresholds at which it is counted."""

    scores: tuple[Score, ...]
    edges: tuple[Floats, ...]

    def read(self, table: Table) -> Reading:
        """How many runs of a batch are between the thresholds of each score."""
        binned = Binned(table)
        pairs = zip(self.scores, self.edges, strict=True)
        counts = [_between(edges, score.of(binned)) for score, edges in pairs]
        return Reading(table.size, 0, np.concatenate(counts), table.raised())

    def nothing(self) -> Reading:
        return Reading(0, 0, np.zeros(sum(len(edges) + 1 for edges in self.edges), np.int64))

    def above(self, reading: Reading) -> list[Floats]:
        """How many runs were above each threshold of each score."""
        parts = np.split(reading.profile, np.cumsum([len(edges) + 1 for edges in self.edges])[:-1])
        return [part[::-1].cumsum()[::-1][1:].astype(float) for part in parts]


def contest(found: Found) -> Contest:
    """The scores that promise most, and the best of those that are easy to say; each way to order the runs once."""
    held = [Binned(table) for table in found.held]
    scores, edges, known, simple = list[Score](), list[Floats](), set[bytes](), 0
    for event in found.tried:
        plain = event.score.complexity == 0
        full = len(scores) >= _SCORES and not (plain and simple < _SIMPLE)
        if full or any(event.score is score for score in scores):
            continue
        values = [event.score.of(binned) for binned in held]
        cuts = _thresholds(np.sort(np.concatenate(values)))
        counts = [_between(cuts, v) for v in values]
        orders = [b"".join(c[::way].tobytes() for c in counts) for way in (1, -1)]
        if not len(cuts) or known.intersection(orders):
            continue
        known.add(orders[0])
        scores.append(event.score)
        edges.append(cuts)
        simple += plain
    return Contest(tuple(scores), tuple(edges))


def settled(found: Found, rivals: Contest, fresh: tuple[Reading, Reading], goal: Goal) -> Found:
    """What was found, with the event that promises most on the fresh runs and those that judged the training.

    Beside it stands the one that promises most with great care, if that is another.
    """
    both = zip(found.held, fresh, strict=True)
    readings = [rivals.read(table) + reading for table, reading in both]
    runs = readings[0].runs, readings[1].runs
    if not rivals.scores or not all(runs):
        return found
    above, held = list(map(rivals.above, readings)), list(map(Binned, found.held))
    tried = sorted(_events(rivals, above, runs, goal), key=lambda e: -e.predicted)
    careful = sorted(_events(rivals, above, runs, goal, _GREAT_CARE), key=lambda e: -e.predicted)
    chosen, other = (
        gauge(event, _ordered(event.score, held), held[0], held[1], goal)
        for event in (simplest(tried), simplest(careful))
    )
    if other.event.predicted > 0 and not other.event.same(chosen.event):
        chosen = dataclasses.replace(chosen, beside=other)
    return dataclasses.replace(found, event=chosen.event, gauge=chosen, tried=tuple(tried))


def _events(
    rivals: Contest, above: Sequence[Sequence[Floats]], runs: tuple[int, int], goal: Goal, care: float = _CARE
) -> list[Event]:  # fmt: skip
    """The best event of each score, above or below a threshold, for either input."""
    views = list[tuple[int, int, bool, _Rates]]()
    for i, (first, second) in enumerate(zip(*above, strict=True)):
        for sign in (1, -1):
            a, b = (first, second) if sign > 0 else (runs[0] - first, runs[1] - second)
            views.append((i, sign, False, _Rates(a, b, runs, goal.delta)))
            views.append((i, sign, True, _Rates(b, a, runs[::-1], goal.delta)))
    spread = _SPREAD * max((rates.surest() for *_, rates in views))[1]
    bounds = [rates.promised(goal, spread, care) for *_, rates in views]
    # with so few runs all are doubted, and the likeliest to tell is best
    if not any((bound > 0).any() for bound in bounds):
        bounds = [
            np.where(rates.hits > 0, goal.predicted(rates.hits, rates.misses, rates.seen, 0.0), -1)
            for *_, rates in views
        ]
    best = dict[int, Event]()
    for (i, sign, swapped, _), bound in zip(views, bounds, strict=True):
        at = int(bound.argmax())
        threshold = sign * float(rivals.edges[i][at])
        event = Event(rivals.scores[i], sign, threshold, swapped, float(bound[at]))
        best[i] = max(best.get(i, event), event, key=lambda e: e.predicted)
    return list(best.values())


class _Rates:
    """How often events happened on either input, what loss they seem to show, and how sure that is."""

    def __init__(self, hits: Floats, misses: Floats, seen: tuple[int, int], delta: float) -> None:
        self.hits, self.misses, self.seen, self.delta = hits, misses, seen, delta
        p, q = (hits + 0.5) / (seen[0] + 1), (misses + 0.5) / (seen[1] + 1)
        gap = np.maximum(p - delta, 1e-12)
        self.level, self.loss = (gap + q) / 2, np.log(gap / q)
        known = min(seen) * gap / p  # what is taken away for delta makes the rest less certain
        # and frequent events are more certain than rare ones
        known = known * (p + q) / np.maximum(p + q - 2 * p * q, 1e-12)
        self.here, self.there = known * gap, known * q
        self.odds = self.loss + np.log((1 - q) / np.maximum(1 - p, 0.5 / (seen[0] + 1)))

    def surest(self) -> tuple[float, float]:
        """By how many errors the surest odds are no chance find, and their logarithm less one error.

        Among rare events there are more to choose from: by chance the best of those of probability p is some
        sqrt(2 ln(e/p)) errors away from 0 (Duembgen and Spokoiny 2001).
        """
        here, there = self.here, self.there
        both = here + there
        twice = here * np.log(2 * here / both) + there * np.log(2 * there / both)
        errors = np.where(here > there, np.sqrt(2 * np.maximum(twice, 0.0)), 0.0)
        rarity = np.clip(np.minimum(self.level, 1 - self.level), 1e-12, 1)
        beyond = errors - np.sqrt(2 * (1 - np.log(rarity)))
        at = int(beyond.argmax())
        less = 1 - 1 / max(float(errors[at]), 1.0)
        return float(beyond[at]), max(0.0, float(self.odds[at]) * less)

    def promised(self, goal: Goal, spread: float, care: float) -> Floats:
        """The bound on epsilon to expect, if before these runs losses were thought to be normal around 0, so spread.

        What was seen is then believed in part: the likeliest loss is between that and none. `care` standard errors
        are taken off besides, since the best of many is chosen.
        """
        if spread <= 0:
            return goal.predicted(self.hits, self.misses, self.seen, 2 * care)
        here, both = self.here, self.here + self.there
        low, high = np.zeros(len(here)), np.maximum(self.loss, 0.0)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            rises = here - both / (1 + np.exp(-middle)) > middle / spread**2
            low, high = np.where(rises, middle, low), np.where(rises, high, middle)
        believed = np.where(self.loss > 0, low, self.loss)
        p = 2 * self.level / (1 + np.exp(-believed))
        hits, misses = (p + self.delta) * self.seen[0], (2 * self.level - p) * self.seen[1]
        bound = goal.predicted(np.minimum(hits, self.seen[0]), misses, self.seen, care)
        return np.where(self.hits > 0, bound, -1.0)


def _ordered(score: Score, held: Sequence[Binned]) -> Score:
    """The score for the privacy profile: of one feature, how telling each of its values is."""
    if not isinstance(score, TableScore):
        return score
    first, second = (np.bincount(binned[score.bins], minlength=score.bins.count) for binned in held)
    sizes = held[0].table.size, held[1].table.size
    return TableScore(score.bins, log_ratios(first, second, sizes, _PRIOR))


def _between(edges: Floats, values: Floats) -> Any:
    return np.bincount(np.searchsorted(edges, values), minlength=len(edges) + 1)


def _thresholds(ordered: Floats) -> Floats:
    """Middles between neighbouring values: all of a few; of many, at quantiles and far out in both tails."""
    values = np.unique(ordered)
    low = values[:-1]
    if len(values) > _THRESHOLDS:
        last = len(ordered) - 1
        far = np.geomspace(_RAREST, max(_RAREST, last / _THRESHOLDS), _TAIL)
        tail = far.astype(int).clip(0, last)
        even = np.linspace(0, last, _THRESHOLDS + 1).astype(int)
        low = np.unique(ordered[np.concatenate([even, tail, last - tail])])
        low = low[low < values[-1]]
    high = values[np.searchsorted(values, low, side="right")] if len(low) else low
    return np.asarray(low + (high - low) / 2)

"""The black box: run a mechanism on two neighbouring inputs, learn an event that tells them apart, certify what it
shows.

The event is chosen on training runs; its probabilities are bounded on fresh runs, so the bound on epsilon holds with
the stated confidence whatever the search did. Theorem and proof: black_box.md.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from sordino.audit.claim import Request, read_request
from sordino.audit.inputs.neighbors import Pair, check, checked_relation
from sordino.audit.inputs.patterns import patterns
from sordino.audit.reporting.report import Report
from sordino.audit.sampled.contest import contest, settled
from sordino.audit.sampled.events import Gauge, Goal, Reading
from sordino.audit.sampled.findings import (
    NOT_TRIED,
    Outcome,
    Trial,
    certified_report,
    certify,
    undecided,
)
from sordino.audit.sampled.runs import Drawn, OutOfTime, Trouble
from sordino.audit.sampled.train import Found, train
from sordino.audit.sampled.workers import Alone, Team, team
from sordino.errors import InvalidInput

__all__ = ["MISSING", "black_box"]

MISSING: Any = type("Missing", (), {"__repr__": lambda _: "MISSING"})()

_SEARCH = 0.3
_TRAIN, _CONTEST = 0.2, 0.12
"""Of the runs on the chosen pair: to learn from, and to choose the event among what was learned."""
_MOST_TRAIN = 1_500_000
_MOST_CELLS = 30_000_000
_ROUNDS = ((1, 50_000), (2, 100_000), (4, 250_000), (8, 500_000))
"""In each round of the search, which part of the pairs stays (1/2, 1/4, ..., two at least), and the most runs on each.
"""
_PILOT_RUNS, _FEWEST_RUNS = 30_000, 10
_PILOT, _RUNNING, _SEARCHING, _CHOOSING = 0.05, 0.7, 0.4, 0.15
"""Of a time limit: to measure the speed, what runs are planned for, and what the search and the contest may take."""
_STAGES = ((0.25, 0.05), (0.5, 0.05), (0.75, 0.1), (1, 0.79))
"""Parts of the final runs after which a time limit may end them, each with its share of the chance of error."""
_CHOSEN = 0.8
"""The chosen event's share of that, where a more careful choice is counted beside it, which has the rest."""
_CELLS_A_SECOND, _FEWEST_CELLS = 400_000, 4
"""How many numbers a second training is likely to look at, and for how many more it works on each run."""

_PLENTY, _FEW_LEARNED = 10.0, 2000
"""Learning is not measured where it could be this many times slower than is likely, nor with fewer runs."""

Progress = Callable[[float, str], None]


def black_box(
    mechanism: Any,
    d1: Any = MISSING,
    d2: Any = MISSING,
    *,
    epsilon: Any,
    delta: Any = 0,
    samples: int = 1_000_000,
    confidence: Any = 0.999,
    neighbors: Any = None,
    length: int = 5,
    domain: Any = None,
    seconds: float | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
    name: str | None = None,
) -> Report:
    """Is the mechanism (epsilon, delta)-differentially private on these neighbours, as far as runs can tell?

    `mechanism(data)` gives one output; one that takes `size=` gives that many along the first axis. Without d1 and d2
    patterns of neighbouring inputs are tried. `samples` counts all runs. The report says at least which epsilon is
    needed; that no violation was found is not a proof that there is none.
    """
    request = read_request(mechanism, epsilon, delta, confidence, samples, seconds, workers, name)
    start = time.monotonic()
    checked_relation(neighbors)
    if (d1 is MISSING) != (d2 is MISSING):
        hint = "Pass both, or neither to search."
        raise InvalidInput("one of d1 and d2", "an audit compares two inputs", hint)
    if d1 is MISSING:
        pairs = patterns(neighbors, length, domain)
        relations = tuple(check(pair.d1, pair.d2, neighbors).relation for pair in pairs)
    else:
        checked = check(d1, d2, neighbors)
        pairs, relations = (Pair("as given", d1, d2),), (checked.relation,)
        if not checked.ok:
            return undecided(request, f"The inputs cannot be compared: {checked.problem}", start)
    crew = team(mechanism, [p.d1 for p in pairs], [p.d2 for p in pairs], workers)
    tell = progress or (lambda _, __: None)
    audit = _Audit(request, pairs, relations, crew, mechanism, start, tell)
    crew.end = audit.deadline
    try:
        return audit.report()
    except Trouble as trouble:
        why = f"Could not run the mechanism: {trouble}."
    except OutOfTime:
        why = "The mechanism did not come back in time; it hangs, or needs more `seconds`."
    except (Exception, KeyboardInterrupt):
        raise
    except BaseException as error:
        why = f"The mechanism ended with {type(error).__name__}: {error}."
    finally:
        audit.crew.close()
    return undecided(request, why, start)


@dataclass(frozen=True, eq=False)
class _Stage:
    """The final runs so far: how many were planned, their counts, and which share of the chance of error is theirs."""

    runs: int
    readings: tuple[Reading, Reading]
    share: float

    @property
    def missing(self) -> int:
        return 2 * self.runs - sum(reading.runs for reading in self.readings)

    def counted(self, gauge: Gauge) -> Iterator[tuple[Gauge, _Stage]]:
        """Each event that was counted, with its own counts and share."""
        first, second = (reading.beside for reading in self.readings)
        if gauge.beside is None or first is None or second is None:
            yield gauge, self
            return
        yield gauge, replace(self, share=_CHOSEN * self.share)
        yield gauge.beside, _Stage(self.runs, (first, second), (1 - _CHOSEN) * self.share)


@dataclass
class _Audit:
    """One audit under way."""

    request: Request
    pairs: tuple[Pair, ...]
    relations: tuple[str, ...]
    crew: Team
    mechanism: Any
    start: float
    progress: Progress
    rate: float = 0.0
    trained: int = 0
    kept: dict[int, tuple[Drawn, Drawn]] = field(default_factory=dict)
    """Training runs on each pair that is still looked at."""

    @property
    def deadline(self) -> float:
        return self.start + self.request.seconds

    def report(self) -> Report:
        side = self._planned()
        trials: tuple[Trial, ...] = ()
        chosen = 0
        if len(self.pairs) > 1:
            trials, chosen = self._search(side)
        rest = side - (self.trained // 2 if trials else 0)
        count = self._trainable(chosen, int(_TRAIN * rest))
        drawn = self._draw(chosen, count, "training", (0.2, 0.4) if trials else (0.0, 0.35))
        problem = self._too_few(drawn) or _no_output(drawn)
        if problem:
            pair, relation = self.pairs[chosen], self.relations[chosen]
            return undecided(self.request, problem, self.start, pair, relation, trials)
        fresh = int(_CONTEST * rest)
        final = self._affordable((self.request.samples - self.trained) // 2 - fresh)
        found = self._learn(drawn, self._goal(final))
        found = self._choose(chosen, found, fresh, self._goal(final))
        final = (self.request.samples - self.trained) // 2
        self.progress(0.5, "final runs")
        self._weigh(found)
        final = self._affordable(final)
        stages = self._final(chosen, found, final)
        self.progress(1.0, "done")
        return self._judge(chosen, drawn, found, stages, trials)

    def _final(self, chosen: int, found: Found, final: int) -> list[_Stage]:
        """The final round: all at once, or under a time limit in stages, of which the last that is whole counts."""
        stages = list[_Stage]()
        total, before = (found.gauge.nothing(), found.gauge.nothing()), 0
        for part, share in _STAGES if self.request.limited else ((1, 1.0),):
            runs = final if part == 1 else int(part * final)
            low, high = before / final, runs / final

            def tell(done: float, low: float = low, high: float = high) -> None:
                self.progress(0.5 + (low + done * (high - low)) / 2, "final runs")

            more = self.crew.tally(chosen, found.gauge, (runs - before,) * 2, self.deadline, tell)
            total, before = (total[0] + more[0], total[1] + more[1]), runs
            stages.append(_Stage(runs, total, share))
            if min(reading.runs for reading in total) < runs and time.monotonic() > self.deadline:
                break
        return stages

    def _choose(self, chosen: int, found: Found, fresh: int, goal: Goal) -> Found:
        """The event for the final round, chosen on runs that training has not seen."""
        rivals = contest(found)
        if not rivals.scores:
            return found
        limit = time.monotonic() + _CHOOSING * self._left

        def tell(done: float) -> None:
            self.progress(0.4 + done / 10, "choosing the event")

        readings = self.crew.tally(chosen, rivals, (fresh, fresh), limit, tell)
        self.trained += sum(reading.runs for reading in readings)
        return settled(found, rivals, readings, goal)

    def _goal(self, final: int) -> Goal:
        delta = float(self.request.claim.delta)
        return Goal((final, final), self.request.alpha, delta, self.crew.independent)

    def _planned(self) -> int:
        """Runs on each input: as many as were asked for, or as can be expected in time at the speed measured."""
        asked = self.request.samples // 2
        if not self.request.limited:
            return asked
        limit = time.monotonic() + _PILOT * self._left
        self._draw(0, min(asked // 10, _PILOT_RUNS), "measuring the speed", (0.0, 0.0), limit)
        return max(20, min(asked, self.trained // 2 + int(_RUNNING * self._left * self.rate)))

    @property
    def _left(self) -> float:
        return max(0.0, self.deadline - time.monotonic())

    def _affordable(self, runs: int) -> int:
        """So many runs, or what can be expected to be done in most of the time that is left."""
        return max(20, min(runs, int(0.8 * self._left * self.rate)))

    def _weigh(self, found: Found) -> None:
        """Final runs are made at the speed of training, and are counted besides, which can take longer."""
        if not self.request.limited:
            return
        few = [table.take(slice(0, _PILOT_RUNS)) for table in found.held]
        begin = time.monotonic()
        for table in few:
            found.gauge.read(table)
        each = (time.monotonic() - begin) / max(1, min(table.size for table in few))
        self.rate = 1 / (1 / max(self.rate, 1e-9) + each)

    def _trainable(self, pair: int, runs: int) -> int:
        """So many runs for training, or what can be looked at in a third of the time that is left."""
        cells = max((len(drawn.table.columns) for drawn in self.kept.get(pair, ())), default=1)
        fast = int(self._left / 3 * _CELLS_A_SECOND / (cells + _FEWEST_CELLS))
        return min(runs, _MOST_TRAIN, fast)

    def _learn(self, drawn: tuple[Drawn, Drawn], goal: Goal) -> Found:
        """What all training runs teach, or as many as half of the time that is left is enough for.

        Unless that is plenty, the speed is measured by learning from a few of them first.
        """
        first, second = (one.table for one in drawn)
        runs = min(first.size, second.size)
        expected = runs * (len(first.columns) + _FEWEST_CELLS) / _CELLS_A_SECOND
        if not self.request.limited or runs < _FEW_LEARNED or _PLENTY * expected < self._left / 3:
            return train(first, second, goal)
        few, begin = max(_FEW_LEARNED // 2, runs // 8), time.monotonic()
        found = train(first.take(slice(0, few)), second.take(slice(0, few)), goal)
        most = int(self._left / 2 * few / (time.monotonic() - begin))
        if most < 2 * few:
            return found
        return train(first.take(slice(0, most)), second.take(slice(0, most)), goal)

    def _draw(
        self, pair: int, count: int, words: str, part: tuple[float, float], limit: float | None = None
    ) -> tuple[Drawn, Drawn]:  # fmt: skip
        """All training runs on a pair: `count` of them, with those that were made before; fewer if time is short."""
        limit = time.monotonic() + 0.4 * self._left if limit is None else limit
        begin = time.monotonic()
        if pair not in self.kept:
            self._keep(pair, self._look(pair, min(max(count, 1), 256), limit))
            self.rate = self.rate or _speed(self.kept[pair], begin)
        cells = max(len(drawn.table.columns) for drawn in self.kept[pair])
        missing = max(20, min(count, _MOST_CELLS // max(cells, 1))) - _fewest(self.kept[pair])
        begin = time.monotonic()
        if missing > 0 and begin < limit:
            low, high = part

            def tell(done: float) -> None:
                self.progress(low + done * (high - low), words)

            drawn = self.crew.draw(pair, missing, limit, tell)
            self.rate = _speed(drawn, begin)
            self._keep(pair, drawn)
        return self.kept[pair]

    def _too_few(self, drawn: tuple[Drawn, Drawn]) -> str:
        """That there is nothing to learn from, if the time was over so soon."""
        if _fewest(drawn) >= _FEWEST_RUNS:
            return ""
        made = f"{self.trained:,} of {self.request.samples:,} runs"
        return f"In {self.request.seconds:g} seconds there was time for {made}, too few to learn from. Allow more `seconds`."

    def _keep(self, pair: int, drawn: tuple[Drawn, Drawn]) -> None:
        self.trained += sum(one.table.size for one in drawn)
        before = self.kept.get(pair)
        self.kept[pair] = drawn if before is None else (before[0] + drawn[0], before[1] + drawn[1])

    def _look(self, pair: int, count: int, limit: float) -> tuple[Drawn, Drawn]:
        """A few runs; in this process, from now on, if the mechanism works here but not in a worker."""
        drawn = self.crew.draw(pair, count, limit, lambda _: None)
        if self.crew.workers > 1 and any(one.raised_always() for one in drawn):
            alone = Alone(self.mechanism, [p.d1 for p in self.pairs], [p.d2 for p in self.pairs])
            alone.end = self.deadline
            again = alone.draw(pair, 1, limit, lambda _: None)
            both = zip(drawn, again, strict=True)
            if any(there.raised_always() and not here.raised_always() for there, here in both):
                self.crew.close()
                self.crew, drawn = alone, again
        return drawn

    def _search(self, side: int) -> tuple[tuple[Trial, ...], int]:
        """A little training on each pair, more on fewer, which keep their runs; the outcome of each, and the best."""
        trials = dict[int, Trial]()
        end = time.monotonic() + _SEARCHING * self._left
        left, runs = list(range(len(self.pairs))), int(_SEARCH * side)
        for i, (part, most) in enumerate(_ROUNDS):
            left = sorted(left, key=lambda j: -trials[j].predicted if j in trials else 0.0)
            left = left[: max(2, -(-len(self.pairs) // part))]
            each = max(20, min(runs // (len(_ROUNDS) * len(left)), most))
            for j, pair in enumerate(left):
                if trials and time.monotonic() > end:
                    break
                done = 0.2 * (i + j / len(left)) / len(_ROUNDS)
                before = _fewest(self.kept[pair]) if pair in self.kept else 0
                seconds = (end - time.monotonic()) / (len(left) - j)
                trials[pair] = self._try(pair, before + each, side, done, seconds)
        best = max(trials, key=lambda j: trials[j].predicted)
        self.kept = {best: self.kept[best]}
        pairs = enumerate(self.pairs)
        return tuple(trials.get(i, Trial(p, -np.inf, NOT_TRIED)) for i, p in pairs), best

    def _try(self, i: int, runs: int, side: int, done: float, seconds: float) -> Trial:
        pair = self.pairs[i]
        limit = time.monotonic() + max(0.02, 0.7 * seconds)
        drawn = self._draw(i, runs, f"trying {pair.name!r}", (done, done), limit)
        problem = NOT_TRIED if _fewest(drawn) < _FEWEST_RUNS else _no_output(drawn)
        if problem:
            return Trial(pair, -np.inf, problem)
        found = train(drawn[0].table, drawn[1].table, self._goal(side // 2), thorough=False)
        return Trial(pair, found.event.predicted, "")

    def _judge(
        self, chosen: int, drawn: tuple[Drawn, Drawn], found: Found, stages: list[_Stage], trials: tuple[Trial, ...]
    ) -> Report:  # fmt: skip
        claim, alpha = self.request.claim, self.request.alpha
        counted = [one for stage in stages for one in stage.counted(found.gauge)]
        each = [
            (certify(gauge, s.readings, s.runs, claim, s.share * alpha), s, gauge)
            for gauge, s in counted
        ]
        certified, stage, gauge = max(
            each, key=lambda one: (one[0].epsilon, one[1].missing == 0, one[1].share, one[1].runs)
        )
        outcome = Outcome(
            self.request, replace(found, event=gauge.event, gauge=gauge), stage.readings, stage.runs, stage.share * alpha,
            certified, self.trained, self.crew.workers, self.pairs[chosen], self.relations[chosen], trials, drawn,
        )  # fmt: skip
        return certified_report(outcome, self.start)


def _no_output(drawn: tuple[Drawn, Drawn]) -> str:
    """Why runs like these show nothing of privacy, if so."""
    first, second = (one.raised_always() for one in drawn)
    if first and second:
        differ = "" if first.text == second.text else f"; on the second input {second}"
        return f"The mechanism raises on both inputs in every run: {first}{differ}."
    here, there = (one.outputs() for one in drawn)
    if len(here) == 1 and here == there:
        return (
            "The mechanism always gives the same output, on both inputs. "
            "Without randomness it is private only if it is constant, which runs on two inputs cannot show."
        )
    return ""


def _fewest(drawn: tuple[Drawn, Drawn]) -> int:
    return min(one.table.size for one in drawn)


def _speed(drawn: tuple[Drawn, Drawn], begin: float) -> float:
    """Runs a second on each input."""
    return _fewest(drawn) / max(time.monotonic() - begin, 1e-6)

"""What the final runs show: certain statements from their counts (theorems: black_box.md), and the report of them."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sordino.audit.claim import Claim, Request
from sordino.audit.inputs.neighbors import Pair
from sordino.audit.reporting.report import Figure, Grid, Report, Series, Verdict
from sordino.audit.sampled.bounds import (
    delta_lower,
    epsilon_lower,
    least_probability,
    most_probability,
    ratio_lower,
    uniform_error,
)
from sordino.audit.sampled.event_words import bin_name, number, say, shows_float_digits, subject
from sordino.audit.sampled.events import Event, Gauge, Reading
from sordino.audit.sampled.features import Digits, Value
from sordino.audit.sampled.outputs import Floats
from sordino.audit.sampled.runs import Drawn
from sordino.audit.sampled.scores import Binned, TableScore
from sordino.audit.sampled.train import Found
from sordino.mechanisms.bits import random_order
from sordino.privacy.ball import ball, certified, lower
from sordino.privacy.exact import brief

__all__ = [
    "NOT_TRIED",
    "Certified",
    "Outcome",
    "Trial",
    "certified_report",
    "certify",
    "rounded_down",
    "undecided",
]


@dataclass(frozen=True)
class Certified:
    """The epsilon and delta that are needed at least, and what is certain of the event, in words."""

    epsilon: float
    delta: float
    event: str


def certify(
    gauge: Gauge, readings: tuple[Reading, Reading], runs: int, claim: Claim, alpha: float
) -> Certified:
    """What this many final runs on each input show;
    runs that failed or were not made in time count against a violation.
    """
    here, there = readings[::-1] if gauge.event.swapped else readings
    inputs = ("second", "first") if gauge.event.swapped else ("first", "second")
    if gauge.pairs:
        return _in_pairs(here, there, runs, alpha, inputs)
    least = least_probability(here.hits, runs, alpha / 2)
    most = most_probability(there.hits + runs - there.runs, runs, alpha / 2)
    words = (
        f"has probability at least {rounded_down(least)} on the {inputs[0]} input and "
        f"at most {brief(Fraction(most), up=True)} on the {inputs[1]}"
    )
    epsilon, delta = (
        epsilon_lower(least, most, claim.delta),
        delta_lower(least, most, claim.epsilon),
    )
    return Certified(epsilon, delta, words)


def _in_pairs(
    here: Reading, there: Reading, runs: int, alpha: float, inputs: tuple[str, str]
) -> Certified:
    # runs come in any order, a batch may even be sorted: pairs must not depend on it
    first, second = here.marked(runs, False)[random_order(runs)], there.marked(runs, True)
    only_here, only_there = int((first & ~second).sum()), int((second & ~first).sum())
    most = int(first.sum()) + runs - sum(map(len, here.marks))
    ratio = ratio_lower(only_here, only_there, most, runs, alpha)
    if ratio <= 1:
        return Certified(0.0, 0.0, "is not certainly likelier on either input")
    epsilon = max(0.0, lower(certified(lambda: ball(ratio).log())))
    times = rounded_down(math.nextafter(float(ratio), 0.0))
    words = f"is at least {times} times as likely on the {inputs[0]} input as on the {inputs[1]}"
    return Certified(epsilon, 0.0, words)


def rounded_down(value: float) -> str:
    """Four digits, rounded down."""
    return brief(Fraction(value), up=False) if math.isfinite(value) else number(value)


_BARS = 24
_CURVE = 41
_SHIFT = 0.25
_TITLE, _INPUTS = "Outputs on the two inputs", ("first input", "second input")
_NEARLY_ALL = 0.98
_LOOKED_AT = 6

NOT_TRIED = "Not tried: the time was over."


@dataclass(frozen=True)
class Trial:
    """What a little training showed on one pair."""

    pair: Pair
    predicted: float
    problem: str


@dataclass(frozen=True, eq=False)
class Outcome:
    """All that an audit found."""

    request: Request
    found: Found
    readings: tuple[Reading, Reading]
    planned: int
    alpha: float
    """The part of the chance of error that is this event's, in these runs."""
    certified: Certified
    trained: int
    workers: int
    pair: Pair
    relation: str
    trials: tuple[Trial, ...]
    drawn: tuple[Drawn, Drawn]

    @property
    def constant(self) -> bool:
        """Whether each input has one output only."""
        return all(len(drawn.outputs()) == 1 for drawn in self.drawn)

    @property
    def exhausted(self) -> bool:
        """Whether final runs raised far more often than those of training."""
        before = (drawn.table.raised() / drawn.table.size for drawn in self.drawn)
        after = (reading.raised / max(reading.runs, 1) for reading in self.readings)
        return any(b - a > _SHIFT for a, b in zip(before, after, strict=True))

    @property
    def cut_short(self) -> str:
        """That the time limit allowed fewer runs than were asked for, in words."""
        asked, made = self.request.samples, self.trained + sum(r.runs for r in self.readings)
        if not self.request.limited or made > _NEARLY_ALL * asked:
            return ""
        return f"In {number(self.request.seconds)} seconds there was time for {made:,} of {asked:,} runs."

    @property
    def best_bound(self) -> float:
        """The bound on epsilon if an event happened in every final run on one input and in none on the other."""
        runs, share = self.planned, self.request.alpha / 2
        least, most = least_probability(runs, runs, share), most_probability(0, runs, share)
        return epsilon_lower(least, most, self.request.claim.delta)


def undecided(
    request: Request, summary: str, start: float, pair: Pair | None = None, relation: str = "",
    trials: tuple[Trial, ...] = (),
) -> Report:  # fmt: skip
    """A report that says why nothing could be said."""
    return Report(
        request.name, "black box", request.claim.shown_epsilon, request.claim.shown_delta, Verdict.UNDECIDED, summary,
        confidence=request.confidence, pair=None if pair is None else pair.brief, relation=relation,
        facts=(("seconds", _seconds(start)),), grids=_pairs_tried(trials),
    )  # fmt: skip


def certified_report(outcome: Outcome, start: float) -> Report:
    """The report of an audit that ran to its end."""
    request, certified = outcome.request, outcome.certified
    witness = _sentence(say(outcome.found.event, outcome.found.held))
    verdict, summary = _verdict(outcome, witness)
    return Report(
        request.name, "black box", request.claim.shown_epsilon, request.claim.shown_delta, verdict, summary,
        epsilon_lower=certified.epsilon, delta_lower=certified.delta, confidence=request.confidence,
        witness=witness, pair=outcome.pair.brief, relation=outcome.relation, facts=_facts(outcome, start),
        notes=tuple(_notes(outcome, verdict)), grids=(_events_tried(outcome), *_pairs_tried(outcome.trials)),
        figures=(_distributions(outcome), _profile(outcome)),
    )  # fmt: skip


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _verdict(outcome: Outcome, witness: str) -> tuple[Verdict, str]:
    claim, certified, short = outcome.request.claim, outcome.certified, outcome.cut_short
    claimed = f"epsilon {number(claim.shown_epsilon)}"
    if claim.delta:
        claimed += f" with delta {number(claim.shown_delta)}"
    shown = rounded_down(certified.epsilon)
    needed = f"at least epsilon {shown} is needed"
    if certified.epsilon > claim.epsilon:
        false = f"The claim of {claimed} is false: {needed}."
        return Verdict.VIOLATED, f"{false} The event “{witness}” {certified.event}."
    opaque = sorted(outcome.drawn[0].table.opaque | outcome.drawn[1].table.opaque)
    if min(reading.runs for reading in outcome.readings) < outcome.planned / 2:
        why = "More than half of the final runs failed or were not made in time, so nothing can be said."
    elif short and outcome.best_bound <= claim.epsilon:
        why = f"{short} Whatever they had shown, so few could not have refuted {claimed}. Allow more `seconds`."
    elif outcome.exhausted:
        why = (
            "The mechanism raised in many more final runs than in training: it behaves otherwise after many runs. "
            "Make what it uses up, such as a budget, again in each run."
        )
    elif outcome.constant:
        why = (
            "The mechanism always gives the same output on each input, and not the same on both: it shows no randomness. "
            f"This many runs refute an epsilon up to {shown}, not yet {claimed}."
        )
    elif opaque:
        what = f"The outputs hold what is not looked into: {', '.join(opaque)}."
        why = f"{what} Return numbers, texts, or sequences of them."
    else:
        return Verdict.HOLDS, (
            f"No violation of {claimed} was found; {needed}. {short + ' ' if short else ''}"
            "This is not a proof: other inputs or rarer events may show more."
        )
    return Verdict.UNDECIDED, why


def _seconds(start: float) -> str:
    return f"{time.monotonic() - start:.1f}"


def _facts(outcome: Outcome, start: float) -> tuple[tuple[str, str], ...]:
    first, second = outcome.readings
    return (
        ("event on the first input", f"{first.hits:,} of {first.runs:,} final runs"),
        ("event on the second input", f"{second.hits:,} of {second.runs:,} final runs"),
        ("certified of the event", f"it {outcome.certified.event}"),
        ("training runs", f"{outcome.trained:,}"),
        ("final runs", f"{first.runs + second.runs:,}"),
        ("inputs", outcome.pair.name),
        ("workers", str(outcome.workers)),
        ("seconds", _seconds(start)),
    )


def _notes(outcome: Outcome, verdict: Verdict) -> list[str]:
    found = []
    if verdict is Verdict.HOLDS:
        runs = max(min(reading.runs for reading in outcome.readings), 1)
        rare = brief(Fraction(math.log(2 / outcome.request.alpha) / runs), up=True)
        found.append(
            f"Events whose probability is below about {rare} could not be seen with this many runs, nor inputs that were "
            "not tried."
        )
    if verdict is Verdict.VIOLATED and shows_float_digits(outcome.found.event):
        found.append(
            "This may be the floating-point leak (Mironov 2012): the last binary digits of float noise show to which value "
            "it was added. Add noise on a lattice instead, as sordino.Laplace and sordino.Gaussian do."
        )
    if verdict is Verdict.VIOLATED and outcome.cut_short:
        found.append(outcome.cut_short)
    untried = sum(trial.problem == NOT_TRIED for trial in outcome.trials)
    if untried:
        pairs = f"{untried} of {len(outcome.trials)} pairs of inputs"
        found.append(f"The time was over before {pairs} were tried.")
    missing = [outcome.planned - reading.runs for reading in outcome.readings]
    if any(missing):
        found.append(
            f"{missing[0]:,} and {missing[1]:,} of {outcome.planned:,} final runs failed or were not made in time; "
            "they were counted against a violation."
        )
    for drawn, which in zip(outcome.drawn, ("first", "second"), strict=True):
        if drawn.batches_failed:
            found.append(
                f"A batch failed on the {which} input ({drawn.batches_failed}); runs were made one by one there."
            )
        if drawn.changes_input:
            found.append(f"The mechanism changes the {which} input; every run got a fresh copy.")
    kinds = [set(np.unique(drawn.table.shape).tolist()) for drawn in outcome.drawn]
    if any(len(kind) > 1 for kind in kinds):
        found.append(
            f"The outputs have {len(kinds[0] | kinds[1])} different types or sizes, which were compared as outputs."
        )
    return found


def _events_tried(outcome: Outcome) -> Grid:
    best: dict[str, Event] = {}
    for event in outcome.found.tried:
        best.setdefault(subject(event), event)
    rows = []
    for what, event in list(best.items())[:_LOOKED_AT]:
        said = _sentence(say(event, outcome.found.held))
        rows.append((_sentence(what), number(max(0.0, event.predicted)), said))
    return Grid("What was looked at", ("looked at", "bound expected", "best event"), tuple(rows))


def _pairs_tried(trials: tuple[Trial, ...]) -> tuple[Grid, ...]:
    if not trials:
        return ()
    rows = []
    for trial in sorted(trials, key=lambda trial: -trial.predicted):
        bound = "" if trial.problem else number(max(0.0, trial.predicted))
        rows.append((trial.pair.name, *trial.pair.brief, bound, trial.problem.split(". ")[0]))
    headings = ("pattern", "first", "second", "bound expected", "remark")
    return (Grid("Inputs tried", headings, tuple(rows)),)


def _distributions(outcome: Outcome) -> Figure:
    """Shares of the held-out training runs, by the feature or the score of the event."""
    event, held = outcome.found.event, outcome.found.held
    binned = Binned(held[0]), Binned(held[1])
    if not isinstance(event.score, TableScore):
        return _histogram("learned score", *(event.score.of(b) for b in binned))
    bins = event.score.bins
    feature, many = bins.feature, len(bins.edges) > _BARS
    if isinstance(feature, Digits):
        feature, many = Value(feature.name), True
    columns = [feature.column(table) for table in held]
    numbers = [column.numbers[column.is_number()] for column in columns]
    if many and all(len(n) > 0.9 * t.size for n, t in zip(numbers, held, strict=True)):
        return _histogram(feature.words, *numbers)
    counts = [np.bincount(b[bins], minlength=bins.count) for b in binned]
    shares = [count / max(count.sum(), 1) for count in counts]
    places = np.argsort(-(shares[0] + shares[1]), kind="stable")[:_BARS]
    places = np.sort(places[(shares[0] + shares[1])[places] > 0])
    ticks = tuple(bin_name(bins, int(place), held)[:40] for place in places)
    x = tuple(map(float, range(len(places))))
    series = tuple(
        Series(name, x, tuple(share[places].tolist()))
        for name, share in zip(_INPUTS, shares, strict=True)
    )
    return Figure(_TITLE, bins.feature.words, "share of runs", series, kind="bars", ticks=ticks)


def _histogram(label: str, first: Floats, second: Floats) -> Figure:
    both = np.concatenate([first, second])
    low, high = np.quantile(both, [0.005, 0.995])
    if not high > low:
        low, high = float(both.min()), float(both.max())
    edges = np.linspace(low, high if high > low else low + 1, 65)
    middles = tuple(((edges[:-1] + edges[1:]) / 2).tolist())
    series = tuple(
        Series(name, middles, tuple((np.histogram(part, edges)[0] / max(len(part), 1)).tolist()))
        for name, part in zip(_INPUTS, (first, second), strict=True)
    )
    return Figure(_TITLE, label, "share of runs", series)


def _profile(outcome: Outcome) -> Figure:
    """delta as a function of epsilon: what the claim allows, what the final runs show, and what they certify."""
    claim = outcome.request.claim
    swapped = outcome.found.event.swapped
    top = max(2 * min(claim.shown_epsilon, 20.0), 1.5 * outcome.certified.epsilon, 0.1)
    grid = np.linspace(0.0, min(top, 40.0), _CURVE)
    tails = [
        reading.profile[::-1].cumsum()[::-1] / max(reading.runs, 1) for reading in outcome.readings
    ]
    done = [reading.runs / outcome.planned for reading in outcome.readings]
    if swapped:  # the score is large where the first input is likelier: for the second, the complement of its tails
        tails, done = [1 - tails[1], 1 - tails[0]], done[::-1]
    slack = uniform_error(outcome.planned, outcome.alpha / 2)
    low, high = tails[0] * done[0] - slack, tails[1] * done[1] + (1 - done[1]) + slack
    growth = np.exp(grid)[:, None]
    shown = np.maximum((tails[0][None] - growth * tails[1][None]).max(axis=1), 0.0)
    sure = np.maximum((low[None] - growth * high[None]).max(axis=1), 0.0)
    x = tuple(grid.tolist())
    series = (
        Series("the claim allows", x, tuple(map(claim.allows, x))),
        Series("the runs show", x, tuple(np.minimum(shown, 1.0).tolist())),
        Series(
            f"certain at confidence {number(outcome.request.confidence)}",
            x,
            tuple(np.minimum(sure, 1.0).tolist()),
        ),
    )
    return Figure("Privacy profile", "epsilon", "delta", series)

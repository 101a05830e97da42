"""What the final runs show: certain statements from their counts (theorems: black_box.md), and the report of them."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from sordino.audit.claim import Claim, Request
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
from sordino.audit.sampled.events import Gauge, Reading
from sordino.audit.sampled.features import Digits, Feature, Value
from sordino.audit.sampled.outputs import Floats
from sordino.audit.sampled.runs import Drawn
from sordino.audit.sampled.scores import Binned, TableScore
from sordino.audit.sampled.train import Found
from sordino.mechanisms import bits
from sordino.mechanisms.bits import CHUNK
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
    return Certified(
        epsilon_lower(least, most, claim.delta), delta_lower(least, most, claim.epsilon), words
    )


def _in_pairs(
    here: Reading, there: Reading, runs: int, alpha: float, inputs: tuple[str, str]
) -> Certified:
    first, second = _in_random_order(here.marked(runs, False)), there.marked(runs, True)
    both = int((first & second).sum())
    missing = runs - sum(map(len, here.marks))
    ratio = ratio_lower(
        int(first.sum()) - both, int(second.sum()) - both, int(first.sum()) + missing, runs, alpha
    )
    if ratio <= 1:
        return Certified(0.0, 0.0, "is not certainly likelier on either input")
    epsilon = max(0.0, lower(certified(lambda: ball(ratio).log())))
    words = f"is at least {rounded_down(_float_below(ratio))} times as likely on the {inputs[0]} input as on the {inputs[1]}"
    return Certified(epsilon, 0.0, words)


def _in_random_order(marks: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Runs come in any order, a batch may even be sorted; pairs must not depend on it."""
    source = bits.source()
    words = [source.words(min(CHUNK, len(marks) - i)).copy() for i in range(0, len(marks), CHUNK)]
    return marks[np.argsort(np.concatenate(words))]


def _float_below(value: Fraction) -> float:
    return math.nextafter(float(value), 0.0)


def rounded_down(value: float) -> str:
    """Four digits, rounded down."""
    return brief(Fraction(value), up=False) if math.isfinite(value) else number(value)


_BARS = 24
_CURVE = 41
_SHIFT = 0.25
_NEARLY_ALL = 0.98

NOT_TRIED = "Not tried: the time was over."


@dataclass(frozen=True)
class Trial:
    """What a little training showed on one pair."""

    name: str
    pair: tuple[str, str]
    predicted: float
    problem: str


@dataclass(frozen=True, eq=False)
class Outcome:
    """All that an audit found."""

    found: Found
    readings: tuple[Reading, Reading]
    planned: int
    alpha: float
    """The part of the chance of error that is this event's, in these runs."""
    certified: Certified
    trained: int
    workers: int
    pair_name: str
    pair: tuple[str, str]
    relation: str
    trials: tuple[Trial, ...]
    drawn: tuple[Drawn, Drawn]
    constant: bool


def undecided(
    request: Request, summary: str, start: float, pair: tuple[str, str] | None = None, relation: str = "",
    trials: tuple[Trial, ...] = (),
) -> Report:  # fmt: skip
    """A report that says why nothing could be said."""
    return Report(
        request.name, "black box", request.claim.shown_epsilon, request.claim.shown_delta, Verdict.UNDECIDED, summary,
        confidence=request.confidence, pair=pair, relation=relation, facts=(("seconds", _seconds(start)),),
        grids=_pairs_tried(trials),
    )  # fmt: skip


def certified_report(request: Request, outcome: Outcome, start: float) -> Report:
    """The report of an audit that ran to its end."""
    claim = request.claim
    violated = outcome.certified.epsilon > claim.epsilon
    event = outcome.found.event
    witness = _sentence(say(event, outcome.found.held))
    verdict, summary = _verdict(request, outcome, violated, witness)
    return Report(
        request.name, "black box", claim.shown_epsilon, claim.shown_delta, verdict, summary,
        epsilon_lower=outcome.certified.epsilon, delta_lower=outcome.certified.delta, confidence=request.confidence,
        witness=witness, pair=outcome.pair, relation=outcome.relation, facts=_facts(outcome, start),
        notes=tuple(_notes(request, outcome, verdict)), grids=(_events_tried(outcome), *_pairs_tried(outcome.trials)),
        figures=(_distributions(outcome), _profile(request, outcome)),
    )  # fmt: skip


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _verdict(
    request: Request, outcome: Outcome, violated: bool, witness: str
) -> tuple[Verdict, str]:
    claimed = f"epsilon {number(request.claim.shown_epsilon)}" + (
        f" with delta {number(request.claim.shown_delta)}" if request.claim.delta else ""
    )
    needed = f"at least epsilon {rounded_down(outcome.certified.epsilon)} is needed"
    if violated:
        return Verdict.VIOLATED, (
            f"The claim of {claimed} is false: {needed}. The event “{witness}” {outcome.certified.event}."
        )
    if min(reading.runs for reading in outcome.readings) < outcome.planned / 2:
        return (
            Verdict.UNDECIDED,
            "More than half of the final runs failed or were not made in time, so nothing can be said.",
        )
    short = _cut_short(request, outcome)
    if short and _best_bound(outcome.planned, request) <= request.claim.epsilon:
        return Verdict.UNDECIDED, (
            f"{short} Whatever they had shown, so few could not have refuted {claimed}. Allow more `seconds`."
        )
    if _exhausted(outcome):
        return Verdict.UNDECIDED, (
            "The mechanism raised in many more final runs than in training: it behaves otherwise after many runs. "
            "Make what it uses up, such as a budget, again in each run."
        )
    if outcome.constant:
        return Verdict.UNDECIDED, (
            "The mechanism always gives the same output on each input, and not the same on both: it shows no randomness. "
            f"This many runs refute an epsilon up to {rounded_down(outcome.certified.epsilon)}, not yet {claimed}."
        )
    opaque = sorted(outcome.drawn[0].table.opaque | outcome.drawn[1].table.opaque)
    if opaque:
        return Verdict.UNDECIDED, (
            f"The outputs hold what is not looked into: {', '.join(opaque)}. Return numbers, texts, or sequences of them."
        )
    return Verdict.HOLDS, (
        f"No violation of {claimed} was found; {needed}. {short + ' ' if short else ''}"
        "This is not a proof: other inputs or rarer events may show more."
    )


def _cut_short(request: Request, outcome: Outcome) -> str:
    """That the time limit allowed fewer runs than were asked for, in words."""
    made = outcome.trained + sum(reading.runs for reading in outcome.readings)
    if not request.limited or made > _NEARLY_ALL * request.samples:
        return ""
    return f"In {number(request.seconds)} seconds there was time for {made:,} of {request.samples:,} runs."


def _best_bound(runs: int, request: Request) -> float:
    """The bound on epsilon if an event happened in every final run on one input and in none on the other."""
    least, most = (
        least_probability(runs, runs, request.alpha / 2),
        most_probability(0, runs, request.alpha / 2),
    )
    return epsilon_lower(least, most, request.claim.delta)


def _exhausted(outcome: Outcome) -> bool:
    sides = zip(outcome.drawn, outcome.readings, strict=True)
    return any(
        r.raised / max(r.runs, 1) - d.table.raised() / d.table.size > _SHIFT for d, r in sides
    )


def _seconds(start: float) -> str:
    return f"{time.monotonic() - start:.1f}"


def _facts(outcome: Outcome, start: float) -> tuple[tuple[str, str], ...]:
    first, second = outcome.readings
    return (
        ("event on the first input", f"{first.hits:,} of {first.runs:,} final runs"),
        ("event on the second input", f"{second.hits:,} of {second.runs:,} final runs"),
        ("certain of the event", f"it {outcome.certified.event}"),
        ("training runs", f"{outcome.trained:,}"),
        ("final runs", f"{first.runs + second.runs:,}"),
        ("inputs", outcome.pair_name),
        ("workers", str(outcome.workers)),
        ("seconds", _seconds(start)),
    )  # fmt: skip


def _notes(request: Request, outcome: Outcome, verdict: Verdict) -> list[str]:
    found = []
    if verdict is Verdict.HOLDS:
        rare = math.log(2 / request.alpha) / max(
            min(reading.runs for reading in outcome.readings), 1
        )
        found.append(
            f"Events rarer than about {number(rare)} could not be seen with this many runs, nor inputs that were not tried."
        )
    if verdict is Verdict.VIOLATED and shows_float_digits(outcome.found.event):
        found.append(
            "This may be the floating-point leak (Mironov 2012): the last binary digits of float noise show to which value "
            "it was added. Add noise on a lattice instead, as sordino.Laplace and sordino.Gaussian do."
        )
    if verdict is Verdict.VIOLATED and (short := _cut_short(request, outcome)):
        found.append(short)
    untried = sum(trial.problem == NOT_TRIED for trial in outcome.trials)
    if untried:
        found.append(
            f"The time was over before {untried} of {len(outcome.trials)} pairs of inputs were tried."
        )
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
    kinds = [{int(code) for code in np.unique(drawn.table.shape)} for drawn in outcome.drawn]
    if any(len(kind) > 1 for kind in kinds):
        found.append(
            f"The outputs have {len(kinds[0] | kinds[1])} different types or sizes, which were compared as outputs."
        )
    return found


def _events_tried(outcome: Outcome) -> Grid:
    rows = []
    seen = set[str]()
    for event in outcome.found.tried:
        what = subject(event)
        if what not in seen and len(seen) < 6:
            seen.add(what)
            rows.append(
                (
                    _sentence(what),
                    number(max(0.0, event.predicted)),
                    _sentence(say(event, outcome.found.held)),
                )
            )
    return Grid("What was looked at", ("looked at", "bound expected", "best event"), tuple(rows))


def _pairs_tried(trials: tuple[Trial, ...]) -> tuple[Grid, ...]:
    if not trials:
        return ()
    ordered = sorted(trials, key=lambda trial: -trial.predicted)
    rows = tuple(
        (
            t.name,
            *t.pair,
            "" if t.problem else number(max(0.0, t.predicted)),
            t.problem.split(". ")[0],
        )
        for t in ordered
    )
    return (Grid("Inputs tried", ("pattern", "first", "second", "bound expected", "remark"), rows),)


def _distributions(outcome: Outcome) -> Figure:
    """Shares of the held-out training runs, by the feature or the score of the event."""
    event, held = outcome.found.event, outcome.found.held
    title = "Outputs on the two inputs"
    binned = Binned(held[0]), Binned(held[1])
    if not isinstance(event.score, TableScore):
        scores = [event.score.of(b) for b in binned]
        return _histogram(title, "learned score", scores[0], scores[1])
    bins = event.score.bins
    feature: Feature = (
        Value(bins.feature.name) if isinstance(bins.feature, Digits) else bins.feature
    )
    columns = [feature.column(table) for table in held]
    numbers = [column.numbers[column.is_number()] for column in columns]
    if all(len(n) > 0.9 * table.size for n, table in zip(numbers, held, strict=True)) and (
        len(bins.edges) > _BARS or feature is not bins.feature
    ):
        return _histogram(title, feature.words, *numbers)
    counts = [np.bincount(b[bins], minlength=bins.count) for b in binned]
    shares = [count / max(count.sum(), 1) for count in counts]
    places = np.argsort(-(shares[0] + shares[1]), kind="stable")[:_BARS]
    places = np.sort(places[(shares[0] + shares[1])[places] > 0])
    ticks = tuple(bin_name(bins, int(place), held)[:40] for place in places)
    x = tuple(float(i) for i in range(len(places)))
    series = tuple(
        Series(name, x, tuple(share[places].tolist()))
        for name, share in zip(("first input", "second input"), shares, strict=True)
    )
    return Figure(title, bins.feature.words, "share of runs", series, kind="bars", ticks=ticks)


def _histogram(title: str, label: str, first: Floats, second: Floats) -> Figure:
    both = np.concatenate([first, second])
    low, high = np.quantile(both, [0.005, 0.995])
    if not high > low:
        low, high = float(both.min()), float(both.max())
    edges = np.linspace(low, high if high > low else low + 1, 65)
    middles = tuple(((edges[:-1] + edges[1:]) / 2).tolist())
    series = tuple(
        Series(name, middles, tuple((np.histogram(part, edges)[0] / max(len(part), 1)).tolist()))
        for name, part in (("first input", first), ("second input", second))
    )
    return Figure(title, label, "share of runs", series)


def _profile(request: Request, outcome: Outcome) -> Figure:
    """delta as a function of epsilon: what the claim allows, what the final runs show, and what they certify."""
    claim = request.claim
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
            f"certain at confidence {number(request.confidence)}",
            x,
            tuple(np.minimum(sure, 1.0).tolist()),
        ),
    )
    return Figure("Privacy profile", "epsilon", "delta", series)

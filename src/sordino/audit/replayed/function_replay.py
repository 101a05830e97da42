"""The audit of a function: its calls are recorded on one input and replayed on each of its neighbours, call by call.

Queries are functions of datasets. There are tapes in both directions, distances call by call, and the total cost: what
this proves is in replay.md.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from sordino.accounting.bracket import Bracket
from sordino.audit.inputs.neighbors import Checked, brief
from sordino.audit.replayed.cost import NO_COST, Cost
from sordino.audit.replayed.observed import (
    Distance,
    call_cost,
    call_distances,
    cost_range,
    declared_cost,
    distance_cells,
    norm_name,
    sentence,
)
from sordino.audit.replayed.recording import Call, Record, lives, record, replay_on
from sordino.audit.replayed.result_difference import Opaque
from sordino.audit.reporting.report import Grid, Report, Verdict
from sordino.audit.sampled.outputs import Raised
from sordino.privacy.exact import float_upper, readable

__all__ = ["Claim", "FunctionReplay"]

_OWN_NOISE = (
    "Audit it as a black box with so.audit, or let all "
    "its randomness come from Sordino's mechanisms, in one thread."
)
_KEEP = "Distances are exact, in units of each sum's lattice: keep this report with the data."
_ALIKE = "Nothing but the exact values differs, and these no further than declared"
_BOUNDS = "Of some calls only upper bounds are known: the claim is neither refuted nor supported."


@dataclass(frozen=True)
class Claim:
    """What is claimed of the whole; no epsilon where nothing is, so that only what the calls declare is checked."""

    epsilon: Fraction | None
    delta: Fraction

    def __str__(self) -> str:
        epsilon = math.inf if self.epsilon is None else float_upper(self.epsilon)
        at = f" at delta {float(self.delta):.10g}" if self.delta else ""
        return f"epsilon {epsilon:.10g}{at}"


@dataclass(frozen=True)
class _Seen:
    """One call on both inputs; or all calls of a mechanism that remembers, with the number of the first."""

    number: int
    known: Call
    distances: tuple[Distance, ...]
    cost: Cost
    declared: Cost | None

    @property
    def broken(self) -> str | None:
        """The first distance that is larger than declared."""
        for distance in self.distances:
            if distance.broken and distance.declared is not None:
                apart = f"the exact values are {readable(distance.observed)} apart ({norm_name(distance.norm)})"
                return f"call {self.number}: {self.known}: {apart}, declared are {readable(distance.declared)}"
        return None


@dataclass(frozen=True)
class _Run:
    """One record, replayed on the other input: calls, and the first difference in words."""

    neighbour: str
    """What D was compared with."""
    sides: tuple[str, str]
    record: Record
    seen: tuple[_Seen, ...] = ()
    difference: str | None = None
    trouble: str | None = None

    @property
    def cost(self) -> Cost:
        return sum((one.cost for one in self.seen), NO_COST)

    @property
    def declared(self) -> Cost | None:
        """What all calls were made for; None if one of them does not say."""
        known = [one.declared for one in self.seen if one.declared is not None]
        return sum(known, NO_COST) if known and len(known) == len(self.seen) else None

    @property
    def broken(self) -> str | None:
        """The first call whose inputs are further apart than declared."""
        return next(filter(None, (one.broken for one in self.seen)), None)

    @property
    def raised(self) -> str:
        """The error that it ended with."""
        return str(self.record.result) if isinstance(self.record.result, Raised) else ""

    @property
    def calls(self) -> tuple[tuple[str, str], ...]:
        """What was called, with which values."""
        return tuple((call.name, repr(call.value)) for call in self.record.calls)


@dataclass(frozen=True)
class FunctionReplay:
    """The audit of a function on D and its named neighbours; `limit` is the declared sensitivity of the i-th call."""

    function: Callable[[Any], Any]
    data: Any
    others: Mapping[str, Any]
    checked: Checked
    claim: Claim
    limit: Callable[[int], Fraction | None]
    name: str
    tapes: int
    asked: bool = False
    """Whether it is one question to datasets, whose neighbours go by their names."""

    def report(self) -> Report:
        """What was found, whatever it is; the function's own errors included."""
        if not self.checked.ok:
            return self._undecided(self.checked.problem)
        runs: list[_Run] = []
        there, back = ("D", "D'"), ("D'", "D")
        for label, sides in itertools.product(self.others, (there, back) * self.tapes):
            try:
                runs.append(self._run(label, sides))
            except Opaque as kind:
                what = f"its result holds {kind}, which cannot be compared. Return plain values, arrays or tables."
                return self._undecided(what)
            if runs[-1].trouble is not None:
                return self._undecided(runs[-1].trouble, runs)
            if runs[-1].difference is not None or runs[-1].broken is not None:
                break
        return self._judged(runs)

    def _run(self, label: str, sides: tuple[str, str]) -> _Run:
        data, other = (self.data if side == "D" else self.others[label] for side in sides)
        known = record(self.function, data)
        again = replay_on(self.function, data, known, (sides[0], f"{sides[0]} again"))
        if again.difference is not None:
            what = f"Run again on {sides[0]} with the same noise it is not the same: {again.difference}."
            trouble = f"{what} It has randomness or state of its own. {_OWN_NOISE}"
            return _Run(label, sides, known, trouble=trouble)
        found = replay_on(self.function, other, known, sides)
        if found.unaligned:
            what = f"{found.difference}. Which key is which on the two inputs cannot be told."
            hint = "Give every key of either input a weight, zeros too, or ask the query through a Session."
            return _Run(label, sides, known, trouble=f"{what} {hint}")
        pairs = lives(zip(known.calls, found.calls, strict=False))
        return _Run(
            label, sides, known, tuple(self._seen(*pair) for pair in pairs), found.difference
        )

    def _seen(self, number: int, known: Call, call: Call) -> _Seen:
        limit = self.limit(number - 1)
        distances, cost = call_distances(known, call, limit), call_cost(known, call)
        return _Seen(number, known, distances, cost, declared_cost(known, limit))

    def _judged(self, runs: list[_Run]) -> Report:
        last = runs[-1]
        where = "" if last.neighbour == "D'" else f"{last.neighbour}: "
        if last.difference:
            witness = f"{where}{last.difference}"
            return self._made(Verdict.VIOLATED, sentence(witness), runs, last, witness)
        if last.broken:
            witness = f"{where}{last.broken}"
            said = (
                f"{sentence(witness)} A person moves the values further than the noise is made for."
            )
            return self._made(Verdict.VIOLATED, said, runs, last, witness)
        if all(run.raised for run in runs):
            why = f"it raises {last.raised} on both inputs, so that there is no answer"
            return self._undecided(why, runs)
        costs = {run.cost: run.cost.epsilon_bounds(self.claim.delta) for run in runs}
        worst = max(runs, key=lambda run: costs[run.cost].upper)
        if self.claim.epsilon is not None and len(costs) > 1:
            claimed = self.claim.epsilon, self.claim.delta
            if (
                worst.cost.within(*claimed) is None
            ):  # its bounds refute nothing; another run's cost may
                worst = next((run for run in runs if run.cost.within(*claimed) is False), worst)
        return self._weighed(runs, worst, costs[worst.cost])

    def _weighed(self, runs: list[_Run], worst: _Run, found: Bracket) -> Report:
        """The verdict on the total, all else being in order."""
        if self.claim.epsilon is None and worst.declared is None:
            why = f"nothing is claimed, and not every call declares a sensitivity; observed is {cost_range(found)}"
            said = sentence(f"{why}: pass epsilon= or sensitivity=")
            return self._made(Verdict.UNDECIDED, said, runs, worst, found=found)
        if self.claim.epsilon is None:
            return self._made(Verdict.HOLDS, f"{_ALIKE}.", runs, worst, found=found)
        within = worst.cost.within(self.claim.epsilon, self.claim.delta)
        said = f"claimed is {self.claim}, and the calls cost {cost_range(found)} at these distances"
        if within:
            return self._made(Verdict.HOLDS, f"{_ALIKE}; {said}.", runs, worst, found=found)
        if within is None:
            told = f"{sentence(said)} {_BOUNDS}"
            return self._made(Verdict.UNDECIDED, told, runs, worst, found=found)
        witness = f"all calls together: {said}"
        return self._made(Verdict.VIOLATED, sentence(said), runs, worst, witness, found)

    def _undecided(self, why: str, runs: Sequence[_Run] = ()) -> Report:
        return self._made(Verdict.UNDECIDED, sentence(why), runs, runs[-1] if runs else None)

    def _made(
        self, verdict: Verdict, summary: str, runs: Sequence[_Run], shown_run: _Run | None, witness: str = "",
        found: Bracket | None = None,
    ) -> Report:  # fmt: skip
        epsilon, notes = self._claim_in_words(shown_run, found)
        if self.asked:
            notes = [_KEEP]
        elif len({run.calls for run in runs if run.sides[0] == "D"}) > 1:
            notes.append(
                "What is called depends on noisy outputs: the costs are those of the transcripts that were seen."
            )
        called = shown_run is not None and shown_run.record.calls
        if shown_run is not None and not called:
            notes.append("It called no mechanism.")
        raised = [run.raised for run in runs if run.raised]
        if raised and verdict is Verdict.HOLDS:
            notes.append(f"It raised an error on some tape, the same on both inputs: {raised[0]}")
        if found is not None and verdict is Verdict.VIOLATED:
            notes.append(
                "The cost is that of all that the mechanisms put out, whether the result shows it or not."
            )
        return Report(
            name=self.name,
            method="record and replay",
            epsilon=epsilon,
            delta=float_upper(self.claim.delta),
            verdict=verdict,
            summary=summary,
            witness=witness,
            pair=self._pair(runs),
            relation=self.checked.relation,
            facts=self._facts(runs, shown_run, found),
            notes=tuple(notes),
            grids=self._grids(runs, shown_run) if called else (),
        )

    def _pair(self, runs: Sequence[_Run]) -> tuple[str, str] | None:
        if self.asked:
            return ("D", runs[-1].neighbour) if runs else None
        return brief(self.data), brief(self.others["D'"])

    def _grids(self, runs: Sequence[_Run], run: _Run | None) -> tuple[Grid, ...]:
        return (_largest(runs) if self.asked else _grid(run),) if run is not None else ()

    def _claim_in_words(self, run: _Run | None, found: Bracket | None) -> tuple[float, list[str]]:
        """The epsilon of the report; where none was claimed, what the calls were made for, or what was observed."""
        if self.claim.epsilon is not None:
            return float_upper(self.claim.epsilon), []
        none = "No epsilon was claimed"
        declared = None if run is None else run.declared
        if declared is not None:
            made_for = declared.epsilon_bounds(self.claim.delta).upper
            why = f"{none}: it is what the mechanisms of all calls together were made for."
            return made_for, [why]
        if found is not None:
            why = f"{none} and some calls declare no sensitivity: it is what was observed."
            return found.upper, [why]
        return math.inf, [f"{none}."]

    def _facts(
        self, runs: Sequence[_Run], run: _Run | None, found: Bracket | None
    ) -> tuple[tuple[str, str], ...]:
        facts = []
        if runs:
            last = runs[-1]
            ended = (last.difference or last.broken or last.trouble) is not None
            how = "ended at the first difference" if ended else "each in both directions"
            labels = [run.neighbour for run in runs]
            if self.asked:
                facts.append(("neighbours compared", str(len(set(labels)))))
            facts.append(("tapes", f"{(labels.count(labels[-1]) + 1) // 2}, {how}"))
        if run is not None and not self.asked:
            facts.append(("calls of mechanisms", str(len(run.record.calls))))
        if found is not None:
            facts.append(("epsilon observed", cost_range(found)))
        if run is not None and run.declared is not None:
            each = run.declared.epsilon_bounds(self.claim.delta).upper
            facts.append(("epsilon if every call were at its worst", f"{each:.6g}"))
        return tuple(facts)


def _grid(run: _Run) -> Grid:
    headings = ("call", "mechanism", "values", "distance", "declared", "share", "cost")
    if not run.seen:
        calls = enumerate(run.record.calls, 1)
        rows = [(str(i), call.name, call.form, "", "", "", "") for i, call in calls]
        return Grid(f"Calls on {run.sides[0]}", headings, tuple(rows))
    rows = []
    for one in run.seen:
        first, cost = (str(one.number), one.known.name, one.known.form), str(one.cost)
        for distance in one.distances:
            rows.append((*first, *distance_cells(distance), cost))
            first, cost = ("", "", ""), ""
    return Grid("Calls and how far apart their exact values are", headings, tuple(rows))


def _largest(runs: Sequence[_Run]) -> Grid:
    """The largest distance of each part of an answer in each norm, and between which inputs it was."""
    worst: dict[int, tuple[Distance, str]] = {}
    for run in runs:
        for i, distance in enumerate(d for one in run.seen for d in one.distances):
            if i not in worst or distance.observed > worst[i][0].observed:
                worst[i] = (distance, run.neighbour)
    rows = []
    for distance, label in worst.values():
        part, _, norm = distance.norm.rpartition(" ")
        rows.append((part or "Tables", *distance_cells(replace(distance, norm=norm)), label))
    headings = ("part", "distance", "declared", "share", "from D to")
    return Grid("Exact sums, largest distances", headings, tuple(rows))

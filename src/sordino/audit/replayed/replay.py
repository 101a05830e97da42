"""Record and replay: run on D, freeze every noisy output, run on D' with the same outputs; nothing else may differ.

What this proves of a pair of inputs, and what it does not, is in replay.md: tapes in both directions, distances call by
call, and the total cost. The report shows exact distances: for made-up data, or for the owner only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from sordino.accounting.bracket import Bracket
from sordino.audit.claim import not_negative, whole
from sordino.audit.inputs.neighbors import Checked, Relation, brief, check, checked_relation
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
from sordino.audit.replayed.query_replay import replay_query
from sordino.audit.replayed.recording import Call, Raised, Record, lives, record, replay_on
from sordino.audit.replayed.result_difference import Opaque
from sordino.audit.reporting.report import Grid, Report, Verdict
from sordino.errors import InvalidInput
from sordino.privacy.exact import Number, closed_unit, float_upper, readable, show
from sordino.query.front.sql import parse
from sordino.query.tree import Query

__all__ = ["MISSING", "Claim", "replay", "replay_function"]

_OWN_NOISE = (
    "Audit it as a black box with so.audit, or let all "
    "its randomness come from Sordino's mechanisms, in one thread."
)
_ALIKE = "Nothing but the exact values differs, and these no further than declared"
_BOUNDS = "Of some calls only upper bounds are known (replay.md): the claim is neither refuted nor supported."


@dataclass(frozen=True)
class Claim:
    """What is claimed of the whole; no epsilon where nothing is, so that only what the calls declare is checked."""

    epsilon: Fraction | None
    delta: Fraction


def replay_function(
    function: Callable[[Any], Any], d1: Any, d2: Any, checked: Checked, claim: Claim,
    limit: Callable[[int], Fraction | None], name: str, tapes: int,
) -> Report:  # fmt: skip
    """The report on a function and two inputs; `limit` gives the declared sensitivity of the i-th call."""
    return _Audit(function, d1, d2, checked.relation, claim, limit, name, tapes).report(checked)


@dataclass(frozen=True)
class _Seen:
    """One call on both inputs; or all calls of a mechanism that remembers, with the number of the first."""

    number: int
    known: Call
    distances: tuple[Distance, ...]
    cost: Cost
    declared: Cost | None


@dataclass(frozen=True)
class _Run:
    """One record, replayed on the other input: calls, and the first difference in words."""

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
        if not self.seen or any(one.declared is None for one in self.seen):
            return None
        return sum((one.declared or NO_COST for one in self.seen), NO_COST)

    @property
    def broken(self) -> str | None:
        """The first call whose inputs are further apart than declared."""
        for one in self.seen:
            for distance in one.distances:
                if distance.broken and distance.declared is not None:
                    apart = f"the exact values are {readable(distance.observed)} apart ({norm_name(distance.norm)})"
                    return f"call {one.number}: {one.known}: {apart}, declared are {readable(distance.declared)}"
        return None


@dataclass(frozen=True)
class _Audit:
    function: Callable[[Any], Any]
    d1: Any
    d2: Any
    relation: str
    claim: Claim
    limit: Callable[[int], Fraction | None]
    name: str
    tapes: int

    def report(self, checked: Checked) -> Report:
        """What was found, whatever it is; the function's own errors included."""
        if not checked.ok:
            return self._undecided(checked.problem)
        runs: list[_Run] = []
        for _ in range(self.tapes):
            for sides, data, other in (
                (("D", "D'"), self.d1, self.d2),
                (("D'", "D"), self.d2, self.d1),
            ):
                try:
                    runs.append(self._run(sides, data, other))
                except Opaque as kind:
                    what = f"its result holds {kind}, which cannot be compared. Return plain values, arrays or tables."
                    return self._undecided(what)
                if runs[-1].trouble is not None:
                    return self._undecided(runs[-1].trouble, runs)
                if runs[-1].difference is not None or runs[-1].broken is not None:
                    return self._judged(runs)
        return self._judged(runs)

    def _run(self, sides: tuple[str, str], data: Any, other: Any) -> _Run:
        known = record(self.function, data)
        again = replay_on(self.function, data, known, (sides[0], f"{sides[0]} again"))
        if again.difference is not None:
            what = f"Run again on {sides[0]} with the same noise it is not the same: {again.difference}."
            return _Run(
                sides, known, trouble=f"{what} It has randomness or state of its own. {_OWN_NOISE}"
            )
        found = replay_on(self.function, other, known, sides)
        if found.unaligned:
            what = f"{found.difference}. Which key is which on the two inputs cannot be told."
            hint = "Give every key of either input a weight, zeros too, or ask the query through a Session."
            return _Run(sides, known, trouble=f"{what} {hint}")
        pairs = lives(zip(known.calls, found.calls, strict=False))
        return _Run(sides, known, tuple(self._seen(*pair) for pair in pairs), found.difference)

    def _seen(self, number: int, known: Call, call: Call) -> _Seen:
        limit = self.limit(number - 1)
        return _Seen(
            number,
            known,
            call_distances(known, call, limit),
            call_cost(known, call),
            declared_cost(known, limit),
        )

    def _judged(self, runs: list[_Run]) -> Report:
        last = runs[-1]
        witness = last.difference or last.broken
        if witness is not None:
            kind = (
                ""
                if last.difference
                else " A person moves the values further than the noise is made for."
            )
            return self._made(Verdict.VIOLATED, f"{sentence(witness)}{kind}", runs, last, witness)
        if all(isinstance(run.record.result, Raised) for run in runs):
            return self._undecided(
                f"it raises {last.record.result} on both inputs, so that there is no answer", runs
            )
        costs: dict[Cost, Bracket] = {
            run.cost: run.cost.epsilon_bounds(self.claim.delta) for run in runs
        }
        worst = max(runs, key=lambda run: costs[run.cost].upper)
        return self._weighed(runs, worst, costs[worst.cost])

    def _weighed(self, runs: list[_Run], worst: _Run, found: Bracket) -> Report:
        """The verdict on the total, all else being in order."""
        delta = self.claim.delta
        claim = self.claim.epsilon
        if claim is None and worst.declared is None:
            why = f"nothing is claimed, and not every call declares a sensitivity; observed is {cost_range(found)}"
            said = sentence(f"{why}: pass epsilon= or sensitivity=")
            return self._made(Verdict.UNDECIDED, said, runs, worst, found=found)
        if claim is None:
            return self._made(Verdict.HOLDS, f"{_ALIKE}.", runs, worst, found=found)
        within = worst.cost.within(claim, delta)
        said = f"claimed is {_claimed(float_upper(claim), delta)}, and the calls cost {cost_range(found)} at these distances"
        if within:
            return self._made(Verdict.HOLDS, f"{_ALIKE}; {said}.", runs, worst, found=found)
        if within is None:
            return self._made(
                Verdict.UNDECIDED, f"{sentence(said)} {_BOUNDS}", runs, worst, found=found
            )
        witness = f"all calls together: {said}"
        return self._made(Verdict.VIOLATED, sentence(said), runs, worst, witness, found)

    def _undecided(self, why: str, runs: Sequence[_Run] = ()) -> Report:
        return self._made(Verdict.UNDECIDED, sentence(why), list(runs), runs[-1] if runs else None)

    def _made(
        self, verdict: Verdict, summary: str, runs: list[_Run], shown_run: _Run | None, witness: str = "",
        found: Bracket | None = None,
    ) -> Report:  # fmt: skip
        epsilon, notes = self._claim_in_words(shown_run, found)
        adaptive = (
            len(
                {
                    tuple((c.name, repr(c.value)) for c in run.record.calls)
                    for run in runs
                    if run.sides[0] == "D"
                }
            )
            > 1
        )
        if adaptive:
            notes.append(
                "What is called depends on noisy outputs: the costs are those of the transcripts that were seen."
            )
        if shown_run is not None and not shown_run.record.calls:
            notes.append("It called no mechanism.")
        raised = [str(run.record.result) for run in runs if isinstance(run.record.result, Raised)]
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
            pair=(brief(self.d1), brief(self.d2)),
            relation=self.relation,
            facts=self._facts(runs, shown_run, found),
            notes=tuple(notes),
            grids=() if shown_run is None or not shown_run.record.calls else (_grid(shown_run),),
        )

    def _claim_in_words(self, run: _Run | None, found: Bracket | None) -> tuple[float, list[str]]:
        """The epsilon of the report; where none was claimed, what the calls were made for, or what was observed."""
        if self.claim.epsilon is not None:
            return float_upper(self.claim.epsilon), []
        declared = None if run is None else run.declared
        if declared is not None:
            made_for = declared.epsilon_bounds(self.claim.delta).upper
            return made_for, [
                "No epsilon was claimed: it is what the mechanisms of all calls together were made for."
            ]
        if found is not None:
            return found.upper, [
                "No epsilon was claimed and some calls declare no sensitivity: it is what was observed."
            ]
        return math.inf, ["No epsilon was claimed."]

    def _facts(
        self, runs: list[_Run], run: _Run | None, found: Bracket | None
    ) -> tuple[tuple[str, str], ...]:
        ended = (
            bool(runs) and (runs[-1].difference or runs[-1].broken or runs[-1].trouble) is not None
        )
        how = "ended at the first difference" if ended else "each in both directions"
        facts = [("tapes", f"{(len(runs) + 1) // 2}, {how}")] if runs else []
        if run is not None:
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
        for i, distance in enumerate(one.distances):
            first = (str(one.number), one.known.name, one.known.form) if i == 0 else ("", "", "")
            rows.append((*first, *distance_cells(distance), str(one.cost) if i == 0 else ""))
    return Grid("Calls and how far apart their exact values are", headings, tuple(rows))


def _claimed(epsilon: float, delta: Fraction) -> str:
    return f"epsilon {epsilon:.10g}" + (f" at delta {float(delta):.10g}" if delta else "")


MISSING: Any = object()
_TAPES, _PERSONS = 3, 20
_MOST = 1000


def replay(
    what: Callable[[Any], Any] | str | Query,
    d1: Any,
    d2: Any = MISSING,
    *,
    epsilon: Number | None = None,
    delta: Number = 0,
    sensitivity: Number | Sequence[Number | None] | None = None,
    neighbors: Relation = None,
    name: str | None = None,
    tapes: int = _TAPES,
    persons: int = _PERSONS,
    **cost: Any,
) -> Report:
    """Whether a function that calls Sordino's mechanisms, or a SQL query, treats two neighbours alike up to its noise.

    A function is called with one input and must leave all randomness to Sordino's mechanisms. Without an `epsilon` the
    claim is what its mechanisms were calibrated for. `sensitivity` is the declared distance of every call, or one for
    each call in order, for mechanisms made by their scale. `tapes` is how often all is repeated with new noise.

    SQL is asked of two Datasets that are declared alike, at the cost that `session.sql` takes; nothing is charged.
    With one Dataset, some of its persons (at most `persons`) are left out or replaced in turn.

    Privacy: none. The report is about exact values, for made-up data or for the owner.

    Example:
        >>> from sordino import Laplace
        >>> def mean(rows):
        ...     return Laplace.calibrated(sensitivity=10, epsilon=1).release(sum(rows)) / len(rows)
        >>> replay(mean, [3, 5, 7], [3, 5]).witness.partition(":")[0]
        'with the same noise the results differ'
    """
    checked_relation(neighbors)
    whole("tapes", tapes, 1, _MOST, "Drop it.")
    whole("persons", persons, 1, _MOST, "Drop it.")
    claim = _claim(epsilon, delta)
    if isinstance(what, str | Query):
        if sensitivity is not None:
            hint = "Drop sensitivity: the declaration says it."
            raise InvalidInput(f"sensitivity={show(sensitivity)}", "a query derives its own", hint)
        other = None if d2 is MISSING else d2
        offer = cost if epsilon is None else {"epsilon": epsilon, **cost}
        offer = {"delta": delta, **offer} if claim.delta else offer
        query = parse(what) if isinstance(what, str) else what
        audit = replay_query
        if query.sets is not None:
            from sordino.audit.replayed.tables_replay import replay_tables

            audit = replay_tables
        return audit(
            query, d1, other, offer, neighbors=neighbors, name=name, tapes=tapes, persons=persons
        )
    if not callable(what):
        hint = "Pass a function of one input, or a SELECT as text."
        raise InvalidInput(show(what), "only functions and queries can be replayed", hint)
    if cost:
        rule, hint = (
            "a function has no such option",
            "mechanism=, error= and the like are for queries.",
        )
        raise InvalidInput(", ".join(cost), rule, hint)
    if d2 is MISSING:
        hint = "Pass both inputs: replay(function, d1, d2)."
        raise InvalidInput("one input", "a function is compared on two neighbouring inputs", hint)
    title = name or getattr(what, "__name__", None) or type(what).__name__
    return replay_function(
        what, d1, d2, check(d1, d2, neighbors), claim, _declarations(sensitivity), title, tapes
    )


def _claim(epsilon: Number | None, delta: Number) -> Claim:
    """A checked claim, read at its larger side."""
    small = closed_unit("delta", delta, "Pass 0, or a small probability such as 1e-6.").upper
    if small == 1:
        hint = "Pass 0, or a small probability such as 1e-6."
        raise InvalidInput("delta=1", "at delta 1 everything is allowed", hint)
    if epsilon is None:
        return Claim(None, small)
    return Claim(not_negative("epsilon", epsilon, "Pass what is claimed, such as 1."), small)


def _declarations(given: Any) -> Callable[[int], Fraction | None]:
    """The declared sensitivity of the i-th call, None where nothing is declared here."""
    if isinstance(given, list | tuple):
        each = list(map(_limit, given))
        return lambda i: each[i] if i < len(each) else None
    every = _limit(given)
    return lambda _: every


def _limit(given: Any) -> Fraction | None:
    hint = "It is how far one person can move the values."
    return None if given is None else not_negative("sensitivity", given, hint)

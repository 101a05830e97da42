"""The audit of one query on neighbouring datasets: plans, exact sums in every norm, and answers with frozen noise."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Protocol

from sordino.accounting.filters import TwoMeterFilter
from sordino.audit.inputs.neighbors import Checked, Relation, check
from sordino.audit.inputs.rows import Owner, column_named, owners, stored_rows, with_rows
from sordino.audit.replayed.cost import Cost
from sordino.audit.replayed.distances import Moved, exactly, moved
from sordino.audit.replayed.observed import (
    Distance,
    cost_range,
    distance_cells,
    norm_name,
    plan_cost,
    plan_distance,
    sentence,
)
from sordino.audit.reporting.report import Grid, Report, Verdict
from sordino.engines.openers import opener_of
from sordino.engines.public_tables import read_public_tables
from sordino.errors import EngineFailed, InvalidDeclaration, InvalidInput
from sordino.mechanisms import bits
from sordino.plan.cost import Cost as Offer
from sordino.plan.plan import Plan, make_plan
from sordino.privacy.exact import float_upper, readable, show
from sordino.privacy.neighbors import Neighbors
from sordino.privacy.wording import a_or_an, counted
from sordino.query.dataset import Dataset, Table
from sordino.query.front.text import sql_text
from sordino.query.tree import Query
from sordino.release import Groups, exact_groups, finished, noisy_groups

if TYPE_CHECKING:
    from sordino.workloads.grouping_sets import GroupingSetsPlan

__all__ = ["Neighbourhood", "neighbourhood", "replay_query"]


@dataclass(frozen=True)
class Neighbourhood:
    """Some neighbours with their names, and how many persons there are to choose from."""

    persons: int
    members: tuple[tuple[str, Dataset], ...]


def neighbourhood(dataset: Dataset, table: Table, most: int) -> Neighbourhood:
    """At most this many neighbours: of the persons with the most rows in the table, with the fewest, and others at
    random.

    A person is left out, or replaced, in every table of the same persons.
    """
    every = dataset.tables.values()
    same = [t for t in every if t is table or (t.persons and t.persons == table.persons)]
    frames = {t.name: stored_rows(t) for t in same}
    places: dict[str, dict[Owner, list[int]]] = {t.name: defaultdict(list) for t in same}
    for name, whose in owners(same, frames).items():
        for place, owner in enumerate(whose):
            if owner is not None:
                places[name][owner].append(place)
    own = places[table.name]
    order = list(own)
    members = []
    for person in _chosen(own, most):
        rows, donor = own[person], None
        who = f"row {rows[0] + 1}"
        if table.has_persons:
            who = f"a person with {counted(len(rows), 'row')}"
        label = f"without {who}"
        if table.neighbors is Neighbors.REPLACE:
            if len(order) == 1:
                continue
            label, donor = f"with {who} replaced", order[order.index(person) - 1]
        changed = {
            t.name: with_rows(t, _without(t, frames[t.name], places[t.name], person, donor))
            for t in same
            if person in places[t.name] or donor in places[t.name]
        }
        tables = {**dataset.tables, **changed}
        member = Dataset(
            tables=tables, budget=dataset.budget, reserved_delta=dataset.reserved_delta
        )
        members.append((label, member))
    return Neighbourhood(len(own), tuple(members))


def _without(
    table: Table, frame: Any, places: Mapping[Owner, list[int]], person: Owner, donor: Owner | None
) -> Any:
    """The rows without those of a person; with a donor, the person has rows like the donor's instead.

    Columns that name rows stay the person's own. A row without them cannot be made up, so that a person who has fewer
    rows than the donor in a table with keys gets as many as it has.
    """
    own, other = places.get(person, []), places.get(donor, []) if donor else []
    gone = set(own)
    rest = frame.take([i for i in range(len(frame)) if i not in gone])
    kept = [*table.identities, *([table.person] if table.person else [])]
    if not other or (kept and not own):
        return rest
    if table.identities:
        own, other = own[: len(other)], other[: len(own)]
    copied = frame.take(other)
    for name in (column_named(frame, column) for column in kept):
        cells = frame.column(name).take(own if table.identities else own[:1] * len(other))
        copied = copied.set_column(frame.column_names.index(name), frame.schema.field(name), cells)
    import pyarrow as pa

    return pa.concat_tables([rest, copied]).unify_dictionaries().combine_chunks()


def _chosen(rows: dict[Owner, list[int]], most: int) -> list[Owner]:
    if len(rows) <= most:
        return list(rows)
    by_size = sorted(rows, key=lambda person: len(rows[person]))
    third = most // 3
    heavy, light = by_size[len(by_size) - third :], by_size[:third]
    rest = by_size[third : len(by_size) - third]
    some = (rest.pop(bits.source().word() % len(rest)) for _ in range(most - 2 * third))
    return [*heavy, *light, *some]


_NOTE = "Distances are exact, in units of each sum's lattice: keep this report with the data."


def replay_query(
    query: Query, one: Any, other: Any, offer: Mapping[str, Any], *, neighbors: Relation, name: str | None, tapes: int,
    persons: int,
) -> Report:  # fmt: skip
    """The report on a query; without `other`, on neighbours of `one` that leave persons out."""
    for dataset in (one,) if other is None else (one, other):
        if not isinstance(dataset, Dataset):
            hint = "Pass Dataset(table, unit=..., columns=...)."
            raise InvalidInput(
                a_or_an(type(dataset).__name__), "a query is replayed on Datasets", hint
            )
    cost, title = Offer.offered(**offer), name or sql_text(query)
    audit: _Audit
    if query.sets is None:
        plan = _plan(query, one, cost)
        audit, whose = _QueryAudit(plan, title, tapes), plan.whose
    else:
        from sordino.audit.replayed.tables_replay import TablesAudit

        tables = _tables_plan(query, one, cost)
        audit = TablesAudit(tables, lambda data: _tables_plan(query, data, cost), title, tapes)
        whose = tables.workload.whose
    if other is not None:
        return audit.report(one, [("D'", other)], check(one, other, neighbors))
    around = neighbourhood(one, one.tables[whose.tables[0]], persons)
    done = "replaced" if whose.neighbors is Neighbors.REPLACE else "left out"
    relation = f"{len(around.members)} of {around.persons} persons, each {done} in turn"
    problem = "" if around.members else f"there are too few persons for one to be {done}"
    return audit.report(one, list(around.members), Checked(not problem, relation, problem))


class _Audit(Protocol):
    """The audit of one question."""

    def report(
        self, dataset: Dataset, others: list[tuple[str, Dataset]], checked: Checked
    ) -> Report:
        """What a dataset and its named neighbours show; nothing where they could not be checked."""


def _plan(query: Query, dataset: Dataset, cost: Offer) -> Plan:
    return make_plan(query, read_public_tables(dataset, query), cost, _meter(dataset))


def _tables_plan(query: Query, dataset: Dataset, cost: Offer) -> GroupingSetsPlan:
    from sordino.workloads.grouping_sets import plan_grouping_sets

    return plan_grouping_sets(query, read_public_tables(dataset, query), cost, _meter(dataset))


def _meter(dataset: Dataset) -> TwoMeterFilter:
    if dataset.budget is None:
        hint = "Declare one: Dataset(..., budget={'epsilon': 1})."
        raise InvalidInput("a dataset without a budget", "a query is planned within a budget", hint)
    return TwoMeterFilter(dataset.budget, dataset.reserved_delta or Fraction(0))


@dataclass(frozen=True)
class _Compared:
    """D and one neighbour: what differs that must not, the distances, and what the answer costs at them."""

    label: str
    difference: str | None
    moved: tuple[Moved, ...] = ()
    cost: Cost | None = None

    @property
    def witness(self) -> str | None:
        """The first thing that is wrong."""
        wrong = next((part for part in self.moved if part.broken), None)
        if self.difference is not None or wrong is None:
            return self.difference
        distance = plan_distance(wrong)
        apart = f"{distance.norm}: the exact sums are {readable(distance.observed)} apart"
        return f"{norm_name(apart)}, declared are {readable(distance.declared or Fraction(0))}"


@dataclass(frozen=True)
class _QueryAudit:
    plan: Plan
    name: str
    tapes: int

    def report(
        self, dataset: Dataset, others: list[tuple[str, Dataset]], checked: Checked
    ) -> Report:
        """Compare with each neighbour until one shows a difference."""
        relation = checked.relation
        if not checked.ok:
            return self._undecided(checked.problem, relation)
        found: list[_Compared] = []
        groups, failure = self._groups(dataset)
        for label, other in others:
            theirs, trouble = self._groups(other)
            where = "D" if groups is None else label
            failures = [error for error in (failure, trouble) if error is not None]
            if len(failures) == 1 and isinstance(failures[0], EngineFailed):
                found.append(_Compared(label, f"the engine fails on {where} only"))
            elif groups is None or theirs is None:
                return self._undecided(f"{where} cannot be read: {failures[0]}", relation)
            else:
                found.append(self._compared(label, other, groups, theirs))
            if found[-1].witness is not None:
                break
        return self._judged(found, relation)

    def _groups(self, dataset: Dataset) -> tuple[Groups | None, Exception | None]:
        """The exact groups that the engine finds, or why there are none."""
        tables = list(dataset.tables.values())
        try:
            with contextlib.closing(opener_of(tables)(tables)) as engine:
                exacts = [engine.run(statement) for statement in self.plan.statements]
                return exact_groups(self.plan, exacts), None
        except (EngineFailed, InvalidDeclaration) as error:
            return None, error

    def _compared(self, label: str, other: Dataset, groups: Groups, theirs: Groups) -> _Compared:
        again = _plan(self.plan.query, other, self.plan.cost)
        for what, same in (
            ("the plan", str(self.plan) == str(again)),
            ("its SQL", self.plan.sql() == again.sql()),
            ("its charge", self.plan.charge == again.charge),
        ):
            if not same:
                why = f"{what} is not the same on D and {label}, so it was made from data"
                return _Compared(label, why)
        if not self.plan.private_keys and groups.keys != theirs.keys:
            return _Compared(label, "the keys are public, and not the same on both")
        difference = self._public(groups, theirs)
        for one, another in ((groups, theirs), (theirs, groups)):
            difference = difference or self._frozen(one, another)
        distances = moved(self.plan, exactly(groups), exactly(theirs))
        return _Compared(label, difference, tuple(distances), plan_cost(self.plan, groups, theirs))

    @staticmethod
    def _public(groups: Groups, theirs: Groups) -> str | None:
        for name, numbers in groups.public.items():
            a, b = numbers.tolist(), theirs.public[name].tolist()
            if a != b:
                return f"a number that is released without noise is {show(a)} on D and {show(b)} on its neighbour"
        return None

    def _frozen(self, groups: Groups, theirs: Groups) -> str | None:
        """The answers of both with the noisy numbers of one must be the same bytes."""
        for _ in range(self.tapes):
            noisy = noisy_groups(groups, self.plan)
            both = (finished(noisy, exact.public, self.plan) for exact in (groups, theirs))
            ours, own = (answer.to_json() for answer in both)
            if ours != own:
                return "with the same noise the answers differ"
        return None

    def _judged(self, found: list[_Compared], relation: str) -> Report:
        last = found[-1]
        if last.witness is not None:
            witness = last.witness if last.label == "D'" else f"{last.label}: {last.witness}"
            return self._made(Verdict.VIOLATED, sentence(witness), found, relation, witness)
        price = self.plan.price
        for one in found:
            if one.cost is None or (within := one.cost.within(price.epsilon, price.delta)):
                continue
            cost = cost_range(one.cost.epsilon_bounds(price.delta))
            said = (
                f"{one.label}: the answer costs {cost}, and its price is {readable(price.epsilon)}"
            )
            if within is None:
                return self._made(Verdict.UNDECIDED, sentence(said), found, relation)
            return self._made(Verdict.VIOLATED, sentence(said), found, relation, said)
        summary = "Plan, SQL, charge and answer are the same, and the exact sums no further apart than the plan declares."
        return self._made(Verdict.HOLDS, summary, found, relation)

    def _undecided(self, why: str, relation: str) -> Report:
        """The report where there is nothing to compare."""
        return self._made(Verdict.UNDECIDED, sentence(why), [], relation)

    def _made(
        self, verdict: Verdict, summary: str, found: list[_Compared], relation: str, witness: str = ""
    ) -> Report:  # fmt: skip
        price = self.plan.price
        facts = [
            ("neighbours compared", str(len(found))),
            ("tapes", f"{self.tapes} for each, in both directions"),
        ]
        costs = {one.cost for one in found if one.cost is not None}
        if costs:
            brackets = (cost.epsilon_bounds(price.delta) for cost in costs)
            worst = max(brackets, key=lambda bracket: bracket.upper)
            facts.append(("epsilon observed, at worst", cost_range(worst)))
        return Report(
            name=self.name,
            method="record and replay",
            epsilon=float_upper(price.epsilon),
            delta=float_upper(price.delta),
            verdict=verdict,
            summary=summary,
            witness=witness,
            pair=("D", found[-1].label) if found else None,
            relation=relation,
            facts=tuple(facts) if found else (),
            notes=(_NOTE,),
            grids=(_grid(found),) if any(one.moved for one in found) else (),
        )


def _grid(found: list[_Compared]) -> Grid:
    """The largest distance of each part in each norm, and between which inputs it was."""
    worst: dict[int, tuple[Distance, str]] = {}
    for one in found:
        for i, part in enumerate(one.moved):
            distance = plan_distance(part)
            if i not in worst or distance.observed > worst[i][0].observed:
                worst[i] = (distance, one.label)
    rows = []
    for distance, label in worst.values():
        name, _, norm = distance.norm.rpartition(" ")
        rows.append((name, *distance_cells(replace(distance, norm=norm)), label))
    headings = ("part", "distance", "declared", "share", "from D to")
    return Grid("Exact sums, largest distances", headings, tuple(rows))

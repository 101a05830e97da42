"""The audit of one query on neighbouring datasets: plans, exact sums in every norm,
and answers with the noise frozen.
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from sordino.accounting.filters import TwoMeterFilter
from sordino.audit.inputs.neighbors import Relation, check
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
    same = [
        t
        for t in dataset.tables.values()
        if t is table or (t.persons is not None and t.persons == table.persons)
    ]
    frames = {t.name: stored_rows(t) for t in same}
    places: dict[str, dict[Owner, list[int]]] = {t.name: defaultdict(list) for t in same}
    for name, whose in owners(same, frames).items():
        for place, owner in enumerate(whose):
            if owner is not None:
                places[name][owner].append(place)
    chosen = _chosen(places[table.name], most)
    members = []
    for person in chosen:
        own = places[table.name]
        who = (
            f"a person with {counted(len(own[person]), 'row')}"
            if table.has_persons
            else f"row {own[person][0] + 1}"
        )
        donor = None
        if table.neighbors is Neighbors.REPLACE:
            order = list(own)
            if len(order) == 1:
                continue
            donor = order[order.index(person) - 1]
        changed = {
            t.name: with_rows(t, _without(t, frames[t.name], places[t.name], person, donor))
            for t in same
            if person in places[t.name] or donor in places[t.name]
        }
        label = f"without {who}" if donor is None else f"with {who} replaced"
        tables = {**dataset.tables, **changed}
        members.append(
            (
                label,
                Dataset(
                    tables=tables, budget=dataset.budget, reserved_delta=dataset.reserved_delta
                ),
            )
        )
    return Neighbourhood(len(places[table.name]), tuple(members))


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
    return _joined(rest, copied)


def _chosen(rows: dict[Owner, list[int]], most: int) -> list[Owner]:
    if len(rows) <= most:
        return list(rows)
    by_size = sorted(rows, key=lambda person: len(rows[person]))
    third = most // 3
    heavy, light = by_size[len(by_size) - third :], by_size[:third]
    rest = by_size[third : len(by_size) - third]
    return [*heavy, *light, *_sample(rest, most - 2 * third)]


def _sample(items: list[Owner], count: int) -> list[Owner]:
    """So many of them at random."""
    pool = list(items)
    return [pool.pop(bits.source().word() % len(pool)) for _ in range(count)]


def _joined(one: Any, other: Any) -> Any:
    import pyarrow as pa

    return pa.concat_tables([one, other]).unify_dictionaries().combine_chunks()


_NOTE = "Distances are exact, in units of each sum's lattice: keep this report with the data."


def replay_query(
    query: Query, one: Any, other: Any, offer: Mapping[str, Any], *, neighbors: Relation, name: str | None, tapes: int,
    persons: int,
) -> Report:  # fmt: skip
    """The report on a query; without `other`, on neighbours of `one` that leave persons out."""
    for dataset in (one,) if other is None else (one, other):
        if not isinstance(dataset, Dataset):
            rule, hint = (
                "a query is replayed on Datasets",
                "Pass Dataset(table, unit=..., columns=...).",
            )
            raise InvalidInput(a_or_an(type(dataset).__name__), rule, hint)
    cost = Offer.offered(**offer)
    plan = _plan(query, one, cost)
    audit = _Audit(plan, name or sql_text(query), tapes)
    if other is not None:
        checked = check(one, other, neighbors)
        if not checked.ok:
            return audit.undecided(checked.problem, checked.relation)
        return audit.report(one, [("D'", other)], checked.relation)
    around = neighbourhood(one, one.tables[plan.whose.tables[0]], persons)
    done = "replaced" if plan.whose.neighbors.value == "replace" else "left out"
    if not around.members:
        return audit.undecided(f"there are too few persons for one to be {done}", "")
    relation = f"{len(around.members)} of {around.persons} persons, each {done} in turn"
    return audit.report(one, list(around.members), relation)


def _plan(query: Query, dataset: Dataset, cost: Offer) -> Plan:
    if dataset.budget is None:
        hint = "Declare one: Dataset(..., budget={'epsilon': 1})."
        raise InvalidInput("a dataset without a budget", "a query is planned within a budget", hint)
    meter = TwoMeterFilter(dataset.budget, dataset.reserved_delta or Fraction(0))
    return make_plan(query, read_public_tables(dataset, query), cost, meter)


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
class _Audit:
    plan: Plan
    name: str
    tapes: int

    def report(self, dataset: Dataset, others: list[tuple[str, Dataset]], relation: str) -> Report:
        """Compare with each neighbour until one shows a difference."""
        found: list[_Compared] = []
        groups, failure = self._groups(dataset)
        for label, other in others:
            theirs, trouble = self._groups(other)
            if isinstance(failure, EngineFailed) != isinstance(trouble, EngineFailed) and (
                failure is None or trouble is None
            ):
                on = "D" if failure is not None else label
                found.append(_Compared(label, f"the engine fails on {on} only"))
            elif groups is None or theirs is None:
                where = "D" if groups is None else label
                return self.undecided(f"{where} cannot be read: {failure or trouble}", relation)
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
                return exact_groups(
                    self.plan, [engine.run(statement) for statement in self.plan.statements]
                ), None
        except (EngineFailed, InvalidDeclaration) as error:
            return None, error

    def _compared(self, label: str, other: Dataset, groups: Groups, theirs: Groups) -> _Compared:
        again = _plan(self.plan.query, other, self.plan.cost)
        for what, ours, own in (
            ("the plan", str(self.plan), str(again)),
            ("its SQL", self.plan.sql(), again.sql()),
            ("its charge", self.plan.charge, again.charge),
        ):
            if ours != own:
                return _Compared(
                    label, f"{what} is not the same on D and {label}, so it was made from data"
                )
        if not self.plan.private_keys and groups.keys != theirs.keys:
            return _Compared(label, "the keys are public, and not the same on both")
        difference = (
            self._public(groups, theirs)
            or self._frozen(groups, theirs)
            or self._frozen(theirs, groups)
        )
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
            ours, own = (
                finished(noisy, exact.public, self.plan).to_json() for exact in (groups, theirs)
            )
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
            within = one.cost is None or one.cost.within(price.epsilon, price.delta)
            if not within and one.cost is not None:
                cost = cost_range(one.cost.epsilon_bounds(price.delta))
                said = f"{one.label}: the answer costs {cost}, and its price is {readable(price.epsilon)}"
                verdict = Verdict.VIOLATED if within is False else Verdict.UNDECIDED
                return self._made(
                    verdict, sentence(said), found, relation, said if within is False else ""
                )
        summary = "Plan, SQL, charge and answer are the same, and the exact sums no further apart than the plan declares."
        return self._made(Verdict.HOLDS, summary, found, relation)

    def undecided(self, why: str, relation: str) -> Report:
        """The report where there is nothing to compare."""
        return self._made(Verdict.UNDECIDED, sentence(why), [], relation)

    def _made(
        self,
        verdict: Verdict,
        summary: str,
        found: list[_Compared],
        relation: str,
        witness: str = "",
    ) -> Report:
        price = self.plan.price
        facts = [
            ("neighbours compared", str(len(found))),
            ("tapes", f"{self.tapes} for each, in both directions"),
        ]
        costs = {one.cost for one in found if one.cost is not None}
        if costs:
            worst = max(
                (cost.epsilon_bounds(price.delta) for cost in costs),
                key=lambda bracket: bracket.upper,
            )
            facts.append(("epsilon observed, at worst", cost_range(worst)))
        pair = ("D", found[-1].label) if found else None
        return Report(
            name=self.name,
            method="record and replay",
            epsilon=float_upper(price.epsilon),
            delta=float_upper(price.delta),
            verdict=verdict,
            summary=summary,
            witness=witness,
            pair=pair,
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
        apart, declared, share = distance_cells(
            Distance(norm, distance.observed, distance.declared, distance.broken)
        )
        rows.append((name, apart, declared, share, label))
    return Grid(
        "Exact sums, largest distances",
        ("part", "distance", "declared", "share", "from D to"),
        tuple(rows),
    )

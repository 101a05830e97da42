"""The audit of one query on neighbouring datasets: a function of data, planned and read once, is replayed."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from sordino.accounting.filters import TwoMeterFilter
from sordino.audit.inputs.neighbors import Checked, Relation, check
from sordino.audit.inputs.rows import Owner, column_named, owners, stored_rows, with_rows
from sordino.audit.replayed.function_replay import Claim, FunctionReplay
from sordino.audit.reporting.report import Report
from sordino.engines.engine import Exact
from sordino.engines.openers import opener_of
from sordino.engines.public_tables import read_public_tables
from sordino.errors import EngineFailed, InvalidDeclaration, InvalidInput
from sordino.mechanisms import bits
from sordino.plan.cost import Cost
from sordino.plan.plan import Plan, make_plan
from sordino.privacy.neighbors import Neighbors
from sordino.privacy.wording import a_or_an, counted
from sordino.query.dataset import Dataset, Table
from sordino.query.front.text import sql_text
from sordino.query.tree import Query
from sordino.release import release
from sordino.workloads.grouping_sets import GroupingSetsPlan, plan_grouping_sets
from sordino.workloads.release import release_marginals

__all__ = ["Neighbourhood", "neighbourhood", "replay_query"]


@dataclass(frozen=True)
class Neighbourhood:
    """Some neighbours with their names, and how many persons there are to choose from."""

    persons: int
    members: dict[str, Dataset]


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
    members: dict[str, Dataset] = {}
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
        if label in members:
            label = f"{label} (number {len(members) + 1})"
        members[label] = Dataset(
            tables=tables, budget=dataset.budget, reserved_delta=dataset.reserved_delta
        )
    return Neighbourhood(len(own), members)


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
    question = _Question(query, Cost.offered(**offer))
    plan = question.planned(one)
    if isinstance(plan, Plan):
        whose, claim = plan.whose, Claim(plan.price.epsilon, plan.price.delta)
    else:
        whose, claim = plan.workload.whose, Claim(plan.epsilon, plan.workload.delta)
    if other is not None:
        others, checked = {"D'": other}, check(one, other, neighbors)
    else:
        around = neighbourhood(one, one.tables[whose.tables[0]], persons)
        others = around.members
        done = "replaced" if whose.neighbors is Neighbors.REPLACE else "left out"
        relation = f"{len(others)} of {around.persons} persons, each {done} in turn"
        problem = "" if others else f"there are too few persons for one to be {done}"
        checked = Checked(not problem, relation, problem)
    if checked.ok:
        for label, dataset in {"D": one, **others}.items():
            try:
                question.read(dataset)
            except InvalidDeclaration as error:
                checked = Checked(False, checked.relation, f"{label} cannot be read: {error}")
                break
    title = name or sql_text(query)
    return FunctionReplay(
        question, one, others, checked, claim, lambda _: None, title, tapes, asked=True
    ).report()


@dataclass(frozen=True)
class _Question:
    """A query as a function of datasets: each is planned and read once."""

    query: Query
    cost: Cost
    known: dict[int, tuple[Plan | GroupingSetsPlan, list[Exact] | EngineFailed]] = field(
        default_factory=dict
    )

    def planned(self, dataset: Dataset) -> Plan | GroupingSetsPlan:
        """The plan on a dataset, within its budget."""
        if dataset.budget is None:
            hint = "Declare one: Dataset(..., budget={'epsilon': 1})."
            raise InvalidInput(
                "a dataset without a budget", "a query is planned within a budget", hint
            )
        meter = TwoMeterFilter(dataset.budget, dataset.reserved_delta or Fraction(0))
        make = make_plan if self.query.sets is None else plan_grouping_sets
        return make(self.query, read_public_tables(dataset, self.query), self.cost, meter)

    def read(self, dataset: Dataset) -> tuple[Plan | GroupingSetsPlan, list[Exact] | EngineFailed]:
        """The plan on a dataset and what the engine finds, or that it fails."""
        if id(dataset) not in self.known:
            plan, tables = self.planned(dataset), list(dataset.tables.values())
            found: list[Exact] | EngineFailed
            try:
                with contextlib.closing(opener_of(tables)(tables)) as engine:
                    found = [engine.run(statement) for statement in plan.statements]
            except EngineFailed as error:
                found = error
            self.known[id(dataset)] = plan, found
        return self.known[id(dataset)]

    def __call__(self, dataset: Dataset) -> Any:
        """All that anybody sees of the question on a dataset."""
        plan, found = self.read(dataset)
        if isinstance(found, EngineFailed):
            raise found
        if isinstance(plan, Plan):
            return release(found, plan, None)
        answer = plan.answer(release_marginals(found[0], plan.workload))
        return str(plan), plan.sql(), repr(plan.charge), answer

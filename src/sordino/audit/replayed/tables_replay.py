"""The audit of CUBE, ROLLUP and GROUPING SETS on neighbouring datasets: their call of noise, recorded and replayed.

What is compared are the plan, its SQL, its charge, and the bytes of the answer; the distance is that of all contrasts.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from sordino.accounting.filters import TwoMeterFilter
from sordino.audit.inputs.neighbors import Checked, Relation, check
from sordino.audit.replayed.query_replay import neighbourhood
from sordino.audit.replayed.replay import Claim, replay_function
from sordino.audit.reporting.report import Report, Verdict
from sordino.engines.engine import Exact
from sordino.engines.openers import opener_of
from sordino.engines.public_tables import read_public_tables
from sordino.errors import InvalidInput
from sordino.plan.cost import Cost
from sordino.privacy.wording import a_or_an
from sordino.query.dataset import Dataset
from sordino.query.front.text import sql_text
from sordino.query.tree import Query
from sordino.workloads.grouping_sets import GroupingSetsPlan, plan_grouping_sets
from sordino.workloads.release import release_marginals

__all__ = ["replay_tables"]


def replay_tables(
    query: Query, one: Any, other: Any, offer: Mapping[str, Any], *, neighbors: Relation, name: str | None, tapes: int,
    persons: int,
) -> Report:  # fmt: skip
    """The report on a question with sets of keys; without `other`, on neighbours of `one` that leave persons out."""
    for dataset in (one,) if other is None else (one, other):
        if not isinstance(dataset, Dataset):
            hint = "Pass Dataset(table, unit=..., columns=...)."
            raise InvalidInput(
                a_or_an(type(dataset).__name__), "a query is replayed on Datasets", hint
            )
    cost = Cost.offered(**offer)
    plan = _plan(query, one, cost)
    claim = Claim(plan.epsilon, plan.workload.delta)

    counted: dict[int, tuple[GroupingSetsPlan, Exact]] = {}

    def answered(dataset: Dataset) -> tuple[str, str, str, str]:
        """All that anybody sees of the question on a dataset, which is read once."""
        if id(dataset) not in counted:
            counted[id(dataset)] = _counted(_plan(query, dataset, cost), dataset)
        own, exact = counted[id(dataset)]
        found = own.answer(release_marginals(exact, own.workload))
        return str(own), own.sql(), repr(own.charge), found.to_json()

    def report(against: Dataset, checked: Checked) -> Report:
        title = name or sql_text(query)
        return replay_function(answered, one, against, checked, claim, _undeclared, title, tapes)

    if other is not None:
        return report(other, check(one, other, neighbors))
    whose = plan.workload.whose
    around = neighbourhood(one, one.tables[whose.tables[0]], persons)
    done = "replaced" if whose.neighbors.value == "replace" else "left out"
    relation = f"{len(around.members)} of {around.persons} persons, each {done} in turn"
    if not around.members:
        why = f"there are too few persons for one to be {done}"
        return report(one, Checked(False, relation, why))
    found: list[tuple[str, Report]] = []
    for label, member in around.members:
        found.append((label, report(member, Checked(True, relation))))
        if found[-1][1].verdict is not Verdict.HOLDS:
            break
    label, last = found[-1]
    facts = (("neighbours compared", str(len(found))), ("the last one", label), *last.facts)
    return replace(last, facts=facts)


def _counted(plan: GroupingSetsPlan, dataset: Dataset) -> tuple[GroupingSetsPlan, Exact]:
    """A plan with the exact tables that the engine finds."""
    tables = list(dataset.tables.values())
    with contextlib.closing(opener_of(tables)(tables)) as engine:
        (exact,) = [engine.run(statement) for statement in plan.statements]
    return plan, exact


def _undeclared(_: int) -> None:
    """Nothing is declared beside what the plan promises of its noise."""


def _plan(query: Query, dataset: Dataset, cost: Cost) -> GroupingSetsPlan:
    if dataset.budget is None:
        hint = "Declare one: Dataset(..., budget={'epsilon': 1})."
        raise InvalidInput("a dataset without a budget", "a query is planned within a budget", hint)
    meter = TwoMeterFilter(dataset.budget, dataset.reserved_delta or Fraction(0))
    return plan_grouping_sets(query, read_public_tables(dataset, query), cost, meter)

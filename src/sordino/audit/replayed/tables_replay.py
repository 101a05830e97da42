"""The audit of CUBE, ROLLUP and GROUPING SETS on neighbouring datasets: their call of noise, recorded and replayed.

What is compared are the plan, its SQL, its charge, and the bytes of the answer; the distance is that of all contrasts.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from sordino.audit.inputs.neighbors import Checked
from sordino.audit.replayed.function_replay import Claim, FunctionReplay
from sordino.audit.reporting.report import Report, Verdict
from sordino.engines.engine import Exact
from sordino.engines.openers import opener_of
from sordino.query.dataset import Dataset
from sordino.workloads.grouping_sets import GroupingSetsPlan
from sordino.workloads.release import release_marginals

__all__ = ["TablesAudit"]


@dataclass(frozen=True)
class TablesAudit:
    """The audit of a question with sets of keys; `planned` plans it again on a dataset."""

    plan: GroupingSetsPlan
    planned: Callable[[Dataset], GroupingSetsPlan]
    name: str
    tapes: int
    counted: dict[int, tuple[GroupingSetsPlan, Exact]] = field(default_factory=dict)
    """The plan on each dataset and the exact tables that the engine finds, which are read once."""

    def report(
        self, dataset: Dataset, others: list[tuple[str, Dataset]], checked: Checked
    ) -> Report:
        """Compare with each neighbour until one does not pass."""
        if not checked.ok:
            return self._compared(dataset, others[0][1] if others else dataset, checked)
        found: list[tuple[str, Report]] = []
        for label, other in others:
            found.append((label, self._compared(dataset, other, checked)))
            if found[-1][1].verdict is not Verdict.HOLDS:
                break
        label, last = found[-1]
        if label == "D'":
            return last
        facts = (("neighbours compared", str(len(found))), ("the last one", label), *last.facts)
        return replace(last, facts=facts)

    def _compared(self, one: Dataset, other: Dataset, checked: Checked) -> Report:
        claim = Claim(self.plan.epsilon, self.plan.workload.delta)
        return FunctionReplay(
            self._answered, one, other, checked, claim, lambda _: None, self.name, self.tapes
        ).report()

    def _answered(self, dataset: Dataset) -> Any:
        """All that anybody sees of the question on a dataset."""
        if id(dataset) not in self.counted:
            self.counted[id(dataset)] = self._count(dataset)
        plan, exact = self.counted[id(dataset)]
        found = plan.answer(release_marginals(exact, plan.workload))
        return str(plan), plan.sql(), repr(plan.charge), found.to_json()

    def _count(self, dataset: Dataset) -> tuple[GroupingSetsPlan, Exact]:
        plan, tables = self.planned(dataset), list(dataset.tables.values())
        with contextlib.closing(opener_of(tables)(tables)) as engine:
            (exact,) = [engine.run(statement) for statement in plan.statements]
        return plan, exact

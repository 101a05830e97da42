"""GROUP BY CUBE, ROLLUP and GROUPING SETS: a question whose tables are a workload, of counts or of one sum.

Its answer has the rows of all tables, one after another; NULL in a key stands for all its values. Rows without a value
of some key are in no table, as in every GROUP BY here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from sordino.accounting.budget_share import BudgetShare
from sordino.accounting.charge import Charge
from sordino.accounting.filters import TwoMeterFilter
from sordino.answer.answer import Answer, EstimateColumn, KeyColumn
from sordino.errors import InvalidInput
from sordino.ledger.receipt import Receipt
from sordino.plan.bind import ask
from sordino.plan.cost import Cost
from sordino.plan.dialects import DEFAULT
from sordino.plan.statement import Statement
from sordino.query import tree
from sordino.query.aggregates.estimates import Estimates
from sordino.query.dataset import Dataset
from sordino.query.having import check_having, check_order
from sordino.release import rehearsed
from sordino.workloads.marginals import Marginals
from sordino.workloads.plan import MarginalsPlan, plan_marginals

__all__ = ["GroupingSetsPlan", "plan_grouping_sets", "rehearse_rows"]

_ALL = "NULL in a key stands for all its values; rows without a value of some key are in no table."


@dataclass(frozen=True, eq=False)
class GroupingSetsPlan:
    """The plan of one SELECT with sets of keys: a workload, and how its tables become rows."""

    query: tree.Query
    cost: Cost
    workload: MarginalsPlan

    @property
    def charge(self) -> Charge:
        """What it takes from each meter."""
        return self.workload.charge

    @property
    def epsilon(self) -> Fraction:
        """What the answer alone satisfies."""
        return self.workload.epsilon

    @property
    def statements(self) -> tuple[Statement, ...]:
        """All that runs."""
        return self.workload.statements

    @property
    def promise(self) -> str:
        """What is promised about the answer, in plain words."""
        return self.workload.promise

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the answer should know about its numbers."""
        from sordino.plan.explain import chosen_by_noise

        return (_ALL, *chosen_by_noise(self.query), *self.workload.notes)

    @property
    def budget(self) -> BudgetShare:
        """What it takes of the budget, in words."""
        return self.workload.budget

    def sql(self, dialect: str = DEFAULT) -> str:
        """The SQL that runs, in the dialect of one engine."""
        return ";\n\n".join(statement.pretty(dialect) for statement in self.statements)

    def errors(self) -> dict[str, float | None]:
        """The largest half-width of each count, in any table."""
        most = max(self.workload.errors().values())
        return {
            output.name: most for output in self.query.outputs if tree.aggregates_in(output.value)
        }

    def _repr_html_(self) -> str:
        from sordino.plan.explain import plan_card

        return plan_card(self.explain())

    def explain(self, *, details: bool = False) -> str:
        """The plan in words."""
        del details
        return self.workload.explain()

    def __str__(self) -> str:
        return self.explain()

    def answer(self, marginals: Marginals, receipt: Receipt | None = None) -> Answer:
        """The rows of all tables, in the order asked for, then HAVING, ORDER BY and LIMIT."""
        query = self.query
        tables = [marginals.at(places) for places in query.sets or ()]
        keys: list[list[tree.Value]] = [[] for _ in query.keys]
        for table in tables:
            for cells in table.keys:
                own = dict(zip(table.places, cells, strict=True))
                for place, column in enumerate(keys):
                    column.append(own.get(place))
        values = np.concatenate([table.values.ravel() for table in tables])
        half = np.concatenate([np.full(table.cells.size, table.half_width) for table in tables])
        summed = self.workload.summed
        bounds = (
            (0.0, None)
            if self.cost.nonnegative and (summed is None or summed.grid.first >= 0)
            else (None, None)
        )
        columns: list[KeyColumn | EstimateColumn] = []
        for output in query.outputs:
            if tree.aggregates_in(output.value):
                columns.append(
                    EstimateColumn(
                        output.name, Estimates(values, values - half, values + half), bounds=bounds
                    )
                )
            else:
                columns.append(KeyColumn(output.name, tuple(keys[query.keys.index(output.value)])))
        answer = Answer(
            tuple(columns), self.promise, receipt, float(self.cost.confidence), self.notes
        )
        return answer.arranged(
            query.having, query.order, query.limit, query.offset, hidden=query.hidden
        )


def plan_grouping_sets(
    query: tree.Query, dataset: Dataset, cost: Cost, meter: TwoMeterFilter
) -> GroupingSetsPlan:
    """The plan of a question with sets of keys at a cost; only rows are counted."""
    summed = _summed(query)
    if cost.private_bounds or cost.bias:
        rule = "CUBE, ROLLUP and GROUPING SETS take neither bounds nor bias"
        raise InvalidInput("bounds or bias", rule, "Leave them out.")
    if not query.keys:
        hint = "Leave out GROUP BY: without it there is one number for all rows."
        raise InvalidInput("GROUP BY GROUPING SETS (())", "sets of keys need a key", hint)
    rows = ask(query, dataset)
    names = {f"k{i}": key for i, key in enumerate(query.keys)}
    shown = {_shown(query, key, i): key for i, key in enumerate(query.keys)}
    named = shown if len(shown) == len(names) else names
    listed = tuple(named)
    answered = [output.name for output in query.outputs]
    tables = [[listed[i] for i in places] for places in query.sets or ()]
    source = replace(
        query, outputs=(), keys=(), having=None, order=(), limit=None, offset=0, sets=None
    )
    plan = plan_marginals(
        meter, source, rows, named, cost, tables=tables, nulls=False, summed=summed
    )
    if query.having is not None:
        check_having(query.having, answered)
    check_order(query.order, answered)
    return GroupingSetsPlan(query, cost, plan)


def _summed(query: tree.Query) -> tree.Expression | None:
    """What is summed, None where rows are counted; all tables hold the same one number."""
    found = set[tree.Aggregate]()
    for output in query.outputs:
        if not tree.aggregates_in(output.value):
            continue
        match output.value:
            case tree.Aggregate("count", ()) | tree.Aggregate("sum", (_,)):
                found.add(output.value)
            case _:
                rule = "CUBE, ROLLUP and GROUPING SETS answer COUNT(*) or SUM(x), and nothing else"
                hint = "Ask for one of them; ask for others with a plain GROUP BY."
                raise InvalidInput(f"the output {output.name}", rule, hint)
    if len(found) > 1:
        rule = "CUBE, ROLLUP and GROUPING SETS answer one aggregate in all tables, and these are several"
        names = ", ".join(
            output.name for output in query.outputs if tree.aggregates_in(output.value)
        )
        raise InvalidInput(f"the outputs {names}", rule, "Ask a question for each.")
    arguments = next(iter(found)).arguments if found else ()
    return arguments[0] if arguments else None


def rehearse_rows(plan: GroupingSetsPlan) -> None:
    """Make rows of an answer of zeros before anything is charged."""

    def trial() -> None:
        Answer.from_json(plan.answer(plan.workload.example).to_json())

    rehearsed(trial, "this question at this price", "Choose a simpler HAVING, or fewer keys.")


def _shown(query: tree.Query, key: tree.Expression, place: int) -> str:
    return next(
        (output.name for output in query.outputs if output.value == key), f"key {place + 1}"
    )

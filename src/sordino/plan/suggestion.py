"""The plan of a suggestion: which bounds of one table are searched for, and what that costs; no data are seen.

All of a person's rows are searched, whatever bounds are declared. What is wrong with the request is refused here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from functools import partial
from typing import Any

from sordino.accounting.budget_share import BudgetShare
from sordino.accounting.charge import NOTHING, Charge
from sordino.accounting.filters import TwoMeterFilter
from sordino.errors import InvalidInput
from sordino.plan.bind import Asked, ask
from sordino.plan.cost import Cost
from sordino.plan.explain import promise
from sordino.plan.keys import Key, all_keys, bind_key
from sordino.plan.names import find
from sordino.plan.relations import Whose
from sordino.plan.searches import Searched, groups_of_person, numbers, rows_in_group, rows_of_person
from sordino.plan.statement import Statement
from sordino.privacy.exact import show
from sordino.query import tree
from sordino.query.bounds_search import Price
from sordino.query.dataset import Dataset, Table
from sordino.query.front.terms import ColumnLike, term_tree
from sordino.query.meaning.expressions import typed
from sordino.query.types import FIRST_DAY, FIRST_MOMENT, LAST_DAY, LAST_MOMENT, Day, Moment, Number

__all__ = ["ORIGIN", "SuggestionPlan", "plan_suggestion"]

ORIGIN = date(2000, 1, 1)
"""The day from which the days of dates are counted."""

_COUNTING = Fraction(1, 5)
"""The part of each search's epsilon that counts how much lies beyond what was found."""
_QUESTIONS = 10
"""Into how many questions a budget is thought to be divided, where no later epsilon is given."""


@dataclass(frozen=True)
class SuggestionPlan:
    """What is searched, and for which later question; `table` is the table as declared. Printing it explains it.

    `budget` is which part of the budget it takes; nothing here is from data.
    """

    table: Table
    whose: Whose
    searched: tuple[Searched, ...]
    keys: tuple[str, ...]
    epsilon: Fraction
    query_epsilon: Fraction
    budget: BudgetShare

    @property
    def charge(self) -> Charge:
        """What all searches take from the meters."""
        return _charge(self.searched)

    @property
    def statements(self) -> tuple[Statement, ...]:
        """All that runs, one statement for each search."""
        return tuple(one.statement for one in self.searched)

    @property
    def promise(self) -> str:
        """What is promised about the suggestion, in plain words."""
        return promise(self.whose, self.epsilon, Fraction(0))

    @property
    def question(self) -> str:
        """The text under which a ledger keeps it."""
        names = ", ".join(show(one.search.what) for one in self.searched)
        by = f" by {', '.join(map(show, self.keys))}" if self.keys else ""
        return f"SUGGEST {names} FOR {show(self.table.name)}{by}"

    @property
    def offer(self) -> str:
        """What is offered for it, the same text for the same offer."""
        return f"epsilon={self.epsilon}, query_epsilon={self.query_epsilon}"

    def _repr_html_(self) -> str:
        from sordino.plan.explain import plan_card

        return plan_card(self.explain())

    def explain(self, *, folded: bool = True) -> str:
        """The plan in words."""
        from sordino.plan.explain import explain_suggestion

        return explain_suggestion(self, folded=folded)

    def __str__(self) -> str:
        return self.explain()


def _charge(searched: Sequence[Searched]) -> Charge:
    return sum((one.charge for one in searched), NOTHING)


def plan_suggestion(
    dataset: Dataset,
    meter: TwoMeterFilter,
    table: str | None,
    *,
    epsilon: Any,
    columns: Sequence[str] | None = None,
    keys: Sequence[ColumnLike] = (),
    query_epsilon: Any = None,
) -> SuggestionPlan:
    """The plan of a suggestion for one table: how many rows and groups of a person, and limits of some columns.

    It is told as a part of what the `meter` allows.
    """
    price = Cost.offered(epsilon=epsilon).epsilon or Fraction(0)
    declared = _table(dataset, table)
    rows = ask(tree.Query(tree.Table(declared.name), ()), dataset)
    later = _later(dataset, query_epsilon)
    bound = _keys(keys, rows, declared)
    makers: list[Callable[[Price], Searched]] = []
    if not rows.whose.by_row:
        makers.append(partial(rows_of_person, rows))
        if bound:
            makers += [partial(groups_of_person, rows, bound), partial(rows_in_group, rows, bound)]
    makers += [partial(_column, rows, declared, name) for name in _columns(columns, declared)]
    if not makers:
        rule = "each row is another person here, and every number has its limits already"
        what = f"nothing to suggest for {declared.name}"
        raise InvalidInput(what, rule, "Name columns to look for narrower limits.")
    each = Price(price / len(makers), _COUNTING, later)
    searched = tuple(make(each) for make in makers)
    share = BudgetShare.of(_charge(searched), meter)
    return SuggestionPlan(
        declared, rows.whose, searched, tuple(key.name for key in bound), price, later, share
    )


def _table(dataset: Dataset, name: str | None) -> Table:
    protected = [table for table in dataset.tables.values() if not table.public]
    if name is None:
        if len(protected) == 1:
            return protected[0]
        rule = f"bounds are suggested for one table, and this dataset protects {len(protected)}"
        what = "a suggestion without a table"
        raise InvalidInput(what, rule, f"Name one of {', '.join(t.name for t in protected)}.")
    if not isinstance(name, str):
        raise InvalidInput(
            f"table={show(name)}", "a table is named by a text", "Pass 'visits' or the like."
        )
    table = dataset.tables[find("table", name, dataset.tables, "")]
    if table.public:
        rule = "a public table protects nobody, so that its bounds need no noise"
        raise InvalidInput(f"the table {show(table.name)}", rule, "Read them off the table.")
    return table


def _later(dataset: Dataset, given: Any) -> Fraction:
    """The epsilon of a later question: as given, or a tenth of the budget."""
    if given is not None:
        return _epsilon(given)
    return dataset.budget.epsilon / _QUESTIONS if dataset.budget is not None else Fraction(1)


def _epsilon(given: Any) -> Fraction:
    try:
        return Cost.offered(epsilon=given).epsilon or Fraction(0)
    except InvalidInput as error:
        raise InvalidInput(f"query_epsilon={show(given)}", f"it is the epsilon of a later question: {error.rule}",
                           "Pass a number such as 0.1.") from None  # fmt: skip


def _keys(keys: Sequence[ColumnLike], rows: Asked, table: Table) -> tuple[Key, ...]:
    if isinstance(keys, str) or not isinstance(keys, Sequence):
        rule = "the keys of a grouping are a list"
        raise InvalidInput(f"keys={show(keys)}", rule, 'Pass keys=["ward"] or the like.')
    if keys and rows.whose.by_row:
        rule = "every person has one row here, and so is in one group"
        raise InvalidInput("keys", rule, "Leave out keys.")
    bound: list[Key] = []
    for key in keys:
        expression = term_tree(key)
        if isinstance(expression, tree.Column):
            expression = tree.Column(find("column", expression.name, table.columns, ""))
        name = (
            expression.name
            if isinstance(expression, tree.Column)
            else f"key {len(bound) + 1}: {expression!r}"
        )
        bound.append(bind_key(name, typed(expression, rows.read)))
    if all(not key.private for key in bound):
        all_keys(bound)
    return tuple(bound)


def _columns(asked: Sequence[str] | None, table: Table) -> list[str]:
    """The columns to search: those named, or all numbers and dates that have no limits."""
    if asked is None:
        return [name for name, column in table.columns.items() if _unlimited(column.type)]
    if (
        isinstance(asked, str)
        or not isinstance(asked, Sequence)
        or not all(isinstance(name, str) for name in asked)
    ):
        rule = "columns are a list of names"
        raise InvalidInput(f"columns={show(asked)}", rule, 'Pass columns=["cost"] or the like.')
    found = [find("column", name, table.columns, "") for name in asked]
    for name in found:
        kind = table.columns[name].type
        if not isinstance(kind, Number | Day | Moment) or (
            isinstance(kind, Number) and kind.values is not None
        ):
            rule = "only numbers and dates have limits, and a category lists its values"
            what = f"the column {show(name)}"
            raise InvalidInput(what, rule, "Name columns of type int, float, date or datetime.")
        if found.count(name) > 1:
            raise InvalidInput(
                f"the column {show(name)}", "it is named twice", "Name each column once."
            )
    return found


def _unlimited(kind: object) -> bool:
    match kind:
        case Number(values=None):
            return not kind.bounded
        case Day():
            return kind.lower == FIRST_DAY and kind.upper == LAST_DAY
        case Moment():
            return kind.lower == FIRST_MOMENT and kind.upper == LAST_MOMENT
    return False


def _column(rows: Asked, table: Table, name: str, price: Price) -> Searched:
    """The search for the limits of a column; a date is a number of days."""
    value: tree.Expression = tree.Column(name)
    if isinstance(table.columns[name].type, Day | Moment):
        value = tree.Call("date_diff", (tree.Literal("day"), tree.Literal(ORIGIN), value))
    return numbers(name, typed(value, rows.read), rows, price)

"""A session: the straight line from a question to an answer.

query   = parse(text)                      what is asked, or a refusal
plan    = make_plan(query, dataset, cost)  what runs and what it costs; every error of a user is raised up to here
receipt = ledger.charge(plan.charge)       debited before data are read
exacts  = engine.run(plan.statements)      whole numbers
answer  = release(exacts, plan, receipt)   noise
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from fractions import Fraction
from types import TracebackType
from typing import Any, Self

from sordino.accounting.filters import Remaining, TwoMeterFilter
from sordino.answer.answer import Answer
from sordino.engines.duckdb import DuckDB
from sordino.engines.engine import Engine
from sordino.errors import EngineFailed, InvalidDeclaration, InvalidInput
from sordino.ledger.memory import MemoryLedger
from sordino.ledger.receipt import Receipt
from sordino.plan.cost import Cost
from sordino.plan.plan import Plan, make_plan
from sordino.plan.schema import check_schema
from sordino.privacy.budget import Budget
from sordino.privacy.exact import show
from sordino.query.dataset import Dataset
from sordino.query.front.python import Question
from sordino.query.front.sql import parse
from sordino.query.tree import Query
from sordino.release import release

__all__ = ["Session"]


class Session:
    """Questions about one dataset, within one budget.

    The budget is the dataset's unless another is given here. What was spent is kept in memory, for this session only.
    `memory` ("2GB") and `threads` bound what the engine uses.

    Example:
        >>> import pyarrow as pa
        >>> table = pa.table({"age": [31, 47, 65, 80]})
        >>> data = Dataset(table, unit="row", columns={"age": {"type": "int", "min": 0, "max": 110}}, budget=Budget(1))
        >>> with Session(data) as session:
        ...     answer = session.sql("SELECT COUNT(*) AS n FROM data", epsilon=0.5)
        ...     left = session.remaining.pure
        >>> answer.names, left
        (('n',), Fraction(1, 2))
    """

    def __init__(
        self, dataset: Dataset, budget: Budget | None = None, *, memory: str | None = None, threads: int | None = None
    ) -> None:
        if not isinstance(dataset, Dataset):
            raise InvalidInput(
                show(type(dataset).__name__), "a session needs a Dataset", "Pass Dataset.load('visits.toml')."
            )
        self.dataset = dataset if budget is None else dataset.with_budget(budget)
        if self.dataset.budget is None:
            hint = "Add [budget] with epsilon and delta, or pass budget=Budget(1, 1e-6)."
            raise InvalidDeclaration("a dataset without a budget", "a session needs to know what may be spent", hint)
        self._ledger = MemoryLedger(TwoMeterFilter(self.dataset.budget, self.dataset.reserved_delta or Fraction(0)))
        self._engine: Engine = DuckDB(dataset.tables.values(), memory=memory, threads=threads)
        try:
            for table in dataset.tables.values():
                check_schema(table, self._engine.schema(table))
        except BaseException:
            self._engine.close()
            raise

    def sql(self, query: str, **cost: Any) -> Answer:
        """The noisy answer to one SELECT, for `epsilon=...` or for `error=...`; see `Cost.offered` for the rest."""
        return self.run(parse(query), **cost)

    def table(self, name: str) -> Question:
        """A question built in Python, about one table."""
        return Question(name, session=self)

    def run(self, query: Query, **cost: Any) -> Answer:
        """The noisy answer to a query tree."""
        plan = self._plan(query, cost)
        receipt = self._ledger.charge(plan.charge, plan.table.name)
        answer: Answer | None = None
        with contextlib.suppress(Exception):  # data have been touched: whatever fails now has one fixed text
            answer = release([self._engine.run(statement) for statement in plan.statements], plan, receipt)
        if answer is None:
            raise EngineFailed
        return answer

    def preview(self, query: str | Query, **cost: Any) -> Plan:
        """What a query would run and cost; free, and no data are read."""
        return self._plan(parse(query) if isinstance(query, str) else query, cost)

    def _plan(self, query: Query, cost: Mapping[str, Any]) -> Plan:
        return make_plan(query, self.dataset, Cost.offered(**cost), self._ledger.meter)

    @property
    def remaining(self) -> Remaining:
        """What each meter still has."""
        return self._ledger.meter.remaining

    @property
    def receipts(self) -> tuple[Receipt, ...]:
        """All charges so far."""
        return self._ledger.receipts

    def fits(self, query: str | Query, **cost: Any) -> int:
        """How many more answers like this one the budget allows."""
        return self._ledger.meter.fits(self.preview(query, **cost).charge)

    def close(self) -> None:
        """Close the engine."""
        self._engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Session({', '.join(self.dataset.tables)}; {self.remaining})"

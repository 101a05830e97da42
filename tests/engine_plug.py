"""DuckDB as the plug of a session: `Session(dataset, engine=Plug())`, watched and made to fail from outside."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

from sordino.engines.duckdb import DuckDB
from sordino.engines.engine import Exact, Run
from sordino.plan.plan import Plan
from sordino.plan.statement import Statement
from sordino.query.dataset import Dataset, Table
from sordino.release import Groups, exact_groups

__all__ = ["Plug", "exact_sums"]


def exact_sums(plan: Plan, dataset: Dataset, **limits: Any) -> Groups:
    """The sums of a plan before noise."""
    with closing(DuckDB(dataset.tables.values(), **limits)) as engine:
        return exact_groups(plan, [engine.run(statement) for statement in plan.statements])


class Plug:
    """Opens DuckDB, and stands before it: `runs` is what ran,
    `before` is called before each statement and may raise.
    """

    def __init__(self, before: Callable[[Statement], Any] = lambda _: None, **limits: Any) -> None:
        self.before, self._limits = before, limits
        self.runs: list[Statement] = []

    def __call__(self, tables: Sequence[Table]) -> Plug:
        """What a session opens."""
        self.duckdb = DuckDB(tables, **self._limits)
        return self

    @property
    def dialect(self) -> str:
        """That of DuckDB."""
        return self.duckdb.dialect

    def expect_unchanged(self) -> None:
        """As DuckDB does."""
        self.duckdb.expect_unchanged()

    @contextmanager
    def snapshot(
        self, statements: Sequence[Statement] = (), deadline: float | None = None
    ) -> Iterator[Run]:
        """As DuckDB does."""
        with self.duckdb.snapshot(statements):
            yield self.run

    def run(self, statement: Statement, deadline: float | None = None) -> Exact:
        """As DuckDB does, unless `before` raises."""
        self.runs.append(statement)
        self.before(statement)
        return self.duckdb.run(statement)

    def exact_groups(self, plan: Plan) -> Groups:
        """The sums of a plan before noise, over what the session holds."""
        return exact_groups(plan, [self.duckdb.run(statement) for statement in plan.statements])

    @property
    def progress(self) -> float | None:
        """As DuckDB does."""
        return self.duckdb.progress

    def interrupt(self) -> None:
        """As DuckDB does."""
        self.duckdb.interrupt()

    def close(self) -> None:
        """As DuckDB does."""
        self.duckdb.close()

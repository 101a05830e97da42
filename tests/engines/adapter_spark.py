"""Spark, as every engine is held to DuckDB's integers: a local session whose plans are small, as the rows are few."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from engine_reference import named_only
from engines.spark_sessions import local_session
from sordino.audit.replayed.distances import Exactly, exactly
from sordino.engines.engine import Exact
from sordino.engines.spark import Spark
from sordino.engines.spark.sources import hold, sent
from sordino.plan.plan import Plan
from sordino.plan.statement import Statement
from sordino.query.dataset import Table
from sordino.release import exact_groups

__all__ = ["Adapter"]


class Adapter:
    """An engine whose tables are exchanged: rows are sent, and pass the forms of the gate as always."""

    of_library = frozenset({"ln", "log10", "exp", "power"})
    """Functions whose last digit is Java's, not that of DuckDB's C library."""
    longest_quick = 3500
    """Spark takes long to parse and analyse long SQL of a shape that it has not seen;
    `make slow` asks it all the same.
    """
    quick_plans = 50
    """A plan takes it a quarter of a second; `make slow` asks it 10,000."""

    def __init__(self, session: Any = None, options: Mapping[str, str] | None = None) -> None:
        self.engine = Spark([], session=session or local_session())
        for key, value in (options or {}).items():
            self.engine._session.conf.set(key, value)

    def load(self, declared: Mapping[str, Table], rows: Mapping[str, pa.Table]) -> None:
        """From now on these are the rows of the declared tables."""
        for name, frame in rows.items():
            hold(declared[name], sent(self.engine._session, frame).coalesce(1))

    def run(self, plan: Plan) -> Exactly:
        """The sums of a plan."""
        for statement in plan.statements:
            statement.text("spark")
        groups = exact_groups(plan, [self.engine.run(statement) for statement in plan.statements])
        return named_only(plan, exactly(groups))

    def exact(self, statement: Statement) -> Exact:
        """What one statement gives."""
        return self.engine.run(statement)

    def close(self) -> None:
        """Close the engine; the session of Spark serves all tests of the process."""
        self.engine.close()

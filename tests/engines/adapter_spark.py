"""Spark, as every engine is held to DuckDB's integers: a local session whose plans are small, as the rows are few."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from engine_reference import named_only
from engines.spark_sessions import local_session
from sordino.audit.replayed.distances import Exactly, exactly
from sordino.engines.spark import Spark
from sordino.plan.plan import Plan
from sordino.query.dataset import Source, Table
from sordino.release import exact_groups

__all__ = ["Adapter"]


class Adapter:
    """Rows as Parquet files that Spark opens, through the gate as always."""

    refusals = ("the text of numbers that have no bounds or no step",)
    """What Spark refuses before the charge: its texts of doubles are not those of other engines."""

    def __init__(self, session: Any = None, options: Mapping[str, str] | None = None) -> None:
        self.session = session or local_session()
        self.options = dict(options or {})
        self.folder = Path(tempfile.mkdtemp(prefix="sordino-test-"))
        self.engine: Spark | None = None
        self.worlds = 0

    def load(self, declared: Mapping[str, Table], rows: Mapping[str, pa.Table]) -> None:
        """From now on these are the rows of the declared tables."""
        if self.engine is not None:
            self.engine.close()
        self.worlds += 1
        made = []
        for name, frame in rows.items():
            place = self.folder / f"{self.worlds}-{name}.parquet"
            pyarrow.parquet.write_table(frame, place)
            source = Source("spark", files=str(place), format="parquet")
            made.append(replace(declared[name], source=source))
        self.engine = Spark(made, session=self.session)
        for key, value in self.options.items():
            self.engine._session.conf.set(key, value)

    def run(self, plan: Plan) -> Exactly:
        """The sums of a plan."""
        assert self.engine is not None
        for statement in plan.statements:
            statement.text("spark")
        groups = exact_groups(plan, [self.engine.run(statement) for statement in plan.statements])
        return named_only(plan, exactly(groups))

    def close(self) -> None:
        """Close the engine; the session of Spark serves all tests of the process."""
        if self.engine is not None:
            self.engine.close()
        shutil.rmtree(self.folder, ignore_errors=True)

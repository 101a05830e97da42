"""Every engine counts and sums the same: all tables of a workload in one statement,
on PostgreSQL and Spark as on DuckDB.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sordino as so
from engines.conformance import ENGINES, opened
from sordino.accounting.filters import TwoMeterFilter
from sordino.workloads.plan import plan_workload
from workloads.test_marginals import ASKED, COLUMNS, ROWS


@pytest.mark.parametrize(
    "engine",
    [pytest.param(name, marks=[pytest.mark.slow] if name == "spark" else []) for name in ENGINES],
)
def test_the_same_counts(engine: str) -> None:
    frame = pa.table({name: cells[:600] for name, cells in ROWS.items()})
    adapter = opened(engine)
    try:
        for unit, bounds in (("row", {}), ("p", {"max_rows": 2})):
            more: dict[str, Any] = bounds
            data = so.Dataset(frame, unit=unit, columns=COLUMNS, budget=so.Budget(5, 1e-6), **more)
            assert data.budget is not None
            tables: list[list[str]] = [["age", "sex"], ["sex", "ok", "month"], []]
            adapter.load(data.tables, {"data": frame})
            for added in (None, so.col("age") - 50):
                meter = TwoMeterFilter(data.budget)
                asked: dict[str, Any] = {} if added is None else {"sum": added}
                plan = plan_workload(
                    data, meter, ASKED, **{"epsilon": 1, "tables": tables, **asked}
                )
                with so.Session(data) as session:
                    expected = plan.counting.counts(session._engine.run(plan.statements[0]))
                found = plan.counting.counts(adapter.exact(plan.statements[0]))
                assert found.keys() == expected.keys()
                for table, cells in expected.items():
                    assert cells.any()
                    assert np.array_equal(found[table], cells)
    finally:
        adapter.close()

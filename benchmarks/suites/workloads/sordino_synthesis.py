"""Sordino: synthetic rows of adult; how far all pairs and triples are off,
whether the report's intervals hold, time.
"""

import resource
import sys
import time
from typing import Any

import numpy as np
import pyarrow as pa
from benchmarks.suites.workloads.settings import DELTA, EPSILONS, adult, distance, mean_distance
from benchmarks.timing import row

import sordino as so

RUNS = {0.1: 5, 1.0: 3, 10.0: 1}
"""One run differs from the next by 0.006 in triples at epsilon 0.1, by 0.001 above."""


def one_run(table: pa.Table, columns: dict[str, Any], epsilon: float) -> dict[str, float]:
    """How far rows are off, how often the report is right, and how long it took."""
    data = so.Dataset(table, unit="row", columns=columns, budget=so.Budget(100, DELTA))
    with so.Session(data, threads=1) as session:
        start, used = time.perf_counter(), time.process_time()
        found = session.synthesize(epsilon=epsilon)
        spent = {
            "seconds": time.perf_counter() - start,
            "cpu_seconds": time.process_time() - used,
        }
    made = np.array([found.values[name] for name in names]).T
    pairs, triples = (mean_distance(rows, made, sizes, ways) for ways in (2, 3))
    held = []
    for one in found.report.tables:
        places = tuple(names.index(name) for name in one.columns)
        held.append(one.low <= distance(rows, made, sizes, places) <= one.high)
    covered = float(np.mean(held))
    return {**spent, "pairs": pairs, "triples": triples, "covered": covered, "judged": len(held)}


if __name__ == "__main__":
    names, sizes, rows = adult()
    table = pa.table({name: rows[:, i] for i, name in enumerate(names)})
    columns = {
        n: {"type": "int", "min": 0, "max": k - 1, "nullable": False}
        for n, k in zip(names, sizes, strict=True)
    }
    for epsilon in EPSILONS:
        if sys.argv[1:] and f"epsilon {epsilon:g}" not in sys.argv[1:]:
            continue
        with row("synthesis", f"epsilon {epsilon:g}", tool="Sordino") as fields:
            runs = [one_run(table, columns, epsilon) for _ in range(RUNS[epsilon])]
            fields |= {name: float(np.mean([run[name] for run in runs])) for name in runs[0]}
            fields["runs"], fields["each"] = len(runs), [run["triples"] for run in runs]
            fields["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

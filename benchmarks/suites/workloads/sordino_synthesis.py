"""Sordino: synthetic rows of adult; how far all pairs and triples are off,
whether the report's intervals hold, time.
"""

import resource
import time

import numpy as np
import pyarrow as pa
from benchmarks.suites.workloads.settings import DELTA, EPSILONS, adult, distance, mean_distance
from benchmarks.timing import row

import sordino as so

if __name__ == "__main__":
    names, sizes, rows = adult()
    table = pa.table({name: rows[:, i] for i, name in enumerate(names)})
    columns = {
        n: {"type": "int", "min": 0, "max": k - 1, "nullable": False}
        for n, k in zip(names, sizes, strict=True)
    }
    for epsilon in EPSILONS:
        data = so.Dataset(table, unit="row", columns=columns, budget=so.Budget(100, DELTA))
        with (
            row("synthesis", f"epsilon {epsilon:g}", tool="Sordino") as fields,
            so.Session(data, threads=1) as session,
        ):
            start, used = time.perf_counter(), time.process_time()
            found = session.synthesize(epsilon=epsilon)
            fields["seconds"], fields["cpu_seconds"] = (
                time.perf_counter() - start,
                time.process_time() - used,
            )
            made = np.array([found.values[name] for name in names]).T
            fields["pairs"], fields["triples"] = (
                mean_distance(rows, made, sizes, ways) for ways in (2, 3)
            )
            held = []
            for one in found.report.tables:
                places = tuple(names.index(name) for name in one.columns)
                held.append(one.low <= distance(rows, made, sizes, places) <= one.high)
            fields["covered"], fields["judged"] = float(np.mean(held)), len(held)
            fields["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

"""Sordino: all pairs of adult, and of a hundred columns of ten values;
variances beside the optimum, time and memory.
"""

import itertools
import math
import resource
import time
from fractions import Fraction

import numpy as np
import pyarrow as pa
from benchmarks.suites.workloads.settings import DELTA, MU_SQUARED, adult
from benchmarks.timing import row

import sordino as so
from sordino.accounting.filters import TwoMeterFilter
from sordino.workloads.plan import plan_workload
from sordino.workloads.release import release_marginals

_RELEASES = 5
"""Noise is drawn this often for the share of intervals that hold: cells of one release share much of it."""


def optimum(sizes: list[int], ways: int, mu: float) -> float:
    """The least sum of variances of all cells, by Cauchy and Schwarz over residuals (Xiao et al. 2023, Section 5.3)."""
    needs: dict[tuple[int, ...], float] = {}
    for table in itertools.combinations(range(len(sizes)), ways):
        cells = math.prod(sizes[i] for i in table)
        for size in range(ways + 1):
            for part in itertools.combinations(table, size):
                outside = math.prod(sizes[i] for i in table if i not in part)
                needs[part] = needs.get(part, 0.0) + cells / outside**2
    roots = (
        math.sqrt(need) * math.prod(1 - 1 / sizes[i] for i in part) for part, need in needs.items()
    )
    return sum(roots) ** 2 / mu**2


def measured(case: str, names: list[str], sizes: list[int], rows: np.ndarray) -> None:
    columns = {
        n: {"type": "int", "min": 0, "max": k - 1, "nullable": False}
        for n, k in zip(names, sizes, strict=True)
    }
    table = pa.table({name: rows[:, i] for i, name in enumerate(names)})
    budget = so.Budget(100, DELTA)
    data = so.Dataset(table, unit="row", columns=columns, budget=budget)
    with (
        row("marginals", case, tables=math.comb(len(sizes), 2)) as fields,
        so.Session(data) as session,
    ):
        start, used = time.perf_counter(), time.process_time()
        plan = plan_workload(
            data, TwoMeterFilter(budget), names, ways=2, epsilon=1, weights=lambda _, cells: cells
        )
        fields["plan_seconds"] = time.perf_counter() - start
        fields["plan_cpu_seconds"] = time.process_time() - used
        start, used = time.perf_counter(), time.process_time()
        exact = session._engine.run(plan.statements[0])
        fields["engine_seconds"] = time.perf_counter() - start
        fields["engine_cpu_seconds"] = time.process_time() - used
        start, used = time.perf_counter(), time.process_time()
        found = release_marginals(exact, plan)
        fields["release_seconds"] = time.perf_counter() - start
        fields["release_cpu_seconds"] = time.process_time() - used
        total = sum(Fraction(one.cells.size) * one.variance for one in found)
        least = optimum(sizes, 2, math.sqrt(MU_SQUARED))
        fields["variances"], fields["relative_excess"] = float(total), float(total) / least - 1
        off, claimed = [], []
        for again in range(_RELEASES):
            other = release_marginals(exact, plan) if again else found
            for one in other:
                truth = np.zeros(one.cells.shape)
                np.add.at(truth, tuple(rows[:, i] for i in one.places), 1)
                off.append((np.abs(one.values - truth) <= one.half_width).mean())
                claimed.append(float(np.square(one.values - truth).mean() / one.variance))
        fields["covered"], fields["measured_variance"] = (
            float(np.mean(off)),
            float(np.mean(claimed)),
        )
        agree = []
        for name, beside in itertools.permutations(names[:20], 2):
            pair = found[name, beside]
            agree.append(
                np.array_equal(pair.cells.sum(axis=pair.names.index(beside)), found[name].cells)
            )
        fields["agree"] = all(agree)
        fields["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    measured("adult, 14 columns", *adult())
    made_up = np.random.default_rng(1).integers(0, 10, (20_000, 100))
    measured("100 columns of 10 values", [f"c{i}" for i in range(100)], [10] * 100, made_up)

"""ResidualPlanner's published `class_resplan.py` on all pairs of adult: its sum of variances, and its time.

It is a script, not a package: name the folder that holds it in SORDINO_RESIDUALPLANNER; without it nothing is run.
"""

import contextlib
import importlib
import io
import itertools
import os
import resource
import sys
import time

import numpy as np
import pandas as pd
from benchmarks.suites.workloads.settings import MU_SQUARED, adult
from benchmarks.timing import row


def measured(case: str, names: list[str], sizes: list[int], rows: np.ndarray) -> None:
    """All pairs, weighted by their cells: chosen, measured and put together again, in processor time."""
    planner_of = importlib.import_module("class_resplan").ResidualPlanner
    with row("marginals", case, tool="ResidualPlanner") as fields:
        used = time.process_time()
        planner = planner_of(sizes)
        planner.input_data(pd.DataFrame(rows, columns=names), names)
        for pair in itertools.combinations(range(len(sizes)), 2):
            planner.input_mech(pair)
        fields["variances"] = float(planner.selection("sumvar", pcost=MU_SQUARED))
        fields["plan_cpu_seconds"] = time.process_time() - used
        with contextlib.redirect_stdout(io.StringIO()):
            used = time.process_time()
            planner.measurement()
            fields["measure_cpu_seconds"] = time.process_time() - used
            used = time.process_time()
            planner.reconstruction()
            fields["release_cpu_seconds"] = time.process_time() - used
        fields["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    if not os.environ.get("SORDINO_RESIDUALPLANNER"):
        sys.exit(0)  # report.py knows the figures that were measured once
    sys.path.insert(0, os.environ["SORDINO_RESIDUALPLANNER"])
    measured("adult, 14 columns", *adult())
    made_up = np.random.default_rng(1).integers(0, 10, (20_000, 100))
    measured("100 columns of 10 values", [f"c{i}" for i in range(100)], [10] * 100, made_up)

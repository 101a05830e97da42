"""What is measured, for all scripts of the suite; the census data are not part of the project."""

import gzip
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

EPSILONS = (0.1, 1.0, 10.0)
DELTA = 1e-6
RUNS = 3
DATA = Path(os.environ.get("SORDINO_CENSUS", Path(__file__).resolve().parents[4] / "shared" / "data"))
NUMBERS = ("age", "education-num", "capital-gain", "capital-loss", "hours-per-week")
STEPS = (365, 1000, 4096)


def census(target: str) -> tuple[Any, Any, Any, Any, int]:
    """Features in [0, 1] by public domains, and the target, as train and test; and how many values the target has."""
    domain = json.loads((DATA / "adult-domain.json").read_text())
    with gzip.open(DATA / "adult.csv.gz", "rt") as file:
        rows = np.loadtxt(file, delimiter=",", skiprows=1, dtype=int)
    columns = []
    for place, (name, size) in enumerate(domain.items()):
        if name in (target, "fnlwgt"):
            continue
        columns.append(rows[:, place : place + 1] / (size - 1) if name in NUMBERS else np.eye(size)[rows[:, place]])
    x, y = np.hstack(columns), rows[:, list(domain).index(target)]
    order = np.random.default_rng(0).permutation(len(x))
    train, test = order[: int(0.8 * len(x))], order[int(0.8 * len(x)) :]
    return x[train], y[train], x[test], y[test], domain[target]

"""Census income as integers, and how far synthetic rows are from it; the same for every tool of this suite.

The data are the discretised file that private-pgm ships, `adult.csv.gz` and `adult-domain.json`: put both into
benchmarks/.data, or name their folder in SORDINO_ADULT. They are not part of the project.
"""

import csv
import gzip
import itertools
import json
import math
import os
from pathlib import Path

import numpy as np

EPSILONS = (0.1, 1.0, 10.0)
DELTA = 1e-9
FOLDER = Path(os.environ.get("SORDINO_ADULT", Path(__file__).parents[2] / ".data"))


def adult() -> tuple[list[str], list[int], np.ndarray]:
    """Names, numbers of values, and rows."""
    domain = json.loads((FOLDER / "adult-domain.json").read_text())
    with gzip.open(FOLDER / "adult.csv.gz", "rt") as file:
        lines = list(csv.reader(file))
    return list(domain), list(domain.values()), np.array([[int(float(x)) for x in line] for line in lines[1:]])


def counts(rows: np.ndarray, sizes: list[int], columns: tuple[int, ...]) -> np.ndarray:
    """The table of some columns, flat."""
    cells = np.zeros(len(rows), np.int64)
    for i in columns:
        cells = cells * sizes[i] + rows[:, i]
    return np.bincount(cells, minlength=math.prod(sizes[i] for i in columns))


def distance(one: np.ndarray, other: np.ndarray, sizes: list[int], columns: tuple[int, ...]) -> float:
    """The total variation between two tables."""
    a, b = (counts(rows, sizes, columns) / len(rows) for rows in (one, other))
    return float(np.abs(a - b).sum() / 2)


def mean_distance(one: np.ndarray, other: np.ndarray, sizes: list[int], ways: int) -> float:
    """Its mean over all tables of so many columns."""
    every = itertools.combinations(range(len(sizes)), ways)
    return float(np.mean([distance(one, other, sizes, columns) for columns in every]))

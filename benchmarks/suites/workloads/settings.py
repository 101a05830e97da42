"""Census income as integers, and how far synthetic rows are from it; the same for every tool of this suite.

The data are the discretised file that private-pgm ships, `adult.csv.gz` and `adult-domain.json`, which no package on
the registry has: name their folder in SORDINO_CENSUS. They are not part of the project.
"""

import csv
import gzip
import itertools
import json
import math
import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.timing import row

EPSILONS = (0.1, 1.0, 10.0)
DELTA = 1e-9
FOLDER = Path(
    os.environ.get("SORDINO_CENSUS", Path(__file__).resolve().parents[4] / "shared" / "data")
)
MU_SQUARED = 0.03311483049017331
"""The price of epsilon 1 at DELTA in Gaussian noise: the largest mu, squared."""
PEER_SECONDS = int(os.environ.get("SORDINO_PEER_SECONDS", "900"))
"""Processor time after which a peer's run is given up."""


def adult() -> tuple[list[str], list[int], np.ndarray]:
    """Names, numbers of values, and rows."""
    domain = json.loads((FOLDER / "adult-domain.json").read_text())
    with gzip.open(FOLDER / "adult.csv.gz", "rt") as file:
        lines = list(csv.reader(file))
    return (
        list(domain),
        list(domain.values()),
        np.array([[int(float(x)) for x in line] for line in lines[1:]]),
    )


def counts(rows: np.ndarray, sizes: list[int], columns: tuple[int, ...]) -> np.ndarray:
    """The table of some columns, flat."""
    cells = np.zeros(len(rows), np.int64)
    for i in columns:
        cells = cells * sizes[i] + rows[:, i]
    return np.bincount(cells, minlength=math.prod(sizes[i] for i in columns))


def distance(
    one: np.ndarray, other: np.ndarray, sizes: list[int], columns: tuple[int, ...]
) -> float:
    """The total variation between two tables."""
    a, b = (counts(rows, sizes, columns) / len(rows) for rows in (one, other))
    return float(np.abs(a - b).sum() / 2)


def mean_distance(one: np.ndarray, other: np.ndarray, sizes: list[int], ways: int) -> float:
    """Its mean over all tables of so many columns."""
    every = itertools.combinations(range(len(sizes)), ways)
    return float(np.mean([distance(one, other, sizes, columns) for columns in every]))


def rho_of(epsilon: float) -> float:
    """The largest rho whose zero-concentrated guarantee implies (epsilon,
    DELTA), by Canonne, Kamath and Steinke (2020).
    """

    def delta(rho: float) -> float:
        orders = 1 + np.logspace(-3, 4, 20_000)
        logs = (
            (orders - 1) * (orders * rho - epsilon)
            - np.log(orders - 1)
            + orders * np.log1p(-1 / orders)
        )
        return float(np.exp(logs.min()))

    low, high = 0.0, epsilon + 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if delta(middle) <= DELTA else (low, middle)
    return low


def measure(
    tool: str, made: Callable[[float, list[str], list[int], np.ndarray], np.ndarray]
) -> None:
    """Rows of a peer at every epsilon, the middle one first; a run is stopped after PEER_SECONDS of processor time.

    Names of cases on the command line choose some of them.
    """
    names, sizes, rows = adult()
    for epsilon in sorted(EPSILONS, key=lambda one: abs(math.log(one))):
        case = f"epsilon {epsilon:g}"
        if sys.argv[1:] and case not in sys.argv[1:]:
            continue
        with row("synthesis", case, tool=tool) as fields:
            signal.signal(signal.SIGPROF, _late)
            signal.setitimer(signal.ITIMER_PROF, PEER_SECONDS)
            used = time.process_time()
            found = made(epsilon, names, sizes, rows)
            signal.setitimer(signal.ITIMER_PROF, 0)
            fields["cpu_seconds"] = time.process_time() - used
            fields["pairs"], fields["triples"] = (
                mean_distance(rows, found, sizes, ways) for ways in (2, 3)
            )
            fields["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _late(*_: Any) -> None:
    raise TimeoutError(f"not finished after {PEER_SECONDS} seconds of processor time")

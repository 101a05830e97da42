"""AIM as published: private-pgm's `mechanisms/aim.py` (its NumPy version, all pairs, 80 MB, its own defaults).

It is a script, not a package: name the folder that holds it in SORDINO_AIM; without it nothing is run. It finds
private-pgm as dpmm ships it. A run takes from minutes to hours: SORDINO_PEER_SECONDS says when to give up.
"""

import importlib
import itertools
import os
import sys

import numpy as np
import pandas as pd
from benchmarks.suites.workloads.settings import DELTA, measure
from dpmm.models.base import matrix, mbi

_MOST_CELLS = 10_000
"""Of a pair, by the script's own default: all pairs of adult."""


def made(epsilon: float, names: list[str], sizes: list[int], rows: np.ndarray) -> np.ndarray:
    """Rows that it makes of others."""
    aim = importlib.import_module("aim")
    data = mbi.Dataset(pd.DataFrame(rows, columns=names), mbi.Domain(names, sizes))
    pairs = itertools.combinations(names, 2)
    asked = [(pair, 1.0) for pair in pairs if data.domain.size(pair) <= _MOST_CELLS]
    _, found = aim.AIM(epsilon, DELTA).run(data, asked, num_synth_rows=len(rows))
    return np.asarray(found.df[names], np.int64)


if __name__ == "__main__":
    if not os.environ.get("SORDINO_AIM"):
        sys.exit(0)  # report.py knows the figures that were measured once
    sys.path.insert(0, os.environ["SORDINO_AIM"])
    sys.modules |= {"mbi": mbi, "hdmm": matrix, "hdmm.matrix": matrix}
    measure("AIM (private-pgm's script)", made)

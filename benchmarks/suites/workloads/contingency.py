"""Synthetic rows by OpenDP's contingency tables, the same for its algorithms;
all values are known, as they are to us.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import opendp.prelude as dp
import polars as pl
from benchmarks.suites.workloads.settings import rho_of


def rows_by(algorithm: Any) -> Callable[[float, list[str], list[int], np.ndarray], np.ndarray]:
    """Rows that an algorithm makes of others, each of another person."""
    dp.enable_features("contrib")

    def made(epsilon: float, names: list[str], sizes: list[int], rows: np.ndarray) -> np.ndarray:
        rho = math.floor(rho_of(epsilon) * 2**20) / 2**20
        context = dp.Context.compositor(
            data=pl.LazyFrame({name: rows[:, i] for i, name in enumerate(names)}),
            privacy_unit=dp.unit_of(contributions=1),
            privacy_loss=dp.loss_of(rho=rho),
            split_evenly_over=1,
        )
        keys = {name: list(range(size)) for name, size in zip(names, sizes, strict=True)}
        query = context.query().select(*names)
        table = query.contingency_table(keys=keys, algorithm=algorithm).release()
        found = table.synthesize()
        return np.stack([found[name].fill_null(0).to_numpy() for name in names], axis=1)

    return made

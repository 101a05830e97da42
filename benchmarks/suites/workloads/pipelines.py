"""Synthetic rows by dpmm's pipelines; columns are whole numbers already, so that nothing is put into bins."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from benchmarks.suites.workloads.settings import DELTA


def rows_by(
    pipeline: Any, megabytes: float = 80
) -> Callable[[float, list[str], list[int], np.ndarray], np.ndarray]:
    """Rows that a pipeline makes of others, each of another person, with a model of at most so many megabytes.

    It runs in one process, whose time is taken.
    """

    def made(epsilon: float, names: list[str], sizes: list[int], rows: np.ndarray) -> np.ndarray:
        model = pipeline(
            epsilon=epsilon,
            delta=DELTA,
            disable_processing=True,
            n_jobs=1,
            max_model_size=megabytes,
        )
        model.fit(pd.DataFrame(rows, columns=names), domain=dict(zip(names, sizes, strict=True)))
        return np.asarray(model.generate(n_records=len(rows))[names], np.int64)

    return made

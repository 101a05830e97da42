"""Which quantiles of which tables are asked, and how often."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

TRIALS = 100
CONFIDENCE = 0.95
MOST = 3
"""How many times the 95 % error an interval may reach to both sides."""
LEVELS = tuple(Fraction(i, 100) for i in (5, 25, 50, 75, 90, 99))
AT_ONCE = {"one level": tuple((p,) for p in LEVELS), "six at once": (LEVELS,)}
SIZES = (30, 100, 1000, 10_000, 100_000)
EPSILONS = (Fraction(1, 10), Fraction(1), Fraction(3))
ROWS_OF_A_PERSON = (1, 10)
CENTS, YEARS = 100_001, 111

Numbers = Any


def _humps(rng: np.random.Generator, rows: int) -> Numbers:
    return np.where(
        rng.uniform(size=rows) < 0.5, rng.normal(100, 5, rows), rng.normal(900, 5, rows)
    )


def _zeros(rng: np.random.Generator, rows: int) -> Numbers:
    return np.where(rng.uniform(size=rows) < 0.48, 0, rng.gamma(2, 50, rows))


SHAPES: dict[str, tuple[int, Callable[[np.random.Generator, int], Numbers]]] = {
    "even": (CENTS, lambda rng, rows: 100 * rng.uniform(0, 1000, rows)),
    "gamma": (CENTS, lambda rng, rows: 100 * rng.gamma(2, 50, rows)),
    "long tail": (CENTS, lambda rng, rows: 100 * rng.lognormal(3, 1, rows)),
    "whole years": (YEARS, lambda rng, rows: np.floor(rng.exponential(20, rows))),
    "tens": (CENTS, lambda rng, rows: 1000 * (rng.gamma(2, 50, rows) // 10)),
    "powers of ten": (CENTS, lambda rng, rows: 100 * rng.choice([0, 1, 10, 100, 1000], rows)),
    "many zeros": (CENTS, lambda rng, rows: 100 * _zeros(rng, rows)),
    "two humps": (CENTS, lambda rng, rows: 100 * _humps(rng, rows)),
}
"""How many points the public grid has, and the place on it of each row."""


def column(shape: str, rows: int) -> Numbers:
    """A table's column, the same in each run."""
    points, made = SHAPES[shape]
    values = made(np.random.default_rng([16, rows]), rows)
    return np.rint(np.clip(values, 0, points - 1)).astype(np.int64)

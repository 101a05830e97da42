"""Half-widths of quantiles' intervals beside the real 95 % errors: one row for each shape, size and level."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from statistics import median
from typing import Any

import numpy as np
from benchmarks.suites.quantiles.settings import (
    AT_ONCE,
    CONFIDENCE,
    EPSILONS,
    ROWS_OF_A_PERSON,
    SHAPES,
    SIZES,
    TRIALS,
    column,
)
from benchmarks.timing import emit

from sordino.query.aggregates.quantiles import noisy_quantiles

Cell = tuple[float, float, int]
"""Error in steps, half-width over error, and how many intervals held every true quantile."""


def true_ends(cells: Any, counts: Any, level: Fraction) -> tuple[int, int]:
    """The first and the last cell v with weight(< v) <= level * total <= weight(<= v)."""
    upto = np.cumsum(counts)
    wanted = level.numerator * upto[-1]
    fits = ((upto - counts) * level.denominator <= wanted) & (upto * level.denominator >= wanted)
    at = np.flatnonzero(fits)
    return int(cells[at[0]]), int(cells[at[-1]])


def measured(shape: str, rows: int, asked: tuple[Fraction, ...]) -> Iterator[tuple[Fraction, Cell]]:
    """Over all epsilons and persons' rows."""
    cells, counts = np.unique(column(shape, rows), return_counts=True)
    for epsilon, own in product(EPSILONS, ROWS_OF_A_PERSON):
        drawn = [
            noisy_quantiles(
                cells,
                counts,
                positions=SHAPES[shape][0],
                levels=asked,
                rate=epsilon / own,
                confidence=CONFIDENCE,
            )
            for _ in range(TRIALS)
        ]
        for nth, level in enumerate(asked):
            first, end = true_ends(cells, counts, level)
            value, low, high = (
                np.array([getattr(one[nth], name) for one in drawn])
                for name in ("value", "low", "high")
            )
            off = np.maximum(np.maximum(first - value, value - end), 0)
            error = float(np.quantile(off, CONFIDENCE))
            half = float(np.mean(high - low)) / 2
            yield level, (error, half / max(error, 1), int(((low <= first) & (end <= high)).sum()))


def main() -> None:
    for (case, questions), rows, shape in product(AT_ONCE.items(), SIZES, SHAPES):
        found: dict[Fraction, list[Cell]] = {}
        for asked in questions:
            for level, cell in measured(shape, rows, asked):
                found.setdefault(level, []).append(cell)
        for level, cells in found.items():
            ratios = [ratio for error, ratio, _ in cells if error >= 1]
            emit(
                part=case,
                case=shape,
                rows=rows,
                level=float(level),
                cells=len(cells),
                inexact=len(ratios),
                above=sum(ratio > 3 for ratio in ratios),
                middle=median(ratios) if ratios else None,
                widest=max(ratios, default=None),
                held=sum(held for *_, held in cells),
                least=min(held for *_, held in cells),
            )


if __name__ == "__main__":
    main()

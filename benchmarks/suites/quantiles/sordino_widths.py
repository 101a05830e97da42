"""Half-widths of quantiles' intervals beside the real 95 % errors: one row for each shape, size and level."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from statistics import median
from typing import Any

import numpy as np
from benchmarks.suites.quantiles.bounds import least_half_width
from benchmarks.suites.quantiles.settings import (
    AT_ONCE,
    CONFIDENCE,
    EPSILONS,
    MOST,
    ROWS_OF_A_PERSON,
    SHAPES,
    SIZES,
    TRIALS,
    column,
)
from benchmarks.timing import emit

from sordino.query.aggregates.quantiles import noisy_quantiles


@dataclass(frozen=True)
class Cell:
    """One level of one table, epsilon and kind of person."""

    error: float
    """The 95 % quantile of how many steps the estimates are off."""
    at_most: float
    """The largest but one of 100: the true 95 % quantile is above it with a chance of 3.7 %."""
    half: float
    """The mean half-width, in steps."""
    held: int
    """How many intervals held every true quantile."""
    least: float = 0
    """The mean half-width below which no honest private interval is on this table, if the ratio is above 3."""

    @property
    def ratio(self) -> float:
        return self.half / max(self.error, 1)

    @property
    def verdict(self) -> str:
        """Whether the ratio is above 3, and what is known about it then."""
        if self.ratio <= MOST:
            return "within"
        if self.least > MOST * max(self.error, 1):
            return "impossible"
        return "chance" if self.half <= MOST * max(self.at_most, 1) else "left"


def true_ends(cells: Any, counts: Any, level: Fraction) -> tuple[int, int]:
    """The first and the last cell v with weight(< v) <= level * total <= weight(<= v)."""
    upto = np.cumsum(counts)
    wanted = level.numerator * upto[-1]
    fits = ((upto - counts) * level.denominator <= wanted) & (upto * level.denominator >= wanted)
    at = np.flatnonzero(fits)
    return int(cells[at[0]]), int(cells[at[-1]])


def measured(shape: str, rows: int, asked: tuple[Fraction, ...]) -> Iterator[tuple[Fraction, Cell]]:
    """Over all epsilons and persons' rows."""
    values, points = column(shape, rows), SHAPES[shape][0]
    cells, counts = np.unique(values, return_counts=True)
    weights = np.bincount(values, minlength=points)
    for epsilon, own in product(EPSILONS, ROWS_OF_A_PERSON):
        drawn = [
            noisy_quantiles(
                cells,
                counts,
                positions=points,
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
            off = np.sort(np.maximum(np.maximum(first - value, value - end), 0))
            cell = Cell(
                error=float(np.quantile(off, CONFIDENCE)),
                at_most=float(off[-2]),
                half=float(np.mean(high - low)) / 2,
                held=int(((low <= first) & (end <= high)).sum()),
            )
            if cell.ratio > MOST:
                least = least_half_width(weights, level, epsilon, own, CONFIDENCE)
                cell = replace(cell, least=least)
            yield level, cell


def summary(cells: Sequence[Cell]) -> dict[str, object]:
    """What a row says of the cells of one shape, size and level."""
    inexact = [cell for cell in cells if cell.error >= 1]
    verdicts = [cell.verdict for cell in inexact]
    ratios = [cell.ratio for cell in inexact]
    return {
        "cells": len(cells),
        "inexact": len(inexact),
        "above": len(inexact) - verdicts.count("within"),
        **{name: verdicts.count(name) for name in ("impossible", "chance", "left")},
        "grain": sum(cell.verdict == "left" and cell.error <= 3 for cell in inexact),
        "middle": median(ratios) if ratios else None,
        "widest": max(ratios, default=None),
        "held": sum(cell.held for cell in cells),
        "least": min(cell.held for cell in cells),
    }


def main() -> None:
    for (case, questions), rows, shape in product(AT_ONCE.items(), SIZES, SHAPES):
        found: dict[Fraction, list[Cell]] = {}
        for asked in questions:
            for level, cell in measured(shape, rows, asked):
                found.setdefault(level, []).append(cell)
        for level, cells in found.items():
            emit(part=case, case=shape, rows=rows, level=float(level), **summary(cells))


if __name__ == "__main__":
    main()

"""Drawn intervals: the exact law, what one unit of weight costs, and candidates that make no sense."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chi2

from sordino.errors import InvalidInput
from sordino.mechanisms.interval_draw import FINENESS, IntervalDraw, draw_interval, outside

PLACES = np.arange(4)
PAIRS = [(low, high) for low in range(4) for high in range(low, 4)]


def told(rate: Fraction, penalties: list[int] | None = None) -> IntervalDraw:
    lows, highs = (np.array(ends, np.int64) for ends in zip(*PAIRS, strict=True))
    return IntervalDraw(
        lows,
        highs,
        np.array(penalties or [FINENESS * (high - low) for low, high in PAIRS], object),
        rate,
    )


def lost(weights: tuple[int, ...]) -> list[int]:
    """The naive weight outside of each candidate."""
    return [
        sum(w for place, w in enumerate(weights) if not low <= place <= high) for low, high in PAIRS
    ]


def law(weights: tuple[int, ...], draw: IntervalDraw) -> list[float]:
    sizes = [
        math.exp(-draw.rate * (o + h / FINENESS))
        for o, h in zip(lost(weights), draw.penalties, strict=True)
    ]
    return [size / sum(sizes) for size in sizes]


def misfit(found: Counter[int], expected: list[float]) -> float:
    total = found.total()
    return float(
        chi2.sf(
            sum((found[i] - total * p) ** 2 / (total * p) for i, p in enumerate(expected)),
            len(expected) - 1,
        )
    )


def test_the_law_of_the_draw() -> None:
    """The exact law is accepted; those of a rate that is 15 % off, and of no penalties, are not."""
    weights, draw = (1, 7, 4, 2), told(Fraction(1, 3))
    cells = np.array(weights, np.int64)
    found = Counter(draw_interval(draw, PLACES, cells) for _ in range(20_000))
    assert misfit(found, law(weights, draw)) > 1e-4
    assert misfit(found, law(weights, told(Fraction(23, 60)))) < 1e-4
    assert misfit(found, law(weights, told(Fraction(1, 3), [0] * len(PAIRS)))) < 1e-4


def test_the_weight_outside_is_that_of_a_plain_loop() -> None:
    for weights in itertools.product(range(3), repeat=4):
        assert outside(told(Fraction(1)), PLACES, np.array(weights, np.int64)).tolist() == lost(
            weights
        )
    assert outside(told(Fraction(1)), PLACES[:0], PLACES[:0]).tolist() == [0] * len(PAIRS)


def test_moved_weight_costs_the_rate_and_no_more() -> None:
    """For all small weights and neighbours the log-probabilities move within an interval of length rate * moved weight.

    So an added person of weight w costs rate * w once, whichever end it lies beyond, and the bound is reached.
    """
    draw, worst = told(Fraction(1, 2)), 0.0
    for w, v in itertools.product(itertools.product(range(3), repeat=4), repeat=2):
        apart = sum(abs(a - b) for a, b in zip(w, v, strict=True))
        if not apart:
            continue
        shifts = [math.log(p / q) for p, q in zip(law(w, draw), law(v, draw), strict=True)]
        assert max(shifts) - min(shifts) <= float(draw.whole_rate) * apart + 1e-12
        worst = max(worst, (max(shifts) - min(shifts)) / (float(draw.whole_rate) * apart))
    assert worst == pytest.approx(1)


def test_penalties_of_any_size_and_sign() -> None:
    draw = told(Fraction(1, 10**30), [-(10**50), *[10**50] * (len(PAIRS) - 1)])
    assert draw_interval(draw, PLACES, np.array([0, 0, 0, 2**56], np.int64)) == 0


@pytest.mark.parametrize(
    ("lows", "highs", "penalties", "rate"),
    [
        ([0], [1, 2], [0], 1),
        ([2], [1], [0], 1),
        ([], [], [], 1),
        ([0], [1], [0], 0),
        ([0], [1], [0], -1),
    ],
)
def test_candidates_that_make_no_sense(
    lows: list[int], highs: list[int], penalties: list[int], rate: int
) -> None:
    with pytest.raises(InvalidInput):
        IntervalDraw(
            np.array(lows, np.int64),
            np.array(highs, np.int64),
            np.array(penalties, object),
            Fraction(rate),
        )

"""Poisson sampling by exact coins: each unit is in a batch independently, with exactly the rate that is accounted for.

Lemma. `sampled(rate, count)` is a set in which every one of `count` units is independently with probability `rate`, a
rational number: `bernoulli` compares the first bits of a uniform with those of the rate, and more bits where they are equal.
"""

from __future__ import annotations

from fractions import Fraction
from functools import partial

import numpy as np
import numpy.typing as npt

from sordino.mechanisms.bits import CHUNK, Bits
from sordino.mechanisms.discrete import bernoulli
from sordino.mechanisms.observer import drawn

__all__ = ["Places", "PoissonSample", "sampled"]

Places = npt.NDArray[np.int64]


class PoissonSample:
    """What an observer sees as the mechanism of a draw: its rate."""

    def __init__(self, rate: Fraction) -> None:
        self.rate = rate


def sampled(rate: Fraction, count: int) -> Places:
    """The places of the units that are in a fresh sample, in their order."""
    return drawn(PoissonSample(rate), "sample", count, partial(_drawn, rate, count))


def _drawn(rate: Fraction, count: int, source: Bits) -> Places:
    if rate == 1:
        return np.arange(count)
    parts = [start + np.flatnonzero(bernoulli(rate, min(CHUNK, count - start), source)) for start in range(0, count, CHUNK)]
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)

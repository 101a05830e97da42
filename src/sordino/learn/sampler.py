"""Poisson sampling by exact coins: each unit is in a batch independently, with exactly the rate that is accounted for.

Where noise is correlated over steps, units take turns as well (correlated_noise.md).

Lemma. `sampled(rate, count)` is a set in which every one of `count` units is independently with probability `rate`, a
rational number: `bernoulli` compares the first bits of a uniform with those of the rate, and more bits where they are
equal.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np
import numpy.typing as npt

from sordino.mechanisms.bits import CHUNK, Bits
from sordino.mechanisms.discrete import bernoulli, uniform
from sordino.mechanisms.observer import drawn

__all__ = ["Places", "PoissonSample", "Turns", "sampled"]

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
    parts = [
        start + np.flatnonzero(bernoulli(rate, min(CHUNK, count - start), source))
        for start in range(0, count, CHUNK)
    ]
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)


@dataclass(frozen=True, eq=False)
class Turns:
    """In which of every `bands` steps each unit may take part: drawn once for a run, by a fair die for each unit."""

    bands: int
    of: npt.NDArray[np.int64]

    @staticmethod
    def fresh(bands: int, units: int) -> Turns:
        """New turns, for a new run."""
        return Turns(
            bands, drawn(Turns, "sample", units, lambda source: _dice(bands, units, source))
        )

    def at(self, step: int) -> Places:
        """The places of those whose turn it is in a step; steps are counted from 1."""
        return np.flatnonzero(self.of == (step - 1) % self.bands)


def _dice(sides: int, count: int, source: Bits) -> npt.NDArray[np.int64]:
    parts = [uniform(sides, min(CHUNK, count - start), source) for start in range(0, count, CHUNK)]
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)

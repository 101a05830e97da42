"""Chance that hides nothing: which rows are drawn from a released model, for example.

It goes through the one door to random bits, so that an audit can freeze it like everything else. It is good for
post-processing only: its numbers are floats, evenly spread up to 2^-53.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sordino.mechanisms.bits import CHUNK, Bits
from sordino.mechanisms.observer import drawn

__all__ = ["PublicChance"]


@dataclass(frozen=True)
class PublicChance:
    """Ordinary random numbers for post-processing."""

    def evenly(self, count: int) -> npt.NDArray[np.float64]:
        """Numbers in [0, 1)."""

        def draw(bits: Bits) -> npt.NDArray[np.float64]:
            found = np.empty(count)
            for start in range(0, count, CHUNK):
                part = found[start : start + CHUNK]
                part[:] = bits.words(len(part)).view(np.uint64) >> np.uint64(11)
            return found * 2.0**-53

        return drawn(self, "evenly", count, draw)

    def between(
        self, first: npt.NDArray[np.int64], last: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.int64]:
        """Whole numbers from `first` to `last`, one for each pair."""
        steps = np.floor(self.evenly(len(first)) * (last - first + 1.0)).astype(np.int64)
        found: npt.NDArray[np.int64] = np.minimum(first + steps, last)
        return found

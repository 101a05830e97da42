"""Chance that hides nothing: which rows are drawn from a released model, for example.

It goes through the one door to random bits, so that an audit can freeze it like everything else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sordino.mechanisms.observer import drawn

if TYPE_CHECKING:
    import numpy as np

__all__ = ["PublicChance"]


@dataclass(frozen=True)
class PublicChance:
    """A generator of ordinary random numbers for post-processing, begun with bits of the operating system."""

    def generator(self) -> np.random.Generator:
        """A new generator."""
        import numpy as np

        seed: int = drawn(self, "seed", 0, lambda bits: bits.word() << 64 | bits.word())
        return np.random.default_rng(seed)

"""Replayable bits for tests: the same tape gives the same draws. Not part of the package."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

import numpy as np
import numpy.typing as npt

from sordino.mechanisms import bits


class Tape:
    """A seeded stream; whole chunks and single words come from two streams,
    so that refining one draw moves no other.
    """

    def __init__(self, seed: int) -> None:
        self._chunks = np.random.default_rng([seed, 0])
        self._words = np.random.default_rng([seed, 1])

    def words(self, count: int) -> npt.NDArray[np.int64]:
        assert count <= bits.CHUNK
        return self._chunks.integers(-(2**63), 2**63 - 1, count, dtype=np.int64, endpoint=True)

    def word(self) -> int:
        return int(self._words.integers(0, 2**64 - 1, dtype=np.uint64, endpoint=True))


class Script:
    """Exactly these words, then one word for ever."""

    def __init__(self, words: list[int], then: int = 0) -> None:
        self._words = list(words)
        self._then = then
        self.asked = 0

    def word(self) -> int:
        self.asked += 1
        return self._words.pop(0) % 2**64 if self._words else self._then

    def words(self, count: int) -> npt.NDArray[np.int64]:
        return np.array([self.word() for _ in range(count)], np.uint64).view(np.int64)


@contextmanager
def replay(source: bits.Bits) -> Iterator[None]:
    """Let every mechanism draw from `source` inside the block."""
    with mock.patch.object(bits, "source", return_value=source):
        yield

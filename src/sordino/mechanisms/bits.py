"""Random bits: AES-256 in counter mode, keyed by the operating system.

Privacy: the samplers' theorems assume independent fair bits. Replacing them by this stream costs at most the advantage
of telling AES-256 from a random permutation, plus 2^-76 for each key's gigabyte (birthday bound on 2^26 blocks of 128
bits). There is no seed. Each thread has a stream of its own; a forked child starts with a new key.
"""

from __future__ import annotations

import os
import threading
from typing import Protocol

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

__all__ = ["CHUNK", "Bits", "SecureBits", "random_order", "source"]

Words = npt.NDArray[np.int64]

CHUNK = 16384
"""The most words that one call returns: 128 KiB, so that what is computed from them stays in the cache."""

_FEW = 64
_BLOCK = 16
_KEY_BYTES = 1 << 30


class Bits(Protocol):
    """What a sampler needs: fair bits in 64-bit words. The replayable tape of the tests is the other implementation."""

    def words(self, count: int) -> Words:
        """The next `count` <= CHUNK words; valid until the next call of `words`."""

    def word(self) -> int:
        """The next word as an integer in [0, 2^64)."""


class SecureBits:
    """The stream of one thread in one process."""

    def __init__(self) -> None:
        self._zeros = memoryview(bytes(8 * CHUNK))
        # the cipher wants a block to spare behind its output
        self._room = bytearray(8 * CHUNK + _BLOCK)
        self._chunk = np.frombuffer(self._room, np.int64, CHUNK)
        self._rekey()

    def _rekey(self) -> None:
        self._process = os.getpid()
        self._left = _KEY_BYTES
        self._waiting: list[int] = []
        self._stream = Cipher(algorithms.AES(os.urandom(32)), modes.CTR(os.urandom(16))).encryptor()

    def words(self, count: int) -> Words:
        """The next `count` <= CHUNK words; valid until the next call of `words`."""
        self._fill(self._room, count)
        return self._chunk[:count]

    def word(self) -> int:
        """The next word as an integer in [0, 2^64)."""
        if not self._waiting or self._process != os.getpid():
            room = bytearray(8 * _FEW + _BLOCK)
            self._fill(room, _FEW)
            self._waiting = np.frombuffer(room, np.uint64, _FEW).tolist()
        return self._waiting.pop()

    def _fill(self, room: bytearray, count: int) -> None:
        size = 8 * count
        # the latter: a fork that bypassed Python's hooks
        if self._left < size or self._process != os.getpid():
            self._rekey()
        self._left -= size
        self._stream.update_into(self._zeros[:size], room)


_threads = threading.local()


def source() -> Bits:
    """This thread's stream."""
    stream: SecureBits | None = getattr(_threads, "stream", None)
    if stream is None:
        stream = _threads.stream = SecureBits()
    return stream


def random_order(count: int) -> npt.NDArray[np.intp]:
    """The places of this many rows, in random order."""
    parts = [source().words(min(CHUNK, count - start)).copy() for start in range(0, count, CHUNK)]
    return np.argsort(np.concatenate(parts))


def _forget() -> None:
    global _threads
    _threads = threading.local()


if hasattr(os, "register_at_fork"):  # not on Windows, where nothing is forked
    os.register_at_fork(after_in_child=_forget)

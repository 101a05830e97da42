"""Counting hashed reports for many prefixes at once: hashes are linear in a prefix's bits, so they add up by XOR.

64 reports are one word of each bit of the hash; a prefix costs a few operations on words. The law is that of
LocalHashing.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sordino.local.fields import product
from sordino.local.hashing import LocalHashing
from sordino.local.protocol import Column, Counts

__all__ = ["LONGEST", "Prefixes", "extended", "folded", "supports_of_prefixes"]

Prefixes = npt.NDArray[np.uint64]
Words = npt.NDArray[np.uint64]

LONGEST = 48
"""Longer prefixes are folded to so many bits, by a fixed linear map, before they are hashed."""

_TABLE_BYTES = 1 << 25
_FAR = [(0x9E3779B97F4A7C15 * (2 * i + 1) % 2**64) >> 16 for i in range(64 - LONGEST)]


def folded(prefixes: Prefixes) -> npt.NDArray[np.int64]:
    """Prefixes as categories: bits from the 49th on are each replaced by a fixed pattern of the lower 48."""
    found = prefixes & np.uint64(2**LONGEST - 1)
    for i, pattern in enumerate(_FAR):
        bit = prefixes >> np.uint64(LONGEST + i) & np.uint64(1)
        found ^= bit * np.uint64(pattern)
    return found.astype(np.int64)


def extended(parents: Prefixes, step: int) -> Prefixes:
    """Every parent followed by every pattern of `step` bits."""
    return (parents[:, None] << np.uint64(step) | np.arange(2**step, dtype=np.uint64)).reshape(-1)


def supports_of_prefixes(oracle: LocalHashing, column: Column, length: int, parents: Prefixes, step: int) -> Counts:
    """How many reports speak for each extension of the parents by `step` bits, in the order of `extended`."""
    counts = np.zeros((len(parents), 2**step), np.int64)
    digit = oracle.values.bit_length() - 1
    words = max(1, _TABLE_BYTES // (8 * digit << step))
    for start in range(0, len(column), 64 * words):
        part = column[start : start + 64 * words]
        bits, value = _planes(oracle, part, length)
        suffixes = _combined(bits[:step], value)
        for i, parent in enumerate(parents.tolist()):
            own = value.copy()
            for j in range(length - step):
                if parent >> j & 1:
                    own ^= bits[step + j]
            wrong = suffixes[0] ^ own[0]
            for plane in range(1, digit):
                wrong |= suffixes[plane] ^ own[plane]
            counts[i] += len(part) - np.bitwise_count(wrong).sum(1, dtype=np.int64)
    return counts.reshape(-1)


def _planes(oracle: LocalHashing, column: Column, length: int) -> tuple[list[Words], Words]:
    """For each bit of a prefix the hash of it alone, and the reported value: a row of words for each bit of a hash."""
    maps, value = np.divmod(column, oracle.values)
    digit = oracle.values.bit_length() - 1
    everything = np.arange(oracle.values)
    single = []
    for i in range(min(length, LONGEST)):
        here = (maps >> (i // digit * digit)) & (oracle.values - 1)
        single.append(_packed(product(everything, np.int64(1 << i % digit), oracle.values)[here], digit))
    for pattern in _FAR[: max(0, length - LONGEST)]:
        single.append(np.bitwise_xor.reduce([single[i] for i in range(LONGEST) if pattern >> i & 1]))
    return single, _packed(value, digit)


def _packed(hashes: Column, digit: int) -> Words:
    """Each bit of many hashes, 64 of them a word."""
    rows = np.zeros((digit, 8 * -(-len(hashes) // 64)), np.uint8)
    for j in range(digit):
        ones = np.packbits((hashes >> j & 1).astype(bool))
        rows[j, : len(ones)] = ones
    return rows.view(np.uint64)


def _combined(bits: list[Words], like: Words) -> Words:
    """The hashes of all patterns of these bits, lowest bit first: planes, patterns, words."""
    table = np.zeros((len(like), 2 ** len(bits), like.shape[1]), np.uint64)
    for i, bit in enumerate(bits):
        table[:, 2**i : 2 ** (i + 1)] = table[:, : 2**i] ^ bit[:, None]
    return table

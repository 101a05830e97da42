"""Exact draws from finite laws: events of a rational probability, and uniform integers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt

from sordino.mechanisms.bits import Bits

__all__ = ["bernoulli", "uniform", "uniform_one"]

_WORD = 2**63
_MASK = np.int64(_WORD - 1)


def bernoulli(probability: Fraction, count: int, bits: Bits) -> npt.NDArray[np.bool_]:
    """`count` independent events of exactly this probability in [0, 1].

    An event is {U < probability} for a uniform U. Its first 63 bits decide, unless they are those of the probability;
    then the rest of U is compared with the rest of the probability.
    """
    words = bits.words(count) & _MASK
    first, rest = divmod(probability * _WORD, 1)
    if first == _WORD:
        return np.ones(count, bool)
    events = words < first
    for i in np.flatnonzero(words == first):
        events[i] = _is_below(rest, bits)
    return events


def _is_below(probability: Fraction, bits: Bits) -> bool:
    while 0 < probability < 1:
        probability = probability * 2**64 - bits.word()
    return probability >= 1


def uniform(below: int, count: int, bits: Bits) -> npt.NDArray[np.int64]:
    """`count` independent uniform integers in [0, below), at most 2^63: words past the last whole round are redrawn."""
    words = bits.words(count) & _MASK
    last = np.int64(_WORD - _WORD % below - 1)
    while (late := np.flatnonzero(words > last)).size:
        words[late] = bits.words(late.size) & _MASK
    return words % below


def uniform_one(below: int, bits: Bits) -> int:
    """One of them, without the work of an array."""
    last = _WORD - _WORD % below - 1
    while (word := bits.word() & (_WORD - 1)) > last:
        pass
    return word % below

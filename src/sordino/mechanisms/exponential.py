"""The exponential mechanism: one candidate, with probability proportional to size * exp(-rate * distance), exactly.

Theorem. If between neighbours the products rate * distance change by amounts that differ among the candidates by at
most epsilon, one draw is epsilon-differentially private. Proof, and why the draw is exact, in exponential.md.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from flint import arb

from sordino.errors import InvalidInput
from sordino.mechanisms.bits import CHUNK, Bits
from sordino.mechanisms.integers import INT64
from sordino.privacy.ball import ball, certified, exact_upper, normal_tail_inverse, working
from sordino.privacy.exact import show

__all__ = ["DOUBT", "Wheel", "bounded_range", "draw", "happen", "happens", "is_below"]

Whole: TypeAlias = Sequence[int] | npt.NDArray[Any]

DOUBT = 2.0**-48
"""Lemma 3: how far the float exp(-x) can be from the true one, and the float uniform from its interval, together."""

_BLOCK = 1024
_ERROR = 2.0**-53
_FAST_RATES = (Fraction(1, 2**900), Fraction(2**900))
_MASK = np.int64(INT64 - 1)
_NEVER = 800


def draw(
    sizes: Whole, distances: Whole, rate: Fraction, bits: Bits, *, always_refine: bool = False
) -> int:
    """The place of one candidate, drawn with probability proportional to size * exp(-rate * distance).

    Sizes are whole and at least 1, below 2^63; distances are whole, at least 0 and of any size; the rate is at least
    0. `always_refine` sends the draw through the arbitrary-precision path.

    Privacy: epsilon-differentially private for fixed sizes, if rate * (distance on one - distance on the other
    neighbour) stays, over all candidates, within an interval of length epsilon.
    """
    return Wheel(sizes, distances, rate).draw(bits, always_refine=always_refine)


class Wheel:
    """Candidates of which one is drawn, any number of times: sizes, distances and rate as for `draw`."""

    def __init__(self, sizes: Whole, distances: Whole, rate: Fraction) -> None:
        counts, gaps = _integers("sizes", sizes, 1), _integers("distances", distances, 0)
        if counts.dtype == object or len(counts) != len(gaps) or rate < 0:
            value = f"{len(counts)} sizes up to {show(int(counts.max()))}, {len(gaps)} distances, rate={show(rate)}"
            rule = "there must be as many sizes as distances, sizes below 2^63, and a rate that is at least 0"
            raise InvalidInput(value, rule, "Give each candidate one size and one distance.")
        self._sizes, self._gaps, self._rate = counts, gaps - gaps.min(), rate
        self._fast = rate == 0 or _FAST_RATES[0] <= rate <= _FAST_RATES[1]
        self._floats = _weights(self._sizes, self._gaps, float(rate)) if self._fast else None

    def draw(self, bits: Bits, *, always_refine: bool = False) -> int:
        """The place of one of them."""
        if len(self._sizes) == 1:
            return 0
        word = bits.word()
        place = None if always_refine or self._floats is None else _place(word, *self._floats)
        return (
            _refine(word, self._sizes.tolist(), self._gaps.tolist(), self._rate, bits)
            if place is None
            else place
        )


def _integers(name: str, values: Whole, least: int) -> npt.NDArray[Any]:
    """As int64, or as Python integers where one does not fit."""
    array = np.asarray(values)
    # lists that hold integers on both sides of 2^63 arrive as floats
    if array.size and array.dtype.kind == "f":
        array = np.array(values, object)
    if array.ndim != 1 or not array.size or (array.dtype.kind not in "iuO"):
        raise InvalidInput(
            name, f"{name} must be a flat list of whole numbers, and not empty", "Pass integers."
        )
    if array.dtype == object and not all(isinstance(x, int) for x in array):
        raise InvalidInput(name, f"{name} must be whole numbers", "Pass integers.")
    if array.min() < least:
        raise InvalidInput(
            name, f"{name} must be at least {least}", "Leave out candidates that cannot be chosen."
        )
    if array.dtype != np.int64:
        array = array.astype(np.int64 if int(array.max()) < INT64 else object)
    return array


def _decide(
    word: int, sizes: npt.NDArray[np.int64], gaps: npt.NDArray[Any], rate: float
) -> int | None:
    """The draw that starts with `word` if floats can decide it."""
    return _place(word, *_weights(sizes, gaps, rate))


_Floats: TypeAlias = npt.NDArray[np.float64]


def _weights(
    sizes: npt.NDArray[np.int64], gaps: npt.NDArray[Any], rate: float
) -> tuple[_Floats, _Floats]:
    """The weights in floats, and the ends of blocks of them."""
    if gaps.dtype == object:
        # still never, and the product stays a float
        gaps = np.minimum(gaps, 2**100 if rate >= 1 else 2**1000)
    weights = gaps.astype(np.float64)
    weights *= -rate
    np.exp(weights, out=weights)
    weights *= sizes
    return weights, np.cumsum(np.add.reduceat(weights, np.arange(0, len(weights), _BLOCK)))


def _place(word: int, weights: _Floats, ends: _Floats) -> int | None:
    """Where the draw that starts with `word` ends, if floats can decide it."""
    total = ends[-1]
    point = total * (word * 2.0**-64)
    block = int(ends.searchsorted(point, side="right"))
    start = ends[block - 1] if block else 0.0
    inside = start + weights[block * _BLOCK : (block + 1) * _BLOCK].cumsum()
    place = int(inside.searchsorted(point, side="right"))
    if place == len(inside):
        return None
    below = inside[place - 1] if place else start
    doubt = total * ((8192 + 3 * len(ends)) * _ERROR)
    if point - below <= doubt or inside[place] - point <= doubt:
        return None
    return block * _BLOCK + place


def _refine(word: int, sizes: list[int], gaps: list[int], rate: Fraction, bits: Bits) -> int:
    """The draw that starts with `word`, in ball arithmetic with as many further bits as it takes."""
    numerator, width = word, 64
    while True:
        with working(width + 64 + len(sizes).bit_length()):
            slope, running, ends = ball(-rate), arb(0), []
            for size, gap in zip(sizes, gaps, strict=True):
                running += size * (slope * gap).exp()
                ends.append(running)
            point = _uniform(numerator, width) * running
            place = bisect_left(ends, True, key=lambda end: not bool(end < point))
            if place < len(ends) and point < ends[place]:
                return place
        numerator, width = numerator << 64 | bits.word(), width + 64


def _uniform(numerator: int, width: int) -> arb:
    """All numbers whose first `width` binary places are these."""
    half = arb(2) ** (-1 - width)
    return arb((2 * numerator + 1) * half, half)


def is_below(numerator: int, width: int, probability: Callable[[], arb], bits: Bits) -> bool:
    """Whether a uniform that starts with these `width` bits is below a probability given by its ball."""
    while True:
        with working(width + 64):
            uniform, bound = _uniform(numerator, width), probability()
            if uniform < bound:
                return True
            if uniform > bound:
                return False
        numerator, width = numerator << 64 | bits.word(), width + 64


def happens(exponent: Fraction, bits: Bits) -> bool:
    """An event of probability exp(-exponent), for an exponent that is at least 0."""
    if exponent == 0:
        return True
    word = bits.word()
    probability = math.exp(-float(exponent)) if exponent < 700 else 0.0
    distance = word * 2.0**-64 - probability
    if abs(distance) > DOUBT:
        return distance < 0
    return is_below(word, 64, lambda: ball(-exponent).exp(), bits)


def happen(
    gaps: npt.NDArray[Any], rate: Fraction, bits: Bits, *, always_refine: bool = False
) -> npt.NDArray[np.bool_]:
    """Independent events of probability exp(-rate * gap), one for each whole gap >= 0 (noisy_max.md, Theorem 1)."""
    events = np.ones(len(gaps), bool)
    fast = not always_refine and _FAST_RATES[0] <= rate <= _FAST_RATES[1]
    cap = math.ceil(_NEVER / rate) if fast else 0
    for start in range(0, len(gaps), CHUNK):
        block = gaps[start : start + CHUNK]
        words = bits.words(len(block)) & _MASK
        if fast:
            capped = np.minimum(block, cap) if block.dtype == object or cap < INT64 else block
            margin = np.exp(capped.astype(np.float64) * -float(rate))
            margin -= words * 2.0**-63
            events[start : start + CHUNK] = margin > 0
            doubtful = np.abs(margin, out=margin) <= DOUBT
        else:
            doubtful = np.ones(len(block), bool)
        certain = block == 0
        events[start : start + CHUNK] |= certain
        for i in np.flatnonzero(doubtful & ~certain).tolist():
            exponent = -rate * int(block[i])
            events[start + i] = is_below(int(words[i]), 63, lambda e=exponent: ball(e).exp(), bits)  # type: ignore[misc]
    return events


def bounded_range(epsilon: Fraction) -> tuple[Fraction, Fraction]:
    """(mu^2, rho) of draws that are epsilon-private for the reason of Theorem 1; both are below those of pure epsilon.

    Privacy: Theorem 2 of exponential.md, also for draws that follow each other and whose epsilons sum to this one.
    """
    if epsilon <= 0:
        return Fraction(0), Fraction(0)

    def mu() -> arb:
        if epsilon < 2:  # without cancellation near zero
            return 2 * arb(2).sqrt() * (ball(epsilon) / 4).tanh().erfinv()
        return 2 * normal_tail_inverse(1 / (1 + (ball(epsilon) / 2).exp()))

    pure_rho = exact_upper(certified(lambda: ball(epsilon) * (ball(epsilon) / 2).tanh()))
    return exact_upper(certified(lambda: mu() ** 2)), min(epsilon**2 / 8, pure_rho)

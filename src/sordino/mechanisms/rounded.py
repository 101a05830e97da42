"""Exact draws of round(scale * Z), or round(scale * Z + part), for Z a standard Laplace or Normal and any rational
scale.

The theorem and its proof are in rounded.md, which names `DOUBT`, `FLOOR`, `_decide`, `_decide_one` and `_refine`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from flint import arb

from sordino.mechanisms.bits import CHUNK, Bits
from sordino.mechanisms.integers import fits_int64, narrow
from sordino.mechanisms.inverse_normal import half_normal, half_normal_one
from sordino.privacy.ball import ball, normal_tail, normal_tail_inverse, working

__all__ = ["DOUBT", "FLOOR", "LAPLACE", "NORMAL", "Parts", "RoundedNoise", "Shape", "coarseness"]

Floats = npt.NDArray[np.float64]
Words = npt.NDArray[np.int64]

DOUBT = 2.0**-42
"""Lemma 2: how far the float magnitude can be from the true one, in units of the scale."""

FLOOR = 2.0**-18
"""Uniforms below this are not decided in floats: their own width is too large there."""

_SLACK = 2.0**-50
_FAST_SCALE = 2**38
_FINE_BITS = 30
_FEW = 8


def coarseness(scale: Fraction | float) -> int:
    """The least j with scale <= 2^(30 + j): noise of this many steps is rounded to multiples of 2^j of them.

    At 2^30 nearly all draws are decided in floats, and half of 2^j steps are less than a thousand-millionth of the
    scale.
    """
    return max(0, (math.ceil(scale) - 1).bit_length() - _FINE_BITS)


@dataclass(frozen=True, eq=False)
class Parts:
    """Numbers from 0 on and below 1, `numerators` over 2^`bits`:
    what is to be added to the noise before it is rounded.
    """

    numerators: npt.NDArray[Any]
    bits: int

    @cached_property
    def floats(self) -> Floats:
        """The same in floats, off by at most 2^-53."""
        beyond = max(0, self.bits - 60)
        return np.asarray(self.numerators >> beyond, np.float64) * 2.0 ** (beyond - self.bits)

    def exact(self, place: int) -> Fraction:
        """One of them."""
        return Fraction(int(self.numerators[place]), 2**self.bits)


_NOTHING = Fraction(0)


@dataclass(frozen=True)
class Shape:
    """A symmetric law, by the map from v = -log(uniform) to the magnitude |Z|, and its tail P[Z > z]."""

    name: str
    magnitude: Callable[[Floats, Floats, Floats], Floats]
    magnitude_one: Callable[[float], float]
    magnitude_ball: Callable[[arb], arb]
    """From the uniform itself, in (0, 1]."""
    tail: Callable[[arb], arb]
    """For z >= 0."""


LAPLACE = Shape(
    "laplace", lambda v, _top, _bottom: v, lambda v: v, lambda u: -u.log(), lambda z: (-z).exp() / 2
)
NORMAL = Shape(
    "normal", half_normal, half_normal_one, lambda u: normal_tail_inverse(u / 2), normal_tail
)


@dataclass(frozen=True)
class RoundedNoise:
    """The law of round(scale * Z), and exact draws of it."""

    shape: Shape
    scale: Fraction

    @cached_property
    def _float_scale(self) -> float:
        return float(self.scale) if self._fast else math.inf

    @cached_property
    def _fast(self) -> bool:
        return self.scale <= _FAST_SCALE

    @cached_property
    def _sure(self) -> float:
        """A float magnitude this close to an integer certainly rounds to it."""
        return 0.5 - self._float_scale * DOUBT - _SLACK

    def draw_one(self, bits: Bits, part: Fraction = _NOTHING) -> int:
        """One integer, round(scale * Z + part)."""
        word = bits.word()
        word -= (word >> 63) << 64
        value = self._decide_one(word, float(part)) if self._fast else None
        return self._refine(word, bits, part) if value is None else value

    def draw(
        self, count: int, bits: Bits, parts: Parts | None = None, *, always_refine: bool = False
    ) -> npt.NDArray[Any]:
        """`count` independent integers, as int64, or as Python integers where int64 cannot hold one.

        Each is round(scale * Z), or round(scale * Z + part) with the `parts`. `always_refine` sends every element
        through the arbitrary-precision path.
        """
        if count <= _FEW and not always_refine:
            exact = [_NOTHING if parts is None else parts.exact(i) for i in range(count)]
            return narrow([self.draw_one(bits, part) for part in exact])
        fast = self._fast and not always_refine
        out = np.empty(count, np.int64 if fast else object)
        room = np.empty((3, min(CHUNK, count)) if fast else (3, 0))
        large: dict[int, int] = {}
        for start in range(0, count, CHUNK):
            words = bits.words(min(CHUNK, count - start))
            block = out[start : start + len(words)]
            own = None if parts is None else parts.floats[start : start + len(words)]
            doubtful = (
                self._decide(words, block, room[:, : len(words)], own)
                if fast
                else np.arange(len(words))
            )
            for i in doubtful.tolist():
                value = self._refine(
                    int(words[i]), bits, _NOTHING if parts is None else parts.exact(start + i)
                )
                if fast and not fits_int64(value):
                    large[start + i] = value
                else:
                    block[i] = value
        if large:
            out = out.astype(object)
            out[list(large)] = list(large.values())
        return out

    def _decide(
        self, words: Words, out: Words, room: Floats, parts: Floats | None = None
    ) -> npt.NDArray[np.intp]:
        """Write the draws that floats can decide, and return the places of those that they cannot."""
        v, y, other = room
        np.copyto(v, words)
        np.abs(v, out=v)
        v *= 2.0**-63
        below = v < FLOOR if v.min() < FLOOR else None
        if below is not None:
            np.maximum(v, FLOOR, out=v)
        np.log(v, out=v)
        np.negative(v, out=v)
        y = self.shape.magnitude(v, y, other)
        y *= self._float_scale
        if parts is not None:  # else the sign waits, as rounding has none
            np.copysign(y, words, out=y)
            y += parts
        nearest = np.rint(y, out=other)
        y -= nearest
        np.abs(y, out=y)
        doubtful = y > self._sure
        if below is not None:
            doubtful |= below
        np.copyto(out, nearest, casting="unsafe")
        if parts is None:
            sign = words >> 63
            out ^= sign
            out -= sign
        return np.flatnonzero(doubtful)

    def _decide_one(self, word: int, part: float = 0.0) -> int | None:
        """The draw that starts with `word` if floats can decide it."""
        x = abs(word) * 2.0**-63
        if x < FLOOR:
            return None
        y = math.copysign(self.shape.magnitude_one(-math.log(x)) * self._float_scale, word) + part
        nearest = round(y)
        return None if abs(y - nearest) > self._sure else nearest

    def _refine(self, word: int, bits: Bits, part: Fraction = _NOTHING) -> int:
        """The draw that starts with `word`, in ball arithmetic with as many further bits as it takes."""
        sign, numerator = (-1, ~word) if word < 0 else (1, word)
        width = 63
        size = self.scale.numerator.bit_length() - self.scale.denominator.bit_length()
        while True:
            if numerator and width > size:
                with working(width + 64):
                    half = arb(2) ** (-1 - width)
                    uniform = arb((2 * numerator + 1) * half, half)
                    magnitude = ball(self.scale) * self.shape.magnitude_ball(uniform)
                    integer = (magnitude + ball(Fraction(1, 2) + sign * part)).floor().unique_fmpz()
                if integer is not None:
                    return sign * int(integer)
            numerator = numerator << 64 | bits.word()
            width += 64

    def pmf_ball(self, k: int | Fraction) -> arb:
        """P[draw = k] at the working precision; with a part, P[draw = n] is that of k = n - part."""
        k = k if k >= 0 else -k
        if k == 0:
            return 1 - 2 * self.tail_ball(0)
        return self.tail_ball(k - 1) - self.tail_ball(k)

    def tail_ball(self, k: int | Fraction) -> arb:
        """P[draw > k] at the working precision."""
        edge = ball((k + Fraction(1, 2)) / self.scale)
        return self.shape.tail(edge) if 2 * k + 1 >= 0 else 1 - self.shape.tail(-edge)

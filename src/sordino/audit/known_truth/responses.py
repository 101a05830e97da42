"""One person's answer, randomized before it is sent: randomized response, Bloom filters, and laws made of coins."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from sordino.audit.computed.law import Coin
from sordino.audit.known_truth import noise
from sordino.mechanisms.randomized_response import RandomizedResponse

__all__ = ["SET_BITS", "bit_epsilon"]

SET_BITS = {"yes": (1, 6, 11, 16), "no": (3, 8, 11, 18)}
"""The bits of a filter of twenty that each answer sets with four hashes. The two share one, so six bits differ."""

_HALF = Fraction(1, 2)
Flags = npt.NDArray[np.int8]


def ours(data: Any, size: int, *, categories: int = 2) -> Any:
    """Our randomized response, at epsilon 1."""
    return _calibrated(categories).release(np.full(size, data))


@cache
def _calibrated(categories: int) -> RandomizedResponse:
    return RandomizedResponse.calibrated(epsilon=1, categories=categories)


def kept(
    data: Any, size: int, *, keep: float, kinds: int, times: int | None = None
) -> npt.NDArray[np.int64]:
    """The true answer with probability `keep`, else another one; several times if so."""
    shape = (size,) if times is None else (size, times)
    other = np.ceil(noise.uniform(shape) * (kinds - 1)).astype(np.int64)
    return np.where(noise.uniform(shape) <= keep, int(data), (int(data) + other) % kinds)


def bloom_filter(data: str, size: int, *, f: float, p: float = 0.0, q: float = 1.0) -> Flags:
    """RAPPOR: bits are redrawn at random with probability f; then each is sent as 1 with probability q or p."""
    bits = np.zeros(20, bool)
    bits[list(SET_BITS[data])] = True
    u = noise.uniform((size, 20))
    permanent = np.where(u < f, u < f / 2, bits)
    if (p, q) == (0.0, 1.0):
        return permanent.astype(np.int8)
    return (noise.uniform((size, 20)) < np.where(permanent, q, p)).astype(np.int8)


def bit_epsilon(f: float, p: float = 0.0, q: float = 1.0) -> float:
    """The loss of one bit of a filter: it is sent as 1 with these probabilities if it is set and if not."""
    set_bit, unset_bit = (q * share + p * (1 - share) for share in (1 - f / 2, f / 2))
    return math.log(set_bit / unset_bit)


def two_coins(answer: bool, coin: Coin) -> bool:
    """The truth on heads; on tails a second coin answers."""
    return answer if coin.event(_HALF) else coin.event(_HALF)


def second_coin_biased(answer: bool, coin: Coin) -> bool:
    """The same with a second coin that is not fair."""
    return answer if coin.event(_HALF) else coin.event(Fraction(3, 4))


def first_coin_shown(answer: bool, coin: Coin) -> tuple[bool, bool]:
    """The answer, and whether it was asked again."""
    first = coin.event(_HALF)
    return (answer if first else coin.event(_HALF)), first


def truncated_geometric(count: int, coin: Coin) -> int:
    """Geometric noise with alpha 2/3 between 0 and 3, from one uniform number below 45 = 5 * 3^2.

    P(at most z) is alpha^(count - z)/(1 + alpha) below the count, and 1 less alpha^(z - count + 1)/(1 + alpha) from it
    on.
    """
    place = coin.below(45)
    for z in range(3):
        low = z < count
        tail = 27 * Fraction(2, 3) ** (count - z if low else z - count + 1)
        if place < (tail if low else 45 - tail):
            return z
    return 3


def uniform_noise(count: int, coin: Coin) -> int:
    """One of 41 whole numbers around the count."""
    return count + coin.below(41) - 20


def binomial_noise(count: int, coin: Coin) -> int:
    """Eight coins, centred."""
    return count + sum(coin.event(_HALF) for _ in range(8)) - 4

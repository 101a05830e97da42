"""Mechanisms that draw from a coin, whose laws can be written out as fractions."""

from __future__ import annotations

import math
from fractions import Fraction

from sordino.audit.computed.law import Coin
from sordino.audit.known_truth.specimen import Specimen

__all__ = ["SPECIMENS"]

_HALF = Fraction(1, 2)


def _two_coins(answer: bool, coin: Coin) -> bool:
    """The truth on heads; on tails a second coin answers."""
    return answer if coin.event(_HALF) else coin.event(_HALF)


def _second_biased(answer: bool, coin: Coin) -> bool:
    return answer if coin.event(_HALF) else coin.event(Fraction(3, 4))


def _both_shown(answer: bool, coin: Coin) -> tuple[bool, bool]:
    """The answer, and whether it was asked again."""
    first = coin.event(_HALF)
    return (answer if first else coin.event(_HALF)), first


def _truncated(count: int, coin: Coin) -> int:
    """Geometric noise with alpha 2/3 between 0 and 3, from one uniform number below 45 = 5 * 3^2.

    P(at most z) is alpha^(count - z)/(1 + alpha) below the count, and 1 less alpha^(z - count + 1)/(1 + alpha) from it on.
    """
    place = coin.below(45)
    for z in range(3):
        low = z < count
        tail = 27 * Fraction(2, 3) ** (count - z if low else z - count + 1)
        if place < (tail if low else 45 - tail):
            return z
    return 3


def _uniform(count: int, coin: Coin) -> int:
    return count + coin.below(41) - 20


def _binomial(count: int, coin: Coin) -> int:
    return count + sum(coin.event(_HALF) for _ in range(8)) - 4


SPECIMENS = (
    Specimen(
        name="two-coins",
        title="The truth on heads, else a second coin",
        broken=False,
        why="The true answer has probability 3/4, the other 1/4.",
        mechanism=_two_coins,
        pair=(True, False),
        method="exact law",
        epsilon=1.1,
        truth=math.log(3),
    ),
    Specimen(
        name="truncated-geometric",
        title="Geometric noise between 0 and n, in whole numbers",
        broken=False,
        why="Its law is made of fractions: neighbours are within 3/2 everywhere, and at the ends too.",
        mechanism=_truncated,
        pair=(0, 1),
        method="exact law",
        epsilon=0.41,
        truth=math.log(1.5),
    ),
    Specimen(
        name="second-coin-biased",
        title="Two coins, the second of which says yes too often",
        broken=True,
        why="A no comes five times as often from those who mean it.",
        mechanism=_second_biased,
        pair=(True, False),
        method="exact law",
        epsilon=1.1,
        truth=math.log(5),
    ),
    Specimen(
        name="first-coin-shown",
        title="Two coins, and which of them answered",
        broken=True,
        why="Who answered truthfully is no secret any more.",
        mechanism=_both_shown,
        pair=(True, False),
        method="exact law",
        epsilon=1.1,
        truth=math.inf,
    ),
    Specimen(
        name="uniform-noise",
        title="Uniform noise",
        broken=True,
        why="The ends of its range can be reached from one value only.",
        mechanism=_uniform,
        pair=(3, 4),
        method="exact law",
        epsilon=1,
        truth=math.inf,
    ),
    Specimen(
        name="binomial-noise-without-delta",
        title="Binomial noise, sold as pure privacy",
        broken=True,
        why="Its ends can be reached from one value only.",
        mechanism=_binomial,
        pair=(3, 4),
        method="exact law",
        epsilon=1,
        truth=math.inf,
    ),
)

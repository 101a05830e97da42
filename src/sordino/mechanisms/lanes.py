"""Exact events in parallel lanes: 64 of one rational probability in each word, at about 8 fair bits an event.

Theorem. Every bit of every word is 1 with exactly the given probability, independently of all others. Proof: lane i is
the event {U_i < probability} for a uniform U_i whose binary digits are drawn first to last; the first digit in which
U_i differs from the probability decides, and where the probability has no more digits, U_i is not below it.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt

from sordino.mechanisms.bits import Bits

__all__ = ["bernoulli_lanes"]

Lanes = npt.NDArray[np.uint64]

_TOGETHER = 8
"""After this many digits most words have no open lane left, and only the others go on."""


def bernoulli_lanes(probability: Fraction, count: int, bits: Bits) -> Lanes:
    """`count` <= CHUNK words of 64 independent events of exactly this probability in [0, 1]."""
    if probability == 1:
        return np.full(count, ~np.uint64(0))
    events = np.zeros(count, np.uint64)
    undecided = np.full(count, ~np.uint64(0))
    rest, whole = probability.numerator, probability.denominator
    for _ in range(_TOGETHER):
        if not rest:
            return events
        digit, rest = divmod(2 * rest, whole)
        _compare(events, undecided, bits.words(count).view(np.uint64), digit)
    places = np.flatnonzero(undecided)
    some, open_ = events[places], undecided[places]
    while rest and places.size:
        digit, rest = divmod(2 * rest, whole)
        _compare(some, open_, bits.words(places.size).view(np.uint64), digit)
        closed = open_ == 0
        events[places[closed]] = some[closed]
        places, some, open_ = places[~closed], some[~closed], open_[~closed]
    events[places] = some
    return events


def _compare(events: Lanes, undecided: Lanes, drawn: Lanes, digit: int) -> None:
    """Decide, in place, the open lanes whose next digit differs from the probability's."""
    if digit:
        events |= undecided & ~drawn
        undecided &= drawn
    else:
        undecided &= ~drawn

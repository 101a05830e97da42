"""How many answers are needed: for an error, at a confidence."""

from __future__ import annotations

import math
from fractions import Fraction

from sordino.local.categories import Categories
from sordino.local.choose import choose
from sordino.local.frequency import Frequency
from sordino.local.intervals import level, normal_quantile
from sordino.privacy.exact import Number, open_unit

__all__ = ["persons_needed"]


def persons_needed(
    epsilon: Number,
    categories: Categories,
    error: Number,
    confidence: Number = 0.95,
    *,
    population: bool = False,
    protocol: Frequency | None = None,
) -> int:
    """How many must answer for every share to be within `error` of the truth, each at this confidence, whatever the truth.

    By the normal law of estimates, for the protocol that `choose` takes or the one given. With `population` the share is
    that of the population they are drawn from, which takes more.

    Example:
        >>> persons_needed(epsilon=1, categories=16, error=0.01)
        165785
    """
    width = open_unit("error", error, "Pass a share such as 0.01 for +/- 1 %.").lower
    z = Fraction(normal_quantile(level(confidence)))
    if protocol is not None:
        return _needed(protocol, z / width, population)
    persons = 10_000
    while True:  # which protocol is best hardly depends on the number; ask again at the number found
        found = _needed(choose(epsilon, categories, persons).protocol, z / width, population)
        if found <= 2 * persons:
            return found
        persons = found


def _needed(protocol: Frequency, ratio: Fraction, population: bool) -> int:
    worst = max(protocol.variance(1, 0), protocol.variance(1, 1))
    if population:
        own, other = protocol.own, protocol.other
        likely = min(max(Fraction(1, 2), other), own)
        worst = likely * (1 - likely) / (own - other) ** 2
    return math.ceil(worst * ratio**2)

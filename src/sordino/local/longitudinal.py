"""The exact loss of several reports of one permanent answer, by counting reports of each kind. Proof in repeated.md."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import TypeAlias

from sordino.privacy.loss import FiniteLoss

__all__ = ["several_direct", "several_unary"]

Outcome: TypeAlias = tuple[Fraction, Fraction]

_MOST = 1500
_MOST_REPORTS = 100


def several_direct(own: Fraction, other: Fraction, keep: Fraction, categories: int, reports: int) -> FiniteLoss | None:
    """Direct answers: how often the one truth was reported, the other, and each of the rest, whichever they are.

    `own` and `other` are those of the permanent answer. None where there are too many outcomes to list.
    """
    rest = categories - 2
    if reports > _MOST_REPORTS or (rest and _partitions_up_to(reports) > _MOST):
        return None
    blind = (1 - keep) / categories
    ratio = 1 + keep / blind  # of naming the permanent answer to naming another
    unit, powers = blind**reports, [ratio**i for i in range(reports + 1)]

    def outcomes() -> Iterator[Outcome]:
        for left in range(reports + 1 if rest else 1):
            for parts in _partitions(left, rest):
                groups = Counter(parts)
                ways = math.perm(rest, len(parts)) * math.factorial(reports) * unit
                ways /= math.prod(math.factorial(i) for i in (*parts, *groups.values()))
                others = sum((powers[i] for i in parts), Fraction(rest - len(parts)))
                for x in range(reports - left + 1):
                    y = reports - left - x
                    each = ways / (math.factorial(x) * math.factorial(y))
                    common = other * (others + powers[x] + powers[y])
                    yield each * (common + (own - other) * powers[x]), each * (common + (own - other) * powers[y])

    return _merged(outcomes())


def several_unary(own: Fraction, other: Fraction, keep: Fraction, categories: int, reports: int) -> FiniteLoss | None:
    """Bits: how often the one truth's bit was 1, and the other's; all other bits have the same law under both."""
    del categories
    if (reports + 1) ** 2 > _MOST:
        return None
    flip = (1 - keep) / 2

    def ones(chance: Fraction) -> list[Fraction]:
        each = [math.comb(reports, i) * flip**i * (1 - flip) ** (reports - i) for i in range(reports + 1)]
        return [chance * each[reports - i] + (1 - chance) * each[i] for i in range(reports + 1)]

    true, false = ones(own), ones(other)
    pairs = range(reports + 1)
    return _merged((true[i] * false[j], false[i] * true[j]) for i in pairs for j in pairs)


def _merged(outcomes: Iterable[Outcome]) -> FiniteLoss:
    """Outcomes of equal ratio are one."""
    masses: dict[Fraction, list[Fraction]] = defaultdict(lambda: [Fraction(0), Fraction(0)])
    for p, q in outcomes:
        mass = masses[p / q]
        mass[0] += p
        mass[1] += q
    return FiniteLoss(tuple(p for p, _ in masses.values()), tuple(q for _, q in masses.values()))


def _partitions(total: int, most: int, largest: int | None = None) -> Iterator[tuple[int, ...]]:
    """The ways to write `total` as a sum of at most `most` falling whole numbers above 0."""
    if total == 0:
        yield ()
    elif most:
        for first in range(min(total, largest or total), 0, -1):
            for parts in _partitions(total - first, most - 1, first):
                yield (first, *parts)


def _partitions_up_to(reports: int) -> int:
    """About how many outcomes `several_direct` lists: more than this for no number of categories."""
    counts = [1] + [0] * reports
    for part in range(1, reports + 1):
        for total in range(part, reports + 1):
            counts[total] += counts[total - part]
    return sum(count * (reports - left + 1) for left, count in enumerate(counts))

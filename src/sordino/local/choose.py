"""Which protocol is best: the least variance, and among equals the shortest report.

The summed variance of all shares does not depend on the truth (protocols.md), so that there is one order for every
question. And how many answers are needed, for an error at a confidence.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction

from sordino.errors import InvalidInput
from sordino.local.affine import AffineSubset
from sordino.local.answers import Categories, counted
from sordino.local.direct import Direct
from sordino.local.frequency import Frequency, persons_checked
from sordino.local.hadamard import Hadamard
from sordino.local.hashing import LocalHashing
from sordino.local.report_text import several
from sordino.local.subset import Subset
from sordino.local.unary import Unary
from sordino.privacy.exact import Number, readable, show
from sordino.privacy.text_table import aligned

__all__ = ["Candidate", "Choice", "best_of", "choose", "compared", "persons_needed"]

MEMBERS: tuple[type[Frequency], ...] = (Direct, Unary, LocalHashing, Subset, AffineSubset, Hadamard)

_EQUAL = Fraction(1001, 1000)
"""Variances within a thousandth count as equal."""

_SLOW, _MANY = "too slow to count", "too many categories to estimate at once"
_MOST_WORK = 10**10
"""Beyond about a minute of counting a protocol is not taken while another is at hand."""


@dataclass(frozen=True)
class Candidate:
    """One protocol and what it costs. `objection` says why it cannot be taken, if so."""

    protocol: Frequency
    total_variance: Fraction = field(repr=False)
    worst_variance: Fraction = field(repr=False)
    bits: int
    work: int
    objection: str | None

    @property
    def error(self) -> float:
        """The root of the mean squared error over the categories."""
        return math.sqrt(self.total_variance / self.protocol.categories)


@dataclass(frozen=True, repr=False)
class Choice:
    """The protocol to take, why, and all that were compared, the best first."""

    protocol: Frequency
    reason: str
    persons: int
    candidates: tuple[Candidate, ...]

    def __repr__(self) -> str:
        rows = [("protocol", "typical error", "largest", "bits", "server steps", "")]
        for one in self.candidates:
            name, worst = type(one.protocol).__name__, math.sqrt(one.worst_variance)
            numbers = f"{one.error:.3g}", f"{worst:.3g}", f"{one.bits}", f"{one.work:.2g}"
            rows.append((name, *numbers, one.objection or ""))
        table = aligned(rows, [False, True, True, True, True, False])
        many = several(self.persons, "report")
        errors = f"Errors are standard deviations of one share from {many}."
        lines = [f"{self.protocol!r}", self.reason, "", *table, errors]
        return "\n".join(lines)


def choose(
    epsilon: Number, categories: Categories, persons: int, *, most_bits: int | None = None
) -> Choice:
    """The protocol with the least variance whose reports are short enough and can be counted in about a minute.

    Example:
        >>> choose(epsilon=3, categories=10, persons=10_000).protocol
        Direct(odds=20.085536923187668, categories=10)
    """
    if most_bits is not None and (
        isinstance(most_bits, bool) or not isinstance(most_bits, int) or most_bits < 1
    ):
        rule = "most_bits must be a whole number of at least 1"
        raise InvalidInput(f"most_bits={show(most_bits)}", rule, "Leave it out for any length.")
    n = persons_checked(persons)
    found = compared(epsilon, categories, n, most_bits)
    if all(one.objection in (_SLOW, _MANY) for one in found):
        count = found[0].protocol.categories
        rule = "no protocol can count this many categories for this many persons in reasonable time"
        hint = "Ask about fewer, or search for the frequent ones by prefixes."
        raise InvalidInput(f"{count} categories and {n} persons", rule, hint)
    if found[0].objection is not None:
        shortest = min(one.bits for one in found)
        rule = f"the shortest report over {found[0].protocol.categories} categories has {shortest} bits"
        raise InvalidInput(f"most_bits={most_bits}", rule, "Allow more bits, or fewer categories.")
    free = [one for one in found if one.objection is None]
    best = best_of(free)
    return Choice(best.protocol, _reason(best, free), n, tuple(found))


def compared(
    epsilon: Number, categories: Categories, persons: int, most_bits: int | None = None
) -> list[Candidate]:
    """All protocols for these categories: those that can be taken first, by variance."""
    count, _ = counted(categories, Hadamard.most)
    found = [_candidate(one.calibrated(epsilon=epsilon, categories=categories), persons, most_bits)
             for one in MEMBERS if count <= one.most]  # fmt: skip
    return sorted(found, key=lambda one: (one.objection is not None, one.total_variance, one.bits))


def best_of(candidates: list[Candidate]) -> Candidate:
    """The shortest and quickest of those with the least variance, or as good as that."""
    least = min(one.total_variance for one in candidates)
    return min(
        (one for one in candidates if one.total_variance <= _EQUAL * least),
        key=lambda one: (one.bits, one.work),
    )


def _candidate(protocol: Frequency, persons: int, most_bits: int | None) -> Candidate:
    work = protocol.work(persons)
    objection = None
    if most_bits is not None and protocol.bits > most_bits:
        objection = f"longer than {most_bits} bits"
    elif protocol.categories > Frequency.most and not protocol.cells:
        objection = _MANY
    elif work > _MOST_WORK:
        objection = _SLOW
    worst = max(protocol.variance(persons, 0), protocol.variance(persons, 1))
    return Candidate(
        protocol, protocol.total_variance(persons), worst, protocol.bits, work, objection
    )


def _reason(best: Candidate, free: list[Candidate]) -> str:
    name = type(best.protocol).__name__
    text = f"{name}: a typical error of {best.error:.3g}, with {best.bits} {'bit' if best.bits == 1 else 'bits'} a report"
    least = free[0]
    if best is not least:
        return f"{text}; {type(least.protocol).__name__} is better by less than a thousandth and needs {least.bits} bits."
    others = [one for one in free if one is not best]
    if not others:
        return f"{text}; the only one that fits."
    next_, more = type(others[0].protocol).__name__, others[0].total_variance / best.total_variance
    if more <= _EQUAL:
        return f"{text}; {next_} is as good but longer or slower to count."
    return f"{text}; the next, {next_}, needs {_percent(more - 1)} more persons for it."


def _percent(more: Fraction) -> str:
    share = float(100 * more)
    return f"{share:.2g} %" if share < 100 else f"{readable(Fraction(round(share)))} %"


def persons_needed(
    epsilon: Number,
    categories: Categories,
    error: Number,
    confidence: Number = 0.95,
    *,
    population: bool = False,
) -> int:
    """How many must answer for every share to be within `error`, each at this confidence, whatever the truth.

    By the protocol that `choose` takes; every protocol has a method of this name for itself. With `population` the
    share is that of the population they are drawn from, which takes more.

    Example:
        >>> persons_needed(epsilon=1, categories=16, error=0.01)
        165785
    """
    persons = 10_000
    # which protocol can be counted depends on the number; ask again at the number found
    while True:
        found = compared(epsilon, categories, persons)
        best = best_of([one for one in found if one.objection is None] or found).protocol
        needed = best.persons_needed(error, confidence, population=population)
        if needed <= 2 * persons:
            return needed
        persons = needed

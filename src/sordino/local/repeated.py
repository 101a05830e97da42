"""Repeated collection: one permanent answer for each true value, which the client remembers, and fresh reports of it.

Theorem. One report is log(first.odds)-differentially private, and any number of reports about one value are together
log(permanent.odds)-differentially private. The reports of one round are those of `first`. Proof in repeated.md.
The loss of several reports is exact: reports of each kind are counted.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np

from sordino.errors import InvalidInput
from sordino.local.answers import Categories
from sordino.local.direct import Direct
from sordino.local.estimates import Frequencies
from sordino.local.protocol import Column, below, chance, epsilons, protocol_from_json
from sordino.local.report_text import differences
from sordino.local.reports import Reports, expected
from sordino.local.unary import Unary, spare_mask
from sordino.mechanisms.bits import CHUNK, Bits
from sordino.mechanisms.discrete import bernoulli, uniform
from sordino.mechanisms.lanes import bernoulli_lanes
from sordino.mechanisms.observer import drawn
from sordino.privacy import json_form
from sordino.privacy.exact import Number, show
from sordino.privacy.loss import FiniteLoss

if TYPE_CHECKING:
    from sordino.local.client import Client

__all__ = ["Repeated", "several_direct", "several_unary"]

Outcome: TypeAlias = tuple[Fraction, Fraction]

_MOST = 1500
_MOST_REPORTS = 100


def several_direct(
    own: Fraction, other: Fraction, keep: Fraction, categories: int, reports: int
) -> FiniteLoss | None:
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
                    yield (
                        each * (common + (own - other) * powers[x]),
                        each * (common + (own - other) * powers[y]),
                    )

    return _merged(outcomes())


def several_unary(
    own: Fraction, other: Fraction, keep: Fraction, categories: int, reports: int
) -> FiniteLoss | None:
    """Bits: how often the one truth's bit was 1, and the other's; all other bits have the same law under both."""
    del categories
    if (reports + 1) ** 2 > _MOST:
        return None
    flip = (1 - keep) / 2

    def ones(chance: Fraction) -> list[Fraction]:
        each = [
            math.comb(reports, i) * flip**i * (1 - flip) ** (reports - i)
            for i in range(reports + 1)
        ]
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


Kind: TypeAlias = Direct | Unary

_KINDS: dict[str, type[Direct] | type[Unary]] = {"direct": Direct, "unary": Unary}


@dataclass(frozen=True)
class Repeated:
    """Answers that may be asked for again and again; `permanent` and `first` are protocols of one kind.

    Example:
        >>> diary = Repeated.calibrated(permanent=4, first=1, categories=["well", "ill"])
        >>> client = diary.client()
        >>> reports = [client.report("well") for _ in range(365)]
        >>> round(diary.loss().maximum(), 6), round(client.spent.maximum(), 6)
        (1.0, 4.0)
    """

    permanent: Kind
    first: Kind

    def __post_init__(self) -> None:
        a, b = self.permanent, self.first
        if (
            type(a) is not type(b)
            or not isinstance(a, Direct | Unary)
            or (a.categories, a.names) != (b.categories, b.names)
        ):
            rule = "both must be Direct, or both Unary, over the same categories"
            hint = "Use Repeated.calibrated(permanent=..., first=..., categories=...)."
            raise InvalidInput(f"permanent={show(a)}, first={show(b)}", rule, hint)
        if b.odds > a.odds:
            rule = "one report cannot reveal more than all of them"
            most, one = epsilons(a.odds, b.odds)
            raise InvalidInput(
                f"epsilons permanent={most}, first={one}",
                rule,
                "Pass first at most as large as permanent.",
            )

    @classmethod
    def calibrated(
        cls, *, permanent: Number, first: Number, categories: Categories, kind: str | None = None
    ) -> Self:
        """Private with epsilon `first` for one report, `permanent` for any number; the kind with the least variance."""
        if kind is not None and kind not in _KINDS:
            raise InvalidInput(
                f"kind={show(kind)}",
                "the kind is 'direct' or 'unary'",
                "Leave it out for the better one.",
            )
        found = [
            cls(
                one.calibrated(epsilon=permanent, categories=categories),
                one.calibrated(epsilon=first, categories=categories),
            )
            for one in ([_KINDS[kind]] if kind else list(_KINDS.values()))
        ]
        return min(found, key=lambda one: one.first.total_variance(1))

    @cached_property
    def keep(self) -> Fraction:
        """The probability that a report repeats the permanent answer (or its bit), and is not drawn blindly."""
        return _slope(self.first) / _slope(self.permanent)

    def loss(self, reports: int | float = 1) -> FiniteLoss:
        """The privacy loss of this many reports about one value; math.inf for any number of them.

        Exact for few reports, else that of the permanent answer, which is more.
        """
        if reports == math.inf:
            return self.permanent.loss()
        if isinstance(reports, bool) or not isinstance(reports, int | np.integer) or reports < 1:
            hint = "Pass how often the value is reported, or math.inf."
            raise InvalidInput(
                f"reports={show(reports)}", "reports must be a whole number of at least 1", hint
            )
        if reports == 1:
            return self.first.loss()
        found = None
        if self.keep < 1:
            several = several_direct if isinstance(self.first, Direct) else several_unary
            found = several(
                self.permanent.own,
                self.permanent.other,
                self.keep,
                self.first.categories,
                int(reports),
            )
        return self.permanent.loss() if found is None else found

    def client(self, stored: str | None = None) -> Client:
        """A client that has reported nothing yet; or the one whose `to_json` is `stored`, of this protocol."""
        from sordino.local.client import Client

        if stored is None:
            return Client(self)
        client = Client.from_json(stored)
        if client.protocol != self:
            parts = (
                ("permanent", self.permanent, client.protocol.permanent),
                ("first", self.first, client.protocol.first),
            )
            other = "; ".join(f"{name}: {differences(a, b)}" for name, a, b in parts if a != b)
            rule = f"a client keeps its protocol ({other})"
            raise InvalidInput(
                "a stored client of another protocol",
                rule,
                "Use its own: Client.from_json(stored).",
            )
        return client

    def memoise(self, values: Any) -> Reports:
        """The permanent answers of many persons, to be kept secret and used for every report about the same values."""
        return self.permanent.randomize(values)

    def refresh(self, memory: Reports) -> Reports:
        """One round of fresh reports from the permanent answers of many persons."""
        expected(self.permanent, memory, "diary.memoise(values)")
        return Reports(
            self.first,
            drawn(self, "refresh", memory.column, partial(self._refreshed, memory.column)),
        )

    def _refreshed(self, answers: Column, source: Bits) -> Column:
        column = answers.copy()
        if self.keep == 1:
            return column
        if isinstance(self.first, Unary):
            flat, mask = column.reshape(-1), spare_mask(self.first.categories)
            for start in range(0, len(flat), 8 * CHUNK):
                part = flat[start : start + 8 * CHUNK]
                part ^= bernoulli_lanes((1 - self.keep) / 2, -(-len(part) // 8), source).view(
                    np.uint8
                )[: len(part)]
            column &= mask
        else:
            for start in range(0, len(column), CHUNK):
                part = column[start : start + CHUNK]
                blind = uniform(self.first.categories, len(part), source)
                column[start : start + CHUNK] = np.where(
                    bernoulli(self.keep, len(part), source), part, blind
                )
        return column

    def refresh_one(self, answer: int | bytes) -> int | bytes:
        """One fresh report from a permanent answer, in plain Python."""
        checked = Reports.of(self.permanent, [answer]).column[0]
        return drawn(self, "refresh_one", answer, partial(self._refreshed_one, checked))

    def _refreshed_one(self, checked: Any, source: Bits) -> int | bytes:
        k = self.first.categories
        if isinstance(self.first, Direct):
            return int(checked) if chance(self.keep, source) else below(k, source)
        fresh = bytearray(checked)
        for j in range(k):
            if chance((1 - self.keep) / 2, source):
                fresh[j // 8] ^= 1 << j % 8
        return bytes(fresh)

    def estimate(
        self, reports: Reports, confidence: Number = 0.95, *, population: bool = False
    ) -> Frequencies:
        """The true shares behind the reports of one round, one from each person."""
        return self.first.estimate(reports, confidence, population=population)

    def to_json(self) -> str:
        """The exact stored form."""
        parts = {"permanent": self.permanent, "first": self.first}
        stored = {name: json_form.nested(part.to_json()) for name, part in parts.items()}
        return json_form.dump("local.repeated", 1, stored)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """What `to_json` stored."""
        _, fields = json_form.load(text, {("local.repeated", 1): cls})
        permanent, first = (
            json_form.loaded(fields.get(name), protocol_from_json)
            for name in ("permanent", "first")
        )
        return cls(permanent, first)  # type: ignore[arg-type]


def _slope(protocol: Kind) -> Fraction:
    """How much of the truth a report tells: 1 if it is the truth, 0 if it is drawn blindly."""
    blind = 2 if isinstance(protocol, Unary) else protocol.categories
    return (protocol.odds - 1) / (protocol.odds + blind - 1)

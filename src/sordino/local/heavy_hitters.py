"""Heavy hitters: the frequent values among very many possible ones, found by growing their prefixes.

Theorem. A report is log(odds)-differentially private, and everyone sends one: a level, drawn without looking at the
value, and the hashed and randomized prefix of that level. Proof, and what the intervals promise, in heavy_hitters.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, NoReturn, Self

import numpy as np

from sordino.errors import InvalidInput
from sordino.local import protocol
from sordino.local.frequency import persons_checked
from sordino.local.hashing import LocalHashing
from sordino.local.intervals import Floats, SupportLaw, level
from sordino.local.prefixes import (
    LONGEST,
    MOST_CANDIDATES,
    Levels,
    Prefixes,
    as_numbers,
    as_text,
    best_levels,
    best_values,
    checked_length,
    extended,
    folded,
    least_share,
    one_number,
    supports_of_prefixes,
)
from sordino.local.protocol import Column, Counts, below, checked_odds, odds_below
from sordino.local.report_text import several, share_lines
from sordino.local.reports import Reports, expected
from sordino.mechanisms.bits import CHUNK, Bits
from sordino.mechanisms.discrete import uniform
from sordino.mechanisms.observer import drawn
from sordino.privacy import json_form
from sordino.privacy.exact import Number, closed_unit, decimal_reading, readable, show
from sordino.privacy.loss import FiniteLoss

__all__ = ["Found", "HeavyHitters"]


@dataclass(frozen=True, eq=False, repr=False)
class Found:
    """Frequent values, the largest share first, with shares, standard errors and intervals.

    All intervals hold together at the confidence, and with it no value is listed that nobody has. They come from the
    `confirmed` reports that the search did not use, and hold for the population that persons were drawn from.
    """

    answers: int
    confirmed: int
    confidence: float
    values: tuple[int, ...] | tuple[str, ...]
    shares: Floats
    standard_errors: Floats
    lower: Floats
    upper: Floats

    def __len__(self) -> int:
        return len(self.values)

    def to_arrow(self) -> Any:
        """A table with one row for each value found."""
        import pyarrow as pa

        kind = pa.string() if self.values and isinstance(self.values[0], str) else pa.uint64()
        columns = {
            "share": self.shares,
            "lower": self.lower,
            "upper": self.upper,
            "standard_error": self.standard_errors,
        }
        return pa.table({"value": pa.array(self.values, kind), **columns})

    def __repr__(self) -> str:
        what = f"shares of the population, {self.confidence:.4g} intervals all together"
        lines = [
            f"{several(len(self), 'value')} found in {several(self.answers, 'report')}; {what}"
        ]
        lines += share_lines(zip(self.values, self.shares, self.lower, self.upper, strict=True))
        return "\n".join(lines)


_MOST = 2**12
_MOST_KEPT = 4 * _MOST


@dataclass(frozen=True, init=False, repr=False)
class HeavyHitters:
    """Report one hashed prefix; the collector finds up to `most` frequent values of `length` bits.

    Values are whole numbers below 2^length; with `text`, texts or bytes of at most length/8 bytes.

    Example:
        >>> search = HeavyHitters.calibrated(epsilon=2, bits=32, persons=1_000_000, most=16)
        >>> search.levels.lengths, search.levels.kept, search.bits
        ((14, 23, 32), 32, 38)
    """

    odds: Fraction
    length: int
    most: int
    values: int
    levels: Levels
    text: bool

    kind = "local.heavy_hitters"
    width = 0
    cells = 0

    def __init__(
        self,
        odds: Number,
        length: int,
        most: int,
        values: int,
        levels: Levels,
        *,
        text: bool = False,
    ) -> None:
        checked_length(length, text=text)
        _check_most(most)
        hint = "Use HeavyHitters.calibrated(...), which finds good ones."
        steps = (0, *levels.lengths)
        grow = all(a < b for a, b in pairwise(steps)) and steps[-1] == length
        if not grow or not most <= levels.kept <= _MOST_KEPT:
            rule = f"prefixes must grow up to the {length} bits of a value, and {most} to {_MOST_KEPT} of them survive"
            raise InvalidInput(show(levels), rule, hint)
        if levels.widest > MOST_CANDIDATES:
            raise InvalidInput(
                show(levels), f"a level compares at most {MOST_CANDIDATES} prefixes", hint
            )
        if (
            isinstance(values, bool)
            or not isinstance(values, int)
            or values not in [2**i for i in range(1, 9)]
        ):
            raise InvalidInput(
                f"values={show(values)}", "hash values are a power of two from 2 to 256", hint
            )
        fields = {
            "odds": checked_odds(odds),
            "length": length,
            "most": most,
            "values": values,
            "levels": levels,
            "text": text,
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    @classmethod
    def calibrated(
        cls, *, epsilon: Number, bits: int, persons: int, most: int = 32, text: bool = False
    ) -> Self:
        """The search that finds the smallest shares among this many persons, epsilon-differentially private."""
        odds, n = odds_below(epsilon), persons_checked(persons)
        checked_length(bits, text=text)
        _check_most(most)
        values = best_values(odds)
        return cls(odds, bits, most, values, best_levels(odds, values, bits, n, most), text=text)

    @cached_property
    def oracles(self) -> tuple[LocalHashing, ...]:
        """How each group reports its prefix; the last one, of whole values, confirms."""
        lengths = (*self.levels.lengths, self.length)
        return tuple(LocalHashing(self.odds, 2 ** min(n, LONGEST), self.values) for n in lengths)

    @cached_property
    def _span(self) -> int:
        return max(oracle.limit for oracle in self.oracles)

    @property
    def limit(self) -> int:
        """A report is the whole number level * span + hashed prefix."""
        return self.levels.groups * self._span

    @property
    def bits(self) -> int:
        """How many bits one report needs."""
        return (self.limit - 1).bit_length()

    def loss(self) -> FiniteLoss:
        """The privacy loss of one report, at worst: for two values that differ from the first prefix on."""
        odd = sum(((o.own - o.other) / (self.odds - 1) for o in self.oracles), Fraction(0)) / len(
            self.oracles
        )
        rest = 1 - (self.odds + 1) * odd
        sides = (self.odds * odd, odd), (odd, self.odds * odd)
        return FiniteLoss(*((*side, rest) if rest else side for side in sides))

    def least_share(self, persons: int) -> float:
        """About the smallest share of this many persons that is found 19 times out of 20; 1: nothing is found."""
        return min(
            1.0,
            least_share(self.levels, self.odds, self.values, persons_checked(persons), self.most),
        )

    def variance(self, persons: int, share: Number = 0) -> Fraction:
        """The variance of the estimate of a value with this share, given how many confirm: one group's part of all."""
        closed_unit("share", share)
        last = self.oracles[-1]
        ones = last.other + decimal_reading("share", share) * (last.own - last.other)
        return (
            ones
            * (1 - ones)
            / (last.own - last.other) ** 2
            * self.levels.groups
            / persons_checked(persons)
        )

    def randomize(self, values: Any) -> Reports:
        """One report for each person's value."""
        true = as_numbers(values, self.length, text=self.text)
        return Reports(self, drawn(self, "randomize", true, partial(self._column, true)))

    def _column(self, true: Prefixes, source: Bits) -> Column:
        group = np.concatenate(
            [
                uniform(self.levels.groups, min(CHUNK, len(true) - i), source)
                for i in range(0, len(true), CHUNK)
            ]
        )
        column = np.empty(len(true), np.int64)
        for i, oracle in enumerate(self.oracles):
            here = np.flatnonzero(group == i)
            if here.size:
                column[here] = (
                    i * self._span + oracle.randomize(folded(self._prefix(true[here], i))).column
                )
        return column

    def randomize_one(self, value: Any) -> int:
        """The report of one person."""
        true = np.array([one_number(value, self.length, text=self.text)], np.uint64)
        return drawn(self, "randomize_one", int(true[0]), partial(self._report, true))

    def _report(self, true: Prefixes, source: Bits) -> int:
        i = below(self.levels.groups, source)
        report = self.oracles[i].randomize_one(int(folded(self._prefix(true, i))[0]))
        return i * self._span + int(report)

    def _prefix(self, values: Prefixes, group: int) -> Prefixes:
        length = (*self.levels.lengths, self.length)[group]
        return values >> np.uint64(self.length - length)

    def check(self, column: Column) -> None:
        """Refuse a column with anything that is not a report of this protocol."""
        wrong = (column < 0) | (column >= self.limit)
        if wrong.any():
            rule = f"a report of {self!r} is a whole number from 0 to {self.limit - 1}"
            raise InvalidInput(
                f"report {show(column[wrong][0])}", rule, "These reports were damaged."
            )
        for oracle, part in zip(self.oracles, self._groups(column), strict=True):
            oracle.check(part)

    def _groups(self, column: Column) -> list[Column]:
        group, rest = np.divmod(column, self._span)
        return [rest[group == i] for i in range(self.levels.groups)]

    def find(
        self, reports: Reports, *, most: int | None = None, confidence: Number = 0.95
    ) -> Found:
        """The frequent values, with their shares of the population. All intervals hold together at the confidence, and
        so does that every value found is truly somebody's: the group that confirms had no part in the search.
        """
        expected(self, reports, "search.randomize(values)")
        count = self.most if most is None else most
        if (
            isinstance(count, bool)
            or not isinstance(count, int)
            or not 1 <= count <= self.levels.kept
        ):
            rule = f"most must be a whole number from 1 to {self.levels.kept}"
            raise InvalidInput(f"most={show(most)}", rule, "Calibrate with a larger most.")
        sure = level(confidence)
        *searching, confirming = self._groups(reports.column)
        if not all(len(part) for part in (*searching, confirming)):
            rule = f"each of the {self.levels.groups} groups needs reports"
            raise InvalidInput(
                f"{len(reports)} reports", rule, "Collect more, or calibrate for fewer persons."
            )
        found = self._grown(searching, count)
        counts = supports_of_prefixes(self.oracles[-1], confirming, self.length, found, 0)
        law = SupportLaw(
            len(confirming), self.oracles[-1].own, self.oracles[-1].other, population=True
        )
        lower, upper = law.ends(counts, 1 - (1 - sure) / len(found))
        shares = law.share(counts)
        order = [i for i in np.argsort(-shares, kind="stable").tolist() if lower[i] > 0]
        named = as_text(found[order], self.length) if self.text else tuple(found[order].tolist())
        errors = law.deviation(np.clip(shares[order], 0, 1))
        return Found(
            len(reports),
            len(confirming),
            float(confidence),
            named,
            shares[order],
            errors,
            lower[order],
            upper[order],
        )

    def _grown(self, searching: list[Column], count: int) -> Prefixes:
        """The candidates after the last level, by what the searching groups say."""
        parents: Prefixes = np.zeros(1, np.uint64)
        before = 0
        for i, (length, part) in enumerate(zip(self.levels.lengths, searching, strict=True)):
            step = length - before
            # the first level compares all prefixes: as many parents as patterns
            if i == 0 and step > 8:
                parents, step = np.arange(2 ** (step - step // 2), dtype=np.uint64), step // 2
            counts = supports_of_prefixes(self.oracles[i], part, length, parents, step)
            kept = min(self.levels.kept if length < self.length else count, len(counts))
            parents = extended(parents, step)[np.argsort(-counts, kind="stable")[:kept]]
            before = length
        return parents

    def supports(self, column: Column) -> NoReturn:
        """Refused: there are too many values to count them all."""
        del column
        raise InvalidInput(
            repr(self), "its reports are searched, not counted", "Use .find(reports)."
        )

    def supports_of_cells(self, cells: Counts) -> NoReturn:
        """Refused, as `supports`."""
        self.supports(cells)

    def estimate_from_counts(
        self, answers: int, counts: Counts, confidence: Number = 0.95, *, population: bool = False
    ) -> NoReturn:
        """Refused, as `supports`."""
        del answers, confidence, population
        self.supports(counts)

    def to_json(self) -> str:
        """The exact stored form."""
        numbers = {name: getattr(self, name) for name in ("length", "most", "values")}
        numbers |= {"kept": self.levels.kept, "text": int(self.text)}
        lengths = tuple(Fraction(n) for n in self.levels.lengths)
        return json_form.dump(self.kind, 1, {"odds": self.odds, "lengths": lengths, **numbers})

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> Self:
        """The protocol of stored fields."""
        names = ("length", "most", "values", "kept", "text")
        length, most, values, kept, text = (json_form.whole(fields, name) for name in names)
        if text not in (0, 1):
            raise InvalidInput(
                f"text={show(text)}",
                'field "text" must be 0 or 1',
                "Pass a text made by to_json().",
            )
        levels = Levels(json_form.wholes(fields, "lengths"), kept)
        return cls(
            json_form.rational(fields, "odds"), length, most, values, levels, text=bool(text)
        )

    def __repr__(self) -> str:
        what = "text" if self.text else "bits"
        steps = f"levels={list(self.levels.lengths)}, kept={self.levels.kept}"
        return f"HeavyHitters(odds={readable(self.odds)}, {what}={self.length}, most={self.most}, {steps})"


def _check_most(most: Any) -> None:
    if isinstance(most, bool) or not isinstance(most, int) or not 1 <= most <= _MOST:
        raise InvalidInput(
            f"most={show(most)}",
            f"most must be a whole number from 1 to {_MOST}",
            "Pass how many at most.",
        )


protocol.kinds["local.heavy_hitters", 1] = HeavyHitters.from_fields

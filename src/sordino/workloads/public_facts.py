"""Public facts about a workload: tables that everybody knows, combinations that cannot occur, columns that are equal.

Known tables need no noise and no price. Cells that cannot occur are made zero after the noise, by the projection that
is best for it. None of it reads data: whether facts are true is the owner's word, privacy does not hang on it
(facts.md).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt

from sordino.errors import InvalidInput, TooLarge
from sordino.privacy.exact import show
from sordino.workloads.allocation import Allocation, ColumnSet, below
from sordino.workloads.consistent import estimates
from sordino.workloads.counts import largest_sets
from sordino.workloads.domain import WorkloadColumn
from sordino.workloads.equal_columns import SameAs, measured
from sordino.workloads.places import place_of, places_of, value_key
from sordino.workloads.solved import MOST_SOLVED, exists
from sordino.workloads.whole_numbers import in_order

__all__ = ["PublicFacts", "public_facts"]

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
_MOST_ZEROS, _MOST_COUNT = 3000, 2**50


@dataclass(frozen=True, eq=False)
class PublicFacts:
    """Known tables, of the largest tables those cells that cannot occur, and which columns are equal to one before.

    `pivots` is for each column the place of a value that no zero names, where several tables are asked for.
    """

    tables: Mapping[ColumnSet, Ints]
    impossible: Mapping[ColumnSet, Bools]
    same: tuple[SameAs | None, ...]
    pivots: tuple[int, ...] = ()

    def known(self, part: ColumnSet) -> Ints | None:
        """The counts of a set of columns, if they are public."""
        for table, counts in self.tables.items():
            if set(part) <= set(table):
                return np.asarray(
                    counts.sum(axis=tuple(k for k, i in enumerate(table) if i not in part))
                )
        return None

    def zero(self, part: ColumnSet) -> Bools | None:
        """The cells of a set of columns that cannot occur, if there are some."""
        found = [mask.all(axis=tuple(k for k, i in enumerate(table) if i not in part))
                 for table, mask in self.impossible.items() if set(part) <= set(table)]  # fmt: skip
        return np.logical_or.reduce(found) if found else None

    def projected(
        self, allocation: Allocation, residuals: Mapping[ColumnSet, Floats]
    ) -> dict[ColumnSet, Floats]:
        """The residuals of the best estimate, given that some cells are zero (facts.md, Theorem 2)."""
        cells = [(table, np.argwhere(mask)) for table, mask in self.impossible.items()]
        across = np.block(
            [[_covariances(allocation, one, other) for other in cells] for one in cells]
        )
        noisy = [
            estimates(allocation.columns, residuals, table)[tuple(places.T)]
            for table, places in cells
        ]
        moves = np.linalg.lstsq(across, np.concatenate(noisy), rcond=None)[0]
        ends = np.cumsum([len(places) for _, places in cells])[:-1]
        found = dict(residuals)
        for (table, places), own in zip(cells, np.split(moves, ends), strict=True):
            spread = np.zeros([allocation.columns[i].size for i in table])
            spread[tuple(places.T)] = own
            for part in below([table]):
                if part not in allocation.precision:
                    continue
                moved = np.asarray(
                    spread.sum(axis=tuple(k for k, i in enumerate(table) if i not in part))
                )
                for axis in range(len(part)):
                    moved = moved - moved.mean(axis=axis, keepdims=True)
                outside = math.prod(allocation.columns[i].size for i in table if i not in part)
                found[part] = found[part] - moved / (
                    float(allocation.precision[part].ravel()[0]) * outside
                )
        return found


def _covariances(
    allocation: Allocation, one: tuple[ColumnSet, Ints], other: tuple[ColumnSet, Ints]
) -> Floats:
    """The covariances of the noise of some cells of one table with that of some of another; columns are flat."""
    (first, places), (second, others) = one, other
    found = np.zeros((len(places), len(others)))
    for part in below([tuple(i for i in first if i in second)]):
        if part not in allocation.precision:
            continue
        outside = math.prod(
            allocation.columns[i].size for table in (first, second) for i in table if i not in part
        )
        term: Any = 1 / (float(allocation.precision[part].ravel()[0]) * outside)
        for i in part:
            same = places[:, first.index(i)][:, None] == others[:, second.index(i)][None]
            term = term * (same - 1 / allocation.columns[i].size)
        found += term
    return found


def public_facts(
    columns: Sequence[WorkloadColumn],
    largest: Sequence[ColumnSet],
    facts: Any,
    zeros: Any,
    same: Sequence[SameAs | None],
    *,
    single: bool,
) -> PublicFacts:
    """The facts of a workload, checked against its columns and against each other; all are told of measured columns.

    `largest` are the tables that are measured, and `same` says which columns are equal.
    """
    if not (facts or zeros or any(same)):
        return PublicFacts({}, {}, tuple(same))
    if facts and not single:
        rule = (
            "persons with many rows are scaled down, so that counts do not add up to what is known"
        )
        raise InvalidInput(
            "facts=", rule, "Leave out facts, or ask about tables with one row for each person."
        )
    names = [column.name for column in columns]
    tables: dict[ColumnSet, Ints] = {}
    for given, counts in _mapping("facts", facts or {}).items():
        places = _places(names, given)
        own = measured(places, same)
        if not any(set(own) <= set(table) for table in largest):
            raise InvalidInput(
                f"facts about {show(given)}",
                "no table of the workload holds these columns",
                "Ask for one.",
            )
        known = _of_measured(_counts(columns, places, given, counts), places, columns, same)
        if known is None:
            rule = "a public total is above zero where no combination can occur"
            raise InvalidInput(
                f"facts about {show(given)}", rule, "Take back one of the two facts."
            )
        _expect_agreement([*tables.items(), (own, known)], names)
        tables[own] = known
    patterns = _patterns(columns, names, largest, zeros or (), same)
    impossible = _impossible(columns, largest, patterns)
    for table, mask in impossible.items():
        for places, counts in tables.items():
            if not set(places) <= set(table):
                continue
            axes = tuple(k for k, i in enumerate(table) if i not in places)
            if np.any((counts > 0) & mask.all(axis=axes)):
                what = ", ".join(names[i] for i in places)
                rule = "a public total is above zero where no combination can occur"
                raise InvalidInput(f"facts about {what}", rule, "Take back one of the two facts.")
    for table in largest:
        _expect_possible(columns, table, tables, impossible.get(table))
    several = bool(impossible) and len(largest) > 1
    return PublicFacts(
        tables, impossible, tuple(same), _pivots(columns, patterns) if several else ()
    )


def _of_measured(
    counts: Ints,
    places: ColumnSet,
    columns: Sequence[WorkloadColumn],
    same: Sequence[SameAs | None],
) -> Ints | None:
    """Known counts as a table of measured columns; None if some are where equal columns differ."""
    own = measured(places, same)
    shape = [len(columns[i].values) for i in own]
    whole = np.zeros(shape, np.int64)
    for cell in np.argwhere(counts):
        at: dict[int, int] = {}
        for i, place in zip(places, cell.tolist(), strict=True):
            twin = same[i]
            first, value = (i, place) if twin is None else (twin.column, twin.places[place])
            if value < 0 or at.setdefault(first, value) != value:
                return None
        whole[tuple(at[i] for i in own)] = counts[tuple(cell)]
    return whole


def _mapping(name: str, given: Any) -> Mapping[Any, Any]:
    if not isinstance(given, Mapping):
        hint = 'Pass facts={"region": {"North": 1200, "South": 900}}.'
        raise InvalidInput(
            f"{name}={show(given)}", "public totals are counts by value, by column", hint
        )
    return given


def _places(names: Sequence[str], given: Any) -> ColumnSet:
    places = tuple(places_of(names, given, "facts"))
    if list(places) != sorted(set(places)):
        rule = f"columns are named once, in the order of the workload: {', '.join(names)}"
        raise InvalidInput(f"facts about {show(given)}", rule, "Put them into that order.")
    return places


def _counts(columns: Sequence[WorkloadColumn], places: ColumnSet, given: Any, counts: Any) -> Ints:
    """The known table; every combination of values must have its number."""
    if not places:
        counts = {(): counts} if not isinstance(counts, Mapping) else counts
    shape = tuple(len(columns[i].values) for i in places)
    where = [{value_key(value): k for k, value in enumerate(columns[i].values)} for i in places]
    found = np.full(shape, -1, np.int64)
    for name, number in _mapping("facts", counts).items():
        values = (name,) if len(places) == 1 else name
        cell = _cell(where, values)
        if cell is None:
            of = "of the column" if len(places) == 1 else "for each of the columns"
            rule = f"{show(name)} is not a value {of}"
            raise InvalidInput(f"facts about {show(given)}", rule, "Leave it out.")
        if found[cell] >= 0:
            rule = f"{show(name)} has two numbers"
            raise InvalidInput(f"facts about {show(given)}", rule, "Write each value once.")
        if (
            isinstance(number, bool)
            or not isinstance(number, Integral)
            or not 0 <= int(number) < _MOST_COUNT
        ):
            raise InvalidInput(
                f"facts about {show(given)}: {show(number)}",
                "a count is a whole number from 0 on",
                "Pass 1200.",
            )
        found[cell] = int(number)
    if (found < 0).any():
        cell = tuple(int(k) for k in np.argwhere(found < 0)[0])
        key = tuple(columns[i].values[k] for i, k in zip(places, cell, strict=True))
        name = show(key[0] if len(key) == 1 else key)
        rule = f"a public total must have a number for each value, and {name} has none"
        raise InvalidInput(f"facts about {show(given)}", rule, "Write 0 where there is nobody.")
    return found


def _cell(where: Sequence[Mapping[Any, int]], values: Any) -> tuple[int, ...] | None:
    """The places of a combination of values; None if it is none of these columns."""
    if not isinstance(values, tuple) or len(values) != len(where):
        return None
    found = [own.get(value_key(value), -1) for own, value in zip(where, values, strict=True)]
    return None if -1 in found else tuple(found)


def _expect_agreement(tables: Sequence[tuple[ColumnSet, Ints]], names: Sequence[str]) -> None:
    """Refuse facts that contradict each other: what two tables share must be the same in both."""
    for (one, a), (other, b) in itertools.combinations(tables, 2):
        shared = set(one) & set(other)
        sums = []
        for table, counts in ((one, a), (other, b)):
            sums.append(counts.sum(axis=tuple(k for k, i in enumerate(table) if i not in shared)))
        if not np.array_equal(*sums):
            what = " and ".join(
                ", ".join(names[i] for i in table) or "the total" for table in (one, other)
            )
            raise InvalidInput(
                f"facts about {what}", "they contradict each other", "Their sums must be equal."
            )


def _expect_possible(
    columns: Sequence[WorkloadColumn],
    table: ColumnSet,
    tables: Mapping[ColumnSet, Ints],
    mask: Bools | None,
) -> None:
    """Refuse facts that agree two by two while no rows have all of them (facts.md, Theorem 1).

    They can be so where what they share closes a circle, or where cells cannot occur.
    """
    parts = largest_sets([part for part in tables if set(part) <= set(table)])
    shape = [len(columns[i].values) for i in table]
    if (mask is None and in_order(parts) is not None) or math.prod(shape) > MOST_SOLVED:
        return
    free = np.ones(shape, bool) if mask is None else ~mask
    if not exists(table, free, {part: tables[part] for part in parts}):
        names = "; ".join(", ".join(columns[i].name for i in part) or "the total" for part in parts)
        given = f"facts about {names}" + (", with zeros= and equal=" * (mask is not None))
        rule = "they contradict each other: no rows can have all of these totals at once"
        raise InvalidInput(given, rule, "Take back one of them.")


def _patterns(
    columns: Sequence[WorkloadColumn],
    names: Sequence[str],
    largest: Sequence[ColumnSet],
    zeros: Any,
    same: Sequence[SameAs | None],
) -> list[dict[int, int]]:
    """What cannot occur, as values of measured columns: the zeros, and values that an equal column does not have."""
    found: list[dict[int, int]] = []
    for zero in _listed("zeros", zeros, 'Pass zeros=[{"sex": "m", "pregnant": True}].'):
        pattern: dict[int, int] | None = {}
        given = _pattern(columns, names, zero)
        if not any(set(measured(tuple(given), same)) <= set(table) for table in largest):
            rule = "no table of the workload holds these columns"
            raise InvalidInput(
                f"zeros about {', '.join(zero)}",
                rule,
                "Ask for a table that does, or leave them out.",
            )
        for i, place in given.items():
            twin = same[i]
            first, value = (i, place) if twin is None else (twin.column, twin.places[place])
            if pattern is None or value < 0 or pattern.setdefault(first, value) != value:
                pattern = None  # equal columns say so already
        if pattern is not None:
            found.append(pattern)
    for twin in same:
        if twin is not None:
            lost = set(range(len(columns[twin.column].values))) - set(twin.places)
            found += [{twin.column: place} for place in sorted(lost)]
    return found


def _impossible(
    columns: Sequence[WorkloadColumn],
    largest: Sequence[ColumnSet],
    patterns: Sequence[Mapping[int, int]],
) -> dict[ColumnSet, Bools]:
    """The cells of each of the largest tables that cannot occur; tables without any are left out."""
    found = {}
    for table in largest:
        mask = np.zeros([len(columns[i].values) for i in table], bool)
        for pattern in patterns:
            if set(pattern) <= set(table):
                mask[tuple(pattern.get(i, slice(None)) for i in table)] = True
        if mask.all():
            raise InvalidInput(
                "zeros= and equal=", "no combination of values is left", "Take some of them back."
            )
        if mask.any():
            found[table] = mask
    if any(columns[i].kind != "cells" for table in found for i in table):
        raise InvalidInput(
            "zeros= or equal=",
            "they are used for cells, not for ranges",
            "Leave out ranges and prefixes.",
        )
    count = sum(int(mask.sum()) for mask in found.values())
    if count > _MOST_ZEROS:
        rule = f"at most {_MOST_ZEROS:,} cells can be known to be zero; these are {count:,}"
        raise TooLarge("zeros= or equal=", rule, "Use fewer columns or zeros.")
    return found


def _listed(name: str, given: Any, hint: str) -> Sequence[Any]:
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise InvalidInput(f"{name}={show(given)}", "it is a list", hint)
    return given


def _pattern(columns: Sequence[WorkloadColumn], names: Sequence[str], zero: Any) -> dict[int, int]:
    """The places of the columns and values of a combination that cannot occur."""
    if not isinstance(zero, Mapping) or not zero:
        rule = "a combination that cannot occur is values by column"
        raise InvalidInput(
            f"zeros: {show(zero)}", rule, 'Pass zeros=[{"sex": "m", "pregnant": True}].'
        )
    found: dict[int, int] = {}
    for name, value in zero.items():
        (column,) = places_of(names, (name,), "zeros")
        place = place_of(columns[column].values, value)
        if place is None:
            raise InvalidInput(
                f"zeros: {name} = {show(value)}",
                "it is not a value of the workload",
                "Leave it out.",
            )
        found[column] = place
    return found


def _pivots(
    columns: Sequence[WorkloadColumn], patterns: Sequence[Mapping[int, int]]
) -> tuple[int, ...]:
    """For each column the place of the last value that no zero names."""
    found = []
    for i, column in enumerate(columns):
        named = {pattern[i] for pattern in patterns if i in pattern}
        free = [place for place in range(len(column.values)) if place not in named]
        if not free:
            rule = (
                "where several tables are asked for, each column needs a value that no zero names"
            )
            hint = "Take back some zeros, or ask for one table that holds all others."
            raise InvalidInput(f"zeros about all values of {column.name}", rule, hint)
        found.append(free[-1])
    return tuple(found)

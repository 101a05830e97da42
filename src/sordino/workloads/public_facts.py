"""Public facts about a workload: tables that everybody knows, combinations that cannot occur, columns that are equal.

Known tables need no noise and no price. Cells that cannot occur are made zero after the noise, by the projection that is
best for it. None of it reads data: whether facts are true is the owner's word, privacy does not hang on it (facts.md).
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sordino.errors import InvalidInput, TooLarge
from sordino.plan.names import find
from sordino.privacy.exact import show
from sordino.workloads.allocation import Allocation, ColumnSet, below
from sordino.workloads.domain import WorkloadColumn

__all__ = ["PublicFacts", "no_facts", "public_facts"]

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
_MOST_ZEROS, _MOST_COUNT = 3000, 2**50


@dataclass(frozen=True, eq=False)
class PublicFacts:
    """Known tables, and the cells of the largest table that cannot occur (None where there are none)."""

    tables: Mapping[ColumnSet, Ints]
    impossible: npt.NDArray[np.bool_] | None

    def known(self, part: ColumnSet) -> Ints | None:
        """The counts of a set of columns, if they are public."""
        for table, counts in self.tables.items():
            if set(part) <= set(table):
                return np.asarray(counts.sum(axis=tuple(k for k, i in enumerate(table) if i not in part)))
        return None

    def projected(self, allocation: Allocation, table: ColumnSet, best: Floats) -> Floats:
        """The best estimate of the largest table, given that some cells are zero (facts.md, Theorem 2)."""
        if self.impossible is None:
            return best
        cells = np.argwhere(self.impossible)
        rows = [_covariances(allocation, table, tuple(cell)) for cell in cells.tolist()]
        across = np.array([row[tuple(cells.T)] for row in rows])
        moves = np.linalg.lstsq(across, best[tuple(cells.T)], rcond=None)[0]
        found = best - np.tensordot(moves, np.array(rows), axes=1)
        found[self.impossible] = 0.0
        return np.asarray(found, np.float64)


def _covariances(allocation: Allocation, table: ColumnSet, cell: tuple[int, ...]) -> Floats:
    """The covariances of one cell's noise with those of all cells of a table; columns are flat."""
    sizes = [allocation.columns[i].size for i in table]
    found = np.zeros(sizes)
    for part in below([table]):
        if part not in allocation.precision:
            continue
        term = np.full((), 1 / float(allocation.precision[part].ravel()[0]))
        for k, i in enumerate(table):
            vector = np.full(sizes[k], -1 / sizes[k]) if i in part else np.full(sizes[k], 1 / sizes[k] ** 2)
            if i in part:
                vector[cell[k]] += 1
            term = np.multiply.outer(term, vector)
        found += term
    return found


def no_facts() -> PublicFacts:
    """Nothing is known."""
    return PublicFacts({}, None)


def public_facts(
    columns: Sequence[WorkloadColumn],
    asked: Sequence[ColumnSet],
    largest: Sequence[ColumnSet],
    facts: Any,
    zeros: Any,
    equal: Any,
    *,
    single: bool,
) -> PublicFacts:
    """The facts of a workload, checked against its columns and against each other."""
    if not (facts or zeros or equal):
        return no_facts()
    if facts and not single:
        rule = "persons with many rows are scaled down, so that counts do not add up to what is known"
        raise InvalidInput("facts=", rule, "Leave out facts, or ask about tables with one row for each person.")
    names = [column.name for column in columns]
    tables = {}
    for given, counts in _mapping("facts", facts or {}).items():
        places = _places(names, given)
        if not any(set(places) <= set(table) for table in asked):
            raise InvalidInput(f"facts about {show(given)}", "no table of the workload holds these columns", "Ask for one.")
        tables[places] = _counts(columns, places, given, counts)
    _expect_agreement(tables, names)
    impossible = _impossible(columns, names, largest, zeros or (), equal or ())
    if impossible is not None:
        for places, counts in tables.items():
            axes = tuple(k for k, i in enumerate(largest[0]) if i not in places)
            if np.any((counts > 0) & impossible.all(axis=axes)):
                what = ", ".join(names[i] for i in places)
                rule = "a public total is above zero where no combination can occur"
                raise InvalidInput(f"facts about {what}", rule, "Take back one of the two facts.")
    return PublicFacts(tables, impossible)


def _mapping(name: str, given: Any) -> Mapping[Any, Any]:
    if not isinstance(given, Mapping):
        hint = 'Pass facts={"region": {"North": 1200, "South": 900}}.'
        raise InvalidInput(f"{name}={show(given)}", "public totals are counts by value, by column", hint)
    return given


def _places(names: Sequence[str], given: Any) -> ColumnSet:
    own = () if given == () else (given,) if isinstance(given, str) else tuple(given)
    places = tuple(names.index(find("column", name, names, "")) for name in own)
    if list(places) != sorted(set(places)):
        rule = f"columns are named once, in the order of the workload: {', '.join(names)}"
        raise InvalidInput(f"facts about {show(given)}", rule, "Put them into that order.")
    return places


def _counts(columns: Sequence[WorkloadColumn], places: ColumnSet, given: Any, counts: Any) -> Ints:
    """The known table; every combination of values must have its number."""
    keys = list(itertools.product(*(columns[i].values for i in places)))
    if not places:
        counts = {(): counts} if not isinstance(counts, Mapping) else counts
    known = _mapping("facts", counts)
    found = []
    for key in keys:
        name = key[0] if len(places) == 1 else key
        if name not in known:
            rule = f"a public total must have a number for each value, and {show(name)} has none"
            raise InvalidInput(f"facts about {show(given)}", rule, "Write 0 where there is nobody.")
        number = known[name]
        if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < _MOST_COUNT:
            raise InvalidInput(
                f"facts about {show(given)}: {show(number)}", "a count is a whole number from 0 on", "Pass 1200."
            )
        found.append(number)
    if len(known) > len(keys):
        extra = next(name for name in known if name not in {k[0] if len(places) == 1 else k for k in keys})
        raise InvalidInput(f"facts about {show(given)}", f"{show(extra)} is not a value of the column", "Leave it out.")
    return np.array(found, np.int64).reshape([len(columns[i].values) for i in places])


def _expect_agreement(tables: Mapping[ColumnSet, Ints], names: Sequence[str]) -> None:
    """Refuse facts that contradict each other: what two tables share must be the same in both."""
    for (one, a), (other, b) in itertools.combinations(tables.items(), 2):
        shared = set(one) & set(other)
        sums = []
        for table, counts in ((one, a), (other, b)):
            sums.append(counts.sum(axis=tuple(k for k, i in enumerate(table) if i not in shared)))
        if not np.array_equal(*sums):
            what = " and ".join(", ".join(names[i] for i in table) or "the total" for table in (one, other))
            raise InvalidInput(f"facts about {what}", "they contradict each other", "Their sums must be equal.")


def _impossible(
    columns: Sequence[WorkloadColumn], names: Sequence[str], largest: Sequence[ColumnSet], zeros: Any, equal: Any
) -> npt.NDArray[np.bool_] | None:
    """The cells of the one largest table that cannot occur."""
    if not zeros and not equal:
        return None
    if len(largest) != 1:
        rule = f"zeros and equalities are used where one table holds all others, and here there are {len(largest)}"
        raise InvalidInput("zeros= or equal=", rule, "Ask for that table as well: tables=[[...all columns...], ...].")
    if any(columns[i].kind != "cells" for i in largest[0]):
        raise InvalidInput("zeros= or equal=", "they are used for cells, not for ranges", "Leave out ranges and prefixes.")
    (table,) = largest
    mask = np.zeros([len(columns[i].values) for i in table], bool)
    for zero in zeros:
        index: list[Any] = [slice(None)] * len(table)
        for name, value in _mapping("zeros", zero).items():
            place = names.index(find("column", name, names, ""))
            if place not in table or value not in columns[place].values:
                raise InvalidInput(f"zeros: {name} = {show(value)}", "it is not a value of the workload", "Leave it out.")
            index[table.index(place)] = columns[place].values.index(value)
        mask[tuple(index)] = True
    for pair in equal:
        one, other = (names.index(find("column", name, names, "")) for name in pair)
        grids = np.meshgrid(*(np.arange(n) for n in mask.shape), indexing="ij")
        values = [np.array([show(value) for value in columns[i].values])[grids[table.index(i)]] for i in (one, other)]
        mask |= values[0] != values[1]
    if mask.all():
        raise InvalidInput("zeros= and equal=", "no combination of values is left", "Take some of them back.")
    if mask.sum() > _MOST_ZEROS or mask.sum() * mask.size > 2**27:
        rule = f"at most {_MOST_ZEROS:,} cells can be known to be zero; these are {int(mask.sum()):,} of {mask.size:,}"
        raise TooLarge("zeros= or equal=", rule, "Leave one of two equal columns out, or use fewer columns.")
    return mask

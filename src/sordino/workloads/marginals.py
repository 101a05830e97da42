"""The answer to a workload: tables that agree with one another, with the variance and interval of every cell.

It holds nothing that was not released. Cells are whole multiples of 2^-bits of a row, so that sums are exact, in whole
numbers, fractions and (below 2^53 of them) floats alike.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from sordino.answer.answer import Answer, EstimateColumn, KeyColumn
from sordino.answer.stored import stored_value, value_of
from sordino.errors import InvalidInput
from sordino.mechanisms.combination import reach
from sordino.privacy.exact import float_upper, four_digits, show
from sordino.privacy.json_form import read, write
from sordino.privacy.neighbors import Neighbors
from sordino.privacy.wording import counted
from sordino.query.aggregates.estimates import Estimates
from sordino.query.tree import Value
from sordino.workloads.allocation import Allocation, ColumnSet, below
from sordino.workloads.contrasts import Contrasts, Kind, flat, tree
from sordino.workloads.equal_columns import SameAs, measured, product_weights, spread_out
from sordino.workloads.places import place_of, places_of
from sordino.workloads.whole_numbers import whole_tables

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from sordino.ledger.receipt import Receipt

__all__ = ["MarginalTable", "Marginals", "PublicColumn"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[Any]
_SHOWN = 20


@dataclass(frozen=True)
class PublicColumn:
    """A column of the answer: its name, all its values, what was asked of it,
    and the column before it that is equal to it.
    """

    name: str
    values: tuple[Value, ...]
    kind: Kind = "cells"
    same: SameAs | None = None

    @property
    def contrasts(self) -> Contrasts:
        """What was released of it."""
        return flat(len(self.values)) if self.kind == "cells" else tree(len(self.values))


@dataclass(frozen=True, eq=False)
class Marginals:
    """Tables over some columns, all from one charge; `marginals["age", "sex"]` is one of them.

    `asked` are the tables that were asked for; whatever lies below one of them can be had, too. `counts` and
    `precision` are of measured columns, that is of the first one where several are equal. `unit` is how many parts of a
    row were counted (1, or the weight of a person's row), `shift` the power of two of the lattice of the noise, and
    `form` says whether numbers are unbiased, or were made to be nonnegative whole numbers. `summed` names the values
    that cells are sums of, in units of `step`; without it they count rows.
    """

    columns: tuple[PublicColumn, ...]
    asked: tuple[ColumnSet, ...]
    counts: Mapping[ColumnSet, Ints]
    bits: int
    precision: Mapping[ColumnSet, Floats]
    unit: int
    shift: int
    confidence: Fraction
    privacy: str = ""
    notes: tuple[str, ...] = ()
    receipt: Receipt | None = None
    form: Literal["unbiased", "rounded"] = "unbiased"
    unbiased: Marginals | None = None
    step: Fraction = Fraction(1)
    summed: str | None = None
    _made: dict[ColumnSet, MarginalTable] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def allocation(self) -> Allocation:
        """The precision of all that was released."""
        contrasts = tuple(column.contrasts for column in self.columns)
        return Allocation(
            contrasts, self.asked, self.precision, frozenset(), Neighbors.ADD_REMOVE, self.unit
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(column.name for column in self.columns)

    @property
    def same(self) -> tuple[SameAs | None, ...]:
        """The equal column before each column, if there is one."""
        return tuple(column.same for column in self.columns)

    def __getitem__(self, names: str | Sequence[str]) -> MarginalTable:
        return self.at(self._places(names))

    def _places(self, names: str | Sequence[str]) -> ColumnSet:
        found = places_of(self.names, names, "the table")
        if len(set(found)) < len(found):
            raise InvalidInput(
                f"the table {show(names)}",
                "a column is named twice",
                "Name each column once.",
            )
        return tuple(sorted(found))

    def at(self, places: ColumnSet) -> MarginalTable:
        """The table of the columns at some places, ascending."""
        if places not in self._made:
            own = measured(places, self.same)
            within = [table for table in self.counts if set(own) <= set(table)]
            if not within:
                names = ", ".join(self.columns[i].name for i in places)
                hint = (
                    f"There are {len(self.asked)} tables, such as {self._words(self.asked[-1])}; "
                    "ask for this one as well."
                )
                raise InvalidInput(
                    f"the table of {names}", "it lies within no table of this answer", hint
                )
            best = min(within, key=lambda table: self.counts[table].size)
            axes = tuple(k for k, i in enumerate(best) if i not in own)
            cells = np.asarray(self.counts[best].sum(axis=axes) if axes else self.counts[best])
            if own != places:
                shape = [len(self.columns[i].values) for i in places]
                cells = spread_out(cells, places, shape, self.same)
            self._made[places] = MarginalTable(self, places, cells)
        return self._made[places]

    def _words(self, table: ColumnSet) -> str:
        return "(" + ", ".join(self.columns[i].name for i in table) + ")"

    def __iter__(self) -> Iterator[MarginalTable]:
        return (self.at(table) for table in self.asked)

    def __len__(self) -> int:
        return len(self.asked)

    @property
    def total(self) -> MarginalTable:
        """The number of rows: a table of one cell."""
        return self.at(())

    def rounded(self) -> Marginals:
        """Nonnegative whole numbers that add up, for readers who need them; told apart by `form`, as they are biased.

        Every half-width grows by how far the table was moved. Tables come from one table over all columns where that
        is small, else each from what it shares with others; where these close a circle it is refused (facts.md).
        """
        if self.form == "rounded":
            return self
        if self.summed is not None:
            raise InvalidInput(
                "rounded()", "sums are not counts", "Round the numbers as you like: they are yours."
            )
        whole = whole_tables(self.counts, self.bits, self._known)
        note = "Numbers were moved to nonnegative whole numbers that add up: small counts are raised, on average."
        most = max(int(cells.sum()) for cells in whole.values())
        wide = np.int64 if most < 2 ** (62 - self.bits) else object
        counts = {table: cells.astype(wide) << self.bits for table, cells in whole.items()}
        return replace(
            self, counts=counts, form="rounded", unbiased=self, notes=(note, *self.notes[1:]), _made={}
        )  # fmt: skip

    @property
    def _known(self) -> list[ColumnSet]:
        """The sets of columns whose counts have no noise: they were public."""
        found: dict[ColumnSet, None] = {}
        if () in self.precision:
            return []
        for part in below(self.counts):
            smaller = (part[:k] + part[k + 1 :] for k in range(len(part)))
            noisy = part in self.precision or any(len(self.columns[i].values) == 1 for i in part)
            if not noisy and all(one in found for one in smaller):
                found[part] = None
        return list(found)

    def with_receipt(self, receipt: Receipt) -> Marginals:
        """The same with its receipt."""
        return replace(self, receipt=receipt)

    def to_json(self) -> str:
        """As text that `from_json` reads; the same for the same answer."""
        facts = {
            "bits": self.bits, "unit": self.unit, "shift": self.shift, "form": self.form,
            "confidence": str(self.confidence), "privacy": self.privacy, "notes": list(self.notes),
            "columns": [
                {"name": c.name, "values": [stored_value(v) for v in c.values], "asked": c.kind}
                | ({} if c.same is None else {"same": [c.same.column, list(c.same.places)]})
                for c in self.columns
            ],
            "asked": [list(table) for table in self.asked],
            "counts": [[list(table), cells.ravel().tolist()] for table, cells in self.counts.items()],
            "precision": [[list(part), x.ravel().tolist()] for part, x in self.precision.items()],
        }  # fmt: skip
        if self.unbiased is not None:
            before = self.unbiased.counts.items()
            facts["before"] = [[list(table), cells.ravel().tolist()] for table, cells in before]
        if self.summed is not None:
            facts |= {"summed": self.summed, "step": str(self.step)}
        return write("marginals", 1, facts, infinite=True)

    @classmethod
    def from_json(cls, text: str, receipt: Receipt | None = None) -> Marginals:
        """A stored answer."""

        def answer(facts: dict[str, Any]) -> Marginals:
            columns = tuple(
                PublicColumn(
                    c["name"], tuple(value_of(v) for v in c["values"]), c["asked"],
                    SameAs(c["same"][0], tuple(c["same"][1])) if "same" in c else None,
                )
                for c in facts["columns"]
            )  # fmt: skip
            sizes = [len(column.values) for column in columns]
            levels = [len(column.contrasts.levels) for column in columns]
            counts, before = (
                {
                    tuple(t): _ints(cells).reshape([sizes[i] for i in t])
                    for t, cells in facts.get(name, ())
                }
                for name in ("counts", "before")
            )
            precision = {
                tuple(p): np.array(x, np.float64).reshape([levels[i] for i in p]) for p, x in facts["precision"]
            }  # fmt: skip
            found = cls(
                columns, tuple(map(tuple, facts["asked"])), counts, facts["bits"], precision, facts["unit"], facts["shift"],
                Fraction(facts["confidence"]), facts["privacy"], tuple(facts["notes"]), receipt, facts["form"],
                step=Fraction(facts.get("step", 1)), summed=facts.get("summed"),
            )  # fmt: skip
            if not before:
                return found
            unbiased = replace(found, counts=before, form="unbiased", _made={})
            return replace(found, unbiased=unbiased, _made={})

        return read(text, "marginals", 1, "answer of marginals", answer, infinite=True)

    def __str__(self) -> str:
        tables, columns = counted(len(self.asked), "table"), counted(len(self.columns), "column")
        lines = [f"{tables} over {columns}"]
        for table in itertools.islice(self.asked, _SHOWN):
            own = self.at(table)
            lines.append(
                f"  {self._words(table)}: {counted(own.cells.size, 'cell')}, each ± {four_digits(own.half_width)}"
            )
        if len(self.asked) > _SHOWN:
            lines.append(f"  and {len(self.asked) - _SHOWN:,} more")
        return "\n".join([*lines, "", *self.notes, self.privacy])

    def __repr__(self) -> str:
        return f"Marginals({counted(len(self.asked), 'table')} over {counted(len(self.columns), 'column')})"


def _ints(numbers: list[int]) -> Ints:
    return np.array(numbers, np.int64 if max(map(abs, numbers), default=0) < 2**62 else object)


@dataclass(frozen=True, eq=False, repr=False)
class MarginalTable:
    """One table: `cells` in whole multiples of 2^-bits of a row,
    an axis for each column in the order of the answer's.
    """

    answer: Marginals
    places: ColumnSet
    cells: Ints

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its columns."""
        return tuple(self.answer.columns[i].name for i in self.places)

    @property
    def measured(self) -> ColumnSet:
        """The places of its columns that were measured: one of equal ones."""
        return measured(self.places, self.answer.same)

    @property
    def values(self) -> Floats:
        """The noisy counts, or sums."""
        rows = np.ldexp(np.asarray(self.cells, np.float64), -self.answer.bits)
        return rows if self.answer.step == 1 else rows * float(self.answer.step)

    @property
    def fractions(self) -> npt.NDArray[np.object_]:
        """The same, exactly."""
        whole = 2**self.answer.bits
        exact = [int(x) * self.answer.step / whole for x in np.asarray(self.cells, object).ravel()]
        return np.array(exact, object).reshape(self.cells.shape)

    @cached_property
    def variance(self) -> Fraction:
        """The variance of a cell's noise, exactly, in squared rows or squares of what is summed.

        It is the largest one where cells of ranges differ, and that of the optimum; what rounding to lattices adds is
        less than a thousand-millionth of it (residuals.md).
        """
        own = self.answer.allocation.variance(self.measured)
        return own / self.answer.unit**2 * self.answer.step**2

    @cached_property
    def half_width(self) -> float:
        """How far a cell may be off with the answer's confidence."""
        if self.answer.unbiased is not None:
            before = self.answer.unbiased.at(self.places)
            return before.half_width + float(np.abs(self.values - before.values).max())
        return self._reach(math.sqrt(float_upper(self.variance / self.answer.step**2)), 1.0)

    def _reach(self, deviation: float, cells: float) -> float:
        """The half-width for a standard deviation in steps,
        with all that rounding can add to a sum of this many cells.
        """
        rows = half_width(self.answer, self.measured, deviation, cells)
        return (
            rows if self.answer.step == 1 else rows * float_upper(self.answer.step) * (1 + 2.0**-40)
        )

    def range(self, **ends: tuple[Value | float, Value | float]) -> Estimates:
        """The number of rows whose values lie between two values of some columns, both included; with its interval.

        Columns that are not named are summed over.
        """
        weights: list[Floats] = []
        for place in self.places:
            column = self.answer.columns[place]
            vector = np.ones(len(column.values))
            if column.name in ends:
                low, high = self._ends(column, ends[column.name])
                vector[:low], vector[high + 1 :] = 0.0, 0.0
            weights.append(vector)
        unknown = set(ends) - set(self.names)
        if unknown:
            raise InvalidInput(
                f"the column {show(min(unknown))}",
                f"the table has {', '.join(self.names)}",
                "Name one of them.",
            )
        chosen = np.ix_(*(np.flatnonzero(vector) for vector in weights))
        whole = self.cells[chosen].sum() if self.places else self.cells
        value = math.ldexp(float(whole), -self.answer.bits) * float(self.answer.step)
        sizes = [len(column.values) for column in self.answer.columns]
        own = product_weights(self.places, weights, sizes, self.answer.same)
        spread = self.answer.allocation.spread(self.measured, own)
        deviation = math.sqrt(spread) * (1 + 2.0**-40) / self.answer.unit
        if self.answer.unbiased is not None:
            before = self.answer.unbiased.at(self.places).range(**ends)
            half = float(before.half_width[0] + abs(value - before.value[0]))
            return Estimates(np.array([value]), np.array([value - half]), np.array([value + half]))
        half = self._reach(deviation, float(math.prod(int(v.sum()) for v in weights)))
        return Estimates(np.array([value]), np.array([value - half]), np.array([value + half]))

    def _ends(self, column: PublicColumn, given: Any) -> tuple[int, int]:
        """The places of the first and the last value of a range."""
        if isinstance(given, str) or not isinstance(given, Sequence) or len(given) != 2:
            rule = "a range is a first and a last value"
            raise InvalidInput(
                f"{column.name}={show(given)}", rule, "Pass age=(18, 64), for example."
            )
        low, high = (self._place(column, end) for end in given)
        if high < low:
            rule = (
                "the first value of a range comes before its last one, in the order of the column"
            )
            raise InvalidInput(f"{column.name}={show(given)}", rule, "Exchange them.")
        return low, high

    @staticmethod
    def _place(column: PublicColumn, value: Any) -> int:
        place = place_of(column.values, value)
        if place is None:
            raise InvalidInput(
                f"{column.name} = {show(value)}",
                "it is not a value of the column",
                "Name one of `columns[i].values`.",
            )
        return place

    @property
    def keys(self) -> list[tuple[Value, ...]]:
        """The values of the columns, cell by cell."""
        return list(itertools.product(*(self.answer.columns[i].values for i in self.places)))

    def to_answer(self, count: str | None = None) -> Answer:
        """The table as an answer of rows, with a column for the count (`n`) or the sum (`total`)."""
        count = count or ("n" if self.answer.summed is None else "total")
        keys, flat_cells = self.keys, self.values.ravel()
        columns: list[KeyColumn | EstimateColumn] = [
            KeyColumn(name, tuple(key[k] for key in keys)) for k, name in enumerate(self.names)
        ]
        while count in self.names:
            count += "_"
        ends = Estimates(flat_cells, flat_cells - self.half_width, flat_cells + self.half_width)
        columns.append(EstimateColumn(count, ends))
        answer = self.answer
        return Answer(
            tuple(columns), answer.privacy, answer.receipt, float(answer.confidence), answer.notes
        )

    def to_arrow(self) -> pa.Table:
        """The table with a row for each cell: values, count, and the ends of its interval."""
        return self.to_answer().to_arrow()

    def to_pandas(self) -> pd.DataFrame:
        """The same as a data frame."""
        return self.to_answer().to_pandas()

    def __str__(self) -> str:
        return str(self.to_answer())

    def __repr__(self) -> str:
        return f"MarginalTable({', '.join(self.names)}: {counted(self.cells.size, 'cell')} ± {four_digits(self.half_width)})"


def half_width(answer: Marginals, places: ColumnSet, deviation: float, cells: float = 1.0) -> float:
    """z times the deviation, and all that rounding can add: of contrasts, of large noise, of floats and of cells."""
    columns = [answer.columns[i].contrasts for i in places]
    size = math.prod(column.size for column in columns)
    unit = float(answer.unit)
    contrasts = sum(
        math.prod(answer.columns[i].contrasts.weight for i in part)
        / math.prod(answer.columns[i].contrasts.size for i in places if i not in part)
        for part in below([places])
        if part in answer.precision
    )
    rounding = cells * (
        contrasts * 2.0 ** (-1 - answer.shift) / unit + size * 2.0 ** (-1 - answer.bits)
    )
    coarse = 2.0**-29 * deviation * math.sqrt(size)
    z = float(reach("gaussian", [1.0], answer.confidence))
    return z * deviation * (1 + 2.0**-40) + rounding + coarse

"""The plan of synthetic rows: which columns in which buckets, what is measured for which part of the price; no data
seen.

What is asked of each step depends on what the steps before released, and on public facts: that is adaptive composition,
and each step's part of mu^2 is fixed here (synthesis.md).
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from fractions import Fraction
from typing import Any, Literal, Required, TypedDict, Unpack

import numpy as np
import numpy.typing as npt

from sordino.accounting.budget_share import BudgetShare
from sordino.accounting.charge import Charge
from sordino.accounting.filters import TwoMeterFilter
from sordino.answer.stored import stored_value
from sordino.errors import InvalidInput, TooLarge
from sordino.mechanisms.public_chance import PublicChance
from sordino.plan.bind import Asked
from sordino.plan.cost import Cost
from sordino.plan.explain import price_words, promise, unit_words
from sordino.plan.names import find
from sordino.plan.relations import Whose
from sordino.plan.sensitivity import WEIGHT
from sordino.plan.statement import Statement
from sordino.privacy.exact import Number as TypedNumber
from sordino.privacy.exact import four_digits, readable, show
from sordino.privacy.neighbors import Neighbors
from sordino.privacy.wording import counted
from sordino.query import tree
from sordino.query.dataset import Dataset
from sordino.query.front.python import Question
from sordino.query.front.terms import ColumnLike, condition_tree
from sordino.query.front.text import sql_text
from sordino.query.types import (
    FIRST_DAY,
    FIRST_MOMENT,
    LAST_DAY,
    LAST_MOMENT,
    Day,
    Moment,
    Number,
    Text,
    Truth,
    Type,
    default_step,
)
from sordino.workloads.allocation import ColumnSet
from sordino.workloads.counts import Counting, counting
from sordino.workloads.domain import WorkloadColumn, bind_columns
from sordino.workloads.plan import (
    MOST_CELLS,
    bounded_rows,
    charge_of,
    expect_delta,
    rows_of,
    usable_mu,
)
from sordino.workloads.synthetic import packed

__all__ = ["Shares", "SynthesisOffer", "SynthesisPlan", "SyntheticColumn", "plan_synthesis"]

_FEW_VALUES, _BUCKETS = 100, 50
_MOST_COLUMNS, _MOST_ROWS = 100, 10**7
_TRIPLES, _TRIPLE_CELLS = 30, 2**20
MOST_CLIQUE, MOST_MODEL = 10**6, 2**22
"""Cells of the largest clique of a model, and of all of them."""
Ints = npt.NDArray[Any]
Kind = Literal["int", "float", "text", "bool", "date", "datetime"]


@dataclass(frozen=True)
class Shares:
    """Which part of mu^2 each step has at most; what the first ones leave goes to the last, and all add up to one.

    Single columns get from `least` to `most` of it, by how exact they came out; a second round of selection is for data
    that are known well.
    """

    least: Fraction = Fraction(10, 100)
    most: Fraction = Fraction(40, 100)
    scores: Fraction = Fraction(5, 100)
    second: Fraction = Fraction(20, 100)
    report: Fraction = Fraction(5, 100)


class SynthesisOffer(TypedDict, total=False):
    """What is passed for synthetic rows beside the table; only `epsilon` is needed."""

    epsilon: Required[TypedNumber]
    rows: int
    columns: Sequence[str]
    where: ColumnLike
    max_rows: int


@dataclass(frozen=True, eq=False)
class SyntheticColumn:
    """A column of synthetic rows: its declared type, the buckets in which it is modelled, and the fine values in each.

    A fine value is a whole number of steps from `origin`: `first` and `last` of each bucket. A listed value is its
    place.
    """

    name: str
    kind: Kind
    modelled: WorkloadColumn
    listed: tuple[tree.Value, ...] | None
    origin: tree.Value
    step: Fraction
    first: tuple[int, ...]
    last: tuple[int, ...]

    def fine(self, places: Ints, chance: PublicChance) -> Ints:
        """Fine values of places of buckets, uniform within each; -1 where there is none."""
        missing = places >= len(self.first)
        own = np.where(missing, 0, places)
        first, last = np.array(self.first, np.int64)[own], np.array(self.last, np.int64)[own]
        return np.where(missing, -1, chance.between(first, last))

    def stored(self, fine: Ints) -> dict[str, Any]:
        """The column with its rows, as JSON."""
        listed = None if self.listed is None else [stored_value(value) for value in self.listed]
        wide = {"bits": 64} if max(self.last) >= 2**31 else {}
        return {"name": self.name, "type": self.kind, "listed": listed, "origin": stored_value(self.origin),
                "step": str(self.step), "rows": packed(fine, wide.get("bits", 32)), **wide}  # fmt: skip


@dataclass(frozen=True, eq=False)
class SynthesisPlan:
    """What is measured for synthetic rows, and the price. Printing it explains it; nothing here is from data."""

    whose: Whose
    columns: tuple[SyntheticColumn, ...]
    asked: Asked
    first: Counting
    triples: tuple[ColumnSet, ...]
    mu_squared: Fraction
    shares: Shares
    epsilon: Fraction
    delta: Fraction
    most: int
    rows: int | None
    question: str
    offer: str
    budget: BudgetShare

    @property
    def charge(self) -> Charge:
        """What all steps together take from the meters."""
        return charge_of(self.mu_squared)

    @property
    def statements(self) -> tuple[Statement, ...]:
        """What is known to run: the counts of all pairs, and those of the triples on which the rows are judged."""
        return (
            (self.first.statement, self.counting(self.triples).statement)
            if self.triples
            else (self.first.statement,)
        )

    def counting(self, tables: Sequence[ColumnSet]) -> Counting:
        """A pass over the rows that counts some tables."""
        return counting(self.asked, [column.modelled for column in self.columns], tables, self.most)

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many values each column is modelled with."""
        return tuple(len(column.modelled.values) for column in self.columns)

    @property
    def unit(self) -> int:
        """How many parts of a row are counted."""
        return 1 if self.whose.by_row else WEIGHT

    @property
    def table_squared(self) -> int:
        """The largest squared L2 distance of a table between neighbours (synthesis.md, Lemma 1)."""
        return (1 if self.whose.neighbors is Neighbors.ADD_REMOVE else 2) * (
            self.most * self.unit
        ) ** 2

    @property
    def score(self) -> int:
        """The largest move of a table's L1 distance to public counts (Lemma 2)."""
        return (1 if self.whose.neighbors is Neighbors.ADD_REMOVE else 2) * self.most * self.unit

    @property
    def promise(self) -> str:
        """What is promised about the rows, in plain words."""
        return promise(self.whose, self.epsilon, self.delta)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the rows should know."""
        notes = [
            "Synthetic rows belong to nobody: no row is that of a person, also where it looks like one."
        ]
        wide = [column.name for column in self.columns if max(column.last) >= len(column.last)]
        if wide:
            notes.append(
                f"Values of {', '.join(wide)} were put into buckets: errors are those of tables of buckets, and within "
                "one values were drawn evenly, wherever those of the data lie."
            )
        if self.whose.owner == "person" and self.whose.by_row:
            notes.append(
                "Each synthetic row stands for one person, by the features that were asked for."
            )
        if not self.whose.by_row:
            notes.append(
                f"A person counts with at most {counted(self.most, 'row')}; synthetic rows are rows, and which of them "
                "one person could have is not modelled."
            )
        return tuple(notes)

    def _repr_html_(self) -> str:
        from sordino.plan.explain import plan_card

        return plan_card(self.explain())

    def explain(self) -> str:
        """The plan in words."""
        lines = [
            f"Synthetic rows of {', '.join(self.whose.tables)}",
            f"  protects     {unit_words(self.whose)}",
        ]
        if not self.whose.by_row:
            lines.append(
                f"  bounded      each person counts as at most {counted(self.most, 'row')}"
            )
        for column, size in zip(self.columns, self.sizes, strict=True):
            fine = max(column.last) + 1
            buckets = "" if fine == len(column.first) else f" in {len(column.first)} buckets"
            lines.append(
                f"  column       {column.name}: {counted(fine, 'value')}{buckets}{' and NULL' * (size > len(column.first))}"
            )
        pairs, share = len(self.first.tables), self.shares
        least, most, scores = (
            four_digits(100 * x) for x in (share.least, share.most, share.scores)
        )
        lines.append(f"  measures     every column, for {least} to {most} % of the price")
        lines.append(
            f"  selects      some of all pairs by their distance to the model, for {scores} %, once or twice"
        )
        lines.append("  measures     the tables that were selected, for the rest")
        numbers = ((len(self.columns), "column"), (pairs, "pair"), (len(self.triples), "triple"))
        judged = ", ".join(counted(number, word) for number, word in numbers if number)
        lines.append(
            f"  judges       the rows by the errors of {judged}, for {four_digits(100 * share.report)} %"
        )
        lines.append(
            f"  rows         {'as many as there are, about' if self.rows is None else format(self.rows, ',')}"
        )
        grade = f"epsilon {readable(self.epsilon)} and delta {four_digits(self.delta)}"
        lines.append(
            f"  promise      rows and report together are differentially private with {grade}"
        )
        lines.append(f"  price        {price_words(self.budget)}")
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.explain()

    def __repr__(self) -> str:
        return f"SynthesisPlan({counted(len(self.columns), 'column')}, {self.charge})"


def plan_synthesis(
    dataset: Dataset,
    meter: TwoMeterFilter,
    table: str | Question | None,
    **asked: Unpack[SynthesisOffer],
) -> SynthesisPlan:
    """The plan of synthetic rows of one table."""
    unknown = set(asked) - set(SynthesisOffer.__annotations__)
    if unknown:
        allowed = ", ".join(SynthesisOffer.__annotations__)
        raise InvalidInput(
            f"{min(unknown)}=", "synthetic rows take no such argument", f"They take {allowed}."
        )
    cost = Cost.offered(asked.get("epsilon"), max_rows=asked.get("max_rows"))
    where = asked.get("where")
    rows, source = rows_of(dataset, table, None if where is None else condition_tree(where))
    most = bounded_rows(rows.whose, cost)
    delta = expect_delta(meter)
    wanted = _wanted(asked.get("rows"))
    known = {
        one.name: one.type
        for one in rows.relation.fields
        if one.type is not None and not one.hidden
    }
    names = _names(asked.get("columns"), known)
    columns = tuple(_column(name, known[name], rows) for name in names)
    pairs = tuple(itertools.combinations(range(len(columns)), 2)) or ((0,),)
    sizes = [len(column.modelled.values) for column in columns]
    _expect_small(columns, sizes, pairs)
    first = counting(rows, [column.modelled for column in columns], pairs, most)
    if cost.epsilon is None:
        raise AssertionError("an offer without error has an epsilon")
    mu_squared = usable_mu(cost.epsilon, delta) ** 2
    listed = tuple(tree.Output(column.name, tree.Column(column.name)) for column in columns)
    text = sql_text(replace(source, outputs=(*listed, tree.Output("n", tree.Aggregate("count"))),
                            keys=tuple(one.value for one in listed)))  # fmt: skip
    question = f"SYNTHESIZE {'as many' if wanted is None else wanted} ROWS OF {text}"
    share = BudgetShare.of(charge_of(mu_squared), meter)
    return SynthesisPlan(
        rows.whose, columns, rows, first, _sample_of_triples(sizes), mu_squared, Shares(), cost.epsilon, delta, most,
        wanted, question, str(cost), share,
    )  # fmt: skip


def _wanted(rows: Any) -> int | None:
    if rows is None:
        return None
    if isinstance(rows, bool) or not isinstance(rows, int) or not 1 <= rows <= _MOST_ROWS:
        raise InvalidInput(
            f"rows={show(rows)}",
            f"rows is a whole number from 1 to {_MOST_ROWS:,}",
            "Pass rows=10000.",
        )
    return rows


def _names(asked: Any, declared: Mapping[str, Any]) -> list[str]:
    if asked is None:
        names = list(declared)
    elif (
        isinstance(asked, str)
        or not isinstance(asked, Sequence)
        or not all(isinstance(name, str) for name in asked)
    ):
        raise InvalidInput(
            f"columns={show(asked)}", "columns are a list of names", 'Pass columns=["age", "ward"].'
        )
    else:
        names = [find("column", name, declared, "") for name in asked]
    if not names or len(set(names)) < len(names):
        raise InvalidInput(
            f"columns={show(names)}",
            "each column is named once, and there is one",
            "Name some columns.",
        )
    if len(names) > _MOST_COLUMNS:
        rule = f"at most {_MOST_COLUMNS} columns can be modelled together; these are {len(names)}"
        raise TooLarge(f"{len(names)} columns", rule, "Name those that you need.")
    return names


def _expect_small(
    columns: Sequence[SyntheticColumn], sizes: Sequence[int], pairs: Sequence[ColumnSet]
) -> None:
    cells = sum(math.prod(sizes[i] for i in pair) for pair in pairs)
    if cells > MOST_CELLS or max(sizes) ** 2 > MOST_CLIQUE:
        worst = max(range(len(sizes)), key=lambda i: sizes[i])
        rule = f"all pairs together may have at most {MOST_CELLS:,} cells, a column 1,000 values; these have {cells:,}"
        hint = (
            f"Leave out {columns[worst].name}, which has {sizes[worst]:,} values, or declare fewer."
        )
        raise TooLarge(f"{len(columns)} columns", rule, hint)


def _sample_of_triples(sizes: Sequence[int]) -> tuple[ColumnSet, ...]:
    """Some triples, evenly from all of them in a fixed order, with not too many cells."""
    every = [
        t
        for t in itertools.combinations(range(len(sizes)), 3)
        if math.prod(sizes[i] for i in t) <= _TRIPLE_CELLS
    ]
    order = sorted(every, key=lambda triple: hashlib.sha256(repr(triple).encode()).digest())
    return tuple(sorted(order[:_TRIPLES]))


def _column(name: str, kind: Type, rows: Asked) -> SyntheticColumn:
    """A declared column, in buckets where it has many values."""
    own: tree.Expression = tree.Column(name)
    match kind:
        case Text(values=None):
            rule = "synthetic rows need all values of a text to be declared"
            hint = f'Declare {name} = {{ type = "category", values = [...] }}, or name the columns that you want.'
            raise InvalidInput(f"the column {show(name)}", rule, hint)
        case Text() | Truth():
            return _listed(name, "text" if isinstance(kind, Text) else "bool", own, rows)
        case Number(values=tuple()):
            return _listed(name, "int", own, rows)
        case Number(lower=Fraction() as low, upper=Fraction() as high):
            step = kind.step or (default_step(low, high) if low < high else Fraction(1))
            whole = kind.step is not None and step.denominator == low.denominator == 1
            start = math.ceil(low / step) if kind.step else 0
            base = start * step if kind.step else low
            count = int((high - base) / step) + 1
            if count <= _FEW_VALUES and kind.step:
                return _listed(name, "int" if whole else "float", own, rows)
            width = step * -(-count // _BUCKETS)
            place = tree.Call("bucket", (own, tree.Literal(_plain(width))))
            return _bucketed(
                name, "int" if whole else "float", place, rows, base, step, count, width
            )
        case Day() | Moment():
            unit = "day" if isinstance(kind, Day) else "minute"
            span = (kind.upper - kind.lower) // (
                timedelta(days=1) if unit == "day" else timedelta(minutes=1)
            )
            if kind.lower in (FIRST_DAY, FIRST_MOMENT) or kind.upper in (LAST_DAY, LAST_MOMENT):
                rule = "the first and the last day must be declared"
                raise InvalidInput(
                    f"the column {show(name)}", rule, "Declare min and max, or name other columns."
                )
            since = tree.Call("date_diff", (tree.Literal(unit), tree.Literal(kind.lower), own))
            many = -(-(span + 1) // min(span + 1, _FEW_VALUES if span < _FEW_VALUES else _BUCKETS))
            place = tree.Call("bucket", (since, tree.Literal(many)))
            wide: Kind = "date" if unit == "day" else "datetime"
            made = _bucketed(
                name, wide, place, rows, Fraction(0), Fraction(1), span + 1, Fraction(many)
            )
            return replace(made, origin=kind.lower)
    rule = "the first and the last value must be declared"
    raise InvalidInput(
        f"the column {show(name)}", rule, f"Declare min and max of {name}, or name other columns."
    )


def _plain(width: Fraction) -> int | Fraction:
    return int(width) if width.denominator == 1 else width


def _listed(name: str, kind: Kind, own: tree.Expression, rows: Asked) -> SyntheticColumn:
    (modelled,) = bind_columns({name: own}, rows, {}, nulls=True)
    values = tuple(value for value in modelled.values if value is not None)
    places = tuple(range(len(values)))
    return SyntheticColumn(name, kind, modelled, values, None, Fraction(1), places, places)


def _bucketed(
    name: str,
    kind: Kind,
    place: tree.Expression,
    rows: Asked,
    base: Fraction,
    step: Fraction,
    count: int,
    width: Fraction,
) -> SyntheticColumn:
    """The buckets that occur, each with the numbers of the first and the last fine value in it."""
    (modelled,) = bind_columns({name: place}, rows, {}, nulls=True)
    first, last = [], []
    for value in modelled.values:
        if value is None:
            continue
        start = Fraction(value)  # type: ignore[arg-type]
        low = max(0, math.ceil((start - base) / step))
        high = min(count - 1, math.ceil((start + width - base) / step) - 1)
        first.append(low)
        last.append(max(low, high))
    return SyntheticColumn(
        name, kind, modelled, None, _plain(base), step, tuple(first), tuple(last)
    )

"""The plan of a workload: which tables, how much noise, what it costs; no data are seen.

Whatever a user can do wrong is refused here, before anything is spent or read.
"""

from __future__ import annotations

import hashlib
import itertools
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Required, TypedDict, Unpack

import numpy as np
import numpy.typing as npt

from sordino.accounting.budget_share import BudgetShare
from sordino.accounting.charge import Charge
from sordino.accounting.filters import TwoMeterFilter
from sordino.errors import InvalidInput, TooLarge
from sordino.plan.bind import Asked, ask
from sordino.plan.cost import Cost
from sordino.plan.explain import price_words, promise, unit_words
from sordino.plan.names import find
from sordino.plan.relations import Whose
from sordino.plan.sensitivity import WEIGHT
from sordino.plan.statement import Statement
from sordino.privacy.exact import Number, four_digits, positive, readable, show
from sordino.privacy.loss import largest_mu
from sordino.privacy.neighbors import Neighbors
from sordino.privacy.wording import counted
from sordino.query import tree
from sordino.query.dataset import Dataset
from sordino.query.front.python import Question
from sordino.query.front.sql import parse
from sordino.query.front.terms import ColumnLike, condition_tree, term_tree
from sordino.query.front.text import sql_text
from sordino.workloads.allocation import Allocation, ColumnSet, allocate
from sordino.workloads.contrasts import Kind
from sordino.workloads.counts import Counting, counting, largest_sets
from sordino.workloads.domain import (
    SummedColumn,
    WorkloadColumn,
    bind_columns,
    bind_sum,
    named_columns,
)
from sordino.workloads.equal_columns import equal_columns, measured
from sordino.workloads.marginals import Marginals, PublicColumn
from sordino.workloads.places import places_of
from sordino.workloads.public_facts import PublicFacts, public_facts

__all__ = ["MOST_CELLS", "MarginalsOffer", "MarginalsPlan", "Weights", "asked_kinds", "bounded_rows", "charge_of",
           "expect_delta", "plan_marginals", "plan_workload", "rows_of", "usable_mu"]  # fmt: skip

MOST_CELLS = 2**25
_MOST_TABLES, _MOST_SETS = 20_000, 200_000
_FINE = 2**15
"""Noise has a standard deviation of at least this many steps, so that rounding adds less than 1e-9 to its variance."""
_FINEST = 10**18
_LEAST_SHARE = 2**10
_SELECT = re.compile(r"\s*select\b(?!\s*$)", re.IGNORECASE)
"""A SELECT in place of a table's name; a table may be named selection."""
Weights = Mapping[Any, Any] | Callable[[tuple[str, ...], int], Any]
"""By table (a name or a tuple of names), or as a function of its names and number of cells."""


class MarginalsOffer(TypedDict, total=False):
    """What is passed beside the columns of a workload; `epsilon` and one of `ways` and `tables` are needed."""

    epsilon: Required[Number]
    ways: int
    tables: Sequence[Sequence[str]]
    table: str | Question
    where: ColumnLike
    sum: ColumnLike
    weights: Weights
    ranges: Sequence[str]
    prefixes: Sequence[str]
    confidence: Number
    max_rows: int
    facts: Mapping[Any, Any]
    zeros: Sequence[Mapping[str, Any]]
    equal: Sequence[Sequence[str]]


@dataclass(frozen=True, eq=False)
class MarginalsPlan:
    """What is counted, the noise of each part, and the price. Printing it explains it; nothing here is from data."""

    whose: Whose
    columns: tuple[WorkloadColumn, ...]
    asked: tuple[ColumnSet, ...]
    allocation: Allocation
    counting: Counting
    epsilon: Fraction
    delta: Fraction
    confidence: Fraction
    rows: int
    question: str
    offer: str
    budget: BudgetShare
    facts: PublicFacts
    summed: SummedColumn | None = None

    @property
    def charge(self) -> Charge:
        """What it takes from the meters."""
        return charge_of(self.allocation.mu_squared)

    @property
    def statements(self) -> tuple[Statement, ...]:
        """All that runs: one pass over the rows."""
        return (self.counting.statement,)

    @property
    def unit(self) -> int:
        """How many parts of a row are counted."""
        return 1 if self.whose.by_row else WEIGHT

    @cached_property
    def shift(self) -> int:
        """Counts are multiplied by this power of two before noise is added, which rounds to whole numbers."""
        smallest = min(
            (float(np.sqrt(self._squares(part) / x).min()) for part, x in self._parts),
            default=float(_FINE),
        )
        return max(0, math.ceil(math.log2(_FINE / smallest)))

    @property
    def _parts(self) -> list[tuple[ColumnSet, npt.NDArray[np.float64]]]:
        return [(part, x) for part, x in self.allocation.precision.items() if x.size]

    def _squares(self, part: ColumnSet) -> float:
        return float(math.prod(int(self.allocation.columns[i].squares.min()) for i in part))

    @cached_property
    def bits(self) -> int:
        """Published counts are whole multiples of 2^-bits of a row:
        finer than a thousandth of any standard deviation.
        """
        tables = [measured(table, self.facts.same) for table in self.asked]
        size = max(math.prod(len(self.columns[i].values) for i in table) for table in tables)
        spreads = [float(self.allocation.variance(table)) for table in tables]
        smallest = math.sqrt(min((spread for spread in spreads if spread), default=1.0)) / self.unit
        return max(10, math.ceil(math.log2(_LEAST_SHARE * size / max(smallest, 2.0**-10))))

    @property
    def promise(self) -> str:
        """What is promised about the answer, in plain words."""
        return promise(self.whose, self.epsilon, self.delta)

    @property
    def step(self) -> Fraction:
        """The unit of the numbers: a row, or a step of what is summed."""
        return Fraction(1) if self.summed is None else self.summed.grid.step

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the answer should know about its numbers."""
        notes = ["All tables agree: every sum over a column is the other table, exactly. Numbers are unbiased, may be "
                 "negative, and are not rounded to whole numbers."]  # fmt: skip
        if not self.whose.by_row:
            notes.append(
                f"Bounded: in all tables together each person counts as at most {counted(self.rows, 'row')}. "
                "Intervals cover the noise, not what bounding changes."
            )
        if self.summed is not None:
            notes.append(f"Sums of {self.summed.name}, of which each row's value counts from {self.summed.limits}; rows "
                         "without a value add nothing.")  # fmt: skip
        if self.facts.tables:
            notes.append("Public totals were taken as they were declared: nothing was spent on them, and no interval tells "
                         "whether they are true.")  # fmt: skip
        if self.facts.impossible:
            notes.append("Cells that cannot occur were made zero after the noise; intervals are those of before, which hold "
                         "and are wider than need be.")  # fmt: skip
        for column, twin in zip(self.columns, self.facts.same, strict=True):
            if twin is not None:
                first = self.columns[twin.column].name
                notes.append(f"{column.name} was taken to be equal to {first} and not looked at: its tables are those, "
                             "and no interval tells whether that is true.")  # fmt: skip
        pairs = zip(self.columns, self.facts.same, strict=True)
        names = [one.name for one, twin in pairs if twin is None and None not in one.values]
        if names:
            notes.append(f"Rows without a value of {', '.join(names)} count nowhere.")
        return tuple(notes)

    def answered(self, counts: Mapping[ColumnSet, Any], notes: Sequence[str] = ()) -> Marginals:
        """The answer that published counts make."""
        columns = tuple(
            PublicColumn(c.name, c.values, c.kind, twin)
            for c, twin in zip(self.columns, self.facts.same, strict=True)
        )
        kept = {table: counts[table] for table in self.counting.tables}
        return Marginals(
            columns, self.asked, kept, self.bits, self.allocation.precision, self.unit, self.shift, self.confidence,
            self.promise, (*self.notes, *notes), step=self.step, summed=None if self.summed is None else self.summed.name,
        )  # fmt: skip

    @cached_property
    def example(self) -> Marginals:
        """An answer full of zeros: it knows the variance and interval that every cell will have."""
        shapes = zip(self.counting.tables, self.counting.shapes, strict=True)
        return self.answered({table: np.zeros(shape, np.int64) for table, shape in shapes})

    def errors(self) -> dict[tuple[str, ...], float]:
        """The half-width that every cell of each table will have."""
        return {table.names: table.half_width for table in self.example}

    def _repr_html_(self) -> str:
        from sordino.plan.explain import plan_card

        return plan_card(self.explain())

    def explain(self) -> str:
        """The plan in words."""
        lines = [
            f"Marginals of {', '.join(self.whose.tables)}",
            f"  protects     {unit_words(self.whose)}",
        ]
        if not self.whose.by_row:
            lines.append(
                f"  bounded      each person counts as at most {counted(self.rows, 'row')} in all tables together"
            )
        for column in self.columns:
            asked = "" if column.kind == "cells" else f", for {column.kind}"
            lines.append(
                f"  column       {column.name}: {counted(len(column.values), 'value')}{asked}"
            )
        for column, twin in zip(self.columns, self.facts.same, strict=True):
            if twin is not None:
                first = self.columns[twin.column].name
                lines.append(f"  equal        {column.name} is {first}: one of them is measured")
        if self.summed is not None:
            lines.append(f"  sums         {self.summed.name}, each row from {self.summed.limits}")
        cells = sum(math.prod(len(self.columns[i].values) for i in table) for table in self.asked)
        lines.append(
            f"  tables       {len(self.asked):,} with {counted(cells, 'cell')}, from one pass over the rows"
        )
        shown = list(self.errors().items())
        percent = four_digits(100 * self.confidence)
        for names, error in shown[:8]:
            what = ", ".join(names) or "the total"
            lines.append(
                f"  error        {what}: each cell ± {four_digits(error)}, {percent} % of the time"
            )
        if len(shown) > 8:
            least, most = min(self.errors().values()), max(self.errors().values())
            lines.append(
                f"  error        all tables: from ± {four_digits(least)} to ± {four_digits(most)}"
            )
        lines.append(
            "  mechanism    gaussian noise on the contrasts of all sets of columns, optimal for these weights"
        )
        grade = f"epsilon {readable(self.epsilon)} and delta {four_digits(self.delta)}"
        lines.append(f"  promise      all tables together are differentially private with {grade}")
        lines.append(f"  price        {price_words(self.budget)}")
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.explain()

    def __repr__(self) -> str:
        tables, columns = counted(len(self.asked), "table"), counted(len(self.columns), "column")
        return f"MarginalsPlan({tables} over {columns}, {self.charge})"


def charge_of(mu_squared: Fraction) -> Charge:
    """The charge of Gaussian noise, rounded up to a short fraction."""
    if not mu_squared:
        return Charge(Fraction(0), Fraction(0), Fraction(0))
    short = Fraction(math.ceil(mu_squared * _FINEST), _FINEST)
    return Charge(None, short, short / 2)


def usable_mu(epsilon: Fraction, delta: Fraction) -> Fraction:
    """A short fraction just below the largest mu of a guarantee, so that its square, rounded up, is still within it."""
    mu = largest_mu(epsilon, delta)
    scale = 10 ** max(13, 13 + math.ceil(-math.log10(float(mu))))
    return Fraction(math.floor(mu * scale) - 1, scale)


def rows_of(
    dataset: Dataset, table: str | Question | None, where: tree.Expression | None = None
) -> tuple[Asked, tree.Query]:
    """The rows of one protected table, or those that a question or a SELECT makes of tables;
    and the question for them.
    """
    if isinstance(table, Question):
        derived = table.rows
        if derived.items or derived.keys is not None or derived.distinct:
            query = tree.Query(tree.Subquery(derived, "derived"), (), where)
        else:
            both = tuple(one for one in (derived.where, where) if one is not None)
            query = tree.Query(
                derived.source,
                (),
                tree.Call("and", both) if len(both) > 1 else next(iter(both), None),
            )
        return ask(query, dataset), query
    if table is None:
        protected = [one.name for one in dataset.tables.values() if not one.public]
        if len(protected) != 1:
            rule = f"a workload is about one table, and this dataset protects {len(protected)}"
            raise InvalidInput(
                "a workload without a table", rule, f"Pass table=, one of {', '.join(protected)}."
            )
        table = protected[0]
    if not isinstance(table, str):
        hint = "Pass 'visits' or the like, a SELECT, or rows such as session.table('visits').per_person(...)."
        raise InvalidInput(f"table={show(table)}", "a table is named by a text", hint)
    if _SELECT.match(table):
        made = parse(f"SELECT COUNT(*) AS n FROM ({table}) AS derived")  # noqa: S608  a closed tree, of which only rows stay
        if not isinstance(made.source, tree.Subquery) or made != tree.Query(
            made.source, made.outputs
        ):
            raise InvalidInput(
                f"table={show(table)}",
                "it is one SELECT",
                "Leave out brackets that do not belong to it.",
            )
        query = tree.Query(made.source, (), where)
        return ask(query, dataset), query
    query = tree.Query(tree.Table(find("table", table, dataset.tables, "")), (), where)
    return ask(query, dataset), query


def bounded_rows(whose: Whose, cost: Cost) -> int:
    """How many rows of one person count in all tables together; 1 where a person has no more."""
    if whose.public:
        rule = "a public table protects nobody, so that its tables need no noise"
        raise InvalidInput(f"the table {', '.join(whose.tables)}", rule, "Count its rows directly.")
    if whose.by_row:
        return 1
    for name, bound in cost.bounds.given.items():
        owner = whose.bounds.given.get(name)
        if owner is not None and bound > owner:
            rule = f"the owner allows {name} = {owner:,}, and a question may only tighten it"
            raise InvalidInput(f"{name}={bound:,}", rule, f"Pass {name}={owner} or less.")
    total = whose.bounds.within(cost.bounds).total
    if total is None:
        rule = (
            "a person can be in any number of rows here, and nothing bounds how many of them count"
        )
        raise InvalidInput(
            "a workload without max_rows",
            rule,
            "Declare max_rows of the table, or pass max_rows=10.",
        )
    return total


def expect_delta(meter: TwoMeterFilter) -> Fraction:
    """The delta of Gaussian noise; refused where the budget has none."""
    if not meter.free_delta:
        rule = (
            "workloads have Gaussian noise, which needs a delta, and this budget has none to spare"
        )
        raise InvalidInput("delta = 0", rule, "Set delta in [budget], or ask for single tables.")
    return meter.free_delta


def plan_marginals(
    meter: TwoMeterFilter,
    source: tree.Query,
    rows: Asked,
    columns: Mapping[str, tree.Expression],
    cost: Cost,
    *,
    ways: int | None = None,
    tables: Sequence[Sequence[str]] | None = None,
    weights: Weights | None = None,
    kinds: Mapping[str, Kind] | None = None,
    nulls: bool = True,
    facts: Mapping[Any, Any] | None = None,
    zeros: Sequence[Mapping[str, Any]] = (),
    equal: Sequence[Sequence[str]] = (),
    summed: tree.Expression | None = None,
) -> MarginalsPlan:
    """The plan of a workload: all tables of `ways` columns, or the given ones, at a cost."""
    if cost.epsilon is None:
        raise InvalidInput(
            "error=",
            "a workload is priced by its epsilon",
            "Pass epsilon=; the plan tells the errors.",
        )
    if cost.mechanism == "laplace":
        raise InvalidInput(
            'mechanism="laplace"', "workloads have Gaussian noise", "Leave out mechanism."
        )
    most = bounded_rows(rows.whose, cost)
    delta = expect_delta(meter)
    names = tuple(columns)
    if not names:
        raise InvalidInput(
            "columns=[]", "a workload needs a column", 'Pass columns=["ward"] or the like.'
        )
    bound = bind_columns(columns, rows, kinds or {}, nulls=nulls)
    asked = _asked(names, ways, tables)
    _expect_small(bound, asked)
    given = _weights(names, bound, asked, weights)
    unit = 1 if rows.whose.by_row else WEIGHT
    mu = usable_mu(cost.epsilon, delta)
    contrasts = [column.contrasts for column in bound]
    same = equal_columns(bound, equal or ())
    needs: dict[ColumnSet, float] = {}
    for table, weight in given.items():
        own = measured(table, same)
        needs[own] = needs.get(own, 0.0) + weight
    largest = largest_sets(list(needs))
    value = None if summed is None else bind_sum(summed, rows)
    if value is not None:
        _expect_summable(value, rows.whose, facts)
    known = public_facts(bound, largest, facts, zeros, same, single=rows.whose.by_row)
    kinds_of = [c.kind for c in bound]
    reach = most * unit * (1 if value is None else value.largest)
    found = allocate(contrasts, kinds_of, needs, rows.whose.neighbors, reach, mu, known.tables)
    if not found.precision:
        raise InvalidInput(
            "facts=", "all tables are public already", "Ask for a table that is not."
        )
    firsts = [bound[i if twin is None else twin.column] for i, twin in enumerate(same)]
    count = counting(rows, firsts, largest, most, None if value is None else value.steps)
    listed = None if ways is not None else [tuple(names[i] for i in table) for table in asked]
    aggregate = tree.Aggregate("count") if summed is None else tree.Aggregate("sum", (summed,))
    question = _text(source, columns, listed or ways or 0, given, kinds or {}, aggregate)
    if known.tables or known.impossible or any(same):
        question += f" GIVEN {show((facts, list(zeros), list(equal)))} {_digest(known)}"
    charge = charge_of(found.mu_squared)
    return MarginalsPlan(
        rows.whose, bound, asked, found, count, cost.epsilon, delta, cost.confidence, most, question, str(cost),
        BudgetShare.of(charge, meter), known, value,
    )  # fmt: skip


def asked_kinds(ranges: Sequence[str], prefixes: Sequence[str]) -> dict[str, Kind]:
    """What is asked of columns beside their cells."""
    found: dict[str, Kind] = {}
    kinds: tuple[tuple[Kind, Sequence[str]], ...] = (("ranges", ranges), ("prefixes", prefixes))
    for kind, names in kinds:
        if (
            isinstance(names, str)
            or not isinstance(names, Sequence)
            or not all(isinstance(name, str) for name in names)
        ):
            raise InvalidInput(
                f"{kind}={show(names)}",
                "it is a list of columns",
                f'Pass {kind}=["age"] or the like.',
            )
        found |= dict.fromkeys(names, kind)
    return found


def plan_workload(
    dataset: Dataset,
    meter: TwoMeterFilter,
    columns: Sequence[ColumnLike] | Mapping[str, ColumnLike],
    **asked: Unpack[MarginalsOffer],
) -> MarginalsPlan:
    """The plan of a workload about one declared table."""
    unknown = set(asked) - set(MarginalsOffer.__annotations__)
    if unknown:
        known = ", ".join(MarginalsOffer.__annotations__)
        raise InvalidInput(
            f"{min(unknown)}=", "marginals take no such argument", f"They take {known}."
        )
    cost = Cost.offered(
        asked.get("epsilon"),
        confidence=asked.get("confidence", 0.95),
        max_rows=asked.get("max_rows"),
    )
    where = asked.get("where")
    rows, source = rows_of(
        dataset, asked.get("table"), None if where is None else condition_tree(where)
    )
    return plan_marginals(
        meter, source, rows, named_columns(columns), cost,
        ways=asked.get("ways"), tables=asked.get("tables"), weights=asked.get("weights"),
        kinds=asked_kinds(asked.get("ranges", ()), asked.get("prefixes", ())),
        facts=asked.get("facts"), zeros=asked.get("zeros", ()), equal=asked.get("equal", ()),
        summed=None if asked.get("sum") is None else term_tree(asked["sum"]),
    )  # fmt: skip


def _expect_summable(value: SummedColumn, whose: Whose, facts: Any) -> None:
    """Refuse sums of which the bounds of residuals.md do not speak, and public totals, which are counts."""
    if whose.neighbors is Neighbors.REPLACE and value.grid.first < 0:
        rule = "a sum in many tables needs values from 0 on where persons are replaced"
        raise InvalidInput(
            f"sum of {value.name}",
            rule,
            f"Ask for GREATEST({value.name}, 0), or for single tables.",
        )
    if facts:
        rule = "public totals are counts of rows, and these tables hold sums"
        raise InvalidInput("facts=", rule, "Leave out facts, or sum=.")


def _asked(names: Sequence[str], ways: Any, tables: Any) -> tuple[ColumnSet, ...]:
    """The tables, each as places of columns, the smaller ones first."""
    if (ways is None) == (tables is None):
        hint = 'Pass ways=2 for all pairs, or tables=[["age", "sex"], ["ward"]].'
        raise InvalidInput(
            f"ways={show(ways)}, tables={show(tables)}",
            "a workload has either ways or tables",
            hint,
        )
    if ways is not None:
        if isinstance(ways, bool) or not isinstance(ways, int) or not 0 <= ways <= len(names):
            rule = f"ways is a whole number from 0 to the number of columns, here {len(names)}"
            raise InvalidInput(
                f"ways={show(ways)}", rule, f"Pass ways={min(2, len(names))}, for example."
            )
        if math.comb(len(names), ways) > _MOST_TABLES:
            rule = f"at most {_MOST_TABLES:,} tables can be asked for; these are {math.comb(len(names), ways):,}"
            raise TooLarge(
                f"ways={ways} of {len(names)} columns", rule, "Ask for fewer columns or ways."
            )
        return tuple(itertools.combinations(range(len(names)), ways))
    if isinstance(tables, str) or not isinstance(tables, Sequence) or not tables:
        raise InvalidInput(
            f"tables={show(tables)}", "tables are lists of columns", 'Pass tables=[["age", "sex"]].'
        )
    if len(tables) > _MOST_TABLES:
        raise TooLarge(
            f"{len(tables):,} tables",
            f"at most {_MOST_TABLES:,} can be asked for",
            "Ask for fewer.",
        )
    found: dict[ColumnSet, None] = {}
    for table in tables:
        places = places_of(names, table, "tables")
        if len(set(places)) < len(places):
            raise InvalidInput(
                f"the table {show(list(table))}",
                "a column is named twice",
                "Name each column once.",
            )
        found[tuple(sorted(places))] = None
    return tuple(sorted(found, key=lambda one: (len(one), one)))


def _expect_small(columns: Sequence[WorkloadColumn], asked: Sequence[ColumnSet]) -> None:
    """Refuse tables with very many cells, and say which column to put into buckets."""
    largest = largest_sets(asked)
    sizes = {table: math.prod(len(columns[i].values) for i in table) for table in largest}
    cells = sum(sizes.values())
    if cells > MOST_CELLS:
        worst = max(sizes, key=lambda table: sizes[table])
        column = max((columns[i] for i in worst), key=lambda one: len(one.values))
        rule = f"all tables together may have at most {MOST_CELLS:,} cells; these have {cells:,}"
        hint = f"Put {column.name}, which has {len(column.values):,} values, into buckets, or ask for fewer ways."
        raise TooLarge(f"the table of {', '.join(columns[i].name for i in worst)}", rule, hint)
    if sum(2 ** len(table) for table in largest) > _MOST_SETS:
        rule = f"at most {_MOST_SETS:,} sets of columns lie below all tables"
        raise TooLarge(
            f"tables of {max(map(len, largest))} columns", rule, "Ask for fewer columns at once."
        )


def _weights(
    names: Sequence[str],
    columns: Sequence[WorkloadColumn],
    asked: Sequence[ColumnSet],
    given: Weights | None,
) -> dict[ColumnSet, float]:
    """How much the mean variance of each table counts: 1,
    or what is given by table or by a function of names and cells.
    """
    found = dict.fromkeys(asked, 1.0)
    if given is None:
        return found
    if callable(given):
        for table in asked:
            size = math.prod(len(columns[i].values) for i in table)
            try:
                weight = given(tuple(names[i] for i in table), size)
            except Exception as error:
                rule = f"it failed for {show(tuple(names[i] for i in table))} ({error})"
                hint = "Pass a function of a table's names and number of cells."
                raise InvalidInput("weights", rule, hint) from error
            found[table] = _weight(weight)
        return found
    if not isinstance(given, Mapping):
        raise InvalidInput(
            f"weights={show(given)}",
            "weights are numbers by table",
            'Pass weights={("age", "sex"): 4}.',
        )
    for key, weight in given.items():
        places = tuple(sorted(places_of(names, key, "weights")))
        if places not in found:
            raise InvalidInput(
                f"the weight of {show(key)}", "no such table is asked for", "Name a table that is."
            )
        found[places] = _weight(weight)
    return found


def _weight(given: Any) -> float:
    weight = float(positive("weight", given).lower)
    if not 1e-9 <= weight <= 1e12:
        raise InvalidInput(
            f"weight={show(given)}", "weights lie between 1e-9 and 1e12", "Pass 4, for example."
        )
    return weight


def _digest(known: PublicFacts) -> str:
    """Tells facts apart whose text is cut."""
    parts = [repr((table, counts.tolist())) for table, counts in sorted(known.tables.items())]
    parts += [repr((table, mask.tolist())) for table, mask in known.impossible.items()]
    parts.append(repr(known.same))
    return hashlib.sha256("|".join(parts).encode()).hexdigest()[:16]


def _text(
    source: tree.Query,
    columns: Mapping[str, tree.Expression],
    tables: Sequence[tuple[str, ...]] | int,
    weights: Mapping[ColumnSet, float],
    kinds: Mapping[str, Kind],
    aggregate: tree.Aggregate,
) -> str:
    """The question as one text, for the ledger."""
    count = tree.Output("n", aggregate)
    keys = tuple(columns.values())
    outputs = tuple(tree.Output(name, value) for name, value in columns.items())
    base = sql_text(replace(source, outputs=(*outputs, count), keys=keys))
    sets = (
        f"all of {tables} columns"
        if isinstance(tables, int)
        else "; ".join(", ".join(map(show, t)) for t in tables)
    )
    unequal = (
        ""
        if len(set(weights.values())) < 2
        else f" WEIGHTS {', '.join(repr(x) for x in weights.values())}"
    )
    ranges = f" {dict(kinds)}" if kinds else ""
    return f"MARGINALS ({sets}) OF {base}{unequal}{ranges}"

"""What public tables hold, read for the planner: they protect nobody, so that their values are as public as a
declaration.

Columns without declared values or bounds get those of the table itself, and its rows tell which keys belong together.
So GROUP BY the name of a public row answers every name, without selection and without a delta: relations.md, Theorem
3.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from typing import Any

from sqlglot import exp

from sordino.engines.engine import Run
from sordino.engines.openers import opener_of
from sordino.errors import EngineFailed
from sordino.plan.bind import public_scan
from sordino.plan.fragments import column, named, not_null, select, source
from sordino.plan.rows import public_rows, select_rows
from sordino.plan.statement import Statement, Values
from sordino.query import tree
from sordino.query.columns import measured
from sordino.query.dataset import Column, Contents, Dataset, Table
from sordino.query.meaning import nodes, reading
from sordino.query.same_name import folded
from sordino.query.tree import Query, Source
from sordino.query.types import (
    FIRST_DAY,
    FIRST_MOMENT,
    LARGEST,
    LAST_DAY,
    LAST_MOMENT,
    Day,
    Moment,
    Number,
    Text,
    Truth,
    Type,
)

__all__ = ["MOST_VALUES", "completed", "public_tables", "read_public_tables"]

MOST_VALUES = 100_000
"""A column with more values stays as it was declared: its keys are selected privately if they are text."""

_PINNED = ("parquet", "csv", "duckdb", "frame")
"""Sources that are looked at before each charge, and refused once they changed (gate.md, A5)."""


def read_public_tables(dataset: Dataset, query: Query) -> Dataset:
    """The dataset completed by the public tables that a question reads; no other table is opened."""
    public = public_tables(dataset, query)
    if not public:
        return dataset
    with closing(opener_of(public)(public)) as engine:
        return dataset.with_tables(
            {**dataset.tables, **{table.name: completed(table, engine.run) for table in public}}
        )


def public_tables(dataset: Dataset, query: Query) -> list[Table]:
    """The public tables among those that a question reads."""
    names = {folded(name) for name in _named(query.source)}
    return [
        table for name, table in dataset.tables.items() if table.public and folded(name) in names
    ]


def _named(source: Source) -> Iterator[str]:
    match source:
        case tree.Table(table):
            yield table
        case tree.Join(left, right):
            yield from _named(left)
            yield from _named(right)
        case tree.Subquery(tree.Rows(inner)):
            yield from _named(inner)
        case tree.Subquery(tree.UnionAll(parts)):
            for part in parts:
                yield from _named(part.source)


def completed(table: Table, run: Run, *, held: bool = False) -> Table:
    """A public table with the types that its cells have, and its rows; as it was declared where the engine fails, which
    its contents tell: the next question tries again.

    `run` is that of an engine that has opened the table; one that is `held` there stays as it is. Privacy: it is the
    same for neighbours (relations.md, Theorem 3).
    """
    try:
        types = {
            name: _type(table, name, declared, run) for name, declared in table.columns.items()
        }
        texts = [
            name
            for name, found in types.items()
            if isinstance(found, Text) and found.values is None
        ]
        empty = frozenset(
            name for name in texts if _ends(table, _cell(table, name), run)[0] is None
        )
        filled = frozenset(
            name for name, found in types.items() if found != table.columns[name].type
        )
        columns = {
            name: replace(declared, type=types[name]) for name, declared in table.columns.items()
        }
        known = replace(table, columns=columns)
        pinned = held or table.source.kind in _PINNED
        unique = pinned and bool(table.key) and not _shares_key(known, run)
        contents = _contents(known, filled, run, unique=unique)
        return replace(known, contents=replace(contents, empty=empty, unique=unique, held=held))
    except (
        EngineFailed
    ):  # for want of memory: its words are about a charge, and nothing was charged
        return replace(table, contents=Contents((), (), failed=True))


def _cell(table: Table, name: str) -> exp.Expr:
    return reading.read(table.columns[name], column(name, table.name)).sql


def _type(table: Table, name: str, declared: Column, run: Run) -> Type:
    """What is public of a column: as declared, else as the cells are."""
    cell = column(name, table.name)
    match declared.type:
        case Text(values=None) as text:
            texts = _values(table, reading.read(declared, cell).sql, run)
            if not texts or any("\0" in one for one in texts):
                return text
            return replace(
                text, values=tuple(sorted(texts)), longest=text.longest or max(map(len, texts))
            )
        # keys are compared as the other side's are
        case Number(lower=None, upper=None) as number if name not in table.key:
            if declared.kind == "int":
                return _whole(number, table, cell, run)
            return measured(
                number, *_ends(table, nodes.finite(reading.read(declared, cell).sql), run)
            )
        case Day(lower=first, upper=last) as day if (first, last) == (FIRST_DAY, LAST_DAY):
            low, high = _ends(table, reading.read(declared, cell).sql, run)
            return day if low is None else replace(day, lower=low, upper=high)
        case Moment(lower=start, upper=end) as moment if (start, end) == (
            FIRST_MOMENT,
            LAST_MOMENT,
        ):
            low, high = _ends(table, reading.read(declared, cell).sql, run)
            return moment if low is None else replace(moment, lower=low, upper=high)
        case other:
            return other


def _whole(number: Number, table: Table, cell: exp.Expr, run: Run) -> Number:
    values = _values(table, cell, run)
    low, high = (min(values), max(values)) if values else _ends(table, cell, run)
    if low is None or max(abs(low), abs(high)) >= LARGEST:
        return number
    listed = tuple(sorted(values)) if values else None
    return replace(
        number, lower=Fraction(low), upper=Fraction(high), step=Fraction(1), values=listed
    )


def _values(table: Table, cell: exp.Expr, run: Run) -> list[Any] | None:
    """The different values of a column, NULL aside; None if they are too many."""
    cells = select([named(cell.copy(), "k0")], source(table.name))
    found = select([column("k0")], cells, "r", group=["k0"]).limit(MOST_VALUES + 2, copy=False)
    ((values,)) = run(Statement(found, 1, 0)).keys
    present = [value for value in values if value is not None]
    return present if len(present) <= MOST_VALUES else None


def _ends(table: Table, cell: exp.Expr, run: Run) -> tuple[Any, Any]:
    """The least and the greatest value of a column; None where it has none."""
    cells = select([named(cell.copy(), "c")], source(table.name))
    ends = [named(exp.Min(this=column("c")), "k0"), named(exp.Max(this=column("c")), "k1")]
    low, high = run(Statement(select(ends, cells, "r"), 2, 0)).keys
    return low[0], high[0]


def _shares_key(table: Table, run: Run) -> bool:
    """Whether two rows have the same cleaned key; NULL is none."""
    scan, lists = public_scan(table), dict[str, Values]()
    keys = [field.alias for field in scan.fields if field.name in table.key]
    several = exp.GT(this=exp.Count(this=exp.Star()), expression=exp.Literal.number(1))
    whole, rows = list(map(not_null, keys)), select_rows(scan, keys, lists)
    found = select([named(exp.true(), "k0")], rows, "r", where=whole, group=keys)
    return bool(run(Statement(found.having(several).limit(1), 1, 0, lists)).keys[0])


def _contents(table: Table, filled: frozenset[str], run: Run, *, unique: bool = False) -> Contents:
    """All rows, and those that a look by the key finds, in the columns whose values are known; none if they are too
    many.

    They are the same rows but where two share a key, of which a look takes the least of each column.
    """
    scan = public_scan(table)
    known = [field for field in scan.fields if _is_key(field.type)]
    if not known:
        return Contents((), (), filled)
    aliases = [field.alias for field in known]
    rows: dict[tuple[Any, ...], None] = {}
    for keys in ((), table.key) if table.key and not unique else ((),):
        wanted = [field.alias for field in scan.fields if field in known or field.name in keys]
        lists: dict[str, Values] = {}
        cells = public_rows(scan, wanted, lists) if keys else select_rows(scan, wanted, lists)
        found = select([*map(column, aliases)], cells, "p", group=aliases).limit(
            MOST_VALUES + 1, copy=False
        )
        rows |= dict.fromkeys(zip(*run(Statement(found, len(aliases), 0, lists)).keys, strict=True))
    names = tuple(field.name for field in known)
    return (
        Contents(names, tuple(rows), filled)
        if len(rows) <= MOST_VALUES
        else Contents((), (), filled)
    )


def _is_key(kind: Type | None) -> bool:
    match kind:
        case Text(values=tuple()) | Truth() | Day():
            return True
        case Number() as number:
            return number.integral
        case _:
            return False

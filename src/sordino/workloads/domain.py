"""The columns of a workload: all values of each are public, and each row has the place of its value.

A row whose value is missing has a place of its own (NULL) where the column may be NULL, and counts nowhere otherwise.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from sqlglot import exp

from sordino.errors import InvalidInput, TooLarge
from sordino.plan.bind import Asked
from sordino.plan.fragments import whole
from sordino.plan.names import find
from sordino.privacy.exact import readable, show
from sordino.query import tree
from sordino.query.aggregates.argument import Argument
from sordino.query.aggregates.grid import Grid
from sordino.query.front.names import distinct_names
from sordino.query.front.shapes import children
from sordino.query.front.terms import ColumnLike, term_tree
from sordino.query.meaning import nodes
from sordino.query.meaning.domains import domain
from sordino.query.meaning.expressions import key_index, typed
from sordino.query.meaning.finite import size_of
from sordino.query.same_name import folded
from sordino.query.typed import Typed
from sordino.query.types import Number, Text
from sordino.workloads.contrasts import Contrasts, Kind, flat
from sordino.workloads.contrasts import tree as hierarchy

__all__ = ["MOST_VALUES", "SummedColumn", "WorkloadColumn", "bind_columns", "bind_sum", "named_columns",
           "places_of"]  # fmt: skip

MOST_VALUES = 5000
"""Of one column."""
_MOST_STEPS = 2**30
"""Of a value that is summed; a finer step is made coarser."""


@dataclass(frozen=True, eq=False)
class WorkloadColumn:
    """One column: its name, all values in order (None where a row may have none), the SQL of a value's place, the
    question.

    `source` is the declared column that it is, if it is one.
    """

    name: str
    values: tuple[tree.Value, ...]
    place: exp.Expr
    kind: Kind
    source: str | None = None

    @property
    def contrasts(self) -> Contrasts:
        """What is released of it."""
        return flat(len(self.values)) if self.kind == "cells" else hierarchy(len(self.values))


@dataclass(frozen=True, eq=False)
class SummedColumn:
    """What is summed in place of counting rows: its name,
    the SQL of each row's whole number of steps, and their grid.
    """

    name: str
    steps: exp.Expr
    grid: Grid

    @property
    def largest(self) -> int:
        """The most steps by which one row counts, up or down."""
        return max(abs(self.grid.first), abs(self.grid.last), 1)

    @property
    def limits(self) -> str:
        """The least and the largest value, in words."""
        return f"{readable(self.grid.lower)} to {readable(self.grid.upper)}"


def bind_sum(value: tree.Expression, rows: Asked) -> SummedColumn:
    """What is summed; refused where its least and largest values are not public."""
    name = distinct_names([None], [value])[0]
    argument = Argument(name, typed(value, rows.read))
    grid = argument.grid("sum", _MOST_STEPS)
    return SummedColumn(name, argument.steps(grid), grid)


def places_of(names: Sequence[str], given: Any, what: str) -> list[int]:
    """The places of columns that are named by a text or several texts;
    `what` says of which argument they are a part.
    """
    own = (given,) if isinstance(given, str) else given
    if not isinstance(own, Sequence) or not all(isinstance(name, str) for name in own):
        rule = "columns are named by a text, or by several"
        raise InvalidInput(
            f"{what}: {show(given)}", rule, f"Write {names[0]!r}, or {tuple(names[:2])!r}."
        )
    return [names.index(find("column", name, names, "")) for name in own]


def named_columns(
    given: Sequence[ColumnLike] | Mapping[str, ColumnLike],
) -> dict[str, tree.Expression]:
    """Expressions by name: a list of columns, or names with columns or expressions such as bucket("age", 10)."""
    if isinstance(given, str) or not isinstance(given, Sequence | Mapping):
        hint = 'Pass ["age", "ward"], or {"decade": bucket("age", 10), "ward": "ward"}.'
        raise InvalidInput(
            f"columns={show(given)}",
            "the columns of a workload are a list, or expressions by name",
            hint,
        )
    if isinstance(given, Mapping):
        found = {str(name): term_tree(value) for name, value in given.items()}
    else:
        trees = [term_tree(value) for value in given]
        found = dict(zip(distinct_names([None] * len(trees), trees), trees, strict=True))
        if len({repr(one) for one in trees}) < len(trees):
            raise InvalidInput(
                f"columns={show(list(found))}", "a column is named twice", "Name each column once."
            )
    if len({folded(name) for name in found}) < len(found):
        rule = "names that differ only by upper and lower case are one"
        raise InvalidInput(
            f"columns={show(list(found))}", rule, "Give each column a name of its own."
        )
    return found


def bind_columns(
    given: Mapping[str, tree.Expression], rows: Asked, kinds: Mapping[str, Kind], *, nulls: bool
) -> tuple[WorkloadColumn, ...]:
    """The columns of a workload; refused where the values are not public, or very many."""
    for name in kinds:
        if name not in given:
            rule = f"ranges are asked of columns of the workload: {', '.join(map(show, given))}"
            raise InvalidInput(f"the column {show(name)}", rule, "Name one of them.")
    return tuple(
        _bind(name, value, rows, kinds.get(name, "cells"), nulls) for name, value in given.items()
    )


def _bind(
    name: str, value: tree.Expression, rows: Asked, kind: Kind, nulls: bool
) -> WorkloadColumn:
    read = typed(value, rows.read)
    size = size_of(read)
    if size is None:
        raise InvalidInput(
            f"the column {show(name)}",
            "all values of a workload's columns must be public",
            _hint(name, read),
        )
    if size > MOST_VALUES:
        rule = f"a column of a workload has at most {MOST_VALUES:,} values; this one has {size:,}"
        wide = _width(read, size)
        raise TooLarge(
            f"the column {show(name)}",
            rule,
            f"Put it into buckets, such as BUCKET({name}, {wide}).",
        )
    values = tuple(domain(read) or ())
    if not values:
        raise InvalidInput(
            f"the column {show(name)}", "it has no values at all", "Declare its values."
        )
    place = _place(value, read, values, rows)
    if nulls and _nullable(value, rows):
        if kind != "cells":
            rule = "ranges are sums of neighbouring values, and NULL has no neighbours"
            raise InvalidInput(
                f"ranges of {show(name)}", rule, "Declare nullable = false, or ask for its cells."
            )
        place, values = exp.Coalesce(this=place, expressions=[whole(len(values))]), (*values, None)
    source = value.name if isinstance(value, tree.Column) else None
    return WorkloadColumn(name, values, place, kind, source)


def _place(
    value: tree.Expression, read: Typed, values: Sequence[tree.Value], rows: Asked
) -> exp.Expr:
    """SQL of the place of a row's value, from 0 on; NULL where it has none of them."""
    match read.type:
        case Text():
            found = nodes.place_in([str(one) for one in values], read.sql)
            return exp.Paren(this=exp.Sub(this=found, expression=whole(1)))
        case Number(step=Fraction() as step):
            steps = [int(Fraction(one) / step) for one in values if isinstance(one, int | Fraction)]
            gap = steps[1] - steps[0] if len(steps) > 1 else 1
            if all(b - a == gap for a, b in itertools.pairwise(steps)):
                moved = exp.Paren(this=exp.Sub(this=key_index(read), expression=whole(steps[0])))
                return (
                    moved
                    if gap == 1
                    else exp.Paren(this=exp.IntDiv(this=moved, expression=whole(gap)))
                )
    branches = tuple(
        (tree.Call("=", (value, tree.Literal(one))), tree.Literal(place)) for place, one in enumerate(values)
    )  # fmt: skip
    return typed(tree.Case(branches), rows.read).sql


def _nullable(value: tree.Expression, rows: Asked) -> bool:
    """Whether some column of an expression may be NULL."""
    if isinstance(value, tree.Column):
        return not rows.never_null(value)
    return any(_nullable(child, rows) for child in children(value))


def _width(read: Typed, size: int) -> Any:
    """A width of buckets that makes few of them."""
    step = read.type.step if isinstance(read.type, Number) and read.type.step else Fraction(1)
    found = step * 10 ** math.ceil(math.log10(size / 100))
    return int(found) if found.denominator == 1 else float(found)


def _hint(name: str, read: Typed) -> str:
    if isinstance(read.type, Text):
        return f'Declare them: {name} = {{ type = "category", values = [...] }}.'
    return f"Declare its min and max, and put it into buckets, such as BUCKET({name}, 10)."

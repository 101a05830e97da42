"""What is searched for bounds, in SQL: the values of rows, or how many rows and groups each person has.

Every person's rows are first made a bounded contribution: values weigh one row in total, a number of rows counts once.
The proof is in query/bounds_search.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from sordino.accounting.charge import Charge
from sordino.mechanisms.exponential import bounded_range
from sordino.plan.bind import Asked
from sordino.plan.fragments import column, count_rows, named, not_null, select, whole
from sordino.plan.keys import Key
from sordino.plan.sensitivity import WEIGHT, Quota
from sordino.plan.statement import Lines, Statement, cell_sums
from sordino.privacy.loss import LaplaceLoss
from sordino.privacy.neighbors import Neighbors
from sordino.query.bounds_search import MOST_COUNT, CountSearch, NumberSearch, Price, Search
from sordino.query.three_digits import code_sql
from sordino.query.typed import Typed
from sordino.query.types import Number

__all__ = ["Searched", "groups_of_person", "numbers", "rows_in_group", "rows_of_person"]

_ONE_ROW = Quota(1, 1, 1, scaled=False)


@dataclass(frozen=True, eq=False)
class Searched:
    """A search with the statement that finds its weights, how much a whole person weighs there, and its price."""

    search: Search
    statement: Statement
    unit: int
    persons: int
    price: Price

    @property
    def moved(self) -> int:
        """The most weight in which neighbours differ."""
        return self.persons * self.unit

    @property
    def margin(self) -> float:
        """How far the number of persons that is told to lie within or beyond may be off, 95 % of the time."""
        return self.search.margin(self.price, self.moved, self.unit)

    @property
    def charge(self) -> Charge:
        """What it takes from the meters: draws of bounded range, and Laplace noise."""
        draws, counts = self.price.draws, self.price.counts
        return Charge(draws, *bounded_range(draws)) + Charge.of(LaplaceLoss(counts))


def numbers(
    what: str, typed: Typed, rows: Asked, price: Price, *, summed: bool = False
) -> Searched:
    """The search for bounds of a number, among the rows of a question; `summed` where only its sum is asked for."""
    kind = typed.type
    if not isinstance(kind, Number):
        raise TypeError(what)
    whole_ = kind.step is not None and kind.step.denominator == 1
    search = NumberSearch(what, whole_, kind.lower, kind.upper, kind.step, summed)
    statement = cell_sums(rows.lines([], {"q": code_sql(typed)}), "q", _ONE_ROW)
    return Searched(search, statement, 1 if rows.whose.by_row else WEIGHT, _persons(rows), price)


def rows_of_person(rows: Asked, price: Price) -> Searched:
    """The search for max_rows."""
    lines = rows.lines([], {})
    owned = select([column("u"), named(count_rows(), "n")], lines.select, "lines", group=["u"])
    return _counted("max_rows", owned, lines, rows, price)


def groups_of_person(rows: Asked, keys: Sequence[Key], price: Price) -> Searched:
    """The search for max_groups."""
    return _within_groups("max_groups", count_rows, rows, keys, price)


def rows_in_group(rows: Asked, keys: Sequence[Key], price: Price) -> Searched:
    """The search for max_rows_per_group, among the groups in which each person has the most rows."""
    return _within_groups(
        "max_rows_per_group", lambda: exp.Max(this=column("c")), rows, keys, price
    )


def _within_groups(
    what: str, number: Callable[[], exp.Expr], rows: Asked, keys: Sequence[Key], price: Price
) -> Searched:
    lines = rows.lines([key.sql for key in keys], {})
    owner = ["u", *lines.keys]
    shares = select(
        [*map(column, owner), named(count_rows(), "c")], lines.select, "lines", group=owner,
        having=[not_null(key) for key in lines.keys],
    )  # fmt: skip
    owned = select([column("u"), named(number(), "n")], shares, "shares", group=["u"])
    return _counted(what, owned, lines, rows, price)


def _counted(what: str, owned: exp.Select, lines: Lines, rows: Asked, price: Price) -> Searched:
    """How many persons have each number `n`; very large ones are one."""
    capped = select(
        [named(exp.func("LEAST", column("n"), whole(MOST_COUNT + 1)), "q")], owned, "owned"
    )
    result = select([column("q"), named(count_rows(), "w")], capped, "capped", group=["q"])
    return Searched(
        CountSearch(what), Statement(result, 1, 1, lines.lists), 1, _persons(rows), price
    )


def _persons(rows: Asked) -> int:
    """How many persons' weights neighbours differ in."""
    return 2 if rows.whose.neighbors is Neighbors.REPLACE else 1

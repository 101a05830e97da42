"""From exact weights to bounds: the draws of a search are the only place beside release.py where noise meets data.

`found_bounds` draws; `suggested` makes a suggestion of what was drawn, which is post-processing. `rehearse_searches`
tries both on made-up weights before anything is charged.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from fractions import Fraction

import numpy as np

from sordino.answer.suggestion import SuggestedBound, Suggestion
from sordino.engines.engine import Exact
from sordino.ledger.receipt import Receipt
from sordino.plan.dialects import DEFAULT
from sordino.plan.searches import Searched
from sordino.plan.suggestion import ORIGIN, SuggestionPlan
from sordino.query.bounds_search import CountSearch, Found
from sordino.query.column_text import column_line, outward
from sordino.query.dataset import Column
from sordino.query.types import FIRST_DAY, LAST_DAY, Day, Moment
from sordino.release import rehearsed

__all__ = ["found_bounds", "rehearse_searches", "rehearse_suggestion", "suggested"]

_CONFIDENT = math.log(20)
"""How many scales of Laplace noise are exceeded 5 % of the time."""
_MADE_UP: tuple[tuple[tuple[int, int], ...], ...] = (
    (),
    ((1, 2**40),),
    ((-(10**5), 2**40), (10**5, 2**40)),
)
"""Places with weights, for the rehearsal: nothing, and very much at few places or beyond all of them."""


def found_bounds(searched: Sequence[Searched], exacts: Sequence[Exact]) -> tuple[Found, ...]:
    """What the searches find among the weights that the engine found.

    Privacy: the sum of their epsilons, and of their charges (bounds_search.md).
    """
    return tuple(_found(one, exact) for one, exact in zip(searched, exacts, strict=True))


def _found(searched: Searched, exact: Exact) -> Found:
    places, weights = np.array(exact.keys[0], np.int64), exact.sums[:, 0].astype(np.int64)
    order = np.argsort(places)
    return searched.search.found(
        places[order], weights[order], searched.price, searched.moved, searched.unit
    )


def rehearse_searches(
    searched: Sequence[Searched], dialect: str = DEFAULT
) -> list[tuple[Found, ...]]:
    """What would be found among made-up weights; what fails without data being at fault fails here,
    before the charge.
    """

    def trial() -> list[tuple[Found, ...]]:
        for one in searched:
            one.statement.text(dialect)
        made_up = [
            Exact(([at for at, _ in cells],), np.array([w for _, w in cells], object)[:, None])
            for cells in _MADE_UP
        ]
        return [found_bounds(searched, [exact] * len(searched)) for exact in made_up]

    return rehearsed(trial, "a search for bounds at this price", "Choose a less extreme epsilon.")


def rehearse_suggestion(plan: SuggestionPlan, dialect: str = DEFAULT) -> None:
    """Make suggestions of made-up weights, and read them back from their stored form."""
    for found in rehearse_searches(plan.searched, dialect):
        Suggestion.from_json(suggested(found, plan).to_json())


def suggested(
    found: Sequence[Found], plan: SuggestionPlan, receipt: Receipt | None = None
) -> Suggestion:
    """The suggestion that found bounds make."""
    pairs = [(one.search, bounds) for one, bounds in zip(plan.searched, found, strict=True)]
    counts = [(search.what, bounds) for search, bounds in pairs if isinstance(search, CountSearch)]
    numbers = {what: int(bounds.upper) for what, bounds in counts}
    lines = [
        SuggestedBound(
            what,
            False,
            None,
            number,
            *_counts(bounds),
            _count_error(what, numbers, plan),
            f"{what} = {number}",
        )
        for (what, bounds), number in zip(counts, numbers.values(), strict=True)
    ]
    rows = numbers.get("max_rows", 1)
    for search, bounds in pairs:
        if not isinstance(search, CountSearch):
            lines.append(_column(search.what, plan.table.columns[search.what], bounds, rows, plan))
    return Suggestion(plan.table.name, tuple(lines), plan.query_epsilon, plan.promise, receipt)


def _counts(bounds: Found) -> tuple[float, float, float, float]:
    return bounds.below, bounds.inside, bounds.above, bounds.margin


def _count_error(
    what: str, numbers: dict[str, int], plan: SuggestionPlan
) -> tuple[tuple[str, float], ...]:
    """The half-width of a count with Laplace noise under the bounds that were found."""
    by = f" by {', '.join(plan.keys)}"
    groups, per_group = numbers.get("max_groups", 1), numbers.get("max_rows_per_group", 1)
    name, reach = {
        "max_rows": ("COUNT(*)", numbers["max_rows"]),
        "max_groups": (f"COUNT(DISTINCT ...) of persons{by}", groups),
        "max_rows_per_group": (f"COUNT(*){by}", min(numbers["max_rows"], groups * per_group)),
    }[what]
    return ((name, reach * _CONFIDENT / float(plan.query_epsilon)),)


def _column(
    name: str, column: Column, bounds: Found, rows: int, plan: SuggestionPlan
) -> SuggestedBound:
    if isinstance(column.type, Day | Moment):
        first, last = _years(bounds, isinstance(column.type, Moment))
        line = column_line(name, column, first, last)
        return SuggestedBound(name, True, first, last, *_counts(bounds), (), line)
    lower, upper = outward(column, bounds.lower, bounds.upper)
    noise = _CONFIDENT / float(plan.query_epsilon)
    errors = [(f"SUM({name})", rows * float(max(abs(lower), abs(upper))) * noise)]
    if plan.whose.by_row and bounds.inside > bounds.margin:
        errors.append((f"AVG({name})", float(upper - lower) * noise / bounds.inside))
    line = column_line(name, column, lower, upper)
    return SuggestedBound(name, True, lower, upper, *_counts(bounds), tuple(errors), line)


def _years(bounds: Found, moments: bool) -> tuple[date, date]:
    """The first day of the year of the first day, and the last of the last one."""
    first, last = (_day(days).year for days in (bounds.lower, bounds.upper))
    begin, end = date(first, 1, 1), date(last, 12, 31)
    return (
        (datetime.combine(begin, time.min), datetime.combine(end, time(23, 59, 59)))
        if moments
        else (begin, end)
    )


def _day(days: Fraction) -> date:
    """The day this many days after the origin, within those that there are."""
    inside = min(max(math.floor(days), (FIRST_DAY - ORIGIN).days), (LAST_DAY - ORIGIN).days)
    return ORIGIN + timedelta(days=inside)

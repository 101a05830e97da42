"""Which partial sums answer which aggregates: as few channels as possible, since all of them share one charge.

Aggregates of the same argument share: a variance's sums also give the mean, the sum and the count; a mean's sums also the
sum and the count, and COUNT(*) with one number more. Splitting the charge instead would cost each of them more (mean.py).
Levels of quantiles of one column share one channel.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from sqlglot import exp

from sordino.errors import InvalidInput
from sordino.plan.bind import Asked
from sordino.query import tree
from sordino.query.aggregates.count import Rows
from sordino.query.aggregates.grid import Grid
from sordino.query.aggregates.known_mean import KnownMean
from sordino.query.aggregates.mean import Mean
from sordino.query.aggregates.partial import Partial
from sordino.query.aggregates.persons import Persons
from sordino.query.aggregates.sums import MOST_CELLS, Sum
from sordino.query.aggregates.variance import MOST_CELLS as MOST_SQUARED
from sordino.query.aggregates.variance import Variance
from sordino.query.meaning.expressions import indicator, quantised, typed
from sordino.query.tree import Aggregate, Expression
from sordino.query.typed import Typed
from sordino.query.types import Number, Truth

__all__ = ["Channel", "Quantiles", "Source", "channels_of"]

MOST_POSITIONS = 2**20
_VARIANCES = {"var_samp", "var_pop", "stddev_samp", "stddev_pop"}


@dataclass(frozen=True)
class Channel:
    """Partial sums and the SQL of one row's value (None where rows are counted)."""

    partial: Partial
    value: exp.Expr | None


@dataclass(frozen=True)
class Quantiles:
    """Quantiles of one column, all from one charge."""

    what: str
    points: Grid
    levels: tuple[Fraction, ...]
    value: exp.Expr


@dataclass(frozen=True)
class Source:
    """Where an output comes from: a channel and the aggregate to finish, or a quantile column and the place of the level."""

    channel: int
    function: str
    level: int | None = None


def channels_of(
    aggregates: list[Aggregate], names: list[str], scope: Asked, *, certain: bool
) -> tuple[list[Channel], list[Quantiles], list[Source]]:
    """The channels, and for each aggregate where it comes from."""
    wanted: dict[Expression | None, set[str]] = {}
    levels: dict[Expression, set[Fraction]] = {}
    arguments: dict[Expression, Typed] = {}
    what: dict[Expression | None, str] = {}
    for aggregate, name in zip(aggregates, names, strict=True):
        argument = aggregate.argument
        if aggregate.function == "count_distinct":
            _expect_person(aggregate, scope)
            continue
        if argument is not None and argument not in arguments:
            arguments[argument] = typed(argument, scope.read)
            what[argument] = argument.name if isinstance(argument, tree.Column) else f"the argument of {name}"
        if aggregate.function == "quantile":
            column, level = _quantile(aggregate)
            levels.setdefault(column, set()).add(level)
        else:
            wanted.setdefault(argument, set()).add(aggregate.function)
    channels: list[Channel] = []
    place: dict[tuple[Expression | None, str], int] = {}
    rows = "rows" if None in wanted and not certain else None
    for argument, functions in wanted.items():
        if argument is not None:
            known = certain and scope.never_null(argument)
            for channel in _of_argument(what[argument], arguments[argument], functions, rows=rows, known=known):
                for function in functions & channel.partial.serves:
                    place.setdefault((argument, function), len(channels))
                if rows in channel.partial.serves:
                    place[None, "count"], rows = len(channels), None
                channels.append(channel)
    if None in wanted and (None, "count") not in place:
        place[None, "count"] = len(channels)
        channels.append(Channel(Rows(), None))
    if any(aggregate.function == "count_distinct" for aggregate in aggregates):
        place[None, "count_distinct"] = len(channels)
        channels.append(Channel(Persons(), None))
    quantiles = [_quantiles(what[a], arguments[a], tuple(sorted(p))) for a, p in levels.items()]
    order = list(levels)
    sources = []
    for aggregate in aggregates:
        argument = None if aggregate.function == "count_distinct" else aggregate.argument
        if aggregate.function == "quantile":
            column, level = _quantile(aggregate)
            i = order.index(column)
            sources.append(Source(i, "quantile", quantiles[i].levels.index(level)))
        else:
            at = place[argument, aggregate.function]
            shared = argument is None and "rows" in channels[at].partial.serves
            sources.append(Source(at, "rows" if shared else aggregate.function))
    return channels, quantiles, sources


def _of_argument(what: str, argument: Typed, functions: set[str], *, rows: str | None, known: bool) -> list[Channel]:
    """The fewest channels that serve all functions of one argument, and COUNT(*) with them if `rows` asks for it.

    `known` says that all rows have a value and that their number is public.
    """
    if functions == {"count"}:
        return [Channel(Rows(what), argument.sql)]
    number, kind = _number(what, argument, functions)
    if functions & _VARIANCES:
        grid = Grid.of(kind, what, MOST_SQUARED).widened()
        return [Channel(Variance(what, grid, rows is not None), _steps(number, grid))]
    grid = Grid.of(kind, what, MOST_CELLS)
    if known:
        mean = Channel(KnownMean(what, grid.widened()), _steps(number, grid.widened()))
        return [mean] if functions <= {"avg", "sum"} else [mean, Channel(Rows(what), argument.sql)]
    if "avg" in functions or len(functions) > 1 or rows:
        grid = grid.widened()
        return [Channel(Mean(what, grid, rows is not None), _steps(number, grid))]
    return [Channel(Sum(what, grid), _steps(number, grid))]


def _quantiles(what: str, argument: Typed, levels: tuple[Fraction, ...]) -> Quantiles:
    number, kind = _number(what, argument, {"quantile"})
    grid = Grid.of(kind, what, MOST_POSITIONS)
    return Quantiles(what, grid, levels, _steps(number, grid))


def _steps(number: Typed, grid: Grid) -> exp.Expr:
    return quantised(number, grid.step, grid.lower, grid.upper)


def _quantile(aggregate: Aggregate) -> tuple[Expression, Fraction]:
    if aggregate.argument is None or aggregate.parameter is None:
        raise InvalidInput("a quantile", "it needs a column and a level", "Write QUANTILE(cost, 0.9).")
    return aggregate.argument, aggregate.parameter


def _number(what: str, argument: Typed, functions: set[str]) -> tuple[Typed, Number]:
    """The argument as a number: a condition counts as 1 or 0."""
    number = indicator(argument) if isinstance(argument.type, Truth) else argument
    kind = number.type
    if isinstance(kind, Number):
        return number, kind
    names = ", ".join(sorted(functions)).upper()
    rule = f"{names} needs a number or a condition, not {type(kind).__name__.lower()}"
    raise InvalidInput(what, rule, "Use COUNT, or group by it.")


def _expect_person(aggregate: Aggregate, scope: Asked) -> None:
    if aggregate.argument is not None and scope.is_person(aggregate.argument):
        return
    name = aggregate.argument.name if isinstance(aggregate.argument, tree.Column) else "an expression"
    person = scope.whose.who if scope.whose.owner == "person" else None
    rule = "COUNT(DISTINCT ...) counts persons"
    count = "COUNT(*)" if person is None else f"COUNT(DISTINCT {person})"
    hint = (  # a question to write, not one that runs
        f"For persons write {count}. For the values of {name} ask SELECT {name}, {count} AS n FROM {scope.whose.tables[0]} "  # noqa: S608
        f"GROUP BY {name}: the answer has a row for each value that is public, or that enough persons share."
    )
    raise InvalidInput(f"COUNT(DISTINCT {name})", rule, hint)

"""Which partial sums and draws answer which aggregates: as few as possible, since all of them share one charge.

Aggregates of the same arguments share. The sums that one of them asks for are dropped where those of another serve it,
too (a variance's also give the mean), and widened where that serves all (the two sums of a mean give a sum and a
count). And COUNT(*) goes with the first sums that can carry it. Splitting the charge instead would cost each of them
more (mean.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from sqlglot import exp

from sordino.errors import InvalidInput
from sordino.plan.bind import Asked
from sordino.query import tree
from sordino.query.aggregates.argument import Argument
from sordino.query.aggregates.draws import Draws
from sordino.query.aggregates.partial import ROWS, Partial
from sordino.query.aggregates.registry import kind_of
from sordino.query.meaning.expressions import typed
from sordino.query.tree import Aggregate, Expression

__all__ = ["Channel", "Column", "channels_of"]

Arguments = tuple[Expression, ...]


@dataclass(frozen=True)
class Channel:
    """Partial sums, the SQL of one row's values (none where rows are counted),
    and what each aggregate is called there.
    """

    partial: Partial
    values: tuple[exp.Expr, ...]
    answers: Mapping[Aggregate, str]


@dataclass(frozen=True)
class Column:
    """Draws from the values of one column, their SQL, and the aggregates that they answer."""

    draws: Draws
    value: exp.Expr
    answers: frozenset[Aggregate]


@dataclass
class _Wanted:
    """All that is asked of the same arguments."""

    arguments: tuple[Argument, ...]
    aggregates: list[Aggregate] = field(default_factory=list)


def channels_of(
    asked: Mapping[Aggregate, str], scope: Asked, *, certain: bool, replaced: bool
) -> tuple[list[Channel], list[Column]]:
    """The channels and columns that answer the aggregates; each aggregate comes with a name for what it is of.

    `certain` says that the number of rows is public, `replaced` that persons are replaced and nothing is grouped.
    """
    sums: dict[Arguments, _Wanted] = {}
    drawn: dict[tuple[str, Arguments], _Wanted] = {}
    read: dict[Expression, Argument] = {}
    for aggregate, name in asked.items():
        kind = kind_of(aggregate)
        of = _of(aggregate, scope) if kind.of_persons else aggregate.arguments
        for expression in of:
            if expression not in read:
                what = (
                    expression.name
                    if isinstance(expression, tree.Column)
                    else f"the argument of {name}"
                )
                known = certain and scope.never_null(expression)
                read[expression] = Argument(what, typed(expression, scope.read), known, replaced)
        wanted = _Wanted(tuple(read[expression] for expression in of))
        kept = (
            sums.setdefault(of, wanted)
            if kind.draws is None
            else drawn.setdefault((kind.name, of), wanted)
        )
        kept.aggregates.append(aggregate)
    return _channels(sums, certain=certain), list(map(_column, drawn.values()))


def _of(aggregate: Aggregate, scope: Asked) -> Arguments:
    """The arguments: none where persons are counted."""
    match aggregate.arguments:
        case (tree.Case(((_, person),)),) if scope.is_person(person):
            rule = "distinct persons are counted over all rows of the group"
            raise InvalidInput(
                "COUNT(DISTINCT ...) of persons with FILTER", rule, "Put the condition into WHERE."
            )
        case (person,) if scope.is_person(person):
            return ()
    return aggregate.arguments


def _channels(sums: Mapping[Arguments, _Wanted], *, certain: bool) -> list[Channel]:
    """The channels, those without arguments last; COUNT(*) rides along unless the number of rows is public."""
    bare = sums.get((), _Wanted(()))
    rows = (
        None
        if certain
        else next((a for a in bare.aggregates if ROWS in _alone(a, ()).serves), None)
    )
    found: list[Channel] = []
    for of, wanted in sums.items():
        if of:
            for partial in _partials(wanted):
                carrying = partial.with_rows() if rows is not None else None
                answers = {a: a.function for a in wanted.aggregates if a.function in partial.serves}
                if rows is not None and carrying is not None:
                    partial, answers, rows = carrying, {**answers, rows: ROWS}, None
                found.append(Channel(partial, _values(partial, wanted.arguments), answers))
    riding = {aggregate for channel in found for aggregate in channel.answers}
    left = [aggregate for aggregate in bare.aggregates if aggregate not in riding]
    bare_sums = _partials(_Wanted((), left))
    return found + [
        Channel(one, (), {a: a.function for a in left if a.function in one.serves})
        for one in bare_sums
    ]


def _partials(wanted: _Wanted) -> list[Partial]:
    """The fewest partial sums that serve all aggregates of the same arguments."""
    alone = {a.function: _alone(a, wanted.arguments) for a in wanted.aggregates}
    functions = alone.keys()
    kept: list[Partial] = []
    for function, partial in sorted(alone.items(), key=lambda item: (not item[1].always, item[0])):
        served = functions & partial.serves
        better = any(
            function in other.serves and served < functions & other.serves
            for other in alone.values()
        )
        if not better and not any(function in other.serves for other in kept):
            kept.append(partial)
    wider = (partial.wider() for partial in kept) if len(kept) > 1 else iter(())
    return next(([one] for one in wider if one is not None and functions <= one.serves), kept)


def _alone(aggregate: Aggregate, arguments: tuple[Argument, ...]) -> Partial:
    kind = kind_of(aggregate)
    if kind.partial is None:
        raise InvalidInput(
            kind.name, "it has neither partial sums nor draws", "Register it with one of them."
        )
    return kind.partial(arguments)


def _values(partial: Partial, arguments: tuple[Argument, ...]) -> tuple[exp.Expr, ...]:
    """One row's values: steps on the grids of the sums; several are NULL together, so that a row counts or does not."""
    if not partial.grids:
        return tuple(argument.cell(compared=partial.bounding == "choose") for argument in arguments)
    steps = [argument.steps(grid) for argument, grid in zip(arguments, partial.grids, strict=True)]
    if len(steps) == 1:
        return tuple(steps)
    missing = exp.or_(
        *(exp.Is(this=step.copy(), expression=exp.Null()) for step in steps), copy=False
    )
    return tuple(
        exp.Case(ifs=[exp.If(this=missing.copy(), true=exp.Null())], default=step) for step in steps
    )


def _column(wanted: _Wanted) -> Column:
    kind = kind_of(wanted.aggregates[0])
    levels: set[Fraction] = {a.parameter for a in wanted.aggregates if a.parameter is not None}
    if kind.draws is None:
        raise InvalidInput(kind.name, "it is not drawn", "Register it with draws.")
    draws = kind.draws(wanted.arguments, tuple(sorted(levels)))
    return Column(draws, draws.value(wanted.arguments[0]), frozenset(wanted.aggregates))

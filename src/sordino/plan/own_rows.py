"""Aggregates and windows over one person's own rows: their types, their bounds, and SQL that does not hang on row
order.

Everything is computed from whole numbers or picked from the values, so that the result is the same for any order of
rows. Bounds are derived from what is declared, or written in the question as CLAMP(SUM(cost), 0, 5000).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TypeAlias

from sqlglot import exp

from sordino.errors import InvalidInput
from sordino.plan.fragments import column
from sordino.plan.relations import PERSON
from sordino.query import tree
from sordino.query.aggregates.grid import MOST_CELLS, Grid
from sordino.query.aggregates.variance import MOST_CELLS as MOST_SQUARED
from sordino.query.front.text import frame_ends
from sordino.query.meaning import nodes
from sordino.query.meaning.expressions import condition, indicator, quantised
from sordino.query.meaning.function import kind_words
from sordino.query.typed import Typed
from sordino.query.types import Day, Moment, Nothing, Number, Text, Truth

__all__ = ["Limits", "over_rows", "within_person"]

Limits: TypeAlias = tuple[tree.Value, tree.Value] | None
_MOST_PLACES = 10**6


def within_person(
    aggregate: tree.Aggregate, argument: Typed | None, most: int | None, limits: Limits
) -> Typed:
    """An aggregate of one person's rows.

    `most` is the declared number of rows; `limits` are those of a CLAMP around it.
    """
    function = aggregate.function
    match function:
        case "count":
            counted: exp.Expression = exp.Star() if argument is None else argument.sql
            return _whole(exp.Count(this=counted), 0, most, limits)
        case "count_distinct":
            each = exp.Distinct(expressions=[_argument(function, argument).sql])
            return _whole(exp.Count(this=each), 0, most, limits)
        case "sum":
            grid, steps = _steps(function, argument, MOST_CELLS)
            low, high = (
                (None, None)
                if most is None
                else (most * min(0, grid.first), most * max(0, grid.last))
            )
            if grid.first >= 0:
                low = 0
            if grid.last <= 0:
                high = 0
            return _scaled(exp.Sum(this=steps), low, high, grid.step, limits)
        case "avg":
            grid, steps = _steps(function, argument, MOST_CELLS)
            mean = nodes.binary(
                exp.Div, _double(exp.Sum(this=steps)), _double(exp.Count(this=steps.copy()))
            )
            return _clamped(Typed(Number(grid.lower, grid.upper), _times(mean, grid.step)), limits)
        case "var_pop" | "var_samp" | "stddev_pop" | "stddev_samp":
            return _clamped(_spread(function, argument), limits)
        case "min" | "max":
            value = _argument(function, argument)
            found = nodes.extreme(function, value.sql, value.type)
            return _clamped(Typed(value.type, found, domain=value.domain), limits)
        case "quantile":
            value = _argument(function, argument)
            if not isinstance(value.type, Number | Day | Moment):
                raise _no_number("QUANTILE", value)
            level = exp.Literal.number(repr(float(aggregate.parameter or 0)))
            picked = exp.Anonymous(this="QUANTILE_DISC", expressions=[value.sql, level])
            return _clamped(Typed(value.type, picked, domain=value.domain), limits)
        case "any" | "every":
            truth = condition(tree.Column(""), lambda _: _argument(function, argument)).sql
            return Typed(
                Truth(), (exp.LogicalOr if function == "any" else exp.LogicalAnd)(this=truth)
            )
        case _:
            rule = "it is not computed within one person"
            hint = (
                "Within a person there are COUNT, SUM, AVG, MIN, "
                "MAX, MEDIAN, QUANTILE, VARIANCE, STDDEV, BOOL_OR, BOOL_AND."
            )
            raise InvalidInput(f"{function.upper()} in a subquery", rule, hint)


def over_rows(
    window: tree.Window,
    arguments: Sequence[Typed],
    keys: Sequence[exp.Expression],
    order: Sequence[tuple[exp.Expression, bool]],
    cells: Sequence[exp.Expression],
    limits: Limits,
) -> Typed:
    """A window over the rows of a person that share the keys, in an order whose ties are broken by all cells.

    Rows that agree in all cells are the same to every question, so that the order of the table never matters.
    """
    function = window.function
    frame = _checked(window)
    if not order and function not in ("count", "sum"):
        rule = "the order of rows must be given, as a table has none"
        raise InvalidInput(
            f"{function.upper()} OVER (...)", rule, "Write OVER (PARTITION BY person ORDER BY day)."
        )
    match function:
        case "row_number":
            return _whole(_over(exp.RowNumber(), keys, order, cells), 1, None, limits)
        case "count":
            counted: exp.Expression = arguments[0].sql if arguments else exp.Star()
            return _whole(
                _over(exp.Count(this=counted), keys, order, cells, frame),
                0,
                _rows_of(frame),
                limits,
            )
        case "sum":
            grid, steps = _steps(function, arguments[0] if arguments else None, MOST_CELLS)
            rows = _rows_of(frame)
            low, high = (
                0 if sign * end <= 0 else None if rows is None else rows * end
                for sign, end in ((-1, grid.first), (1, grid.last))
            )
            return _scaled(
                _over(exp.Sum(this=steps), keys, order, cells, frame), low, high, grid.step, limits
            )
        case "first_value":
            value = _argument(function, arguments[0] if arguments else None)
            sql = _over(exp.FirstValue(this=value.sql), keys, order, cells, frame)
            return _clamped(Typed(_nullable(value), sql, domain=value.domain), limits)
        case "lag" | "lead":
            value = _argument(function, arguments[0] if arguments else None)
            places = arguments[1].constant[0] if len(arguments) > 1 and arguments[1].constant else 1
            if (
                isinstance(places, bool)
                or not isinstance(places, int)
                or not 0 <= places <= _MOST_PLACES
            ):
                rule = (
                    f"it looks a whole number of rows away, at most {_MOST_PLACES:,}, written out"
                )
                raise InvalidInput(
                    f"{function.upper()} OVER (...)", rule, f"Write {function.upper()}(cost, 1)."
                )
            node = exp.Lag if function == "lag" else exp.Lead
            sql = _over(node(this=value.sql, offset=exp.Literal.number(places)), keys, order, cells)
            return _clamped(Typed(_nullable(value), sql, domain=value.domain), limits)
        case _:
            rule = "it is not a window within a person"
            hint = "There are ROW_NUMBER, LAG, LEAD, FIRST_VALUE, and running COUNT and SUM."
            raise InvalidInput(f"{function.upper()} OVER (...)", rule, hint)


def _over(
    function: exp.Expression,
    keys: Sequence[exp.Expression],
    order: Sequence[tuple[exp.Expression, bool]],
    cells: Sequence[exp.Expression],
    frame: tuple[int | None, int | None] | None = None,
) -> exp.Expression:
    window = exp.Window(this=function, partition_by=[column(PERSON), *(key.copy() for key in keys)])
    if order:
        every = [*order, *((cell, False) for cell in cells)]
        ordered = [
            exp.Ordered(this=one.copy(), desc=down, nulls_first=False) for one, down in every
        ]
        window.set("order", exp.Order(expressions=ordered))
        if frame is not None:
            ends = dict(zip(("start", "end"), frame_ends(frame), strict=True))
            window.set("spec", exp.WindowSpec(kind="ROWS", **ends))
    return window


def _checked(window: tree.Window) -> tuple[int | None, int | None]:
    """The frame, in rows from a row on; refuses what has none, or is none."""
    if window.frame is None:
        return None, 0
    first, last = window.frame
    shown = f"ROWS BETWEEN {' AND '.join(frame_ends(window.frame))}"
    if window.function not in ("count", "sum", "first_value") or not window.order:
        rule = "COUNT, SUM and FIRST_VALUE look at a fixed number of rows before and after, in an order"
        raise InvalidInput(
            shown, rule, "Write SUM(cost) OVER (PARTITION BY person ORDER BY day ROWS ...)."
        )
    if first is not None and last is not None and first > last:
        rule = "a frame begins before it ends"
        raise InvalidInput(shown, rule, "Write ROWS BETWEEN 2 PRECEDING AND CURRENT ROW.")
    if max(abs(end or 0) for end in window.frame) > _MOST_PLACES:
        rule = f"it reaches at most {_MOST_PLACES:,} rows away"
        raise InvalidInput(
            shown, rule, "Write UNBOUNDED PRECEDING or UNBOUNDED FOLLOWING for all of them."
        )
    return first, last


def _rows_of(frame: tuple[int | None, int | None]) -> int | None:
    """How many rows a frame has at most; None if nothing bounds them."""
    return None if frame[0] is None or frame[1] is None else frame[1] - frame[0] + 1


def _nullable(value: Typed) -> Number | Truth | Text | Day | Moment | Nothing:
    return value.type if isinstance(value.type, Nothing) else replace(value.type, nullable=True)


def _argument(function: str, argument: Typed | None) -> Typed:
    if argument is None:
        raise InvalidInput(
            f"{function.upper()}()", "it needs an argument", f"Write {function.upper()}(cost)."
        )
    return argument


def _no_number(function: str, value: Typed) -> InvalidInput:
    rule = f"{function} needs numbers, not {kind_words(value.type)}"
    return InvalidInput(f"{function} in a subquery", rule, "Take COUNT, MIN or MAX of it.")


def _number(function: str, argument: Typed | None) -> tuple[Typed, Number]:
    value = _argument(function, argument)
    number = indicator(value) if isinstance(value.type, Truth) else value
    if not isinstance(number.type, Number):
        raise _no_number(function.upper(), value)
    return number, number.type


def _steps(function: str, argument: Typed | None, most: int) -> tuple[Grid, exp.Expression]:
    """The argument in whole steps of a public grid; it needs bounds,
    since sums of floats depend on the order of rows.
    """
    number, kind = _number(function, argument)
    grid = Grid.of(kind, f"{function.upper()} in a subquery", most)
    return grid, quantised(number, grid.step, grid.lower, grid.upper)


def _double(sql: exp.Expression) -> exp.Expression:
    return nodes.cast(sql, "double")


def _times(sql: exp.Expression, step: Fraction) -> exp.Expression:
    return sql if step == 1 else nodes.doubles("*", sql, nodes.real(step))


def _spread(function: str, argument: Typed | None) -> Typed:
    """A variance from exact sums: (n q - s^2) / (n m), m being n or n - 1."""
    grid, steps = _steps(function, argument, MOST_SQUARED)
    above = (
        exp.Paren(this=exp.Sub(this=steps, expression=nodes.whole(grid.first)))
        if grid.first
        else steps
    )
    n, s, q = (exp.Count(this=above), exp.Sum(this=above.copy()),
               exp.Sum(this=nodes.binary(exp.Mul, above.copy(), above.copy())))  # fmt: skip
    top = nodes.binary(exp.Sub, nodes.binary(exp.Mul, n, q), nodes.binary(exp.Mul, s, s.copy()))
    less = 1 if function.endswith("samp") else 0
    bottom = nodes.binary(
        exp.Mul,
        _double(n.copy()),
        nodes.binary(exp.Sub, _double(n.copy()), nodes.real(float(less))),
    )
    variance = _times(nodes.binary(exp.Div, _double(top), nodes.not_zero(bottom)), grid.step**2)
    width = grid.upper - grid.lower
    if function.startswith("var"):
        return Typed(Number(Fraction(0), width**2 / (2 if less else 4)), variance)
    root = exp.Sqrt(
        this=exp.Greatest(this=variance, expressions=[nodes.real(0.0)], ignore_nulls=False)
    )
    # GREATEST skips NULL, but the variance of no rows must stay NULL
    present = nodes.case([(exp.GT(this=bottom.copy(), expression=nodes.real(0.0)), root)])
    return Typed(Number(Fraction(0), width), present)


def _whole(sql: exp.Expression, low: int, high: int | None, limits: Limits) -> Typed:
    """A number of rows; BIGINT where bounds are known, cut to them."""
    return _scaled(sql, low, high, Fraction(1), limits)


def _scaled(
    sql: exp.Expression, low: int | None, high: int | None, step: Fraction, limits: Limits
) -> Typed:
    """A whole number of steps, of any size, as a number: cut to its bounds, which a CLAMP may give."""
    if limits is not None:
        bottom, top = _bounds(limits)
        low, high = math.ceil(bottom / step), math.floor(top / step)
        if low > high:
            raise InvalidInput(
                f"CLAMP(..., {bottom}, {top})", "no value lies between them", "Choose wider bounds."
            )
    ends = tuple(None if end is None else end * step for end in (low, high))
    number = Number(ends[0], ends[1], step)
    if low is None or high is None:
        return Typed(number, _times(_double(sql), step))
    # LEAST and GREATEST skip NULL: a sum of nothing must stay NULL
    cut = nodes.let(sql, lambda v: nodes.case([(exp.LT(this=v.copy(), expression=nodes.whole(low)), nodes.whole(low)),
                                               (exp.GT(this=v.copy(), expression=nodes.whole(high)), nodes.whole(high))],
                                              v.copy()))  # fmt: skip
    if number.integral and max(abs(low), abs(high)) < 2**62:
        whole = nodes.cast(cut, "bigint")
        return Typed(
            number, whole if step == 1 else nodes.binary(exp.Mul, whole, nodes.whole(int(step)))
        )
    return Typed(number, _times(_double(cut), step))


def _bounds(limits: tuple[tree.Value, tree.Value]) -> tuple[Fraction, Fraction]:
    ends = [
        Fraction(end)
        for end in limits
        if isinstance(end, int | Fraction) and not isinstance(end, bool)
    ]
    if len(ends) < 2 or ends[0] > ends[1]:
        rule = "CLAMP takes a lower and an upper bound, written out"
        raise InvalidInput("CLAMP", rule, "Write CLAMP(SUM(cost), 0, 5000).")
    return ends[0], ends[1]


def _clamped(value: Typed, limits: Limits) -> Typed:
    if limits is None:
        return value
    from sordino.query.meaning.functions import FUNCTIONS

    return FUNCTIONS["clamp"].apply(value, *map(nodes.constant, limits))

"""HAVING, ORDER BY and LIMIT of an answer: they see noisy numbers and public or selected keys, never data.

So they are free, and mean what they say about the noisy numbers. A condition is checked before any data is read, and
once checked it cannot fail: what has no value is NULL, with SQL's three-valued logic.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import date, datetime
from difflib import get_close_matches
from fractions import Fraction
from functools import partial
from typing import Any, TypeAlias, assert_never

import numpy as np
import numpy.typing as npt

from sordino.errors import InvalidInput
from sordino.query.tree import (
    Aggregate,
    Call,
    Case,
    Column,
    Expression,
    Literal,
    Member,
    Order,
    Window,
)

__all__ = [
    "SUPPORTED", "Cell", "Index", "check_having", "check_order", "evaluate", "limited", "ordered", "where_true",
]  # fmt: skip

Cell: TypeAlias = bool | int | float | Fraction | str | date | datetime | None
Index: TypeAlias = npt.NDArray[np.intp]

_MOST_DIGITS = 30
_ARITY: dict[str, tuple[int, int | None]] = {
    **dict.fromkeys(("=", "<>", "<", "<=", ">", ">=", "+", "-", "*", "/"), (2, 2)),
    **dict.fromkeys(("not", "neg", "abs", "floor", "is_null"), (1, 1)),
    **dict.fromkeys(("and", "or", "in"), (2, None)),
    "coalesce": (1, None),
    "round": (1, 2),
}
SUPPORTED = tuple(_ARITY)
"""The functions that a condition on the noisy answer may use."""


def check_having(expression: Expression, names: Collection[str]) -> None:
    """Refuse a condition that uses more than the answer's columns and the supported functions."""
    match expression:
        case Column(name=name, table=table):
            if table is not None or name not in names:
                raise _unknown("HAVING", name, names)
        case Literal():
            return
        case Call(function=function, arguments=arguments):
            if function not in _ARITY:
                hint = f"Supported there: {', '.join(SUPPORTED)}. Or filter the answer yourself: it is public."
                raise InvalidInput(
                    f"{function} in HAVING", "a condition on the noisy answer cannot use it", hint
                )
            least, most = _ARITY[function]
            if len(arguments) < least or (most is not None and len(arguments) > most):
                wanted = (
                    str(least)
                    if least == most
                    else f"{least} or more"
                    if most is None
                    else f"{least} or {most}"
                )
                hint = "Write it as in SQL."
                what = f"{function} of {len(arguments)} in HAVING"
                raise InvalidInput(what, f"it takes {wanted} arguments", hint)
            if function == "round" and len(arguments) == 2:
                _check_digits(arguments[1])
            for argument in arguments:
                check_having(argument, names)
        case Aggregate() | Window() | Member():
            hint = "Name the column of the answer instead."
            raise InvalidInput(
                "a value of rows in HAVING", "HAVING sees the noisy answer only", hint
            )
        case Case():
            hint = (
                "Write it with AND, OR and COALESCE, or filter the answer yourself: it is public."
            )
            raise InvalidInput(
                "CASE in HAVING", "a condition on the noisy answer cannot use it", hint
            )
        case _:
            assert_never(expression)


def _check_digits(expression: Expression) -> None:
    digits = expression.value if isinstance(expression, Literal) else None
    if not isinstance(digits, int) or isinstance(digits, bool) or abs(digits) > _MOST_DIGITS:
        rule = f"the digits must be a whole number from -{_MOST_DIGITS} to {_MOST_DIGITS}"
        raise InvalidInput("round in HAVING", rule, "Try ROUND(x, 2).")


def check_order(order: Sequence[Order], names: Collection[str]) -> None:
    """Refuse to sort by what the answer does not have."""
    for key in order:
        if key.output not in names:
            raise _unknown("ORDER BY", key.output, names)


def _unknown(place: str, name: str, names: Collection[str]) -> InvalidInput:
    near = get_close_matches(name, names, 1)
    hint = f"Did you mean {near[0]!r}?" if near else f"It has {', '.join(map(repr, names))}."
    return InvalidInput(f"{name!r} in {place}", "the answer has no such column", hint)


def where_true(expression: Expression, columns: Mapping[str, Sequence[Cell]]) -> Index:
    """The places of the rows for which the condition is true, not false nor NULL."""
    rows = len(next(iter(columns.values()), ()))
    return np.array(
        [i for i, truth in enumerate(_evaluated(expression, columns, rows)) if truth is True],
        np.intp,
    )


def ordered(columns: Mapping[str, Sequence[Cell]], order: Sequence[Order], rows: int) -> Index:
    """The places of the rows in the asked order; ties keep theirs, NULLs come last in both directions."""
    places = list(range(rows))
    for key in reversed(order):
        cells = [_comparable(cell) for cell in columns[key.output]]
        known = [i for i in places if cells[i] is not None]
        missing = [i for i in places if cells[i] is None]
        places = sorted(known, key=_reading(cells), reverse=key.descending) + missing
    return np.array(places, np.intp)


def _reading(cells: list[Any]) -> Callable[[int], Any]:
    return lambda i: cells[i]


def limited(places: Index, limit: int | None, offset: int = 0) -> Index:
    """What is left of the rows after OFFSET and LIMIT."""
    return places[offset:] if limit is None else places[offset : offset + limit]


def evaluate(expression: Expression, row: Mapping[str, Cell]) -> Cell:
    """The value of a checked expression on one row of the noisy answer."""
    return _evaluated(expression, {name: [cell] for name, cell in row.items()}, 1)[0]


def _evaluated(
    expression: Expression, columns: Mapping[str, Sequence[Cell]], rows: int
) -> list[Cell]:
    """The values of a checked expression on all rows: call by call, since an answer may have very many."""
    match expression:
        case Column(name=name):
            return [_comparable(cell) for cell in columns[name]]
        case Literal(value=value):
            return [_comparable(value)] * rows
        case Call(function=function, arguments=arguments):
            apply = _CALLS.get(function)
            cells = [_evaluated(argument, columns, rows) for argument in arguments]
            return [
                apply(*row) if apply else _apply(function, row) for row in zip(*cells, strict=True)
            ]
        case Case() | Aggregate() | Window() | Member():
            return [None] * rows
        case _:
            assert_never(expression)


def _apply(function: str, cells: Sequence[Cell]) -> Cell:
    """Arithmetic; NULL where one of the cells is no number."""
    numbers = [
        c for c in cells if isinstance(c, int | float | Fraction) and not isinstance(c, bool)
    ]
    if len(numbers) < len(cells):
        return None
    try:
        result = _ARITHMETIC[function](*numbers)
    except (ZeroDivisionError, OverflowError):
        return None
    return _comparable(result)


def _comparable(cell: Cell) -> Cell:
    """A cell that compares with others of its kind: NaN is NULL, a date is its midnight."""
    if isinstance(cell, float) and math.isnan(cell):
        return None
    if isinstance(cell, date) and not isinstance(cell, datetime):
        return datetime.combine(cell, datetime.min.time())
    return cell


def _truth(cell: Cell) -> bool | None:
    return cell if isinstance(cell, bool) else None


def _not(truth: bool | None) -> bool | None:
    return None if truth is None else not truth


def _and(truths: list[bool | None]) -> bool | None:
    if False in truths:
        return False
    return None if None in truths else True


_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq, "<>": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


def _compare(compared: Callable[[Any, Any], bool], a: Cell, b: Cell) -> bool | None:
    """SQL's comparison; NULL between kinds that do not compare, such as text and numbers."""
    return None if a is None or b is None or _kind(a) is not _kind(b) else bool(compared(a, b))


def _kind(cell: Cell) -> type:
    if type(cell) in (float, int):  # most cells
        return object
    return next(kind for kind in (bool, str, datetime, object) if isinstance(cell, kind))


def _any(*truths: Cell) -> bool | None:
    return _not(_and([_not(_truth(truth)) for truth in truths]))


_CALLS: dict[str, Callable[..., Cell]] = {
    **{name: partial(_compare, compared) for name, compared in _COMPARISONS.items()},
    "and": lambda *truths: _and([_truth(truth) for truth in truths]),
    "or": _any,
    "not": lambda truth: _not(_truth(truth)),
    "is_null": lambda cell: cell is None,
    "coalesce": lambda *cells: next((cell for cell in cells if cell is not None), None),
    "in": lambda first, *others: _any(*(_compare(operator.eq, first, other) for other in others)),
}


def _round(x: Any, digits: int = 0) -> Any:
    """To the nearest, halves away from zero, as SQL does; exact for the number as it is printed."""
    if isinstance(x, float) and not math.isfinite(x):
        return x
    power = Fraction(10) ** int(digits)
    exact = Fraction(str(x)) if isinstance(x, float) else Fraction(x)
    near = Fraction(math.floor(abs(exact) * power + Fraction(1, 2)), 1) / power
    result = -near if exact < 0 else near
    return float(result) if isinstance(x, float) else result


_ARITHMETIC: dict[str, Callable[..., Any]] = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b,
    "/": lambda a, b: (a / b if isinstance(a, float) or isinstance(b, float) else Fraction(a) / Fraction(b)),
    "neg": lambda a: -a, "abs": abs, "floor": math.floor, "round": _round,
}  # fmt: skip

"""Comparing a column whose values are listed with a value that is not: never true, and nearly always a slip of the pen.

Such a question would be charged and answered 0 or everything. It is refused instead, from the declaration alone.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches
from fractions import Fraction
from itertools import islice

from sordino.errors import InvalidInput
from sordino.privacy.exact import readable, show
from sordino.query import tree
from sordino.query.typed import Typed
from sordino.query.types import Number, Text

__all__ = ["expect_listed", "expect_listed_keys"]

_COMPARED = frozenset({"=", "<>", "in"})
_ORDERED = frozenset({"=", "<>", "<", "<=", ">", ">="})
_SHOWN, _SEARCHED = 10, 1000


def expect_listed(call: tree.Call, arguments: Sequence[Typed]) -> None:
    """Refuse =, <> and IN of an expression whose values are known with a constant that is none of them."""
    if call.function in _ORDERED and any(
        isinstance(part, tree.Literal) and part.value is None for part in call.arguments
    ):
        name = next(
            (_named(part) for part in call.arguments if not isinstance(part, tree.Literal)), "x"
        )
        rule = "a comparison with NULL is never true, so that it would keep no row"
        raise InvalidInput(
            f"{name} {call.function} NULL", rule, f"Write {name} IS NULL, or {name} IS NOT NULL."
        )
    if call.function not in _COMPARED:
        return
    constants = [a.constant[0] for a in arguments if a.constant is not None]
    for written, found in zip(call.arguments, arguments, strict=True):
        if (
            found.constant is None
            and isinstance(found.type, Text | Number)
            and found.type.values is not None
        ):
            _expect(_named(written), constants, found.type.values)


def expect_listed_keys(having: tree.Expression, keys: Mapping[str, Collection[tree.Value]]) -> None:
    """The same for HAVING: columns of the answer that are keys with these values."""
    if isinstance(having, tree.Call):
        for argument in having.arguments:
            expect_listed_keys(argument, keys)
        if having.function in _COMPARED:
            constants = [a.value for a in having.arguments if isinstance(a, tree.Literal)]
            for argument in having.arguments:
                if isinstance(argument, tree.Column) and argument.name in keys:
                    _expect(argument.name, constants, keys[argument.name])


def _named(expression: tree.Expression) -> str:
    match expression:
        case tree.Column(name=name):
            return name
        case tree.Call(function=function, arguments=(tree.Column(name=name), *_)):
            return f"{function.upper()}({name})"
        case _:
            return "this expression"


def _expect(name: str, constants: Sequence[tree.Value], values: Collection[tree.Value]) -> None:
    for constant in constants:
        texts = isinstance(constant, str) and all(isinstance(v, str) for v in islice(values, 1))
        numbers = isinstance(constant, int | float | Fraction) and all(
            isinstance(v, int | Fraction) for v in islice(values, 1)
        )
        if (texts or numbers) and not isinstance(constant, bool) and constant not in values:
            raise _unlisted(name, constant, values)


def _unlisted(name: str, constant: tree.Value, values: Collection[tree.Value]) -> InvalidInput:
    near = []
    if isinstance(constant, str):
        folded = {str(v).strip().casefold(): v for v in islice(values, _SEARCHED)}
        near = [folded[m] for m in get_close_matches(constant.strip().casefold(), folded, 1)]
    meant = f"Did you mean {_shown(near[0])}? " if near else ""
    listed = ", ".join(map(_shown, islice(values, _SHOWN)))
    more = f" and {len(values) - _SHOWN:,} more" if len(values) > _SHOWN else ""
    rule = f"{name} never has this value, so that the comparison says nothing"
    error = InvalidInput(
        f"{name} compared with {_shown(constant)}", rule, f"{meant}Its values are {listed}{more}."
    )
    return error.about(word=_shown(constant), instead=_shown(near[0]) if near else "")


def _shown(value: tree.Value) -> str:
    return readable(value) if isinstance(value, Fraction) else show(value)

"""Conditions and orders over the answer: HAVING and ORDER BY speak of outputs, whatever way they are named."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from sordino.errors import InvalidInput
from sordino.query.front.names import default_name, distinct_names
from sordino.query.front.shapes import children, rebuilt, shape
from sordino.query.same_name import folded
from sordino.query.tree import (
    Aggregate,
    Call,
    Case,
    Column,
    Expression,
    Literal,
    Output,
    aggregates_in,
)

__all__ = ["OUTPUT", "Answered", "one_of"]


OUTPUT = ""
"""The table of a column that certainly names an output; no real table has an empty name."""


def one_of(name: str, names: Sequence[str]) -> str | None:
    """The name in its own spelling, if it is among them; upper and lower case are one."""
    return next((known for known in names if folded(known) == folded(name)), None)


@dataclass(frozen=True)
class Answered:
    """The outputs of a question, to be found by name or by what they are; hidden ones by what they are only."""

    outputs: tuple[Output, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the outputs that are shown."""
        return tuple(output.name for output in self.outputs if not output.hidden)

    def asking(
        self,
        keys: Iterable[Expression],
        conditions: Iterable[Expression] = (),
        orders: Iterable[Expression] = (),
    ) -> Answered:
        """With a hidden output for each aggregate and key that a condition or an order is about and nobody selected.

        Each is released with noise, and charged, like those that are shown.
        """
        groups = {shape(key) for key in keys}
        found: dict[object, Expression] = {}
        whole = {shape(order) for order in orders if aggregates_in(order)}
        rest = [*conditions, *orders][::-1]
        while rest:
            value = rest.pop()
            if isinstance(value, Literal) or self._means_something(value):
                continue
            if isinstance(value, Aggregate) or shape(value) in groups | whole:
                found.setdefault(shape(value), value)
            else:
                rest += children(value)[::-1]
        asked = [*(output.value for output in self.outputs), *found.values()]
        given = [*(output.name for output in self.outputs), *[None] * len(found)]
        names = distinct_names(given, asked)[len(self.outputs) :]
        hidden = zip(names, found.values(), strict=True)
        return replace(
            self, outputs=(*self.outputs, *(Output(*one, hidden=True) for one in hidden))
        )

    def _means_something(self, value: Expression) -> bool:
        try:
            return self.find(value) is not None
        except InvalidInput:  # it means two outputs, which `condition` and `require` refuse
            return True

    @cached_property
    def _by_name(self) -> dict[str, str]:
        return {folded(name): name for name in self.names}

    @cached_property
    def _by_value(self) -> dict[object, tuple[str, ...]]:
        found: dict[object, tuple[str, ...]] = {}
        for output in self.outputs:
            wanted = shape(output.value)
            found[wanted] = (*found.get(wanted, ()), output.name)
        return found

    def find(self, value: Expression | Aggregate) -> str | None:
        """The output that a name or an expression means; refuses one that means two."""
        by_value = self._by_value.get(shape(value), ())
        by_name = (
            self._by_name.get(folded(value.name))
            if isinstance(value, Column) and value.table in {None, OUTPUT} and not value.first
            else None
        )
        if isinstance(value, Column) and value.table == OUTPUT:
            return by_name or one_of(value.name, [output.name for output in self.outputs])
        if by_value and by_name is not None and by_name not in by_value:
            rule = "it names both a column and another output"
            raise InvalidInput(by_name, rule, "Give the output another name with AS.")
        return by_name or (by_value[0] if by_value else None)

    def require(self, value: Expression | Aggregate) -> str:
        """The output that it means; refuses one that is not there."""
        name = self.find(value)
        if name is None:
            raise self.missing(value)
        return name

    def condition(self, value: Expression) -> Expression:
        """The condition with every key and aggregate replaced by the name of its output."""
        if isinstance(value, Literal):
            return value
        name = self.find(value)
        if name is not None:
            return Column(name)
        if isinstance(value, Call | Case):
            return rebuilt(value, self.condition)
        raise self.missing(value)

    def missing(self, value: Expression | Aggregate) -> InvalidInput:
        """The error for something that is not among the outputs."""
        what = default_name(value)
        close = difflib.get_close_matches(what, self.names, 1)
        hint = (
            f"Did you mean {close[0]}?"
            if close
            else "Add it to SELECT; the outputs are " + ", ".join(self.names) + "."
        )
        error = InvalidInput(
            what,
            "HAVING and ORDER BY see the noisy answer, so they can name its columns only",
            hint,
        )
        return error.about(word=what, instead=close[0] if close else "")

"""The aggregates that can be asked for, each registered once, in its own file: a module of this room with `KINDS`.

The SQL and Python front ends, the stored text, docs/sql.md and the planner read what is registered; none names one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

from sordino.errors import Code, InvalidInput
from sordino.privacy.wording import a_or_an
from sordino.query.tree import Aggregate, Case, Expression, Literal

if TYPE_CHECKING:
    from sordino.query.aggregates.argument import Argument
    from sordino.query.aggregates.draws import Draws
    from sordino.query.aggregates.partial import Partial

__all__ = ["Example", "Kind", "kind_of", "kinds", "named_in_sql", "register"]


@dataclass(frozen=True)
class Example:
    """The same aggregate in SQL and in Python, for docs/sql.md."""

    what: str
    sql: str
    python: str
    note: str = ""


@dataclass(frozen=True)
class Kind:
    """One aggregate: how it is written, what it takes, and which partial sums or draws answer it.

    `sql` are its names in SQL; `sql_text` writes the first. In Python it is `python`; of several with the same name,
    those with an `option` are asked for by that keyword. `parameter` names a constant from 0 to 1 behind the
    arguments, and `fixed` gives names to some values of it. With `distinct` it is written with DISTINCT.
    """

    name: str
    sql: tuple[str, ...]
    python: str
    says: str
    examples: tuple[Example, ...]
    partial: Callable[[tuple[Argument, ...]], Partial] | None = None
    draws: Callable[[tuple[Argument, ...], tuple[Fraction, ...]], Draws] | None = None
    arguments: tuple[str, ...] = ("x",)
    least: int | None = None
    option: str | None = None
    parameter: str | None = None
    fixed: Mapping[str, Fraction] = field(default_factory=dict)
    distinct: bool = False
    of_persons: bool = False

    def form(self, arguments: tuple[Expression, ...], parameter: Any = None) -> Aggregate:
        """The aggregate in its one form; refuses a wrong number of arguments."""
        least, most = len(self.arguments) if self.least is None else self.least, len(self.arguments)
        if not least <= len(arguments) <= most:
            wanted = str(most) if least == most else f"{least} to {most}"
            hint = f"Write {self.examples[0].sql}."
            what = f"{self.sql[0]} of {len(arguments)} arguments"
            raise InvalidInput(what, f"it takes {wanted}", hint, Code.AGGREGATE)
        if self.parameter is None:
            return Aggregate(self.name, arguments)
        if (
            not isinstance(parameter, Fraction | int)
            or isinstance(parameter, bool)
            or not 0 <= parameter <= 1
        ):
            rule = "it must be a constant from 0 to 1"
            what = f"the {self.parameter} of {a_or_an(self.name)}"
            raise InvalidInput(what, rule, f"Write {self.examples[0].sql}.")
        return Aggregate(self.name, arguments, Fraction(parameter))

    def filtered(self, condition: Expression, value: Aggregate) -> Aggregate:
        """The aggregate FILTER (WHERE condition): its first argument is NULL where the condition is not true."""
        first, *others = value.arguments or (Literal(1),)
        return Aggregate(value.function, (Case(((condition, first),)), *others), value.parameter)

    def word(self, value: Aggregate) -> str:
        """The beginning of the name that its column gets if nobody names it."""
        if value.parameter is None:
            return self.name
        fixed = next(
            (name.lower() for name, known in self.fixed.items() if known == value.parameter), None
        )
        percent = 100 * value.parameter
        return fixed or (f"p{percent}" if percent.denominator == 1 else self.name)

    def text(
        self, value: Aggregate, arguments: Iterable[str], number: Callable[[Fraction], str]
    ) -> str:
        """The aggregate in SQL, always in the same words."""
        inner = ", ".join(arguments) or "*"
        name, level = self.sql[0], value.parameter
        if level is not None:
            fixed = next((name for name, known in self.fixed.items() if known == level), None)
            name, inner = (fixed, inner) if fixed else (name, f"{inner}, {number(level)}")
        return f"{name}({'DISTINCT ' if self.distinct else ''}{inner})"


_ADDED: dict[str, Kind] = {}


def register(kind: Kind) -> Callable[[], None]:
    """One more aggregate, found from now on wherever aggregates are; returns what takes it away again."""
    if kind.name in kinds():
        raise InvalidInput(kind.name, "there is such an aggregate already", "Choose another name.")
    _ADDED[kind.name] = kind
    return lambda: _ADDED.__delitem__(kind.name)


@cache
def _own() -> dict[str, Kind]:
    """The aggregates of the modules of this room."""
    package = import_module(__package__)
    modules = (
        import_module(f"{__package__}.{found.name}") for found in iter_modules(package.__path__)
    )
    every = [kind for module in modules for kind in getattr(module, "KINDS", ())]
    return {kind.name: kind for kind in every}


def kinds() -> dict[str, Kind]:
    """All aggregates by their names in the tree."""
    return _own() | _ADDED


def kind_of(value: Aggregate) -> Kind:
    """What is registered of an aggregate."""
    known = kinds()
    if value.function not in known:
        raise InvalidInput(
            value.function, "there is no such aggregate", "`sordino docs sql` lists what there is."
        )
    return known[value.function]


def named_in_sql(name: str, *, distinct: bool = False) -> tuple[Kind, Fraction | None] | None:
    """The aggregate of that name in SQL, and the parameter that the name stands for; None if there is none."""
    word = name.upper()
    for kind in kinds().values():
        if kind.distinct == distinct and (word in kind.sql or word in kind.fixed):
            return kind, kind.fixed.get(word)
    return None

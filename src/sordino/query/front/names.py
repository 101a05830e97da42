"""Names of answer columns that the analyst did not name: readable, lower case, distinct."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sordino.query.aggregates.registry import kind_of
from sordino.query.front.shapes import WITHIN_PERSON, children
from sordino.query.same_name import folded
from sordino.query.tree import Aggregate, Call, Case, Column, Expression, Literal, Member, Window

__all__ = ["default_name", "distinct_names"]

_WORDS = {"+": "plus", "-": "minus", "*": "times", "/": "ratio", "%": "rest", "=": "equal", "<>": "differs", "<": "below",
          "<=": "at_most", ">": "above", ">=": "at_least", "and": "all", "or": "any", "||": "joined"}  # fmt: skip


def default_name(value: Expression | Aggregate) -> str:
    """A name that says what the value is.

    Example:
        >>> default_name(Aggregate("sum", (Column("cost"),)))
        'sum_cost'
        >>> default_name(Call("date_part", (Literal("year"), Column("day"))))
        'year_day'
    """
    match value:
        case Column(name, _):
            return name
        case Literal():
            return "constant"
        case Call("date_part" | "date_trunc" | "time_bucket" | "cast", (Literal(str(part)), *_)):
            word = part.replace(" ", "_")
        case Call(function, _):
            word = _WORDS.get(function, function)
        case Case():
            word = "case"
        case Aggregate(function) if function in WITHIN_PERSON:
            word = function
        case Aggregate():
            word = kind_of(value).word(value)
        case Window(function):
            word = function
        case Member():
            word = "is_among"
    return "_".join([word, *list(dict.fromkeys(name.lower() for name in _columns(value)))[:3]])


def _columns(value: Expression | Aggregate) -> Iterable[str]:
    if isinstance(value, Column):
        yield value.name
    for child in children(value):
        yield from _columns(child)


def distinct_names(
    given: Sequence[str | None], values: Sequence[Expression | Aggregate]
) -> tuple[str, ...]:
    """The given names where there are any, else default ones, made distinct by _2,
    _3 (upper and lower case are one).
    """
    taken = {folded(name) for name in given if name is not None}
    counts: dict[str, int] = {}
    names = []
    for name, value in zip(given, values, strict=True):
        if name is None:
            plain = name = default_name(value)
            count = counts.get(folded(plain), 1)
            while folded(name) in taken:
                count += 1
                name = f"{plain}_{count}"
            counts[folded(plain)] = count
            taken.add(folded(name))
        names.append(name)
    return tuple(names)

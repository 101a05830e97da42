"""Pairs of neighbouring inputs to try when the worst pair is not known: few shapes that have exposed most broken
mechanisms.

The shapes for vectors of exact answers are those of Ding et al. ("Detecting violations of differential privacy", CCS
2018); the others follow what breaks in practice: empty data, a first row, an extreme row, a new category, NaN.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np

from sordino.audit.inputs.neighbors import Pair, Relation, checked_relation
from sordino.audit.inputs.rows import form, forms, read_rows
from sordino.errors import InvalidInput
from sordino.privacy.exact import show, whole

__all__ = ["patterns"]

_MOST_ROWS = 1_000_000
_FAR = 1e9
_LARGE = 1_000_000
_MOST_PAIRS = 16

Rows = list[tuple[str, list[Any], Any]]
"""Named rows, and the one more."""
_OUTSIDE = {
    "far above": _FAR, "far below": -_FAR, "not a number": math.nan, "infinite": math.inf, "minus infinite": -math.inf,
}  # fmt: skip
"""Rows that a mechanism must survive if nobody promised that they do not occur."""


def patterns(neighbors: Relation = None, length: int = 5, domain: Any = None) -> tuple[Pair, ...]:
    """Up to 16 pairs of neighbours with names: of single values, or of `length` entries or rows.

    `domain` says what one value may be: `(low, high)` for numbers, a list for categories. Pairs stay inside it;
    without one, numbers are about 0 to 1 and rows that real data may hold, NaN and far outliers, are tried, too.
    Without a relation the pairs are of single values, since it is not known what else the mechanism promises to hide.

    Example:
        >>> [pair.name for pair in patterns("histogram", 2)][:2]
        ['nothing, one in the first entry', 'nothing, one in the last entry']
    """
    relation = checked_relation(neighbors)
    if callable(relation) or relation == "unchecked":
        rule = "there are no patterns for this relation"
        hint = f"Pass d1 and d2, or one of {', '.join(map(repr, _MAKERS))} as neighbors=."
        raise InvalidInput(f"neighbors={show(neighbors)}", rule, hint)
    size = whole("length", length, 1, _MOST_ROWS, "It is how many entries or rows an input has.")
    values = _domain(domain)
    make = _MAKERS[relation or "number"]
    if relation is None and isinstance(values, _Kinds):
        make = _one_answer
    found = _different(make(size, values))
    if not found:
        rule = f"it has no room for two neighbours ({relation or 'one value'})"
        raise InvalidInput(f"domain={show(domain)}", rule, "Widen the domain, or pass d1 and d2.")
    return found


@dataclass(frozen=True)
class _Range:
    """Numbers from low to high; `open_` if nothing was said about them, so that any number may come."""

    low: Any
    high: Any
    open_: bool = False

    @property
    def whole(self) -> bool:
        return isinstance(self.low, int) and isinstance(self.high, int)

    @property
    def middle(self) -> Any:
        return (self.low + self.high) // 2 if self.whole else (self.low + self.high) / 2

    def spread(self, size: int) -> list[Any]:
        """Numbers at equal distances from low to high."""
        steps = max(size - 1, 1)
        if self.whole:
            return [self.low + (self.high - self.low) * i // steps for i in range(size)]
        return [self.low + (self.high - self.low) * (i / steps) for i in range(size)]

    def added(self, size: int) -> Rows:
        """Rows, and one that is added."""
        low, high, middle, spread = self.low, self.high, self.middle, self.spread(size)
        ends = [(low, high)[i % 2] for i in range(size)]
        outside = _OUTSIDE.items() if self.open_ else ()
        return [
            ("no row, and one at the high end", [], high),
            ("no row, and one at the low end", [], low),
            ("all at the low end, one more there", [low] * size, low),
            ("all at the high end, one more there", [high] * size, high),
            ("all at the low end, one more at the high end", [low] * size, high),
            ("all at the high end, one more at the low end", [high] * size, low),
            ("spread evenly, one more at the high end", spread, high),
            ("spread evenly, one more at the low end", spread, low),
            ("at both ends in turn, one more at the high end", ends, high),
            ("all in the middle, one more at the high end", [middle] * size, high),
            *((f"spread evenly, one more that is {what}", spread, row) for what, row in outside),
        ]

    def replaced(self, size: int) -> Rows:
        """Rows, and one that takes the place of the last."""
        low, high, middle, spread = self.low, self.high, self.middle, self.spread(size)
        ends, half = [(low, high)[i % 2] for i in range(size)], size // 2
        outside = _OUTSIDE.items() if self.open_ else ()
        return [
            ("one row, low or high", [low], high),
            ("all at the low end, one moves to the high end", [low] * size, high),
            ("all at the high end, one moves to the low end", [high] * size, low),
            ("spread evenly, the highest moves to the low end", spread, low),
            ("spread evenly, the lowest moves to the high end", spread[::-1], high),
            ("half low, half high, one moves up", [high] * half + [low] * (size - half), high),
            ("at both ends in turn, one moves to the middle", ends, middle),
            ("all in the middle, one moves to the high end", [middle] * size, high),
            ("all in the middle, one moves to the low end", [middle] * size, low),
            *((f"spread evenly, one becomes {what}", spread, row) for what, row in outside),
        ]

    def data(self, rows: list[Any]) -> Any:
        """Such rows as a mechanism gets them."""
        return _array(rows, None if self.whole else float)


@dataclass(frozen=True)
class _Kinds:
    """Categories."""

    values: tuple[Any, ...]

    def each(self, size: int) -> list[Any]:
        """Each category in turn, at least once."""
        count = len(self.values)
        return [self.values[i % count] for i in range(max(size, count))]

    def added(self, size: int) -> Rows:
        first, last, each = self.values[0], self.values[-1], self.each(size)
        a, b, known = show(first), show(last), [x for x in each if x is not last]
        return [
            (f"no row, and one {a}", [], first),
            (f"all {a}, one more", [first] * size, first),
            (f"all {a}, and the first {b}", [first] * size, last),
            (f"all {b}, and the first {a}", [last] * size, first),
            (f"every category, one more {a}", each, first),
            (f"every category, one more {b}", each, last),
            (f"every category but {b}, and the first {b}", known, last),
        ]

    def replaced(self, size: int) -> Rows:
        first, last, each = self.values[0], self.values[-1], self.each(size)
        a, b, half = show(first), show(last), size // 2
        known = [x for x in each if x is not last] or [first]
        return [
            (f"one row, {a} or {b}", [first], last),
            (f"all {a}, one becomes {b}", [first] * size, last),
            (f"all {b}, one becomes {a}", [last] * size, first),
            (f"every category, one becomes {a}", each, first),
            (f"every category but {b}, one becomes {b}", known, last),
            (f"half {a}, one becomes {b}", [last] * half + [first] * (size - half), last),
        ]

    def data(self, rows: list[Any]) -> Any:
        return list(rows)


def _domain(domain: Any) -> _Range | _Kinds:
    if domain is None:
        return _Range(0.0, 1.0, open_=True)
    shown, pair = f"domain={show(domain)}", "Pass (low, high), such as (0, 110)"
    if isinstance(domain, tuple) and len(domain) == 2 and all(map(_is_real, domain)):
        low, high = (int(x) if isinstance(x, Integral) else float(x) for x in domain)
        if math.isfinite(low) and math.isfinite(high) and 0 < high - low < math.inf:
            return _Range(low, high)
        rule = "the ends of a domain must be finite, the first below the second"
        raise InvalidInput(shown, rule, f"{pair}.")
    listed = isinstance(domain, Sequence | np.ndarray) and not isinstance(domain, str | bytes)
    if listed and len(domain):
        if len(set(forms(domain))) == len(domain):
            return _Kinds(tuple(domain))
        raise InvalidInput(shown, "a domain lists each category once", "Remove the repeated ones.")
    hint = f'{pair}, or a list, such as ["yes", "no"].'
    raise InvalidInput(shown, "a domain is a pair of numbers or a list of categories", hint)


def _is_real(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool | np.bool_)


def _numbers(relation: str, values: _Range | _Kinds) -> _Range:
    if isinstance(values, _Kinds):
        rule = f"the relation {relation!r} is about numbers"
        hint = "Pass (low, high), or neighbors='replace'."
        raise InvalidInput(f"domain={show(list(values.values))}", rule, hint)
    return values


def _one_answer(size: int, values: Any) -> Iterator[Pair]:  # noqa: ARG001
    first, *others = values.values
    for other in others:
        yield Pair(f"{show(first)} and {show(other)}", first, other)


def _number(size: int, values: _Range | _Kinds) -> Iterator[Pair]:  # noqa: ARG001
    room = _numbers("number", values)
    if room.open_:
        starts: list[Any] = [0, 1, -1, -2, 10, 0.25, -0.5, _LARGE, -_LARGE, 2**40]
        ends = [x + 1 for x in starts]
    else:
        step = min(1, room.high - room.low)
        starts = [room.low, room.high - step, room.middle - step / 2 if step < 1 else room.middle]
        ends = [min(x + step, room.high) for x in starts]
    for a, b in zip(starts, ends, strict=True):
        yield Pair(f"{show(a)} and {show(b)}", a, b)


def _answers(size: int, values: _Range | _Kinds) -> Iterator[Pair]:
    """Around entries of one unit: 0 and 2 units are one below and one above."""
    room = _numbers("answers", values)
    width = room.high - room.low
    low, unit = (0, 1) if room.open_ else (room.low, 1 if width >= 2 else width / 2)
    half, rest = size // 2, size - size // 2
    ones, in_turn = [1] * size, [i % 2 for i in range(size)]
    shapes = [
        ("one above", ones, [2, *ones[1:]]),
        ("one below", ones, [0, *ones[1:]]),
        ("one above, the rest below", ones, [2, *[0] * (size - 1)]),
        ("one below, the rest above", ones, [0, *[2] * (size - 1)]),
        ("half above, half below", ones, [2] * rest + [0] * half),
        ("all above", ones, [2] * size),
        ("all below", ones, [0] * size),
        ("x shape", [1] * rest + [0] * half, [0] * rest + [1] * half),
        ("last above", ones, [*ones[1:], 2]),
        ("last below, the rest above", ones, [*[2] * (size - 1), 0]),
        ("alternating, all flipped", in_turn, [1 - x for x in in_turn]),
    ]
    if room.open_:
        rising = [10 * i for i in range(size)]
        every_other = [x + 1 - i % 2 for i, x in enumerate(rising)]
        shapes += [
            ("far apart, all above", rising, [x + 1 for x in rising]),
            ("far apart, every other above", rising, every_other),
            ("large, all above", [_LARGE] * size, [_LARGE + 1] * size),
        ]
    for name, *sides in shapes:
        yield Pair(name, *(_array([low + unit * x for x in side]) for side in sides))


def _histogram(size: int, values: _Range | _Kinds) -> Iterator[Pair]:
    room = _numbers("histogram", values)
    falling = list(range(size, 0, -1))
    bases = [
        ("nothing", [0] * size),
        ("one in each", [1] * size),
        ("a heavy first entry", [1000] + [0] * (size - 1)),
        ("falling counts", falling),
        ("large counts", [_LARGE] * size),
        ("a few in each", [5 + i % 3 for i in range(size)]),
    ]
    for name, base in bases:
        for place, where in ((0, "first"), (size - 1, "last")):
            more = [x + (i == place) for i, x in enumerate(base)]
            if room.open_ or (min(base) >= room.low and max(more) <= room.high):
                title = f"{name}, one{' more' if base[place] else ''} in the {where} entry"
                yield Pair(title, _array(base), _array(more))


def _add_remove(size: int, values: _Range | _Kinds) -> Iterator[Pair]:
    for name, base, row in values.added(size):
        yield Pair(name, values.data(base), values.data([*base, row]))


def _replace(size: int, values: _Range | _Kinds) -> Iterator[Pair]:
    for name, base, row in values.replaced(size):
        yield Pair(name, values.data(base), values.data([*base[:-1], row]))


def _array(numbers: list[Any], kind: type | None = None) -> Any:
    """Whole numbers as int64 where they fit, else as Python integers; others as float64."""
    if kind is None and all(isinstance(x, int) for x in numbers):
        return np.array(numbers, np.int64 if all(abs(x) < 2**62 for x in numbers) else object)
    return np.array(numbers, np.float64)


def _different(pairs: Iterator[Pair]) -> tuple[Pair, ...]:
    """The first of pairs that are the same, without those whose two sides are equal."""
    kept: dict[Any, Pair] = {}
    for pair in pairs:
        first, second = (read_rows(side) or form(side) for side in (pair.d1, pair.d2))
        if first != second:
            kept.setdefault((first, second), pair)
    return tuple(kept.values())[:_MOST_PAIRS]


_MAKERS = {
    "number": _number,
    "answers": _answers,
    "histogram": _histogram,
    "add_remove": _add_remove,
    "replace": _replace,
}

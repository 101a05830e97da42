"""Events in words: "output[3] is above 1.37", "the output is None", "the whole output is one of 17 of 43 values"."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from sordino.audit.sampled.events import Event
from sordino.audit.sampled.features import (
    MINUS_ZERO,
    ZERO,
    Digits,
    Pattern,
    Shape,
    Value,
    Whole,
    place,
    symbols,
)
from sordino.audit.sampled.outputs import Table
from sordino.audit.sampled.scores import Bins, TableScore
from sordino.privacy.wording import a_or_an

__all__ = ["bin_name", "number", "say"]

_MOST = 3
_TINY = 1e-290
_LAST_PLACE = -1074
"""Where the last digit of the smallest float stands."""
_ODD = {0: "an odd number", 1: "twice an odd number"}


def number(value: float) -> str:
    """A number for the eye."""
    return f"{0.0 if abs(value) < _TINY else value:.6g}"


def say(event: Event, held: tuple[Table, Table]) -> str:
    """The event as a sentence without its end."""
    score = event.score
    if isinstance(score, TableScore):
        return _table(score.bins, event.sign * score.weights > event.threshold, held)
    parts = f" (mostly {_listed([feature.words for feature in event.score.features()[:_MOST]])})"
    side = "above" if event.sign > 0 else "below"
    threshold = number(event.sign * event.threshold)
    return f"a learned score of {score.words}{parts}, is {side} {threshold}"


def _listed(texts: list[str]) -> str:
    return ", ".join(list(dict.fromkeys(texts))[:_MOST])


def _table(
    bins: Bins, inside: np.ndarray[tuple[int], np.dtype[np.bool_]], held: tuple[Table, Table]
) -> str:
    numbers = len(bins.edges) + 1
    atoms = np.flatnonzero(inside[numbers:])
    if len(atoms):
        seen = np.unique(np.concatenate([bins.of(table) for table in held]))
        atoms = atoms[np.isin(atoms + numbers, seen)]
        if not (seen < numbers).any():  # no output is a number
            inside = inside & (np.arange(bins.count) >= numbers)
    what = bins.feature.words
    if isinstance(bins.feature, Whole | Pattern):
        some = _example(bins, int(atoms[0]) + numbers, held) if len(atoms) else ""
        count = int(np.isin(np.arange(numbers, bins.count), seen).sum()) if len(atoms) else 0
        if len(atoms) == 1:
            return f"{what} is {some}"
        return f"{what} is one of {len(atoms)} of {count} kinds, such as {some}"
    if isinstance(bins.feature, Digits) and not len(atoms):
        return _digits(bins.feature, bins, inside[:numbers], held)
    texts = _intervals(bins, inside[:numbers])
    texts += [f"is {bin_name(bins, int(i) + numbers, held)}" for i in atoms[:_MOST]]
    if len(atoms) > _MOST:
        texts.append(f"one of {len(atoms) - _MOST} more")
    return f"{what} {' or '.join(texts) or 'is a value that training did not see'}"


def _digits(
    feature: Digits,
    bins: Bins,
    inside: np.ndarray[tuple[int], np.dtype[np.bool_]],
    held: tuple[Table, Table],
) -> str:
    """Binary digits as people read them."""
    what = place(feature.name)
    if feature.what != "grain":
        ranges = _ranges(inside)
        if len(ranges) > 2 * _MOST:
            return f"{feature.words} is one of {len(ranges)} kinds"
        edges = np.floor(bins.edges).astype(int).tolist()
        ends = [
            (edges[start - 1] + 1 if start else None, edges[end - 1] if end <= len(edges) else None)
            for start, end in ranges
        ]
        if feature.what == "last digit":
            numbers = [table.column(feature.name).numbers for table in held]
            least = 0 if all((x == np.floor(x)).all() for x in numbers) else _LAST_PLACE
            return f"{what} is {' or '.join(_multiple(low, high, least) for low, high in ends)}"
        say_range = _size if feature.what == "exponent" else _length
        return f"{what} is {' or '.join(say_range(low, high) for low, high in ends)}"
    grains = [_grain(bins, i) for i in np.flatnonzero(inside).tolist()]
    first = f"{what} is {grains[0]}" if grains else f"{what} has digits that training did not see"
    rest = f", or of {len(grains) - 1} more such kinds" if len(grains) > 1 else ""
    return first + rest


def _multiple(low: int | None, high: int | None, least: int) -> str:
    """Numbers whose last binary digit stands at 2^low to 2^high; `least` is the lowest place that was seen.

    0 and -0 have places below all others.
    """
    if high is not None and high <= ZERO:
        return "-0" if high < ZERO else "0" if low is None or low <= MINUS_ZERO else "0 and not -0"
    if low is None or low <= ZERO:
        return "a number" if high is None else f"0 or no {_multiple_of(high + 1)}"
    low = max(low, least)
    every = low == _LAST_PLACE
    if high is None:
        return f"{'a number' if every else a_or_an(_multiple_of(low))} other than 0"
    if every:
        return f"neither 0 nor {a_or_an(_multiple_of(high + 1))}"
    if high == low:
        return _ODD.get(low, f"an odd multiple of 2^{low}")
    return f"{a_or_an(_multiple_of(low))} but no {_multiple_of(high + 1)}"


def _multiple_of(place: int) -> str:
    return {0: "whole number", 1: "even number"}.get(place, f"multiple of 2^{place}")


def _size(low: int | None, high: int | None) -> str:
    """Numbers whose first binary digit stands at 2^low to 2^high; 0 is below all others."""
    if high is not None and high <= ZERO:
        return "0"
    above = "" if low is None or low <= ZERO else f"at least 2^{low}"
    below = "" if high is None else f"below 2^{high + 1}"
    return f"{' and '.join(filter(None, (above, below)))} in size" if above or below else "a number"


def _length(low: int | None, high: int | None) -> str:
    """Numbers by how many binary digits stand behind the first; 0 has -1."""
    if high == 0 and low == 0:
        return "a power of 2, or minus one"
    if high is not None and high < 0:
        return "0"
    least = 0 if low is None or low < 0 else low
    zero = "0, or " if low is None or low < 0 else ""
    if high is None:
        return f"{zero}a number of at least {least + 1} binary digits"
    digits = f"{high + 1}" if least == high else f"{least + 1} to {high + 1}"
    return f"{zero}a number of {digits} binary digits"


def _grain(bins: Bins, index: int) -> str:
    """A pair of size and last digit; of a wide bin, its upper end."""
    packed = int(bins.edges[min(index, len(bins.edges) - 1)])
    exponent = (packed + 2048) // 4096
    last = packed - 4096 * exponent
    if last <= ZERO:
        return "-0" if last < ZERO else "0"
    return f"between 2^{exponent} and 2^{exponent + 1} in size and its last binary digit stands at 2^{last}"


def shows_float_digits(event: Event) -> bool:
    """Whether the event looks at the last binary digits of floats."""
    first = event.score.features()[:_MOST]
    return any(isinstance(feature, Digits) and feature.what != "exponent" for feature in first)


def _intervals(bins: Bins, inside: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> list[str]:
    """Runs of neighbouring bins as ranges; many of them only counted."""
    ranges = _ranges(inside)
    if len(ranges) > 2 * _MOST:
        return [f"lies in one of {len(ranges)} ranges"]
    return [_range(bins, start, end) for start, end in ranges]


def _ranges(inside: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> list[tuple[int, int]]:
    """Where runs of neighbouring bins start, and the bins behind their ends."""
    jumps = np.diff(np.concatenate([[0], inside.astype(int), [0]]))
    starts, ends = (np.flatnonzero(jumps == step).tolist() for step in (1, -1))
    return list(zip(starts, ends, strict=True))


def _range(bins: Bins, start: int, end: int) -> str:
    edges = bins.edges
    if start == 0 and end > len(edges):
        return "is a number"
    if start == 0:
        return f"is at most {number(float(edges[end - 1]))}"
    if end > len(edges):
        return f"is above {number(float(edges[start - 1]))}"
    low, high = edges[start - 1], edges[end - 1]
    if np.nextafter(low, np.inf) == high or (end == start + 1 and _discrete(bins)):
        return f"is {number(float(high))}"
    return f"is above {number(float(low))} and at most {number(float(high))}"


def _discrete(bins: Bins) -> bool:
    return isinstance(bins.feature, Digits) or bool((bins.edges == np.floor(bins.edges)).all())


def bin_name(bins: Bins, index: int, held: tuple[Table, Table]) -> str:
    """One bin for a figure or a list."""
    numbers = len(bins.edges) + 1
    if index < numbers:
        return _range(bins, index, index + 1).removeprefix("is ")
    if index - numbers == len(bins.atoms):
        return "anything else"
    if isinstance(bins.feature, Whole | Pattern):
        return _example(bins, index, held)
    names = held[0].names | held[1].names
    return names.get(int(bins.atoms[index - numbers]), "no number")


def _example(bins: Bins, index: int, held: tuple[Table, Table]) -> str:
    """An output in this bin."""
    for table in held:
        found = np.flatnonzero(bins.of(table) == index)
        if len(found):
            few = table.take(slice(int(found[0]), int(found[0]) + 1))
            if not isinstance(bins.feature, Pattern):
                return show_row(few, 0)
            names, marks = bins.feature.names, bins.feature.marks
            codes = zip(names, symbols(few, names, marks), strict=True)
            return show_row(few, 0, {name for name, code in codes if code[0] == 0})
    return "an output of training"


def show_row(table: Table, row: int, free: Collection[str] = ()) -> str:
    """One output, shortened; places that are free hold any number."""
    texts = []
    for name, column in list(table.columns.items())[:8]:
        atom = 0 if column.atoms is None else int(column.atoms[row])
        if name in free:
            texts.append("any number")
        elif atom == 0:
            texts.append(number(float(column.numbers[row])))
        elif table.names.get(atom) != "missing":
            texts.append(table.names.get(atom, "?")[:40])
    if len(table.columns) > 8:
        texts.append("...")
    shape = table.names.get(int(table.shape[row]), "")
    if shape.startswith("raises "):
        return f"{shape}: {texts[0] if texts else ''}"
    return texts[0] if set(table.columns) == {""} and texts else f"({', '.join(texts)})"


def subject(event: Event) -> str:
    """What the event looks at, for tables and figures."""
    score = event.score
    if isinstance(score, TableScore) and isinstance(score.bins.feature, Shape | Value):
        return score.bins.feature.words
    return score.words

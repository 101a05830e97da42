"""Events in words: "output[3] is above 1.37", "the output is None", "the whole output is one of 17 of 43 values"."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from sordino.audit.sampled.bins import Bins
from sordino.audit.sampled.events import Event
from sordino.audit.sampled.features import Digits, Feature, Pattern, Shape, Value, Whole, place, symbols
from sordino.audit.sampled.outputs import Table
from sordino.audit.sampled.scores import SumScore, TableScore
from sordino.audit.sampled.trees import TreeScore

__all__ = ["bin_name", "number", "say"]

_MOST = 3
_TINY = 1e-290


def number(value: float) -> str:
    """A number for the eye."""
    return f"{0.0 if abs(value) < _TINY else value:.6g}"


def say(event: Event, held: tuple[Table, Table]) -> str:
    """The event as a sentence without its end."""
    score = event.score
    if isinstance(score, TableScore):
        return _table(score.bins, event.sign * score.weights > event.threshold, held)
    parts = f" (mostly {_listed([feature.words for feature in involved(event)])})"
    side = "above" if event.sign > 0 else "below"
    return f"a learned score of {score.words}{parts}, is {side} {number(event.sign * event.threshold)}"


def _listed(texts: list[str]) -> str:
    return ", ".join(list(dict.fromkeys(texts))[:_MOST])


def _table(bins: Bins, inside: np.ndarray[tuple[int], np.dtype[np.bool_]], held: tuple[Table, Table]) -> str:
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
        return _digits(bins.feature, bins, inside[:numbers])
    texts = _intervals(bins, inside[:numbers]) + [f"is {bin_name(bins, int(i) + numbers, held)}" for i in atoms[:_MOST]]
    if len(atoms) > _MOST:
        texts.append(f"or one of {len(atoms) - _MOST} more")
    return f"{what} " + " or ".join(texts) if texts else f"{what} is a value that training did not see"


def _digits(feature: Digits, bins: Bins, inside: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> str:
    """Binary digits as people read them."""
    what = place(feature.name)
    if feature.what != "grain":
        texts = _intervals(bins, inside)
        subject = {"last digit": f"the last binary digit of {what} stands at 2^k, where k",
                   "exponent": f"the size of {what} is 2^k to 2^(k+1), where k",
                   "length": f"the number of binary digits of {what}"}[feature.what]  # fmt: skip
        return f"{subject} {' or '.join(texts)}"
    grains = [_grain(bins, i) for i in np.flatnonzero(inside).tolist()]
    first = f"{what} is {grains[0]}" if grains else f"{what} has digits that training did not see"
    rest = f", or of {len(grains) - 1} more such kinds" if len(grains) > 1 else ""
    return first + rest


def _grain(bins: Bins, index: int) -> str:
    """A pair of size and last digit; of a wide bin, its upper end."""
    packed = int(bins.edges[min(index, len(bins.edges) - 1)])
    exponent = (packed + 2048) // 4096
    last = packed - 4096 * exponent
    return f"between 2^{exponent} and 2^{exponent + 1} in size and its last binary digit stands at 2^{last}"


def involved(event: Event) -> list[Feature]:
    """The features that matter most to an event."""
    score = event.score
    if isinstance(score, TableScore):
        return [score.bins.feature]
    if isinstance(score, SumScore):
        ordered = sorted(score.parts, key=lambda part: -float(np.ptp(part.weights)))
        return [part.bins.feature for part in ordered[:_MOST]]
    if isinstance(score, TreeScore):
        used = np.bincount([i for tree in score.trees for i in tree.features], minlength=len(score.bins))
        return [score.bins[i].feature for i in np.argsort(-used)[:_MOST]]
    return []


def shows_float_digits(event: Event) -> bool:
    """Whether the event looks at the last binary digits of floats."""
    return any(isinstance(feature, Digits) and feature.what != "exponent" for feature in involved(event))


def _intervals(bins: Bins, inside: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> list[str]:
    """Runs of neighbouring bins as ranges; many of them only counted."""
    jumps = np.diff(np.concatenate([[0], inside.astype(int), [0]]))
    ranges = list(zip(np.flatnonzero(jumps == 1).tolist(), np.flatnonzero(jumps == -1).tolist(), strict=True))
    if len(ranges) > 2 * _MOST:
        return [f"lies in one of {len(ranges)} ranges"]
    return [_range(bins, start, end) for start, end in ranges]


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
    code = int(bins.atoms[index - numbers])
    for table in held:
        if code in table.names:
            return table.names[code]
    return "no number"


def _example(bins: Bins, index: int, held: tuple[Table, Table]) -> str:
    """An output in this bin."""
    for table in held:
        found = np.flatnonzero(bins.of(table) == index)
        if len(found):
            few = table.take(slice(int(found[0]), int(found[0]) + 1))
            if isinstance(bins.feature, Pattern):
                codes = symbols(few, bins.feature.names, bins.feature.marks)
                return show_row(few, 0, {n for n, c in zip(bins.feature.names, codes, strict=True) if c[0] == 0})
            return show_row(few, 0)
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

"""Curves and bars in plain text: readable without colour, in a pipe, and in any width from 40 columns on.

One curve is a filled hill of eighth blocks, others are lines of letters across it, so that all are seen where they
overlap.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["LINES", "Bar", "bars", "curves"]

_EIGHTHS_UP = " ▁▂▃▄▅▆▇█"
_EIGHTHS_ACROSS = " ▏▎▍▌▋▊▉█"
LINES = ("o", "x")
_NOTHING = 1 / 16
"""Of a row: a line lower than this is not drawn, so that it does not hide the foot of the hill."""


@dataclass(frozen=True)
class Bar:
    """One bar: its label, its length between 0 and 1, the text behind it, and whether it is filled or shaded."""

    label: str
    length: float
    text: str
    filled: bool = True


def curves(
    x: Sequence[float],
    area: Sequence[float],
    *lines: Sequence[float],
    width: int = 80,
    height: int = 12,
) -> str:
    """Curves over the same increasing x, the first as a filled hill, up to two others as lines, above a numbered axis.

    Example:
        >>> print(curves([0, 1, 2, 3], [0, 2, 1, 0], [0, 1, 2, 0], width=40, height=3))
                 ▁▂▄▆█▇▆▅▄ooooooooooooo
             ▁▃▅▇ooooooooo█████▇▆▅▄▃▂▁ oooo
         oooooooo██████████████████████▇▆▆▅oooo
        ┬────────────┬────────────┬────────────┬
        0            1            2            3
    """
    top = max(map(max, (area, *lines)))
    hill, *paths = (
        [at * height / top for at in _columns(x, curve, width)] for curve in (area, *lines)
    )
    rows = [[" "] * width for _ in range(height)]
    for column, level in enumerate(hill):
        eighths = min(round(8 * level), 8 * height)  # between points far apart floats may overshoot
        for row in range(math.ceil(eighths / 8)):
            rows[row][column] = _EIGHTHS_UP[min(8, eighths - 8 * row)]
    for path, mark in zip(paths, LINES, strict=False):
        places = [min(max(int(level), 0), height - 1) for level in path]
        for column, (before, row, level) in enumerate(
            zip([places[0], *places], places, path, strict=False)
        ):
            for step in _steps(before, row) if level > _NOTHING else ():
                rows[step][column] = mark
    drawn = ["".join(row).rstrip() for row in reversed(rows)]
    return "\n".join([*drawn, *_axis(x[0], x[-1], width)])


def bars(lines: Sequence[Bar], *, width: int = 80) -> str:
    """Bars across, one a line; a filled one is solid, another shaded.

    Example:
        >>> print(bars([Bar("yes", 0.75, "75 %"), Bar("no", 0.25, "25 %", filled=False)], width=40))
        yes  █████████████████████▊         75 %
         no  ▒▒▒▒▒▒▒                        25 %
    """
    label = max(len(bar.label) for bar in lines)
    text = max(len(bar.text) for bar in lines)
    room = max(width - label - text - 4, 8)
    return "\n".join(
        f"{bar.label:>{label}}  {_across(bar, room):<{room}}  {bar.text:>{text}}" for bar in lines
    )


def _across(bar: Bar, room: int) -> str:
    eighths = round(8 * room * min(max(bar.length, 0.0), 1.0))
    if not bar.filled:
        return "▒" * round(eighths / 8)
    return "█" * (eighths // 8) + _EIGHTHS_ACROSS[eighths % 8].strip()


def _columns(x: Sequence[float], y: Sequence[float], width: int) -> list[float]:
    """The curve's height in the middle of each column, or its peak if that lies within the column."""
    cell = (x[-1] - x[0]) / (width - 1)
    found = []
    for column in range(width):
        place = x[0] + column * cell
        edges = [_height(x, y, place + side * cell / 2) for side in (-1, 1)]
        inside = y[bisect_right(x, place - cell / 2) : bisect_right(x, place + cell / 2)]
        peak = max(inside, default=0.0)
        found.append(peak if peak > max(edges) else _height(x, y, place))
    return found


def _height(x: Sequence[float], y: Sequence[float], place: float) -> float:
    """The height at any place, on straight lines between the points."""
    right = min(max(bisect_right(x, place), 1), len(x) - 1)
    share = (min(max(place, x[0]), x[-1]) - x[right - 1]) / (x[right] - x[right - 1])
    return y[right - 1] + share * (y[right] - y[right - 1])


def _steps(before: int, row: int) -> range:
    """The rows that join a line to its last place without a gap."""
    return range(min(before + 1, row), row + 1) if row >= before else range(row, before)


def _axis(low: float, high: float, width: int) -> list[str]:
    """A ruler and its numbers: round ones, as many as fit."""
    step = _round_step((high - low) * 12 / width)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    ruler, numbers = ["─"] * width, [" "] * (width + 12)
    free = 0
    for k in range(first, last + 1):
        column = round((k * step - low) / (high - low) * (width - 1))
        label = f"{k * step:.10g}"
        start = max(0, min(column - len(label) // 2, width - len(label)))
        ruler[column] = "┬"
        if start >= free:
            numbers[start : start + len(label)] = label
            free = start + len(label) + 1
    return ["".join(ruler), "".join(numbers).rstrip()]


def _round_step(least: float) -> float:
    """The smallest of 1, 2 and 5 times a power of ten that is not below `least`."""
    unit = 10.0 ** math.floor(math.log10(least))
    return next(unit * k for k in (1, 2, 5, 10) if unit * k >= least * (1 - 1e-9))

"""Curves, bars and tables in plain text: readable without colour, in a pipe, and in any width from 40 columns on.

One curve is a filled hill of eighth blocks, the other a line of `o` across it, so that both are seen where they overlap.
"""

from __future__ import annotations

import io
import math
import os
import sys
import textwrap
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sordino.cli.streams import is_terminal, put, width

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["Bar", "Page", "bars", "curves"]

_EIGHTHS_UP = " ▁▂▃▄▅▆▇█"
_EIGHTHS_ACROSS = " ▏▎▍▌▋▊▉█"
_LINE = "o"
_NOTHING = 1 / 16
"""Of a row: a line lower than this is not drawn, so that it does not hide the foot of the hill."""
_NARROWEST, _WIDEST, _PIPE = 40, 140, 1000
_ASCII = str.maketrans(
    {**dict.fromkeys("▁▂▃▏▎▍", " "), **dict.fromkeys("▄▅▆▇█▌▋▊▉", "#"), "▒": ":", "─": "-", "┬": "+", "±": "+/-"}
)


@dataclass(frozen=True)
class Bar:
    """One bar: its label, its length between 0 and 1, the text behind it, and whether it is filled or shaded."""

    label: str
    length: float
    text: str
    filled: bool = True


class Page:
    """What a command prints: headings, sentences, tables and plots, with colours in a terminal only.

    Lines are as wide as the terminal, within reason; those of a table stay whole in a pipe.
    """

    def __init__(self) -> None:
        from rich.console import Console

        seen = is_terminal(sys.stdout)
        self.width = min(max(width(), _NARROWEST), _WIDEST)
        self._console: Console = Console(
            file=io.StringIO(),
            force_terminal=seen and not os.environ.get("NO_COLOR"),
            width=self.width if seen else _PIPE,
            highlight=False,
            markup=False,
            emoji=False,
        )

    def heading(self, text: str) -> None:
        """A line that starts a part."""
        self._put("\n" + self._wrapped(text), style="bold")

    def say(self, text: str) -> None:
        """Sentences, broken at the width."""
        self._put(self._wrapped(text))

    def draw(self, picture: str) -> None:
        """A picture as it is: its hill in blue, its line in red."""
        from rich.text import Text

        text = Text(picture)
        text.highlight_regex("[▁▂▃▄▅▆▇█▏▎▍▌▋▊▉]+", "blue")
        text.highlight_regex(f"(?<![a-z]){_LINE}+(?![a-z])|▒+", "red")
        self._put(text)

    def table(self, headings: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 1) -> None:
        """Aligned columns; the first `left` to the left, the others to the right."""
        from rich import box
        from rich.table import Table

        table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
        table.show_header = any(headings)
        for i, name in enumerate(headings):
            table.add_column(name, justify="left" if i < left else "right", no_wrap=i < left, overflow="fold")
        for row in rows:
            table.add_row(*row)
        self._put(table)

    def _put(self, what: Any, style: str | None = None) -> None:
        with self._console.capture() as captured:
            self._console.print(what, style=style, soft_wrap=isinstance(what, str))
        put(_encoded(captured.get(), "utf-8" if sys.stdout is None else sys.stdout.encoding))

    def _wrapped(self, text: str) -> str:
        hanging = "  " if text.startswith("- ") else ""
        return textwrap.fill(text, self.width, subsequent_indent=hanging, break_long_words=False, break_on_hyphens=False)


def curves(x: Sequence[float], area: Sequence[float], line: Sequence[float], *, width: int = 80, height: int = 12) -> str:
    """Two curves over the same increasing x, the first as a filled hill, the second as a line, above an axis with numbers.

    Example:
        >>> print(curves([0, 1, 2, 3], [0, 2, 1, 0], [0, 1, 2, 0], width=40, height=3))
                 ▁▂▄▆█▇▆▅▄ooooooooooooo
             ▁▃▅▇ooooooooo█████▇▆▅▄▃▂▁ oooo
         oooooooo██████████████████████▇▆▆▅oooo
        ┬────────────┬────────────┬────────────┬
        0            1            2            3
    """
    top = max(*area, *line)
    hill, path = ([at * height / top for at in _columns(x, curve, width)] for curve in (area, line))
    rows = [[" "] * width for _ in range(height)]
    for column, level in enumerate(hill):
        eighths = round(8 * level)
        for row in range(math.ceil(eighths / 8)):
            rows[row][column] = _EIGHTHS_UP[min(8, eighths - 8 * row)]
    before = 0
    for column, level in enumerate(path):
        row = min(int(level), height - 1)
        for step in _steps(before, row) if level > _NOTHING else ():
            rows[step][column] = _LINE
        before = row
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
    return "\n".join(f"{bar.label:>{label}}  {_across(bar, room):<{room}}  {bar.text:>{text}}" for bar in lines)


def _encoded(text: str, encoding: str) -> bytes:
    """The bytes of a text; in an encoding without blocks they become letters that look alike."""
    try:
        return text.encode(encoding)
    except UnicodeEncodeError:
        return text.translate(_ASCII).encode(encoding, "replace")


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

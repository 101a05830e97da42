"""What a command prints beside plain lines: headings, sentences, tables and plots."""

from __future__ import annotations

import io
import os
import sys
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sordino.answer.text_plot import LINES
from sordino.cli.streams import is_terminal, put, width
from sordino.errors import visible

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["Page"]

_NARROWEST, _WIDEST, _PIPE = 40, 140, 1000
_GAP = 2
"""Between columns."""
_ASCII = str.maketrans(
    {
        **dict.fromkeys("▁▂▃▏▎▍", " "),
        **dict.fromkeys("▄▅▆▇█▌▋▊▉", "#"),
        "▒": ":",
        "─": "-",
        "┬": "+",
        "±": "+/-",
    }
)


class Page:
    """What a command prints: headings, sentences, tables and plots, with colours in a terminal only.

    Lines are as wide as the terminal, within reason; those of a table stay whole in a pipe, unless `COLUMNS` is set.
    """

    def __init__(self) -> None:
        from rich.console import Console

        seen = is_terminal(sys.stdout)
        self.width = min(max(width(), _NARROWEST), _WIDEST)
        self._room = self.width if seen or os.environ.get("COLUMNS") else _PIPE
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
        self._put("\n" + self._wrapped(visible(text)), style="bold")

    def say(self, text: str) -> None:
        """Sentences, broken at the width."""
        self._put(self._wrapped(visible(text)))

    def draw(self, picture: str, first_word: str = "") -> None:
        """A picture as it is: its hill in blue, its line in red, and its first word in a style if there is one."""
        from rich.text import Text

        text = Text(visible(picture))
        text.highlight_regex("[▁▂▃▄▅▆▇█▏▎▍▌▋▊▉]+", "blue")
        for mark, colour in zip((*LINES, "▒"), ("red", "magenta", "red"), strict=True):
            text.highlight_regex(f"(?<![a-z]){mark}+(?![a-z])", colour)
        if first_word:
            text.highlight_regex(r"\A\w+", first_word)
        self._put(text)

    def table(
        self, headings: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 1
    ) -> None:
        """Aligned columns; the first `left` to the left, the others to the right.

        Cells are broken between words where there is little room; where even that is too wide, each row is a block of
        lines.
        """
        from rich import box
        from rich.table import Table

        headings, *rows = ([visible(cell) for cell in row] for row in (headings, *rows))
        widths = _widths([headings, *rows], left, self._room)
        if (
            sum(widths) + _GAP * (len(widths) - 1) > self._room
            and _longest_word([headings, *rows]) < self._room - _GAP
        ):
            for row in rows:
                self._block(headings, row)
            return
        headings, *rows = (_broken(row, widths, left) for row in (headings, *rows))
        table = Table(
            box=box.SIMPLE_HEAD,
            show_edge=False,
            pad_edge=False,
            padding=(0, 1, 0, 0),
            header_style="bold",
        )
        table.show_header = any(headings)
        for i, name in enumerate(headings):
            table.add_column(
                name, justify="left" if i < left else "right", no_wrap=i < left, overflow="fold"
            )
        for row in rows:
            table.add_row(*row)
        self._put(table)

    def _block(self, headings: Sequence[str], row: Sequence[str]) -> None:
        """One row of a table that is too wide, a line for each cell."""
        cells = [
            f"{name}: {cell}" if name else cell
            for name, cell in zip(headings, row, strict=True)
            if cell
        ]
        lines = [cell if i == 0 else "  " + cell for i, cell in enumerate(cells)]
        self._put("\n".join(_filled(line, self._room, "    ") for line in lines))

    def _put(self, what: Any, style: str | None = None) -> None:
        with self._console.capture() as captured:
            self._console.print(what, style=style, soft_wrap=isinstance(what, str))
        put(_encoded(captured.get(), "utf-8" if sys.stdout is None else sys.stdout.encoding))

    def _wrapped(self, text: str) -> str:
        hanging = "  " if text.startswith("- ") else ""
        return textwrap.fill(
            text,
            self.width,
            subsequent_indent=hanging,
            break_long_words=False,
            break_on_hyphens=False,
        )


def _widths(table: Sequence[Sequence[str]], left: int, room: int) -> list[int]:
    """How wide each column is: as wide as it wants or, if that is more than there is room for, as its words allow."""
    wanted = [max(map(len, column)) for column in zip(*table, strict=True)]
    least = [
        _longest_word([column]) + (_GAP if i < left else 0)
        for i, column in enumerate(zip(*table, strict=True))
    ]
    while sum(wanted) + _GAP * (len(wanted) - 1) > room:
        free = [i for i in range(len(wanted)) if wanted[i] > least[i]]
        if not free:
            break
        wanted[max(free, key=lambda i: wanted[i])] -= 1
    return wanted


def _longest_word(table: Sequence[Sequence[str]]) -> int:
    return max(len(word) for row in table for cell in row for word in _glued(cell).split(" "))


def _broken(row: Sequence[str], widths: Sequence[int], left: int) -> list[str]:
    """Cells in lines of these widths; what goes on is indented in columns to the left."""
    cells = enumerate(zip(row, widths, strict=True))
    return [
        _filled(cell, room, " " * _GAP if i < left else "") if len(cell) > room else cell
        for i, (cell, room) in cells
    ]


def _filled(text: str, room: int, indent: str) -> str:
    """Lines broken between words."""
    lines = textwrap.fill(
        _glued(text), room, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
    return lines.replace("\N{NO-BREAK SPACE}", " ")


def _glued(cell: str) -> str:
    """With numbers kept together with their percent signs."""
    return cell.replace(" %", "\N{NO-BREAK SPACE}%")


def _encoded(text: str, encoding: str) -> bytes:
    """The bytes of a text; in an encoding without blocks they become letters that look alike."""
    try:
        return text.encode(encoding)
    except UnicodeEncodeError:
        return text.translate(_ASCII).encode(encoding, "replace")

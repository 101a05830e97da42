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

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["Page"]

_NARROWEST, _WIDEST, _PIPE = 40, 140, 1000
_ASCII = str.maketrans(
    {**dict.fromkeys("▁▂▃▏▎▍", " "), **dict.fromkeys("▄▅▆▇█▌▋▊▉", "#"), "▒": ":", "─": "-", "┬": "+", "±": "+/-"}
)


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

    def draw(self, picture: str, first_word: str = "") -> None:
        """A picture as it is: its hill in blue, its line in red, and its first word in a style if there is one."""
        from rich.text import Text

        text = Text(picture)
        text.highlight_regex("[▁▂▃▄▅▆▇█▏▎▍▌▋▊▉]+", "blue")
        for mark, colour in zip((*LINES, "▒"), ("red", "magenta", "red"), strict=True):
            text.highlight_regex(f"(?<![a-z]){mark}+(?![a-z])", colour)
        if first_word:
            text.highlight_regex(r"\A\w+", first_word)
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


def _encoded(text: str, encoding: str) -> bytes:
    """The bytes of a text; in an encoding without blocks they become letters that look alike."""
    try:
        return text.encode(encoding)
    except UnicodeEncodeError:
        return text.translate(_ASCII).encode(encoding, "replace")

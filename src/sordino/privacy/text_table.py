"""Aligned columns of plain text: the one place where cells are padded.

What terminals show in colour is `cli/page.py`.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

__all__ = ["aligned", "clean", "padded", "text_width"]

_GAP = "  "


def aligned(
    rows: Sequence[Sequence[str]], right: Sequence[bool], *, ruled: bool = False
) -> list[str]:
    """A line for each row, all columns as wide as their widest cell; `right` says which ones are aligned to the right.

    With `ruled` a line is drawn under the first row, which are the headings.

    Example:
        >>> aligned([("ward", "n"), ("A", "120")], [False, True])
        ['ward    n', 'A     120']
    """
    widths = [max(map(text_width, column)) for column in zip(*rows, strict=True)]
    cells = [
        [
            padded(cell, width, right=side)
            for cell, width, side in zip(row, widths, right, strict=True)
        ]
        for row in rows
    ]
    if ruled:
        cells.insert(1, ["─" * width for width in widths])
    return [_GAP.join(row).rstrip() for row in cells]


def clean(text: str) -> str:
    """Text without what would break a line or move the cursor."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def padded(text: str, width: int, *, right: bool = False) -> str:
    """A text filled up with spaces, on its left if it is aligned to the right."""
    space = " " * (width - text_width(text))
    return space + text if right else text + space


def text_width(text: str) -> int:
    """How many places a terminal gives to a text: East Asian letters take two, combining marks none."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )

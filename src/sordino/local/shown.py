"""How results read as text: numbers with their noun, and shares in columns."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["label", "several", "share_lines"]

_NARROWEST, _WIDEST = 20, 40


def several(count: int, noun: str) -> str:
    """A number with its noun."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def share_lines(rows: Iterable[tuple[object, float, float, float]]) -> list[str]:
    """A line for each name, share and interval; long names are cut."""
    shown = [(label(str(name)), share, low, high) for name, share, low, high in rows]
    width = max([_NARROWEST, *(len(row[0]) for row in shown)])
    return [f"  {name:<{width}} {share:8.4f}  [{low:.4f}, {high:.4f}]" for name, share, low, high in shown]


def label(name: str) -> str:
    """A name on one line, cut if it is long."""
    text = name if name.isprintable() else repr(name)[1:-1]
    return text if len(text) <= _WIDEST else text[: _WIDEST - 3] + "..."

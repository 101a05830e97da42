"""What notebooks show of an object: a heading, facts, a table and notes, in the colours of the notebook's own theme.

Every text is escaped. Nothing is drawn on a background of its own, and lines are half transparent, so that a light and
a dark theme both suit. No script runs and nothing is loaded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from sordino.errors import visible

__all__ = ["card", "meter"]

_LINE = "1px solid rgba(128,128,128,.35)"
_CARD = f"border:{_LINE};border-radius:6px;padding:.6em .9em;margin:.3em 0;display:inline-block;max-width:60em;color:inherit"
_CELL = "padding:.15em .8em .15em 0;vertical-align:top;text-align:{};background:transparent;color:inherit"


def card(
    heading: str,
    facts: Mapping[str, str] | Sequence[tuple[str, str]] = (),
    *,
    table: tuple[Sequence[str], Sequence[Sequence[str]]] | None = None,
    notes: Sequence[str] = (),
    left: float | None = None,
) -> str:
    """The HTML of one object; `left` is drawn as a bar, as a part of the whole."""
    parts = [f"<strong>{_text(heading)}</strong>"]
    if left is not None:
        parts.append(meter(left))
    pairs = list(facts.items() if isinstance(facts, Mapping) else facts)
    if pairs:
        rows = "".join(
            f'<tr style="background:transparent"><td style="{_CELL.format("left")};opacity:.7">{_text(name)}</td>'
            f'<td style="{_CELL.format("left")}">{_text(value)}</td></tr>'
            for name, value in pairs
        )
        parts.append(f'<table style="border:none;margin:.3em 0"><tbody>{rows}</tbody></table>')
    if table is not None:
        parts.append(_table(*table))
    parts += [f'<div style="margin-top:.3em"><small>{_text(note)}</small></div>' for note in notes]
    return f'<div style="{_CARD}">{"".join(parts)}</div>'


def meter(part: float | None, text: str = "") -> str:
    """A bar that is filled to a part; moving to and fro if the part is not known."""
    value = "" if part is None else f' value="{min(max(part, 0.0), 1.0):.4f}"'
    told = f" <small>{_text(text)}</small>" if text else ""
    return f'<div><progress max="1"{value} style="width:18em;vertical-align:middle"></progress>{told}</div>'


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    heads = "".join(
        f'<th style="{_CELL.format("left")};border-bottom:{_LINE}">{_text(name)}</th>'
        for name in headings
    )
    lines = "".join(
        '<tr style="background:transparent">'
        + "".join(f'<td style="{_CELL.format("left")}">{_text(cell)}</td>' for cell in row)
        + "</tr>"
        for row in rows
    )
    return f'<table style="border:none;margin:.3em 0"><thead><tr>{heads}</tr></thead><tbody>{lines}</tbody></table>'


def _text(text: str) -> str:
    return escape(visible(text)).replace("\n", "<br>")

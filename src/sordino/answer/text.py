"""An answer for the eye: an aligned table with intervals, in text and HTML, with as many digits as the noise leaves."""

from __future__ import annotations

import math
import shutil
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from html import escape
from typing import TYPE_CHECKING

from sordino.privacy.text_table import clean, padded, text_width
from sordino.privacy.wording import counted

if TYPE_CHECKING:
    from sordino.answer.answer import Answer, EstimateColumn, KeyColumn
    from sordino.query.having import Cell

__all__ = ["html", "key_text", "number", "percent", "spread", "table"]

_LONGEST = 40
"""Longer keys are cut."""
_NARROWEST = 20


@dataclass(frozen=True)
class _Strip:
    """One column of the answer as text: a heading and, side by side, the value and perhaps its interval."""

    heading: str
    values: list[str]
    spreads: list[str] | None
    left: bool

    def lines(self, confidence: str) -> list[str]:
        """Heading, rule and cells, all of the same width."""
        if self.spreads is None:
            body = self.values
            width = max(map(text_width, [self.heading, *body]))
            top = padded(self.heading, width, right=not self.left)
            return [top, "─" * width, *(padded(v, width, right=not self.left) for v in body)]
        wide = max(map(text_width, [self.heading, *self.values]))
        far = max(map(text_width, [confidence, *self.spreads]))
        top = f"{padded(self.heading, wide, right=True)} {padded(confidence, far)}"
        body = [
            f"{padded(v, wide, right=True)} {padded(s, far)}"
            for v, s in zip(self.values, self.spreads, strict=True)
        ]
        return [top, "─" * (wide + 1 + far), *body]


def table(answer: Answer, width: int | None = None, rows: int = 40) -> str:
    """The answer as text; a line has at most `width` characters (default: the terminal's)."""
    room = max(width or shutil.get_terminal_size((100, 24)).columns, _NARROWEST)
    shown = min(len(answer), rows)
    blocks = [
        s.lines(f"± {percent(answer)}") for s in _strips(answer, shown, min(_LONGEST, room // 2))
    ]
    fitting = 1
    while (
        fitting < len(blocks)
        and sum(text_width(b[0]) for b in blocks[: fitting + 1]) + 2 * fitting <= room
    ):
        fitting += 1
    lines = ["  ".join(parts).rstrip() for parts in zip(*blocks[:fitting], strict=True)]
    if shown < len(answer):
        lines.append(f"... {counted(len(answer) - shown, 'more row')}")
    if fitting < len(blocks):
        hidden = [clean(name) for name in answer.names[fitting:]]
        lines += textwrap.wrap(
            f"... {counted(len(hidden), 'more column')}: {', '.join(hidden)}", room
        )
    if not len(answer):
        lines.append("(no rows)")
    below = _below(answer)
    return "\n".join(
        [
            *lines,
            *([""] if below else []),
            *(line for text in below for line in textwrap.wrap(text, room)),
        ]
    )


def html(answer: Answer, rows: int = 40) -> str:
    """The answer as an HTML table for notebooks."""
    shown = min(len(answer), rows)
    strips = _strips(answer, shown, _LONGEST)
    style = ' style="text-align:{}"'
    heads, lines = [], []
    for s in strips:
        small = "" if s.spreads is None else f" <small>± {escape(percent(answer))}</small>"
        heads.append(
            f"<th{style.format('left' if s.left else 'right')}>{escape(s.heading)}{small}</th>"
        )
    for i in range(shown):
        cells = []
        for s in strips:
            text = escape(s.values[i].strip()) + (
                "" if s.spreads is None else f" <small>{escape(s.spreads[i])}</small>"
            )
            cells.append(f"<td{style.format('left' if s.left else 'right')}>{text}</td>")
        lines.append(f"<tr>{''.join(cells)}</tr>")
    more = f"<p>... {counted(len(answer) - shown, 'more row')}</p>" if shown < len(answer) else ""
    below = "".join(f"<p><small>{escape(text)}</small></p>" for text in _below(answer))
    return f"<table><thead><tr>{''.join(heads)}</tr></thead><tbody>{''.join(lines)}</tbody></table>{more}{below}"


def percent(answer: Answer) -> str:
    """The confidence of the intervals, as a heading."""
    return f"{float(answer.confidence) * 100:.10g} %"


def number(x: float, half_width: float, *, integer: bool = False) -> str:
    """A number with two digits of what the noise leaves open; all that matter if there is no noise.

    Example:
        >>> number(1234.5678, 3.21), number(0.123456, 0.0021), number(98765.4, 321)
        ('1,234.6', '0.1235', '98,765')
    """
    if math.isnan(x):
        return "NULL"
    if integer and abs(x) < 1e15:
        return f"{x:,.0f}"
    if not half_width > 0 or not math.isfinite(half_width) or abs(x) >= 1e15:
        return f"{x:,.10g}" if abs(x) < 1e15 else f"{x:.6g}"
    decimals = 1 - math.floor(math.log10(half_width))
    if decimals > 12:
        return f"{x:.6g}"
    text = f"{x:,.{max(decimals, 0)}f}"
    return text[1:] if text.startswith("-") and not any(c in "123456789" for c in text) else text


def spread(value: float, low: float, high: float, *, integer: bool = False) -> str:
    """The interval: ± where it is as wide to both sides, else its ends; nothing where there is no noise."""
    down, up = value - low, high - value
    widest = max(down, up)
    if math.isnan(value) or widest == 0:
        return ""
    if abs(down - up) <= (1.0 if integer else 0.1 * widest):
        return f"± {number(widest, widest, integer=integer)}"
    return f"[{number(low, widest, integer=integer)}, {number(high, widest, integer=integer)}]"


def key_text(cell: Cell, longest: int = _LONGEST) -> str:
    """A key as text, on one line, cut if it is long."""
    match cell:
        case None:
            return "NULL"
        case bool():
            return str(cell).lower()
        case float():
            return f"{cell:.10g}"
        case datetime():
            return cell.isoformat(" ")
        case date():
            return cell.isoformat()
        case _:
            text = clean(str(cell))
            return text if len(text) <= longest else text[: longest - 1] + "…"


def _strips(answer: Answer, rows: int, longest: int) -> list[_Strip]:
    from sordino.answer.answer import KeyColumn

    return [
        _key_strip(c, rows, longest) if isinstance(c, KeyColumn) else _estimate_strip(c, rows)
        for c in answer.columns
    ]


def _key_strip(column: KeyColumn, rows: int, longest: int) -> _Strip:
    cells = column.cells[:rows]
    numeric = bool(cells) and all(
        c is None or (isinstance(c, int | float) and not isinstance(c, bool)) for c in cells
    )
    return _Strip(clean(column.name), [key_text(c, longest) for c in cells], None, left=not numeric)


def _estimate_strip(column: EstimateColumn, rows: int) -> _Strip:
    e = column.estimates
    triples = list(
        zip(e.value[:rows].tolist(), e.low[:rows].tolist(), e.high[:rows].tolist(), strict=True)
    )
    values = [number(v, max(v - low, high - v), integer=column.integer) for v, low, high in triples]
    spreads = [spread(*t, integer=column.integer) for t in triples]
    return _Strip(
        clean(column.name), _at_the_point(values), spreads if any(spreads) else None, left=False
    )


def _at_the_point(texts: Sequence[str]) -> list[str]:
    """Numbers filled up on the right so that their decimal points meet."""
    after = [len(t) - t.index(".") if "." in t and "e" not in t else 0 for t in texts]
    most = max(after, default=0)
    return [t if t == "NULL" else t + " " * (most - a) for t, a in zip(texts, after, strict=True)]


def _below(answer: Answer) -> list[str]:
    wide = any((c.estimates.high > c.estimates.low).any() for c in answer.estimates)
    told = f"Each interval holds the number before noise with a probability of at least {percent(answer)}."
    lines = [
        *([told] if wide else []),
        *([answer.privacy] if answer.privacy else []),
        *(f"Note: {n}" for n in answer.notes),
    ]
    return [clean(line) for line in lines]

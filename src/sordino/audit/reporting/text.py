"""Reports for a terminal: the verdict first, then the evidence.

Plain text without escape codes, whatever names hold.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Sequence

import numpy as np

from sordino.answer.text_plot import LINES, Bar, bars, curves
from sordino.audit.reporting.phrases import (
    WORD,
    at_least,
    event_name,
    headline,
    needed,
    ordered,
    tally,
)
from sordino.audit.reporting.report import Dossier, Figure, Grid, Report, Series
from sordino.privacy.text_table import aligned, clean

__all__ = ["figure_text", "told_text", "verdict_line"]

_NARROWEST, _INDENT = 40, 11
_HEIGHT = 10
_PLACES = 16
"""A figure with more named places shows the first of them."""
_LONGEST_TICK, _LONGEST_FACT = 24, 30
"""Longer names of places are cut, and longer names of facts stand on a line of their own."""
_NARROW_CELL = 10
_SHARPEST = 1e-9
"""Numbers that are nearer to each other, beside their size, have no axis."""


def verdict_line(result: Report | Dossier) -> str:
    """The verdict in one line, however long."""
    return clean(" ".join(_verdict(result)))


def told_text(told: Report | Dossier, width: int = 100) -> str:
    """A report or a dossier in lines of at most `width` characters, where words allow."""
    width = max(width, _NARROWEST)
    parts = _report(told, width) if isinstance(told, Report) else _dossier(told, width)
    return "\n\n".join(part for part in parts if part)


def _report(report: Report, width: int) -> list[str]:
    return [
        _entry(*_verdict(report), width, _INDENT),
        _wrapped(report.summary, width),
        _facts(_evidence(report), width),
        *(_grid(grid, width) for grid in report.grids),
        *(f"{_wrapped(f.title, width)}\n{figure_text(f, width)}" for f in report.figures),
        "\n".join(_wrapped(f"- {note}", width, "  ") for note in report.notes),
        _wrapped(" · ".join(filter(None, (_maker(report.version), clean(report.created)))), width),
    ]


def _dossier(dossier: Dossier, width: int) -> list[str]:
    """A line for each report, those first that are not as they should be."""
    known = bool(dossier.expected)
    rows = []
    for _, report, want, fine in ordered(dossier):
        truth = ("ok" if fine else "WRONG", "true" if want else "false") if known else ()
        shown = "" if report.passed else report.witness or report.summary
        asked = f"{report.epsilon:.6g}" + (f", {report.delta:.3g}" if report.delta else "")
        least = at_least(report.epsilon_lower, report.epsilon) if needed(report) else ""
        verdict = WORD[report.verdict].lower() if fine else WORD[report.verdict]
        rows.append((report.name, *truth, verdict, asked, least, shown))
    truth = ("", "claim is") if known else ()
    headings = ("name", *truth, "verdict", "claimed", "at least", "witness")
    return [
        _entry(*_verdict(dossier), width, _INDENT),
        _table(headings, rows, width),
        _facts(dossier.facts, width),
        "\n".join(_wrapped(f"- {note}", width, "  ") for note in dossier.notes),
    ]


def _verdict(result: Report | Dossier) -> tuple[str, str]:
    """Its word, and its sentence."""
    if isinstance(result, Report):
        return WORD[result.verdict], headline(result)
    return "PASSED" if result.passed else "FAILED", f"{result.title}: {tally(result)}"


def _evidence(report: Report) -> list[tuple[str, str]]:
    told = [(event_name(report).lower(), report.witness)]
    if report.pair is not None:
        told += [("one input", report.pair[0]), ("the other", report.pair[1])]
    told += [("neighbours", report.relation), ("method", report.method)]
    return [*((name, text) for name, text in told if text), *report.facts]


def _maker(version: str) -> str:
    return clean(f"Sordino {version}") if version else ""


def _entry(label: str, text: str, width: int, indent: int) -> str:
    """A label, and a text that hangs beside it."""
    label = clean(label)
    if len(label) >= indent:
        return f"{label}\n{_wrapped(text, width, ' ' * indent, first=' ' * indent)}"
    return _wrapped(text, width, " " * indent, first=f"{label:<{indent}}")


def _facts(facts: Iterable[tuple[str, str]], width: int) -> str:
    entries = list(facts)
    longest = min(_LONGEST_FACT, width // 3)
    indent = 2 + max((len(name) for name, _ in entries if len(name) <= longest), default=_INDENT)
    return "\n".join(_entry(name, text, width, indent) for name, text in entries)


def _grid(grid: Grid, width: int) -> str:
    return f"{_wrapped(grid.title, width)}\n{_table(grid.headings, grid.rows, width)}"


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> str:
    """Aligned columns, numbers to the right; the widest columns are cut where the lines would be too long."""
    lines = [[clean(" ".join(cell.split())) for cell in row] for row in (headings, *rows)]
    columns = list(zip(*lines, strict=True))
    numeric = [len(lines) > 1 and all(map(_is_number, cells[1:])) for cells in columns]
    wide = [max(map(len, cells)) for cells in columns]
    while sum(wide) + 2 * (len(wide) - 1) > width and max(wide) > _NARROW_CELL:
        wide[wide.index(max(wide))] -= 1
    cut = [[_cut(cell, w) for cell, w in zip(row, wide, strict=True)] for row in lines]
    return "\n".join(aligned(cut, numeric, ruled=True))


def _is_number(text: str) -> bool:
    return not text or text[0] in "-+.0123456789≥≤" or text in ("inf", "nan")


def figure_text(figure: Figure, width: int = 80) -> str:
    """A figure in plain characters, without its title."""
    kept = [s for s in figure.series if _points(s)]
    if not kept:
        return "(nothing to draw)"
    places = {x for s in kept for x in _points(s)}
    low, high = min(places), max(places)
    named = figure.ticks or not high - low > _SHARPEST * max(abs(low), abs(high), 1e-100)
    return _bars(figure, kept, width) if named else _curves(figure, kept, width)


def _bars(figure: Figure, kept: Sequence[Series], width: int) -> str:
    """A group of bars at each place; those of the first series filled, the others shaded."""
    points = [_points(s) for s in kept]
    places = sorted({x for of in points for x in of})
    heights = [y for of in points for y in of.values()]
    top = max(heights)
    lines = []
    for place in places[:_PLACES]:
        for i, of in enumerate(points):
            label = _cut(clean(figure.place_name(place)), _LONGEST_TICK) if i == 0 else ""
            y = of.get(place, 0.0)
            lines.append(Bar(label, y / top if top > 0 else 0.0, f"{y:.3g}", filled=i == 0))
    more = [f"... and {len(places) - _PLACES} more"] if len(places) > _PLACES else []
    marks = [f"█ {kept[0].name}", *(f"▒ {s.name}" for s in kept[1:])]
    return "\n".join([bars(lines, width=width), *more, _key(figure, marks, width)])


def _curves(figure: Figure, kept: Sequence[Series], width: int) -> str:
    """The first series as a hill, two more as lines; on a logarithmic scale from the decade below the smallest."""
    shown = [_points(s) for s in kept[: 1 + len(LINES)]]
    x = sorted({place for points in shown for place in points})
    outside = 0.0 if figure.kind == "bars" else None
    heights = [
        np.interp(x, list(own), list(own.values()), left=outside, right=outside).tolist()
        for own in shown
    ]
    top = max(map(max, heights))
    positive = [y for ys in heights for y in ys if y > 0]
    if not positive:
        return "(nothing above zero)"
    scale = f"up to {top:.3g}"
    if figure.log_y:
        low = math.floor(math.log10(min(positive)) - 1e-9)
        heights = [[math.log10(y) - low if y > 0 else 0.0 for y in ys] for ys in heights]
        scale = f"logarithmic, from 1e{low:+03d} to {top:.3g}"
    marks = [f"{mark} {s.name}" for mark, s in zip(("█", *LINES), kept, strict=False)]
    if len(kept) > len(shown):
        marks.append(f"not drawn: {', '.join(s.name for s in kept[len(shown) :])}")
    key = _key(figure, marks, width, scale)
    return f"{curves(x, *heights, width=width, height=_HEIGHT)}\n{key}"


def _key(figure: Figure, marks: Sequence[str], width: int, scale: str = "") -> str:
    up = f"{figure.y_label}, {scale}" if scale else figure.y_label
    return _wrapped("   ".join([*marks, f"({up}, by {figure.x_label})"]), width)


def _points(series: Series) -> dict[float, float]:
    """The points that can be drawn, from left to right; the highest where there are several at one place."""
    return dict(sorted(series.drawable()))


def _wrapped(text: str, width: int, indent: str = "", *, first: str = "") -> str:
    lines = [clean(line) for line in text.splitlines()]
    return "\n".join(
        textwrap.fill(
            line, width, initial_indent=first if i == 0 else indent, subsequent_indent=indent,
            break_long_words=False, break_on_hyphens=False,
        )
        for i, line in enumerate(lines)
    )  # fmt: skip


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"

"""A figure of a report as SVG: no script, no font file, no colour that carries a meaning alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

from sordino.answer.text import clean
from sordino.audit.reporting.drawable import drawable, place_name, spread_out
from sordino.audit.reporting.report import Figure, Series

__all__ = ["drawing"]

_WIDTH, _HEIGHT = 480, 250
_LEFT, _RIGHT, _LINE = 62, 14, 18
_LETTER = 6.4
"""About how wide a letter of size 12 is."""
_COLOURS = ("#2b5c8a", "#b03a2e", "#4d4d4d", "#7d5ba6", "#2e7d4f")
_DASHES = ("", "7 4", "2 3", "9 3 2 3", "4 2")
_MARKERS = 12
"""Lines of no more points show them."""
_LONGEST_TICK, _TICKS = 18, 14


@dataclass(frozen=True)
class _Axis:
    """From numbers to places on the paper; `marks` are the numbers that are named."""

    low: float
    high: float
    start: float
    end: float
    marks: tuple[tuple[float, str], ...]
    log: bool = False

    def at(self, value: float) -> float:
        if self.log:
            value = math.log10(value) if value > 0 else self.low
        return self.start + (min(max(value, self.low), self.high) - self.low) / (self.high - self.low) * (
            self.end - self.start
        )


def drawing(figure: Figure) -> str:
    """The picture, without its title, as one `svg` element that a page can hold."""
    kept = [drawable(s) for s in figure.series]
    shown = [(i, s) for i, s in enumerate(kept) if s.x]
    legend = _legend([(i, s.name) for i, s in shown])
    top = 10 + _LINE * (1 + max((row for row, _, _, _ in legend), default=-1))
    names = _shown_ticks(figure)
    slanted = _crowded(names, (_WIDTH - _LEFT - _RIGHT) / max(len(figure.ticks), 1))
    below = 46 + (0.6 * _LETTER * max((len(n) for _, n in names), default=0) if slanted else 0)
    bottom = top + _HEIGHT
    if not shown:
        parts = [_text(_WIDTH / 2, 40, "nothing to draw", "middle")]
        return _svg(figure, 80, parts)
    x = _across(figure, [s for _, s in shown], names)
    y = _up([s for _, s in shown], top, bottom, log=figure.log_y)
    parts = [*_frame(figure, x, y, bottom, slanted=slanted), *_legend_marks(legend, figure)]
    for i, series in shown:
        parts.append(
            _bars(series, i, len(kept), x, y) if figure.ticks and figure.kind == "bars" else _curve(figure, series, i, x, y)
        )
    return _svg(figure, bottom + below, parts)


def _svg(figure: Figure, height: float, parts: Sequence[str]) -> str:
    label = escape(_described(figure))
    return (
        f'<svg role="img" aria-label="{label}" viewBox="0 0 {_WIDTH} {height:.0f}" xmlns="http://www.w3.org/2000/svg" '
        f'font-family="system-ui, Helvetica, Arial, sans-serif" font-size="12" fill="#222"><title>{label}</title>'
        f"{''.join(parts)}</svg>"
    )


def _described(figure: Figure) -> str:
    """What the picture shows, for those who do not see it."""
    told = []
    for series in map(drawable, figure.series):
        if series.x:
            peak = max(range(len(series.y)), key=series.y.__getitem__)
            place = place_name(figure, series.x[peak])
            told.append(f"{series.name} is highest at {place} with {series.y[peak]:.3g}")
    return clean(f"{figure.title}: {figure.y_label} by {figure.x_label}. {'; '.join(told) or 'No points'}.")


def _shown_ticks(figure: Figure) -> list[tuple[int, str]]:
    """The names below the axis: all of them, or some of them if they are too many."""
    every = math.ceil(len(figure.ticks) / _TICKS) if figure.ticks else 1
    return [(i, _cut(clean(name))) for i, name in enumerate(figure.ticks) if i % every == 0]


def _crowded(names: Sequence[tuple[int, str]], step: float) -> bool:
    """Whether two names side by side would meet, `step` being the room of one place."""
    return any((len(a) + len(b)) / 2 * _LETTER + 8 > (j - i) * step for (i, a), (j, b) in pairwise(names))


def _across(figure: Figure, shown: Sequence[Series], names: Sequence[tuple[int, str]]) -> _Axis:
    start, end = float(_LEFT), float(_WIDTH - _RIGHT)
    if figure.ticks:
        return _Axis(-0.5, len(figure.ticks) - 0.5, start, end, tuple((float(i), name) for i, name in names))
    low, high = min(min(s.x) for s in shown), max(max(s.x) for s in shown)
    half = max((_half_width(s.x) for s in shown), default=0.0) if figure.kind == "bars" else 0.0
    if not spread_out(low - half, high + half):
        half = abs(low) / 2 or 0.5
    low, high = low - half, high + half
    return _Axis(low, high, start, end, _round_marks(low, high, 6))


def _up(shown: Sequence[Series], top: float, bottom: float, *, log: bool) -> _Axis:
    heights = [y for s in shown for y in s.y]
    positive = [y for y in heights if y > 0]
    if log and positive:
        first, last = math.floor(math.log10(min(positive)) - 1e-9), math.ceil(math.log10(max(positive)) - 1e-9)
        last = max(last, first + 1)
        every = math.ceil((last - first) / 6)
        decades = tuple((10.0**k, f"1e{k}" if k else "1") for k in range(first, last + 1) if (last - k) % every == 0)
        return _Axis(first, last, bottom, top, decades, log=True)
    low, high = min(0.0, *heights), max(0.0, *heights) * 1.04
    if not spread_out(low, high):
        high = low + 1.0
    return _Axis(low, high, bottom, top, _round_marks(low, high, 6))


def _round_marks(low: float, high: float, most: int) -> tuple[tuple[float, str], ...]:
    least = (high - low) / most
    unit = 10.0 ** math.floor(math.log10(least))
    step = next(unit * k for k in (1, 2, 5, 10) if unit * k >= least * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return tuple((k * step, f"{k * step:.6g}") for k in range(first, last + 1))


def _frame(figure: Figure, x: _Axis, y: _Axis, bottom: float, *, slanted: bool) -> list[str]:
    """Grid, axes, their numbers and labels."""
    parts = []
    for value, name in y.marks:
        at = y.at(value)
        parts.append(f'<path d="M{_LEFT} {at:.1f}H{_WIDTH - _RIGHT}" stroke="#e3e3e3"/>')
        parts.append(_text(_LEFT - 6, at + 4, name, "end"))
    for value, name in x.marks:
        at = x.at(value)
        parts.append(f'<path d="M{at:.1f} {bottom:.1f}v4" stroke="#555"/>')
        turned = f' transform="rotate(-35 {at:.1f} {bottom + 14:.1f})"' if slanted else ""
        parts.append(_text(at, bottom + 17, name, "end" if slanted else "middle", turned))
    parts.append(f'<path d="M{_LEFT} {bottom:.1f}H{_WIDTH - _RIGHT}" stroke="#555"/>')
    longest = max((len(name) for _, name in x.marks), default=0)
    depth = bottom + 36 + (0.6 * _LETTER * longest if slanted else 0)
    parts.append(_text((_LEFT + _WIDTH - _RIGHT) / 2, depth, _cut(clean(figure.x_label), 70), "middle"))
    middle = (y.start + y.end) / 2
    label = _cut(clean(figure.y_label) + (" (log scale)" if y.log else ""), 44)
    parts.append(_text(14, middle, label, "middle", f' transform="rotate(-90 14 {middle:.1f})"'))
    return parts


def _bars(series: Series, index: int, count: int, x: _Axis, y: _Axis) -> str:
    """Bars side by side; the first series filled, the others outlined."""
    room = 0.8 * (x.end - x.start) / (x.high - x.low)
    wide = room / count
    drawn = []
    for place, height in zip(series.x, series.y, strict=True):
        left = x.at(place) - room / 2 + index * wide
        foot, head = y.at(0.0), y.at(height)
        if abs(head - foot) >= 0.5:
            drawn.append(f"M{left + 1:.1f} {foot:.1f}V{head:.1f}h{max(wide - 2, 0.5):.1f}V{foot:.1f}")
    return f'<path d="{"".join(drawn)}" {_look(index, area=True)}/>'


def _curve(figure: Figure, series: Series, index: int, x: _Axis, y: _Axis) -> str:
    """A line; as steps if it is a row of bars without names, and filled then if it is the first."""
    if figure.kind == "bars":
        half = _half_width(series.x) or (x.high - x.low) / 40
        edges = [(a + b) / 2 for a, b in pairwise(series.x)]
        edges = [series.x[0] - half, *edges, series.x[-1] + half]
        steps = "".join(f"H{x.at(a):.1f}V{y.at(h):.1f}" for a, h in zip(edges, series.y, strict=False))
        path = f"M{x.at(edges[0]):.1f} {y.at(0.0):.1f}{steps}H{x.at(edges[-1]):.1f}V{y.at(0.0):.1f}"
        return f'<path d="{path}" {_look(index, area=True)}/>'
    places = [(x.at(a), y.at(b)) for a, b in zip(series.x, series.y, strict=True)]
    path = "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in places)
    few = len(places) <= _MARKERS
    dots = "".join(f'<circle cx="{a:.1f}" cy="{b:.1f}" r="2.5" fill="{_colour(index)}"/>' for a, b in places) if few else ""
    return f'<path d="{path}" {_look(index, area=False)}/>{dots}'


def _half_width(places: Sequence[float]) -> float:
    gaps = [b - a for a, b in pairwise(places) if b > a]
    return min(gaps) / 2 if gaps else 0.0


def _look(index: int, *, area: bool) -> str:
    """Colour and dashes; of areas only the first is filled, and the second has a whole outline."""
    dash = _DASHES[(max(index - 1, 0) if area else index) % len(_DASHES)]
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    fill = f'"{_colour(index)}" fill-opacity="0.35"' if area and index == 0 else '"none"'
    return f'fill={fill} stroke="{_colour(index)}" stroke-width="{1 if area and index == 0 else 2}"{dashed}'


def _colour(index: int) -> str:
    return _COLOURS[index % len(_COLOURS)]


def _legend(names: Sequence[tuple[int, str]]) -> list[tuple[int, float, int, str]]:
    """Row, place, index and name of each entry, broken into rows."""
    entries, row, at = [], 0, float(_LEFT)
    for index, name in names:
        short = _cut(clean(name), 56)
        wide = 30 + _LETTER * len(short) + 14
        if at > _LEFT and at + wide > _WIDTH:
            row, at = row + 1, float(_LEFT)
        entries.append((row, at, index, short))
        at += wide
    return entries


def _legend_marks(legend: Sequence[tuple[int, float, int, str]], figure: Figure) -> list[str]:
    parts = []
    for row, at, index, name in legend:
        high = 6 + _LINE * row
        mark = f"M{at:.1f} {high + 6}h22" if figure.kind == "lines" else f"M{at:.1f} {high + 1}h22v10h-22z"
        parts.append(f'<path d="{mark}" {_look(index, area=figure.kind == "bars")}/>')
        parts.append(_text(at + 28, high + 10, name, "start"))
    return parts


def _text(x: float, y: float, text: str, anchor: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{escape(text)}</text>'


def _cut(text: str, longest: int = _LONGEST_TICK) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"

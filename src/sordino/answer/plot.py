"""A picture of an answer: each noisy number with its interval, over the first key; a second key is the colour."""

from __future__ import annotations

import math
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, Literal

from sordino.answer.text import key_text, number, percent, spread
from sordino.errors import InvalidInput
from sordino.privacy.picture import Picture, colours, needs_altair
from sordino.privacy.text_table import clean

if TYPE_CHECKING:
    from sordino.answer.answer import Answer, EstimateColumn
    from sordino.query.having import Cell

__all__ = ["MOST", "picture"]

_BLUE, _GREY, _DARK = "#3b6ea5", "#8a8a8a", "#333333"
_WIDTH, _HEIGHT = 460, 260
_FEW, _SHORT = 12, 14
"""Up to this many keys of this many letters stand side by side; others are listed from top to bottom."""
_MANY = 40
MOST = 200
"""More listed groups are not drawn."""

Kind = Literal["none", "ordered", "time", "side", "list"]


def picture(answer: Answer) -> Picture:
    """The picture of an answer."""
    if not answer.estimates:
        rule = "only noisy numbers are drawn, and this answer has none"
        raise InvalidInput(
            f"an answer with {', '.join(map(repr, answer.names))}", rule, "Print it, or use rows()."
        )
    alt = needs_altair()
    kind = _kind(answer)
    count = min(len(answer), MOST) if kind == "list" else len(answer)
    panels = [_panel(alt, answer, column, kind, count) for column in answer.estimates]
    subtitle = f"with {percent(answer)} intervals of the noise"
    if count < len(answer):
        subtitle += f"; the first {count:,} of {len(answer):,} groups"
    elif not len(answer):
        subtitle = "no groups"
    title = ", ".join(clean(c.name) for c in answer.estimates)
    if answer.keys:
        title += f" by {', '.join(clean(k.name) for k in answer.keys)}"
    # Lists are long: their panels go side by side.
    joined = alt.hconcat(*panels) if kind == "list" else alt.vconcat(*panels)
    chart = (
        joined.properties(
            title=alt.TitleParams(title, subtitle=subtitle, anchor="start", fontSize=15, offset=12)
        )
        .configure_view(stroke=None)
        .configure_axis(
            grid=True,
            gridColor="#ececec",
            domainColor=_GREY,
            tickColor=_GREY,
            labelFontSize=11,
            titleFontSize=11,
        )
    )
    return Picture(chart)


def _kind(answer: Answer) -> Kind:
    """How the first key is laid out: nowhere, along a number or time axis, side by side, or as a list."""
    if not answer.keys:
        return "none"
    cells = answer.keys[0].cells
    labels = dict.fromkeys(map(key_text, cells))
    few = len(labels) <= _FEW and max(map(len, labels), default=0) <= _SHORT
    if few and len(answer.keys) > 1:
        return "side"
    if cells and all(isinstance(c, int | float) and not isinstance(c, bool) for c in cells):
        return "ordered"
    if cells and all(isinstance(c, date) for c in cells):
        return "time"
    return "side" if few else "list"


def _panel(alt: Any, answer: Answer, column: EstimateColumn, kind: Kind, count: int) -> Any:
    bars = kind in ("side", "list") and (column.integer or column.bounds[0] == 0)
    base = alt.Chart(alt.Data(values=_rows(answer, column, kind, count)))
    colour, offset = _colour(alt, answer, kind)
    lying = kind in ("none", "list")
    along, across, far, shift = (
        ("y", "x", "x2", "yOffset") if lying else ("x", "y", "y2", "xOffset")
    )
    channel = alt.X if lying else alt.Y
    look: dict[str, Any] = {
        "title": clean(column.name),
        "scale": alt.Scale(zero=bars, padding=20 if kind == "none" else 0),
    }
    if _large(column):
        look["axis"] = alt.Axis(format="~s")
    shared: dict[str, Any] = {along: _along(alt, answer, kind)}
    if offset is not None:
        shared[shift] = offset
    value = {across: channel("value:Q", **look)}
    interval = {across: channel("low:Q", **look), far: "high:Q"}
    if bars:
        marks = base.mark_bar(opacity=0.55).encode(**shared, **value, color=colour)
    else:
        size = 45 if count <= _MANY else 18
        marks = base.mark_point(filled=True, size=size, opacity=1).encode(
            **shared, **value, color=colour
        )
    rules = base.mark_rule(strokeWidth=1.6).encode(
        **shared,
        **interval,
        color=alt.value(_DARK) if bars else colour,
        tooltip=[alt.Tooltip("group:N"), alt.Tooltip("text:N", title=clean(column.name))],
    )
    layers = marks + rules
    if kind == "none":
        layers += base.mark_text(dy=-14, fontSize=12).encode(**shared, **value, text="text:N")
    return layers.properties(width=_WIDTH, height=_height(kind, count, apart=offset is not None))


def _height(kind: Kind, count: int, *, apart: bool) -> Any:
    if kind == "none":
        return 60
    if kind == "list":
        return {"step": 10 if apart else 20 if count <= _MANY else 13}
    return _HEIGHT


def _along(alt: Any, answer: Answer, kind: Kind) -> Any:
    if kind == "none":
        return alt.Y("group:N", title=None, axis=alt.Axis(labels=False, ticks=False, domain=False))
    title = clean(answer.keys[0].name)
    if kind == "ordered":
        whole = all(isinstance(c, int) for c in answer.keys[0].cells)
        axis = alt.Axis(format="d") if whole else alt.Axis()
        return alt.X(
            "key:Q", title=title, scale=alt.Scale(zero=False, nice=False, padding=12), axis=axis
        )
    if kind == "time":
        return alt.X("key:T", title=title, scale=alt.Scale(padding=12))
    if kind == "side":
        return alt.X(
            "key:N",
            title=title,
            sort=_sorting(answer),
            axis=alt.Axis(labelAngle=0, labelOverlap=True),
        )
    # The title says what is listed; long labels leave no room for it at the axis.
    return alt.Y(
        "key:N",
        title=None,
        sort=_sorting(answer),
        axis=alt.Axis(labelLimit=260, labelOverlap=False, grid=False),
    )


def _sorting(answer: Answer) -> list[str]:
    """Numbers and dates in their own order, other keys in that of the answer."""
    cells: list[Any] = list(answer.keys[0].cells)
    if cells and all(isinstance(c, int | float | date) for c in cells):
        cells.sort()
    return list(dict.fromkeys(map(key_text, cells)))


def _colour(alt: Any, answer: Answer, kind: Kind) -> tuple[Any, Any]:
    """The colour, and the shift that sets groups of one first key apart, where there are further keys."""
    if len(answer.keys) < 2:
        return alt.value(_BLUE), None
    title = " · ".join(clean(k.name) for k in answer.keys[1:])
    others = [k.cells for k in answer.keys[1:]]
    series = list(
        dict.fromkeys(
            " · ".join(key_text(cell) for cell in cells) for cells in zip(*others, strict=True)
        )
    )
    scale = alt.Scale(domain=series, range=colours(len(series)))
    colour = alt.Color("series:N", title=title, sort=None, scale=scale)
    if kind in ("ordered", "time"):
        return colour, None
    return colour, (alt.YOffset if kind == "list" else alt.XOffset)("series:N", sort=None)


def _rows(answer: Answer, column: EstimateColumn, kind: Kind, count: int) -> list[dict[str, Any]]:
    keys = [k.cells for k in answer.keys]
    e = column.estimates
    out = []
    for i in range(count):
        value, low, high = float(e.value[i]), float(e.low[i]), float(e.high[i])
        if not math.isfinite(value):
            continue
        texts = [key_text(k[i]) for k in keys]
        shown = f"{number(value, max(high - value, value - low), integer=column.integer)} "
        out.append(
            {
                "key": _coordinate(keys[0][i], kind) if keys else "",
                "series": " · ".join(texts[1:]),
                "group": ", ".join(texts) or clean(column.name),
                "value": value,
                "low": low,
                "high": high,
                "text": (shown + spread(value, low, high, integer=column.integer)).strip(),
            }
        )
    return out


def _coordinate(cell: Cell, kind: Kind) -> Any:
    if kind == "ordered":
        return cell
    if kind == "time" and isinstance(cell, date):
        whole_day = not isinstance(cell, datetime)
        return cell.isoformat() + ("T00:00:00" if whole_day else "")
    return key_text(cell)


def _large(column: EstimateColumn) -> bool:
    return bool(len(column) and float(abs(column.estimates.high).max(initial=0.0)) >= 1e5)

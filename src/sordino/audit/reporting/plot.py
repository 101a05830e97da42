"""The figures of a report as one picture."""

from __future__ import annotations

from typing import Any

from sordino.answer.text import clean
from sordino.audit.reporting.drawable import drawable, place_name
from sordino.audit.reporting.phrases import WORD, claim, needed
from sordino.audit.reporting.report import Figure, Report
from sordino.errors import InvalidInput
from sordino.privacy.picture import Picture, needs_altair

__all__ = ["picture"]

_COLOURS = ("#3b6ea5", "#c1453b", "#555555", "#7d5ba6", "#2e7d4f")
_GREY = "#8a8a8a"
_DASHES = ([1, 0], [7, 4], [2, 3], [9, 3, 2, 3], [4, 2])
_WIDTH, _HEIGHT = 460, 240
_LONG = 18
"""Longer names of series leave room for two in a row."""


def picture(report: Report) -> Picture:
    """The picture of a report."""
    alt = needs_altair()
    if not report.figures:
        raise InvalidInput(f"the report on {clean(report.name)}", "it has no figures", "Read it with print(report).")
    found = needed(report)
    subtitle = f"claims {claim(report)}" + (f"; {found}" if found else "")
    title = alt.TitleParams(
        f"{WORD[report.verdict]}: {clean(report.name)}", subtitle=subtitle, anchor="start", fontSize=15, offset=12
    )
    chart = (
        alt.vconcat(*(_panel(alt, figure) for figure in report.figures))
        .resolve_scale(color="independent", strokeDash="independent")
        .properties(title=title)
        .configure_view(stroke=None)
        .configure_axis(
            grid=True, gridColor="#ececec", domainColor=_GREY, tickColor=_GREY, labelFontSize=11, titleFontSize=11
        )
        .configure_title(fontSize=12, fontWeight="bold", anchor="start")
    )
    return Picture(chart)


def _panel(alt: Any, figure: Figure) -> Any:
    names = [clean(s.name) for s in figure.series]
    rows = [
        {"series": name, "x": clean(place_name(figure, x)) if figure.ticks else x, "y": y}
        for name, s in zip(names, map(drawable, figure.series), strict=True)
        for x, y in zip(s.x, s.y, strict=True)
        if y > 0 or not figure.log_y
    ]
    colours = [_COLOURS[i % len(_COLOURS)] for i in range(len(names))]
    columns = 2 if max(map(len, names), default=0) > _LONG else 4
    legend = alt.Legend(orient="top", columns=columns, labelLimit=_WIDTH // columns - 30)
    colour = alt.Color("series:N", title=None, scale=alt.Scale(domain=names, range=colours), legend=legend)
    dashes = [_DASHES[i % len(_DASHES)] for i in range(len(names))]
    dash = alt.StrokeDash("series:N", title=None, scale=alt.Scale(domain=names, range=dashes), legend=legend)
    logarithmic = {"scale": alt.Scale(type="log"), "axis": alt.Axis(format="~e", tickCount=6)} if figure.log_y else {}
    up = alt.Y("y:Q", title=clean(figure.y_label), stack=None, **logarithmic)
    base = alt.Chart(alt.Data(values=rows))
    title = clean(figure.title)
    if figure.ticks:
        order = list(dict.fromkeys(clean(t) for t in figure.ticks))
        along = alt.X("x:N", title=clean(figure.x_label), sort=order, axis=alt.Axis(labelLimit=140, labelAngle=-25))
        if figure.kind == "bars":
            bars = base.mark_bar(clip=True).encode(x=along, xOffset=alt.XOffset("series:N", sort=names), y=up, color=colour)
            return bars.properties(width=_WIDTH, height=_HEIGHT, title=title)
    else:
        along = alt.X("x:Q", title=clean(figure.x_label), scale=alt.Scale(zero=False, nice=False))
    steps = {"interpolate": "step"} if figure.kind == "bars" else {}
    line = base.mark_line(strokeWidth=2, **steps).encode(x=along, y=up, color=colour, strokeDash=dash)
    return line.properties(width=_WIDTH, height=_HEIGHT, title=title)

"""The figures of a report as pictures: for `plot()`, and as finished drawings within a page."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from sordino.audit.reporting.phrases import WORD, claim, needed
from sordino.audit.reporting.report import Figure, Report
from sordino.audit.reporting.text import figure_text
from sordino.errors import InvalidInput
from sordino.privacy.html_page import safe, safe_lines
from sordino.privacy.picture import Picture, colours, needs_altair
from sordino.privacy.text_table import clean

__all__ = ["drawing", "picture"]

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
        raise InvalidInput(
            f"the report on {clean(report.name)}",
            "it has no figures",
            "Read it with print(report).",
        )
    found = needed(report)
    subtitle = f"claims {claim(report)}" + (f"; {found}" if found else "")
    words = f"{WORD[report.verdict]}: {clean(report.name)}"
    title = alt.TitleParams(words, subtitle=subtitle, anchor="start", fontSize=15, offset=12)
    panels = (_panel(alt, f).properties(title=clean(f.title)) for f in report.figures)
    chart = alt.vconcat(*panels).properties(title=title)
    chart = _styled(chart.resolve_scale(color="independent", strokeDash="independent"))
    return Picture(chart.configure_title(fontSize=12, fontWeight="bold", anchor="start"))


def drawing(figure: Figure) -> str:
    """A figure as HTML: a finished drawing that runs nothing; in characters where there is no extra `plot`."""
    if find_spec("altair") is None or find_spec("vl_convert") is None:
        return _in_characters(figure)
    names = ", ".join(series.name for series in figure.series)
    words = safe(f"{figure.title}: {names} ({figure.y_label} by {figure.x_label})")
    try:
        finished = Picture(_styled(_panel(needs_altair(), figure))).svg()
    except ValueError:  # Vega takes the word "if" for a program
        return _in_characters(figure)
    return finished.replace("<svg ", f'<svg role="img" aria-label="{words}" ', 1)


def _in_characters(figure: Figure) -> str:
    return f"<pre>{safe_lines(figure_text(figure))}</pre>"


def _styled(chart: Any) -> Any:
    lines = {"gridColor": "#ececec", "domainColor": _GREY, "tickColor": _GREY}
    return chart.configure_view(stroke=None).configure_axis(
        grid=True, labelFontSize=11, titleFontSize=11, **lines
    )


def _panel(alt: Any, figure: Figure) -> Any:
    names = [clean(s.name) for s in figure.series]
    ticks = {x: clean(figure.place_name(x)) for s in figure.series for x in s.x if figure.ticks}
    rows = [
        {"series": name, "number": number, "place": x, "x": ticks.get(x, x), "y": y}
        for number, (name, s) in enumerate(zip(names, figure.series, strict=True))
        for x, y in s.drawable()
        if y > 0 or not figure.log_y
    ]
    count = len(names)
    shown = _COLOURS[:count] if count <= len(_COLOURS) else colours(count)
    columns = 2 if max(map(len, names), default=0) > _LONG else 4
    legend = alt.Legend(orient="top", columns=columns, labelLimit=_WIDTH // columns - 30)
    dashes = [_DASHES[i % len(_DASHES)] for i in range(count)]
    colour, dash = (
        channel("series:N", title=None, scale=alt.Scale(domain=names, range=looks), legend=legend)
        for channel, looks in ((alt.Color, shown), (alt.StrokeDash, dashes))
    )
    logarithmic = {}
    if figure.log_y:
        axis = alt.Axis(format="~e", tickCount=6)
        logarithmic = {"scale": alt.Scale(type="log"), "axis": axis}
    up = alt.Y("y:Q", title=clean(figure.y_label), stack=None, **logarithmic)
    base = alt.Chart(alt.Data(values=rows)).properties(width=_WIDTH, height=_HEIGHT)
    if figure.ticks:
        # by numbers: Vega reads lists of names as expressions
        order = alt.EncodingSortField("place", op="min")
        axis = alt.Axis(labelLimit=140, labelAngle=-25)
        along = alt.X("x:N", title=clean(figure.x_label), sort=order, axis=axis)
        if figure.kind == "bars":
            beside = alt.XOffset("number:O")
            return base.mark_bar().encode(x=along, xOffset=beside, y=up, color=colour)
    else:
        along = alt.X("x:Q", title=clean(figure.x_label), scale=alt.Scale(zero=False, nice=False))
    steps = {"interpolate": "step"} if figure.kind == "bars" else {}
    line = base.mark_line(strokeWidth=2, **steps)
    return line.encode(x=along, y=up, color=colour, strokeDash=dash)

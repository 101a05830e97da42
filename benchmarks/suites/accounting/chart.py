"""The picture of the accounting suite: for each delta the time of each tool and how
far its epsilon lies above the truth.
"""

from typing import Any

import altair as alt
from benchmarks.suites.accounting.rows import TOOLS, Row, excess, of_part
from benchmarks.suites.accounting.settings import DELTAS, PLANS

COLOURS = ("#0b6e6e", "#c96f15", "#7d5ba6", "#3f77c2", "#8a9099")
INK, FADED, FAINT = "#24292f", "#57606a", "#e6e8eb"
FLOOR = 1e-8  # smaller distances are drawn here
TARGET = 1e-3


def chart(rows: list[Row]) -> Any:
    points = [_point(rows, row) for row in of_part(rows, "epsilon")]
    panels = [
        alt.hconcat(_times(points, delta), _distances(points, delta), spacing=30)
        for delta in DELTAS
    ]
    heading = alt.TitleParams(
        "Accounting: Sordino beside its peers",
        subtitle="One run, one machine. Sordino's time covers both certified ends; its figure is the upper one.",
        fontSize=20,
        subtitleFontSize=13,
        offset=18,
    )
    return (
        alt.vconcat(*panels, spacing=30)
        .properties(title=heading, padding=24, background="white")
        .configure(font="Helvetica, Arial, DejaVu Sans, sans-serif")
        .configure_title(
            fontSize=13,
            anchor="start",
            color=INK,
            subtitleColor=FADED,
            subtitleFontSize=11,
            offset=10,
        )
        .configure_view(stroke=None)
        .configure_axis(labelColor=INK, labelLimit=200, domain=False, ticks=False, gridColor=FAINT)
        .configure_legend(
            labelColor=INK, labelFontSize=12, symbolSize=110, labelLimit=200, columnPadding=18
        )
    )


def _point(rows: list[Row], row: Row) -> Row:
    away = excess(rows, row)
    placed = None if away is None else max(FLOOR, abs(away))
    side = "below" if away is not None and away < 0 else "above"
    return {
        "tool": row["tool"],
        "case": row["case"],
        "delta": row["delta"],
        "time": row["value"],
        "away": placed,
        "side": side,
    }


def _times(points: list[Row], delta: float) -> Any:
    scale = alt.Scale(type="log", domain=[1e-4, 200], nice=False)
    values = [10.0**power for power in range(-4, 3)]
    label = (
        "datum.value < 0.001 ? datum.value * 1e6 + ' µs' : datum.value < 1 ? datum.value * 1e3 + ' ms' : "
        "datum.value + ' s'"
    )
    axis = alt.Axis(grid=False, values=values, labelExpr=label, labelColor=FADED)
    subtitle = "a logarithmic axis; left is better"
    return _lanes(
        points, delta, "time", f"Time at δ = {delta:g}", subtitle, scale, axis, named=True
    )


def _distances(points: list[Row], delta: float) -> Any:
    scale = alt.Scale(type="log", domain=[FLOOR / 2, 2], nice=False)
    label = f"datum.value <= {FLOOR} ? 'less' : format(datum.value * 100, '~g') + ' %'"
    axis = alt.Axis(
        grid=False,
        values=[FLOOR, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1],
        labelExpr=label,
        labelColor=FADED,
    )
    title = f"ε above the certified lower end at δ = {delta:g}"
    subtitle = "dashed: Sordino's target; a triangle lies below, where no bound may lie"
    shown = _lanes(points, delta, "away", title, subtitle, scale, axis, named=False)
    rule = alt.Chart(alt.InlineData(values=[{"at": TARGET}])).mark_rule(
        strokeDash=[4, 4], color=FADED
    )
    return shown + rule.encode(x=alt.X("at:Q", scale=scale, axis=axis, title=None))


def _lanes(
    points: list[Row],
    delta: float,
    field: str,
    title: str,
    subtitle: str,
    scale: Any,
    axis: Any,
    named: bool,
) -> Any:
    """A band for each case, and in it a lane for each tool."""
    chosen = [point for point in points if point["delta"] == delta and point[field] is not None]
    legend = (
        alt.Legend(orient="top", title=None, direction="horizontal")
        if named and delta == DELTAS[0]
        else None
    )
    y_axis = alt.Axis(grid=True, tickBand="extent", labels=named, labelPadding=8)
    names = [plan.name for plan in PLANS]
    return (
        alt.Chart(alt.InlineData(values=chosen))
        .mark_point(size=62, opacity=1, filled=True)
        .encode(
            y=alt.Y(
                "case:N",
                scale=alt.Scale(domain=names, paddingInner=0.12, paddingOuter=0.06),
                title=None,
                axis=y_axis,
            ),
            yOffset=alt.YOffset("tool:N", scale=alt.Scale(domain=list(TOOLS))),
            x=alt.X(f"{field}:Q", scale=scale, title=None, axis=axis),
            color=alt.Color(
                "tool:N", scale=alt.Scale(domain=list(TOOLS), range=list(COLOURS)), legend=legend
            ),
            shape=alt.Shape(
                "side:N",
                scale=alt.Scale(domain=["above", "below"], range=["circle", "triangle"]),
                legend=None,
            ),
        )
        .properties(width=440, height=420, title=alt.TitleParams(title, subtitle=subtitle))
    )

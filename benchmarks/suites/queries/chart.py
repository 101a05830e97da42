"""The picture of the queries suite: times by table size, errors by case, one dot for each tool."""

from typing import Any

import altair as alt
from benchmarks.markdown import duration, short
from benchmarks.suites.queries.rows import ENOUGH, Row, at_guarantee, label, of_part
from benchmarks.suites.queries.settings import CASES, DELTA, SPEED_ROWS

COLOURS = {
    "Sordino": "#0b6e6e",
    "DuckDB": "#8a9099",
    "OpenDP": "#c96f15",
    "Qrlew": "#b23a48",
    "SmartNoise": "#3f77c2",
    "PipelineDP": "#7d5ba6",
    "Tumult": "#5f8a3a",
    "PyDP": "#c79a00",
    "diffprivlib": "#24292f",
}
FEWEST = 4
"""Errors of fewer releases than these say nothing."""
INK, FADED, FAINT = "#24292f", "#57606a", "#e6e8eb"
SECONDS = (
    "datum.value < 0.001 ? datum.value * 1e6 + ' µs' : datum.value < 1 ? datum.value * 1e3 + ' ms' : "
    "datum.value + ' s'"
)


def chart(rows: list[Row]) -> Any:
    times = alt.hconcat(
        *(_times(rows, size, first=size == SPEED_ROWS[0]) for size in SPEED_ROWS), spacing=24
    )
    errors = alt.hconcat(
        *(_errors(rows, delta, first=not delta) for delta in (0.0, DELTA)), spacing=24
    )
    heading = alt.TitleParams(
        "Queries: Sordino beside its peers",
        subtitle="One run, one machine. DuckDB's SQL by hand protects nobody: it is the yardstick of speed.",
        fontSize=20,
        subtitleFontSize=13,
        offset=18,
    )
    return (
        alt.vconcat(times, errors, spacing=34)
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
        .configure_legend(labelColor=INK, labelFontSize=12, symbolSize=110, columnPadding=18)
    )


def _times(rows: list[Row], size: int, first: bool) -> Any:
    points = [
        _point(row, row["value"], duration(row["value"]))
        for row in of_part(rows, "speed", rows=size)
    ]
    axis = alt.Axis(
        grid=False,
        values=[10.0**power for power in range(-3, 3)],
        labelExpr=SECONDS,
        labelColor=FADED,
    )
    return _lanes(
        points,
        f"Time at {size:,} rows",
        "a logarithmic axis; left is better",
        axis,
        named=first,
        legend=first,
    )


def _errors(rows: list[Row], delta: float, first: bool) -> Any:
    """Each tool's smallest error over Sordino's, so that all cases share an axis."""
    points = []
    for case in CASES:
        found = [
            row
            for row in at_guarantee(rows, case, delta)
            if "not in SQL" not in label(row) and row["releases"] >= FEWEST
        ]
        ours = next((row["value"] for row in found if row["tool"] == "Sordino"), None)
        best = {row["tool"]: row for row in reversed(found)}
        points += [
            _point(row, row["value"] / ours, short(row["value"]) + _few(row))
            for row in best.values()
            if ours
        ]
    axis = alt.Axis(
        grid=False, values=[0.1, 0.3, 1, 3, 10, 30], labelExpr="datum.value + 'x'", labelColor=FADED
    )
    title = "Error at ε = 1, " + (f"δ = {delta:g}" if delta else "pure")
    return _lanes(
        points,
        title,
        f"its ratio to Sordino's, left is better; {FEWEST} releases or more",
        axis,
        named=first,
        legend=False,
    )


def _few(row: Row) -> str:
    return f" ({row['releases']} releases)" if row["releases"] < ENOUGH else ""


def _point(row: Row, value: float, text: str) -> Row:
    return {
        "tool": row["tool"],
        "case": row["case"],
        "value": value,
        "text": f"{row['tool']} {text}",
    }


def _lanes(
    points: list[Row], title: str, subtitle: str, axis: Any, named: bool, legend: bool
) -> Any:
    """A band for each case, and in it a lane for each tool."""
    shown = alt.Legend(orient="top", title=None, direction="horizontal") if legend else None
    y_axis = alt.Axis(grid=True, tickBand="extent", labels=named, labelPadding=8)
    bands = alt.Scale(domain=list(CASES), paddingInner=0.12, paddingOuter=0.06)
    base = alt.Chart(alt.InlineData(values=points)).encode(
        y=alt.Y("case:N", scale=bands, title=None, axis=y_axis),
        yOffset=alt.YOffset("tool:N", scale=alt.Scale(domain=list(COLOURS))),
        x=alt.X(
            "value:Q", scale=alt.Scale(type="log", nice=False, padding=40), title=None, axis=axis
        ),
        color=alt.Color(
            "tool:N",
            scale=alt.Scale(domain=list(COLOURS), range=list(COLOURS.values())),
            legend=shown,
        ),
    )
    dots = base.mark_circle(size=70, opacity=1)
    text = base.mark_text(align="left", dx=8, fontSize=9).encode(text="text:N")
    return (dots + text).properties(
        width=430, height=480, title=alt.TitleParams(title, subtitle=subtitle)
    )

"""The picture of the noise suite: one dot per library, its figure written beside it."""

from math import ceil, floor, log10
from typing import Any

import altair as alt
from benchmarks.markdown import duration, short, times
from benchmarks.suites.noise.rows import Row, failures, label, of_part, sordino
from benchmarks.suites.noise.settings import GUARANTEES

COLOURS = {
    "Sordino": "#0b6e6e",
    "NumPy": "#8a9099",
    "OpenDP": "#c96f15",
    "diffprivlib": "#7d5ba6",
    "PyDP": "#3f77c2",
}
INK, FADED, FAINT = "#24292f", "#57606a", "#e6e8eb"
CASES = ("Laplace", "Gaussian")
NAMES = 215  # pixels kept for the names of the libraries, so that the panels line up


def chart(rows: list[Row]) -> Any:
    vectors = alt.hconcat(*(_vectors(rows, case) for case in CASES), spacing=16)
    scalars = alt.hconcat(*(_scalars(rows, case) for case in CASES), spacing=16)
    deviations = alt.hconcat(
        *(_deviations(rows, *guarantee) for guarantee in GUARANTEES), spacing=22
    )
    heading = alt.TitleParams(
        "Noise: Sordino beside its peers",
        subtitle="One run, one machine. NumPy's floating-point draws protect nobody: they are the yardstick of speed.",
        fontSize=20,
        subtitleFontSize=13,
        offset=18,
    )
    return (
        alt.vconcat(vectors, scalars, deviations, spacing=34)
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
        .configure_axis(
            labelColor=INK, labelLimit=NAMES, domain=False, ticks=False, gridColor=FAINT
        )
    )


def _vectors(rows: list[Row], case: str) -> Any:
    def text(row: Row) -> str:
        ours = sordino(rows, row)
        return f"{short(row['value'])}/s" + (
            f" · Sordino {times(ours / row['value'])}" if ours else ""
        )

    chosen = of_part(rows, "vector", case=case, scale=1000)
    points = [_point(row, row["value"], text(row)) for row in chosen]
    points.sort(key=lambda point: -float(point["value"]))
    missing = failures(rows, "vector", case=case, scale=1000)
    return _dots(
        f"{case} vectors, scale 1000",
        "numbers per second, and how many times as fast Sordino is; right is better",
        points,
        missing,
    )


def _scalars(rows: list[Row], case: str) -> Any:
    def text(row: Row) -> str:
        ours = sordino(rows, row)
        return duration(row["value"] / 1e6) + (
            f" · {times(row['value'] / ours)} Sordino's" if ours else ""
        )

    points = [_point(row, row["value"], text(row)) for row in of_part(rows, "scalar", case=case)]
    points.sort(key=lambda point: float(point["value"]))
    missing = failures(rows, "scalar", case=case)
    return _dots(
        f"{case}, one release",
        "microseconds, and how many times Sordino's that is; left is better",
        points,
        missing,
    )


def _deviations(rows: list[Row], epsilon: float, delta: float) -> Any:
    chosen = of_part(rows, "sigma", epsilon=epsilon, delta=delta)
    points = [
        _point(row, row["value"] / (sordino(rows, row) or row["value"]), f"{row['value']:.3f}")
        for row in chosen
    ]
    missing = failures(rows, "sigma", epsilon=epsilon, delta=delta)
    names = list(
        dict.fromkeys(label(row) for row in (*of_part(rows, "sigma"), *failures(rows, "sigma")))
    )
    first = (epsilon, delta) == GUARANTEES[0]
    title = f"{'Gaussian deviation at ' if first else ''}ε = {epsilon:g}, δ = {delta:g}"
    subtitle = "placed by its ratio to Sordino's; left is better" if first else " "
    return _dots(title, subtitle, points, missing, shared=names, named=first)


def _point(row: Row, value: float, text: str) -> Row:
    return {"name": label(row), "tool": row["tool"], "value": value, "text": text}


def _dots(
    title: str,
    subtitle: str,
    points: list[Row],
    missing: list[Row],
    shared: list[str] | None = None,
    named: bool = True,
) -> Any:
    """Names from top to bottom in the order of the points, or in one that panels share; absent figures are said."""
    values = [point["value"] for point in points] or [1.0]
    low, high = min(values), max(values)
    everything = points + [_point(row, low, "no figure") for row in missing]
    if shared:
        ticks, scale = [1.0, 1.2, 1.4], alt.Scale(domain=[0.93, 1.65])
    else:
        ticks = [10.0**power for power in range(ceil(log10(low / 2)), floor(log10(2 * high)) + 1)]
        # room for text
        scale = alt.Scale(type="log", domain=[low / 2, high * (4 * high / low) ** 0.75], nice=False)
    names = shared or list(dict.fromkeys(point["name"] for point in everything))
    width = NAMES if named else 0
    bold: Any = {
        "condition": {"test": "slice(datum.label, 0, 7) == 'Sordino'", "value": "bold"},
        "value": "normal",
    }
    y_axis = alt.Axis(
        grid=True,
        labels=named,
        labelPadding=8,
        minExtent=width,
        maxExtent=width,
        labelFontWeight=bold,
    )
    x_axis = alt.Axis(grid=False, values=ticks, format=".1f" if shared else "~s", labelColor=FADED)
    base = alt.Chart(alt.InlineData(values=everything)).encode(
        y=alt.Y("name:N", scale=alt.Scale(domain=names), title=None, axis=y_axis),
        x=alt.X("value:Q", scale=scale, title=None, axis=x_axis),
        color=alt.Color(
            "tool:N",
            scale=alt.Scale(domain=list(COLOURS), range=list(COLOURS.values())),
            legend=None,
        ),
    )
    dots = base.mark_circle(size=130, opacity=1).transform_filter("datum.text != 'no figure'")
    text = base.mark_text(align="left", dx=11, fontSize=11).encode(text="text:N")
    halo = base.mark_text(align="left", dx=11, fontSize=11, stroke="white", strokeWidth=5).encode(
        text="text:N"
    )
    heading = alt.TitleParams(title, subtitle=subtitle)
    return (halo + dots + text).properties(
        width=235 if shared else 380, height=alt.Step(23), title=heading
    )

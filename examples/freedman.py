"""A picture of Freedman's paradox: features of pure noise, chosen with a plain holdout and with a guarded one.

Run: python examples/freedman.py docs/pictures/freedman.png
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import altair as alt

from sordino.adaptive.freedman import Curve, Freedman, freedman

BLUE, RED, GREY = "#3b6ea5", "#c0392b", "#a8a8a8"
SOURCES = ("training rows", "what the holdout says", "fresh rows: the truth")


def draw(found: Freedman, path: Path) -> None:
    """Two panels with the same axes, saved as PNG."""
    curves = (
        ("a plain holdout", found.plain),
        ("so.Holdout: corrects what is off by about 5 % or more", found.guarded),
    )
    panels = alt.hconcat(
        *(panel(title, curve) for title, curve in curves), spacing=36
    ).resolve_scale(x="shared", y="shared")
    heading = alt.TitleParams(
        "Freedman's paradox: a classifier for labels that are coin tosses",
        subtitle=f"{found.features:,} features of pure noise; {found.rows:,} rows to train, {found.rows:,} held out, "
        f"{found.rows:,} fresh. No classifier can be right more than half of the time.",
        anchor="start",
        fontSize=17,
        subtitleFontSize=12,
        offset=16,
    )
    picture = (
        panels.properties(title=heading)
        .configure_view(stroke=None)
        .configure_legend(orient="bottom", title=None)
    )
    picture.save(str(path), scale_factor=1.5)


def panel(title: str, curve: Curve) -> Any:
    """Accuracy against the number of features, by where it was measured."""
    columns = dict(zip(SOURCES, (curve.train, curve.holdout, curve.fresh), strict=True))
    rows = [
        {"features": size, "accuracy": value, "measured on": source}
        for source, values in columns.items()
        for size, value in zip(curve.sizes, values, strict=True)
    ]
    axis = alt.Axis(grid=True, gridColor="#ececec", tickCount=6)
    colour = alt.Color(
        "measured on:N",
        scale=alt.Scale(domain=list(SOURCES), range=[GREY, BLUE, RED]),
        legend=alt.Legend(symbolType="stroke", symbolStrokeWidth=3, labelFontSize=12),
    )
    base = alt.Chart(alt.Data(values=rows)).encode(
        x=alt.X(
            "features:Q", title="features that vote", axis=axis, scale=alt.Scale(domain=[0, 510])
        ),
        y=alt.Y(
            "accuracy:Q",
            title="accuracy",
            scale=alt.Scale(zero=False),
            axis=alt.Axis(format="%", gridColor="#ececec"),
        ),
        color=colour,
    )
    layers = alt.layer(
        base.mark_line(strokeWidth=2.5), base.mark_point(filled=True, size=32, opacity=1)
    )
    return layers.properties(width=340, height=260, title=alt.TitleParams(title, anchor="start"))


if __name__ == "__main__":
    draw(freedman(rows=10_000, features=10_000), Path(sys.argv[1]))

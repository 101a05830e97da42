"""One picture of several answers: what was released, with its interval,
and the truth, known of a made-up table only.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import altair as alt

import sordino as so

BLUE, RED = "#3b6ea5", "#c0392b"
Truth = Mapping[object, float]


def draw(answers: list[tuple[str, so.Answer, Truth]], path: Path) -> None:
    """A panel for each titled answer, two in a row, saved as PNG."""
    panels = [panel(title, answer, truth) for title, answer, truth in answers]
    rows = [
        alt.hconcat(*panels[i : i + 2], spacing=40).resolve_scale(y="independent")
        for i in range(0, len(panels), 2)
    ]
    heading = alt.TitleParams(
        "Private answers about a made-up hospital",
        subtitle="released number and its 95 % interval in blue; the truth, which nobody outside would know, in red",
        anchor="start",
        fontSize=17,
        subtitleFontSize=12,
        offset=16,
    )
    picture = alt.vconcat(*rows, spacing=30).properties(title=heading).configure_view(stroke=None)
    picture.save(str(path), scale_factor=2)


def panel(title: str, answer: so.Answer, truth: Truth) -> Any:
    (noisy,) = answer.estimates
    keys = [str(key) for key in answer.keys[0].cells] if answer.keys else [noisy.name]
    facts = {str(key) or noisy.name: value for key, value in truth.items()}
    columns = zip(keys, noisy.cells, noisy.lows, noisy.highs, strict=True)
    rows = [
        {"key": k, "value": v, "low": low, "high": high, "truth": facts[k]}
        for k, v, low, high in columns
    ]
    base = alt.Chart(alt.Data(values=rows)).encode(y=alt.Y("key:N", sort=None, title=None))
    scale = alt.Scale(zero=True) if answer.keys else alt.Scale(zero=False, padding=30)
    x = alt.X(
        "value:Q",
        title=noisy.name,
        scale=scale,
        axis=alt.Axis(grid=True, gridColor="#ececec", tickCount=6),
    )
    layers = [
        base.mark_bar(color=BLUE, opacity=0.25, height=14).encode(x=x)
        if answer.keys
        else base.mark_point(opacity=0).encode(x=x),
        base.mark_rule(color=BLUE, strokeWidth=3).encode(x=alt.X("low:Q"), x2="high:Q"),
        base.mark_point(color=BLUE, filled=True, size=45, opacity=1).encode(x="value:Q"),
        base.mark_tick(color=RED, thickness=2.5, height=22, opacity=0.9).encode(x="truth:Q"),
    ]
    height = 26 * len(rows) if answer.keys else 50
    return alt.layer(*layers).properties(
        width=380, height=height, title=alt.TitleParams(title, anchor="start")
    )

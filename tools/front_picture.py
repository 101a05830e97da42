"""The picture of the README: `python -m tools.front_picture`. Both panels are computed by the library.

Left: what a noisy count may be, with and without one person. Right: answers about a made-up hospital beside the truth.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
import pyarrow as pa

import sordino as so

PICTURE = Path(__file__).parents[1] / "docs" / "pictures" / "front.png"
BLUE, RED, GREY = "#2f5d8a", "#b4452f", "#5f6b76"
WARDS = ("emergency", "cardiology", "neurology", "oncology", "maternity")


def curves(epsilon: float = 0.5) -> alt.LayerChart:
    noise = so.Laplace.calibrated(sensitivity=1, epsilon=epsilon)
    rows = [
        {"count": center + k, "chance": float(noise.pmf(k)), "table": name}
        for center, name in ((120, "without you"), (121, "with you"))
        for k in range(-14, 15)
        if 108 <= center + k <= 133
    ]
    chart = alt.Chart(alt.Data(values=rows)).encode(
        x=alt.X(
            "count:Q",
            title="released count",
            scale=alt.Scale(domain=[108, 133]),
            axis=alt.Axis(grid=False, tickCount=6),
        ),
        y=alt.Y("chance:Q", title=None, axis=None, stack=None),
        color=alt.Color(
            "table:N",
            scale=alt.Scale(domain=["without you", "with you"], range=[GREY, BLUE]),
            legend=alt.Legend(title=None, orient="top-right", labelFontSize=12),
        ),
    )
    area = chart.mark_area(interpolate="monotone", opacity=0.25, line={"strokeWidth": 2.2})
    return alt.layer(area).properties(
        width=330,
        height=190,
        title=alt.TitleParams(
            "You hardly change the answer",
            subtitle=f"at epsilon {epsilon} no count is more than {np.exp(epsilon):.2f} times as likely with you",
            anchor="start",
        ),
    )


def answers() -> alt.LayerChart:
    chance = np.random.default_rng(3)
    n = 40_000
    ward = chance.choice(WARDS, n, p=[0.34, 0.26, 0.18, 0.12, 0.1])
    table = pa.table(
        {"patient": chance.integers(0, 20_000, n), "ward": ward, "cost": chance.gamma(2, 300, n)}
    )
    columns: dict[str, dict[str, Any]] = {
        "ward": {"type": "category", "values": list(WARDS)},
        "cost": {"type": "float", "min": 0, "max": 3000, "step": 0.01},
    }
    data = so.Dataset(
        table, name="visits", unit="patient", max_rows=5, budget=so.Budget(2, 1e-6), columns=columns
    )
    with so.Session(data) as session:
        answer = session.sql(
            "SELECT ward, AVG(cost) AS cost FROM visits GROUP BY ward", epsilon=0.5
        )
    (noisy,) = answer.estimates
    truth = {name: float(np.mean(table["cost"].to_numpy()[ward == name])) for name in WARDS}
    rows = [
        {"ward": str(name), "cost": value, "low": low, "high": high, "truth": truth[str(name)]}
        for name, value, low, high in zip(
            answer.keys[0].cells, noisy.cells, noisy.lows, noisy.highs, strict=True
        )
    ]
    base = alt.Chart(alt.Data(values=rows)).encode(y=alt.Y("ward:N", sort=None, title=None))
    x = alt.X(
        "low:Q",
        title="average cost of a visit",
        scale=alt.Scale(zero=False, padding=18),
        axis=alt.Axis(tickCount=6),
    )
    return alt.layer(
        base.mark_rule(color=BLUE, strokeWidth=4, opacity=0.45).encode(x=x, x2="high:Q"),
        base.mark_point(color=BLUE, filled=True, size=60, opacity=1).encode(x="cost:Q"),
        base.mark_tick(color=RED, thickness=2.5, height=20).encode(x="truth:Q"),
    ).properties(
        width=330,
        height=190,
        title=alt.TitleParams(
            "The answer is still useful",
            subtitle="40,000 visits at epsilon 0.5: released, with 95 % interval; red: the truth",
            anchor="start",
        ),
    )


def main() -> None:
    picture = (
        alt.hconcat(curves(), answers(), spacing=50)
        .resolve_scale(color="independent")
        .configure(background="white", padding=16)
        .configure_view(stroke=None)
        .configure_axis(
            gridColor="#ececec", labelFontSize=12, titleFontSize=12, titleFontWeight="normal"
        )
        .configure_title(fontSize=16, subtitleFontSize=12, subtitleColor=GREY, offset=12)
    )
    picture.save(str(PICTURE), scale_factor=2)


if __name__ == "__main__":
    main()

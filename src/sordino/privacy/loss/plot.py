"""Four pictures of one privacy loss: the two outputs, the law of the loss, delta(epsilon), and the trade-off curve."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from sordino.privacy.loss.base import Loss, OutputPair
from sordino.privacy.picture import Picture, needs_altair

__all__ = ["picture"]

_BLUE, _RED, _GREY = "#3b6ea5", "#c1453b", "#8a8a8a"
_WIDTH, _HEIGHT = 330, 210


def picture(loss: Loss, title: str | None = None) -> Picture:
    """The picture of a loss; its title is the loss's own name unless there is another."""
    alt = needs_altair()
    reach = _reach(loss)
    pair = loss.outputs()
    panels = [_profile(alt, loss, reach), _trade_off(alt, loss)]
    if not loss.by_moments:
        panels.insert(0, _law(alt, loss, reach))
    rows = [panels] if pair is None else [[_outputs(alt, pair), panels[0]], panels[1:]]
    chart = (
        alt.vconcat(*(alt.hconcat(*row) for row in rows))
        .properties(
            title=alt.TitleParams(
                title or repr(loss), subtitle=_summary(loss), anchor="start", fontSize=15, offset=12
            )
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
        .configure_title(fontSize=12, fontWeight="bold", anchor="start")
    )
    return Picture(chart)


def _summary(loss: Loss) -> str:
    views = (
        ("pure epsilon", loss.maximum()),
        ("epsilon at delta 1e-6", loss.epsilon(1e-6)),
        ("total variation", loss.total_variation()),
        ("rho", loss.rho()),
        ("mu", loss.mu()),
    )
    return "   ·   ".join(f"{name} {value:.4g}" for name, value in views)


def _reach(loss: Loss) -> float:
    """An epsilon beyond which there is little to see."""
    largest = loss.maximum()
    reach = (
        largest
        if math.isfinite(largest)
        else loss.epsilon(1e-6)
        if loss.infinite() < Fraction(1, 10**6)
        else 1.0
    )
    return max(1.15 * reach, 1e-9)


def _panel(base: Any, title: str) -> Any:
    return base.properties(width=_WIDTH, height=_HEIGHT, title=title)


def _outputs(alt: Any, pair: OutputPair) -> Any:
    rows = [
        {"output": x, "height": y, "data": side}
        for side, curve in (("neighbour", pair.under_q), ("data", pair.under_p))
        for x, y in zip(pair.outcomes, curve, strict=True)
    ]
    colour = alt.Color(
        "data:N", scale=alt.Scale(domain=["data", "neighbour"], range=[_BLUE, _RED]), title=None
    )
    colour = colour.legend(orient="none", direction="horizontal", legendX=_WIDTH - 125, legendY=-20)
    base = alt.Chart(alt.Data(values=rows))
    if pair.discrete:
        bars = base.mark_bar().encode(
            x=alt.X("output:N", title="answer", axis=alt.Axis(labelAngle=0)),
            xOffset=alt.XOffset("data:N"),
            y=alt.Y("height:Q", title="probability"),
            color=colour,
        )
        return _panel(bars, "Released, on the worst pair")
    area = base.mark_area(opacity=0.25, line={"strokeWidth": 2}).encode(
        x=alt.X("output:Q", title="output, in units of the scale"),
        y=alt.Y("height:Q", title="density", stack=None),
        color=colour,
    )
    return _panel(area, "Released, on the worst pair")


def _law(alt: Any, loss: Loss, reach: float) -> Any:
    grid = np.linspace(-reach, reach, 121)
    masses = loss.pmf(grid)[1:-1]
    rows = [
        {"from": a, "to": b, "probability": m}
        for a, b, m in zip(grid[:-1].tolist(), grid[1:].tolist(), masses.tolist(), strict=True)
    ]
    bars = (
        alt.Chart(alt.Data(values=rows))
        .mark_bar(color=_BLUE, binSpacing=0)
        .encode(
            x=alt.X("from:Q", bin="binned", title="privacy loss", axis=alt.Axis(tickCount=8)),
            x2="to:Q",
            y=alt.Y("probability:Q", title="probability of each of 120 bins"),
        )
    )
    never = f" (inf with probability {float(loss.infinite()):.3g})" if loss.infinite() else ""
    return _panel(bars, f"Privacy loss{never}")


def _profile(alt: Any, loss: Loss, reach: float) -> Any:
    points = ((e, loss.delta(e)) for e in np.linspace(0, reach, 91).tolist())
    rows = [{"epsilon": e, "delta": d} for e, d in points if d > 1e-15]
    smallest = math.floor(math.log10(min((row["delta"] for row in rows), default=1.0)))
    decades = [10.0**k for k in range(min(smallest, -1), 1)]
    line = (
        alt.Chart(alt.Data(values=rows))
        .mark_line(color=_BLUE, strokeWidth=2)
        .encode(
            x=alt.X("epsilon:Q", title="epsilon", scale=alt.Scale(domain=[0, reach], nice=False)),
            y=alt.Y(
                "delta:Q",
                title="delta (log scale)",
                scale=alt.Scale(type="log", domain=[decades[0], 1]),
                axis=alt.Axis(values=decades, format="~e"),
            ),
        )
    )
    return _panel(line, "delta(epsilon)")


def _trade_off(alt: Any, loss: Loss) -> Any:
    levels = sorted({*np.linspace(0, 1, 81).tolist(), *np.geomspace(1e-4, 0.02, 12).tolist()})
    rows = [{"alpha": a, "beta": loss.trade_off(a)} for a in levels]
    line = (
        alt.Chart(alt.Data(values=rows))
        .mark_line(color=_BLUE, strokeWidth=2)
        .encode(
            x=alt.X("alpha:Q", title="false alarms of a test that tells the pair apart"),
            y=alt.Y("beta:Q", title="what it misses, at least"),
        )
    )
    blind = alt.Chart(alt.Data(values=[{"alpha": 0, "beta": 1}, {"alpha": 1, "beta": 0}]))
    guess = blind.mark_line(color=_GREY, strokeDash=[4, 4]).encode(x="alpha:Q", y="beta:Q")
    return _panel(guess + line, "Trade-off (dashed: blind guessing)")

"""Epsilon of one plan by every method side by side, so that one sees what tighter accounting buys."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from sordino.accounting.bracket import Bracket
from sordino.accounting.closed_forms import METHODS
from sordino.accounting.total import Total
from sordino.errors import InvalidInput
from sordino.privacy.exact import Number
from sordino.privacy.picture import Picture, drawn, needs_altair
from sordino.privacy.text_table import aligned

__all__ = ["Report"]

_OURS = "certified sum"


@dataclass(frozen=True)
class Report:
    """The epsilon of a plan at several deltas, by the certified sum of losses and by each closed form."""

    plan: Total
    deltas: tuple[float, ...]
    brackets: tuple[Bracket, ...]
    closed_forms: dict[str, tuple[float, ...]]

    @staticmethod
    def of(plan: Total, deltas: Iterable[Number]) -> Report:
        """Compute it."""
        wanted = tuple(float(d) for d in deltas)
        if not wanted:
            raise InvalidInput("no deltas", "a report needs at least one delta", "Pass (1e-6,).")
        brackets = tuple(plan.epsilon_bounds(d) for d in wanted)
        forms = {
            name: tuple(method(plan.parts, d) for d in wanted) for name, method in METHODS.items()
        }
        return Report(plan, wanted, brackets, forms)

    def __str__(self) -> str:
        rows = [("method", *(f"delta {d:g}" for d in self.deltas))]
        rows.append((_OURS, *(_number(b.upper) for b in self.brackets)))
        rows.append(("  at least", *(_number(b.lower) for b in self.brackets)))
        for name, values in self.closed_forms.items():
            rows.append(
                (
                    name,
                    *(
                        _number(v) + _excess(v, b)
                        for v, b in zip(values, self.brackets, strict=True)
                    ),
                )
            )
        lines = aligned(rows, [False, *(True for _ in self.deltas)])
        return "\n".join([f"epsilon of {self.plan!r}"[:120], *lines])

    def plot(self, path: str | Path | None = None) -> Picture:
        """A bar for each method and delta; saved if there is a path. Needs the extra `plot`."""
        return drawn(self._picture, path)

    def _picture(self) -> Picture:
        alt = needs_altair()
        named = {_OURS: tuple(b.upper for b in self.brackets), **self.closed_forms}
        rows = [
            {"method": name, "epsilon": value, "delta": f"delta {d:g}"}
            for name, values in named.items()
            for d, value in zip(self.deltas, values, strict=True)
            if math.isfinite(value)
        ]
        bars = (
            alt.Chart(alt.Data(values=rows))
            .mark_bar()
            .encode(
                x=alt.X("epsilon:Q", title="epsilon"),
                y=alt.Y("method:N", sort=list(named), title=None, axis=alt.Axis(labelLimit=240)),
                color=alt.condition(
                    f"datum.method == '{_OURS}'", alt.value("#3b6ea5"), alt.value("#b9c4cf")
                ),
            )
        )
        labels = bars.mark_text(align="left", dx=3).encode(
            text=alt.Text("epsilon:Q", format=".4g"), color=alt.value("#333")
        )
        chart = (
            (bars + labels)
            .properties(width=420, height=170)
            .facet(row=alt.Row("delta:N", title=None, sort=None))
        )
        return Picture(chart.properties(title=repr(self.plan)[:90]))


def _number(value: float) -> str:
    return f"{value:.6g}"


def _excess(value: float, truth: Bracket) -> str:
    if not math.isfinite(value) or truth.upper <= 0:
        return ""
    return f" (+{100 * (value / truth.upper - 1):.0f} %)"

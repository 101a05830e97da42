"""The adaptive suite as Markdown and as a picture."""

from collections.abc import Iterator
from typing import Any

import altair as alt
from benchmarks.markdown import duration, mark, table
from benchmarks.suites.adaptive.settings import ROWS, RUNS, SIZES

Row = dict[str, Any]
TITLE = "Adaptive: many questions to one sample"
METHODS = ("union", "splitting", "stability", "monitor", "posterior", "conditional")
COLOURS = ("#8a9099", "#b04fb8", "#c96f15", "#b8901b", "#3f77c2", "#0b6e6e")

HOW_TO_READ = f"""
**How to read this.** The attacker asks {ROWS:,} rows for all parities of 14 bits, which are true half of the time, adds up
which way the answers lean, and asks last for the points that seemed to be more frequent (after Dwork and others 2015). The
*promise* is the error on the population that our oracle guarantees for all its answers together, 95 % of the time. The naive
oracle answers exactly. *Promises* are computed, each with the noise that is best for it: `union` holds only for questions
fixed beforehand, `conditional` is ours (Theorem 4 of `adaptive/transfer.md`). No peer offers such an oracle.
"""


def section(rows: list[Row]) -> str:
    sizes = [f"{k:,}" for k in SIZES]
    parts = (
        HOW_TO_READ.lstrip(),
        "### Targets\n",
        table(["target", "asked", "measured", "verdict"], targets(rows)),
        f"### Promised error on the population, {ROWS:,} rows, by number of questions\n",
        table(["argument", *sizes], _promises(rows)),
        "### How many questions a sample bears\n",
        table(["rows, all answers within", *METHODS], _bears(rows)),
        f"### Time of one answer about {ROWS:,} rows\n",
        table(
            ["question", "time"],
            ([row["case"], duration(row["value"] / 1e3)] for row in _of(rows, "time")),
        ),
        *(f"**{row.get('case', '')} {row['error']}**\n" for row in rows if "error" in row),
    )
    return "\n".join(parts)


def _of(rows: list[Row], part: str) -> list[Row]:
    return [row for row in rows if row.get("part") == part and "value" in row]


def targets(rows: list[Row]) -> Iterator[list[str]]:
    runs = _of(rows, "attack")
    full = len(runs) == RUNS
    kept, broken = (sum(test(row) for row in runs) for test in (_kept, _broken))
    worst, best = (
        max((row["value"] for row in runs), default=1.0),
        min((row["exact"] for row in runs), default=0.0),
    )
    promise = runs[0]["promised"] if runs else 0.0
    found = f"{kept} of {len(runs)}: worst error {worst:.4f}, promised {promise:.4f}"
    yield [
        "our promise holds against the attack",
        f"{RUNS} of {RUNS}",
        found,
        mark(full and kept == RUNS),
    ]
    found = f"{broken} of {len(runs)}: least error {best:.4f}"
    yield ["exact answers break it", f"{RUNS} of {RUNS}", found, mark(full and broken == RUNS)]


def _kept(row: Row) -> bool:
    return bool(row["value"] <= row["promised"])


def _broken(row: Row) -> bool:
    return bool(row["exact"] > row["promised"])


def _promises(rows: list[Row]) -> Iterator[list[str]]:
    found = {(row["case"], row["questions"]): row["value"] for row in _of(rows, "promise")}
    for method in METHODS:
        yield [method, *(f"{found[method, k]:.4f}" if (method, k) in found else "" for k in SIZES)]


def _bears(rows: list[Row]) -> Iterator[list[str]]:
    found = {(row["rows"], row["within"], row["case"]): row["value"] for row in _of(rows, "bears")}
    for n, within in dict.fromkeys((n, within) for n, within, _ in found):
        yield [
            f"{n:,}, {within:g}",
            *(_many(found[n, within, m]) if (n, within, m) in found else "" for m in METHODS),
        ]


def _many(count: int) -> str:
    """A count; the search for it ends at a milliard."""
    return f"{count:,}" if count < 10**9 else "any number"


def chart(rows: list[Row]) -> Any:
    """What each argument promises, by number of questions, and what the attack did to exact answers and to ours."""
    promises = [
        {"method": row["case"], "questions": row["questions"], "value": row["value"]}
        for row in _of(rows, "promise")
    ]
    attacks = [
        {"questions": row["questions"], "value": row[name], "who": who}
        for row in _of(rows, "attack")
        for name, who in (("exact", "exact answers"), ("value", "our answers"))
    ]
    x = alt.X(
        "questions:Q",
        title="questions",
        scale=alt.Scale(type="log"),
        axis=alt.Axis(values=list(SIZES), format=",d"),
    )
    y = alt.Y(
        "value:Q", title="error on the population", scale=alt.Scale(type="log", domain=[0.003, 1])
    )
    colour = alt.Color(
        "method:N", title="promised by", scale=alt.Scale(domain=list(METHODS), range=list(COLOURS))
    )
    lines = (
        alt.Chart(alt.Data(values=promises)).mark_line(strokeWidth=2).encode(x=x, y=y, color=colour)
    )
    shape = alt.Shape(
        "who:N", title=f"{RUNS} attacks on", scale=alt.Scale(range=["cross", "circle"])
    )
    dots = (
        alt.Chart(alt.Data(values=attacks))
        .mark_point(size=36, color="#24292f", opacity=0.35)
        .encode(x=x, y=y, shape=shape)
    )
    heading = alt.TitleParams(f"Error on the population, {ROWS:,} rows: promised, and under attack", anchor="start",
                              fontSize=16, offset=14)  # fmt: skip
    return (lines + dots).properties(
        width=560, height=340, title=heading, padding=20, background="white"
    )

"""The local suite as Markdown and as a picture."""

import math
from collections.abc import Iterator
from typing import Any

import altair as alt
from benchmarks.markdown import duration, mark, table, times
from benchmarks.suites.local.settings import CELLS, MILLION

Row = dict[str, Any]
TITLE = "Local: frequencies from randomized answers"
PEERS = ("multi-freq-ldpy", "pure-ldp")
COLOURS = ("#c96f15", "#3f77c2")
FASTER, STANDARD_ERRORS, EQUAL = 10, 2, 1 + 1e-9

HOW_TO_READ = """
**How to read this.** Answers follow a long-tailed law. Sordino uses what `local.choose` takes, each peer its protocol with
the least variance by its own parameters (within a thousandth: the fastest). *Error* is the mean squared error of a share
over all categories. *Raw* estimates are unbiased; multi-freq-ldpy gives none, so its counts are read on the way.
*Consistent* ones form a distribution: Sordino and pure-ldp project, multi-freq-ldpy cuts at zero and rescales. A ratio
below 1x says that Sordino's error is smaller; ± is one standard error. Errors are compared at equal numbers of persons,
fewer than a million because the peers answer one at a time. Of so many cells one is likely to be two standard errors off
by chance, so the measured errors of all cells are judged together; the exact variances are judged cell by cell.

Times are processor times of client and collector for a million persons, with Sordino's intervals, which the peers do not
have. Where a peer would take over ten seconds its time is scaled up from fewer persons, which leaves out what its memory
would cost. Sordino's collector has a fixed cost for each category, so that with few persons it is less far ahead. The
variance of raw estimates is known exactly, and its ratio does not depend on the number of persons.
"""


def section(rows: list[Row]) -> str:
    parts = (
        HOW_TO_READ.lstrip(),
        "### Targets\n",
        "Of exact variances and times the worst figure over cells and peers is the one that counts.\n",
        table(["target", "asked", "measured", "verdict"], targets(rows)),
        "### Error beside each peer's best protocol\n",
        table(
            ["cell", "ours", "peer", "persons", "runs", "exact variances", "raw", "consistent"],
            _errors(rows),
        ),
        "### Time for a million persons\n",
        table(["cell", "ours", "its best", "it ÷ Sordino", "its other protocols"], _times(rows)),
        *(
            f"**{row['tool']}, {row.get('case', '')} {row.get('how', '')}: {row['error']}**\n"
            for row in rows
            if "error" in row
        ),
    )
    return "\n".join(parts)


def _pairs(rows: list[Row]) -> Iterator[tuple[Row, Row, Row]]:
    """Ours at a million, ours at the peer's number of persons, and the peer."""
    found = [row for row in rows if row.get("part") == "frequency" and "value" in row]
    ours = {(row["case"], row["persons"]): row for row in found if row["tool"] == "Sordino"}
    for row in found:
        if (
            row["tool"] in PEERS
            and (row["case"], MILLION) in ours
            and (row["case"], row["persons"]) in ours
        ):
            yield ours[row["case"], MILLION], ours[row["case"], row["persons"]], row


def _ratio(ours: Row, peer: Row, name: str) -> tuple[float, float]:
    """Our error over the peer's, and its standard error."""
    ratio = ours[name] / peer[name]
    return ratio, ratio * math.hypot(
        ours[f"{name}_error"] / ours[name], peer[f"{name}_error"] / peer[name]
    )


def _pooled(ratios: list[tuple[float, float]]) -> tuple[float, float]:
    """Their mean, each weighed by its accuracy, and its standard error."""
    weight = sum(error**-2 for _, error in ratios)
    return (
        (sum(value * error**-2 for value, error in ratios) / weight, weight**-0.5)
        if ratios
        else (math.inf, math.inf)
    )


def targets(rows: list[Row]) -> Iterator[list[str]]:
    pairs = list(_pairs(rows))
    full = len(pairs) == len(CELLS) * len(PEERS)
    exact = max((ours["variance"] / peer["variance"] for _, ours, peer in pairs), default=math.inf)
    yield [
        "exact variance beside the best protocol's",
        "≤ 1x",
        f"{exact:.6f}x",
        mark(full and exact <= EQUAL),
    ]
    for name in ("raw", "consistent"):
        asked = f"≤ 1x within {STANDARD_ERRORS} standard errors"
        for tool in PEERS:
            value, error = _pooled(
                [_ratio(ours, peer, name) for _, ours, peer in pairs if peer["tool"] == tool]
            )
            met = full and value - STANDARD_ERRORS * error <= 1
            yield [
                f"{name} error as measured, all cells of {tool}",
                asked,
                f"{value:.3f}x ± {error:.3f}",
                mark(met),
            ]
    slowest = min((peer["value"] / ours["value"] for ours, _, peer in pairs), default=0.0)
    yield [
        "time of the best protocol beside Sordino's",
        f"≥ {FASTER}x",
        times(slowest),
        mark(full and slowest >= FASTER),
    ]


def _errors(rows: list[Row]) -> Iterator[list[str]]:
    for _, ours, peer in _pairs(rows):
        ratios = [
            f"{value:.3f}x ± {error:.3f}"
            for value, error in (_ratio(ours, peer, n) for n in ("raw", "consistent"))
        ]
        exact = f"{ours['variance'] / peer['variance']:.4f}x"
        who = f"{peer['tool']} {peer['how']}"
        yield [
            peer["case"],
            ours["how"],
            who,
            f"{peer['persons']:,}",
            f"{ours['runs']}, {peer['runs']}",
            exact,
            *ratios,
        ]


def _times(rows: list[Row]) -> Iterator[list[str]]:
    for ours, _, peer in _pairs(rows):
        same = {"part": "speed", "tool": peer["tool"], "case": peer["case"]}
        others = [
            row
            for row in rows
            if same.items() <= row.items() and "value" in row and row["how"] != peer["how"]
        ]
        rest = ", ".join(f"{row['how']} {duration(row['value'])}" for row in others)
        best = f"{peer['tool']} {peer['how']} {duration(peer['value'])}"
        yield [
            peer["case"],
            duration(ours["value"]),
            best,
            times(peer["value"] / ours["value"]),
            rest,
        ]


def chart(rows: list[Row]) -> Any:
    """How many times Sordino's time the peers take, for each cell."""
    data = [
        {"case": peer["case"], "tool": peer["tool"], "value": peer["value"] / ours["value"]}
        for ours, _, peer in _pairs(rows)
    ]
    for one in data:
        one["text"] = times(one["value"])
    base = alt.Chart(alt.Data(values=data)).encode(
        y=alt.Y("case:N", sort=None, title=None, axis=alt.Axis(labelLimit=240, domain=False, ticks=False, grid=True)),
        x=alt.X("value:Q", title="times Sordino's time, for a million persons; right of the line meets the target",
                scale=alt.Scale(type="log", domainMin=5)),
        yOffset=alt.YOffset("tool:N", sort=list(PEERS)),
        color=alt.Color("tool:N", title=None, scale=alt.Scale(domain=list(PEERS), range=list(COLOURS)),
                        legend=alt.Legend(orient="top")),
    )  # fmt: skip
    rule = (
        alt.Chart(alt.Data(values=[{"value": FASTER}]))
        .mark_rule(strokeDash=[4, 4], color="#8a9099")
        .encode(x="value:Q")
    )
    dots = base.mark_point(filled=True, size=90)
    words = base.mark_text(align="left", dx=9, fontSize=10).encode(text="text:N")
    heading = alt.TitleParams("Frequencies from randomized answers: time beside the peers' best protocols",
                              anchor="start", fontSize=16, offset=14)  # fmt: skip
    return (rule + dots + words).properties(
        width=520, height=340, title=heading, padding=20, background="white"
    )

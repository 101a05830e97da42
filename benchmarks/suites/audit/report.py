"""The audit suite as Markdown and as a picture."""

from collections.abc import Iterator
from typing import Any

import altair as alt
from benchmarks.markdown import duration, mark, table, times

Row = dict[str, Any]
TITLE = "Audit: lower bounds, and a zoo of known truth"
TARGET, MINUTES = 0.9, 15

HOW_TO_READ = """
**How to read this.** The *reference rows* are the mechanisms of the DP-Sniper paper (S&P 2021) with its published lower
bounds on epsilon, found with 200 million final runs and confidence 0.9. Ours are certified at the same confidence with 20
million runs in all, training included; as there, rows whose inputs were found beforehand (`reference.toml`) count no
search. A bound above the claim shows a violation. The *zoo* holds mechanisms of known truth, each audited so that all
verdicts together are right with probability 99.9 %; ∞ means that no epsilon is enough.
"""


def section(rows: list[Row]) -> str:
    parts = (
        HOW_TO_READ.lstrip(),
        "### Targets\n",
        table(["target", "asked", "measured", "verdict"], targets(rows)),
        "### Reference rows\n",
        table(
            [
                "mechanism",
                "claim",
                "listed: logistic",
                "listed: network",
                "ours",
                "beside the better",
                "time",
            ],
            _listed(rows),
        ),
        "### The zoo\n",
        table(
            ["specimen", "is", "claim", "truth", "at least", "verdict", "time"], _specimens(rows)
        ),
        *(
            f"**{row['case']}: {row['error']}**\n" if "case" in row else f"**{row['error']}**\n"
            for row in rows
            if "error" in row
        ),
    )
    return "\n".join(parts)


def _of(rows: list[Row], part: str) -> list[Row]:
    return [row for row in rows if row.get("part") == part and "verdict" in row]


def _ratio(row: Row) -> float:
    return float(
        row["value"]
        / max(bound for bound in (row["logistic"], row["network"]) if bound is not None)
    )


def targets(rows: list[Row]) -> Iterator[list[str]]:
    reference, zoo = (  # with those that failed
        [row for row in rows if row.get("part") == part] for part in ("reference", "zoo")
    )
    least = min((_ratio(row) if "value" in row else 0.0 for row in reference), default=0.0)
    yield [
        "lower bound beside the better listed one, worst row",
        f"≥ {TARGET}x",
        times(least),
        mark(least >= TARGET),
    ]
    most = max((row.get("runs", 0) for row in reference), default=0)
    yield ["runs for it", "≤ 20 million", f"{most:,}", mark(0 < most <= 20_000_000)]
    for broken, asked in (
        (True, "broken specimens flagged"),
        (False, "right specimens not flagged"),
    ):
        own = [row for row in zoo if row["broken"] == broken]
        good = sum(row.get("as_expected", False) for row in own)
        yield [asked, "all", f"{good} of {len(own)}", mark(0 < good == len(own))]
    total = sum(row.get("seconds", 0) for row in zoo)
    yield [
        "the whole zoo",
        f"< {MINUTES} min",
        duration(total),
        mark(bool(zoo) and total < 60 * MINUTES),
    ]


def _bound(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _listed(rows: list[Row]) -> Iterator[list[str]]:
    for row in _of(rows, "reference"):
        listed = [_bound(row[name]) for name in ("logistic", "network")]
        yield [
            row["case"], f"{row['claim']:.3g}", *listed, _bound(row["value"]), times(_ratio(row)), duration(row["seconds"]),
        ]  # fmt: skip


def _specimens(rows: list[Row]) -> Iterator[list[str]]:
    for row in _of(rows, "zoo"):
        claim = f"{row['claim']:.3g}" + (f", δ {row['delta']:.2g}" if row["delta"] else "")
        truth, lower = (
            "∞" if row[name] is None else f"{row[name]:.3g}" for name in ("truth", "value")
        )
        verdict = row["verdict"] if row["as_expected"] else f"**{row['verdict']}**"
        yield [
            row["case"], "broken" if row["broken"] else "right", claim, truth, lower, verdict, duration(row["seconds"]),
        ]  # fmt: skip


def chart(rows: list[Row]) -> Any:
    """Our bound beside the better listed one, for each reference row."""
    data = [
        {"case": row["case"], "value": _ratio(row), "text": times(_ratio(row))}
        for row in _of(rows, "reference")
    ]
    base = alt.Chart(alt.Data(values=data)).encode(
        y=alt.Y(
            "case:N",
            sort=None,
            title=None,
            axis=alt.Axis(labelLimit=240, domain=False, ticks=False),
        ),
        x=alt.X(
            "value:Q",
            title="our lower bound beside the better listed one, with a tenth of the runs",
            scale=alt.Scale(type="log"),
        ),
    )
    rule = (
        alt.Chart(alt.Data(values=[{"value": 1}]))
        .mark_rule(strokeDash=[4, 4], color="#8a9099")
        .encode(x="value:Q")
    )
    bars = base.mark_point(filled=True, size=90, color="#0b6e6e")
    words = base.mark_text(align="left", dx=10, color="#24292f").encode(text="text:N")
    heading = alt.TitleParams(
        "Audit: lower bounds on epsilon beside published ones",
        anchor="start",
        fontSize=16,
        offset=14,
    )
    return (rule + bars + words).properties(
        width=520, height=460, title=heading, padding=20, background="white"
    )
